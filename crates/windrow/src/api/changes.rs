//! The change feed: every committed batch, once and in order.
//!
//! Concurrency: a [`Changes`] has one user; a [`Consumer`] and its clones may be used from any thread.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{BatchEntries, Db};
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::engine::{ChangeFeed, CommittedBatch, CommittedChange, ConsumerStats, Handle};
use crate::log::batch::BatchReader;
use crate::log::portable_batch;

/// One change of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Writes that were committed together.
    Batch(ChangeBatch),
    /// A keyspace was created.
    KeyspaceCreated {
        /// The sequence number of the change.
        sequence: SequenceNumber,
        /// Its name.
        name: String,
    },
    /// A keyspace was dropped, with all that earlier batches have written to it.
    KeyspaceDropped {
        /// The sequence number of the change.
        sequence: SequenceNumber,
        /// Its last name.
        name: String,
    },
    /// A keyspace has another name. If another keyspace had it, that one now has the old name of this one.
    KeyspaceRenamed {
        /// The sequence number of the change.
        sequence: SequenceNumber,
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// A bulk load or an ingestion has added tables, whose entries are in no log. A copy that has to have them copies these
    /// keyspaces from a snapshot, and goes on behind it.
    TablesAdded {
        /// The sequence number of the change.
        sequence: SequenceNumber,
        /// The keyspaces. None if no consumer holds the change: then they are not known, or the load has failed.
        keyspaces: Vec<String>,
    },
}

/// Writes that were committed together: one batch, or several that were in one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeBatch(CommittedBatch);

/// The changes of a database, in the commit order.
///
/// It gives out each change once, as soon as it is visible, and makes it durable before: what a consumer has seen is never
/// lost here. It ends with the handle that it came from, which it keeps open.
pub struct Changes {
    /// Before the handle, whose drop may close the database: a closing database wakes no task that is gone.
    feed: ChangeFeed,
    handle: Arc<Handle>,
    /// Whether tasks get no change any more.
    has_ended: bool,
}

/// A named consumer of the changes of a database, whose place survives.
///
/// The database keeps every change behind the place of a consumer, within the bounds of
/// [`Options::change_retention`](crate::Options::change_retention). Like [`Changes`], it keeps the handle open.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// use std::time::Duration;
/// use windrow::{Change, Db, Options};
///
/// let db = Db::open(folder.path(), Options::default())?;
/// let consumer = db.consumer("search index")?;
/// let users = db.keyspace("users")?;
/// users.insert("ada", "mathematician")?;
/// db.flush()?;
///
/// let mut changes = consumer.changes()?;
/// while let Some(change) = changes.next(Duration::ZERO)? {
///     if let Change::Batch(batch) = &change {
///         for write in batch {
///             println!("{} {:?} {:?}", write.keyspace, write.key, write.write);
///         }
///     }
///     consumer.acknowledge(change.sequence())?;
/// }
/// assert_eq!(consumer.acknowledged()?, db.snapshot().sequence());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Consumer {
    handle: Arc<Handle>,
    name: Arc<str>,
}

impl Db {
    /// The changes from sequence number `from` on. The first batch may begin before `from`, if that is within it.
    ///
    /// Nothing is kept for these changes: without a [`consumer`](Self::consumer) logs go when their entries are in tables,
    /// and keyspaces have the names of today before a rename that consumers have acknowledged.
    /// In a database that is open for reading the changes end with the logs that the open has read, and the last
    /// ones may not be durable.
    ///
    /// # Errors
    /// `FellBehind` if the logs do not have them any more; `InvalidArgument` if `from` is more than one above the newest
    /// sequence number; `Corruption`; `Io`; `Closed`.
    pub fn changes(&self, from: SequenceNumber) -> Result<Changes> {
        let feed = self.handle.engine().changes(from, None)?;
        Ok(Changes::new(&self.handle, feed))
    }

    /// The consumer `name`, created if missing. A new one begins behind the newest write; a snapshot taken afterwards has
    /// everything before its changes. Who has a copy compares: a [place](Consumer::acknowledged) above what the copy has
    /// means that the consumer was removed meanwhile, and that changes are missing.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name or one longer than 255 bytes; `NoSpace` (nothing has changed); `ReadOnly`;
    /// `Poisoned`; `Closed`.
    ///
    /// # Durability
    /// A new consumer is durable when this returns, and so is every write acknowledged before.
    pub fn consumer(&self, name: &str) -> Result<Consumer> {
        self.handle.engine().open_consumer(name)?;
        Ok(Consumer {
            handle: Arc::clone(&self.handle),
            name: name.into(),
        })
    }

