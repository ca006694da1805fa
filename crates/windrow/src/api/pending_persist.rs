//! A persist that goes on while its caller writes on.
//!
//! Owns the outcome, and keeps the database open as a handle does. Concurrency: any thread.

use std::fmt;
use std::sync::Arc;

use crate::base::Result;
use crate::engine::{Handle, PendingPoint};

/// What [`Db::begin_persist`](super::Db::begin_persist) has begun. It goes on if this is dropped, while the
/// database is open: this counts as a handle of it.
pub struct PendingPersist {
    handle: Arc<Handle>,
    point: PendingPoint,
}

impl PendingPersist {
    pub(super) fn new(handle: Arc<Handle>, point: PendingPoint) -> Self {
        Self { handle, point }
    }

    /// Waits until the writes before [`Db::begin_persist`](super::Db::begin_persist) are durable. Further calls give the same
    /// outcome.
    ///
    /// # Errors
    /// That of a flush, or of the write of `CURRENT`: then the persist before counts. `Poisoned`; `Closed` if a close came first.
    /// `InvalidArgument` in a listener, a compaction filter or a merge operator.
    pub fn wait(&self) -> Result<()> {
        self.handle.engine().wait_for_point(&self.point)
    }

    /// Whether [`wait`](Self::wait) would return at once.
    pub fn is_ended(&self) -> bool {
        self.point.outcome().is_some()
    }
}

impl fmt::Debug for PendingPersist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingPersist")
            .field("is_ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}
