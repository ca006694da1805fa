//! Transactions: reads of one snapshot with the transaction's own writes over it, and a commit that fails if another
//! write came in between.
//!
//! A transaction changes nothing before its commit. Its commit is one write with a [`Condition`], which the leader of the
//! commits decides in commit order. So readers and plain writers do not notice transactions, and plain writes conflict
//! with them as other transactions do.
//!
//! An optimistic transaction takes no locks. A locking one locks each key that it writes or reads for update, and keeps
//! the locks until its end. What it reads under a lock is the newest value, and covered from then on; everything else is
//! as without locks. So locks decide who waits, never what is right: with them a commit fails only if a write without
//! a lock came in between.
//!
//! The files: [`write_set`], the own writes; [`written`], those of one key; [`deleted_ranges`], the ranges among them; [`cursor`], a cursor over both;
//! [`locks`], the locks of a transaction; [`prepared`], transactions that survive a crash before their commit, and
//! [`prepared_record`], what is stored of them; [`retry`], the wait before another try. Without a transaction: [`single_key`],
//! changes of one key, and [`proposals`], those of compaction filters.
//!
//! Invariants:
//! - I1: The caller holds a snapshot at `since` until the commit has returned.
//! - I2: With [`Isolation::Serializable`], a commit with writes covers everything that was read. What the transaction
//!   found in its own writes is not read. A locking transaction is serializable. Its commit without writes covers its
//!   reads, too, if some were under locks: they are not of one snapshot.
//! - I3: A commit is refused while a cursor has not reported what it has passed.
//! - I4: Locks are released after the commit is published. So the next owner reads what was committed.
//!
//! Concurrency: owned by one thread. Cursors borrow the transaction, so it has cells.

mod cursor;
mod deleted_ranges;
mod locks;
mod prepared;
mod prepared_record;
mod proposals;
mod retry;
mod single_key;
mod write_set;
mod written;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use super::commit::condition::Condition;
use super::commit::read_set::ReadSet;
use super::locks::Mode;
use super::{Engine, KeyspaceCore, SnapshotPoint, Stored, counters};
use crate::base::limits::TRANSACTION_READS_BYTES_MAX;
use crate::base::{Error, Expiry, Held, Moment, Result, SequenceNumber};
use crate::merge_operator::Chain;
use crate::options::{Durability, Isolation};
use crate::read::visible::KeyRange;
pub(crate) use cursor::TransactionCursor;
use locks::TransactionLocks;
pub(crate) use prepared::PreparedTransactions;
pub(in crate::engine) use proposals::Filtering;
pub(crate) use retry::TRIES_MAX;
pub(crate) use single_key::Change;
pub(crate) use write_set::SavepointId;
use write_set::WriteSet;
use written::{Base, Below, Own};

/// A smaller change of the memory in use is not counted yet, in bytes.
const COUNTED_BYTES_MIN: u64 = 1024;

/// How a key is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// As the isolation says.
    Plain,
    /// The commit covers the read, and a locking transaction has a lock with others.
    Share,
    /// The commit covers the read, and a locking transaction has a lock alone.
    Update,
}

impl Intent {
    fn mode(self) -> Mode {
        match self {
            Self::Plain | Self::Share => Mode::Shared,
            Self::Update => Mode::Exclusive,
        }
    }
}

/// A transaction before its commit.
#[derive(Debug)]
pub(crate) struct TransactionCore {
    since: SequenceNumber,
    /// The moment at which it reads what it has not written itself, except under locks.
    moment: Moment,
    isolation: Isolation,
    reads: RefCell<ReadSet>,
    writes: RefCell<WriteSet>,
    locks: Option<RefCell<TransactionLocks>>,
    /// Cursors that have not reported what they have passed.
    cursors: Cell<usize>,
    /// The bytes of both sets.
    memory: RefCell<Held>,
}

impl TransactionCore {
    /// A transaction that reads at `at`, of which the caller holds a snapshot (I1).
    pub(crate) fn new(engine: &Engine, at: SnapshotPoint, isolation: Isolation) -> Self {
        Self {
            since: at.sequence,
            moment: at.moment,
            isolation,
            reads: RefCell::default(),
            writes: RefCell::default(),
            locks: None,
            cursors: Cell::new(0),
            memory: RefCell::new(Held::new(&engine.memory.transactions, 0)),
        }
    }

    /// The same, with locks. It waits for each at most for `timeout`.
    pub(crate) fn locking(engine: &Engine, at: SnapshotPoint, timeout: Duration) -> Self {
        let locks = TransactionLocks::new(&engine.locks, timeout);
        Self {
            locks: Some(RefCell::new(locks)),
            ..Self::new(engine, at, Isolation::Serializable)
        }
    }

