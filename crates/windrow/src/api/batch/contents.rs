//! The writes of a batch, one by one.

use std::sync::Arc;
use std::time::SystemTime;

use crate::base::expiry::{split_expiring, time_of};
use crate::base::{KeyspaceId, Kind};
use crate::log::batch::{BatchReader, Entry};

/// One write of a [`Batch`](super::Batch).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchEntry<'a> {
    /// The present name of the keyspace.
    pub keyspace: Arc<str>,
    /// The key.
    pub key: &'a [u8],
    /// What happens to it.
    pub write: BatchWrite<'a>,
}

/// What a write of a [`Batch`](super::Batch) does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchWrite<'a> {
    /// Sets this value.
    Insert(&'a [u8]),
    /// Sets this value, which expires at this time.
    InsertUntil(&'a [u8], SystemTime),
    /// Removes the key.
    Remove,
    /// Adds this operand.
    Merge(&'a [u8]),
    /// Removes the key and all keys behind it to before this one; all, if there is none.
    DeleteRange(Option<&'a [u8]>),
}

/// The writes of a [`Batch`](super::Batch), in the order in which they were added.
#[derive(Debug, Clone)]
pub struct BatchEntries<'a> {
    entries: BatchReader<'a>,
    names: Vec<(KeyspaceId, Arc<str>)>,
}

impl<'a> BatchEntries<'a> {
    /// The writes that `entries` has; `names` are those of its keyspaces.
    pub(in crate::api) fn new(
        entries: BatchReader<'a>,
        names: Vec<(KeyspaceId, Arc<str>)>,
    ) -> Self {
        Self { entries, names }
    }
}

impl<'a> Iterator for BatchEntries<'a> {
    type Item = BatchEntry<'a>;

    fn next(&mut self) -> Option<BatchEntry<'a>> {
        // The batch has encoded its entries itself.
        let entry = self.entries.next().ok().flatten()?;
        let (_, name) = self.names.iter().find(|(id, _)| *id == entry.keyspace)?;
        Some(BatchEntry {
            keyspace: Arc::clone(name),
            key: entry.key,
            write: write_of(&entry)?,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let remaining = self.entries.remaining() as usize;
        (remaining, Some(remaining))
    }
}

impl ExactSizeIterator for BatchEntries<'_> {}

/// The write of an entry; `None` for a pointer, which no batch has.
pub(super) fn write_of<'a>(entry: &Entry<'a>) -> Option<BatchWrite<'a>> {
    match entry.kind {
        Kind::Value => Some(BatchWrite::Insert(entry.value)),
        Kind::ExpiringValue => {
            let (expiry, value) = split_expiring(entry.value);
            Some(BatchWrite::InsertUntil(value, time_of(expiry)))
        }
        Kind::Tombstone => Some(BatchWrite::Remove),
        Kind::Operand => Some(BatchWrite::Merge(entry.value)),
        Kind::RangeTombstone => {
            let end = Some(entry.value).filter(|end| !end.is_empty());
            Some(BatchWrite::DeleteRange(end))
        }
        Kind::TransientPointer
        | Kind::ValueLogPointer
        | Kind::ExpiringTransientPointer
        | Kind::ExpiringValueLogPointer => None,
    }
}
