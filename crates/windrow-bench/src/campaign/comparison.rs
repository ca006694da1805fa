//! The comparison of several engines on one load: medians, spreads and ratios over the rounds.
//!
//! Comparisons use the kernel's count of bytes of each process, which is the same for all engines. An engine's own
//! count is another figure, which engines without counters lack.

use serde_json::{Map, Value, json};
use windrow::{Error, Result};

use super::Run;
use crate::report::figures::Spread;
use crate::{DroppedCaches, Report};

/// A figure of a report; `None` if the engine or the system does not report it.
type Figure = fn(&Report) -> Option<f64>;

/// The compared figures, by their names in reports.
const FIGURES: [(&str, Figure); 26] = [
    (UNSETTLED, |report| Some(report.ops_per_second)),
    (SETTLED, |report| Some(report.settled_ops_per_second)),
    (RATE, |report| Some(report.rate())),
    (CPU, |report| Some(report.cpu_us_per_op)),
    ("p50_us", |report| Some(report.latency.p50_us)),
    ("p95_us", |report| Some(report.latency.p95_us)),
    (P99, |report| Some(report.latency.p99_us)),
    ("p999_us", |report| Some(report.latency.p999_us)),
    ("max_us", |report| Some(report.latency.max_us)),
    (WRITTEN, |report| {
        per_user_byte(report, report.process_written_bytes?)
    }),
    ("process_read_per_user_byte", |report| {
        per_user_byte(report, report.process_read_bytes?)
    }),
    (OWN_WRITTEN, |report| {
        own(report, report.write_amplification?)
    }),
    ("io_amplification", |report| {
        own(report, report.io_amplification?)
    }),
    (SPACE, |report| report.space_amplification),
    ("block_reads_per_op", |report| report.block_reads_per_op),
    ("read_bytes", |report| own(report, report.read_bytes as f64)),
    ("written_bytes", |report| {
        own(report, report.written_bytes as f64)
    }),
    ("process_read_bytes", |report| {
        report.process_read_bytes.map(|bytes| bytes as f64)
    }),
    ("process_written_bytes", |report| {
        report.process_written_bytes.map(|bytes| bytes as f64)
    }),
    (DEVICE_READS, |report| report.device.device_reads_per_op),
    (DEVICE_READ, |report| report.device.device_read_bytes_per_op),
    (DEVICE_WRITTEN, |report| {
        report.device.device_written_bytes_per_op
    }),
    (DEVICE_PER_ASKED, |report| {
        report.device.device_read_bytes_per_user_byte
    }),
    (COMPANION, |report| {
        report.companion.as_ref().map(|done| done.per_second)
    }),
    ("disk_bytes", |report| Some(report.disk_bytes as f64)),
    (MEMORY, |report| {
        report.peak_memory_bytes.map(|bytes| bytes as f64)
    }),
];

const UNSETTLED: &str = "ops_per_second";
const SETTLED: &str = "settled_ops_per_second";
/// The rate of the two that comparisons use ([`Report::rate`]).
const RATE: &str = "rate";
const CPU: &str = "cpu_us_per_op";
const P99: &str = "p99_us";
const WRITTEN: &str = "process_written_per_user_byte";
const OWN_WRITTEN: &str = "write_amplification";
const SPACE: &str = "space_amplification";
const DEVICE_READS: &str = "device_reads_per_op";
const DEVICE_READ: &str = "device_read_bytes_per_op";
const DEVICE_WRITTEN: &str = "device_written_bytes_per_op";
const DEVICE_PER_ASKED: &str = "device_read_bytes_per_user_byte";
const COMPANION: &str = "companion_per_second";
const MEMORY: &str = "peak_memory_bytes";

/// The figure of an engine with its own counters, which it reports by purpose. In reports of other engines the same
/// fields hold the kernel's count of the process.
fn own(report: &Report, figure: f64) -> Option<f64> {
    (!report.io_stats.is_empty()).then_some(figure)
}

/// `bytes` per user byte of the load, for a load that has a write amplification.
fn per_user_byte(report: &Report, bytes: u64) -> Option<f64> {
    report.write_amplification?;
    Some(bytes as f64 / report.user_bytes as f64)
}

/// One engine's rounds of one load.
#[derive(Debug)]
struct Rounds<'a> {
    engine: &'a str,
    reports: Vec<&'a Report>,
    /// Whether the engine has runs without this load, since it lacks a feature.
    is_left_out: bool,
}

