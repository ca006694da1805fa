//! The job that collects value logs of a keyspace: claims what the policy names, has a successor written,
//! and installs it.
//!
//! The index is not touched: one edit replaces the logs by the successor and by the tables that lead
//! pointers to it. Readers that hold an older version go on reading the logs.
//!
//! Invariants:
//! - I1: A log is collected once everything that ever pointed into it is in tables: what memtables and
//!   the write-ahead log point to stays where it is.
//! - I2: What died while the job ran is in lists that the edit does not take; it is dead in the successor,
//!   found through the tables.
//!
//! Concurrency: one collection per keyspace at a time; it runs beside everything else.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::compaction_job::garbage_records;
use super::tree_summary::summary;
use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result};
use crate::compact::garbage_collection::{GcResult, LISTS_MAX, Victim, collect};
use crate::engine::counters;
use crate::engine::keyspace::KeyspaceWork;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::manifest::{ManifestState, Record, Version};
use crate::policy::{self, VICTIMS_MAX};
use crate::value::DiscardList;

/// A collection that is claimed.
#[derive(Debug)]
pub(super) struct GcJob {
    /// Keeps the files from being removed.
    _version: Shared<Version>,
    victims: Vec<Victim>,
    /// What speaks of garbage values in the victims, or in what these were made of.
    lists: Vec<Arc<DiscardList>>,
}

impl GcJob {
    /// Gives the claim back; how it went decides which logs rest from `now` on, and how many go together
    /// next.
    pub(super) fn release(self, keyspace: &KeyspaceCore, outcome: &Result<()>, now: Duration) {
        let own = self.victims.iter().map(|victim| victim.file.number);
        let victims: Vec<FileNumber> = own.collect();
        let mut work = keyspace.work.lock();
        work.is_gc_running = false;
        match outcome {
            Ok(()) => {
                work.gc_backoffs.note_success(&victims);
                let before = work.victims_max.filter(|before| *before < VICTIMS_MAX);
                work.victims_max = before.map(|before| before * 2);
            }
            // Fewer need less room, and none of them is to blame.
            Err(error) if error.kind() == ErrorKind::NoSpace && victims.len() > 1 => {
                work.victims_max = Some(victims.len() / 2);
            }
            Err(_) => work.gc_backoffs.note_failure(&victims, now),
        }
        drop(work);
        if outcome.is_ok() {
            keyspace.gc_failure.forget();
        }
    }

    /// The value files and origins whose garbage values are left behind.
    fn taken(&self) -> BTreeSet<FileNumber> {
        let own = self.victims.iter().map(|victim| victim.file.number);
        let tables = self.victims.iter().flat_map(|victim| &victim.tables);
        own.chain(tables.map(|table| table.origin)).collect()
    }

    /// What is known of `victims`; `None` where one is gone.
    fn describe(
        version: Shared<Version>,
        state: &ManifestState,
        keyspace: KeyspaceId,
        victims: &[FileNumber],
    ) -> Option<Self> {
        let keyspace = state.keyspaces.get(&keyspace)?;
        let values = &keyspace.values;
        let victim = |number: &FileNumber| {
            let log = values.files.get(number)?;
            let tables = values.relocations.values().map(|relocated| relocated.table);
            log.is_collectable(keyspace.flushed).then(|| Victim {
                file: log.file,
                tables: tables.filter(|table| table.gc_output == *number).collect(),
            })
        };
        let mut job = Self {
            _version: version,
            victims: victims.iter().map(victim).collect::<Option<_>>()?,
            lists: Vec::new(),
        };
        let taken = job.taken();
        let speaks =
            |list: &&Arc<DiscardList>| taken.iter().any(|file| list.counts.contains_key(file));
        job.lists = values
            .discard_lists
            .values()
            .filter(speaks)
            .cloned()
            .collect();
        Some(job)
    }

    /// The records that put the successor in place of the victims; `None` where a victim has gone: it
    /// was live no more.
    fn records(
        &self,
        state: &ManifestState,
        keyspace: KeyspaceId,
        gc_result: &GcResult,
    ) -> Option<Vec<Record>> {
        let values = &state.keyspaces.get(&keyspace)?.values;
        let is_there = |victim: &Victim| values.files.contains_key(&victim.file.number);
        if !self.victims.iter().all(is_there) {
            return None;
        }
        let mut records = vec![Record::AddGcOutput {
            keyspace,
            file: gc_result.gc_output,
        }];
        let relocate = |&table| Record::Relocate { keyspace, table };
        records.extend(gc_result.tables.iter().map(relocate));
        let taken = self.taken();
        let is_gathered = self.merges_lists();
        for list in &self.lists {
            // The list, or what it says of an origin, may have gone with the last that was live.
            let Some(known) = values.discard_lists.get(&list.number) else {
                continue;
            };
            let files: Vec<FileNumber> = if is_gathered {
                known.counts.keys().copied().collect()
            } else {
                let taken = taken.iter().copied();
                taken.filter(|it| known.counts.contains_key(it)).collect()
            };
            if !files.is_empty() {
                records.push(Record::TakeDiscardList {
                    keyspace,
                    list: list.number,
                    files,
                });
            }
        }
        records.extend(garbage_records(keyspace, gc_result.merged_list.as_slice()));
        Some(records)
    }

    /// Whether what the lists say of other files goes to a new list.
    fn merges_lists(&self) -> bool {
        self.lists.len() > LISTS_MAX
    }
}

