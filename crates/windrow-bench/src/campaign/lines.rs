//! The file of a campaign: lines of JSON. Each line is whole or missing.
//!
//! 1. Bytes after the last whole line are from a killed campaign or a full disk. An append truncates them first, and
//!    truncates its own bytes if it fails.
//! 2. A file that does not begin with the header of a campaign is never changed.
//!
//! Concurrency: a writer holds the lock of the file, so no other process writes to it. A reader needs no lock. The lock
//! ends with its [`Lines`], also while a process that another thread is starting has inherited the open file.

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

/// A file open for appends.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    /// Bytes of the whole lines.
    whole: u64,
}

impl Lines {
    /// Opens or creates the file, locks it, and returns its contents.
    ///
    /// # Errors
    /// `Locked` if another process has the lock; errors of [`Contents::of`] and of the file system.
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
                let message = format!("another process runs the campaign in {}", path.display());
                return Err(Error::new(ErrorKind::Locked, message));
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", path, error)),
        }
        let mut lines = Self {
            path: path.to_owned(),
            file,
            whole: 0,
        };
        let contents = Contents::of(path, &lines.file)?;
        lines.whole = contents.whole;
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
    /// An error of the file system. The file then ends with the previous line. // 1
    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |error| Error::io("write to", &self.path, error);
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let (file, whole) = (&mut self.file, self.whole);
        let written = cut(file, whole)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            // If this fails, too, the next open repairs the file.
            drop(cut(file, whole));
            return Err(failed(error));
        }
        self.whole += text.len() as u64;
        Ok(())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // If this fails, the close of the file unlocks it.
        drop(self.file.unlock());
    }
}

/// Truncates the file to `whole` bytes and seeks to its end.
fn cut(file: &mut File, whole: u64) -> io::Result<()> {
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    Ok(())
}

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) header: Option<Header>,
    pub(super) runs: Vec<Run>,
    pub(super) failures: Vec<Failure>,
    whole: u64,
}

impl Contents {
    /// Reads the file, also while another process appends to it.
    ///
    /// # Errors
    /// As [`of`](Self::of); an error of the file system.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Self::of(path, &file)
    }

    /// Reads all whole lines.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is not a campaign, `Corruption` for an invalid line.
    fn of(path: &Path, file: &File) -> Result<Self> {
        let mut contents = Self::default();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line);
            let length = length.map_err(|error| Error::io("read", path, error))?;
            if !line.ends_with(b"\n") {
                // Only a file that begins with the header of a campaign may be truncated. // 2
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
                    let message = format!("a run of the campaign is invalid: {error}");
                    Error::corruption(&path.display().to_string(), whole, message)
                })?;
            }
            contents.whole += length as u64;
        }
    }

    /// Adds a line after the first.
    fn further(&mut self, line: &[u8]) -> serde_json::Result<()> {
        // Only a failure has the field `failed`.
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
        // The rest of a failed write.
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
        // As a process that another thread is starting has it for a moment.
        let copy = lines.file.try_clone().unwrap();
        drop(lines);
        let (lines, _) = Lines::open(&path).unwrap();
        drop((lines, copy));
        // A file that is refused is unlocked, too.
        fs::write(&path, "no campaign\n").unwrap();
        let error = Lines::open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
