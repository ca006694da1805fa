//! Garbage collection of value logs: it copies their live values to a GC output, in key order.
//!
//! The discard lists of flushes and compactions name the garbage. So GC looks up no key and changes no
//! entry: the relocation tables of the GC output resolve the old pointers. Concurrent writes therefore
//! cannot be lost or undone (better than PX-M9, which looks up every key and rewrites live values).
//!
//! Invariants:
//! - I1: For each file, records in = records copied + garbage records, and records in is the count of the
//!   manifest. Each garbage record is found. The records copied are as many, with as many bytes, as tables refer to by
//!   the manifest: with fewer, a value that somebody needs would be dropped; with more, the output would have the same
//!   garbage, and the policy would pick it again, for ever. Otherwise the job fails, in release builds too.
//! - I2: The memory for keys is at most [`KEYS_BYTES_MAX`]. The other memory is at most three offsets for
//!   each record and each entry of relocation tables, whose number the policy bounds. The memory tracker
//!   counts all of it.
//! - I3: The GC output and its name are durable before [`collect`] returns.
//!
//! Concurrency: owned by one thread; the caller holds the files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::job::{CancelCheck, IoPriority, JobContext};
use super::pending_files::PendingFiles;
use super::residence::Residence;
use crate::base::{Error, FileNumber, Held, Result};
use crate::manifest::names::FileName;
use crate::table::Referred;
use crate::value::{
    DiscardList, DiscardListWriter, GcOutputWriter, Move, RecordReader, RelocationTable,
    ValueFileMeta, ValuePointer, read_discard_list,
};
use crate::vfs::PassedBytes;

/// The most bytes of keys that are sorted at a time. With more, the GC output consists of several
/// sorted parts.
const KEYS_BYTES_MAX: usize = 16 << 20;

/// GC merges the rest of its discard lists into one if it reads more lists than this.
pub(crate) const LISTS_MAX: usize = 32;

/// The bytes of one request to the rate limiter.
const REQUEST_BYTES: u64 = 256 << 10;

/// The bytes read between two cancel checks.
const CHECK_BYTES: u64 = 1 << 20;

/// The pieces of a long value between two cancel checks.
const PIECES_PER_CHECK: u64 = 4;

/// The entries of discard lists between two cancel checks.
const LISTED_PER_CHECK: u64 = 64 << 10;

/// A value log that is collected.
#[derive(Debug, Clone)]
pub(crate) struct Victim {
    pub(crate) file: ValueFileMeta,
    /// The relocation tables at its end, if it is a GC output.
    pub(crate) tables: Vec<RelocationTable>,
    /// What tables refer to in it, directly and through its relocation tables.
    pub(crate) live: Referred,
}

/// The durable result of a garbage collection.
#[derive(Debug)]
pub(crate) struct GcResult {
    pub(crate) gc_output: ValueFileMeta,
    /// One for each origin with live values, including the victims.
    pub(crate) tables: Vec<RelocationTable>,
    pub(crate) bytes_read: u64,
    /// The number of garbage records.
    pub(crate) garbage: u64,
    /// The garbage in other files, if more than [`LISTS_MAX`] lists were merged.
    pub(crate) merged_list: Option<DiscardList>,
}

/// A live record that is not copied yet.
struct Live {
    /// The start and the length of its key in the key buffer.
    key: (usize, usize),
    victim: usize,
    pointer: ValuePointer,
}

/// The progress in a victim.
struct Source {
    walk: RecordReader,
    /// The offsets of garbage, ascending.
    garbage: Vec<u64>,
    /// The old and new offsets of live records, in key order until all are copied.
    moves: Vec<Move>,
    /// The number of records that were read.
    read: u64,
    /// Bytes of the records that were copied.
    copied_bytes: u64,
}

struct GarbageCollection<'a, 'w> {
    context: &'a dyn JobContext,
    cancel: CancelCheck<'w>,
    sources: Vec<Source>,
    writer: GcOutputWriter,
    /// Counts the copied records.
    passed: Arc<PassedBytes>,
    residence: Residence,
    keys: Vec<u8>,
    live: Vec<Live>,
    merged_list: Option<DiscardListWriter>,
    /// Bytes that were copied since the last request to the rate limiter.
    unrequested: u64,
    held: Held,
}

