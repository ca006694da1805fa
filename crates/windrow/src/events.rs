//! Layer 1: the events of an open database, and the listener that receives them.
//!
//! I1. The thread that causes an event calls the listener, and holds no lock during the call, except in a close. So the
//!     listener may read the database. The job of the thread has not ended, and what waits for that job waits for the
//!     listener.
//! I2. A panic of a listener is caught, and the database continues as if the call had returned.
//!
//! Concurrency: many threads call the listener at once.

mod text;

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::SequenceNumber;
use crate::base::sync::thread_local;

/// Something that happened in an open database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "event", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Event {
    /// The open has found damage in the write-ahead log, and recovered the commits before it alone, as
    /// [`Recovery::UpToDamage`](crate::Recovery::UpToDamage) asks for. The database is not open yet.
    #[non_exhaustive]
    HistoryCut {
        /// The damage, with its file and offset.
        damage: String,
        /// The newest sequence number in use. New commits follow it.
        last_sequence: SequenceNumber,
    },
    /// The database is open: recovery has ended.
    #[non_exhaustive]
    Opened {
        /// Whether the open has created it.
        is_new: bool,
        /// The logs that recovery has read.
        logs: usize,
        /// Bytes of them.
        log_bytes: u64,
        /// The entries in them that no table has.
        entries: u64,
        /// The time that it took.
        duration: Duration,
    },
    /// A close has ended. No other event follows.
    #[non_exhaustive]
    Closed {
        /// Its error.
        error: Option<String>,
        /// The time that it took.
        duration: Duration,
    },
    /// A flush begins.
    #[non_exhaustive]
    FlushBegan {
        /// The keyspace.
        keyspace: String,
        /// Entries in the memtable.
        entries: u64,
    },
    /// A compaction begins.
    #[non_exhaustive]
    CompactionBegan {
        /// The keyspace.
        keyspace: String,
        /// The level of the output.
        level: usize,
        /// The purpose, as that of [`CompactionEnded`](Self::CompactionEnded).
        purpose: &'static str,
        /// The table files that it replaces or appends to.
        files: usize,
        /// Bytes of them.
        bytes: u64,
    },
    /// A garbage collection begins.
    #[non_exhaustive]
    GarbageCollectionBegan {
        /// The keyspace.
        keyspace: String,
        /// The value files that it replaces.
        files: usize,
        /// Bytes of them.
        bytes: u64,
    },
    /// A job has failed and will be tried again. If the database is poisoned, no job is.
    #[non_exhaustive]
    JobFailed {
        /// The job: `flush`, `compaction`, `garbage_collection`, `scrub`, or `other`.
        job: &'static str,
        /// The keyspace, if it is a compaction or a garbage collection.
        keyspace: Option<String>,
        /// The error.
        error: String,
    },
    /// An error has left unknown what is durable: the database acknowledges nothing more. A thread notices this soon after
    /// the error.
    #[non_exhaustive]
    Poisoned {
        /// The error that the next write gets.
        error: String,
    },
    /// A table file has gone down a level by an edit alone.
    #[non_exhaustive]
    FileMoved {
        /// The keyspace.
        keyspace: String,
        /// Its new level.
        level: usize,
        /// Bytes of the file.
        bytes: u64,
    },
    /// A flush has written a memtable to level 0.
    #[non_exhaustive]
    FlushEnded {
        /// The keyspace.
        keyspace: String,
        /// Entries in the memtable.
        entries: u64,
        /// Entries of the memtable that no reader could see. The flush did not write them.
        entries_dropped: u64,
        /// Bytes written to tables and transient logs.
        bytes_written: u64,
        /// The time that it took.
        duration: Duration,
    },
    /// A compaction has ended.
    #[non_exhaustive]
    CompactionEnded {
        /// The keyspace.
        keyspace: String,
        /// The level of the output.
        level: usize,
        /// Bytes of tables read.
        bytes_read: u64,
        /// Bytes written to tables and transient logs.
        bytes_written: u64,
        /// The part of these bytes that was appended to existing tables.
        bytes_appended: u64,
        /// The purpose: `tree` for the shape of the tree, `consolidation` for fewer runs, `pointer-rewrite` for
        /// pointers to values that garbage collection has moved, `expiry` for the space of expired entries.
        purpose: &'static str,
        /// Entries that it has dropped: those that no reader could see, and tombstones that hid nothing.
        entries_dropped: u64,
        /// Entries about which it has asked the compaction filter.
        entries_judged: u64,
        /// Entries that the filter has removed or replaced.
        entries_changed: u64,
        /// The time that it took.
        duration: Duration,
    },
    /// Files of which every entry had expired have gone without being read.
    #[non_exhaustive]
    ExpiredFilesDropped {
        /// The keyspace.
        keyspace: String,
        /// Their level.
        level: usize,
        /// The number of files.
        files: usize,
        /// Bytes of these files.
        bytes: u64,
        /// Entries in them, tombstones included.
        entries_dropped: u64,
    },
    /// A garbage collection has copied the live values of value logs to a GC output.
    #[non_exhaustive]
    GarbageCollectionEnded {
        /// The keyspace.
        keyspace: String,
        /// The number of value files that it has replaced.
        files: usize,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
        /// Garbage values that were not copied.
        values_dropped: u64,
        /// The time that it took.
        duration: Duration,
    },
    /// A writer begins to wait for background work.
    #[non_exhaustive]
    StallBegan {
        /// The [name](crate::StallCause::name) of the cause.
        cause: &'static str,
    },
    /// A writer has ended its wait. Its write continues, or fails.
    #[non_exhaustive]
    StallEnded {
        /// The [name](crate::StallCause::name) of the cause.
        cause: &'static str,
        /// The time that it waited.
        duration: Duration,
    },
    /// A [consumer](crate::Consumer) of changes held more than the options allow, or was silent for too long: it has fallen
    /// behind and holds nothing.
    #[non_exhaustive]
    ConsumerFellBehind {
        /// Its name.
        consumer: String,
    },
    /// A scrub has found a file that is damaged, or that the device cannot read. A pass reports a file once.
    #[non_exhaustive]
    DamageFound {
        /// The name of the file.
        file: String,
        /// The first damage in it, with its offset, and what to do next.
        damage: String,
        /// The newest backup that has the whole file, if [`Db::scrub`](crate::Db::scrub) has found one.
        backup: Option<u64>,
    },
    /// The disk is full. Writes or background work fail.
    NoSpace,
    /// The disk has space again, and no write is refused. Without a reserve the engine does not look for space: the
    /// event comes when the writes or the background work that failed succeed again.
    SpaceResumed,
}

