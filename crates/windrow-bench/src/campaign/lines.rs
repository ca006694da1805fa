//! The file of a campaign: lines of JSON, each whole or not there.
//!
//! 1. What follows the last whole line is what a killed campaign was writing, or what a full disk cut
//!    off. Nothing is ever written behind it: it is cut off before each line, and again where a write
//!    fails.
//! 2. A file that does not begin as a campaign's does is left as it is.
//!
//! Concurrency: whoever writes has locked the file, so that no other process writes to it. Reading needs
//! no lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windrow::{Error, ErrorKind, Result};

use super::{Failure, Header, Run};

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    campaign: Header,
}

/// A file to which lines are added.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    /// Bytes of the lines that are whole.
    whole: u64,
}

impl Lines {
    /// Opens or creates the file, for this process alone, and tells what it has.
    ///
    /// # Errors
    /// `Locked` where another process has it; as [`Contents::of`]; what the file system reports.
    pub(super) fn open(path: &Path) -> Result<(Self, Contents)> {
        let failed = |error| Error::io("open", path, error);
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = options.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process goes on with the campaign in {}",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Locked, message));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path, error)),
        }
        let contents = Contents::of(path, &file)?;
        let lines = Self {
            path: path.to_owned(),
            file,
            whole: contents.whole,
        };
        Ok((lines, contents))
    }

    /// Adds the first line.
    pub(super) fn begin(&mut self, header: &Header) -> Result<()> {
        let campaign = header.clone();
        self.add(&FirstLine { campaign })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// What the file system reports; the file ends with the line before then. // 1
    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |error| Error::io("write to", &self.path, error);
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let (file, whole) = (&mut self.file, self.whole);
        let written = cut(file, whole)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Where not even this can be done, the next one who opens the file does it.
            drop(cut(file, whole));
            return Err(failed(error));
        }
        self.whole += text.len() as u64;
        Ok(())
    }
}

/// Leaves the first `whole` bytes, and goes behind them.
fn cut(file: &mut File, whole: u64) -> io::Result<()> {
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    Ok(())
}

/// What a file has.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) header: Option<Header>,
    pub(super) runs: Vec<Run>,
    pub(super) failures: Vec<Failure>,
    whole: u64,
}

impl Contents {
    /// Reads the file as it is, also while another process adds to it.
    ///
    /// # Errors
    /// As [`of`](Self::of); what the file system reports.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Self::of(path, &file)
    }

    /// Reads all whole lines.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is no campaign, `Corruption` for a line that cannot be read.
    fn of(path: &Path, file: &File) -> Result<Self> {
        let mut contents = Self::default();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line);
            let length = length.map_err(|error| Error::io("read", path, error))?;
            if !line.ends_with(b"\n") {
                // Only what begins as a campaign does may be cut. // 2
                if contents.whole == 0 && length > 0 && !line.starts_with(b"{\"campaign\"") {
                    return Err(no_campaign(path));
                }
                return Ok(contents);
            }
            if contents.header.is_none() {
                let first = serde_json::from_slice::<FirstLine>(&line);
                contents.header = Some(first.map_err(|_| no_campaign(path))?.campaign);
            } else {
                let whole = contents.whole;
                contents.further(&line).map_err(|error| {
                    let message = format!("a run of the campaign cannot be read: {error}");
                    Error::corruption(&path.display().to_string(), whole, message)
                })?;
            }
            contents.whole += length as u64;
        }
    }

    /// Takes in a line behind the first.
    fn further(&mut self, line: &[u8]) -> serde_json::Result<()> {
        // Only a failure says what failed.
        match serde_json::from_slice(line) {
            Ok(failure) => self.failures.push(failure),
            Err(_) => self.runs.push(serde_json::from_slice(line)?),
        }
        Ok(())
    }
}

pub(super) fn no_campaign(path: &Path) -> Error {
    Error::invalid_argument(format!("{} is not the file of a campaign", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // 1
    #[test]
    fn nothing_is_written_behind_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("campaign");
        let (mut lines, _) = Lines::open(&path).unwrap();
        lines.add(&"first").unwrap();
        // What a write leaves that fails half way.
        lines.file.write_all(b"\"hal").unwrap();
        lines.add(&"second").unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "\"first\"\n\"second\"\n"
        );
    }

    #[test]
    fn a_write_that_fails_leaves_the_lines_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("campaign");
        let (mut lines, _) = Lines::open(&path).unwrap();
        lines.add(&"first").unwrap();
        let writable = std::mem::replace(&mut lines.file, File::open(&path).unwrap());
        let error = lines.add(&"second").unwrap_err();
        assert!(error.to_string().contains("write to"), "{error}");
        lines.file = writable;
        lines.add(&"third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"first\"\n\"third\"\n");
    }

    #[test]
    fn one_process_alone_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("campaign");
        let (lines, _) = Lines::open(&path).unwrap();
        let error = Lines::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("another process"), "{error}");
        drop(lines);
        Lines::open(&path).unwrap();
    }
}
