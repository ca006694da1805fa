//! The locks of keys: who may change a key until the end of a transaction.
//!
//! Owns the locks, the order of those who wait, and the search for deadlocks. It knows nothing of values, transactions
//! and the clock. A write without a transaction takes no lock and looks at none. What [prepared transactions
//! hold](holds) is kept apart.
//!
//! An owner waits for one lock at a time. Before it sleeps it looks for a cycle: it follows those it waits for, and
//! those they wait for, back to itself. Only a new wait can close a cycle. So the last owner of a cycle finds it, and
//! is refused; the others go on waiting.
//!
//! Invariants:
//! - I1: A lock that nobody holds or waits for takes no memory. All locks together take about [`LOCK_BYTES_MAX`]; more
//!   are refused, except after a crash.
//! - I2: While the search holds `waits`, no owner in it can release a lock: an owner leaves `waits` before it goes on.
//!   So what the search has found still holds at its end, unless a time-out came in between.
//!
//! Concurrency: a lock is in one of several shards, each under a lock of its own. `waits` comes before the shards, and
//! no thread holds two shards. An owner is one thread at a time.

mod holds;
mod lock;
#[cfg(all(test, loom))]
mod models;
mod range_index;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::base::limits::LOCK_BYTES_MAX;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Error, KeyspaceId, MemoryTracker};
use crate::codec::checksum::key_hash;
use crate::read::visible::KeyRange;
pub(crate) use holds::{Hold, Holds};
use lock::Lock;
pub(crate) use lock::{Mode, Owner};

const SHARDS: usize = if cfg!(loom) { 2 } else { 32 };

/// About the memory of a lock beside its key: its place in a shard, a holder, and what the holder knows of it.
const OVERHEAD_BYTES: usize = 256;

/// An empty shard keeps the memory of at most this many locks.
const KEPT_CAPACITY: usize = 1024;

/// The key that a lock is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LockName {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Arc<[u8]>,
}

impl LockName {
    pub(crate) fn new(keyspace: KeyspaceId, key: &[u8]) -> Self {
        Self {
            keyspace,
            key: key.into(),
        }
    }

    fn memory_bytes(&self) -> u64 {
        (OVERHEAD_BYTES + self.key.len()) as u64
    }
}

/// Why an owner cannot have a lock.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// These owners wait for each other, each for this lock; the refused owner comes first.
    Deadlock(Vec<LockName>),
    /// There are too many locks (I1).
    TooMany,
    /// The owner does not wait any longer.
    Ended(Error),
}

/// All locks of a database; see the module.
#[derive(Debug)]
pub(crate) struct LockTable {
    shards: [Mutex<HashMap<LockName, Lock>>; SHARDS],
    /// What each waiting owner waits for.
    waits: Mutex<BTreeMap<Owner, LockName>>,
    next_owner: AtomicU64,
    memory: Arc<MemoryTracker>,
}

