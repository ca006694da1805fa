//! Snapshots.
//!
//! Concurrency: a snapshot never changes, and any thread may use it.

use std::fmt;
use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::engine::{Handle, HeldPoint, SnapshotPoint};

/// The state of all keyspaces at a sequence number and a moment: what expires later stays in it. It stays readable until every clone of the snapshot is
/// dropped. A snapshot pins no files: compactions keep the versions that it can read.
#[derive(Clone)]
pub struct Snapshot(Arc<Held>);

struct Held {
    point: HeldPoint,
    handle: Arc<Handle>,
}

impl Snapshot {
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        let point = handle.engine().hold_snapshot();
        Self(Arc::new(Held { point, handle }))
    }

    /// Whether it is a snapshot of the database that `handle` has open.
    pub(super) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.0.handle, handle)
    }

    /// The sequence number of the newest write in the snapshot.
    pub fn sequence(&self) -> SequenceNumber {
        self.at().sequence
    }

    /// What it reads.
    #[inline]
    pub(super) fn at(&self) -> SnapshotPoint {
        self.0.point.at()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.sequence()).finish()
    }
}
