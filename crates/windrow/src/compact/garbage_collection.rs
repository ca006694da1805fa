//! The job that collects value logs: what is live in them goes to a successor, in the order of its keys.
//!
//! What is dead is known from lists that flushes and merges have written, so no key is looked up, and no
//! entry is changed: tables of the successor lead the pointers on. Therefore nothing that is written
//! meanwhile can be lost or undone by it (design: better than PX-M9, which looks every key up and writes
//! live values anew).
//!
//! Invariants:
//! - I1: Records in = records copied + records dead, for each file; and records in is what the manifest
//!   says of it. Each dead one is met. Otherwise the job fails, in release builds too.
//! - I2: Memory is bounded by [`KEYS_BYTES_MAX`] for keys, and by the number of records and of entries of
//!   relocation tables for the rest, which the policy bounds: at most three offsets for each. All of it
//!   is counted.
//! - I3: The successor is complete and durable, and its name too, before it is returned.
//!
//! Concurrency: owned by one thread; the files are held by whoever asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::output::{Created, IoClass, JobContext, Wanted, open_discard_list};
use crate::base::{Error, FileNumber, Held, Result};
use crate::manifest::names::FileName;
use crate::value::{
    DiscardList, DiscardListWriter, GcOutputWriter, Move, RecordWalk, RelocationTable,
    ValueFileMeta, ValuePointer, read_discard_list,
};

/// The most bytes of keys that are sorted at a time: beyond it the successor has several stretches, each
/// in the order of its keys.
const KEYS_BYTES_MAX: usize = 16 << 20;

/// What more lists than this say of other files is gathered in one list.
pub(crate) const LISTS_MAX: usize = 32;

/// Bytes that are copied between two looks at the budget for I/O.
const RATE_LIMITED_BYTES: u64 = 256 << 10;

/// Bytes that are read between two looks at whether the job is still wanted.
const LOOK_BYTES: u64 = 1 << 20;

/// Pieces of a long value that are read between two such looks.
const PIECES_PER_LOOK: u64 = 4;

/// Dead values that lists name between two such looks.
const NAMED_PER_LOOK: u64 = 64 << 10;

/// A value log to be collected.
#[derive(Debug, Clone)]
pub(crate) struct Victim {
    pub(crate) file: ValueFileMeta,
    /// The tables at its end, by which it is the successor of others.
    pub(crate) tables: Vec<RelocationTable>,
}

/// What a collection has written, all of it durable.
#[derive(Debug)]
pub(crate) struct GcResult {
    pub(crate) gc_output: ValueFileMeta,
    /// One for each origin that has live values, the victims among them.
    pub(crate) tables: Vec<RelocationTable>,
    pub(crate) bytes_read: u64,
    /// Records that were left behind.
    pub(crate) garbage: u64,
    /// What the lists say of other files, where they were so many that it was gathered in one.
    pub(crate) merged_list: Option<DiscardList>,
}

/// A live record that waits to be copied.
struct Live {
    /// Where its key is among the keys, and how long.
    key: (usize, usize),
    victim: usize,
    pointer: ValuePointer,
}

/// A victim under way.
struct Source {
    walk: RecordWalk,
    /// Dead offsets, ascending.
    garbage: Vec<u64>,
    /// Where live records have gone, in the order of their keys until all are known.
    moves: Vec<Move>,
    /// How many records were met.
    met: u64,
}

struct Collection<'a, 'w> {
    context: &'a dyn JobContext,
    wanted: Wanted<'w>,
    sources: Vec<Source>,
    writer: GcOutputWriter,
    keys: Vec<u8>,
    live: Vec<Live>,
    merged_list: Option<DiscardListWriter>,
    /// Bytes that were copied since the job was paced.
    unpaced: u64,
    held: Held,
}