    /// All consumers, by name, and what they hold.
    pub fn consumers(&self) -> Vec<ConsumerStats> {
        self.handle.engine().consumers()
    }

    /// Forgets the consumer `name`. What nobody else holds is removed.
    ///
    /// # Errors
    /// `NotFound`; `NoSpace` (nothing has changed); `ReadOnly`; `Poisoned`; `Closed`.
    ///
    /// # Durability
    /// The removal is durable when this returns.
    pub fn remove_consumer(&self, name: &str) -> Result<()> {
        self.handle.engine().remove_consumer(name)
    }
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The changes behind its place.
    ///
    /// # Errors
    /// `FellBehind` if it held too much or was silent for too long; `NotFound` if it was removed; `Corruption`; `Io`;
    /// `Closed`.
    pub fn changes(&self) -> Result<Changes> {
        let feed = self.handle.engine().consumer_changes(&self.name)?;
        Ok(Changes::new(&self.handle, feed))
    }

    /// Its place: it has acknowledged every change up to this sequence number.
    ///
    /// # Errors
    /// `NotFound` if it was removed.
    pub fn acknowledged(&self) -> Result<SequenceNumber> {
        self.handle.engine().consumer_place(&self.name)
    }

    /// Notes that the consumer has done with every change up to `sequence`, most often
    /// [`Change::sequence`]. What nobody else holds is removed. A place that is acknowledged already stays,
    /// and only counts as a sign of life. This costs two syncs of the manifest, so acknowledge
    /// after many changes. If no feed has given out `sequence`, it also syncs the logs.
    ///
    /// # Errors
    /// `InvalidArgument` if `sequence` is above the newest write; `FellBehind`; `NotFound`; `NoSpace`
    /// (nothing has changed); `ReadOnly`; `Poisoned`; `Closed`.
    ///
    /// # Durability
    /// The place is durable when this returns.
    pub fn acknowledge(&self, sequence: SequenceNumber) -> Result<()> {
        self.handle.engine().acknowledge(&self.name, sequence)
    }
}

impl Changes {
    fn new(handle: &Arc<Handle>, feed: ChangeFeed) -> Self {
        Self {
            feed,
            handle: Arc::clone(handle),
            has_ended: false,
        }
    }

    /// The next change. Waits for a commit for at most `timeout`; `None` if there was none. What it passes over, as writes to
    /// a dropped keyspace, it reads whatever the timeout. After an error the next call
    /// tries the same change again.
    ///
    /// # Errors
    /// `FellBehind` if it is not kept any more, because its consumer has fallen behind or has acknowledged it already;
    /// `NotFound` if the consumer was removed; `Corruption` if a log or a value is damaged; `Io`; `NoSpace`; `Poisoned`;
    /// `Closed`.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Change>> {
        let change = self.handle.engine().next_change(&mut self.feed, timeout)?;
        Ok(change.map(Change::new))
    }

    /// The next change, for asynchronous code. Without one, the task of `context` is woken once this has an answer. Each poll
    /// replaces the task that is woken; a drop forgets it.
    ///
    /// It answers as [`next`](Self::next), with two more rules, so that
    /// `futures::stream::poll_fn(|context| changes.poll_change(context))` is a `Stream`. Behind an error that lasts
    /// (`Closed`, `Poisoned`, `FellBehind`, `NotFound`) comes the end, `None`; behind another one the same change is tried
    /// again. In a database that is open for reading the end comes behind the last change.
    ///
    /// A poll reads files and syncs the log, so it may block as long as the device takes; it never waits for a commit. A task
    /// that must not block takes a thread of its runtime for blocking work. The first poll without a change starts a thread
    /// of the database, which sleeps while no task waits. That thread wakes tasks, so a waker may take its time, but delays
    /// others. It may call the database and close it, and a panic in it is caught. Another close waits for a waker that is
    /// being called. A poisoned database, and a consumer that falls behind or is removed, wake a task after a second at the
    /// latest.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use windrow::{Change, Changes, Db, Options, Result};
    ///
    /// /// The next batch with a write to `keyspace`, once there is one.
    /// async fn next_write(changes: &mut Changes, keyspace: &str) -> Result<Option<Change>> {
    ///     while let Some(change) = poll_fn(|context| changes.poll_change(context)).await {
    ///         let change = change?;
    ///         if let Change::Batch(batch) = &change
    ///             && batch.iter().any(|write| &*write.keyspace == keyspace)
    ///         {
    ///             return Ok(Some(change));
    ///         }
    ///     }
    ///     Ok(None)
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # struct Unpark(std::thread::Thread);
    /// # impl std::task::Wake for Unpark {
    /// #     fn wake(self: std::sync::Arc<Self>) {
    /// #         self.0.unpark();
    /// #     }
    /// # }
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         let mut context = std::task::Context::from_waker(&waker);
    /// #         match future.as_mut().poll(&mut context) {
    /// #             std::task::Poll::Ready(answer) => return answer,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// let db = Db::open(folder.path(), Options::default())?;
    /// let mut changes = db.changes(1)?;
    /// let users = db.keyspace("users")?;
    /// let writer = std::thread::spawn(move || users.insert("ada", "mathematician"));
    /// // `block_on` of any runtime.
    /// assert!(block_on(next_write(&mut changes, "users"))?.is_some());
    /// # writer.join().unwrap()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`next`](Self::next); `Io` if the system allows no more threads.
    pub fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Change>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let polled = self.handle.poll_change(&mut self.feed, context.waker());
        self.has_ended = match &polled {
            Poll::Ready(Some(Err(error))) => lasts(error),
            Poll::Ready(answer) => answer.is_none(),
            Poll::Pending => false,
        };
        polled.map(|answer| answer.map(|change| change.map(Change::new)))
    }

    /// Every change before this sequence number was given out, or was before the beginning.
    pub fn position(&self) -> SequenceNumber {
        self.feed.position()
    }
}

