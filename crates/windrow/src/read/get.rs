//! Point reads over the sources of one keyspace.
//!
//! A read searches the memtables, the runs of level 0 from the newest to the oldest, and at most one file
//! of each deeper level. The sources are ordered by age, so the first version that the reader may see is
//! the newest.
//!
//! Concurrency: takes no lock; the caller holds the state.

use super::operands::{Folds, FoundOperands, Search};
use super::state::ReadState;
use super::value_reader::ValueReader;
use crate::base::expiry::split_expiring;
use crate::base::sync::Shared;
use crate::base::{Kind, Moment, Result, SequenceNumber};
use crate::block::PinnedValue;
use crate::codec::checksum::key_hash;
use crate::manifest::{FileHandle, Level};
use crate::table::{self, OpenTables, PointRead};
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

    /// The value, if it is where the read has found it.
    #[inline]
    pub(crate) fn in_place(&self) -> Option<&[u8]> {
        match self {
            Self::Memtable(value) => Some(value),
            Self::Table(found) => Some(found.value()),
            Self::Apart(_) | Self::Operands(_) => None,
        }
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
            let candidates = candidates(index, level, key).iter();
            candidates.filter(move |file| index > 0 || file.covers(key))
        });
    files.any(|file| {
        let table = file.slot().get();
        table.is_none_or(|table| table.announce_get(key, hash))
    });
}

/// The files of the level of this index that may hold `key`, newest first. Those of level 0 are all: most of them may.
#[inline]
pub(super) fn candidates<'a>(
    index: usize,
    level: &'a Level,
    key: &[u8],
) -> &'a [Shared<FileHandle>] {
    match index {
        0 => level.newest_first(),
        _ => level.find(key).map_or(&[], std::slice::from_ref),
    }
}

/// Where a point read searches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) state: &'a ReadState,
    pub(crate) tables: &'a OpenTables,
    pub(crate) values: &'a OpenValues,
    /// For reads of the newest state.
    pub(crate) folds: Option<Folds<'a>>,
}

/// Finds the newest version of `key` that is at most `sequence`. Passes its value to `found`, unless it is
/// a tombstone or has expired: `lives` says of an expiry whether it is still to come. A `read` that must not wait passes no
/// operands to `found`, and [is far](PointRead::is_far) if it has no answer.
///
/// # Errors
/// `Corruption` or `Io` from reading a table; those of `found`.
#[inline]
pub(crate) fn get<R>(
    sources: Sources<'_>,
    key: &[u8],
    sequence: SequenceNumber,
    read: &mut PointRead,
    lives: impl FnOnce(Moment) -> bool,
    found: impl FnOnce(Found<'_>) -> Result<R>,
) -> Result<Option<(Source, R)>> {
    let Sources {
        state,
        tables,
        folds,
        ..
    } = sources;
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
            } else if read.ends_here() {
                // Its base may be anywhere.
                return Ok(None);
            } else {
                let search = Search {
                    state,
                    tables,
                    key,
                    hash: key_hash(key),
                    folds,
                };
                let found = search.operands_in_memtables(age, (trailer, value), values, read)?;
                Found::Operands(Box::new(found))
            };
            return Ok(Some((Source::Memtables, found(hit)?)));
        }
    }
    let hash = key_hash(key);
    for (index, level) in state.version.levels().iter().enumerate() {
        for file in candidates(index, level, key) {
            if index == 0 && !file.covers(key) {
                continue;
            }
            if read.must_not_wait() && file.slot().get().is_none() {
                read.end();
                return Ok(None);
            }
            let table = tables.get(file.slot(), &file.meta)?;
            let hit = table.get(key, hash, sequence, read)?;
            if read.is_far() {
                return Ok(None);
            }
            if let Some(hit) = hit {
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
                } else if read.ends_here() {
                    return Ok(None);
                } else {
                    let search = Search {
                        state,
                        tables,
                        key,
                        hash,
                        folds,
                    };
                    let found = search.operands_in_levels(file, &hit, values, read)?;
                    Found::Operands(Box::new(found))
                };
                return Ok(Some((Source::Level(index), found(hit)?)));
            }
        }
    }
    Ok(None)
}
