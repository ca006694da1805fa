//! The job that carries out a plan of the policy: move a file down, merge files, or change the number
//! of levels.
//!
//! Concurrency: the plan is made and its inputs are claimed under the keyspace's `work` lock; the
//! merge itself holds none. Results are installed in the order of the manifest.

use std::sync::Arc;
use std::time::Duration;

use super::compaction_inputs::{Inputs, find};
use super::subcompactions::Subcompactions;
use super::tree_summary::summary;
use crate::base::limits::LEVELS_MAX;
use crate::base::sync::Shared;
use crate::base::{Cause, FileNumber, KeyspaceId, MemoryTracker, Result, SequenceNumber};
use crate::compact::job::{CancelCheck, IoPriority, JobContext};
use crate::compact::merge::{MergeResult, SubcompactionRange, check_entries, merge};
use crate::compact::output::{Output, Targets};
use crate::compact::values::{TransientRewrite, TransientValues, Values};
use crate::engine::counters;
use crate::engine::keyspace::KeyspaceWork;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, ManifestState, Record, Version};
use crate::options::KeyspaceOptions;
use crate::policy::{
    self, Backlog, Claim, Compaction, OutputCutter, OutputPlan, Plan, Purpose, ReadPoints,
    TransientLogFate, TreeSummary,
};
use crate::read::merge::MergingCursor;
use crate::read::run::RunCursor;
use crate::read::visible::KeyRange;
use crate::table::{FileMeta, OpenTable, SequentialCursor, TableOptions};
use crate::value::{DiscardList, ValueReadBuffers};
use crate::vfs::Vfs;

/// A file and the level it is in or goes to.
type LeveledFile = (u8, Shared<FileHandle>);

/// A plan with its inputs claimed.
#[derive(Debug)]
pub(in crate::engine) enum CompactionJob {
    Resize {
        level_count: usize,
    },
    Move {
        level: usize,
        file: Shared<FileHandle>,
        claim: Claim<Box<[u8]>>,
    },
    Merge {
        inputs: Arc<Inputs>,
        claim: Claim<Box<[u8]>>,
    },
}

/// What there is to do for a keyspace.
#[derive(Debug)]
pub(in crate::engine) enum Claimed {
    Job(CompactionJob),
    /// Nothing for now: running jobs may be in the way.
    Later,
    Nothing,
}

impl CompactionJob {
    /// The next job that the policy wants for `keyspace`, claimed. What rests at `now` is left alone.
    pub(super) fn claim(keyspace: &KeyspaceCore, now: Duration) -> Option<Self> {
        let claimed = Self::claim_plan(keyspace, None, |tree, work, _| {
            let cursors: Vec<Option<&[u8]>> = work
                .cursors
                .iter()
                .map(|cursor| cursor.as_deref())
                .collect();
            let files = tree.levels.iter_mut().flatten();
            for file in files {
                file.busy |= work.backoffs.is_paused(file.number, now);
            }
            policy::plan(tree, &keyspace.options(), &cursors)
        });
        match claimed {
            Claimed::Job(job) => Some(job),
            Claimed::Later | Claimed::Nothing => None,
        }
    }

    /// The next job that brings down what `range` holds of entries up to `through`, and rids files older
    /// than `before` of tombstones, claimed.
    pub(in crate::engine) fn claim_range(
        keyspace: &KeyspaceCore,
        range: &KeyRange,
        before: FileNumber,
        through: SequenceNumber,
    ) -> Claimed {
        Self::claim_plan(keyspace, Some(range), |tree, _, range| {
            let (smallest, largest) = range.map(KeyRange::ends).unwrap_or_default();
            let options = keyspace.options();
            let wanted = policy::ManualCompaction {
                smallest: smallest.as_ref(),
                largest: largest.as_ref(),
                before,
                through,
            };
            policy::plan_range(tree, &options, &wanted)
        })
    }

