//! The experiments on hybrid placement: PX-E0 to PX-E9.
//!
//! The paper's baselines are RocksDB and BlobDB. The baselines here are the same engine with all values in place, and
//! with all values in the log. All trees are leveled, without appends or filters, so they differ in placement only.
//! `windrow-peers compare` runs the other engines themselves.

mod equations;
mod placement;
mod variants;

use windrow::Result;

use super::experiment::Table;
use super::figures::{CPU, Column, Figures as _, KOPS, SPACE, WRITTEN, short};
use super::run_spec::{Results, RunSpec, Scale, Sizes};
use super::{COUNTED, Judge, Plan, TIMED};
use crate::Report;

pub(super) const EXPERIMENTS: [Plan; 10] = [
    Plan {
        id: "PX-E0",
        title: "Small values in the log, with garbage collection and without",
        setting: "1 million entries of 24 + 64 bytes, the smallest that Windrow separates (the paper has 33 bytes \
                  in all), loaded and updated by YCSB A; T = 4, c = 1, memtables of 2 MiB, files of 1 MiB, a \
                  level 1 of 5 MiB",
        rounds: COUNTED,
        runs: |scale| {
            placement::TINY
                .map(|(_, values)| tiny(scale, values))
                .to_vec()
        },
        judge: placement::judge_tiny,
    },
    on_mixes(
        "PX-E1",
        "YCSB B, C and D on SD and MD",
        TIMED,
        placement::points,
        placement::judge_points,
    ),
    on_mixes(
        "PX-E2",
        "YCSB E, scans",
        TIMED,
        placement::scans,
        placement::judge_scans,
    ),
    on_mixes(
        "PX-E3",
        "YCSB's load in six mixes",
        TIMED,
        placement::six,
        |scale, results| placement::judge_mixes(scale, results, "ycsb-load"),
    ),
    on_mixes(
        "PX-E4",
        "YCSB A in six mixes",
        TIMED,
        placement::six,
        |scale, results| placement::judge_mixes(scale, results, "ycsb-a"),
    ),
    on_mixes(
        "PX-E5",
        "Two classes instead of three: mediums as smalls, or as larges",
        COUNTED,
        |scale| in_variants(scale, &variants::CLASSES),
        variants::judge_classes,
    ),
    Plan {
        setting: "the mix M; T = 4 as in the paper, and otherwise as above",
        ..on_mixes(
            "PX-E6",
            "In place in the last level, or from the level before it",
            COUNTED,
            |scale| {
                variants::LAST
                    .map(|(_, values)| updated(scale, "M", values))
                    .to_vec()
            },
            variants::judge_last,
        )
    },
    on_mixes(
        "PX-E7",
        "Transient logs sorted, or in the order of writes",
        COUNTED,
        |scale| in_variants(scale, &variants::SORTED),
        variants::judge_sorted,
    ),
    on_mixes(
        "PX-E8",
        "Mediums never put in place, the bound for the others",
        COUNTED,
        |scale| in_variants(scale, &variants::NEVER),
        variants::judge_never,
    ),
    Plan {
        setting: "equations 1 to 4 and the bytes of loads with all values in the log, and with all in place: L \
                  and M as in PX-E3, and the entries of PX-E0; R(i) is the part of a tree above its last i levels",
        ..on_mixes(
            "PX-E9",
            "The model: gain of separation by the size of keys over values",
            COUNTED,
            |scale| {
                equations::modeled(scale)
                    .into_iter()
                    .flat_map(|(_, _, runs)| runs)
                    .collect()
            },
            equations::judge,
        )
    },
];

/// An experiment on the mixes of sizes.
const fn on_mixes(
    id: &'static str,
    title: &'static str,
    rounds: u32,
    runs: fn(Scale) -> Vec<RunSpec>,
    judge: Judge,
) -> Plan {
    Plan {
        id,
        title,
        setting: "keys of 24 bytes, values of 9, 104 and 1,004; half a million records (S 1.5 million, M 750,000, LD \
                  350,000, L 250,000), memtables of 2 MiB, files of 1 MiB, a level 1 of 5 MiB; T = 4 makes three \
                  levels in place, the same number that the paper's 8 makes of its hundred times larger data",
        rounds,
        runs,
        judge,
    }
}

/// The placement of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    Hybrid,
    InPlace,
    Log,
    LogWithoutGc,
    MediumsAsSmalls,
    MediumsAsLarges,
    BeforeLast,
    Never,
    Unsorted,
}

