//! Identifiers. One allocator, which the manifest persists, assigns file numbers and segment ids. No number is used
//! twice, not even by a failed attempt. Keyspaces have numbers of their own.

use std::fmt;

/// The name of the keyspace of prepared transactions, which callers can neither see, open nor change.
pub(crate) const PREPARED_KEYSPACE: &str = "windrow.prepared";

/// Names a file of the database: a log, a manifest, a table, a value file or a discard list. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FileNumber(pub u64);

/// Names one segment of a table file. Never reused, not even by a failed append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SegmentId(pub u64);

/// Names a keyspace. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyspaceId(pub u32);

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for KeyspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
