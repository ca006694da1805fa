//! The locks of one transaction: what each one covers, and which of them a savepoint releases.
//!
//! A lock has the sequence number at which its key was read under it, or was locked for a write. The commit covers all
//! locked keys from there on. So a lost update is found even if a writer takes no locks. A key that is locked for an
//! operand alone is not covered: no write is lost then.
//!
//! There are no locks of ranges. Who deletes a range takes the locks that others have in it, and the commit covers the
//! range from there on. So it waits for all who were there before, and finds who came later.
//!
//! Invariants:
//! - I1: The transaction holds in the table exactly what `held` says, until this is dropped or
//!   [kept](TransactionLocks::keep).
//! - I2: `taken` has each change of `held` in order, with what there was before. So a roll-back restores the locks of
//!   its savepoint.
//! - I3: What was read under a lock stays covered after the lock is released.
//! - I4: Reads of a key under its lock find the same, also if the entry expires in between. A lock whose read has found an
//!   entry that expires holds the state and the moment of that read, so no job drops the entry.
//!
//! Concurrency: owned by the thread of its transaction.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, Moment, Result, SequenceNumber};
use crate::engine::commit::read_set::ReadSet;
use crate::engine::locks::{LockName, LockTable, Mode, Owner, Refusal};
use crate::engine::{Engine, HeldPoint, KeyspaceCore};
use crate::read::visible::KeyRange;

/// A thread that waits for a lock looks at the clock, and whether the database is open, at least this often.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The wait for one lock. It ends by the clock of the runtime. Where only a test turns that clock, it ends after as much
/// time of the system.
struct Wait<'a> {
    engine: &'a Engine,
    deadline: Duration,
    left: Duration,
}

impl<'a> Wait<'a> {
    fn new(engine: &'a Engine, timeout: Duration) -> Self {
        Self {
            engine,
            deadline: engine.options.runtime.now().saturating_add(timeout),
            left: timeout,
        }
    }

    /// How long to wait before the next look.
    ///
    /// # Errors
    /// `TimedOut` at the end of the wait; `Closed`.
    fn rest(&mut self) -> Result<Duration> {
        self.engine.check_open()?;
        let until_deadline = self
            .deadline
            .saturating_sub(self.engine.options.runtime.now());
        let rest = until_deadline.min(self.left).min(LOOK_INTERVAL);
        if rest.is_zero() {
            return Err(Error::new(ErrorKind::TimedOut, "is locked"));
        }
        self.left -= rest;
        Ok(rest)
    }
}

/// The locks of a transaction.
#[derive(Debug)]
pub(super) struct TransactionLocks {
    table: Arc<LockTable>,
    owner: Owner,
    /// How long it waits for each lock.
    timeout: Duration,
    held: BTreeMap<LockName, HeldLock>,
    ranges: Vec<DeletedRange>,
    taken: Vec<Taken>,
    /// Whether anything was read under a lock.
    has_read: bool,
}

#[derive(Debug)]
struct HeldLock {
    keyspace: Arc<KeyspaceCore>,
    mode: Mode,
    since: SequenceNumber,
    /// Whether the commit covers the key.
    is_covered: bool,
    /// Whether the caller knows the value of the key from a read under the lock.
    is_read: bool,
    /// What a read under the lock reads, once it has found an entry that expires (I4).
    point: Option<HeldPoint>,
}

/// A range that the transaction has deleted, after it had the locks in it.
#[derive(Debug)]
struct DeletedRange {
    keyspace: Arc<KeyspaceCore>,
    range: KeyRange,
    since: SequenceNumber,
}

/// What was taken.
#[derive(Debug)]
enum Taken {
    /// A lock, and how it was held before.
    Key(LockName, Option<Mode>),
    /// The cover of a key that was locked before.
    Cover(LockName),
    /// The last range.
    Range,
}

