//! The experiments on hybrid placement: PX-E0 to PX-E9.
//!
//! The paper's baselines are RocksDB and BlobDB; here they are the same engine with everything in place,
//! and with everything in the log, in leveled trees without appends or filters all of them, so that placement
//! is all that differs. `windrow-peers compare` has the others themselves.

use windrow::Result;

use super::findings::{Findings, list, mean, short};
use super::line::{Figures, Line, Results, Scale, Sizes};
use super::model::{gain, published_points};
use super::{COUNTED, Plan, TIMED};
use crate::Report;
use crate::paper::experiment::{Check, Table};
use crate::report::figures::per_given;

pub(super) const EXPERIMENTS: [Plan; 10] = [
    Plan {
        id: "PX-E0",
        title: "Small values apart from their keys, with collection and without",
        setting: "1 million entries of 24 + 64 bytes, the smallest that Windrow separates (the paper has 33 bytes \
                  in all), loaded and updated by YCSB A; T = 4, c = 1, memtables of 2 MiB, files of 1 MiB, a \
                  level 1 of 5 MiB",
        rounds: COUNTED,
        lines: |scale| {
            [Apart::InPlace, Apart::Log, Apart::LogWithoutGc]
                .map(|apart| tiny(scale, apart))
                .to_vec()
        },
        judge: judge_tiny,
    },
    Plan {
        id: "PX-E1",
        title: "YCSB B, C and D on SD and MD",
        setting: MIX_SETTING,
        rounds: TIMED,
        lines: |scale| double(scale).collect(),
        judge: judge_points,
    },
    Plan {
        id: "PX-E2",
        title: "YCSB E, scans",
        setting: MIX_SETTING,
        rounds: TIMED,
        lines: |scale| scanned(scale).collect(),
        judge: judge_scans,
    },
    Plan {
        id: "PX-E3",
        title: "YCSB's load in six mixes",
        setting: MIX_SETTING,
        rounds: TIMED,
        lines: |scale| six(scale).collect(),
        judge: |scale, results| judge_mixes(scale, results, "ycsb-load"),
    },
    Plan {
        id: "PX-E4",
        title: "YCSB A in six mixes",
        setting: MIX_SETTING,
        rounds: TIMED,
        lines: |scale| six(scale).collect(),
        judge: |scale, results| judge_mixes(scale, results, "ycsb-a"),
    },
    Plan {
        id: "PX-E5",
        title: "Two classes in place of three: mediums as smalls, or as larges",
        setting: MIX_SETTING,
        rounds: COUNTED,
        lines: |scale| {
            variants(
                scale,
                &[
                    Apart::Hybrid,
                    Apart::MediumsAsSmalls,
                    Apart::MediumsAsLarges,
                ],
            )
            .collect()
        },
        judge: judge_classes,
    },
    Plan {
        id: "PX-E6",
        title: "In place in the last level, or from the one before it on",
        setting: "the mix M; T = 4 as in the paper, and otherwise as above",
        rounds: COUNTED,
        lines: |scale| {
            [Apart::Hybrid, Apart::BeforeLast]
                .map(|apart| updated(scale, "M", apart))
                .to_vec()
        },
        judge: judge_last,
    },
    Plan {
        id: "PX-E7",
        title: "Transient runs sorted, or in the order of writing",
        setting: MIX_SETTING,
        rounds: COUNTED,
        lines: |scale| variants(scale, &[Apart::Hybrid, Apart::Unsorted]).collect(),
        judge: judge_sorted,
    },
    Plan {
        id: "PX-E8",
        title: "Mediums never put in place, the bound for the others",
        setting: MIX_SETTING,
        rounds: COUNTED,
        lines: |scale| variants(scale, &[Apart::Hybrid, Apart::Never]).collect(),
        judge: judge_never,
    },
    Plan {
        id: "PX-E9",
        title: "The model: gain of separation by the share of the keys",
        setting: "equations 1 to 4 beside the bytes of loads with all values in the log, and with all in place: L \
                  and M as in PX-E3, and the entries of PX-E0; R(i) is the part of a tree above its last i levels",
        rounds: COUNTED,
        lines: |scale| modelled(scale).flat_map(|(_, _, lines)| lines).collect(),
        judge: judge_model,
    },
];

