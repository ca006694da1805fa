//! Garnering on numbers: published figures, levels that come and go, and the bound on space.

use super::Random;
use super::model::Model;
use crate::base::Kind;
use crate::base::limits::LEVELS_MAX;
use crate::options::{KeyspaceOptions, Preset};
use crate::policy::capacities::capacities;
use crate::policy::scores::scores;
use crate::policy::{Plan, Tree, bounded_capacities, pending_bytes, plan};

const ENTRY_BYTES: u64 = 100;

/// Small trees: 100 entries to a memtable, 400 to level 1 while it is the only one.
fn small(preset: Preset) -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: 10_000,
        file_bytes: 4_000,
        base_bytes: 40_000,
        ..KeyspaceOptions::preset(preset)
    }
}

/// Writes all of `keys` with `kind`, 100 to a flush, and settles after each.
fn write(model: &mut Model, keys: impl IntoIterator<Item = u32>, kind: Kind) {
    let keys: Vec<u32> = keys.into_iter().collect();
    for flush in keys.chunks(100) {
        model.flush(flush.iter().map(|&key| (key, kind)));
        model.settle();
    }
}

#[test]
fn level_one_holds_the_published_part() {
    // The paper's example: c = 0.8, T = 2, L = 6. It says 0.18 %; the formula gives 0.188 %.
    let options = KeyspaceOptions {
        size_ratio: 2.0,
        scaling: 0.8,
        base_bytes: 1 << 40,
        ..KeyspaceOptions::default()
    };
    let capacities = capacities(&options, 6);
    let total: f64 = capacities[1..].iter().map(|&bytes| bytes as f64).sum();
    let fraction = capacities[1] as f64 / total;
    assert!((fraction - 0.00188).abs() < 0.000_005, "{fraction}");
}

#[test]
fn capacities_of_the_deepest_tree_ascend() {
    let options = KeyspaceOptions {
        size_ratio: 5.0,
        scaling: 0.4,
        ..KeyspaceOptions::default()
    };
    let capacities = capacities(&options, LEVELS_MAX);
    assert_eq!(LEVELS_MAX, 15);
    assert_eq!(capacities[15], u64::MAX);
    assert!(capacities[1..].is_sorted());
    assert!(capacities[1] < u64::MAX);
}

#[test]
fn levels_grow_without_moving_a_byte() {
    let mut model = Model::new(small(Preset::Autumn), ENTRY_BYTES);
    let mut random = Random(3);
    let mut grown = 0;
    for _ in 0..300 {
        model.flush((0..100).map(|_| (random.below(1 << 30), Kind::Value)));
        while let Some(job) = model.start() {
            let (files, levels) = (model.numbers(), model.level_count);
            model.finish(&job);
            if model.level_count != levels {
                grown += 1;
                assert_eq!(model.level_count, levels + 1);
                assert_eq!(model.numbers(), files);
                // The new level stays empty until the one above is over its new capacity.
                assert!(model.summary().level(levels + 1).is_empty());
            }
        }
    }
    assert!(grown >= 2, "{grown}");
    // The published number of levels follows from the capacities: level L holds all data.
    let capacities = capacities(&model.options, model.level_count);
    let total: u64 = model
        .summary()
        .levels
        .iter()
        .flatten()
        .map(|file| file.bytes)
        .sum();
    assert!(total <= capacities.iter().sum());
}

/// The tree crosses the border at which a level is added fifty times, and back.
#[test]
fn a_tree_at_the_border_keeps_its_levels() {
    let mut model = Model::new(small(Preset::Autumn), ENTRY_BYTES);
    // Level 1 alone holds 400 entries.
    write(&mut model, 0..380, Kind::Value);
    let mut resizes = 0;
    let mut largest_burst = 0;
    for _ in 0..50 {
        for kind in [Kind::Value, Kind::Tombstone] {
            let levels = model.level_count;
            let before = model.merged;
            write(&mut model, 380..480, kind);
            write(&mut model, 380..480, kind);
            largest_burst = largest_burst.max(model.merged - before);
            resizes += usize::from(model.level_count != levels);
        }
    }
    assert!(resizes <= 2, "{resizes} changes of the number of levels");
    // Never more than the tree and what was written, twice.
    assert!(largest_burst <= 4 * 480 * ENTRY_BYTES, "{largest_burst}");
}

