//! How much the policy rewrites, on a small copy of the loads that the bench measures.
//!
//! Bytes written by compactions per byte given, averaged over six memtable fillings between 380,000 and
//! 480,000 entries; each load is 5 million writes over 5 million keys, the second on top of the
//! first. The defaults were chosen by these figures:
//!
//! | `base_bytes` | `level0_runs` | fillrandom | overwrite |
//! |---|---|---|---|
//! | 128 MiB | 4 | 0.95 | 2.27 |
//! | 256 MiB | 4 | 1.08 | 1.81 |
//! | 256 MiB | 6 | 0.66 | 1.34 |
//! | 256 MiB | 8 | 0.54 | 0.94 |
//! | 512 MiB | 4 | 1.10 | 2.32 |
//!
//! Without the cuts at the ends of files below, further overwrites cost 10 to 15 percent more.

use super::Random;
use super::model::{Key, Model};
use crate::base::Kind;
use crate::options::{KeyspaceOptions, Preset};

/// The bench's 5 million entries of 116 bytes, and all sizes with them, divided by this.
const SCALE: u32 = 50;
const KEYS: u32 = 5_000_000 / SCALE;
const ENTRY_BYTES: u32 = 116;

fn options() -> KeyspaceOptions {
    let full = KeyspaceOptions::preset(Preset::Leveling);
    KeyspaceOptions {
        memtable_bytes: full.memtable_bytes / SCALE as usize,
        base_bytes: full.base_bytes / u64::from(SCALE),
        file_bytes: full.file_bytes / u64::from(SCALE),
        ..full
    }
}

/// Writes every key of `next`, with a flush after each `flush_entries`. Returns the bytes that
/// compactions wrote per byte given.
fn load(model: &mut Model, flush_entries: u32, mut next: impl FnMut() -> Key) -> f64 {
    let before = model.merged;
    let mut left = KEYS;
    while left > 0 {
        let count = left.min(flush_entries);
        left -= count;
        model.flush((0..count).map(|_| (next(), Kind::Value)));
        model.settle();
    }
    (model.merged - before) as f64 / f64::from(KEYS * ENTRY_BYTES)
}

#[test]
fn random_loads_rewrite_little() {
    let fillings = [380_000, 400_000, 420_000, 440_000, 460_000, 480_000];
    let mut sums = [0.0; 2];
    for entries in fillings {
        let mut model = Model::new(options(), u64::from(ENTRY_BYTES));
        let mut random = Random(7);
        for sum in &mut sums {
            *sum += load(&mut model, entries / SCALE, || random.below(KEYS));
        }
    }
    let [fill, overwrite] = sums.map(|sum| sum / fillings.len() as f64);
    assert!(fill < 1.15, "fillrandom rewrites {fill:.2}");
    assert!(overwrite < 1.95, "overwrite rewrites {overwrite:.2}");
}

#[test]
fn a_sequential_load_only_moves() {
    let mut model = Model::new(options(), u64::from(ENTRY_BYTES));
    let mut keys = 0..;
    load(&mut model, 430_000 / SCALE, || {
        keys.next().unwrap_or_default()
    });
    assert_eq!(model.merged, 0);
    assert_eq!(model.summary().level(0).len(), 0);
    assert_eq!(model.level_count, 2);
}
