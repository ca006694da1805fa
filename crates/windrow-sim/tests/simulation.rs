//! `windrow::simulation` says of a load what the engine does with it: as many levels, as many bytes into each,
//! for the same causes.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    reason = "the listener is the test's own and needs no model"
)]

use std::sync::{Arc, Mutex};

use windrow::simulation::{
    KeyDistribution, LevelTraffic, Load, Traffic, simulate, write_amplification_bound,
};
use windrow::{Db, Event, KeyspaceOptions, Options, Preset, SegmentLimit};
use windrow_sim::{Random, SimDisk, SteppedRuntime};

/// Bytes that the engine has moved, and what it holds then.
#[derive(Debug, Default)]
struct Measured {
    traffic: Traffic,
    level_bytes: Vec<u64>,
    level_count: usize,
}

/// What a listener has heard.
#[derive(Debug, Default)]
struct Heard {
    levels: Vec<LevelTraffic>,
}

impl Heard {
    fn level(&mut self, level: usize) -> &mut LevelTraffic {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, LevelTraffic::default);
        }
        &mut self.levels[level]
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::FlushEnded { bytes_written, .. } => self.level(0).flushed += bytes_written,
            Event::MergeEnded {
                level,
                bytes_read,
                bytes_written,
                bytes_appended,
                purpose,
                ..
            } => {
                let level = self.level(*level);
                let rewritten = bytes_written - bytes_appended;
                level.appended += bytes_appended;
                if *purpose == "squeeze" {
                    level.squeezed += rewritten;
                    level.squeeze_read += bytes_read;
                } else {
                    level.rewritten += rewritten;
                    level.read += bytes_read;
                }
            }
            _ => {}
        }
    }
}

