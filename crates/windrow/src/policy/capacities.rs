//! How many bytes each level may hold, and how large its files are.
//!
//! The ratio between level i and the level above it is `T / c^(L-i)`: exactly T at the bottom and
//! growing by 1/c towards the top. With `base = B T`, the product of the ratios is
//!
//! ```text
//! C_i = base * T^(i-1) / c^(i(2L-i-1)/2)        i = 1..L
//! ```
//!
//! `c = 1` is plain leveling: the divisor is exactly 1 and the capacities are `base * T^(i-1)` bit
//! for bit. Capacities saturate at `u64::MAX` and are never rounded to buffers.
//!
//! These are the *nominal* capacities (AU-M1). While the last level is far from full, they let the levels
//! above it hold about the same number of bytes, and superseded entries there take space. So when the space
//! amplification comes near `max_space_amp`, the capacities that count shrink towards what fits the present
//! size of the last level (AU-M12).
//!
//! A change of options can leave several levels over-full at once, and together they would stop writers. So
//! after a change, and after each open, each level is first *allowed* what it holds. Then one level after the
//! other has to shrink, from the bottom up.

use super::tree::{Sum, Tree};
use crate::base::limits::LEVELS_MAX;
use crate::options::KeyspaceOptions;

/// A level of this many files is cut finely enough for small compactions. If a tree would have too many
/// files, only the files of levels with more files than this grow.
const LEVEL_FILES: u64 = 128;

/// The capacity of every level in logical bytes, indexed by level, `0..=level_count`.
///
/// Level 0 is bounded by runs, not bytes. Its entry is the memory of the memtables that its runs come from.
pub(crate) fn capacities(options: &KeyspaceOptions, level_count: usize) -> Vec<u64> {
    let level0 = (options.memtable_bytes as u64).saturating_mul(options.level0_runs as u64);
    let deeper = (1..=level_count).map(|level| {
        capacity(
            options.base_bytes,
            options.size_ratio,
            options.scaling,
            level_count,
            level,
        )
    });
    std::iter::once(level0).chain(deeper).collect()
}

/// The size in [cut bytes](super::cut_bytes) at which a compaction into `level` closes a file: the option, or more if
/// the tree would otherwise have too many files. It is the same in all large levels, so that a file overlaps as many
/// files of the level below as the size ratio says.
///
/// Files are at least half full on average. So there are at most twice `files_max`, and those of small
/// levels.
pub(crate) fn target_file_bytes<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    level: usize,
) -> u64 {
    let held = tree.total(Sum::CutBytes);
    let capacity = capacities(options, tree.level_count().max(level))[level];
    let grown = (held / tree.files_max().max(1)).min(capacity / LEVEL_FILES);
    options.file_bytes.max(grown)
}

/// The capacities of `tree`: the nominal ones, and above the effective last level less
/// if the tree takes too much space.
///
/// With S bytes in that level, a capacity of S over the product of the ratios below level i fits. A
/// capacity goes from its nominal value to the one that fits by a geometric mean, weighed by the
/// [throttle](space_throttle). So a small change of the space changes it little.
pub(crate) fn bounded_capacities<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
) -> Vec<u64> {
    let mut capacities = capacities(options, tree.level_count());
    let throttle = space_throttle(tree, options);
    let last = tree.effective_last_level(options.size_ratio);
    if throttle == 0.0 || last < 2 || last > tree.level_count() {
        return capacities;
    }
    let nominal = capacities.clone();
    // What fits, as parts of the last level; scaled down if small ratios let even that exceed the
    // space.
    let parts = |level: usize| nominal[level] as f64 / nominal[last] as f64;
    let sum: f64 = (1..last).map(parts).sum();
    let scale = (space_of_levels(tree, options) * SPACE_USED / sum).min(1.0);
    let held = tree.logical_bytes(last) as f64;
    for level in 1..last {
        let capacity = nominal[level] as f64;
        let fitting = (held * parts(level) * scale).clamp(1.0, capacity);
        let bounded = capacity * (fitting / capacity).powf(throttle);
        capacities[level] = whole(bounded).max(1);
    }
    capacities
}

