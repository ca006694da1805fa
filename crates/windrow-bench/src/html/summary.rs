//! The table of a group: one line per load and engine.

use super::digest::{EngineRounds, Group, Load};
use super::draw::markup::{Attributes, Markup};
use super::draw::number::{self, Format, or_nothing};
use super::plots::ratio;
use super::record::LoadReport;
use crate::report::figures::Spread;

/// A column of medians.
struct Column {
    heading: &'static str,
    format: Format,
    figure: fn(&LoadReport) -> Option<f64>,
}

const COLUMNS: [Column; 16] = [
    Column {
        heading: "ops/s",
        format: number::quantity,
        figure: |report| report.ops_per_second,
    },
    Column {
        heading: "written",
        format: number::ratio,
        figure: LoadReport::write_ratio,
    },
    Column {
        heading: "read",
        format: number::ratio,
        figure: LoadReport::read_ratio,
    },
    Column {
        heading: "read/op",
        format: number::bytes,
        figure: LoadReport::read_bytes_per_op,
    },
    Column {
        heading: "own written",
        format: number::ratio,
        figure: LoadReport::own_write_ratio,
    },
    Column {
        heading: "own read",
        format: number::ratio,
        figure: LoadReport::own_read_ratio,
    },
    Column {
        heading: "own read/op",
        format: number::bytes,
        figure: LoadReport::own_read_bytes_per_op,
    },
    Column {
        heading: "device reads/op",
        format: number::quantity,
        figure: |report| report.device_reads_per_op,
    },
    Column {
        heading: "device read/op",
        format: number::bytes,
        figure: |report| report.device_read_bytes_per_op,
    },
    Column {
        heading: "device written/op",
        format: number::bytes,
        figure: |report| report.device_written_bytes_per_op,
    },
    Column {
        heading: "device read",
        format: number::ratio,
        figure: |report| report.device_read_bytes_per_user_byte,
    },
    Column {
        heading: "space",
        format: number::ratio,
        figure: |report| report.space_amplification,
    },
    Column {
        heading: "p99",
        format: number::micros,
        figure: |report| report.latency.p99,
    },
    Column {
        heading: "CPU/op",
        format: number::micros,
        figure: |report| report.cpu_us_per_op,
    },
    Column {
        heading: "memory",
        format: number::bytes,
        figure: |report| report.peak_memory_bytes,
    },
    Column {
        heading: "companion",
        format: number::quantity,
        figure: |report| report.companion.as_ref()?.per_second,
    },
];

/// The meanings of the headings.
pub(super) const TERMS: [(&str, &str); 14] = [
    (
        "rate",
        "median over the rounds of the operations per second, with the settling of background work if \
         the load writes",
    ),
    ("range", "rate of the slowest and of the fastest round"),
    (
        "ratio",
        "the rate of the first engine over that of this engine: above 1\u{d7}, the first is faster",
    ),
    ("ops/s", "without settling, for all loads"),
    (
        "written, read",
        "bytes that the process wrote and read by system calls per byte that the load wrote, settling \
         included, by the kernel's count for all engines; only for loads that write a tenth of the \
         store or more. They do not include reads through mappings: LMDB's, LevelDB's of up to 1000 \
         tables, and Windrow's of tables, except with the buffered block source",
    ),
    (
        "read/op",
        "bytes that the process read by system calls per operation, also without mappings",
    ),
    (
        "own written, own read, own read/op",
        "the same by the engine's own count, if it has one. Compare these only between runs of one \
         engine with one block source. Windrow counts a block of a mapped table when it verifies the \
         block, at its first read, and does not count separated values that gets and scans read",
    ),
    (
        "device reads/op",
        "read requests that reached the device per operation, of all programs on the machine",
    ),
    (
        "device read/op, device written/op, device read",
        "bytes of this process that came from the device or go to it, mapped files included, per operation; the last \
         per byte of keys and values that the reads returned. What the page cache has counts only in the others",
    ),
    ("space", "bytes of all files per live byte, after settling"),
    ("p99", "the 99th percentile of latencies"),
    (
        "CPU/op",
        "processor time per operation, background work included",
    ),
    (
        "memory",
        "peak of the resident memory of the process. It includes pages of mapped files, which Windrow, \
         LevelDB and LMDB have, but not the page cache of the system, through which the others read",
    ),
    (
        "companion",
        "operations per second of the companion thread: fewer writes make reads cheaper",
    ),
];

