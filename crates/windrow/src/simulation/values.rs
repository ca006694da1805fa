//! Values apart from their keys: which entries have them there, the files that they are in, and what is
//! still referred to.
//!
//! A *transient log file* holds values of one part of the key space, a *log* those of a stretch of time. Segments refer
//! to files by how many entries of each class of keys point there; entries lie evenly over what the segment
//! and the file have in common. What nobody refers to in a transient log file keeps its room until the last reference
//! goes; what nobody refers to in a log is dead, and a collection leaves it behind.
//!
//! I1. A file's references are those of all segments of the tree.
//! I2. A log that was collected holds nothing: it leads to its successor, in one step.

use std::collections::HashMap;

use super::contents::{Count, Segment, Span};
use super::load::{Load, ValueSize};
use crate::base::FileNumber;
use crate::options::{KeyspaceOptions, MediumOrder};
use crate::policy::{self, LogSummary, MetTransientLog, whole};

/// What a pointer takes in the place of a value.
const POINTER_BYTES: f64 = 10.0;

/// What a record takes beside its value, and its key in a log.
const RECORD_BYTES: f64 = 8.0;

/// Bytes of a relocation table for each record that it leads on.
const MOVE_BYTES: f64 = 12.05;

/// What is read of such a table at most to lead one pointer on: a block.
const MOVES_BLOCK_BYTES: f64 = 4095.0;

/// How much of such tables a merge keeps in memory.
const MOVES_KEPT_BYTES: f64 = (8 << 20) as f64;

/// Bytes of the lists that name a dead value; a collection reads all lists that speak of its logs, and those
/// of values that die at random speak of every log.
const GARBAGE_BYTES: f64 = 5.0;

/// One flush makes at most so many transient log files; where there would be more, each stands for several.
const TRANSIENT_FILES_OF_FLUSH: u64 = 64;

/// About so many logs are told apart at most: beyond, each is longer and stands for several.
const LOGS_DISTINGUISHED: f64 = 512.0;

/// Fewer entries refer to nothing.
const ENTRIES_MIN: f64 = 0.5;

/// Values of one class of the policy.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Their part of all values.
    fraction: f64,
    /// Bytes of one on average.
    bytes: f64,
}

impl Part {
    fn add(&mut self, size: ValueSize, all: f64) {
        let fraction = size.fraction / all;
        let bytes = self.fraction * self.bytes + fraction * size.bytes as f64;
        self.fraction += fraction;
        if self.fraction > 0.0 {
            self.bytes = bytes / self.fraction;
        }
    }
}

/// How large entries are, and where their values go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placing {
    key: f64,
    small: Part,
    medium: Part,
    large: Part,
}

impl Placing {
    pub(super) fn of(load: &Load) -> Self {
        let all = load.values.iter().map(|size| size.fraction).sum();
        let (mut small, mut medium, mut large) = Default::default();
        for size in &load.values {
            let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            let (key, value) = (bytes(load.key_bytes), bytes(size.bytes));
            let part: &mut Part = match policy::class(key, value, &load.options) {
                policy::Class::Small => &mut small,
                policy::Class::Medium => &mut medium,
                policy::Class::Large => &mut large,
            };
            part.add(*size, all);
        }
        Self {
            key: load.key_bytes as f64,
            small,
            medium,
            large,
        }
    }

    /// Bytes of key and value of an entry on average, with a pointer in place of a large one.
    pub(super) fn in_table(&self) -> f64 {
        let (small, medium) = (self.small, self.medium);
        let values = small.fraction * small.bytes + medium.fraction * medium.bytes;
        self.key + values + self.large.fraction * POINTER_BYTES
    }

    /// Which part of the values is medium.
    pub(super) fn medium_fraction(&self) -> f64 {
        self.medium.fraction
    }

    /// What one takes less while its value is in a run.
    pub(super) fn saved_by_transient_log(&self) -> f64 {
        self.medium.bytes - POINTER_BYTES
    }

    /// Bytes of value logs for one, on average.
    pub(super) fn in_logs(&self) -> f64 {
        self.large.fraction * self.log_record()
    }

