//! The plan of a compaction's output, case by case.

use proptest::prelude::*;

use super::notation::{KIB, claim, file, numbers, parse_tree, tree};
use crate::base::{FileNumber, Kind, SequenceNumber, Trailer};
use crate::options::{KeyspaceOptions, Preset};
use crate::policy::output::Zones;
use crate::policy::{
    Compaction, DeeperLevels, Met, OutputCutter, OutputPlan, Purpose, ReadPoints, Verdict,
    hides_all, is_offered, keep, keep_range,
};

#[test]
fn entries_are_kept_for_readers_and_for_what_they_hide() {
    use Kind::{Tombstone, Value};
    use Verdict::{Keep, Spent, Superseded};
    const NONE: &[SequenceNumber] = &[];
    // (sequence, kind, next newer version, snapshots, visible, deeper data) -> verdict
    for (sequence, kind, newer, snapshots, visible, deeper, expected) in [
        // The newest version of a key stays.
        (5, Value, None, NONE, 9, false, Keep),
        (5, Value, None, &[3], 9, true, Keep),
        // A hidden version is dropped, unless a reader reads between it and the next newer one.
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
        // A tombstone is dropped if all readers see it and nothing is below.
        (5, Tombstone, None, NONE, 9, false, Spent),
        (5, Tombstone, None, NONE, 9, true, Keep),
        (5, Tombstone, None, &[5], 9, false, Spent),
        (5, Tombstone, None, &[4], 9, false, Keep),
        (5, Tombstone, None, NONE, 5, false, Spent),
        (5, Tombstone, None, NONE, 4, false, Keep),
        (5, Tombstone, Some(7), &[6], 9, false, Spent),
        (5, Tombstone, Some(7), &[4, 6], 9, false, Keep),
    ] {
        let readers = ReadPoints::without_clock(snapshots.to_vec(), visible);
        let met = newer.map(|newer| Met::new(Trailer::new(newer, Value), Keep));
        let verdict = keep(Trailer::new(sequence, kind), met, false, &readers, || {
            deeper
        });
        assert_eq!(
            verdict, expected,
            "{sequence} {kind:?} below {newer:?}, readers {readers:?}, deeper {deeper}"
        );
    }
}

#[test]
fn versions_join_the_operands_that_readers_see_them_through() {
    use Kind::{Operand, Tombstone, Value};
    use Verdict::{Joins, Keep, Superseded};
    const NONE: &[SequenceNumber] = &[];
    // (sequence, kind, the next newer version and its verdict, snapshots) -> verdict
    for (sequence, kind, newer, snapshots, expected) in [
        (5, Operand, None, NONE, Keep),
        (5, Operand, Some((7, Operand, Keep)), NONE, Joins),
        (5, Operand, Some((7, Operand, Joins)), NONE, Joins),
        (5, Value, Some((7, Operand, Keep)), NONE, Joins),
        (5, Tombstone, Some((7, Operand, Keep)), NONE, Joins),
        // A reader in between.
        (5, Operand, Some((7, Operand, Keep)), &[6], Keep),
        (5, Value, Some((7, Operand, Keep)), &[5], Keep),
        (5, Operand, Some((7, Operand, Keep)), &[4, 7], Joins),
        (5, Operand, Some((10, Operand, Keep)), NONE, Keep),
        // A base hides what is below it, and so does an operand that is hidden itself.
        (5, Operand, Some((7, Value, Joins)), NONE, Superseded),
        (5, Operand, Some((7, Value, Keep)), NONE, Superseded),
        (5, Operand, Some((7, Tombstone, Keep)), &[4], Superseded),
        (5, Operand, Some((7, Operand, Superseded)), NONE, Superseded),
        (5, Value, Some((7, Operand, Superseded)), &[7], Superseded),
        (5, Value, Some((7, Operand, Superseded)), &[6], Keep),
    ] {
        let readers = ReadPoints::without_clock(snapshots.to_vec(), 9);
        let met = newer.map(|(newer, kind, verdict)| Met::new(Trailer::new(newer, kind), verdict));
        let verdict = keep(Trailer::new(sequence, kind), met, false, &readers, || true);
        assert_eq!(
            verdict, expected,
            "{sequence} {kind:?} below {newer:?}, {snapshots:?}"
        );
    }
    // A tombstone that hides nothing goes, also below an operand that nothing folds.
    let operand = Met::new(Trailer::new(7, Operand), Keep);
    for (oldest, is_deeper, expected) in [
        (9, false, Verdict::Spent),
        (9, true, Joins),
        (4, false, Joins),
    ] {
        let readers = ReadPoints::without_clock(vec![oldest], 9);
        let tombstone = Trailer::new(5, Tombstone);
        let verdict = keep(tombstone, Some(operand), false, &readers, || is_deeper);
        assert_eq!(verdict, expected, "{oldest} {is_deeper}");
    }
}

