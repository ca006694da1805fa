//! What is appended, and how space limits it, case by case.

use super::model::everything;
use super::notation::{KIB, file, parse_file, parse_tree, show, tree};
use crate::base::{FileNumber, SequenceNumber};
use crate::options::{KeyspaceOptions, MediumInPlace, Preset, SegmentLimit};
use crate::policy::append::{Appends, UpperBytes, segment_limits};
use crate::policy::capacities::space_throttle;
use crate::policy::{FileSummary, ManualCompaction, TreeSummary, plan, plan_range};

/// Level 1 holds 10 KiB, level 2 100 KiB.
fn options(segment_limit: SegmentLimit) -> KeyspaceOptions {
    KeyspaceOptions {
        base_bytes: 10 * KIB,
        file_bytes: 4 * KIB,
        segment_limit,
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

/// Upper files of these lengths, with all values in place.
fn upper(bytes: u64) -> UpperBytes {
    UpperBytes {
        has_ranges: false,
        bytes,
        cut_bytes: bytes,
    }
}

/// A tree with a file of this many KiB in each of levels 1 to 4.
fn holding(held: [u64; 4]) -> TreeSummary<u32> {
    let level = |(level, kib): (usize, u64)| match kib {
        0 => vec![],
        _ => vec![file(level as u64 + 1, 0, 9, kib)],
    };
    let levels = held.into_iter().enumerate().map(level);
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
        // The effective last level.
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

/// The bound on space limits only appends into the last level. Present segments stay until they are compacted.
#[test]
fn space_limits_appends_in_the_last_level() {
    for (max_space_amp, held, expected) in [
        (f64::INFINITY, [0, 0, 600, 1000], [4, 4]),
        // No space left, a part of it, all of it.
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
        // Files of 1 to 5 segments.
        let files: Vec<_> = (1..6)
            .map(|count| parse_file(&format!("10:{count}-{count}/1+segments={count}")))
            .collect();
        let segments_max = |level: usize| {
            let appended = appends.to(&tree, level, &files, upper(20 * KIB));
            assert!(
                appended.iter().rev().is_sorted(),
                "fewer segments come first"
            );
            appended.iter().filter(|appended| **appended).count() + 1
        };
        assert_eq!([segments_max(3), segments_max(4)], expected, "{held:?}");
    }
}

// I3
#[test]
fn a_compaction_that_reads_range_tombstones_appends_nothing() {
    let options = options(SegmentLimit::Fixed(4));
    let tree = holding([0, 0, 600, 1000]);
    let limits = segment_limits(&tree, &options);
    let appends = Appends {
        limits: &limits,
        options: &options,
    };
    // The upper files, a file that would be appended to, or the one that has no space for a segment.
    let appended = |has_ranges: bool, with_ranges: Option<usize>| {
        let files = (1..5).map(|count| format!("10:{count}-{count}/1+segments={count}"));
        let mut files: Vec<_> = files.map(|file| parse_file(&file)).collect();
        if let Some(position) = with_ranges {
            files[position].range_tombstones = 1;
        }
        let upper = UpperBytes {
            has_ranges,
            ..upper(20 * KIB)
        };
        let appended = appends.to(&tree, 3, &files, upper);
        appended.iter().filter(|appended| **appended).count()
    };
    assert_eq!(appended(false, None), 3);
    assert_eq!(appended(true, None), 0);
    assert_eq!(appended(false, Some(0)), 3);
    assert_eq!(appended(false, Some(3)), 0);
}

/// The entries of later segments are live. The entries that they supersede take space.
#[test]
fn superseded_entries_count_as_space() {
    // KiB in level 1, the segments of a file of 1000 KiB in level 2, and how many of ten keys each later one
    // supersedes: whether nine tenths of a space of 60 percent of the live bytes are used up, or less than half.
    for (above, segments, keys, expected) in [
        (0, 1, 0, 0.0),
        (0, 3, 0, 0.0),
        (290, 3, 0, 0.0),
        (550, 3, 0, 1.0),
        (0, 3, 3, 0.0),
        (0, 3, 6, 1.0),
        // At least the largest segment is live.
        (0, 3, 10, 1.0),
        (0, 4, 2, 0.0),
    ] {
        let options = KeyspaceOptions {
            size_ratio: 10.0,
            max_space_amp: 1.6,
            ..options(SegmentLimit::Fixed(3))
        };
        let last = format!("2:0-9/1000+segments={segments}+overwrites={keys}");
        let tree = parse_tree(&format!("| 1:0-9/{above} | {last}"));
        let throttle = space_throttle(&tree, &options);
        assert!((throttle - expected).abs() < 1e-9, "{last}: {throttle}");
    }
}

/// I1 and I2.
#[test]
fn files_with_space_are_appended_to_if_pieces_are_long_enough() {
    const FULL: &str = "1:0-9/3+segments=3";
    const FREE: &str = "2:10-19/3+segments=2";
    const SEALED: &str = "3:20-29/3+sealed";
    for (name, level, lower, file_bytes, upper_bytes, expected) in [
        ("nothing", 1, &[][..], 32 * KIB, 9, &[][..]),
        ("space", 1, &[FREE], 32 * KIB, KIB, &[true]),
        ("small pieces", 1, &[FREE], 32 * KIB, KIB - 1, &[false]),
        ("usual files", 1, &[FREE], 1 << 30, 64 * KIB, &[true]),
        ("a sync each", 1, &[FREE], 1 << 30, 64 * KIB - 1, &[false]),
        (
            "each on its own",
            1,
            &[FULL, FREE, SEALED],
            32 * KIB,
            3 * KIB,
            &[false, true, false],
        ),
        (
            "pieces on average",
            1,
            &[FULL, FREE],
            32 * KIB,
            2 * KIB - 1,
            &[false, false],
        ),
        ("longest pieces", 1, &[FREE], 32 * KIB, 128 * KIB, &[true]),
        ("longer ones", 1, &[FREE], 32 * KIB, 128 * KIB + 1, &[false]),
        ("past the end", 2, &["4:0-9/1"], 32, KIB, &[false]),
    ] {
        let options = KeyspaceOptions {
            file_bytes,
            ..options(SegmentLimit::Fixed(3))
        };
        let appends = Appends {
            limits: &[1, 3],
            options: &options,
        };
        let tree = tree(2, vec![Vec::new(); 3]);
        let lower: Vec<_> = lower.iter().map(|file| parse_file(file)).collect();
        let appended = appends.to(&tree, level, &lower, upper(upper_bytes));
        assert_eq!(appended, expected, "{name}");
        let rewritten = lower.iter().zip(expected).filter(|(_, it)| !**it);
        let rewritten: u64 = rewritten.map(|(file, _)| file.bytes).sum();
        let bytes = appends.rewritten_bytes(&tree, level, &lower, upper(upper_bytes));
        assert_eq!(bytes, rewritten, "{name}");
    }
}

/// A file with values in transient logs counts as its pointers and a quarter of these values.
#[test]
fn pieces_of_pointers_count_by_their_cut_bytes() {
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
            transient_bytes,
            ..file(1, 0, 9, 1)
        };
        // In place the values count in full.
        for (is_in_place, expected) in [(false, is_appended), (true, false)] {
            let upper = UpperBytes::of([&upper].into_iter(), is_in_place);
            let appended = appends.to(&tree, 1, &[file(2, 0, 9, 1)], upper);
            assert_eq!(appended, [expected]);
        }
    }
}

/// Values stay in transient logs, or go in place.
#[test]
fn values_that_go_in_place_count_in_full() {
    let tree = parse_tree("| 1:0-9/201+apart=200+logs=1 | 2:0-9/1 | 3:0-9/900");
    for (medium_in_place, expected) in [
        (
            MediumInPlace::LastLevel,
            "compact L1 1 append to 2 over 0-9",
        ),
        (
            MediumInPlace::LevelBeforeLast,
            "compact L1 1 with 2 over 0-9",
        ),
    ] {
        let options = KeyspaceOptions {
            size_ratio: 10.0,
            base_bytes: 10 * KIB,
            file_bytes: 32 * KIB,
            segment_limit: SegmentLimit::Fixed(3),
            medium_in_place,
            ..KeyspaceOptions::preset(Preset::Parallax)
        };
        assert_eq!(show(&plan(&tree, &options, &[])), expected);
    }
}

/// Tombstone-density and manual compactions merge where they end, because tombstones must meet what they hide.
#[test]
fn tombstones_are_not_appended_to_what_they_hide() {
    let options = options(SegmentLimit::Fixed(3));
    let dense = "| 1:0-9/4+tombstones | 2:0-9/4";
    let merged = "compact L1 1 with 2 over 0-9";
    assert_eq!(show(&plan(&parse_tree(dense), &options, &[])), merged);
    let range = |tree: &TreeSummary<u32>, through| {
        let wanted = ManualCompaction {
            through,
            ..everything(FileNumber(9))
        };
        show(&plan_range(tree, &options, &wanted))
    };
    for (tree, expected) in [
        (dense, merged),
        // Above the last level it may be appended.
        (
            "| 1:0-9/4+tombstones | 2:0-9/4 | 3:0-9/40",
            "compact L1 1 append to 2 over 0-9",
        ),
        // What was appended before, or by other jobs meanwhile, is consolidated.
        ("| | 2:0-9/4+segments=2", "rewrite L2 2 over 0-9"),
        ("| | 9:0-9/4+segments=2", "rewrite L2 9 over 0-9"),
    ] {
        assert_eq!(range(&parse_tree(tree), SequenceNumber::MAX), expected);
    }
    // Newer entries stay.
    let mut since = parse_tree("| | 9:0-9/4+segments=2");
    since.levels[2][0].segments[1].sequence_min = SequenceNumber::MAX;
    assert_eq!(range(&since, 1), "idle");
}
