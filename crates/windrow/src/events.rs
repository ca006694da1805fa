//! Layer 1: what a database tells while it is open, and to whom.
//!
//! I1. A listener is called by the thread to which something happened, which holds no lock: it may
//!     call the database, and whatever it costs, it costs that thread.
//! I2. A panic of a listener ends there; the database goes on as if it had returned.
//!
//! Concurrency: called from many threads at once.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Something that happened in an open database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A memtable has become a run of level 0.
    #[non_exhaustive]
    FlushEnded {
        /// The keyspace.
        keyspace: String,
        /// Entries in the memtable.
        entries: u64,
        /// Those of them that no reader could see, and that were not written.
        entries_dropped: u64,
        /// Bytes of tables written.
        bytes_written: u64,
        /// How long it took.
        duration: Duration,
    },
    /// Tables were merged into a level.
    #[non_exhaustive]
    CompactionEnded {
        /// The keyspace.
        keyspace: String,
        /// The level that the output is in.
        level: usize,
        /// Bytes of tables read.
        bytes_read: u64,
        /// Bytes of tables written, and of runs in which values were gathered.
        bytes_written: u64,
        /// Those of them that were appended to tables.
        bytes_appended: u64,
        /// Why: `tree` for its shape, `consolidation` for fewer segments in one level, `pointer-rewrite` for pointers to
        /// values that garbage collection has moved.
        purpose: &'static str,
        /// Entries that no reader could see, and tombstones with nothing left to hide.
        entries_dropped: u64,
        /// How long it took.
        duration: Duration,
    },
    /// What was live in value logs stands in a successor.
    #[non_exhaustive]
    GarbageCollectionEnded {
        /// The keyspace.
        keyspace: String,
        /// Value files collected.
        files: usize,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
        /// Dead values left behind.
        values_dropped: u64,
        /// How long it took.
        duration: Duration,
    },
    /// A writer has to wait for background work.
    #[non_exhaustive]
    StallBegan {
        /// What it waits for, by the name of a [`StallCause`](crate::StallCause).
        cause: &'static str,
    },
    /// That writer goes on, or has its error.
    #[non_exhaustive]
    StallEnded {
        /// What it waited for.
        cause: &'static str,
        /// For how long.
        duration: Duration,
    },
    /// The disk is full: writes or background work cannot be done.
    NoSpace,
    /// What could not be done for want of room can be done again, and nothing is refused.
    /// Without a reserve nobody looks for room: then the next write that succeeds tells.
    SpaceResumed,
}

/// Hears of what happens in a database; see [`Options::with_listener`](crate::Options::with_listener).
///
/// It is called by the thread to which the event happened, writers included, so it should be quick.
/// It may use the database, but for waiting for background work; should it hold a handle of it, the
/// database closes only by [`Db::close`](crate::Db::close). A panic in it is caught and forgotten.
pub trait EventListener: Send + Sync {
    /// Something happened.
    fn on_event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> EventListener for F {
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// The listener that a database was given, if any.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<dyn EventListener>>);

impl Listener {
    pub(crate) fn new(listener: Arc<dyn EventListener>) -> Self {
        Self(Some(listener))
    }

    /// Tells of an event (I2). The caller holds no lock (I1).
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(listener) = &self.0 {
            drop(catch_unwind(AssertUnwindSafe(|| {
                listener.on_event(&event());
            })));
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_there = if self.0.is_some() {
            "a listener"
        } else {
            "none"
        };
        f.write_str(is_there)
    }
}
