//! The experiments on Garnering: AU-E1 to AU-E10.
//!
//! The paper's baseline is RocksDB; here it is the same engine with c = 1, which is leveling.

use std::iter;

use windrow::simulation::{Load, level_count, simulate};
use windrow::{KeyspaceOptions, Preset, Result};

use super::findings::{Findings, falls, list, mean, short};
use super::line::{Figures, Line, Results, Scale, Sizes};
use super::{COUNTED, Plan, TIMED};
use crate::Report;
use crate::paper::experiment::{Check, Table};

pub(super) const EXPERIMENTS: [Plan; 10] = [
    Plan {
        id: "AU-E1",
        title: "Sequential and random filling, c = 0.8 beside leveling",
        setting: "T = 2, 2 million entries of 16 + 50, 100 and 200 bytes, no filters",
        rounds: TIMED,
        lines: |scale| fills(scale).collect(),
        judge: judge_fills,
    },
    Plan {
        id: "AU-E2",
        title: "Gets of random keys without filters",
        setting: "the trees of AU-E1, filled in random order; level 0 is empty when it is read",
        rounds: COUNTED,
        lines: |scale| reads(scale).collect(),
        judge: judge_gets,
    },
    Plan {
        id: "AU-E3",
        title: "Seeks, and seeks with 10 and 100 steps",
        setting: "the trees of AU-E2",
        rounds: COUNTED,
        lines: |scale| reads(scale).collect(),
        judge: judge_seeks,
    },
    Plan {
        id: "AU-E4",
        title: "c from 1 to 0.4 at T = 3 and 5",
        setting: "0.4, 0.63 and all of a quarter of the paper's 8.6 million entries of 16 + 100 bytes, and a \
                  quarter of its memtables, files and level 1; no filters; figures are means of the three trees",
        rounds: COUNTED,
        lines: |scale| sweep(scale).collect(),
        judge: judge_sweep,
    },
    Plan {
        id: "AU-E5",
        title: "YCSB's load: throughput and stalls",
        setting: YCSB_SETTING,
        rounds: TIMED,
        lines: |scale| ycsb(scale).collect(),
        judge: judge_load,
    },
    Plan {
        id: "AU-E6",
        title: "YCSB A to F",
        setting: YCSB_SETTING,
        rounds: TIMED,
        lines: |scale| ycsb(scale).collect(),
        judge: judge_ycsb,
    },
    Plan {
        id: "AU-E7",
        title: "Latencies of reads and scans under YCSB",
        setting: YCSB_SETTING,
        rounds: TIMED,
        lines: |scale| ycsb(scale).collect(),
        judge: judge_latencies,
    },
    Plan {
        id: "AU-E8",
        title: "Space after a load",
        setting: YCSB_SETTING,
        rounds: TIMED,
        lines: |scale| ycsb(scale).collect(),
        judge: judge_space,
    },
    Plan {
        id: "AU-E9",
        title: "Trees that grow, with and without filters of 2 bits",
        setting: "T = 2, c = 0.8 beside leveling, entries of 16 + 100 bytes; a 128th of the paper's 15 to 60 \
                  GB, under memtables, files and a level 1 of an eighth; level 0 is empty when it is read",
        rounds: COUNTED,
        lines: |scale| growth(scale).collect(),
        judge: judge_growth,
    },
    Plan {
        id: "AU-E10",
        title: "The analysis: levels as the square root of the logarithm, bits for one useless read",
        setting: "nothing runs: the policy's own code, on numbers",
        rounds: COUNTED,
        lines: |_| Vec::new(),
        judge: judge_analysis,
    },
];

const YCSB_SETTING: &str = "a 128th of the paper's 80 GB of records with 1,000 bytes, and of its memtables, files \
                            and level 1 (512 KiB, 512 KiB, 2 MiB); T = 5, no filters, no compression; level 0 is \
                            empty when it is read";

const VALUES: [u64; 3] = [50, 100, 200];
const SWEEP: [f64; 4] = [1.0, 0.8, 0.6, 0.4];
const RATIOS: [f64; 2] = [3.0, 5.0];

