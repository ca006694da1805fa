//! The value files of a simulated tree, and what segments refer to in them.
//!
//! A *transient log file* holds values of one part of the key space, a *value log* those of a time span. Segments refer
//! to a file by how many entries of each class of keys point there. These entries are spread evenly over
//! the keys that the segment and the file have in common. Garbage in a transient log file keeps its space
//! until the last reference is gone, and garbage in a value log until a garbage collection of the log.
//!
//! I1. A file's references are those of all segments of the tree.
//! I2. A collected value log holds nothing. It leads to its GC output in one step.

use std::collections::HashMap;

use super::entry_sizes::ValueClasses;
use super::key_space::{Segment, Span};
use super::load::Load;
use super::outcome::ValueSpace;
use super::references::{FileReferences, ReferredBytes};
use super::transient_logs::TransientLogs;
use super::value_file::ValueFile;
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;
use crate::policy::{self, InputTransientLog, MovedValues, ReferredLog, whole};
use crate::table::{LogReferences, LogSums, Referred};
use crate::value::LogSummary;

/// Bytes of a relocation table for each record that it leads to.
pub(super) const MOVE_BYTES: f64 = 12.05;

/// Bytes of the discard lists that name one garbage value. A garbage collection reads all lists that name values of its
/// logs. Under random overwrites each list names values of every log.
const GARBAGE_BYTES: f64 = 5.0;

/// About the most value logs that are distinguished. Beyond that, each is longer and stands for several.
const LOGS_DISTINGUISHED: f64 = 512.0;

/// Fewer entries refer to nothing.
const ENTRIES_MIN: f64 = 0.5;

/// The references of `segments`: the span of the segment, the file, the entries by class.
fn references_of<'s>(
    segments: impl Iterator<Item = &'s Segment>,
) -> impl Iterator<Item = (Span, usize, &'s [f64])> {
    segments.flat_map(|segment| {
        let references = segment.references.iter();
        references.map(|(file, entries)| (segment.span, file, entries))
    })
}

/// All value files of a tree.
#[derive(Debug)]
pub(super) struct ValueFiles {
    classes: ValueClasses,
    files: Vec<ValueFile>,
    /// The files that exist, and the collected ones that pointers still lead through.
    present: Vec<usize>,
    open_log: Option<usize>,
    /// The options with the length of a value log that stands for several.
    log_options: KeyspaceOptions,
    logs_in_one: f64,
}