    fn claim_plan(
        keyspace: &KeyspaceCore,
        range: Option<&KeyRange>,
        plan: impl for<'a> Fn(
            &mut TreeSummary<&'a [u8]>,
            &'a KeyspaceWork,
            Option<&'a KeyRange>,
        ) -> Plan<&'a [u8]>,
    ) -> Claimed {
        let mut work = keyspace.work.lock();
        if work.is_resizing {
            return Claimed::Later;
        }
        let version = Shared::clone(&keyspace.state().version);
        let next = plan(&mut summary(&version, &work), &work, range);
        let own = |claim: &Claim<&[u8]>| claim.map(|key| Box::from(*key));
        let job = match next {
            Plan::Idle => {
                // Running jobs may be in the way of something, or others' affair; only whoever wants a range asks.
                let alone = KeyspaceWork {
                    level_count: work.level_count,
                    ..KeyspaceWork::default()
                };
                let is_done = || {
                    let next = plan(&mut summary(&version, &alone), &alone, range);
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
            } => Self::Move {
                level,
                file: find(&version, level, &[upper]).swap_remove(0),
                claim: own(&claim),
            },
            Plan::Compact(Compaction {
                level,
                upper,
                lower,
                targets,
                claim,
                purpose,
            }) => Self::Merge {
                inputs: Arc::new(Inputs {
                    work: KeyspaceWork {
                        level_count: work.level_count,
                        ..KeyspaceWork::default()
                    },
                    level,
                    upper: find(&version, level, &upper),
                    lower: find(&version, claim.level, &lower),
                    targets: find(&version, claim.level, &targets),
                    version: Shared::clone(&version),
                    purpose,
                }),
                claim: own(&claim),
            },
        };
        job.take(&mut work);
        Claimed::Job(job)
    }

    /// The files that it reads or appends to.
    fn files(&self) -> Vec<FileNumber> {
        match self {
            Self::Resize { .. } => Vec::new(),
            Self::Move { file, .. } => vec![file.meta.number],
            Self::Merge { inputs, .. } => {
                let files = inputs.files().chain(&inputs.targets);
                files.map(|file| file.meta.number).collect()
            }
        }
    }

    fn take(&self, work: &mut KeyspaceWork) {
        for number in self.files() {
            assert!(work.busy.insert(number), "a file has one job at a time");
        }
        match self {
            Self::Resize { .. } => work.is_resizing = true,
            Self::Move { level, claim, .. } => work.note_claim(*level, claim),
            Self::Merge { inputs, claim } => work.note_claim(inputs.level, claim),
        }
    }

    /// The files that it brings down.
    fn uppers(&self) -> Vec<FileNumber> {
        match self {
            Self::Resize { .. } => Vec::new(),
            Self::Move { file, .. } => vec![file.meta.number],
            Self::Merge { inputs, .. } => {
                let upper = inputs.upper.iter();
                upper.map(|file| file.meta.number).collect()
            }
        }
    }

    /// Gives the claims back; how it went decides which files rest from `now` on.
    pub(in crate::engine) fn release(
        &self,
        keyspace: &KeyspaceCore,
        outcome: &Result<()>,
        now: Duration,
    ) {
        let mut work = keyspace.work.lock();
        match outcome {
            Ok(()) => work.backoffs.note_success(&self.files()),
            Err(_) => work.backoffs.note_failure(&self.uppers(), now),
        }
        for number in self.files() {
            work.busy.remove(&number);
        }
        match self {
            Self::Resize { .. } => work.is_resizing = false,
            Self::Move { claim, .. } | Self::Merge { claim, .. } => work.drop_claim(claim),
        }
    }
}