#[test]
fn levels_shrink_with_the_data() {
    let mut model = Model::new(small(Preset::Balanced), ENTRY_BYTES);
    write(&mut model, 0..6_000, Kind::Value);
    let grown = model.level_count;
    assert!(grown > 1, "{grown}");
    write(&mut model, 0..6_000, Kind::Tombstone);
    // Tombstones sink until nothing is left below them.
    write(&mut model, (0..3_000).map(|key| key * 2), Kind::Tombstone);
    model.compact();
    let before = model.merged;
    model.settle();
    assert_eq!(model.level_count, 1, "of {grown} levels");
    assert_eq!(
        model.merged, before,
        "levels shrink without a burst of compactions"
    );
    model.check_reads();
}

#[test]
fn without_a_bound_capacities_are_nominal() {
    let mut model = Model::new(small(Preset::Autumn), ENTRY_BYTES);
    let mut random = Random(5);
    for _ in 0..30 {
        write(
            &mut model,
            (0..100).map(|_| random.below(1_000)),
            Kind::Value,
        );
        let tree = model.summary();
        assert_eq!(
            bounded_capacities(&tree, &model.options),
            capacities(&model.options, tree.level_count)
        );
    }
}

/// Updates over a fixed set of keys while levels are added: the levels from 1 on take at most
/// `max_space_amp` times the live bytes.
#[test]
fn updates_stay_within_the_space() {
    for (size_ratio, scaling) in [(5.0, 0.8), (5.0, 0.4), (2.0, 0.8), (10.0, 1.0)] {
        for keys in [900, 2_000, 5_000, 12_000] {
            let options = KeyspaceOptions {
                size_ratio,
                scaling,
                ..small(Preset::Balanced)
            };
            let mut model = Model::new(options, ENTRY_BYTES);
            write(&mut model, 0..keys, Kind::Value);
            let mut random = Random(u64::from(keys));
            let mut worst: f64 = 0.0;
            for _ in 0..8 * keys / 100 {
                write(
                    &mut model,
                    (0..100).map(|_| random.below(keys)),
                    Kind::Value,
                );
                let tree = model.summary();
                let deeper: u64 = (1..tree.levels.len())
                    .map(|it| tree.logical_bytes(it))
                    .sum();
                let live = u64::from(keys) * ENTRY_BYTES;
                worst = worst.max(deeper as f64 / live as f64);
            }
            assert!(
                worst <= model.options.max_space_amp,
                "{worst:.2} for {keys} keys, T = {size_ratio}, c = {scaling}"
            );
        }
    }
}

#[test]
fn a_tree_shrinks_when_it_fits_half_of_the_capacity() {
    let options = small(Preset::Autumn);
    // 200 entries are half of what level 1 would hold alone.
    for (entries, shrinks) in [(200, true), (201, false)] {
        let mut model = Model::new(options.clone(), ENTRY_BYTES);
        write(&mut model, 0..entries, Kind::Value);
        model.compact();
        model.level_count = 2;
        let plan = plan(&model.summary(), &options, &[]);
        assert_eq!(plan == Plan::Resize { level_count: 1 }, shrinks, "{plan:?}");
    }
}

/// Entries that compactions rewrite for each of 3000 deletions of any of 24,000 keys.
fn rewritten_per_deletion(per_flush: u32) -> f64 {
    let mut model = Model::new(small(Preset::Balanced), ENTRY_BYTES);
    write(&mut model, 0..24_000, Kind::Value);
    model.compact();
    let mut random = Random(9);
    let before = model.merged;
    for _ in 0..3000 / per_flush {
        model.flush((0..per_flush).map(|_| (random.below(24_000), Kind::Tombstone)));
        model.settle();
    }
    (model.merged - before) as f64 / (3000 * ENTRY_BYTES) as f64
}

/// Tombstones go down early to meet what they hide, but not if a few of them would rewrite the tree.
#[test]
fn scattered_deletions_cost_about_as_much_as_other_writes() {
    let (small, full) = (rewritten_per_deletion(10), rewritten_per_deletion(100));
    assert!(small < 20.0, "{small:.1} in flushes of 10");
    assert!(full < 10.0, "{full:.1} in flushes of 100");
}

