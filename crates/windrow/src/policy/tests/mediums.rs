//! Values of medium size on their way down: what jobs do with what is in transient logs.

use proptest::prelude::*;

use super::Random;
use super::model::{Model, everything};
use super::properties::{Step, options, run, step};
use super::tables::{claim, file, merges, moves, tree};
use crate::base::limits::TRANSIENT_FILES_MAX;
use crate::base::{FileNumber, Kind};
use crate::options::{KeyspaceOptions, MediumInPlace, Preset};
use crate::policy::capacities::capacities;
use crate::policy::placement::Placement;
use crate::policy::{
    Compaction, FileSummary, ManualCompaction, Plan, Purpose, TreeSummary, plan, plan_range,
};

const KIB: u64 = 1 << 10;

/// Medium, under the default thresholds.
const ENTRY_BYTES: u64 = 200;

/// Of its logical bytes, `kib` are in `runs`.
fn apart(mut file: FileSummary<u32>, kib: u64, runs: u32) -> FileSummary<u32> {
    file.bytes = file.logical_bytes - kib * KIB;
    file.transient_bytes = kib * KIB;
    file.pinned_bytes = kib * KIB;
    file.transient_files = runs;
    file
}

/// Level 1 holds 10 KiB, level 2 100 KiB; two runs make level 0 due; a tenth may be in runs.
fn small(medium_in_place: MediumInPlace) -> KeyspaceOptions {
    KeyspaceOptions {
        size_ratio: 10.0,
        base_bytes: 10 * KIB,
        file_bytes: KIB,
        level0_runs: 2,
        medium_in_place,
        ..KeyspaceOptions::preset(Preset::Parallax)
    }
}

/// There are so many transient log files in all.
fn with_transient_files(transient_files: u64, mut tree: TreeSummary<u32>) -> TreeSummary<u32> {
    tree.transient_files = transient_files;
    tree
}

fn rewrites(level: usize, upper: &[u64], smallest: u32, largest: u32) -> Plan<u32> {
    Plan::Compact(Compaction {
        level,
        upper: upper.iter().copied().map(FileNumber).collect(),
        lower: Vec::new(),
        targets: Vec::new(),
        claim: claim(level, smallest, largest),
        purpose: Purpose::Tree,
    })
}

