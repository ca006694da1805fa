//! The commit of what a compaction filter has proposed.
//!
//! A proposal is a write in place of a value that was judged. It takes the path of a transaction that has read the key:
//! under a snapshot, the value must still be the newest version of its key, and the leader of the commits refuses the
//! write if the key has changed since, or if a prepared transaction holds it. So nothing depends on when the filter was
//! asked.
//!
//! Invariants:
//! - I1: A proposal waits for no lock and no stall, because those may wait for the compaction that makes it, which keeps
//!   its claims meanwhile. What would wait is dropped; a later compaction asks the filter again.
//!
//! Concurrency: the thread of a compaction, which holds no lock of the engine. It waits for its turn in the commit queue:
//! no leader waits for a compaction.

use std::slice;
use std::sync::Arc;

use crate::base::{ErrorKind, Kind, Result};
use crate::compact::judge::{JudgeCounts, Proposal};
use crate::engine::commit::condition::Condition;
use crate::engine::locks::{LockName, LockTable, Owner};
use crate::engine::{Engine, KeyspaceCore, Write, counters};
use crate::log::batch;
use crate::read::newer::newest;

/// The locks of the keys of proposals. A drop releases them.
struct KeyLocks<'a> {
    table: &'a LockTable,
    owner: Owner,
    names: Vec<LockName>,
}

impl<'a> KeyLocks<'a> {
    fn new(table: &'a LockTable) -> Self {
        Self {
            table,
            owner: table.new_owner(),
            names: Vec::new(),
        }
    }

    /// Takes a lock if nobody has it. Returns whether it did.
    fn try_take(&mut self, name: LockName) -> bool {
        let is_taken = self.table.try_acquire(self.owner, &name);
        if is_taken {
            self.names.push(name);
        }
        is_taken
    }
}

impl Drop for KeyLocks<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.table.release(self.owner, name);
        }
    }
}

impl Engine {
    /// Commits those of `proposals` whose judged value is the newest version of its key, and drops the others. Drops all
    /// if the commit would have to wait, or fails.
    pub(in crate::engine) fn commit_proposals(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        proposals: Vec<Proposal>,
    ) -> JudgeCounts {
        let proposed = proposals.len();
        // What has failed is dropped: no promise rests on it, and the next write of a caller reports the reason.
        let committed = self.commit_current(keyspace, proposals).unwrap_or_default();
        let is_removal = |proposal: &&Proposal| proposal.kind == Kind::Tombstone;
        let removed = committed.iter().filter(is_removal).count();
        let counts = JudgeCounts {
            removed: removed as u64,
            replaced: (committed.len() - removed) as u64,
            dropped: (proposed - committed.len()) as u64,
            ..JudgeCounts::default()
        };
        counters::add(&self.counters.judged_removed, counts.removed);
        counters::add(&self.counters.judged_replaced, counts.replaced);
        counters::add(&self.counters.judged_dropped, counts.dropped);
        counts
    }

    /// Commits those that still hold. Returns them.
    fn commit_current(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        mut proposals: Vec<Proposal>,
    ) -> Result<Vec<Proposal>> {
        let mut locks = KeyLocks::new(&self.locks);
        proposals.retain(|it| locks.try_take(LockName::new(keyspace.id(), &it.key))); // I1
        let snapshot = self.hold_snapshot();
        // Loaded later, it has everything up to the snapshot.
        let state = keyspace.state_full();
        let mut current = Vec::with_capacity(proposals.len());
        for proposal in proposals {
            let found = newest(&state, &self.tables, &proposal.key, snapshot.at().sequence)?;
            if found.is_some_and(|found| found.sequence() == proposal.judged) {
                current.push(proposal);
            }
        }
        drop(state);
        while !current.is_empty() {
            let condition = Condition {
                since: snapshot.at().sequence,
                covers_writes: true,
                ..Condition::default()
            };
            match self.commit_proposed(condition, keyspace, &current) {
                Ok(true) => break,
                Ok(false) => return Ok(Vec::new()), // I1
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let before = current.len();
                    let key = error.conflict().map(|(_, key)| key);
                    current.retain(|it| Some(&*it.key) != key);
                    if current.len() == before {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(current)
    }

    /// Commits `proposals` as one batch. Returns false if that would have to wait.
    ///
    /// # Errors
    /// `Conflict` that names the key of one that does not hold; others of a commit.
    fn commit_proposed(
        &self,
        condition: Condition,
        keyspace: &Arc<KeyspaceCore>,
        proposals: &[Proposal],
    ) -> Result<bool> {
        let mut entries = Vec::new();
        let mut longest = 0;
        for Proposal {
            key, kind, stored, ..
        } in proposals
        {
            batch::put_entry(&mut entries, keyspace.id(), *kind, key, stored);
            longest = longest.max(key.len() + stored.len());
        }
        let write = Write::Batch {
            entries: &entries,
            count: u32::try_from(proposals.len()).unwrap_or(u32::MAX),
            longest,
            keyspaces: slice::from_ref(keyspace),
        };
        self.commit_without_stall(condition, &write)
    }
}
