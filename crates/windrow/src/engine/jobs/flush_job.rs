//! The flush: it writes the oldest frozen memtable to a table of level 0.
//!
//! It drops versions that no reader can see, and lists their values in value logs as garbage. It keeps tombstones that
//! no newer version supersedes. Medium values go to a transient log ([`placement`](crate::policy)), or stay in the
//! table.
//!
//! The flush syncs the whole log before it commits the edit that names the table. Without the sync, a
//! power failure could keep one keyspace's half of a batch in the table and lose the other half in the
//! log.
//!
//! Concurrency: one flush per keyspace at a time, oldest memtable first.

use std::sync::Arc;

use super::context::{garbage_records, table_options, value_log_records};
use crate::base::sync::Shared;
use crate::base::sync::atomic::Ordering;
use crate::base::{Cause, Cursor as _, Error, ErrorKind, FileNumber, Result, SequenceNumber};
use crate::compact::fold::Folder;
use crate::compact::job::IoPriority;
use crate::compact::merge::{SubcompactionRange, Treatment, check_entries, merge};
use crate::compact::output::{Output, OutputFiles};
use crate::compact::ranges::JobRanges;
use crate::compact::unsorted_values::write_ahead;
use crate::compact::values::Values;
use crate::engine::counters;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::manifest::names::FileName;
use crate::manifest::{Level, ManifestState, Record, Version};
use crate::memtable::{Memtable, MemtableCursor};
use crate::options::{KeyspaceOptions, MediumOrder};
use crate::policy;
use crate::read::state::FrozenMemtable;
use crate::table::FileMeta;
use crate::value::ValueFileMeta;

impl Engine {
    /// Writes `oldest`, the oldest frozen memtable of `keyspace`, to a table of level 0.
    pub(in crate::engine) fn flush(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        oldest: &FrozenMemtable,
    ) -> Result<()> {
        let start = self.options.runtime.now();
        let began = Event::FlushBegan {
            keyspace: keyspace.name().to_string(),
            entries: oldest.memtable.entries(),
        };
        let _job = self.observer.begin_job(start, began);
        let options = keyspace.options();
        let units = keyspace.flush_filter_units(&oldest.memtable)?;
        // A close needs the flush, too, so it does not cancel one.
        let wanted = || keyspace.check_exists();
        let table_options = table_options(&options, units);
        let stay = mediums_stay(keyspace, oldest, &options)?;
        let version = Shared::clone(&keyspace.state().version);
        let values = Values::of_flush(version.values(), Shared::clone(&options), stay);
        let operator = keyspace.operator();
        // The version names every value log that the entries point to.
        let folder = Folder::new(
            &operator,
            self.value_reader(&version),
            &self.memory.tables.jobs,
        );
        let mut output = Output::new(
            self,
            &wanted,
            IoPriority::Flush,
            (keyspace.id(), table_options),
            values,
            None,
        )
        .above(&version, 0);
        let readers = self.read_points();
        let ranges = flushed_ranges(&oldest.memtable, &version)?;
        if options.medium_order == MediumOrder::Written && !stay {
            let input = MemtableCursor::new(&oldest.memtable);
            write_ahead(input, &mut output, &readers, &ranges)?;
        }
        let flushed = merge(
            MemtableCursor::new(&oldest.memtable),
            SubcompactionRange::default(),
            output,
            Treatment {
                readers: &readers,
                folder,
                judge: None,
            },
            ranges,
            // Any deeper run may hold older versions.
            |_, _| true,
        )?;
        check_entries(flushed.entries, oldest.memtable.entries())?;
        check_age(
            &flushed.written.tables,
            &keyspace.state().version.levels()[0],
        )?;
        drop(version);
        let (folds, expired) = (flushed.folds, flushed.expired);
        // The flush syncs the logs that are full now, so it can seal them.
        let full = keyspace.value_log.lock().full_count();
        self.sync_logs()?;
        let OutputFiles {
            tables: files,
            grown: _,
            transient_logs,
            value_logs,
            discard_lists: garbage,
            log_references,
            pending,
        } = flushed.written;
        let references = Record::count_references(keyspace.id(), &log_references);
        let bytes: u64 = files.iter().map(FileMeta::bytes).sum();
        let lengths = |logs: &[ValueFileMeta]| logs.iter().map(|log| log.length).sum::<u64>();
        let transient_log_bytes = lengths(&transient_logs);
        let value_log_bytes = lengths(&value_logs);
        let written: u64 = files.iter().map(FileMeta::entries).sum();
        let first_needed = pending.commit(|| {
            self.catalog.commit_in(
                keyspace,
                |state| {
                    let value_log = keyspace.value_log.lock();
                    let (id, at) = (keyspace.id(), oldest.value_log);
                    let mut records = value_log.flush_records(id, full, at);
                    drop(value_log);
                    records.extend(value_log_records(id, &value_logs));
                    records.extend(self.flush_records(
                        keyspace,
                        oldest.through,
                        &transient_logs,
                        &files,
                        state,
                    ));
                    records.extend(garbage_records(id, &garbage));
                    records.extend(references);
                    records.extend(expired.record());
                    records
                },
                |state| {
                    let adds = self.handles(0, &files);
                    // Before the version is installed: a thread that waits for the flush may read the counter.
                    counters::add(&self.counters.flush_bytes, bytes);
                    counters::add(
                        &self.counters.transient_log_bytes_written,
                        transient_log_bytes,
                    );
                    counters::add(&self.counters.value_log_bytes, value_log_bytes);
                    counters::add(&self.counters.flushes, 1);
                    self.count_folds(folds);
                    counters::add(&self.counters.entries_expired, expired.entries);
                    keyspace.count(
                        0,
                        [
                            (Cause::Flush, bytes),
                            (Cause::TransientLog, transient_log_bytes),
                        ],
                    );
                    keyspace.install_flush(self.next_version(keyspace, state, &adds, &[]));
                    keyspace.value_log.lock().note_sealed(full);
                    self.remove_unneeded_lists(keyspace, state, &garbage);
                    state.logs.first().copied()
                },
            )
        })?;
        self.allocate_filters(keyspace, written);
        self.remove_logs_before(first_needed);
        self.observer.notify(|| Event::FlushEnded {
            keyspace: keyspace.name().to_string(),
            entries: oldest.memtable.entries(),
            entries_dropped: oldest.memtable.entries() - written,
            bytes_written: bytes + transient_log_bytes + value_log_bytes,
            duration: self.options.runtime.now().saturating_sub(start),
        });
        Ok(())
    }

