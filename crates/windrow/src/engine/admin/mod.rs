//! The calls of an operator: keyspaces, flushes, manual compactions, checkpoints, backups, checks, statistics.
//!
//! A call that waits for background work takes part in it: it runs jobs itself, and sleeps only while
//! all remaining jobs run on other threads. So such calls also work without threads. A flush runs no compactions.
//!
//! The files: [`keyspaces`], [`stats`], their [`metrics`] and the text of these for [`prometheus`], [`value_files`], [`verify`](self::verify), [`checkpoint`](self::checkpoint) and
//! [`backup`](self::backup) on top of [`held_files`].
//!
//! Concurrency: any thread may make any call.

mod backup;
pub(super) mod checkpoint;
mod held_files;
mod keyspaces;
pub(super) mod metrics;
mod prometheus;
pub(super) mod range_estimate;
pub(super) mod stats;
pub(super) mod value_files;
pub(super) mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Shared;
use crate::base::sync::atomic::Ordering;
use crate::base::{Error, FileNumber, LevelIoStats, Result};
use crate::engine::jobs::compaction_claim::{Claimed, CompactionJob};
use crate::engine::jobs::tree_summary::summary;
use crate::engine::jobs::{Wanted, filters};
use crate::engine::keyspace::ANSWERED_BY_MEMTABLES;
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::KeyspaceState;
use crate::options::KeyspaceOptions;
use crate::policy::bounded_capacities;
use crate::read::visible::KeyRange;
use crate::table::Measure;
pub(super) use keyspaces::is_hidden;
use stats::{KeyspaceStats, LevelStats, Stats};
use value_files::value_stats;

/// A waiting caller checks again after this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    /// Flushes every memtable that holds entries now.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.check_writable()?;
        let keyspaces = self.keyspaces.load_full();
        self.rotate(&keyspaces)?;
        // The memtables frozen by now. Concurrent writers may freeze more at any time.
        let newest = |keyspace: &Arc<KeyspaceCore>| {
            let frozen = &keyspace.state().frozen;
            frozen.first().map(|newest| newest.through)
        };
        let frozen: Vec<_> = keyspaces.iter().map(newest).collect();
        let is_flushed = || {
            keyspaces.iter().zip(&frozen).all(|(keyspace, newest)| {
                let state = keyspace.state();
                let oldest = state.frozen.last().map(|oldest| oldest.through);
                oldest.is_none() || oldest > *newest || keyspace.is_dropped()
            })
        };
        // A compaction may take long, and calls a filter, which may need a lock that the caller has.
        self.work_until(Wanted::Short, is_flushed, |failures| {
            self.background.failure.check_since(failures)
        })
    }

    /// Runs jobs until none is due and none is running.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.check_open()?;
        if self.is_read_only() {
            return Ok(());
        }
        if self.signal.runs_here() {
            let message =
                "a job of a database cannot wait for the end of all jobs: another thread must";
            return Err(Error::invalid_argument(message));
        }
        self.work_until(
            Wanted::All,
            || false,
            |failures| self.check_failures_since(failures),
        )
    }

    /// Runs jobs that are `wanted` until `is_done`, or until none of them is due and no job is running.
    ///
    /// # Errors
    /// The error of `check`, which gets the number of jobs that had failed before; `Closed`; `Poisoned`.
    fn work_until(
        &self,
        wanted: Wanted,
        is_done: impl Fn() -> bool,
        check: impl Fn(u64) -> Result<()>,
    ) -> Result<()> {
        let failures = self.failures();
        self.retry_failed_jobs();
        loop {
            let generation = self.signal.generation();
            if is_done() {
                return Ok(());
            }
            check(failures)?;
            if self.run_job(wanted) {
                continue;
            }
            self.check_writable()?;
            if self.signal.wait_until_quiet(generation, POLL_INTERVAL) {
                return Ok(());
            }
        }
    }

    /// Compacts everything that `range` holds now down to the deepest level with data. Rewrites those files of that
    /// level once more that hold tombstones, several segments, pointers to values that belong in place, or perhaps
    /// operands; all of them if the keyspace has a compaction filter.
    pub(crate) fn compact_range(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        range: &KeyRange,
    ) -> Result<()> {
        keyspace.check_exists()?;
        self.flush_all()?;
        let before = FileNumber(self.catalog.allocate()?);
        let through = self.visible.load(Ordering::Acquire);
        loop {
            let generation = self.signal.generation();
            self.check_writable()?;
            keyspace.check_exists()?;
            let Some(running) = self.signal.begin_job() else {
                continue;
            };
            let claimed = self.poison_on_panic(|| {
                let readers = self.read_points();
                let claimed =
                    CompactionJob::claim_range(keyspace, range, before, through, &readers);
                let Claimed::Job(job) = &claimed else {
                    return Ok(claimed);
                };
                let outcome = self.compact(keyspace, job);
                job.release(keyspace, &outcome, self.options.runtime.now());
                keyspace.refresh_throttle();
                outcome.map(|()| claimed)
            })?;
            if matches!(claimed, Claimed::Job(_)) {
                continue;
            }
            running.end_unchanged();
            if matches!(claimed, Claimed::Nothing) {
                return Ok(());
            }
            if !self.run_job(Wanted::All) {
                self.signal.wait_after(generation, POLL_INTERVAL);
            }
        }
    }

    /// The counters and the current state of the database.
    pub(crate) fn stats(&self) -> Stats {
        let values = self.values.reads();
        let mut stats = Stats {
            transient_log_reads: values.transient_log_reads,
            value_log_reads: values.value_log_reads,
            values_prefetched: values.values_prefetched,
            sequence: self.visible.load(Ordering::Acquire),
            memory: self.memory(),
            lifetime: self.catalog.lifetime(),
            prepared_transactions: self.prepared.count(),
            files_held_by_readers: self.files_held_by_readers(),
            reserve_bytes: self.reserve.held_bytes(),
            is_disk_full: self.reserve.is_full(),
            scrubbed_bytes: self.scrubbing.bytes(),
            damaged_files: self.scrubbing.damaged_files(),
            ..Stats::default()
        };
        self.counters.fill(&mut stats);
        stats.filter_piece_loads = self.tables.context().piece_reads.loads();
        let now = self.options.runtime.now();
        stats.jobs = self.observer.jobs(now);
        stats.latencies = self.observer.latencies().stats();
        stats.keyspaces = self
            .keyspaces
            .load()
            .iter()
            .filter(|keyspace| !is_hidden(&keyspace.name()))
            .map(|keyspace| {
                self.catalog.with_state(|manifest| {
                    keyspace_stats(keyspace, manifest.keyspaces.get(&keyspace.id()), now)
                })
            })
            .collect();
        stats.disk_bytes = self.file_bytes() + stats.reserve_bytes;
        stats
    }

    /// The bytes of all files of the database except the reserve. Costs a look at each level and each log.
    pub(in crate::engine) fn file_bytes(&self) -> u64 {
        let bytes = |keyspace: &Arc<KeyspaceCore>| {
            let logs = keyspace.value_log.lock().bytes();
            let files = keyspace.state().version.file_bytes();
            files.saturating_add(logs)
        };
        let keyspaces = self.keyspaces.load();
        // Under the lock of the catalog no value log is sealed, so each counts once.
        let files = self.catalog.with_state(|state| {
            let kept = state.changes.kept_logs.values();
            let all = kept
                .map(|log| log.length)
                .chain(keyspaces.iter().map(bytes));
            all.fold(0, u64::saturating_add)
        });
        let logs = self.chain.bytes() + self.catalog.manifest_bytes();
        files.saturating_add(logs)
    }
}

