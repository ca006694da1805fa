//! Classes by size, and the levels that have values in place.

use proptest::prelude::*;

use super::notation::parse_tree;
use crate::base::limits::{VALUE_BYTES_IN_PLACE_MAX, VALUE_BYTES_SEPARATED_MIN};
use crate::options::{KeyspaceOptions, MediumInPlace, MediumOrder, Preset};
use crate::policy::placement::{
    Class, FlushPlace, InputTransientLog, Placement, class, mediums_stay, place_at_flush,
    transient_file_bytes,
};

const NEVER: u64 = u64::MAX;
const MIB: usize = 1 << 20;

fn options(medium_from: u64, large_from: u64) -> KeyspaceOptions {
    KeyspaceOptions {
        medium_from,
        large_from,
        ..KeyspaceOptions::default()
    }
}

#[test]
fn classes() {
    use Class::{Large, Medium, Small};
    let cases = [
        // (medium_from, large_from), (key, value) -> class
        ((120, 1024), (24, 95), Small),
        ((120, 1024), (24, 96), Medium),
        ((120, 1024), (24, 999), Medium),
        ((120, 1024), (24, 1000), Large),
        // I2: a value of less than 64 bytes, however long its key.
        ((120, 1024), (1, 0), Small),
        ((120, 1024), (64 << 10, 63), Small),
        ((120, 1024), (56, 63), Small),
        ((120, 1024), (56, 64), Medium),
        ((120, 1024), (64 << 10, 64), Large),
        ((0, 0), (1, 63), Small),
        ((0, 0), (1, 64), Large),
        ((0, NEVER), (1, 64), Medium),
        // I3: a value of more than 1 MiB, under all options.
        ((NEVER, NEVER), (64 << 10, MIB), Small),
        ((NEVER, NEVER), (1, MIB + 1), Large),
        ((120, NEVER), (64 << 10, MIB), Medium),
        ((120, NEVER), (1, MIB + 1), Large),
        // Equal thresholds leave nothing between them.
        ((500, 500), (100, 399), Small),
        ((500, 500), (100, 400), Large),
    ];
    for ((medium_from, large_from), (key, value), expected) in cases {
        let options = options(medium_from, large_from);
        options.validate().unwrap();
        let found = class(key, value, &options);
        assert_eq!(
            found, expected,
            "{key} + {value} of {medium_from}, {large_from}"
        );
        let place = match expected {
            Medium => FlushPlace::TransientLog,
            Small => FlushPlace::Table,
            Large => FlushPlace::ValueLog,
        };
        assert_eq!(place_at_flush(key, value, false, &options), place);
        let here = place_at_flush(key, value, true, &options);
        let kept = if place == FlushPlace::TransientLog {
            FlushPlace::Table
        } else {
            place
        };
        assert_eq!(here, kept);
    }
}

#[test]
fn flushes_in_key_order_keep_mediums_in_the_table() {
    let default = KeyspaceOptions::default();
    let stay =
        |files: &[(u32, u32)], own, options| mediums_stay(files.iter().copied(), own, options);
    let files = [(10, 19), (20, 29), (40, 50)];
    for own in [(0, 9), (30, 39), (51, 60)] {
        assert!(stay(&files, own, &default), "{own:?}");
    }
    for own in [(0, 10), (29, 30), (35, 45), (44, 45), (50, 60), (0, 60)] {
        assert!(!stay(&files, own, &default), "{own:?}");
    }
    // In an empty tree, the order of keys is unknown.
    assert!(!stay(&[], (0, 9), &default));
    let never = KeyspaceOptions {
        medium_in_place: MediumInPlace::Never,
        ..default
    };
    assert!(!stay(&files, (0, 9), &never));
}

#[test]
fn contradictory_thresholds_are_refused_with_all_other_faults() {
    for (medium_from, large_from) in [(NEVER - 1, 1024), (1025, 1024), (1, 0)] {
        let wrong = KeyspaceOptions {
            level0_runs: 0,
            ..options(medium_from, large_from)
        };
        let sentence = wrong.validate().unwrap_err().to_string();
        assert!(sentence.contains("medium_from"), "{sentence}");
        assert!(sentence.contains("level0_runs"), "{sentence}");
    }
}

#[test]
fn presets_place_as_their_papers_do() {
    for (preset, expected) in [
        (Preset::Balanced, Class::Medium),
        (Preset::Parallax, Class::Medium),
        (Preset::Leveling, Class::Small),
        (Preset::Autumn, Class::Small),
    ] {
        let options = KeyspaceOptions::preset(preset);
        options.validate().unwrap();
        assert_eq!(class(24, 104, &options), expected, "{preset:?}");
    }
}

