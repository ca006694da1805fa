//! The rules of dropping, cutting and picking, case by case.

use crate::base::limits::TABLE_FILES_MAX;
use crate::base::{FileNumber, Kind, SequenceNumber, Trailer};
use crate::options::{KeyspaceOptions, Preset};
use crate::policy::output::Zones;
use crate::policy::scores::scores;
use crate::policy::{
    Claim, Compaction, DeeperLevels, FileSummary, OutputCutter, Plan, Purpose, ReadPoints,
    TreeSummary, Verdict, keep, pending_bytes, plan,
};

const KIB: u64 = 1 << 10;

/// A file of ten entries over the keys from `smallest` to `largest`.
pub(crate) fn file(number: u64, smallest: u32, largest: u32, kib: u64) -> FileSummary<u32> {
    let keys = (smallest, largest);
    FileSummary::new(FileNumber(number), keys, kib * KIB, 10)
}

fn busy(mut file: FileSummary<u32>) -> FileSummary<u32> {
    file.busy = true;
    file
}

fn tombstones(mut file: FileSummary<u32>) -> FileSummary<u32> {
    file.tombstones = 5;
    file
}

pub(crate) fn tree(level_count: usize, levels: Vec<Vec<FileSummary<u32>>>) -> TreeSummary<u32> {
    TreeSummary::new(level_count, levels, TABLE_FILES_MAX)
}

/// Level 1 holds 10 KiB, level 2 100 KiB; two runs make level 0 due.
fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        base_bytes: 10 * KIB,
        file_bytes: KIB,
        level0_runs: 2,
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

pub(crate) fn claim(level: usize, smallest: u32, largest: u32) -> Claim<u32> {
    Claim {
        level,
        smallest,
        largest,
    }
}

pub(crate) fn moves(level: usize, upper: u64, smallest: u32, largest: u32) -> Plan<u32> {
    Plan::TrivialMove {
        level,
        upper: FileNumber(upper),
        claim: claim(level + 1, smallest, largest),
    }
}

pub(crate) fn merges(
    level: usize,
    upper: &[u64],
    lower: &[u64],
    smallest: u32,
    largest: u32,
) -> Plan<u32> {
    let numbers = |numbers: &[u64]| numbers.iter().copied().map(FileNumber).collect();
    Plan::Compact(Compaction {
        level,
        upper: numbers(upper),
        lower: numbers(lower),
        targets: Vec::new(),
        claim: claim(level + 1, smallest, largest),
        purpose: Purpose::Tree,
    })
}

