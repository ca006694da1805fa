//! Searches over small trees: what is recommended, and what is left out.

use std::sync::atomic::{AtomicUsize, Ordering};

use windrow::simulation::{KeyDistribution, ValueSize};

use super::candidate::PEAK;
use super::conclude::FINALISTS;
use super::ladders::{BITS, Choice, Placement, SCALINGS, placements, with, without_bits};
use super::*;
use crate::commands::cost::Device;
use crate::commands::cost::{Fractions, Level, OtherWrites, Shape};

fn demand(fractions: Fractions) -> Demand {
    Demand {
        keys: 15_000,
        key_bytes: 16,
        shared_key_bytes: 0,
        values: ValueSize::same(100),
        values_from: vec![100],
        distribution: KeyDistribution::Uniform,
        fractions,
        scan_length: 10.0,
        memory: None,
        reads_counted: None,
        device: Device::Memory.cost(),
        notes: Vec::new(),
        other_writes: OtherWrites::default(),
    }
}

/// The same with values of these sizes.
fn with_values(mut demand: Demand, bytes: &[u64]) -> Demand {
    let size = |&bytes: &u64| ValueSize {
        fraction: 1.0,
        bytes,
    };
    demand.values = bytes.iter().map(size).collect();
    demand.values_from = bytes.to_vec();
    demand
}

fn writes(writes: f64) -> Fractions {
    Fractions {
        updates: writes,
        gets: (1.0 - writes) / 2.0,
        scans: (1.0 - writes) / 2.0,
        ..Fractions::default()
    }
}

/// A tree small enough to have several levels soon.
fn small() -> KeyspaceOptions {
    let mut options = KeyspaceOptions::default();
    options.memtable_bytes = 128 << 10;
    options.file_bytes = 32 << 10;
    options.base_bytes = 512 << 10;
    options
}

fn advice(demand: &Demand, base: &KeyspaceOptions, bounds: Bounds) -> Result<Advice> {
    let request = Request {
        demand,
        base,
        now: None,
        free: Free::ALL,
        bounds,
        wants_neighbours: false,
    };
    advise(&request, &|| {})
}

#[test]
fn the_frontier_has_nothing_that_is_beaten_and_what_is_recommended() {
    for fraction in [1.0, 0.5, 0.0] {
        let advice = advice(&demand(writes(fraction)), &small(), Bounds::default()).unwrap();
        let frontier = &advice.frontier;
        assert!(!frontier.is_empty());
        for candidate in frontier {
            let beaten = frontier.iter().find(|other| candidate.is_beaten_by(other));
            assert!(beaten.is_none(), "{candidate:?} {beaten:?}");
        }
        // I2
        let is_there = frontier
            .iter()
            .any(|it| it.options == advice.recommended.options);
        assert!(advice.keep_default || is_there, "{fraction}");
        let (best, default) = (&advice.recommended.costs, &advice.default.costs);
        assert!(best.operation <= default.operation);
        if !advice.keep_default {
            // Of what is recommended, which may be simpler than the best.
            let saved = 1.0 - best.operation / default.operation;
            assert!((advice.saving - saved).abs() < 1e-12, "{fraction}");
        }
    }
}

#[test]
fn the_default_is_kept_where_little_is_saved() {
    let all = demand(writes(0.9));
    let first = advice(&all, &small(), Bounds::default()).unwrap();
    let mut base = first.recommended.options.clone();
    // What was recommended, or what is like it in all but a little, is the default the next time.
    base.size_ratio *= 1.01;
    let second = advice(&all, &base, Bounds::default()).unwrap();
    assert!(second.keep_default && second.saving < WORTHWHILE);
    assert_eq!(second.recommended.options, base);
    assert_eq!(second.default.options, base);
}

#[test]
fn who_writes_more_gets_no_more_written_and_no_fewer_segments() {
    let of = |fraction: f64| {
        let advice = advice(&demand(writes(fraction)), &small(), Bounds::default()).unwrap();
        let place = advice.recommended.choice[0];
        (place, advice.recommended.write_amplification)
    };
    let (heavy, light) = (of(0.99), of(0.05));
    assert!(heavy.0 >= light.0, "{heavy:?} {light:?}");
    assert!(heavy.1 <= light.1 * 1.01, "{heavy:?} {light:?}");
}