#[test]
fn the_newest_version_that_stays_is_offered_to_the_filter() {
    let newer = Met::new(Trailer::new(7, Kind::Value), Verdict::Keep);
    for (verdict, newer, expected) in [
        (Verdict::Keep, None, true),
        (Verdict::Superseded, None, false),
        (Verdict::Spent, None, false),
        // A snapshot sees the older one.
        (Verdict::Keep, Some(newer), false),
        (Verdict::Joins, Some(newer), false),
    ] {
        assert_eq!(is_offered(verdict, newer), expected, "{verdict:?}");
    }
}

// Each value that is read for the filter is read for the last level alone.
#[test]
fn values_apart_are_judged_in_the_effective_last_level() {
    for (tree, level, expected) in [
        ("1:0-9/1 |", 1, true),
        ("1:0-9/1 | 2:0-9/4", 1, true),
        ("1:0-9/1 | 2:0-9/4 | 3:0-9/100", 1, false),
        ("1:0-9/1 | 2:0-9/4 | 3:0-9/100", 2, true),
        // The nominal last level holds next to nothing yet.
        ("1:0-9/1 | 2:0-9/4 | 3:0-9/100 | 4:0-1/1", 2, true),
        ("1:0-9/1 | 2:0-9/4 | 3:0-9/100 | 4:0-1/1", 3, true),
    ] {
        let compaction = Compaction {
            claim: claim(level, 0, 9),
            ..compaction(Vec::new(), Vec::new())
        };
        let (tree_of, options) = (parse_tree(tree), options());
        let plan = OutputPlan::new(&tree_of, &compaction, &options);
        assert_eq!(plan.reads_values_apart(), expected, "{tree}, {level}");
    }
}

#[test]
fn range_tombstones_are_kept_for_readers_and_for_what_they_hide() {
    use Verdict::{Keep, Spent, Superseded};
    const NONE: &[SequenceNumber] = &[];
    // (sequence, the next newer one around it, snapshots, visible, deeper data) -> verdict
    for (sequence, around, snapshots, visible, deeper, expected) in [
        (5, None, NONE, 9, true, Keep),
        (5, None, NONE, 9, false, Spent),
        (5, None, &[4], 9, false, Keep),
        (5, None, &[5], 9, false, Spent),
        (5, None, NONE, 4, false, Keep),
        (5, Some(7), NONE, 9, true, Superseded),
        (5, Some(7), &[6], 9, true, Keep),
        (5, Some(7), &[6], 9, false, Spent),
        (5, Some(7), &[4, 7], 9, true, Superseded),
        (5, Some(10), NONE, 9, true, Keep),
    ] {
        let readers = ReadPoints::without_clock(snapshots.to_vec(), visible);
        let verdict = keep_range(sequence, around, &readers, || deeper);
        assert_eq!(
            verdict, expected,
            "{sequence} below {around:?}, readers {readers:?}, deeper {deeper}"
        );
    }
}

#[test]
fn a_file_is_hidden_if_no_reader_is_between_its_entries_and_the_range_tombstone() {
    for (snapshots, visible, expected) in [
        (&[][..], 9, true),
        (&[2, 7], 9, true),
        (&[3], 9, false),
        (&[6], 9, false),
        (&[], 6, false),
    ] {
        let readers = ReadPoints::without_clock(snapshots.to_vec(), visible);
        assert_eq!(hides_all(7, 3, &readers), expected, "{readers:?}");
    }
}

/// An entry, the next newer version of its key, and the next newer range tombstone around it.
#[test]
fn a_range_tombstone_is_a_newer_version_of_what_it_covers() {
    use Kind::{Operand, Value};
    use Verdict::{Joins, Keep, Superseded};
    const NONE: &[SequenceNumber] = &[];
    for (newer, deleted, snapshots, expected) in [
        (None, None, NONE, Keep),
        (None, Some(7), NONE, Superseded),
        (None, Some(7), &[6], Keep),
        (Some((7, Operand)), None, NONE, Joins),
        (Some((7, Operand)), Some(6), NONE, Superseded),
        (Some((7, Operand)), Some(8), NONE, Joins),
        (Some((7, Operand)), Some(6), &[5], Keep),
        (Some((7, Value)), Some(8), &[7], Superseded),
    ] {
        let readers = ReadPoints::without_clock(snapshots.to_vec(), 9);
        let newer = newer.map(|(newer, kind)| Met::new(Trailer::new(newer, kind), Keep));
        let nearest = Met::nearest(newer, deleted);
        let verdict = keep(Trailer::new(5, Value), nearest, false, &readers, || true);
        assert_eq!(verdict, expected, "{newer:?}, {deleted:?}, {snapshots:?}");
    }
}

