//! The state of a simulated tree: its files, and what they hold.
//!
//! I1. Every file of the summary has its segments in `contents`, in the same order.
//! I2. Bytes and entries of a file are those of its segments.

use std::collections::{BTreeSet, HashMap};

use super::expiry::note_expired;
use super::filters::Filters;
use crate::base::{Cause, FileNumber};
use crate::filter::{FILTER_UNITS_MAX, false_positive_rate, keys_present};
use crate::options::KeyspaceOptions;
use crate::policy::{
    FileSummary, SegmentSummary, TreeSummary, bounded_capacities, capacities, next_allowed, whole,
};
use crate::simulation::entry_sizes::{EntrySizes, ValueClasses};
use crate::simulation::key_space::{KeySpace, Segment};
use crate::simulation::load::Load;
use crate::simulation::merge::merged_entries;
use crate::simulation::outcome::IoStats;
use crate::simulation::references::FileReferences;
use crate::simulation::value_files::ValueFiles;

/// Bytes of a table besides its entries.
const TABLE_BYTES: u64 = 300;

/// Bits per key of filter units.
pub(super) type Units = [f64; FILTER_UNITS_MAX];

#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(super) load: &'a Load,
    /// The options of the load, for the part of the tree that is simulated.
    pub(crate) options: KeyspaceOptions,
    pub(crate) key_space: KeySpace,
    pub(super) sizes: EntrySizes,
    logical: EntrySizes,
    pub(crate) classes: ValueClasses,
    pub(crate) values: ValueFiles,
    pub(crate) summary: TreeSummary<u64>,
    pub(super) contents: HashMap<FileNumber, Contents>,
    pub(super) cursors: Vec<Option<u64>>,
    next_file: u64,
    pub(crate) io_stats: IoStats,
    pub(crate) jobs: u64,
    pub(crate) garbage_collections: u64,
    pub(super) filters: Option<Filters>,
    /// The writes so far.
    pub(super) now: f64,
}

/// What a file holds.
#[derive(Debug)]
pub(super) struct Contents {
    /// Oldest first.
    pub(super) segments: Vec<Segment>,
    /// What these refer to, once that is known.
    referred: Option<FileReferences>,
    /// How often seeks have visited one more run because of it.
    visits: f64,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(load: &'a Load) -> Self {
        let classes = ValueClasses::of(load);
        Self {
            load,
            options: load.part.options(&load.options, 1),
            key_space: load.key_space(),
            sizes: EntrySizes::of(load, &classes),
            logical: EntrySizes::logical(&classes),
            classes,
            values: ValueFiles::new(load, classes),
            summary: TreeSummary::new(1, vec![Vec::new(); 17], load.files_max),
            contents: HashMap::new(),
            cursors: vec![None; 17],
            next_file: 0,
            io_stats: IoStats::default(),
            jobs: 0,
            garbage_collections: 0,
            filters: load.filters.then(|| Filters::new(&load.options)),
            now: 0.0,
        }
    }

    /// A new file of one segment.
    pub(super) fn file(&mut self, segment: Segment, units: Units) -> FileSummary<u64> {
        self.next_file += 1;
        let number = FileNumber(self.next_file);
        let summary = self.summarise(&segment, units);
        let keys = (segment.span.smallest, segment.span.largest);
        let mut file = FileSummary {
            logical_bytes: whole(self.logical.bytes(segment.count).round()),
            tombstones: tombstones(&segment),
            range_tombstones: whole(segment.count.range_tombstones.round()),
            segments: vec![summary],
            ..FileSummary::new(number, keys, summary.bytes, summary.entries)
        };
        self.values.refer(&segment);
        let contents = Contents {
            segments: vec![segment],
            referred: None,
            visits: 0.0,
        };
        note_expired(&mut file, &contents.segments, self.now);
        self.contents.insert(number, contents);
        file
    }

    /// Removes the files `numbers` from `level`.
    pub(super) fn take(&mut self, level: usize, numbers: &[FileNumber]) -> Vec<FileSummary<u64>> {
        let numbers: BTreeSet<FileNumber> = numbers.iter().copied().collect();
        let files = &mut self.summary.levels[level];
        let taken = files.extract_if(.., |file| numbers.contains(&file.number));
        taken.collect()
    }

