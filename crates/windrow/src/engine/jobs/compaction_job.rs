//! The compaction: it carries out a plan of the policy. A plan rewrites files, moves a file down, or changes
//! the number of levels.
//!
//! Concurrency: the job has [claimed](super::compaction_claim) its inputs and holds no lock while it writes. Its
//! results are installed in the order of the manifest.

use std::sync::Arc;

use super::compaction_claim::CompactionJob;
use super::compaction_inputs::Inputs;
use super::compaction_ranges::part_end;
use super::context::{garbage_records, on_disk, table_options, value_log_records};
use super::subcompactions::Subcompactions;
use super::tree_summary::summary;
use crate::base::limits::LEVELS_MAX;
use crate::base::sync::Shared;
use crate::base::{Cause, Error, ErrorKind, Result};
use crate::compact::fold::Folder;
use crate::compact::job::IoPriority;
use crate::compact::judge::Judge;
use crate::compact::merge::{
    Expired, MergeResult, SubcompactionRange, Treatment, check_entries, merge,
};
use crate::compact::output::{Output, Targets};
use crate::compact::values::{TransientRewrite, TransientValues, Values};
use crate::engine::counters;
use crate::engine::transaction::Filtering;
use crate::engine::{Engine, KeyspaceCore};
use crate::events::Event;
use crate::manifest::{FileHandle, Record, ReferenceChanges};
use crate::options::KeyspaceOptions;
use crate::policy::{self, Claim, OutputCutter, OutputPlan, Purpose, ReadPoints, TransientLogFate};
use crate::read::merge::MergingCursor;
use crate::read::run::RunCursor;
use crate::table::{FileMeta, OpenTable, SegmentMeta, SequentialCursor};
use crate::vfs::PassedBytes;

impl Engine {
    /// Carries out a claimed job.
    ///
    /// # Errors
    /// `Poisoned`: the manifest on disk may name a segment that is not known here, in a file that was
    /// released before `job` claimed it. No append may overwrite that segment.
    pub(in crate::engine) fn compact(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        job: &CompactionJob,
    ) -> Result<()> {
        self.poison.check()?;
        match job {
            CompactionJob::Resize { level_count } => self.resize(keyspace, *level_count),
            CompactionJob::TrivialMove { level, file, claim } => {
                self.move_file(keyspace, *level, file, claim.level)
            }
            CompactionJob::Drop { level, files } => self.drop_files(keyspace, *level, files),
            CompactionJob::Compact { inputs, claim } => self.compact_files(keyspace, inputs, claim),
        }
    }