// I3 of the ladders
#[test]
fn a_segment_limit_that_is_on_no_ladder_comes_between_its_neighbours() {
    use windrow::SegmentLimit::{Fixed, Scaled};
    let steps = |own| {
        let mut base = small();
        base.segment_limit = own;
        let ladders = Ladders::new(&demand(writes(0.5)), &base, Free::ALL);
        let limit = |place| {
            ladders
                .options(&with(ladders.start(), 0, place))
                .segment_limit
        };
        (0..ladders.length(0)).map(limit).collect::<Vec<_>>()
    };
    let ladder = [Fixed(1), Fixed(2), Fixed(4), Scaled, Fixed(12)];
    assert_eq!(steps(Scaled), ladder);
    for (own, place) in [(3, 2), (8, 4)] {
        let mut expected = ladder.to_vec();
        expected.insert(place, Fixed(own));
        assert_eq!(steps(Fixed(own)), expected);
    }
}

#[test]
fn the_search_is_the_same_each_time() {
    let once = || {
        let advice = advice(&demand(writes(0.6)), &small(), Bounds::default()).unwrap();
        serde_json::to_string(&advice).unwrap()
    };
    assert_eq!(once(), once());
}

#[test]
fn a_store_of_many_memtables_is_searched_for_with_a_part() {
    let mut base = small();
    base.memtable_bytes = 8 << 10;
    base.file_bytes = 8 << 10;
    base.base_bytes = 64 << 10;
    let demand = demand(writes(0.7));
    assert!(demand.bytes() > SEARCHED_MEMTABLES * base.memtable_bytes as f64);
    let simulated = AtomicUsize::new(0);
    let free = Free {
        size_ratio: true,
        segment_limit: true,
        bits_per_key: true,
        ..Free::default()
    };
    let request = Request {
        demand: &demand,
        base: &base,
        now: None,
        free,
        bounds: Bounds::default(),
        wants_neighbours: false,
    };
    let advice = advise(&request, &|| {
        simulated.fetch_add(1, Ordering::Relaxed);
    });
    let advice = advice.unwrap();
    // Only those that come into question have all entries, and all that is on the frontier has.
    let whole = simulated.into_inner() - advice.compared / BITS.len();
    assert!((2..=FINALISTS).contains(&whole), "{whole}");
    let mut trees: Vec<_> = advice
        .frontier
        .iter()
        .map(|it| without_bits(&it.choice))
        .collect();
    trees.sort_unstable();
    trees.dedup();
    assert!(trees.len() <= whole);
    let ladders = Ladders::new(&demand, &base, free);
    let mut alone = Trees::new(&demand, demand.keys, &ladders, &|| {});
    alone.simulate(&trees).unwrap();
    for candidate in &advice.frontier {
        let reported = alone.candidate(&candidate.choice).unwrap();
        assert_eq!(reported.costs, candidate.costs);
    }
    assert_eq!(advice.default.options, base);
    // Nobody has asked for what is one step away.
    assert!(advice.neighbours.is_empty());
}

#[test]
fn what_is_one_step_away_is_simulated_with_all_entries() {
    let mut base = small();
    base.memtable_bytes = 8 << 10;
    base.file_bytes = 8 << 10;
    base.base_bytes = 64 << 10;
    let demand = demand(writes(0.7));
    let request = Request {
        demand: &demand,
        base: &base,
        now: None,
        free: Free {
            scaling: true,
            ..Free::default()
        },
        bounds: Bounds::default(),
        wants_neighbours: true,
    };
    let advice = advise(&request, &|| {}).unwrap();
    let ladders = Ladders::new(&demand, &base, request.free);
    let mut whole = Trees::new(&demand, demand.keys, &ladders, &|| {});
    assert!(!advice.neighbours.is_empty());
    for (_, neighbour) in &advice.neighbours {
        whole.simulate(&[neighbour.choice]).unwrap();
        let reported = whole.candidate(&neighbour.choice).unwrap();
        assert_eq!(reported.costs, neighbour.costs);
    }
}

#[test]
fn bounds_hold_or_nothing_is_recommended() {
    let demand = demand(writes(0.9));
    let free = advice(&demand, &small(), Bounds::default()).unwrap();
    let bound = free.default.space_amplification_max.min(1.3);
    let bounds = Bounds {
        space_amplification: Some(bound),
        memory: None,
    };
    let mut base = small();
    base.max_space_amp = bound;
    let bounded = advice(&demand, &base, bounds).unwrap();
    for candidate in &bounded.frontier {
        assert!(candidate.space_amplification_max <= bound * PEAK);
    }
    let refused = |bounds| advice(&demand, &small(), bounds).unwrap_err().to_string();
    let disk = refused(Bounds {
        space_amplification: Some(1.001 / PEAK),
        memory: None,
    });
    assert!(disk.contains("disk") && disk.contains("least"), "{disk}");
    let memory = refused(Bounds {
        space_amplification: None,
        memory: Some(1000),
    });
    assert!(memory.contains("memory of 1000 B"), "{memory}");
}

