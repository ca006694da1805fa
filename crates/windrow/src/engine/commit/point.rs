//! What is durable in a database without a log ([`Options::log`](crate::Options::log)).
//!
//! Writes are only in memtables, and flushes, merges and all else change the manifest as usual. At a point everything is
//! in tables, and `CURRENT` gets the length of the manifest. An open reads the manifest up to that length: so whatever ends
//! the process, the database is as it was at the last point. No log could say more, so none is written. Its file exists, with a
//! header alone.
//!
//! Invariants:
//! - I1: At a point the tables are a prefix of the commit order: all memtables are frozen between two commits, and are flushed,
//!   and until the point is made no other thread flushes, ingests, or changes which keyspaces there are.
//! - I2: No file that the last point needs is removed or changed before the next one
//!   ([`leased_files`](crate::engine::leased_files)). Table files grow behind the bytes that it needs.
//! - I3: A copy has files of a state that is no later than the last point. Otherwise an open would append to table files of which the
//!   copy has links, where the copy has entries of later merges.
//! - I4: A new manifest begins at a point only.
//!
//! Concurrency: any thread. Writers go on; ingestions and changes of keyspaces wait until the point is made.

use crate::base::{Error, Result, SequenceNumber};
use crate::engine::Engine;
use crate::engine::ingestion::Claims;
use crate::events::is_in_listener;

impl Engine {
    /// Whether writes go to no log.
    pub(in crate::engine) fn is_unlogged(&self) -> bool {
        !self.options.log && !self.is_read_only()
    }

    /// # Errors
    /// `InvalidArgument` without a log.
    pub(in crate::engine) fn check_logged(&self) -> Result<()> {
        if self.is_unlogged() {
            let message = "it needs a log, and this database was opened without one";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// # Errors
    /// Without a log, `InvalidArgument` in a listener, a compaction filter or a merge operator: the call could wait for the very
    /// flush that calls it.
    pub(in crate::engine) fn check_may_wait(&self) -> Result<()> {
        if self.is_unlogged() && (is_in_listener() || self.signal.runs_here()) {
            let message = "a listener, a compaction filter or a merge operator of a database without a log cannot do this: \
                           another thread must";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// Makes a point of everything that was committed before the call.
    ///
    /// # Errors
    /// Those of [`at_point`](Self::at_point) and [`check_may_wait`](Self::check_may_wait).
    pub(super) fn persist_unlogged(&self) -> Result<()> {
        self.check_may_wait()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let made = self.at_point(|_| Ok(()));
        drop(running);
        made
    }

    /// Makes a point of everything that is committed at a moment during the call, and calls `look` with the newest sequence
    /// number of that. The point has all edits that `look` has seen (I3).
    ///
    /// # Errors
    /// Those of the flushes, of `look`, and of `CURRENT`: then the point before counts, except after an error that poisons.
    pub(in crate::engine) fn at_point<R>(
        &self,
        look: impl FnOnce(SequenceNumber) -> Result<R>,
    ) -> Result<R> {
        let creating = self.creating.lock();
        self.check_writable()?;
        let keyspaces = self.keyspaces.load_full();
        let mut claims = Claims::default();
        let seen = self.poison_on_panic(|| {
            for keyspace in keyspaces.iter() {
                self.claim_flush_of(keyspace, &mut claims)?;
            }
            let through = self.rotate(&keyspaces)?;
            for keyspace in keyspaces.iter() {
                let flushed = self.flush_frozen(keyspace, through);
                // Writers may wait for the memory.
                keyspace.refresh_throttle();
                self.refresh_shared_throttle();
                self.signal.notify();
                flushed?;
            }
            let seen = look(through)?;
            self.with_reserve(|| self.catalog.record_manifest_length())?;
            Ok(seen)
        });
        drop(claims);
        self.remove_files(&[]);
        if seen.is_ok() {
            self.grow_reserve();
        }
        drop(creating);
        self.note_reserve();
        self.signal.notify();
        seen
    }
}