impl Engine {
    /// Carries out a claimed job.
    ///
    /// # Errors
    /// `Poisoned`: the manifest on disk may name a segment that is not known here, in a file that was given
    /// back before it was claimed for `job`, and that must not be written over.
    pub(in crate::engine) fn merge(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        job: &CompactionJob,
    ) -> Result<()> {
        self.poison.check()?;
        match job {
            CompactionJob::Resize { level_count } => self.resize(keyspace, *level_count),
            CompactionJob::Move { level, file, claim } => {
                self.move_file(keyspace, *level, file, claim.level)
            }
            CompactionJob::Merge { inputs, claim } => self.merge_files(keyspace, inputs, claim),
        }
    }

    /// Changes the nominal number of levels; nothing moves (AU-M3).
    fn resize(&self, keyspace: &Arc<KeyspaceCore>, count: usize) -> Result<()> {
        assert!(
            (1..=LEVELS_MAX).contains(&count),
            "the policy keeps to the largest number of levels"
        );
        let record = Record::LevelCount {
            keyspace: keyspace.id(),
            count: on_disk(count),
        };
        self.catalog.commit_in(
            keyspace,
            |_| vec![record],
            |_| keyspace.work.lock().level_count = count,
        )
    }

    fn move_file(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        level: usize,
        file: &Shared<FileHandle>,
        target: usize,
    ) -> Result<()> {
        let id = keyspace.id();
        let number = file.meta.number;
        let records = vec![
            Record::RemoveFile {
                keyspace: id,
                level: on_disk(level),
                number,
            },
            Record::AddFile {
                keyspace: id,
                level: on_disk(target),
                file: file.meta.clone(),
            },
        ];
        self.catalog.commit_in(
            keyspace,
            |_| records,
            |state| {
                let adds = [(on_disk(target), Shared::clone(file))];
                let removes = [(on_disk(level), number)];
                keyspace.install_version(self.next_version(keyspace, state, &adds, &removes));
            },
        )?;
        self.allocate_filters(keyspace, file.meta.entries());
        counters::add(&self.counters.trivial_moves, 1);
        keyspace.count(target, [(Cause::Move, file.meta.bytes())]);
        Ok(())
    }

