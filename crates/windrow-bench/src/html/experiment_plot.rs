//! The plots of experiments of papers: lines or bars, over axes that the experiment names.

use super::axis::Axis;
use super::canvas::{
    Anchor, Area, Canvas, Drawn, LINE, WIDTH, line_class, names_width, text_width,
};
use super::experiments::commands;
use super::figure::{Figure, Table};
use super::latency::label_ends;
use super::number;
use super::picture::Picture;
use crate::experiment::{Experiment, Plot, PlotKind};

const HEIGHT: f64 = 250.0;
const BAR: f64 = 13.0;
const GAP: f64 = 9.0;

/// The plot of an experiment; its numbers are in the experiment's own table, and again as points.
pub(super) fn experiment_plot(experiment: &Experiment, campaign_command: &str) -> Option<Figure> {
    let plot = experiment.plot.as_ref()?;
    let has_points = plot.series.iter().any(|series| !series.points.is_empty());
    let title = format!("{}: {}", experiment.id, experiment.title);
    let (picture, caption) = match plot.kind {
        _ if !has_points => return None,
        PlotKind::Lines => lines(plot, &title),
        PlotKind::Bars => bars(plot, &title),
    };
    Some(Figure {
        kind: "experiment",
        picture,
        caption,
        commands: commands(experiment, campaign_command),
        tables: vec![points_table(plot, &title)],
    })
}

/// A line with marks for each series.
fn lines(plot: &Plot, title: &str) -> (Picture, String) {
    let all = || {
        plot.series
            .iter()
            .flat_map(|series| series.points.iter().copied())
    };
    let axis = |log: bool, values: Vec<f64>, is_x: bool| match (log, is_x) {
        (true, _) => Axis::logarithmic(values.into_iter(), 10, number::quantity),
        (false, true) => Axis::between(values.into_iter(), 6, number::quantity),
        (false, false) => Axis::linear(values.into_iter(), 5, number::quantity),
    };
    let x = axis(plot.log_x, all().map(|[x, _]| x).collect(), true);
    let y = axis(plot.log_y, all().map(|[_, y]| y).collect(), false);
    let right = names_width(plot.series.iter().map(|series| series.name.as_str())) + 34.0;
    let area = Area {
        left: 78.0,
        top: 8.0,
        width: WIDTH - 78.0 - right,
        height: HEIGHT,
    };
    let mut canvas = Canvas::default();
    canvas.axis_below(area, &x, &plot.x_label);
    canvas.axis_beside(area, &y, &plot.y_label);
    let mut ends = Vec::new();
    for (number, series) in plot.series.iter().enumerate() {
        let with_place = |point: &&[f64; 2]| x.holds(point[0]) && y.holds(point[1]);
        let place = |&[own_x, own_y]: &[f64; 2]| (area.x(&x, own_x), area.y(&y, own_y));
        let points: Vec<_> = series.points.iter().filter(with_place).map(place).collect();
        canvas.polyline(&line_class("curve", number), points.iter().copied());
        for point in &points {
            canvas.mark(number, *point);
        }
        // Names stand to the right, whichever point comes last.
        if let Some(end) = points.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
            ends.push((*end, number, series.name.as_str()));
        }
    }
    label_ends(&mut canvas, area, ends);
    let logarithmic = match (x.is_logarithmic(), y.is_logarithmic()) {
        (true, true) => " Both axes are logarithmic.",
        (true, false) => " The lower axis is logarithmic.",
        (false, true) => " The axis at the side is logarithmic.",
        (false, false) => "",
    };
    let (x, y) = (&plot.x_label, &plot.y_label);
    let caption = format!("Lower axis: {x}. Axis at the side: {y}.{logarithmic}");
    (
        canvas.finish(title, &caption, area.bottom() + 2.5 * LINE),
        caption,
    )
}

