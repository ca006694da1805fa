//! A moment of the whole database, held for reading.

use std::fmt;
use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::engine::Handle;

/// A moment in the commit order that stays readable, over all keyspaces, until every clone is
/// dropped. It pins a sequence number only: merges keep the versions that it sees.
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

    /// Whether it was taken of the database that `handle` has open.
    pub(super) fn is_of(&self, handle: &Arc<Handle>) -> bool {
        Arc::ptr_eq(&self.0.handle, handle)
    }

    /// The sequence number of the newest write that it sees.
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