#[test]
fn a_queue_keeps_few_tombstones() {
    let mut model = Model::new(small(Preset::Balanced), ENTRY_BYTES);
    write(&mut model, 0..5_000, Kind::Value);
    for first in (0..20_000).step_by(50) {
        let taken = (first..first + 50).map(|key| (key, Kind::Tombstone));
        let added = (first + 5_000..first + 5_050).map(|key| (key, Kind::Value));
        model.flush(taken.chain(added));
        model.settle();
        let tree = model.summary();
        let files = tree.levels[1..].iter().flatten();
        let tombstones: u64 = files.map(|file| file.tombstones).sum();
        assert!(tombstones <= 500, "{tombstones} after {first}");
    }
}

#[test]
fn other_options_are_settled_one_level_at_a_time() {
    let mut model = Model::new(small(Preset::Autumn), ENTRY_BYTES);
    model.options.scaling = 0.4;
    let mut random = Random(5);
    let keys: Vec<u32> = (0..20_000).map(|_| random.below(1 << 30)).collect();
    write(&mut model, keys, Kind::Value);
    let over_full = |model: &Model| {
        let tree = model.summary();
        let capacities = bounded_capacities(&tree, &model.options);
        let levels = 1..tree.level_count;
        levels
            .filter(|&level| tree.logical_bytes(level) > capacities[level])
            .collect::<Vec<_>>()
    };
    assert_eq!(over_full(&model), Vec::<usize>::new());

    let mut options = model.options.clone();
    options.scaling = 1.0;
    let pending = |model: &Model| -> u64 { pending_bytes(&model.summary(), &model.options) };
    model.options = options.clone();
    let at_once = pending(&model);
    let mut left = over_full(&model);
    assert!(left.len() > 1, "{left:?}");
    model.set_options(options);
    assert!(pending(&model) > 0 && pending(&model) < at_once);
    // Writes continue meanwhile.
    let mut rounds = 0;
    while !left.is_empty() {
        model.flush((0..100).map(|_| (random.below(1 << 30), Kind::Value)));
        for _ in 0..20 {
            let Some(job) = model.start() else { break };
            model.finish(&job);
            let scores = scores(&model.summary(), &model.options);
            let deepest = *left.last().unwrap();
            // The levels above the one that shrinks pass on no more than they receive.
            let due: f64 = (1..deepest)
                .map(|level| {
                    let tree = model.summary();
                    let held = tree.logical_bytes(level) as f64;
                    held - held / scores[level].max(1.0)
                })
                .sum();
            assert!(due <= 30_000.0, "{due} due above level {deepest}");
            let now = over_full(&model);
            left.retain(|level| now.contains(level));
            if left.is_empty() {
                break;
            }
        }
        rounds += 1;
        assert!(rounds < 10_000, "{left:?}");
    }
    assert!(rounds > 3, "{rounds}");
    model.settle();
    assert_eq!(over_full(&model), Vec::<usize>::new());
    assert!(model.summary().allowed.iter().all(|&allowed| allowed == 0));
}

#[test]
fn an_over_full_last_level_shrinks_before_the_levels_above_it() {
    let mut model = Model::new(small(Preset::Autumn), ENTRY_BYTES);
    let mut random = Random(7);
    let keys: Vec<u32> = (0..20_000).map(|_| random.below(1 << 30)).collect();
    write(&mut model, keys, Kind::Value);
    let mut options = model.options.clone();
    options.base_bytes /= 8;
    model.set_options(options);
    // The deepest level needs more steps to shrink.
    let mut steps = 0;
    while steps < 200 {
        let job = model.start().unwrap();
        model.finish(&job);
        let due = scores(&model.summary(), &model.options);
        let due = due[1..].iter().filter(|&&score| score > 1.5).count();
        assert!(due <= 1, "{due} levels at once after {steps} steps");
        steps += 1;
    }
    model.settle();
    assert!(model.summary().allowed.iter().all(|&allowed| allowed == 0));
}