    /// Changes the nominal number of levels. Nothing moves (AU-M3).
    fn resize(&self, keyspace: &Arc<KeyspaceCore>, count: usize) -> Result<()> {
        assert!(
            (1..=LEVELS_MAX).contains(&count),
            "the policy exceeds the largest number of levels"
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
                file: Arc::clone(&file.meta),
            },
        ];
        self.catalog.commit_in(
            keyspace,
            |_| records,
            |state| {
                let adds = [(on_disk(target), Shared::clone(file))];
                let removes = [(on_disk(level), Shared::clone(file))];
                keyspace.install_version(self.next_version(keyspace, state, &adds, &removes));
            },
        )?;
        self.allocate_filters(keyspace, file.meta.entries());
        counters::add(&self.counters.trivial_moves, 1);
        keyspace.count(target, [(Cause::Move, file.meta.bytes())]);
        self.observer.notify(|| Event::FileMoved {
            keyspace: keyspace.name().to_string(),
            level: target,
            bytes: file.meta.bytes(),
        });
        Ok(())
    }

    /// Removes files of which every entry has expired or is a tombstone, without a look at them.
    fn drop_files(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        level: usize,
        files: &[Shared<FileHandle>],
    ) -> Result<()> {
        let expired = files.iter().map(|file| Expired {
            entries: file.meta.expiring_entries(),
            by: file.meta.last_expiry().unwrap_or(0),
        });
        let expired = expired.fold(Expired::default(), Expired::and);
        let mut records = Vec::from_iter(expired.record());
        records.extend(files.iter().map(|file| Record::RemoveFile {
            keyspace: keyspace.id(),
            level: on_disk(level),
            number: file.meta.number,
        }));
        self.catalog.commit_in(
            keyspace,
            |_| records,
            |state| {
                let removes = files.iter().map(|it| (on_disk(level), Shared::clone(it)));
                let removes: Vec<_> = removes.collect();
                keyspace.install_version(self.next_version(keyspace, state, &[], &removes));
            },
        )?;
        for file in files {
            file.mark_obsolete();
        }
        counters::add(&self.counters.entries_expired, expired.entries);
        let sum = |of: fn(&FileMeta) -> u64| {
            let parts = files.iter().map(|file| of(&file.meta));
            parts.fold(0, u64::saturating_add)
        };
        self.observer.notify(|| Event::ExpiredFilesDropped {
            keyspace: keyspace.name().to_string(),
            level,
            files: files.len(),
            bytes: sum(FileMeta::bytes),
            entries_dropped: sum(FileMeta::entries),
        });
        Ok(())
    }

    fn compact_files(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        inputs: &Arc<Inputs>,
        claim: &Claim<Box<[u8]>>,
    ) -> Result<()> {
        let start = self.options.runtime.now();
        let began = Event::CompactionBegan {
            keyspace: keyspace.name().to_string(),
            level: claim.level,
            purpose: inputs.purpose.name(),
            files: inputs.files().count(),
            bytes: inputs.bytes(),
        };
        let _job = self.observer.begin_job(start, began);
        let mut references = ReferenceChanges::default();
        // First: a damaged list stops the compaction before it writes.
        self.subtract_references(inputs, &mut references)?;
        let readers = self.read_points();
        let (merged, read) = self.rewrite_all(keyspace, inputs, claim, &readers)?;
        let id = keyspace.id();
        let levels = inputs
            .upper
            .iter()
            .map(|file| (on_disk(inputs.level), file));
        let target_level = on_disk(claim.level);
        let mut removes: Vec<(u8, Shared<FileHandle>)> = levels
            .chain(inputs.lower.iter().map(|file| (target_level, file)))
            .map(|(level, file)| (level, Shared::clone(file)))
            .collect();
        let written = merged.written;
        let mut adds = self.handles(claim.level, &written.tables);
        let mut records: Vec<Record> = removes
            .iter()
            .map(|(level, file)| Record::RemoveFile {
                keyspace: id,
                level: *level,
                number: file.meta.number,
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
        records.extend(value_log_records(id, &written.value_logs));
        records.extend(adds.iter().map(|(level, file)| Record::AddFile {
            keyspace: id,
            level: *level,
            file: Arc::clone(&file.meta),
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
        references.append(&written.log_references);
        records.extend(Record::count_references(id, &references));
        records.extend(merged.expired.record());
        let mut grown = Vec::new();
        written.pending.commit(|| {
            self.catalog.commit_in(
                keyspace,
                |_| records,
                |state| {
                    // Only now, so that they have the filter units allocated to their files meanwhile.
                    grown = inputs.grown(&written.grown);
                    for (old, new) in &grown {
                        removes.push((target_level, Shared::clone(old)));
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
            // If this fails, the next read opens the table.
            drop(self.tables.open_grown(old.slot(), new.slot(), &new.meta));
        }
        let entries_read = inputs.entries();
        let appended = || written.grown.iter().filter_map(|file| file.segments.last());
        let appended_entries: u64 = appended().map(|segment| segment.entries).sum();
        let rewritten_entries: u64 = written.tables.iter().map(FileMeta::entries).sum();
        let entries = appended_entries + rewritten_entries;
        self.allocate_filters(keyspace, entries);
        let bytes = |files: &mut dyn Iterator<Item = &FileMeta>| files.map(FileMeta::bytes).sum();
        let transient_log_bytes: u64 = written.transient_logs.iter().map(|run| run.length).sum();
        let value_log_bytes: u64 = written.value_logs.iter().map(|log| log.length).sum();
        let tables: u64 = bytes(&mut written.tables.iter());
        let rewritten = tables + transient_log_bytes;
        let appended: u64 = appended().map(|segment| segment.length).sum();
        let bytes_written = rewritten + appended + value_log_bytes;
        let counters = &self.counters;
        let causes = inputs.purpose.causes();
        let (counted_read, counted_written) = match inputs.purpose {
            Purpose::Tree | Purpose::Expiry => (
                &counters.compaction_bytes_read,
                &counters.compaction_bytes_written,
            ),
            Purpose::Consolidation => (
                &counters.consolidation_bytes_read,
                &counters.consolidation_bytes_written,
            ),
            // Garbage collections cause it.
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
        self.count_folds(merged.folds);
        counters::add(&counters.entries_expired, merged.expired.entries);
        counters::add(&counters.value_log_bytes, value_log_bytes);
        counters::add(counted_read, read);
        counters::add(counted_written, rewritten);
        counters::add(&counters.append_bytes_written, appended);
        counters::add(&counters.appends, grown.len() as u64);
        counters::add(
            &self.counters.transient_log_bytes_read,
            merged.transient_log_bytes_read,
        );
        counters::add(&self.counters.compactions, 1);
        self.observer.notify(|| Event::CompactionEnded {
            keyspace: keyspace.name().to_string(),
            level: claim.level,
            bytes_read: read,
            bytes_written,
            bytes_appended: appended,
            purpose: inputs.purpose.name(),
            // Range tombstones that were divided are more entries than before.
            entries_dropped: entries_read.saturating_sub(entries),
            entries_judged: merged.judged.judged,
            entries_changed: merged.judged.removed + merged.judged.replaced,
            duration: self.options.runtime.now().saturating_sub(start),
        });
        Ok(())
    }

    /// Subtracts the references of all `inputs` to value logs, as their own lists say.
    fn subtract_references(
        &self,
        inputs: &Inputs,
        references: &mut ReferenceChanges,
    ) -> Result<()> {
        let has_any = |file: &&Shared<FileHandle>| file.meta.log_bytes() > 0;
        for file in inputs.files().filter(has_any) {
            let table = self.tables.get(file.slot(), &file.meta)?;
            for list in table.log_references() {
                references.subtract(&list?);
            }
        }
        Ok(())
    }

    /// Writes the merged inputs to new files of the claimed level, in subcompactions if the compaction is
    /// large and threads may be free. It reads no file of which nobody needs an entry. With the result come the bytes of the files that were read.
    fn rewrite_all(
        &self,
        keyspace: &Arc<KeyspaceCore>,
        inputs: &Arc<Inputs>,
        claim: &Claim<Box<[u8]>>,
        readers: &ReadPoints,
    ) -> Result<(MergeResult<'_>, u64)> {
        let inputs = &self.uncovered(inputs, readers)?;
        let ends = self.part_ends(keyspace, inputs, claim);
        let merged = if ends.is_empty() {
            self.rewrite(
                keyspace,
                inputs,
                claim,
                SubcompactionRange::default(),
                readers,
            )?
        } else {
            let split = Subcompactions::new(
                Arc::clone(keyspace),
                Arc::clone(inputs),
                claim.clone(),
                readers.clone(),
                ends,
            );
            self.run_subcompactions(split)?
        };
        check_entries(merged.entries, inputs.entries())?;
        check_keys(&merged.written.tables, &merged.written.grown, claim)?;
        Ok((merged, inputs.bytes()))
    }

    /// The first keys of the subcompactions after the first; none if there is only one.
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
        if inputs.range_tombstones() == 0 {
            return ends.into_iter().map(Box::from).collect();
        }
        let mut ends: Vec<Box<[u8]>> = ends.into_iter().filter_map(part_end).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Writes the merged inputs of one subcompaction.
    pub(super) fn rewrite(
        &self,
        keyspace: &Arc<KeyspaceCore>,
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
        let table_options = (keyspace.id(), table_options(&options, units.written_anew));
        let operator = keyspace.operator();
        let folder = Folder::new(
            &operator,
            self.value_reader(&inputs.version),
            &self.memory.tables.jobs,
        );
        let filtering = Filtering::new(self, keyspace);
        let judge = keyspace.compaction_filter().map(|filter| {
            let values = self.value_reader(&inputs.version);
            Judge::new(filter, plan.reads_values_apart(), values, &filtering)
        });
        let targets = Targets {
            files: &inputs.targets,
            tables: &self.tables,
            filter_units: units.appended,
        };
        let passed = Arc::<PassedBytes>::default();
        let values = self.output_values(inputs, &plan, &options, &passed);
        let output = Output::new(self, &wanted, class, table_options, values, Some(cutter))
            .appending_to(targets)
            .above(&inputs.version, claim.level + 1);
        let cursors = inputs
            .runs()
            .into_iter()
            .map(|run| RunCursor::<SequentialCursor>::new(Arc::clone(&self.tables), run))
            .map(|cursor| cursor.with(Arc::clone(&passed)));
        counters::add(&self.counters.subcompactions, 1);
        let ranges = self.ranges(inputs, part)?;
        merge(
            MergingCursor::new(cursors.collect()),
            part,
            output,
            Treatment {
                readers,
                folder,
                judge,
            },
            ranges,
            |key, end| match end {
                None => deeper.may_hold(key),
                Some(end) => deeper.may_overlap(key, end),
            },
        )
    }

    /// The cuts of the output of a compaction of `inputs`, by `plan`.
    fn cutter<'k>(
        &self,
        plan: &OutputPlan<'_, &'k [u8]>,
        inputs: &Inputs,
    ) -> Result<OutputCutter<&'k [u8]>> {
        let tables = inputs.upper.iter().map(|file| {
            let table = self.tables.get(file.slot(), &file.meta)?;
            // Its values in transient logs count as spread like its entries.
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

    /// The treatment of values in a compaction of `inputs`, by `plan`.
    fn output_values(
        &self,
        inputs: &Inputs,
        plan: &OutputPlan<'_, &[u8]>,
        options: &Shared<KeyspaceOptions>,
        passed: &Arc<PassedBytes>,
    ) -> Values {
        let mut met = inputs.transient_logs_met();
        met.retain(|_, log| plan.transient_log_fate(*log) != TransientLogFate::Stay);
        let slices = met.iter().map(|(&file, log)| (file, log.input_bytes));
        let read_buffers = self.value_read_buffers().counting(passed);
        let read_buffers = read_buffers.over_slices(slices.collect());
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
}

/// Checks that the tables and the last segments of `grown`, in the order in which they were written, keep the order of the claimed
/// level. A table whose checksums are right may have keys beyond its ends. And each subcompaction refuses keys out of order only
/// within its own part: a seek to the part may lead to a key before it, so that tables of two parts overlap.
///
/// # Errors
/// `Corruption`.
fn check_keys(tables: &[FileMeta], grown: &[FileMeta], claim: &Claim<Box<[u8]>>) -> Result<()> {
    let is_claimed = |segment: &SegmentMeta| {
        *claim.smallest <= *segment.smallest() && *segment.largest() <= *claim.largest
    };
    let segments = tables.iter().chain(grown);
    let mut segments = segments.filter_map(|file| file.segments.last());
    let mut pairs = tables.windows(2);
    let ascend = pairs.all(|pair| pair[0].range().1 < pair[1].range().0);
    if ascend && segments.all(is_claimed) {
        return Ok(());
    }
    let what = "an input of a compaction has keys beyond its ends: windrow verify names the table";
    Err(Error::new(ErrorKind::Corruption, what))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
