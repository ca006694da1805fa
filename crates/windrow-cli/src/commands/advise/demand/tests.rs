//! Demands from flags and sources, and the loads that are simulated for them.

use super::flags::WEIGHTS;
use super::*;
use crate::commands::cost::Device;
use crate::commands::simulate::quantities::TimeToLive;

fn described() -> DemandArgs {
    DemandArgs {
        keys: Some(1000),
        value_size: ValueSize::same(100),
        updates: Some(3.0),
        gets: Some(1.0),
        ..DemandArgs::default()
    }
}

#[test]
fn weights_become_fractions() {
    let demand = Demand::new(&described(), &Known::default()).unwrap();
    assert!((demand.fractions.updates - 0.75).abs() < 1e-9);
    assert!((demand.fractions.sum() - 1.0).abs() < 1e-9);
    assert_eq!(demand.key_bytes, KEY_BYTES);
    assert!((demand.bytes() - 116_000.0).abs() < 1e-6);
}

#[test]
fn flags_go_before_the_source() {
    let known = Known {
        keys: Some(7),
        key_bytes: Some(8),
        entry_bytes: Some(EntryBytes {
            mean: 36.0,
            deletes: 0.125,
        }),
        weights: Some(Fractions {
            scans: 1.0,
            ..Fractions::default()
        }),
        scan_length: Some(5.0),
        ..Known::default()
    };
    let demand = Demand::new(&described(), &known).unwrap();
    assert_eq!((demand.keys, demand.key_bytes), (1000, 8));
    assert!(demand.fractions.scans.abs() < 1e-9);
    let alone = Demand::new(&DemandArgs::default(), &known).unwrap();
    assert_eq!(alone.keys, 7);
    // One in eight has a key of 8 bytes alone.
    assert_eq!(alone.values, ValueSize::same(32));
    assert_eq!(alone.values_from, [22]);
    assert!((alone.fractions.scans - 1.0).abs() < 1e-9);
}

#[test]
fn what_is_missing_is_asked_for() {
    let refused = |args: DemandArgs| {
        let error = Demand::new(&args, &Known::default()).unwrap_err();
        error.to_string()
    };
    let without = |change: &dyn Fn(&mut DemandArgs)| {
        let mut args = described();
        change(&mut args);
        refused(args)
    };
    assert!(without(&|args| args.keys = None).contains("--bytes"));
    assert!(without(&|args| args.keys = Some(1)).contains("two entries"));
    assert!(without(&|args| args.keys = Some(1 << 60)).contains("32 PiB"));
    assert!(without(&|args| args.value_size.clear()).contains("--value-size"));
    assert!(without(&|args| args.scans = Some(1.0)).contains("--scan-length"));
    assert!(without(&|args| args.machine.device = Device::Nvme).contains("--memory"));
    assert!(without(&|args| args.distribution.exponent = Some(0.9)).contains("--distribution"));
    assert!(without(&|args| args.deletes = Some(3.1)).contains("more deletes than"));
    assert!(without(&|args| args.operand_size = Some(8)).contains("--merges"));
    assert!(without(&|args| args.range_deletes = Some(0.1)).contains("--range-delete-part"));
    assert!(without(&|args| args.range_delete_part = Some(0.1)).contains("--range-deletes"));
    assert!(without(&|args| args.expiring = Some(0.1)).contains("--time-to-live"));
    let life = Some(TimeToLive::Writes(500));
    assert!(without(&|args| args.time_to_live = life).contains("--expiring"));
    let expiring = |part| without(&|args| (args.expiring, args.time_to_live) = (Some(part), life));
    assert!(expiring(1.5).contains("values that expire"));
    assert!(expiring(1.0).contains("of 1000 keys at most 49"));
    let ranges = |weight, part| {
        without(&|args| (args.range_deletes, args.range_delete_part) = (Some(weight), Some(part)))
    };
    assert!(ranges(0.1, 0.0).contains("above 0"));
    assert!(ranges(3.1, 0.001).contains("than writes of keys"));
    assert!(ranges(0.1, 0.5).contains("stay stored"));
    let no_operation = without(&|args| (args.updates, args.gets) = (None, None));
    assert!(no_operation.contains("--inserts"));
}

#[test]
fn sums_of_extreme_weights_are_numbers() {
    let far = DemandArgs {
        updates: Some(*WEIGHTS.start()),
        scans: Some(*WEIGHTS.end()),
        scan_length: Some(*WEIGHTS.end()),
        ..described()
    };
    let demand = Demand::new(&far, &Known::default()).unwrap();
    assert!(demand.fractions.updates > 0.0);
    assert!((demand.fractions.sum() - 1.0).abs() < 1e-9);
}

/// 1000 keys under so many inserts, updates and deletes.
fn writing([inserts, updates, deletes]: [f64; 3]) -> Demand {
    let args = DemandArgs {
        inserts: Some(inserts),
        updates: Some(updates),
        deletes: Some(deletes),
        ..described()
    };
    Demand::new(&args, &Known::default()).unwrap()
}

#[test]
fn writes_that_count_are_those_of_a_tree_of_this_size() {
    let writes = |of| writing(of).writes();
    assert_eq!(writes([1.0, 0.0, 0.0]), (0, 500));
    assert_eq!(writes([1.0, 1.0, 0.0]), (500, 1000));
    // A fifth of what counts are inserts, then less of fewer.
    assert_eq!(writes([1.0, 4.0, 0.0]), (2000, 2500));
    assert_eq!(writes([1.0, 9.0, 0.0]), (2000, 2222));
    assert_eq!(writes([0.0, 1.0, 0.0]), (2000, 2000));
    // Only reads: the tree as the inserts leave it.
    assert_eq!(writes([0.0, 0.0, 0.0]), (0, 500));
}