    /// What a medium value takes in a run.
    pub(super) fn transient_log_record(&self) -> f64 {
        self.medium.bytes + RECORD_BYTES
    }

    fn log_record(&self) -> f64 {
        self.large.bytes + self.key + RECORD_BYTES
    }
}

/// The references of a segment, or of a part of one.
#[derive(Debug, Clone, Default)]
pub(super) struct References {
    /// Places in [`ValueFiles`], or in what a merge knows.
    pub(super) files: Vec<usize>,
    /// For each file the entries of each class of keys.
    pub(super) entries: Vec<f64>,
}

impl References {
    /// Each file with its entries by class.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let classes = self.entries.len() / self.files.len().max(1);
        let entries = self.entries.chunks_exact(classes.max(1));
        self.files.iter().copied().zip(entries)
    }

    /// The entries by class of the file at `position`.
    fn of(&self, position: usize) -> &[f64] {
        let classes = self.entries.len() / self.files.len().max(1);
        &self.entries[position * classes..][..classes]
    }

    fn push(&mut self, file: usize, entries: impl Iterator<Item = f64>) {
        self.files.push(file);
        self.entries.extend(entries);
    }
}

/// The references of `segments`: the span of the segment, the file, the entries by class.
fn references_of<'s>(
    segments: impl Iterator<Item = &'s Segment>,
) -> impl Iterator<Item = (Span, usize, &'s [f64])> {
    segments.flat_map(|segment| {
        let references = segment.references.iter();
        references.map(|(file, entries)| (segment.span, file, entries))
    })
}

/// A file of values, or several alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueFile {
    pub(super) span: Span,
    pub(super) is_log: bool,
    /// How many it stands for.
    count: f64,
    /// Its records, and the bytes of one.
    records: f64,
    record_bytes: f64,
    /// Entries that refer to it.
    referred: f64,
    /// Whether values are still added.
    is_open: bool,
    /// Where its values have gone, and how many records that leads on (I2).
    gc_output: Option<usize>,
    moves: f64,
}

impl ValueFile {
    pub(super) fn bytes(&self) -> f64 {
        self.records * self.record_bytes
    }

    /// What references keep of it.
    pub(super) fn referred_bytes(&self) -> f64 {
        self.referred.min(self.records) * self.record_bytes
    }

    fn is_transient(&self) -> bool {
        !self.is_log
    }

    /// Of the files that it stands for, those that reach into `span`.
    fn count_in(&self, span: Span) -> f64 {
        (self.count * part_of(span, self.span, self.span)).max(1.0)
    }
}

/// All value files of a tree.
#[derive(Debug)]
pub(super) struct ValueFiles {
    placing: Placing,
    files: Vec<ValueFile>,
    /// Those that are still there, origins of successors among them.
    there: Vec<usize>,
    open_log: Option<usize>,
    /// The options, and with them the length of a log, for logs that stand for several.
    log_options: KeyspaceOptions,
    logs_in_one: f64,
}

/// What a file of a tree refers to in value files.
#[derive(Debug, Clone, Default)]
pub(super) struct Referred {
    /// Run files, each once, with the entries that refer there, and how many files that is.
    transient_logs: Vec<(usize, f64, f64)>,
    /// Logs with such entries.
    logs: Vec<(usize, f64)>,
}

/// What a file of a tree has in value files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Apart {
    pub(super) transient_bytes: f64,
    pub(super) pinned_bytes: f64,
    pub(super) transient_files: f64,
    pub(super) log_bytes: f64,
    pub(super) moved_bytes: f64,
}

/// What one collection has moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct GcResult {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// What value files take.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueSpace {
    /// Files of transient logs.
    pub transient_files: u64,
    /// Bytes in them.
    pub transient_log_bytes: u64,
    /// Those that no entry refers to.
    pub transient_log_garbage_bytes: u64,
    /// Value logs, and successors of collected ones.
    pub log_files: u64,
    /// Bytes in them, relocation tables included.
    pub log_bytes: u64,
    /// Those of values that no entry refers to.
    pub value_log_garbage_bytes: u64,
}