/// Whether a feed that has met `error` gets no further.
fn lasts(error: &Error) -> bool {
    use ErrorKind::{Closed, FellBehind, NotFound, Poisoned};
    matches!(error.kind(), Closed | FellBehind | NotFound | Poisoned)
}

impl Change {
    fn new(change: CommittedChange) -> Self {
        match change {
            CommittedChange::Batch(batch) => Self::Batch(ChangeBatch(batch)),
            CommittedChange::Created(sequence, name) => Self::KeyspaceCreated { sequence, name },
            CommittedChange::Dropped(sequence, name) => Self::KeyspaceDropped { sequence, name },
            CommittedChange::Renamed { sequence, from, to } => {
                Self::KeyspaceRenamed { sequence, from, to }
            }
            CommittedChange::TablesAdded(sequence, keyspaces) => Self::TablesAdded {
                sequence,
                keyspaces,
            },
        }
    }

    /// The sequence number of the change; of a batch, that of its last write. A consumer that has done with the change
    /// acknowledges it.
    pub fn sequence(&self) -> SequenceNumber {
        match self {
            Self::Batch(batch) => batch.last(),
            Self::KeyspaceCreated { sequence, .. }
            | Self::KeyspaceDropped { sequence, .. }
            | Self::KeyspaceRenamed { sequence, .. }
            | Self::TablesAdded { sequence, .. } => *sequence,
        }
    }
}

impl ChangeBatch {
    /// The sequence number of its first write.
    pub fn first(&self) -> SequenceNumber {
        self.0.first
    }

    /// The sequence number of its last write.
    pub fn last(&self) -> SequenceNumber {
        self.0.last
    }

    /// The number of writes. Those to keyspaces that do not exist any more are left out, so it may be less than the
    /// sequence numbers suggest.
    pub fn len(&self) -> usize {
        self.0.count as usize
    }

    /// Whether it has no write. No feed gives out such a batch.
    pub fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// The writes, in their order, with the names that the keyspaces had then.
    pub fn iter(&self) -> BatchEntries<'_> {
        let entries = BatchReader::entries(&self.0.entries, 1, self.0.count);
        BatchEntries::new(entries, self.0.names.clone())
    }

    /// The writes as bytes, which [`Db::batch_from_bytes`] of another database makes a batch of.
    pub fn to_bytes(&self) -> Vec<u8> {
        portable_batch::encode(&self.0.names, self.0.count, &self.0.entries)
    }
}

impl<'a> IntoIterator for &'a ChangeBatch {
    type Item = super::BatchEntry<'a>;
    type IntoIter = BatchEntries<'a>;

    fn into_iter(self) -> BatchEntries<'a> {
        self.iter()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Consumer").field(&self.name).finish()
    }
}
