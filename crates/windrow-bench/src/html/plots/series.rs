//! The time series of a load: operations per second over time, one strip per engine.
//!
//! All strips have the same axes. Intervals with stalls are shaded, and the settling is marked. Load and settling
//! end at the times of the report: the idle time that detects the end of a settling is in the series, but in no
//! rate.

use crate::html::digest::{EngineRounds, Load};
use crate::html::draw::axis::Axis;
use crate::html::draw::canvas::{Anchor, Area, Canvas, cut, text_width};
use crate::html::draw::number::{self, or_nothing};
use crate::html::draw::picture::{LINE, Px, STYLES, WIDTH};
use crate::html::plots::figure::{Figure, Table, commands};

const STRIP: f64 = 46.0;
const GAP: f64 = 26.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 22.0;

/// The maximal number of points of a strip.
const POINTS_MAX: usize = 220;

/// Rows of the table.
const INTERVALS_MAX: u32 = 24;

/// The plot shows no stalls below this fraction of an interval.
const STALLED_FRACTION: f64 = 0.01;

/// Bands with a smaller gap are joined.
const BAND_GAP: f64 = 2.0;

/// One interval of the series.
#[derive(Debug, Clone, Copy)]
struct Interval {
    begin: f64,
    end: f64,
    rate: f64,
    stalled: f64,
    settles: bool,
}

impl Interval {
    /// Whether the stalls are long enough to show.
    fn is_stalled(&self) -> bool {
        self.stalled >= STALLED_FRACTION * (self.end - self.begin)
    }
}

/// Operations per second over time, in the median round of each engine.
pub(crate) fn series(load: &Load<'_>) -> Option<Figure> {
    let reported = load
        .engines
        .iter()
        .map(|engine| (engine, intervals(engine)));
    let reported: Vec<_> = reported.filter(|(_, all)| !all.is_empty()).collect();
    // Loads that only show the tree have no operations.
    let mut rates = reported
        .iter()
        .flat_map(|(_, all)| all.iter().map(|one| one.rate));
    if !rates.any(|rate| rate > 0.0) {
        return None;
    }
    let thinned: Vec<_> = reported
        .iter()
        .map(|(engine, all)| (engine, thin(all)))
        .collect();
    let ends = reported
        .iter()
        .flat_map(|(_, all)| all.iter().map(|interval| interval.end));
    let rates = thinned
        .iter()
        .flat_map(|(_, all)| all.iter().map(|interval| interval.rate));
    let time = Axis::linear(ends, 6, number::seconds);
    let rate = Axis::linear(rates, 3, number::quantity);
    let mut area = Area {
        left: LEFT,
        top: GAP,
        width: WIDTH - LEFT - RIGHT,
        height: STRIP,
    };
    let mut canvas = Canvas::default();
    for ((engine, thinned), (_, all)) in thinned.iter().zip(&reported) {
        let name = (area.left + 12.0, area.top - 8.0);
        canvas.mark(engine.series, (area.left + 3.0, area.top - 12.0));
        canvas.name(name, Anchor::Start, engine.name);
        let free_from = name.0 + text_width(&cut(engine.name)) + 8.0;
        let curves = (all.as_slice(), thinned.as_slice());
        write_strip(
            &mut canvas,
            area,
            (&time, &rate),
            engine.series,
            curves,
            free_from,
        );
        area.top += STRIP + GAP;
    }
    area.top -= STRIP + GAP;
    canvas.axis_below(area, &time, "time since the start of the load");
    let title = format!("Time series of {}", load.name);
    let caption =
        "Operations per second over time, in the round with the median throughput. Hatched \
                   bands: stalls of a hundredth of the time or more. Gray, after a dashed line: the load \
                   has ended, and the engine settles."
            .to_owned();
    let engines: Vec<_> = reported.iter().map(|(engine, _)| *engine).collect();
    Some(Figure {
        kind: "series".to_owned(),
        picture: canvas.finish(&title, &caption, area.bottom() + 2.5 * LINE),
        caption,
        commands: commands(&engines),
        tables: vec![table(load, &reported)],
    })
}

/// Writes the strip of one engine; text above it starts at `free_from`.
fn write_strip(
    canvas: &mut Canvas,
    area: Area,
    (time, rate): (&Axis, &Axis),
    series: usize,
    (all, thinned): (&[Interval], &[Interval]),
    free_from: f64,
) {
    let settling = all.iter().filter(|interval| interval.settles);
    let ends = settling.clone().map(|interval| interval.end);
    let begin = settling.map(|interval| interval.begin).reduce(f64::min);
    let settled = begin.zip(ends.reduce(f64::max));
    if let Some((begin, end)) = settled {
        let (left, right) = (area.x(time, begin), area.x(time, end));
        let width = right - left;
        canvas.rect(
            "settling",
            Area {
                left,
                width,
                ..area
            },
        );
    }
    canvas.axis_left(area, rate, "");
    let stalled = all.iter().filter(|interval| interval.is_stalled());
    let extents =
        stalled.map(|interval| (area.x(time, interval.begin), area.x(time, interval.end)));
    let bands = bands(extents, area);
    if !bands.is_empty() {
        canvas.path("stall", &bands);
    }
    let steps = thinned.iter().filter(|interval| !interval.settles);
    let points = steps.flat_map(|interval| {
        let y = area.y(rate, interval.rate);
        [
            (area.x(time, interval.begin), y),
            (area.x(time, interval.end), y),
        ]
    });
    canvas.polyline(&format!("trace s{}", series % STYLES), points);
    if let Some((begin, end)) = settled {
        let x = area.x(time, begin);
        canvas.line("space", (x, area.top - 4.0), (x, area.bottom()));
        let seconds = number::short(&number::seconds(end - begin));
        let text = format!("settled for {seconds}");
        let is_late = x + text_width(&text) > WIDTH;
        let (at, anchor) = if is_late {
            (x, Anchor::End)
        } else {
            (x.max(free_from), Anchor::Start)
        };
        canvas.text((at, area.top - 8.0), anchor, "tick", &text);
    }
    canvas.line(
        "base",
        (area.left, area.bottom()),
        (area.right(), area.bottom()),
    );
}

