//! The figure of a whole group: throughput of the first engine over that of each other engine.

use crate::html::digest::{EngineRounds, Group, Load};
use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Anchor, Area, Canvas, cut, names_width};
use crate::html::draw::number::{self, or_nothing};
use crate::html::draw::picture::{LINE, WIDTH};
use crate::html::plots::figure::{Figure, Table};
use crate::html::record::LoadReport;

const ROW: f64 = 20.0;

/// The throughput of the `first` engine over that of each other one, for each load of `group`.
pub(crate) fn overview(group: &Group<'_>, first: &str, command: &str) -> Option<Figure> {
    let ratios: Vec<(&Load<'_>, Vec<(&EngineRounds<'_>, f64)>)> = group
        .loads
        .iter()
        .map(|load| (load, ratios(load, first)))
        .filter(|(_, ratios)| !ratios.is_empty())
        .collect();
    let mut others: Vec<(usize, &str)> = ratios
        .iter()
        .flat_map(|(_, ratios)| {
            ratios
                .iter()
                .map(|(engine, _)| (engine.series, engine.name))
        })
        .collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return None;
    }
    let mut canvas = Canvas::default();
    let left = names_width(ratios.iter().map(|(load, _)| load.name.as_str())) + 12.0;
    let legend = canvas.legend((left, 0.0), &others);
    let area = Area {
        left,
        top: legend + 8.0,
        width: WIDTH - left - 24.0,
        height: ROW * ratios.len() as f64,
    };
    let values: Vec<f64> = ratios
        .iter()
        .flat_map(|(_, ratios)| ratios.iter().map(|(_, ratio)| *ratio))
        .chain([1.0])
        .collect();
    let widest = values.iter().map(|ratio| ratio.max(1.0 / ratio));
    let base = match widest.fold(1.0, f64::max) {
        narrow if narrow <= 64.0 => 2,
        _ => 10,
    };
    let axis = Axis::logarithmic(values.into_iter(), base, number::ratio);
    canvas.axis_below(area, &axis, &format!("speed of {} over others", cut(first)));
    let one = area.x(&axis, 1.0);
    canvas.line("one", (one, area.top), (one, area.bottom()));
    for (row, (load, ratios)) in ratios.iter().enumerate() {
        let middle = area.top + ROW * (row as f64 + 0.5);
        canvas.name((left - 10.0, middle + 4.0), Anchor::End, &load.name);
        canvas.line("grid", (area.left, middle), (area.right(), middle));
        for (engine, ratio) in ratios {
            canvas.mark(engine.series, (area.x(&axis, *ratio), middle));
        }
    }
    let title = format!("Throughput of {first} over the others");
    let caption = format!(
        "Median operations per second of {first} over those of each other engine, with settling if a load writes. The \
         axis is logarithmic. To the right of 1\u{d7}, {first} is faster."
    );
    Some(Figure {
        kind: "overview".to_owned(),
        picture: canvas.finish(&title, &caption, area.bottom() + 2.5 * LINE),
        caption,
        commands: Some(command)
            .filter(|command| !command.is_empty())
            .map(str::to_owned)
            .into_iter()
            .collect(),
        tables: vec![table(first, &ratios, &others)],
    })
}

/// The ratio to each other engine.
fn ratios<'a, 'b>(load: &'b Load<'a>, first: &str) -> Vec<(&'b EngineRounds<'a>, f64)> {
    let (own, others): (Vec<_>, Vec<_>) =
        load.engines.iter().partition(|engine| engine.name == first);
    let Some(own) = own.first() else {
        return Vec::new();
    };
    let ratio = |engine: &'b EngineRounds<'a>| Some((engine, ratio(own, engine)?));
    others.into_iter().filter_map(ratio).collect()
}

/// The median throughput of `first` over that of `other`, if both are above 0.
pub(crate) fn ratio(first: &EngineRounds<'_>, other: &EngineRounds<'_>) -> Option<f64> {
    let rate = |engine: &EngineRounds<'_>| engine.spread(LoadReport::rate);
    let ratio = rate(first)?.times(&rate(other)?);
    ratio.filter(|&ratio| ratio > 0.0)
}

fn table(
    first: &str,
    ratios: &[(&Load<'_>, Vec<(&EngineRounds<'_>, f64)>)],
    others: &[(usize, &str)],
) -> Table {
    let row = |(load, ratios): &(&Load<'_>, Vec<(&EngineRounds<'_>, f64)>)| {
        let cells = others.iter().map(|(series, _)| {
            let found = ratios.iter().find(|(engine, _)| engine.series == *series);
            or_nothing(found.map(|(_, ratio)| *ratio), number::ratio)
        });
        std::iter::once(load.name.clone()).chain(cells).collect()
    };
    let names = others.iter().map(|(_, name)| (*name).to_owned());
    Table {
        caption: format!("{first}: its throughput over that of"),
        columns: std::iter::once("load".to_owned()).chain(names).collect(),
        rows: ratios.iter().map(row).collect(),
    }
}
