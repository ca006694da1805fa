//! Lines on standard output, each there as soon as it is printed, so that who reads along sees a load
//! that has ended and a run that is broken off leaves what it found; and the exit codes of programs that
//! run loads.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use windrow::{Error, ErrorKind, Result};

/// Prints a line at once.
///
/// # Errors
/// `Io` where standard output takes nothing.
pub fn print(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(failed)
}

/// Prints an object as JSON, on a line of its own.
///
/// # Errors
/// As [`print`](print()).
pub fn print_object(object: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(object);
    print(&text.map_err(|error| failed(error.into()))?)
}

/// The exit code of a program that an error of `kind` has ended: 1 for a wrong request, 3 where what was
/// read is not what was written, 2 where the environment failed.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists => 1,
        ErrorKind::Corruption => 3,
        _ => 2,
    }
}

/// Whether `error` is that nobody reads standard output any more, as `head` does when it has enough: a
/// program then ends, and has not failed.
pub fn reader_is_gone(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

fn failed(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}