impl ValueFiles {
    pub(super) fn new(load: &Load) -> Self {
        let placing = Placing::of(load);
        let options = &load.options;
        let log_bytes = policy::value_log_bytes(0, options) as f64;
        let most = load.keys as f64 * placing.in_logs();
        let logs_in_one = (most / (log_bytes * LOGS_DISTINGUISHED)).max(1.0);
        Self {
            placing,
            files: Vec::new(),
            there: Vec::new(),
            open_log: None,
            log_options: KeyspaceOptions {
                file_bytes: whole(options.file_bytes as f64 * logs_in_one),
                ..options.clone()
            },
            logs_in_one,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty()
    }

    pub(super) fn file(&self, file: usize) -> &ValueFile {
        &self.files[file]
    }

    /// Where what points to `file` leads.
    pub(super) fn resolve(&self, file: usize) -> usize {
        self.files[file].gc_output.unwrap_or(file)
    }

    /// Options for the policy of collections.
    pub(super) fn log_options(&self) -> &KeyspaceOptions {
        &self.log_options
    }

    /// The transient log files that `segments` refer to, and what of them.
    fn transient_logs_met(&self, segments: &[&Segment]) -> HashMap<usize, MetTransientLog> {
        let mut met: HashMap<usize, MetTransientLog> = HashMap::new();
        for (span, number, entries) in references_of(segments.iter().copied()) {
            let file = &self.files[number];
            if file.is_log {
                continue;
            }
            let transient_log = met.entry(number).or_insert_with(|| MetTransientLog {
                length: whole(file.bytes()),
                referred_bytes: whole(file.referred_bytes()),
                ..MetTransientLog::default()
            });
            transient_log.met_bytes += whole(entries.iter().sum::<f64>() * file.record_bytes);
            transient_log.slices += whole(file.count_in(span).ceil());
        }
        met
    }

    /// Puts apart what belongs there of `segment`, which a flush writes of so many writes with a value;
    /// `run` says in which order values are in a run, and the length of its files; without it they stay where they
    /// are. Returns the bytes written to a run and to logs.
    pub(super) fn flush(
        &mut self,
        segment: &mut Segment,
        writes: f64,
        transient_log: Option<(MediumOrder, u64)>,
        entries: &[f64],
    ) -> (u64, u64) {
        let transient_log = transient_log.map_or(0.0, |transient_log| {
            self.flush_transient_log(segment, transient_log, entries)
        });
        let logs = self.flush_logs(segment, writes, entries);
        (whole(transient_log), whole(logs))
    }

    fn flush_transient_log(
        &mut self,
        segment: &mut Segment,
        (order, transient_file_bytes): (MediumOrder, u64),
        entries: &[f64],
    ) -> f64 {
        let fraction = self.placing.medium.fraction;
        let records = entries.iter().sum::<f64>() * fraction;
        if records < ENTRIES_MIN {
            return 0.0;
        }
        let bytes = records * self.placing.transient_log_record();
        let count = (bytes / transient_file_bytes.max(1) as f64).ceil();
        let distinguished = whole(count).clamp(1, TRANSIENT_FILES_OF_FLUSH);
        let span = segment.span;
        let width = (span.largest - span.smallest) / distinguished;
        let part = fraction / distinguished as f64;
        for position in 0..distinguished {
            let smallest = span.smallest + position * width;
            let is_last = position + 1 == distinguished;
            let own = Span {
                smallest,
                largest: if is_last {
                    span.largest
                } else {
                    smallest + width - 1
                },
            };
            let span = match order {
                MediumOrder::Sorted => own,
                MediumOrder::Written => span,
            };
            let file = self.transient_file(
                span,
                count / distinguished as f64,
                records / distinguished as f64,
            );
            let own = entries.iter().map(|entries| entries * part);
            segment.references.push(file, own);
        }
        segment.count.in_transient_logs = records;
        bytes
    }

    /// A new transient log file with so many records.
    pub(super) fn transient_file(&mut self, span: Span, count: f64, records: f64) -> usize {
        self.add(ValueFile {
            span,
            is_log: false,
            count,
            records,
            record_bytes: self.placing.transient_log_record(),
            referred: 0.0,
            is_open: false,
            gc_output: None,
            moves: 0.0,
        })
    }

    fn add(&mut self, file: ValueFile) -> usize {
        self.files.push(file);
        self.there.push(self.files.len() - 1);
        self.files.len() - 1
    }

    fn flush_logs(&mut self, segment: &mut Segment, writes: f64, entries: &[f64]) -> f64 {
        let fraction = self.placing.large.fraction;
        let record_bytes = self.placing.log_record();
        let most = policy::value_log_bytes(0, &self.log_options) as f64 / record_bytes;
        let all = writes * fraction;
        let mut left = all;
        while left >= ENTRIES_MIN {
            let log = match self.open_log {
                Some(log) => log,
                None => self.add(ValueFile {
                    span: Span::ALL,
                    is_log: true,
                    count: self.logs_in_one,
                    records: 0.0,
                    record_bytes,
                    referred: 0.0,
                    is_open: true,
                    gc_output: None,
                    moves: 0.0,
                }),
            };
            let taken = left.min((most - self.files[log].records).max(1.0));
            self.files[log].records += taken;
            left -= taken;
            let part = fraction * taken / all;
            let own = entries.iter().map(|entries| entries * part);
            segment.references.push(log, own);
            self.open_log = Some(log);
            if self.files[log].records >= most {
                self.seal();
            }
        }
        all * record_bytes
    }

    /// Completes the log that is being written.
    fn seal(&mut self) {
        if let Some(log) = self.open_log.take() {
            self.files[log].is_open = false;
        }
    }

    /// A segment is in the tree from now on.
    pub(super) fn refer(&mut self, segment: &Segment) {
        for (file, entries) in segment.references.iter() {
            self.files[file].referred += entries.iter().sum::<f64>();
        }
    }

    /// A segment is in the tree no more.
    pub(super) fn release(&mut self, segment: &Segment) {
        for (file, entries) in segment.references.iter() {
            self.files[file].referred -= entries.iter().sum::<f64>();
        }
    }

    /// Forgets files that nobody refers to.
    pub(super) fn sweep(&mut self) {
        let live = self.live();
        let files = &self.files;
        self.there.retain(|&file| {
            let led_here = live.get(&file).copied().unwrap_or(0.0);
            files[file].is_open || led_here.max(files[file].referred) >= ENTRIES_MIN
        });
    }

    /// Of each log the records that entries refer to, by way of origins, too.
    fn live(&self) -> HashMap<usize, f64> {
        let mut live = HashMap::new();
        for &file in self.there.iter().filter(|&&file| self.files[file].is_log) {
            *live.entry(self.resolve(file)).or_default() += self.files[file].referred;
        }
        live
    }

    /// What the segments of a file of a tree refer to.
    pub(super) fn referred<'s>(&self, segments: impl Iterator<Item = &'s Segment>) -> Referred {
        let mut referred = Referred::default();
        for (span, number, entries) in references_of(segments) {
            let file = &self.files[number];
            let entries: f64 = entries.iter().sum();
            if file.is_log {
                referred.logs.push((number, entries));
            } else {
                referred
                    .transient_logs
                    .push((number, entries, file.count_in(span)));
            }
        }
        referred
            .transient_logs
            .sort_unstable_by_key(|(file, ..)| *file);
        referred.transient_logs.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
                kept.2 = kept.2.max(next.2);
            }
            is_same
        });
        referred
    }

    /// What of it is apart now.
    pub(super) fn apart(&self, referred: &Referred) -> Apart {
        let mut apart = Apart::default();
        for &(file, entries, count) in &referred.transient_logs {
            let value = &self.files[file];
            apart.transient_bytes += entries * value.record_bytes;
            apart.pinned_bytes += value.bytes() * (entries / value.referred.max(entries));
            apart.transient_files += count;
        }
        for &(file, entries) in &referred.logs {
            let value = &self.files[file];
            let bytes = entries * value.record_bytes;
            apart.log_bytes += bytes;
            if value.gc_output.is_some() {
                apart.moved_bytes += bytes;
            }
        }
        apart
    }

    /// How many files runs have.
    pub(super) fn transient_files(&self) -> u64 {
        let files = self.there.iter().map(|&file| &self.files[file]);
        let transient_logs = files.filter(|file| file.is_transient());
        whole(transient_logs.map(|file| file.count).sum::<f64>().round())
    }

    /// The logs as the policy sees them; numbers are places here.
    pub(super) fn logs(&self) -> Vec<LogSummary> {
        let live = self.live();
        let mut moves: HashMap<usize, f64> = HashMap::new();
        for &file in &self.there {
            if let Some(gc_output) = self.files[file].gc_output {
                *moves.entry(gc_output).or_default() += self.files[file].moves;
            }
        }
        let of = |sums: &HashMap<usize, f64>, file| sums.get(&file).copied().unwrap_or(0.0);
        let is_log = |file: &&usize| {
            let file = &self.files[**file];
            file.is_log && file.gc_output.is_none()
        };
        let summary = |&number: &usize| {
            let file = &self.files[number];
            let records = of(&live, number).min(file.records);
            let moves = of(&moves, number);
            LogSummary {
                number: FileNumber(number as u64),
                table_bytes: whole(moves * MOVE_BYTES),
                live_bytes: whole(records * file.record_bytes),
                garbage_bytes: whole((file.records - records) * file.record_bytes),
                // Of one of those that it stands for, since they are collected one by one.
                moves: whole((file.records + moves) / self.logs_in_one),
                is_ready: !file.is_open,
                is_open: file.is_open,
                failures: 0,
                is_resting: false,
            }
        };
        self.there.iter().filter(is_log).map(summary).collect()
    }

    /// Completes the log that is being written, as the policy wants it.
    pub(super) fn seal_early(&mut self) {
        self.seal();
    }

    /// Copies what is live in `victims` to a successor.
    pub(super) fn collect(&mut self, victims: &[usize]) -> GcResult {
        let live = self.live();
        let of = |file: usize| {
            let live = live.get(&file).copied().unwrap_or(0.0);
            live.min(self.files[file].records)
        };
        let records: f64 = victims.iter().map(|&file| of(file)).sum();
        let count: f64 = victims.iter().map(|&file| self.files[file].count).sum();
        let old: Vec<(usize, f64)> = victims.iter().map(|&file| (file, of(file))).collect();
        let gc_output = self.add(ValueFile {
            span: Span::ALL,
            is_log: true,
            count: self.logs_in_one.min(count),
            records,
            record_bytes: self.placing.log_record(),
            referred: 0.0,
            is_open: false,
            gc_output: None,
            moves: 0.0,
        });
        let garbage = |log: &LogSummary| log.garbage_bytes as f64 / self.placing.log_record();
        let garbage: f64 = self.logs().iter().map(garbage).sum();
        let mut read = garbage * GARBAGE_BYTES * self.logs_in_one;
        let mut moves = 0.0;
        for &origin in &self.there {
            let Some(before) = self.files[origin].gc_output else {
                continue;
            };
            let Some((_, live)) = old.iter().find(|(victim, _)| *victim == before) else {
                continue;
            };
            let kept = live / self.files[before].records.max(1.0);
            let file = &mut self.files[origin];
            read += file.moves * MOVE_BYTES;
            file.gc_output = Some(gc_output);
            file.moves *= kept;
            moves += file.moves;
        }
        for (victim, live) in old {
            let file = &mut self.files[victim];
            read += file.bytes();
            file.gc_output = Some(gc_output);
            (file.moves, file.records) = (live, 0.0);
            moves += live;
        }
        let written = self.files[gc_output].bytes() + moves * MOVE_BYTES;
        self.sweep();
        GcResult {
            read: whole(read),
            written: whole(written),
        }
    }

    /// What all files take.
    pub(super) fn space(&self) -> ValueSpace {
        let mut space = ValueSpace::default();
        let transient_logs = self.there.iter().map(|&file| &self.files[file]);
        for transient_log in transient_logs.filter(|file| file.is_transient()) {
            space.transient_log_bytes += whole(transient_log.bytes());
            space.transient_log_garbage_bytes +=
                whole(transient_log.bytes() - transient_log.referred_bytes());
        }
        space.transient_files = self.transient_files();
        for log in self.logs() {
            let count = self.files[log_place(log.number)].count;
            space.log_files += whole(count.round().max(1.0));
            space.log_bytes += log.live_bytes + log.garbage_bytes + log.table_bytes;
            space.value_log_garbage_bytes += log.garbage_bytes;
        }
        space
    }
}

