//! Read-ahead of separated values for a cursor that moves forward.
//!
//! The values of consecutive entries may be anywhere, so the system's read-ahead does not help, and a
//! cold scan would wait for the device once per value. A *prefetcher*, a second cursor over the same
//! entries, therefore runs ahead and announces the next values to the system in batches, so that the
//! device reads many at once. Values that are close together, as in a transient log, take one call per
//! file and batch. Values that a scan passes in the order of their file need no prefetcher:
//! [`value_sequence`](super::value_sequence) asks for what follows them.
//!
//! A scan over cached values costs little more. It only *checks* now and then whether a value is cached,
//! and checks more rarely after each hit. The check after two misses starts the prefetcher, and a batch of
//! cached values only stops it. A seek or a backward step of the cursor restarts the checks.
//!
//! Most scans are as long as those before them. So if recent scans of the keyspace have read several values that were on
//! the device or beside such values, the first miss starts the prefetcher, with a batch of as many values.
//!
//! Invariants:
//! - I1. The results of the cursor do not depend on the prefetcher. The prefetcher ignores its errors; the
//!   cursor reports them if it reaches the same entry.
//! - I2. The prefetcher announces values in the range of the cursor, and at most [`BATCH_VALUES_MAX`] values
//!   and [`BATCH_BYTES`] at a time.
//!
//! Concurrency: owned by one thread.

use std::ops::Range;

use super::value_reader::ValueReader;
use super::value_sequence::{self, ValueSequences};
use super::visible::VisibleCursor;
use crate::base::running_mean::RunningMean;
use crate::base::{FileNumber, Held, Result, Sibling};
use crate::block::Striding;

/// The values of the first batch. Each later batch has twice as many.
const BATCH_VALUES_MIN: usize = 8;

/// The most values of a batch.
const BATCH_VALUES_MAX: usize = 64;

/// The most bytes of a batch.
const BATCH_BYTES: u64 = 1 << 20;

/// The most entries that the prefetcher passes per value of a batch.
const STEPS_PER_VALUE: usize = 8;

/// Records with at most this gap between them are announced together.
const GAP_BYTES: u64 = 16 << 10;

/// The number of close cache misses before the prefetcher starts.
const MISSES: u32 = 2;

/// The most reads between two checks while all values are cached. After a miss the next read is checked,
/// and each hit doubles the interval.
const INTERVAL_MAX: usize = 64;

/// The read-ahead of one cursor.
pub(super) struct ReadAhead<C> {
    /// Its position is after the last announced value.
    prefetcher: Option<VisibleCursor<C>>,
    /// The number of recent checks that missed.
    misses: u32,
    /// The number of reads until the next check while all values are cached.
    interval: usize,
    /// The number of values of the next batch.
    batch_values: usize,
    /// The number of announced values that the cursor has not read at the next check.
    ahead: usize,
    /// The count of the cursor's reads at the start of this scan.
    scan_start: u64,
    batch: Vec<Record>,
    sequences: ValueSequences,
    _memory: Held,
}

/// The record of a value to announce.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    file: FileNumber,
    range: Range<u64>,
}

impl<C: Sibling + Striding> ReadAhead<C> {
    pub(super) fn new(reader: ValueReader<'_>) -> Self {
        let batch = BATCH_VALUES_MAX * size_of::<Record>();
        let bytes = size_of::<Self>() + batch + value_sequence::MEMORY_BYTES;
        Self {
            prefetcher: None,
            misses: 0,
            interval: INTERVAL_MAX,
            batch_values: BATCH_VALUES_MIN,
            ahead: 0,
            scan_start: 0,
            batch: Vec::new(),
            sequences: ValueSequences::default(),
            _memory: Held::new(reader.open.cursors(), bytes as u64),
        }
    }

    /// Ends a scan when the cursor has read `reads` values in all. Its length counts if it has met values on the device.
    pub(super) fn end_scan(&mut self, reads: u64, lengths: &RunningMean) {
        let length = reads.saturating_sub(self.scan_start);
        if self.misses > 0 {
            lengths.note(u32::try_from(length).unwrap_or(u32::MAX));
        }
        self.scan_start = reads;
        self.restart();
    }

    /// Restarts the checks.
    fn restart(&mut self) {
        self.misses = 0;
        self.interval = INTERVAL_MAX;
    }

    /// Notes that the read of the value that `pointer` leads to waited for the device. Asks for what follows it in its
    /// file, if the cursor passes this file in order. Returns whether the next read should be checked.
    pub(super) fn note_cold(&mut self, reader: ValueReader<'_>, pointer: &[u8]) -> bool {
        let Some(record) = Self::record(reader, pointer) else {
            return false;
        };
        if self.batch.contains(&record) {
            // It was asked for a moment ago, and counted then.
            return false;
        }
        if let Some(handle) = reader.files.find(record.file)
            && let Some(next) = self
                .sequences
                .note(record.file, &record.range, handle.meta.length)
            && let Ok(file) = reader.open.get(handle.slot(), &handle.meta)
        {
            file.will_need(next);
        }
        let is_new = self.misses == 0;
        self.misses = self.misses.max(1);
        is_new
    }

    /// The prefetcher, if it has started.
    pub(super) fn prefetcher(&mut self) -> Option<&mut VisibleCursor<C>> {
        self.prefetcher.as_mut()
    }

