//! Merges, range deletes and values that expire.

use std::collections::BTreeMap;

use super::*;

/// Merges alone never add a key, and operands are small beside the values that they leave.
#[test]
fn merges_write_less_than_updates_and_store_the_same() {
    for preset in [Preset::Balanced, Preset::Leveling] {
        let updates = Load::inserts(40 * MIB, small(preset)).overwritten(2.0);
        let mut merges = updates.clone();
        merges.merges = 1.0;
        let (updated, merged) = (run(&updates).1, run(&merges).1);
        assert_eq!(updated.live_bytes, merged.live_bytes);
        let (one, other) = (updated.io_stats.written(), merged.io_stats.written());
        assert!(other < one, "{other} of {one}");
        assert!(merged.io_stats.user < updated.io_stats.user);
        let operands: u64 = merged.levels.iter().map(|level| level.operands).sum();
        let last = merged
            .levels
            .iter()
            .rfind(|level| level.entries > 0)
            .unwrap();
        assert!(operands > 0 && last.operands == 0, "{:?}", merged.levels);
        assert!(updated.levels.iter().all(|level| level.operands == 0));
    }
}

/// A merge into a key without a value stores one, like an update.
#[test]
fn merges_into_absent_keys_store_values() {
    let live = |deletes, merges| {
        let mut load = Load::inserts(8 * MIB, small(Preset::Balanced)).overwritten(3.0);
        (load.deletes, load.merges) = (deletes, merges);
        run(&load).1.live_bytes
    };
    assert_eq!(live(0.3, 0.0), live(0.3, 0.7));
    assert!(live(0.3, 0.7) < live(0.0, 1.0));
}

/// What range deletes cover and what has expired goes with merges: the tree is as small as what is left.
#[test]
fn deleted_ranges_and_expired_values_leave_the_tree() {
    let plain = || Load::inserts(40 * MIB, small(Preset::Balanced)).overwritten(3.0);
    let without = run(&plain()).1;
    let mut ranges = plain();
    (ranges.range_deletes_per_write, ranges.range_delete_part) = (1e-5, 0.5);
    let mut life = plain();
    (life.expiring, life.time_to_live) = (1.0, life.keys / 2);
    for load in [ranges, life] {
        let (outcome, last) = run(&load);
        assert!(last.live_bytes < without.live_bytes * 3 / 4, "{load:?}");
        let space = outcome.cumulative().space_amplification_max;
        assert!(
            last.space_amplification < 1.8,
            "{}, {space}",
            last.space_amplification
        );
        assert!(last.io_stats.written() < without.io_stats.written());
    }
}

/// A range delete of all keys that comes after every write leaves a few of them.
#[test]
fn range_deletes_of_everything_leave_nothing() {
    let mut load = Load::inserts(20 * MIB, small(Preset::Balanced)).overwritten(1.0);
    load.range_deletes_per_write = 1.0;
    load.range_delete_part = 1.0;
    let (_, last) = run(&load);
    assert!(last.live_bytes < 1 << 10, "{}", last.live_bytes);
    let bytes: u64 = last.levels.iter().map(|level| level.bytes).sum();
    assert!(bytes < 8 * MIB, "{bytes}");
}

/// Compactions do not read what a range tombstone covers. Small ranges cover no file.
#[test]
fn files_that_range_tombstones_cover_are_not_read() {
    let read_per_written = |part, every: f64| {
        let mut load = Load::inserts(40 * MIB, small(Preset::Leveling)).overwritten(2.0);
        (load.range_deletes_per_write, load.range_delete_part) = (1.0 / every, part);
        let levels = run(&load).1.io_stats.levels;
        let sum = |of: fn(&LevelIoStats) -> u64| levels.iter().map(of).sum::<u64>() as f64;
        sum(LevelIoStats::all_read) / sum(LevelIoStats::written)
    };
    // As many keys go in both.
    let (many, few) = (
        read_per_written(0.0001, 10.0),
        read_per_written(0.5, 50_000.0),
    );
    assert!(few < many * 0.97, "{few} and {many}");
}

/// Inserts in the order of their keys that all expire: whole files go, and nothing is compacted for them.
#[test]
fn files_of_expired_values_go_without_being_read() {
    let mut load = Load::inserts(200 * MIB, small(Preset::Balanced));
    load.distribution = KeyDistribution::Sequential;
    (load.expiring, load.time_to_live) = (1.0, load.keys / 10);
    let (_, last) = run(&load);
    let live = last.live_bytes as f64 / (20 * MIB) as f64;
    assert!((live - 1.0).abs() < 0.02, "{live}");
    let bytes: u64 = last.levels.iter().map(|level| level.bytes).sum();
    assert!(bytes < 30 * MIB, "{bytes}");
    assert!(last.io_stats.write_amplification() < 2.3);
}

/// A reproducible random sequence (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Whether something happens that does so in this part of all cases.
    fn is_one_of(&mut self, part: f64) -> bool {
        (self.below(1000) as f64) < part * 1000.0
    }
}

/// Makes the writes of `load` in so many random orders. Returns how many keys are live at each of `samples`, on average.
fn counted_live(load: &Load, samples: &[Sample], rounds: u32) -> Vec<f64> {
    let mut random = Random(1);
    let mut counts = vec![0; samples.len()];
    for _ in 0..rounds {
        // After how many writes the value of each key is gone.
        let mut ends = BTreeMap::new();
        let mut next = samples.iter().zip(&mut counts).peekable();
        for now in 1..=load.writes() {
            let is_insert = now <= load.inserts;
            let key = if is_insert {
                now - 1
            } else {
                random.below(load.keys)
            };
            let end = if !is_insert && random.is_one_of(load.deletes) {
                0
            } else if random.is_one_of(load.expiring) {
                now + load.time_to_live
            } else {
                u64::MAX
            };
            ends.insert(key, end);
            while let Some((_, count)) = next.next_if(|(sample, _)| sample.writes == now) {
                *count += ends.values().filter(|&&end| end > now).count();
            }
        }
    }
    let mean = |count: usize| count as f64 / f64::from(rounds);
    counts.into_iter().map(mean).collect()
}

/// All values of the first load expire, and nearly all of its draws delete.
#[test]
fn live_keys_are_those_of_a_count_key_by_key() {
    const ROUNDS: u32 = 100;
    for (deletes, expiring, time_to_live) in [(0.95, 1.0, 300), (0.3, 0.8, 500)] {
        let options = KeyspaceOptions {
            memtable_bytes: 4 << 10,
            ..small(Preset::Balanced)
        };
        let mut load = Load::inserts(400 * 116, options).overwritten(4.0);
        load.deletes = deletes;
        (load.expiring, load.time_to_live) = (expiring, time_to_live);
        let samples = run(&load).0.samples;
        let counts = counted_live(&load, &samples, ROUNDS);
        for (sample, counted) in samples.iter().zip(counts) {
            let live = sample.live_bytes as f64 / load.entry_bytes();
            // Each key is live or not, by chance.
            let deviation = (live * (1.0 - live / load.keys as f64).max(0.0)).sqrt();
            let most = 4.0 * deviation / f64::from(ROUNDS).sqrt() + 0.1;
            assert!(
                (live - counted).abs() < most,
                "{live:.2} of {counted:.2} after {} writes",
                sample.writes
            );
        }
    }
}
