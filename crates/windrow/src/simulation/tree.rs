//! A tree of sizes, and the jobs that the policy plans for it.
//!
//! I1. Every file of the summary has its segments in `contents`, in the same order.
//! I2. Bytes and entries of a file are those of its segments.

use std::collections::{BTreeSet, HashMap};

use super::contents::{Class, Segment, Span, Universe};
use super::load::Load;
use super::merge::{EntrySizes, Merge, Piece, entries_together};
use super::outcome::{IoStats, Spread};
use super::values::{Carried, Placing, Referred, ValueFiles, log_place};
use crate::base::{Cause, FileNumber};
use crate::filter::{FILTER_UNITS_MAX, LoadedUnits, false_positive_rate, keys_there, units_rate};
use crate::options::KeyspaceOptions;
use crate::policy::{
    self, Claim, DeeperLevels, FileSummary, OutputCutter, Placement, Plan, Purpose, SegmentSummary,
    TreeSummary, VICTIMS_MAX, Zones, allocate_filters, filter_units, flush_fraction, next_allowed,
    output_fractions, plan, price_alone, target_file_bytes, victims, wants_seal, whole,
};

/// What a table takes for an entry beside key and value: header, slot, and its parts of block, index and filter.
const TABLE_ENTRY_BYTES: u64 = 7;

/// What a table takes beside its entries.
const TABLE_BYTES: u64 = 300;

/// Trees of fewer files have their filter bits shared out anew after each job, and others when such a part
/// of the entries has changed, as in the engine.
const FILES_FEW: usize = 256;
const CHANGE_DUE: u64 = 64;

/// Bits per key of filter units.
type Units = [f64; FILTER_UNITS_MAX];

/// Jobs behind one flush that are beyond reason.
const JOBS_MAX: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct Tree<'a> {
    load: &'a Load,
    /// Those of the load, for the part of the tree that is simulated.
    pub(super) options: KeyspaceOptions,
    universe: Universe,
    sizes: EntrySizes,
    logical: EntrySizes,
    pub(super) placing: Placing,
    pub(super) values: ValueFiles,
    pub(super) summary: TreeSummary<u64>,
    contents: HashMap<FileNumber, Contents>,
    cursors: Vec<Option<u64>>,
    next_file: u64,
    pub(super) io_stats: IoStats,
    pub(super) jobs: u64,
    pub(super) garbage_collections: u64,
    filters: Option<Filters>,
}

/// The filter bits of a tree.
#[derive(Debug)]
struct Filters {
    /// What a bit costs.
    price: f64,
    /// Entries that came with files written since bits were shared out, as in the engine.
    changed: u64,
    /// What each file is granted.
    allocated: HashMap<FileNumber, LoadedUnits>,
}

impl Filters {
    /// What each segment of `file` has in memory, in bytes, and the part of absent keys that passes it.
    fn loaded<'f>(&self, file: &'f FileSummary<u64>) -> impl Iterator<Item = (u64, f64)> + use<'f> {
        let allocated = self.allocated.get(&file.number);
        let allocated = allocated.copied().unwrap_or(LoadedUnits::ALL);
        let segments = file.segments.iter().enumerate();
        segments.map(move |(number, segment)| {
            let units = &segment.filter_units[..allocated.of(number).min(FILTER_UNITS_MAX)];
            let rate = units_rate(units.iter().copied(), segment.entries);
            (units.iter().sum(), rate)
        })
    }
}