#[test]
fn plans() {
    use MediumInPlace::{LastLevel, LevelBeforeLast, Never};
    let bottom = || file(9, 40, 90, 50);
    let cases = vec![
        (
            "a lone run waits for a merge where values must be in place",
            LastLevel,
            tree(1, vec![vec![apart(file(1, 0, 9, 4), 3, 1)]]),
            Plan::Idle,
        ),
        (
            "and is merged when it is due",
            LastLevel,
            tree(
                1,
                vec![vec![
                    apart(file(2, 5, 9, 4), 3, 1),
                    apart(file(1, 0, 4, 4), 3, 1),
                ]],
            ),
            merges(0, &[1], &[], 0, 4),
        ),
        (
            "it moves where it may stay in its run",
            Never,
            tree(1, vec![vec![apart(file(1, 0, 9, 4), 3, 1)]]),
            moves(0, 1, 0, 9),
        ),
        (
            "a file moves into a level above",
            LastLevel,
            tree(
                3,
                vec![
                    vec![],
                    vec![apart(file(1, 0, 9, 11), 1, 1)],
                    vec![],
                    vec![bottom()],
                ],
            ),
            moves(1, 1, 0, 9),
        ),
        (
            "and is merged into the one before the last, if that is in place",
            LevelBeforeLast,
            tree(
                3,
                vec![
                    vec![],
                    vec![apart(file(1, 0, 9, 11), 1, 1)],
                    vec![],
                    vec![bottom()],
                ],
            ),
            merges(1, &[1], &[], 0, 9),
        ),
        (
            "a tenth in runs is no debt",
            LastLevel,
            tree(
                2,
                vec![vec![], vec![apart(file(1, 0, 9, 9), 5, 1)], vec![bottom()]],
            ),
            Plan::Idle,
        ),
        (
            "more is, and the file with the largest share goes down, where nothing is below",
            LastLevel,
            tree(
                2,
                vec![
                    vec![],
                    vec![
                        apart(file(1, 0, 9, 4), 3, 0),
                        apart(file(2, 10, 19, 5), 4, 0),
                    ],
                    vec![bottom()],
                ],
            ),
            merges(1, &[2], &[], 10, 19),
        ),
        (
            "as many transient log files as there may be are no debt",
            LastLevel,
            with_transient_files(TRANSIENT_FILES_MAX, {
                let upper = apart(file(1, 0, 9, 9), 5, 1);
                tree(2, vec![vec![], vec![upper], vec![bottom()]])
            }),
            Plan::Idle,
        ),
        (
            "one more is, however short",
            LastLevel,
            with_transient_files(TRANSIENT_FILES_MAX + 1, {
                let upper = apart(file(1, 0, 9, 9), 5, 1);
                tree(2, vec![vec![], vec![upper], vec![bottom()]])
            }),
            merges(1, &[1], &[], 0, 9),
        ),
        (
            "but for those of level 0",
            LastLevel,
            with_transient_files(TRANSIENT_FILES_MAX + 1, {
                let (run, upper) = (apart(file(2, 0, 9, 1), 0, 1), apart(file(1, 0, 9, 9), 5, 1));
                tree(2, vec![vec![run], vec![upper], vec![bottom()]])
            }),
            Plan::Idle,
        ),
        (
            "nor is it where values are never in place",
            Never,
            with_transient_files(TRANSIENT_FILES_MAX + 1, {
                let upper = apart(file(1, 0, 9, 9), 5, 1);
                tree(2, vec![vec![], vec![upper], vec![bottom()]])
            }),
            Plan::Idle,
        ),
        (
            "in level 0 nothing is owed",
            LastLevel,
            tree(
                2,
                vec![
                    vec![apart(file(1, 0, 50, 40), 39, 1)],
                    vec![],
                    vec![bottom()],
                ],
            ),
            moves(0, 1, 0, 50),
        ),
        (
            "nor where values are never in place",
            Never,
            tree(
                2,
                vec![vec![], vec![apart(file(1, 0, 9, 9), 8, 1)], vec![bottom()]],
            ),
            Plan::Idle,
        ),
        (
            "a straggler in the last level is rewritten in its place",
            LastLevel,
            tree(
                2,
                vec![
                    vec![],
                    vec![],
                    vec![file(1, 0, 9, 20), apart(bottom(), 1, 0)],
                ],
            ),
            rewrites(2, &[9], 40, 90),
        ),
        (
            "with stragglers beside it, until slices are wide",
            LastLevel,
            tree(
                2,
                vec![
                    vec![],
                    vec![],
                    vec![
                        apart(file(1, 0, 9, 20), 1, 1),
                        apart(file(2, 10, 19, 30), 2, 2),
                        apart(file(3, 20, 29, 34), 1, 1),
                        file(4, 30, 39, 10),
                    ],
                ],
            ),
            rewrites(2, &[2, 3], 10, 29),
        ),
        (
            "an in-place merge takes neighbours until slices are wide",
            LastLevel,
            beside_a_third(apart(file(3, 20, 29, 12), 7, 1), 15),
            merges(1, &[1, 2, 3], &[5, 6, 7], 0, 29),
        ),
        (
            "but none that costs much more than is usual in the level",
            LastLevel,
            beside_a_dear_one(),
            merges(1, &[1, 2], &[5, 6], 0, 19),
        ),
    ];
    for (name, medium_in_place, tree, expected) in cases {
        assert_eq!(
            plan(&tree, &small(medium_in_place), &[]),
            expected,
            "{name}"
        );
    }
}

fn busy(mut file: FileSummary<u32>) -> FileSummary<u32> {
    file.busy = true;
    file
}

/// Two cheap files of level 1, a `third` with so much below it, and one that is busy. Most of level 2 has nothing
/// above it.
fn beside_a_third(third: FileSummary<u32>, kib_below: u64) -> TreeSummary<u32> {
    tree(
        2,
        vec![
            vec![],
            vec![
                apart(file(1, 0, 9, 4), 1, 1),
                apart(file(2, 10, 19, 4), 1, 1),
                third,
                busy(file(4, 30, 39, 4)),
            ],
            vec![
                file(5, 0, 5, 2),
                file(6, 10, 15, 2),
                file(7, 21, 26, kib_below),
                file(9, 40, 90, 60),
            ],
        ],
    )
}