/// Bars of each series, those of one x together.
fn bars(plot: &Plot, title: &str) -> (Picture, String) {
    let all = || {
        plot.series
            .iter()
            .flat_map(|series| series.points.iter().copied())
    };
    let values = all().map(|[_, y]| y);
    let axis = if plot.log_y {
        // A little more room, so that the least has a bar.
        let values = values.flat_map(|value| [value * 0.7, value]);
        Axis::logarithmic(values, 10, number::quantity)
    } else {
        Axis::linear(values, 5, number::quantity)
    };
    let xs = distinct(all().map(|[x, _]| x));
    let labels: Vec<String> = xs
        .iter()
        .map(|&x| number::short(&number::plain(x)))
        .collect();
    let left = names_width(labels.iter().map(String::as_str)).max(40.0) + 36.0;
    let mut canvas = Canvas::default();
    let names: Vec<(usize, &str)> = plot
        .series
        .iter()
        .map(|series| series.name.as_str())
        .enumerate()
        .collect();
    let legend = canvas.legend((left, 0.0), Drawn::Bars, &names);
    let step = BAR * plot.series.len() as f64 + GAP;
    let area = Area {
        left,
        top: legend + 8.0,
        width: WIDTH - left - 62.0,
        height: step * xs.len() as f64,
    };
    canvas.axis_below(area, &axis, &plot.y_label);
    canvas.text_upwards((14.0, area.top + area.height / 2.0), &plot.x_label);
    let from = area.x(&axis, 0.0);
    for (row, (x, label)) in xs.iter().zip(&labels).enumerate() {
        let top = area.top + step * row as f64 + GAP / 2.0;
        let middle = top + (step - GAP) / 2.0;
        canvas.name((left - 10.0, middle + 4.0), Anchor::End, label);
        for (number, series) in plot.series.iter().enumerate() {
            let own = series
                .points
                .iter()
                .find(|[own, _]| own.total_cmp(x).is_eq());
            let Some(&[_, y]) = own else { continue };
            let middle = top + BAR * (number as f64 + 0.5);
            // What has no place on a logarithmic axis has no bar, only its number.
            let end = if axis.holds(y) {
                area.x(&axis, y)
            } else {
                from
            };
            let bar = Area {
                left: from.min(end),
                top: middle - BAR / 2.0 + 1.0,
                width: (end - from).abs(),
                height: BAR - 2.0,
            };
            canvas.bar(number, bar);
            let text = number::quantity(y);
            let at = (bar.right() + 6.0).min(WIDTH - text_width(&text) + 4.0);
            canvas.text((at, middle + 4.0), Anchor::Start, "value", &text);
        }
    }
    canvas.line("base", (from, area.top), (from, area.bottom()));
    let logarithmic = if plot.log_y {
        " The axis is logarithmic: compare ends, not lengths."
    } else {
        ""
    };
    let (x, y) = (&plot.x_label, &plot.y_label);
    let caption = format!("At the side: {x}. Lengths of the bars: {y}.{logarithmic}");
    (
        canvas.finish(title, &caption, area.bottom() + 2.5 * LINE),
        caption,
    )
}

/// The points, a row for each x.
fn points_table(plot: &Plot, title: &str) -> Table {
    let xs = distinct(
        plot.series
            .iter()
            .flat_map(|series| series.points.iter().map(|[x, _]| *x)),
    );
    let row = |x: &f64| {
        let cells = plot.series.iter().map(|series| {
            let own = series
                .points
                .iter()
                .filter(|[own, _]| own.total_cmp(x).is_eq());
            let all: Vec<String> = own.map(|[_, y]| number::plain(*y)).collect();
            match all.as_slice() {
                [] => number::NOTHING.to_owned(),
                all => all.join(", "),
            }
        });
        std::iter::once(number::short(&number::plain(*x)))
            .chain(cells)
            .collect()
    };
    Table {
        caption: format!("{title}: points"),
        columns: std::iter::once(plot.x_label.clone())
            .chain(plot.series.iter().map(|series| series.name.clone()))
            .collect(),
        rows: xs.iter().map(row).collect(),
    }
}

/// Each value once, in order.
fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup_by(|a, b| a.total_cmp(b).is_eq());
    values
}
