//! The figures of latencies: latency over quantile, for all operations and for each kind.

use std::collections::BTreeSet;

use crate::html::digest::{EngineRounds, Load};
use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Anchor, Area, Canvas, line_class, names_width};
use crate::html::draw::number::{self, or_nothing};
use crate::html::draw::picture::{LINE, STYLES, WIDTH};
use crate::html::plots::figure::{Figure, Table, commands};
use crate::html::record::{Latency, LoadReport};

const HEIGHT: f64 = 250.0;

/// Quantiles with a mark on each curve.
const MARKED: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// The least distance between labels at the ends of lines.
const LABEL_GAP: f64 = 14.0;

/// The figure of all operations.
pub(crate) fn latency(load: &Load<'_>) -> Option<Figure> {
    latency_of(load, None)
}

/// A figure of each kind of operation, if the load has several.
pub(crate) fn latency_by_kind(load: &Load<'_>) -> Vec<Figure> {
    let kinds = load.engines.iter().flat_map(EngineRounds::kinds);
    let kinds: BTreeSet<&str> = kinds.filter_map(|kind| kind.operation.as_deref()).collect();
    let each = kinds.iter().filter(|_| kinds.len() > 1);
    each.filter_map(|&kind| latency_of(load, Some(kind)))
        .collect()
}

/// Latency over quantile, both logarithmic, in the median round of each engine: of one kind of operation, or of
/// all.
fn latency_of(load: &Load<'_>, kind: Option<&str>) -> Option<Figure> {
    let engines: Vec<&EngineRounds<'_>> = load.engines.iter().collect();
    let with_curves = engines.iter().map(|engine| (*engine, points(engine, kind)));
    let curves: Vec<(&EngineRounds<'_>, Vec<(f64, f64)>)> = with_curves
        .filter(|(_, points)| !points.is_empty())
        .collect();
    if curves.is_empty() {
        return None;
    }
    let all = || curves.iter().flat_map(|(_, points)| points.iter().copied());
    let x = Axis::quantiles(all().map(|(quantile, _)| quantile));
    let y = Axis::logarithmic(all().map(|(_, us)| us), 10, number::micros);
    let right = names_width(curves.iter().map(|(engine, _)| engine.name)) + 34.0;
    let area = Area {
        left: 78.0,
        top: 8.0,
        width: WIDTH - 78.0 - right,
        height: HEIGHT,
    };
    let mut canvas = Canvas::default();
    canvas.axis_below(area, &x, "fraction of operations");
    canvas.axis_left(area, &y, "latency");
    let mut ends = Vec::new();
    for (engine, points) in &curves {
        let place = |&(quantile, us): &(f64, f64)| (area.x(&x, quantile), area.y(&y, us));
        let class = line_class("curve", engine.series);
        canvas.polyline(&class, points.iter().map(place));
        for marked in MARKED {
            let at_or_after = points
                .iter()
                .find(|(quantile, _)| *quantile >= marked - 1e-9);
            if let Some(point) = at_or_after.filter(|(quantile, _)| *quantile < 1.0) {
                canvas.mark(engine.series, place(point));
            }
        }
        if let Some(last) = points.last() {
            ends.push((place(last), engine.series, engine.name));
        }
    }
    label_ends(&mut canvas, area, ends);
    let name = kind.map_or_else(
        || load.name.clone(),
        |kind| format!("{}: {kind}", load.name),
    );
    let title = format!("Latency of {name}");
    let caption =
        "Latency at each quantile, in the round with the median throughput; lower is better. Each \
                   further nine has the same width."
            .to_owned();
    let with_curves: Vec<_> = curves.iter().map(|(engine, _)| *engine).collect();
    let percentiles = kind.is_none().then(|| percentile_table(load)).into_iter();
    Some(Figure {
        kind: kind.map_or_else(|| "latency".to_owned(), |kind| format!("latency {kind}")),
        picture: canvas.finish(&title, &caption, area.bottom() + 2.5 * LINE),
        caption,
        commands: commands(&with_curves),
        tables: percentiles.chain([curve_table(&name, &curves)]).collect(),
    })
}

/// Names at the ends of lines, moved apart if they would overlap.
pub(crate) fn label_ends(
    canvas: &mut Canvas,
    area: Area,
    mut ends: Vec<((f64, f64), usize, &str)>,
) {
    ends.sort_by(|((_, a), _, _), ((_, b), _, _)| a.total_cmp(b));
    let mut free_from = area.top - LABEL_GAP / 2.0;
    let mut places: Vec<f64> = Vec::new();
    for ((_, y), _, _) in &ends {
        let place = y.max(free_from);
        free_from = place + LABEL_GAP;
        places.push(place);
    }
    // Names below the lower end push the others up.
    let mut free_to = area.bottom() + LABEL_GAP / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(free_to);
        free_to = *place - LABEL_GAP;
    }
    for (((x, y), series, name), place) in ends.into_iter().zip(places) {
        let mark = area.right() + 16.0;
        canvas.line(&format!("lead s{}", series % STYLES), (x, y), (mark, place));
        canvas.mark(series, (mark, place));
        canvas.name((mark + 9.0, place + 4.0), Anchor::Start, name);
    }
}