#[test]
fn what_is_chosen_already_is_not_searched() {
    let base = small();
    let request = Request {
        demand: &demand(writes(0.5)),
        base: &base,
        now: None,
        free: Free {
            scaling: true,
            ..Free::default()
        },
        bounds: Bounds::default(),
        wants_neighbours: true,
    };
    let advice = advise(&request, &|| {}).unwrap();
    for candidate in &advice.frontier {
        let mut options = candidate.options.clone();
        options.scaling = base.scaling;
        assert_eq!(options, base);
    }
    assert_eq!(advice.compared, SCALINGS.len());
    for (name, neighbour) in &advice.neighbours {
        assert_eq!(*name, "scaling");
        assert!((neighbour.options.scaling - advice.recommended.options.scaling).abs() > 1e-9);
    }
}

#[test]
fn placements_differ_in_what_they_do() {
    let of = |bytes: &[u64]| with_values(demand(writes(1.0)), bytes);
    // Below 64 bytes a value stays where it is, under all thresholds.
    assert_eq!(placements(&of(&[63]), &small()).len(), 1);
    // All in place, all in the log, and in runs with two places to come back.
    let one = placements(&of(&[400]), &small());
    assert_eq!(one.len(), 4);
    assert!(one.contains(&Placement::of(&small())));
    // Where values have about a size, they are all on one side of a threshold.
    let mut about = of(&[400]);
    about.values_from = vec![362];
    for placement in placements(&about, &small()) {
        let mut options = small();
        placement.apply(&mut options);
        let classes = [362, 400, 511].map(|bytes| about.class(bytes, &options));
        assert!(classes.iter().all(|it| *it == classes[0]), "{placement:?}");
    }
    // Neither thresholds nor options are ever contradictory.
    let demand = of(&[9, 104, 1004, 5000, 70_000]);
    let many = placements(&demand, &small());
    assert!(many.len() > 8 && many.len() < 60, "{}", many.len());
    for placement in many {
        let mut options = small();
        placement.apply(&mut options);
        options.validate().unwrap();
    }
}

/// What takes so much disk at worst, and so many filter bits, and is simulated as a tree of `small` options.
fn made_up(space: f64, bits_per_key: f64) -> Candidate {
    let mut options = small();
    options.bits_per_key = bits_per_key;
    let shape = Shape {
        levels: vec![Level {
            entries: 1e6,
            bytes: 1e8,
            runs: 1.0,
        }],
        space_amplification_max: space,
        ..Shape::default()
    };
    let choice = [0, 0, 0, 0, 0];
    Candidate::new(&shape, &demand(writes(0.0)), options, choice)
}

#[test]
fn a_bound_that_nobody_has_set_leaves_something() {
    let aim = small().max_space_amp;
    let spaces = |allowed: Vec<Candidate>| -> Vec<f64> {
        let mut spaces: Vec<f64> = allowed
            .iter()
            .map(|it| it.space_amplification_max)
            .collect();
        spaces.sort_by(f64::total_cmp);
        spaces
    };
    let all = [1.2, 2.7, 2.9].map(|space| made_up(space, 10.0));
    let kept = |bounds: Bounds, default: f64| {
        let default = made_up(default, 10.0);
        spaces(bounds.allowed(&all, Some(&default)))
    };
    let free = Bounds::default();
    // The default is within what it takes itself, to the last bit, and nothing need be below what is aimed at.
    assert_eq!(kept(free, 2.7), [1.2, 2.7]);
    assert_eq!(kept(free, aim / 2.0), [1.2]);
    // Where that leaves nothing, it was not asked for.
    let larger = [made_up(2.9, 10.0), made_up(3.3, 10.0)];
    let default = made_up(2.7, 10.0);
    assert_eq!(spaces(free.allowed(&larger, Some(&default))), [2.9, 3.3]);
    // What was asked for holds, also for the default.
    let asked = Bounds {
        space_amplification: Some(2.0),
        memory: None,
    };
    assert_eq!(kept(asked, 2.7), [1.2]);
    assert!(asked.allowed(&larger, Some(&default)).is_empty());
    let error = asked.refused(&larger);
    assert!(error.to_string().contains("the least is 2.90"), "{error}");
}

#[test]
fn memory_holds_where_the_default_alone_keeps_to_its_disk() {
    let default = made_up(1.2, 16.0);
    let lean = made_up(2.9, 0.0);
    let bounds = Bounds {
        space_amplification: None,
        memory: Some(whole(lean.costs.memory_bytes) + 1),
    };
    assert!(lean.costs.memory_bytes < default.costs.memory_bytes);
    let all = [default.clone(), lean];
    let allowed = bounds.allowed(&all, Some(&default));
    assert_eq!(allowed.len(), 1);
    assert!((allowed[0].space_amplification_max - 2.9).abs() < 1e-9);
}