/// With which parts of the entries each of these trees is met: about as far apart as levels are, so that how
/// full the last one is evens out.
const PARTS: [f64; 3] = [0.4, 0.63, 1.0];
const YCSB: [f64; 3] = [1.0, 0.8, 0.4];
const GIGABYTES: [f64; 4] = [15.0, 30.0, 45.0, 60.0];
const LETTERS: [&str; 6] = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];

/// Why one tree of two sizes may read more blocks than its levels let expect.
const YOUNG_LEVEL: &str = "a last level that has just come into being holds little, and most gets look above it first; \
                           which trees are met like that depends on their size, and on how merges kept up with the \
                           fill";

/// What is read from trees that were filled in random order.
const READS: [&str; 4] = ["readrandom", "seekrandom", "seek10", "seek100"];

/// `loads` on Garnering levels alone.
fn tree(loads: &[&'static str], ratio: f64, scaling: f64, bits: f64) -> Line {
    Line::new(loads)
        .with("preset", "autumn")
        .with("size-ratio", ratio)
        .with("scaling", scaling)
        .with("bits-per-key", bits)
}

fn micro(loads: &[&'static str], scale: Scale, value: u64, scaling: f64) -> Line {
    tree(loads, 2.0, scaling, 0.0)
        .with("num", scale.count(2e6))
        .with("value-size", value)
        .sized(Sizes::small(scale, 1.0))
}

fn fill(scale: Scale, load: &'static str, value: u64, scaling: f64) -> Line {
    micro(&[load], scale, value, scaling)
}

fn fills(scale: Scale) -> impl Iterator<Item = Line> {
    pairs().flat_map(move |(value, scaling)| {
        ["fillseq", "fillrandom"].map(|load| fill(scale, load, value, scaling))
    })
}

/// Chance leaves no runs in level 0 here, which a seek would visit.
fn read(scale: Scale, value: u64, scaling: f64) -> Line {
    micro(
        &["fillrandom", READS[0], READS[1], READS[2], READS[3]],
        scale,
        value,
        scaling,
    )
    .with("ops", scale.count(2e5))
    .with("level0-runs", 1)
}

fn reads(scale: Scale) -> impl Iterator<Item = Line> {
    pairs().map(move |(value, scaling)| read(scale, value, scaling))
}

fn pairs() -> impl Iterator<Item = (u64, f64)> {
    VALUES
        .into_iter()
        .flat_map(|value| [(value, 1.0), (value, 0.8)])
}

fn swept(scale: Scale, ratio: f64, scaling: f64, part: f64) -> Line {
    tree(&["fillrandom", "readrandom", "seek10"], ratio, scaling, 0.0)
        .with("num", scale.count(8_620_689.0 / 4.0 * part))
        .with("ops", scale.count(2e5))
        .with("level0-runs", 1)
        .sized(Sizes::small(scale, 0.25))
}

fn sweep(scale: Scale) -> impl Iterator<Item = Line> {
    let trees = RATIOS
        .into_iter()
        .flat_map(|ratio| SWEEP.map(|scaling| (ratio, scaling)));
    trees.flat_map(move |(ratio, scaling)| PARTS.map(|part| swept(scale, ratio, scaling, part)))
}

fn records(scale: Scale, scaling: f64) -> Line {
    let mut loads = vec!["ycsb-load"];
    loads.extend(LETTERS);
    tree(&loads, 5.0, scaling, 0.0)
        .with("num", scale.count(80e9 / 1024.0 / 128.0))
        .with("ops", scale.count(1e5))
        .with("value-size", 1000)
        .with("level0-runs", 1)
        .sized(Sizes::large(scale, 1.0 / 128.0))
}

fn ycsb(scale: Scale) -> impl Iterator<Item = Line> {
    YCSB.into_iter().map(move |scaling| records(scale, scaling))
}

fn grown(scale: Scale, gigabytes: f64, scaling: f64, bits: f64) -> Line {
    tree(&["fillrandom", "readrandom", "seek10"], 2.0, scaling, bits)
        .with("num", scale.count(gigabytes * 1e9 / 116.0 / 128.0))
        .with("ops", scale.count(1e5))
        .with("level0-runs", 1)
        .sized(Sizes::small(scale, 0.125))
}

fn growth(scale: Scale) -> impl Iterator<Item = Line> {
    GIGABYTES.into_iter().flat_map(move |gigabytes| {
        [(1.0, 0.0), (0.8, 0.0), (1.0, 2.0), (0.8, 2.0)]
            .map(|(scaling, bits)| grown(scale, gigabytes, scaling, bits))
    })
}

fn judge_fills(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "value bytes",
        "c",
        "load",
        "kops/s",
        "us per write, settled",
        "written per byte",
        "levels",
    ]);
    let mut written = Vec::new();
    let mut micros = Vec::new();
    for (value, scaling) in pairs() {
        for load in ["fillseq", "fillrandom"] {
            let report = results.of(&fill(scale, load, value, scaling), load)?;
            table.row([
                value.to_string(),
                scaling.to_string(),
                load.to_owned(),
                short(report.kops()),
                short(report.settled_micros()),
                short(report.write_amplification),
                report.depth().to_string(),
            ]);
            micros.push(report.settled_micros());
            written.push(report.write_amplification);
        }
    }
    // In the order of the table: for each size leveling, then c = 0.8, each in sequence, then at random.
    let ratios: Vec<f64> = written.chunks(4).map(|four| four[3] / four[1]).collect();
    let sequential: Vec<f64> = micros.chunks(2).map(|two| two[0] / two[1]).collect();
    let by_size: Vec<f64> = micros.iter().skip(1).step_by(4).copied().collect();
    let checks = vec![
        Check::new(
            "writes no worse than the baseline",
            "similar latencies",
            format!(
                "bytes written, c = 0.8 over leveling: {}",
                list(ratios.iter().copied())
            ),
            ratios.iter().all(|&ratio| ratio <= 1.1),
        ),
        Check::new(
            "filling in sequence is faster than at random",
            "faster",
            format!(
                "time in sequence over at random: {}",
                list(sequential.iter().copied())
            ),
            sequential.iter().all(|&ratio| ratio < 1.0),
        ),
        Check::new(
            "a write takes longer the larger its value",
            "grows",
            format!("leveling, at random: {} us", list(by_size.iter().copied())),
            by_size.windows(2).all(|pair| pair[0] < pair[1]),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_gets(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["value bytes", "c", "levels", "blocks per get", "us per get"]);
    let mut blocks = Vec::new();
    let mut depths = Vec::new();
    for (value, scaling) in pairs() {
        let report = results.of(&read(scale, value, scaling), "readrandom")?;
        table.row([
            value.to_string(),
            scaling.to_string(),
            report.depth().to_string(),
            short(report.blocks()),
            short(1e3 / report.kops()),
        ]);
        blocks.push(report.blocks());
        depths.push(report.depth());
    }
    let ratios: Vec<f64> = blocks.chunks(2).map(|two| two[1] / two[0]).collect();
    let checks = vec![
        Check::new(
            "fewer levels",
            "fewer",
            format!("leveling and c = 0.8, each size: {depths:?}"),
            depths.chunks(2).all(|two| two[1] < two[0]),
        ),
        Check::new(
            "gets cost less at every size",
            "97.5 us in place of 119.9 at 50 bytes (0.81)",
            format!(
                "blocks per get, c = 0.8 over leveling: {}",
                list(ratios.iter().copied())
            ),
            ratios.iter().all(|&ratio| ratio < 1.0),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_seeks(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "value bytes",
        "steps",
        "leveling: blocks",
        "c = 0.8: blocks",
        "ratio",
        "us",
    ]);
    let mut ratios = Vec::new();
    for value in VALUES {
        for load in &READS[1..] {
            let [leveling, autumn] =
                [1.0, 0.8].map(|scaling| results.of(&read(scale, value, scaling), load));
            let (leveling, autumn) = (leveling?, autumn?);
            let ratio = autumn.blocks() / leveling.blocks();
            table.row([
                value.to_string(),
                load.trim_start_matches("seekrandom")
                    .trim_start_matches("seek")
                    .to_owned(),
                short(leveling.blocks()),
                short(autumn.blocks()),
                short(ratio),
                list([1e3 / leveling.kops(), 1e3 / autumn.kops()]),
            ]);
            ratios.push(ratio);
        }
    }
    let by_steps = ratios.chunks(3);
    let long_by_value: Vec<f64> = ratios.iter().skip(2).step_by(3).copied().collect();
    let rises = |figures: &[f64]| figures.windows(2).all(|pair| pair[1] >= pair[0] * 0.98);
    let checks = vec![
        Check::new(
            "seeks cost less",
            "138.9 us in place of 170.7 at 50 bytes (0.81)",
            format!(
                "blocks per seek, c = 0.8 over leveling: {}",
                list(ratios.iter().step_by(3).copied())
            ),
            ratios.iter().all(|&ratio| ratio < 1.0),
        ),
        Check::new(
            "the gain shrinks with the steps behind a seek",
            "200 bytes: 9 % for seeks, 5 % with 100 steps",
            format!(
                "blocks, 0, 10 and 100 steps, by size: {}",
                list(ratios.iter().copied())
            ),
            by_steps.clone().all(rises),
        ),
        Check::new(
            "the gain of long ones shrinks with the size of values",
            "shrinks",
            format!(
                "blocks with 100 steps: {}",
                list(long_by_value.iter().copied())
            ),
            rises(&long_by_value),
        )
        .or_since(
            "how many levels c = 0.8 saves depends on how full the last one is at each size (AU-E2 has the levels), \
             and that outweighs what the size does to a long scan",
            long_by_value.windows(2).all(|pair| pair[1] > pair[0] * 0.8),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_sweep(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "T",
        "c",
        "levels",
        "written per byte",
        "blocks per get",
        "per seek and 10 steps",
        "space",
    ]);
    let mut checks = Vec::new();
    let mut by_ratio = Vec::new();
    for ratio in RATIOS {
        let (mut gets, mut seeks, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for scaling in SWEEP {
            let reports = |load: &str| -> Result<Vec<Report>> {
                let lines = PARTS.map(|part| swept(scale, ratio, scaling, part));
                lines.iter().map(|line| results.of(line, load)).collect()
            };
            let of = |reports: &[Report], figure: fn(&Report) -> f64| {
                mean(&reports.iter().map(figure).collect::<Vec<_>>())
            };
            let fills = reports("fillrandom")?;
            gets.push(of(&reports("readrandom")?, Figures::blocks));
            seeks.push(of(&reports("seek10")?, Figures::blocks));
            written.push(of(&fills, |fill| fill.write_amplification));
            let depths: Vec<String> = fills.iter().map(|fill| fill.depth().to_string()).collect();
            let newest = |figures: &[f64]| short(figures[figures.len() - 1]);
            table.row([
                ratio.to_string(),
                scaling.to_string(),
                depths.join(", "),
                newest(&written),
                newest(&gets),
                newest(&seeks),
                short(of(&fills, |fill| {
                    fill.space_amplification.unwrap_or_default()
                })),
            ]);
        }
        let (first, last) = (written[0], written[SWEEP.len() - 1]);
        checks.push(
            Check::new(
                &format!("T = {ratio}: the lower c, the fewer blocks per seek and per get"),
                "monotone",
                format!(
                    "seeks {}; gets {}",
                    list(seeks.iter().copied()),
                    list(gets.iter().copied())
                ),
                falls(&seeks, 0.05) && falls(&gets, 0.05) && seeks[SWEEP.len() - 1] < seeks[0],
            )
            .or_since(
                YOUNG_LEVEL,
                [&seeks, &gets]
                    .iter()
                    .all(|blocks| falls(blocks, 0.3) && blocks[SWEEP.len() - 1] < blocks[0]),
            ),
        );
        checks.push(Check::new(
            &format!("T = {ratio}: writing costs more at the lowest c"),
            "worse writes",
            list(written.iter().copied()),
            last > first,
        ));
        by_ratio.push(seeks);
    }
    let higher = |times: f64| {
        let mut pairs = by_ratio[0].iter().zip(&by_ratio[1]);
        pairs.all(|(three, five)| *five <= three * times)
    };
    let pairs = by_ratio[0].iter().zip(&by_ratio[1]);
    let ratios: Vec<f64> = pairs.map(|(three, five)| five / three).collect();
    checks.push(
        Check::new(
            "the higher T, the fewer blocks",
            "fewer levels, better reads",
            format!(
                "T = 3: {}; T = 5: {}",
                list(by_ratio[0].iter().copied()),
                list(by_ratio[1].iter().copied())
            ),
            higher(1.05),
        )
        .or_since(YOUNG_LEVEL, higher(1.3) && mean(&ratios) < 1.0),
    );
    let series = RATIOS.iter().zip(&by_ratio).map(|(ratio, blocks)| {
        let points = SWEEP.iter().zip(blocks).map(|(&c, &blocks)| [c, blocks]);
        (format!("T = {ratio}"), points.collect())
    });
    let labels = ["c", "blocks per seek and 10 steps"];
    Ok(Findings::new(checks, table).drawn(labels, series.collect()))
}

fn judge_load(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "c",
        "kops/s",
        "kops/s, settled",
        "written per byte",
        "stalls",
        "seconds of stalls",
    ]);
    let (mut settled, mut stalls, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for scaling in YCSB {
        let report = results.of(&records(scale, scaling), "ycsb-load")?;
        table.row([
            scaling.to_string(),
            short(report.kops()),
            short(1e3 / report.settled_micros()),
            short(report.write_amplification),
            report.stalls.unwrap_or_default().to_string(),
            short(report.stall_seconds),
        ]);
        settled.push(1e3 / report.settled_micros());
        stalls.push(report.stall_seconds);
        written.push(report.write_amplification);
    }
    // What is stalled, and done, for each byte that is written.
    let per_byte = |figures: &[f64]| -> Vec<f64> {
        let pairs = figures.iter().zip(&written);
        pairs.map(|(figure, written)| figure / written).collect()
    };
    let (stalled, worked) = (
        per_byte(&stalls),
        per_byte(&settled.iter().map(|rate| 1.0 / rate).collect::<Vec<_>>()),
    );
    let more_is_written = written[2] > written[0];
    let because = "a load that nothing holds back is bound by the bytes that merging moves, and those grow as c \
                   falls; the paper's stalls are those of RocksDB's triggers, which stop writers by the number \
                   of runs and by pending bytes, where Windrow slows them down by what is due";
    let checks = vec![
        Check::new(
            "the time of stalls falls with c",
            "3,403 stalls in RocksDB, 2,592 at c = 0.8, 1,265 at 0.4",
            format!("seconds of stalls: {}", list(stalls.iter().copied())),
            falls(&stalls, 0.1) && stalls[2] < stalls[0],
        )
        .or_since(because, more_is_written && falls(&stalled, 0.25)),
        Check::new(
            "the load is faster at c = 0.4",
            "15 % faster",
            format!("kops/s, settled: {}", list(settled.iter().copied())),
            settled[2] > settled[0],
        )
        .or_since(because, more_is_written && worked[2] < 1.1 * worked[0]),
    ];
    Ok(Findings::new(checks, table))
}

/// By how much chance lets the blocks of one tree grow over those of another with a larger c.
const LEFT_RUNS: f64 = 0.15;

fn judge_ycsb(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "load",
        "c = 1: kops/s, blocks",
        "c = 0.8",
        "c = 0.4",
        "published speed",
    ]);
    let mut checks = Vec::new();
    for load in LETTERS {
        let mut blocks = Vec::new();
        let mut cells = vec![load.to_owned()];
        for scaling in YCSB {
            let report = results.of(&records(scale, scaling), load)?;
            cells.push(format!(
                "{}, {}",
                short(report.kops()),
                short(report.blocks())
            ));
            blocks.push(report.blocks());
        }
        let figures = match load {
            "ycsb-c" => Some("4 % faster at c = 0.8, 24 % at 0.4"),
            "ycsb-d" => Some("more than 20 % faster"),
            _ => None,
        };
        cells.push(figures.unwrap_or("on par or better").to_owned());
        table.rows.push(cells);
        let Some(published) = figures else { continue };
        checks.push(
            Check::new(
                &format!("{load} costs less as c falls"),
                published,
                format!("blocks per operation: {}", list(blocks.iter().copied())),
                blocks[2] < blocks[0] && falls(&blocks, 0.05),
            )
            .or_since(
                "runs that chance leaves in level 0 are met by every read, in one tree more than in another",
                falls(&blocks, LEFT_RUNS),
            ),
        );
    }
    let (mut depths, mut hits) = (Vec::new(), vec!["ycsb-d: gets found in level 1".to_owned()]);
    for scaling in YCSB {
        let line = records(scale, scaling);
        depths.push(results.of(&line, "ycsb-load")?.depth());
        // Levels count from the opening on.
        let (before, own) = (results.of(&line, "ycsb-c")?, results.of(&line, "ycsb-d")?);
        let answered = own.answered_by(1).saturating_sub(before.answered_by(1));
        let part = answered as f64 / own.found.max(1) as f64;
        hits.push(format!("{:.0} %", part * 100.0));
    }
    hits.push("hits in level 1: 40, 33, 9 %".to_owned());
    table.rows.push(hits);
    checks.push(Check::new(
        "fewer levels as c falls",
        "5 in RocksDB, 4 at c = 0.8, about 3 at 0.4",
        format!("{depths:?}"),
        depths[0] > depths[1] && depths[1] >= depths[2],
    ));
    Ok(Findings::new(checks, table))
}

fn judge_latencies(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["load", "c", "p50, us", "p95", "p99"]);
    let mut checks = Vec::new();
    let mut blocks = Vec::new();
    for scaling in YCSB {
        blocks.push(results.of(&records(scale, scaling), "ycsb-c")?.blocks());
    }
    for (load, published) in [
        ("ycsb-a", "157, 513, 640; 148, 475, 612; 140, 443, 536"),
        ("ycsb-c", "149, 488, 595; 143, 454, 579; 117, 332, 459"),
        (
            "ycsb-e",
            "846, 1907, 2229; 822, 1851, 2141; 773, 1759, 2006",
        ),
    ] {
        let mut quantiles = [Vec::new(), Vec::new(), Vec::new()];
        for scaling in YCSB {
            let report = results.of(&records(scale, scaling), load)?;
            let kinds = report.operations.iter();
            let reads = kinds
                .filter(|kind| matches!(kind.operation.name(), "read" | "scan"))
                .map(|kind| kind.latency)
                .next()
                .unwrap_or(report.latency);
            table.row([
                load.to_owned(),
                scaling.to_string(),
                short(reads.p50_us),
                short(reads.p95_us),
                short(reads.p99_us),
            ]);
            for (quantile, us) in
                quantiles
                    .iter_mut()
                    .zip([reads.p50_us, reads.p95_us, reads.p99_us])
            {
                quantile.push(us);
            }
        }
        let named = ["p50", "p95", "p99"].iter().zip(&quantiles);
        let measured: Vec<String> = named
            .map(|(name, of_c)| format!("{name} {}", list(of_c.iter().copied())))
            .collect();
        checks.push(
            Check::new(
                &format!("{load}: the lower c, the shorter, at each quantile"),
                &format!("average, p95, p99 in us, RocksDB, c = 0.8, 0.4: {published}"),
                format!("c = 1, 0.8, 0.4: {}", measured.join("; ")),
                quantiles.iter().all(|of_c| falls(of_c, 0.0)),
            )
            .or_since(
                "all data is in the page cache, where a block more or less is below what else a read costs, and \
                 merges, which are more as c falls, take processor time from reads beside them; the blocks of C \
                 fall in AU-E6",
                falls(&blocks, LEFT_RUNS) && quantiles.iter().all(|of_c| falls(of_c, 0.25)),
            ),
        );
    }
    Ok(Findings::new(checks, table))
}

fn judge_space(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["c", "bytes on disk", "per live byte"]);
    let mut space = Vec::new();
    for scaling in YCSB {
        let report = results.of(&records(scale, scaling), "ycsb-load")?;
        let amplification = report.space_amplification.unwrap_or_default();
        table.row([
            scaling.to_string(),
            report.disk_bytes.to_string(),
            format!("{amplification:.4}"),
        ]);
        space.push(amplification);
    }
    let (least, most) = space
        .iter()
        .fold((f64::MAX, 0.0_f64), |(least, most), &space| {
            (least.min(space), most.max(space))
        });
    let checks = vec![Check::new(
        "equal within 1 %",
        "87.42 GB in RocksDB, 87.49 at c = 0.8, 87.61 at 0.4",
        format!(
            "per live byte: {:.4}, {:.4}, {:.4}",
            space[0], space[1], space[2]
        ),
        most <= least * 1.01,
    )];
    Ok(Findings::new(checks, table))
}

