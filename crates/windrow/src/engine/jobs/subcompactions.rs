//! Subcompactions: several threads carry out a large compaction, one key range at a time.
//!
//! The thread that has claimed the compaction leads it. It works on subcompactions, and workers that
//! look for a job take the others. After all have finished, the leader installs the results in one
//! edit. If one fails, the compaction fails, and the files of all others are removed.
//!
//! Invariants:
//! - I1: Each subcompaction is taken once. The leader continues only when none is running.
//! - I2: The files of all subcompactions are removed unless the one edit names them.
//!
//! Concurrency: a thread holds `progress` only to take or finish a subcompaction.

use std::sync::Arc;
use std::time::Duration;

use super::compaction_inputs::Inputs;
use crate::base::sync::Mutex;
use crate::base::{Error, ErrorKind, Result};
use crate::compact::fold::FoldCounts;
use crate::compact::judge::JudgeCounts;
use crate::compact::merge::{Expired, MergeResult, SubcompactionRange};
use crate::compact::output::OutputFiles;
use crate::compact::pending_files::{PendingFile, PendingFiles};
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::ReferenceChanges;
use crate::policy::{Claim, ReadPoints};
use crate::table::FileMeta;
use crate::value::{DiscardList, ValueFileMeta};

/// A leader checks again after this time whether a subcompaction still runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The subcompactions of one compaction.
#[derive(Debug)]
pub(in crate::engine) struct Subcompactions {
    keyspace: Arc<KeyspaceCore>,
    inputs: Arc<Inputs>,
    claim: Claim<Box<[u8]>>,
    readers: ReadPoints,
    /// The first key of each range after the first, ascending.
    ends: Vec<Box<[u8]>>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The next range that no thread has taken.
    next: usize,
    running: usize,
    written: Vec<PartWritten>,
    failed: Option<Error>,
}

/// The output of a subcompaction.
#[derive(Debug)]
struct PartWritten {
    part: usize,
    tables: Vec<FileMeta>,
    grown: Vec<FileMeta>,
    transient_logs: Vec<ValueFileMeta>,
    value_logs: Vec<ValueFileMeta>,
    discard_lists: Vec<DiscardList>,
    log_references: ReferenceChanges,
    pending: Vec<PendingFile>,
    entries: u64,
    transient_log_bytes_read: u64,
    folds: FoldCounts,
    expired: Expired,
    judged: JudgeCounts,
}

/// A subcompaction that a thread has taken.
#[derive(Debug)]
pub(super) struct Subcompaction {
    split: Arc<Subcompactions>,
    part: usize,
    is_finished: bool,
}

impl Subcompactions {
    pub(super) fn new(
        keyspace: Arc<KeyspaceCore>,
        inputs: Arc<Inputs>,
        claim: Claim<Box<[u8]>>,
        readers: ReadPoints,
        ends: Vec<Box<[u8]>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            keyspace,
            inputs,
            claim,
            readers,
            ends,
            progress: Mutex::default(),
        })
    }

    /// Takes the next subcompaction, unless all are taken or one has failed.
    pub(super) fn take(self: &Arc<Self>) -> Option<Subcompaction> {
        let mut progress = self.progress.lock();
        if progress.failed.is_some() || progress.next > self.ends.len() {
            return None;
        }
        let part = progress.next;
        progress.next += 1;
        progress.running += 1;
        Some(Subcompaction {
            split: Arc::clone(self),
            part,
            is_finished: false,
        })
    }

    fn range(&self, part: usize) -> SubcompactionRange<'_> {
        let end = |part: usize| self.ends.get(part).map(|end| &**end);
        SubcompactionRange {
            from: part.checked_sub(1).and_then(end),
            to: end(part),
        }
    }

    fn is_running(&self) -> bool {
        self.progress.lock().running > 0
    }
}