    fn merge_files(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        inputs: &Arc<Inputs>,
        claim: &Claim<Box<[u8]>>,
    ) -> Result<()> {
        let start = self.options.runtime.now();
        let merged = self.rewrite_all(keyspace, inputs, claim)?;
        let id = keyspace.id();
        let levels = inputs
            .upper
            .iter()
            .map(|file| (on_disk(inputs.level), file));
        let target_level = on_disk(claim.level);
        let mut removes: Vec<(u8, FileNumber)> = levels
            .chain(inputs.lower.iter().map(|file| (target_level, file)))
            .map(|(level, file)| (level, file.meta.number))
            .collect();
        let written = merged.written;
        let mut adds = self.handles(claim.level, &written.tables);
        let mut records: Vec<Record> = removes
            .iter()
            .map(|&(level, number)| Record::RemoveFile {
                keyspace: id,
                level,
                number,
            })
            .collect();
        records.extend(
            written
                .transient_logs
                .iter()
                .map(|run| Record::AddTransientLog {
                    keyspace: id,
                    file: *run,
                }),
        );
        records.extend(adds.iter().map(|(level, file)| Record::AddFile {
            keyspace: id,
            level: *level,
            file: file.meta.clone(),
        }));
        records.extend(written.grown.iter().filter_map(|file| {
            Some(Record::AddSegment {
                keyspace: id,
                level: target_level,
                number: file.number,
                segment: file.segments.last()?.clone(),
            })
        }));
        records.extend(garbage_records(id, &written.discard_lists));
        let mut grown = Vec::new();
        written.pending.commit(|| {
            self.catalog.commit_in(
                keyspace,
                |_| records,
                |state| {
                    // Only now, so that they have what was granted to their files meanwhile.
                    grown = inputs.grown(&written.grown);
                    for (_, new) in &grown {
                        removes.push((target_level, new.meta.number));
                        adds.push((target_level, Shared::clone(new)));
                    }
                    let version = self.next_version(keyspace, state, &adds, &removes);
                    keyspace.install_version(version);
                    self.remove_unneeded_lists(keyspace, state, &written.discard_lists);
                },
            )
        })?;
        for file in inputs.files() {
            file.mark_obsolete();
        }
        for (old, new) in &grown {
            // Where this fails, the table is opened anew when it is read.
            drop(self.tables.open_grown(old.slot(), new.slot(), &new.meta));
        }
        let entries_read: u64 = inputs.files().map(|file| file.meta.entries()).sum();
        let appended = || written.grown.iter().filter_map(|file| file.segments.last());
        let appended_entries: u64 = appended().map(|segment| segment.entries).sum();
        let rewritten_entries: u64 = written.tables.iter().map(FileMeta::entries).sum();
        let entries = appended_entries + rewritten_entries;
        self.allocate_filters(keyspace, entries);
        let bytes = |files: &mut dyn Iterator<Item = &FileMeta>| files.map(FileMeta::bytes).sum();
        let read: u64 = bytes(&mut inputs.files().map(|file| &file.meta));
        let transient_log_bytes: u64 = written.transient_logs.iter().map(|run| run.length).sum();
        let tables: u64 = bytes(&mut written.tables.iter());
        let rewritten = tables + transient_log_bytes;
        let appended: u64 = appended().map(|segment| segment.length).sum();
        let bytes_written = rewritten + appended;
        let counters = &self.counters;
        let causes = inputs.purpose.causes();
        let (counted_read, counted_written) = match inputs.purpose {
            Purpose::Tree => (
                &counters.compaction_bytes_read,
                &counters.compaction_bytes_written,
            ),
            Purpose::Consolidation => (
                &counters.consolidation_bytes_read,
                &counters.consolidation_bytes_written,
            ),
            // Garbage collections have made it necessary.
            Purpose::PointerRewrite => (&counters.gc_bytes_read, &counters.gc_bytes_written),
        };
        keyspace.count(
            claim.level,
            [
                (causes.0, read),
                (causes.1, tables),
                (Cause::Append, appended),
                (Cause::TransientLog, transient_log_bytes),
                (Cause::TransientLogRead, merged.transient_log_bytes_read),
            ],
        );
        counters::add(counted_read, read);
        counters::add(counted_written, rewritten);
        counters::add(&counters.append_bytes_written, appended);
        counters::add(&counters.appends, grown.len() as u64);
        counters::add(
            &self.counters.transient_log_bytes_read,
            merged.transient_log_bytes_read,
        );
        counters::add(&self.counters.compactions, 1);
        self.options.listener.tell(|| Event::CompactionEnded {
            keyspace: keyspace.name().to_owned(),
            level: claim.level,
            bytes_read: read,
            bytes_written,
            bytes_appended: appended,
            purpose: inputs.purpose.name(),
            entries_dropped: entries_read - entries,
            duration: self.options.runtime.now().saturating_sub(start),
        });
        Ok(())
    }

