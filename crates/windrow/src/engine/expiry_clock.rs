//! The clock by which entries expire.
//!
//! It shows the time of the system, and never goes back: its floor is the latest moment that it has shown, and begins
//! with the latest expiry of the entries that jobs have dropped as expired, as the manifest records it. So an entry that a
//! reader has found expired stays so while the database is open, and one that a job may have dropped stays so for ever. If
//! the system's clock goes back, the moment stands still until that clock has caught up. A clock that was far ahead is
//! forgotten by a close, except for what was dropped by it.
//!
//! Concurrency: any thread.

use std::sync::Arc;
use std::time::Duration;

use crate::base::expiry::{MOMENT_MAX, expiry, moment_reached};
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::{Moment, Result};
use crate::runtime::Runtime;

/// The clock of a database.
#[derive(Debug)]
pub(crate) struct ExpiryClock {
    runtime: Arc<dyn Runtime>,
    /// The latest moment that was shown.
    floor: AtomicU64,
}

impl ExpiryClock {
    /// A clock that shows no moment before `floor`.
    pub(crate) fn new(runtime: &Arc<dyn Runtime>, floor: Moment) -> Self {
        Self {
            runtime: Arc::clone(runtime),
            floor: AtomicU64::new(floor.min(MOMENT_MAX)),
        }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Moment {
        let now = moment_reached(self.runtime.unix_time());
        let floor = self.floor.load(Ordering::Acquire);
        if now <= floor {
            return floor;
        }
        self.floor.fetch_max(now, Ordering::AcqRel).max(now)
    }

    /// The moment at which an entry expires that lives for `ttl` from now on.
    ///
    /// # Errors
    /// `InvalidArgument` if that is later than any moment.
    pub(crate) fn expiry(&self, ttl: Duration) -> Result<Moment> {
        let floor = Duration::from_millis(self.floor.load(Ordering::Acquire));
        expiry(self.runtime.unix_time().max(floor), ttl)
    }
}