    /// Drops logs that nothing pins, if no flush is due that would drop them.
    pub(in crate::engine) fn drop_logs(&self) -> Result<()> {
        // A log that is kept has to be durable. A flush has seen to that.
        if self
            .catalog
            .with_state(|state| state.changes.held_from())
            .is_some()
        {
            self.sync_logs()?;
        }
        let first_needed = self.catalog.commit(
            |state| {
                // First: visible entries are in memtables, and later entries are newer.
                let through = self.visible.load(Ordering::Acquire);
                let Some(first) = self.first_needed_log(None, through, state) else {
                    return Vec::new();
                };
                // The logs may hold entries of dropped keyspaces, which are in no table. This record keeps
                // their sequence numbers from being used again.
                let used = Record::Used {
                    keyspace: state.last_keyspace,
                    sequence: state.last_sequence().max(self.chain.last_before(first)),
                };
                let mut records = self.oldest_log_records(first, state);
                records.insert(0, used);
                records
            },
            |state| state.logs.first().copied(),
        )?;
        self.remove_logs_before(first_needed);
        self.refresh_shared_throttle();
        Ok(())
    }

    fn remove_logs_before(&self, first_needed: Option<FileNumber>) {
        if let Some(first) = first_needed {
            let dropped = self.chain.drop_before(first);
            for &number in dropped.iter().filter(|&&log| !self.is_kept(log)) {
                self.remove_file(FileName::Wal(number));
            }
            if !dropped.is_empty() {
                // What was kept now may be too much. If this fails, the next flush tries again.
                drop(self.bound_consumers());
            }
        }
    }