#[test]
fn what_decides_is_held_to_what_the_default_takes_with_all_entries() {
    let mut base = small();
    base.memtable_bytes = 16 << 10;
    base.max_space_amp = 1.06;
    let demand = with_values(demand(writes(0.9)), &[400]);
    let free = Free {
        placement: true,
        ..Free::default()
    };
    let request = Request {
        demand: &demand,
        base: &base,
        now: None,
        free,
        bounds: Bounds::default(),
        wants_neighbours: true,
    };
    let ladders = Ladders::new(&demand, &base, free);
    let start = ladders.start();
    let choices: Vec<_> = (0..ladders.length(2))
        .map(|place| with(start, 2, place))
        .collect();
    let most = |trees: &Trees<'_>, choice| -> f64 {
        trees.candidate(choice).unwrap().space_amplification_max
    };
    let mut whole = Trees::new(&demand, demand.keys, &ladders, &|| {});
    whole.simulate(&choices).unwrap();
    let limit = most(&whole, &start).max(base.max_space_amp * PEAK);
    // In a part of a few flushes, duplicates take more of the disk.
    let mut part = Trees::new(&demand, 200, &ladders, &|| {});
    part.simulate(&choices).unwrap();
    let between = limit..most(&part, &start);
    assert!(choices.iter().any(|it| between.contains(&most(&whole, it))));
    let conclusion = Conclusion {
        request: &request,
        ladders: &ladders,
        tick: &|| {},
    };
    let advice = conclusion.advice(part).unwrap();
    assert!(advice.default_is_allowed);
    for candidate in &advice.frontier {
        assert!(candidate.space_amplification_max <= limit);
    }
}

// I2 of what decides.
#[test]
fn only_trees_with_all_entries_are_refused_and_others_are_tried_first() {
    let mut base = small();
    base.memtable_bytes = 16 << 10;
    let demand = demand(writes(0.9));
    let free = Free {
        size_ratio: true,
        segment_limit: true,
        ..Free::default()
    };
    let ladders = Ladders::new(&demand, &base, free);
    let all: Vec<Choice> = (0..ladders.length(0))
        .flat_map(|segments| (0..ladders.length(1)).map(move |ratio| (segments, ratio)))
        .map(|(segments, ratio)| with(with(ladders.start(), 0, segments), 1, ratio))
        .collect();
    let mut whole = Trees::new(&demand, demand.keys, &ladders, &|| {});
    whole.simulate(&all).unwrap();
    let most = |trees: &Trees<'_>| -> Vec<f64> {
        let all = trees.candidates().into_iter();
        let mut most: Vec<f64> = all.map(|it| it.space_amplification_max).collect();
        most.sort_by(f64::total_cmp);
        most.dedup();
        most
    };
    let least = most(&whole)[0];
    let bounds = Bounds {
        space_amplification: Some(least / PEAK * (1.0 + 1e-9)),
        memory: None,
    };
    let request = Request {
        demand: &demand,
        base: &base,
        now: None,
        free,
        bounds,
        wants_neighbours: false,
    };
    let conclude = |keys: u64, bounds: Bounds| {
        let simulated = AtomicUsize::new(0);
        let tick = || {
            simulated.fetch_add(1, Ordering::Relaxed);
        };
        let mut part = Trees::new(&demand, keys, &ladders, &|| {});
        part.simulate(&all).unwrap();
        let is_within = most(&part)[0] <= least;
        let request = Request { bounds, ..request };
        let conclusion = Conclusion {
            request: &request,
            ladders: &ladders,
            tick: &tick,
        };
        let advice = conclusion.advice(part);
        (advice, is_within, simulated.into_inner())
    };
    // The part alone would leave nothing; of so many trees with all entries, some do.
    let (advice, is_within, simulated) = conclude(400, bounds);
    let advice = advice.unwrap();
    assert!(!is_within && simulated > 3, "{is_within} {simulated}");
    assert!(advice.recommended.space_amplification_max <= least * (1.0 + 1e-6));
    // What nothing keeps to is refused in the end, after so many trees and no more.
    let none = Bounds {
        space_amplification: Some(1.0 / PEAK),
        memory: None,
    };
    let (advice, _, simulated) = conclude(400, none);
    let error = advice.unwrap_err().to_string();
    assert!(error.contains("settings keeps to disk"), "{error}");
    assert!((4..=12).contains(&simulated), "{simulated}");
}