#[test]
fn values_are_in_place_from_a_level_on() {
    use MediumInPlace::{LastLevel, LevelBeforeLast, Never};
    for (medium_in_place, effective_last, first) in [
        (LastLevel, 1, Some(1)),
        (LastLevel, 4, Some(4)),
        (LevelBeforeLast, 1, Some(1)),
        (LevelBeforeLast, 2, Some(1)),
        (LevelBeforeLast, 4, Some(3)),
        (Never, 1, None),
        (Never, 4, None),
    ] {
        let options = KeyspaceOptions {
            medium_in_place,
            ..KeyspaceOptions::default()
        };
        let placement = Placement::new(effective_last, &options);
        for target in 0..=6 {
            let expected = first.is_some_and(|first| target >= first);
            assert_eq!(
                placement.is_in_place(target),
                expected,
                "{medium_in_place:?} of {effective_last}, into {target}"
            );
        }
    }
}

#[test]
fn a_stray_file_below_does_not_make_a_last_level() {
    // With T = 5 a level counts from a tenth of all bytes on, transient logs included.
    for (kib, expected) in [(10, 1), (12, 2)] {
        let tree = parse_tree(&format!("| 1:0-9/99+apart=89 | 2:0-9/{kib}"));
        let options = KeyspaceOptions::default();
        let placement = Placement::of(&tree, &options);
        assert_eq!(placement, Placement::new(expected, &options));
    }
}

proptest! {
    /// I2, I3, and a class grows with the value.
    #[test]
    fn classes_grow_with_the_value(
        thresholds in (0..4096_u64, 0..4096_u64), key in 1..65_537_usize,
        value in 0..2 * MIB, more in 0..4096_usize,
    ) {
        let (first, second) = thresholds;
        let options = options(first.min(second), first.max(second));
        let found = class(key, value, &options);
        prop_assert!(found <= class(key, value + more, &options));
        if value < VALUE_BYTES_SEPARATED_MIN {
            prop_assert_eq!(found, Class::Small);
        }
        if value > VALUE_BYTES_IN_PLACE_MAX {
            prop_assert_eq!(found, Class::Large);
        }
    }

    /// The levels below a level with values in place have them in place, too, and N-2 is never deeper than N-1.
    #[test]
    fn deeper_levels_are_in_place_too(last in 1..15_usize, target in 0..16_usize) {
        let merges = |medium_in_place| {
            let options = KeyspaceOptions { medium_in_place, ..KeyspaceOptions::default() };
            let placement = Placement::new(last, &options);
            (placement.is_in_place(target), placement.is_in_place(target + 1))
        };
        let (last, before) =
            (merges(MediumInPlace::LastLevel), merges(MediumInPlace::LevelBeforeLast));
        prop_assert!(last.1 >= last.0 && before.1 >= before.0 && before.0 >= last.0);
        prop_assert_eq!(merges(MediumInPlace::Never), (false, false));
    }
}

#[test]
fn sparse_files_and_thin_slices_are_rewritten() {
    const KIB: u64 = 1 << 10;
    const FILE_BYTES: u64 = 16 << 20;
    let transient_log = |length, referred_bytes, input_bytes, slices| InputTransientLog {
        length,
        referred_bytes,
        input_bytes,
        slices,
    };
    let whole = transient_file_bytes(FILE_BYTES);
    assert_eq!(whole, 4 << 20);
    for (name, transient_log, is_rewritten) in [
        ("whole", transient_log(whole, whole, whole, 1), false),
        (
            "a quarter is garbage",
            transient_log(whole, whole / 4 * 3, 256 * KIB, 1),
            false,
        ),
        (
            "more is garbage",
            transient_log(whole, whole / 4 * 3 - 1, 256 * KIB, 1),
            true,
        ),
        (
            "a wide slice",
            transient_log(whole, whole, 32 * KIB, 1),
            false,
        ),
        (
            "a thin slice",
            transient_log(whole, whole, 32 * KIB - 1, 1),
            true,
        ),
        (
            "two thin slices",
            transient_log(whole, whole, 32 * KIB, 2),
            true,
        ),
        (
            "two wide slices",
            transient_log(whole, whole, 64 * KIB, 2),
            false,
        ),
    ] {
        let sorted = transient_log.is_rewritten(MediumOrder::Sorted, FILE_BYTES);
        assert_eq!(sorted, is_rewritten, "{name}");
        // Values in the order of their writes are not sorted on the way.
        let is_sparse = transient_log.referred_bytes < whole / 4 * 3;
        let written = transient_log.is_rewritten(MediumOrder::Written, FILE_BYTES);
        assert_eq!(written, is_sparse, "{name}, as written");
    }
    // Larger tables need wider slices, so that they do not refer to more files.
    assert!(
        transient_log(whole, whole, 32 * KIB, 1).is_rewritten(MediumOrder::Sorted, 2 * FILE_BYTES)
    );
}