    /// Announces the next values if they are not cached. `pointer` is the pointer at `cursor`, whose value
    /// is read next. Returns the number of further reads until the next check.
    pub(super) fn check(
        &mut self,
        cursor: &VisibleCursor<C>,
        reader: ValueReader<'_>,
        pointer: &[u8],
        lengths: &RunningMean,
    ) -> usize {
        if self.misses < MISSES {
            self.batch.clear();
            self.batch.extend(Self::record(reader, pointer));
            if self.batch.iter().all(|record| is_resident(reader, record)) {
                if self.interval >= INTERVAL_MAX {
                    self.misses = 0;
                }
                self.interval = (2 * self.interval).min(INTERVAL_MAX);
                return self.interval - 1;
            }
            self.misses += 1;
            self.interval = 1;
            (self.batch_values, self.ahead) = (BATCH_VALUES_MIN, 0);
            let values = typical(lengths);
            if values < 2 {
                self.announce(reader);
                return 0;
            }
            self.misses = MISSES;
            self.batch_values = values;
            return self.prefetch_scan(cursor, reader);
        }
        if self.collect(cursor, reader).is_err() {
            self.prefetcher = None;
            return usize::MAX;
        }
        let found = self.batch.len();
        if found > 0 && self.announce(reader) == 0 {
            self.restart();
        }
        // The next check is due after the first half of this batch.
        let fetched = self.ahead + found - found / 2;
        (self.ahead, self.batch_values) =
            (found / 2, (2 * self.batch_values).min(BATCH_VALUES_MAX));
        fetched.saturating_sub(1)
    }

    /// Announces the values of a usual scan from `cursor` on, and none behind before they are read.
    fn prefetch_scan(&mut self, cursor: &VisibleCursor<C>, reader: ValueReader<'_>) -> usize {
        if self.collect(cursor, reader).is_err() {
            self.prefetcher = None;
            return usize::MAX;
        }
        self.announce(reader);
        self.batch_values = self.batch_values.max(BATCH_VALUES_MIN);
        self.batch.len().saturating_sub(1)
    }

    /// Collects the next batch.
    fn collect(&mut self, cursor: &VisibleCursor<C>, reader: ValueReader<'_>) -> Result<()> {
        self.batch.clear();
        let prefetcher = self.prefetcher.get_or_insert_with(|| cursor.sibling());
        if self.ahead == 0 || prefetcher.is_valid() && prefetcher.key() <= cursor.key() {
            self.ahead = 0;
            prefetcher.seek(cursor.key())?;
        }
        let mut bytes = BATCH_BYTES;
        for _ in 0..STEPS_PER_VALUE * self.batch_values {
            if !prefetcher.is_valid() || self.batch.len() == self.batch_values || bytes == 0 {
                break;
            }
            let (pointer, is_indirect) = prefetcher.stored();
            if is_indirect
                && prefetcher.unfolded().is_none()
                && let Some(mut record) = Self::record(reader, pointer)
            {
                let end = record.range.start.saturating_add(bytes);
                record.range.end = record.range.end.min(end);
                bytes -= record.range.end - record.range.start;
                self.batch.push(record);
            }
            prefetcher.next()?;
        }
        Ok(())
    }

    /// The record that `pointer` refers to, unless it is damaged.
    fn record(reader: ValueReader<'_>, pointer: &[u8]) -> Option<Record> {
        let place = reader.files.resolve(pointer).ok()?;
        let meta = &place.file.meta;
        let mut pointer = place.pointer;
        if place.table.is_some() {
            let file = reader.open.get(place.file.slot(), meta).ok()?;
            pointer = place.pointer_in(&file).ok()?;
        }
        let end = pointer.offset.checked_add(pointer.record_bytes)?;
        (end <= meta.length).then_some(Record {
            file: meta.number,
            range: pointer.offset..end,
        })
    }

    /// Announces the values of the batch that are not cached. Returns their number.
    fn announce(&mut self, reader: ValueReader<'_>) -> usize {
        self.batch
            .sort_unstable_by_key(|record| (record.file, record.range.start));
        let is_near = |left: &Record, right: &Record| {
            left.file == right.file && right.range.start <= left.range.end.saturating_add(GAP_BYTES)
        };
        let mut announced = 0;
        for near in self.batch.chunk_by(is_near) {
            let (Some(first), Some(last)) = (near.first(), near.last()) else {
                continue;
            };
            let Some(handle) = reader.files.find(first.file) else {
                continue;
            };
            // The read of the value reports the error.
            let Ok(file) = reader.open.get(handle.slot(), &handle.meta) else {
                continue;
            };
            if near.iter().all(|it| file.is_resident(&it.range)) {
                continue;
            }
            file.will_need(first.range.start..last.range.end);
            announced += near.len();
        }
        reader.open.count_prefetched(announced as u64);
        announced
    }
}

/// Whether a record is in memory. So is one whose file cannot be opened: its read reports the error.
fn is_resident(reader: ValueReader<'_>, record: &Record) -> bool {
    let Some(handle) = reader.files.find(record.file) else {
        return true;
    };
    let file = reader.open.get(handle.slot(), &handle.meta);
    file.map_or(true, |file| file.is_resident(&record.range))
}

/// The values of the first batch of a scan: a quarter more than recent scans have read, and at most that of a batch.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and BATCH_VALUES_MAX"
)]
fn typical(lengths: &RunningMean) -> usize {
    (lengths.get() * 1.25).round().min(BATCH_VALUES_MAX as f64) as usize
}
