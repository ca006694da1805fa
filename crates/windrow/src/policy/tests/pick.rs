//! The next job of a tree, case by case.

use super::notation::{KIB, check_plans, check_trees, claim, parse_tree, show};
use crate::options::{KeyspaceOptions, MediumInPlace, Preset, SegmentLimit};
use crate::policy::scores::scores;
use crate::policy::{TreeSummary, pending_bytes, plan};

/// Level 1 holds 10 KiB, level 2 100 KiB; two runs make level 0 due.
fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        base_bytes: 10 * KIB,
        file_bytes: KIB,
        level0_runs: 2,
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

/// Without appends, and with all values in place.
const LEVELING: &str = "
an empty tree :: => idle
a full last level :: | 1:0-9/11 => resize to 2
a lone run moves :: 1:0-9/4 => move L0 1 over 0-9
a lone run over level 1 stays :: 2:0-9/4 | 1:5-20/4 => idle
a lone run of tombstones over nothing is rewritten :: 1:0-9/4+tombstones => compact L0 1 over 0-9
tombstones over nothing are rewritten when due :: 2:0-4/4+tombstones 1:5-9/4+tombstones
    => compact L0 1 over 5-9
tombstones over deeper data move :: 2:0-4/4+tombstones | | 1:0-9/50 => move L0 2 over 0-4
runs that overlap go down together, with all they overlap ::
    4:8-12/2 3:0-9/2 | 1:2-5/2 2:12-15/2 5:16-20/2 => compact L0 4 3 with 1 2 over 0-15
runs that touch in one user key go down together :: 2:9-12/2 1:0-9/2 => compact L0 2 1 over 0-12
the group with the oldest run comes first, with others that cost nothing more ::
    6:40-50/2 5:12-13/2 4:8-9/2 3:0-4/2 | 1:3-20/2 2:45-46/2 => compact L0 5 4 3 with 1 over 0-20
a busy older run blocks what overlaps it :: 3:0-9/2 2:3-5/2 1:4-12/2+busy => idle
a busy lower file blocks what overlaps it :: 3:0-9/2 2:3-5/2 | 1:9-12/2+busy => idle
a file over a gap moves :: | 3:0-9/6 4:20-29/6 | 1:0-15/2 2:30-40/2 => move L1 4 over 20-29
the cheapest file is compacted :: | 4:0-9/6 5:20-29/6 | 1:0-4/2 2:5-15/2 3:25-40/3
    => compact L1 5 with 3 over 20-40
neighbours join if they add no lower file ::
    | 3:0-3/3 4:4-9/4 5:10-19/3 6:20-29/3 | 1:1-14/2 2:15-40/9 => compact L1 3 4 with 1 over 0-14
busy files are passed over :: | 4:0-9/6+busy 5:20-29/11 | 1:0-4/2+busy 2:25-40/30
    => compact L1 5 with 2 over 20-40
a blocked level 0 reserves level 1 ::
    9:0-50/2 8:0-50/2 7:0-50/2 | 4:0-9/6+busy 5:20-29/11 | 1:0-4/2+busy 2:25-40/30 => idle
the higher score comes first ::
    9:0-50/2 8:0-50/2 | 4:0-9/6 5:20-29/11 | 1:0-4/7 2:25-40/30 => compact L1 4 with 1 over 0-9
";

#[test]
fn leveling_plans() {
    check_plans(LEVELING, |_| options());
}

/// The options are limits of segments.
const APPENDING: &str = "
runs are appended to files with space [3] :: 9:0-50/2 8:0-50/2 | 1:0-9/2+segments=3 2:20-29/2
    => compact L0 9 8 with 1 append to 2 over 0-50
nothing is appended to a sealed file [3] :: 9:0-50/2 8:0-50/2 | 1:0-9/2+segments=3 2:20-29/2+sealed
    => compact L0 9 8 with 1 2 over 0-50
nothing is appended to a busy file [3] :: 9:0-50/2 8:0-50/2 | 1:0-9/2+segments=3 2:20-29/2+busy => idle
the file with the least overlap comes first, even to be rewritten [3] ::
    | 5:0-9/6 6:20-29/6 | 3:0-9/2+segments=3 4:20-29/9 => compact L1 5 with 3 over 0-9
";

