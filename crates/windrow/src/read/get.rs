//! Point reads over the sources of one keyspace.
//!
//! A read searches the memtables, the runs of level 0 from the newest to the oldest, and at most one file
//! of each deeper level. The sources are ordered by age, so the first version that the reader may see is
//! the newest.
//!
//! Concurrency: takes no lock; the caller holds the state.

use super::state::ReadState;
use super::unfolded::Unfolded;
use super::value_reader::ValueReader;
use crate::base::expiry::split_expiring;
use crate::base::{Cursor as _, Kind, Moment, Result, SequenceNumber, Trailer};
use crate::block::PinnedValue;
use crate::codec::checksum::key_hash;
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge_operator::KeyspaceOperator;
use crate::table::{self, OpenTables, ReadCounters};
use crate::value::OpenValues;

/// A value and its place.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// In a memtable.
    Memtable(&'a [u8]),
    /// In a table.
    Table(table::Found),
    /// In a value file. The value is not read yet.
    Apart(Apart<'a>),
    /// In operands, which are not folded yet.
    Operands(Box<FoundOperands<'a>>),
}

/// Operands and what is needed to fold them.
#[derive(Debug)]
pub(crate) struct FoundOperands<'a> {
    key: &'a [u8],
    unfolded: Unfolded,
    operator: &'a KeyspaceOperator,
    values: ValueReader<'a>,
    /// The memtable that holds the newest operand, if one does, and the trailer of this operand.
    memtable: Option<(&'a Memtable, Trailer)>,
}

/// A memtable keeps the result of a read that has folded more operands than this. So the reads of a key that is written
/// often stay short, however many operands a memtable has of it.
const OPERANDS_MAX: usize = 8;

/// A memtable keeps a result of at most this many times the bytes of the folded operands. So results take little of its
/// memory, even if a long value gets short operands.
const RESULT_RATIO_MAX: usize = 4;

impl FoundOperands<'_> {
    fn fold_into(&self, value: &mut Vec<u8>) -> Result<()> {
        self.unfolded
            .fold_into(self.key, self.operator, self.values, value)?;
        let chain = self.unfolded.chain();
        if let Some((memtable, newest)) = self.memtable
            && chain.len() > OPERANDS_MAX
            && value.len() <= RESULT_RATIO_MAX * chain.bytes()
        {
            memtable.replace(self.key, newest.with_kind(Kind::Value), value);
        }
        Ok(())
    }
}

/// A separated value.
#[derive(Debug)]
pub(crate) struct Apart<'a> {
    key: &'a [u8],
    pointer: Pointer<'a>,
    values: ValueReader<'a>,
}

/// The source that holds a pointer.
#[derive(Debug)]
enum Pointer<'a> {
    Memtable(&'a [u8]),
    Table(table::Found),
}

impl<'a> Apart<'a> {
    fn found(key: &'a [u8], pointer: Pointer<'a>, values: ValueReader<'a>) -> Found<'a> {
        Found::Apart(Self {
            key,
            pointer,
            values,
        })
    }

    /// Asks the system, without a wait, for the value. Returns the pointer to it.
    pub(crate) fn announce(&self) -> &[u8] {
        self.values.announce(self.pointer());
        self.pointer()
    }

    fn pointer(&self) -> &[u8] {
        match &self.pointer {
            Pointer::Memtable(pointer) => pointer,
            Pointer::Table(found) => found.value(),
        }
    }
}

impl Found<'_> {
    /// Replaces the content of `value` by the value.
    ///
    /// # Errors
    /// Those of reading a separated value, and of folding operands.
    #[inline]
    pub(crate) fn copy_into(&self, value: &mut Vec<u8>) -> Result<()> {
        let bytes = match self {
            Self::Memtable(value) => value,
            Self::Table(found) => found.value(),
            Self::Apart(apart) => {
                return apart.values.read_into(apart.key, apart.pointer(), value);
            }
            Self::Operands(operands) => return operands.fold_into(value),
        };
        value.clear();
        value.extend_from_slice(bytes);
        Ok(())
    }