/// Copies the live values of `victims` to a GC output. `lists` name all their garbage.
///
/// # Errors
/// `Corruption` if a file or a list is damaged, or if they do not agree (I1); those of I/O.
pub(crate) fn collect<'a>(
    context: &'a dyn JobContext,
    cancel: CancelCheck<'_>,
    victims: &[Victim],
    lists: &[Arc<DiscardList>],
) -> Result<(GcResult, PendingFiles<'a>)> {
    let number = FileNumber(context.allocate_id()?);
    let (vfs, directory) = (context.vfs(), context.directory());
    let mut sources = Vec::new();
    for victim in victims {
        sources.push(Source {
            walk: RecordReader::open(vfs, directory, &victim.file)?,
            garbage: Vec::new(),
            moves: Vec::new(),
            read: 0,
            copied_bytes: 0,
        });
    }
    let writer = GcOutputWriter::create(vfs, directory, number)?;
    let mut pending = PendingFiles::adopt(context, Vec::new());
    pending.add(FileName::Values(number));
    let passed = Arc::<PassedBytes>::default();
    let mut gc = GarbageCollection {
        context,
        cancel,
        sources,
        writer,
        residence: Residence::new(Arc::clone(&passed)),
        passed,
        keys: Vec::new(),
        live: Vec::new(),
        merged_list: None,
        unrequested: 0,
        held: Held::new(context.memory(), 0),
    };
    gc.read_discard_lists(victims, lists, &mut pending)?;
    gc.check_garbage(victims)?;
    for victim in 0..victims.len() {
        gc.walk(victim)?;
    }
    gc.copy_live()?;
    gc.check(victims)?;
    gc.write_tables(victims)?;
    let garbage = gc.sources.iter().map(|source| source.garbage.len() as u64);
    let garbage = garbage.sum();
    let read = gc.sources.iter().map(|source| source.walk.bytes_read());
    let listed = lists.iter().map(|list| list.length);
    let bytes_read = read.chain(listed).sum();
    let merged_list = gc.merged_list.map(DiscardListWriter::finish).transpose()?;
    let (gc_output, tables) = gc.writer.finish()?;
    context.sync_directory()?;
    let gc_result = GcResult {
        gc_output,
        tables,
        bytes_read,
        garbage,
        merged_list,
    };
    Ok((gc_result, pending))
}

impl GarbageCollection<'_, '_> {
    /// Reads the garbage of each victim from `lists`, as offsets in the victim.
    fn read_discard_lists(
        &mut self,
        victims: &[Victim],
        lists: &[Arc<DiscardList>],
        pending: &mut PendingFiles<'_>,
    ) -> Result<()> {
        let merges_lists = lists.len() > LISTS_MAX;
        let own = |index: usize| (victims[index].file.number, index);
        let indexes: BTreeMap<FileNumber, usize> = (0..victims.len()).map(own).collect();
        // By an origin of a victim: the victim, and the offsets in the origin.
        let mut by_origin: BTreeMap<FileNumber, (usize, Vec<u64>)> = BTreeMap::new();
        for (index, victim) in victims.iter().enumerate() {
            let origins = victim.tables.iter().map(|table| table.origin);
            by_origin.extend(origins.map(|origin| (origin, (index, Vec::new()))));
        }
        let mut listed = 0_u64;
        for list in lists {
            (self.cancel)()?;
            let (vfs, directory) = (self.context.vfs(), self.context.directory());
            read_discard_list(vfs, directory, list, |file, offset| {
                if let Some(&index) = indexes.get(&file) {
                    self.sources[index].garbage.push(offset);
                } else if let Some((_, offsets)) = by_origin.get_mut(&file) {
                    offsets.push(offset);
                } else if merges_lists {
                    let list = match &mut self.merged_list {
                        Some(list) => list,
                        None => self.merged_list.insert(pending.create_discard_list()?),
                    };
                    list.add(file, offset)?;
                }
                listed += 1;
                if listed.is_multiple_of(LISTED_PER_CHECK) {
                    (self.cancel)()?;
                }
                Ok(())
            })?;
        }
        let origins = by_origin.values().map(|(_, offsets)| offsets.capacity());
        let origins_bytes = origins.sum::<usize>() * size_of::<u64>();
        self.count_memory(origins_bytes);
        for table in victims.iter().flat_map(|victim| &victim.tables) {
            (self.cancel)()?;
            let Some((index, offsets)) = by_origin.get_mut(&table.origin) else {
                continue;
            };
            if offsets.is_empty() {
                continue;
            }
            sort_distinct(table.origin, offsets)?;
            let source = &mut self.sources[*index];
            let garbage = &mut source.garbage;
            let mut left = offsets.iter().peekable();
            // Both are ascending.
            source.walk.each_move(table, |(old, new)| {
                if left.next_if_eq(&&old).is_some() {
                    garbage.push(new);
                }
            })?;
            if let Some(offset) = left.next() {
                let what = "a garbage value is not in the relocation table of its value log";
                let name = FileName::Values(table.origin).to_string();
                return Err(Error::corruption(&name, *offset, what));
            }
        }
        for (source, victim) in self.sources.iter_mut().zip(victims) {
            sort_distinct(victim.file.number, &mut source.garbage)?;
        }
        self.count_memory(origins_bytes);
        Ok(())
    }

