//! The simulation of a load against the engine: the same number of levels, and the same bytes into each level for the
//! same causes.

use std::sync::Arc;
use std::time::Duration;

use windrow::simulation::{
    IoStats, KeyDistribution, LevelIoStats, Load, ValueSize, simulate, write_amplification_bound,
};
use windrow::{Db, KeyspaceOptions, MediumInPlace, Options, Preset, SegmentLimit};
use windrow_sim::{Random, SimDisk, SteppedRuntime};

use super::special_writes::{OneSize, range_deleted_after};

/// The bytes that the engine moved, and the bytes of its levels afterwards.
#[derive(Debug, Default)]
struct Measured {
    io_stats: IoStats,
    level_bytes: Vec<u64>,
}

/// Random ranks of keys, with the distribution of a load.
struct Ranks {
    /// The sums of weights up to each rank; empty if all weights are equal.
    sums: Vec<f64>,
    keys: u64,
}

impl Ranks {
    fn of(load: &Load) -> Self {
        let mut sums = Vec::new();
        if let KeyDistribution::Zipfian { exponent } = load.distribution {
            let mut sum = 0.0;
            for rank in 1..=load.keys {
                sum += (rank as f64).powf(-exponent);
                sums.push(sum);
            }
        }
        Self {
            sums,
            keys: load.keys,
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let Some(all) = self.sums.last() else {
            return random.below(self.keys);
        };
        let point = all * (random.below(1 << 53) as f64 / 2.0_f64.powi(53));
        self.sums.partition_point(|sum| *sum <= point) as u64
    }
}

/// A one-to-one map of numbers to numbers that scatters them.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The key of a number.
fn key(load: &Load, number: u64) -> Vec<u8> {
    let at = match load.distribution {
        KeyDistribution::Sequential => number,
        _ => scattered(number + 1),
    };
    let mut key = at.to_be_bytes().to_vec();
    key.resize(usize::try_from(load.key_bytes).unwrap(), b'k');
    key
}

/// The time since 1970 at which loads begin. Each write takes a millisecond.
const START: Duration = Duration::from_secs(1_700_000_000);

/// Runs `load` in the engine, and all due background work after every 16 writes.
fn measure(load: &Load) -> Measured {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let mut options = windrow_sim::unobserved(Options::default());
    options.keyspace = load.options.clone();
    options.background_threads = 1;
    options.max_wal_bytes = 1 << 30;
    let longest = load.values.iter().map(|size| size.bytes).max().unwrap();
    let longest = usize::try_from(longest).unwrap();
    let operator = OneSize {
        value_bytes: longest,
    };
    if load.merges > 0.0 {
        options = options.with_merge_operator("load", Arc::new(operator));
    }
    let options = options
        .with_vfs(Arc::new(disk))
        .with_runtime(Arc::new(runtime.clone()));
    let db = Db::open("/data/db", options).unwrap();
    let keyspace = db.keyspace("load").unwrap();
    let mut random = Random::new(7);
    let ranks = Ranks::of(load);
    let fractions: f64 = load.values.iter().map(|size| size.fraction).sum();
    let bytes = vec![7; longest];
    let operand = vec![7; usize::try_from(load.operand_bytes).unwrap()];
    let mut sizes = Random::new(8);
    let mut value = || {
        let mut point = sizes.below(1 << 53) as f64 / 2.0_f64.powi(53) * fractions;
        let drawn = load.values.iter().find(|size| {
            point -= size.fraction;
            point < 0.0
        });
        let size = drawn.unwrap_or(&load.values[0]);
        &bytes[..usize::try_from(size.bytes).unwrap()]
    };
    let time_to_live = Duration::from_millis(load.time_to_live);
    let mut chances = Random::new(9);
    let mut is_one_of = |part: f64| (chances.below(1 << 53) as f64) < part * 2.0_f64.powi(53);
    for write in 0..load.writes() {
        runtime.set_unix_time(START + Duration::from_millis(write));
        let mut put = |key: Vec<u8>, value: &[u8]| {
            if is_one_of(load.expiring) {
                keyspace.insert_with_ttl(key, value, time_to_live).unwrap();
            } else {
                keyspace.insert(key, value).unwrap();
            }
        };
        if write < load.inserts {
            put(key(load, write), value());
        } else {
            let key = key(load, ranks.draw(&mut random));
            let point = random.below(1 << 53) as f64 / 2.0_f64.powi(53);
            if point < load.deletes {
                keyspace.remove(key).unwrap();
            } else if point < load.deletes + load.merges {
                keyspace.merge(key, &operand).unwrap();
            } else {
                put(key, value());
            }
        }
        if let Some(range) = range_deleted_after(load, write, &mut random) {
            keyspace.delete_range(range).unwrap();
        }
        if write % 16 == 0 {
            runtime.run_until_idle(100_000);
        }
    }
    // The simulation counts the rest in the memtable as a run.
    db.flush().unwrap();
    runtime.run_until_idle(100_000);
    let stats = db.stats();
    let levels = &stats.keyspaces[0].levels;
    let mut io_stats = IoStats::default();
    io_stats.user = stats.user_bytes;
    io_stats.wal = stats.wal_bytes;
    io_stats.value_logs = stats.value_log_bytes;
    io_stats.levels = levels.iter().map(|level| level.io_stats).collect();
    // Garbage collection without pointer rewrites.
    let of_levels =
        |bytes: fn(&LevelIoStats) -> u64| io_stats.levels.iter().map(bytes).sum::<u64>();
    let pointers_rewritten = of_levels(|level| level.pointers_rewritten);
    let pointer_rewrite_read = of_levels(|level| level.pointer_rewrite_read);
    io_stats.gc_written = stats.gc_bytes_written - pointers_rewritten;
    io_stats.gc_read = stats.gc_bytes_read - pointer_rewrite_read;
    Measured {
        io_stats,
        level_bytes: levels.iter().map(|level| level.bytes).collect(),
    }
}

/// Small trees with all values in place.
pub(super) fn small(preset: Preset) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::preset(preset);
    options.memtable_bytes = 64 << 10;
    options.file_bytes = 16 << 10;
    options.base_bytes = 256 << 10;
    options.medium_from = u64::MAX;
    options.large_from = u64::MAX;
    options
}