/// The place of a log that the policy names.
pub(super) fn log_place(number: FileNumber) -> usize {
    usize::try_from(number.0).unwrap_or(usize::MAX)
}

/// What becomes of the values of a file that a merge meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// They stay.
    Stay,
    /// They come back beside their keys.
    ComeBack,
    /// They are written to a new run.
    MoveOn,
}

/// A file that inputs of a merge refer to, or that it writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Met {
    /// Its place in [`ValueFiles`]; none for one that the merge writes.
    pub(super) file: Option<usize>,
    pub(super) span: Span,
    pub(super) is_log: bool,
    pub(super) fate: Fate,
}

/// Entries by file and class, of which most files have none.
#[derive(Debug, Clone, Default)]
struct Sums {
    classes: usize,
    entries: Vec<f64>,
    /// The places of the others, each once, in the order in which they came.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl Sums {
    fn new(files: usize, classes: usize) -> Self {
        let mut sums = Self {
            classes,
            ..Self::default()
        };
        sums.grow(files);
        sums
    }

    fn grow(&mut self, files: usize) {
        self.entries.resize(files * self.classes, 0.0);
        self.is_touched.resize(files, false);
    }

    fn clear(&mut self) {
        for place in self.touched.drain(..) {
            self.entries[place * self.classes..][..self.classes].fill(0.0);
            self.is_touched[place] = false;
        }
    }

