//! How full each level is, and what is pending.

use super::capacities::allowed_capacities;
use super::tree::{Sum, Tree};
use crate::options::KeyspaceOptions;

/// The score of every level, indexed by level, `0..=level_count`.
///
/// Level 0 is due from 1 on: its runs over `level0_runs`. A deeper level is due above 1: its
/// logical bytes over its [present](allowed_capacities) capacity. Busy files do not count. The last
/// level is never due, because the tree grows by a level instead.
pub(crate) fn scores<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> Vec<f64> {
    let capacities = allowed_capacities(tree, options);
    let score = |level: usize| {
        if level == 0 {
            let is_idle = |&run: &usize| !tree.file(0, run).busy;
            (0..tree.len(0)).filter(is_idle).count() as f64 / options.level0_runs as f64
        } else if level == tree.level_count() {
            0.0
        } else {
            tree.idle_sum(level, Sum::LogicalBytes) as f64 / capacities[level] as f64
        }
    };
    (0..=tree.level_count()).map(score).collect()
}

/// Logical bytes by which the levels above the last exceed their capacities.
pub(crate) fn pending_bytes<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> u64 {
    let capacities = allowed_capacities(tree, options);
    (1..tree.level_count())
        .map(|level| tree.logical_bytes(level).saturating_sub(capacities[level]))
        .fold(0, u64::saturating_add)
}