impl TransactionLocks {
    pub(super) fn new(table: &Arc<LockTable>, timeout: Duration) -> Self {
        Self {
            table: Arc::clone(table),
            owner: table.new_owner(),
            timeout,
            held: BTreeMap::new(),
            ranges: Vec::new(),
            taken: Vec::new(),
            has_read: false,
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether anything was read under a lock, and so not from the snapshot.
    pub(super) fn has_read(&self) -> bool {
        self.has_read
    }

    /// The number of changes so far, for [`roll_back_to`](Self::roll_back_to).
    pub(super) fn position(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn holds(&self, keyspace: &KeyspaceCore, key: &[u8]) -> bool {
        !self.held.is_empty() && self.held.contains_key(&LockName::new(keyspace.id(), key))
    }

    /// Takes the lock of `key`, and waits for it if necessary. The commit covers the key.
    ///
    /// # Errors
    /// `Deadlock`; `TimedOut`, also if there are too many locks; `Closed`.
    pub(super) fn take(
        &mut self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        mode: Mode,
    ) -> Result<()> {
        let count = self.held.len();
        let held = self.lock(engine, keyspace, key, mode)?;
        let was_covered = mem::replace(&mut held.is_covered, true);
        if !was_covered && self.held.len() == count {
            let name = LockName::new(keyspace.id(), key);
            self.taken.push(Taken::Cover(name));
        }
        Ok(())
    }

    /// Takes the lock of `key` for an operand.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn take_to_merge(
        &mut self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
    ) -> Result<()> {
        self.lock(engine, keyspace, key, Mode::Exclusive).map(drop)
    }

    /// Takes the locks that others have of keys of `range`. The commit covers the range.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn take_range(
        &mut self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        range: KeyRange,
    ) -> Result<()> {
        for name in self.table.locked_in(keyspace.id(), &range) {
            self.lock(engine, keyspace, &name.key, Mode::Exclusive)?;
        }
        self.taken.push(Taken::Range);
        self.ranges.push(DeletedRange {
            keyspace: Arc::clone(keyspace),
            range,
            since: engine.visible.load(Ordering::Acquire),
        });
        Ok(())
    }

    /// Takes the lock of `key` and returns it.
    fn lock(
        &mut self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        mode: Mode,
    ) -> Result<&mut HeldLock> {
        let name = LockName::new(keyspace.id(), key);
        let before = self.held.get(&name).map(|it| it.mode);
        if before < Some(mode) {
            engine.check_open()?;
            let mut wait = None;
            let timeout = self.timeout;
            let rest = || {
                wait.get_or_insert_with(|| Wait::new(engine, timeout))
                    .rest()
            };
            self.table
                .acquire(self.owner, &name, mode, rest)
                .map_err(|refusal| engine.refused_lock(refusal, keyspace, key))?;
            self.taken.push(Taken::Key(name.clone(), before));
        }
        let held = self.held.entry(name).or_insert_with(|| HeldLock {
            keyspace: Arc::clone(keyspace),
            mode,
            since: engine.visible.load(Ordering::Acquire),
            is_covered: false,
            is_read: false,
            point: None,
        });
        held.mode = held.mode.max(mode);
        Ok(held)
    }

    /// Reads the newest value of `key` under its lock, as of the first such read (I4), and when it expires, if ever.
    ///
    /// # Errors
    /// As [`take`](Self::take); those of a read; `Conflict` if a write without a lock has changed the key since it was
    /// locked.
    pub(super) fn read(
        &mut self,
        engine: &Engine,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        mode: Mode,
    ) -> Result<Option<(Vec<u8>, Option<Moment>)>> {
        let held = self.lock(engine, keyspace, key, mode)?;
        let mut value = Vec::new();
        let read = engine.get_newest(keyspace, key, &mut value)?;
        if !held.is_covered {
            held.since = read.since;
            held.is_covered = true;
        } else if held.since < read.since && engine.has_changed(keyspace, key, held.since)? {
            let what = "was changed by a write without a lock";
            let error = Error::conflicting(&keyspace.name(), key, what);
            engine.counters.add_refusal(&error);
            return Err(error);
        }
        held.is_read = true;
        let found = if held.point.is_some() || (read.is_found && read.expiry.is_some()) {
            held.read_expiring(engine, key)?
        } else {
            read.is_found.then_some((value, None))
        };
        self.has_read = true;
        Ok(found)
    }

    /// Adds what the locks cover to `reads`.
    pub(super) fn add_to(&self, reads: &mut ReadSet) {
        for (name, held) in self.held.iter().filter(|it| it.1.is_covered) {
            reads.add_key(&held.keyspace, &name.key, held.since);
        }
        for deleted in &self.ranges {
            reads.add_range(&deleted.keyspace, deleted.range.clone(), deleted.since);
        }
    }

    /// Releases the locks that were taken after `position`, and forgets the ranges. What was read under the locks goes to
    /// `reads` (I3).
    pub(super) fn roll_back_to(&mut self, position: usize, reads: &mut ReadSet) {
        while self.taken.len() > position
            && let Some(taken) = self.taken.pop()
        {
            match taken {
                Taken::Range => drop(self.ranges.pop()),
                Taken::Cover(name) => {
                    if let Some(held) = self.held.get_mut(&name) {
                        held.is_covered = held.is_read;
                    }
                }
                Taken::Key(name, Some(mode)) => {
                    self.table.share(self.owner, &name);
                    if let Some(held) = self.held.get_mut(&name) {
                        held.mode = mode;
                    }
                }
                Taken::Key(name, None) => {
                    self.table.release(self.owner, &name);
                    if let Some(held) = self.held.remove(&name).filter(|it| it.is_read) {
                        reads.add_key(&held.keyspace, &name.key, held.since);
                    }
                }
            }
        }
    }

    /// Keeps all locks without the transaction. Returns them.
    pub(super) fn keep(mut self) -> Vec<LockName> {
        mem::take(&mut self.held).into_keys().collect()
    }
}

impl HeldLock {
    /// Reads the entry of `key`, which expires, at the moment of the first such read (I4).
    #[cold]
    fn read_expiring(
        &mut self,
        engine: &Engine,
        key: &[u8],
    ) -> Result<Option<(Vec<u8>, Option<Moment>)>> {
        let point = self.point.get_or_insert_with(|| engine.hold_snapshot());
        let at = Some(point.at());
        engine.get_with_expiry(&self.keyspace, key, at, |found| found.to_vec())
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        for name in self.held.keys() {
            self.table.release(self.owner, name);
        }
    }
}

impl Engine {
    /// The error of a transaction that cannot lock `key`.
    #[cold]
    pub(super) fn refused_lock(
        &self,
        refusal: Refusal,
        keyspace: &KeyspaceCore,
        key: &[u8],
    ) -> Error {
        let (kind, what) = match refusal {
            Refusal::Ended(error) if error.kind() == ErrorKind::TimedOut => {
                let what = "is locked, and was not free in time".to_owned();
                (ErrorKind::TimedOut, what)
            }
            Refusal::Ended(error) => return error,
            Refusal::TooMany => {
                let what = "cannot be locked: there are too many locks".to_owned();
                (ErrorKind::TimedOut, what)
            }
            Refusal::Deadlock(names) => {
                let describe = |name: &LockName| {
                    let keyspace = self.keyspace_name(name.keyspace);
                    format!("\"{}\" of \"{keyspace}\"", name.key.escape_ascii())
                };
                let names: Vec<_> = names.iter().map(describe).collect();
                let what = format!(
                    "cannot be locked: {} transactions wait for each other, for the keys {}",
                    names.len(),
                    names.join(", ")
                );
                (ErrorKind::Deadlock, what)
            }
        };
        let error = Error::conflicting(&keyspace.name(), key, &what).with_kind(kind);
        self.counters.add_refusal(&error);
        error
    }
}