/// The capacities that count now: those of [`bounded_capacities`], or more where levels are allowed more.
pub(crate) fn allowed_capacities<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
) -> Vec<u64> {
    let mut capacities = bounded_capacities(tree, options);
    for (capacity, allowed) in capacities.iter_mut().zip(tree.allowed()) {
        *capacity = (*capacity).max(*allowed);
    }
    capacities
}

/// What levels are allowed from now on, indexed by level. The deepest over-full level is allowed nothing, so
/// that it shrinks. The levels above it are allowed no more than before, and no more than they hold now.
pub(crate) fn next_allowed<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> Vec<u64> {
    let capacities = bounded_capacities(tree, options);
    let mut next = vec![0; tree.level_count()];
    // If the last level is over-full, the tree grows by a level first. Then that level is the deepest that shrinks.
    let last = tree.level_count();
    let mut is_deeper_over = last < LEVELS_MAX && tree.logical_bytes(last) > capacities[last];
    for level in (1..tree.level_count()).rev() {
        let held = tree.logical_bytes(level);
        if is_deeper_over {
            next[level] = held.min(tree.allowed().get(level).copied().unwrap_or(0));
        }
        is_deeper_over |= held > capacities[level];
    }
    next
}

/// The part of the space above the live data that the levels above the last may take.
const SPACE_USED: f64 = 0.8;

/// How near the space amplification of `tree` is to `max_space_amp`: 0 while half of the space is
/// free, 1 once a tenth of it is left. Values in transient logs count in the level of their keys, and
/// garbage there as space taken.
///
/// The live bytes are unknown. They are at least those of the largest level, less what newer segments there
/// supersede and what tombstones hide, because that level has each of its keys once.
pub(super) fn space_throttle<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> f64 {
    let space = space_of_levels(tree, options);
    if space.is_infinite() {
        return 0.0;
    }
    let taken = (tree_bytes(tree) as f64 / live_bytes(tree) - 1.0) / space;
    ((taken - 0.5) / 0.4).clamp(0.0, 1.0)
}

/// The space above the live data, as a part of it, for entries that the levels above the last may supersede.
///
/// Value logs with little garbage are expensive to collect, and the tables that point there are cheap to rewrite. So
/// value logs keep most of the space if most of the data is there.
pub(super) fn space_of_levels<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> f64 {
    let logs = tree.total(Sum::LogBytes);
    let part = logs as f64 / tree_bytes(tree).max(1) as f64;
    (options.max_space_amp - 1.0) * (1.0 - LOGS_SPACE * part)
}

/// The part of the space that value logs keep if all data is there.
const LOGS_SPACE: f64 = 0.7;

/// The bytes on disk that tables hold and refer to, and garbage that they keep in transient logs.
pub(super) fn tree_bytes<K: Clone>(tree: &dyn Tree<K>) -> u64 {
    tree.total(Sum::KeptBytes)
}

/// The least number of these bytes that are live, not less than 1.
pub(super) fn live_bytes<K: Clone>(tree: &dyn Tree<K>) -> f64 {
    let largest = (1..tree.depth()).map(|level| tree.held_once(level));
    let entries = tree.total(Sum::Entries);
    let tombstones = tree.total(Sum::Tombstones);
    let hidden = tombstones as f64 * (tree_bytes(tree) as f64 / entries.max(1) as f64);
    (largest.fold(0.0, f64::max) - hidden).max(1.0)
}

/// `C_i` for level `i` of `level_count`.
fn capacity(base_bytes: u64, size_ratio: f64, scaling: f64, level_count: usize, i: usize) -> u64 {
    debug_assert!((1..=level_count).contains(&i));
    let exponent = i * (2 * level_count - i - 1) / 2;
    whole(base_bytes as f64 * power(size_ratio, i - 1) / power(scaling, exponent))
}

/// The whole part of a number that is not negative, at most `u64::MAX`.
pub(crate) fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is not negative, and the cast saturates"
    )]
    let whole = number as u64;
    whole
}

