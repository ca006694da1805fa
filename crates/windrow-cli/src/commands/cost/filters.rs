//! False positives of filters, on average over keys.
//!
//! Concurrency: none; no state.

use windrow::{FilterAllocation, KeyspaceOptions};

use super::shape::{Level, Shape};

/// Blocks that false positives read, on average over keys.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// For each level of the shape.
    pub(super) levels: Vec<FalsePositives>,
    /// Runs that a get of a present key consults, the run of the key included.
    pub(super) consulted_if_found: f64,
}

/// Blocks that gets read because filters passed keys that the runs do not hold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FalsePositives {
    /// For an absent key.
    pub(super) missing: f64,
    /// For a key that is found elsewhere.
    pub(super) found: f64,
}

impl Filters {
    pub(super) fn new(shape: &Shape, options: &KeyspaceOptions) -> Self {
        let entries = shape.entries().max(1.0);
        let fraction = |level: &Level| {
            if level.runs > 0.0 {
                level.entries / entries
            } else {
                0.0
            }
        };
        let mut filters = Self {
            levels: Vec::new(),
            consulted_if_found: 0.0,
        };
        let mut below: f64 = shape.levels.iter().map(fraction).sum();
        let mut consulted_above = 0.0;
        for level in &shape.levels {
            if level.runs <= 0.0 {
                filters.levels.push(FalsePositives::default());
                continue;
            }
            let own = fraction(level);
            below -= own;
            // Half of the other runs of the same level come before the run of the key.
            let before = (level.runs - 1.0).max(0.0) / 2.0;
            let missing = level.runs * Self::rate(shape, options, own / level.runs);
            filters.levels.push(FalsePositives {
                missing,
                found: missing * (below.max(0.0) + own * before / level.runs),
            });
            filters.consulted_if_found += own * (consulted_above + before + 1.0);
            consulted_above += level.runs;
        }
        filters
    }

    /// The sums over all levels.
    pub(super) fn false_positives(&self) -> FalsePositives {
        let levels = self.levels.iter();
        levels.fold(FalsePositives::default(), |all, level| FalsePositives {
            missing: all.missing + level.missing,
            found: all.found + level.found,
        })
    }

    /// The false-positive rate of a run with this fraction of the entries.
    ///
    /// With b bits for each entry, rates in proportion to these fractions s are optimal. All bits are spent if the
    /// sum of all rates is exp(H - b ln^2 2), with H = -sum s ln s over all runs (AU-M4).
    fn rate(shape: &Shape, options: &KeyspaceOptions, fraction: f64) -> f64 {
        let ln_2 = std::f64::consts::LN_2;
        let bits = options.bits_per_key * ln_2 * ln_2;
        if options.bits_per_key == 0.0 {
            return 1.0;
        }
        if options.filter_allocation == FilterAllocation::Uniform {
            return (-bits).exp();
        }
        let entries = shape.entries().max(1.0);
        let levels = shape.levels.iter();
        let present = levels.filter(|level| level.runs > 0.0 && level.entries > 0.0);
        let entropy: f64 = present
            .map(|level| {
                let part = level.entries / entries;
                -part * (part / level.runs).ln()
            })
            .sum();
        (fraction * (entropy - bits).exp()).min(1.0)
    }
}