/// What a file holds.
#[derive(Debug)]
struct Contents {
    /// Oldest first.
    segments: Vec<Segment>,
    /// What these refer to, once it was asked for.
    referred: Option<Referred>,
    /// How often seeks have visited a run more for it.
    visits: f64,
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
        let key = load.key_bytes as f64;
        let values = ValueFiles::new(load);
        let placing = Placing::of(load);
        let filter = if load.filters {
            0.0
        } else {
            load.options.bits_per_key / 8.0
        };
        let overhead = TABLE_ENTRY_BYTES as f64 + filter - load.shared_key_bytes as f64;
        Self {
            load,
            options: load.part.options(&load.options, 1),
            universe: load.universe(),
            sizes: EntrySizes {
                value: placing.in_table() + overhead,
                tombstone: key + overhead,
                saved_by_transient_log: placing.saved_by_transient_log(),
                in_run: placing.transient_log_record(),
                medium_fraction: placing.medium_fraction(),
            },
            logical: EntrySizes {
                // What stands in a log is never merged: a level holds its pointer.
                value: placing.in_table(),
                tombstone: key,
                saved_by_transient_log: 0.0,
                in_run: 0.0,
                medium_fraction: 0.0,
            },
            placing,
            values,
            summary: TreeSummary {
                level_count: 1,
                levels: vec![Vec::new(); 17],
                claims: Vec::new(),
                allowed: Vec::new(),
                files_max: load.files_max,
                transient_files: 0,
                logs: Vec::new(),
            },
            contents: HashMap::new(),
            cursors: vec![None; 17],
            next_file: 0,
            io_stats: IoStats::default(),
            jobs: 0,
            garbage_collections: 0,
            filters: load.filters.then(|| Filters {
                price: price_alone(&load.options),
                changed: 0,
                allocated: HashMap::new(),
            }),
        }
    }

    /// Flushes a memtable with so many inserts and draws between these keys.
    pub(super) fn flush(&mut self, span: Span, inserts: f64, draws: f64, deletes: f64) {
        let mut segment = self.universe.written(span, inserts, draws, deletes);
        let entries = self.universe.values(&segment);
        let writes = inserts + draws * (1.0 - deletes);
        let transient_file_bytes = policy::transient_file_bytes(self.flushed_file_bytes());
        let files = self.summary.levels.iter().flatten();
        let ranges = files.map(|file| (file.smallest, file.largest));
        let stays = policy::mediums_stay(ranges, (span.smallest, span.largest), &self.options);
        let run = (!stays).then_some((self.options.medium_order, transient_file_bytes));
        let (run, logs) = self.values.flush(&mut segment, writes, run, &entries);
        self.io_stats.add(0, Cause::TransientLog, run);
        self.io_stats.value_logs += logs;
        let units = self.units(|summary| {
            let claim = Claim {
                level: 0,
                smallest: span.smallest,
                largest: span.largest,
            };
            flush_fraction(summary, &claim, whole(segment.count.entries))
        });
        let file = self.file(segment, units);
        self.io_stats.add(0, Cause::Flush, file.bytes);
        let entries = file.entries;
        self.summary.levels[0].insert(0, file);
        self.note_change(entries);
    }

    /// The size of tables where what is flushed comes from: where that is a level above a part, it has them as
    /// large as the first level of the part.
    fn flushed_file_bytes(&self) -> u64 {
        if self.load.part.above > 0 {
            target_file_bytes(&self.summary, &self.options, 1)
        } else {
            self.options.file_bytes
        }
    }

    /// Runs jobs one at a time until none is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..JOBS_MAX {
            if !self.step() && !self.collect() {
                return;
            }
        }
        unreachable!("the policy never comes to rest");
    }

    /// Collects the value logs that the policy names; whether there were any.
    fn collect(&mut self) -> bool {
        if self.summary.logs.is_empty() {
            return false;
        }
        let options = self.values.log_options();
        let victims = victims(&self.summary, options, VICTIMS_MAX);
        if victims.is_empty() {
            if !wants_seal(&self.summary, options) {
                return false;
            }
            self.values.seal_early();
        } else {
            let victims: Vec<usize> = victims.into_iter().map(log_place).collect();
            let gc_result = self.values.collect(&victims);
            self.io_stats.gc_read += gc_result.read;
            self.io_stats.gc_written += gc_result.written;
            self.garbage_collections += 1;
        }
        self.note_values();
        true
    }

    /// Tells the summary what stands apart.
    fn note_values(&mut self) {
        self.values.sweep();
        if self.values.is_empty() {
            return;
        }
        for file in self.summary.levels.iter_mut().flatten() {
            let Some(contents) = self.contents.get_mut(&file.number) else {
                unreachable!("every file has its segments there")
            };
            let segments = contents.segments.iter();
            let referred = contents
                .referred
                .get_or_insert_with(|| self.values.referred(segments));
            let apart = self.values.apart(referred);
            file.transient_bytes = whole(apart.transient_bytes);
            file.pinned_bytes = whole(apart.pinned_bytes).max(file.transient_bytes);
            file.transient_files = u32::try_from(whole(apart.transient_files)).unwrap_or(u32::MAX);
            file.log_bytes = whole(apart.log_bytes);
            file.moved_bytes = whole(apart.moved_bytes);
        }
        self.summary.transient_files = self.values.transient_files();
        self.summary.logs = self.values.logs();
    }

    /// Runs the next job; whether there was one.
    fn step(&mut self) -> bool {
        let entries = match plan(&self.summary, &self.options, &self.cursors) {
            Plan::Idle => return false,
            Plan::Resize { level_count } => {
                self.resize(level_count);
                0
            }
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
        };
        self.jobs += 1;
        self.note_change(entries);
        true
    }

    /// From now on there are so many levels.
    fn resize(&mut self, level_count: usize) {
        self.summary.level_count = level_count;
        let part = self.load.part;
        self.options = part.options(&self.load.options, level_count);
        // Of a part, capacities do not tell what it would be with a level less: so a claim of no key keeps
        // the last level.
        self.summary.claims.clear();
        if part.above > 0 && level_count > 1 {
            self.summary.claims.push(Claim {
                level: level_count,
                smallest: u64::MAX,
                largest: 0,
            });
        }
    }

    /// The tree has changed, with files or segments of so many entries.
    fn note_change(&mut self, entries: u64) {
        self.note_values();
        self.summary.allowed = next_allowed(&self.summary, &self.options);
        self.allocate_bits(entries);
    }

    /// Carries out a move.
    fn carry(&mut self, level: usize, number: FileNumber, claim: &Claim<u64>) -> u64 {
        let files = self.take(level, &[number]);
        for file in &files {
            self.io_stats.add(claim.level, Cause::Move, file.bytes);
        }
        let entries = files.iter().map(|file| file.entries).sum();
        self.cursors[level] = Some(claim.largest);
        self.install(claim.level, files);
        entries
    }

    /// Carries out a merge; returns the entries written.
    fn merge(&mut self, job: &Job) -> u64 {
        let target = job.claim.level;
        let pieces = self.merged(job);
        let inputs = [&job.upper[..], &job.lower[..]].concat();
        let fractions = |summary: &TreeSummary<u64>| {
            output_fractions(summary, &job.claim, &inputs, &job.targets)
        };
        let anew = self.units(|summary| fractions(summary).written_anew);
        let appended = self.units(|summary| fractions(summary).appended);
        let (read, written) = match job.purpose {
            Purpose::Tree => (Cause::Read, Cause::Rewrite),
            Purpose::Consolidation => (Cause::ConsolidationRead, Cause::Consolidation),
            Purpose::Pointers => (Cause::PointerRewriteRead, Cause::PointerRewrite),
        };
        let mut entries = 0;
        let upper = self.take(job.level, &job.upper);
        let lower = self.take(target, &job.lower);
        for file in upper.iter().chain(&lower) {
            self.io_stats.add(target, read, file.bytes);
            for segment in self
                .contents
                .remove(&file.number)
                .into_iter()
                .flat_map(|it| it.segments)
            {
                self.values.release(&segment);
            }
        }
        let mut files = Vec::new();
        for piece in pieces {
            entries += whole(piece.segment.count.entries);
            match piece.target {
                None => {
                    let file = self.file(piece.segment, anew);
                    self.io_stats.add(target, written, file.bytes);
                    files.push(file);
                }
                Some(number) => self.append(target, number, piece.segment, appended),
            }
        }
        self.cursors[job.level] = Some(job.claim.largest);
        self.install(target, files);
        entries
    }

    /// The output of a merge.
    fn merged(&mut self, job: &Job) -> Vec<Piece> {
        let (mut pieces, carried, span) = self.merged_apart(job);
        if carried.is_empty() {
            return pieces;
        }
        let target = job.claim.level;
        let read = carried.transient_logs_read(&self.values, span);
        self.io_stats.add(target, Cause::TransientLogRead, read);
        let mut files = Vec::new();
        for (met, entries) in carried.met.iter().zip(&carried.written) {
            files.push(met.file.unwrap_or_else(|| {
                let file = self.values.transient_file(met.span, 1.0, *entries);
                let bytes = self.values.file(file).bytes();
                self.io_stats.add(target, Cause::TransientLog, whole(bytes));
                file
            }));
        }
        for piece in &mut pieces {
            for file in &mut piece.segment.references.files {
                *file = files[*file];
            }
        }
        pieces
    }

    /// The same, with what it refers to by places in what comes with it, and the keys of its uppers.
    fn merged_apart(&self, job: &Job) -> (Vec<Piece>, Carried, Span) {
        let target = job.claim.level;
        let level = |level: usize, numbers: &[FileNumber]| -> Vec<&FileSummary<u64>> {
            let numbers: BTreeSet<FileNumber> = numbers.iter().copied().collect();
            let files = self.summary.level(level).iter();
            files
                .filter(|file| numbers.contains(&file.number))
                .collect()
        };
        let upper = level(job.level, &job.upper);
        let is_below = target > job.level;
        let lower = if is_below {
            level(target, &[&job.lower[..], &job.targets[..]].concat())
        } else {
            Vec::new()
        };
        let newest_first =
            |file: &&FileSummary<u64>| self.contents[&file.number].segments.iter().rev();
        let uppers: Vec<&Segment> = upper.iter().flat_map(newest_first).collect();
        let in_place = Placement::of(&self.summary, &self.options).merges_in_place(target);
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
                let bytes = self.sizes.merged_cut_bytes(segment.count, in_place);
                bytes * (inside.width() / segment.span.width())
            });
            whole(parts.sum())
        };
        let file_bytes = target_file_bytes(&self.summary, &self.options, target);
        let zones = Zones::new(&lower, &job.targets, (file_bytes, in_place), bytes);
        let cutter = OutputCutter::new(&self.summary, &job.claim, zones);
        let deeper = DeeperLevels::new(&self.summary, &job.claim, &job.targets);
        let mut begins = cutter
            .ends()
            .iter()
            .filter_map(|end| end.checked_add(1))
            .collect::<Vec<u64>>();
        for file in &lower {
            begins.push(file.smallest);
            begins.extend(file.largest.checked_add(1));
        }
        let rewritten = lower
            .iter()
            .filter(|file| !job.targets.contains(&file.number));
        let sources: Vec<&Segment> = uppers
            .iter()
            .copied()
            .chain(rewritten.flat_map(newest_first))
            .collect();
        let carried = Carried::new(
            &self.values,
            &sources,
            self.universe.classes.len(),
            in_place,
            (self.options.medium_order, file_bytes),
        );
        let span = Span {
            smallest: sources.iter().map(|it| it.span.smallest).min().unwrap_or(0),
            largest: sources.iter().map(|it| it.span.largest).max().unwrap_or(0),
        };
        let merge = Merge::new(&self.universe, self.sizes, cutter, deeper, carried);
        let (pieces, carried) = merge.run(&sources, &mut begins);
        (pieces, carried, span)
    }

    fn append(&mut self, level: usize, number: FileNumber, segment: Segment, units: Units) {
        let mut added = self.summarise(&segment, units);
        added.overwrites = self.overwrites(level, number, &segment);
        self.io_stats.add(level, Cause::Append, added.bytes);
        let logical = whole(self.logical.bytes(segment.count).round());
        let tombstones = whole(segment.count.tombstones.round());
        let mut files = self.summary.levels[level].iter_mut();
        let (Some(file), Some(contents)) = (
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
        let allocated = self.filters.as_mut().map(|filters| &mut filters.allocated);
        if let Some(units) = allocated.and_then(|allocated| allocated.get_mut(&number)) {
            *units = units.with_all_behind(file.segments.len());
        }
        file.segments.push(added);
        self.values.refer(&segment);
        contents.segments.push(segment);
        contents.referred = None;
        // The engine counts for the file as it is.
        contents.visits = 0.0;
        file.visits = 0;
    }

    /// How many keys of `segment` the older segments of the file have too, by their filters.
    fn overwrites(&self, level: usize, number: FileNumber, segment: &Segment) -> u64 {
        let own = self.contents[&number].segments.iter().rev();
        let all: Vec<&Segment> = std::iter::once(segment).chain(own).collect();
        let before = entries_together(&self.universe, &all[1..]);
        let entries = segment.count.entries;
        let common = entries + before - entries_together(&self.universe, &all);
        let mut files = self.summary.level(level).iter();
        let Some(file) = files.find(|file| file.number == number) else {
            unreachable!("a plan names files of its tree")
        };
        let rates: Vec<f64> = match &self.filters {
            Some(filters) => filters.loaded(file).map(|(_, rate)| rate).collect(),
            None => vec![false_positive_rate(self.options.bits_per_key); file.segments.len()],
        };
        let rejected: f64 = rates.iter().map(|rate| 1.0 - rate).product();
        let passed = entries - (entries - common) * rejected;
        keys_there(entries, passed, rates)
    }

    fn summarise(&self, segment: &Segment, units: Units) -> SegmentSummary {
        let entries = segment.count.entries;
        let filter_units = units.map(|bits| whole((entries * bits / 8.0).ceil()));
        let filters: u64 = filter_units.iter().sum();
        SegmentSummary {
            bytes: whole(self.sizes.bytes(segment.count).round()) + filters + TABLE_BYTES,
            entries: whole(entries.round()).max(1),
            sequence_min: 1,
            overwrites: 0,
            filter_units,
        }
    }

    /// The bits per key of the filter units of what will have a share of the entries around it.
    fn units(&self, fraction: impl Fn(&TreeSummary<u64>) -> f64) -> Units {
        let units = self.filters.as_ref().map(|filters| {
            let fraction = fraction(&self.summary);
            filter_units(fraction, filters.price, &self.options)
        });
        units.unwrap_or([0.0; FILTER_UNITS_MAX])
    }

    /// Shares the filter bits out, where enough has changed.
    fn allocate_bits(&mut self, entries: u64) {
        let Some(filters) = &mut self.filters else {
            return;
        };
        filters.changed += entries;
        let files = self.summary.levels.iter().flatten();
        let all: u64 = files.clone().map(|file| file.entries).sum();
        if files.count() > FILES_FEW && filters.changed < all / CHANGE_DUE {
            return;
        }
        let allocations = allocate_filters(&self.summary, &self.options);
        *filters = Filters {
            price: allocations.price,
            changed: 0,
            allocated: allocations.units.into_iter().collect(),
        };
    }

    /// Bytes of filters in memory, and the blocks that a get of an absent key reads in vain on average.
    pub(super) fn filters(&self) -> (u64, f64) {
        let (mut bytes, mut reads) = (0, 0.0);
        let Some(filters) = &self.filters else {
            return (bytes, reads);
        };
        for file in self.summary.levels.iter().flatten() {
            let own = &self.contents[&file.number].segments;
            for ((loaded, rate), own) in filters.loaded(file).zip(own) {
                bytes += loaded;
                reads += own.span.width() * rate;
            }
        }
        (bytes, reads)
    }

    /// How the entries of each level are spread over runs.
    pub(super) fn spreads(&self) -> Vec<Spread> {
        let of = |file: &FileSummary<u64>| {
            let own = &self.contents[&file.number].segments;
            let segments = file.segments.iter().zip(own);
            let spreads = segments
                .map(|(segment, own)| Spread::segment(segment.entries as f64, own.span.width()));
            spreads.fold(Spread::default(), Spread::and)
        };
        let levels = self.summary.levels.iter();
        levels
            .map(|files| files.iter().map(of).fold(Spread::default(), Spread::and))
            .collect()
    }

    /// So many cursors are moved to random keys.
    pub(super) fn seek(&mut self, seeks: f64) {
        for (level, files) in self.summary.levels.iter_mut().enumerate() {
            for file in files {
                let Some(contents) = self.contents.get_mut(&file.number) else {
                    continue;
                };
                let widths = contents.segments.iter().map(|it| it.span.width());
                let runs: f64 = match level {
                    0 => widths.sum(),
                    _ => widths.skip(1).sum(),
                };
                contents.visits += seeks * runs;
                file.visits = whole(contents.visits);
            }
        }
    }

    /// A new file of one segment.
    fn file(&mut self, segment: Segment, units: Units) -> FileSummary<u64> {
        self.next_file += 1;
        let number = FileNumber(self.next_file);
        let summary = self.summarise(&segment, units);
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
            transient_files: 0,
            log_bytes: 0,
            moved_bytes: 0,
            segments: vec![summary],
            visits: 0,
            sealed: false,
            busy: false,
        };
        self.values.refer(&segment);
        let contents = Contents {
            segments: vec![segment],
            referred: None,
            visits: 0.0,
        };
        self.contents.insert(number, contents);
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
        debug_assert!(
            own.windows(2)
                .all(|pair| pair[0].largest < pair[1].smallest)
        );
    }

    /// All bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        let files = self.summary.levels.iter().flatten();
        let values = self.values.space();
        files.map(|file| file.bytes).sum::<u64>() + values.transient_log_bytes + values.log_bytes
    }

    /// Bytes that so many values take in tables and logs.
    pub(super) fn value_bytes(&self, values: f64) -> f64 {
        (self.sizes.value + self.placing.in_logs()) * values
    }

    /// The keys of each class that a reader can see behind so many inserts and draws, where it could see
    /// `live` before, none where that is empty.
    pub(super) fn live_after(
        &self,
        live: &[f64],
        inserts: f64,
        draws: f64,
        deletes: f64,
    ) -> Vec<f64> {
        let classes = self.universe.classes.iter().enumerate();
        let after = |(position, class): (usize, &Class)| {
            let live = live.get(position).copied().unwrap_or(0.0);
            let hit = -(-draws * class.drawn / class.keys).exp_m1();
            let inserted = inserts * class.keys / self.universe.keys;
            live * (1.0 - hit) + class.keys * hit * (1.0 - deletes) + inserted
        };
        classes.map(after).collect()
    }

    /// Of each level, the segments that a key is in the range of, on average over the key space.
    pub(super) fn runs(&self) -> Vec<f64> {
        let width = |file: &FileSummary<u64>| -> f64 {
            let segments = self.contents[&file.number].segments.iter();
            segments.map(|segment| segment.span.width()).sum()
        };
        let levels = self.summary.levels.iter();
        levels.map(|files| files.iter().map(width).sum()).collect()
    }

    /// The runs of level 0, and of each deeper level the most segments of a file.
    pub(super) fn runs_most(&self) -> Vec<usize> {
        let levels = self.summary.levels.iter().enumerate();
        let most = levels.map(|(level, files)| match level {
            0 => files.len(),
            _ => files
                .iter()
                .map(|file| file.segments.len())
                .max()
                .unwrap_or(0),
        });
        most.collect()
    }
}