/// The options are limits of segments. A visit reads 16 KiB.
const READ: &str = "
segments without visits stay [12] :: | | 1:0-9/32+segments=2 => idle
too few visits do not pay [12] :: | | 1:0-9/32+segments=2+visits=1 => idle
enough visits pay for a consolidation [12] :: | | 1:0-9/32+segments=2+visits=2 => consolidate L2 1 over 0-9
one segment stays [12] :: | | 1:0-9/32+visits=99 => idle
a busy file stays [12] :: | | 1:0-9/32+segments=2+visits=99+busy => idle
the highest gain comes first [12] ::
    | | 1:0-9/32+segments=2+visits=3 2:20-29/16+segments=2+visits=2 => consolidate L2 2 over 20-29
more segments than the limit are consolidated [1] :: | | 1:0-9/32+segments=2 => consolidate L2 1 over 0-9
as many segments as the limit stay [2] :: | | 1:0-9/32+segments=2 => idle
the file that frees most comes first [1] ::
    | | 1:0-9/32+segments=2+overwrites=2 2:20-29/16+segments=2+overwrites=4 => consolidate L2 2 over 20-29
superseded entries stay while there is space [2] :: | | 1:0-9/32+segments=2+overwrites=10 => idle
a run without visits stays [1] :: 2:0-9/8 | 1:0-9/8 => idle
visits of a run pay for a rewrite below [1] :: 2:0-9/8+visits=1 | 1:0-9/8 => compact L0 2 with 1 over 0-9
visits of a run do not pay for a larger rewrite [1] :: 2:0-9/8+visits=1 | 1:0-9/9 => idle
visits of a run pay for an append below [2] :: 2:0-9/8+visits=1 | 1:0-9/9 => compact L0 2 append to 1 over 0-9
";

/// The options are the oldest reader, or that nothing is written. Two runs make level 0 due, and a tombstone may rewrite eight entries, or four as
/// long as its run is in level 0 and others come.
const TOMBSTONES: &str = "
a run goes down if it pays [99] :: 9:0-9/2+tombstones | 1:0-4/2 2:5-9/2 => compact L0 9 with 1 2 over 0-9
and stays if it does not [99] :: 9:0-9/2+tombstones | 1:0-2/2 2:3-5/2 3:6-9/2 => idle
but goes down if nothing is written [idle] :: 9:0-9/2+tombstones | 1:0-2/2 2:3-5/2 3:6-9/2
    => compact L0 9 with 1 2 3 over 0-9
a run with few tombstones stays [99] :: 9:0-9/2 | 1:0-9/2 => idle
a busy run stays [99] :: 9:0-9/2+tombstones+busy | 1:0-9/2 => idle
a file goes down [99] :: | 9:0-9/2+tombstones | 1:0-3/2 2:4-9/2 | 3:0-9/9 => compact L1 9 with 1 2 over 0-9
a file with nothing below is rewritten [99] :: | 9:0-9/2 | 1:0-3/2+tombstones 2:4-9/2 => rewrite L2 1 over 0-3
also in a level above the last [99] :: | 9:0-3/2+tombstones | 2:4-9/2 => compact L1 9 over 0-3
if no reader needs the tombstones [7] :: | | 1:0-3/2+tombstones+newest=7 => rewrite L2 1 over 0-3
and stays while a reader does [6] :: | | 1:0-3/2+tombstones+newest=7 => idle
a busy file is not rewritten [99] :: | | 1:0-3/2+tombstones+busy => idle
a run that hides much goes down [99] :: 9:0-9/2+hides=5 | 1:0-9/2 => compact L0 9 with 1 over 0-9
one that hides little of a large tree waits [99] :: 9:0-9/2+hides=5 | 1:0-9/2 | 2:0-1/2 3:2-3/2 4:4-5/2 => idle
until nothing is written [idle] :: 9:0-9/2+hides=5 | 1:0-9/2 | 2:0-1/2 3:2-3/2 4:4-5/2
    => compact L0 9 with 1 over 0-9
and until no snapshot sees what it hides [6] :: 9:0-9/2+hides=5+newest=7 | 1:0-9/2 => idle
a file that hides what is below goes down [99] :: | 9:0-9/2+hides=9 | 1:0-3/2 2:4-9/2
    => compact L1 9 with 1 2 over 0-9
