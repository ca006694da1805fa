//! Filters on real trees: their bits are within the budget, and false-positive reads match the allocated rates. They
//! are fewer than with the same bits for every file.

use windrow::{Db, FilterAllocation, Keyspace, KeyspaceOptions, Options, SegmentLimit, Stats};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{on, open};

const KEYS: u64 = 100_000;

/// On a disk of its own. Jobs run one after the other, so the tree does not depend on their speed.
fn options(
    bits_per_key: f64,
    allocation: FilterAllocation,
    segment_limit: SegmentLimit,
) -> Options {
    let mut options = Options::default();
    options.keyspace = KeyspaceOptions::default();
    options.keyspace.memtable_bytes = 256 << 10;
    options.keyspace.file_bytes = 256 << 10;
    options.keyspace.base_bytes = 512 << 10;
    options.keyspace.size_ratio = 4.0;
    options.keyspace.bits_per_key = bits_per_key;
    options.keyspace.filter_allocation = allocation;
    options.keyspace.segment_limit = segment_limit;
    on(options, &SimDisk::new(), &SteppedRuntime::new(1))
}

/// A written key. The key after it is absent.
fn key(number: u64) -> Vec<u8> {
    format!("{:016}", number * 2).into_bytes()
}

fn absent(number: u64) -> Vec<u8> {
    format!("{:016}", number * 2 + 1).into_bytes()
}

/// All numbers below `KEYS` in random order.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|step| step * 17_389 % KEYS)
}

fn fill(keyspace: &Keyspace, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        keyspace.insert(key(number), [7; 60]).unwrap();
    }
}

fn stats(db: &Db) -> Stats {
    db.stats()
}

/// The cost of absent keys.
struct Cost {
    /// False-positive reads per get.
    measured: f64,
    /// The sum of the false-positive rates.
    expected: f64,
    /// Filter bits in memory per entry.
    bits: f64,
    /// Levels that hold files.
    levels: usize,
    /// The sum over levels of the mean segments of a file.
    runs: f64,
}

fn cost(db: &Db, keyspace: &Keyspace) -> Cost {
    let before = stats(db);
    for number in 0..KEYS {
        assert_eq!(keyspace.get(absent(number)).unwrap(), None);
    }
    let after = stats(db);
    let levels = &after.keyspaces[0].levels;
    let entries: u64 = levels.iter().map(|level| level.entries).sum();
    let bytes: u64 = levels.iter().map(|level| level.filter_bytes).sum();
    Cost {
        measured: (after.block_reads - before.block_reads) as f64 / KEYS as f64,
        expected: levels.iter().map(|level| level.false_positive_reads).sum(),
        bits: bytes as f64 * 8.0 / entries as f64,
        levels: levels.iter().filter(|level| level.files > 0).count(),
        runs: levels
            .iter()
            .map(|level| level.segments as f64 / level.files.max(1) as f64)
            .sum(),
    }
}

impl Cost {
    fn check(&self, what: &str, bits_per_key: f64) {
        let Self {
            measured,
            expected,
            bits,
            levels,
            ..
        } = self;
        assert!(
            *measured <= 2.0 * expected + 0.001,
            "{what}: {measured} of {expected}, {levels} levels"
        );
        // Filters have whole lines, headers and checksums.
        assert!(
            *bits <= bits_per_key * 1.02 + 0.2,
            "{what}: {bits} bits per entry"
        );
    }
}

/// The cost after a load in random order.
fn loaded(bits_per_key: f64, allocation: FilterAllocation, segment_limit: SegmentLimit) -> Cost {
    let (db, keyspace) = open(options(bits_per_key, allocation, segment_limit));
    let numbers: Vec<u64> = shuffled().collect();
    for numbers in numbers.chunks(1_500) {
        fill(&keyspace, numbers.iter().copied());
        db.flush().unwrap();
        db.wait_idle().unwrap();
    }
    cost(&db, &keyspace)
}

#[test]
fn absent_keys_cost_the_allocated_rates_and_less_than_one_rate_for_all() {
    for bits in [2.0, 5.0, 10.0] {
        let alone = SegmentLimit::Fixed(1);
        let monkey = loaded(bits, FilterAllocation::Monkey, alone);
        monkey.check(&format!("monkey, {bits} bits"), bits);
        let uniform = loaded(bits, FilterAllocation::Uniform, alone);
        uniform.check(&format!("uniform, {bits} bits"), bits);
        assert_eq!(monkey.levels, uniform.levels);
        assert!(monkey.levels > 2);
        assert!(monkey.measured < uniform.measured, "{bits} bits");
        // The segments of a file divide its bits by their entries (D2).
        let segments = loaded(bits, FilterAllocation::Monkey, SegmentLimit::Scaled);
        segments.check(&format!("segments, {bits} bits"), bits);
        assert!(
            segments.runs > segments.levels as f64 + 0.1,
            "{}",
            segments.runs
        );
        // With one rate for all, each run would cost as much as the level that it is a part of.
        let more = segments.runs / segments.levels as f64;
        assert!(
            segments.measured < more * monkey.measured && segments.measured < uniform.measured,
            "{bits} bits: {} with segments, {} without",
            segments.measured,
            monkey.measured
        );
    }
}

#[test]
fn files_after_a_trivial_move_have_filters_like_others() {
    for bits in [2.0, 5.0, 10.0] {
        let (db, keyspace) = open(options(
            bits,
            FilterAllocation::Monkey,
            SegmentLimit::Scaled,
        ));
        fill(&keyspace, 0..KEYS);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(stats(&db).compactions, 0);
        let cost = cost(&db, &keyspace);
        cost.check(&format!("moved, {bits} bits"), bits);
        // Every key range has one file, and its filter has all the bits.
        let alone = 0.6185_f64.powf(bits);
        assert!(cost.measured < 2.0 * alone, "{} of {alone}", cost.measured);
    }
}

#[test]
fn filters_follow_a_growing_tree() {
    let options = options(8.0, FilterAllocation::Monkey, SegmentLimit::Scaled);
    let (db, keyspace) = open(options.clone());
    let mut deepest = 0;
    let numbers: Vec<u64> = shuffled().collect();
    for (part, numbers) in numbers.chunks(10_000).enumerate() {
        fill(&keyspace, numbers.iter().copied());
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let cost = cost(&db, &keyspace);
        cost.check(&format!("part {part}"), 8.0);
        deepest = deepest.max(cost.levels);
    }
    assert!(deepest > 2);
    // A database that is opened again has the same allocation.
    drop(keyspace);
    db.close().unwrap();
    let (db, keyspace) = open(options);
    cost(&db, &keyspace).check("opened again", 8.0);
}
