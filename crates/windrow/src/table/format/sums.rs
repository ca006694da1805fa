//! Sums over table files, for whoever must not look at each file: the levels of a version keep them.
//!
//! Sums of one file are at most `u64::MAX`, whatever a damaged manifest says. Sums of files are wider, so that they
//! neither overflow nor become inexact, and a file can be subtracted again.

use super::meta::{FileMeta, SegmentMeta};

/// A quantity of table files that adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Bytes of the file.
    Bytes,
    /// Logical bytes.
    LogicalBytes,
    /// Entries, every version counted.
    Entries,
    Tombstones,
    RangeTombstones,
    Operands,
    /// Bytes in transient logs that the entries refer to.
    TransientBytes,
    /// Bytes in value logs that the entries refer to.
    LogBytes,
    /// Entries that expire, and their bytes.
    ExpiringEntries,
    ExpiringBytes,
    /// About how many of the bytes that it holds, those in value files included, newer segments supersede.
    SupersededBytes,
}

const MEASURES: [Measure; 11] = [
    Measure::Bytes,
    Measure::LogicalBytes,
    Measure::Entries,
    Measure::Tombstones,
    Measure::RangeTombstones,
    Measure::Operands,
    Measure::TransientBytes,
    Measure::LogBytes,
    Measure::ExpiringEntries,
    Measure::ExpiringBytes,
    Measure::SupersededBytes,
];

/// The sums of some files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileSums([u128; MEASURES.len()]);

impl FileSums {
    /// Of these files.
    pub(crate) fn of<'f>(files: impl Iterator<Item = &'f FileMeta>) -> Self {
        let mut sums = Self::default();
        for file in files {
            for (sum, measure) in sums.0.iter_mut().zip(MEASURES) {
                *sum += u128::from(file.measure(measure));
            }
        }
        sums
    }

    /// One sum, at most `u64::MAX`.
    pub(crate) fn get(&self, measure: Measure) -> u64 {
        u64::try_from(self.0[measure as usize]).unwrap_or(u64::MAX)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum += other;
        }
    }

    /// Subtracts what was added before.
    pub(crate) fn subtract(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum -= other;
        }
    }
}

impl FileMeta {
    /// One quantity of the file.
    pub(crate) fn measure(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Bytes => self.bytes(),
            Measure::LogicalBytes => self.logical_bytes(),
            Measure::Entries => self.entries(),
            Measure::Tombstones => self.tombstones(),
            Measure::RangeTombstones => self.range_tombstones(),
            Measure::Operands => self.operands(),
            Measure::TransientBytes => self.transient_bytes(),
            Measure::LogBytes => self.log_bytes(),
            Measure::ExpiringEntries => self.expiring_entries(),
            Measure::ExpiringBytes => self.expiring_bytes(),
            Measure::SupersededBytes => self.superseded_bytes(),
        }
    }

    /// About which part of the file's bytes newer segments supersede. At least the largest segment counts as live.
    pub(crate) fn superseded_part(&self) -> f64 {
        let of = |it: &SegmentMeta| (it.length, it.entries, it.overwrites);
        superseded_part(self.bytes(), self.segments.iter().map(of))
    }

    fn superseded_bytes(&self) -> u64 {
        if self.segments.len() < 2 {
            return 0;
        }
        let values = self.transient_bytes().saturating_add(self.log_bytes());
        let held = self.bytes().saturating_add(values);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number is not negative, and the cast saturates"
        )]
        let superseded = (held as f64 * self.superseded_part()) as u64;
        superseded
    }
}

/// About which part of a file of `bytes` newer segments supersede, from the bytes, entries and overwrites of its
/// segments. At least the largest segment counts as live.
pub(crate) fn superseded_part(
    bytes: u64,
    segments: impl Iterator<Item = (u64, u64, u64)> + Clone,
) -> f64 {
    let superseded = segments.clone().map(|(bytes, entries, overwrites)| {
        let part = overwrites as f64 / entries.max(1) as f64;
        bytes as f64 * part
    });
    let superseded: f64 = superseded.sum();
    let largest = segments.map(|(bytes, ..)| bytes).max();
    let most = bytes.saturating_sub(largest.unwrap_or(0)) as f64;
    superseded.min(most) / bytes.max(1) as f64
}

/// What a compaction of a file of `own` bytes costs that overlaps `lower` bytes below: the bytes there for each byte of
/// its own.
pub(crate) fn cost_per_byte(lower: u64, own: u64) -> f64 {
    lower as f64 / own.max(1) as f64
}
