//! Where the values of a job's entries go: they stay, or they part from their keys, or they come back.
//!
//! A flush writes the values that the policy calls medium to a transient log, unless flushes come in
//! order: files of values in the order of their keys, each freed on its own (PX-M4; sorted at the flush, D5);
//! for measurements in the order in which they were written, ahead of the entries (PX-E7). A merge into a level where values are in place reads them back, each file from front to back through a window
//! (PX-M6); any other merge copies pointers, and writes values anew only from the files that the policy
//! says move on. Pointers into value logs that were collected are written as they lead now.
//!
//! Invariants:
//! - I1: A value is never separated again once it is in place.
//! - I2: A transient log file is complete and durable before [`Values::finish`] returns it.
//!
//! Concurrency: owned by one job.

use std::collections::BTreeSet;

use super::output::{Created, JobContext};
use crate::base::sync::Shared;
use crate::base::{ErrorKind, FileNumber, Kind, Result, SequenceNumber, Trailer};
use crate::manifest::ValueFiles;
use crate::manifest::names::FileName;
use crate::options::KeyspaceOptions;
use crate::policy::{self, FlushPlace};
use crate::value::{ValueFileMeta, ValuePointer, ValueReadBuffers, ValueWriter};

/// What a job does with values.
#[derive(Debug)]
pub(crate) enum Values {
    /// Mediums go to a transient log.
    Separated(Box<Separation>),
    /// Values in transient logs come back, or stay; all else is written as it comes.
    Merged(Box<Merge>),
}

/// A transient log in the making.
#[derive(Debug)]
pub(crate) struct Separation {
    options: Shared<KeyspaceOptions>,
    /// What [`mediums_stay`](policy::mediums_stay) says of the flush.
    mediums_stay: bool,
    /// A file of this length is full.
    file_bytes: u64,
    writer: Option<ValueWriter>,
    finished: Vec<ValueFileMeta>,
    /// Where values are that were written ahead of their entries, in the order of these.
    ahead: Vec<(SequenceNumber, ValuePointer)>,
    /// The pointer that was encoded last.
    pointer: Vec<u8>,
    bytes_written: u64,
}

/// What a merge does with values in transient logs.
#[derive(Debug)]
pub(crate) enum InTransientLogs {
    /// They come back beside their keys.
    ComeBack,
    /// They stay, but for those in the files that move on: they go to a new run.
    Stay(MovingOn),
}

/// The files of runs whose values go to a new run.
#[derive(Debug, Default)]
pub(crate) struct MovingOn {
    pub(crate) files: BTreeSet<FileNumber>,
    /// How long a file of the new run is.
    pub(crate) transient_file_bytes: u64,
}

/// Reads values back, moves them on, and follows those that have moved.
#[derive(Debug)]
pub(crate) struct Merge {
    files: Shared<ValueFiles>,
    read_buffers: ValueReadBuffers,
    in_transient_logs: InTransientLogs,
    /// Where values go that are moved on.
    separation: Separation,
    /// The pointer that was encoded last.
    pointer: Vec<u8>,
}

impl Values {
    /// For a flush of a keyspace with `options`, of which [`mediums_stay`](policy::mediums_stay) is known.
    pub(crate) fn separated(options: Shared<KeyspaceOptions>, mediums_stay: bool) -> Self {
        let file_bytes = policy::transient_file_bytes(options.file_bytes);
        Self::Separated(Box::new(Separation {
            mediums_stay,
            ..Separation::new(options, file_bytes)
        }))
    }

    /// For a merge of a keyspace with `options`; what its inputs refer to is in `files`.
    pub(crate) fn merged(
        files: Shared<ValueFiles>,
        read_buffers: ValueReadBuffers,
        in_transient_logs: InTransientLogs,
        options: Shared<KeyspaceOptions>,
    ) -> Self {
        let file_bytes = match &in_transient_logs {
            InTransientLogs::ComeBack => 0,
            InTransientLogs::Stay(moving_on) => moving_on.transient_file_bytes,
        };
        Self::Merged(Box::new(Merge {
            files,
            read_buffers,
            in_transient_logs,
            separation: Separation::new(options, file_bytes),
            pointer: Vec::new(),
        }))
    }