const MIX_SETTING: &str = "keys of 24 bytes, values of 9, 104 and 1,004; half a million records (S 1.5 million, M 750,000, \
                           LD 350,000, L 250,000), memtables of 2 MiB, files of 1 MiB, a level 1 of 5 MiB; T = 4 \
                           makes three levels in place, as many as the paper's 8 makes of its hundred times \
                           larger data";

/// Where values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
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

impl Apart {
    fn settings(self, line: Line) -> Line {
        match self {
            Self::Hybrid => line,
            Self::InPlace => line.in_place(),
            Self::Log => line.with("large-from", 64),
            Self::LogWithoutGc => line.with("large-from", 64).with("max-space-amp", "inf"),
            Self::MediumsAsSmalls => line.with("medium-from", "never"),
            Self::MediumsAsLarges => line.with("large-from", 120),
            Self::BeforeLast => line.with("medium-in-place", "before-last"),
            Self::Never => line.with("medium-in-place", "never"),
            Self::Unsorted => line.with("medium-order", "written"),
        }
    }
}

/// The mixes, and their records at scale 1.
const MIXES: [(&str, f64); 6] = [
    ("S", 1.5e6),
    ("M", 7.5e5),
    ("MD", 5e5),
    ("SD", 5e5),
    ("LD", 3.5e5),
    ("L", 2.5e5),
];

fn sized(line: Line, scale: Scale) -> Line {
    line.with("preset", "parallax")
        .with("size-ratio", 4)
        .sized(Sizes::small(scale, 0.5))
}

fn records_of(mix: &str) -> f64 {
    let found = MIXES.iter().find(|(name, _)| *name == mix);
    found.map_or(5e5, |(_, records)| *records)
}

/// The load, and A with so many operations that collections come into their balance.
fn updated(scale: Scale, mix: &str, apart: Apart) -> Line {
    let records = records_of(mix);
    let line = Line::new(&["ycsb-load", "ycsb-a"])
        .with("mix", mix)
        .with("num", scale.count(records))
        .with("ops", scale.count(3.0 * records));
    apart.settings(sized(line, scale))
}

fn six(scale: Scale) -> impl Iterator<Item = Line> {
    MIXES.into_iter().flat_map(move |(mix, _)| {
        [Apart::Hybrid, Apart::InPlace].map(|apart| updated(scale, mix, apart))
    })
}

fn variants(scale: Scale, aparts: &[Apart]) -> impl Iterator<Item = Line> {
    ["M", "MD"]
        .into_iter()
        .flat_map(move |mix| aparts.iter().map(move |&apart| updated(scale, mix, apart)))
}

