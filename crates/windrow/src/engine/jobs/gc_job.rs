//! The garbage collection of value logs: it claims the victims that the policy picks, writes their live
//! values to a GC output, and installs it.
//!
//! Tables do not change. One edit replaces the logs by the GC output and by relocation tables, which resolve old
//! pointers. Readers of an older version still read the old logs.
//!
//! If a job of several logs has no space, the next one takes half as many. After success the number doubles
//! again.
//!
//! Invariants:
//! - I1: A log is collected only after every entry that ever pointed into it is in tables. Values that
//!   memtables and the write-ahead log refer to stay in place.
//! - I2: Garbage that appears while the job runs is in discard lists that the edit keeps. Through the
//!   relocation tables it counts as garbage in the GC output.
//!
//! Concurrency: one garbage collection per keyspace at a time, concurrently with everything else.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::context::garbage_records;
use super::tree_summary::summary;
use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result};
use crate::compact::garbage_collection::{GcResult, LISTS_MAX, Victim, collect};
use crate::engine::counters;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::manifest::{ManifestState, Record, Version};
use crate::policy::{self, VICTIMS_MAX};
use crate::value::DiscardList;

/// A claimed garbage collection.
#[derive(Debug)]
pub(super) struct GcJob {
    /// Keeps the files on disk.
    _version: Shared<Version>,
    victims: Vec<Victim>,
    /// The discard lists for the victims, and for the origins of their relocation tables.
    lists: Vec<Arc<DiscardList>>,
}

impl GcJob {
    /// Releases the claim. The outcome decides which logs pause from `now` on, and how many the next job
    /// takes together.
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
            // Fewer logs need less space, and none of them is the cause.
            Err(error) if error.kind() == ErrorKind::NoSpace && victims.len() > 1 => {
                work.victims_max = Some(victims.len() / 2);
            }
            Err(error) => work.gc_backoffs.note_failure(&victims, error, now),
        }
        drop(work);
        if outcome.is_ok() {
            keyspace.gc_failure.forget();
        }
    }

    /// The value files and origins whose garbage is dropped.
    fn taken(&self) -> BTreeSet<FileNumber> {
        let own = self.victims.iter().map(|victim| victim.file.number);
        let tables = self.victims.iter().flat_map(|victim| &victim.tables);
        own.chain(tables.map(|table| table.origin)).collect()
    }

    /// Describes `victims`; `None` if one no longer exists.
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
            log.is_collectable(keyspace.settled).then(|| Victim {
                file: log.file,
                tables: values.relocations_to(*number).copied().collect(),
                live: log.live(),
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

    /// The records that replace the victims by the GC output; `None` if a victim no longer exists, since it
    /// had no live values.
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
        let is_rewritten = self.rewrites_lists();
        for list in &self.lists {
            // The list, or its part about an origin, may have gone with the last live value.
            let Some(known) = values.discard_lists.get(&list.number) else {
                continue;
            };
            let files: Vec<FileNumber> = if is_rewritten {
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

    /// Whether the parts of the lists about other files go to a new list.
    fn rewrites_lists(&self) -> bool {
        self.lists.len() > LISTS_MAX
    }
}

impl Engine {
    /// Claims the garbage collection that the policy picks for `keyspace`, except what pauses at `now`.
    pub(super) fn claim_gc(&self, keyspace: &Arc<KeyspaceCore>, now: Duration) -> Option<GcJob> {
        let version = Shared::clone(&keyspace.state().version);
        if version.value_sums().logs.logs == 0 {
            return None;
        }
        let mut work = keyspace.work.lock();
        if work.is_gc_running {
            return None;
        }
        let is_there = |number| version.values().log(number).is_some();
        work.gc_backoffs.keep_only(is_there);
        // A file that has gone meanwhile is no victim.
        let tree = summary(&version, &work).resting_at(now);
        let at_most = work.victims_max.unwrap_or(VICTIMS_MAX);
        let victims = policy::victims(&tree, &keyspace.options(), at_most);
        drop(tree);
        if victims.is_empty() {
            return None;
        }
        work.is_gc_running = true;
        drop(work); // Edits take it under the catalog's lock.
        // The current version keeps every file that the state names.
        let job = self.catalog.with_state(|state| {
            let version = Shared::clone(&keyspace.state().version);
            GcJob::describe(version, state, keyspace.id(), &victims)
        });
        if job.is_none() {
            keyspace.work.lock().is_gc_running = false;
        }
        job
    }

    /// Claims the flush slot of a keyspace whose value log the policy wants sealed, or whose full logs no
    /// flush will seal.
    pub(super) fn claim_seal(&self, now: Duration) -> Option<Arc<KeyspaceCore>> {
        if self.is_unlogged() {
            // Commits write no value logs.
            return None;
        }
        let keyspaces = self.keyspaces.load();
        let wants = |keyspace: &&Arc<KeyspaceCore>| {
            let state = keyspace.state();
            let is_open = state.version.value_sums().logs.has_open;
            // A flush of the frozen memtable seals the full logs.
            if !is_open || !state.frozen.is_empty() {
                return false;
            }
            // Only if no writer writes values, which needs the lock of the log.
            let has_full = state.active.is_empty() && keyspace.value_log.lock().full_count() > 0;
            let mut work = keyspace.work.lock();
            if work.is_flushing {
                return false;
            }
            let tree = summary(&state.version, &work).resting_at(now);
            let is_due = has_full || policy::wants_seal(&tree, &keyspace.options());
            drop(tree);
            work.is_flushing = is_due;
            is_due
        };
        keyspaces.iter().find(wants).cloned()
    }

    /// Seals the full value logs of `keyspace`, or the active one if none is full: with the flush of the
    /// entries that point there, or else at once.
    pub(super) fn seal_values(&self, keyspace: &Arc<KeyspaceCore>) -> Result<()> {
        // This syncs all logs.
        let (full, is_flushed) = self.between_commits(|_| {
            let mut log = keyspace.value_log.lock();
            if log.full_count() == 0 {
                log.retire();
            }
            Ok((log.full_count(), keyspace.state().active.is_empty()))
        })?;
        if !is_flushed {
            return self.rotate(std::slice::from_ref(keyspace)).map(drop);
        }
        // Only flushes remove full logs, and none is running.
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

    /// Gives readers the value files of `state`.
    pub(in crate::engine) fn set_value_files(
        &self,
        keyspace: &KeyspaceCore,
        state: &ManifestState,
    ) {
        if let Some(manifest) = state.keyspaces.get(&keyspace.id()) {
            keyspace.set_value_files(manifest, &self.obsolete);
        }
    }

    /// Runs a claimed garbage collection.
    pub(super) fn collect(&self, keyspace: &Arc<KeyspaceCore>, job: &GcJob) -> Result<()> {
        let start = self.options.runtime.now();
        let ends = job.victims.iter().map(|victim| victim.file.end);
        let began = Event::GarbageCollectionBegan {
            keyspace: keyspace.name().to_string(),
            files: job.victims.len(),
            bytes: ends.fold(0, u64::saturating_add),
        };
        let _job = self.observer.begin_job(start, began);
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
                let what = "a value log lost its last live value while it was collected";
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
        self.observer.notify(|| Event::GarbageCollectionEnded {
            keyspace: keyspace.name().to_string(),
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
