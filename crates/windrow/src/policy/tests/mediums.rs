//! Values of medium size on their way down: what jobs do with values in transient logs.

use proptest::prelude::*;

use super::Random;
use super::model::{Model, everything};
use super::notation::{parse_tree, show};
use super::pick::mediums;
use super::properties::{Step, options, run, step};
use crate::base::limits::TRANSIENT_FILES_MAX;
use crate::base::{FileNumber, Kind};
use crate::options::{KeyspaceOptions, MediumInPlace, Preset};
use crate::policy::capacities::capacities;
use crate::policy::placement::Placement;
use crate::policy::{ManualCompaction, Tree, TreeSummary, plan, plan_range};

/// Medium, under the default thresholds.
const ENTRY_BYTES: u64 = 200;

#[test]
fn too_many_transient_log_files_are_debt() {
    use MediumInPlace::{LastLevel, Never};
    let upper = "| 1:0-9/9+apart=5+logs=1 | 9:40-90/50";
    // The transient log of a run of level 0 does not count.
    let below_a_run = format!("2:0-9/1+apart=0+logs=1 {upper}");
    for (tree, files, medium_in_place, expected) in [
        (upper, TRANSIENT_FILES_MAX, LastLevel, "idle"),
        (
            upper,
            TRANSIENT_FILES_MAX + 1,
            LastLevel,
            "compact L1 1 over 0-9",
        ),
        (&below_a_run, TRANSIENT_FILES_MAX + 1, LastLevel, "idle"),
        (upper, TRANSIENT_FILES_MAX + 1, Never, "idle"),
    ] {
        let mut tree = parse_tree(tree);
        tree.transient_files = files;
        let plan = plan(&tree, &mediums(medium_in_place), &[]);
        assert_eq!(show(&plan), expected, "{files} files, {medium_in_place:?}");
    }
}

#[test]
fn what_levels_above_the_tree_keep_is_debt() {
    use MediumInPlace::{LastLevel, Never};
    for (above, medium_in_place, expected) in [
        (0, LastLevel, "idle"),
        (1 << 40, LastLevel, "compact L1 1 over 0-9"),
        (1 << 40, Never, "idle"),
    ] {
        let mut tree = parse_tree("| 1:0-9/9+apart=5+logs=1 | 9:40-90/50");
        tree.pinned_above = above;
        let plan = plan(&tree, &mediums(medium_in_place), &[]);
        assert_eq!(show(&plan), expected, "{above} bytes, {medium_in_place:?}");
    }
}

#[test]
fn a_manual_compaction_takes_its_range_at_any_cost() {
    // The third file has ten times as much below it as each other one.
    let tree = parse_tree(
        "| 1:0-9/4+apart=1+logs=1 2:10-19/4+apart=1+logs=1 3:20-29/4+apart=3+logs=1 4:30-39/4+busy
         | 5:0-5/2 6:10-15/2 7:21-26/20 9:40-90/60",
    );
    for (largest, expected) in [
        (None, "compact L1 1 2 3 with 5 6 7 over 0-29"),
        (Some(&19), "compact L1 1 2 with 5 6 over 0-19"),
    ] {
        let wanted = ManualCompaction {
            largest,
            ..everything(FileNumber(1))
        };
        let plan = plan_range(&tree, &mediums(MediumInPlace::LastLevel), &wanted);
        assert_eq!(show(&plan), expected);
    }
}

#[test]
fn the_cheaper_neighbour_comes_first() {
    for (before, after, expected) in [
        (3, 4, "compact L1 1 2 with 5 6 over 0-19"),
        (4, 3, "compact L1 2 3 with 6 7 over 10-29"),
    ] {
        let tree = parse_tree(&format!(
            "| 1:0-9/16+apart=15+logs=1 2:10-19/16+apart=15+logs=1 3:20-29/16+apart=15+logs=1
             | 5:0-5/{before} 6:10-15/6 7:21-26/{after} 9:40-90/60"
        ));
        // The cursor is before the second file.
        let plan = plan(&tree, &mediums(MediumInPlace::LastLevel), &[None, Some(9)]);
        assert_eq!(show(&plan), expected);
    }
}

#[test]
fn a_manual_compaction_puts_values_of_the_last_level_in_place() {
    let tree = parse_tree("| | 9:0-9/50+apart=1+logs=1");
    for (medium_in_place, expected) in [
        (MediumInPlace::LastLevel, "rewrite L2 9 over 0-9"),
        (MediumInPlace::LevelBeforeLast, "rewrite L2 9 over 0-9"),
        (MediumInPlace::Never, "idle"),
    ] {
        // Not only files with numbers below `before`: it ends once they are rewritten.
        let wanted = everything(FileNumber(1));
        let plan = plan_range(&tree, &mediums(medium_in_place), &wanted);
        assert_eq!(show(&plan), expected);
    }
}

/// Bytes that files of `levels` refer to in transient logs.
fn transient(tree: &TreeSummary<u32>, levels: std::ops::RangeFrom<usize>) -> u64 {
    let files = tree.levels[levels].iter().flatten();
    files.map(|file| file.transient_bytes).sum()
}