/// The load, and `loads` on what it leaves.
fn read(scale: Scale, mix: &str, apart: Apart, loads: &[&'static str], ops: f64) -> Line {
    let line = Line::new(&[&["ycsb-load"], loads].concat())
        .with("mix", mix)
        .with("num", scale.count(records_of(mix)))
        .with("ops", scale.count(ops));
    apart.settings(sized(line, scale))
}

const READ: [Apart; 3] = [Apart::Hybrid, Apart::InPlace, Apart::Log];
const POINTS: [&str; 3] = ["ycsb-b", "ycsb-c", "ycsb-d"];

fn points(scale: Scale, mix: &str, apart: Apart) -> Line {
    read(scale, mix, apart, &POINTS, 5e5)
}

fn scans(scale: Scale, mix: &str, apart: Apart) -> Line {
    read(scale, mix, apart, &["ycsb-e"], 1e5)
}

fn double(scale: Scale) -> impl Iterator<Item = Line> {
    ["SD", "MD"]
        .into_iter()
        .flat_map(move |mix| READ.map(|apart| points(scale, mix, apart)))
}

fn scanned(scale: Scale) -> impl Iterator<Item = Line> {
    ["SD", "MD"]
        .into_iter()
        .flat_map(move |mix| READ.map(|apart| scans(scale, mix, apart)))
}

fn tiny(scale: Scale, apart: Apart) -> Line {
    let records = 1e6;
    let line = Line::new(&["ycsb-load", "ycsb-a"])
        .with("value-size", 64)
        .with("num", scale.count(records))
        .with("ops", scale.count(3.0 * records));
    apart.settings(sized(line, scale))
}

/// What the model speaks of: names, the bytes of a key over those of a value, and lines with all values in
/// the log and all in place.
fn modelled(scale: Scale) -> impl Iterator<Item = (&'static str, f64, [Line; 2])> {
    let mix = move |mix: &'static str, value: f64| {
        let lines = [Apart::Log, Apart::InPlace].map(|apart| updated(scale, mix, apart));
        (mix, 24.0 / value, lines)
    };
    let tiny = [Apart::Log, Apart::InPlace].map(|apart| tiny(scale, apart));
    [
        mix("L", 1004.0),
        mix("M", 104.0),
        ("64 bytes", 24.0 / 64.0, tiny),
    ]
    .into_iter()
}

/// Bytes that the log and background work write and read for each byte given. What gets and scans read is left
/// out: in the page cache it is counted for blocks of tables at their first verification, and not for values.
fn moved(report: &Report) -> f64 {
    let work = report.io_stats.iter();
    let work = work.filter(|moved| moved.purpose != "gets and scans");
    let bytes: u64 = work.map(|it| it.written_bytes + it.read_bytes).sum();
    let (written, amplification) = (report.written_bytes as f64, report.write_amplification);
    per_given(bytes as f64, written, amplification).unwrap_or(0.0)
}

/// Bytes that collections of the log wrote.
fn collected(report: &Report) -> u64 {
    report.moved_for("collections").0
}

fn space(report: &Report) -> f64 {
    report.space_amplification.unwrap_or_default()
}

/// Microseconds of the processor for each operation.
fn efficiency(report: &Report) -> f64 {
    report.cpu_us_per_op
}

/// A table of lines with one load each.
fn compared(
    results: Results<'_>,
    lines: &[(String, Line)],
    load: &str,
) -> Result<(Table, Vec<Report>)> {
    let mut table = Table::new(&[
        "",
        "kops/s",
        "written per byte",
        "moved",
        "CPU us per operation",
        "space",
    ]);
    let mut reports = Vec::new();
    for (name, line) in lines {
        let report = results.of(line, load)?;
        table.row([
            name.clone(),
            short(report.kops()),
            short(report.write_amplification),
            short(moved(&report)),
            short(efficiency(&report)),
            short(space(&report)),
        ]);
        reports.push(report);
    }
    Ok((table, reports))
}

