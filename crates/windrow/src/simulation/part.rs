//! Which levels of a tree are simulated.

use super::transient_logs::TransientLogs;
use crate::options::KeyspaceOptions;
use crate::policy::{capacities, whole};

#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(super) struct TreePart {
    /// How many levels from level 1 on are left out above.
    pub(super) levels_above: usize,
    /// If levels are left out above: at most this many flushes fill the first level.
    pub(super) feeds_max: u64,
    /// The transient logs that they refer to; none if no value is medium.
    pub(super) fed_logs: Vec<TransientLogs>,
}

impl TreePart {
    /// What the levels above hold if they are full, while the part has this many levels.
    pub(super) fn bytes_above(&self, options: &KeyspaceOptions, level_count: usize) -> u64 {
        let capacities = capacities(options, self.levels_above + level_count);
        capacities[1..=self.levels_above].iter().sum()
    }

    /// The options for the part while it has this many levels.
    pub(super) fn options(&self, options: &KeyspaceOptions, level_count: usize) -> KeyspaceOptions {
        if self.levels_above == 0 {
            return options.clone();
        }
        let capacities = capacities(options, self.levels_above + level_count);
        let first = capacities[self.levels_above + 1];
        let below = i32::try_from(level_count - 1).unwrap_or(i32::MAX);
        let feed = capacities[self.levels_above] / options.level0_runs as u64;
        let feed = feed.max(first / self.feeds_max.max(1));
        KeyspaceOptions {
            base_bytes: whole(first as f64 * options.scaling.powi(below)),
            memtable_bytes: usize::try_from(feed).unwrap_or(usize::MAX),
            ..options.clone()
        }
    }
}
