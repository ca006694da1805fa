//! Fills, gets and seeks: AU-E1 to AU-E4, and AU-E9.

use windrow::Result;

use super::{Column, RunSpec, Scale, Sizes, YOUNG_LEVEL, tree};
use crate::Report;
use crate::paper::experiment::{Check, Table};
use crate::paper::figures::{
    Figures, KOPS, LEVELS, SETTLED_MICROS, WRITTEN, all_below, falls, list, mean, pair_ratios,
    short,
};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;

const VALUES: [u64; 3] = [50, 100, 200];
const SWEEP: [f64; 4] = [1.0, 0.8, 0.6, 0.4];
const RATIOS: [f64; 2] = [3.0, 5.0];
const GIGABYTES: [f64; 4] = [15.0, 30.0, 45.0, 60.0];
/// The reads of trees that were filled in random order.
const READS: [&str; 4] = ["readrandom", "seekrandom", "seek10", "seek100"];
/// The fractions of the entries that the trees of AU-E4 hold. They are about as far apart as levels are, so the
/// fullness of the last level evens out.
const FRACTIONS: [f64; 3] = [0.4, 0.63, 1.0];

/// One fill of AU-E1.
pub(super) struct Fill {
    value: u64,
    scaling: f64,
    load: &'static str,
    pub(super) run: RunSpec,
}