fn judge_growth(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "paper's GB",
        "c",
        "levels",
        "written per byte",
        "blocks per get",
        "with 2 bits",
        "per seek and 10 steps",
    ]);
    let mut ratios = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for gigabytes in GIGABYTES {
        let mut figures = Vec::new();
        for scaling in [1.0, 0.8] {
            let (bare, filtered) = (
                grown(scale, gigabytes, scaling, 0.0),
                grown(scale, gigabytes, scaling, 2.0),
            );
            let fill = results.of(&bare, "fillrandom")?;
            let of_c = [
                fill.write_amplification,
                results.of(&bare, "readrandom")?.blocks(),
                results.of(&filtered, "readrandom")?.blocks(),
                results.of(&bare, "seek10")?.blocks(),
            ];
            table.row([
                gigabytes.to_string(),
                scaling.to_string(),
                fill.depth().to_string(),
                short(of_c[0]),
                short(of_c[1]),
                short(of_c[2]),
                short(of_c[3]),
            ]);
            figures.push(of_c);
        }
        for (place, ratios) in ratios.iter_mut().enumerate() {
            ratios.push(figures[1][place] / figures[0][place]);
        }
    }
    let [written, gets, filtered, seeks] = &ratios;
    let of = |ratios: &[f64]| format!("c = 0.8 over leveling: {}", list(ratios.iter().copied()));
    let checks = vec![
        Check::new(
            "writing is no worse",
            "10.8 us in place of 11.2 at 60 GB",
            of(written),
            mean(written) <= 1.1,
        )
        .or_since(
            "level 0 is empty when it is read, which takes a merge with level 1 for each memtable, and the ratio of \
             that level is what grows most as c falls; with the usual four memtables a merge, AU-E1 has the same \
             bytes for both",
            mean(written) <= 1.3,
        ),
        Check::new(
            "gets cost less without filters",
            "better",
            of(gets),
            mean(gets) < 1.0,
        )
        .or_since(
            YOUNG_LEVEL,
            gets.iter().filter(|&&ratio| ratio > 1.0).count() <= 1,
        ),
        Check::new(
            "filters close the gap",
            "the gap closes with filters",
            of(filtered),
            (mean(filtered) - 1.0).abs() < (mean(gets) - 1.0).abs(),
        ),
        Check::new(
            "seeks with 10 steps cost less",
            "up to 42 % less, at 30 GB",
            of(seeks),
            mean(seeks) < 1.0,
        ),
    ];
    let names = ["written", "gets", "gets with 2 bits", "seeks with 10 steps"];
    let series = names.iter().zip(&ratios).map(|(&name, ratios)| {
        let points = GIGABYTES.iter().zip(ratios).map(|(&x, &y)| [x, y]);
        (name.to_owned(), points.collect())
    });
    let labels = ["GB in the paper", "c = 0.8 over leveling"];
    let series = series.collect();
    Ok(Findings::new(checks, table).drawn(labels, series))
}

