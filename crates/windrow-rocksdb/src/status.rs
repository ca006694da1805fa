//! Errors as RocksDB writes them: the kind, a colon, and the sentence.

use std::path::Path;

use windrow::{Error, ErrorKind};

/// The message for a C caller.
pub(crate) fn text(error: &Error) -> String {
    format!("{}: {error}", kind(error.kind()))
}

/// The message of an error about updates: RocksDB has a word of its own for those that are not there.
pub(crate) fn of_updates(error: &Error) -> String {
    if error.kind() == ErrorKind::NotFound {
        return format!("NotFound: {error}");
    }
    text(error)
}

/// RocksDB's word for the kind. Programs look for it at the beginning of a message.
fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        // So RocksDB calls the open of a missing database or column family, and that of one that must not exist.
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
            "Invalid argument"
        }
        ErrorKind::Corruption | ErrorKind::Merge => "Corruption",
        ErrorKind::Unsupported | ErrorKind::ReadOnly => "Not implemented",
        ErrorKind::Conflict | ErrorKind::Deadlock => "Resource busy",
        ErrorKind::FellBehind => "Operation failed. Try again.",
        ErrorKind::TimedOut => "Operation timed out",
        ErrorKind::Closed => "Shutdown in progress",
        _ => "IO error",
    }
}

/// What cannot be done.
pub(crate) fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, what)
}

/// The error of a call about the folder `path`. That of a lock names the lock file, as RocksDB's does.
pub(crate) fn of_folder(path: &Path, error: Error) -> Error {
    if error.kind() == ErrorKind::Locked {
        let message = format!("While lock file: {}/LOCK: {error}", path.display());
        return Error::new(ErrorKind::Locked, message);
    }
    error
}