    fn flush_records(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        through: SequenceNumber,
        transient_logs: &[ValueFileMeta],
        flushed: &[FileMeta],
        state: &ManifestState,
    ) -> Vec<Record> {
        let transient_log = |file: &ValueFileMeta| Record::AddTransientLog {
            keyspace: keyspace.id(),
            file: *file,
        };
        let table = |file: &FileMeta| Record::AddFile {
            keyspace: keyspace.id(),
            level: 0,
            file: Arc::new(file.clone()),
        };
        let transient_logs = transient_logs.iter().map(transient_log);
        let mut records: Vec<Record> = transient_logs.chain(flushed.iter().map(table)).collect();
        records.push(Record::Flushed {
            keyspace: keyspace.id(),
            sequence: through,
        });
        let synced = self
            .chain
            .durable_position()
            .filter(|synced| Some(*synced) > state.log_synced);
        records.extend(synced.map(|(number, offset)| Record::LogSynced { number, offset }));
        if let Some(first) = self.first_needed_log(Some(keyspace), through, state) {
            records.extend(self.oldest_log_records(first, state));
        }
        records
    }

    /// The first log that is needed after `keyspace`, if any, is flushed up to `through`, if that frees
    /// any log. All entries up to `through` are in memtables or tables.
    fn first_needed_log(
        &self,
        keyspace: Option<&Arc<KeyspaceCore>>,
        through: SequenceNumber,
        state: &ManifestState,
    ) -> Option<FileNumber> {
        let unflushed = self
            .keyspaces
            .load()
            .iter()
            .filter_map(|other| {
                if keyspace.is_some_and(|keyspace| Arc::ptr_eq(other, keyspace)) {
                    return Some(through + 1);
                }
                let flushed = state
                    .keyspaces
                    .get(&other.id())
                    .map_or(0, |state| state.flushed);
                other.unflushed(flushed)
            })
            .min()
            .unwrap_or(u64::MAX)
            .min(through + 1);
        let first = self.chain.first_needed(unflushed)?;
        state
            .logs
            .first()
            .is_some_and(|oldest| *oldest < first)
            .then_some(first)
    }
}

/// The range tombstones of `memtable`, the oldest one above `version`. They are older than whatever these two do not hold,
/// so they need not reach beyond the keys that these do.
fn flushed_ranges(memtable: &Memtable, version: &Version) -> Result<JobRanges> {
    if !memtable.has_ranges() {
        return Ok(JobRanges::default());
    }
    let mut last = MemtableCursor::new(memtable);
    last.seek_to_last()?;
    let own = last.is_valid().then(|| last.key());
    let levels = version.levels().iter();
    let largest = levels.filter_map(|level| level.largest()).chain(own).max();
    let limit = largest.unwrap_or_default();
    Ok(JobRanges::new(memtable.ranges(), None, limit))
}

/// Checks that no table of level 0 has keys and sequence numbers between those of the `flushed` tables. One that somebody has made may
/// have newer entries than the write-ahead log beside it.
///
/// # Errors
/// `Corruption`.
fn check_age(flushed: &[FileMeta], level: &Level) -> Result<()> {
    for own in flushed {
        let (smallest, largest) = own.range();
        let mut others = level.files().filter(|other| {
            other.smallest() <= largest
                && smallest <= other.largest()
                && other.meta.sequence_min() <= own.sequence_max()
                && own.sequence_min() <= other.meta.sequence_max()
        });
        if let Some(other) = others.next() {
            let what = format!(
                "table file {} has entries that are as new as those of the write-ahead log",
                other.meta.number
            );
            return Err(Error::new(ErrorKind::Corruption, what));
        }
    }
    Ok(())
}

/// Whether a flush of `oldest` keeps medium values in the table.
fn mediums_stay(
    keyspace: &KeyspaceCore,
    oldest: &FrozenMemtable,
    options: &KeyspaceOptions,
) -> Result<bool> {
    let mut smallest = MemtableCursor::new(&oldest.memtable);
    smallest.seek_to_first()?;
    let mut largest = smallest.sibling();
    largest.seek_to_last()?;
    if !smallest.is_valid() {
        return Ok(false);
    }
    let version = Shared::clone(&keyspace.state().version);
    let own = (smallest.key(), largest.key());
    // Of a level, one file that overlaps the keys, or any file if none does.
    let one = |level: &'_ Shared<Level>| level.overlapping(own.0, own.1).next().unwrap_or(0);
    let deeper = version.levels().iter().skip(1);
    let deeper = deeper.filter_map(|level| level.file(one(level)));
    let files = version.levels()[0].files().chain(deeper);
    let ranges = files.map(|file| (file.smallest(), file.largest()));
    Ok(policy::mediums_stay(ranges, own, options))
}
