//! What one caller commits: a single entry or a batch, as bytes for the log and as entries for the
//! memtables.
//!
//! Concurrency: borrowed by the committing thread.

use std::sync::Arc;

use super::keyspace::KeyspaceCore;
use crate::base::{Error, Kind, Result, SequenceNumber, Trailer};
use crate::log::batch::{self, BATCH_HEADER_BYTES, BatchReader};

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
    /// A batch: the payload of a log record, and every keyspace it names.
    Batch {
        payload: &'a [u8],
        count: u32,
        keyspaces: &'a [Arc<KeyspaceCore>],
    },
}

/// What an insertion into memtables has come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inserted {
    /// The bytes of keys and values.
    pub(crate) user_bytes: u64,
    /// Whether a memtable is full now.
    pub(crate) is_full: bool,
}

impl Inserted {
    #[inline]
    fn add(&mut self, keyspace: &KeyspaceCore, key: &[u8], trailer: Trailer, value: &[u8]) {
        self.is_full |= keyspace.insert(key, trailer, value);
        self.user_bytes += (key.len() + value.len()) as u64;
    }
}

impl Write<'_> {
    /// How many entries there are.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::One { .. } => 1,
            Self::Batch { count, .. } => *count,
        }
    }

    /// Whether no entry adds data.
    pub(crate) fn only_removes(&self) -> bool {
        match self {
            Self::One { kind, .. } => *kind == Kind::Tombstone,
            Self::Batch { payload, .. } => {
                let Ok(mut entries) = BatchReader::new(payload) else {
                    return false;
                };
                loop {
                    match entries.next() {
                        Ok(Some(entry)) if entry.kind == Kind::Tombstone => {}
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

    /// A bound on the bytes of the encoded entries.
    #[inline]
    pub(crate) fn encoded_bytes_max(&self) -> usize {
        match self {
            Self::One { key, value, .. } => 16 + key.len() + value.len(),
            Self::Batch { payload, .. } => payload.len(),
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
            Self::Batch { payload, .. } => buffer.extend_from_slice(&payload[BATCH_HEADER_BYTES..]),
        }
    }

    /// Puts the entries into their memtables, the first under sequence number `base`.
    ///
    /// The memtables do not rotate meanwhile: only a leader rotates, and a leader waits for every
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
                payload, keyspaces, ..
            } => insert_batch(payload, keyspaces, base),
        }
    }
}

fn insert_batch(
    payload: &[u8],
    keyspaces: &[Arc<KeyspaceCore>],
    base: SequenceNumber,
) -> Result<Inserted> {
    let undecodable = |_| Error::invalid_argument("a batch was damaged in memory");
    let mut reader = BatchReader::new(payload).map_err(undecodable)?;
    let mut inserted = Inserted::default();
    let mut sequence = base;
    while let Some(entry) = reader.next().map_err(undecodable)? {
        let keyspace = keyspaces
            .iter()
            .find(|keyspace| keyspace.id() == entry.keyspace);
        let keyspace =
            keyspace.ok_or_else(|| Error::invalid_argument("a batch names no keyspace"))?;
        let trailer = Trailer::new(sequence, entry.kind);
        inserted.add(keyspace, entry.key, trailer, entry.value);
        sequence += 1;
    }
    Ok(inserted)
}