also past a level without its keys [99] :: | 9:0-3/2+hides=9 | 1:4-9/2 | 2:0-3/2 => move L1 9 over 0-3
";

#[test]
fn tombstones_go_down_and_away() {
    let change = |tree: &mut TreeSummary<u32>, option: &str| match option {
        "idle" => tree.is_idle = true,
        oldest => tree.oldest_reader = oldest.parse().unwrap(),
    };
    check_trees(TOMBSTONES, |_| options(), change);
}

#[test]
fn appends_and_consolidations() {
    let options = |limit: &str| KeyspaceOptions {
        file_bytes: 4 * KIB,
        block_bytes: 16 << 10,
        segment_limit: SegmentLimit::Fixed(limit.parse().unwrap()),
        ..options()
    };
    check_plans(APPENDING, options);
    check_plans(READ, options);
}

/// A tenth may be in transient logs. The options say where values are in place.
const MEDIUMS: &str = "
a lone run stays if values must be in place below [last] :: 1:0-9/4+apart=3+logs=1 => idle
and is compacted when it is due [last] :: 2:5-9/4+apart=3+logs=1 1:0-4/4+apart=3+logs=1
    => compact L0 1 over 0-4
it moves if values may stay in transient logs [never] :: 1:0-9/4+apart=3+logs=1 => move L0 1 over 0-9
a file moves into a level above [last] :: | 1:0-9/11+apart=1+logs=1 | | 9:40-90/50 => move L1 1 over 0-9
and is compacted into the level before the last, if that is in place [before] ::
    | 1:0-9/11+apart=1+logs=1 | | 9:40-90/50 => compact L1 1 over 0-9
a tenth in transient logs is no debt [last] :: | 1:0-9/9+apart=5+logs=1 | 9:40-90/50 => idle
more is, and the file with the largest part goes down if nothing is below [last] ::
    | 1:0-9/4+apart=3 2:10-19/5+apart=4 | 9:40-90/50 => compact L1 2 over 10-19
level 0 has no debt [last] :: 1:0-50/40+apart=39+logs=1 | | 9:40-90/50 => move L0 1 over 0-50
nothing is debt if values are never in place [never] :: | 1:0-9/9+apart=8+logs=1 | 9:40-90/50 => idle
debt in the last level is rewritten in its place [last] :: | | 1:0-9/20 9:40-90/50+apart=1
    => rewrite L2 9 over 40-90
with neighbours that have debt, until slices are wide [last] ::
    | | 1:0-9/20+apart=1+logs=1 2:10-19/30+apart=2+logs=2 3:20-29/34+apart=1+logs=1 4:30-39/10
    => rewrite L2 2 3 over 10-29
a compaction in place takes neighbours until slices are wide [last] ::
    | 1:0-9/4+apart=1+logs=1 2:10-19/4+apart=1+logs=1 3:20-29/12+apart=7+logs=1 4:30-39/4+busy
    | 5:0-5/2 6:10-15/2 7:21-26/15 9:40-90/60 => compact L1 1 2 3 with 5 6 7 over 0-29
but none that costs much more than the mean of the level [last] ::
    | 1:0-9/4+apart=1+logs=1 2:10-19/4+apart=1+logs=1 3:20-29/4+apart=3+logs=1 4:30-39/4+busy
    | 5:0-5/2 6:10-15/2 7:21-26/20 9:40-90/60 => compact L1 1 2 with 5 6 over 0-19
";

#[test]
fn mediums_go_down() {
    check_plans(MEDIUMS, |place| {
        mediums(match place {
            "last" => MediumInPlace::LastLevel,
            "before" => MediumInPlace::LevelBeforeLast,
            "never" => MediumInPlace::Never,
            _ => panic!("{place}"),
        })
    });
}

/// The same sizes of levels; a tenth may be in transient logs.
pub(super) fn mediums(medium_in_place: MediumInPlace) -> KeyspaceOptions {
    KeyspaceOptions {
        size_ratio: 10.0,
        base_bytes: 10 * KIB,
        file_bytes: KIB,
        level0_runs: 2,
        medium_in_place,
        ..KeyspaceOptions::preset(Preset::Parallax)
    }
}