/// Numbers in the order of their popularity, drawn as the load says.
struct Ranks {
    /// Up to each rank, the sum of weights; empty where all are alike.
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

/// A one-to-one map of numbers to numbers that strews them.
fn strewn(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The key of a number.
fn key(load: &Load, number: u64) -> Vec<u8> {
    let at = match load.distribution {
        KeyDistribution::Sequential => number,
        _ => strewn(number + 1),
    };
    let mut key = at.to_be_bytes().to_vec();
    key.resize(usize::try_from(load.key_bytes).unwrap(), b'k');
    key
}

/// Carries `load` out in the engine, with all background work done behind each few writes.
fn measure(load: &Load) -> Measured {
    let disk = SimDisk::new();
    let runtime = SteppedRuntime::new(1);
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut options = Options::default();
    options.keyspace = load.options.clone();
    options.background_threads = 1;
    options.max_wal_bytes = 1 << 30;
    let listener = Arc::clone(&heard);
    let options = options
        .with_vfs(Arc::new(disk))
        .with_runtime(Arc::new(runtime.clone()))
        .with_listener(Arc::new(move |event: &Event| {
            listener.lock().unwrap().note(event);
        }));
    let db = Db::open("/data/db", options).unwrap();
    let keyspace = db.keyspace("load").unwrap();
    let mut random = Random::new(7);
    let ranks = Ranks::of(load);
    let value = vec![7; usize::try_from(load.value_bytes).unwrap()];
    for write in 0..load.writes() {
        if write < load.inserts {
            keyspace.insert(key(load, write), &value).unwrap();
        } else {
            let key = key(load, ranks.draw(&mut random));
            let deletes = (random.below(1 << 53) as f64) < load.deletes * 2.0_f64.powi(53);
            if deletes {
                keyspace.remove(key).unwrap();
            } else {
                keyspace.insert(key, &value).unwrap();
            }
        }
        if write % 16 == 0 {
            runtime.run_until_idle(100_000);
        }
    }
    // What is left in the memtable is a run of the simulation.
    db.flush().unwrap();
    runtime.run_until_idle(100_000);
    let stats = db.stats();
    let levels = &stats.keyspaces[0].levels;
    let mut traffic = Traffic::default();
    traffic.user = stats.user_bytes;
    traffic.wal = stats.wal_bytes;
    traffic.levels = std::mem::take(&mut heard.lock().unwrap().levels);
    Measured {
        traffic,
        level_bytes: levels.iter().map(|level| level.bytes).collect(),
        level_count: levels.len() - 1,
    }
}

/// Small trees with everything in place.
fn small(preset: Preset) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::preset(preset);
    options.memtable_bytes = 64 << 10;
    options.file_bytes = 16 << 10;
    options.base_bytes = 256 << 10;
    options.medium_from = u64::MAX;
    options.large_from = u64::MAX;
    options
}

fn leveling(size_ratio: f64) -> KeyspaceOptions {
    let mut options = small(Preset::Leveling);
    options.size_ratio = size_ratio;
    options
}

fn autumn(scaling: f64) -> KeyspaceOptions {
    let mut options = small(Preset::Autumn);
    options.scaling = scaling;
    options
}

/// So many bytes in a kind of its own, or two that are close enough.
fn check_bytes(what: &str, measured: u64, told: u64, all: u64) {
    let apart = measured.abs_diff(told) as f64;
    let near = 0.25 * measured.max(told) as f64 + 0.02 * all as f64;
    assert!(
        apart <= near,
        "{what}: {measured} bytes, and {told} were told"
    );
}

/// The load in the engine and in the simulation.
fn check(load: &Load) {
    let measured = measure(load);
    let outcome = simulate(load).unwrap();
    let told = outcome.samples.last().unwrap();
    let all = measured.traffic.written();
    assert_eq!(measured.level_count, told.level_count);
    // What the log takes beside keys and values is more than what tables do.
    let beside = measured.traffic.wal as f64 / measured.traffic.user as f64;
    let bound = beside * write_amplification_bound(&load.options, told.level_count, 1.0);
    for traffic in [&measured.traffic, &told.traffic] {
        let written = traffic.write_amplification();
        assert!(written <= bound, "{written:.2} written, at most {bound:.2}");
    }
    check_bytes("log", measured.traffic.wal, told.traffic.wal, 0);
    let apart = all as f64 / told.traffic.written() as f64 - 1.0;
    assert!(apart.abs() <= 0.1, "{apart:.2} apart in all");
    // With as many segments as that, a level is a few files that come and go as one: whether a run is
    // appended to what is there, or finds the level empty and goes on, hangs on a byte.
    if load.options.segment_limit == SegmentLimit::Fixed(12) {
        return;
    }
    let levels = measured.traffic.levels.len().max(told.traffic.levels.len());
    for level in 0..levels {
        let of = |traffic: &Traffic| traffic.levels.get(level).copied().unwrap_or_default();
        let (one, other) = (of(&measured.traffic), of(&told.traffic));
        let check = |what: &str, measured, told| {
            check_bytes(&format!("{what} level {level}"), measured, told, all);
        };
        check("flushed to", one.flushed, other.flushed);
        check("appended to", one.appended, other.appended);
        check("rewritten in", one.rewritten, other.rewritten);
        check("squeezed in", one.squeezed, other.squeezed);
        check("read for", one.read, other.read);
        if level > 0 {
            let bytes = |bytes: Option<u64>| bytes.unwrap_or(0);
            let held: u64 = measured.level_bytes.iter().sum();
            let one = bytes(measured.level_bytes.get(level).copied());
            let other = bytes(told.levels.get(level).map(|level| level.bytes));
            check_bytes(&format!("in level {level}"), one, other, held);
        }
    }
}

/// Inserts in random order.
fn inserts(options: KeyspaceOptions) -> Load {
    Load::inserts(6 << 20, options)
}

/// Fewer inserts, and several times as many writes over them.
fn updates(options: KeyspaceOptions) -> Load {
    Load::inserts(3 << 19, options).overwritten(3.0)
}

#[test]
fn leveling_inserts() {
    check(&inserts(leveling(4.0)));
    check(&inserts(leveling(10.0)));
}

#[test]
fn garnering_inserts() {
    check(&inserts(autumn(0.8)));
    check(&inserts(autumn(0.4)));
}

#[test]
fn append_inserts() {
    check(&inserts(small(Preset::Balanced)));
    let mut options = small(Preset::Balanced);
    options.segment_limit = SegmentLimit::Fixed(3);
    check(&inserts(options));
}

#[test]
fn lsma() {
    check(&inserts(small(Preset::Lsma)));
    check(&updates(small(Preset::Lsma)));
}

#[test]
fn leveling_updates() {
    check(&updates(leveling(4.0)));
    check(&updates(leveling(10.0)));
}

#[test]
fn balanced_updates() {
    check(&updates(small(Preset::Balanced)));
    check(&updates(autumn(0.8)));
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
fn zipfian() {
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
fn sequential() {
    let mut load = inserts(small(Preset::Balanced));
    load.distribution = KeyDistribution::Sequential;
    check(&load);
}

#[test]
fn entries_of_other_sizes() {
    for (key_bytes, value_bytes, keys) in [(24, 9, 90_000), (8, 1000, 6_000)] {
        let mut load = inserts(small(Preset::Balanced));
        (load.key_bytes, load.value_bytes) = (key_bytes, value_bytes);
        (load.keys, load.inserts) = (keys, keys);
        check(&load);
    }
}
