//! Whether a key, or any key of a range, has an entry that is newer than a sequence number, and which entry of a key is the
//! newest one.
//!
//! The first answer is exact, for tombstones and range tombstones too, if a snapshot at that sequence number or an older one is held: every
//! flush and compaction keeps the newest entry of a key unless each snapshot sees it. Only sources that may hold newer
//! entries are searched. This is the active memtable alone, unless a memtable was frozen since that sequence number.
//! The sequence number is not below that of the open.
//!
//! Concurrency: takes no lock; the caller holds the state.

use super::run::{Run, RunCursor};
use super::state::ReadState;
use super::visible::KeyRange;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::Shared;
use crate::base::{Cursor, Result, SequenceNumber, Trailer};
use crate::codec::checksum::key_hash;
use crate::manifest::FileHandle;
use crate::memtable::{Memtable, MemtableCursor};
use crate::table::{Bounds, OpenTables, PointRead, TableCursor};
use std::ops::Bound;
use std::sync::Arc;

/// Whether `key` has an entry above `since`.
///
/// # Errors
/// `Corruption` or `Io` from reading a table.
pub(crate) fn is_newer(
    state: &ReadState,
    tables: &OpenTables,
    key: &[u8],
    since: SequenceNumber,
) -> Result<bool> {
    let is_above = |trailer: Trailer| trailer.sequence() > since;
    if let Some(found) = newest_in_memtables(state, key, since, SEQUENCE_MAX) {
        return Ok(is_above(found));
    }
    if state.in_tables <= since {
        return Ok(false);
    }
    let found = newest_in_tables(state, tables, key, since, SEQUENCE_MAX)?;
    Ok(found.is_some_and(is_above))
}

/// The newest entry of `key` that is at most `sequence`. It may be a range tombstone that covers the key.
///
/// # Errors
/// `Corruption` or `Io` from reading a table.
pub(crate) fn newest(
    state: &ReadState,
    tables: &OpenTables,
    key: &[u8],
    sequence: SequenceNumber,
) -> Result<Option<Trailer>> {
    match newest_in_memtables(state, key, 0, sequence) {
        None => newest_in_tables(state, tables, key, 0, sequence),
        found => Ok(found),
    }
}

/// The newest entry of `key` that is at most `sequence`, in the memtables that may hold entries above `since`.
fn newest_in_memtables(
    state: &ReadState,
    key: &[u8],
    since: SequenceNumber,
    sequence: SequenceNumber,
) -> Option<Trailer> {
    let mut found = newer_memtables(state, since).filter_map(|it| it.get(key, sequence));
    found.next().map(|(trailer, _)| trailer)
}

/// The newest entry of `key` that is at most `sequence`, in the tables that may hold entries above `since`.
///
/// # Errors
/// `Corruption` or `Io` from reading a table.
fn newest_in_tables(
    state: &ReadState,
    tables: &OpenTables,
    key: &[u8],
    since: SequenceNumber,
    sequence: SequenceNumber,
) -> Result<Option<Trailer>> {
    for (index, level) in state.version.levels().iter().enumerate() {
        let candidates = match index {
            0 => level.newest_first(),
            _ => level.find(key).map_or(&[][..], std::slice::from_ref),
        };
        let is_candidate =
            |file: &&Shared<FileHandle>| file.meta.sequence_max() > since && file.covers(key);
        for file in candidates.iter().filter(is_candidate) {
            let table = tables.get(file.slot(), &file.meta)?;
            let mut read = PointRead::default();
            let found = table.get(key, key_hash(key), sequence, &mut read)?;
            if let Some(found) = found {
                return Ok(Some(found.trailer()));
            }
        }
    }
    Ok(None)
}

/// A key of `range` that has an entry above `since`.
///
/// # Errors
/// `Corruption` or `Io` from reading a table.
pub(crate) fn newer_in(
    state: &ReadState,
    tables: &Arc<OpenTables>,
    range: &KeyRange,
    since: SequenceNumber,
) -> Result<Option<Vec<u8>>> {
    // A range tombstone that covers any key of the range begins in it, or covers its first key.
    let first = range.first_key();
    for memtable in newer_memtables(state, since) {
        let covers = |first: &Vec<u8>| {
            let newest = memtable.newest_range(first, SEQUENCE_MAX, |range| range.sequence);
            newest.is_some_and(|newest| newest > since)
        };
        if let Some(first) = first.as_ref().filter(|first| covers(first)) {
            return Ok(Some(first.clone()));
        }
        let found = newer_of(&mut MemtableCursor::new(memtable), range, since)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    if state.in_tables <= since {
        return Ok(None);
    }
    let levels = state.version.levels().iter();
    for file in levels.flat_map(|level| level.files()) {
        let found = newer_in_file(file, tables, range, since)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// A key of `range` that has an entry above `since` in a table file. Reads nothing of a file that cannot have one.
///
/// # Errors
/// `Corruption` or `Io` from reading the table.
pub(crate) fn newer_in_file(
    file: &Shared<FileHandle>,
    tables: &Arc<OpenTables>,
    range: &KeyRange,
    since: SequenceNumber,
) -> Result<Option<Vec<u8>>> {
    let may_have_one =
        file.meta.sequence_max() > since && range.may_overlap(file.smallest(), file.largest());
    if !may_have_one {
        return Ok(None);
    }
    if file.meta.range_tombstones() > 0
        && let Some(first) = range.first_key()
    {
        let table = tables.get(file.slot(), &file.meta)?;
        let ranges = table.segments.iter().filter_map(|it| it.ranges.as_ref());
        let mut newest = ranges.filter_map(|ranges| ranges.newest(&first, SEQUENCE_MAX));
        if newest.any(|newest| newest.sequence > since) {
            return Ok(Some(first));
        }
    }
    let (start, end) = range.ends();
    let bounds = Bounds {
        start: start.map(Arc::from),
        end: end.map(Arc::from),
        scans: None,
    };
    for run in Run::of_files(std::slice::from_ref(file)) {
        let cursor: RunCursor<TableCursor> = RunCursor::new(Arc::clone(tables), run);
        let found = newer_of(&mut cursor.with(bounds.clone()), range, since)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The memtables that may hold entries above `since`, newest first.
fn newer_memtables(state: &ReadState, since: SequenceNumber) -> impl Iterator<Item = &Memtable> {
    let frozen = state.frozen.iter().filter(move |it| it.through > since);
    let frozen = frozen.map(|it| &*it.memtable);
    std::iter::once(&*state.active).chain(frozen)
}

/// The first key of `range` at which `cursor` has an entry above `since`.
fn newer_of(
    cursor: &mut impl Cursor,
    range: &KeyRange,
    since: SequenceNumber,
) -> Result<Option<Vec<u8>>> {
    match &range.lower {
        Bound::Unbounded => cursor.seek_to_first()?,
        Bound::Included(lower) => cursor.seek(lower, SEQUENCE_MAX)?,
        Bound::Excluded(lower) => cursor.seek(lower, 0)?,
    }
    while cursor.is_valid() {
        cursor.arrive()?;
        if !cursor.is_valid() || !range.is_below_upper(cursor.key()) {
            break;
        }
        if cursor.trailer().sequence() > since {
            return Ok(Some(cursor.key().to_vec()));
        }
        cursor.next()?;
    }
    Ok(None)
}