/// The outline of bands over the height of `area`, each from one x to another. Joins near bands.
fn bands(extents: impl Iterator<Item = (f64, f64)>, area: Area) -> String {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (left, right) in extents {
        match joined.last_mut() {
            Some((_, end)) if left - *end < BAND_GAP => *end = end.max(right),
            _ => joined.push((left, right)),
        }
    }
    let outline = |(left, right): (f64, f64)| {
        let (width, height) = (Px((right - left).max(1.0)), Px(area.height));
        format!("M{} {}h{width}v{height}h-{width}z", Px(left), Px(area.top))
    };
    joined.into_iter().map(outline).collect()
}

/// The intervals of the median round.
fn intervals(engine: &EngineRounds<'_>) -> Vec<Interval> {
    let report = engine.middle().report;
    let points = report.series.as_deref().unwrap_or_default();
    let mut begin = 0.0;
    let mut intervals = Vec::new();
    for point in points {
        let (Some(end), Some(rate)) = (point.seconds, point.ops_per_second) else {
            continue;
        };
        let settles = point.settling.unwrap_or_default();
        let last = if settles {
            report.settled_seconds
        } else {
            report.seconds
        };
        let end = end.min(last.unwrap_or(f64::INFINITY));
        if !(end.is_finite() && rate.is_finite() && end > begin) {
            continue;
        }
        intervals.push(Interval {
            begin,
            end,
            rate: rate.max(0.0),
            stalled: point.stall_seconds.unwrap_or_default(),
            settles,
        });
        begin = end;
    }
    intervals
}

/// Joins neighbouring intervals until few remain. Does not join the load with the settling.
fn thin(intervals: &[Interval]) -> Vec<Interval> {
    let size = intervals.len().div_ceil(POINTS_MAX).max(1);
    let parts = intervals.chunk_by(|a, b| a.settles == b.settles);
    parts
        .flat_map(|part| part.chunks(size))
        .filter_map(join)
        .collect()
}

/// Joins consecutive intervals.
fn join(intervals: &[Interval]) -> Option<Interval> {
    let (first, last) = (intervals.first()?, intervals.last()?);
    let operations = intervals.iter().map(|one| one.rate * (one.end - one.begin));
    Some(Interval {
        begin: first.begin,
        end: last.end,
        rate: operations.sum::<f64>() / (last.end - first.begin),
        stalled: intervals.iter().map(|one| one.stalled).sum(),
        settles: first.settles,
    })
}

/// Means over equal spans of time, the same for all engines.
fn table(load: &Load<'_>, reported: &[(&EngineRounds<'_>, Vec<Interval>)]) -> Table {
    let all = || reported.iter().flat_map(|(_, all)| all.iter());
    let end = all().map(|interval| interval.end).fold(0.0, f64::max);
    let shortest = all().map(|one| one.end - one.begin).fold(end, f64::min);
    let fits = (1..=INTERVALS_MAX)
        .rev()
        .find(|&n| end / f64::from(n) >= shortest * 0.999);
    let count = fits.unwrap_or(1);
    let has_stalls = all().any(|interval| interval.stalled > 0.0);
    let mut columns = vec!["until".to_owned()];
    for (engine, _) in reported {
        columns.push(format!("{} ops/s", engine.name));
        if has_stalls {
            columns.push(format!("{} stalled", engine.name));
        }
    }
    let row = |number: u32| {
        let span = end / f64::from(count);
        let (begin, end) = (span * f64::from(number), span * f64::from(number + 1));
        let mut cells = vec![number::seconds(end)];
        for (_, all) in reported {
            let (rate, stalled) = within(all, begin, end);
            cells.push(rate.map_or_else(|| number::NOTHING.to_owned(), number::quantity));
            if has_stalls {
                cells.push(or_nothing(rate.map(|_| stalled), number::seconds));
            }
        }
        cells
    };
    Table {
        caption: format!("{}: means over spans of time, settling left out", load.name),
        columns,
        rows: (0..count).map(row).collect(),
    }
}

/// The mean rate of the load and the seconds of stalls between two times.
fn within(intervals: &[Interval], begin: f64, end: f64) -> (Option<f64>, f64) {
    let (mut seconds, mut operations, mut stalled) = (0.0, 0.0, 0.0);
    for interval in intervals.iter().filter(|interval| !interval.settles) {
        let common = interval.end.min(end) - interval.begin.max(begin);
        if common > 0.0 {
            seconds += common;
            operations += interval.rate * common;
            stalled += interval.stalled * common / (interval.end - interval.begin);
        }
    }
    ((seconds > 0.0).then(|| operations / seconds), stalled)
}