fn micro(loads: &[&'static str], scale: Scale, value: u64, scaling: f64) -> RunSpec {
    tree(loads, 2.0, scaling, 0.0)
        .with("num", scale.count(2e6))
        .with("value-size", value)
        .sized(Sizes::small(scale, 1.0))
}

pub(super) fn fills(scale: Scale) -> impl Iterator<Item = Fill> {
    pairs().flat_map(move |(value, scaling)| {
        ["fillseq", "fillrandom"].map(|load| Fill {
            value,
            scaling,
            load,
            run: micro(&[load], scale, value, scaling),
        })
    })
}

/// One run in level 0 starts a compaction, so seeks visit no runs that chance has left there.
fn read(scale: Scale, value: u64, scaling: f64) -> RunSpec {
    let loads = [&["fillrandom"], &READS[..]].concat();
    micro(&loads, scale, value, scaling)
        .with("ops", scale.count(2e5))
        .with("level0-runs", 1)
}

pub(super) fn reads(scale: Scale) -> impl Iterator<Item = RunSpec> {
    pairs().map(move |(value, scaling)| read(scale, value, scaling))
}

/// Each size of values, in leveling and with c = 0.8.
fn pairs() -> impl Iterator<Item = (u64, f64)> {
    let values = VALUES.into_iter();
    values.flat_map(|value| [(value, 1.0), (value, 0.8)])
}

fn swept(scale: Scale, ratio: f64, scaling: f64, fraction: f64) -> RunSpec {
    tree(&["fillrandom", "readrandom", "seek10"], ratio, scaling, 0.0)
        .with("num", scale.count(8_620_689.0 / 4.0 * fraction))
        .with("ops", scale.count(2e5))
        .with("level0-runs", 1)
        .sized(Sizes::small(scale, 0.25))
}

pub(super) fn sweep(scale: Scale) -> impl Iterator<Item = RunSpec> {
    let trees = RATIOS
        .into_iter()
        .flat_map(|ratio| SWEEP.map(|scaling| (ratio, scaling)));
    trees.flat_map(move |(ratio, scaling)| {
        FRACTIONS.map(|fraction| swept(scale, ratio, scaling, fraction))
    })
}

fn grown(scale: Scale, gigabytes: f64, scaling: f64, bits: f64) -> RunSpec {
    tree(&["fillrandom", "readrandom", "seek10"], 2.0, scaling, bits)
        .with("num", scale.count(gigabytes * 1e9 / 116.0 / 128.0))
        .with("ops", scale.count(1e5))
        .with("level0-runs", 1)
        .sized(Sizes::small(scale, 0.125))
}

pub(super) fn growth(scale: Scale) -> impl Iterator<Item = RunSpec> {
    GIGABYTES.into_iter().flat_map(move |gigabytes| {
        [(1.0, 0.0), (0.8, 0.0), (1.0, 2.0), (0.8, 2.0)]
            .map(|(scaling, bits)| grown(scale, gigabytes, scaling, bits))
    })
}

pub(super) fn judge_fills(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let rows = fills(scale).map(|fill| {
        let names = vec![
            fill.value.to_string(),
            fill.scaling.to_string(),
            fill.load.to_owned(),
        ];
        (names, fill.run, fill.load)
    });
    let (table, reports) = results.table(
        &["value bytes", "c", "load"],
        &[KOPS, SETTLED_MICROS, WRITTEN, LEVELS],
        rows,
    )?;
    let micros: Vec<f64> = reports.iter().map(Figures::settled_micros).collect();
    // In the order of the table: for each size leveling, then c = 0.8, each in sequence, then at random.
    let ratios: Vec<f64> = reports
        .chunks(4)
        .map(|four| four[3].written() / four[1].written())
        .collect();
    let sequential: Vec<f64> = micros.chunks(2).map(|two| two[0] / two[1]).collect();
    let by_size: Vec<f64> = micros.iter().skip(1).step_by(4).copied().collect();
    let checks = vec![
        Check::new(
            "writes cost no more than in the baseline",
            "similar latencies",
            format!("bytes written, c = 0.8 over leveling: {}", list(&ratios)),
            ratios.iter().all(|&ratio| ratio <= 1.1),
        ),
        Check::new(
            "filling in sequence is faster than at random",
            "faster",
            format!("time in sequence over at random: {}", list(&sequential)),
            all_below(&sequential, 1.0),
        ),
        Check::new(
            "a write of a larger value takes longer",
            "grows",
            format!("leveling, at random: {} us", list(&by_size)),
            by_size.windows(2).all(|pair| pair[0] < pair[1]),
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_gets(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let rows = pairs().map(|(value, scaling)| {
        let names = vec![value.to_string(), scaling.to_string()];
        (names, read(scale, value, scaling), READS[0])
    });
    let columns = [
        LEVELS,
        Column("blocks per get", |report| short(report.blocks())),
        Column("us per get", |report| short(1e3 / report.kops())),
    ];
    let (table, reports) = results.table(&["value bytes", "c"], &columns, rows)?;
    let depths: Vec<u64> = reports.iter().map(Figures::depth).collect();
    let ratios = pair_ratios(&reports, Figures::blocks);
    let checks = vec![
        Check::new(
            "fewer levels",
            "fewer",
            format!("leveling and c = 0.8, each size: {depths:?}"),
            depths.chunks(2).all(|two| two[1] < two[0]),
        ),
        Check::new(
            "gets cost less at every size",
            "97.5 us instead of 119.9 at 50 bytes (0.81)",
            format!("blocks per get, c = 0.8 over leveling: {}", list(&ratios)),
            all_below(&ratios, 1.0),
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_seeks(scale: Scale, results: Results<'_>) -> Result<Findings> {
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
    let long_by_value: Vec<f64> = ratios.iter().skip(2).step_by(3).copied().collect();
    let rises = |figures: &[f64]| figures.windows(2).all(|pair| pair[1] >= pair[0] * 0.98);
    let checks = vec![
        Check::new(
            "seeks cost less",
            "138.9 us instead of 170.7 at 50 bytes (0.81)",
            format!(
                "blocks per seek, c = 0.8 over leveling: {}",
                list(ratios.iter().step_by(3))
            ),
            all_below(&ratios, 1.0),
        ),
        Check::new(
            "more steps after a seek make the gain smaller",
            "200 bytes: 9 % for seeks, 5 % with 100 steps",
            format!("blocks, 0, 10 and 100 steps, by size: {}", list(&ratios)),
            ratios.chunks(3).all(rises),
        ),
        Check::new(
            "larger values make the gain of long seeks smaller",
            "shrinks",
            format!("blocks with 100 steps: {}", list(&long_by_value)),
            rises(&long_by_value),
        )
        .or_since(
            "the levels that c = 0.8 saves depend on how full the last one is at each size (AU-E2 has the levels); \
             this outweighs the effect of the size on a long scan",
            long_by_value.windows(2).all(|pair| pair[1] > pair[0] * 0.8),
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_sweep(scale: Scale, results: Results<'_>) -> Result<Findings> {
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
    let mean_of = |reports: &[Report], figure: fn(&Report) -> f64| {
        mean(&reports.iter().map(figure).collect::<Vec<_>>())
    };
    for ratio in RATIOS {
        let (mut gets, mut seeks, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for scaling in SWEEP {
            let reports = |load: &str| -> Result<Vec<Report>> {
                let runs = FRACTIONS.map(|fraction| swept(scale, ratio, scaling, fraction));
                runs.iter().map(|run| results.of(run, load)).collect()
            };
            let fills = reports("fillrandom")?;
            let figures = [
                mean_of(&fills, Figures::written),
                mean_of(&reports("readrandom")?, Figures::blocks),
                mean_of(&reports("seek10")?, Figures::blocks),
            ];
            let depths: Vec<String> = fills.iter().map(|fill| fill.depth().to_string()).collect();
            table.row([
                ratio.to_string(),
                scaling.to_string(),
                depths.join(", "),
                short(figures[0]),
                short(figures[1]),
                short(figures[2]),
                short(mean_of(&fills, Figures::space)),
            ]);
            written.push(figures[0]);
            gets.push(figures[1]);
            seeks.push(figures[2]);
        }
        let last = SWEEP.len() - 1;
        checks.push(
            Check::new(
                &format!("T = {ratio}: a lower c takes fewer blocks per seek and per get"),
                "monotone",
                format!("seeks {}; gets {}", list(&seeks), list(&gets)),
                falls(&seeks, 0.05) && falls(&gets, 0.05) && seeks[last] < seeks[0],
            )
            .or_since(
                YOUNG_LEVEL,
                [&seeks, &gets]
                    .iter()
                    .all(|blocks| falls(blocks, 0.3) && blocks[last] < blocks[0]),
            ),
        );
        checks.push(Check::new(
            &format!("T = {ratio}: writes cost more at the lowest c"),
            "worse writes",
            list(&written),
            written[last] > written[0],
        ));
        by_ratio.push(seeks);
    }
    let ratios: Vec<f64> = by_ratio[0]
        .iter()
        .zip(&by_ratio[1])
        .map(|(three, five)| five / three)
        .collect();
    let at_most = |times: f64| ratios.iter().all(|&ratio| ratio <= times);
    checks.push(
        Check::new(
            "a higher T takes fewer blocks",
            "fewer levels, better reads",
            format!(
                "T = 3: {}; T = 5: {}",
                list(&by_ratio[0]),
                list(&by_ratio[1])
            ),
            at_most(1.05),
        )
        .or_since(YOUNG_LEVEL, at_most(1.3) && mean(&ratios) < 1.0),
    );
    let series = RATIOS.iter().zip(&by_ratio).map(|(ratio, blocks)| {
        let points = SWEEP.iter().zip(blocks).map(|(&c, &blocks)| [c, blocks]);
        (format!("T = {ratio}"), points.collect())
    });
    let labels = ["c", "blocks per seek and 10 steps"];
    Ok(Findings::new(checks, table).drawn(labels, series.collect()))
}

pub(super) fn judge_growth(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "paper's GB",
        "c",
        "levels",
        "written per byte",
        "blocks per get",
        "with 2 bits",
        "per seek and 10 steps",
    ]);
    let mut ratios = [const { Vec::new() }; 4];
    for gigabytes in GIGABYTES {
        let mut figures = Vec::new();
        for scaling in [1.0, 0.8] {
            let [bare, filtered] = [0.0, 2.0].map(|bits| grown(scale, gigabytes, scaling, bits));
            let fill = results.of(&bare, "fillrandom")?;
            let of_c = [
                fill.written(),
                results.of(&bare, "readrandom")?.blocks(),
                results.of(&filtered, "readrandom")?.blocks(),
                results.of(&bare, "seek10")?.blocks(),
            ];
            let mut cells = vec![
                gigabytes.to_string(),
                scaling.to_string(),
                fill.depth().to_string(),
            ];
            cells.extend(of_c.map(short));
            table.rows.push(cells);
            figures.push(of_c);
        }
        for (place, ratios) in ratios.iter_mut().enumerate() {
            ratios.push(figures[1][place] / figures[0][place]);
        }
    }
    let [written, gets, filtered, seeks] = &ratios;
    let over = |ratios: &[f64]| format!("c = 0.8 over leveling: {}", list(ratios));
    let checks = vec![
        Check::new(
            "writes cost no more",
            "10.8 us instead of 11.2 at 60 GB",
            over(written),
            mean(written) <= 1.1,
        )
        .or_since(
            "level 0 is empty before the reads, which takes a compaction into level 1 for each memtable, and the \
             ratio of that level grows most when c falls; with the usual four memtables per compaction, AU-E1 has \
             the same bytes for both",
            mean(written) <= 1.3,
        ),
        Check::new(
            "gets cost less without filters",
            "better",
            over(gets),
            mean(gets) < 1.0,
        )
        .or_since(
            YOUNG_LEVEL,
            gets.iter().filter(|&&ratio| ratio > 1.0).count() <= 1,
        ),
        Check::new(
            "filters close the gap",
            "the gap closes with filters",
            over(filtered),
            (mean(filtered) - 1.0).abs() < (mean(gets) - 1.0).abs(),
        ),
        Check::new(
            "seeks with 10 steps cost less",
            "up to 42 % less, at 30 GB",
            over(seeks),
            mean(seeks) < 1.0,
        ),
    ];
    let names = ["written", "gets", "gets with 2 bits", "seeks with 10 steps"];
    let series = names.iter().zip(&ratios).map(|(&name, ratios)| {
        let points = GIGABYTES.iter().zip(ratios).map(|(&x, &y)| [x, y]);
        (name.to_owned(), points.collect())
    });
    let labels = ["GB in the paper", "c = 0.8 over leveling"];
    Ok(Findings::new(checks, table).drawn(labels, series.collect()))
}