/// Deeper levels, and files that are appended to.
#[test]
fn deeper_levels_hold_the_ranges_of_their_files() {
    let tree = parse_tree(
        "9:0-99/1 | 5:10-19/1 6:30-39/1 7:60-65/1 | 1:10-19/1 2:30-39/1 | 3:35-50/1 4:90-95/1",
    );
    let held = |targets: &[u64]| -> Vec<u32> {
        let mut deeper = DeeperLevels::new(&tree, &claim(1, 0, 99), &numbers(targets));
        (0..99).filter(|key| deeper.may_hold(key)).collect()
    };
    assert!(
        held(&[])
            .into_iter()
            .eq((10..20).chain(30..51).chain(90..96))
    );
    let expected = (10..20).chain(30..51).chain(60..66).chain(90..96);
    assert!(held(&[5, 7]).into_iter().eq(expected));
    assert!(!DeeperLevels::new(&tree, &claim(3, 0, 99), &[]).may_hold(&40));
    let mut deeper = DeeperLevels::new(&tree, &claim(1, 0, 99), &[]);
    let ranges = [(0, 10), (0, 11), (20, 30), (20, 31), (51, 90), (96, 99)];
    let held = ranges.map(|(start, end)| deeper.may_overlap(&start, &end));
    assert_eq!(held, [false, true, false, true, false, false]);
}

#[test]
fn output_is_cut_when_full_and_at_ends_below_when_half_full() {
    let tree = parse_tree("| | 1:0-9/1 2:20-29/1 3:40-49/1 |");
    let zones = Zones::new(&[], &[], (1000, false), |_, _| 10_000);
    let mut cutter = OutputCutter::new(&tree, &claim(1, 0, 99), zones);
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
        let begins = cutter.place(&key, bytes).begins;
        assert_eq!(begins, expected, "key {key} at {bytes} bytes");
    }
}

#[test]
fn appended_output_is_not_cut() {
    let tree = parse_tree("| | 3:0-12/1");
    let (one, two) = (file(1, 10, 19, 1), file(2, 30, 39, 1));
    let zones = Zones::new(&[&one, &two], &numbers(&[1, 2]), (1000, false), |_, _| 0);
    let mut cutter = OutputCutter::new(&tree, &claim(1, 0, 99), zones);
    for (key, bytes, target, begins) in [
        (5, 0, 1, false),
        (15, 1 << 30, 1, false),
        (29, 1 << 30, 1, false),
        (30, 1, 2, true),
        (90, 1 << 30, 2, false),
    ] {
        let place = cutter.place(&key, bytes);
        assert_eq!(
            (place.target, place.begins),
            (Some(FileNumber(target)), begins)
        );
    }
}

/// The keys below 100 at which zones of a compaction into the files `lower` of level 1 begin, each with its target.
/// `key` is the length of the only upper key.
fn zones_of(lower: &str, targets: &[u64], key: u32, bytes: u64) -> String {
    let tree = parse_tree(&format!("|{lower}"));
    let lower: Vec<_> = tree.level(1).iter().collect();
    let between = |from: Option<&u32>, to: Option<&u32>| {
        let is_between = from.is_none_or(|from| *from < key) && to.is_none_or(|to| key < *to);
        if is_between { bytes } else { 0 }
    };
    let mut zones = Zones::new(&lower, &numbers(targets), (400, false), between);
    let mut found = Vec::new();
    let mut last = None;
    for key in 0..100 {
        let is_another = zones.go_to(&key);
        let target = zones
            .target()
            .map_or("new".to_owned(), |number| number.0.to_string());
        if is_another || key == 0 {
            found.push(format!("{key}:{target}"));
        } else {
            assert_eq!(last.as_ref(), Some(&target));
        }
        last = Some(target);
    }
    found.join(" ")
}

