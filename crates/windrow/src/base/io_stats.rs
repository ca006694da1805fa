//! I/O statistics: the bytes that background jobs move, by level and cause. The engine counts them, and the
//! simulation predicts them.

use super::lifetime::{self, Totals};
use super::limits::LEVELS_MAX;

/// How many numbers of counters each level has in the manifest, for present and later causes.
const CAUSES_PER_LEVEL: u64 = 32;

/// Why bytes of a level are written or read. The manifest has the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Flush = 1,
    Append = 2,
    Rewrite = 3,
    Consolidation = 4,
    PointerRewrite = 5,
    Move = 6,
    TransientLog = 7,
    Read = 8,
    ConsolidationRead = 9,
    PointerRewriteRead = 10,
    TransientLogRead = 11,
    BulkLoad = 12,
}

/// Bytes that background jobs wrote into one level, and the bytes that they read for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelIoStats {
    /// Tables written by flushes.
    pub flushed: u64,
    /// Segments appended by compactions.
    pub appended: u64,
    /// New tables written by compactions.
    pub rewritten: u64,
    /// Tables written by consolidations.
    pub consolidated: u64,
    /// Tables written by pointer rewrites.
    pub pointers_rewritten: u64,
    /// Tables of trivial moves, which write nothing.
    pub moved: u64,
    /// Values written to transient logs by flushes and compactions.
    pub transient_logs: u64,
    /// Tables read by compactions.
    pub read: u64,
    /// Tables read by consolidations.
    pub consolidation_read: u64,
    /// Tables read by pointer rewrites.
    pub pointer_rewrite_read: u64,
    /// Values read from transient logs.
    pub transient_logs_read: u64,
    /// Tables that bulk loads have written.
    pub bulk_loaded: u64,
}

impl LevelIoStats {
    /// The sum of the written bytes; moved tables are not among them.
    pub fn written(&self) -> u64 {
        lifetime::sum([
            self.flushed,
            self.appended,
            self.rewritten,
            self.consolidated,
            self.pointers_rewritten,
            self.transient_logs,
            self.bulk_loaded,
        ])
    }

    /// The sum of the read bytes.
    pub fn all_read(&self) -> u64 {
        lifetime::sum([
            self.read,
            self.consolidation_read,
            self.pointer_rewrite_read,
            self.transient_logs_read,
        ])
    }

    /// Counts `bytes` for `cause`.
    pub(crate) fn add(&mut self, cause: Cause, bytes: u64) {
        *self.of(cause) += bytes;
    }

    /// Combines the bytes of each cause.
    pub(crate) fn combined(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut both = self;
        let mut other = other;
        for cause in Cause::ALL {
            let sum = both.of(cause);
            *sum = combine(*sum, *other.of(cause));
        }
        both
    }

    fn of(&mut self, cause: Cause) -> &mut u64 {
        match cause {
            Cause::Flush => &mut self.flushed,
            Cause::Append => &mut self.appended,
            Cause::Rewrite => &mut self.rewritten,
            Cause::Consolidation => &mut self.consolidated,
            Cause::PointerRewrite => &mut self.pointers_rewritten,
            Cause::Move => &mut self.moved,
            Cause::TransientLog => &mut self.transient_logs,
            Cause::Read => &mut self.read,
            Cause::ConsolidationRead => &mut self.consolidation_read,
            Cause::PointerRewriteRead => &mut self.pointer_rewrite_read,
            Cause::TransientLogRead => &mut self.transient_logs_read,
            Cause::BulkLoad => &mut self.bulk_loaded,
        }
    }
}

impl LevelIoStats {
    /// The statistics of `level` among the totals of a keyspace.
    pub(crate) fn from_totals(level: usize, totals: &Totals) -> Self {
        let mut stats = Self::default();
        for cause in Cause::ALL {
            let total = totals.get(&cause.number_in(level));
            stats.add(cause, total.copied().unwrap_or_default());
        }
        stats
    }

    /// Adds these statistics of `level` to the totals of a keyspace.
    pub(crate) fn add_to(mut self, level: usize, totals: &mut Totals) {
        for cause in Cause::ALL {
            lifetime::add(totals, cause.number_in(level), *self.of(cause));
        }
    }
}

impl Cause {
    /// The number of the counter of this cause in `level`.
    fn number_in(self, level: usize) -> u64 {
        level as u64 * CAUSES_PER_LEVEL + self as u64
    }

    const ALL: [Self; 12] = [
        Self::Flush,
        Self::Append,
        Self::Rewrite,
        Self::Consolidation,
        Self::PointerRewrite,
        Self::Move,
        Self::TransientLog,
        Self::Read,
        Self::ConsolidationRead,
        Self::PointerRewriteRead,
        Self::TransientLogRead,
        Self::BulkLoad,
    ];
}

/// The I/O statistics of every level, level 0 first.
pub(crate) type IoStatsByLevel = [LevelIoStats; LEVELS_MAX + 1];

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::LevelIoStats;

    #[test]
    fn sums_of_recorded_bytes_saturate() {
        let totals = (0..64).map(|number| (number, u64::MAX)).collect();
        let level = LevelIoStats::from_totals(1, &totals);
        assert_eq!(level.written(), u64::MAX);
        assert_eq!(level.all_read(), u64::MAX);
    }
}