#[test]
fn plans() {
    let cases: Vec<(&str, TreeSummary<u32>, Plan<u32>)> = vec![
        ("an empty tree", tree(1, vec![]), Plan::Idle),
        (
            "a full last level",
            tree(1, vec![vec![], vec![file(1, 0, 9, 11)]]),
            Plan::Resize { level_count: 2 },
        ),
        (
            "a lone run moves",
            tree(1, vec![vec![file(1, 0, 9, 4)]]),
            moves(0, 1, 0, 9),
        ),
        (
            "a lone run over level 1 waits",
            tree(1, vec![vec![file(2, 0, 9, 4)], vec![file(1, 5, 20, 4)]]),
            Plan::Idle,
        ),
        (
            "a lone run of tombstones over nothing waits",
            tree(1, vec![vec![tombstones(file(1, 0, 9, 4))]]),
            Plan::Idle,
        ),
        (
            "tombstones over nothing are rewritten when due",
            tree(
                1,
                vec![vec![
                    tombstones(file(2, 0, 4, 4)),
                    tombstones(file(1, 5, 9, 4)),
                ]],
            ),
            merges(0, &[1], &[], 5, 9),
        ),
        (
            "tombstones over deeper data move",
            tree(
                2,
                vec![
                    vec![tombstones(file(2, 0, 4, 4))],
                    vec![],
                    vec![file(1, 0, 9, 50)],
                ],
            ),
            moves(0, 2, 0, 4),
        ),
        (
            "runs that overlap go down together, with all they overlap",
            tree(
                1,
                vec![
                    vec![file(4, 8, 12, 2), file(3, 0, 9, 2)],
                    vec![file(1, 2, 5, 2), file(2, 12, 15, 2), file(5, 16, 20, 2)],
                ],
            ),
            merges(0, &[4, 3], &[1, 2], 0, 15),
        ),
        (
            "runs that touch in one user key go down together",
            tree(1, vec![vec![file(2, 9, 12, 2), file(1, 0, 9, 2)]]),
            merges(0, &[2, 1], &[], 0, 12),
        ),
        (
            "the heap with the oldest run first, and others that cost nothing more",
            tree(
                1,
                vec![
                    vec![
                        file(6, 40, 50, 2),
                        file(5, 12, 13, 2),
                        file(4, 8, 9, 2),
                        file(3, 0, 4, 2),
                    ],
                    vec![file(1, 3, 20, 2), file(2, 45, 46, 2)],
                ],
            ),
            merges(0, &[5, 4, 3], &[1], 0, 20),
        ),
        (
            "a busy older run holds back what overlaps it",
            tree(
                1,
                vec![vec![
                    file(3, 0, 9, 2),
                    file(2, 3, 5, 2),
                    busy(file(1, 4, 12, 2)),
                ]],
            ),
            Plan::Idle,
        ),
        (
            "a busy lower file holds back what overlaps it",
            tree(
                1,
                vec![
                    vec![file(3, 0, 9, 2), file(2, 3, 5, 2)],
                    vec![busy(file(1, 9, 12, 2))],
                ],
            ),
            Plan::Idle,
        ),
        (
            "a file over a gap moves",
            tree(
                2,
                vec![
                    vec![],
                    vec![file(3, 0, 9, 6), file(4, 20, 29, 6)],
                    vec![file(1, 0, 15, 2), file(2, 30, 40, 2)],
                ],
            ),
            moves(1, 4, 20, 29),
        ),
        (
            "the cheapest file merges",
            tree(
                2,
                vec![
                    vec![],
                    vec![file(4, 0, 9, 6), file(5, 20, 29, 6)],
                    vec![file(1, 0, 4, 2), file(2, 5, 15, 2), file(3, 25, 40, 3)],
                ],
            ),
            merges(1, &[5], &[3], 20, 40),
        ),
        (
            "neighbours come along where they add no lower file",
            tree(
                2,
                vec![
                    vec![],
                    vec![
                        file(3, 0, 3, 3),
                        file(4, 4, 9, 4),
                        file(5, 10, 19, 3),
                        file(6, 20, 29, 3),
                    ],
                    vec![file(1, 1, 14, 2), file(2, 15, 40, 9)],
                ],
            ),
            merges(1, &[3, 4], &[1], 0, 14),
        ),
        (
            "busy files are passed over",
            tree(
                2,
                vec![
                    vec![],
                    vec![busy(file(4, 0, 9, 6)), file(5, 20, 29, 11)],
                    vec![busy(file(1, 0, 4, 2)), file(2, 25, 40, 30)],
                ],
            ),
            merges(1, &[5], &[2], 20, 40),
        ),
        (
            "a blocked level 0 keeps level 1 quiet",
            tree(
                2,
                vec![
                    vec![file(9, 0, 50, 2), file(8, 0, 50, 2), file(7, 0, 50, 2)],
                    vec![busy(file(4, 0, 9, 6)), file(5, 20, 29, 11)],
                    vec![busy(file(1, 0, 4, 2)), file(2, 25, 40, 30)],
                ],
            ),
            Plan::Idle,
        ),
        (
            "the higher score first",
            tree(
                2,
                vec![
                    vec![file(9, 0, 50, 2), file(8, 0, 50, 2)],
                    vec![file(4, 0, 9, 6), file(5, 20, 29, 11)],
                    vec![file(1, 0, 4, 7), file(2, 25, 40, 30)],
                ],
            ),
            merges(1, &[4], &[1], 0, 9),
        ),
    ];
    for (name, tree, expected) in cases {
        assert_eq!(plan(&tree, &options(), &[]), expected, "{name}");
    }
}

#[test]
fn equals_go_round_behind_the_cursor() {
    let tree = tree(
        2,
        vec![
            vec![],
            vec![file(1, 0, 9, 6), file(2, 10, 19, 6), file(3, 20, 29, 6)],
            vec![file(4, 5, 6, 2), file(5, 15, 16, 2), file(6, 25, 26, 2)],
        ],
    );
    for (cursor, upper, lower, smallest) in [
        (None, 1, 4, 0),
        (Some(9), 2, 5, 10),
        (Some(19), 3, 6, 20),
        (Some(29), 1, 4, 0),
    ] {
        let expected = merges(1, &[upper], &[lower], smallest, smallest + 9);
        assert_eq!(plan(&tree, &options(), &[None, cursor]), expected);
    }
}

#[test]
fn claims_hold_back_what_they_cover() {
    let mut tree = tree(
        2,
        vec![vec![], vec![file(1, 0, 9, 6), file(2, 20, 29, 6)], vec![]],
    );
    assert_eq!(plan(&tree, &options(), &[]), moves(1, 1, 0, 9));
    tree.claims = vec![claim(2, 9, 12)];
    assert_eq!(plan(&tree, &options(), &[]), moves(1, 2, 20, 29));
    tree.claims.push(claim(2, 29, 30));
    assert_eq!(plan(&tree, &options(), &[]), Plan::Idle);
    // Claims on other levels are no concern.
    tree.claims = vec![claim(1, 0, 50), claim(3, 0, 50)];
    assert_eq!(plan(&tree, &options(), &[]), moves(1, 1, 0, 9));
}