/// Writes the table of `group`. Figures that no report has get no column.
pub(super) fn write_summary(page: &mut Markup, group: &Group<'_>, first: &str) {
    let engines = || group.loads.iter().flat_map(|load| &load.engines);
    let is_reported =
        |column: &&Column| engines().any(|engine| engine.median(column.figure).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(is_reported).collect();
    let has_range = engines().any(|engine| engine.rounds.len() > 1);
    let has_ratio = engines().any(|engine| engine.name != first);
    let mut headings = vec!["load", "engine", "rate"];
    headings.extend(has_range.then_some("range"));
    headings.extend(has_ratio.then_some("ratio"));
    headings.extend(columns.iter().map(|column| column.heading));
    let attributes: Attributes<'_> = &[
        ("class", &"wide"),
        ("tabindex", &"0"),
        ("role", &"region"),
        ("aria-label", &"Summary"),
    ];
    page.element("div", attributes, |wide| {
        wide.element("table", &[("class", &"summary")], |table| {
            table.leaf("caption", &[], "Medians over the rounds.");
            table.element("thead", &[], |head| {
                head.element("tr", &[], |row| {
                    for heading in headings {
                        row.leaf("th", &[("scope", &"col")], heading);
                    }
                });
            });
            for load in &group.loads {
                table.element("tbody", &[], |body| {
                    for position in 0..load.engines.len() {
                        body.element("tr", &[], |row| {
                            write_engine(row, load, position, first, (has_range, has_ratio));
                            let Some(engine) = load.engines.get(position) else {
                                return;
                            };
                            for column in &columns {
                                let median = engine.median(column.figure);
                                row.leaf("td", &[], or_nothing(median, column.format));
                            }
                        });
                    }
                });
            }
        });
    });
    if group.loads.iter().any(|load| load.engines.len() > 1) {
        page.leaf("p", &[("class", &"note")], BOLD);
    }
    let mut rounds = engines().flat_map(|engine| &engine.rounds);
    if let Some(dropped) = rounds.find_map(|round| round.report.dropped_caches) {
        let note = format!("Dropped before each load: {}.", dropped.text());
        page.leaf("p", &[("class", &"note")], note);
    }
    page.end_line();
}

/// The note on bold engines below the table.
const BOLD: &str = "Bold: the slowest round was faster than the fastest of every other engine. If \
                    ranges overlap, or an engine has one round only, no engine is bold.";

/// The engine with every round faster than all rounds of all others. One round has no range, so a load with a
/// single round has no fastest engine.
fn fastest(load: &Load<'_>) -> Option<usize> {
    let spread = |engine: &EngineRounds<'_>| engine.spread(LoadReport::rate);
    let spreads: Vec<Spread> = load.engines.iter().map(spread).collect::<Option<_>>()?;
    if spreads.len() < 2 || spreads.iter().any(|spread| spread.rounds < 2) {
        return None;
    }
    let is_fastest = |own: usize| {
        let others = spreads
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != own);
        others
            .map(|(_, spread)| spread.most)
            .all(|most| most < spreads[own].least)
    };
    (0..spreads.len()).find(|&own| is_fastest(own))
}

/// Writes the name and the throughput of one engine.
fn write_engine(
    row: &mut Markup,
    load: &Load<'_>,
    position: usize,
    first: &str,
    (has_range, has_ratio): (bool, bool),
) {
    let rate = |engine: &EngineRounds<'_>| engine.spread(LoadReport::rate);
    let engine = &load.engines[position];
    if position == 0 {
        let span = load.engines.len();
        row.leaf(
            "th",
            &[("scope", &"rowgroup"), ("rowspan", &span)],
            &load.name,
        );
    }
    row.leaf("th", &[("scope", &"row")], engine.name);
    let spread = rate(engine);
    let median = spread.map(|spread| spread.median);
    let is_best = fastest(load) == Some(position);
    row.element("td", &[], |cell| {
        let text = or_nothing(median, number::quantity);
        cell.leaf(if is_best { "b" } else { "span" }, &[], text);
    });
    if has_range {
        let range = spread.filter(|spread| spread.rounds > 1).map(|spread| {
            let (least, most) = (
                number::quantity(spread.least),
                number::quantity(spread.most),
            );
            format!("{least} to {most}")
        });
        let range = range.as_deref().unwrap_or(number::NOTHING);
        row.leaf("td", &[("class", &"range")], range);
    }
    if has_ratio {
        let own = load.engines.iter().find(|engine| engine.name == first);
        let ratio = own
            .filter(|_| engine.name != first)
            .and_then(|own| ratio(own, engine));
        row.leaf("td", &[], or_nothing(ratio, number::ratio));
    }
}