impl Rounds<'_> {
    fn spread(&self, figure: &str) -> Option<Spread> {
        let (_, of) = FIGURES.iter().find(|(name, _)| *name == figure)?;
        Spread::of(self.reports.iter().filter_map(|report| of(report)))
    }
}

/// One load on all engines.
#[derive(Debug)]
pub struct Comparison<'a> {
    load: &'a str,
    engines: Vec<Rounds<'a>>,
}

/// The name of a load, and the number of loads with this name before it in its run.
type Named<'a> = (&'a str, usize);

/// The loads of `run`.
fn named(run: &Run) -> impl Iterator<Item = Named<'_>> {
    run.reports.iter().enumerate().map(|(place, report)| {
        let before = run.reports[..place].iter();
        let before = before.filter(|other| other.name == report.name).count();
        (report.name.as_str(), before)
    })
}

/// The report of `load` in `run`.
fn report_of<'a>(run: &'a Run, load: Named<'_>) -> Option<&'a Report> {
    let place = named(run).position(|other| other == load)?;
    run.reports.get(place)
}

/// The loads of all runs. A load that some runs leave out follows the load before it in the others.
fn loads_of<'a>(runs: &[&'a Run]) -> Vec<Named<'a>> {
    let mut loads: Vec<Named<'a>> = Vec::new();
    for run in runs {
        let mut next = 0;
        for load in named(run) {
            let found = loads.iter().position(|&other| other == load);
            let place = found.unwrap_or_else(|| {
                loads.insert(next, load);
                next
            });
            next = place + 1;
        }
    }
    loads
}

impl<'a> Comparison<'a> {
    /// The loads of `runs`, in their order, on each of `engines`. An engine may have left out loads.
    pub fn all(engines: &[&'a str], runs: &[&'a Run]) -> Vec<Self> {
        let of_load = |load: Named<'a>| {
            let rounds = |&engine: &&'a str| {
                let own = runs.iter().filter(|run| run.engine == engine);
                let reports: Vec<&'a Report> =
                    own.clone().filter_map(|run| report_of(run, load)).collect();
                Rounds {
                    engine,
                    is_left_out: reports.is_empty() && own.count() > 0,
                    reports,
                }
            };
            Self {
                load: load.0,
                engines: engines.iter().map(rounds).collect(),
            }
        };
        loads_of(runs).into_iter().map(of_load).collect()
    }

    /// The median of the first engine over that of `rounds`.
    fn ratio(&self, rounds: &Rounds<'_>, figure: &str) -> Option<f64> {
        let first = self.engines.first()?.spread(figure)?;
        first.times(&rounds.spread(figure)?)
    }

    /// All figures as JSON.
    pub fn object(&self, group: &str) -> Value {
        let engines = self.engines.iter().map(|rounds| {
            let mut object = Map::new();
            object.insert("engine".to_owned(), json!(rounds.engine));
            object.insert("rounds".to_owned(), json!(rounds.reports.len()));
            object.insert("left_out".to_owned(), json!(rounds.is_left_out));
            for (figure, _) in FIGURES {
                let spread = rounds.spread(figure).map(|spread| {
                    json!({
                        "median": spread.median,
                        "min": spread.least,
                        "max": spread.most,
                        "ratio": self.ratio(rounds, figure),
                    })
                });
                object.insert(figure.to_owned(), json!(spread));
            }
            Value::Object(object)
        });
        json!({ "group": group, "load": self.load, "engines": engines.collect::<Vec<_>>() })
    }

    /// The most important figures as text, one line per engine. Range and ratio are those of the rate with
    /// settling, or without it if the load only reads. The last column is the rate of the companion: fewer writes
    /// make reads cheaper. The four columns before it are requests and bytes that reached the device: read requests,
    /// bytes read, and bytes written per operation, and bytes read per byte that the reads returned.
    pub fn lines(&self) -> String {
        let lines = self.engines.iter().enumerate().map(|(place, rounds)| {
            let load = if place == 0 { self.load } else { "" };
            if rounds.reports.is_empty() {
                let outcome = if rounds.is_left_out {
                    "not there"
                } else {
                    "failed"
                };
                return format!("{load:<22} {:<19} {outcome:>10}", rounds.engine);
            }
            let ratio = match place {
                0 => String::new(),
                _ => shown(self.ratio(rounds, RATE), |ratio| format!("{ratio:.2}x")),
            };
            let rate = rounds.spread(RATE);
            // One round has no range.
            let range = rate.filter(|spread| spread.rounds > 1).map(|spread| {
                format!("{} to {}", kilo(spread.least), kilo(spread.most))
            });
            let median = |figure, show: fn(f64) -> String| {
                shown(rounds.spread(figure).map(|spread| spread.median), show)
            };
            format!(
                "{load:<22} {:<19} {:>10} {:>10} {:>21} {ratio:>7} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                rounds.engine,
                median(UNSETTLED, kilo),
                median(SETTLED, kilo),
                range.unwrap_or_default(),
                median(CPU, |micros| format!("{micros:.2}")),
                median(WRITTEN, |ratio| format!("{ratio:.2}x")),
                median(OWN_WRITTEN, |ratio| format!("{ratio:.2}x")),
                median(SPACE, |ratio| format!("{ratio:.2}x")),
                median(P99, |micros| format!("{micros:.1}")),
                median(MEMORY, |bytes| format!("{:.0}", bytes / f64::from(1 << 20))),
                median(DEVICE_READS, |reads| format!("{reads:.3}")),
                median(DEVICE_READ, |bytes| format!("{bytes:.0}")),
                median(DEVICE_WRITTEN, |bytes| format!("{bytes:.0}")),
                median(DEVICE_PER_ASKED, |ratio| format!("{ratio:.2}x")),
                median(COMPANION, kilo),
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The heading of [`Comparison::lines`].
pub fn heading() -> String {
    format!(
        "{:<22} {:<19} {:>10} {:>10} {:>21} {:>7} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "load",
        "engine",
        "kops/s",
        "settled",
        "min to max",
        "ratio",
        "CPU us/op",
        "written",
        "own",
        "space",
        "p99 us",
        "peak MiB",
        "dev reads",
        "dev B in",
        "dev B out",
        "per asked",
        "companion"
    )
}

fn shown<T>(figure: Option<T>, show: impl Fn(T) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), show)
}

fn kilo(number: f64) -> String {
    format!("{:.1}", number / 1e3)
}

/// The settings of `engine` in `runs`.
fn settings<'a>(engine: &str, runs: &[&'a Run]) -> Option<&'a Report> {
    let run = runs.iter().find(|run| run.engine == engine)?;
    run.reports.first()
}

