//! What a reader of a keyspace holds: its memtables and a version of its tables.
//!
//! Immutable; replaced as a whole when a memtable rotates or a job installs its result.

use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::base::sync::Shared;
use crate::manifest::Version;
use crate::memtable::Memtable;
use crate::value::ValueFileMeta;

/// The sources of one keyspace at one moment, newest first.
#[derive(Debug, Clone)]
pub(crate) struct ReadState {
    /// The memtable that takes writes.
    pub(crate) active: Arc<Memtable>,
    /// Full memtables that wait for their flush, newest first.
    pub(crate) frozen: Vec<FrozenMemtable>,
    /// The tables.
    pub(crate) version: Shared<Version>,
}

/// A full memtable that waits for its flush.
#[derive(Debug, Clone)]
pub(crate) struct FrozenMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// Every entry of the keyspace up to this sequence number is in it or older.
    pub(crate) through: SequenceNumber,
    /// The value log that was written when it was full, as far as its entries point into it.
    pub(crate) value_log: Option<ValueFileMeta>,
}

impl ReadState {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|frozen| &frozen.memtable))
    }
}
