//! Write throttling: how much writers must slow down so that background work keeps up.
//!
//! It is a closed loop on debt. Up to a first amount of debt there is no delay. Then the delay per byte grows with
//! the debt, slowly at first and without bound towards the stop. So writers settle at the speed of
//! the background work, whatever that is, and they stop only if single writes are large or
//! the background work makes no progress. A running or due job reduces each kind of debt, so each stop ends.

use std::time::Duration;

use crate::options::KeyspaceOptions;

/// Why a writer stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StallCause {
    /// Level 0 holds too many runs.
    Level0Runs,
    /// There are too many frozen memtables.
    Memtables,
    /// Levels exceed their capacities by too much.
    PendingBytes,
    /// Memtables have used up their part of the memory budget.
    Memory,
    /// The write-ahead logs are as long as they may be.
    LogBytes,
    /// Garbage values take more space than they may.
    ValueGarbage,
    /// The disk is full.
    DiskFull,
}

impl StallCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::Level0Runs,
        Self::Memtables,
        Self::PendingBytes,
        Self::Memory,
        Self::LogBytes,
        Self::ValueGarbage,
        Self::DiskFull,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Level0Runs => "level-0 runs",
            Self::Memtables => "memtables",
            Self::PendingBytes => "pending bytes",
            Self::Memory => "memory",
            Self::LogBytes => "log bytes",
            Self::ValueGarbage => "garbage values",
            Self::DiskFull => "disk full",
        }
    }
}

/// The debts of one keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Backlog {
    /// Files of level 0, busy ones included.
    pub(crate) level0_runs: usize,
    /// See [`pending_bytes`](super::pending_bytes).
    pub(crate) pending_bytes: u64,
    /// See [`garbage_excess`](super::garbage_excess).
    pub(crate) garbage_bytes: u64,
    /// See [`value_log_bytes`](super::value_log_bytes).
    pub(crate) value_log_bytes: u64,
}

/// The debts of all keyspaces together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SharedBacklog {
    /// Bytes of the memtables that hold entries.
    pub(crate) memtable_bytes: u64,
    /// Their bound.
    pub(crate) memtable_bytes_max: u64,
    /// Bytes of the closed write-ahead logs.
    pub(crate) closed_log_bytes: u64,
    /// The bound of all write-ahead logs.
    pub(crate) log_bytes_max: u64,
}

/// How much a writer must slow down: how far the worst debt is between slowing and stopping writers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Throttle {
    pub(crate) cause: StallCause,
    /// 0 for no delay, 1 for a stop until a job has finished.
    pub(crate) fraction: f64,
}

impl Throttle {
    pub(crate) const NONE: Self = Self {
        cause: StallCause::Level0Runs,
        fraction: 0.0,
    };

    fn of(cause: StallCause, value: f64, (slow, stop): (f64, f64)) -> Self {
        let fraction = ((value - slow) / (stop - slow)).clamp(0.0, 1.0);
        Self { cause, fraction }
    }

    /// The higher of two.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        if other.fraction > self.fraction {
            other
        } else {
            self
        }
    }

    /// Whether writers stop until a job has finished.
    pub(crate) fn is_stop(self) -> bool {
        self.fraction >= 1.0
    }

    /// For how long a write of `bytes` delays all other writes.
    pub(crate) fn delay(self, bytes: usize) -> Duration {
        let slowness = self.fraction / (1.0 - self.fraction).max(1e-4);
        Duration::from_secs_f64(slowness * bytes as f64 / HALFWAY_BYTES_PER_SECOND)
    }
}