/// I1 of zones.
#[test]
fn keys_between_files_go_to_one_of_them_or_to_a_new_file() {
    const ONE: &str = "1:10-19/1";
    const TWO: &str = "1:10-19/1 2:30-39/1";
    const THREE: &str = "1:10-19/1 2:30-39/1 3:50-59/1";
    let (narrow, wide) = (99, 100);
    for (name, lower, targets, key, bytes, expected) in [
        ("no files", "", &[][..], 5, wide, "0:new"),
        ("before", ONE, &[1], 5, narrow, "0:1"),
        ("far before", ONE, &[1], 5, wide, "0:new 10:1"),
        ("after", ONE, &[1], 30, narrow, "0:1"),
        ("far after", ONE, &[1], 30, wide, "0:1 20:new"),
        ("rewritten", ONE, &[], 5, wide, "0:new"),
        ("two rewritten", TWO, &[], 25, wide, "0:new"),
        ("between two", TWO, &[1, 2], 25, narrow, "0:1 30:2"),
        ("far between two", TWO, &[1, 2], 25, wide, "0:1 20:new 30:2"),
        (
            "before a rewritten one",
            TWO,
            &[1],
            25,
            narrow,
            "0:1 20:new",
        ),
        ("after a rewritten one", TWO, &[2], 25, wide, "0:new 30:2"),
        (
            "among rewritten ones",
            THREE,
            &[2],
            45,
            narrow,
            "0:new 30:2 40:new",
        ),
        (
            "among others",
            THREE,
            &[1, 3],
            45,
            narrow,
            "0:1 20:new 50:3",
        ),
        ("in a file", TWO, &[1, 2], 15, wide, "0:1 30:2"),
    ] {
        assert_eq!(zones_of(lower, targets, key, bytes), expected, "{name}");
    }
}

#[test]
fn new_files_have_equal_lengths() {
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

/// The compaction of the file 1 of level 0 into `lower`, of level 1.
fn compaction(lower: Vec<FileNumber>, targets: Vec<FileNumber>) -> Compaction<u32> {
    Compaction {
        level: 0,
        upper: numbers(&[1]),
        lower,
        targets,
        claim: claim(1, 0, 9999),
        purpose: Purpose::Tree,
    }
}

fn options() -> KeyspaceOptions {
    KeyspaceOptions {
        file_bytes: KIB,
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

#[test]
fn subcompactions_are_even_and_worth_a_thread() {
    for (lower, count_max, expected) in [
        (0, 4, &[][..]),
        (7, 4, &[]),
        (8, 4, &[40]),
        (8, 1, &[]),
        (12, 4, &[40, 80]),
        (100, 4, &[250, 500, 750]),
    ] {
        let mut level: Vec<_> = (0..lower)
            .map(|index| file(u64::from(index) + 10, index * 10, index * 10 + 9, 1))
            .collect();
        let lower = level.iter().map(|file| file.number).collect();
        level.push(file(5, 5000, 6000, 99));
        let tree = tree(1, vec![vec![file(1, 0, 5000, 0)], level]);
        let compaction = compaction(lower, Vec::new());
        let options = options();
        let plan = OutputPlan::new(&tree, &compaction, &options);
        assert_eq!(plan.subcompaction_ends(count_max), expected);
    }
}

proptest! {
    /// Whatever a compaction is divided into, one subcompaction only writes to each file.
    #[test]
    fn subcompactions_share_no_file(
        appended in proptest::collection::vec(any::<bool>(), 1..40),
        upper_kib in 1..100_u64, count_max in 1..6_usize, wide: bool,
    ) {
        let files = (0..).zip(&appended);
        let level: Vec<_> = files.map(|(index, _)| {
            file(u64::from(index) + 2, index * 10, index * 10 + 4, 1)
        }).collect();
        let chosen = |is_target: bool| -> Vec<FileNumber> {
            let files = level.iter().zip(&appended);
            files.filter(|(_, it)| **it == is_target).map(|(file, _)| file.number).collect()
        };
        let compaction = compaction(chosen(false), chosen(true));
        let lower: Vec<_> = level.iter().collect();
        let upper = if wide { KIB } else { 0 };
        let mut zones = Zones::new(&lower, &compaction.targets, (KIB, false), |_, _| upper);
        let tree = tree(1, vec![vec![file(1, 0, 999, upper_kib)], level.clone()]);
        let options = options();
        let ends = OutputPlan::new(&tree, &compaction, &options).subcompaction_ends(count_max);
        prop_assert!(ends.len() < count_max);
        prop_assert!(ends.is_sorted_by(|left, right| left < right));
        for end in ends {
            zones.go_to(&(end - 1));
            let before = zones.target();
            let is_another = zones.go_to(&end);
            // New files may begin anywhere among files that are written anew.
            let is_within = before.is_none() && level.iter().zip(&appended).any(
                |(file, appended)| file.largest < end && end - file.largest < 10 && !appended,
            );
            prop_assert!(is_another || is_within, "a subcompaction begins at {}", end);
        }
    }
}
