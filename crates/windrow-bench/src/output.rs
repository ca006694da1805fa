//! Lines on standard output, each there as soon as it is printed, so that who reads along sees a load
//! that has ended and a run that is broken off leaves what it found.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use windrow::{Error, Result};

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

fn failed(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}
