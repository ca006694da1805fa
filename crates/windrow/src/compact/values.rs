//! The placement of values by a job: in the table, or in a transient log.
//!
//! A flush writes medium values to a transient log, except if the flushes come in key order. The log is
//! cut into files in key order, and each file is freed on its own (PX-M4; sorted at the flush, D5). For
//! measurements, the log may instead keep the order of the writes (PX-E7).
//!
//! A compaction into a level with values in place reads the values back, each file sequentially through
//! a read buffer (PX-M6). Any other compaction copies the pointers. It rewrites only the values of the
//! transient log files that the policy selects. It replaces pointers to collected value logs.
//!
//! A value that operands were folded to is placed by its size, like any other. A large one goes to a
//! [value log of the job](super::folded_value_log).
//!
//! Invariants:
//! - I1: A value in place is never separated again.
//! - I2: A transient log file is complete and durable before [`Values::finish`] returns it.
//!
//! Concurrency: owned by one job.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::folded_value_log::FoldedValueLog;
use super::pending_files::PendingFiles;
use super::residence::Residence;
use crate::base::sync::Shared;
use crate::base::{ErrorKind, FileNumber, Kind, Result, SequenceNumber, Trailer};
use crate::manifest::ValueFiles;
use crate::options::KeyspaceOptions;
use crate::policy::{self, FlushPlace};
use crate::value::{ValueFileMeta, ValuePointer, ValueReadBuffers, ValueWriter};
use crate::vfs::PassedBytes;

/// The values of a job.
#[derive(Debug)]
pub(crate) enum Values {
    Flush(Box<Separation>),
    Compaction(Box<CompactedValues>),
}

/// Writes values to a transient log.
#[derive(Debug)]
pub(crate) struct Separation {
    options: Shared<KeyspaceOptions>,
    /// See [`Values::generation`].
    generation: FileNumber,
    /// The result of [`mediums_stay`](policy::mediums_stay) for the flush.
    mediums_stay: bool,
    /// The length of a full file.
    file_bytes: u64,
    writer: Option<ValueWriter>,
    residence: Residence,
    finished: Vec<ValueFileMeta>,
    /// The pointers to the values that were written before their entries, by sequence number.
    ahead: Vec<(SequenceNumber, ValuePointer)>,
    /// The bytes of the last pointer.
    pointer: Vec<u8>,
    bytes_written: u64,
    /// Takes the large results of folds.
    large: FoldedValueLog,
}

/// What a compaction does with values in transient logs.
#[derive(Debug)]
pub(crate) enum TransientValues {
    /// It writes them in place.
    InPlace,
    /// It copies the pointers, and rewrites the values of some files.
    Separate(TransientRewrite),
}

/// The transient log files whose values are rewritten to a new transient log.
#[derive(Debug, Default)]
pub(crate) struct TransientRewrite {
    pub(crate) files: BTreeSet<FileNumber>,
    /// The length of a file of the new transient log.
    pub(crate) transient_file_bytes: u64,
}

/// Reads values back, rewrites them, and replaces pointers to collected value logs.
#[derive(Debug)]
pub(crate) struct CompactedValues {
    files: Shared<ValueFiles>,
    read_buffers: ValueReadBuffers,
    transient_values: TransientValues,
    /// Takes the rewritten values.
    separation: Separation,
    /// The bytes of the last pointer.
    pointer: Vec<u8>,
}

impl Values {
    /// For a flush. `files` are those of the version before it. `mediums_stay` is the result of
    /// [`mediums_stay`](policy::mediums_stay).
    pub(crate) fn of_flush(
        files: &ValueFiles,
        options: Shared<KeyspaceOptions>,
        mediums_stay: bool,
    ) -> Self {
        let file_bytes = policy::transient_file_bytes(options.file_bytes);
        Self::Flush(Box::new(Separation {
            mediums_stay,
            ..Separation::new(options, files.generation(), file_bytes)
        }))
    }

    /// The newest GC output that pointers to value logs lead to. A flush has no pointer into a log that was collected
    /// before: all entries that point there are in tables.
    pub(super) fn generation(&self) -> FileNumber {
        self.separation().generation
    }

