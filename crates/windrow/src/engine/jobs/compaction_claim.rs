//! The claim of a compaction: a plan of the policy, with its input files and its output range claimed.
//!
//! Concurrency: the plan is made and its inputs are claimed under the keyspace's `work` lock.

use std::sync::Arc;
use std::time::Duration;

use super::compaction_inputs::{Inputs, find, find_in};
use super::tree_summary::{VersionTree, summary};
use crate::base::sync::Shared;
use crate::base::{FileNumber, Result, SequenceNumber};
use crate::engine::KeyspaceCore;
use crate::engine::keyspace::KeyspaceWork;
use crate::manifest::FileHandle;
use crate::policy::{self, Claim, Compaction, Plan, ReadPoints};
use crate::read::visible::KeyRange;

/// A plan with its inputs claimed.
#[derive(Debug)]
pub(in crate::engine) enum CompactionJob {
    Resize {
        level_count: usize,
    },
    TrivialMove {
        level: usize,
        file: Shared<FileHandle>,
        claim: Claim<Box<[u8]>>,
    },
    Drop {
        level: usize,
        files: Vec<Shared<FileHandle>>,
    },
    Compact {
        inputs: Arc<Inputs>,
        claim: Claim<Box<[u8]>>,
    },
}

/// The outcome of a claim in a keyspace.
#[derive(Debug)]
pub(in crate::engine) enum Claimed {
    Job(CompactionJob),
    /// No job now; running jobs may block one.
    Later,
    Nothing,
}

impl CompactionJob {
    /// Claims the next job that the policy picks for `keyspace`, with these readers. No file that pauses at `now` is part
    /// of it.
    pub(super) fn claim(
        keyspace: &KeyspaceCore,
        now: Duration,
        readers: &ReadPoints,
    ) -> Option<Self> {
        let entries = keyspace.state().active.entries();
        keyspace.work.lock().note_entries(entries, now);
        let claimed = Self::claim_plan(keyspace, None, |tree, work, _| {
            let cursors: Vec<Option<&[u8]>> = work
                .cursors
                .iter()
                .map(|cursor| cursor.as_deref())
                .collect();
            let tree = tree.pausing_at(now).read_at(readers);
            let tree = tree.idle_for(work.idle_time(now));
            policy::plan(&tree, &keyspace.options(), &cursors)
        });
        match claimed {
            Claimed::Job(job) => Some(job),
            Claimed::Later | Claimed::Nothing => None,
        }
    }

    /// Claims the next job that compacts `range` down, for entries up to `through`, or that rewrites a file of the
    /// deepest level. `before` is above the numbers of the files that existed at the call.
    pub(in crate::engine) fn claim_range(
        keyspace: &KeyspaceCore,
        range: &KeyRange,
        before: FileNumber,
        through: SequenceNumber,
        readers: &ReadPoints,
    ) -> Claimed {
        Self::claim_plan(keyspace, Some(range), |tree, _, range| {
            let (smallest, largest) = range.map(KeyRange::ends).unwrap_or_default();
            let options = keyspace.options();
            let wanted = policy::ManualCompaction {
                smallest: smallest.as_ref(),
                largest: largest.as_ref(),
                before,
                through,
                rewrites_all: keyspace.can_fold() || keyspace.compaction_filter().is_some(),
            };
            policy::plan_range(&tree.read_at(readers), &options, &wanted)
        })
    }