#[test]
fn a_neighbour_that_reaches_into_a_claim_stays() {
    let mut tree = tree(
        2,
        vec![
            vec![],
            vec![file(1, 0, 9, 6), file(2, 10, 19, 6)],
            vec![file(3, 5, 12, 2)],
        ],
    );
    assert_eq!(
        plan(&tree, &options(), &[]),
        merges(1, &[1, 2], &[3], 0, 19)
    );
    tree.claims = vec![claim(2, 15, 30)];
    assert_eq!(plan(&tree, &options(), &[]), merges(1, &[1], &[3], 0, 12));
}

#[test]
fn scores_and_debt() {
    let tree = tree(
        2,
        vec![
            vec![file(1, 0, 9, 4), busy(file(2, 0, 9, 4)), file(3, 0, 9, 4)],
            vec![file(4, 0, 4, 15), busy(file(5, 5, 9, 10))],
            vec![file(6, 0, 9, 1000)],
        ],
    );
    let expected = [1.0, 1.5, 0.0];
    for (score, expected) in scores(&tree, &options()).iter().zip(expected) {
        assert!((score - expected).abs() < 1e-9);
    }
    assert_eq!(pending_bytes(&tree, &options()), 15 * KIB);
}

#[test]
fn verdicts() {
    use Kind::{Tombstone, Value};
    use Verdict::{Keep, Spent, Superseded};
    const NONE: &[SequenceNumber] = &[];
    // (sequence, kind, next newer version, snapshots, visible, deeper data) -> verdict
    for (sequence, kind, newer, snapshots, visible, deeper, expected) in [
        // The newest version of a key stays.
        (5, Value, None, NONE, 9, false, Keep),
        (5, Value, None, &[3], 9, true, Keep),
        // A hidden version goes, unless a reader stands between it and the next newer one.
        (5, Value, Some(7), NONE, 9, false, Superseded),
        (5, Value, Some(7), &[4], 9, false, Superseded),
        (5, Value, Some(7), &[5], 9, false, Keep),
        (5, Value, Some(7), &[6], 9, false, Keep),
        (5, Value, Some(7), &[7], 9, false, Superseded),
        (5, Value, Some(7), &[1, 6, 8], 9, false, Keep),
        (5, Tombstone, Some(7), &[4, 7], 9, true, Superseded),
        // A newer version that is not visible yet hides nothing.
        (5, Value, Some(10), NONE, 9, false, Keep),
        (5, Value, Some(10), NONE, 4, false, Keep),
        (5, Value, Some(9), NONE, 9, false, Superseded),
        // A tombstone goes when all readers see it and nothing lies below.
        (5, Tombstone, None, NONE, 9, false, Spent),
        (5, Tombstone, None, NONE, 9, true, Keep),
        (5, Tombstone, None, &[5], 9, false, Spent),
        (5, Tombstone, None, &[4], 9, false, Keep),
        (5, Tombstone, None, NONE, 5, false, Spent),
        (5, Tombstone, None, NONE, 4, false, Keep),
        (5, Tombstone, Some(7), &[6], 9, false, Spent),
        (5, Tombstone, Some(7), &[4, 6], 9, false, Keep),
    ] {
        let readers = ReadPoints::new(snapshots.to_vec(), visible);
        let verdict = keep(Trailer::new(sequence, kind), newer, &readers, || deeper);
        assert_eq!(
            verdict, expected,
            "{sequence} {kind:?} below {newer:?}, readers {readers:?}, deeper {deeper}"
        );
    }
}

#[test]
fn deeper_levels_answer_for_ascending_keys() {
    let tree = tree(
        3,
        vec![
            vec![file(9, 0, 99, 1)],
            vec![file(8, 0, 99, 1)],
            vec![file(1, 10, 19, 1), file(2, 30, 39, 1)],
            vec![file(3, 35, 50, 1), file(4, 90, 95, 1)],
        ],
    );
    let mut deeper = DeeperLevels::new(&tree, &claim(1, 0, 99), &[]);
    let held: Vec<u32> = (0..99).filter(|key| deeper.may_hold(key)).collect();
    let expected: Vec<u32> = (10..=19).chain(30..=50).chain(90..=95).collect();
    assert_eq!(held, expected);
    assert!(!DeeperLevels::new(&tree, &claim(3, 0, 99), &[]).may_hold(&40));
}

#[test]
fn output_is_cut_when_full_and_at_ends_below_when_half_full() {
    let tree = tree(
        3,
        vec![
            vec![],
            vec![],
            vec![file(1, 0, 9, 1), file(2, 20, 29, 1), file(3, 40, 49, 1)],
        ],
    );
    let mut cutter = OutputCutter::new(
        &tree,
        &claim(1, 0, 99),
        Zones::new(&[], &[], (1000, false), |_, _| 10_000),
    );
    for (key, bytes, expected) in [
        (5, 900, false),
        (9, 900, false),
        (10, 500, true),
        (25, 999, false),
        (26, 1000, true),
        (35, 499, false),
        (36, 999, false),
        (60, 500, true),
    ] {
        assert_eq!(
            cutter.place(&key, bytes).begins,
            expected,
            "key {key} at {bytes} bytes"
        );
    }
}