    fn of(&self, place: usize) -> &[f64] {
        &self.entries[place * self.classes..][..self.classes]
    }

    fn of_mut(&mut self, place: usize) -> &mut [f64] {
        if !self.is_touched[place] {
            self.is_touched[place] = true;
            self.touched.push(place);
        }
        &mut self.entries[place * self.classes..][..self.classes]
    }

    fn sum(&self, place: usize) -> f64 {
        self.of(place).iter().sum()
    }
}

/// What a source refers to, in cells that ascend.
#[derive(Debug, Default)]
struct Reach {
    /// By the beginnings of the spans in which values of the source are there.
    references: Vec<Reference>,
    /// How many of them begin in the present cell or before.
    begun: usize,
    /// Those of these that do not end before it.
    active: Vec<usize>,
}

/// One of its references.
#[derive(Debug, Clone, Copy)]
struct Reference {
    span: Span,
    /// In the references of the source.
    position: usize,
    /// In `met`.
    place: usize,
    /// In `led`, where a table leads on.
    leads: Option<usize>,
}

/// A relocation table, and how many pointers it leads on.
#[derive(Debug, Clone, Copy)]
struct Led {
    table_bytes: f64,
    pointers: f64,
}

impl Led {
    /// Bytes that are read of the table: of each block that is met once, where `kept` of the blocks are, and a
    /// block for each pointer into the others.
    fn read_bytes(&self, kept: f64) -> f64 {
        let block_bytes = MOVES_BLOCK_BYTES.min(self.table_bytes);
        let blocks = self.table_bytes / block_bytes;
        let met = blocks * -(-self.pointers / blocks).exp_m1();
        (kept * met + (1.0 - kept) * self.pointers) * block_bytes
    }
}

