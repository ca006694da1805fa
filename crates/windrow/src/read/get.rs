//! Point reads over the sources of one keyspace.
//!
//! Memtables first, then the runs of level 0, newest first, then at most one file per level: the
//! first version that is met is the newest that the reader sees, since sources are ordered by age.
//!
//! Concurrency: takes no lock; the caller holds the state.

use super::state::ReadState;
use crate::base::{Result, SequenceNumber};
use crate::codec::checksum::key_hash;
use crate::table::{self, OpenTables, ReadCounters};

/// Where a value was found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// In a memtable.
    Memtable(&'a [u8]),
    /// In a table.
    Table(table::Found<'a>),
}

impl Found<'_> {
    /// The value.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Memtable(value) => value,
            Self::Table(found) => found.value(),
        }
    }
}

/// Which source answered: memtables, or a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Memtables,
    Level(usize),
}

/// Finds the newest version of `key` that is at most `sequence`, and hands its value to `found`
/// unless it is a tombstone.
///
/// # Errors
/// `Corruption` or `Io` from reading a table.
#[inline]
pub(crate) fn get<R>(
    state: &ReadState,
    tables: &OpenTables,
    key: &[u8],
    sequence: SequenceNumber,
    counters: &mut ReadCounters,
    found: impl FnOnce(Found<'_>) -> R,
) -> Result<Option<(Source, R)>> {
    for memtable in state.memtables() {
        if let Some((trailer, value)) = memtable.get(key, sequence) {
            let answer = (!trailer.is_tombstone())
                .then(|| (Source::Memtables, found(Found::Memtable(value))));
            return Ok(answer);
        }
    }
    let hash = key_hash(key);
    for (index, level) in state.version.levels().iter().enumerate() {
        let candidates = match index {
            0 => level.files(),
            _ => level.find(key).map_or(&[][..], std::slice::from_ref),
        };
        for file in candidates {
            if index == 0 && !file.covers(key) {
                continue;
            }
            let table = tables.get(file.slot(), &file.meta)?;
            if let Some(hit) = table.get(key, hash, sequence, counters)? {
                let is_value = !hit.trailer().is_tombstone();
                let answer = is_value.then(|| (Source::Level(index), found(Found::Table(hit))));
                return Ok(answer);
            }
        }
    }
    Ok(None)
}