pub(super) fn leveling(size_ratio: f64) -> KeyspaceOptions {
    let mut options = small(Preset::Leveling);
    options.size_ratio = size_ratio;
    options
}

pub(super) fn autumn(scaling: f64) -> KeyspaceOptions {
    let mut options = small(Preset::Autumn);
    options.scaling = scaling;
    options
}

/// Panics unless the bytes are close enough: within 25 percent of each other and 2 percent of all.
fn check_bytes(what: &str, measured: u64, predicted: u64, all: u64) {
    let apart = measured.abs_diff(predicted) as f64;
    let near = 0.25 * measured.max(predicted) as f64 + 0.02 * all as f64;
    assert!(
        apart <= near,
        "{what}: measured {measured} bytes, predicted {predicted}"
    );
}

/// Compares the load in the engine with the load in the simulation.
pub(super) fn check(load: &Load) {
    check_within(load, 0.1);
}

/// The same, with all bytes written at most this part apart.
pub(super) fn check_within(load: &Load, apart_max: f64) {
    let measured = measure(load);
    let outcome = simulate(load).unwrap();
    let predicted = outcome.samples.last().unwrap();
    let all = measured.io_stats.written();
    // Whether an empty level has been added below a full one depends on a byte.
    let last_in_use = |bytes: &[u64]| bytes.iter().rposition(|&bytes| bytes > 0);
    let predicted_bytes: Vec<u64> = predicted.levels.iter().map(|level| level.bytes).collect();
    assert_eq!(
        last_in_use(&measured.level_bytes),
        last_in_use(&predicted_bytes)
    );
    let is_in_place = load.options.medium_from == u64::MAX;
    // The log's overhead over keys and values is larger than that of tables.
    let overhead = measured.io_stats.wal as f64 / measured.io_stats.user as f64;
    let bound = overhead * write_amplification_bound(&load.options, predicted.level_count, 1.0);
    for io_stats in [&measured.io_stats, &predicted.io_stats]
        .into_iter()
        .filter(|_| is_in_place)
    {
        let written = io_stats.write_amplification();
        assert!(written <= bound, "{written:.2} written, at most {bound:.2}");
    }
    check_bytes("log", measured.io_stats.wal, predicted.io_stats.wal, 0);
    let logs = [measured.io_stats.value_logs, predicted.io_stats.value_logs];
    check_bytes("value logs", logs[0], logs[1], 0);
    let [one, other] = [&measured.io_stats, &predicted.io_stats];
    check_bytes(
        "written by garbage collection",
        one.gc_written,
        other.gc_written,
        all,
    );
    check_bytes(
        "read by garbage collection",
        one.gc_read,
        other.gc_read,
        all,
    );
    let apart = all as f64 / predicted.io_stats.written() as f64 - 1.0;
    assert!(apart.abs() <= apart_max, "{apart:.2} apart in all");
    // With this many segments a level is a few files that change together. Whether a run is appended to a level, or
    // finds it empty and moves on, depends on a byte.
    if load.options.segment_limit == SegmentLimit::Fixed(12) {
        return;
    }
    let levels = measured
        .io_stats
        .levels
        .len()
        .max(predicted.io_stats.levels.len());
    let group =
        predicted.io_stats.levels[0].flushed / predicted.flushes * load.options.level0_runs as u64;
    for level in 0..levels {
        let of = |io_stats: &IoStats| io_stats.levels.get(level).copied().unwrap_or_default();
        let (one, other) = (of(&measured.io_stats), of(&predicted.io_stats));
        let check = |what: &str, measured, predicted| {
            check_bytes(&format!("{what} level {level}"), measured, predicted, all);
        };
        check("flushed to", one.flushed, other.flushed);
        check("appended to", one.appended, other.appended);
        check("rewritten in", one.rewritten, other.rewritten);
        check("consolidated in", one.consolidated, other.consolidated);
        let rewritten = [one.pointers_rewritten, other.pointers_rewritten];
        check("pointers rewritten in", rewritten[0], rewritten[1]);
        check(
            "transient logs of",
            one.transient_logs,
            other.transient_logs,
        );
        check("read for", one.read, other.read);
        let read = [one.transient_logs_read, other.transient_logs_read];
        check("transient logs read for", read[0], read[1]);
        if level > 0 {
            let bytes = |bytes: Option<u64>| bytes.unwrap_or(0);
            let held: u64 = measured.level_bytes.iter().sum();
            let one = bytes(measured.level_bytes.get(level).copied());
            let other = bytes(predicted.levels.get(level).map(|level| level.bytes));
            // With small tables, level 1 is empty or holds the output of the last compactions.
            let brought = if is_in_place { 0 } else { 2 * group };
            let near = one.abs_diff(other) <= brought;
            if !near {
                check_bytes(&format!("in level {level}"), one, other, held);
            }
        }
    }
}