impl Reach {
    fn new(mut references: Vec<Reference>) -> Self {
        references.sort_by_key(|reference| reference.span.smallest);
        Self {
            references,
            ..Self::default()
        }
    }

    fn go_to(&mut self, span: Span) {
        let references = &self.references;
        self.active
            .retain(|&active| references[active].span.largest >= span.smallest);
        let begin = |next: &Reference| next.span.smallest <= span.largest;
        while references.get(self.begun).is_some_and(begin) {
            if references[self.begun].span.largest >= span.smallest {
                self.active.push(self.begun);
            }
            self.begun += 1;
        }
    }
}

/// The values apart of a merge. Places in references of what it writes are those of `met`.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) met: Vec<Met>,
    /// What each source refers to.
    sources: Vec<Reach>,
    /// The tables that lead on what the sources refer to.
    led: Vec<Led>,
    /// What the present cell has of each file and class, and what the piece that is being written has.
    cell: Sums,
    piece: Sums,
    /// Entries in each file of those that were written.
    pub(super) written: Vec<f64>,
    /// The new run that is being written, and how many entries one takes.
    open_transient_log: Option<usize>,
    transient_log_entries: f64,
}

impl Carried {
    /// For a merge of `sources` into tables of `file_bytes`, where runs are begun in `order`; values in runs
    /// come back where `in_place`.
    pub(super) fn new(
        files: &ValueFiles,
        sources: &[&Segment],
        classes: usize,
        in_place: bool,
        (order, file_bytes): (MediumOrder, u64),
    ) -> Self {
        let mut carried = Self {
            transient_log_entries: policy::transient_file_bytes(file_bytes) as f64
                / files.placing.transient_log_record(),
            ..Self::default()
        };
        let met = files.transient_logs_met(sources);
        let moves_on = |transient_log: &MetTransientLog| transient_log.moves_on(order, file_bytes);
        let (mut known, mut led) = (HashMap::new(), HashMap::new());
        for source in sources {
            let mut references = Vec::with_capacity(source.references.files.len());
            for (position, &origin) in source.references.files.iter().enumerate() {
                let file = files.resolve(origin);
                let leads = (file != origin).then(|| {
                    *led.entry(origin).or_insert_with(|| {
                        carried.led.push(Led {
                            table_bytes: files.file(origin).moves.max(1.0) * MOVE_BYTES,
                            pointers: 0.0,
                        });
                        carried.led.len() - 1
                    })
                });
                let place = *known.entry(file).or_insert_with(|| {
                    let value = files.file(file);
                    let fate = if value.is_log {
                        Fate::Stay
                    } else if in_place {
                        Fate::ComeBack
                    } else if met.get(&file).is_some_and(moves_on) {
                        Fate::MoveOn
                    } else {
                        Fate::Stay
                    };
                    carried.met.push(Met {
                        file: Some(file),
                        span: value.span,
                        is_log: value.is_log,
                        fate,
                    });
                    carried.met.len() - 1
                });
                let met = &carried.met[place];
                references.push(Reference {
                    span: if met.is_log { source.span } else { met.span },
                    position,
                    place,
                    leads,
                });
            }
            carried.sources.push(Reach::new(references));
        }
        carried.cell = Sums::new(carried.met.len(), classes);
        carried.piece = carried.cell.clone();
        carried.written = vec![0.0; carried.met.len()];
        carried
    }