/// The options say how many KiB a target file has. Of 64, one of less than 8 KiB is small, and at most 32 KiB become one.
const SMALL: &str = "
small neighbours become one file [64] :: | 1:0-9/1 2:10-19/1 3:20-29/1 4:30-39/1 => consolidate L1 1 2 3 4 over 0-39
three are no burden [64] :: | 1:0-9/1 2:10-19/1 3:20-29/1 => idle
nor are long ones [8] :: | 1:0-9/1 2:10-19/1 3:20-29/1 4:30-39/1 => idle
a long one divides them [64] :: | 1:0-9/1 2:10-19/1 3:20-29/8 4:30-39/1 5:40-49/1 => idle
a busy one divides them [64] :: | 1:0-9/1 2:10-19/1 3:20-29/1+busy 4:30-39/1 5:40-49/1 => idle
a file at least doubles [64] :: | 1:0-9/1 2:10-19/7 3:20-29/1 4:30-39/1 5:40-49/1 => idle
so the others are joined without it [64] :: | 1:0-9/7 2:10-19/1 3:20-29/1 4:30-39/1 5:40-49/1
    => consolidate L1 2 3 4 5 over 10-49
what becomes one is not cut [64] :: | 1:0-9/7 2:10-19/7 3:20-29/7 4:30-39/7 5:40-49/7 6:50-59/7
    => consolidate L1 1 2 3 4 over 0-39
values in transient logs count for a quarter where they stay [64] ::
    | 1:0-9/8+apart=8 2:10-19/8+apart=8 3:20-29/8+apart=8 4:30-39/8+apart=8 | | | 9:0-90/800
    => consolidate L1 1 2 3 4 over 0-39
deeper levels, too [64] :: | | 1:0-9/1 2:10-19/1 3:20-29/1 4:30-39/1 => consolidate L2 1 2 3 4 over 0-39
";

#[test]
fn small_files_become_one() {
    check_plans(SMALL, |kib| KeyspaceOptions {
        base_bytes: 1000 * KIB,
        file_bytes: kib.parse::<u64>().unwrap() * KIB,
        ..mediums(MediumInPlace::LastLevel)
    });
}

fn next(tree: &TreeSummary<u32>) -> String {
    show(&plan(tree, &options(), &[]))
}

#[test]
fn equal_files_take_turns_after_the_cursor() {
    let tree = parse_tree("| 1:0-9/6 2:10-19/6 3:20-29/6 | 4:5-6/2 5:15-16/2 6:25-26/2");
    for (cursor, expected) in [
        (None, "compact L1 1 with 4 over 0-9"),
        (Some(9), "compact L1 2 with 5 over 10-19"),
        (Some(19), "compact L1 3 with 6 over 20-29"),
        (Some(29), "compact L1 1 with 4 over 0-9"),
    ] {
        assert_eq!(show(&plan(&tree, &options(), &[None, cursor])), expected);
    }
}

#[test]
fn claims_block_the_keys_that_they_cover() {
    let mut tree = parse_tree("| 1:0-9/6 2:20-29/6 |");
    for (claims, expected) in [
        (vec![], "move L1 1 over 0-9"),
        (vec![claim(2, 9, 12)], "move L1 2 over 20-29"),
        (vec![claim(2, 9, 12), claim(2, 29, 30)], "idle"),
        // Claims of other levels block nothing.
        (vec![claim(1, 0, 50), claim(3, 0, 50)], "move L1 1 over 0-9"),
    ] {
        tree.claims = claims;
        assert_eq!(next(&tree), expected);
    }
}

#[test]
fn a_neighbour_that_overlaps_a_claim_stays() {
    let mut tree = parse_tree("| 1:0-9/6 2:10-19/6 | 3:5-12/2");
    assert_eq!(next(&tree), "compact L1 1 2 with 3 over 0-19");
    tree.claims = vec![claim(2, 15, 30)];
    assert_eq!(next(&tree), "compact L1 1 with 3 over 0-12");
}

#[test]
fn scores_and_pending_bytes() {
    let tree = parse_tree("1:0-9/4 2:0-9/4+busy 3:0-9/4 | 4:0-4/15 5:5-9/10+busy | 6:0-9/1000");
    let expected = [1.0, 1.5, 0.0];
    for (score, expected) in scores(&tree, &options()).iter().zip(expected) {
        assert!((score - expected).abs() < 1e-9);
    }
    assert_eq!(pending_bytes(&tree, &options()), 15 * KIB);
}