/// Bytes per second that writers are held to halfway between slowing and stopping.
const HALFWAY_BYTES_PER_SECOND: f64 = 16e6;
/// Level-0 runs, as multiples of `level0_runs`, from which writers are slowed and stopped.
const LEVEL0_RUNS: (f64, f64) = (3.0, 8.0);
/// Frozen memtables, and the filled part of the active one, from which writers are slowed and
/// stopped. Two frozen ones cause no delay until the active one is half full, so that a flush overlaps with the filling
/// of the next memtable.
const MEMTABLES: (f64, f64) = (2.5, 4.0);
/// Pending bytes, as multiples of `base_bytes`, from which writers are slowed and stopped.
const PENDING_BASES: (f64, f64) = (32.0, 128.0);
/// Excess bytes of garbage values, as multiples of a full value log, from which writers are slowed, and slowed to the
/// least rate. Garbage collection removes whole value logs.
const GARBAGE_LOGS: (f64, f64) = (0.25, 2.0);
const GARBAGE_FRACTION_MAX: f64 = 0.95;
/// Parts of the bound on memtables from which writers are slowed and stopped.
const MEMORY: (f64, f64) = (0.75, 1.0);
/// Parts of `max_wal_bytes`, in closed logs, from which writers are slowed and stopped. So all logs together
/// take about that and one more log at most.
const LOG_BYTES: (f64, f64) = (0.75, 1.0);

/// Whether this many frozen memtables can slow writers.
pub(crate) fn memtables_may_slow(frozen: usize) -> bool {
    frozen as f64 + 1.0 > MEMTABLES.0
}

/// The throttle of `frozen` memtables and an active one that is filled by this part.
pub(crate) fn memtable_throttle(frozen: usize, filled: f64) -> Throttle {
    // A full memtable does not stop writers. The next rotation does.
    let debt = frozen as f64 + filled.clamp(0.0, 0.999);
    Throttle::of(StallCause::Memtables, debt, MEMTABLES)
}

/// The throttle of a keyspace's worst debt on disk.
pub(crate) fn throttle(backlog: Backlog, options: &KeyspaceOptions) -> Throttle {
    let times = |(slow, stop): (f64, f64), unit: f64| (slow * unit, stop * unit);
    let runs = Throttle::of(
        StallCause::Level0Runs,
        backlog.level0_runs as f64,
        times(LEVEL0_RUNS, options.level0_runs as f64),
    );
    let pending = Throttle::of(
        StallCause::PendingBytes,
        backlog.pending_bytes as f64,
        times(PENDING_BASES, options.base_bytes as f64),
    );
    let garbage = Throttle::of(
        StallCause::ValueGarbage,
        backlog.garbage_bytes as f64,
        times(GARBAGE_LOGS, backlog.value_log_bytes as f64),
    );
    // It never stops writers, because they can continue without a garbage collection.
    let garbage = Throttle {
        fraction: garbage.fraction.min(GARBAGE_FRACTION_MAX),
        ..garbage
    };
    runs.max(pending).max(garbage)
}

/// The throttle of the worst debt of all keyspaces together.
pub(crate) fn shared_throttle(backlog: SharedBacklog) -> Throttle {
    let part = |bytes: u64, bytes_max: u64| bytes as f64 / (bytes_max as f64).max(1.0);
    let memory = Throttle::of(
        StallCause::Memory,
        part(backlog.memtable_bytes, backlog.memtable_bytes_max),
        MEMORY,
    );
    let logs = Throttle::of(
        StallCause::LogBytes,
        part(backlog.closed_log_bytes, backlog.log_bytes_max),
        LOG_BYTES,
    );
    memory.max(logs)
}

#[cfg(test)]
mod tests {
    use super::{
        Backlog, SharedBacklog, StallCause, Throttle, memtable_throttle, memtables_may_slow,
        shared_throttle, throttle,
    };
    use crate::options::KeyspaceOptions;
    use proptest::prelude::*;
    use std::time::Duration;

    fn of(level0_runs: usize, pending_bytes: u64) -> Throttle {
        beside_garbage(level0_runs, pending_bytes, 0)
    }

    fn beside_garbage(level0_runs: usize, pending_bytes: u64, garbage_bytes: u64) -> Throttle {
        let backlog = Backlog {
            level0_runs,
            pending_bytes,
            garbage_bytes,
            value_log_bytes: 64 << 20,
        };
        throttle(backlog, &KeyspaceOptions::default())
    }

