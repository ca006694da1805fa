//! The experiments on append merges: LS-E1 to LS-E7.
//!
//! The paper's baseline is LevelDB. The baseline here is the same engine with leveling and T = 10.

use windrow::Result;

use super::figures::{Column, Figures, KOPS, WRITTEN, all_below, list, short};
use super::findings::Findings;
use super::run_spec::{Results, RunSpec, Scale, Sizes};
use super::{COUNTED, Judge, Plan, TIMED};
use crate::paper::experiment::{Check, Table};
use crate::{CompactionShape, Report};

pub(super) const EXPERIMENTS: [Plan; 7] = [
    experiment("LS-E1", "Number of compactions", judge_counts),
    experiment("LS-E2", "Bytes of compactions", judge_bytes),
    experiment("LS-E3", "Time of compactions", judge_times),
    Plan {
        rounds: COUNTED,
        runs: |scale| PRESETS.map(|preset| in_sequence(scale, preset)).to_vec(),
        ..experiment("LS-E4", "Filling in sequence", judge_sequence)
    },
    experiment("LS-E5", "Filling at random", |scale, results| {
        judge_writes(scale, results, "fillrandom")
    }),
    experiment("LS-E6", "Overwriting", |scale, results| {
        judge_writes(scale, results, "overwrite")
    }),
    experiment("LS-E7", "Reads", judge_reads),
];

const fn experiment(id: &'static str, title: &'static str, judge: Judge) -> Plan {
    Plan {
        id,
        title,
        setting: "2.5 million entries of 16 + 100 bytes, memtables of 2 MiB, files of 1 MiB, a level 1 of 5 MiB: \
                  four levels, the number that twice the sizes give; 4 bits per key, 8 MiB of cache",
        rounds: TIMED,
        runs: |scale| PRESETS.map(|preset| at_random(scale, preset)).to_vec(),
        judge,
    }
}

const PRESETS: [&str; 2] = ["leveling", "lsma"];
const WRITES: [&str; 2] = ["fillrandom", "overwrite"];
const READS: [&str; 3] = ["readseq", "readrandom", "readmissing"];

