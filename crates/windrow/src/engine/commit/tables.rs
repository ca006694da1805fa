//! A commit without entries in the log: it gets one sequence number at its place in the commit order. An ingestion adds
//! tables with that number. A change of keyspaces gets a number for the consumers of changes.
//!
//! The number is taken from the log, by a record of one entry that changes nothing, and the log is synced before an
//! edit has the number. So the edit alone decides whether the commit counts, and no number in the manifest is above
//! those of the logs. After a crash between both the number is used, and nothing has it. Without a log, the edit counts from
//! the next [point](super::point) on.
//!
//! Concurrency: the caller leads the commits from before the number is taken until it is published. So each
//! other commit is wholly before or wholly after.

use super::PoisonOnDrop;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::atomic::Ordering;
use crate::base::{Result, SequenceNumber};
use crate::engine::Engine;
use crate::engine::counters;
use crate::log::batch::{self, Numbered};

impl Engine {
    /// Commits an edit between two other commits, of `what`. `prepare` is called first, with the newest number in use: afterwards
    /// no memtable hides a key of new tables. `add` gets what it returns and commits the edit with its number. On return
    /// it is visible and durable, with every write that was acknowledged before.
    ///
    /// # Errors
    /// Those of `prepare` and `add`; `NoSpace` (nothing has changed); `Closed`; `ReadOnly`; `Poisoned`.
    pub(in crate::engine) fn commit_numbered<P, R>(
        &self,
        what: Numbered,
        prepare: impl FnOnce(SequenceNumber) -> Result<P>,
        add: impl FnOnce(P, SequenceNumber) -> Result<R>,
    ) -> Result<R> {
        // Syncs most of the data before writers must wait.
        self.sync_logs()?;
        let leadership = self.commits.queue.exclusive();
        self.check_writable()?;
        let newest = self.commits.log.lock().last_sequence;
        let prepared = prepare(newest)?;
        let sequence = self.take_number(what)?;
        self.sync_logs()?;
        // Dropped before the leadership: after a panic no later commit publishes one half of this one.
        let mut interrupted = PoisonOnDrop {
            poison: &self.poison,
            is_over: false,
        };
        let added = add(prepared, sequence);
        interrupted.is_over = true;
        self.poison.check()?;
        // Also if nothing was added: later commits have higher numbers.
        self.visible.store(sequence, Ordering::Release);
        drop(leadership);
        self.notice.notify();
        added
    }

    /// Takes the next sequence number. The caller leads the commits.
    fn take_number(&self, what: Numbered) -> Result<SequenceNumber> {
        let mut log = self.commits.log.lock();
        let sequence = log.last_sequence + 1;
        assert!(sequence <= SEQUENCE_MAX, "sequence numbers are used up");
        if !self.options.log {
            log.last_sequence = sequence;
            return Ok(sequence);
        }
        let Some(writer) = &mut log.writer else {
            return Err(self.abandoned());
        };
        let before = writer.end();
        let record = writer.begin();
        batch::put_count(record, 1);
        batch::put_number(record, what);
        self.poison_unless_full(writer.commit())?;
        counters::add(&self.counters.wal_bytes, writer.end() - before);
        log.last_sequence = sequence;
        Ok(sequence)
    }
}