/// `base` to the power of `exponent` by plain multiplication, the same on every machine.
fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::{capacities, capacity, target_file_bytes};
    use crate::base::limits::{LEVELS_MAX, TABLE_FILES_MAX};
    use crate::options::KeyspaceOptions;
    use crate::policy::FileSummary;
    use crate::policy::tests::notation::{file, tree};
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn options(size_ratio: f64, scaling: f64, base_bytes: u64) -> KeyspaceOptions {
        KeyspaceOptions {
            size_ratio,
            scaling,
            base_bytes,
            ..KeyspaceOptions::default()
        }
    }

    #[test]
    fn scaling_one_is_leveling_bit_for_bit() {
        for ratio in [2_u64, 3, 5, 10] {
            for level_count in 1..=8 {
                let capacities = capacities(&options(ratio as f64, 1.0, 256 * MIB), level_count);
                let mut expected = 256 * MIB;
                for capacity in &capacities[1..] {
                    assert_eq!(*capacity, expected);
                    expected *= ratio;
                }
            }
        }
    }

    #[test]
    fn ratios_agree_with_the_published_figures() {
        // 10 MiB, T = 2, c = 0.8, five levels: ratios 2, 2.5, 3.125, 3.90625 from the bottom up.
        let capacities = capacities(&options(2.0, 0.8, 10 * MIB), 5);
        let ratios: Vec<f64> = (2..=5)
            .map(|level| capacities[level] as f64 / capacities[level - 1] as f64)
            .collect();
        for (ratio, expected) in ratios.iter().zip([3.906_25, 3.125, 2.5, 2.0]) {
            assert!((ratio - expected).abs() < 1e-6, "{ratio} is not {expected}");
        }
        // c^(L-1) = 0.4096.
        assert!((capacities[1] as f64 * 0.4096 / (10 * MIB) as f64 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn capacities_of_deep_trees_saturate() {
        let capacities = capacities(&options(1000.0, 0.1, u64::MAX / 2), LEVELS_MAX);
        assert_eq!(capacities[LEVELS_MAX], u64::MAX);
        assert!(capacities[1..].is_sorted());
    }

    #[test]
    fn files_grow_with_the_tree() {
        let options = options(10.0, 1.0, 256 * MIB);
        let sizes = |level_count: usize| {
            let full = capacities(&options, level_count).into_iter();
            let files = full.enumerate().map(|(level, bytes)| {
                let bytes = if level == 0 { 0 } else { bytes };
                vec![FileSummary {
                    bytes,
                    ..file(1, 0, 9, 1)
                }]
            });
            let tree = tree(level_count, files.collect());
            let sizes = (1..=level_count).map(|level| target_file_bytes(&tree, &options, level));
            sizes.collect::<Vec<u64>>()
        };
        assert_eq!(sizes(3), [options.file_bytes; 3]);
        let petabytes = sizes(8);
        assert_eq!(petabytes[0], options.file_bytes);
        assert!(petabytes[1..].is_sorted() && petabytes[1] > options.file_bytes);
        assert_eq!(petabytes[6], petabytes[7]);
        let files = capacities(&options, 8)[8] / petabytes[7];
        assert!(
            (TABLE_FILES_MAX / 2..=TABLE_FILES_MAX).contains(&files),
            "{files}"
        );
    }

    proptest! {
        /// Design invariant 1: products of ratios agree.
        #[test]
        fn products_of_ratios_agree(
            ratio in 2.0..20.0_f64, scaling in 0.3..=1.0_f64, level_count in 1..6_usize,
        ) {
            let mut product = 1e6 / scaling.powi(i32::try_from(level_count).unwrap() - 1);
            for level in 1..=level_count {
                if level > 1 {
                    product *= ratio
                        / scaling.powi(i32::try_from(level_count - level).unwrap());
                }
                let capacity = capacity(1_000_000, ratio, scaling, level_count, level) as f64;
                prop_assert!((capacity / product - 1.0).abs() < 1e-5);
            }
        }

        /// Design invariant 1: growing L multiplies `C_i` by `c^-i`.
        #[test]
        fn growing_multiplies_by_the_scaling(
            ratio in 2.0..20.0_f64, scaling in 0.3..=1.0_f64, level_count in 1..6_usize,
        ) {
            for level in 1..=level_count {
                let before = capacity(1_000_000, ratio, scaling, level_count, level) as f64;
                let after = capacity(1_000_000, ratio, scaling, level_count + 1, level) as f64;
                let factor = scaling.powi(-i32::try_from(level).unwrap());
                prop_assert!((after / (before * factor) - 1.0).abs() < 1e-5);
            }
        }
    }
}
