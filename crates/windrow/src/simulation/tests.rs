//! Bounds, budgets and conserved bytes of simulations, over loads of every kind.

mod other_writes;

use proptest::prelude::*;

use super::run::Run;
use super::{
    KeyDistribution, LevelIoStats, Load, Outcome, Sample, ValueSize, simulate, simulate_large,
    write_amplification_bound,
};
use crate::base::ErrorKind;
use crate::filter::false_positive_rate;
use crate::options::{KeyspaceOptions, Preset, SegmentLimit};

const MIB: u64 = 1 << 20;

/// A sixty-fourth of the usual sizes, with everything in place.
fn small(preset: Preset) -> KeyspaceOptions {
    let options = KeyspaceOptions::preset(preset);
    KeyspaceOptions {
        memtable_bytes: options.memtable_bytes / 64,
        base_bytes: options.base_bytes / 64,
        file_bytes: options.file_bytes / 64,
        medium_from: u64::MAX,
        large_from: u64::MAX,
        ..options
    }
}

fn run(load: &Load) -> (Outcome, Sample) {
    let outcome = simulate(load).unwrap();
    let last = outcome.samples.last().unwrap().clone();
    (outcome, last)
}

/// Bytes of tables for each byte that was given.
fn table_bytes(load: &Load, sample: &Sample) -> f64 {
    let entries: u64 = sample.levels.iter().map(|level| level.entries).sum();
    let bytes: u64 = sample.levels.iter().map(|level| level.bytes).sum();
    bytes as f64 / (entries as f64 * load.entry_bytes())
}

#[test]
fn the_formula_bounds_write_amplification() {
    for size_ratio in [4.0, 5.0, 10.0] {
        for scaling in [1.0, 0.8, 0.4] {
            for segment_limit in [
                SegmentLimit::Fixed(1),
                SegmentLimit::Fixed(3),
                SegmentLimit::Scaled,
            ] {
                let options = KeyspaceOptions {
                    size_ratio,
                    scaling,
                    segment_limit,
                    ..small(Preset::Autumn)
                };
                let load = Load::inserts(500 * MIB, options);
                let (_, last) = run(&load);
                let bound = write_amplification_bound(
                    &load.options,
                    last.level_count,
                    table_bytes(&load, &last),
                );
                let reported = last.io_stats.write_amplification();
                assert!(
                    reported <= bound,
                    "{reported:.2} above {bound:.2} with T = {size_ratio}, c = {scaling}, {segment_limit}"
                );
            }
        }
    }
}

#[test]
fn invalid_loads_are_refused() {
    let good = || Load::inserts(MIB, small(Preset::Balanced)).overwritten(1.0);
    let zipfian = |exponent| KeyDistribution::Zipfian { exponent };
    let cases: [fn(&mut Load); 25] = [
        |load| load.keys = 0,
        |load| load.inserts = load.keys + 1,
        |load| (load.inserts, load.draws) = (0, 0),
        |load| load.key_bytes = 0,
        |load| load.values = ValueSize::same(u64::MAX),
        |load| load.values.clear(),
        |load| load.values[0].fraction = 0.0,
        |load| load.draws = u64::MAX,
        |load| load.keys = u64::MAX,
        |load| load.deletes = 1.1,
        |load| load.deletes = f64::NAN,
        |load| load.merges = -0.1,
        |load| (load.deletes, load.merges) = (0.6, 0.5),
        |load| load.operand_bytes = u64::MAX,
        |load| (load.merges, load.options.medium_from) = (0.5, 100),
        |load| load.range_deletes_per_write = -1.0,
        |load| load.range_delete_part = 0.0,
        |load| load.range_delete_part = f64::NAN,
        |load| {
            load.range_deletes_per_write = 0.01;
            load.distribution = KeyDistribution::Sequential;
        },
        |load| load.expiring = 1.5,
        |load| (load.expiring, load.time_to_live) = (0.5, 0),
        |load| (load.expiring, load.time_to_live, load.merges) = (0.5, 9, 0.5),
        |load| load.seeks_per_write = -1.0,
        |load| load.files_max = 0,
        |load| load.flushes_max = 0,
    ];
    simulate(&good()).unwrap();
    let mut bad: Vec<Load> = cases
        .iter()
        .map(|spoil| {
            let mut load = good();
            spoil(&mut load);
            load
        })
        .collect();
    for exponent in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut load = good();
        load.distribution = zipfian(exponent);
        bad.push(load);
    }
    for load in bad {
        let refused = |error: crate::Error| error.kind() == ErrorKind::InvalidArgument;
        assert!(refused(simulate(&load).unwrap_err()), "{load:?}");
        assert!(refused(simulate_large(&load, 1).unwrap_err()), "{load:?}");
    }
}

