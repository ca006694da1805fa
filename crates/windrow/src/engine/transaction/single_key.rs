//! Changes of one key that depend on its value.
//!
//! A change reads the newest value without a snapshot, and commits one entry on the condition that the key has no newer
//! one. The condition names the memtable that was active at the read. While that memtable is active, it has every entry
//! that was committed since, so the leader of the commits looks there alone. After a rotation the change reads again.
//!
//! The condition does not look at the clock. So a value that expires between the read and the commit counts as alive.
//!
//! A change that has lost several times takes the lock of the key, so that the writers of a hot key come one after the
//! other instead of in random order. The condition alone decides what is right. So a change that cannot have the lock
//! in time goes on without it.
//!
//! Concurrency: any thread. A lock of a key may be held while the caller computes the value.

use std::sync::Arc;

use super::locks::TransactionLocks;
use super::retry::{TRIES_AT_ONCE, TRIES_MAX};
use crate::base::{ErrorKind, Kind, Result};
use crate::engine::commit::condition::Condition;
use crate::engine::locks::Mode;
use crate::engine::{Engine, KeyspaceCore, Lifetime, Write};
use crate::options::{self, Durability};

/// What becomes of a key.
#[derive(Debug)]
pub(crate) enum Change<V> {
    /// It stays as it is. Nothing is written.
    Keep,
    /// It gets this value.
    Put(V),
    /// It is removed.
    Remove,
}

impl Engine {
    /// Changes `key` as `decide` says of its present value, in one step. A new value lives for `lifetime`. `decide` is
    /// called again if the key changes in the meantime. Returns the value before and the change.
    ///
    /// # Errors
    /// As those of a read and of [`commit`](Self::commit); the error of `decide`; `InvalidArgument` for a value that is too
    /// long; `Conflict` after [`TRIES_MAX`] tries.
    pub(crate) fn change<V: AsRef<[u8]>>(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        key: &[u8],
        durability: Durability,
        lifetime: Lifetime,
        mut decide: impl FnMut(Option<&[u8]>) -> Change<V>,
    ) -> Result<(Option<Vec<u8>>, Change<V>)> {
        let mut value = Vec::new();
        let mut tries = 0;
        let mut lock = None;
        loop {
            let read = self.get_newest(keyspace, key, &mut value)?;
            let change = decide(read.is_found.then_some(&value[..]));
            let stored;
            let (kind, new) = match &change {
                Change::Keep => return Ok((read.is_found.then_some(value), change)),
                Change::Put(new) => {
                    options::check_value(new.as_ref())?;
                    stored = self.stored(keyspace, new.as_ref(), lifetime)?;
                    (stored.kind, &stored.bytes[..])
                }
                Change::Remove => (Kind::Tombstone, &[][..]),
            };
            let write = Write::One {
                keyspace,
                kind,
                key,
                value: new,
            };
            let condition = Condition {
                since: read.since,
                reads: None,
                covers_writes: true,
                active: Some(read.active),
                owner: None,
            };
            tries += 1;
            match self.commit_on(condition, &write, durability) {
                Ok(()) => return Ok((read.is_found.then_some(value), change)),
                Err(error) if error.kind() == ErrorKind::Conflict && tries < TRIES_MAX => {
                    if tries == TRIES_AT_ONCE {
                        lock = self.lock_in_time(keyspace, key);
                    }
                    if lock.is_none() {
                        self.wait_to_retry(tries);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The lock of `key`, if it is free in time.
    #[cold]
    fn lock_in_time(&self, keyspace: &Arc<KeyspaceCore>, key: &[u8]) -> Option<TransactionLocks> {
        let mut lock = TransactionLocks::new(&self.locks, self.options.lock_timeout);
        let taken = lock.take(self, keyspace, key, Mode::Exclusive);
        taken.is_ok().then_some(lock)
    }
}
