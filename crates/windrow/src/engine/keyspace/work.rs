//! The claims of jobs in a keyspace: files, key ranges and value logs.
//!
//! Concurrency: guarded by `work` of the keyspace. A thread holds that lock for decisions only.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::FileNumber;
use crate::base::sync::Shared;
use crate::engine::errors::failure::Backoffs;
use crate::manifest::FileHandle;
use crate::policy::Claim;

/// What jobs are doing in a keyspace.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceWork {
    pub(crate) is_flushing: bool,
    /// The files that jobs read or append to.
    pub(crate) busy: BTreeMap<FileNumber, Shared<FileHandle>>,
    pub(crate) claims: Vec<Claim<Box<[u8]>>>,
    /// Whether a garbage collection runs; there is at most one.
    pub(crate) is_gc_running: bool,
    /// Whether a job changes the number of levels. No other job plans meanwhile.
    pub(crate) is_resizing: bool,
    /// The nominal number of levels.
    pub(crate) level_count: usize,
    /// The bytes that each level may hold even if its capacity is less.
    pub(crate) allowed: Vec<u64>,
    /// The files of failed compactions.
    pub(in crate::engine) backoffs: Backoffs,
    /// The value logs of failed garbage collections.
    pub(in crate::engine) gc_backoffs: Backoffs,
    /// The most value logs that the next garbage collection takes, after one that had no space.
    pub(in crate::engine) victims_max: Option<usize>,
    /// The entries of the active memtable when a look at them last found another number, and the time of that look.
    pub(crate) last_growth: (u64, Duration),
    /// Where the next compaction of each level begins.
    pub(crate) cursors: Vec<Option<Box<[u8]>>>,
}

impl KeyspaceWork {
    /// Looks at the number of entries of the active memtable at `now`.
    pub(crate) fn note_entries(&mut self, entries: u64, now: Duration) {
        if self.last_growth.0 != entries {
            self.last_growth = (entries, now);
        }
    }

    /// How long there were no writes at `now`, at least.
    pub(crate) fn idle_time(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_growth.1)
    }

    /// Excludes other jobs from the output range of a job that takes files of `level`.
    pub(crate) fn note_claim(&mut self, level: usize, claim: &Claim<Box<[u8]>>) {
        self.cursors[level] = Some(claim.largest.clone());
        self.claims.push(claim.clone());
    }

    pub(crate) fn drop_claim(&mut self, claim: &Claim<Box<[u8]>>) {
        let position = self.claims.iter().position(|other| other == claim);
        assert!(position.is_some(), "a claim is released twice");
        self.claims.swap_remove(position.unwrap_or_default());
    }
}