    /// The value, copied.
    ///
    /// # Errors
    /// As [`copy_into`](Self::copy_into).
    pub(crate) fn to_vec(&self) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        self.copy_into(&mut value)?;
        Ok(value)
    }
}

/// The found value, without a copy if it is in a file.
///
/// # Errors
/// As [`Found::copy_into`].
pub(crate) fn pin(found: Found<'_>) -> Result<PinnedValue> {
    match found {
        Found::Memtable(value) => Ok(PinnedValue::owned(value.to_vec())),
        Found::Table(found) => Ok(found.pin()),
        Found::Apart(apart) => apart.values.read(apart.key, apart.pointer()),
        Found::Operands(_) => found.to_vec().map(PinnedValue::owned),
    }
}

/// The source that answered: memtables, or a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Memtables,
    Level(usize),
}

/// Asks the system, without a wait, for the first block that a [`get`] of `key` will read. It asks for nothing if the
/// get must open a table before.
pub(crate) fn announce(state: &ReadState, key: &[u8], sequence: SequenceNumber) {
    let mut memtables = state.memtables();
    if memtables.any(|memtable| memtable.get(key, sequence).is_some()) {
        return;
    }
    let hash = key_hash(key);
    let mut files = state
        .version
        .levels()
        .iter()
        .enumerate()
        .flat_map(|(index, level)| {
            let candidates = match index {
                0 => level.newest_first(),
                _ => level.find(key).map_or(&[][..], std::slice::from_ref),
            };
            candidates
                .iter()
                .filter(move |file| index > 0 || file.covers(key))
        });
    files.any(|file| {
        let table = file.slot().get();
        table.is_none_or(|table| table.announce_get(key, hash))
    });
}

/// Where a point read searches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) state: &'a ReadState,
    pub(crate) tables: &'a OpenTables,
    pub(crate) values: &'a OpenValues,
}

/// Finds the newest version of `key` that is at most `sequence`. Passes its value to `found`, unless it is
/// a tombstone or has expired: `lives` says of an expiry whether it is still to come.
///
/// # Errors
/// `Corruption` or `Io` from reading a table; those of `found`.
#[inline]
pub(crate) fn get<R>(
    sources: Sources<'_>,
    key: &[u8],
    sequence: SequenceNumber,
    counters: &mut ReadCounters,
    lives: impl FnOnce(Moment) -> bool,
    found: impl FnOnce(Found<'_>) -> Result<R>,
) -> Result<Option<(Source, R)>> {
    let Sources { state, tables, .. } = sources;
    let values = ValueReader {
        files: state.version.values(),
        open: sources.values,
    };
    for (age, memtable) in state.memtables().enumerate() {
        if let Some((trailer, value)) = memtable.get(key, sequence) {
            let hit = if trailer.is_value() {
                Found::Memtable(value)
            } else if trailer.is_tombstone() {
                return Ok(None);
            } else if trailer.is_pointer() {
                Apart::found(key, Pointer::Memtable(value), values)
            } else if trailer.is_expiring() {
                let (expiry, value) = split_expiring(value);
                if !lives(expiry) {
                    return Ok(None);
                }
                match trailer.kind() {
                    Kind::ExpiringValue => Found::Memtable(value),
                    _ => Apart::found(key, Pointer::Memtable(value), values),
                }
            } else {
                let search = Search {
                    state,
                    tables,
                    key,
                    hash: key_hash(key),
                };
                search.operands_in_memtables(age, (trailer, value), values, counters)?
            };
            return Ok(Some((Source::Memtables, found(hit)?)));
        }
    }
    let hash = key_hash(key);
    for (index, level) in state.version.levels().iter().enumerate() {
        let candidates = match index {
            0 => level.newest_first(),
            _ => level.find(key).map_or(&[][..], std::slice::from_ref),
        };
        for file in candidates {
            if index == 0 && !file.covers(key) {
                continue;
            }
            let table = tables.get(file.slot(), &file.meta)?;
            if let Some(hit) = table.get(key, hash, sequence, counters)? {
                let trailer = hit.trailer();
                let hit = if trailer.is_value() {
                    Found::Table(hit)
                } else if trailer.is_tombstone() {
                    return Ok(None);
                } else if trailer.is_pointer() {
                    Apart::found(key, Pointer::Table(hit), values)
                } else if trailer.is_expiring() {
                    let (expiry, hit) = hit.split_expiry();
                    if !lives(expiry) {
                        return Ok(None);
                    }
                    match trailer.kind() {
                        Kind::ExpiringValue => Found::Table(hit),
                        _ => Apart::found(key, Pointer::Table(hit), values),
                    }
                } else {
                    let search = Search {
                        state,
                        tables,
                        key,
                        hash,
                    };
                    search.operands_in_levels(trailer, values, counters)?
                };
                return Ok(Some((Source::Level(index), found(hit)?)));
            }
        }
    }
    Ok(None)
}

/// The search for the operands of a key and for their base.
#[derive(Clone, Copy)]
struct Search<'a> {
    state: &'a ReadState,
    tables: &'a OpenTables,
    key: &'a [u8],
    hash: u64,
}

