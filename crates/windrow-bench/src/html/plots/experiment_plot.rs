//! The plots of experiments of papers: lines over axes that the experiment names.

use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Area, Canvas, line_class, names_width};
use crate::html::draw::number;
use crate::html::draw::picture::{LINE, Picture, WIDTH};
use crate::html::experiments::commands;
use crate::html::plots::figure::{Figure, Table};
use crate::html::plots::latency::label_ends;
use crate::paper::experiment::{Experiment, Plot};

const HEIGHT: f64 = 250.0;

/// The plot of an experiment. Its table has the points.
pub(crate) fn experiment_plot(experiment: &Experiment, campaign_command: &str) -> Option<Figure> {
    let plot = experiment.plot.as_ref()?;
    if plot.series.iter().all(|series| series.points.is_empty()) {
        return None;
    }
    let title = format!("{}: {}", experiment.id, experiment.title);
    let (picture, caption) = lines(plot, &title);
    Some(Figure {
        kind: "experiment".to_owned(),
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
    let x = Axis::between(all().map(|[x, _]| x), 6, number::quantity);
    let y = Axis::linear(all().map(|[_, y]| y), 5, number::quantity);
    let right = names_width(plot.series.iter().map(|series| series.name.as_str())) + 34.0;
    let area = Area {
        left: 78.0,
        top: 8.0,
        width: WIDTH - 78.0 - right,
        height: HEIGHT,
    };
    let mut canvas = Canvas::default();
    canvas.axis_below(area, &x, &plot.x_label);
    canvas.axis_left(area, &y, &plot.y_label);
    let mut ends = Vec::new();
    for (number, series) in plot.series.iter().enumerate() {
        let with_place = |point: &&[f64; 2]| x.holds(point[0]) && y.holds(point[1]);
        let place = |&[own_x, own_y]: &[f64; 2]| (area.x(&x, own_x), area.y(&y, own_y));
        let points: Vec<_> = series.points.iter().filter(with_place).map(place).collect();
        canvas.polyline(&line_class("curve", number), points.iter().copied());
        for point in &points {
            canvas.mark(number, *point);
        }
        // Names stand at the right end.
        if let Some(end) = points.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
            ends.push((*end, number, series.name.as_str()));
        }
    }
    label_ends(&mut canvas, area, ends);
    let (x, y) = (&plot.x_label, &plot.y_label);
    let caption = format!("Lower axis: {x}. Axis at the side: {y}.");
    (
        canvas.finish(title, &caption, area.bottom() + 2.5 * LINE),
        caption,
    )
}

/// The points, one row for each x.
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
