//! What a picture says: lines from the statistics of a look, and of the look before.

use std::path::Path;

use ratatui::style::{Color, Stylize};
use ratatui::text::{Line, Span};
use serde_json::{Map, Value, json};

use crate::tables::plural;
use crate::text::{human_bytes, human_count};
use crate::watch::{Look, Sample, Samples};

/// Cells of a bar.
const CELLS: usize = 30;

/// A level has no capacity beyond this: it is below the nominal last one.
const CAPACITY_MAX: f64 = 1e18;

/// How a number is shown.
type Show = fn(u64) -> String;

/// The counters whose changes are shown.
const RATES: [(&str, &[&str], Show); 8] = [
    ("gets", &["windrow_gets_total"], human_count),
    ("seeks", &["windrow_seeks_total"], human_count),
    ("writes", &["windrow_user_writes_total"], human_count),
    (
        "written by callers",
        &["windrow_user_bytes_total"],
        human_bytes,
    ),
    (
        "written to the log",
        &["windrow_wal_written_bytes_total"],
        human_bytes,
    ),
    (
        "flushed",
        &["windrow_flush_written_bytes_total"],
        human_bytes,
    ),
    (
        "compacted",
        &[
            "windrow_compaction_written_bytes_total",
            "windrow_append_written_bytes_total",
            "windrow_consolidation_written_bytes_total",
            "windrow_gc_written_bytes_total",
        ],
        human_bytes,
    ),
    ("blocks loaded", &["windrow_block_loads_total"], human_count),
];

/// A picture.
#[derive(Debug)]
pub(crate) struct View {
    samples: Samples,
    /// The look that the rates are computed from: the last one whose statistics are older.
    before: Option<Samples>,
    pub(super) title: String,
    pub(super) levels: Vec<Line<'static>>,
    pub(super) jobs: Vec<Line<'static>>,
    pub(super) rates: Vec<Line<'static>>,
    pub(super) memory: Vec<Line<'static>>,
    pub(super) stalls: Vec<Line<'static>>,
    pub(super) latencies: Vec<Line<'static>>,
}

impl View {
    /// The picture of `look`, after the picture `earlier`.
    pub(crate) fn new(folder: &Path, look: &Look, earlier: Option<&Self>) -> Self {
        let samples = Samples::parse(&look.text);
        let before = earlier.and_then(|earlier| {
            if written_at(&earlier.samples) < written_at(&samples) {
                Some(earlier.samples.clone())
            } else {
                earlier.before.clone()
            }
        });
        let state = if look.is_live {
            "beside the process that writes"
        } else {
            "no process writes its statistics"
        };
        let disk = human_bytes(whole(samples.sum("windrow_disk_bytes")));
        Self {
            title: format!("windrow top {}: {disk} on disk, {state}", folder.display()),
            levels: levels(&samples),
            jobs: jobs(&samples),
            rates: rates(&samples, before.as_ref()),
            memory: memory(&samples),
            stalls: stalls(&samples),
            latencies: latencies(&samples),
            samples,
            before,
        }
    }

    /// The levels and counters as numbers, for programs; `null` for what is unknown.
    pub(crate) fn numbers(&self) -> Value {
        let levels = self.samples.all("windrow_level_bytes").map(|sample| {
            let (keyspace, level) = (sample.label("keyspace"), sample.label("level"));
            json!({ "keyspace": keyspace, "level": level, "bytes": whole(sample.value) })
        });
        let counters = RATES.iter().map(|(name, of, _)| {
            let is_known = self.samples.value(of[0]).is_some();
            let total = is_known.then(|| whole(total(&self.samples, of)));
            ((*name).to_owned(), total.into())
        });
        json!({
            "is_live": self.samples.sum("windrow_up") > 0.0,
            "levels": levels.collect::<Vec<_>>(),
            "counters": counters.collect::<Map<_, _>>(),
            "jobs": self.samples.all("windrow_job_running_seconds").count(),
        })
    }
}

/// When the process has written the statistics.
fn written_at(samples: &Samples) -> f64 {
    samples.value("windrow_status_time_seconds").unwrap_or(0.0)
}

fn total(samples: &Samples, names: &[&str]) -> f64 {
    names.iter().map(|name| samples.sum(name)).sum()
}

/// A number of the text as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and the text has no negative number"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// A bar that is filled by `fraction`.
fn bar(fraction: f64) -> Span<'static> {
    let filled = usize::try_from(whole(fraction.clamp(0.0, 1.0) * CELLS as f64)).unwrap_or(CELLS);
    let filled = if fraction > 0.0 { filled.max(1) } else { 0 };
    let text = "\u{2588}".repeat(filled) + &"\u{2591}".repeat(CELLS - filled);
    let color = match fraction {
        over if over > 1.0 => Color::Red,
        close if close > 0.9 => Color::Yellow,
        _ => Color::Green,
    };
    text.fg(color)
}

fn levels(samples: &Samples) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for keyspace in samples.all("windrow_memtable_bytes") {
        let name = keyspace.label("keyspace");
        let of = |metric: &str| samples.of(metric, &[("keyspace", name)]);
        let memtables = plural(whole(of("windrow_memtables")), "memtable");
        let bytes = human_bytes(whole(keyspace.value));
        lines.push(Line::from(format!("{name}: {bytes} in {memtables}")));
        let own = samples.all("windrow_level_bytes");
        for level in own.filter(|it| it.label("keyspace") == name) {
            lines.push(level_line(samples, name, level.label("level"), level.value));
        }
        for (metric, files) in [
            ("windrow_transient_log", "transient log"),
            ("windrow_value_log", "value log"),
        ] {
            let count = whole(of(&format!("{metric}_files")));
            if count > 0 {
                let bytes = human_bytes(whole(of(&format!("{metric}_bytes"))));
                let garbage = human_bytes(whole(of(&format!("{metric}_garbage_bytes"))));
                let files = plural(count, files);
                lines.push(Line::from(format!("  {files}: {bytes}, {garbage} garbage")));
            }
        }
    }
    lines
}