impl<'a> Search<'a> {
    /// The operands from `operand` on, which was found in the memtable with `age` newer ones before it.
    #[cold]
    fn operands_in_memtables(
        self,
        age: usize,
        (newest, operand): (Trailer, &[u8]),
        values: ValueReader<'a>,
        counters: &mut ReadCounters,
    ) -> Result<Found<'a>> {
        let mut unfolded = Unfolded::new(true);
        // Not looked up again: another reader may have replaced it meanwhile, and then there would be no operand.
        unfolded.push(operand);
        // Sequence numbers begin at 1.
        let older = newest.sequence() - 1;
        let mut memtables = self.state.memtables().skip(age).peekable();
        let holder = memtables.peek().map(|it| (&***it, newest));
        let mut is_open = true;
        for memtable in memtables {
            // Below a range tombstone there is no base.
            let deleted = memtable.newest_range(self.key, older, |range| range.sequence);
            let mut cursor = MemtableCursor::new(memtable);
            cursor.seek(self.key, older)?;
            while is_open && cursor.is_valid() && cursor.key() == self.key {
                if deleted.is_some_and(|deleted| cursor.trailer().sequence() < deleted) {
                    break;
                }
                is_open = unfolded.add_older(cursor.trailer(), cursor.value());
                cursor.next()?;
            }
            is_open &= deleted.is_none();
        }
        if is_open {
            self.search_levels(older, &mut unfolded, counters)?;
        }
        Ok(self.found(unfolded, values, holder))
    }

    /// The operands from `newest` on, which a table holds.
    #[cold]
    fn operands_in_levels(
        self,
        newest: Trailer,
        values: ValueReader<'a>,
        counters: &mut ReadCounters,
    ) -> Result<Found<'a>> {
        let mut unfolded = Unfolded::new(true);
        self.search_levels(newest.sequence(), &mut unfolded, counters)?;
        Ok(self.found(unfolded, values, None))
    }

    /// Adds the versions that are at most `sequence`, down to the base.
    fn search_levels(
        self,
        mut sequence: SequenceNumber,
        unfolded: &mut Unfolded,
        counters: &mut ReadCounters,
    ) -> Result<()> {
        for (index, level) in self.state.version.levels().iter().enumerate() {
            let candidates = match index {
                0 => level.newest_first(),
                _ => level.find(self.key).map_or(&[][..], std::slice::from_ref),
            };
            for file in candidates
                .iter()
                .filter(|it| index > 0 || it.covers(self.key))
            {
                let table = self.tables.get(file.slot(), &file.meta)?;
                while let Some(hit) = table.get(self.key, self.hash, sequence, counters)? {
                    let trailer = hit.trailer();
                    if !unfolded.add_older(trailer, hit.value()) {
                        return Ok(());
                    }
                    // Sequence numbers begin at 1.
                    sequence = trailer.sequence() - 1;
                }
            }
        }
        Ok(())
    }

    fn found(
        self,
        unfolded: Unfolded,
        values: ValueReader<'a>,
        memtable: Option<(&'a Memtable, Trailer)>,
    ) -> Found<'a> {
        Found::Operands(Box::new(FoundOperands {
            key: self.key,
            unfolded,
            operator: &self.state.operator,
            values,
            memtable,
        }))
    }
}