/// Inserts in random order.
pub(super) fn inserts(options: KeyspaceOptions) -> Load {
    Load::inserts(6 << 20, options)
}

/// Fewer inserts, and several times as many writes over them.
pub(super) fn updates(options: KeyspaceOptions) -> Load {
    Load::inserts(3 << 19, options).overwritten(3.0)
}

/// Small trees that separate values by their sizes.
fn hybrid(preset: Preset) -> KeyspaceOptions {
    let by_size = KeyspaceOptions::preset(Preset::Parallax);
    let mut options = small(preset);
    options.medium_from = by_size.medium_from;
    options.large_from = by_size.large_from;
    options
}

/// `mib` of entries with values of these fractions and sizes, and `times` as many writes over them.
fn separated(options: KeyspaceOptions, mib: u64, values: &[(f64, u64)], times: f64) -> Load {
    let mut load = Load::inserts(1, options);
    load.key_bytes = 24;
    let size = |&(fraction, bytes): &(f64, u64)| ValueSize { fraction, bytes };
    load.values = values.iter().map(size).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count far below 2^53"
    )]
    let keys = ((mib << 20) as f64 / load.entry_bytes()) as u64;
    load.keys = keys;
    load.inserts = keys;
    load.overwritten(times)
}

#[test]
fn inserts_in_place() {
    for options in [
        leveling(4.0),
        leveling(10.0),
        autumn(0.8),
        autumn(0.4),
        small(Preset::Balanced),
        small(Preset::Lsma),
    ] {
        check(&inserts(options));
    }
    let mut options = small(Preset::Balanced);
    options.segment_limit = SegmentLimit::Fixed(3);
    check(&inserts(options));
}

