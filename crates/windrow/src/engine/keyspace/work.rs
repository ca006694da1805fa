//! The work of jobs in a keyspace: the files, key ranges and value logs that they have claimed.
//!
//! Concurrency: behind the lock `work` of the keyspace, which is held for decisions only.

use std::collections::BTreeSet;

use crate::base::FileNumber;
use crate::engine::errors::failure::Backoffs;
use crate::policy::Claim;

/// What jobs are doing with a keyspace.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceWork {
    pub(crate) is_flushing: bool,
    pub(crate) busy: BTreeSet<FileNumber>,
    pub(crate) claims: Vec<Claim<Box<[u8]>>>,
    /// Whether value logs are being collected: one collection at a time.
    pub(crate) is_gc_running: bool,
    /// Whether the number of levels is being changed, while no other plan is made.
    pub(crate) is_resizing: bool,
    /// The nominal number of levels.
    pub(crate) level_count: usize,
    /// What levels may hold beyond their capacities, indexed by level.
    pub(crate) allowed: Vec<u64>,
    /// Files whose merges have failed.
    pub(in crate::engine) backoffs: Backoffs,
    /// Value logs whose collections have failed.
    pub(in crate::engine) gc_backoffs: Backoffs,
    /// How many value logs the next collection takes at most, after one for which there was no room.
    pub(in crate::engine) victims_max: Option<usize>,
    /// Where the next merge of each level goes on.
    pub(crate) cursors: Vec<Option<Box<[u8]>>>,
}

impl KeyspaceWork {
    /// Keeps other jobs out of what a job that takes from `level` will write.
    pub(crate) fn note_claim(&mut self, level: usize, claim: &Claim<Box<[u8]>>) {
        self.cursors[level] = Some(claim.largest.clone());
        self.claims.push(claim.clone());
    }

    pub(crate) fn drop_claim(&mut self, claim: &Claim<Box<[u8]>>) {
        let position = self.claims.iter().position(|other| other == claim);
        assert!(position.is_some(), "a claim is given back once");
        self.claims.swap_remove(position.unwrap_or_default());
    }
}
