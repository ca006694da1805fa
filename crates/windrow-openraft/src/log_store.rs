//! The log of a node, with its vote.
//!
//! An entry has its index as its key, in eight bytes with the highest one first. See the crate for what is durable when.
//!
//! Invariants:
//! - I1: The log has no hole. Entries are appended in batches, and a crash leaves a prefix of the writes. The callback comes
//!   after a sync behind the last batch.
//! - I2: The purged log id changes in one batch with the delete of the entries.
//!
//! Concurrency: openraft has one writer. Any number of readers read beside it.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{
    Entry, LogId, OptionalSend, RaftLogId, RaftLogReader, RaftTypeConfig, StorageError,
    StorageIOError, Vote,
};
use tokio::sync::watch;
use windrow::{Batch, Db, Durability, Error, ErrorKind, Keyspace, Result};

use crate::blocking::blocking;
use crate::progress::Progress;
use crate::records::{Record, Records, decode, encode};

/// A batch that has as many bytes is written, so that an append has no limit.
const BATCH_BYTES: usize = 64 << 20;

/// The log of a node: openraft's `RaftLogStorage`.
pub struct LogStore<C: RaftTypeConfig> {
    db: Db,
    entries: LogReader<C>,
    records: Records,
    progress: watch::Receiver<Progress<C::NodeId>>,
}

/// Reads the log beside its writer.
pub struct LogReader<C> {
    keyspace: Keyspace,
    config: PhantomData<fn() -> C>,
}

type Stored<T, C> = std::result::Result<T, StorageError<<C as RaftTypeConfig>::NodeId>>;

impl<C: RaftTypeConfig<Entry = Entry<C>>> LogStore<C> {
    pub(crate) fn new(
        db: Db,
        entries: LogReader<C>,
        records: Records,
        progress: watch::Receiver<Progress<C::NodeId>>,
    ) -> Self {
        Self {
            db,
            entries,
            records,
            progress,
        }
    }

    /// Writes the batch that `fill` fills.
    async fn write(
        &self,
        durability: Durability,
        fill: impl FnOnce(&mut Batch, &Keyspace, &Records) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let (db, records) = (self.db.clone(), self.records.clone());
        let entries = self.entries.keyspace.clone();
        blocking(move || {
            let mut batch = Batch::new();
            fill(&mut batch, &entries, &records)?;
            db.write_with(&batch, durability)
        })
        .await
    }

    async fn state(&self) -> Result<LogState<C>> {
        let (records, entries) = (self.records.clone(), self.entries.clone());
        blocking(move || {
            let last_purged_log_id = records.get(Record::Purged)?;
            let last_log_id = match entries.keyspace.last_key_value()? {
                Some((_, bytes)) => Some(decode::<Entry<C>>(&bytes)?.log_id),
                None => last_purged_log_id.clone(),
            };
            Ok(LogState {
                last_purged_log_id,
                last_log_id,
            })
        })
        .await
    }

    /// Waits until the state contains the entries up to `index`, if a snapshot may bring them.
    async fn await_state(&mut self, index: u64) -> Result<()> {
        let decided = self.progress.wait_for(|it| it.allows(index)).await;
        // Without a state machine nothing changes any more.
        drop(decided);
        self.progress.borrow().check(index)
    }
}

impl<C> LogReader<C> {
    pub(crate) fn open(db: &Db) -> Result<Self> {
        Ok(Self {
            keyspace: db.keyspace("log")?,
            config: PhantomData,
        })
    }
}

impl<C: RaftTypeConfig<Entry = Entry<C>>> LogReader<C> {
    fn read(&self, range: (Bound<[u8; 8]>, Bound<[u8; 8]>)) -> Result<Vec<Entry<C>>> {
        let entries = self.keyspace.range(range)?.map(|stored| {
            let (key, bytes) = stored?;
            let entry: Entry<C> = decode(&bytes)?;
            let index = entry.log_id.index;
            if key == index.to_be_bytes() {
                return Ok(entry);
            }
            let message = format!("the log has an entry with index {index} in the wrong place");
            Err(Error::new(ErrorKind::Corruption, message))
        });
        entries.collect()
    }
}

impl<C: RaftTypeConfig<Entry = Entry<C>>> RaftLogReader<C> for LogReader<C> {
    async fn try_get_log_entries<B: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: B,
    ) -> Stored<Vec<Entry<C>>, C> {
        let key = |index: &u64| index.to_be_bytes();
        let range = (range.start_bound().map(key), range.end_bound().map(key));
        let reader = self.clone();
        let entries = blocking(move || reader.read(range)).await;
        entries.map_err(|error| StorageIOError::read_logs(&error).into())
    }
}