    /// The value of `key`. Unless it is read plainly, the commit covers the read under any isolation.
    ///
    /// # Errors
    /// As [`Engine::get`]; as [`TransactionLocks::read`] for a lock.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        intent: Intent,
    ) -> Result<Option<Vec<u8>>> {
        let writes = self.writes.borrow();
        let own = writes.get(keyspace, key);
        if intent != Intent::Plain
            && own.is_some_and(Own::is_whole)
            && let Some(locks) = &self.locks
        {
            // A deleted range has no lock of its keys.
            let mut locks = locks.borrow_mut();
            locks.take(engine, keyspace, key, intent.mode())?;
        }
        match own {
            None => self.get_below(engine, keyspace, key, intent),
            Some(Own::Decided(written)) => Ok(written.map(|it| it.value.clone())),
            Some(Own::Operands(Below::Written(base), operands)) => {
                fold(keyspace, key, base, operands).map(Some)
            }
            Some(Own::Operands(Below::Unwritten, operands)) => {
                let base = self.get_below(engine, keyspace, key, intent)?;
                fold(keyspace, key, base.as_deref(), operands).map(Some)
            }
        }
    }

    /// The value of `key` below the own writes.
    fn get_below(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        intent: Intent,
    ) -> Result<Option<Vec<u8>>> {
        if let Some(locks) = &self.locks
            && (intent != Intent::Plain || locks.borrow().holds(keyspace, key))
        {
            let mut locks = locks.borrow_mut();
            let found = locks.read(engine, keyspace, key, intent.mode())?;
            return Ok(found.map(|(value, _)| value));
        }
        self.note_key(keyspace, key, intent);
        engine.get(keyspace, key, Some(self.at()), |found| found.to_vec())
    }

    /// When the entry of `key` expires; `None` if there is none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn expiry(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
    ) -> Result<Option<Expiry>> {
        match self.writes.borrow().get(keyspace, key) {
            Some(Own::Decided(written)) => return Ok(written.map(|it| it.expiry.into())),
            // A keyspace with a merge operator has no entries that expire.
            Some(Own::Operands(..)) => return Ok(Some(Expiry::Never)),
            None => {}
        }
        if let Some(locks) = &self.locks
            && locks.borrow().holds(keyspace, key)
        {
            let mut locks = locks.borrow_mut();
            let found = locks.read(engine, keyspace, key, Mode::Shared)?;
            return Ok(found.map(|(_, expiry)| expiry.into()));
        }
        self.note_key(keyspace, key, Intent::Plain);
        engine.expiry(keyspace, key, Some(self.at()))
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
        let locks = self.locks.as_ref().map(RefCell::borrow);
        let writes = self.writes.borrow();
        let has_operands = |key: &K| {
            let own = writes.get(keyspace, key.as_ref());
            matches!(own, Some(Own::Operands(..)))
        };
        if locks.is_some_and(|locks| !locks.is_empty()) || keys.iter().any(has_operands) {
            let get = |key: &K| self.get(engine, keyspace, key.as_ref(), Intent::Plain);
            return keys.iter().map(get).collect();
        }
        let written = |key: &&[u8]| writes.get(keyspace, key);
        let keys = keys.iter().map(AsRef::as_ref);
        let read: Vec<_> = keys.clone().filter(|key| written(key).is_none()).collect();
        for key in &read {
            self.note_key(keyspace, key, Intent::Plain);
        }
        let found = engine.multi_get(keyspace, &read, Some(self.at()))?;
        let mut found = found.into_iter();
        let value = |key: &[u8]| match written(&key) {
            Some(Own::Decided(written)) => written.map(|it| it.value.clone()),
            Some(Own::Operands(..)) => unreachable!("no key has operands"),
            None => found.next().flatten(),
        };
        Ok(keys.map(value).collect())
    }

    fn at(&self) -> SnapshotPoint {
        SnapshotPoint {
            sequence: self.since,
            moment: self.moment,
        }
    }

    fn note_key(&self, keyspace: &Arc<KeyspaceCore>, key: &[u8], intent: Intent) {
        if intent != Intent::Plain || self.isolation == Isolation::Serializable {
            self.reads.borrow_mut().add_key(keyspace, key, self.since);
            self.count_memory();
        }
    }

    fn count_memory(&self) {
        let bytes = self.reads.borrow().memory_bytes() + self.writes.borrow().memory_bytes();
        let mut held = self.memory.borrow_mut();
        if held.bytes().abs_diff(bytes as u64) >= COUNTED_BYTES_MIN {
            held.set(bytes as u64);
        }
    }

    /// Sets the value of `key`, or removes it.
    ///
    /// # Errors
    /// `InvalidArgument` if the transaction has written or read too much; as [`TransactionLocks::take`] for a lock.
    pub(crate) fn put(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        stored: Option<Stored<'_>>,
    ) -> Result<()> {
        self.check_reads()?;
        if let Some(locks) = &self.locks {
            let mut locks = locks.borrow_mut();
            locks.take(engine, keyspace, key, Mode::Exclusive)?;
        }
        let mut writes = self.writes.borrow_mut();
        writes.put(keyspace, key, stored.map_or(Base::Removed, Base::of))?;
        drop(writes);
        self.count_memory();
        Ok(())
    }

    /// Adds an operand to `key`, without a read.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn merge(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        self.check_reads()?;
        if let Some(locks) = &self.locks {
            let mut locks = locks.borrow_mut();
            locks.take_to_merge(engine, keyspace, key)?;
        }
        self.writes.borrow_mut().merge(keyspace, key, operand)?;
        self.count_memory();
        Ok(())
    }

    /// Removes the keys from `start` to before `end`, or all from `start` on if `end` is empty.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(crate) fn delete_range(
        &self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        start: &[u8],
        end: &[u8],
    ) -> Result<()> {
        self.check_reads()?;
        if let Some(locks) = &self.locks {
            let range = KeyRange::from_start(start, end);
            locks.borrow_mut().take_range(engine, keyspace, range)?;
        }
        let mut writes = self.writes.borrow_mut();
        writes.delete_range(keyspace, start, end)?;
        drop(writes);
        self.count_memory();
        Ok(())
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

    /// Marks the present state of the own writes and locks.
    pub(crate) fn savepoint(&self, engine: &Engine) -> SavepointId {
        let locks = self.locks.as_ref().map_or(0, |it| it.borrow().position());
        let id = SavepointId(engine.locks.new_owner());
        self.writes.borrow_mut().savepoint(id, locks);
        id
    }

    /// Restores the own writes and locks as they were at the savepoint `id`. What was read stays covered.
    ///
    /// # Errors
    /// `InvalidArgument` if the savepoint is gone, or of another transaction.
    pub(crate) fn roll_back_to(&self, id: SavepointId) -> Result<()> {
        let position = self.writes.borrow_mut().roll_back_to(id)?;
        if let Some(locks) = &self.locks {
            let mut reads = self.reads.borrow_mut();
            locks.borrow_mut().roll_back_to(position, &mut reads);
        }
        self.count_memory();
        Ok(())
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
        let view = engine.state_view(keyspace, Some(self.at()))?;
        let base = view.cursor(range.clone());
        Ok(TransactionCursor::new(self, keyspace, range, base))
    }

    /// Commits the own writes, if nothing that the transaction depends on has changed.
    ///
    /// # Errors
    /// As [`Engine::commit`]; with nothing written, `Conflict`, or `InvalidArgument` if the transaction has read too much.
    pub(crate) fn commit(self, engine: &Engine, durability: Durability) -> Result<()> {
        self.commit_and_release(engine, durability)?;
        counters::add(&engine.counters.transactions_committed, 1);
        Ok(())
    }

    fn commit_and_release(self, engine: &Engine, durability: Durability) -> Result<()> {
        self.check_cursors()?;
        let writes = self.writes.take();
        let locks = self.locks.as_ref();
        if writes.is_empty() && !locks.is_some_and(|it| it.borrow().has_read()) {
            // Every commit is atomic at its place in the commit order, and a snapshot is a prefix of that order.
            return engine.check_open();
        }
        let condition = self.condition()?;
        if writes.is_empty() {
            engine.check_open()?;
            let checked = engine.check_reads(&condition); // I2
            return checked.inspect_err(|error| engine.counters.add_refusal(error));
        }
        let encoded = writes.encode();
        drop(writes);
        let outcome = engine.commit_on(condition, &encoded.write(), durability);
        drop(self.locks); // I4
        outcome
    }

    /// # Errors
    /// `InvalidArgument` if what a cursor has read is unknown (I3).
    fn check_cursors(&self) -> Result<()> {
        if self.cursors.get() > 0 {
            let message = "a cursor of the transaction was leaked, so what it has read is unknown";
            return Err(Error::invalid_argument(message));
        }
        Ok(())
    }

    /// What must not have changed at the commit.
    ///
    /// # Errors
    /// As [`check_reads`](Self::check_reads).
    fn condition(&self) -> Result<Condition> {
        if let Some(locks) = &self.locks {
            locks.borrow().add_to(&mut self.reads.borrow_mut());
        }
        self.check_reads()?;
        let reads = self.reads.take();
        Ok(Condition {
            since: self.since,
            reads: (!reads.is_empty()).then(|| Arc::new(reads)),
            covers_writes: self.isolation == Isolation::Snapshot,
            active: None,
            owner: self.locks.as_ref().map(|locks| locks.borrow().owner()),
        })
    }
}

/// The value of `key` after own `operands` on `base`.
///
/// # Errors
/// `Merge`.
fn fold(
    keyspace: &KeyspaceCore,
    key: &[u8],
    base: Option<&[u8]>,
    operands: &Chain,
) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    keyspace
        .operator()
        .full_merge(key, base, operands, &mut value)?;
    Ok(value)
}