/// The size of a flush does not change how often draws hit a key.
#[test]
fn live_bytes_do_not_depend_on_flushes() {
    let live = |memtable_bytes| {
        let options = KeyspaceOptions {
            memtable_bytes,
            ..small(Preset::Balanced)
        };
        let mut load = Load::inserts(16 * MIB, options);
        load.distribution = KeyDistribution::Zipfian { exponent: 0.99 };
        (load.inserts, load.draws) = (0, load.keys);
        run(&load).1.live_bytes as f64
    };
    let (few, many) = (live(4 << 20), live(256 << 10));
    assert!((few / many - 1.0).abs() < 1e-4, "{few} and {many}");
    assert!(few < 0.5 * 16.0 * MIB as f64, "{few}");
}

/// If a few keys get most of the draws, upper levels never fill.
#[test]
fn few_different_keys_are_simulated_in_parts() {
    let mut load = Load::inserts(400 * MIB, small(Preset::Balanced));
    load.distribution = KeyDistribution::Zipfian { exponent: 1.5 };
    (load.inserts, load.draws) = (0, load.keys);
    load.files_max = 1024;
    load.flushes_max = 20;
    for measured in [0, load.draws, u64::MAX] {
        let interval = simulate_large(&load, measured).unwrap().interval;
        assert!(interval.write_amplification > 1.0);
    }
}

#[test]
fn fewer_files_give_about_the_same_result() {
    for preset in [Preset::Leveling, Preset::Autumn, Preset::Balanced] {
        let mut load = Load::inserts(400 * MIB, small(preset));
        let exact = run(&load).1.io_stats.write_amplification();
        load.files_max = 2048;
        let coarse = run(&load).1.io_stats.write_amplification();
        let apart = coarse / exact - 1.0;
        assert!(
            apart.abs() <= 0.05,
            "{exact:.2} and {coarse:.2}: {preset:?}"
        );
    }
}

/// In parts and in one piece, with and without appends. Space is not bounded, because a bound would change only the
/// lowest part.
fn check_parts(bytes: u64, preset: Preset) {
    for segment_limit in [SegmentLimit::Fixed(1), SegmentLimit::Scaled] {
        let options = KeyspaceOptions {
            segment_limit,
            ..small(preset)
        };
        let mut load = Load::inserts(bytes, options);
        load.files_max = 2048;
        load.flushes_max = u64::MAX;
        let whole = simulate_large(&load, load.writes()).unwrap().interval;
        load.flushes_max = 400;
        let parts = simulate_large(&load, load.writes()).unwrap().interval;
        let apart = parts.write_amplification / whole.write_amplification - 1.0;
        assert!(apart.abs() <= 0.05, "{apart:.3} apart: {segment_limit}");
        let apart = parts.runs_per_seek() / whole.runs_per_seek() - 1.0;
        assert!(apart.abs() <= 0.1, "{apart:.3} runs apart: {segment_limit}");
    }
}

#[test]
fn parts_give_about_the_same_result() {
    check_parts(1500 * MIB, Preset::Autumn);
}

#[test]
#[ignore = "takes minutes"]
fn parts_of_a_large_tree_give_about_the_same_result() {
    check_parts(8000 * MIB, Preset::Leveling);
    check_parts(8000 * MIB, Preset::Autumn);
}

#[test]
fn filters_use_their_budget_and_no_more() {
    for bits_per_key in [10.0, 2.0] {
        let options = KeyspaceOptions {
            bits_per_key,
            ..small(Preset::Balanced)
        };
        let mut load = Load::inserts(200 * MIB, options);
        load.filters = true;
        let (_, last) = run(&load);
        let entries: u64 = last.levels.iter().map(|level| level.entries).sum();
        let bits = last.filter_bytes as f64 * 8.0 / entries as f64;
        let segments: usize = last.levels.iter().map(|level| level.segments).sum();
        // Each may be rounded up by a line of 512 bits, and new files have all their bits for a while.
        let most = bits_per_key * 1.1 + 512.0 * segments as f64 / entries as f64;
        assert!(bits <= most, "{bits:.2} of {bits_per_key}");
        assert!(bits >= bits_per_key * 0.8, "{bits:.2} of {bits_per_key}");
        // At most as many as with the same bits for each key.
        let uniform = last.runs_per_seek * false_positive_rate(bits_per_key);
        assert!(
            last.false_positive_reads <= uniform,
            "{} above {uniform}",
            last.false_positive_reads
        );
    }
}