/// As much as makes six levels at T = 2 and c = 0.8.
const SIX_LEVELS_BYTES: u64 = 100_000_000_000;

/// How many percent level 1 has of the data of the full tree that `load` ends with, and of what merges write in it:
/// into each level its ratio to the one above it, into level 1 that to a memtable.
pub(super) fn of_level_1(load: &Load) -> Result<[f64; 2]> {
    let outcome = simulate(load)?;
    let levels = outcome.samples.last().map(|sample| &sample.levels);
    let levels = levels.into_iter().flatten().skip(1);
    let capacities: Vec<f64> = levels.map(|level| level.capacity as f64).collect();
    let memtable = load.options.base_bytes as f64 / load.options.size_ratio;
    let above = iter::once(&memtable).chain(&capacities);
    let ratios: Vec<f64> = capacities
        .iter()
        .zip(above)
        .map(|(own, above)| own / above)
        .collect();
    Ok([capacities, ratios].map(|of| 100.0 * of[0] / of.iter().sum::<f64>()))
}

/// Whether the first of six levels has little of the data and much of the writing, in percent.
pub(super) fn is_first_dear([data, writing]: [f64; 2]) -> bool {
    data < 1.0 && writing > 100.0 / 6.0 * 1.5
}

fn judge_analysis(_: Scale, _: Results<'_>) -> Result<Findings> {
    let options = |scaling: f64| {
        let mut options = KeyspaceOptions::preset(Preset::Autumn);
        options.size_ratio = 2.0;
        options.scaling = scaling;
        options
    };
    let mut table = Table::new(&["bytes", "levels, c = 1", "levels, c = 0.8"]);
    let (mut leveling, mut autumn) = (Vec::new(), Vec::new());
    for exponent in [9, 10, 11, 12] {
        let bytes = 10_u64.pow(exponent);
        leveling.push(level_count(&options(1.0), bytes));
        autumn.push(level_count(&options(0.8), bytes));
        table.row([
            format!("10^{exponent}"),
            leveling[leveling.len() - 1].to_string(),
            autumn[autumn.len() - 1].to_string(),
        ]);
    }
    let steps: Vec<usize> = leveling.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, middle) = (autumn[0], autumn[3]);
    let most = level_count(&options(0.8), 10_u64.pow(15));
    table.row([
        "10^15".to_owned(),
        "more than there can be".to_owned(),
        most.to_string(),
    ]);
    let [data, writing] = of_level_1(&Load::inserts(SIX_LEVELS_BYTES, options(0.8)))?;
    let mut useless = Vec::new();
    for gigabytes in [1, 2, 4, 8] {
        let mut options = options(0.8);
        options.bits_per_key = 1.52;
        let mut load = Load::inserts(gigabytes * 1_000_000_000, options);
        load.filters = true;
        let outcome = simulate(&load)?;
        useless.push(
            outcome
                .samples
                .last()
                .map_or(f64::MAX, |sample| sample.false_positive_reads),
        );
    }
    let checks = vec![
        Check::new(
            "in leveling levels grow with the logarithm of the data",
            "log N",
            format!("from 10^9 to 10^12 bytes {leveling:?}"),
            steps[1..].iter().all(|step| step.abs_diff(3) <= 1),
        ),
        Check::new(
            "with c = 0.8 they grow with its square root",
            "square root of log N",
            format!("{least}, {middle}, {most} levels for 10^9, 10^12, 10^15 bytes"),
            most - middle < middle - least && 2 * middle <= leveling[3] + 1,
        ),
        Check::new(
            "of six levels the first has little of the data and much of the writing",
            "0.18 % and 30 %",
            format!("capacities give {} % and {} %", short(data), short(writing)),
            is_first_dear([data, writing]),
        ),
        Check::new(
            "about 1.5 bits per key keep useless reads at one, whatever the size",
            "at most 1.52, by a sum that is cut off; exactly 1.09 for T = 2, c = 0.8",
            format!(
                "at 1.52 bits, 1 to 8 GB: {} useless reads per absent key",
                list(useless.iter().copied())
            ),
            useless.iter().all(|&useless| useless <= 1.0),
        )
        .or_since(
            "the formula is of a full tree without level 0, and between two growths the last level is not full",
            useless.iter().all(|&useless| useless < 1.4),
        ),
    ];
    let points = |levels: &[usize]| -> Vec<[f64; 2]> {
        let levels = levels.iter().zip(9_u32..);
        levels
            .map(|(&levels, exponent)| [f64::from(exponent), levels as f64])
            .collect()
    };
    let labels = ["decimal logarithm of the bytes", "levels"];
    let mut below_one = points(&autumn);
    below_one.push([15.0, most as f64]);
    let series = vec![
        ("c = 1".to_owned(), points(&leveling)),
        ("c = 0.8".to_owned(), below_one),
    ];
    Ok(Findings::new(checks, table).drawn(labels, series))
}