    /// Writes the merged inputs to new files of the claimed level, in parts if the merge is large and
    /// there may be threads to spare.
    fn rewrite_all(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        inputs: &Arc<Inputs>,
        claim: &Claim<Box<[u8]>>,
    ) -> Result<MergeResult<'_>> {
        let readers = self.read_points();
        let ends = self.part_ends(keyspace, inputs, claim);
        let merged = if ends.is_empty() {
            self.rewrite(
                keyspace,
                inputs,
                claim,
                SubcompactionRange::default(),
                &readers,
            )?
        } else {
            let split = Subcompactions::new(
                Arc::clone(keyspace),
                Arc::clone(inputs),
                claim.clone(),
                readers,
                ends,
            );
            self.run_subcompactions(split)?
        };
        check_entries(merged.entries, inputs.entries())?;
        Ok(merged)
    }

    /// Where the parts of a merge end, but for the last; none if it is done in one piece.
    fn part_ends(
        &self,
        keyspace: &KeyspaceCore,
        inputs: &Inputs,
        claim: &Claim<Box<[u8]>>,
    ) -> Vec<Box<[u8]>> {
        let tree = summary(&inputs.version, &inputs.work);
        let (compaction, options) = (inputs.compaction(claim), keyspace.options());
        let plan = OutputPlan::new(&tree, &compaction, &options);
        let ends = plan.subcompaction_ends(self.compactions_max());
        ends.into_iter().map(Box::from).collect()
    }

    /// Writes one part of the merged inputs.
    pub(super) fn rewrite(
        &self,
        keyspace: &KeyspaceCore,
        inputs: &Inputs,
        claim: &Claim<Box<[u8]>>,
        part: SubcompactionRange<'_>,
        readers: &ReadPoints,
    ) -> Result<MergeResult<'_>> {
        let options = keyspace.options();
        let tree = summary(&inputs.version, &inputs.work);
        let compaction = inputs.compaction(claim);
        let plan = OutputPlan::new(&tree, &compaction, &options);
        let cutter = self.cutter(&plan, inputs)?;
        let mut deeper = plan.deeper_levels();
        let units = plan.filter_units(keyspace.filter_price());
        let class = if inputs.level == 0 {
            IoPriority::Level0
        } else {
            IoPriority::Compaction
        };
        let wanted = || self.check_needed(keyspace);
        let table_options = table_options(&options, units.written_anew);
        let targets = Targets {
            files: &inputs.targets,
            tables: &self.tables,
            filter_units: units.appended,
        };
        let values = self.values_of_merge(inputs, &plan, &options);
        let output = Output::new(self, &wanted, class, table_options, values, Some(cutter))
            .appending_to(targets);
        let cursors = inputs
            .runs()
            .into_iter()
            .map(|run| RunCursor::<SequentialCursor>::new(Arc::clone(&self.tables), run));
        counters::add(&self.counters.subcompactions, 1);
        merge(
            MergingCursor::new(cursors.collect()),
            part,
            output,
            readers,
            |key| deeper.may_hold(key),
        )
    }

    /// Where the output of a compaction of `inputs` is cut, by `plan`.
    fn cutter<'k>(
        &self,
        plan: &OutputPlan<'_, &'k [u8]>,
        inputs: &Inputs,
    ) -> Result<OutputCutter<&'k [u8]>> {
        let tables = inputs.upper.iter().map(|file| {
            let table = self.tables.get(file.slot(), &file.meta)?;
            // Its values in transient logs count as lying like its entries.
            let bytes = file.meta.bytes().max(1);
            let transient = file.meta.transient_bytes();
            let counted = policy::merged_cut_bytes(bytes, transient, plan.is_in_place());
            Ok((table, counted as f64 / bytes as f64))
        });
        let tables = tables.collect::<Result<Vec<_>>>()?;
        Ok(plan.cutter(|from, to| {
            let between = |(table, counted): &(OpenTable, f64)| {
                table.bytes_between(from.copied(), to.copied()) as f64 * counted
            };
            policy::whole(tables.iter().map(between).sum())
        }))
    }

    /// What a compaction of `inputs` does with values, by `plan`.
    fn values_of_merge(
        &self,
        inputs: &Inputs,
        plan: &OutputPlan<'_, &[u8]>,
        options: &Shared<KeyspaceOptions>,
    ) -> Values {
        let mut met = inputs.transient_logs_met();
        met.retain(|_, log| plan.transient_log_fate(*log) != TransientLogFate::Stay);
        let slices = met.iter().map(|(&file, log)| (file, log.input_bytes));
        let read_buffers = self.value_read_buffers().over_slices(slices.collect());
        let in_transient_logs = if plan.is_in_place() {
            TransientValues::InPlace
        } else {
            TransientValues::Separate(TransientRewrite {
                files: met.into_keys().collect(),
                transient_file_bytes: plan.transient_file_bytes(),
            })
        };
        let values = Shared::clone(inputs.version.values());
        Values::of_compaction(
            values,
            read_buffers,
            in_transient_logs,
            Shared::clone(options),
        )
    }

    /// For a job that reads values in the order of their keys.
    pub(in crate::engine) fn value_read_buffers(&self) -> ValueReadBuffers {
        let vfs = Arc::clone(&self.options.vfs);
        let memory = &self.memory.tables;
        ValueReadBuffers::new(vfs, self.directory.clone(), &memory.jobs, memory.jobs_max)
    }

    /// # Errors
    /// `Closed` once the database is being closed, `NotFound` once `keyspace` is dropped: then nobody
    /// wants what a job does for it.
    pub(super) fn check_needed(&self, keyspace: &KeyspaceCore) -> Result<()> {
        self.check_cancelled()?;
        keyspace.check_exists()
    }

    /// Where readers stand: whatever was dropped before this was taken cannot be missed by them.
    pub(super) fn read_points(&self) -> ReadPoints {
        self.snapshots.read_points(&self.visible)
    }

    /// The present version of `keyspace` with `adds` and without `removes`, by an edit that is part of
    /// `state`.
    pub(in crate::engine) fn next_version(
        &self,
        keyspace: &KeyspaceCore,
        state: &ManifestState,
        adds: &[LeveledFile],
        removes: &[(u8, FileNumber)],
    ) -> Version {
        let version = match keyspace.state().version.apply(adds, removes) {
            Ok(version) => version,
            Err(contradiction) => {
                unreachable!("a job broke the order of its level: {contradiction}")
            }
        };
        match state.keyspaces.get(&keyspace.id()) {
            Some(keyspace) => version.with_values(keyspace, &self.obsolete),
            None => unreachable!("an edit of a keyspace is refused once that is dropped"),
        }
    }

    /// Lets go of those of `lists` that went with the very edit that brought them: with it died the last
    /// values of the logs that they speak of.
    pub(super) fn remove_unneeded_lists(
        &self,
        keyspace: &KeyspaceCore,
        state: &ManifestState,
        lists: &[DiscardList],
    ) {
        let known = state.keyspaces.get(&keyspace.id());
        for list in lists {
            if known.is_some_and(|it| !it.values.discard_lists.contains_key(&list.number)) {
                self.obsolete.add(FileName::DiscardList(list.number));
            }
        }
    }

    /// Handles for new files of `level`.
    pub(super) fn handles(&self, level: usize, files: &[FileMeta]) -> Vec<LeveledFile> {
        let handle = |file: &FileMeta| FileHandle::new(file.clone(), &self.obsolete);
        files
            .iter()
            .map(|file| (on_disk(level), handle(file)))
            .collect()
    }
}