fn level_line(samples: &Samples, keyspace: &str, level: &str, bytes: f64) -> Line<'static> {
    let labels = [("keyspace", keyspace), ("level", level)];
    let capacity = samples.of("windrow_level_capacity_bytes", &labels);
    let files = plural(whole(samples.of("windrow_level_files", &labels)), "file");
    let held = human_bytes(whole(bytes));
    let head = Span::from(format!("  level {level:<2} "));
    if capacity <= 0.0 || capacity > CAPACITY_MAX {
        let rest = format!(" {held}, {files}");
        return Line::from(vec![head, " ".repeat(CELLS).into(), rest.into()]);
    }
    let rest = format!(" {held} of {}, {files}", human_bytes(whole(capacity)));
    Line::from(vec![head, bar(bytes / capacity), rest.into()])
}

fn jobs(samples: &Samples) -> Vec<Line<'static>> {
    let line = |job: &Sample| {
        let bytes = samples.of("windrow_job_bytes", &[("number", job.label("number"))]);
        let purpose = match job.label("purpose") {
            "" | "tree" => String::new(),
            purpose => format!(" ({purpose})"),
        };
        let level = match job.label("level") {
            "" => String::new(),
            level => format!(" to level {level}"),
        };
        let size = match whole(bytes) {
            0 => String::new(),
            bytes => format!(", {}", human_bytes(bytes)),
        };
        Line::from(format!(
            "  {}{purpose} of {}{level}{size}, for {}",
            job.label("job").replace('_', " "),
            job.label("keyspace"),
            human_seconds(job.value),
        ))
    };
    let running = samples.all("windrow_job_running_seconds");
    running.map(line).collect()
}

fn rates(samples: &Samples, before: Option<&Samples>) -> Vec<Line<'static>> {
    let seconds = before.map_or(0.0, |before| written_at(samples) - written_at(before));
    let is_known = |names: &[&str]| samples.value(names[0]).is_some();
    let known = RATES.iter().filter(|(_, names, _)| is_known(names));
    known
        .map(|(text, names, show)| {
            let rate = match before {
                Some(before) if seconds > 0.0 => {
                    let change = total(samples, names) - total(before, names);
                    show(whole(change.max(0.0) / seconds))
                }
                _ => "-".to_owned(),
            };
            Line::from(format!("  {text:<20}{rate:>12}"))
        })
        .collect()
}

fn memory(samples: &Samples) -> Vec<Line<'static>> {
    let used = samples.sum("windrow_memory_bytes");
    if used <= 0.0 {
        return Vec::new();
    }
    let parts = samples.all("windrow_memory_bytes").map(|sample| {
        let purpose = sample.label("purpose").replace('_', " ");
        let bytes = human_bytes(whole(sample.value));
        Line::from(format!("  {purpose:<16}{bytes:>12}"))
    });
    let mut lines: Vec<_> = parts.collect();
    let budget = samples.sum("windrow_memory_budget_bytes");
    let used_text = human_bytes(whole(used));
    if budget > 0.0 {
        let rest = format!(" {used_text} of {}", human_bytes(whole(budget)));
        lines.push(Line::from(vec![
            "  ".into(),
            bar(used / budget),
            rest.into(),
        ]));
    }
    let reads = samples.sum("windrow_block_reads_total");
    let loads = samples.sum("windrow_block_loads_total");
    if reads > 0.0 {
        let hits = (1.0 - loads / reads) * 100.0;
        lines.push(Line::from(format!("  blocks found in memory: {hits:.1} %")));
    }
    lines
}

fn stalls(samples: &Samples) -> Vec<Line<'static>> {
    let causes = samples.all("windrow_stall_stops_total").map(|stops| {
        let cause = stops.label("cause");
        let of = |metric: &str| samples.of(metric, &[("cause", cause)]);
        let delays = of("windrow_stall_delays_total");
        (delays + stops.value > 0.0).then(|| {
            let time = human_seconds(of("windrow_stall_seconds_total"));
            let (delays, stops) = (human_count(whole(delays)), human_count(whole(stops.value)));
            Line::from(format!("  {cause}: {delays} delays, {stops} stops, {time}").yellow())
        })
    });
    causes.flatten().collect()
}

fn latencies(samples: &Samples) -> Vec<Line<'static>> {
    let timed = samples.all("windrow_operation_seconds_count");
    timed
        .map(|count| {
            let operation = count.label("operation");
            let of = |metric: &str| samples.of(metric, &[("operation", operation)]);
            let mean = of("windrow_operation_seconds_sum") / count.value;
            let longest = of("windrow_longest_operation_seconds");
            let name = operation.replace('_', " ");
            Line::from(format!(
                "  {name:<18} {:>9} mean {:>9} longest",
                human_seconds(mean),
                human_seconds(longest)
            ))
        })
        .collect()
}

/// A time with three digits or so.
fn human_seconds(seconds: f64) -> String {
    match seconds {
        short if short < 1e-6 => format!("{:.0} ns", short * 1e9),
        short if short < 1e-3 => format!("{:.1} \u{b5}s", short * 1e6),
        short if short < 1.0 => format!("{:.1} ms", short * 1e3),
        long => format!("{long:.1} s"),
    }
}