    fn separation(&self) -> &Separation {
        match self {
            Self::Separated(separation) => separation,
            Self::Merged(merge) => &merge.separation,
        }
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
                separation.separate(created, key, trailer, value)
            }
            Self::Separated(_) => Ok((trailer, value)),
            Self::Merged(merge) => merge.place(created, key, trailer, value),
        }
    }

    /// Writes the value of an entry that a flush will place, whose sequence number is above all that
    /// were written so, ahead of it.
    pub(super) fn write_ahead(
        &mut self,
        created: &mut Created<'_>,
        key: &[u8],
        sequence: SequenceNumber,
        value: &[u8],
    ) -> Result<()> {
        let Self::Separated(separation) = self else {
            unreachable!("merges write no values ahead");
        };
        if separation.place(key, value) == FlushPlace::TransientLog {
            let pointer = separation.append(created, key, value)?;
            separation.ahead.push((sequence, pointer));
        }
        Ok(())
    }

    /// The bytes that it holds in memory and does not count itself.
    pub(super) fn memory_bytes(&self) -> u64 {
        let separation = self.separation();
        let ahead = size_of_val(separation.ahead.as_slice()) as u64;
        let writer = separation.writer.as_ref();
        ahead + writer.map_or(0, ValueWriter::memory_bytes)
    }

    /// Bytes of value files that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        match self {
            Self::Merged(merge) => merge.read_buffers.bytes_read(),
            Self::Separated(_) => 0,
        }
    }

    /// Bytes of values that were written to a transient log.
    pub(super) fn bytes_written(&self) -> u64 {
        self.separation().bytes_written
    }

    /// Completes the last file and makes all of them durable, but for their names.
    pub(super) fn finish(self) -> Result<Vec<ValueFileMeta>> {
        let mut separation = match self {
            Self::Separated(separation) => *separation,
            Self::Merged(merge) => merge.separation,
        };
        separation.close_file()?;
        Ok(separation.finished)
    }
}

impl Separation {
    fn new(options: Shared<KeyspaceOptions>, file_bytes: u64) -> Self {
        Self {
            options,
            mediums_stay: false,
            file_bytes,
            writer: None,
            finished: Vec::new(),
            ahead: Vec::new(),
            pointer: Vec::new(),
            bytes_written: 0,
        }
    }

    fn place(&self, key: &[u8], value: &[u8]) -> FlushPlace {
        policy::place_at_flush(key.len(), value.len(), self.mediums_stay, &self.options)
    }

    /// As [`Values::place`], for an entry with a value.
    fn separate<'v>(
        &'v mut self,
        created: &mut Created<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        match self.place(key, value) {
            FlushPlace::Here => return Ok((trailer, value)),
            FlushPlace::TransientLog => {}
        }
        let sequence = trailer.sequence();
        let ahead = self.ahead.binary_search_by_key(&sequence, |it| it.0);
        let pointer = match ahead {
            Ok(position) => self.ahead[position].1,
            Err(_) => self.append(created, key, value)?,
        };
        Ok((
            trailer.with_kind(Kind::TransientPointer),
            self.encoded(pointer),
        ))
    }

    fn encoded(&mut self, pointer: ValuePointer) -> &[u8] {
        self.pointer.clear();
        pointer.encode(&mut self.pointer);
        &self.pointer
    }

    /// Appends a value to the run; returns where it is.
    fn append(
        &mut self,
        created: &mut Created<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<ValuePointer> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(open_file(created)?),
        };
        let pointer = writer.append(key, value, self.options.compression)?;
        self.bytes_written += pointer.record_bytes;
        if writer.bytes() >= self.file_bytes {
            self.close_file()?;
        }
        Ok(pointer)
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
    let writer = ValueWriter::create(vfs, directory, number)?;
    created.note(FileName::Values(number));
    Ok(writer)
}

impl Merge {
    /// As [`Values::place`].
    fn place<'v>(
        &'v mut self,
        created: &mut Created<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        match trailer.kind() {
            Kind::TransientPointer => {
                let place = self.files.resolve(value)?;
                match &self.in_transient_logs {
                    InTransientLogs::ComeBack => {
                        let value = place.read(&mut self.read_buffers, key)?;
                        Ok((trailer.with_kind(Kind::Value), value))
                    }
                    InTransientLogs::Stay(moving_on)
                        if moving_on.files.contains(&place.pointer.file) =>
                    {
                        let value = match place.read(&mut self.read_buffers, key) {
                            // It stays where it is: the level above must not wait for it, and who reads the
                            // value hears of it.
                            Err(error) if error.kind() == ErrorKind::Corruption => {
                                return Ok((trailer, value));
                            }
                            value => value?,
                        };
                        let pointer = self.separation.append(created, key, value)?;
                        Ok((trailer, self.separation.encoded(pointer)))
                    }
                    InTransientLogs::Stay(_) => Ok((trailer, value)),
                }
            }
            Kind::ValueLogPointer => Ok((trailer, self.follow(value)?)),
            Kind::Value | Kind::Tombstone => Ok((trailer, value)),
        }
    }

    /// `pointer`, or what leads to the same value since its log was collected.
    fn follow<'p>(&'p mut self, pointer: &'p [u8]) -> Result<&'p [u8]> {
        let place = self.files.resolve(pointer)?;
        if place.table.is_none() {
            return Ok(pointer);
        }
        // It leads there through the table, too: where that is damaged, who reads the value hears of it.
        let moved = match place.pointer_with(&mut self.read_buffers) {
            Err(error) if error.kind() == ErrorKind::Corruption => return Ok(pointer),
            moved => moved?,
        };
        self.pointer.clear();
        moved.encode(&mut self.pointer);
        Ok(&self.pointer)
    }
}
