//! Figures of bars, one for each engine: throughput with its spread, and amplification.

use crate::html::digest::{EngineRounds, Load};
use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Anchor, Area, Canvas, names_width, text_width};
use crate::html::draw::number::{self, Format, or_nothing};
use crate::html::draw::picture::{LINE, WIDTH};
use crate::html::plots::figure::{Figure, Table, commands, rounds};
use crate::html::record::LoadReport;
use crate::report::figures::{Spread, only_reads};

/// The heights of a row and of its bar.
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;

/// The width of the number at the end of a bar.
const NUMBER: f64 = 62.0;

/// Throughput: bars to the median, lines from the slowest to the fastest round.
pub(crate) fn throughput(load: &Load<'_>) -> Option<Figure> {
    let engines: Vec<&EngineRounds<'_>> = load.engines.iter().collect();
    let rate = |engine: &EngineRounds<'_>| engine.spread(LoadReport::rate);
    let spreads: Vec<_> = engines.iter().map(|engine| rate(engine)).collect();
    // Loads that only show the tree have no operations.
    if spreads.iter().flatten().all(|spread| spread.most <= 0.0) {
        return None;
    }
    let left = names_width(engines.iter().map(|engine| engine.name)) + 12.0;
    let area = Area {
        left,
        top: 6.0,
        width: WIDTH - left - NUMBER,
        height: ROW * engines.len() as f64,
    };
    let mut canvas = Canvas::default();
    write_names(&mut canvas, area, &engines);
    let values = spreads.iter().flatten().map(|spread| spread.most);
    let axis = Axis::linear(values, 5, number::quantity);
    let series: Vec<usize> = engines.iter().map(|engine| engine.series).collect();
    canvas.axis_below(area, &axis, "operations per second");
    write_bars(
        &mut canvas,
        area,
        &axis,
        &series,
        &spreads,
        number::quantity,
    );
    let title = format!("Throughput of {}", load.name);
    let rounds = rounds(&engines);
    let reports = load.engines.iter().flat_map(|engine| &engine.rounds);
    let mut names = reports.filter_map(|round| round.report.name.as_deref());
    let counted = if names.next().is_some_and(only_reads) {
        "without background work after the load"
    } else {
        "including the settling of background work"
    };
    let caption = if rounds == "one round" {
        format!("Operations per second in one round, {counted}; longer is faster.")
    } else {
        format!(
            "Operations per second, {counted}; longer is faster. The bar ends at the median of \
             {rounds}, and the thin line goes from the slowest round to the fastest."
        )
    };
    Some(Figure {
        kind: "throughput".to_owned(),
        picture: canvas.finish(&title, &caption, area.bottom() + 2.5 * LINE),
        caption,
        commands: commands(&engines),
        tables: vec![throughput_table(load, &spreads), rounds_table(load)],
    })
}

fn throughput_table(load: &Load<'_>, spreads: &[Option<Spread>]) -> Table {
    let columns = [
        "engine",
        "median",
        "slowest",
        "fastest",
        "rounds",
        "median ops/s",
    ];
    let row = |(engine, spread): (&EngineRounds<'_>, &Option<Spread>)| {
        let figure = |of: fn(&Spread) -> f64| or_nothing(spread.as_ref().map(of), number::count);
        vec![
            engine.name.to_owned(),
            figure(|spread| spread.median),
            figure(|spread| spread.least),
            figure(|spread| spread.most),
            spread.map_or(0, |spread| spread.rounds).to_string(),
            or_nothing(engine.median(|report| report.ops_per_second), number::count),
        ]
    };
    Table {
        caption: format!("{}: operations per second", load.name),
        columns: columns.map(str::to_owned).to_vec(),
        rows: load.engines.iter().zip(spreads).map(row).collect(),
    }
}

