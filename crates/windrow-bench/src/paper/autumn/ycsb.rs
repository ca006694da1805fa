//! YCSB's loads: AU-E5 to AU-E8.

use windrow::Result;

use super::{Column, RunSpec, Scale, Sizes, tree};
use crate::paper::experiment::{Check, Table};
use crate::paper::figures::{Figures, KOPS, WRITTEN, falls, list, short};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;
use crate::{Percentiles, Report};

pub(super) const SCALINGS: [f64; 3] = [1.0, 0.8, 0.4];
const LOADS: [&str; 6] = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"];

/// The fraction by which chance lets the blocks of one tree exceed those of a tree with a larger c.
const LEFT_RUNS: f64 = 0.15;

pub(super) fn records(scale: Scale, scaling: f64) -> RunSpec {
    tree(&[&["ycsb-load"], &LOADS[..]].concat(), 5.0, scaling, 0.0)
        .with("num", scale.count(80e9 / 1024.0 / 128.0))
        .with("ops", scale.count(1e5))
        .with("value-size", 1000)
        .with("level0-runs", 1)
        .sized(Sizes::large(scale, 1.0 / 128.0))
}

/// A row of `load` for each c.
fn by_scaling(
    scale: Scale,
    load: &'static str,
) -> impl Iterator<Item = (Vec<String>, RunSpec, &'static str)> {
    let scalings = SCALINGS.into_iter();
    scalings.map(move |scaling| (vec![scaling.to_string()], records(scale, scaling), load))
}