/// Copies what is live in `victims` to a successor; `lists` speak of all that is dead in them. What comes
/// with the result removes the new files unless the manifest comes to name them.
///
/// # Errors
/// `Corruption` where a file or a list is damaged, or they do not agree (I1); those of I/O.
pub(crate) fn collect<'a>(
    context: &'a dyn JobContext,
    wanted: Wanted<'_>,
    victims: &[Victim],
    lists: &[Arc<DiscardList>],
) -> Result<(GcResult, Created<'a>)> {
    let number = FileNumber(context.allocate_id()?);
    let (vfs, directory) = (context.vfs(), context.directory());
    let mut sources = Vec::new();
    for victim in victims {
        sources.push(Source {
            walk: RecordWalk::open(vfs, directory, &victim.file)?,
            garbage: Vec::new(),
            moves: Vec::new(),
            met: 0,
        });
    }
    let writer = GcOutputWriter::create(vfs, directory, number)?;
    let mut created = Created::adopt(context, Vec::new());
    created.note(FileName::Values(number));
    let mut gc = Collection {
        context,
        wanted,
        sources,
        writer,
        keys: Vec::new(),
        live: Vec::new(),
        merged_list: None,
        unpaced: 0,
        held: Held::new(context.memory(), 0),
    };
    gc.learn_discarded(victims, lists, &mut created)?;
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
    Ok((gc_result, created))
}

