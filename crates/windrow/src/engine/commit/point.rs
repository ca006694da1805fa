//! What is durable in a database without a log ([`Options::log`](crate::Options::log)).
//!
//! Writes are only in memtables, and flushes, merges and all else change the manifest as usual. At a point everything is
//! in tables, and `CURRENT` gets the length of the manifest. An open reads the manifest up to that length: so whatever ends
//! the process, the database is as it was at the last point. No log could say more, so none is written. Its file exists, with a
//! header alone.
//!
//! Invariants:
//! - I1: At a point no memtable has an entry, and no commit is under way. So the tables are one prefix of the commit order.
//! - I2: No file that the last point needs is removed or changed before the next one
//!   ([`leased_files`](crate::engine::leased_files)). Table files grow behind the bytes that it needs.
//! - I3: A copy of the files is made at a point. Otherwise an open would append to table files that the copy shares, where the
//!   copy has entries of later merges.
//! - I4: A new manifest begins at a point only.
//!
//! Concurrency: writers wait while the point is made, but flushes write most of it before.

use crate::base::{Error, Result};
use crate::engine::Engine;
use crate::engine::ingestion::Claims;

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

    /// Makes a point that has everything that was committed before the call, and calls `look` before any later commit.
    ///
    /// # Errors
    /// Those of the flushes, of `CURRENT` and of `look`. The last point counts, unless that of `look`.
    pub(in crate::engine) fn at_point<R>(&self, look: impl FnOnce() -> Result<R>) -> Result<R> {
        let creating = self.creating.lock();
        self.check_writable()?;
        let keyspaces = self.keyspaces.load_full();
        let mut claims = Claims::default();
        let seen = self.poison_on_panic(|| {
            for keyspace in keyspaces.iter() {
                self.claim_flush_of(keyspace, &mut claims)?;
            }
            self.rotate(&keyspaces)?;
            for keyspace in keyspaces.iter() {
                self.flush_frozen(keyspace)?;
            }
            let leadership = self.commits.queue.exclusive();
            self.check_writable()?;
            let newest = self.commits.log.lock().last_sequence;
            for keyspace in keyspaces.iter() {
                self.flush_whole(keyspace, newest)?;
            }
            self.with_reserve(|| self.catalog.record_manifest_length())?;
            let seen = look();
            drop(leadership);
            seen
        });
        drop(claims);
        drop(creating);
        self.remove_files(&[]);
        for keyspace in keyspaces.iter() {
            keyspace.refresh_throttle();
        }
        self.refresh_shared_throttle();
        self.signal.notify();
        seen
    }
}