    /// Reads every record of a victim, and copies the live ones whenever the key buffer is full.
    fn walk(&mut self, victim: usize) -> Result<()> {
        let mut garbage = 0;
        let mut next_check = 0;
        loop {
            let source = &mut self.sources[victim];
            if source.walk.bytes_read() >= next_check {
                (self.cancel)()?;
                next_check = source.walk.bytes_read() + CHECK_BYTES;
            }
            let Some((key, pointer)) = source.walk.next()? else {
                break;
            };
            source.read += 1;
            if source.garbage.get(garbage) == Some(&pointer.offset) {
                garbage += 1;
                continue;
            }
            let start = self.keys.len();
            self.keys.extend_from_slice(key);
            self.live.push(Live {
                key: (start, key.len()),
                victim,
                pointer,
            });
            if self.keys.len() + self.live.len() * size_of::<Live>() >= KEYS_BYTES_MAX {
                self.copy_live()?;
            }
        }
        let source = &self.sources[victim];
        if let Some(offset) = source.garbage.get(garbage) {
            let what = "no record begins at the offset of a garbage value";
            return Err(Error::corruption("a value log", *offset, what));
        }
        Ok(())
    }

    /// Copies the live records in key order.
    fn copy_live(&mut self) -> Result<()> {
        self.count_memory(0);
        let keys = std::mem::take(&mut self.keys);
        let mut live = std::mem::take(&mut self.live);
        let key = |record: &Live| &keys[record.key.0..record.key.0 + record.key.1];
        live.sort_by(|left, right| {
            let place = |record: &Live| (record.victim, record.pointer.offset);
            key(left)
                .cmp(key(right))
                .then(place(left).cmp(&place(right)))
        });
        for record in &live {
            let source = &mut self.sources[record.victim];
            let footprint = source.walk.footprint();
            let (context, cancel, unrequested) = (self.context, self.cancel, &mut self.unrequested);
            let mut pieces = 0;
            let on_piece = |written: u64| {
                *unrequested += written;
                pieces += 1;
                if *unrequested >= REQUEST_BYTES || pieces == PIECES_PER_CHECK {
                    context.request_io(IoPriority::Compaction, *unrequested, cancel)?;
                    context.leave_space(IoPriority::Compaction)?;
                    (*unrequested, pieces) = (0, 0);
                }
                Ok(())
            };
            let offset = self
                .writer
                .copy(footprint, key(record), &record.pointer, on_piece)?;
            let ValuePointer {
                offset: from,
                record_bytes: length,
                ..
            } = record.pointer;
            self.passed
                .add(length, footprint.resident_bytes(from..from + length));
            if self.writer.has_unjudged_piece() {
                self.writer.judge(self.residence.stays());
            }
            source.moves.push((record.pointer.offset, offset));
            source.copied_bytes += length;
        }
        for source in &mut self.sources {
            source.walk.footprint().pass_all();
        }
        (self.keys, self.live) = (keys, live);
        self.keys.clear();
        self.live.clear();
        Ok(())
    }

    fn request_io(&mut self) -> Result<()> {
        self.context
            .request_io(IoPriority::Compaction, self.unrequested, self.cancel)?;
        self.unrequested = 0;
        Ok(())
    }

