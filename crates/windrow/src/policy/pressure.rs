//! Write pressure: how much writers must slow down so that background work keeps up.
//!
//! A closed loop on debt: nothing up to a comfortable amount, then a delay that grows evenly with
//! the debt, and a stop only where memory or reads would otherwise suffer without bound. Each kind
//! of debt is one that a running job reduces, so no stop lasts without a job that will end it.

use crate::options::KeyspaceOptions;

/// The debts that writers can outrun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Backlog {
    /// Files of level 0, those in use included.
    pub(crate) level0_runs: usize,
    /// Full memtables that are not yet in a table.
    pub(crate) memtables_waiting: usize,
    /// What [`pending_bytes`](super::pending_bytes) says.
    pub(crate) pending_bytes: u64,
}

/// What a writer must do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pressure {
    /// Go on.
    None,
    /// Slow down; the fraction, above 0 and below 1, says how close the stop is.
    Delay(f64),
    /// Wait until a job has finished.
    Stop,
}

/// Level-0 runs, as multiples of `level0_runs`, from which writers are slowed and stopped.
const LEVEL0_RUNS: (usize, usize) = (3, 8);
/// Waiting memtables from which writers are slowed and stopped: two may wait freely, so that a
/// flush overlaps with the filling of the next.
const MEMTABLES_WAITING: (usize, usize) = (2, 4);
/// Pending bytes, as multiples of `base_bytes`, from which writers are slowed and stopped.
const PENDING_BASES: (u64, u64) = (32, 128);

/// The pressure of the worst debt.
pub(crate) fn pressure(backlog: Backlog, options: &KeyspaceOptions) -> Pressure {
    let runs = options.level0_runs;
    let base = options.base_bytes;
    let worst = [
        ramp(
            backlog.level0_runs as f64,
            (runs * LEVEL0_RUNS.0) as f64,
            (runs * LEVEL0_RUNS.1) as f64,
        ),
        ramp(
            backlog.memtables_waiting as f64,
            MEMTABLES_WAITING.0 as f64,
            MEMTABLES_WAITING.1 as f64,
        ),
        ramp(
            backlog.pending_bytes as f64,
            base.saturating_mul(PENDING_BASES.0) as f64,
            base.saturating_mul(PENDING_BASES.1) as f64,
        ),
    ]
    .into_iter()
    .fold(0.0, f64::max);
    if worst >= 1.0 {
        Pressure::Stop
    } else if worst > 0.0 {
        Pressure::Delay(worst)
    } else {
        Pressure::None
    }
}

/// How far `value` is on its way from `slow` to `stop`; 0 before, 1 or more behind.
fn ramp(value: f64, slow: f64, stop: f64) -> f64 {
    ((value - slow) / (stop - slow)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Pressure, pressure};
    use crate::options::KeyspaceOptions;
    use proptest::prelude::*;

    fn fraction(backlog: Backlog) -> f64 {
        match pressure(backlog, &KeyspaceOptions::default()) {
            Pressure::None => 0.0,
            Pressure::Delay(fraction) => fraction,
            Pressure::Stop => 1.0,
        }
    }

    #[test]
    fn table() {
        let backlog = |level0_runs, memtables_waiting, pending_gib: u64| Backlog {
            level0_runs,
            memtables_waiting,
            pending_bytes: pending_gib << 30,
        };
        for (backlog, expected) in [
            (backlog(0, 0, 0), Pressure::None),
            (backlog(12, 2, 8), Pressure::None),
            (backlog(17, 0, 0), Pressure::Delay(0.25)),
            (backlog(0, 3, 0), Pressure::Delay(0.5)),
            (backlog(0, 0, 20), Pressure::Delay(0.5)),
            (backlog(17, 3, 8), Pressure::Delay(0.5)),
            (backlog(32, 0, 0), Pressure::Stop),
            (backlog(0, 4, 0), Pressure::Stop),
            (backlog(0, 0, 32), Pressure::Stop),
            (backlog(1000, 1000, 1 << 20), Pressure::Stop),
        ] {
            assert_eq!(
                pressure(backlog, &KeyspaceOptions::default()),
                expected,
                "{backlog:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn more_debt_never_lowers_the_pressure(
            runs in 0..50_usize, waiting in 0..6_usize, pending in 0..(64_u64 << 30),
            more_runs in 0..3_usize, more_waiting in 0..2_usize, more_pending in 0..(1_u64 << 30),
        ) {
            let less = Backlog {
                level0_runs: runs, memtables_waiting: waiting, pending_bytes: pending,
            };
            let more = Backlog {
                level0_runs: runs + more_runs,
                memtables_waiting: waiting + more_waiting,
                pending_bytes: pending + more_pending,
            };
            prop_assert!(fraction(less) <= fraction(more));
        }
    }
}
