//! Errors as LevelDB writes them: the kind, a colon, and the sentence.

use windrow::{Error, ErrorKind};

/// The message for a C caller.
pub(crate) fn text(error: &Error) -> String {
    format!("{}: {error}", kind(error.kind()))
}

/// LevelDB's word for the kind. Programs look for it at the beginning of a message.
fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        // So LevelDB calls the open of a missing database, and that of one that must not exist.
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
            "Invalid argument"
        }
        ErrorKind::Corruption => "Corruption",
        ErrorKind::Unsupported => "Not implemented",
        _ => "IO error",
    }
}