/// Debt is at most 1/T of the tree, and levels that have values in place have none. So all transient logs together,
/// garbage included, take no more than that, and what level 0 has in them.
fn assert_within_debt(model: &Model) {
    let tree = model.summary();
    let placement = Placement::of(&tree, &model.options);
    for level in 0..tree.levels.len() {
        if placement.is_in_place(level) {
            assert_eq!(transient(&tree, level..), 0, "from level {level} on");
        }
    }
    let levels = 0..tree.levels.len();
    let logical: u64 = levels.map(|level| tree.logical_bytes(level)).sum();
    // Each file's part is rounded down.
    let files = tree.levels.iter().flatten().count() as u64;
    let level0: u64 = tree.level(0).iter().map(|file| file.pinned_bytes).sum();
    let debt = model.transient_log_bytes().saturating_sub(level0 + files);
    assert!(
        debt as f64 <= logical as f64 / model.options.size_ratio,
        "{debt} of {logical} in transient logs"
    );
}

/// Levels from 1 on refer to no more transient log files than there may be.
fn assert_few_transient_files(model: &Model) {
    let tree = model.summary();
    let flushed = tree
        .level(0)
        .iter()
        .map(|file| u64::from(file.transient_files));
    let below = model.transient_files() - flushed.sum::<u64>();
    assert!(below <= TRANSIENT_FILES_MAX, "{below} transient log files");
}

fn in_place() -> impl Strategy<Value = MediumInPlace> {
    prop_oneof![
        Just(MediumInPlace::LastLevel),
        Just(MediumInPlace::LevelBeforeLast),
        Just(MediumInPlace::Never),
    ]
}

fn separating(mut options: KeyspaceOptions, medium_in_place: MediumInPlace) -> KeyspaceOptions {
    options.medium_from = 120;
    options.large_from = 1024;
    options.medium_in_place = medium_in_place;
    options
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// I1 to I5 with values in transient logs, and no debt is due at rest.
    #[test]
    fn comes_to_rest_within_capacity_and_debt(
        options in options(), medium_in_place in in_place(),
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut model = run(separating(options, medium_in_place), ENTRY_BYTES, steps);
        model.settle();
        model.check_reads();
        let tree = model.summary();
        prop_assert!(tree.level(0).len() < model.options.level0_runs.max(1));
        let capacities = capacities(&model.options, tree.level_count);
        for (level, capacity) in capacities.iter().enumerate().skip(1) {
            prop_assert!(tree.logical_bytes(level) <= *capacity);
        }
        if medium_in_place != MediumInPlace::Never {
            assert_within_debt(&model);
        }
    }

    /// Design invariant 9: if all values are in place, transient logs are empty.
    #[test]
    fn a_manual_compaction_empties_transient_logs(
        options in options(), medium_in_place in in_place(),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let values = steps.iter().any(|step| {
            matches!(step, Step::Flush { kind: Kind::Value, .. })
        });
        let mut model = run(separating(options, medium_in_place), ENTRY_BYTES, steps);
        model.compact();
        model.check_reads();
        let left = transient(&model.summary(), 0..);
        if medium_in_place == MediumInPlace::Never {
            let any = model.summary().levels.iter().flatten().any(|file| {
                file.entries > file.tombstones
            });
            prop_assert_eq!(left > 0, any && values);
        } else {
            prop_assert_eq!(left, 0);
        }
    }

    /// Few bytes in many transient log files are debt. Here each file counts as thousands.
    #[test]
    fn comes_to_rest_with_few_transient_files(
        options in options(), medium_in_place in in_place(), weight in 1..TRANSIENT_FILES_MAX,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut model = run(separating(options, medium_in_place), ENTRY_BYTES, steps);
        model.transient_file_weight = weight;
        model.settle();
        model.check_reads();
        if medium_in_place != MediumInPlace::Never {
            assert_within_debt(&model);
            assert_few_transient_files(&model);
        }
    }

    /// A tree comes to rest after a change of options.
    #[test]
    fn other_options_are_settled(
        options in options(), from in in_place(), to in in_place(),
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut model = run(separating(options.clone(), from), ENTRY_BYTES, steps);
        model.settle();
        model.set_options(separating(options, to));
        model.settle();
        model.check_reads();
        if to != MediumInPlace::Never {
            assert_within_debt(&model);
        }
    }
}

/// Bytes that compactions write per byte given, for random writes of medium entries. One entry makes a slice wide.
fn rewritten(medium_from: u64, medium_in_place: MediumInPlace) -> f64 {
    const ENTRY_BYTES: u64 = 64 << 10;
    let options = KeyspaceOptions {
        memtable_bytes: 100 << 16,
        file_bytes: 40 << 16,
        base_bytes: 400 << 16,
        medium_from,
        large_from: u64::MAX,
        medium_in_place,
        ..KeyspaceOptions::preset(Preset::Parallax)
    };
    let mut model = Model::new(options, ENTRY_BYTES);
    let mut random = Random(11);
    for _ in 0..300 {
        model.flush((0..100).map(|_| (random.below(1 << 30), Kind::Value)));
        model.settle();
        if medium_in_place != MediumInPlace::Never {
            assert_within_debt(&model);
        }
    }
    model.merged as f64 / (300 * 100 * ENTRY_BYTES) as f64
}

/// PX-E6 and PX-E8 in small: the deeper values are put in place, the less is written.
#[test]
fn the_deeper_in_place_the_less_is_written() {
    use MediumInPlace::{LastLevel, LevelBeforeLast, Never};
    let costs = [
        rewritten(120, Never),
        rewritten(120, LastLevel),
        rewritten(120, LevelBeforeLast),
        rewritten(u64::MAX, LastLevel),
    ];
    assert!(costs.is_sorted(), "{costs:?}");
    // All in place costs 7.3, and 3.9 without a bound on garbage in transient logs.
    assert!(costs[1] < 5.0, "{costs:?}");
}