/// A row for each round.
fn rounds_table(load: &Load<'_>) -> Table {
    let columns = [
        "engine",
        "round",
        "operations",
        "seconds",
        "ops/s",
        "settled seconds",
        "compared",
    ];
    let rows = load.engines.iter().flat_map(|engine| {
        engine.rounds.iter().enumerate().map(|(position, round)| {
            let number = round.run.round.unwrap_or(position as u64) + 1;
            vec![
                engine.name.to_owned(),
                number.to_string(),
                or_nothing(round.report.ops, number::count),
                or_nothing(round.report.seconds, number::plain),
                or_nothing(round.report.ops_per_second, number::count),
                or_nothing(round.report.settled_seconds, number::plain),
                or_nothing(round.report.rate(), number::count),
            ]
        })
    });
    Table {
        caption: format!("{}: every round", load.name),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// An optional figure of a report.
type Reported = fn(&LoadReport) -> Option<f64>;

/// A figure of the engines, as a panel of bars.
struct Panel {
    title: &'static str,
    /// The meaning of the title, as a part of a sentence.
    meaning: &'static str,
    format: Format,
    figure: Reported,
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "written per byte",
        meaning: "bytes that the process wrote per byte that the load wrote",
        format: number::ratio,
        figure: LoadReport::write_ratio,
    },
    Panel {
        title: "read per byte",
        meaning: "bytes that it read by system calls per such byte",
        format: number::ratio,
        figure: LoadReport::read_ratio,
    },
    Panel {
        title: "read per operation",
        meaning: "bytes that the process read by system calls per operation",
        format: number::bytes,
        figure: |report| {
            if report.writes() {
                None
            } else {
                report.read_bytes_per_op()
            }
        },
    },
    Panel {
        title: "disk per live byte",
        meaning: "bytes of files per live byte",
        format: number::ratio,
        figure: |report| report.space_amplification,
    },
];

/// The engines' own counts: further columns of the table.
const OWN: [(&str, Format, Reported); 3] = [
    (
        "own written per byte",
        number::ratio,
        LoadReport::own_write_ratio,
    ),
    (
        "own read per byte",
        number::ratio,
        LoadReport::own_read_ratio,
    ),
    ("own read per operation", number::bytes, |report| {
        if report.writes() {
            None
        } else {
            report.own_read_bytes_per_op()
        }
    }),
];

/// Bytes written and read per user byte, and disk space per live byte.
pub(crate) fn amplification(load: &Load<'_>) -> Option<Figure> {
    let engines: Vec<&EngineRounds<'_>> = load.engines.iter().collect();
    let panels = PANELS.iter().map(|panel| {
        let spread = |engine: &&EngineRounds<'_>| engine.spread(panel.figure);
        (panel, engines.iter().map(spread).collect::<Vec<_>>())
    });
    let panels: Vec<_> = panels
        .filter(|(_, spreads)| spreads.iter().any(Option::is_some))
        .collect();
    if panels.is_empty() {
        return None;
    }
    let left = names_width(engines.iter().map(|engine| engine.name)) + 12.0;
    let fraction = (WIDTH - left) / panels.len() as f64;
    let mut canvas = Canvas::default();
    let series: Vec<usize> = engines.iter().map(|engine| engine.series).collect();
    let mut area = Area {
        left,
        top: LINE + 8.0,
        width: fraction - NUMBER,
        height: ROW * engines.len() as f64,
    };
    write_names(&mut canvas, area, &engines);
    for (panel, spreads) in &panels {
        canvas.text((area.left, LINE), Anchor::Start, "head", panel.title);
        let values = spreads.iter().flatten().map(|spread| spread.most);
        let ticks = if panels.len() > 2 { 2 } else { 4 };
        let axis = if panel.title.ends_with("operation") {
            Axis::bytes(values, ticks)
        } else {
            Axis::linear(values, ticks, number::ratio)
        };
        canvas.axis_below(area, &axis, "");
        write_bars(&mut canvas, area, &axis, &series, spreads, panel.format);
        area.left += fraction;
    }
    let title = format!("Amplification of {}", load.name);
    let meanings: Vec<&str> = panels.iter().map(|(panel, _)| panel.meaning).collect();
    let caption = format!(
        "From left to right: {}. Background work is included; shorter is better. The kernel counts bytes \
         written and read for all engines alike; reads through mappings, as LMDB's and those of mapped \
         tables of LevelDB and Windrow, do not count. The table has the own counts of engines. \
         Thin lines show the rounds' range.",
        meanings.join("; ")
    );
    let own = OWN.iter().filter(|(_, _, figure)| {
        let mut medians = engines.iter().map(|engine| engine.median(figure));
        medians.any(|median| median.is_some())
    });
    let columns = panels.iter().map(|(panel, _)| panel.title.to_owned());
    let columns = columns.chain(own.clone().map(|(title, _, _)| (*title).to_owned()));
    let rows = engines.iter().enumerate().map(|(position, engine)| {
        let figures = panels.iter().map(|(panel, spreads)| {
            let spread = spreads.get(position).copied().flatten();
            or_nothing(spread.map(|spread| spread.median), panel.format)
        });
        let own = own
            .clone()
            .map(|(_, format, figure)| or_nothing(engine.median(figure), *format));
        std::iter::once(engine.name.to_owned())
            .chain(figures)
            .chain(own)
            .collect()
    });
    let table = Table {
        caption: format!("{}: medians", load.name),
        columns: std::iter::once("engine".to_owned())
            .chain(columns)
            .collect(),
        rows: rows.collect(),
    };
    Some(Figure {
        kind: "amplification".to_owned(),
        picture: canvas.finish(&title, &caption, area.bottom() + 1.5 * LINE),
        caption,
        commands: commands(&engines),
        tables: vec![table],
    })
}

fn write_names(canvas: &mut Canvas, area: Area, engines: &[&EngineRounds<'_>]) {
    for (row, engine) in engines.iter().enumerate() {
        let y = area.top + ROW * (row as f64 + 0.5) + 4.0;
        canvas.name((area.left - 10.0, y), Anchor::End, engine.name);
    }
}

/// A bar to each median, with its number; a line over the rounds if they differ.
fn write_bars(
    canvas: &mut Canvas,
    area: Area,
    axis: &Axis,
    series: &[usize],
    spreads: &[Option<Spread>],
    format: Format,
) {
    for (row, (series, spread)) in series.iter().zip(spreads).enumerate() {
        let middle = area.top + ROW * (row as f64 + 0.5);
        let Some(spread) = spread else {
            let at = (area.left + 6.0, middle + 4.0);
            canvas.text(at, Anchor::Start, "tick", "not reported");
            continue;
        };
        let end = area.x(axis, spread.median);
        let bar = Area {
            left: area.left,
            top: middle - BAR / 2.0,
            width: end - area.left,
            height: BAR,
        };
        canvas.bar(*series, bar);
        let mut last = end;
        if spread.most > spread.least {
            let (least, most) = (area.x(axis, spread.least), area.x(axis, spread.most));
            let half = BAR / 2.0 + 2.0;
            // The halo separates the line from the bar.
            canvas.line("halo", (least - 1.0, middle), (most + 1.0, middle));
            canvas.line("median", (end, middle - half), (end, middle + half));
            canvas.line("spread", (least, middle), (most, middle));
            for cap in [least, most] {
                canvas.line("spread", (cap, middle - 3.5), (cap, middle + 3.5));
            }
            last = last.max(most);
        }
        let text = format(spread.median);
        let at = (last + 6.0).min(WIDTH - text_width(&text) + 4.0);
        canvas.text((at, middle + 4.0), Anchor::Start, "value", &text);
    }
    canvas.line("base", (area.left, area.top), (area.left, area.bottom()));
}
