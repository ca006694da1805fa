//! Plots as SVG on white: lines over sizes, and settings as dots.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const PIXELS: (u32, u32) = (800, 500);
const FONT: &str = "sans-serif";
const TITLE_PIXELS: i32 = 24;
const TEXT_PIXELS: i32 = 18;

/// Colors that are distinct for readers with red-green blindness.
const COLORS: [RGBColor; 6] = [
    RGBColor(80, 80, 80),
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(0, 158, 115),
];

/// The title and labels of a plot.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
}

/// A value for each size.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) color: usize,
    pub(crate) width: u32,
    pub(crate) values: Vec<f64>,
}

/// Settings of one kind.
pub(crate) struct Dots {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

type Plane<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

impl Chart<'_> {
    /// Lines over sizes with these names, each ten times the previous one.
    pub(crate) fn lines(
        &self,
        sizes: &[&str],
        lines: &[Line<'_>],
    ) -> Result<String, Box<dyn Error>> {
        let values = lines.iter().flat_map(|line| line.values.iter().copied());
        let most = values.fold(0.0, f64::max);
        let mut svg = String::new();
        {
            let area = area(&mut svg)?;
            let last = sizes.len() as f64 - 1.0;
            let mut plane = self.plane(&area, -0.15..last + 0.15, 0.0..most * 1.05)?;
            let name = |x: &f64| name_at(sizes, *x);
            self.mesh(&mut plane, sizes.len(), &name, &|y| format!("{y:.0}"))?;
            for line in lines {
                let style = COLORS[line.color].stroke_width(line.width);
                let radius = line.width / 2 + 4;
                let points = || (0..).map(f64::from).zip(line.values.iter().copied());
                plane
                    .draw_series(LineSeries::new(points(), style))?
                    .label(line.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
                let circle = |point| Circle::new(point, radius, style.filled());
                plane.draw_series(points().map(circle))?;
            }
            legend(&mut plane, SeriesLabelPosition::UpperLeft)?;
            area.present()?;
        }
        Ok(svg)
    }

    /// Settings, the Pareto frontier `edge`, and one marked setting. Axes are logarithmic.
    pub(crate) fn dots(
        &self,
        dots: &[Dots],
        edge: &[(f64, f64)],
        default: (f64, f64),
    ) -> Result<String, Box<dyn Error>> {
        let logarithms = |(x, y): (f64, f64)| (x.log2(), y.log2());
        let points = || dots.iter().flat_map(|dots| dots.points.iter().copied());
        let x = around(points().map(|point| point.0.log2()));
        let y = around(points().map(|point| point.1.log2()));
        let mut svg = String::new();
        {
            let area = area(&mut svg)?;
            let mut plane = self.plane(&area, x, y)?;
            self.mesh(&mut plane, 10, &|x| power_of_two(*x), &|y| power_of_two(*y))?;
            let edge = edge.iter().copied().map(logarithms);
            plane.draw_series(LineSeries::new(edge, BLACK.mix(0.5)))?;
            for (own, color) in dots.iter().zip(COLORS) {
                let circle = move |point| Circle::new(logarithms(point), 5, color.filled());
                plane
                    .draw_series(own.points.iter().copied().map(circle))?
                    .label(own.name.as_str())
                    .legend(move |(x, y)| Circle::new((x + 12, y), 5, color.filled()));
            }
            plane
                .draw_series([Circle::new(logarithms(default), 11, BLACK.stroke_width(3))])?
                .label("default")
                .legend(|(x, y)| Circle::new((x + 12, y), 8, BLACK.stroke_width(3)));
            legend(&mut plane, SeriesLabelPosition::UpperRight)?;
            area.present()?;
        }
        Ok(svg)
    }

    fn plane<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
        x: Range<f64>,
        y: Range<f64>,
    ) -> Result<Plane<'a>, Box<dyn Error>> {
        let mut builder = ChartBuilder::on(area);
        builder
            .caption(self.title, (FONT, TITLE_PIXELS))
            .margin(16)
            .x_label_area_size(56)
            .y_label_area_size(72);
        Ok(builder.build_cartesian_2d(x, y)?)
    }

    fn mesh(
        &self,
        plane: &mut Plane<'_>,
        count: usize,
        x_name: &dyn Fn(&f64) -> String,
        y_name: &dyn Fn(&f64) -> String,
    ) -> Result<(), Box<dyn Error>> {
        plane
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_labels(count)
            .x_label_formatter(x_name)
            .y_label_formatter(y_name)
            .max_light_lines(0)
            .bold_line_style(BLACK.mix(0.15))
            .label_style((FONT, TEXT_PIXELS))
            .axis_desc_style((FONT, TEXT_PIXELS))
            .draw()?;
        Ok(())
    }
}

/// The range of the logarithms, with a small margin.
fn around(logarithms: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = logarithms.clone().fold(f64::INFINITY, f64::min);
    let most = logarithms.fold(f64::NEG_INFINITY, f64::max);
    least - 0.1..most + 0.1
}

/// The number with this logarithm.
fn power_of_two(logarithm: f64) -> String {
    let number = (logarithm.exp2() * 10.0).round() / 10.0;
    number.to_string()
}

/// A white drawing area for `svg`.
fn area(svg: &mut String) -> Result<DrawingArea<SVGBackend<'_>, Shift>, Box<dyn Error>> {
    let area = SVGBackend::with_string(svg, PIXELS).into_drawing_area();
    area.fill(&WHITE)?;
    Ok(area)
}

fn legend(plane: &mut Plane<'_>, position: SeriesLabelPosition) -> Result<(), Box<dyn Error>> {
    plane
        .configure_series_labels()
        .position(position)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, TEXT_PIXELS))
        .margin(12)
        .legend_area_size(32)
        .draw()?;
    Ok(())
}

/// The name of the size at `x`, if any.
fn name_at(sizes: &[&str], x: f64) -> String {
    let named = (0..).map(f64::from).zip(sizes);
    let mut near = named.filter(|(at, _)| (at - x).abs() < 0.01);
    near.next()
        .map_or(String::new(), |(_, name)| (*name).to_owned())
}