#[test]
fn updates_in_place() {
    for options in [
        leveling(4.0),
        leveling(10.0),
        autumn(0.8),
        small(Preset::Lsma),
    ] {
        check(&updates(options));
    }
    // Of levels with appended segments the simulation expects a tenth too few bytes.
    check_within(&updates(small(Preset::Balanced)), 0.12);
}

#[test]
fn deletes() {
    for options in [small(Preset::Balanced), autumn(0.4)] {
        let mut load = updates(options);
        load.deletes = 0.3;
        check(&load);
    }
}

#[test]
fn zipfian_updates() {
    for options in [small(Preset::Balanced), leveling(4.0)] {
        let mut load = updates(options);
        load.distribution = KeyDistribution::Zipfian { exponent: 0.99 };
        check(&load);
    }
}

#[test]
fn draws_alone() {
    let mut load = inserts(small(Preset::Balanced));
    (load.inserts, load.draws) = (0, load.keys);
    check(&load);
}

#[test]
fn sequential_inserts() {
    let in_place = inserts(small(Preset::Balanced));
    // Except for those of the first flush, the medium values stay in their tables.
    let medium = separated(hybrid(Preset::Balanced), 8, &[(1.0, 300)], 0.0);
    for mut load in [in_place, medium] {
        load.distribution = KeyDistribution::Sequential;
        check(&load);
    }
}

#[test]
fn entries_of_other_sizes() {
    for (key_bytes, value_bytes, keys) in [(24, 9, 90_000), (8, 1000, 6_000)] {
        let mut load = inserts(small(Preset::Balanced));
        (load.key_bytes, load.values) = (key_bytes, ValueSize::same(value_bytes));
        (load.keys, load.inserts) = (keys, keys);
        check(&load);
    }
}

#[test]
fn medium_and_large_values() {
    let mut late = hybrid(Preset::Parallax);
    late.medium_in_place = MediumInPlace::LevelBeforeLast;
    for (options, mib, bytes, times) in [
        (hybrid(Preset::Balanced), 8, 300, 0.0),
        (hybrid(Preset::Parallax), 8, 104, 0.0),
        (hybrid(Preset::Balanced), 2, 300, 3.0),
        (late, 3, 300, 3.0),
        (hybrid(Preset::Balanced), 16, 1004, 0.0),
        (hybrid(Preset::Balanced), 8, 1004, 3.0),
    ] {
        check(&separated(options, mib, &[(1.0, bytes)], times));
    }
}

#[test]
fn mixes_of_sizes() {
    for fractions in [[60.0, 20.0, 20.0], [20.0, 60.0, 20.0], [20.0, 20.0, 60.0]] {
        let values = [(fractions[0], 9), (fractions[1], 104), (fractions[2], 1004)];
        for (mib, times) in [(6, 0.0), (4, 2.0)] {
            check(&separated(hybrid(Preset::Balanced), mib, &values, times));
        }
    }
}
