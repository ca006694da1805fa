//! Merges, range deletes and values that expire: the simulation against the engine.

use windrow::Preset;
use windrow::simulation::KeyDistribution;

use super::engine::{autumn, check, check_within, inserts, leveling, small, updates};

/// How far all bytes written may be apart if values expire.
const EXPIRING_APART_MAX: f64 = 0.12;

#[test]
fn merges() {
    for (options, merges, deletes) in [
        (small(Preset::Balanced), 0.2, 0.0),
        (small(Preset::Balanced), 1.0, 0.0),
        (leveling(4.0), 0.7, 0.1),
        (autumn(0.4), 0.5, 0.2),
    ] {
        let mut load = updates(options);
        (load.merges, load.deletes) = (merges, deletes);
        check(&load);
    }
}

/// Memtables fold the operands of hot keys, and operands without a base become values in the last level.
#[test]
fn merges_of_hot_and_of_new_keys() {
    let mut hot = updates(small(Preset::Balanced));
    hot.distribution = KeyDistribution::Zipfian { exponent: 0.99 };
    let mut new = inserts(leveling(4.0));
    (new.inserts, new.draws) = (0, new.keys);
    for mut load in [hot, new] {
        load.merges = 0.8;
        check(&load);
    }
}

/// Ranges of few keys, of the keys of several files, and of a fifth of all.
#[test]
fn range_deletes() {
    for (options, writes, part) in [
        (small(Preset::Balanced), 100.0, 0.001),
        (leveling(4.0), 500.0, 0.01),
        (small(Preset::Balanced), 2000.0, 0.03),
        (leveling(4.0), 2000.0, 0.03),
        (small(Preset::Balanced), 5000.0, 0.2),
        (autumn(0.8), 5000.0, 0.2),
    ] {
        let mut load = updates(options);
        (load.range_deletes_per_write, load.range_delete_part) = (1.0 / writes, part);
        check(&load);
    }
}

/// Values that live for a part of the load, some of them or all.
#[test]
fn expiring_values() {
    for (options, expiring, time_to_live) in [
        (small(Preset::Balanced), 0.3, 5_000),
        (leveling(4.0), 0.5, 10_000),
        (small(Preset::Balanced), 1.0, 10_000),
    ] {
        let mut load = updates(options);
        (load.expiring, load.time_to_live) = (expiring, time_to_live);
        check_within(&load, EXPIRING_APART_MAX);
    }
}

/// Every write is of a new key, so whole files expire in the end.
#[test]
fn new_keys_that_expire() {
    for options in [small(Preset::Balanced), leveling(4.0)] {
        let mut load = inserts(options);
        (load.expiring, load.time_to_live) = (1.0, 15_000);
        check_within(&load, EXPIRING_APART_MAX);
    }
    let mut load = inserts(small(Preset::Balanced));
    load.distribution = KeyDistribution::Sequential;
    (load.expiring, load.time_to_live) = (1.0, 15_000);
    check_within(&load, EXPIRING_APART_MAX);
}