    /// For a compaction. `files` holds every value file that its inputs refer to.
    pub(crate) fn of_compaction(
        files: Shared<ValueFiles>,
        read_buffers: ValueReadBuffers,
        transient_values: TransientValues,
        options: Shared<KeyspaceOptions>,
    ) -> Self {
        let file_bytes = match &transient_values {
            TransientValues::InPlace => 0,
            TransientValues::Separate(rewrite) => rewrite.transient_file_bytes,
        };
        Self::Compaction(Box::new(CompactedValues {
            separation: Separation {
                residence: Residence::new(Arc::clone(read_buffers.passed())),
                ..Separation::new(options, files.generation(), file_bytes)
            },
            files,
            read_buffers,
            transient_values,
            pointer: Vec::new(),
        }))
    }

    fn separation(&self) -> &Separation {
        match self {
            Self::Flush(separation) => separation,
            Self::Compaction(compacted) => &compacted.separation,
        }
    }

    /// Counts the bytes of the inputs of the job.
    pub(super) fn passed(&self) -> Arc<PassedBytes> {
        match self {
            Self::Flush(_) => Arc::default(),
            Self::Compaction(compacted) => Arc::clone(compacted.read_buffers.passed()),
        }
    }

    /// The trailer and the value to write for an entry of `key`, `trailer` and `value`, of a kind that does not expire.
    /// Adds new files to `pending`.
    pub(super) fn place<'v>(
        &'v mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        let kind = trailer.kind();
        match self {
            Self::Flush(separation) if kind == Kind::Value => {
                separation.separate(pending, key, trailer, value)
            }
            Self::Flush(_) => Ok((trailer, value)),
            Self::Compaction(compacted) => compacted.place(pending, key, trailer, value),
        }
    }

    /// As [`place`](Self::place), for a value or an operand that a fold has made.
    pub(super) fn place_folded<'v>(
        &'v mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        match self {
            _ if trailer.is_operand() => Ok((trailer, value)),
            Self::Flush(separation) => separation.separate(pending, key, trailer, value),
            Self::Compaction(compacted) => {
                let separation = &mut compacted.separation;
                let is_in_place = matches!(compacted.transient_values, TransientValues::InPlace);
                let place = policy::place_at_flush(
                    key.len(),
                    value.len(),
                    is_in_place,
                    &separation.options,
                );
                separation.put(place, pending, key, trailer, value)
            }
        }
    }

    /// Writes the value of a later entry of a flush to a transient log. Calls have ascending sequence
    /// numbers.
    pub(super) fn write_ahead(
        &mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        sequence: SequenceNumber,
        value: &[u8],
    ) -> Result<()> {
        let Self::Flush(separation) = self else {
            unreachable!("compactions write no values ahead");
        };
        if separation.place(key, value) == FlushPlace::TransientLog {
            let pointer = separation.append(pending, key, value)?;
            separation.ahead.push((sequence, pointer));
        }
        Ok(())
    }

    /// The bytes of memory that no memory tracker counts.
    pub(super) fn memory_bytes(&self) -> u64 {
        let separation = self.separation();
        let ahead = size_of_val(separation.ahead.as_slice()) as u64;
        let writer = separation.writer.as_ref();
        let large = separation.large.memory_bytes();
        ahead + large + writer.map_or(0, ValueWriter::memory_bytes)
    }

    /// The bytes of value files that were read.
    pub(super) fn bytes_read(&self) -> u64 {
        match self {
            Self::Compaction(compacted) => compacted.read_buffers.bytes_read(),
            Self::Flush(_) => 0,
        }
    }

    /// The bytes that were written to a transient log.
    pub(super) fn bytes_written(&self) -> u64 {
        let separation = self.separation();
        separation.bytes_written + separation.large.bytes_written()
    }

    /// Completes the last files and makes all files durable, except their names. Returns those of transient logs and
    /// those of value logs.
    pub(super) fn finish(self) -> Result<(Vec<ValueFileMeta>, Vec<ValueFileMeta>)> {
        let mut separation = match self {
            Self::Flush(separation) => *separation,
            Self::Compaction(compacted) => compacted.separation,
        };
        separation.close_file()?;
        Ok((separation.finished, separation.large.finish()?))
    }
}