    pub(super) fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// A cell begins.
    pub(super) fn begin(&mut self) {
        self.cell.clear();
    }

    /// Takes what `segment`, the source of that number, has in the cell `span`, behind the last; of each class the part
    /// `untouched` is not superseded by newer segments.
    pub(super) fn take(&mut self, source: usize, segment: &Segment, span: Span, untouched: &[f64]) {
        let reach = &mut self.sources[source];
        reach.go_to(span);
        for &active in &reach.active {
            let reference = reach.references[active];
            let part = part_of(span, segment.span, reference.span);
            if part <= 0.0 {
                continue;
            }
            let entries = segment.references.of(reference.position);
            let own = self.cell.of_mut(reference.place);
            for ((sum, entries), untouched) in own.iter_mut().zip(entries).zip(untouched) {
                let kept = entries * part * untouched;
                *sum += kept;
                if let Some(led) = reference.leads {
                    self.led[led].pointers += kept;
                }
            }
        }
    }

    /// The entries of the cell whose values will be in runs.
    pub(super) fn in_transient_logs(&self) -> f64 {
        let stays = |met: &Met| !met.is_log && met.fate != Fate::ComeBack;
        let places = self.cell.touched.iter();
        let transient_logs = places.filter(|&&place| stays(&self.met[place]));
        transient_logs.map(|&place| self.cell.sum(place)).sum()
    }