/// The third has ten times as much below it as each other one.
fn beside_a_dear_one() -> TreeSummary<u32> {
    beside_a_third(apart(file(3, 20, 29, 4), 3, 1), 20)
}

#[test]
fn a_range_takes_what_comes_anyway_at_any_price() {
    let (tree, options) = (beside_a_dear_one(), small(MediumInPlace::LastLevel));
    let all = everything(FileNumber(1));
    let expected = merges(1, &[1, 2, 3], &[5, 6, 7], 0, 29);
    assert_eq!(plan_range(&tree, &options, &all), expected);
    let narrow = ManualCompaction {
        largest: Some(&19),
        ..all
    };
    let expected = merges(1, &[1, 2], &[5, 6], 0, 19);
    assert_eq!(plan_range(&tree, &options, &narrow), expected);
}

#[test]
fn the_cheaper_neighbour_comes_first() {
    let three = |before, behind| {
        let above = |number, smallest| apart(file(number, smallest, smallest + 9, 16), 15, 1);
        let below = vec![
            file(5, 0, 5, before),
            file(6, 10, 15, 6),
            file(7, 21, 26, behind),
            file(9, 40, 90, 60),
        ];
        tree(
            2,
            vec![vec![], vec![above(1, 0), above(2, 10), above(3, 20)], below],
        )
    };
    // Behind the last key that was merged: from the second file on.
    let next = |tree| plan(&tree, &small(MediumInPlace::LastLevel), &[None, Some(9)]);
    assert_eq!(next(three(3, 4)), merges(1, &[1, 2], &[5, 6], 0, 19));
    assert_eq!(next(three(4, 3)), merges(1, &[2, 3], &[6, 7], 10, 29));
}

#[test]
fn a_range_is_rid_of_runs_in_its_place() {
    let straggler = apart(file(9, 0, 9, 50), 1, 1);
    let tree = tree(2, vec![vec![], vec![], vec![straggler]]);
    // Not only files with numbers below `before`: it is over once they are rewritten.
    let next = |medium_in_place| {
        let options = small(medium_in_place);
        plan_range(&tree, &options, &everything(FileNumber(1)))
    };
    assert_eq!(next(MediumInPlace::LastLevel), rewrites(2, &[9], 0, 9));
    assert_eq!(
        next(MediumInPlace::LevelBeforeLast),
        rewrites(2, &[9], 0, 9)
    );
    assert_eq!(next(MediumInPlace::Never), Plan::Idle);
}

/// What files of `levels` refer to in runs.
fn transient(tree: &TreeSummary<u32>, levels: std::ops::RangeFrom<usize>) -> u64 {
    let files = tree.levels[levels].iter().flatten();
    files.map(|file| file.transient_bytes).sum()
}

/// Debt is at most 1/T of the tree, and none is where values must be in place. So all runs together,
/// garbage values included, take no more than that, and what level 0 has in them.
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
        "{debt} of {logical} in runs"
    );
}

/// Levels from 1 on refer to no more transient log files than there may be.
fn assert_few_run_files(model: &Model) {
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

    /// I1 to I5 with values in runs, and nothing is owed at rest.
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

    /// Design invariant 9: when all is in place, nothing is in runs.
    #[test]
    fn a_whole_range_leaves_nothing_in_runs(
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

    /// However few bytes are in many transient log files, which here count as thousands each.
    #[test]
    fn comes_to_rest_with_few_run_files(
        options in options(), medium_in_place in in_place(), weight in 1..TRANSIENT_FILES_MAX,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut model = run(separating(options, medium_in_place), ENTRY_BYTES, steps);
        model.transient_file_weight = weight;
        model.settle();
        model.check_reads();
        if medium_in_place != MediumInPlace::Never {
            assert_within_debt(&model);
            assert_few_run_files(&model);
        }
    }

    /// Other options do not make a tree restless.
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

/// Bytes that merges write per byte given, for random writes of medium entries: so large that a slice
/// of a run is wide with one of them.
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
    // All in place costs 7.3, and 3.9 where nothing bounds what is dead in runs.
    assert!(costs[1] < 5.0, "{costs:?}");
}
