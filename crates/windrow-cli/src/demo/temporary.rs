//! The temporary folder of a demo, which goes with it, however that ends.
//!
//! A child process of the same program waits for the end of its input, which comes when the demo ends,
//! killed or not, and removes the folder. It stands in a process group of its own, so that what
//! interrupts the demo at a terminal does not reach it.

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

/// How often, and how soon after the last time, the removal is tried: the writer of a killed demo may
/// write on for a while.
const ATTEMPTS: usize = 300;
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What the names of these folders begin with.
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
        // This closes its input; where it fails there is nobody left to tell.
        drop(self.cleaner.wait());
    }
}

/// The child: removes the folder when its input ends.
pub(crate) fn remove_at_end(args: &CleanerArgs) -> Result<Outcome> {
    let failed = |error| Error::io("remove", &args.folder, error);
    let name = args.folder.file_name().unwrap_or_default();
    if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
        let refused = io::Error::new(ErrorKind::InvalidInput, "it is no folder of a demo");
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
