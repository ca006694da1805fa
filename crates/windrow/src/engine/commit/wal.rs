//! The write-ahead log: a chain of log files.
//!
//! Owns the order of the logs, the range that recovery still needs, and the only way to sync them.
//!
//! Invariants:
//! - I1: Logs are synced in the order of the chain (by [`LogSync`]). So a sync mark inside a log
//!   proves that all its predecessors are durable to their recorded ends.
//! - I2: A log is removed only after every keyspace has flushed past its last sequence number.
//! - I3: The last link is the active log. All others are closed and never change.
//!
//! Concurrency: one lock guards the chain; no thread holds it during I/O. The writer of the last log
//! belongs to the leader of the commits.

use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{FileNumber, Moment, Result, SequenceNumber};
use crate::log::LogSync;
use crate::manifest::KeptLog;

/// One log of the chain.
#[derive(Debug, Clone)]
struct Link {
    number: FileNumber,
    /// `None` for a log that recovery has replayed and synced.
    sync: Option<Arc<LogSync>>,
    /// The sequence number of its first entry, if it has one.
    first_sequence: SequenceNumber,
    /// Its bytes, once it is closed.
    length: u64,
    /// Its newest sequence number, once it is closed.
    last_sequence: SequenceNumber,
}

impl Link {
    fn bytes(&self) -> u64 {
        let written = self.sync.as_ref().map(|sync| sync.written());
        written.unwrap_or(self.length)
    }
}

/// The part of a log that is written.
#[derive(Debug, Clone)]
pub(crate) struct WrittenLog {
    pub(crate) number: FileNumber,
    /// The sequence number of its first entry.
    pub(crate) first_sequence: SequenceNumber,
    /// Its newest sequence number; `None` for the active log.
    pub(crate) last_sequence: Option<SequenceNumber>,
    pub(crate) length: u64,
}

/// The logs that recovery would replay, oldest first.
#[derive(Debug, Default)]
pub(crate) struct WalChain(Mutex<Vec<Link>>);

impl WalChain {
    /// Adds a log that recovery has replayed: it is closed and durable.
    pub(crate) fn push_replayed(
        &self,
        number: FileNumber,
        first_sequence: SequenceNumber,
        length: u64,
        last_sequence: SequenceNumber,
    ) {
        self.0.lock().push(Link {
            number,
            sync: None,
            first_sequence,
            length,
            last_sequence,
        });
    }

    /// Closes the active log at `last_sequence` and adds the next one.
    pub(crate) fn switch(
        &self,
        last_sequence: SequenceNumber,
        number: FileNumber,
        sync: Arc<LogSync>,
    ) {
        let mut links = self.0.lock();
        if let Some(last) = links.last_mut() {
            if let Some(sync) = &last.sync {
                last.length = sync.written();
            }
            last.last_sequence = last_sequence;
        }
        links.push(Link {
            number,
            sync: Some(sync),
            first_sequence: last_sequence + 1,
            length: 0,
            last_sequence: 0,
        });
    }

    /// Makes everything written so far durable, oldest log first (I1). Returns whether a sync was
    /// necessary.
    ///
    /// # Errors
    /// The error of the first sync that failed. The logs after it stay as they are.
    pub(crate) fn sync(&self) -> Result<bool> {
        let Some(last) = self.last_log() else {
            return Ok(false);
        };
        let written = last.written();
        let is_due = last.synced() < written;
        last.sync_through(written)?;
        Ok(is_due)
    }

    /// The active log.
    pub(crate) fn last_log(&self) -> Option<Arc<LogSync>> {
        self.0.lock().last().and_then(|link| link.sync.clone())
    }

    /// The first log that recovery needs after all keyspaces have flushed everything before `unflushed`
    /// (I2). Recovery always needs the last log.
    pub(crate) fn first_needed(&self, unflushed: SequenceNumber) -> Option<FileNumber> {
        let links = self.0.lock();
        let (last, closed) = links.split_last()?;
        let needed = closed.iter().find(|link| link.last_sequence >= unflushed);
        Some(needed.unwrap_or(last).number)
    }

