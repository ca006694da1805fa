//! The compaction filter of a keyspace in a compaction.
//!
//! The judge asks the filter and notes what it decides; the entry is written as it was. A decision is a *proposal*: the
//! engine commits it as a write with a sequence number of its own, if the value that was judged is still the newest one
//! of its key.
//!
//! Invariants:
//! - I1: Proposals take at most [`PROPOSED_BYTES_MAX`], and those of one entry more. Then they are handed over while the
//!   compaction runs. They are counted among the buffers of jobs.
//! - I2: Whatever ends the compaction, the engine counts what was judged once: when the judge is dropped.
//! - I3: A filter that fails, or whose value cannot be read, stops no job and changes nothing.
//!
//! Concurrency: owned by one thread of a compaction.

use std::mem;
use std::sync::Arc;

use crate::base::expiry::{put_expiring, split_expiring};
use crate::base::{Held, Kind, MemoryTracker, Proposal, Trailer};
use crate::compaction_filter::{Candidate, CompactionFilter, Content, Decision, judge};
use crate::read::value_reader::ValueReader;
use crate::value::ValuePointer;

/// The bytes of proposals that are handed over together.
const PROPOSED_BYTES_MAX: usize = 256 << 10;

/// What became of judged entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JudgeCounts {
    pub(crate) judged: u64,
    pub(crate) removed: u64,
    pub(crate) replaced: u64,
    /// Proposals that were not committed.
    pub(crate) dropped: u64,
    /// Calls of the filter that failed.
    pub(crate) failed: u64,
}

impl JudgeCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.judged += other.judged;
        self.removed += other.removed;
        self.replaced += other.replaced;
        self.dropped += other.dropped;
        self.failed += other.failed;
    }
}

/// What a judge needs of the engine.
pub(crate) trait JudgeContext {
    /// Commits those proposals that still hold, and returns what became of all.
    fn commit(&self, proposals: Vec<Proposal>) -> JudgeCounts;

    /// Counts what became of judged entries.
    fn count(&self, counts: JudgeCounts);

    /// Counts the memory of proposals.
    fn memory(&self) -> &Arc<MemoryTracker>;
}

/// A filter and what it needs.
pub(crate) struct Judge<'a> {
    filter: &'a dyn CompactionFilter,
    /// Whether it judges values in other files.
    reads_values_apart: bool,
    values: ValueReader<'a>,
    context: &'a dyn JudgeContext,
    proposals: Vec<Proposal>,
    proposed_bytes: usize,
    memory: Held,
    counts: JudgeCounts,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        filter: &'a dyn CompactionFilter,
        reads_values_apart: bool,
        values: ValueReader<'a>,
        context: &'a dyn JudgeContext,
    ) -> Self {
        Self {
            filter,
            reads_values_apart,
            values,
            context,
            proposals: Vec::new(),
            proposed_bytes: 0,
            memory: Held::new(context.memory(), 0),
            counts: JudgeCounts::default(),
        }
    }

    /// Asks the filter about the value `stored` by the entry `trailer` of `key`, if it is one.
    pub(super) fn offer(&mut self, key: &[u8], trailer: Trailer, stored: &[u8]) {
        let (expiry, stored) = if trailer.is_expiring() {
            let (expiry, stored) = split_expiring(stored);
            (Some(expiry), stored)
        } else {
            (None, stored)
        };
        let values = self.values;
        let read = || values.read(key, stored).map(|value| value.to_vec());
        let content = match trailer.kind().lasting() {
            Kind::Value => Content::InPlace(stored),
            Kind::TransientPointer | Kind::ValueLogPointer if self.reads_values_apart => {
                let Ok(pointer) = ValuePointer::decode(stored) else {
                    return; // Whoever follows the pointer reports the damage.
                };
                Content::Apart(pointer.value_bytes, &read)
            }
            _ => return,
        };
        self.counts.judged += 1;
        let decided = judge(self.filter, &Candidate::new(key, content, expiry));
        let (kind, stored) = match (decided, expiry) {
            (None, _) => {
                self.counts.failed += 1; // I3
                return;
            }
            (Some(Decision::Keep), _) => return,
            (Some(Decision::Remove), _) => (Kind::Tombstone, Vec::new()),
            (Some(Decision::Replace(value)), None) => (Kind::Value, value),
            (Some(Decision::Replace(value)), Some(expiry)) => {
                let mut stored = Vec::new();
                put_expiring(&mut stored, expiry, &value);
                (Kind::ExpiringValue, stored)
            }
        };
        self.proposed_bytes += Proposal::bytes_of(key, &stored);
        self.proposals.push(Proposal {
            key: key.into(),
            replaced: trailer.sequence(),
            kind,
            stored,
        });
        self.memory.set(self.proposed_bytes as u64);
        if self.proposed_bytes >= PROPOSED_BYTES_MAX {
            self.hand_over(); // I1
        }
    }

    fn hand_over(&mut self) {
        let committed = self.context.commit(mem::take(&mut self.proposals));
        self.counts.add(committed);
        self.proposed_bytes = 0;
        self.memory.set(0);
    }

    /// Hands over the last proposals. Returns what became of all.
    pub(crate) fn finish(mut self) -> JudgeCounts {
        if !self.proposals.is_empty() {
            self.hand_over();
        }
        self.counts
    }
}

impl Drop for Judge<'_> {
    fn drop(&mut self) {
        self.context.count(self.counts); // I2
    }
}
