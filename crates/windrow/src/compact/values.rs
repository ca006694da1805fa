//! Where the values of a job's entries go: they stay, or they part from their keys, or they come back.
//!
//! A flush writes the values that the policy calls medium to a transient run: files of values in the
//! order of their keys, each freed on its own (PX-M4; sorted at the flush, facts D5). A merge into a
//! level where values are in place reads them back, each file from front to back through a window
//! (PX-M6); any other merge copies pointers.
//!
//! Invariants:
//! - I1: A value is never separated again once it is in place.
//! - I2: A run file is complete and durable before [`Values::finish`] returns it.
//!
//! Concurrency: owned by one job.

use super::output::{Created, JobContext};
use crate::base::sync::Shared;
use crate::base::{FileNumber, Kind, Result, Trailer};
use crate::manifest::ValueFiles;
use crate::manifest::names::FileName;
use crate::options::KeyspaceOptions;
use crate::policy::{self, FlushPlace};
use crate::value::{Keys, ValueFileMeta, ValueWindows, ValueWriter};

/// What a job does with values.
#[derive(Debug)]
pub(crate) enum Values {
    /// Entries are written as they come.
    Kept,
    /// Mediums go to a transient run.
    Separated(Box<Separation>),
    /// Values come back from transient runs.
    InPlace(Return),
}

/// A transient run in the making.
#[derive(Debug)]
pub(crate) struct Separation {
    options: Shared<KeyspaceOptions>,
    writer: Option<ValueWriter>,
    finished: Vec<ValueFileMeta>,
    /// The pointer that was encoded last.
    pointer: Vec<u8>,
}

/// Reads values back.
#[derive(Debug)]
pub(crate) struct Return {
    files: Shared<ValueFiles>,
    windows: ValueWindows,
}

impl Values {
    /// For a flush of a keyspace with `options`.
    pub(crate) fn separated(options: Shared<KeyspaceOptions>) -> Self {
        Self::Separated(Box::new(Separation {
            options,
            writer: None,
            finished: Vec::new(),
            pointer: Vec::new(),
        }))
    }

    /// For a merge into a level where values are in place; what its inputs refer to is in `files`.
    pub(crate) fn in_place(files: Shared<ValueFiles>, windows: ValueWindows) -> Self {
        Self::InPlace(Return { files, windows })
    }

    /// What is to be written beside `key` for an entry of `trailer` and `value`. New files are noted
    /// in `created`.
    pub(super) fn place<'v>(
        &'v mut self,
        created: &mut Created<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        let kind = trailer.kind();
        match self {
            Self::Separated(separation) if kind == Kind::Value => {
                match policy::place_at_flush(key.len(), value.len(), &separation.options) {
                    FlushPlace::Here => return Ok((trailer, value)),
                    FlushPlace::Run => {}
                }
                let pointer = separation.append(created, key, value)?;
                Ok((trailer.with_kind(Kind::RunPointer), pointer))
            }
            Self::InPlace(back) if kind == Kind::RunPointer => {
                Ok((trailer.with_kind(Kind::Value), back.read(key, value)?))
            }
            _ => Ok((trailer, value)),
        }
    }

    /// The bytes that it holds in memory and does not count itself.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Separated(separation) => {
                let writer = separation.writer.as_ref();
                writer.map_or(0, ValueWriter::memory_bytes)
            }
            Self::Kept | Self::InPlace(_) => 0,
        }
    }

    /// Bytes of transient runs that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        match self {
            Self::InPlace(back) => back.windows.bytes_read(),
            Self::Kept | Self::Separated(_) => 0,
        }
    }

    /// Completes the last file and makes all of them durable, but for their names.
    pub(super) fn finish(self) -> Result<Vec<ValueFileMeta>> {
        match self {
            Self::Separated(mut separation) => {
                separation.close_file()?;
                Ok(separation.finished)
            }
            Self::Kept | Self::InPlace(_) => Ok(Vec::new()),
        }
    }
}

impl Separation {
    /// Appends a value to the run; returns the pointer to it.
    fn append(&mut self, created: &mut Created<'_>, key: &[u8], value: &[u8]) -> Result<&[u8]> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(open_file(created)?),
        };
        let pointer = writer.append(key, value, self.options.compression)?;
        if writer.bytes() >= policy::run_file_bytes(&self.options) {
            self.close_file()?;
        }
        self.pointer.clear();
        pointer.encode(&mut self.pointer);
        Ok(&self.pointer)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.finished.push(writer.finish()?);
        }
        Ok(())
    }
}

fn open_file(created: &mut Created<'_>) -> Result<ValueWriter> {
    let context: &dyn JobContext = created.context();
    let number = FileNumber(context.allocate_id()?);
    let (vfs, directory) = (context.vfs(), context.directory());
    let writer = ValueWriter::create(vfs, directory, number, Keys::InTables)?;
    created.note(FileName::Values(number));
    Ok(writer)
}

impl Return {
    /// The value of `key` that `pointer` leads to.
    fn read(&mut self, key: &[u8], pointer: &[u8]) -> Result<&[u8]> {
        let (file, pointer) = self.files.resolve(pointer)?;
        self.windows.read(&file.meta, key, &pointer)
    }
}