impl<C: RaftTypeConfig<Entry = Entry<C>>> RaftLogReader<C> for LogStore<C> {
    async fn try_get_log_entries<B: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: B,
    ) -> Stored<Vec<Entry<C>>, C> {
        self.entries.try_get_log_entries(range).await
    }
}

impl<C: RaftTypeConfig<Entry = Entry<C>>> RaftLogStorage<C> for LogStore<C> {
    type LogReader = LogReader<C>;

    async fn get_log_state(&mut self) -> Stored<LogState<C>, C> {
        let state = self.state().await;
        state.map_err(|error| StorageIOError::read_logs(&error).into())
    }

    async fn get_log_reader(&mut self) -> LogReader<C> {
        self.entries.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<C::NodeId>) -> Stored<(), C> {
        let vote = vote.clone();
        let written = self.write(Durability::Sync, move |batch, _, records| {
            records.insert(batch, Record::Vote, &vote)
        });
        let written = written.await;
        written.map_err(|error| StorageIOError::write_vote(&error).into())
    }

    async fn read_vote(&mut self) -> Stored<Option<Vote<C::NodeId>>, C> {
        let records = self.records.clone();
        let vote = blocking(move || records.get(Record::Vote)).await;
        vote.map_err(|error| StorageIOError::read_vote(&error).into())
    }

    async fn save_committed(&mut self, committed: Option<LogId<C::NodeId>>) -> Stored<(), C> {
        let written = self.write(Durability::Buffered, move |batch, _, records| {
            records.insert(batch, Record::Committed, &committed)
        });
        let written = written.await;
        written.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn read_committed(&mut self) -> Stored<Option<LogId<C::NodeId>>, C> {
        let records = self.records.clone();
        let committed = blocking(move || records.get(Record::Committed)).await;
        let committed: Option<Option<_>> =
            committed.map_err(|error| StorageIOError::read_logs(&error))?;
        Ok(committed.flatten())
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<C>) -> Stored<(), C>
    where
        I: IntoIterator<Item = Entry<C>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<_> = entries.into_iter().collect();
        let (db, log) = (self.db.clone(), self.entries.keyspace.clone());
        let written = blocking(move || {
            append(&log, entries, BATCH_BYTES, |batch, durability| {
                db.write_with(batch, durability)
            })
        });
        let written = written.await;
        written.map_err(|error| StorageIOError::write_logs(&error))?;
        callback.log_io_completed(Ok(()));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<C::NodeId>) -> Stored<(), C> {
        let written = self.write(Durability::Buffered, move |batch, log, _| {
            batch.delete_range(log, log_id.index.to_be_bytes()..)
        });
        let written = written.await;
        written.map_err(|error| StorageIOError::write_logs(&error).into())
    }

    async fn purge(&mut self, log_id: LogId<C::NodeId>) -> Stored<(), C> {
        let written = match self.await_state(log_id.index).await {
            Ok(()) => {
                let written = self.write(Durability::Buffered, move |batch, log, records| {
                    batch.delete_range(log, ..=log_id.index.to_be_bytes())?;
                    records.insert(batch, Record::Purged, &log_id)
                });
                written.await
            }
            Err(error) => Err(error),
        };
        written.map_err(|error| StorageIOError::write_logs(&error).into())
    }
}

/// Writes `entries` to `log`, in batches that end when they have `batch_bytes`, and syncs the last one.
fn append<C: RaftTypeConfig>(
    log: &Keyspace,
    entries: Vec<Entry<C>>,
    batch_bytes: usize,
    mut write: impl FnMut(&Batch, Durability) -> Result<()>,
) -> Result<()> {
    let (mut batch, mut bytes) = (Batch::new(), 0);
    for entry in entries {
        if bytes >= batch_bytes {
            write(&batch, Durability::Buffered)?;
            (batch, bytes) = (Batch::new(), 0);
        }
        let encoded = encode(&entry)?;
        batch.insert(log, entry.get_log_id().index.to_be_bytes(), &encoded)?;
        bytes += encoded.len();
    }
    write(&batch, Durability::Sync)
}

impl<C> Clone for LogReader<C> {
    fn clone(&self) -> Self {
        Self {
            keyspace: self.keyspace.clone(),
            config: PhantomData,
        }
    }
}

impl<C: RaftTypeConfig> Debug for LogStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStore").finish_non_exhaustive()
    }
}

impl<C> Debug for LogReader<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
