//! The operands of a key for a point read: the search for them and their base, and what becomes of the result.
//!
//! The result of a long search is kept for later reads: in the memtable, in place of the newest operand, or by a
//! [`FoldKeeper`] if that operand is in a table.
//!
//! Concurrency: takes no lock; the caller holds the state.

use super::state::ReadState;
use super::unfolded::Unfolded;
use super::value_reader::ValueReader;
use crate::base::sync::Shared;
use crate::base::{Cursor as _, KeyspaceId, Kind, Result, SequenceNumber, Trailer};
use crate::manifest::FileHandle;
use crate::memtable::{Memtable, MemtableCursor};
use crate::merge_operator::KeyspaceOperator;
use crate::table::{self, OpenTables, PointRead};
use std::fmt;

/// Operands and what is needed to fold them.
#[derive(Debug)]
pub(crate) struct FoundOperands<'a> {
    key: &'a [u8],
    unfolded: Unfolded,
    operator: &'a KeyspaceOperator,
    values: ValueReader<'a>,
    newest: Trailer,
    /// The memtable that holds the newest operand, if one does.
    memtable: Option<&'a Memtable>,
    /// The searches that have found an entry: one of each memtable with some, and one for each entry of a table.
    searches: usize,
    folds: Option<Folds<'a>>,
}

/// Who keeps what gets have folded.
pub(crate) trait FoldKeeper: Sync {
    /// `value` is that of `key` in `keyspace` from its operand `newest` on.
    fn keep(&self, keyspace: KeyspaceId, key: &[u8], newest: SequenceNumber, value: &[u8]);
}

/// Keeps what gets of one keyspace have folded of operands in tables.
#[derive(Clone, Copy)]
pub(crate) struct Folds<'a> {
    pub(crate) keeper: &'a dyn FoldKeeper,
    pub(crate) keyspace: KeyspaceId,
}

impl fmt::Debug for Folds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folds").field(&self.keyspace).finish()
    }
}

/// The result of a read is kept if it has folded more operands than this. So the reads of a key that is written often
/// stay short, however many operands a memtable has of it.
const OPERANDS_MAX: usize = 8;

/// The result is also kept if more searches than this were needed: a read of a plain value ends with the first one that
/// finds something.
const SEARCHES_MAX: usize = 1;

/// A result is kept if it has at most this many times the bytes of the folded operands. So results take little memory
/// and few writes, even if a long value gets short operands.
const RESULT_RATIO_MAX: usize = 4;

impl FoundOperands<'_> {
    /// Replaces the content of `value` by that of the key, and keeps it if the search was long.
    ///
    /// # Errors
    /// `Merge`, and those of reading a separated base.
    pub(super) fn fold_into(&self, value: &mut Vec<u8>) -> Result<()> {
        self.unfolded
            .fold_into(self.key, self.operator, self.values, value)?;
        let chain = self.unfolded.chain();
        let is_long = chain.len() > OPERANDS_MAX || self.searches > SEARCHES_MAX;
        if is_long && value.len() <= RESULT_RATIO_MAX * chain.bytes() {
            self.keep(value);
        }
        Ok(())
    }

    /// Keeps the result for later reads.
    fn keep(&self, value: &[u8]) {
        if let Some(memtable) = self.memtable {
            memtable.replace(self.key, self.newest.with_kind(Kind::Value), value);
        } else if let Some(Folds { keeper, keyspace }) = self.folds {
            keeper.keep(keyspace, self.key, self.newest.sequence(), value);
        }
    }
}

/// The search for the operands of a key and for their base.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) state: &'a ReadState,
    pub(super) tables: &'a OpenTables,
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    pub(super) folds: Option<Folds<'a>>,
}

