//! Standard output and exit codes of programs that run loads. Each line is flushed, so a reader sees a load at its
//! end, and an aborted run leaves its reports.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use windrow::{Error, ErrorKind, Result};

/// Prints a line and flushes it.
///
/// # Errors
/// `Io` if the write fails.
pub fn print(line: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(failed)
}

/// Prints an object as a line of JSON.
///
/// # Errors
/// As [`print`](print()).
pub fn print_object(object: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(object);
    print(&text.map_err(|error| failed(error.into()))?)
}

/// The exit code of a program for an error of `kind`: 1 for invalid arguments, 3 for a read with wrong data, 2 for
/// an error of the environment.
pub fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists => 1,
        ErrorKind::Corruption => 3,
        _ => 2,
    }
}

/// Whether `error` is a closed standard output, such as a pipe to `head`. The program then ends without a failure.
pub fn reader_is_gone(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<io::Error>());
    source.is_some_and(|source| source.kind() == io::ErrorKind::BrokenPipe)
}

fn failed(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}