#[test]
fn seeks_reduce_runs() {
    let mut load = Load::inserts(200 * MIB, small(Preset::Balanced));
    let (without, _) = run(&load);
    load.seeks_per_write = 1.0;
    let (with, last) = run(&load);
    let consolidated: u64 = last
        .io_stats
        .levels
        .iter()
        .map(|level| level.consolidated)
        .sum();
    assert!(consolidated > 0);
    let (without, with) = (without.cumulative(), with.cumulative());
    assert!(with.runs_per_seek() < without.runs_per_seek());
    assert!(with.write_amplification > without.write_amplification);
}

/// Inserts supersede nothing, so the bound on space costs little. Without filters, each later segment counts as
/// superseding.
#[test]
fn the_bound_on_space_costs_inserts_little() {
    let cost = |max_space_amp, bits_per_key| {
        let options = KeyspaceOptions {
            max_space_amp,
            bits_per_key,
            segment_limit: SegmentLimit::Fixed(4),
            ..small(Preset::Balanced)
        };
        let (_, last) = run(&Load::inserts(160 * MIB, options));
        last.io_stats.write_amplification()
    };
    let (unbounded, bounded) = (cost(f64::INFINITY, 10.0), cost(1.6, 10.0));
    assert!(bounded < unbounded * 1.03, "{bounded}, {unbounded}");
    let (unbounded, blind) = (cost(f64::INFINITY, 0.0), cost(1.6, 0.0));
    assert!(blind > unbounded * 1.04, "{blind}, {unbounded}");
}

#[test]
fn sequential_inserts_only_move() {
    let mut load = Load::inserts(100 * MIB, small(Preset::Balanced));
    load.distribution = KeyDistribution::Sequential;
    let (_, last) = run(&load);
    assert!(last.io_stats.write_amplification() < 2.3);
    assert!(last.runs_per_seek <= 1.01, "{}", last.runs_per_seek);
}

#[test]
fn deletes_of_everything_leave_nothing() {
    let mut load = Load::inserts(20 * MIB, small(Preset::Balanced)).overwritten(12.0);
    load.deletes = 1.0;
    let (_, last) = run(&load);
    let bytes: u64 = last.levels.iter().map(|level| level.bytes).sum();
    assert!(bytes < 4 * MIB, "{bytes}");
    assert!(last.live_bytes < 1 << 10, "{}", last.live_bytes);
}

fn options() -> impl Strategy<Value = KeyspaceOptions> {
    let limits = prop_oneof![
        Just(SegmentLimit::Scaled),
        (1..=12_usize).prop_map(SegmentLimit::Fixed)
    ];
    let space = prop_oneof![Just(f64::INFINITY), Just(1.6)];
    let scalings = prop_oneof![Just(1.0), 0.4..1.0];
    (2.0..12.0, scalings, limits, space, 1..6_usize).prop_map(
        |(size_ratio, scaling, segment_limit, max_space_amp, level0_runs)| KeyspaceOptions {
            size_ratio,
            scaling,
            level0_runs,
            segment_limit,
            max_space_amp,
            ..small(Preset::Balanced)
        },
    )
}