#[test]
fn sources_with_too_many_deletes_count_as_many_as_can_go_on() {
    let known = Known {
        source: "trace".to_owned(),
        weights: Some(Fractions {
            inserts: 1.0,
            updates: 2.0,
            deletes: 5.0,
            gets: 4.0,
            ..Fractions::default()
        }),
        ..Known::default()
    };
    let args = DemandArgs {
        updates: None,
        gets: None,
        ..described()
    };
    let demand = Demand::new(&args, &known).unwrap();
    assert!((demand.fractions.deletes - 0.3).abs() < 1e-9);
    assert!((demand.course().deletes - 0.5).abs() < 1e-9);
    assert!(demand.notes[0].contains("more deletes than"));
    // Where weights are given, the source has no part in it.
    let demand = Demand::new(&described(), &known).unwrap();
    assert!(demand.notes.is_empty() && demand.fractions.deletes.abs() < 1e-9);
}

#[test]
fn deletes_leave_as_many_keys_as_are_stored() {
    let options = KeyspaceOptions::default();
    let filled = writing([1.0, 0.0, 0.0]).load(&options);
    let filled = windrow::simulation::simulate(&filled).unwrap();
    let stored = filled.samples.last().unwrap().live_bytes;
    for (of, deletes, keys) in [
        // Inserts write again what is deleted, and no tree shrinks.
        ([50.0, 0.0, 50.0], 0.5, 2000),
        ([0.0, 50.0, 50.0], 0.5, 2000),
        ([25.0, 25.0, 50.0], 0.5, 2000),
        ([20.0, 60.0, 20.0], 0.2, 1250),
        ([0.0, 80.0, 20.0], 0.2, 1250),
        // Of the draws a third are deletes, and the other inserts are of new keys.
        ([60.0, 20.0, 20.0], 1.0 / 3.0, 1500),
        ([100.0, 0.0, 0.0], 0.0, 1000),
    ] {
        let load = writing(of).load(&options);
        assert!((load.deletes - deletes).abs() < 1e-9, "{of:?}");
        assert_eq!((load.keys, load.inserts), (keys, 1000), "{of:?}");
        let outcome = windrow::simulation::simulate(&load).unwrap();
        let live = outcome.samples.last().unwrap().live_bytes;
        let apart = live.abs_diff(stored);
        assert!(apart * 1000 < stored, "{of:?}: {live} {stored}");
    }
}

/// What range deletes and expiry take away comes again, so as many keys as before are stored in the end.
#[test]
fn range_deletes_and_expiry_leave_as_many_keys_as_are_stored() {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 64 << 10;
    options.file_bytes = 16 << 10;
    options.base_bytes = 256 << 10;
    let keys = 20_000;
    let plain = || DemandArgs {
        keys: Some(keys),
        updates: Some(1.0),
        value_size: ValueSize::same(40),
        ..DemandArgs::default()
    };
    let ranges = DemandArgs {
        merges: Some(0.2),
        range_deletes: Some(0.01),
        range_delete_part: Some(0.001),
        ..plain()
    };
    let life = DemandArgs {
        expiring: Some(0.5),
        time_to_live: Some(TimeToLive::Writes(keys)),
        ..plain()
    };
    for args in [plain(), ranges, life] {
        let demand = Demand::new(&args, &Known::default()).unwrap();
        let load = demand.load(&options);
        assert!((load.merges - args.merges.unwrap_or(0.0) / 1.2).abs() < 1e-9);
        let outcome = windrow::simulation::simulate(&load).unwrap();
        let live = outcome.samples.last().unwrap().live_bytes as f64 / demand.bytes();
        assert!((live - 1.0).abs() < 0.05, "{live} {args:?}");
        // A part of the store has the same course.
        let part = Demand {
            keys: keys / 4,
            ..demand.clone()
        };
        let (all, part) = (load.keys as f64, part.load(&options).keys as f64);
        assert!((all / part - 4.0).abs() < 0.01, "{all} {part}");
    }
}

// A little more of one kind of operation changes what is simulated by a little.
#[test]
fn what_is_simulated_has_no_jumps() {
    let options = KeyspaceOptions::default();
    let of = |weights: [f64; 3]| {
        let demand = Demand {
            keys: 1_000_000_000,
            ..writing(weights)
        };
        let (load, (draws, counted)) = (demand.load(&options), demand.writes());
        let (draws, counted) = (draws as f64 / 1e9, counted as f64 / 1e9);
        // What is drawn, and deleted, and how often a key is.
        [
            draws,
            counted,
            draws * load.deletes,
            draws / load.keys as f64 * 1e9,
        ]
    };
    let mut points = 0;
    for first in 0..=100_u32 {
        for second in 0..=100 - first {
            let (inserts, updates) = (f64::from(first), f64::from(second));
            let deletes = 100.0 - inserts - updates;
            if deletes > inserts + updates {
                continue;
            }
            let here = of([inserts, updates, deletes]);
            for step in [[0.01, 0.0, 0.0], [0.0, 0.01, 0.0], [0.01, 0.01, 0.01]] {
                let there = of([inserts + step[0], updates + step[1], deletes + step[2]]);
                let apart = here
                    .iter()
                    .zip(there)
                    .map(|(one, other)| (one - other).abs());
                let most = apart.fold(0.0, f64::max);
                assert!(
                    most < 0.005,
                    "{inserts} {updates} {deletes}: {here:?} {there:?}"
                );
            }
            points += 1;
        }
    }
    assert!(points > 3000);
}