    fn shared(memtables: u64, logs: u64) -> Throttle {
        shared_throttle(SharedBacklog {
            memtable_bytes: memtables,
            memtable_bytes_max: 1000,
            closed_log_bytes: logs,
            log_bytes_max: 2000,
        })
    }

    #[test]
    fn each_debt_slows_and_stops_at_its_limits() {
        use StallCause::{Level0Runs, LogBytes, Memory, Memtables, PendingBytes, ValueGarbage};
        const MIB: u64 = 1 << 20;
        const GIB: u64 = 1 << 30;
        for (throttle, cause, fraction) in [
            (of(0, 0), None, 0.0),
            (of(12, 8 * GIB), None, 0.0),
            (of(17, 0), Some(Level0Runs), 0.25),
            (of(0, 20 * GIB), Some(PendingBytes), 0.5),
            (of(17, 20 * GIB), Some(PendingBytes), 0.5),
            (of(32, 0), Some(Level0Runs), 1.0),
            (of(0, 32 * GIB), Some(PendingBytes), 1.0),
            (of(1000, 1 << 50), Some(Level0Runs), 1.0),
            (beside_garbage(0, 0, 16 * MIB), None, 0.0),
            (beside_garbage(0, 0, 72 * MIB), Some(ValueGarbage), 0.5),
            (beside_garbage(17, 0, 72 * MIB), Some(ValueGarbage), 0.5),
            (beside_garbage(0, 0, 1 << 50), Some(ValueGarbage), 0.95),
            (beside_garbage(32, 0, 1 << 50), Some(Level0Runs), 1.0),
            (memtable_throttle(2, 0.5), None, 0.0),
            (memtable_throttle(3, 0.25), Some(Memtables), 0.5),
            (memtable_throttle(4, 0.0), Some(Memtables), 1.0),
            (shared(750, 1500), None, 0.0),
            (shared(875, 0), Some(Memory), 0.5),
            (shared(0, 1750), Some(LogBytes), 0.5),
            (shared(1000, 1750), Some(Memory), 1.0),
            (shared(0, 9999), Some(LogBytes), 1.0),
        ] {
            assert!((throttle.fraction - fraction).abs() < 1e-9, "{throttle:?}");
            assert!(
                cause.is_none_or(|cause| cause == throttle.cause),
                "{throttle:?}"
            );
            assert_eq!(throttle.is_stop(), fraction >= 1.0);
        }
    }

    #[test]
    fn a_full_memtable_alone_never_stops_its_keyspace() {
        for frozen in 0..4 {
            assert!(!memtable_throttle(frozen, 9.0).is_stop());
            let slows = memtable_throttle(frozen, 1.0).fraction > 0.0;
            assert_eq!(slows, memtables_may_slow(frozen), "{frozen}");
        }
    }

    #[test]
    fn delays_grow_without_bound_towards_the_stop() {
        let delay = |fraction| {
            let cause = StallCause::Memtables;
            Throttle { cause, fraction }.delay(16_000)
        };
        assert_eq!(delay(0.0), Duration::ZERO);
        assert_eq!(delay(0.5), Duration::from_millis(1));
        assert!(delay(0.9) > Duration::from_millis(8));
        assert!(delay(0.999) > Duration::from_millis(900));
        assert!(delay(1.0) < Duration::from_secs(11));
    }

    proptest! {
        #[test]
        fn more_debt_never_lowers_the_throttle(
            runs in 0..50_usize, frozen in 0..6_usize, pending in 0..(64_u64 << 30),
            filled in 0.0..1.0, more_runs in 0..3_usize, more_pending in 0..(1_u64 << 30),
        ) {
            prop_assert!(of(runs, pending).fraction
                <= of(runs + more_runs, pending + more_pending).fraction);
            prop_assert!(memtable_throttle(frozen, filled).fraction
                <= memtable_throttle(frozen + 1, 0.0).fraction);
        }
    }
}
