//! The figure of the trees: the bytes of each level, and its capacity.

use crate::html::digest::{EngineRounds, Load};
use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Anchor, Area, Canvas, names_width, text_width};
use crate::html::draw::number::{self, or_nothing};
use crate::html::draw::picture::{LINE, WIDTH};
use crate::html::plots::figure::{Figure, Table, commands};
use crate::html::record::Level;

const ROW: f64 = 17.0;
const BAR: f64 = 10.0;
/// The gap between two engines.
const GAP: f64 = 10.0;

/// A capacity from this value means no limit.
const CAPACITY_MAX: f64 = 1e18;

/// Levels after settling in the median round of each engine, on a logarithmic axis.
pub(crate) fn levels(load: &Load<'_>) -> Option<Figure> {
    let reported = load
        .engines
        .iter()
        .map(|engine| (engine, of_engine(engine)));
    let reported: Vec<_> = reported.filter(|(_, levels)| !levels.is_empty()).collect();
    if reported.is_empty() {
        return None;
    }
    let all = reported.iter().flat_map(|(_, levels)| levels.iter());
    let sizes = all
        .flat_map(|level| [level.bytes, capacity(level)])
        .flatten();
    // A lower start, so the smallest level has a bar.
    let sizes = sizes.flat_map(|bytes| [bytes * 0.7, bytes]);
    let axis = Axis::logarithmic(sizes, 16, number::bytes);
    let texts = reported
        .iter()
        .flat_map(|(_, levels)| levels.iter().map(|level| text_of(level)));
    let right = texts.map(|text| text_width(&text)).fold(0.0, f64::max) + 10.0;
    let left = names_width(reported.iter().map(|(engine, _)| engine.name)) + 42.0;
    let rows: usize = reported.iter().map(|(_, levels)| levels.len()).sum();
    let area = Area {
        left,
        top: 6.0,
        width: WIDTH - left - right,
        height: ROW * rows as f64 + GAP * reported.len() as f64,
    };
    let mut canvas = Canvas::default();
    canvas.axis_below(area, &axis, "bytes, logarithmic");
    let mut top = area.top + GAP / 2.0;
    for (engine, levels) in &reported {
        let at = (0.0, top + ROW / 2.0 + 4.0);
        canvas.name(at, Anchor::Start, engine.name);
        for level in levels {
            write_level(
                &mut canvas,
                area,
                &axis,
                engine.series,
                level,
                top + ROW / 2.0,
            );
            top += ROW;
        }
        top += GAP;
    }
    canvas.line("base", (area.left, area.top), (area.left, area.bottom()));
    let title = format!("Levels after {}", load.name);
    let caption = "Bytes of each level after settling (bar) and its capacity (dashed \
                   frame that ends at a line), in the round with the median throughput. The axis is \
                   logarithmic: compare ends, not lengths."
        .to_owned();
    let engines: Vec<_> = reported.iter().map(|(engine, _)| *engine).collect();
    Some(Figure {
        kind: "levels".to_owned(),
        picture: canvas.finish(&title, &caption, area.bottom() + 2.5 * LINE),
        caption,
        commands: commands(&engines),
        tables: vec![table(load, &reported)],
    })
}

fn write_level(
    canvas: &mut Canvas,
    area: Area,
    axis: &Axis,
    series: usize,
    level: &Level,
    middle: f64,
) {
    let name = format!("L{}", level.number.unwrap_or_default());
    canvas.text((area.left - 8.0, middle + 4.0), Anchor::End, "tick", &name);
    let extent = |bytes: f64| Area {
        left: area.left,
        top: middle - BAR / 2.0,
        width: area.x(axis, bytes) - area.left,
        height: BAR,
    };
    let mut last = area.left;
    if let Some(bytes) = level.bytes.filter(|&bytes| axis.holds(bytes)) {
        canvas.bar(series, extent(bytes));
        last = extent(bytes).right();
    }
    if let Some(capacity) = capacity(level) {
        let space = extent(capacity);
        canvas.rect("space", space);
        let half = BAR / 2.0 + 2.0;
        let (above, below) = (middle - half, middle + half);
        canvas.line("capacity", (space.right(), above), (space.right(), below));
        last = last.max(space.right());
    }
    canvas.text(
        (last + 6.0, middle + 4.0),
        Anchor::Start,
        "value",
        &text_of(level),
    );
}

/// The capacity of a level, if it has one.
fn capacity(level: &Level) -> Option<f64> {
    let bounded = level.capacity.filter(|&capacity| capacity < CAPACITY_MAX);
    bounded.filter(|&capacity| capacity > 0.0)
}

/// The label of a level: its bytes, and its capacity if it has one.
fn text_of(level: &Level) -> String {
    let bytes = or_nothing(level.bytes, number::bytes);
    match capacity(level) {
        Some(capacity) => format!("{bytes} of {}", number::bytes(capacity)),
        None => bytes,
    }
}

/// The levels of the median round, down to the deepest one with data.
fn of_engine<'a>(engine: &EngineRounds<'a>) -> Vec<&'a Level> {
    let levels = engine.middle().report.levels.as_deref().unwrap_or_default();
    let holds = |level: &Level| level.bytes.is_some_and(|bytes| bytes > 0.0);
    let depth = levels.iter().rposition(holds).map_or(0, |last| last + 1);
    levels.iter().take(depth).collect()
}

fn table(load: &Load<'_>, reported: &[(&EngineRounds<'_>, Vec<&Level>)]) -> Table {
    let columns = ["engine", "level", "files", "bytes", "capacity", "filled"];
    let rows = reported.iter().flat_map(|(engine, levels)| {
        levels.iter().map(|level| {
            let capacity = capacity(level);
            let filled = level.bytes.zip(capacity);
            vec![
                engine.name.to_owned(),
                level.number.unwrap_or_default().to_string(),
                or_nothing(level.files, number::count),
                or_nothing(level.bytes, number::count),
                or_nothing(capacity, number::count),
                or_nothing(
                    filled.map(|(bytes, capacity)| bytes / capacity),
                    |fraction| format!("{:.0}\u{a0}%", fraction * 100.0),
                ),
            ]
        })
    });
    Table {
        caption: format!("{}: levels after settling", load.name),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
