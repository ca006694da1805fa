//! One lock: who holds it, and who waits for it.
//!
//! It decides only; the [table](super) keeps it under the lock of a shard and lets threads wait.
//!
//! Invariants:
//! - I1: One owner holds the lock alone, or any number of owners share it.
//! - I2: The lock goes to those who wait in the order in which they came. Nobody passes them, except an owner that
//!   has the lock with others and wants it alone: the rest waits for it anyway.
//! - I3: Whoever waits cannot have the lock. Each change of the holders or of the queue passes the lock on.
//!
//! Concurrency: none of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::base::sync::Condvar;

/// Who takes locks: a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner(pub(super) u64);

/// How an owner holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Beside others that share it.
    Shared,
    /// Alone.
    Exclusive,
}

#[derive(Debug)]
struct Holder {
    owner: Owner,
    mode: Mode,
}

#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: Mode,
    /// Notified when the owner has the lock.
    changed: Arc<Condvar>,
}

/// A lock.
#[derive(Debug, Default)]
pub(super) struct Lock {
    holders: Vec<Holder>,
    queue: VecDeque<Waiter>,
}

impl Lock {
    /// How `owner` holds the lock.
    pub(super) fn mode_of(&self, owner: Owner) -> Option<Mode> {
        let holder = self.holders.iter().find(|it| it.owner == owner);
        holder.map(|it| it.mode)
    }

    /// Whether nobody holds the lock or waits for it.
    pub(super) fn is_free(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// Takes the lock for `owner` if nobody is in the way. Returns whether `owner` has it now.
    pub(super) fn try_take(&mut self, owner: Owner, mode: Mode) -> bool {
        let held = self.mode_of(owner);
        if held >= Some(mode) {
            return true;
        }
        let is_next = held.is_some() || self.queue.is_empty(); // I2
        is_next && self.take(owner, mode)
    }

    /// Takes the lock for `owner` if no other holder is in the way.
    fn take(&mut self, owner: Owner, mode: Mode) -> bool {
        let mut others = self.holders.iter().filter(|it| it.owner != owner);
        if others.any(|other| excludes(other.mode, mode)) {
            return false;
        }
        match self.holders.iter_mut().find(|it| it.owner == owner) {
            Some(holder) => holder.mode = holder.mode.max(mode),
            None => self.holders.push(Holder { owner, mode }),
        }
        true
    }

    /// Lets `owner` wait for the lock. The condition variable is notified when it has the lock.
    pub(super) fn wait_for(&mut self, owner: Owner, mode: Mode) -> Arc<Condvar> {
        let changed = Arc::new(Condvar::new());
        let waiter = Waiter {
            owner,
            mode,
            changed: Arc::clone(&changed),
        };
        if self.mode_of(owner).is_some() {
            let holds = |it: &Waiter| self.mode_of(it.owner).is_some();
            let behind = self.queue.iter().take_while(|it| holds(it)).count();
            self.queue.insert(behind, waiter); // I2
        } else {
            self.queue.push_back(waiter);
        }
        changed
    }

    /// `owner` no longer waits.
    pub(super) fn leave(&mut self, owner: Owner) {
        self.queue.retain(|it| it.owner != owner);
        self.pass_on();
    }

    /// `owner` no longer holds the lock.
    pub(super) fn release(&mut self, owner: Owner) {
        self.holders.retain(|it| it.owner != owner);
        self.pass_on();
    }

    /// `owner` no longer has the lock alone.
    pub(super) fn share(&mut self, owner: Owner) {
        for holder in self.holders.iter_mut().filter(|it| it.owner == owner) {
            holder.mode = Mode::Shared;
        }
        self.pass_on();
    }

    /// I3
    fn pass_on(&mut self) {
        while let Some(first) = self.queue.front() {
            let (owner, mode) = (first.owner, first.mode);
            if !self.take(owner, mode) {
                return;
            }
            if let Some(first) = self.queue.pop_front() {
                first.changed.notify_one();
            }
        }
    }

    /// Whom `owner` waits for: holders, and those before it in the queue. Nobody if it does not wait.
    pub(super) fn blockers(&self, owner: Owner) -> Vec<Owner> {
        let Some(position) = self.queue.iter().position(|it| it.owner == owner) else {
            return Vec::new();
        };
        let mode = self.queue[position].mode;
        let holders = self.holders.iter().map(|it| (it.owner, it.mode));
        let before = self.queue.range(..position).map(|it| (it.owner, it.mode));
        let others = holders.chain(before).filter(|other| other.0 != owner);
        others
            .filter(|other| excludes(other.1, mode))
            .map(|other| other.0)
            .collect()
    }
}

/// Whether two owners cannot hold one lock in these modes (I1).
pub(super) fn excludes(one: Mode, other: Mode) -> bool {
    one == Mode::Exclusive || other == Mode::Exclusive
}