impl Collection<'_, '_> {
    /// Learns from `lists` what is dead in each victim, by its own offsets.
    fn learn_discarded(
        &mut self,
        victims: &[Victim],
        lists: &[Arc<DiscardList>],
        created: &mut Created<'_>,
    ) -> Result<()> {
        let merges_lists = lists.len() > LISTS_MAX;
        let own = |index: usize| (victims[index].file.number, index);
        let of: BTreeMap<FileNumber, usize> = (0..victims.len()).map(own).collect();
        // By an origin of a victim: the victim, and the offsets there.
        let mut before: BTreeMap<FileNumber, (usize, Vec<u64>)> = BTreeMap::new();
        for (index, victim) in victims.iter().enumerate() {
            let origins = victim.tables.iter().map(|table| table.origin);
            before.extend(origins.map(|origin| (origin, (index, Vec::new()))));
        }
        let mut named = 0_u64;
        for list in lists {
            (self.wanted)()?;
            let (vfs, directory) = (self.context.vfs(), self.context.directory());
            read_discard_list(vfs, directory, list, |file, offset| {
                if let Some(&index) = of.get(&file) {
                    self.sources[index].garbage.push(offset);
                } else if let Some((_, offsets)) = before.get_mut(&file) {
                    offsets.push(offset);
                } else if merges_lists {
                    let list = match &mut self.merged_list {
                        Some(list) => list,
                        None => self.merged_list.insert(open_discard_list(created)?),
                    };
                    list.add(file, offset)?;
                }
                named += 1;
                if named.is_multiple_of(NAMED_PER_LOOK) {
                    (self.wanted)()?;
                }
                Ok(())
            })?;
        }
        let origins = before.values().map(|(_, offsets)| offsets.capacity());
        let origins_bytes = origins.sum::<usize>() * size_of::<u64>();
        self.count_memory(origins_bytes);
        for table in victims.iter().flat_map(|victim| &victim.tables) {
            (self.wanted)()?;
            let Some((index, offsets)) = before.get_mut(&table.origin) else {
                continue;
            };
            if offsets.is_empty() {
                continue;
            }
            sort_distinct(table.origin, offsets)?;
            let source = &mut self.sources[*index];
            let garbage = &mut source.garbage;
            let mut left = offsets.iter().peekable();
            // Both ascend.
            source.walk.each_move(table, |(old, new)| {
                if left.next_if_eq(&&old).is_some() {
                    garbage.push(new);
                }
            })?;
            if let Some(offset) = left.next() {
                let what = "a dead value is not in the relocation table of its value log";
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

    /// Meets every record of a victim and copies the live ones, as soon as there are many.
    fn walk(&mut self, victim: usize) -> Result<()> {
        let mut garbage = 0;
        let mut look_at = 0;
        loop {
            let source = &mut self.sources[victim];
            if source.walk.bytes_read() >= look_at {
                (self.wanted)()?;
                look_at = source.walk.bytes_read() + LOOK_BYTES;
            }
            let Some((key, pointer)) = source.walk.next()? else {
                break;
            };
            source.met += 1;
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
            let what = "no record begins where a dead one is said to be";
            return Err(Error::corruption("a value log", *offset, what));
        }
        Ok(())
    }

    /// Copies the records that wait, in the order of their keys.
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
            let file = &**source.walk.file();
            let (context, wanted, unpaced) = (self.context, self.wanted, &mut self.unpaced);
            let mut unseen = 0;
            let look = |written: u64| {
                *unpaced += written;
                unseen += 1;
                if *unpaced >= RATE_LIMITED_BYTES || unseen == PIECES_PER_LOOK {
                    context.rate_limiter(IoClass::Merge, *unpaced, wanted)?;
                    (*unpaced, unseen) = (0, 0);
                }
                Ok(())
            };
            let offset = self.writer.copy(file, key(record), &record.pointer, look)?;
            source.moves.push((record.pointer.offset, offset));
        }
        (self.keys, self.live) = (keys, live);
        self.keys.clear();
        self.live.clear();
        Ok(())
    }

    fn rate_limiter(&mut self) -> Result<()> {
        self.context
            .rate_limiter(IoClass::Merge, self.unpaced, self.wanted)?;
        self.unpaced = 0;
        Ok(())
    }

    /// I1.
    fn check(&self, victims: &[Victim]) -> Result<()> {
        for (source, victim) in self.sources.iter().zip(victims) {
            let copied = source.moves.len() as u64;
            let garbage = source.garbage.len() as u64;
            let file = victim.file;
            if source.met != file.entries || copied + garbage != file.entries {
                let name = FileName::Values(file.number).to_string();
                let what = format!(
                    "{} of {} records were met, {copied} are live and {garbage} dead: the collection is \
                     discarded",
                    source.met, file.entries
                );
                return Err(Error::corruption(&name, file.length, what));
            }
        }
        Ok(())
    }

    /// Leads on pointers into the victims, and into what these were successors of.
    fn write_tables(&mut self, victims: &[Victim]) -> Result<()> {
        self.rate_limiter()?;
        for (index, victim) in victims.iter().enumerate() {
            let mut moves = std::mem::take(&mut self.sources[index].moves);
            moves.sort_unstable();
            self.add_table(victim.file.number, victim.file.length, &moves)?;
            for table in &victim.tables {
                (self.wanted)()?;
                // Two steps become one.
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

    /// Puts what is held on the account, and `more` than that.
    fn count_memory(&mut self, more: usize) {
        let of = |source: &Source| {
            let garbage = source.garbage.capacity() * size_of::<u64>();
            garbage + source.moves.capacity() * size_of::<Move>() + source.walk.memory_bytes()
        };
        let sources: usize = self.sources.iter().map(of).sum();
        let waiting = self.keys.capacity() + self.live.capacity() * size_of::<Live>();
        let merged_list = self
            .merged_list
            .as_ref()
            .map(DiscardListWriter::memory_bytes);
        let written = self.writer.memory_bytes() + merged_list.unwrap_or_default();
        self.held
            .grow_to((sources + waiting + more) as u64 + written);
    }
}

/// Sorts what is dead in `file`.
///
/// # Errors
/// `Corruption` where a value is named twice.
fn sort_distinct(file: FileNumber, offsets: &mut [u64]) -> Result<()> {
    offsets.sort_unstable();
    let pair = offsets.windows(2).find(|pair| pair[0] == pair[1]);
    pair.map_or(Ok(()), |pair| {
        let name = FileName::Values(file).to_string();
        let what = "a value is said to be dead twice";
        Err(Error::corruption(&name, pair[0], what))
    })
}
