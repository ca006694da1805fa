//! The experiments on Garnering: AU-E1 to AU-E10.
//!
//! The paper's baseline is RocksDB. The baseline here is the same engine with c = 1, which is leveling.

pub(super) mod analysis;
mod micro;
mod ycsb;

use super::figures::Column;
use super::run_spec::{RunSpec, Scale, Sizes};
use super::{COUNTED, Plan, TIMED};

pub(super) const EXPERIMENTS: [Plan; 10] = [
    Plan {
        id: "AU-E1",
        title: "Sequential and random filling, c = 0.8 and leveling",
        setting: "T = 2, 2 million entries of 16 + 50, 100 and 200 bytes, no filters",
        rounds: TIMED,
        runs: |scale| micro::fills(scale).map(|fill| fill.run).collect(),
        judge: micro::judge_fills,
    },
    Plan {
        id: "AU-E2",
        title: "Gets of random keys without filters",
        setting: "the trees of AU-E1, filled in random order; level 0 is empty before the reads",
        rounds: COUNTED,
        runs: |scale| micro::reads(scale).collect(),
        judge: micro::judge_gets,
    },
    Plan {
        id: "AU-E3",
        title: "Seeks, and seeks with 10 and 100 steps",
        setting: "the trees of AU-E2",
        rounds: COUNTED,
        runs: |scale| micro::reads(scale).collect(),
        judge: micro::judge_seeks,
    },
    Plan {
        id: "AU-E4",
        title: "c from 1 to 0.4 at T = 3 and 5",
        setting: "0.4, 0.63 and all of a quarter of the paper's 8.6 million entries of 16 + 100 bytes, and a \
                  quarter of its memtables, files and level 1; no filters; figures are means of the three trees",
        rounds: COUNTED,
        runs: |scale| micro::sweep(scale).collect(),
        judge: micro::judge_sweep,
    },
    of_ycsb(
        "AU-E5",
        "YCSB's load: throughput and stalls",
        ycsb::judge_load,
    ),
    of_ycsb("AU-E6", "YCSB A to F", ycsb::judge_operations),
    of_ycsb(
        "AU-E7",
        "Latencies of reads and scans under YCSB",
        ycsb::judge_latencies,
    ),
    of_ycsb("AU-E8", "Space after a load", ycsb::judge_space),
    Plan {
        id: "AU-E9",
        title: "Trees that grow, with and without filters of 2 bits",
        setting: "T = 2, c = 0.8 and leveling, entries of 16 + 100 bytes; a 128th of the paper's 15 to 60 GB, with \
                  an eighth of its memtables, files and level 1; level 0 is empty before the reads",
        rounds: COUNTED,
        runs: |scale| micro::growth(scale).collect(),
        judge: micro::judge_growth,
    },
    Plan {
        id: "AU-E10",
        title: "The analysis: levels as the square root of the logarithm, bits for one false-positive read",
        setting: "nothing runs: the policy's own code, on numbers",
        rounds: COUNTED,
        runs: |_| Vec::new(),
        judge: analysis::judge,
    },
];

/// An experiment on the trees of YCSB's records.
const fn of_ycsb(id: &'static str, title: &'static str, judge: super::Judge) -> Plan {
    Plan {
        id,
        title,
        setting: "a 128th of the paper's 80 GB of records with 1,000 bytes, and of its memtables, files and level 1 \
                  (512 KiB, 512 KiB, 2 MiB); T = 5, no filters, no compression; level 0 is empty before the reads",
        rounds: TIMED,
        runs: |scale| {
            ycsb::SCALINGS
                .map(|scaling| ycsb::records(scale, scaling))
                .to_vec()
        },
        judge,
    }
}

/// Why one tree of two sizes may read more blocks than its number of levels suggests.
const YOUNG_LEVEL: &str = "a new last level holds little, so most gets search the levels above it first; which trees \
                           are in that state depends on their size, and on how compactions kept up with the fill";

/// `loads` on Garnering levels.
fn tree(loads: &[&'static str], ratio: f64, scaling: f64, bits: f64) -> RunSpec {
    RunSpec::new(loads)
        .with("preset", "autumn")
        .with("size-ratio", ratio)
        .with("scaling", scaling)
        .with("bits-per-key", bits)
}
