//! A picture of a simulated load: what changes as it grows.

use std::fs;
use std::path::Path;

use plotters::prelude::*;
use windrow::{Error, Result};

use super::report::{Point, Report};

const PIXELS: (u32, u32) = (800, 500);
const FONT: &str = "sans-serif";
const TEXT_PIXELS: i32 = 16;

/// Colors that also those tell apart who see red and green alike.
const COLORS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(80, 80, 80),
];

/// A line of the plot.
type Line = (&'static str, fn(&Point) -> f64);

const LINES: [Line; 4] = [
    ("levels", |point| point.levels as f64),
    ("written for each byte", |point| point.write_amplification),
    ("runs per seek", |point| point.runs_per_seek),
    ("disk for each live byte", |point| point.space_amplification),
];

/// Writes the plot of `report` to `path`.
///
/// # Errors
/// Those of drawing and of writing.
pub(super) fn write(path: &Path, report: &Report) -> Result<()> {
    let svg = draw(&report.samples)
        .map_err(|error| Error::invalid_argument(format!("the plot cannot be drawn: {error}")))?;
    fs::write(path, svg).map_err(|error| Error::io("write", path, error))
}

/// The plot as text.
fn draw(points: &[Point]) -> std::result::Result<String, Box<dyn std::error::Error>> {
    // The first few flushes tell nothing.
    let last = points.last().map_or(1, |last| last.user_bytes).max(2) as f64;
    let first = points.first().map_or(1, |first| first.user_bytes).max(1) as f64;
    let (first, last) = (first.log10(), last.log10().max(first.log10() + 0.1));
    let values = points
        .iter()
        .flat_map(|point| LINES.map(|(_, value)| value(point)));
    let most = values.fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, PIXELS).into_drawing_area();
        area.fill(&WHITE)?;
        let mut plane = ChartBuilder::on(&area)
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
        for ((name, value), color) in LINES.into_iter().zip(COLORS) {
            let at = |point: &Point| (point.user_bytes.max(1) as f64).log10();
            let style = color.stroke_width(2);
            plane
                .draw_series(LineSeries::new(
                    points.iter().map(|point| (at(point), value(point))),
                    style,
                ))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        }
        plane
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, TEXT_PIXELS))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
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
