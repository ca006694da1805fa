//! Filter bits on numbers: published rates, the budget, and files that are new, moved or alone in their range.

use super::fractions::fractions;
use super::{
    allocate_filters, filter_units, flush_fraction, output_fractions, price, price_alone,
    worthwhile_bits,
};
use crate::base::FileNumber;
use crate::options::{FilterAllocation, KeyspaceOptions};
use crate::policy::capacities::{capacities, whole};
use crate::policy::tests::notation::{file, tree};
use crate::policy::{Claim, Compaction, FileSummary, Purpose, SegmentSummary, TreeSummary};
use proptest::prelude::*;

fn options(bits_per_key: f64) -> KeyspaceOptions {
    KeyspaceOptions {
        bits_per_key,
        ..KeyspaceOptions::default()
    }
}

/// A file of `entries` that was written with `units`, in bits per key.
fn holding(
    number: u64,
    smallest: u32,
    largest: u32,
    entries: u64,
    units: [f64; 4],
) -> FileSummary<u32> {
    FileSummary {
        entries,
        segments: vec![SegmentSummary {
            bytes: 1 << 10,
            entries,
            sequence_min: 1,
            overwrites: 0,
            filter_units: units.map(|per_key| whole(per_key * entries as f64 / 8.0)),
            logs: None,
        }],
        ..file(number, smallest, largest, 1)
    }
}

/// The false-positive rate of each file, and the bits in memory.
fn allocated(tree: &TreeSummary<u32>, options: &KeyspaceOptions) -> (Vec<f64>, u64) {
    let allocations = allocate_filters(tree, options);
    let mut bits = 0;
    let rates =
        tree.levels
            .iter()
            .flatten()
            .zip(&allocations.units)
            .map(|(file, (number, units))| {
                assert_eq!(file.number, *number);
                let loaded: u64 = file.segments[0].filter_units[..units.of(0)].iter().sum();
                bits += loaded * 8;
                0.6185_f64.powf(loaded as f64 * 8.0 / file.entries as f64)
            });
    (rates.collect(), bits)
}

/// D2: what an absent key costs with T = 5 and 80 GB, by Monkey and with the same filter for
/// every level.
#[test]
fn published_rates() {
    for (bits, scaling, levels, published, uniform) in [
        (2.0, 1.0, 5, 0.71, 1.91),
        (2.0, 0.8, 4, 0.68, 1.53),
        (2.0, 0.4, 3, 0.64, 1.15),
        (10.0, 1.0, 5, 0.0153, 0.041),
        (10.0, 0.8, 4, 0.0146, 0.033),
        (10.0, 0.4, 3, 0.0137, 0.025),
    ] {
        let options = KeyspaceOptions {
            scaling,
            size_ratio: 5.0,
            base_bytes: 1 << 40,
            ..options(bits)
        };
        // Full levels over the same keys.
        let capacities = capacities(&options, levels);
        let total: u64 = capacities[1..].iter().sum();
        let fractions: Vec<f64> = capacities[1..]
            .iter()
            .map(|&bytes| bytes as f64 / total as f64)
            .collect();
        let counted: Vec<(f64, f64)> = fractions
            .iter()
            .map(|&fraction| (fraction * 1e9, fraction))
            .collect();
        let price = price(&counted, &options);
        let rate = |fraction: f64| 0.6185_f64.powf(worthwhile_bits(fraction, price));
        let sum: f64 = fractions.iter().map(|&fraction| rate(fraction)).sum();
        assert!(
            (sum / published - 1.0).abs() < 0.12,
            "{sum} is not {published}"
        );
        let same = levels as f64 * 0.6185_f64.powf(bits);
        assert!((same / uniform - 1.0).abs() < 0.05);
        assert!(sum < same);
    }
}

#[test]
fn a_fraction_is_what_a_file_holds_of_its_range() {
    // A run over two of three files. The third begins after its end.
    let tree = tree(
        2,
        vec![
            vec![holding(9, 0, 59, 100, [0.0; 4])],
            vec![],
            vec![
                holding(1, 0, 29, 900, [0.0; 4]),
                holding(2, 30, 59, 900, [0.0; 4]),
                holding(3, 60, 89, 900, [0.0; 4]),
            ],
        ],
    );
    let fractions = fractions(&tree);
    assert!(
        (fractions[0] - 100.0 / 1900.0).abs() < 0.01,
        "{fractions:?}"
    );
    assert!((fractions[1] - 900.0 / 950.0).abs() < 0.01, "{fractions:?}");
    assert!((fractions[2] - 900.0 / 950.0).abs() < 0.01, "{fractions:?}");
    assert!(fractions[3] > 0.999, "{fractions:?}");
}

