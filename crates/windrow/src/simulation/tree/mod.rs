//! A tree of sizes, and the jobs that the policy plans for it.

mod compaction;
mod expiry;
mod files;
mod filters;
mod measures;

use compaction::NO_UNITS;
use expiry::note_expired;
pub(super) use files::Tree;

use super::key_space::{Segment, Span};
use super::mass::Written;
use super::transient_logs::TransientLogs;
use crate::base::{Cause, FileNumber};
use crate::options::MediumOrder;
use crate::policy::{
    self, Claim, Plan, VICTIMS_MAX, filter_units, flush_fraction, plan, victims, wants_seal, whole,
};

/// More jobs after one flush show that the policy does not end.
const JOBS_MAX: usize = 1_000_000;

impl Tree<'_> {
    /// Moves the clock to this many writes.
    pub(super) fn set_time(&mut self, now: f64) {
        self.now = now;
        if self.load.expiring <= 0.0 {
            return;
        }
        for file in self.summary.levels.iter_mut().flatten() {
            let Some(contents) = self.contents.get(&file.number) else {
                unreachable!("every file has its segments there")
            };
            note_expired(file, &contents.segments, now);
        }
    }

    /// Makes tombstones of what has expired in a segment of a memtable.
    fn expire(&self, segment: &mut Segment) {
        if self.load.expiring <= 0.0 {
            return;
        }
        for mass in &mut segment.masses {
            mass.expire(self.now);
        }
        segment.count = self.key_space.count(&segment.masses, segment.span.width());
        self.key_space.count_range_tombstones(segment);
    }

    /// Flushes a memtable with these writes between these keys.
    pub(super) fn flush(&mut self, span: Span, written: &Written) {
        let mut segment = self.key_space.written(span, written);
        self.expire(&mut segment);
        let entries = self.key_space.values(&segment);
        let files = self.summary.levels.iter().flatten();
        let ranges = files.map(|file| (file.smallest, file.largest));
        let stays = policy::mediums_stay(ranges, (span.smallest, span.largest), &self.options);
        let transient_logs = if stays {
            Vec::new()
        } else {
            self.flushed_logs(span, entries.iter().sum())
        };
        let (transient_log, logs) =
            self.values
                .flush(&mut segment, written.values(), &transient_logs, &entries);
        self.io_stats.add(0, Cause::TransientLog, transient_log);
        self.io_stats.value_logs += logs;
        let claim = Claim {
            level: 0,
            smallest: span.smallest,
            largest: span.largest,
        };
        let units = self.filters.as_ref().map_or(NO_UNITS, |filters| {
            let fraction = flush_fraction(&self.summary, &claim, whole(segment.count.entries));
            filter_units(fraction, filters.price, &self.options)
        });
        let file = self.file(segment, units);
        self.io_stats.add(0, Cause::Flush, file.bytes);
        let entries = file.entries;
        self.summary.levels[0].insert(0, file);
        self.note_change(entries);
    }

    /// The transient logs of a flush of this many values, or of what comes from the levels above.
    fn flushed_logs(&self, span: Span, values: f64) -> Vec<TransientLogs> {
        let from_above = &self.load.part.fed_logs;
        if !from_above.is_empty() {
            return from_above.clone();
        }
        let file_bytes = policy::transient_file_bytes(self.options.file_bytes).max(1) as f64;
        let bytes = values * self.classes.medium_bytes();
        let width = match self.options.medium_order {
            MediumOrder::Sorted => span.width() / (bytes / file_bytes).ceil().max(1.0),
            MediumOrder::Written => span.width(),
        };
        vec![TransientLogs {
            fraction: 1.0,
            file_bytes,
            width,
        }]
    }

    /// Runs jobs one at a time until none is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..JOBS_MAX {
            if !self.step() && !self.collect_garbage() {
                return;
            }
        }
        unreachable!("the policy ends");
    }

    /// Collects the value logs that the policy names; whether there were any.
    fn collect_garbage(&mut self) -> bool {
        if self.summary.logs.is_empty() {
            return false;
        }
        let options = self.values.log_options();
        let victims = victims(&self.summary, options, VICTIMS_MAX);
        if !victims.is_empty() {
            let gc_result = self.values.collect(&victims);
            self.io_stats.gc_read += gc_result.read;
            self.io_stats.gc_written += gc_result.written;
            self.garbage_collections += 1;
        } else if wants_seal(&self.summary, options) {
            self.values.seal();
        } else {
            return false;
        }
        self.note_values();
        true
    }

    /// Runs the next job; whether there was one.
    fn step(&mut self) -> bool {
        let entries = match plan(&self.summary, &self.options, &self.cursors) {
            Plan::Idle => return false,
            Plan::Resize { level_count } => {
                self.resize(level_count);
                0
            }
            Plan::TrivialMove {
                level,
                upper,
                claim,
            } => self.move_down(level, upper, &claim),
            Plan::Drop { level, files } => {
                self.drop_files(level, &files);
                0
            }
            Plan::Compact(compaction) => self.compact(&compaction),
        };
        self.jobs += 1;
        self.note_change(entries);
        true
    }

    fn resize(&mut self, level_count: usize) {
        self.summary.level_count = level_count;
        let part = &self.load.part;
        self.options = part.options(&self.load.options, level_count);
        // The capacities of a part do not say what it would be with one level less. So a claim of no key keeps
        // the last level.
        self.summary.claims.clear();
        if part.levels_above > 0 && level_count > 1 {
            self.summary.claims.push(Claim {
                level: level_count,
                smallest: u64::MAX,
                largest: 0,
            });
        }
    }

    /// Drops files of which everything has expired.
    fn drop_files(&mut self, level: usize, numbers: &[FileNumber]) {
        for file in self.take(level, numbers) {
            self.release(file.number);
        }
    }

    /// Executes a trivial move, and returns the entries moved.
    fn move_down(&mut self, level: usize, number: FileNumber, claim: &Claim<u64>) -> u64 {
        let files = self.take(level, &[number]);
        for file in &files {
            self.io_stats.add(claim.level, Cause::Move, file.bytes);
        }
        let entries = files.iter().map(|file| file.entries).sum();
        self.cursors[level] = Some(claim.largest);
        self.install(claim.level, files);
        entries
    }
}
