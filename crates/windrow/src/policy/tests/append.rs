//! What is appended, where, and when it is made one again, case by case.

use proptest::prelude::*;

use super::model::everything;
use super::tables::{claim, file, merges, tree};
use crate::base::{FileNumber, SequenceNumber};
use crate::options::{KeyspaceOptions, MediumInPlace, Preset, SegmentLimit};
use crate::policy::append::{Appends, UpperBytes, segment_limits};
use crate::policy::capacities::space_throttle;
use crate::policy::output::Zones;
use crate::policy::{
    Compaction, DeeperLevels, FileSummary, ManualCompaction, OutputCutter, OutputPlan, Plan,
    Purpose, SegmentSummary, TreeSummary, plan, plan_range,
};

const KIB: u64 = 1 << 10;

/// Level 1 holds 10 KiB, level 2 100 KiB; two runs make level 0 due; a visit reads 16 KiB.
fn options(segment_limit: SegmentLimit) -> KeyspaceOptions {
    KeyspaceOptions {
        base_bytes: 10 * KIB,
        file_bytes: 4 * KIB,
        block_bytes: 16 << 10,
        level0_runs: 2,
        segment_limit,
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

/// Files of so many bytes, with all values in place.
fn brought(bytes: u64) -> UpperBytes {
    UpperBytes {
        bytes,
        cut_bytes: bytes,
    }
}

/// `file` in segments of equal size that have no key in common.
fn segments(mut file: FileSummary<u32>, count: u64) -> FileSummary<u32> {
    let segment = SegmentSummary {
        bytes: file.bytes / count,
        ..file.segments[0]
    };
    file.segments = (0..count).map(|_| segment).collect();
    file
}

/// Of each later segment so many of the ten keys are in older ones.
fn overwrites(mut file: FileSummary<u32>, keys: u64) -> FileSummary<u32> {
    for segment in &mut file.segments[1..] {
        segment.overwrites = keys;
    }
    file
}

fn sealed(mut file: FileSummary<u32>) -> FileSummary<u32> {
    file.sealed = true;
    file
}

fn busy(mut file: FileSummary<u32>) -> FileSummary<u32> {
    file.busy = true;
    file
}

fn visited(mut file: FileSummary<u32>, visits: u64) -> FileSummary<u32> {
    file.visits = visits;
    file
}

fn numbers(numbers: &[u64]) -> Vec<FileNumber> {
    numbers.iter().copied().map(FileNumber).collect()
}

/// `plan`, a merge, with these targets.
fn appending(mut plan: Plan<u32>, to: &[u64]) -> Plan<u32> {
    if let Plan::Compact(Compaction { targets, .. }) = &mut plan {
        *targets = numbers(to);
    }
    plan
}

fn consolidations(level: usize, upper: u64, smallest: u32, largest: u32) -> Plan<u32> {
    Plan::Compact(Compaction {
        level,
        upper: numbers(&[upper]),
        lower: Vec::new(),
        targets: Vec::new(),
        claim: claim(level, smallest, largest),
        purpose: Purpose::Consolidation,
    })
}

/// A tree of a file of so many KiB in each of levels 1 to 4.
fn holding(held: [u64; 4]) -> TreeSummary<u32> {
    let levels = held.iter().enumerate().map(|(level, kib)| {
        let files = [file(level as u64 + 1, 0, 9, *kib)].into_iter();
        files.filter(|file| file.bytes > 0).collect()
    });
    tree(4, std::iter::once(vec![]).chain(levels).collect())
}

#[test]
fn limits_follow_ratios() {
    use SegmentLimit::{Fixed, Scaled};
    let last = [0, 0, 0, 1000];
    for (limit, ratio, memtable_kib, held, expected) in [
        (Scaled, 10.0, 1, last, [1, 6, 5, 5, 1]),
        // Level 1 is as large as level 0.
        (Scaled, 10.0, 10, last, [1, 6, 5, 5, 1]),
        (Scaled, 3.0, 1, last, [1, 6, 3, 3, 1]),
        (Scaled, 30.0, 1, last, [1, 6, 9, 9, 1]),
        (Scaled, 100.0, 1, last, [1, 6, 12, 12, 1]),
        (Fixed(12), 10.0, 1, last, [1, 12, 12, 12, 12]),
        (Fixed(3), 10.0, 1, last, [1, 3, 3, 3, 3]),
        (Fixed(1), 10.0, 1, last, [1, 1, 1, 1, 1]),
        // What really is the last level.
        (Scaled, 10.0, 1, [0, 600, 1000, 1], [1, 6, 5, 1, 1]),
        (Scaled, 10.0, 1, [1000, 0, 0, 0], [1, 1, 1, 1, 1]),
    ] {
        let options = KeyspaceOptions {
            size_ratio: ratio,
            memtable_bytes: memtable_kib << 10,
            level0_runs: 1,
            ..options(limit)
        };
        let limits = segment_limits(&holding(held), &options);
        assert_eq!(limits, expected, "{limit:?} of {held:?} at {ratio}");
    }
}

/// Only in the last level, and only to appends: what is there stays until it is merged.
#[test]
fn room_limits_what_is_appended() {
    for (max_space_amp, held, expected) in [
        (f64::INFINITY, [0, 0, 600, 1000], [4, 4]),
        // No room, half of what there is to spare, and all of it left.
        (1.6, [0, 0, 600, 1000], [4, 1]),
        (1.6, [0, 0, 420, 1000], [4, 3]),
        (1.6, [0, 0, 300, 1000], [4, 4]),
    ] {
        let options = KeyspaceOptions {
            max_space_amp,
            ..options(SegmentLimit::Fixed(4))
        };
        let tree = holding(held);
        let limits = segment_limits(&tree, &options);
        assert_eq!(limits, [1, 4, 4, 4, 4]);
        let appends = Appends {
            limits: &limits,
            options: &options,
        };
        // Files of so many segments, of one key each.
        let files: Vec<_> = (1..6_u32)
            .map(|count| segments(file(10, count, count, 1), count.into()))
            .collect();
        let most = |level: usize| {
            let appended = appends.to(&tree, level, &files, brought(20 * KIB));
            let most = appended.iter().filter(|appended| **appended).count();
            assert!(appended.iter().rev().is_sorted(), "fewer go first");
            most + 1
        };
        assert_eq!([most(3), most(4)], expected, "{held:?}");
    }
}

/// What later segments add is as live as what they have added to; what they supersede takes room.
#[test]
fn what_later_segments_supersede_takes_room() {
    // KiB in level 1, the segments of a file of 1000 KiB in level 2, and how many of ten keys each but the
    // first supersedes: whether nine tenths of a room of 60 percent of what is live are used up, or not half.
    for (above, count, keys, expected) in [
        (0, 1, 0, 0.0),
        (0, 3, 0, 0.0),
        (290, 3, 0, 0.0),
        (550, 3, 0, 1.0),
        (0, 3, 3, 0.0),
        (0, 3, 6, 1.0),
        // At least the largest is live.
        (0, 3, 10, 1.0),
        (0, 4, 2, 0.0),
    ] {
        let options = KeyspaceOptions {
            size_ratio: 10.0,
            max_space_amp: 1.6,
            ..options(SegmentLimit::Fixed(3))
        };
        let above = file(1, 0, 9, above);
        let last = overwrites(segments(file(2, 0, 9, 1000), count), keys);
        let tree = tree(2, vec![vec![], vec![above], vec![last]]);
        let throttle = space_throttle(&tree, &options);
        assert!(
            (throttle - expected).abs() < 1e-9,
            "{count} segments, {keys} overwrites: {throttle}"
        );
    }
}

/// I1 and I2.
#[test]
fn files_with_room_are_appended_to_where_pieces_are_long_enough() {
    let full = || segments(file(1, 0, 9, 3), 3);
    let spacious = || segments(file(2, 10, 19, 3), 2);
    let shared = || sealed(file(3, 20, 29, 3));
    let cases = [
        ("nothing", 1, vec![], 32 * KIB, 9, vec![]),
        ("room", 1, vec![spacious()], 32 * KIB, KIB, vec![true]),
        (
            "small pieces",
            1,
            vec![spacious()],
            32 * KIB,
            KIB - 1,
            vec![false],
        ),
        (
            "usual files",
            1,
            vec![spacious()],
            1 << 30,
            64 * KIB,
            vec![true],
        ),
        (
            "a sync each",
            1,
            vec![spacious()],
            1 << 30,
            64 * KIB - 1,
            vec![false],
        ),
        (
            "each by itself",
            1,
            vec![full(), spacious(), shared()],
            32 * KIB,
            3 * KIB,
            vec![false, true, false],
        ),
        (
            "pieces on average",
            1,
            vec![full(), spacious()],
            32 * KIB,
            2 * KIB - 1,
            vec![false, false],
        ),
        (
            "longest pieces",
            1,
            vec![spacious()],
            32 * KIB,
            128 * KIB,
            vec![true],
        ),
        (
            "too long pieces",
            1,
            vec![spacious()],
            32 * KIB,
            128 * KIB + 1,
            vec![false],
        ),
        (
            "past the end",
            2,
            vec![file(4, 0, 9, 1)],
            32,
            KIB,
            vec![false],
        ),
    ];
    for (name, level, lower, file_bytes, upper_bytes, expected) in cases {
        let options = KeyspaceOptions {
            file_bytes,
            ..options(SegmentLimit::Fixed(3))
        };
        let appends = Appends {
            limits: &[1, 3],
            options: &options,
        };
        let tree = tree(2, vec![Vec::new(); 3]);
        let reported = appends.to(&tree, level, &lower, brought(upper_bytes));
        assert_eq!(reported, expected, "{name}");
        let rewritten = lower
            .iter()
            .zip(&expected)
            .filter(|(_, appended)| !**appended);
        let rewritten: u64 = rewritten.map(|(file, _)| file.bytes).sum();
        assert_eq!(
            appends.rewritten_bytes(&tree, level, &lower, brought(upper_bytes)),
            rewritten,
            "{name}"
        );
    }
}

/// What has its values in runs is as long as its pointers and a quarter of these values, not as the pointers alone.
#[test]
fn pieces_of_pointers_are_as_long_as_they_count() {
    let options = KeyspaceOptions {
        file_bytes: 32 * KIB,
        ..options(SegmentLimit::Fixed(3))
    };
    let appends = Appends {
        limits: &[1, 3],
        options: &options,
    };
    let tree = tree(2, vec![Vec::new(); 3]);
    for (transient_bytes, is_appended) in [(4 * 127 * KIB, true), (4 * 127 * KIB + 4, false)] {
        let upper = FileSummary {
            bytes: KIB,
            transient_bytes,
            ..file(1, 0, 9, 1)
        };
        let brought = |is_in_place| UpperBytes::of([&upper].into_iter(), is_in_place);
        let reported = appends.to(&tree, 1, &[file(2, 0, 9, 1)], brought(false));
        assert_eq!(reported, [is_appended]);
        // In place the values are as long as they are.
        let reported = appends.to(&tree, 1, &[file(2, 0, 9, 1)], brought(true));
        assert_eq!(reported, [false]);
    }
}

/// Merges are planned by what they write: values that stay in runs, or come back.
#[test]
fn values_that_come_back_are_as_long_as_they_are() {
    let upper = FileSummary {
        bytes: KIB,
        transient_bytes: 200 * KIB,
        pinned_bytes: 200 * KIB,
        transient_files: 1,
        ..file(1, 0, 9, 201)
    };
    let levels = vec![
        vec![],
        vec![upper],
        vec![file(2, 0, 9, 1)],
        vec![file(3, 0, 9, 900)],
    ];
    let tree = tree(3, levels);
    let next = |medium_in_place| {
        let options = KeyspaceOptions {
            size_ratio: 10.0,
            base_bytes: 10 * KIB,
            file_bytes: 32 * KIB,
            segment_limit: SegmentLimit::Fixed(3),
            medium_in_place,
            ..KeyspaceOptions::preset(Preset::Parallax)
        };
        plan(&tree, &options, &[])
    };
    assert_eq!(
        next(MediumInPlace::LastLevel),
        appending(merges(1, &[1], &[], 0, 9), &[2])
    );
    assert_eq!(
        next(MediumInPlace::LevelBeforeLast),
        merges(1, &[1], &[2], 0, 9)
    );
}

/// What sheds tombstones, or brings a range down, merges where it ends, for they must meet what they hide.
#[test]
fn tombstones_are_not_appended_to_what_they_hide() {
    let options = options(SegmentLimit::Fixed(3));
    let dense = FileSummary {
        tombstones: 5,
        ..file(1, 0, 9, 4)
    };
    let of = |upper: FileSummary<u32>| {
        let (levels, lowest) = (vec![vec![], vec![upper]], file(2, 0, 9, 4));
        tree(2, [levels, vec![vec![lowest]]].concat())
    };
    assert_eq!(
        plan(&of(dense.clone()), &options, &[]),
        merges(1, &[1], &[2], 0, 9)
    );
    let range = |tree: &TreeSummary<u32>, before| {
        plan_range(tree, &options, &everything(FileNumber(before)))
    };
    assert_eq!(range(&of(dense.clone()), 9), merges(1, &[1], &[2], 0, 9));
    // On the way there it may be appended.
    let mut on_the_way = of(dense);
    on_the_way.levels.push(vec![file(3, 0, 9, 40)]);
    let appended = appending(merges(1, &[1], &[], 0, 9), &[2]);
    assert_eq!(range(&on_the_way, 9), appended);

    // What was appended there before, or by others meanwhile, is made one.
    let alone = |number: u64| {
        let grown = segments(file(number, 0, 9, 4), 2);
        tree(2, vec![vec![], vec![], vec![grown]])
    };
    let rewrites = |number: u64| {
        Plan::Compact(Compaction {
            level: 2,
            upper: numbers(&[number]),
            lower: Vec::new(),
            targets: Vec::new(),
            claim: claim(2, 0, 9),
            purpose: Purpose::Tree,
        })
    };
    assert_eq!(range(&alone(2), 9), rewrites(2));
    assert_eq!(range(&alone(9), 9), rewrites(9));
    // What was written since stays.
    let mut since = alone(9);
    since.levels[2][0].segments[1].sequence_min = SequenceNumber::MAX;
    let wanted = ManualCompaction {
        through: 1,
        ..everything(FileNumber(9))
    };
    assert_eq!(plan_range(&since, &options, &wanted), Plan::Idle);
}

/// The first key of each zone among the keys below 100, and where it goes.
fn zones_of(
    lower: &[&FileSummary<u32>],
    targets: &[u64],
    uppers: &[(u32, u64)],
) -> Vec<(u32, Option<u64>)> {
    let mut zones = Zones::new(lower, &numbers(targets), (400, false), |from, to| {
        let is_between = |(key, _): &&(u32, u64)| {
            from.is_none_or(|from| from < key) && to.is_none_or(|to| key < to)
        };
        uppers
            .iter()
            .filter(is_between)
            .map(|(_, bytes)| bytes)
            .sum()
    });
    let mut found: Vec<(u32, Option<u64>)> = Vec::new();
    for key in 0..100 {
        let is_another = zones.go_to(&key);
        let target = zones.target().map(|number| number.0);
        if is_another || key == 0 {
            found.push((key, target));
        }
        assert_eq!(found.last().map(|(_, target)| *target), Some(target));
    }
    found
}

/// I3.
#[test]
fn what_lies_between_files_goes_to_one_of_them_or_to_its_own() {
    let (one, two, three) = (file(1, 10, 19, 1), file(2, 30, 39, 1), file(3, 50, 59, 1));
    let (narrow, wide) = (99, 100);
    let cases = [
        ("no files", vec![], vec![], 5, wide, vec![(0, None)]),
        ("before", vec![&one], vec![1], 5, narrow, vec![(0, Some(1))]),
        (
            "far before",
            vec![&one],
            vec![1],
            5,
            wide,
            vec![(0, None), (10, Some(1))],
        ),
        (
            "behind",
            vec![&one],
            vec![1],
            30,
            narrow,
            vec![(0, Some(1))],
        ),
        (
            "far behind",
            vec![&one],
            vec![1],
            30,
            wide,
            vec![(0, Some(1)), (20, None)],
        ),
        ("rewritten", vec![&one], vec![], 5, wide, vec![(0, None)]),
        (
            "two are rewritten",
            vec![&one, &two],
            vec![],
            25,
            wide,
            vec![(0, None)],
        ),
        (
            "between two",
            vec![&one, &two],
            vec![1, 2],
            25,
            narrow,
            vec![(0, Some(1)), (30, Some(2))],
        ),
        (
            "far between two",
            vec![&one, &two],
            vec![1, 2],
            25,
            wide,
            vec![(0, Some(1)), (20, None), (30, Some(2))],
        ),
        (
            "before one that is rewritten",
            vec![&one, &two],
            vec![1],
            25,
            narrow,
            vec![(0, Some(1)), (20, None)],
        ),
        (
            "behind one that is rewritten",
            vec![&one, &two],
            vec![2],
            25,
            wide,
            vec![(0, None), (30, Some(2))],
        ),
        (
            "among some that are rewritten",
            vec![&one, &two, &three],
            vec![2],
            45,
            narrow,
            vec![(0, None), (30, Some(2)), (40, None)],
        ),
        (
            "among some that are not",
            vec![&one, &two, &three],
            vec![1, 3],
            45,
            narrow,
            vec![(0, Some(1)), (20, None), (50, Some(3))],
        ),
        (
            "in a file",
            vec![&one, &two],
            vec![1, 2],
            15,
            wide,
            vec![(0, Some(1)), (30, Some(2))],
        ),
    ];
    for (name, lower, targets, key, bytes, expected) in cases {
        assert_eq!(
            zones_of(&lower, &targets, &[(key, bytes)]),
            expected,
            "{name}"
        );
    }
}

#[test]
fn new_files_are_alike() {
    let rewritten = file(1, 0, 9, 1);
    for (lower, upper, expected) in [
        (vec![], 0, 1),
        (vec![], 400, 400),
        (vec![], 1000, 1000),
        (vec![], 1499, 1499),
        (vec![], 1500, 750),
        (vec![], 2500, 834),
        (vec![], 10_000, 1000),
        (vec![&rewritten], 1500 - KIB, 750),
    ] {
        let zones = Zones::new(&lower, &[], (1000, false), |_, _| upper);
        assert_eq!(zones.file_bytes(), expected, "{upper} bytes and {lower:?}");
    }
}

#[test]
fn what_is_appended_is_not_cut() {
    let below = file(3, 0, 12, 1);
    let tree = tree(2, vec![vec![], vec![], vec![below]]);
    let (one, two) = (file(1, 10, 19, 1), file(2, 30, 39, 1));
    let zones = Zones::new(&[&one, &two], &numbers(&[1, 2]), (1000, false), |_, _| 0);
    let mut cutter = OutputCutter::new(&tree, &claim(1, 0, 99), zones);
    let mut place = |key: u32, bytes| {
        let place = cutter.place(&key, bytes);
        (place.target.map(|target| target.0), place.begins)
    };
    assert_eq!(place(5, 0), (Some(1), false));
    assert_eq!(place(15, 1 << 30), (Some(1), false));
    assert_eq!(place(29, 1 << 30), (Some(1), false));
    assert_eq!(place(30, 1), (Some(2), true));
    assert_eq!(place(90, 1 << 30), (Some(2), false));
}

#[test]
fn what_is_appended_to_may_hold_a_key() {
    let level = vec![file(1, 10, 19, 1), file(2, 30, 39, 1), file(3, 50, 59, 1)];
    let tree = tree(2, vec![vec![], level, vec![file(4, 80, 89, 1)]]);
    let held = |targets: &[u64]| -> Vec<u32> {
        let mut deeper = DeeperLevels::new(&tree, &claim(1, 0, 99), &numbers(targets));
        (0..100).filter(|key| deeper.may_hold(key)).collect()
    };
    assert!(held(&[]).into_iter().eq(80..90));
    let expected = (10..20).chain(50..60).chain(80..90);
    assert!(held(&[1, 3]).into_iter().eq(expected));
}

#[test]
fn plans() {
    use SegmentLimit::Fixed;
    let due = || vec![file(9, 0, 50, 2), file(8, 0, 50, 2)];
    let (full, spacious) = (|| segments(file(1, 0, 9, 2), 3), || file(2, 20, 29, 2));
    let cases: Vec<(&str, usize, TreeSummary<u32>, Plan<u32>)> = vec![
        (
            "runs are appended to files with room",
            3,
            tree(1, vec![due(), vec![full(), spacious()]]),
            appending(merges(0, &[9, 8], &[1], 0, 50), &[2]),
        ),
        (
            "nothing is appended to what is sealed",
            3,
            tree(1, vec![due(), vec![full(), sealed(spacious())]]),
            merges(0, &[9, 8], &[1, 2], 0, 50),
        ),
        (
            "nothing is appended to what has a job",
            3,
            tree(1, vec![due(), vec![full(), busy(spacious())]]),
            Plan::Idle,
        ),
        (
            "what overlaps least is merged first, though it is rewritten",
            3,
            tree(
                2,
                vec![
                    vec![],
                    vec![file(5, 0, 9, 6), file(6, 20, 29, 6)],
                    vec![segments(file(3, 0, 9, 2), 3), file(4, 20, 29, 9)],
                ],
            ),
            merges(1, &[5], &[3], 0, 9),
        ),
    ];
    for (name, limit, tree, expected) in cases {
        assert_eq!(plan(&tree, &options(Fixed(limit)), &[]), expected, "{name}");
    }
}

#[test]
fn what_reads_visit_too_often_is_made_one() {
    use SegmentLimit::Fixed;
    let two = || segments(file(1, 0, 9, 32), 2);
    let other = || segments(file(2, 20, 29, 16), 2);
    let last = |files| tree(2, vec![vec![], vec![], files]);
    let run = |visits| visited(file(2, 0, 9, 8), visits);
    let above = |run, lower| tree(1, vec![vec![run], vec![lower]]);
    let cases: Vec<(&str, SegmentLimit, TreeSummary<u32>, Plan<u32>)> = vec![
        ("unread", Fixed(12), last(vec![two()]), Plan::Idle),
        (
            "read too little",
            Fixed(12),
            last(vec![visited(two(), 1)]),
            Plan::Idle,
        ),
        (
            "read enough",
            Fixed(12),
            last(vec![visited(two(), 2)]),
            consolidations(2, 1, 0, 9),
        ),
        (
            "one already",
            Fixed(12),
            last(vec![visited(file(1, 0, 9, 32), 99)]),
            Plan::Idle,
        ),
        (
            "at work",
            Fixed(12),
            last(vec![busy(visited(two(), 99))]),
            Plan::Idle,
        ),
        (
            "what pays most comes first",
            Fixed(12),
            last(vec![visited(two(), 3), visited(other(), 2)]),
            consolidations(2, 2, 20, 29),
        ),
        (
            "more than may be",
            Fixed(1),
            last(vec![two()]),
            consolidations(2, 1, 0, 9),
        ),
        ("as many as may be", Fixed(2), last(vec![two()]), Plan::Idle),
        (
            "what frees most comes first",
            Fixed(1),
            last(vec![overwrites(two(), 2), overwrites(other(), 4)]),
            consolidations(2, 2, 20, 29),
        ),
        (
            "what is superseded waits for what needs its room",
            Fixed(2),
            last(vec![overwrites(two(), 10)]),
            Plan::Idle,
        ),
        (
            "a run is left alone",
            Fixed(1),
            above(run(0), file(1, 0, 9, 8)),
            Plan::Idle,
        ),
        (
            "a run is read, and what is below is rewritten",
            Fixed(1),
            above(run(1), file(1, 0, 9, 8)),
            merges(0, &[2], &[1], 0, 9),
        ),
        (
            "a run is read too little for what is below",
            Fixed(1),
            above(run(1), file(1, 0, 9, 9)),
            Plan::Idle,
        ),
        (
            "a run is read, and what is below is appended to",
            Fixed(2),
            above(run(1), file(1, 0, 9, 9)),
            appending(merges(0, &[2], &[], 0, 9), &[1]),
        ),
    ];
    for (name, limit, tree, expected) in cases {
        assert_eq!(plan(&tree, &options(limit), &[]), expected, "{name}");
    }
}

proptest! {
    /// Whatever a merge is divided into, one part only writes to each file.
    #[test]
    fn parts_share_no_file(
        appended in proptest::collection::vec(any::<bool>(), 1..40),
        upper_kib in 1..100_u64, parts_max in 1..6_usize, wide: bool,
    ) {
        let files = (0..).zip(&appended);
        let level: Vec<_> = files.map(|(index, _)| {
            file(u64::from(index) + 2, index * 10, index * 10 + 4, 1)
        }).collect();
        let pick = |is_target: bool| -> Vec<FileNumber> {
            let files = level.iter().zip(&appended);
            files.filter(|(_, it)| **it == is_target).map(|(file, _)| file.number).collect()
        };
        let compaction = Compaction {
            level: 0,
            upper: numbers(&[1]),
            lower: pick(false),
            targets: pick(true),
            claim: claim(1, 0, 999),
            purpose: Purpose::Tree,
        };
        let options = KeyspaceOptions { file_bytes: KIB, ..options(SegmentLimit::Scaled) };
        let lower: Vec<_> = level.iter().collect();
        let mut zones =
            Zones::new(&lower, &compaction.targets, (KIB, false), |_, _| if wide { KIB } else { 0 });
        let tree = tree(1, vec![vec![file(1, 0, 999, upper_kib)], level.clone()]);
        let ends = OutputPlan::new(&tree, &compaction, &options).subcompaction_ends(parts_max);
        prop_assert!(ends.len() < parts_max);
        prop_assert!(ends.is_sorted_by(|left, right| left < right));
        for end in ends {
            zones.go_to(&(end - 1));
            let before = zones.target();
            let is_another = zones.go_to(&end);
            // New files may be begun anywhere among files that are written anew.
            let is_within = before.is_none() && level.iter().zip(&appended).any(
                |(file, appended)| file.largest < end && end - file.largest < 10 && !appended,
            );
            prop_assert!(is_another || is_within, "a part begins at {}", end);
        }
    }
}