    /// Checks that discard lists leave as many records as tables refer to (I1), before any is copied.
    fn check_garbage(&self, victims: &[Victim]) -> Result<()> {
        for (source, victim) in self.sources.iter().zip(victims) {
            let garbage = source.garbage.len() as u64;
            let left = victim.file.entries.saturating_sub(garbage);
            if left != victim.live.entries {
                return Err(disagreement(victim, left, None));
            }
        }
        Ok(())
    }

    /// Checks the rest of I1.
    fn check(&self, victims: &[Victim]) -> Result<()> {
        for (source, victim) in self.sources.iter().zip(victims) {
            let copied = source.moves.len() as u64;
            let garbage = source.garbage.len() as u64;
            let file = victim.file;
            if source.read != file.entries || copied + garbage != file.entries {
                let name = FileName::Values(file.number).to_string();
                let what = format!(
                    "{} of {} records were read, {copied} are live and {garbage} are garbage: the output \
                     of the garbage collection is removed",
                    source.read, file.entries
                );
                return Err(Error::corruption(&name, file.length, what));
            }
            if source.copied_bytes != victim.live.bytes {
                return Err(disagreement(victim, copied, Some(source.copied_bytes)));
            }
        }
        Ok(())
    }

    /// Writes the relocation tables of the victims and of their origins.
    fn write_tables(&mut self, victims: &[Victim]) -> Result<()> {
        self.request_io()?;
        for (index, victim) in victims.iter().enumerate() {
            let mut moves = std::mem::take(&mut self.sources[index].moves);
            moves.sort_unstable();
            self.add_table(victim.file.number, victim.file.length, &moves)?;
            for table in &victim.tables {
                (self.cancel)()?;
                // The tables of origins compose, so that each pointer resolves in one step.
                let mut composed = Vec::new();
                self.sources[index]
                    .walk
                    .each_move(table, |(old, between)| {
                        let position = moves.binary_search_by_key(&between, |(from, _)| *from);
                        if let Ok(position) = position {
                            composed.push((old, moves[position].1));
                        }
                    })?;
                let held = moves.capacity() + composed.capacity();
                self.count_memory(held * size_of::<Move>());
                self.add_table(table.origin, table.origin_bytes, &composed)?;
            }
        }
        Ok(())
    }

    fn add_table(&mut self, origin: FileNumber, origin_bytes: u64, moves: &[Move]) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        self.writer.add_table(origin, origin_bytes, moves)
    }

    /// Counts the memory of all buffers, and `more` bytes.
    fn count_memory(&mut self, more: usize) {
        let of = |source: &Source| {
            let garbage = source.garbage.capacity() * size_of::<u64>();
            garbage + source.moves.capacity() * size_of::<Move>() + source.walk.memory_bytes()
        };
        let sources: usize = self.sources.iter().map(of).sum();
        let live = self.keys.capacity() + self.live.capacity() * size_of::<Live>();
        let merged_list = self
            .merged_list
            .as_ref()
            .map(DiscardListWriter::memory_bytes);
        let written = self.writer.memory_bytes() + merged_list.unwrap_or_default();
        self.held.grow_to((sources + live + more) as u64 + written);
    }
}

/// The error of a victim of whose records discard lists leave `left`, with so many bytes if they are known.
fn disagreement(victim: &Victim, left: u64, bytes: Option<u64>) -> Error {
    let Referred {
        entries,
        bytes: referred,
    } = victim.live;
    let of_bytes = bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
    let what = format!(
        "discard lists leave {left} live records{of_bytes}, and tables refer to {entries} of {referred} bytes"
    );
    let name = FileName::Values(victim.file.number).to_string();
    Error::corruption(&name, victim.file.length, what)
}

/// Sorts the garbage offsets of `file`.
///
/// # Errors
/// `Corruption` if an offset occurs twice.
fn sort_distinct(file: FileNumber, offsets: &mut [u64]) -> Result<()> {
    offsets.sort_unstable();
    let pair = offsets.windows(2).find(|pair| pair[0] == pair[1]);
    pair.map_or(Ok(()), |pair| {
        let name = FileName::Values(file).to_string();
        let what = "discard lists name a value twice";
        Err(Error::corruption(&name, pair[0], what))
    })
}