    /// Adds `files` to `level`, which is not level 0.
    pub(super) fn install(&mut self, level: usize, files: Vec<FileSummary<u64>>) {
        let own = &mut self.summary.levels[level];
        own.extend(files);
        own.sort_by_key(|file| file.smallest);
        debug_assert!(
            own.windows(2)
                .all(|pair| pair[0].largest < pair[1].smallest)
        );
    }

    /// Drops the segments of files that a compaction has read.
    pub(super) fn release(&mut self, number: FileNumber) {
        let contents = self.contents.remove(&number).into_iter();
        for segment in contents.flat_map(|it| it.segments) {
            self.values.release(&segment);
        }
    }

    /// Appends `segment` to the file `number` of `level`.
    pub(super) fn append(
        &mut self,
        level: usize,
        number: FileNumber,
        segment: Segment,
        units: Units,
    ) {
        let mut added = self.summarise(&segment, units);
        added.overwrites = self.overwrites(level, number, &segment);
        self.io_stats.add(level, Cause::Append, added.bytes);
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
        file.logical_bytes += whole(self.logical.bytes(segment.count).round());
        file.entries += added.entries;
        file.tombstones += tombstones(&segment);
        file.range_tombstones += whole(segment.count.range_tombstones.round());
        if let Some(filters) = &mut self.filters {
            filters.note_append(number, file.segments.len());
        }
        file.segments.push(added);
        self.values.refer(&segment);
        contents.segments.push(segment);
        contents.referred = None;
        note_expired(file, &contents.segments, self.now);
        // In the engine a file begins without visits after it has grown.
        contents.visits = 0.0;
        file.visits = 0;
    }

    /// How many keys of `segment` the older segments of the file have, too, as their filters estimate it.
    fn overwrites(&self, level: usize, number: FileNumber, segment: &Segment) -> u64 {
        let own = self.contents[&number].segments.iter().rev();
        let all: Vec<&Segment> = std::iter::once(segment).chain(own).collect();
        let before = merged_entries(&self.key_space, &all[1..]);
        let entries = segment.count.entries - segment.count.range_tombstones;
        let common = entries + before - merged_entries(&self.key_space, &all);
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
        keys_present(entries, passed, rates)
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
            logs: self.values.log_references(segment),
        }
    }

    /// Notes a change of the tree by files or segments of this many entries.
    pub(super) fn note_change(&mut self, entries: u64) {
        self.note_values();
        self.summary.allowed = next_allowed(&self.summary, &self.options);
        if let Some(filters) = &mut self.filters {
            filters.note_change(&self.summary, &self.options, entries);
        }
    }

    /// Updates the summary from the value files.
    pub(super) fn note_values(&mut self) {
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
            let sums = self.values.referred_bytes(referred);
            file.transient_bytes = whole(sums.transient_bytes);
            file.pinned_bytes = whole(sums.pinned_bytes).max(file.transient_bytes);
            file.transient_files = u32::try_from(whole(sums.transient_files)).unwrap_or(u32::MAX);
            file.log_bytes = whole(sums.log_bytes);
        }
        self.summary.transient_files = self.values.transient_files();
        self.summary.pinned_above = self.pinned_above();
        self.summary.logs = self.values.logs();
        self.summary.moved = self.values.moved_values();
    }

    /// What the levels above keep of transient logs. They are full, and no value is in place there.
    fn pinned_above(&self) -> u64 {
        let part = &self.load.part;
        if part.levels_above == 0 {
            return 0;
        }
        let level_count = self.summary.level_count;
        let bounded = bounded_capacities(&self.summary, &self.options)[1] as f64;
        let nominal = capacities(&self.options, level_count)[1] as f64;
        let held = part.bytes_above(&self.load.options, level_count) as f64 * bounded / nominal;
        whole(held * self.classes.medium_bytes() / self.classes.in_table())
    }

    /// Moves this many cursors to random keys.
    pub(crate) fn seek(&mut self, seeks: f64) {
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
}

/// The tombstones of a segment, those of ranges included.
fn tombstones(segment: &Segment) -> u64 {
    let count = segment.count;
    whole((count.tombstones + count.range_tombstones).round())
}