/// The I/O of one garbage collection.
#[derive(Debug, Clone, Copy)]
pub(super) struct GcResult {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl ValueFiles {
    pub(super) fn new(load: &Load, classes: ValueClasses) -> Self {
        let options = &load.options;
        let log_bytes = policy::value_log_bytes(0, options) as f64;
        let bytes_max = load.keys as f64 * classes.in_value_logs();
        let logs_in_one = (bytes_max / (log_bytes * LOGS_DISTINGUISHED)).max(1.0);
        Self {
            classes,
            files: Vec::new(),
            present: Vec::new(),
            open_log: None,
            log_options: KeyspaceOptions {
                file_bytes: whole(options.file_bytes as f64 * logs_in_one),
                ..options.clone()
            },
            logs_in_one,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    pub(super) fn file(&self, file: usize) -> &ValueFile {
        &self.files[file]
    }

    /// The file that holds the values of `file`.
    pub(super) fn resolve(&self, file: usize) -> usize {
        self.files[file].gc_output.unwrap_or(file)
    }

    /// Bytes of a medium value in a transient log.
    pub(super) fn transient_log_record(&self) -> f64 {
        self.classes.transient_log_record()
    }

    /// Options for the policy of garbage collection.
    pub(super) fn log_options(&self) -> &KeyspaceOptions {
        &self.log_options
    }

    /// What `segments` refer to in each transient log file.
    pub(super) fn transient_logs_of(
        &self,
        segments: &[&Segment],
    ) -> HashMap<usize, InputTransientLog> {
        let mut inputs: HashMap<usize, InputTransientLog> = HashMap::new();
        for (span, number, entries) in references_of(segments.iter().copied()) {
            let file = &self.files[number];
            if file.is_log {
                continue;
            }
            let input = inputs.entry(number).or_insert_with(|| InputTransientLog {
                length: whole(file.bytes()),
                referred_bytes: whole(file.referred_bytes()),
                ..InputTransientLog::default()
            });
            input.input_bytes += whole(entries.iter().sum::<f64>() * file.record_bytes);
            input.slices += whole(file.count_in(span).ceil());
        }
        inputs
    }

    /// Writes values of `segment` to value files, for a flush of this many writes with a value. `transient_logs` are
    /// the files of its medium values; if there are none, these stay in the table. Returns the bytes written to
    /// transient logs and to value logs.
    pub(super) fn flush(
        &mut self,
        segment: &mut Segment,
        writes: f64,
        transient_logs: &[TransientLogs],
        entries: &[f64],
    ) -> (u64, u64) {
        let records = entries.iter().sum::<f64>() * self.classes.medium.fraction;
        let mut transient_log_bytes = 0.0;
        if records >= ENTRIES_MIN {
            for logs in transient_logs {
                self.flush_transient_logs(segment, logs, entries);
                transient_log_bytes += records * logs.fraction * self.transient_log_record();
                segment.count.in_transient_logs += records * logs.fraction;
            }
        }
        let logs = self.flush_value_logs(segment, writes, entries);
        (whole(transient_log_bytes), whole(logs))
    }

    fn flush_transient_logs(
        &mut self,
        segment: &mut Segment,
        logs: &TransientLogs,
        entries: &[f64],
    ) {
        let fraction = self.classes.medium.fraction * logs.fraction;
        let records = entries.iter().sum::<f64>() * fraction;
        let count = (records * self.transient_log_record() / logs.file_bytes)
            .ceil()
            .max(1.0);
        let span = segment.span;
        let distinguished = logs.distinguished(count, span);
        let width = (span.largest - span.smallest) / distinguished;
        let (part, layers) = (fraction / distinguished as f64, logs.layers(count, span));
        for position in 0..distinguished {
            let smallest = span.smallest + position * width;
            let is_last = position + 1 == distinguished;
            let largest = if is_last {
                span.largest
            } else {
                smallest + width - 1
            };
            let own = Span { smallest, largest };
            let file = self.add_transient_log(
                own,
                count / distinguished as f64,
                records / distinguished as f64,
            );
            self.files[file].layers = layers;
            let own = entries.iter().map(|entries| entries * part);
            segment.references.push(file, own);
        }
    }

    /// A new transient log file with this many records.
    pub(super) fn add_transient_log(&mut self, span: Span, count: f64, records: f64) -> usize {
        let record_bytes = self.classes.transient_log_record();
        self.add(ValueFile::new(span, false, count, records, record_bytes))
    }

    fn add_log(&mut self, count: f64, records: f64) -> usize {
        let record_bytes = self.classes.value_log_record();
        self.add(ValueFile::new(
            Span::ALL,
            true,
            count,
            records,
            record_bytes,
        ))
    }

    fn add(&mut self, file: ValueFile) -> usize {
        self.files.push(file);
        self.present.push(self.files.len() - 1);
        self.files.len() - 1
    }

    fn flush_value_logs(&mut self, segment: &mut Segment, writes: f64, entries: &[f64]) -> f64 {
        let fraction = self.classes.large.fraction;
        let record_bytes = self.classes.value_log_record();
        let records_max = policy::value_log_bytes(0, &self.log_options) as f64 / record_bytes;
        let all = writes * fraction;
        let mut left = all;
        while left >= ENTRIES_MIN {
            let log = match self.open_log {
                Some(log) => log,
                None => self.add_log(self.logs_in_one, 0.0),
            };
            self.open_log = Some(log);
            self.files[log].is_open = true;
            let taken = left.min((records_max - self.files[log].records).max(1.0));
            self.files[log].records += taken;
            left -= taken;
            let part = fraction * taken / all;
            let own = entries.iter().map(|entries| entries * part);
            segment.references.push(log, own);
            if self.files[log].records >= records_max {
                self.seal();
            }
        }
        all * record_bytes
    }

    /// Completes the open value log.
    pub(super) fn seal(&mut self) {
        if let Some(log) = self.open_log.take() {
            self.files[log].is_open = false;
        }
    }

    /// Adds the references of a new segment of the tree.
    pub(super) fn refer(&mut self, segment: &Segment) {
        for (file, entries) in segment.references.iter() {
            self.files[file].referred += entries.iter().sum::<f64>();
        }
    }

    /// Removes the references of a segment that leaves the tree.
    pub(super) fn release(&mut self, segment: &Segment) {
        for (file, entries) in segment.references.iter() {
            self.files[file].referred -= entries.iter().sum::<f64>();
        }
    }

    /// Drops files without references.
    pub(super) fn sweep(&mut self) {
        let live = self.live();
        let files = &self.files;
        self.present.retain(|&file| {
            let live = live.get(&file).copied().unwrap_or(0.0);
            files[file].is_open || live.max(files[file].referred) >= ENTRIES_MIN
        });
    }

    /// The records of each value log that entries refer to, directly or through relocation tables.
    fn live(&self) -> HashMap<usize, f64> {
        let mut live = HashMap::new();
        let is_log = |file: &&usize| self.files[**file].is_log;
        for &file in self.present.iter().filter(is_log) {
            *live.entry(self.resolve(file)).or_default() += self.files[file].referred;
        }
        live
    }

    /// What the segments of a table file refer to.
    pub(super) fn referred<'s>(
        &self,
        segments: impl Iterator<Item = &'s Segment>,
    ) -> FileReferences {
        let mut referred = FileReferences::default();
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

    /// The present bytes of `referred`.
    pub(super) fn referred_bytes(&self, referred: &FileReferences) -> ReferredBytes {
        let mut sums = ReferredBytes::default();
        for &(file, entries, count) in &referred.transient_logs {
            let value = &self.files[file];
            sums.transient_bytes += entries * value.record_bytes;
            sums.pinned_bytes += value.bytes() * (entries / value.referred.max(entries));
            sums.transient_files += count;
        }
        for &(file, entries) in &referred.logs {
            let value = &self.files[file];
            sums.log_bytes += entries * value.record_bytes;
        }
        sums
    }

    /// What a new segment refers to in value logs, as the manifest records it. Its writer has resolved all pointers.
    pub(super) fn log_references(&self, segment: &Segment) -> Option<LogReferences> {
        let logs = segment.references.iter();
        let logs = logs.filter(|(file, _)| self.files[*file].is_log);
        let logs = logs.map(|(file, entries)| (file, entries.iter().sum::<f64>()));
        let logs: Vec<(usize, f64)> = logs.collect();
        let bytes = |(file, entries): &(usize, f64)| entries * self.files[*file].record_bytes;
        let gc_outputs = self
            .present
            .iter()
            .filter_map(|&it| self.files[it].gc_output);
        Some(LogReferences {
            sums: LogSums {
                referred: Referred {
                    entries: whole(logs.iter().map(|(_, entries)| entries).sum()),
                    bytes: whole(logs.iter().map(bytes).sum()),
                },
                smallest: number(logs.iter().map(|(file, _)| *file).min()?),
                largest: number(logs.iter().map(|(file, _)| *file).max()?),
            },
            generation: number(gc_outputs.max().unwrap_or(0)),
        })
    }

    /// What all segments refer to in each value log.
    pub(super) fn moved_values(&self) -> MovedValues {
        let is_log = |file: &&usize| self.files[**file].is_log;
        let log = |&file: &usize| ReferredLog {
            number: number(file),
            bytes: whole(self.files[file].referred.max(0.0) * self.files[file].record_bytes),
            gc_output: self.files[file].gc_output.map(number),
        };
        MovedValues::new(self.present.iter().filter(is_log).map(log))
    }

    /// The kinds of transient logs that `segments` refer to.
    pub(super) fn kinds<'s>(
        &self,
        segments: impl Iterator<Item = &'s Segment>,
    ) -> Vec<TransientLogs> {
        let references =
            references_of(segments).map(|(_, file, entries)| (&self.files[file], entries));
        let references = references.filter(|(file, _)| !file.is_log);
        TransientLogs::kinds(references.map(|(file, entries)| TransientLogs {
            fraction: entries.iter().sum(),
            file_bytes: file.bytes() / file.count,
            width: file.span.width() * file.layers / file.count,
        }))
    }

    fn transient_logs(&self) -> impl Iterator<Item = &ValueFile> {
        let files = self.present.iter().map(|&file| &self.files[file]);
        files.filter(|file| !file.is_log)
    }

    /// The number of transient log files.
    pub(super) fn transient_files(&self) -> u64 {
        let counts = self.transient_logs().map(|file| file.count);
        whole(counts.sum::<f64>().round())
    }

    /// The value logs as the policy sees them. Their numbers are places here.
    pub(super) fn logs(&self) -> Vec<LogSummary> {
        let live = self.live();
        let mut moves: HashMap<usize, f64> = HashMap::new();
        for &file in &self.present {
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
                number: self::number(number),
                table_bytes: whole(moves * MOVE_BYTES),
                live_bytes: whole(records * file.record_bytes),
                garbage_bytes: whole((file.records - records) * file.record_bytes),
                // The moves of one of the logs that it represents, because they are collected one by one.
                moves: whole((file.records + moves) / self.logs_in_one),
                is_ready: !file.is_open,
                is_held: false,
                is_open: file.is_open,
                failures: 0,
                is_resting: false,
            }
        };
        self.present.iter().filter(is_log).map(summary).collect()
    }

