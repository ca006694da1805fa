//! The commit of what a compaction filter, or a read that has folded operands, has proposed.
//!
//! A proposal is a write in place of a version that was judged or folded. It takes the path of a transaction that has
//! read the key: under a snapshot, the version must still be the newest one of its key, and the leader of the commits
//! refuses the write if the key has changed since, or if a prepared transaction holds it. So nothing depends on when the
//! filter was asked, or the key read.
//!
//! Invariants:
//! - I1: A proposal waits for no lock and no stall, because those may wait for the compaction that makes it, which keeps
//!   its claims meanwhile. What would wait is dropped; a later compaction asks the filter again, and a later read folds
//!   again.
//! - I2: A batch is tried at most [`BATCH_TRIES_MAX`] times. After a conflict all of its keys are looked at anew, so the work
//!   does not grow with the number of those that have changed.
//!
//! Concurrency: the thread of a job, which holds no lock of the engine. It waits for its turn in the commit queue: no
//! leader waits for a compaction, nor for a job without claims.

use std::slice;
use std::sync::Arc;

use crate::base::{ErrorKind, Held, Kind, MemoryTracker, Proposal, Result, SequenceNumber};
use crate::compact::judge::{JudgeContext, JudgeCounts};
use crate::engine::commit::condition::Condition;
use crate::engine::locks::{LockName, LockTable, Owner};
use crate::engine::{Engine, KeyspaceCore, Write, counters};
use crate::log::batch;
use crate::read::newer::newest;

/// How often a batch of proposals is tried while other writers change its keys.
const BATCH_TRIES_MAX: usize = 3;

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

/// The engine for the filter of a keyspace.
pub(in crate::engine) struct Filtering<'a> {
    engine: &'a Engine,
    keyspace: &'a Arc<KeyspaceCore>,
}

impl<'a> Filtering<'a> {
    pub(in crate::engine) fn new(engine: &'a Engine, keyspace: &'a Arc<KeyspaceCore>) -> Self {
        Self { engine, keyspace }
    }
}

impl JudgeContext for Filtering<'_> {
    /// Commits those of `proposals` whose judged value is the newest version of its key, and drops the others. Drops all
    /// if the commit would have to wait, or fails.
    fn commit(&self, proposals: Vec<Proposal>) -> JudgeCounts {
        let proposed = proposals.len();
        // What has failed is dropped: no promise rests on it, and the next write of a caller reports the reason.
        let committed = self.engine.commit_current(self.keyspace, proposals);
        let committed = committed.unwrap_or_default();
        let is_removal = |proposal: &&Proposal| proposal.kind == Kind::Tombstone;
        let removed = committed.iter().filter(is_removal).count();
        JudgeCounts {
            removed: removed as u64,
            replaced: (committed.len() - removed) as u64,
            dropped: (proposed - committed.len()) as u64,
            ..JudgeCounts::default()
        }
    }

    fn count(&self, counts: JudgeCounts) {
        let counters = &self.engine.counters;
        counters::add(&counters.entries_judged, counts.judged);
        counters::add(&counters.judged_removed, counts.removed);
        counters::add(&counters.judged_replaced, counts.replaced);
        counters::add(&counters.judged_dropped, counts.dropped);
        counters::add(&counters.judged_failed, counts.failed);
    }

    fn memory(&self) -> &Arc<MemoryTracker> {
        &self.engine.memory.tables.jobs
    }
}

impl Engine {
    /// Commits those that still hold. Returns them.
    pub(in crate::engine) fn commit_current(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        mut proposals: Vec<Proposal>,
    ) -> Result<Vec<Proposal>> {
        let mut locks = KeyLocks::new(&self.locks);
        proposals.retain(|it| locks.try_take(LockName::new(keyspace.id(), &it.key))); // I1
        for _ in 0..BATCH_TRIES_MAX {
            self.drop_held(keyspace, &mut proposals);
            let snapshot = self.hold_snapshot();
            let since = snapshot.at().sequence;
            proposals = self.current(keyspace, proposals, since)?;
            if proposals.is_empty() {
                break;
            }
            let condition = Condition {
                since,
                covers_writes: true,
                ..Condition::default()
            };
            match self.commit_proposed(condition, keyspace, &proposals) {
                Ok(true) => return Ok(proposals),
                Ok(false) => break,                                     // I1
                Err(error) if error.kind() == ErrorKind::Conflict => {} // I2
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    /// Drops those whose keys prepared transactions hold.
    fn drop_held(&self, keyspace: &KeyspaceCore, proposals: &mut Vec<Proposal>) {
        if self.holds.is_any() {
            let id = keyspace.id();
            proposals.retain(|it| self.holds.forbids_key(id, &it.key, None).is_none());
        }
    }

    /// Those whose version is still the newest one of its key at `sequence`, which the caller holds.
    fn current(
        &self,
        keyspace: &KeyspaceCore,
        proposals: Vec<Proposal>,
        sequence: SequenceNumber,
    ) -> Result<Vec<Proposal>> {
        // Loaded after the snapshot was taken, it has everything up to there.
        let state = keyspace.state_full();
        let mut current = Vec::with_capacity(proposals.len());
        for proposal in proposals {
            let found = newest(&state, &self.tables, &proposal.key, sequence)?;
            if found.is_some_and(|found| found.sequence() == proposal.replaced) {
                current.push(proposal);
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
        let _counted = Held::new(&self.memory.tables.jobs, entries.capacity() as u64);
        let write = Write::Batch {
            entries: &entries,
            count: u32::try_from(proposals.len()).unwrap_or(u32::MAX),
            longest,
            keyspaces: slice::from_ref(keyspace),
        };
        self.commit_without_stall(condition, &write)
    }
}