fn judge_tiny(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let named = [
        ("in place", Apart::InPlace),
        ("in the log, collected", Apart::Log),
        ("in the log, not collected", Apart::LogWithoutGc),
    ];
    let lines = named.map(|(name, apart)| (name.to_owned(), tiny(scale, apart)));
    let (table, reports) = compared(results, &lines, "ycsb-a")?;
    let space: Vec<f64> = reports.iter().map(space).collect();
    let moved: Vec<f64> = reports.iter().map(moved).collect();
    let checks = vec![
        Check::new(
            "collection moves more than none",
            "more than 13 times",
            format!(
                "moved, in place, collected, not: {}",
                list(moved.iter().copied())
            ),
            moved[1] > 1.2 * moved[2] && collected(&reports[1]) > 0,
        ),
        Check::new(
            "separation of small values does not pay",
            "27.4 with collection, 17.4 in place",
            format!(
                "moved {}; space {}",
                list(moved.iter().copied()),
                list(space.iter().copied())
            ),
            moved[1] > moved[0],
        )
        .or_since(
            "a collection here looks nothing up and waits for `max_space_amp`, so it moves less than merging all \
             in place does; what separation costs is room",
            space[1] > 1.2 * space[0],
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_points(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&[
        "",
        "load",
        "kops/s",
        "CPU us per operation",
        "moved",
        "blocks per operation",
    ]);
    let mut checks = Vec::new();
    for mix in ["SD", "MD"] {
        let (mut speeds, mut saved, mut efforts) = (Vec::new(), Vec::new(), Vec::new());
        for load in POINTS {
            let mut reports = Vec::new();
            for (name, apart) in [
                ("hybrid", READ[0]),
                ("in place", READ[1]),
                ("in the log", READ[2]),
            ] {
                let report = results.of(&points(scale, mix, apart), load)?;
                table.row([
                    format!("{mix}, {name}"),
                    load.to_owned(),
                    short(report.kops()),
                    short(efficiency(&report)),
                    short(moved(&report)),
                    short(report.blocks()),
                ]);
                reports.push(report);
            }
            speeds.push(reports[0].kops() / reports[1].kops());
            efforts.push(efficiency(&reports[1]) / efficiency(&reports[0]));
            if load != "ycsb-c" {
                saved.push(moved(&reports[1]) / moved(&reports[0]));
            }
        }
        checks.push(Check::new(
            &format!("{mix}: hybrid placement is ahead over B, C and D"),
            "up to 5.6 times RocksDB's throughput, 61 times BlobDB's; 8.6 and 28 times less processor time",
            format!(
                "throughput over all in place: {}; together {}; processor time less by {}",
                list(speeds.iter().copied()),
                short(mean(&speeds)),
                list(efforts.iter().copied())
            ),
            mean(&speeds) > 1.0,
        )
        .or_since(
            "all data is in the page cache, where bytes that need not be read save nothing, and a value apart \
             from its key costs a cache miss and a checksum more; the paper reads from a device, with a cache of \
             a sixth of the data",
            mean(&speeds) > 0.75,
        ));
        checks.push(Check::new(
            &format!("{mix}: it moves less where there are updates"),
            "up to 6.5 times less than RocksDB, 26 times less than BlobDB",
            format!("B and D: {}", list(saved.iter().copied())),
            saved.iter().all(|&ratio| ratio > 1.1),
        ));
    }
    Ok(Findings::new(checks, table))
}

fn judge_scans(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["", "kops/s", "over in place"]);
    let mut checks = Vec::new();
    for (mix, published) in [
        ("SD", "RocksDB 1.43 times as fast (0.70)"),
        ("MD", "1.48 times (0.68)"),
    ] {
        let mut speeds = Vec::new();
        for apart in READ {
            speeds.push(results.of(&scans(scale, mix, apart), "ycsb-e")?.kops());
        }
        for (name, speed) in ["hybrid", "in place", "in the log"].iter().zip(&speeds) {
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
                "once settled, a fifth of the values is large and apart from its key, and each takes a cache \
                 miss and a checksum, where tables are verified once per scrub interval",
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

fn judge_mixes(scale: Scale, results: Results<'_>, load: &str) -> Result<Findings> {
    let lines: Vec<(String, Line)> = MIXES
        .iter()
        .flat_map(|(mix, _)| {
            [("hybrid", Apart::Hybrid), ("in place", Apart::InPlace)]
                .map(|(name, apart)| (format!("{mix}, {name}"), updated(scale, mix, apart)))
        })
        .collect();
    let (table, reports) = compared(results, &lines, load)?;
    let gains: Vec<f64> = reports
        .chunks(2)
        .map(|two| moved(&two[1]) / moved(&two[0]))
        .collect();
    let speeds: Vec<f64> = reports
        .chunks(2)
        .map(|two| two[0].kops() / two[1].kops())
        .collect();
    let efforts: Vec<f64> = reports
        .chunks(2)
        .map(|two| efficiency(&two[0]) / efficiency(&two[1]))
        .collect();
    let names: Vec<&str> = MIXES.iter().map(|(mix, _)| *mix).collect();
    let measured = format!("{}: {}", names.join(", "), list(gains.iter().copied()));
    let (published, measured) = if load == "ycsb-a" {
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
                list(speeds.iter().copied()),
                list(efforts.iter().copied())
            ),
        )
    };
    let mut checks = vec![
        Check::new(
            "fewer bytes move, the more the larger the values",
            published,
            measured,
            gains.windows(2).all(|pair| pair[1] > pair[0] * 0.85) && gains[5] > 2.0 * gains[1],
        )
        .or_since(
            "a collection copies what lives beside what has died, as much of it as `max_space_amp` gives room for; \
             that does not depend on how large values are, and in place they cost what their levels do",
            load == "ycsb-a" && gains[1..].iter().all(|&gain| gain > 1.2) && gains[5] > 1.5 * gains[1],
        ),
        Check::new(
            "smalls cost about the same, nothing of them is separated",
            "1.25 times more in the load, since leaves have slots",
            short(gains[0]),
            (0.8..1.25).contains(&gains[0]),
        ),
    ];
    if load == "ycsb-a" {
        let hybrids = || reports.iter().step_by(2).skip(1);
        let fractions: Vec<f64> = hybrids()
            .map(|report| collected(report) as f64 / report.written_bytes as f64)
            .collect();
        let (speeds, efforts) = (&speeds[1..], &efforts[1..]);
        checks.push(
            Check::new(
            "collections are seen, and it is ahead all the same",
            "visible; up to 12.24 times the throughput of RocksDB and 10.75 times BlobDB's, one mix 1.3 times less; up to \
             18.7 and 16 times less processor time",
            format!(
                "M to L: part of what is written {}; throughput over all in place {}, together {}; processor \
                 time {}",
                list(fractions.iter().copied()),
                list(speeds.iter().copied()),
                short(mean(speeds)),
                list(efforts.iter().copied())
            ),
            fractions.iter().any(|&fraction| fraction > 0.0) && mean(speeds) > 1.0,
        )
        .or_since(
            "everything is in the page cache, where bytes that are not moved save processor time, and not the \
             time of the one writer, who is slowed while garbage values take more room than `max_space_amp` allows",
            mean(speeds) > 0.9 && efforts.iter().all(|&effort| effort < 1.0),
        ));
    }
    Ok(Findings::new(checks, table))
}

/// M and MD in variants, under A.
fn in_variants(
    scale: Scale,
    results: Results<'_>,
    load: &str,
    named: &[(&str, Apart)],
) -> Result<(Table, Vec<Report>)> {
    let lines: Vec<(String, Line)> = ["M", "MD"]
        .iter()
        .flat_map(|mix| {
            named
                .iter()
                .map(move |(name, apart)| (format!("{mix}, {name}"), updated(scale, mix, *apart)))
        })
        .collect();
    compared(results, &lines, load)
}

fn judge_classes(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let named = [
        ("three classes", Apart::Hybrid),
        ("mediums as smalls", Apart::MediumsAsSmalls),
        ("mediums as larges", Apart::MediumsAsLarges),
    ];
    let (table, reports) = in_variants(scale, results, "ycsb-a", &named)?;
    let over = |figure: fn(&Report) -> f64, place: usize| {
        let classes = reports.chunks(3);
        classes.map(move |three| figure(&three[place]) / figure(&three[0]))
    };
    let speeds = |place: usize| {
        format!(
            "{} times slower, {} times the processor time",
            list(over(|report| 1.0 / report.kops(), place)),
            list(over(efficiency, place))
        )
    };
    let checks = vec![
        Check::new(
            "mediums as smalls move more",
            "up to 2.43 times; 1.23 times slower, 1.32 times the processor time",
            format!("M, MD: {}; {}", list(over(moved, 1)), speeds(1)),
            over(moved, 1).all(|ratio| ratio > 1.0),
        ),
        Check::new(
            "mediums as larges move more",
            "up to 2 times; 1.11 times slower, 1.41 times the processor time",
            format!(
                "M, MD: {}; {}; space {}",
                list(over(moved, 2)),
                speeds(2),
                list(over(space, 2))
            ),
            over(moved, 2).all(|ratio| ratio > 1.0),
        )
        .or_since(
            "a collection here looks nothing up, and `max_space_amp` gives it room, so that it moves less than \
             merging in place, for more room and slower scans (PX-E2)",
            over(space, 2).all(|ratio| ratio > 1.05) && over(moved, 2).all(|ratio| ratio > 0.4),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_last(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let lines = [
        ("last level", Apart::Hybrid),
        ("the one before it", Apart::BeforeLast),
    ]
    .map(|(name, apart)| (name.to_owned(), updated(scale, "M", apart)));
    let (table, reports) = compared(results, &lines, "ycsb-load")?;
    let checks = vec![
        Check::new(
            "later in place, less is moved",
            "6.8 and 9.6; 1579 and 1339 kops/s",
            format!(
                "{}; {} kops/s",
                list([moved(&reports[0]), moved(&reports[1])]),
                list([reports[0].kops(), reports[1].kops()])
            ),
            moved(&reports[0]) < moved(&reports[1]),
        ),
        Check::new(
            "and more room is taken",
            "25 % and 6 % of the log",
            list([space(&reports[0]), space(&reports[1])]),
            space(&reports[0]) > space(&reports[1]) * 1.01,
        )
        .or_since(
            "what runs keep, garbage values included, is bounded by 1/T of the tree either way, and which is more at \
             the end depends on when files were merged for it last",
            reports.iter().all(|report| (1.02..1.3).contains(&space(report))),
        ),
    ];
    Ok(Findings::new(checks, table))
}

fn judge_sorted(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let named = [("sorted", Apart::Hybrid), ("as written", Apart::Unsorted)];
    let (table, reports) = in_variants(scale, results, "ycsb-load", &named)?;
    let moved: Vec<f64> = reports.iter().map(moved).collect();
    let speeds = reports.chunks(2).map(|two| two[0].kops() / two[1].kops());
    let checks = vec![Check::new(
        "sorting saves most of what merges move",
        "M 6.8 in place of 25.8 (3.8 times), MD 2.17 times; throughput 2.63 and 1.92 times",
        format!(
            "M, MD: {}; throughput {}",
            list(moved.chunks(2).map(|two| two[1] / two[0])),
            list(speeds)
        ),
        moved.chunks(2).all(|two| two[1] > 2.0 * two[0]),
    )];
    Ok(Findings::new(checks, table))
}

fn judge_never(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let named = [
        ("in the last level", Apart::Hybrid),
        ("never in place", Apart::Never),
    ];
    let (table, reports) = in_variants(scale, results, "ycsb-load", &named)?;
    let moved: Vec<f64> = reports.iter().map(moved).collect();
    let checks = vec![Check::new(
        "it moves least",
        "the bound",
        format!(
            "never over in the last level, M, MD: {}",
            list(moved.chunks(2).map(|two| two[1] / two[0]))
        ),
        moved.chunks(2).all(|two| two[1] < two[0]),
    )];
    Ok(Findings::new(checks, table))
}

fn judge_model(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["", "published", "model", "measured"]);
    for (what, published, model) in published_points() {
        table.row([what, published.to_owned(), model, "-".to_owned()]);
    }
    let mut pairs = Vec::new();
    for (name, fraction, lines) in modelled(scale) {
        let [log, in_place] = lines.map(|line| {
            let report = results.of(&line, "ycsb-load");
            report.map(|report| moved(&report))
        });
        let measured = in_place? / log?;
        let model = gain(3.0, 4.0, fraction);
        table.row([
            format!("gain, keys over values {fraction:.3} ({name}), N = 3, f = 4"),
            "-".to_owned(),
            short(model),
            short(measured),
        ]);
        pairs.push((model, measured));
    }
    let checks = vec![Check::new(
        "the measured gains are in the order of the model",
        "the gain falls with the share of the keys",
        list(pairs.iter().map(|(_, measured)| *measured)),
        pairs.windows(2).all(|two| two[1].1 <= two[0].1),
    )];
    Ok(Findings::new(checks, table))
}