    /// Copies the live values of `victims`, as the policy names them, to a GC output.
    pub(super) fn collect(&mut self, victims: &[FileNumber]) -> GcResult {
        let live = self.live();
        let old = |victim: &FileNumber| {
            let file = place(*victim);
            let live = live.get(&file).copied().unwrap_or(0.0);
            (file, live.min(self.files[file].records))
        };
        let old: Vec<(usize, f64)> = victims.iter().map(old).collect();
        let records: f64 = old.iter().map(|(_, live)| live).sum();
        let count: f64 = old.iter().map(|(file, _)| self.files[*file].count).sum();
        let gc_output = self.add_log(self.logs_in_one.min(count), records);
        let garbage = |log: &LogSummary| log.garbage_bytes as f64 / self.classes.value_log_record();
        let garbage: f64 = self.logs().iter().map(garbage).sum();
        let mut read = garbage * GARBAGE_BYTES * self.logs_in_one;
        let mut moves = 0.0;
        for &origin in &self.present {
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

    /// The space of all files.
    pub(super) fn space(&self) -> ValueSpace {
        let mut space = ValueSpace::default();
        for log in self.transient_logs() {
            space.transient_log_bytes += whole(log.bytes());
            space.transient_log_garbage_bytes += whole(log.bytes() - log.referred_bytes());
        }
        space.transient_files = self.transient_files();
        for log in self.logs() {
            let count = self.files[place(log.number)].count;
            space.log_files += whole(count.round().max(1.0));
            space.log_bytes += log.live_bytes + log.garbage_bytes + log.table_bytes;
            space.value_log_garbage_bytes += log.garbage_bytes;
        }
        space
    }
}

/// The number by which the policy knows the file at `place`.
fn number(place: usize) -> FileNumber {
    FileNumber(place as u64)
}

/// The place of a log that the policy names.
fn place(number: FileNumber) -> usize {
    usize::try_from(number.0).unwrap_or(usize::MAX)
}