impl Placement {
    fn settings(self, run: RunSpec) -> RunSpec {
        match self {
            Self::Hybrid => run,
            Self::InPlace => run.in_place(),
            Self::Log => run.with("large-from", 64),
            Self::LogWithoutGc => run.with("large-from", 64).with("max-space-amp", "inf"),
            Self::MediumsAsSmalls => run.with("medium-from", "never"),
            Self::MediumsAsLarges => run.with("large-from", 120),
            Self::BeforeLast => run.with("medium-in-place", "before-last"),
            Self::Never => run.with("medium-in-place", "never"),
            Self::Unsorted => run.with("medium-order", "written"),
        }
    }
}

/// A placement with its name in a table.
type Named = (&'static str, Placement);

/// The mixes, and their records at scale 1.
const MIXES: [(&str, f64); 6] = [
    ("S", 1.5e6),
    ("M", 7.5e5),
    ("MD", 5e5),
    ("SD", 5e5),
    ("LD", 3.5e5),
    ("L", 2.5e5),
];

fn sized(run: RunSpec, scale: Scale) -> RunSpec {
    run.with("preset", "parallax")
        .with("size-ratio", 4)
        .sized(Sizes::small(scale, 0.5))
}

fn records_of(mix: &str) -> f64 {
    let found = MIXES.iter().find(|(name, _)| *name == mix);
    found.map_or(5e5, |(_, records)| *records)
}

/// The load, then `loads` with `ops` operations each.
fn mixed(scale: Scale, mix: &str, values: Placement, loads: &[&'static str], ops: f64) -> RunSpec {
    let run = RunSpec::new(&[&["ycsb-load"], loads].concat())
        .with("mix", mix)
        .with("num", scale.count(records_of(mix)))
        .with("ops", scale.count(ops));
    values.settings(sized(run, scale))
}

/// The load, and A with enough operations for a steady state of garbage collection.
fn updated(scale: Scale, mix: &str, values: Placement) -> RunSpec {
    mixed(scale, mix, values, &["ycsb-a"], 3.0 * records_of(mix))
}

fn tiny(scale: Scale, values: Placement) -> RunSpec {
    let records = 1e6;
    let run = RunSpec::new(&["ycsb-load", "ycsb-a"])
        .with("value-size", 64)
        .with("num", scale.count(records))
        .with("ops", scale.count(3.0 * records));
    values.settings(sized(run, scale))
}

/// M and MD with each of the placements, under A.
fn in_variants(scale: Scale, named: &[Named]) -> Vec<RunSpec> {
    let rows = variant_rows(scale, named, "ycsb-a");
    rows.into_iter().map(|(_, run, _)| run).collect()
}

/// A row of a table for each run of [`in_variants`].
fn variant_rows(scale: Scale, named: &[Named], load: &'static str) -> Vec<Row> {
    let runs = ["M", "MD"].into_iter().flat_map(|mix| {
        named.iter().map(move |&(name, values)| {
            (
                vec![format!("{mix}, {name}")],
                updated(scale, mix, values),
                load,
            )
        })
    });
    runs.collect()
}

/// The names of a row, its run, and its load.
type Row = (Vec<String>, RunSpec, &'static str);

const MOVED: Column = Column("moved", |report| short(moved(report)));

/// The table of rows with one load each.
fn compared(
    results: Results<'_>,
    rows: impl IntoIterator<Item = Row>,
) -> Result<(Table, Vec<Report>)> {
    results.table(&[""], &[KOPS, WRITTEN, MOVED, CPU, SPACE], rows)
}

/// Bytes that the log and background work write and read per user byte. Bytes of gets and scans do not count: in the
/// page cache the engine counts blocks of tables at their first verification, and no values.
fn moved(report: &Report) -> f64 {
    let work = report.io_stats.iter();
    let work = work.filter(|moved| moved.purpose != "gets and scans");
    let bytes: u64 = work.map(|it| it.written_bytes + it.read_bytes).sum();
    match report.user_bytes {
        0 => 0.0,
        user => bytes as f64 / user as f64,
    }
}

/// Bytes that garbage collection wrote.
fn gc_bytes(report: &Report) -> u64 {
    report.moved_for("garbage collection").0
}

/// Processor time per operation, in microseconds.
fn efficiency(report: &Report) -> f64 {
    report.cpu_us_per_op
}