#[test]
fn the_output_of_a_compaction_has_its_fraction() {
    let claim = Claim {
        level: 2,
        smallest: 10,
        largest: 49,
    };
    let tree = tree(
        3,
        vec![
            vec![holding(9, 0, 99, 100, [0.0; 4])],
            vec![holding(1, 10, 40, 200, [0.0; 4])],
            vec![holding(2, 10, 49, 300, [0.0; 4])],
            vec![
                holding(3, 0, 9, 900, [0.0; 4]),
                holding(4, 10, 49, 900, [0.0; 4]),
                holding(5, 50, 99, 900, [0.0; 4]),
            ],
        ],
    );
    let (one, two) = (FileNumber(1), FileNumber(2));
    let is_about = |fraction: f64, expected: f64| {
        assert!(
            (fraction - expected).abs() < 1e-9,
            "{fraction} is not {expected}"
        );
    };
    let fractions = |lower: &[FileNumber], targets: &[FileNumber]| {
        let compaction = Compaction {
            level: 1,
            upper: vec![one],
            lower: lower.to_vec(),
            targets: targets.to_vec(),
            claim: claim.clone(),
            purpose: Purpose::Tree,
        };
        output_fractions(&tree, &compaction)
    };
    is_about(fractions(&[two], &[]).written_anew, 500.0 / 1450.0);
    let appended = fractions(&[], &[two]);
    is_about(appended.appended, 200.0 / 1450.0);
    // New files between the targets do not count the entries of the targets.
    is_about(appended.written_anew, 200.0 / 1150.0);
    is_about(flush_fraction(&tree, &claim, 0), 0.0);
    is_about(flush_fraction(&tree, &claim, 550), 550.0 / 2000.0);
}

/// A file that was written for a shallow level and then moved is filtered like any other file that is alone in
/// its range. A file that overlaps others gets more bits.
#[test]
fn moved_files_are_filtered_like_others() {
    let options = options(5.0);
    let price = price_alone(&options);
    let young = filter_units(0.01, price, &options);
    let old = filter_units(1.0, price, &options);
    assert!(young.iter().sum::<f64>() > old.iter().sum::<f64>() + 8.0);
    let mut files: Vec<FileSummary<u32>> = (0..100)
        .map(|number| {
            let units = if number < 50 { young } else { old };
            holding(
                u64::from(number),
                number * 10,
                number * 10 + 9,
                100_000,
                units,
            )
        })
        .collect();
    let moved = tree(3, vec![vec![], vec![], files.split_off(90), files]);
    let (rates, bits) = allocated(&moved, &options);
    assert!(bits as f64 <= 1.02 * 5.0 * 10_000_000.0);
    // The moved files have the same rates as the others, except some that get the rest of the budget.
    let typical = 0.6185_f64.powf(5.0 * 0.98);
    let typical_rates = rates
        .iter()
        .filter(|rate| (**rate / typical - 1.0).abs() < 0.1);
    assert!(typical_rates.count() >= 90, "{rates:?}");

    let mut overlapped = moved;
    overlapped.levels[1].push(holding(200, 0, 99, 100_000, young));
    let (rates, _) = allocated(&overlapped, &options);
    assert!(rates[0] < typical / 3.0, "{}", rates[0]);
}

#[test]
fn uniform_units_and_no_units() {
    let uniform = KeyspaceOptions {
        filter_allocation: FilterAllocation::Uniform,
        ..options(7.5)
    };
    let written = |fraction, options: &KeyspaceOptions| {
        format!(
            "{:?}",
            filter_units(fraction, price_alone(options), options)
        )
    };
    assert_eq!(written(0.01, &uniform), "[7.5, 0.0, 0.0, 0.0]");
    assert_eq!(written(1.0, &uniform), "[7.5, 0.0, 0.0, 0.0]");
    assert_eq!(written(0.5, &options(0.0)), "[0.0, 0.0, 0.0, 0.0]");
}

fn any_tree() -> impl Strategy<Value = TreeSummary<u32>> {
    let units = prop_oneof![
        Just([0.0; 4]),
        (1.0..12.0_f64, 1.0..8.0_f64, 1.0..5.0_f64).prop_map(|(a, b, c)| [a, b, c, 0.0]),
    ];
    let file = (1..50_u32, 0..50_u32, 1..100_000_u64, units);
    let level = proptest::collection::vec(file, 0..12);
    proptest::collection::vec(level, 1..5).prop_map(|levels| {
        let mut number = 0;
        let files = |files: Vec<(u32, u32, u64, [f64; 4])>| {
            let mut next = 0;
            files
                .into_iter()
                .map(|(gap, width, entries, units)| {
                    number += 1;
                    let smallest = next + gap;
                    next = smallest + width;
                    holding(number, smallest, next, entries, units)
                })
                .collect()
        };
        tree(4, levels.into_iter().map(files).collect())
    })
}

proptest! {
    /// Design invariant 8: the bits in memory are within the budget, whatever files there are.
    #[test]
    fn bits_in_memory_stay_within_the_budget(tree in any_tree(), per_key in 0.0..20.0_f64) {
        let (_, used) = allocated(&tree, &options(per_key));
        let files = || tree.levels.iter().flatten();
        let entries: u64 = files().map(|file| file.entries).sum();
        let slack = 512 * files().count() as u64;
        prop_assert!(used <= whole(per_key * entries as f64) + slack);
    }

    #[test]
    fn fractions_are_at_most_one(tree in any_tree()) {
        let fractions = fractions(&tree);
        prop_assert_eq!(fractions.len(), tree.levels.iter().flatten().count());
        prop_assert!(fractions.iter().all(|fraction| *fraction > 0.0 && *fraction <= 1.0));
    }
}
