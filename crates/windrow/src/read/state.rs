//! The sources of a keyspace that a reader holds: the memtables and a version.
//!
//! A state is immutable. A rotation, a flush or a compaction replaces it as a whole.

use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::base::sync::Shared;
use crate::manifest::Version;
use crate::memtable::Memtable;
use crate::merge_operator::KeyspaceOperator;
use crate::value::ValueFileMeta;

/// The sources of one keyspace, newest first.
#[derive(Debug, Clone)]
pub(crate) struct ReadState {
    /// The memtable that takes writes.
    pub(crate) active: Arc<Memtable>,
    /// The frozen memtables, newest first.
    pub(crate) frozen: Vec<FrozenMemtable>,
    pub(crate) version: Shared<Version>,
    /// No table has an entry above this sequence number, or above that of the open if it is higher.
    pub(crate) in_tables: SequenceNumber,
    /// The merge operator of the keyspace.
    pub(crate) operator: Arc<KeyspaceOperator>,
}

/// A full memtable that is not flushed yet.
#[derive(Debug, Clone)]
pub(crate) struct FrozenMemtable {
    pub(crate) memtable: Arc<Memtable>,
    /// This memtable and older sources hold all entries of the keyspace up to this sequence number.
    pub(crate) through: SequenceNumber,
    /// The value log that was open at the rotation, up to the last value that the entries point to.
    pub(crate) value_log: Option<ValueFileMeta>,
}

impl ReadState {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(self.frozen.iter().map(|frozen| &frozen.memtable))
    }

    /// Whether any entry may expire.
    pub(crate) fn may_expire(&self) -> bool {
        self.version.may_expire() || self.memtables().any(|memtable| memtable.may_expire())
    }
}