impl Separation {
    fn new(options: Shared<KeyspaceOptions>, generation: FileNumber, file_bytes: u64) -> Self {
        Self {
            options,
            generation,
            mediums_stay: false,
            file_bytes,
            writer: None,
            residence: Residence::default(),
            finished: Vec::new(),
            ahead: Vec::new(),
            pointer: Vec::new(),
            bytes_written: 0,
            large: FoldedValueLog::default(),
        }
    }

    fn place(&self, key: &[u8], value: &[u8]) -> FlushPlace {
        policy::place_at_flush(key.len(), value.len(), self.mediums_stay, &self.options)
    }

    /// As [`Values::place`], for an entry with a value.
    fn separate<'v>(
        &'v mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        self.put(self.place(key, value), pending, key, trailer, value)
    }

    /// Writes a value to its `place`.
    fn put<'v>(
        &'v mut self,
        place: FlushPlace,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        let (kind, pointer) = match place {
            FlushPlace::Table => return Ok((trailer, value)),
            FlushPlace::TransientLog => {
                let sequence = trailer.sequence();
                let ahead = self.ahead.binary_search_by_key(&sequence, |it| it.0);
                let pointer = match ahead {
                    Ok(position) => self.ahead[position].1,
                    Err(_) => self.append(pending, key, value)?,
                };
                (Kind::TransientPointer, pointer)
            }
            FlushPlace::ValueLog => {
                let pointer = self.large.append(pending, key, value, &self.options)?;
                (Kind::ValueLogPointer, pointer)
            }
        };
        Ok((trailer.with_kind(kind), self.encoded(pointer)))
    }

    fn encoded(&mut self, pointer: ValuePointer) -> &[u8] {
        self.pointer.clear();
        pointer.encode(&mut self.pointer);
        &self.pointer
    }

    /// Appends a value to the transient log.
    fn append(
        &mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<ValuePointer> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(pending.create_value_file()?),
        };
        let pointer = writer.append(key, value, self.options.compression)?;
        if writer.has_unjudged_piece() {
            writer.judge(self.residence.stays());
        }
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

impl CompactedValues {
    /// As [`Values::place`].
    fn place<'v>(
        &'v mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        trailer: Trailer,
        value: &'v [u8],
    ) -> Result<(Trailer, &'v [u8])> {
        match trailer.kind() {
            Kind::TransientPointer => {
                let place = self.files.resolve(value)?;
                match &self.transient_values {
                    TransientValues::InPlace => {
                        let value = place.read(&mut self.read_buffers, key)?;
                        Ok((trailer.with_kind(Kind::Value), value))
                    }
                    TransientValues::Separate(rewrite)
                        if rewrite.files.contains(&place.pointer.file) =>
                    {
                        let value = match place.read(&mut self.read_buffers, key) {
                            // The pointer stays: damage must not block the compaction. A read of the
                            // value returns the error.
                            Err(error) if error.kind() == ErrorKind::Corruption => {
                                return Ok((trailer, value));
                            }
                            value => value?,
                        };
                        let pointer = self.separation.append(pending, key, value)?;
                        Ok((trailer, self.separation.encoded(pointer)))
                    }
                    TransientValues::Separate(_) => Ok((trailer, value)),
                }
            }
            Kind::ValueLogPointer => Ok((trailer, self.relocated(value)?)),
            _ => Ok((trailer, value)),
        }
    }

    /// `pointer`, or the present pointer to its value if the value log was collected.
    fn relocated<'p>(&'p mut self, pointer: &'p [u8]) -> Result<&'p [u8]> {
        let place = self.files.resolve(pointer)?;
        if place.table.is_none() {
            return Ok(pointer);
        }
        // The old pointer resolves too. If the relocation table is damaged, a read returns the error.
        let moved = match place.pointer_with(&mut self.read_buffers) {
            Err(error) if error.kind() == ErrorKind::Corruption => return Ok(pointer),
            moved => moved?,
        };
        self.pointer.clear();
        moved.encode(&mut self.pointer);
        Ok(&self.pointer)
    }
}
