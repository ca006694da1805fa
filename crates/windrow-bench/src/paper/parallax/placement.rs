//! Hybrid placement, all values in place, and all values in the log: PX-E0 to PX-E4.

use windrow::Result;

use super::{
    CPU, KOPS, MIXES, MOVED, Named, Placement, RunSpec, Scale, compared, efficiency, gc_bytes,
    mixed, moved, tiny, updated,
};
use crate::Report;
use crate::paper::experiment::{Check, Table};
use crate::paper::figures::{Column, Figures, list, mean, pair_ratios, short};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;

pub(super) const TINY: [Named; 3] = [
    ("in place", Placement::InPlace),
    ("in the log, collected", Placement::Log),
    ("in the log, not collected", Placement::LogWithoutGc),
];

const READ: [Named; 3] = [
    ("hybrid", Placement::Hybrid),
    ("in place", Placement::InPlace),
    ("in the log", Placement::Log),
];
const READ_MIXES: [&str; 2] = ["SD", "MD"];
const POINTS: [&str; 3] = ["ycsb-b", "ycsb-c", "ycsb-d"];

fn point(scale: Scale, mix: &str, values: Placement) -> RunSpec {
    mixed(scale, mix, values, &POINTS, 5e5)
}

fn scan(scale: Scale, mix: &str, values: Placement) -> RunSpec {
    mixed(scale, mix, values, &["ycsb-e"], 1e5)
}

pub(super) fn points(scale: Scale) -> Vec<RunSpec> {
    let mixes = READ_MIXES.into_iter();
    mixes
        .flat_map(|mix| READ.map(|(_, values)| point(scale, mix, values)))
        .collect()
}

pub(super) fn scans(scale: Scale) -> Vec<RunSpec> {
    let mixes = READ_MIXES.into_iter();
    mixes
        .flat_map(|mix| READ.map(|(_, values)| scan(scale, mix, values)))
        .collect()
}

pub(super) fn six(scale: Scale) -> Vec<RunSpec> {
    let mixes = MIXES.into_iter();
    mixes
        .flat_map(|(mix, _)| [READ[0], READ[1]].map(|(_, values)| updated(scale, mix, values)))
        .collect()
}