    /// Writes the part of the `cell` that `span` is to the present piece.
    pub(super) fn write(&mut self, cell: Span, span: Span) {
        let whole_part = span.width() / cell.width();
        for position in 0..self.cell.touched.len() {
            let place = self.cell.touched[position];
            let met = self.met[place];
            let part = if met.is_log {
                whole_part
            } else {
                part_of(span, cell, met.span)
            };
            let entries = self.cell.sum(place) * part;
            if entries <= 0.0 || met.fate == Fate::ComeBack {
                continue;
            }
            let target = match met.fate {
                Fate::MoveOn => self.new_transient_log(span, entries),
                Fate::Stay | Fate::ComeBack => place,
            };
            self.written[target] += entries;
            let sums = self.piece.of_mut(target).iter_mut();
            for (sum, entries) in sums.zip(self.cell.of(place)) {
                *sum += entries * part;
            }
        }
    }

    /// The run to which values in `span` move on.
    fn new_transient_log(&mut self, span: Span, entries: f64) -> usize {
        let is_full = |transient_log: usize| {
            self.written[transient_log] + entries > self.transient_log_entries
        };
        let transient_log = match self.open_transient_log {
            Some(transient_log) if !is_full(transient_log) => transient_log,
            _ => {
                self.met.push(Met {
                    file: None,
                    span,
                    is_log: false,
                    fate: Fate::Stay,
                });
                self.written.push(0.0);
                self.piece.grow(self.met.len());
                self.met.len() - 1
            }
        };
        self.open_transient_log = Some(transient_log);
        self.met[transient_log].span.largest =
            self.met[transient_log].span.largest.max(span.largest);
        transient_log
    }

    /// Ends a piece; what it refers to, and how many entries of it are in runs.
    pub(super) fn close(&mut self, count: &mut Count) -> References {
        let mut references = References::default();
        count.in_transient_logs = 0.0;
        self.piece.touched.sort_unstable();
        for &place in &self.piece.touched {
            let sum = self.piece.sum(place);
            if sum <= 0.0 {
                continue;
            }
            references.push(place, self.piece.of(place).iter().copied());
            if !self.met[place].is_log {
                count.in_transient_logs += sum;
            }
        }
        self.piece.clear();
        references
    }

    /// The bytes that are read of runs, where what is merged lies in `span`, and of relocation tables.
    pub(super) fn transient_logs_read(&self, files: &ValueFiles, span: Span) -> u64 {
        let read = |met: &&Met| !met.is_log && met.fate != Fate::Stay;
        let bytes = |met: &Met| {
            let length = met.file.map_or(0.0, |file| files.file(file).bytes());
            length * part_of(span, met.span, met.span)
        };
        let tables: f64 = self.led.iter().map(|led| led.table_bytes).sum();
        let kept = (MOVES_KEPT_BYTES / tables.max(1.0)).min(1.0);
        let led: f64 = self.led.iter().map(|led| led.read_bytes(kept)).sum();
        whole(self.met.iter().filter(read).map(bytes).sum::<f64>() + led)
    }
}

/// Which part of what `one` and `other` have in common `span` has.
fn part_of(span: Span, one: Span, other: Span) -> f64 {
    let common = one.common(other);
    let own = common.and_then(|common| common.common(span));
    match (own, common) {
        (Some(own), Some(common)) => own.width() / common.width(),
        _ => 0.0,
    }
}
