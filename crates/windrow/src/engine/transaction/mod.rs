//! Optimistic transactions: reads of one snapshot with the transaction's own writes over it, and a commit that fails if
//! another write came in between.
//!
//! A transaction changes nothing before its commit. Its commit is one write with a [`Condition`], which the leader of the
//! commits decides in commit order. So transactions need no locks, readers and plain writers do not notice them, and
//! plain writes conflict with them as other transactions do.
//!
//! The files: [`write_set`], the own writes; [`deleted_ranges`], the ranges among them; [`cursor`], a cursor over both; [`retry`], the wait before another try;
//! [`single_key`], changes of one key, which need no transaction.
//!
//! Invariants:
//! - I1: The caller holds a snapshot at `since` until the commit has returned.
//! - I2: With [`Isolation::Serializable`], a commit with writes covers everything that was read. What the transaction
//!   found in its own writes is not read.
//! - I3: A commit is refused while a cursor has not reported what it has passed.
//!
//! Concurrency: owned by one thread. Cursors borrow the transaction, so it has cells.

mod cursor;
mod deleted_ranges;
mod retry;
mod single_key;
mod write_set;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::commit::condition::Condition;
use super::commit::read_set::ReadSet;
use super::{Engine, KeyspaceCore};
use crate::base::limits::TRANSACTION_READS_BYTES_MAX;
use crate::base::{Error, Result, SequenceNumber};
use crate::options::{Durability, Isolation};
use crate::read::visible::KeyRange;
pub(crate) use cursor::TransactionCursor;
pub(crate) use retry::TRIES_MAX;
pub(crate) use single_key::Change;
use write_set::WriteSet;

/// A transaction before its commit.
#[derive(Debug)]
pub(crate) struct TransactionCore {
    since: SequenceNumber,
    isolation: Isolation,
    reads: RefCell<ReadSet>,
    writes: RefCell<WriteSet>,
    /// Cursors that have not reported what they have passed.
    cursors: Cell<usize>,
}

impl TransactionCore {
    /// A transaction that reads at `since`, of which the caller holds a snapshot (I1).
    pub(crate) fn new(since: SequenceNumber, isolation: Isolation) -> Self {
        Self {
            since,
            isolation,
            reads: RefCell::default(),
            writes: RefCell::default(),
            cursors: Cell::new(0),
        }
    }

    /// The value of `key`. With `for_update`, the commit covers the read under any isolation.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub(crate) fn get(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        for_update: bool,
    ) -> Result<Option<Vec<u8>>> {
        if let Some(written) = self.writes.borrow().get(keyspace, key) {
            return Ok(written.clone());
        }
        self.note_key(keyspace, key, for_update);
        engine.get(keyspace, key, Some(self.since), |found| found.to_vec())
    }

    /// The values of `keys`.
    ///
    /// # Errors
    /// As [`Engine::get`], for the first key in order that has one.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let writes = self.writes.borrow();
        let written = |key: &&[u8]| writes.get(keyspace, key);
        let keys = keys.iter().map(AsRef::as_ref);
        let read: Vec<_> = keys.clone().filter(|key| written(key).is_none()).collect();
        for key in &read {
            self.note_key(keyspace, key, false);
        }
        let found = engine.multi_get(keyspace, &read, Some(self.since))?;
        let mut found = found.into_iter();
        let value = |key: &[u8]| match written(&key) {
            Some(written) => written.clone(),
            None => found.next().flatten(),
        };
        Ok(keys.map(value).collect())
    }

    fn note_key(&self, keyspace: &Arc<KeyspaceCore>, key: &[u8], for_update: bool) {
        if for_update || self.isolation == Isolation::Serializable {
            self.reads.borrow_mut().add_key(keyspace, key);
        }
    }

    /// Sets the value of `key`, or removes it.
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction has written or read too much.
    pub(crate) fn put(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.check_reads()?;
        let mut writes = self.writes.borrow_mut();
        writes.put(keyspace, key, value.map(<[u8]>::to_vec))
    }

    /// Removes the keys from `start` to before `end`, or all from `start` on if `end` is empty.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn delete_range(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        self.check_reads()?;
        self.writes.borrow_mut().delete_range(keyspace, start, end)
    }

    /// # Errors
    /// `InvalidArgument` if the transaction has read more than its commit can cover.
    fn check_reads(&self) -> Result<()> {
        if self.reads.borrow().is_full() {
            return Err(Error::invalid_argument(format!(
                "the transaction has read more than {} MiB of keys and cannot write",
                TRANSACTION_READS_BYTES_MAX >> 20
            )));
        }
        Ok(())
    }

    /// Marks the present state of the own writes. Returns its number.
    pub(crate) fn savepoint(&self) -> u64 {
        self.writes.borrow_mut().savepoint()
    }

    /// Restores the own writes as they were at savepoint `number`. What was read stays covered.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone.
    pub(crate) fn roll_back_to(&self, number: u64) -> Result<()> {
        self.writes.borrow_mut().roll_back_to(number)
    }

    /// A cursor over the keys of `range`: those of the snapshot, with the own writes over them.
    ///
    /// # Errors
    /// As [`Engine::state_view`].
    pub(crate) fn cursor(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        range: KeyRange,
    ) -> Result<TransactionCursor<'_>> {
        let view = engine.state_view(keyspace, Some(self.since))?;
        let base = view.cursor(range.clone());
        Ok(TransactionCursor::new(self, keyspace, range, base))
    }

    /// Commits the own writes, if nothing that the transaction depends on has changed.
    ///
    /// # Errors
    /// As [`Engine::commit`]; with nothing written, `Conflict`, or `InvalidArgument` if the transaction has read too much.
    pub(crate) fn commit(self, engine: &Engine, durability: Durability) -> Result<()> {
        if self.cursors.get() > 0 {
            // I3
            let message = "a cursor of the transaction was leaked, so what it has read is unknown";
            return Err(Error::invalid_argument(message));
        }
        let writes = self.writes.borrow();
        if writes.is_empty() {
            // Every commit is atomic at its place in the commit order, and a snapshot is a prefix of that order.
            return engine.check_open();
        }
        self.check_reads()?;
        let encoded = writes.encode();
        let reads = self.reads.take();
        let condition = Condition {
            since: self.since,
            reads: (!reads.is_empty()).then(|| Arc::new(reads)),
            covers_writes: self.isolation == Isolation::Snapshot,
            active: None,
        };
        engine.commit_on(condition, &encoded.write(), durability)
    }
}