/// The curve of the median round: quantiles and microseconds within the axes.
fn points(engine: &EngineRounds<'_>, kind: Option<&str>) -> Vec<(f64, f64)> {
    let mut kinds = engine.kinds().iter();
    let curve = if kind.is_none() {
        engine.middle().report.latency_curve.as_deref()
    } else {
        let own = kinds.find(|own| own.operation.as_deref() == kind);
        own.and_then(|own| own.latency_curve.as_deref())
    };
    let reported = curve.unwrap_or_default().iter();
    let mut points: Vec<(f64, f64)> = reported
        .filter_map(|point| Some((point.quantile?, point.us?)))
        .filter(|(quantile, us)| (0.0..=1.0).contains(quantile) && us.is_finite() && *us > 0.0)
        .collect();
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    points
}

/// A percentile and its name.
type Percentile = (&'static str, fn(&Latency) -> Option<f64>);

const PERCENTILES: [Percentile; 5] = [
    ("50 %", |latency| latency.p50),
    ("95 %", |latency| latency.p95),
    ("99 %", |latency| latency.p99),
    ("99.9 %", |latency| latency.p999),
    ("slowest", |latency| latency.max),
];

/// Percentiles of each engine, and of its kinds of operation if it has several.
fn percentile_table(load: &Load<'_>) -> Table {
    let mut rows = Vec::new();
    for engine in &load.engines {
        let figures = PERCENTILES.map(|(_, figure)| {
            let of_round = |report: &LoadReport| figure(&report.latency);
            or_nothing(engine.median(of_round), number::micros)
        });
        let mut row = vec![engine.name.to_owned(), "all".to_owned()];
        row.extend(figures);
        rows.push(row);
        let kinds = engine.kinds();
        for kind in kinds.iter().filter(|_| kinds.len() > 1) {
            let operation = kind.operation.clone().unwrap_or_default();
            let mut row = vec![engine.name.to_owned(), operation];
            row.extend(
                PERCENTILES.map(|(_, figure)| or_nothing(figure(&kind.latency), number::micros)),
            );
            rows.push(row);
        }
    }
    let names = PERCENTILES.map(|(name, _)| name.to_owned());
    let first = ["engine", "operations"].map(str::to_owned);
    Table {
        caption: format!(
            "{}: medians over the rounds; kinds of operation in the round with the median throughput",
            load.name
        ),
        columns: first.into_iter().chain(names).collect(),
        rows,
    }
}

/// The points of the curves, one row for each quantile.
fn curve_table(name: &str, curves: &[(&EngineRounds<'_>, Vec<(f64, f64)>)]) -> Table {
    let all = curves.iter().flat_map(|(_, points)| points.iter());
    let mut quantiles: Vec<f64> = all.map(|(quantile, _)| *quantile).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup_by(|a, b| a.total_cmp(b).is_eq());
    let row = |quantile: f64| {
        let cells = curves.iter().map(|(_, points)| {
            let point = points
                .iter()
                .find(|(own, _)| own.total_cmp(&quantile).is_eq());
            or_nothing(point.map(|(_, us)| *us), number::micros)
        });
        std::iter::once(number::quantile(quantile))
            .chain(cells)
            .collect()
    };
    let names = curves.iter().map(|(engine, _)| engine.name.to_owned());
    Table {
        caption: format!("{name}: points of the curves"),
        columns: std::iter::once("quantile".to_owned())
            .chain(names)
            .collect(),
        rows: quantiles.into_iter().map(row).collect(),
    }
}