/// The settings of every engine as JSON.
pub fn settings_object(group: &str, engines: &[&str], runs: &[&Run]) -> Value {
    let by_engine = engines.iter().map(|&engine| {
        let settings = settings(engine, runs).map(|report| &report.settings);
        (engine.to_owned(), json!(settings))
    });
    json!({
        "group": group,
        "settings": by_engine.collect::<Map<_, _>>(),
        "dropped_caches": dropped_caches(runs),
    })
}

/// The caches that the bench dropped before the loads of `runs`.
fn dropped_caches(runs: &[&Run]) -> Option<DroppedCaches> {
    let mut reports = runs.iter().flat_map(|run| &run.reports);
    reports.find_map(|report| report.dropped_caches)
}

/// The settings of every engine as text, one line each, and the caches that the bench dropped.
pub fn settings_lines(engines: &[&str], runs: &[&Run]) -> String {
    let lines = engines.iter().filter_map(|&engine| {
        let report = settings(engine, runs)?;
        Some(format!("{engine}: {}", settings_text(report)))
    });
    let dropped = dropped_caches(runs);
    let dropped = dropped.map(|dropped| format!("dropped before each load: {}", dropped.text()));
    lines.chain(dropped).collect::<Vec<_>>().join("\n")
}

/// The settings of the engine of `report`.
pub fn settings_text(report: &Report) -> String {
    let settings = report.settings.iter();
    let settings = settings.map(|(name, value)| format!("{name}={value}"));
    settings.collect::<Vec<_>>().join(", ")
}

/// Checks that all engines read the same data under one seed, if the data follows from the seed.
///
/// # Errors
/// `Corruption` for the first load with different data.
pub fn check_checksums(runs: &[&Run]) -> Result<()> {
    let places = |run: &'_ &Run| run.reports.len();
    for (run, place) in runs
        .iter()
        .flat_map(|run| (0..places(run)).map(move |place| (run, place)))
    {
        let load = &run.reports[place];
        // Runs that left out loads before this one have written other data.
        let is_same = |other: &&&Run| named(other).take(place + 1).eq(named(run).take(place + 1));
        for other in runs.iter().filter(is_same) {
            let other = &other.reports[place];
            // Loads with a duration do different numbers of operations.
            let comparable = load.repeatable && other.repeatable && load.ops == other.ops;
            if comparable && load.checksum != other.checksum {
                let message = format!(
                    "{} and {} read different data under one seed",
                    load.engine, other.engine
                );
                return Err(Error::corruption(&load.name, 0, message));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
