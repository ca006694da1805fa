//! The writes of one caller: a single entry or a batch. They become bytes for the log and entries
//! for the memtables.
//!
//! Concurrency: the committing thread borrows it.

use std::sync::Arc;

use crate::base::limits::VALUE_BYTES_SEPARATED_MIN;
use crate::base::{Error, Kind, Result, SequenceNumber, Trailer};
use crate::codec::Compression;
use crate::engine::keyspace::KeyspaceCore;
use crate::log::batch::{self, BatchReader};
use crate::policy::{self, Class};
use crate::value::ValuePointer;

/// The writes of one commit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write<'a> {
    /// One entry.
    One {
        keyspace: &'a Arc<KeyspaceCore>,
        kind: Kind,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// A batch: its entries encoded as in a log record, and every keyspace that they name.
    Batch {
        entries: &'a [u8],
        count: u32,
        /// The bytes of key and value of the longest entry.
        longest: usize,
        keyspaces: &'a [Arc<KeyspaceCore>],
    },
}

/// The outcome of an insertion into memtables.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inserted {
    /// The bytes of keys and values.
    pub(crate) user_bytes: u64,
    pub(crate) operands: u32,
    pub(crate) range_deletes: u32,
    /// Whether a memtable has become full.
    pub(crate) is_full: bool,
}

impl Inserted {
    #[inline]
    fn add(&mut self, keyspace: &KeyspaceCore, key: &[u8], trailer: Trailer, value: &[u8]) {
        self.is_full |= keyspace.insert(key, trailer, value);
        self.user_bytes += (key.len() + value.len()) as u64;
        if trailer.is_operand() {
            self.operands += 1;
        } else if trailer.is_range_tombstone() {
            self.range_deletes += 1;
        }
    }
}

impl Write<'_> {
    /// The number of entries.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::One { .. } => 1,
            Self::Batch { count, .. } => *count,
        }
    }

    /// Whether any value may be large.
    #[inline]
    pub(crate) fn may_separate(&self) -> bool {
        let is_large = |keyspace: &KeyspaceCore, key: usize, value: usize| {
            value >= VALUE_BYTES_SEPARATED_MIN
                && policy::class(key, value, &keyspace.options()) == Class::Large
        };
        match self {
            Self::One {
                keyspace,
                key,
                value,
                ..
            } => is_large(keyspace, key.len(), value.len()),
            Self::Batch {
                longest, keyspaces, ..
            } => keyspaces.iter().any(|it| is_large(it, 0, *longest)),
        }
    }

    /// Whether any of the keyspaces is compressed.
    #[inline]
    pub(crate) fn is_compressed(&self) -> bool {
        let codec = |keyspace: &Arc<KeyspaceCore>| keyspace.options().compression;
        self.keyspaces()
            .iter()
            .map(codec)
            .any(|codec| codec != Compression::None)
    }

    /// Whether no entry adds data.
    pub(crate) fn only_removes(&self) -> bool {
        match self {
            Self::One { kind, .. } => removes(*kind),
            Self::Batch { entries, count, .. } => {
                let mut entries = BatchReader::entries(entries, 0, *count);
                loop {
                    match entries.next() {
                        Ok(Some(entry)) if removes(entry.kind) => {}
                        Ok(next) => return next.is_none(),
                        Err(_) => return false,
                    }
                }
            }
        }
    }

    /// The keyspaces that are written.
    #[inline]
    pub(crate) fn keyspaces(&self) -> &[Arc<KeyspaceCore>] {
        match self {
            Self::One { keyspace, .. } => std::slice::from_ref(keyspace),
            Self::Batch { keyspaces, .. } => keyspaces,
        }
    }

    /// An upper bound on the bytes of the encoded entries.
    #[inline]
    pub(crate) fn encoded_bytes_max(&self) -> usize {
        match self {
            Self::One { key, value, .. } => 16 + key.len() + value.len(),
            Self::Batch { entries, .. } => entries.len(),
        }
    }

    /// Appends the encoded entries, without a batch header.
    #[inline]
    pub(crate) fn encode_into(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::One {
                keyspace,
                kind,
                key,
                value,
            } => {
                batch::put_entry(buffer, keyspace.id(), *kind, key, value);
            }
            Self::Batch { entries, .. } => buffer.extend_from_slice(entries),
        }
    }

    /// Inserts the entries into their memtables; the first gets sequence number `base`.
    ///
    /// No memtable rotates meanwhile: only a leader rotates memtables, and a leader waits for every
    /// insertion of its group.
    #[inline]
    pub(crate) fn insert(&self, base: SequenceNumber) -> Result<Inserted> {
        match self {
            Self::One {
                keyspace,
                kind,
                key,
                value,
            } => {
                let mut inserted = Inserted::default();
                inserted.add(keyspace, key, Trailer::new(base, *kind), value);
                Ok(inserted)
            }
            Self::Batch {
                entries,
                count,
                keyspaces,
                ..
            } => {
                let entries = BatchReader::entries(entries, base, *count);
                insert_entries(entries, keyspaces)
            }
        }
    }

    /// The same as [`insert`](Self::insert), for entries as logged, with pointers instead of values.
    pub(crate) fn insert_logged(&self, logged: &[u8], base: SequenceNumber) -> Result<Inserted> {
        let entries = BatchReader::entries(logged, base, self.count());
        insert_entries(entries, self.keyspaces())
    }
}

/// Whether entries of this kind add no data.
fn removes(kind: Kind) -> bool {
    matches!(kind, Kind::Tombstone | Kind::RangeTombstone)
}

/// Inserts `entries` into the memtables of `keyspaces`, which holds all that they name.
pub(super) fn insert_entries(
    mut entries: BatchReader<'_>,
    keyspaces: &[Arc<KeyspaceCore>],
) -> Result<Inserted> {
    let damaged = || Error::invalid_argument("a batch was damaged in memory");
    let mut inserted = Inserted::default();
    while let Some(entry) = entries.next().map_err(|_| damaged())? {
        let keyspace = keyspaces
            .iter()
            .find(|keyspace| keyspace.id() == entry.keyspace);
        let Some(keyspace) = keyspace else {
            if batch::numbered(&entry).is_some() {
                continue; // It only takes a number.
            }
            return Err(damaged());
        };
        let trailer = Trailer::new(entry.sequence, entry.kind);
        inserted.add(keyspace, entry.key, trailer, entry.value);
        if let Some(pointer) = entry.log_pointer() {
            let decoded = ValuePointer::decode(pointer).map_err(|_| damaged())?;
            inserted.user_bytes += decoded.value_bytes - pointer.len() as u64;
        }
    }
    Ok(inserted)
}
