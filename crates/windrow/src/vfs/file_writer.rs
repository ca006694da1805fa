//! Writes a file from front to back through a buffer.
//!
//! Invariants:
//! - I1. Bytes lie one after the other from the start, without gaps.
//! - I2. Memory is one buffer. A piece of [`WRITE_BYTES`] or more is written from where it is.
//!
//! Concurrency: none; a writer belongs to one job. Dropped before `sync`, it leaves a file that nothing
//! names, or bytes that nothing names at the end of one. After an error it can only be dropped.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, Result};

use super::{File, OpenMode, Vfs, write_all_at};

/// Bytes that are collected before a write.
pub(crate) const WRITE_BYTES: usize = 256 << 10;

/// Writes one file.
#[derive(Debug)]
pub(crate) struct FileWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    written: u64,
}

impl FileWriter {
    /// Creates the file `path`; the caller syncs the directory.
    pub(crate) fn create(vfs: &dyn Vfs, path: PathBuf) -> Result<Self> {
        let file = vfs.create(&path);
        let file = file.map_err(|error| Error::io("create", &path, error))?;
        Ok(Self::new(file, path, 0))
    }

    /// Opens the file `path` and writes from `start` on.
    pub(crate) fn append(vfs: &dyn Vfs, path: PathBuf, start: u64) -> Result<Self> {
        let file = vfs.open(&path, OpenMode::ReadWrite);
        let file = file.map_err(|error| Error::io("open", &path, error))?;
        Ok(Self::new(file, path, start))
    }

    fn new(file: Arc<dyn File>, path: PathBuf, start: u64) -> Self {
        Self {
            file,
            path,
            buffer: Vec::new(),
            written: start,
        }
    }

    /// The offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The bytes that are not written yet; more may be appended to them.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// The bytes that the writer holds in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends `bytes` to the buffer, or writes them from where they are (I2).
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.flush()?;
        }
        if bytes.len() < WRITE_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.write(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.write(&self.buffer)?;
        self.written = self.position();
        self.buffer.clear();
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        write_all_at(&*self.file, bytes, self.written)
            .map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes the buffer and syncs the file.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file
            .sync_data()
            .map_err(|error| Error::io("sync", &self.path, error))
    }
}
