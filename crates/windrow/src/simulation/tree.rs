//! A tree of sizes, and the jobs that the policy plans for it.
//!
//! I1. Every file of the summary has its segments in `contents`, in the same order.
//! I2. Bytes and entries of a file are those of its segments.

use std::collections::{BTreeSet, HashMap};

use super::contents::{Count, Segment, Span, Universe};
use super::load::Load;
use super::merge::{EntrySizes, Merge, Piece};
use super::outcome::{Cause, Traffic};
use crate::base::FileNumber;
use crate::filter::FILTER_UNITS_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::{
    Claim, DeeperLevels, FileSummary, OutputCutter, Plan, Purpose, SegmentSummary, TreeSummary,
    Zones, capacities, next_allowed, plan, target_file_bytes, whole,
};

/// What a table takes for an entry beside key and value: header, slot, and its parts of block, index and filter.
const TABLE_ENTRY_BYTES: u64 = 9;

/// What a table takes beside its entries.
const TABLE_BYTES: u64 = 600;

/// Jobs behind one flush that are beyond reason.
const JOBS_MAX: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct Tree<'a> {
    options: &'a KeyspaceOptions,
    universe: Universe,
    sizes: EntrySizes,
    logical: EntrySizes,
    pub(super) summary: TreeSummary<u64>,
    contents: HashMap<FileNumber, Vec<Segment>>,
    cursors: Vec<Option<u64>>,
    next_file: u64,
    pub(super) traffic: Traffic,
    pub(super) jobs: u64,
    files_per_level: u64,
}

/// What a merge is, of a plan.
struct Job {
    level: usize,
    upper: Vec<FileNumber>,
    lower: Vec<FileNumber>,
    targets: Vec<FileNumber>,
    claim: Claim<u64>,
    purpose: Purpose,
}

impl<'a> Tree<'a> {
    pub(super) fn new(load: &'a Load) -> Self {
        let (key, value) = (load.key_bytes as f64, load.value_bytes as f64);
        let overhead = TABLE_ENTRY_BYTES as f64 + load.options.bits_per_key / 8.0;
        Self {
            options: &load.options,
            universe: load.universe(),
            sizes: EntrySizes {
                value: key + value + overhead,
                tombstone: key + overhead,
            },
            logical: EntrySizes {
                value: key + value,
                tombstone: key,
            },
            summary: TreeSummary {
                level_count: 1,
                levels: vec![Vec::new(); 17],
                claims: Vec::new(),
                allowed: Vec::new(),
                run_files: 0,
                logs: Vec::new(),
            },
            contents: HashMap::new(),
            cursors: vec![None; 17],
            next_file: 0,
            traffic: Traffic::default(),
            jobs: 0,
            files_per_level: load.files_per_level,
        }
    }

    /// Flushes a memtable with so many inserts and draws between these keys.
    pub(super) fn flush(&mut self, span: Span, inserts: f64, draws: f64, deletes: f64) {
        let segment = self.universe.written(span, inserts, draws, deletes);
        let file = self.file(segment);
        self.traffic.add(0, Cause::Flush, file.bytes);
        self.summary.levels[0].insert(0, file);
        self.note_change();
    }