pub(super) fn judge_tiny(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let rows = TINY.map(|(name, values)| (vec![name.to_owned()], tiny(scale, values), "ycsb-a"));
    let (table, reports) = compared(results, rows)?;
    let space: Vec<f64> = reports.iter().map(Figures::space).collect();
    let moved: Vec<f64> = reports.iter().map(moved).collect();
    let checks = vec![
        Check::new(
            "garbage collection moves more bytes than no garbage collection",
            "more than 13 times",
            format!("moved, in place, collected, not: {}", list(&moved)),
            moved[1] > 1.2 * moved[2] && gc_bytes(&reports[1]) > 0,
        ),
        Check::new(
            "separation of small values does not pay",
            "27.4 with garbage collection, 17.4 in place",
            format!("moved {}; space {}", list(&moved), list(&space)),
            moved[1] > moved[0],
        )
        .or_since(
            "garbage collection looks no key up and starts at `max_space_amp`, so it moves fewer bytes than \
             compactions of values in place; separation costs space instead",
            space[1] > 1.2 * space[0],
        ),
    ];
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_points(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let rows = READ_MIXES.into_iter().flat_map(|mix| {
        POINTS.into_iter().flat_map(move |load| {
            READ.map(|(name, values)| {
                let names = vec![format!("{mix}, {name}"), load.to_owned()];
                (names, point(scale, mix, values), load)
            })
        })
    });
    let blocks = Column("blocks per operation", |report| short(report.blocks()));
    let (table, reports) = results.table(&["", "load"], &[KOPS, CPU, MOVED, blocks], rows)?;
    let mut checks = Vec::new();
    for (mix, of_mix) in READ_MIXES
        .iter()
        .zip(reports.chunks(POINTS.len() * READ.len()))
    {
        let (mut speeds, mut saved, mut efforts) = (Vec::new(), Vec::new(), Vec::new());
        for (load, reports) in POINTS.iter().zip(of_mix.chunks(READ.len())) {
            let [hybrid, in_place] = [&reports[0], &reports[1]];
            speeds.push(hybrid.kops() / in_place.kops());
            efforts.push(efficiency(in_place) / efficiency(hybrid));
            if *load != "ycsb-c" {
                saved.push(moved(in_place) / moved(hybrid));
            }
        }
        checks.push(
            Check::new(
                &format!("{mix}: hybrid placement is ahead over B, C and D"),
                "up to 5.6 times RocksDB's throughput, 61 times BlobDB's; 8.6 and 28 times less processor time",
                format!(
                    "throughput over all in place: {}; together {}; processor time less by {}",
                    list(&speeds),
                    short(mean(&speeds)),
                    list(&efforts)
                ),
                mean(&speeds) > 1.0,
            )
            .or_since(
                "all data is in the page cache, where fewer bytes to read save nothing, and a separated value costs \
                 one more cache miss and checksum; the paper reads from a device, with a cache of a sixth of the \
                 data",
                mean(&speeds) > 0.75,
            ),
        );
        checks.push(Check::new(
            &format!("{mix}: it moves fewer bytes in loads with updates"),
            "up to 6.5 times less than RocksDB, 26 times less than BlobDB",
            format!("B and D: {}", list(&saved)),
            saved.iter().all(|&ratio| ratio > 1.1),
        ));
    }
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_scans(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["", "kops/s", "over in place"]);
    let mut checks = Vec::new();
    for (mix, published) in [
        ("SD", "RocksDB 1.43 times faster (0.70)"),
        ("MD", "1.48 times (0.68)"),
    ] {
        let reports = READ.map(|(_, values)| results.of(&scan(scale, mix, values), "ycsb-e"));
        let speeds: Result<Vec<f64>> = reports.into_iter().map(|it| Ok(it?.kops())).collect();
        let speeds = speeds?;
        for ((name, _), speed) in READ.iter().zip(&speeds) {
            table.row([
                format!("{mix}, {name}"),
                short(*speed),
                short(speed / speeds[1]),
            ]);
        }
        checks.push(
            Check::new(
                &format!("{mix}: scans stay within about 40 % of all in place"),
                published,
                format!("hybrid over in place: {}", short(speeds[0] / speeds[1])),
                speeds[0] >= 0.6 * speeds[1],
            )
            .or_since(
                "after settling, a fifth of the values is large and separated, and each of them takes a cache miss \
                 and a checksum; tables are verified once per scrub interval",
                speeds[0] >= 0.45 * speeds[1],
            ),
        );
        checks.push(Check::new(
            &format!("{mix}: scans are faster than with all values in the log"),
            "BlobDB 7.95 times slower",
            format!(
                "hybrid over all in the log: {}",
                short(speeds[0] / speeds[2])
            ),
            speeds[0] > speeds[2],
        ));
    }
    Ok(Findings::new(checks, table))
}

pub(super) fn judge_mixes(
    scale: Scale,
    results: Results<'_>,
    load: &'static str,
) -> Result<Findings> {
    let rows = MIXES.into_iter().flat_map(|(mix, _)| {
        [READ[0], READ[1]].map(|(name, values)| {
            (
                vec![format!("{mix}, {name}")],
                updated(scale, mix, values),
                load,
            )
        })
    });
    let (table, reports) = compared(results, rows)?;
    let gains = pair_ratios(&reports, moved);
    let speeds = pair_ratios(&reports, |report| 1.0 / report.kops());
    let efforts = pair_ratios(&reports, |report| 1.0 / efficiency(report));
    let is_updated = load == "ycsb-a";
    let names: Vec<&str> = MIXES.iter().map(|(mix, _)| *mix).collect();
    let measured = format!("{}: {}", names.join(", "), list(&gains));
    let (published, measured) = if is_updated {
        (
            "up to 27.1 times less than RocksDB, 9.38 times less than BlobDB",
            measured,
        )
    } else {
        (
            "up to 4.38 times less than RocksDB, S 1.25 times more, and up to 1.95 times more than BlobDB; throughput up \
             to 3.57 and 4.15 times theirs, S twice RocksDB's; up to 3.92 times less processor time",
            format!(
                "{measured}; throughput over all in place {}; processor time {}",
                list(&speeds),
                list(&efforts)
            ),
        )
    };
    let mut checks = vec![
        Check::new(
            "hybrid placement moves fewer bytes, and larger values save more",
            published,
            measured,
            gains.windows(2).all(|pair| pair[1] > pair[0] * 0.85) && gains[5] > 2.0 * gains[1],
        )
        .or_since(
            "garbage collection copies the live values of a file, in an amount that `max_space_amp` bounds; this \
             does not depend on the size of values, and the cost of values in place is that of their levels",
            is_updated && gains[1..].iter().all(|&gain| gain > 1.2) && gains[5] > 1.5 * gains[1],
        ),
        Check::new(
            "smalls cost about the same, since none of them is separated",
            "1.25 times more in the load, since leaves have slots",
            short(gains[0]),
            (0.8..1.25).contains(&gains[0]),
        ),
    ];
    if is_updated {
        checks.push(collected(&reports, &speeds[1..], &efforts[1..]));
    }
    Ok(Findings::new(checks, table))
}

/// The check on garbage collection under updates.
fn collected(reports: &[Report], speeds: &[f64], efforts: &[f64]) -> Check {
    let hybrids = reports.iter().step_by(2).skip(1);
    let fractions: Vec<f64> = hybrids
        .map(|report| gc_bytes(report) as f64 / report.written_bytes as f64)
        .collect();
    Check::new(
        "garbage collection takes place, and hybrid placement is still ahead",
        "visible; up to 12.24 times the throughput of RocksDB and 10.75 times BlobDB's, one mix 1.3 times less; up to \
         18.7 and 16 times less processor time",
        format!(
            "M to L: part of the written bytes {}; throughput over all in place {}, together {}; processor time {}",
            list(&fractions),
            list(speeds),
            short(mean(speeds)),
            list(efforts)
        ),
        fractions.iter().any(|&fraction| fraction > 0.0) && mean(speeds) > 1.0,
    )
    .or_since(
        "all data is in the page cache, where fewer bytes save processor time, and no time of the one writer, which \
         is throttled while garbage takes more space than `max_space_amp` allows",
        mean(speeds) > 0.9 && efforts.iter().all(|&effort| effort < 1.0),
    )
}
