//! The reader of committed changes: from log to log, up to the newest commit.
//!
//! A feed takes a [look](super::look) at the newest published sequence number, and makes everything up to it durable. It
//! reads the logs up to there, each only as far as it is written. Then it takes another look. A record that cannot be read
//! now is read again by the next call.
//!
//! Concurrency: one user. Logs may be closed, kept and removed meanwhile.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::committed::{CommittedChange, LogRecord, not_kept};
use super::look::Look;
use super::tasks::Registration;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, FileNumber, Result, SequenceNumber};
use crate::engine::Engine;
use crate::engine::commit::wal::WrittenLog;
use crate::log::batch;
use crate::log::{LogReader, WalHeader};
use crate::manifest::names::FileName;

/// The capacity that a feed keeps after a large record.
const PAYLOAD_KEPT_BYTES: usize = 1 << 20;

/// The place of a reader in the changes.
#[derive(Debug)]
pub(crate) struct ChangeFeed {
    /// The consumer that holds the changes, if there is one.
    consumer: Option<Arc<str>>,
    /// The sequence number behind the last change.
    next: SequenceNumber,
    look: Look,
    log: Option<OpenLog>,
    /// Since a poll that has found no change.
    task: Option<Registration>,
}

/// The log that is read.
#[derive(Debug)]
struct OpenLog {
    number: FileNumber,
    name: String,
    reader: LogReader,
    /// The sequence number of the next entry.
    sequence: SequenceNumber,
    /// The last one of a closed log.
    last: Option<SequenceNumber>,
    /// The record that is not given out yet: its last sequence number, the offset of its payload, and that.
    record: Option<(SequenceNumber, u64)>,
    payload: Vec<u8>,
}

impl ChangeFeed {
    /// The sequence number of the next change, or less.
    pub(crate) fn position(&self) -> SequenceNumber {
        self.next
    }
}

impl Engine {
    /// The changes from `from` on. The first one may begin before `from`, which is then within it.
    ///
    /// # Errors
    /// `InvalidArgument` if `from` is more than one above the newest sequence number; `FellBehind`; `Closed`; `Io`.
    pub(crate) fn changes(
        &self,
        from: SequenceNumber,
        consumer: Option<&str>,
    ) -> Result<ChangeFeed> {
        self.check_open()?;
        self.check_logged()?;
        let newest = self.visible.load(Ordering::Acquire);
        if from > newest + 1 {
            return Err(Error::invalid_argument(format!(
                "there are no changes from sequence number {from} on: the newest write has {newest}"
            )));
        }
        let mut feed = ChangeFeed {
            consumer: consumer.map(Arc::from),
            next: from.max(1),
            look: Look::default(),
            log: None,
            task: None,
        };
        if feed.next <= newest {
            feed.log = Some(self.open_log_of(feed.next)?);
        }
        Ok(feed)
    }

    /// The next change of `feed`. Waits for one for `timeout`.
    ///
    /// # Errors
    /// `FellBehind`; `NotFound` if its consumer was removed; `Corruption`; `Io`; `Closed`; `Poisoned`, once everything
    /// is given out that was known to be durable before.
    pub(crate) fn next_change(
        &self,
        feed: &mut ChangeFeed,
        timeout: Duration,
    ) -> Result<Option<CommittedChange>> {
        let runtime = &self.options.runtime;
        let until = runtime.now().saturating_add(timeout);
        loop {
            if let Some(change) = self.try_next_change(feed)? {
                return Ok(Some(change));
            }
            let left = until.saturating_sub(runtime.now());
            if left.is_zero() {
                return Ok(None);
            }
            let pass = || self.commits.pass();
            self.notice.wait(left, pass, || self.has_news(feed.next));
        }
    }

