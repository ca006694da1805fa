//! A large merge that several threads carry out, each a range of keys at a time.
//!
//! Whoever claimed the merge leads it: it works on parts itself, and workers that look for a job find
//! the others. When all are done the leader installs the results in one edit, as if there had been
//! one part. A part that fails ends the merge; what the others have written is removed.
//!
//! Invariants:
//! - I1: Each part is taken once, and the leader goes on only when no part is running.
//! - I2: The files of all parts are removed unless the one edit names them.
//!
//! Concurrency: `progress` is held to take and to return parts only.

use std::sync::Arc;
use std::time::Duration;

use super::compaction_inputs::Inputs;
use crate::base::sync::Mutex;
use crate::base::{Error, ErrorKind, Result};
use crate::compact::merge::{Merged, Part};
use crate::compact::output::{Created, Trace, Written};
use crate::engine::{Engine, KeyspaceCore};
use crate::policy::{Claim, ReadPoints};
use crate::table::FileMeta;
use crate::value::{DiscardList, ValueFileMeta};

/// A leader that waits for parts looks again after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A merge in parts.
#[derive(Debug)]
pub(in crate::engine) struct Subcompactions {
    keyspace: Arc<KeyspaceCore>,
    inputs: Arc<Inputs>,
    claim: Claim<Box<[u8]>>,
    readers: ReadPoints,
    /// Where each part but the last ends and the next begins, ascending.
    ends: Vec<Box<[u8]>>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The next part that nobody has taken.
    next: usize,
    running: usize,
    written: Vec<PartWritten>,
    failed: Option<Error>,
}

/// What a part has written.
#[derive(Debug)]
struct PartWritten {
    part: usize,
    tables: Vec<FileMeta>,
    grown: Vec<FileMeta>,
    transient_logs: Vec<ValueFileMeta>,
    garbage: Vec<DiscardList>,
    created: Vec<Trace>,
    entries: u64,
    transient_log_bytes_read: u64,
}

/// A part on loan to the thread that carries it out.
#[derive(Debug)]
pub(super) struct Taken {
    split: Arc<Subcompactions>,
    part: usize,
    is_returned: bool,
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

    /// The next part, unless all are taken or one has failed.
    pub(super) fn take(self: &Arc<Self>) -> Option<Taken> {
        let mut progress = self.progress.lock();
        if progress.failed.is_some() || progress.next > self.ends.len() {
            return None;
        }
        let part = progress.next;
        progress.next += 1;
        progress.running += 1;
        Some(Taken {
            split: Arc::clone(self),
            part,
            is_returned: false,
        })
    }

    fn range(&self, part: usize) -> Part<'_> {
        let end = |part: usize| self.ends.get(part).map(|end| &**end);
        Part {
            from: part.checked_sub(1).and_then(end),
            to: end(part),
        }
    }

    fn is_running(&self) -> bool {
        self.progress.lock().running > 0
    }
}

impl Taken {
    fn give_back(&mut self, outcome: Result<Merged<'_>>) {
        self.is_returned = true;
        let mut progress = self.split.progress.lock();
        progress.running -= 1;
        match outcome {
            Ok(merged) => progress.written.push(PartWritten {
                part: self.part,
                tables: merged.written.tables,
                grown: merged.written.grown,
                transient_logs: merged.written.transient_logs,
                garbage: merged.written.garbage,
                created: merged.written.created.release(),
                entries: merged.entries,
                transient_log_bytes_read: merged.transient_log_bytes_read,
            }),
            Err(error) => {
                progress.failed.get_or_insert(error);
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.is_returned {
            let what = "a part of a merge panicked";
            self.give_back(Err(Error::new(ErrorKind::Poisoned, what)));
        }
    }
}

/// Keeps a split where workers find it.
struct Offer<'a> {
    engine: &'a Engine,
    split: Arc<Subcompactions>,
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        let mut splits = self.engine.background.splits.lock();
        splits.retain(|split| !Arc::ptr_eq(split, &self.split));
    }
}

impl Engine {
    /// Carries out `split`, with the help of whoever has time.
    pub(super) fn lead_split(&self, split: Arc<Subcompactions>) -> Result<Merged<'_>> {
        self.background.splits.lock().push(Arc::clone(&split));
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
        let files = parts.iter().flat_map(|part| &part.created).copied();
        let mut written = Written {
            tables: Vec::new(),
            grown: Vec::new(),
            transient_logs: Vec::new(),
            garbage: Vec::new(),
            created: Created::adopt(self, files.collect()), // I2
        };
        if let Some(error) = failed {
            return Err(error);
        }
        let entries = parts.iter().map(|part| part.entries).sum();
        let transient_log_bytes_read = parts.iter().map(|part| part.transient_log_bytes_read).sum();
        for part in parts {
            written.tables.extend(part.tables);
            written.grown.extend(part.grown);
            written.transient_logs.extend(part.transient_logs);
            written.garbage.extend(part.garbage);
        }
        Ok(Merged {
            written,
            entries,
            transient_log_bytes_read,
        })
    }

    /// Carries out a part; its leader hears how it went.
    pub(super) fn run_subcompaction(&self, mut part: Taken) {
        let split = Arc::clone(&part.split);
        let range = split.range(part.part);
        let outcome = self.rewrite(
            &split.keyspace,
            &split.inputs,
            &split.claim,
            range,
            &split.readers,
        );
        part.give_back(outcome);
    }

    /// A part of a merge that is under way.
    pub(super) fn take_subcompaction(&self) -> Option<Taken> {
        let splits = self.background.splits.lock();
        splits.iter().find_map(Subcompactions::take)
    }
}