impl Subcompaction {
    fn finish(&mut self, outcome: Result<MergeResult<'_>>) {
        self.is_finished = true;
        let mut progress = self.split.progress.lock();
        progress.running -= 1;
        match outcome {
            Ok(merged) => progress.written.push(PartWritten {
                part: self.part,
                tables: merged.written.tables,
                grown: merged.written.grown,
                transient_logs: merged.written.transient_logs,
                value_logs: merged.written.value_logs,
                discard_lists: merged.written.discard_lists,
                log_references: merged.written.log_references,
                pending: merged.written.pending.release(),
                entries: merged.entries,
                transient_log_bytes_read: merged.transient_log_bytes_read,
                folds: merged.folds,
                expired: merged.expired,
                judged: merged.judged,
            }),
            Err(error) => {
                progress.failed.get_or_insert(error);
            }
        }
    }
}

impl Drop for Subcompaction {
    fn drop(&mut self) {
        if !self.is_finished {
            let what = "a subcompaction panicked";
            self.finish(Err(Error::new(ErrorKind::Poisoned, what)));
        }
    }
}

/// Offers subcompactions to workers until it is dropped.
struct Offer<'a> {
    engine: &'a Engine,
    split: Arc<Subcompactions>,
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        let mut offered = self.engine.background.offered_subcompactions.lock();
        offered.retain(|split| !Arc::ptr_eq(split, &self.split));
    }
}

impl Engine {
    /// Carries out all subcompactions of `split`, together with free workers.
    pub(super) fn run_subcompactions(&self, split: Arc<Subcompactions>) -> Result<MergeResult<'_>> {
        self.background
            .offered_subcompactions
            .lock()
            .push(Arc::clone(&split));
        let offer = Offer {
            engine: self,
            split,
        };
        let split = &offer.split;
        self.signal.notify();
        while let Some(part) = split.take() {
            self.run_subcompaction(part);
        }
        loop {
            let generation = self.signal.generation();
            if !split.is_running() {
                break; // I1
            }
            self.signal.wait_after(generation, POLL_INTERVAL);
        }
        let mut progress = split.progress.lock();
        let mut parts = std::mem::take(&mut progress.written);
        let failed = progress.failed.take();
        drop(progress);
        parts.sort_by_key(|part| part.part);
        let files = parts.iter().flat_map(|part| &part.pending).copied();
        let mut written = OutputFiles {
            tables: Vec::new(),
            grown: Vec::new(),
            transient_logs: Vec::new(),
            value_logs: Vec::new(),
            discard_lists: Vec::new(),
            log_references: ReferenceChanges::default(),
            pending: PendingFiles::adopt(self, files.collect()), // I2
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let entries = parts.iter().map(|part| part.entries).sum();
        let transient_log_bytes_read = parts.iter().map(|part| part.transient_log_bytes_read).sum();
        let expired = parts.iter().map(|part| part.expired);
        let expired = expired.fold(Expired::default(), Expired::and);
        let mut folds = FoldCounts::default();
        let mut judged = JudgeCounts::default();
        for part in parts {
            folds.add(part.folds);
            judged.add(part.judged);
            written.value_logs.extend(part.value_logs);
            written.tables.extend(part.tables);
            written.grown.extend(part.grown);
            written.transient_logs.extend(part.transient_logs);
            written.discard_lists.extend(part.discard_lists);
            written.log_references.append(&part.log_references);
        }
        Ok(MergeResult {
            written,
            entries,
            transient_log_bytes_read,
            folds,
            expired,
            judged,
        })
    }

    /// Carries out a subcompaction; its leader gets the outcome.
    pub(super) fn run_subcompaction(&self, mut part: Subcompaction) {
        let split = Arc::clone(&part.split);
        let range = split.range(part.part);
        let outcome = self.rewrite(
            &split.keyspace,
            &split.inputs,
            &split.claim,
            range,
            &split.readers,
        );
        part.finish(outcome);
    }

    /// Takes a subcompaction of any running compaction.
    pub(super) fn take_subcompaction(&self) -> Option<Subcompaction> {
        let offered = self.background.offered_subcompactions.lock();
        offered.iter().find_map(Subcompactions::take)
    }
}