fn loads() -> impl Strategy<Value = Load> {
    let distributions = prop_oneof![
        Just(KeyDistribution::Uniform),
        Just(KeyDistribution::Sequential),
        (0.5..1.5).prop_map(|exponent| KeyDistribution::Zipfian { exponent }),
    ];
    let parts = (0.0..3.0, 0.0..1.0, 0.0..1.0, 0.0..0.1);
    let gone = (0.0..0.001, 0.001..0.3, 0.0..1.0, 1000..500_000_u64);
    (
        options(),
        distributions,
        parts,
        gone,
        10..400_u64,
        any::<bool>(),
    )
        .prop_map(
            |(
                options,
                distribution,
                (times, deletes, merges, seeks),
                gone,
                value_bytes,
                filters,
            )| {
                let mut load = Load::inserts(16 * MIB, options).overwritten(times);
                (load.distribution, load.deletes) = (distribution, deletes);
                load.merges = merges * (1.0 - deletes);
                if distribution != KeyDistribution::Sequential {
                    load.range_deletes_per_write = gone.0;
                }
                load.range_delete_part = gone.1;
                if seeks < 0.05 {
                    load.merges = 0.0;
                    (load.expiring, load.time_to_live) = (gone.2, gone.3);
                }
                load.seeks_per_write = seeks;
                load.values = ValueSize::same(value_bytes);
                load.filters = filters;
                load
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// After any load, levels are within their capacities, and the tree holds each live key and at most
    /// the entries written. Files stay disjoint, or a debug assertion fails.
    #[test]
    fn any_load_stays_within_capacities(load in loads()) {
        let (_, last) = run(&load);
        let entries: u64 = last.levels.iter().map(|level| level.entries).sum();
        let live = last.live_bytes as f64 / load.entry_bytes();
        // Each level shows whole entries. The order of range deletes and writes in one memtable is not simulated, so the
        // part of the keys that those of a memtable cover makes the tree inexact.
        let rounded = last.level_count as f64;
        let covered_per_write = load.range_deletes_per_write * load.range_delete_part;
        let writes_max = load.options.memtable_bytes as f64 / load.key_bytes as f64;
        let exact = 0.995 - 0.2 * (covered_per_write * writes_max).min(1.0);
        // The live keys expire flush by flush, and the tree estimates what has expired of each segment. A segment that all
        // flushes are merged into lacks up to 4 % of the keys with such entries. Where few keys are live, it lacks up to about
        // a fifth of them.
        let estimated = (0.05 * load.expiring * load.keys as f64).min(0.2 * live);
        prop_assert!(entries as f64 + rounded + estimated >= live * exact, "{entries} of {live}");
        prop_assert!(entries as f64 <= load.writes() as f64 * 1.001);
        if load.draws == 0 && load.range_deletes_per_write == 0.0 && load.expiring == 0.0 {
            prop_assert!(entries as f64 >= load.inserts as f64 * 0.999);
        }
        for level in &last.levels[1..last.level_count] {
            let values = (level.entries - level.tombstones - level.operands) as f64;
            let operands = level.operands * (load.key_bytes + load.operand_bytes);
            let others = (level.tombstones * load.key_bytes + operands) as f64;
            let logical = values * load.entry_bytes() + others;
            prop_assert!(logical <= level.capacity as f64 * 1.01, "{level:?}");
        }
    }

    /// No insert is dropped: the bytes written are those read and those held.
    #[test]
    fn bytes_of_inserts_are_conserved(options in options()) {
        let (_, last) = run(&Load::inserts(60 * MIB, options));
        let levels = || last.io_stats.levels.iter();
        let written: u64 = levels().map(LevelIoStats::written).sum();
        let read: u64 = levels().map(|level| level.read + level.consolidation_read).sum();
        let held: u64 = last.levels.iter().map(|level| level.bytes).sum();
        let apart = written as f64 - read as f64 - held as f64;
        prop_assert!(apart.abs() <= 0.01 * written as f64, "{written} - {read}, {held}");
    }
}

/// With so many small memtables, tables of the deeper levels could have a few values in each of thousands of
/// transient logs.
#[test]
fn tables_have_wide_slices_of_transient_logs() {
    let options = KeyspaceOptions {
        memtable_bytes: 64 << 10,
        medium_from: 128,
        size_ratio: 3.0,
        scaling: 1.0,
        ..small(Preset::Balanced)
    };
    let thin = options.file_bytes / 512;
    let mut load = Load::inserts(400_000_000, options);
    load.keys = 400_000;
    load.inserts = load.keys;
    load.values = ValueSize::same(984);
    let mut run = Run::new(&load);
    let (mut bytes, mut slices) = (0, 0);
    while run.written < load.inserts {
        run.insert(run.per_flush(true).min(load.inserts - run.written));
        for file in run.tree.summary.levels.iter().skip(1).flatten() {
            bytes += file.transient_bytes;
            slices += u64::from(file.transient_files);
        }
    }
    let slice = bytes / slices;
    // If thin slices were not rewritten, this would be 2.8 times.
    assert!(
        2 * slice > 7 * thin,
        "slices of {slice} bytes; {thin} bytes are thin"
    );
}