    /// The newest sequence number in the logs before `first`; 0 if none exists.
    pub(crate) fn last_before(&self, first: FileNumber) -> SequenceNumber {
        let links = self.0.lock();
        let before = links.iter().take_while(|link| link.number < first);
        before.last().map_or(0, |link| link.last_sequence)
    }

    /// The first log that may not be durable to its end.
    pub(crate) fn first_not_durable(&self) -> Option<FileNumber> {
        let links = self.0.lock();
        let is_due = |sync: &Arc<LogSync>| sync.synced() < sync.written();
        let first = links
            .iter()
            .find(|link| link.sync.as_ref().is_some_and(is_due));
        first.map(|link| link.number)
    }

    /// The closed logs before `first` that have entries from sequence number `from` on, as logs that are kept from
    /// `moment` on.
    pub(crate) fn entries_before(
        &self,
        first: FileNumber,
        from: SequenceNumber,
        moment: Moment,
    ) -> Vec<(FileNumber, KeptLog)> {
        let links = self.0.lock();
        let before = links.iter().take_while(|link| link.number < first);
        let has_entries = |link: &&Link| link.last_sequence >= link.first_sequence.max(from);
        let kept = |link: &Link| KeptLog {
            length: link.length,
            first: link.first_sequence,
            last: link.last_sequence,
            moment,
        };
        let kept = before
            .filter(has_entries)
            .map(|link| (link.number, kept(link)));
        kept.collect()
    }

    /// The log that has or will have the entry `sequence`.
    pub(crate) fn find(&self, sequence: SequenceNumber) -> Option<WrittenLog> {
        let links = self.0.lock();
        let newest = links.len().checked_sub(1)?;
        let mut links = links.iter().enumerate();
        let (index, link) = links.find(|(index, link)| {
            (*index == newest && link.sync.is_some()) || link.last_sequence >= sequence
        })?;
        (link.first_sequence <= sequence).then(|| WrittenLog {
            number: link.number,
            first_sequence: link.first_sequence,
            last_sequence: (index < newest || link.sync.is_none()).then_some(link.last_sequence),
            length: link.bytes(),
        })
    }

    /// Removes the logs before `first` from the chain and returns them.
    pub(crate) fn drop_before(&self, first: FileNumber) -> Vec<FileNumber> {
        let mut links = self.0.lock();
        let count = links.iter().take_while(|link| link.number < first).count();
        links.drain(..count).map(|link| link.number).collect()
    }

    /// Each log and its length, oldest first. The active log grows, except under the leadership.
    pub(crate) fn lengths(&self) -> Vec<(FileNumber, u64)> {
        let links = self.0.lock();
        links
            .iter()
            .map(|link| (link.number, link.bytes()))
            .collect()
    }

    /// The number of logs.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Bytes in the active log.
    pub(crate) fn last_log_bytes(&self) -> u64 {
        self.last_log().map_or(0, |log| log.written())
    }

    /// The end of what is known to be durable, as a log and an offset in it; `None` if this open has no log of its own.
    pub(crate) fn durable_position(&self) -> Option<(FileNumber, u64)> {
        let links = self.0.lock();
        let is_partial = |link: &&Link| {
            link.sync
                .as_ref()
                .is_some_and(|sync| sync.synced() < sync.written())
        };
        let link = links.iter().find(is_partial).or(links.last())?;
        link.sync.as_ref().map(|sync| (link.number, sync.synced()))
    }

    /// Bytes in all logs.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().iter().map(Link::bytes).sum()
    }

    /// Bytes in the closed logs.
    pub(crate) fn closed_bytes(&self) -> u64 {
        let links = self.0.lock();
        let closed = links.split_last().map_or(&[][..], |(_, closed)| closed);
        closed.iter().map(|link| link.length).sum()
    }

    /// The newest sequence number of the oldest log, if it is closed. Flushes up to it free that log.
    pub(crate) fn oldest_closed(&self) -> Option<SequenceNumber> {
        let links = self.0.lock();
        (links.len() > 1).then(|| links[0].last_sequence)
    }
}
