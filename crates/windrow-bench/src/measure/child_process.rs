//! Child processes that end with their parent.
//!
//! The standard input of such a child is a pipe whose other end only the parent has. The pipe closes when the
//! parent ends, also if it is killed.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;

use windrow::{Error, Result};

/// A process that ends at the latest when this value drops.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both calls do nothing if the process has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The executable of this program.
///
/// # Errors
/// `Io` if the system does not report it.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("find", Path::new("this program"), error))
}

/// Ends this process when its standard input ends. `last` runs before it and returns the exit code.
///
/// # Errors
/// `Io` if no thread can start.
#[expect(
    clippy::exit,
    reason = "the parent has ended, so the whole process must end"
)]
pub(crate) fn end_with_input(last: impl FnOnce() -> u8 + Send + 'static) -> Result<()> {
    let watch = || {
        // The parent sends nothing, so this returns when the other end closes.
        let mut sent = [0];
        while io::stdin().read(&mut sent).is_ok_and(|length| length > 0) {}
        std::process::exit(i32::from(last()));
    };
    let watcher = thread::Builder::new()
        .name("parent".to_owned())
        .spawn(watch);
    let failed = |error| {
        Error::io(
            "start",
            Path::new("the thread that watches the parent"),
            error,
        )
    };
    watcher.map(drop).map_err(failed)
}