/// A field of an [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventValue<'a> {
    /// A text.
    Text(&'a str),
    /// A number of things or of bytes, or a level.
    Number(u64),
    /// A length of time.
    Time(Duration),
    /// Whether something is so.
    Flag(bool),
}

/// Receives the events of a database; see [`Options::with_listener`](crate::Options::with_listener).
///
/// The thread that causes an event calls the listener. This may be a writer, so the listener should be quick. The
/// listener may read the database. It must not write, flush or compact: these calls may wait for the job that calls the
/// listener, and then never return. Nor can it close a database: [`Db::close`](crate::Db::close) returns
/// `InvalidArgument` there and closes nothing. If the listener holds a handle of the database, the database stays open
/// until another thread calls `close`, or until the listener drops the handle as the last one: the job that calls the
/// listener then closes the database at its end. A panic in the listener is caught and ignored.
pub trait EventListener: Send + Sync {
    /// Called at each event.
    fn on_event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> EventListener for F {
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// The listener of a database, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Listener(Option<Arc<dyn EventListener>>);

impl Listener {
    pub(crate) fn new(listener: Arc<dyn EventListener>) -> Self {
        Self(Some(listener))
    }

    /// Whether there is one.
    pub(crate) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// Calls the listener with an event (I2). The caller holds no lock (I1).
    pub(crate) fn notify(&self, event: &Event) {
        if let Some(listener) = &self.0 {
            guarded(|| listener.on_event(event));
        }
    }
}

/// Runs code of a receiver of events. Returns `None` if it panics (I2).
pub(crate) fn guarded<T>(receive: impl FnOnce() -> T) -> Option<T> {
    CALLS.with(|calls| calls.set(calls.get() + 1));
    let outcome = catch_unwind(AssertUnwindSafe(receive));
    CALLS.with(|calls| calls.set(calls.get() - 1));
    outcome.ok()
}

thread_local! {
    /// The calls of listeners that this thread is in.
    static CALLS: Cell<usize> = Cell::default();
}

/// Whether a listener makes this call.
pub(crate) fn is_in_listener() -> bool {
    CALLS.with(Cell::get) > 0
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "a listener"
        } else {
            "none"
        })
    }
}
