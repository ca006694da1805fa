//! When a tree gets one level more or less. No file moves.
//!
//! The tree *grows* when the last level is over its capacity: the delayed last-level compaction (AU-M3). It
//! *shrinks* when the last level is empty and the other levels fit in half of the smaller capacities that they
//! would have. The half keeps a tree at the border from going back and forth (D4).

use crate::base::limits::LEVELS_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::capacities::capacities;
use crate::policy::tree::Tree;

/// The number of levels that `tree` should have, if not the present one.
pub(super) fn resized<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> Option<usize> {
    let last = tree.level_count();
    if tree.logical_bytes(last) > capacities(options, last)[last] {
        return (last < LEVELS_MAX).then_some(last + 1);
    }
    let is_used = tree.len(last) > 0 || tree.claims().iter().any(|it| it.level == last);
    if last == 1 || is_used {
        return None;
    }
    let smaller = capacities(options, last - 1);
    let fits = |level: usize| tree.logical_bytes(level) <= smaller[level] / 2;
    (1..last).all(fits).then_some(last - 1)
}