impl<'a> Search<'a> {
    /// The operands from `operand` on, which was found in the memtable with `age` newer ones before it.
    #[cold]
    pub(super) fn operands_in_memtables(
        self,
        age: usize,
        (newest, operand): (Trailer, &[u8]),
        values: ValueReader<'a>,
        read: &mut PointRead,
    ) -> Result<FoundOperands<'a>> {
        let mut unfolded = Unfolded::new(true);
        // Not looked up again: another reader may have replaced it meanwhile, and then there would be no operand.
        unfolded.push(operand);
        let Some(older) = newest.sequence_before() else {
            return Ok(self.found(unfolded, values, newest, None, 0));
        };
        let mut memtables = self.state.memtables().skip(age).peekable();
        let holder = memtables.peek().map(|it| &***it);
        let mut is_open = true;
        let mut searches = 0;
        for memtable in memtables {
            // Below a range tombstone there is no base.
            let deleted = memtable.newest_range(self.key, older, |range| range.sequence);
            let mut cursor = MemtableCursor::new(memtable);
            cursor.seek(self.key, older)?;
            let mut has_some = searches == 0;
            while is_open && cursor.is_valid() && cursor.key() == self.key {
                if deleted.is_some_and(|deleted| cursor.trailer().sequence() < deleted) {
                    break;
                }
                has_some = true;
                is_open = unfolded.add_older(cursor.trailer(), cursor.value());
                cursor.next()?;
            }
            searches += usize::from(has_some);
            is_open &= deleted.is_none();
            if !is_open {
                break;
            }
        }
        if is_open {
            searches += self.search_levels(self.files(), older, &mut unfolded, read)?;
        }
        Ok(self.found(unfolded, values, newest, holder, searches))
    }

    /// The operands from `newest` on, the first of which `file` holds.
    #[cold]
    pub(super) fn operands_in_levels(
        self,
        file: &Shared<FileHandle>,
        newest: &table::Found,
        values: ValueReader<'a>,
        read: &mut PointRead,
    ) -> Result<FoundOperands<'a>> {
        let trailer = newest.trailer();
        let mut unfolded = Unfolded::new(true);
        unfolded.push(newest.value());
        let table = self.tables.get(file.slot(), &file.meta)?;
        let files = self.files().skip_while(|it| !Shared::ptr_eq(it, file));
        let is_done = !table.may_have_older(newest);
        let rest = files.skip(usize::from(is_done));
        let versions = match trailer.sequence_before() {
            Some(older) => self.search_levels(rest, older, &mut unfolded, read)?,
            None => 0,
        };
        Ok(self.found(unfolded, values, trailer, None, 1 + versions))
    }

    /// The files that may hold the key, in the order of the search.
    fn files(self) -> impl Iterator<Item = &'a Shared<FileHandle>> {
        let levels = self.state.version.levels().iter().enumerate();
        levels.flat_map(move |(index, level)| {
            let candidates = match index {
                0 => level.newest_first(),
                _ => level.find(self.key).map_or(&[][..], std::slice::from_ref),
            };
            let may_hold = move |file: &&Shared<FileHandle>| index > 0 || file.covers(self.key);
            candidates.iter().filter(may_hold)
        })
    }

    /// Adds the versions in `files` that are at most `sequence`, down to the base. Returns how many there are.
    fn search_levels(
        self,
        files: impl Iterator<Item = &'a Shared<FileHandle>>,
        mut sequence: SequenceNumber,
        unfolded: &mut Unfolded,
        read: &mut PointRead,
    ) -> Result<usize> {
        let mut versions = 0;
        for file in files {
            let table = self.tables.get(file.slot(), &file.meta)?;
            while let Some(hit) = table.get(self.key, self.hash, sequence, read)? {
                let trailer = hit.trailer();
                versions += 1;
                if !unfolded.add_older(trailer, hit.value()) {
                    return Ok(versions);
                }
                match trailer.sequence_before() {
                    Some(before) => sequence = before,
                    None => return Ok(versions),
                }
                if !table.may_have_older(&hit) {
                    break;
                }
            }
        }
        Ok(versions)
    }

    fn found(
        self,
        unfolded: Unfolded,
        values: ValueReader<'a>,
        newest: Trailer,
        memtable: Option<&'a Memtable>,
        searches: usize,
    ) -> FoundOperands<'a> {
        FoundOperands {
            key: self.key,
            unfolded,
            operator: &self.state.operator,
            values,
            newest,
            memtable,
            searches,
            folds: self.folds,
        }
    }
}
