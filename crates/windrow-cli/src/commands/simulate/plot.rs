//! A plot of a simulated load: what changes with its size.
//!
//! Concurrency: none; no state.

use std::fs;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use windrow::{Error, KeyspaceOptions, Result};

use super::report::{Point, Report};

const PIXELS: (u32, u32) = (800, 800);
const FONT: &str = "sans-serif";
const TEXT_PIXELS: i32 = 16;

/// Colors that people with red-green blindness can distinguish.
const COLORS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(80, 80, 80),
];

/// A line over the logarithm of the bytes given.
struct Line {
    name: &'static str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

impl Line {
    fn new(
        name: &'static str,
        color: usize,
        points: &[Point],
        value: impl Fn(&Point) -> f64,
    ) -> Self {
        let at = |point: &Point| (logarithm(point.user_bytes), value(point));
        Self {
            name,
            color: COLORS[color],
            points: points.iter().map(at).collect(),
        }
    }
}

/// Writes the plot of `report` to `path`.
///
/// # Errors
/// Those of drawing and of writing.
pub(super) fn write(path: &Path, report: &Report) -> Result<()> {
    let svg = draw(report)
        .map_err(|error| Error::invalid_argument(format!("the plot cannot be drawn: {error}")))?;
    fs::write(path, svg).map_err(|error| Error::io("write", path, error))
}

/// The plot as text: levels above, what they cost below.
fn draw(report: &Report) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let points = &report.samples[..];
    let levels = [
        Line::new("levels", 0, points, |point| point.levels as f64),
        Line::new("by the formula", 3, points, |point| {
            levels_by_formula(&report.options, point.live_bytes)
        }),
    ];
    let costs = [
        Line::new("written for each byte", 1, points, |point| {
            point.write_amplification
        }),
        Line::new("runs per seek", 2, points, |point| point.runs_per_seek),
        Line::new("disk for each live byte", 3, points, |point| {
            point.space_amplification
        }),
    ];
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, PIXELS).into_drawing_area();
        area.fill(&WHITE)?;
        for (part, lines) in area.split_evenly((2, 1)).iter().zip([&levels[..], &costs]) {
            panel(part, lines)?;
        }
        area.present()?;
    }
    Ok(svg)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: &[Line],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let first = all().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let last = all().map(|(x, _)| x).fold(first + 0.1, f64::max);
    let most = all().map(|(_, y)| y).fold(1.0, f64::max);
    let mut plane = ChartBuilder::on(area)
        .margin(16)
        .x_label_area_size(56)
        .y_label_area_size(56)
        .build_cartesian_2d(first..last, 0.0..most * 1.1)?;
    plane
        .configure_mesh()
        .x_desc("bytes given")
        .x_label_formatter(&|power| bytes(*power))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .max_light_lines(0)
        .bold_line_style(BLACK.mix(0.15))
        .label_style((FONT, TEXT_PIXELS))
        .draw()?;
    for line in lines {
        let style = line.color.stroke_width(2);
        plane
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    plane
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, TEXT_PIXELS))
        .draw()?;
    Ok(())
}

/// The fractional number of levels whose last one is just full with so many bytes. It grows with the logarithm of
/// the bytes if all levels have one size ratio, else with the square root of the logarithm.
fn levels_by_formula(options: &KeyspaceOptions, bytes: u64) -> f64 {
    let ratio = options.size_ratio.ln();
    let growth = -options.scaling.ln();
    let data = (bytes.max(1) as f64 / options.base_bytes as f64)
        .ln()
        .max(0.0);
    if growth < 1e-9 {
        return 1.0 + data / ratio;
    }
    let linear = ratio + growth / 2.0;
    1.0 + ((linear * linear + 2.0 * growth * data).sqrt() - linear) / growth
}

fn logarithm(bytes: u64) -> f64 {
    (bytes.max(1) as f64).log10()
}

/// The bytes of a power of ten.
fn bytes(power: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut amount = 10.0_f64.powf(power);
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    while amount >= 999.5 {
        let Some(next) = units.next() else { break };
        (amount, unit) = (amount / 1000.0, next);
    }
    format!("{amount:.0} {unit}")
}