impl LockTable {
    /// A table that counts its locks in `memory`, which counts nothing else. `first_owner` is random: no two databases
    /// have the same owners.
    pub(crate) fn new(memory: &Arc<MemoryTracker>, first_owner: u64) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            waits: Mutex::default(),
            next_owner: AtomicU64::new(first_owner),
            memory: Arc::clone(memory),
        }
    }

    /// An owner without locks.
    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    fn shard(&self, name: &LockName) -> &Mutex<HashMap<LockName, Lock>> {
        let hash = key_hash(&name.key) ^ u64::from(name.keyspace.0);
        let position = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        &self.shards[position]
    }

    /// Takes the lock `name` for `owner`, and waits for it if necessary. Returns how `owner` has held it before. `rest`
    /// says how long to wait at most before it is asked again; its error ends the wait.
    pub(crate) fn acquire(
        &self,
        owner: Owner,
        name: &LockName,
        mode: Mode,
        rest: impl FnMut() -> Result<Duration, Error>,
    ) -> Result<Option<Mode>, Refusal> {
        let mut shard = self.shard(name).lock();
        let lock = self.lock_in(&mut shard, name)?;
        let before = lock.mode_of(owner);
        if lock.try_take(owner, mode) {
            return Ok(before);
        }
        let changed = lock.wait_for(owner, mode);
        drop(shard);
        let cycle = self.begin_wait(owner, name);
        let outcome = match cycle {
            None => self.wait(owner, name, mode, &changed, rest),
            Some(cycle) => self.give_up(owner, name, mode, Refusal::Deadlock(cycle)),
        };
        self.waits.lock().remove(&owner); // I2
        outcome.map(|()| before)
    }

    /// Takes the lock `name` for `owner` alone, unless it would have to wait. Returns whether it did. So `owner` is in no
    /// cycle of those who wait.
    pub(crate) fn try_acquire(&self, owner: Owner, name: &LockName) -> bool {
        let mut shard = self.shard(name).lock();
        let lock = self.lock_in(&mut shard, name);
        lock.is_ok_and(|lock| lock.try_take(owner, Mode::Exclusive))
    }

    /// The lock `name` in its shard. If it is new, nobody has it, and the caller takes it.
    fn lock_in<'s>(
        &self,
        shard: &'s mut HashMap<LockName, Lock>,
        name: &LockName,
    ) -> Result<&'s mut Lock, Refusal> {
        if !shard.contains_key(name) {
            if self.memory.bytes() >= LOCK_BYTES_MAX {
                return Err(Refusal::TooMany); // I1
            }
            self.memory.add(name.memory_bytes());
            shard.insert(name.clone(), Lock::default());
        }
        let Some(lock) = shard.get_mut(name) else {
            unreachable!("the lock is there or was inserted");
        };
        Ok(lock)
    }

    /// Notes that `owner` waits. Returns the cycle that this closes.
    fn begin_wait(&self, owner: Owner, name: &LockName) -> Option<Vec<LockName>> {
        let mut waits = self.waits.lock();
        waits.insert(owner, name.clone());
        let blockers = |of: Owner| match waits.get(&of) {
            Some(name) => self
                .with(name, |lock| lock.blockers(of))
                .unwrap_or_default(),
            None => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        let mut path = vec![(owner, blockers(owner))];
        while let Some((_, next)) = path.last_mut() {
            match next.pop() {
                None => drop(path.pop()),
                Some(next) if next == owner => {
                    let names = path.iter().filter_map(|(of, _)| waits.get(of));
                    return Some(names.cloned().collect());
                }
                Some(next) if seen.insert(next) => path.push((next, blockers(next))),
                Some(_) => {}
            }
        }
        None
    }

    /// Waits until `owner` has the lock.
    fn wait(
        &self,
        owner: Owner,
        name: &LockName,
        mode: Mode,
        changed: &Condvar,
        mut rest: impl FnMut() -> Result<Duration, Error>,
    ) -> Result<(), Refusal> {
        let mut shard = self.shard(name).lock();
        while shard.get(name).and_then(|lock| lock.mode_of(owner)) < Some(mode) {
            match rest() {
                Ok(rest) => shard = changed.wait_timeout(shard, rest),
                Err(error) => {
                    drop(shard);
                    return self.give_up(owner, name, mode, Refusal::Ended(error));
                }
            }
        }
        Ok(())
    }

    /// Ends the wait of `owner` with `refusal`, unless it has the lock by now.
    fn give_up(
        &self,
        owner: Owner,
        name: &LockName,
        mode: Mode,
        refusal: Refusal,
    ) -> Result<(), Refusal> {
        let has_lock = self.change(name, |lock| {
            lock.leave(owner);
            lock.mode_of(owner) >= Some(mode)
        });
        if has_lock == Some(true) {
            return Ok(());
        }
        Err(refusal)
    }

    /// Releases the lock `name` of `owner`.
    pub(crate) fn release(&self, owner: Owner, name: &LockName) {
        self.change(name, |lock| lock.release(owner));
    }

    /// Lets others share the lock `name`, which `owner` had alone.
    pub(crate) fn share(&self, owner: Owner, name: &LockName) {
        self.change(name, |lock| lock.share(owner));
    }

    /// Calls `look` with the lock `name`, if it exists.
    fn with<R>(&self, name: &LockName, look: impl FnOnce(&Lock) -> R) -> Option<R> {
        self.shard(name).lock().get(name).map(look)
    }

    /// Changes the lock `name`, if it exists, and removes it once it is free (I1).
    fn change<R>(&self, name: &LockName, change: impl FnOnce(&mut Lock) -> R) -> Option<R> {
        let mut shard = self.shard(name).lock();
        let lock = shard.get_mut(name)?;
        let outcome = change(lock);
        if lock.is_free() {
            shard.remove(name);
            self.memory.remove(name.memory_bytes());
            if shard.is_empty() && shard.capacity() > KEPT_CAPACITY {
                shard.shrink_to(KEPT_CAPACITY);
            }
        }
        Some(outcome)
    }

    /// The keys of `range` that have a lock, sorted.
    pub(crate) fn locked_in(&self, keyspace: KeyspaceId, range: &KeyRange) -> Vec<LockName> {
        let is_within = |name: &&LockName| {
            name.keyspace == keyspace
                && range.is_above_lower(&name.key)
                && range.is_below_upper(&name.key)
        };
        let mut names = Vec::new();
        for shard in &self.shards {
            names.extend(shard.lock().keys().filter(is_within).cloned());
        }
        names.sort_unstable();
        names
    }

    /// Takes the lock `name` for `owner` after a crash, when nobody has one that excludes it.
    pub(crate) fn restore(&self, owner: Owner, name: &LockName, mode: Mode) {
        let mut shard = self.shard(name).lock();
        let lock = shard.entry(name.clone()).or_insert_with(|| {
            self.memory.add(name.memory_bytes());
            Lock::default()
        });
        lock.try_take(owner, mode);
    }
}