fn tree(loads: &[&'static str], scale: Scale, preset: &str) -> RunSpec {
    RunSpec::new(loads)
        .with("preset", preset)
        .with("num", scale.count(2.5e6))
        .with("bits-per-key", 4)
        .with("filter-allocation", "uniform")
        .with(
            "cache-bytes",
            scale.bytes(8.0 * f64::from(1 << 20), 1 << 20),
        )
        .with("max-space-amp", "inf")
        .in_place()
        .sized(Sizes::small(scale, 0.5))
}

fn at_random(scale: Scale, preset: &str) -> RunSpec {
    tree(&[&WRITES[..], &READS[..]].concat(), scale, preset)
}

fn in_sequence(scale: Scale, preset: &str) -> RunSpec {
    tree(&["fillseq"], scale, preset)
}

/// The load in leveling, and with appends.
fn both(scale: Scale, results: Results<'_>, load: &str) -> Result<[Report; 2]> {
    let [leveling, lsma] = PRESETS.map(|preset| results.of(&at_random(scale, preset), load));
    Ok([leveling?, lsma?])
}

fn compactions(report: &Report) -> CompactionShape {
    report.compactions.unwrap_or_default()
}

/// A row for each figure of both writing loads, and the ratios of lsma to leveling.
fn compared<const N: usize>(
    scale: Scale,
    results: Results<'_>,
    names: [&str; N],
    figures: impl Fn(&Report) -> [f64; N],
) -> Result<(Table, [Vec<f64>; N])> {
    let mut table = Table::new(&["load", "", "leveling", "lsma", "ratio"]);
    let mut ratios = [const { Vec::new() }; N];
    for load in WRITES {
        let [leveling, lsma] = both(scale, results, load)?.each_ref().map(&figures);
        for place in 0..N {
            let ratio = lsma[place] / leveling[place];
            table.row([
                load.to_owned(),
                names[place].to_owned(),
                short(leveling[place]),
                short(lsma[place]),
                short(ratio),
            ]);
            ratios[place].push(ratio);
        }
    }
    Ok((table, ratios))
}

fn judge_counts(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let names = ["compactions", "ms for each"];
    let (table, [counts, each]) = compared(scale, results, names, |report| {
        let done = compactions(report);
        let count = done.count as f64;
        [count, done.seconds * 1e3 / count.max(1.0)]
    })?;
    let checks = vec![
        Check::new(
            "more compactions",
            "about 2 times",
            list(&counts),
            counts.iter().all(|&ratio| ratio > 1.0),
        )
        .or_since(
            "a compaction takes every upper file that costs nothing more, with all of its segments, so fewer \
             compactions are needed",
            counts.iter().all(|&ratio| ratio > 0.6),
        ),
        lower("smaller compactions", "lighter", &each),
    ];
    Ok(Findings::new(checks, table))
}

/// The check that all ratios to leveling are below 1.
fn lower(shape: &str, published: &str, ratios: &[f64]) -> Check {
    Check::new(shape, published, list(ratios), all_below(ratios, 1.0))
}

/// MiB that compactions, appends and consolidations read and write.
fn moved(report: &Report) -> [f64; 2] {
    let purposes = ["compactions", "appends", "consolidations"];
    let moved = purposes.map(|purpose| report.moved_for(purpose));
    let sum = |bytes: fn(&(u64, u64)) -> u64| {
        moved.iter().map(bytes).sum::<u64>() as f64 / f64::from(1 << 20)
    };
    [sum(|moved| moved.1), sum(|moved| moved.0)]
}

fn judge_bytes(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, [read, written]) = compared(scale, results, ["MiB read", "MiB written"], moved)?;
    let checks = vec![
        lower("compactions read less", "0.55", &read),
        lower("compactions write less", "0.60", &written),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_times(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let names = ["all, s", "the shortest, ms", "the longest, ms"];
    let (table, [all, shortest, longest]) = compared(scale, results, names, |report| {
        let done = compactions(report);
        [done.seconds, done.shortest_ms, done.longest_ms]
    })?;
    let checks = vec![
        lower("all compactions take less time", "0.70", &all),
        lower(
            "the shortest is shorter",
            "a tenth, as data grows",
            &shortest,
        ),
        Check::new(
            "the longest is no longer",
            "comparable",
            list(&longest),
            all_below(&longest, 1.5),
        )
        .or_since(
            "a single compaction, which any other program on the machine can delay",
            all_below(&longest, 3.0),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_sequence(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let columns = [
        KOPS,
        WRITTEN,
        Column("compactions", |report| {
            compactions(report).count.to_string()
        }),
    ];
    let rows = PRESETS.map(|preset| {
        (
            vec![preset.to_owned()],
            in_sequence(scale, preset),
            "fillseq",
        )
    });
    let (table, reports) = results.table(&[""], &columns, rows)?;
    let [leveling, lsma] = [&reports[0], &reports[1]].map(Figures::written);
    let rewritten: u64 = reports.iter().map(|report| compactions(report).count).sum();
    let checks = vec![
        Check::new(
            "no difference",
            "equal",
            format!("written per byte: {}", list([leveling, lsma])),
            (lsma / leveling - 1.0).abs() < 0.02,
        ),
        Check::new(
            "all by trivial moves",
            "trivial moves",
            format!("{rewritten} compactions"),
            rewritten == 0,
        ),
    ];
    Ok(Findings::new(checks, table))
}

/// Adds the row of a figure, which begins with `names`; returns the ratio of lsma to leveling.
fn ratio_row(
    table: &mut Table,
    names: &[&str],
    reports: &[Report; 2],
    figure: fn(&Report) -> f64,
) -> f64 {
    let [leveling, lsma] = reports.each_ref().map(figure);
    let names = names.iter().map(|&name| name.to_owned());
    let cells = [leveling, lsma, lsma / leveling].map(short);
    table.rows.push(names.chain(cells).collect());
    lsma / leveling
}

fn judge_writes(scale: Scale, results: Results<'_>, load: &str) -> Result<Findings> {
    let reports = both(scale, results, load)?;
    let mut table = Table::new(&["", "leveling", "lsma", "ratio"]);
    let mut row = |name, figure| ratio_row(&mut table, &[name], &reports, figure);
    let speed = row("kops/s", Figures::kops);
    let settled = row("kops/s, settled", |report| 1e3 / report.settled_micros());
    row("CPU us per operation", |report| report.cpu_us_per_op);
    row("written per byte", Figures::written);
    row("seconds of stalls", |report| report.stall_seconds);
    row("p99.9, us", |report| report.latency.p999_us);
    row("longest, us", |report| report.latency.max_us);
    let (published, least) = if load == "overwrite" {
        ("above 1.2, up to 1.91", 1.2)
    } else {
        ("above 1.5, up to 2.05", 1.5)
    };
    let checks = vec![Check::new(
        "faster by the published factor",
        published,
        format!(
            "{}; with the background work after the load {}",
            short(speed),
            short(settled)
        ),
        speed > least,
    )
    .or_since(
        "the page cache would absorb the saved bytes, and the writer's own processor time counts; the authors' \
         writers waited for a device",
        speed > 0.95 && settled > 1.05,
    )];
    Ok(Findings::new(checks, table))
}

fn judge_reads(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["load", "", "leveling", "lsma", "ratio"]);
    let (mut speeds, mut asked) = (Vec::new(), Vec::new());
    for load in READS {
        let reports = both(scale, results, load)?;
        let mut row = |name, figure| ratio_row(&mut table, &[load, name], &reports, figure);
        speeds.push(row("kops/s", Figures::kops));
        if load != "readseq" {
            asked.push(row("filters probed", |report| {
                report.filter_probes.unwrap_or_default() as f64 / report.ops.max(1) as f64
            }));
            row("blocks", Figures::blocks);
        }
    }
    let checks = vec![
        Check::new(
            "reads are alike",
            "within 5 %",
            format!("speed, {}: {}", READS.join(", "), list(&speeds)),
            speeds.iter().all(|ratio| (0.95..1.06).contains(ratio)),
        )
        .or_since(
            "all data is in memory, where no device hides the cost of a dozen segments with 4 bits each; for this reason \
             `balanced` limits segments by level and allocates bits by segment",
            asked.iter().all(|&ratio| ratio > 1.5)
                && speeds.iter().all(|ratio| (0.25..1.06).contains(ratio)),
        ),
    ];
    Ok(Findings::new(checks, table))
}