pub(super) fn judge_load(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let columns = [
        KOPS,
        Column("kops/s, settled", |report| {
            short(1e3 / report.settled_micros())
        }),
        WRITTEN,
        Column("stalls", |report| {
            report.stalls.unwrap_or_default().to_string()
        }),
        Column("seconds of stalls", |report| short(report.stall_seconds)),
    ];
    let (table, reports) = results.table(&["c"], &columns, by_scaling(scale, "ycsb-load"))?;
    let of = |figure: fn(&Report) -> f64| reports.iter().map(figure).collect::<Vec<f64>>();
    let settled = of(|report| 1e3 / report.settled_micros());
    let stalls = of(|report| report.stall_seconds);
    let stalls_per_byte = of(|report| report.stall_seconds / report.written());
    let time_per_byte = of(|report| report.settled_micros() / 1e3 / report.written());
    let more_is_written = reports[2].written() > reports[0].written();
    let because = "the bytes of compactions bound a load that nothing else throttles, and they grow as c falls; the \
                   paper's stalls are those of RocksDB's triggers, which stop writers by the number of runs and by \
                   pending bytes, where Windrow delays them by debt";
    let checks = vec![
        Check::new(
            "the time of stalls falls with c",
            "3,403 stalls in RocksDB, 2,592 at c = 0.8, 1,265 at 0.4",
            format!("seconds of stalls: {}", list(&stalls)),
            falls(&stalls, 0.1) && stalls[2] < stalls[0],
        )
        .or_since(because, more_is_written && falls(&stalls_per_byte, 0.25)),
        Check::new(
            "the load is faster at c = 0.4",
            "15 % faster",
            format!("kops/s, settled: {}", list(&settled)),
            settled[2] > settled[0],
        )
        .or_since(
            because,
            more_is_written && time_per_byte[2] < 1.1 * time_per_byte[0],
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_operations(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "load",
        "c = 1: kops/s, blocks",
        "c = 0.8",
        "c = 0.4",
        "published speed",
    ]);
    let mut checks = Vec::new();
    for load in LOADS {
        let mut blocks = Vec::new();
        let mut cells = vec![load.to_owned()];
        for scaling in SCALINGS {
            let report = results.of(&records(scale, scaling), load)?;
            cells.push(list([report.kops(), report.blocks()]));
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
                format!("blocks per operation: {}", list(&blocks)),
                blocks[2] < blocks[0] && falls(&blocks, 0.05),
            )
            .or_since(
                "chance leaves runs in level 0, in one tree more than in another, and every read visits them",
                falls(&blocks, LEFT_RUNS),
            ),
        );
    }
    let (mut depths, mut hits) = (Vec::new(), vec!["ycsb-d: gets found in level 1".to_owned()]);
    for scaling in SCALINGS {
        let run = records(scale, scaling);
        depths.push(results.of(&run, "ycsb-load")?.depth());
        // The counters of levels begin at the open.
        let (before, own) = (results.of(&run, "ycsb-c")?, results.of(&run, "ycsb-d")?);
        let answered = own.answered_by(1).saturating_sub(before.answered_by(1));
        let fraction = answered as f64 / own.found.max(1) as f64;
        hits.push(format!("{:.0} %", fraction * 100.0));
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

/// The latencies of the reads or scans of a load.
fn read_latency(report: &Report) -> Percentiles {
    let mut kinds = report.operations.iter();
    let read = kinds.find(|kind| matches!(kind.operation.name(), "read" | "scan"));
    read.map_or(report.latency, |kind| kind.latency)
}

pub(super) fn judge_latencies(scale: Scale, results: Results<'_>) -> Result<Findings> {
    const QUANTILES: [fn(&Report) -> f64; 3] = [
        |report| read_latency(report).p50_us,
        |report| read_latency(report).p95_us,
        |report| read_latency(report).p99_us,
    ];
    const COLUMNS: [Column; 3] = [
        Column("p50, us", |report| short(QUANTILES[0](report))),
        Column("p95", |report| short(QUANTILES[1](report))),
        Column("p99", |report| short(QUANTILES[2](report))),
    ];
    let blocks: Result<Vec<f64>> = SCALINGS
        .iter()
        .map(|&scaling| Ok(results.of(&records(scale, scaling), "ycsb-c")?.blocks()))
        .collect();
    let blocks = blocks?;
    let published = [
        ("ycsb-a", "157, 513, 640; 148, 475, 612; 140, 443, 536"),
        ("ycsb-c", "149, 488, 595; 143, 454, 579; 117, 332, 459"),
        (
            "ycsb-e",
            "846, 1907, 2229; 822, 1851, 2141; 773, 1759, 2006",
        ),
    ];
    let rows = published.into_iter().flat_map(|(load, _)| {
        by_scaling(scale, load)
            .map(move |(names, run, load)| (vec![load.to_owned(), names[0].clone()], run, load))
    });
    let (table, reports) = results.table(&["load", "c"], &COLUMNS, rows)?;
    let mut checks = Vec::new();
    for ((load, published), reports) in published.into_iter().zip(reports.chunks(SCALINGS.len())) {
        let quantiles = QUANTILES.map(|of| reports.iter().map(of).collect::<Vec<f64>>());
        let named = ["p50", "p95", "p99"].iter().zip(&quantiles);
        let measured: Vec<String> = named
            .map(|(name, of_c)| format!("{name} {}", list(of_c)))
            .collect();
        checks.push(
            Check::new(
                &format!("{load}: a lower c is faster at each quantile"),
                &format!("average, p95, p99 in us, RocksDB, c = 0.8, 0.4: {published}"),
                format!("c = 1, 0.8, 0.4: {}", measured.join("; ")),
                quantiles.iter().all(|of_c| falls(of_c, 0.0)),
            )
            .or_since(
                "all data is in the page cache, where one block costs less than the rest of a read, and compactions, \
                 which grow as c falls, take processor time from concurrent reads; the blocks of C fall in AU-E6",
                falls(&blocks, LEFT_RUNS) && quantiles.iter().all(|of_c| falls(of_c, 0.25)),
            ),
        );
    }
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_space(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let columns = [
        Column("bytes on disk", |report| report.disk_bytes.to_string()),
        Column("per live byte", |report| format!("{:.4}", report.space())),
    ];
    let (table, reports) = results.table(&["c"], &columns, by_scaling(scale, "ycsb-load"))?;
    let space: Vec<f64> = reports.iter().map(Figures::space).collect();
    let least = space.iter().copied().fold(f64::MAX, f64::min);
    let most = space.iter().copied().fold(0.0, f64::max);
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
