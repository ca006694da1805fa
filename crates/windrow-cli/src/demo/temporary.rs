//! The temporary folder of a demo, which is removed when the demo ends, even if it is killed.
//!
//! A child process of the same program reads its input, which ends with the demo, and then removes the
//! folder. It has its own process group, so that Ctrl-C at a terminal does not reach it.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;
use windrow::{Error, Result};

use crate::outcome::Outcome;

/// The attempts to remove the folder, and the time between two: the writer of a killed demo may write for a
/// while.
const ATTEMPTS: usize = 300;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// The prefix of the names of these folders.
const PREFIX: &str = "windrow-demo-";

/// Arguments of the child process.
#[derive(Debug, Args)]
pub(crate) struct CleanerArgs {
    /// Folder to remove
    folder: PathBuf,
}

/// A folder that is removed with its owner.
pub(super) struct Temporary {
    folder: PathBuf,
    cleaner: Child,
}

impl Temporary {
    pub(super) fn new() -> Result<Self> {
        let failed = |error| Error::io("create a folder in", &std::env::temp_dir(), error);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir()
            .map_err(failed)?;
        let cleaner = Command::new(std::env::current_exe().map_err(failed)?)
            .arg("demo-cleaner")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        Ok(Self {
            folder: folder.keep(),
            cleaner,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // This closes the input of the child. If it fails, nothing is left to report to.
        drop(self.cleaner.wait());
    }
}

/// The child: removes the folder when its input ends.
pub(crate) fn remove_at_end(args: &CleanerArgs) -> Result<Outcome> {
    let failed = |error| Error::io("remove", &args.folder, error);
    let name = args.folder.file_name().unwrap_or_default();
    if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
        let refused = io::Error::new(ErrorKind::InvalidInput, "it is not the folder of a demo");
        return Err(failed(refused));
    }
    io::stdin().read_to_end(&mut Vec::new()).map_err(failed)?;
    let mut attempts = 0..ATTEMPTS;
    loop {
        match fs::remove_dir_all(&args.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                attempts.next().ok_or(error).map_err(failed)?;
                thread::sleep(TRY_AGAIN);
            }
            _ => return Ok(Outcome::Done),
        }
    }
}