    /// The next change of `feed`, for a task. Without one, `waker` is called once there may be one. `None` in a database
    /// that is open for reading, where no other change will come.
    ///
    /// # Errors
    /// As [`next_change`](Self::next_change); `Io` if the system allows no more threads.
    pub(crate) fn poll_change(
        self: &Arc<Self>,
        feed: &mut ChangeFeed,
        waker: &Waker,
    ) -> Poll<Option<Result<CommittedChange>>> {
        let polled = self.try_poll_change(feed, waker);
        if !matches!(polled, Ok(Poll::Pending)) {
            feed.task = None;
        }
        match polled {
            Ok(polled) => polled.map(|change| change.map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn try_poll_change(
        self: &Arc<Self>,
        feed: &mut ChangeFeed,
        waker: &Waker,
    ) -> Result<Poll<Option<CommittedChange>>> {
        loop {
            if let Some(change) = self.try_next_change(feed)? {
                return Ok(Poll::Ready(Some(change)));
            }
            if self.is_read_only() {
                return Ok(Poll::Ready(None));
            }
            self.start_waking()?;
            let new = || Registration::new(&self.tasks);
            let task = feed.task.get_or_insert_with(new);
            let has_news = |next| self.has_news(next);
            if !task.register(feed.next, feed.consumer.as_ref(), waker, has_news) {
                return Ok(Poll::Pending);
            }
        }
    }

    /// Whether a feed need not wait for the change `next`.
    pub(super) fn has_news(&self, next: SequenceNumber) -> bool {
        self.visible.load(Ordering::Acquire) >= next || self.check_open().is_err()
    }

    /// The next change of `feed`, if it is visible.
    fn try_next_change(&self, feed: &mut ChangeFeed) -> Result<Option<CommittedChange>> {
        self.next_record(feed, &mut |record, look| self.committed(record, look))
    }

    /// What `take` makes of the next record of `feed` that is visible, and of which it makes anything. After an error the
    /// next call gives it the same record.
    pub(super) fn next_record<R>(
        &self,
        feed: &mut ChangeFeed,
        take: &mut dyn FnMut(LogRecord<'_>, &mut Look) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        loop {
            self.check_open()?;
            if feed.next > feed.look.through {
                feed.look = self.look_at_changes(feed.consumer.as_deref(), feed.next)?;
                if feed.next > feed.look.through {
                    self.poison.check()?;
                    return Ok(None);
                }
            }
            let log = match &mut feed.log {
                Some(log) => log,
                None => feed.log.insert(self.open_log_of(feed.next)?),
            };
            if !log.read_record(feed.next)? {
                if !self.extend(log, feed.next)? {
                    feed.log = None;
                }
                continue;
            }
            let Some(record) = log.record() else {
                continue;
            };
            if record.last > feed.look.through {
                // It has an entry that is visible, and the entries of a record are published together.
                return Err(log.damaged("a record ends behind the newest commit"));
            }
            let taken = take(record, &mut feed.look)?;
            feed.next = record.last + 1;
            log.sequence = feed.next;
            log.record = None;
            if taken.is_some() {
                return Ok(taken);
            }
        }
    }

    /// Opens the log that has the entry `sequence`, which is visible.
    fn open_log_of(&self, sequence: SequenceNumber) -> Result<OpenLog> {
        let log = self.log_of(sequence)?;
        let name = FileName::Wal(log.number).to_string();
        let open = || -> Result<LogReader> {
            let vfs = &*self.options.vfs;
            let mut reader = LogReader::open(vfs, &self.directory, &name, log.number, None)?;
            reader.extend_to(log.length)?;
            Ok(reader)
        };
        let reader = match open() {
            // It may have been removed since.
            Err(error) if error.kind() == ErrorKind::Corruption => match self.log_of(sequence) {
                Ok(again) if again.number == log.number => {
                    // Between the edit that keeps a log and its removal from the chain, it may have been let go.
                    return Err(if self.is_log_named(log.number) {
                        error
                    } else {
                        not_kept(sequence)
                    });
                }
                Ok(_) => return self.open_log_of(sequence),
                Err(gone) => return Err(gone),
            },
            outcome => outcome?,
        };
        Ok(OpenLog {
            number: log.number,
            name,
            reader,
            sequence: log.first_sequence,
            last: log.last_sequence,
            record: None,
            payload: Vec::new(),
        })
    }

    /// Whether the manifest names the log, for recovery or for consumers.
    pub(in crate::engine) fn is_log_named(&self, number: FileNumber) -> bool {
        self.catalog.with_state(|state| {
            state.logs.contains(&number) || state.changes.kept_logs.contains_key(&number)
        })
    }

    fn log_of(&self, sequence: SequenceNumber) -> Result<WrittenLog> {
        // In this order: a log is kept before it leaves the chain.
        if let Some(log) = self.chain.find(sequence) {
            return Ok(log);
        }
        let kept = self.catalog.with_state(|state| {
            let mut logs = state.changes.kept_logs.iter();
            let found = logs.find(|(_, log)| (log.first..=log.last).contains(&sequence));
            found.map(|(&number, &log)| WrittenLog {
                number,
                first_sequence: log.first,
                last_sequence: Some(log.last),
                length: log.length,
            })
        });
        kept.ok_or_else(|| not_kept(sequence))
    }

    /// Extends `log`, which is read to its end, to what is written meanwhile. Returns false if the entry `next` is in
    /// another log.
    fn extend(&self, log: &mut OpenLog, next: SequenceNumber) -> Result<bool> {
        if log.last.is_some_and(|last| last < next) {
            return Ok(false);
        }
        match self.chain.find(next) {
            Some(written) if written.number == log.number => {
                if written.length <= log.reader.position() {
                    return Err(log.damaged("it ends before its last entry"));
                }
                log.last = written.last_sequence;
                log.reader.extend_to(written.length)?;
                Ok(true)
            }
            _ if log.last.is_some() => Err(log.damaged("it ends before its last entry")),
            _ => Ok(false),
        }
    }
}

impl OpenLog {
    /// Reads the record that has the entry `next`. Returns false at the end of what is written.
    fn read_record(&mut self, next: SequenceNumber) -> Result<bool> {
        while self.record.is_none() {
            let Some(record) = self.reader.next()? else {
                return if self.reader.is_at_end() {
                    Ok(false)
                } else {
                    Err(self.damaged("a record that was committed is damaged or missing"))
                };
            };
            let offset = record.payload_offset();
            if record.offset == 0 {
                let header = WalHeader::decode(record.payload);
                let header = header.map_err(|error| error.in_file(&self.name, offset))?;
                if header.base != self.sequence {
                    return Err(self.damaged("its sequence numbers do not follow those before"));
                }
                continue;
            }
            let last = batch::last_sequence(record.payload, self.sequence);
            let last = last.map_err(|error| error.in_file(&self.name, offset))?;
            if last < next {
                self.sequence = last + 1;
                continue;
            }
            self.payload.clear();
            self.payload.shrink_to(PAYLOAD_KEPT_BYTES);
            self.payload.extend_from_slice(record.payload);
            self.record = Some((last, offset));
        }
        Ok(true)
    }

    /// The record that is not given out yet.
    fn record(&self) -> Option<LogRecord<'_>> {
        self.record.map(|(last, offset)| LogRecord {
            payload: &self.payload,
            first: self.sequence,
            last,
            name: &self.name,
            offset,
        })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(&self.name, self.reader.position(), what)
    }
}