impl Engine {
    /// The next collection that the policy wants for `keyspace`, claimed. What rests at `now` is left
    /// alone.
    pub(super) fn claim_gc(&self, keyspace: &Arc<KeyspaceCore>, now: Duration) -> Option<GcJob> {
        let version = Shared::clone(&keyspace.state().version);
        if version.logs().is_empty() || keyspace.work.lock().is_gc_running {
            return None;
        }
        // Without the lock; what has gone meanwhile is no victim.
        let nothing = KeyspaceWork::default();
        let mut tree = summary(&version, &nothing);
        let mut work = keyspace.work.lock();
        if work.is_gc_running {
            return None;
        }
        let is_there = |number| version.logs().iter().any(|log| log.file.number == number);
        work.gc_backoffs.keep_only(is_there);
        work.gc_backoffs.annotate(&mut tree.logs, now);
        let at_most = work.victims_max.unwrap_or(VICTIMS_MAX);
        let victims = policy::victims(&tree, &keyspace.options(), at_most);
        drop(tree);
        if victims.is_empty() {
            return None;
        }
        work.is_gc_running = true;
        drop(work); // Edits take it under the catalog's lock.
        // What the state names now is kept by the version that is current then.
        let job = self.catalog.with_state(|state| {
            let version = Shared::clone(&keyspace.state().version);
            GcJob::describe(version, state, keyspace.id(), &victims)
        });
        if job.is_none() {
            keyspace.work.lock().is_gc_running = false;
        }
        job
    }

    /// A keyspace with a value log that the policy wants completed, or with full ones that no flush comes
    /// to complete, claimed as for a flush.
    pub(super) fn claim_seal(&self, now: Duration) -> Option<Arc<KeyspaceCore>> {
        let keyspaces = self.keyspaces.load();
        let wants = |keyspace: &&Arc<KeyspaceCore>| {
            let state = keyspace.state();
            let is_open = state.version.logs().iter().any(|log| log.is_open);
            // What waits is flushed, and completes what is full.
            if !is_open || !state.frozen.is_empty() {
                return false;
            }
            // Asked only while nobody writes values, which is done under the lock of the log.
            let has_full = state.active.is_empty() && keyspace.value_log.lock().full_count() > 0;
            let nothing = KeyspaceWork::default();
            let mut tree = summary(&state.version, &nothing);
            let mut work = keyspace.work.lock();
            if work.is_flushing {
                return false;
            }
            work.gc_backoffs.annotate(&mut tree.logs, now);
            work.is_flushing = has_full || policy::wants_seal(&tree, &keyspace.options());
            work.is_flushing
        };
        keyspaces.iter().find(wants).cloned()
    }

    /// Completes the full value logs of `keyspace`, or the one that is being written where none is: with
    /// the flush of what points there, or else at once.
    pub(super) fn seal_values(&self, keyspace: &Arc<KeyspaceCore>) -> Result<()> {
        // Which makes everything in the logs durable.
        let (full, is_flushed) = self.between_commits(|| {
            let mut log = keyspace.value_log.lock();
            if log.full_count() == 0 {
                log.retire();
            }
            Ok((log.full_count(), keyspace.state().active.is_empty()))
        })?;
        if !is_flushed {
            return self.rotate(std::slice::from_ref(keyspace));
        }
        // Only flushes take from the full logs, and none is running.
        self.catalog.commit_in(
            keyspace,
            |_| {
                let log = keyspace.value_log.lock();
                log.flush_records(keyspace.id(), full, None)
            },
            |state| {
                self.set_value_files(keyspace, state);
                keyspace.value_log.lock().note_sealed(full);
            },
        )
    }

    /// Has readers find the value files that `state` has.
    fn set_value_files(&self, keyspace: &KeyspaceCore, state: &ManifestState) {
        if let Some(manifest) = state.keyspaces.get(&keyspace.id()) {
            keyspace.set_value_files(manifest, &self.obsolete);
        }
    }

    /// Carries out a claimed collection.
    pub(super) fn collect(&self, keyspace: &Arc<KeyspaceCore>, job: &GcJob) -> Result<()> {
        let start = self.options.runtime.now();
        let wanted = || self.check_needed(keyspace);
        let (gc_result, pending) = collect(self, &wanted, &job.victims, &job.lists)?;
        let (bytes_read, garbage) = (gc_result.bytes_read, gc_result.garbage);
        let bytes_written = gc_result.gc_output.end;
        counters::add(&self.counters.gc_bytes_read, bytes_read);
        counters::add(&self.counters.gc_bytes_written, bytes_written);
        let is_needless = Cell::new(false);
        let records = |state: &ManifestState| {
            let records = job.records(state, keyspace.id(), &gc_result);
            is_needless.set(records.is_none());
            records.unwrap_or_default()
        };
        let install = |state: &ManifestState| {
            self.set_value_files(keyspace, state);
            if !is_needless.get() {
                self.remove_unneeded_lists(keyspace, state, gc_result.merged_list.as_slice());
            }
        };
        let edit = || {
            self.catalog.commit_in(keyspace, records, install)?;
            if is_needless.get() {
                let what = "a value log died while it was collected";
                return Err(Error::new(ErrorKind::NotFound, what));
            }
            Ok(())
        };
        match pending.commit(edit) {
            Err(_) if is_needless.get() => return Ok(()),
            outcome => outcome?,
        }
        counters::add(&self.counters.garbage_collections, 1);
        counters::add(&self.counters.gc_values_dropped, garbage);
        self.options
            .listener
            .tell(|| Event::GarbageCollectionEnded {
                keyspace: keyspace.name().to_owned(),
                files: job.victims.len(),
                bytes_read,
                bytes_written,
                values_dropped: garbage,
                duration: self.options.runtime.now().saturating_sub(start),
            });
        Ok(())
    }
}

#[cfg(test)]
mod cost;
#[cfg(test)]
mod tests;