/// The statistics of `keyspace` at `now`.
fn keyspace_stats(
    keyspace: &KeyspaceCore,
    manifest: Option<&KeyspaceState>,
    now: Duration,
) -> KeyspaceStats {
    let state = keyspace.state_full();
    let (levels, empty) = (state.version.levels(), Shared::default());
    let work = keyspace.work.lock();
    let tree = summary(&state.version, &work);
    let mut capacities = bounded_capacities(&tree, &keyspace.options());
    let is_table = |number| {
        let files = levels.iter().flat_map(|level| level.files());
        files.map(|file| file.meta.number).any(|it| it == number)
    };
    let is_log = |number| state.version.values().find(number).is_some();
    let paused_tables = work.backoffs.report(now, is_table);
    let paused_value_logs = work.gc_backoffs.report(now, is_log);
    drop(work);
    let io_stats = *keyspace.io_stats.lock();
    let totals = keyspace.totals();
    capacities.resize(capacities.len().max(levels.len()), u64::MAX);
    let level_stats = |level: usize| {
        let files = levels.get(level).unwrap_or(&empty);
        let sum = |measure| files.sums().get(measure);
        LevelStats {
            level,
            files: files.len(),
            segments: files.files().map(|file| file.meta.segments.len()).sum(),
            bytes: sum(Measure::Bytes),
            capacity: if level == 0 { 0 } else { capacities[level] },
            entries: sum(Measure::Entries),
            tombstones: sum(Measure::Tombstones),
            range_tombstones: sum(Measure::RangeTombstones),
            operands: sum(Measure::Operands),
            expiring_entries: sum(Measure::ExpiringEntries),
            expiring_bytes: sum(Measure::ExpiringBytes),
            gets_answered: keyspace.answered.sum(level),
            filter_bytes: filters::loaded_bytes(files),
            false_positive_reads: filters::false_positive_reads(files, level),
            io_stats: io_stats.get(level).copied().unwrap_or_default(),
            lifetime_io_stats: LevelIoStats::from_totals(level, &totals),
        }
    };
    let (transient_logs, value_logs) = value_stats(manifest, &keyspace.value_log.lock());
    let garbage = manifest.map(|manifest| &manifest.values.discard_lists);
    let lists = garbage.into_iter().flat_map(BTreeMap::values);
    let discard_list_bytes = lists.map(|list| list.length).fold(0, u64::saturating_add);
    let memtables = || state.memtables();
    let memtable_bytes: usize = memtables().map(|memtable| memtable.memory_bytes()).sum();
    KeyspaceStats {
        name: keyspace.name().to_string(),
        options: KeyspaceOptions::clone(&keyspace.options()),
        merge_operator: state.operator.name().map(str::to_owned),
        memtable_bytes: memtable_bytes as u64,
        memtable_entries: memtables().map(|memtable| memtable.entries()).sum(),
        memtable_tombstones: memtables().map(|memtable| memtable.tombstones()).sum(),
        memtables: 1 + state.frozen.len(),
        gets_answered_by_memtables: keyspace.answered.sum(ANSWERED_BY_MEMTABLES),
        levels: (0..capacities.len()).map(level_stats).collect(),
        transient_logs,
        value_logs,
        discard_lists: garbage.map_or(0, BTreeMap::len),
        discard_list_bytes,
        paused_tables,
        paused_value_logs,
    }
}
