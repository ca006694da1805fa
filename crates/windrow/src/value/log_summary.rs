//! A value log in numbers, and sums over several: what decisions about garbage collection are made from. Pure.

use crate::base::FileNumber;

/// The part of a log that must be garbage for it to be collected.
const GARBAGE_MIN: f64 = 0.05;

/// A value log or a GC output, as far as tables may refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of a log that do not depend on each other"
)]
pub(crate) struct LogSummary {
    pub(crate) number: FileNumber,
    /// Bytes of the file that are not records.
    pub(crate) table_bytes: u64,
    /// Bytes of its records that tables refer to, and of the others.
    pub(crate) live_bytes: u64,
    pub(crate) garbage_bytes: u64,
    /// Its records, and the entries of its relocation tables.
    pub(crate) moves: u64,
    /// Whether it is complete, and every pointer into it is in tables.
    pub(crate) is_ready: bool,
    /// Whether only consumers of changes keep it from being ready.
    pub(crate) is_held: bool,
    /// Whether values are being added.
    pub(crate) is_open: bool,
    /// How often its garbage collection has failed, and whether it rests after a failure.
    pub(crate) failures: u32,
    pub(crate) is_resting: bool,
}

impl LogSummary {
    /// The bytes of its records.
    pub(crate) fn bytes(&self) -> u64 {
        self.live_bytes.saturating_add(self.garbage_bytes)
    }

    /// The part of these that is garbage.
    pub(crate) fn garbage_fraction(&self) -> f64 {
        self.garbage_bytes as f64 / self.bytes().max(1) as f64
    }

    /// Whether it can be collected and has enough garbage.
    pub(crate) fn is_worthwhile(&self) -> bool {
        self.is_ready && self.garbage_fraction() >= GARBAGE_MIN
    }
}

/// Sums over some value logs, and bounds of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SummedLogs {
    pub(crate) logs: usize,
    pub(crate) table_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) garbage_bytes: u64,
    /// The garbage of those that are [worthwhile](LogSummary::is_worthwhile).
    pub(crate) worthwhile_bytes: u64,
    /// The largest [part of garbage](LogSummary::garbage_fraction) of one that is worthwhile, and of an open one; 0 if
    /// there is none.
    pub(crate) worthwhile_fraction_max: f64,
    pub(crate) open_fraction_max: f64,
    /// The fewest bytes of the records of one that is ready, and the fewest moves of one.
    pub(crate) ready_bytes_min: u64,
    pub(crate) ready_moves_min: u64,
    /// Whether one is open, and whether only consumers of changes keep one from being ready.
    pub(crate) has_open: bool,
    pub(crate) has_held: bool,
}

impl Default for SummedLogs {
    fn default() -> Self {
        Self {
            logs: 0,
            table_bytes: 0,
            live_bytes: 0,
            garbage_bytes: 0,
            worthwhile_bytes: 0,
            worthwhile_fraction_max: 0.0,
            open_fraction_max: 0.0,
            ready_bytes_min: u64::MAX,
            ready_moves_min: u64::MAX,
            has_open: false,
            has_held: false,
        }
    }
}

impl SummedLogs {
    /// Those of one log.
    fn of(log: &LogSummary) -> Self {
        let fraction = log.garbage_fraction();
        let if_so = |is_so, number: f64| if is_so { number } else { 0.0 };
        let is_worthwhile = log.is_worthwhile();
        Self {
            logs: 1,
            table_bytes: log.table_bytes,
            live_bytes: log.live_bytes,
            garbage_bytes: log.garbage_bytes,
            worthwhile_bytes: if is_worthwhile { log.garbage_bytes } else { 0 },
            worthwhile_fraction_max: if_so(is_worthwhile, fraction),
            open_fraction_max: if_so(log.is_open, fraction),
            ready_bytes_min: if log.is_ready { log.bytes() } else { u64::MAX },
            ready_moves_min: if log.is_ready { log.moves } else { u64::MAX },
            has_open: log.is_open,
            has_held: log.is_held,
        }
    }

    /// The sums over all of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            logs: self.logs + other.logs,
            table_bytes: self.table_bytes.saturating_add(other.table_bytes),
            live_bytes: self.live_bytes.saturating_add(other.live_bytes),
            garbage_bytes: self.garbage_bytes.saturating_add(other.garbage_bytes),
            worthwhile_bytes: self.worthwhile_bytes.saturating_add(other.worthwhile_bytes),
            worthwhile_fraction_max: self
                .worthwhile_fraction_max
                .max(other.worthwhile_fraction_max),
            open_fraction_max: self.open_fraction_max.max(other.open_fraction_max),
            ready_bytes_min: self.ready_bytes_min.min(other.ready_bytes_min),
            ready_moves_min: self.ready_moves_min.min(other.ready_moves_min),
            has_open: self.has_open || other.has_open,
            has_held: self.has_held || other.has_held,
        }
    }
}

impl<'l> FromIterator<&'l LogSummary> for SummedLogs {
    fn from_iter<I: IntoIterator<Item = &'l LogSummary>>(logs: I) -> Self {
        let logs = logs.into_iter().map(Self::of);
        logs.fold(Self::default(), Self::plus)
    }
}