    fn claim_plan(
        keyspace: &KeyspaceCore,
        range: Option<&KeyRange>,
        plan: impl for<'a> Fn(VersionTree<'a>, &'a KeyspaceWork, Option<&'a KeyRange>) -> Plan<&'a [u8]>,
    ) -> Claimed {
        let mut work = keyspace.work.lock();
        if work.is_resizing {
            return Claimed::Later;
        }
        let version = Shared::clone(&keyspace.state().version);
        let next = plan(summary(&version, &work), &work, range);
        let own = |claim: &Claim<&[u8]>| claim.map(|key| Box::from(*key));
        let job = match next {
            Plan::Idle => {
                // Running jobs may block a job. Only a caller that wants a range needs to know.
                let alone = KeyspaceWork {
                    level_count: work.level_count,
                    ..KeyspaceWork::default()
                };
                let is_done = || {
                    let next = plan(summary(&version, &alone), &alone, range);
                    matches!(next, Plan::Idle)
                };
                return if range.is_none() || work.claims.is_empty() || is_done() {
                    Claimed::Nothing
                } else {
                    Claimed::Later
                };
            }
            Plan::Resize { level_count } => Self::Resize { level_count },
            Plan::TrivialMove {
                level,
                upper,
                claim,
            } => Self::TrivialMove {
                level,
                file: find(&version, level, &[upper], &claim).swap_remove(0),
                claim: own(&claim),
            },
            Plan::Drop { level, files } => Self::Drop {
                files: find_in(&version, level, &files),
                level,
            },
            Plan::Compact(Compaction {
                level,
                upper,
                lower,
                targets,
                claim,
                purpose,
            }) => Self::Compact {
                inputs: Arc::new(Inputs {
                    work: KeyspaceWork {
                        level_count: work.level_count,
                        ..KeyspaceWork::default()
                    },
                    level,
                    upper: find(&version, level, &upper, &claim),
                    lower: find(&version, claim.level, &lower, &claim),
                    targets: find(&version, claim.level, &targets, &claim),
                    version: Shared::clone(&version),
                    purpose,
                }),
                claim: own(&claim),
            },
        };
        job.take(&mut work);
        Claimed::Job(job)
    }

    /// The files that the job reads or appends to.
    fn files(&self) -> Vec<&Shared<FileHandle>> {
        match self {
            Self::Resize { .. } => Vec::new(),
            Self::TrivialMove { file, .. } => vec![file],
            Self::Drop { files, .. } => files.iter().collect(),
            Self::Compact { inputs, .. } => inputs.files().chain(&inputs.targets).collect(),
        }
    }

    fn numbers(&self) -> Vec<FileNumber> {
        let files = self.files().into_iter();
        files.map(|file| file.meta.number).collect()
    }

    fn take(&self, work: &mut KeyspaceWork) {
        for file in self.files() {
            let other = work.busy.insert(file.meta.number, Shared::clone(file));
            assert!(other.is_none(), "a file has two jobs at a time");
        }
        match self {
            Self::Resize { .. } => work.is_resizing = true,
            // Nothing is written, and busy files keep others away.
            Self::Drop { .. } => {}
            Self::TrivialMove { level, claim, .. } => work.note_claim(*level, claim),
            Self::Compact { inputs, claim } => work.note_claim(inputs.level, claim),
        }
    }

    /// The files that the job moves down.
    fn uppers(&self) -> Vec<FileNumber> {
        match self {
            Self::Resize { .. } => Vec::new(),
            Self::Drop { .. } => self.numbers(),
            Self::TrivialMove { file, .. } => vec![file.meta.number],
            Self::Compact { inputs, .. } => {
                let upper = inputs.upper.iter();
                upper.map(|file| file.meta.number).collect()
            }
        }
    }

    /// Releases the claims. The outcome decides which files pause from `now` on.
    pub(in crate::engine) fn release(
        &self,
        keyspace: &KeyspaceCore,
        outcome: &Result<()>,
        now: Duration,
    ) {
        let mut work = keyspace.work.lock();
        match outcome {
            Ok(()) => work.backoffs.note_success(&self.numbers()),
            Err(error) => work.backoffs.note_failure(&self.uppers(), error, now),
        }
        for number in self.numbers() {
            work.busy.remove(&number);
        }
        match self {
            Self::Resize { .. } => work.is_resizing = false,
            Self::Drop { .. } => {}
            Self::TrivialMove { claim, .. } | Self::Compact { claim, .. } => work.drop_claim(claim),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