impl KeyspaceCore {
    /// Works out the pressure on writers anew.
    pub(in crate::engine) fn refresh_throttle(&self) {
        let mut work = self.work.lock();
        let state = self.state_full();
        let options = self.options();
        let mut tree = summary(&state.version, &work);
        tree.allowed = policy::next_allowed(&tree, &options);
        let value_log_bytes = policy::value_log_bytes(policy::bytes_held(&tree), &options);
        let backlog = Backlog {
            value_log_bytes,
            level0_runs: tree.level(0).len(),
            pending_bytes: policy::pending_bytes(&tree, &options),
            // While collections fail, nobody waits for them.
            garbage_bytes: if self.gc_failure.has_failed() {
                0
            } else {
                policy::garbage_excess(&tree, &options)
            },
        };
        self.set_memtable_value_bytes_max(policy::values_behind_max(&tree, &options));
        self.set_value_log_bytes(value_log_bytes);
        work.allowed = tree.allowed;
        self.set_throttle(policy::throttle(backlog, &options), state.frozen.len());
    }
}

impl JobContext for Engine {
    fn vfs(&self) -> &dyn Vfs {
        &*self.options.vfs
    }

    fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    fn allocate_id(&self) -> Result<u64> {
        self.catalog.allocate()
    }

    fn sync_directory(&self) -> Result<()> {
        self.sync_directory()
    }