    /// Runs jobs one at a time until none is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..JOBS_MAX {
            if !self.step() {
                return;
            }
        }
        unreachable!("the policy never comes to rest");
    }

    /// Runs the next job; whether there was one.
    fn step(&mut self) -> bool {
        match plan(&self.summary, self.options, &self.cursors) {
            Plan::Idle => return false,
            Plan::Resize { level_count } => self.summary.level_count = level_count,
            Plan::Move {
                level,
                upper,
                claim,
            } => self.carry(level, upper, &claim),
            Plan::Merge {
                level,
                upper,
                lower,
                targets,
                claim,
                purpose,
            } => self.merge(&Job {
                level,
                upper,
                lower,
                targets,
                claim,
                purpose,
            }),
        }
        self.jobs += 1;
        self.note_change();
        true
    }

    fn note_change(&mut self) {
        self.summary.allowed = next_allowed(&self.summary, self.options);
    }

    /// Carries out a move.
    fn carry(&mut self, level: usize, number: FileNumber, claim: &Claim<u64>) {
        let files = self.take(level, &[number]);
        for file in &files {
            self.traffic.add(claim.level, Cause::Move, file.bytes);
        }
        self.cursors[level] = Some(claim.largest);
        self.install(claim.level, files);
    }

    fn merge(&mut self, job: &Job) {
        let target = job.claim.level;
        let pieces = self.merged(job);
        let upper = self.take(job.level, &job.upper);
        let lower = self.take(target, &job.lower);
        for file in upper.iter().chain(&lower) {
            let cause = match job.purpose {
                Purpose::Squeeze => Cause::SqueezeRead,
                Purpose::Tree | Purpose::Pointers => Cause::Read,
            };
            self.traffic.add(target, cause, file.bytes);
            self.contents.remove(&file.number);
        }
        let written = match job.purpose {
            Purpose::Squeeze => Cause::Squeeze,
            Purpose::Tree | Purpose::Pointers => Cause::Rewrite,
        };
        let mut files = Vec::new();
        for piece in pieces {
            match piece.target {
                None => {
                    let file = self.file(piece.segment);
                    self.traffic.add(target, written, file.bytes);
                    files.push(file);
                }
                Some(number) => self.append(target, number, piece.segment),
            }
        }
        self.cursors[job.level] = Some(job.claim.largest);
        self.install(target, files);
    }

    /// The output of a merge.
    fn merged(&self, job: &Job) -> Vec<Piece> {
        let target = job.claim.level;
        let level = |level: usize, numbers: &[FileNumber]| -> Vec<&FileSummary<u64>> {
            let numbers: BTreeSet<FileNumber> = numbers.iter().copied().collect();
            let files = self.summary.level(level).iter();
            files.filter(|file| numbers.contains(&file.number)).collect()
        };
        let upper = level(job.level, &job.upper);
        let is_below = target > job.level;
        let lower = if is_below {
            level(target, &[&job.lower[..], &job.targets[..]].concat())
        } else {
            Vec::new()
        };
        let newest_first = |file: &&FileSummary<u64>| self.contents[&file.number].iter().rev();
        let uppers: Vec<&Segment> = upper.iter().flat_map(newest_first).collect();
        let bytes = |from: Option<&u64>, to: Option<&u64>| {
            let from = from.copied().unwrap_or(0);
            let to = to.copied().unwrap_or(u64::MAX);
            let parts = uppers.iter().map(|segment| {
                let first = from.max(segment.span.smallest);
                let last = to.min(segment.span.largest);
                if first > last {
                    return 0.0;
                }
                let inside = Span {
                    smallest: first,
                    largest: last,
                };
                self.sizes.bytes(segment.count) * (inside.width() / segment.span.width())
            });
            whole(parts.sum())
        };
        let file_bytes = self.file_bytes(target);
        let zones = Zones::new(&lower, &job.targets, file_bytes, bytes);
        let cutter = OutputCutter::new(&self.summary, &job.claim, zones);
        let deeper = DeeperLevels::new(&self.summary, &job.claim, &job.targets);
        let mut begins = cutter.ends().iter().filter_map(|end| end.checked_add(1)).collect::<Vec<u64>>();
        for file in &lower {
            begins.push(file.smallest);
            begins.extend(file.largest.checked_add(1));
        }
        let rewritten = lower.iter().filter(|file| !job.targets.contains(&file.number));
        let sources: Vec<&Segment> = uppers
            .iter()
            .copied()
            .chain(rewritten.flat_map(newest_first))
            .collect();
        Merge::new(&self.universe, self.sizes, cutter, deeper).run(&sources, &mut begins)
    }

    /// The size at which a merge into `level` closes a file.
    fn file_bytes(&self, level: usize) -> u64 {
        let capacity = capacities(self.options, self.summary.level_count.max(level))[level];
        target_file_bytes(self.options, self.summary.level_count, level)
            .max(capacity / self.files_per_level)
    }

    fn append(&mut self, level: usize, number: FileNumber, segment: Segment) {
        let added = self.summarise(&segment);
        self.traffic.add(level, Cause::Append, added.bytes);
        let logical = whole(self.logical.bytes(segment.count).round());
        let tombstones = whole(segment.count.tombstones.round());
        let mut files = self.summary.levels[level].iter_mut();
        let (Some(file), Some(segments)) = (
            files.find(|file| file.number == number),
            self.contents.get_mut(&number),
        ) else {
            unreachable!("a plan names files of its tree")
        };
        file.smallest = file.smallest.min(segment.span.smallest);
        file.largest = file.largest.max(segment.span.largest);
        file.bytes += added.bytes;
        file.logical_bytes += logical;
        file.entries += added.entries;
        file.tombstones += tombstones;
        file.segments.push(added);
        segments.push(segment);
    }

    fn summarise(&self, segment: &Segment) -> SegmentSummary {
        SegmentSummary {
            bytes: whole(self.sizes.bytes(segment.count).round()) + TABLE_BYTES,
            entries: whole(segment.count.entries.round()).max(1),
            filter_units: [0; FILTER_UNITS_MAX],
        }
    }

    /// A new file of one segment.
    fn file(&mut self, segment: Segment) -> FileSummary<u64> {
        self.next_file += 1;
        let number = FileNumber(self.next_file);
        let summary = self.summarise(&segment);
        let file = FileSummary {
            number,
            smallest: segment.span.smallest,
            largest: segment.span.largest,
            bytes: summary.bytes,
            logical_bytes: whole(self.logical.bytes(segment.count).round()),
            entries: summary.entries,
            tombstones: whole(segment.count.tombstones.round()),
            sequence_min: 1,
            transient_bytes: 0,
            pinned_bytes: 0,
            transient_runs: 0,
            log_bytes: 0,
            moved_bytes: 0,
            segments: vec![summary],
            visits: 0,
            sealed: false,
            busy: false,
        };
        self.contents.insert(number, vec![segment]);
        file
    }

    fn take(&mut self, level: usize, numbers: &[FileNumber]) -> Vec<FileSummary<u64>> {
        let numbers: BTreeSet<FileNumber> = numbers.iter().copied().collect();
        let files = &mut self.summary.levels[level];
        let taken = files.extract_if(.., |file| numbers.contains(&file.number));
        taken.collect()
    }

    fn install(&mut self, level: usize, files: Vec<FileSummary<u64>>) {
        let own = &mut self.summary.levels[level];
        own.extend(files);
        own.sort_by_key(|file| file.smallest);
        debug_assert!(own.windows(2).all(|pair| pair[0].largest < pair[1].smallest));
    }

    /// All bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        let files = self.summary.levels.iter().flatten();
        files.map(|file| file.bytes).sum()
    }

    /// Bytes that so many values take in tables.
    pub(super) fn value_bytes(&self, values: f64) -> f64 {
        self.sizes.value * values
    }

    /// The keys that a reader can see behind so many draws, where it could see `live` before.
    pub(super) fn live_after(&self, live: f64, draws: f64, deletes: f64) -> f64 {
        let all = self.universe.keys;
        let classes = self.universe.classes.iter();
        let after = classes.map(|class| {
            let hit = -(-draws * class.drawn / class.keys).exp_m1();
            class.keys * ((1.0 - hit) * (live / all) + hit * (1.0 - deletes))
        });
        after.sum()
    }

    /// What all segments hold.
    pub(super) fn count(&self) -> Count {
        let mut count = Count::default();
        for segment in self.contents.values().flatten() {
            count += segment.count;
        }
        count
    }

    /// Segments that a key is in the range of, on average over the key space.
    pub(super) fn runs(&self) -> f64 {
        let segments = self.contents.values().flatten();
        segments.map(|segment| segment.span.width()).sum()
    }

    /// The runs of level 0, and in each deeper level the most segments of a file.
    pub(super) fn runs_most(&self) -> usize {
        let levels = self.summary.levels.iter().enumerate();
        let most = levels.map(|(level, files)| match level {
            0 => files.len(),
            _ => files.iter().map(|file| file.segments.len()).max().unwrap_or(0),
        });
        most.sum()
    }
}
