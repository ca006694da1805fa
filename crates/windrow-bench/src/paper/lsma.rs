//! The experiments on append merges: LS-E1 to LS-E7.
//!
//! The paper's baseline is LevelDB; here it is the same engine with leveling and T = 10.

use windrow::Result;

use super::findings::{Findings, list, short};
use super::line::{Figures, Line, Results, Scale, Sizes};
use super::{COUNTED, Plan, TIMED};
use crate::paper::experiment::{Check, Table};
use crate::{CompactionShape, Report};

pub(super) const EXPERIMENTS: [Plan; 7] = [
    experiment("LS-E1", "Number of merges", judge_merges),
    experiment("LS-E2", "Bytes of merges", judge_bytes),
    experiment("LS-E3", "Time of merges", judge_times),
    Plan {
        rounds: COUNTED,
        lines: |scale| PRESETS.map(|preset| in_sequence(scale, preset)).to_vec(),
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

const fn experiment(
    id: &'static str,
    title: &'static str,
    judge: fn(Scale, Results<'_>) -> Result<Findings>,
) -> Plan {
    Plan {
        id,
        title,
        setting: "2.5 million entries of 16 + 100 bytes, memtables of 2 MiB, files of 1 MiB, a level 1 of 5 MiB: \
                  four levels, as with twice as much of each; 4 bits per key, 8 MiB of cache",
        rounds: TIMED,
        lines: |scale| PRESETS.map(|preset| at_random(scale, preset)).to_vec(),
        judge,
    }
}

const PRESETS: [&str; 2] = ["leveling", "lsma"];
const WRITES: [&str; 2] = ["fillrandom", "overwrite"];
const READS: [&str; 3] = ["readseq", "readrandom", "readmissing"];

fn tree(loads: &[&'static str], scale: Scale, preset: &str) -> Line {
    Line::new(loads)
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

fn at_random(scale: Scale, preset: &str) -> Line {
    tree(
        &[WRITES[0], WRITES[1], READS[0], READS[1], READS[2]],
        scale,
        preset,
    )
}

fn in_sequence(scale: Scale, preset: &str) -> Line {
    tree(&["fillseq"], scale, preset)
}

/// The load in leveling, and with appends.
fn both(scale: Scale, results: Results<'_>, load: &str) -> Result<[Report; 2]> {
    let [leveling, lsma] = PRESETS.map(|preset| results.of(&at_random(scale, preset), load));
    Ok([leveling?, lsma?])
}

fn merges(report: &Report) -> CompactionShape {
    report.merges.unwrap_or_default()
}

/// Figures of both writing loads, each as its ratio to that of leveling, with a row for each.
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

fn judge_merges(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, [counts, each]) = compared(scale, results, ["merges", "ms for each"], |report| {
        let merges = merges(report);
        [
            merges.merges as f64,
            merges.seconds * 1e3 / merges.merges.max(1) as f64,
        ]
    })?;
    let checks = vec![
        Check::new("more merges", "about 2 times", list(counts.iter().copied()), counts.iter().all(|&ratio| ratio > 1.0))
            .or_since(
                "a job takes every upper file that comes at no further cost, with all its segments, so fewer are \
                 needed",
                counts.iter().all(|&ratio| ratio > 0.6),
            ),
        Check::new("lighter merges", "lighter", list(each.iter().copied()), each.iter().all(|&ratio| ratio < 1.0)),
    ];
    Ok(Findings::new(checks, table))
}

/// Bytes that merges, appends and consolidations write and read.
fn merged(report: &Report) -> [f64; 2] {
    let purposes = ["merges", "appends", "consolidations"].map(|purpose| report.moved_for(purpose));
    let sum = |bytes: fn(&(u64, u64)) -> u64| {
        purposes.iter().map(bytes).sum::<u64>() as f64 / f64::from(1 << 20)
    };
    [sum(|moved| moved.1), sum(|moved| moved.0)]
}

fn judge_bytes(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let (table, [read, written]) = compared(scale, results, ["MiB read", "MiB written"], merged)?;
    let below = |ratios: &[f64]| ratios.iter().all(|&ratio| ratio < 1.0);
    let checks = vec![
        Check::new(
            "merges read less",
            "0.55",
            list(read.iter().copied()),
            below(&read),
        ),
        Check::new(
            "merges write less",
            "0.60",
            list(written.iter().copied()),
            below(&written),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_times(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let names = ["all, s", "the shortest, ms", "the longest, ms"];
    let (table, [all, shortest, longest]) = compared(scale, results, names, |report| {
        let merges = merges(report);
        [merges.seconds, merges.shortest_ms, merges.longest_ms]
    })?;
    let checks = vec![
        Check::new(
            "all merges take less time",
            "0.70",
            list(all.iter().copied()),
            all.iter().all(|&ratio| ratio < 1.0),
        ),
        Check::new(
            "the shortest is shorter",
            "a tenth, as data grows",
            list(shortest.iter().copied()),
            shortest.iter().all(|&ratio| ratio < 1.0),
        ),
        Check::new(
            "the longest is no longer",
            "comparable",
            list(longest.iter().copied()),
            longest.iter().all(|&ratio| ratio < 1.5),
        )
        .or_since(
            "a single merge, which any other stress test on the machine can hold up",
            longest.iter().all(|&ratio| ratio < 3.0),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_sequence(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["", "kops/s", "written per byte", "merges"]);
    let mut written = Vec::new();
    let mut rewritten = 0;
    for preset in PRESETS {
        let report = results.of(&in_sequence(scale, preset), "fillseq")?;
        table.row([
            preset.to_owned(),
            short(report.kops()),
            short(report.write_amplification),
            merges(&report).merges.to_string(),
        ]);
        written.push(report.write_amplification);
        rewritten += merges(&report).merges;
    }
    let checks = vec![
        Check::new(
            "no difference",
            "equal",
            format!("written per byte: {}", list(written.iter().copied())),
            (written[1] / written[0] - 1.0).abs() < 0.02,
        ),
        Check::new(
            "all by moves",
            "trivial moves",
            format!("{rewritten} merges"),
            rewritten == 0,
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_writes(scale: Scale, results: Results<'_>, load: &str) -> Result<Findings> {
    let reports = both(scale, results, load)?;
    let mut table = Table::new(&["", "leveling", "lsma", "ratio"]);
    let mut row = |name: &str, figure: &dyn Fn(&Report) -> f64| {
        let [leveling, lsma] = reports.each_ref().map(figure);
        table.row([
            name.to_owned(),
            short(leveling),
            short(lsma),
            short(lsma / leveling),
        ]);
        lsma / leveling
    };
    let speed = row("kops/s", &|report| report.kops());
    let settled = row("kops/s, settled", &|report| 1e3 / report.settled_micros());
    row("CPU us per operation", &|report| report.cpu_us_per_op);
    row("written per byte", &|report| report.write_amplification);
    row("seconds of stalls", &|report| report.stall_seconds);
    row("p99.9, us", &|report| report.latency.p999_us);
    row("longest, us", &|report| report.latency.max_us);
    let (published, least) = if load == "overwrite" {
        ("above 1.2, up to 1.91", 1.2)
    } else {
        ("above 1.5, up to 2.05", 1.5)
    };
    let checks = vec![Check::new(
        "faster by as much",
        published,
        format!(
            "{}; with the work that is left behind {}",
            short(speed),
            short(settled)
        ),
        speed > least,
    )
    .or_since(
        "the page cache takes the bytes that are not moved, and the writer's own processor time counts, where the \
         authors' writers waited for a device",
        speed > 0.95 && settled > 1.05,
    )];
    Ok(Findings::new(checks, table))
}

fn judge_reads(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["load", "", "leveling", "lsma", "ratio"]);
    let (mut speeds, mut asked) = (Vec::new(), Vec::new());
    for load in READS {
        let reports = both(scale, results, load)?;
        let mut row = |name: &str, figure: &dyn Fn(&Report) -> f64| {
            let [leveling, lsma] = reports.each_ref().map(figure);
            table.row([
                load.to_owned(),
                name.to_owned(),
                short(leveling),
                short(lsma),
                short(lsma / leveling),
            ]);
            lsma / leveling
        };
        speeds.push(row("kops/s", &|report| report.kops()));
        if load != "readseq" {
            asked.push(row("filters asked", &|report| {
                report.filter_probes.unwrap_or_default() as f64 / report.ops.max(1) as f64
            }));
            row("blocks", &|report| report.blocks());
        }
    }
    let checks = vec![
        Check::new(
            "reads are alike",
            "within 5 %",
            format!("speed, {}: {}", READS.join(", "), list(speeds.iter().copied())),
            speeds.iter().all(|ratio| (0.95..1.06).contains(ratio)),
        )
        .or_since(
            "all is in memory, where a dozen segments with 4 bits each are not hidden behind a device; that is why \
             `balanced` limits segments by level and deals bits by segment",
            asked.iter().all(|&ratio| ratio > 1.5)
                && speeds.iter().all(|ratio| (0.25..1.06).contains(ratio)),
        ),
    ];
    Ok(Findings::new(checks, table))
}
