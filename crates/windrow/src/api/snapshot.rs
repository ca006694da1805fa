//! Snapshots.
//!
//! Concurrency: a snapshot never changes, and any thread may use it.

use std::fmt;
use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::engine::Handle;

/// The state of all keyspaces at a sequence number. It stays readable until every clone of the snapshot is
/// dropped. A snapshot pins no files: compactions keep the versions that it can read.
#[derive(Clone)]
pub struct Snapshot(Arc<Held>);

struct Held {
    handle: Arc<Handle>,
    sequence: SequenceNumber,
}

impl Snapshot {
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        let sequence = handle.engine().acquire_snapshot();
        Self(Arc::new(Held { handle, sequence }))
    }

    /// Whether it is a snapshot of the database that `handle` has open.
    pub(super) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.0.handle, handle)
    }

    /// The sequence number of the newest write in the snapshot.
    pub fn sequence(&self) -> SequenceNumber {
        self.0.sequence
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.handle.engine().release_snapshot(self.sequence);
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.sequence()).finish()
    }
}