    fn request_io(&self, priority: IoPriority, bytes: u64, cancel: CancelCheck<'_>) -> Result<()> {
        self.limit_rate(priority, bytes, cancel)
    }

    fn memory(&self) -> &Arc<MemoryTracker> {
        &self.memory.tables.jobs
    }
}

/// The records that add lists of garbage values.
pub(super) fn garbage_records(
    keyspace: KeyspaceId,
    lists: &[DiscardList],
) -> impl Iterator<Item = Record> {
    let add = move |list: &DiscardList| Record::AddDiscardList {
        keyspace,
        list: list.clone(),
    };
    lists.iter().map(add)
}

/// A level as the manifest writes it.
pub(super) fn on_disk(level: usize) -> u8 {
    u8::try_from(level).unwrap_or(u8::MAX)
}

/// How tables are written whose filters have these units.
pub(super) fn table_options(
    options: &KeyspaceOptions,
    filter_units: [f64; FILTER_UNITS_MAX],
) -> TableOptions {
    TableOptions {
        block_bytes: options.block_bytes,
        filter_units,
        compression: options.compression,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Claimed, CompactionJob};
    use crate::base::sync::atomic::Ordering;
    use crate::base::{FileNumber, Kind};
    use crate::engine::Write;
    use crate::engine::{Access, Handle};
    use crate::options::{Durability, Options};
    use crate::policy::Claim;
    use crate::read::visible::KeyRange;

    /// `compact_range` is over when there is nothing to do, not when something is in its way.
    #[test]
    fn what_is_in_the_way_is_told_from_nothing_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let handle = Handle::open(directory.path(), Options::default(), Access::ReadWrite).unwrap();
        let engine = handle.engine();
        let keyspace = engine.open_keyspace("k", None).unwrap();
        let claim = || {
            let all = (FileNumber(u64::MAX), u64::MAX);
            CompactionJob::claim_range(&keyspace, &KeyRange::ALL, all.0, all.1)
        };
        assert!(matches!(claim(), Claimed::Nothing));

        keyspace.work.lock().is_resizing = true;
        assert!(matches!(claim(), Claimed::Later));
        for key in [b"a", b"z"] {
            let write = Write::One {
                keyspace: &keyspace,
                kind: Kind::Value,
                key,
                value: &[],
            };
            engine.commit(&write, Durability::Buffered).unwrap();
        }
        engine.flush_all().unwrap();
        assert!(matches!(claim(), Claimed::Later));

        let other = Claim {
            level: 1,
            smallest: Box::from(*b"b"),
            largest: Box::from(*b"c"),
        };
        let mut work = keyspace.work.lock();
        work.is_resizing = false;
        work.claims.push(other.clone());
        drop(work);
        assert!(matches!(claim(), Claimed::Later));
        keyspace.work.lock().drop_claim(&other);
        // Now, or by a worker before.
        engine.compact_range(&keyspace, &KeyRange::ALL).unwrap();
        assert!(matches!(claim(), Claimed::Nothing));
        assert!(keyspace.state().version.levels()[0].files().is_empty());

        // What others do to what is down already, or was written since, is nothing to wait for.
        keyspace.work.lock().claims.push(other);
        assert!(matches!(claim(), Claimed::Nothing));
        let through = engine.visible.load(Ordering::Acquire);
        let write = Write::One {
            keyspace: &keyspace,
            kind: Kind::Value,
            key: b"m",
            value: &[],
        };
        engine.commit(&write, Durability::Buffered).unwrap();
        engine.flush_all().unwrap();
        let since = |through| {
            let before = FileNumber(u64::MAX);
            CompactionJob::claim_range(&keyspace, &KeyRange::ALL, before, through)
        };
        assert!(matches!(since(through), Claimed::Nothing));
        assert!(!matches!(since(through + 1), Claimed::Nothing));
    }
}
