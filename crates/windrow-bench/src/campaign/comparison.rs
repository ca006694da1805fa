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

impl<'a> Comparison<'a> {
    /// The loads of `runs`, in their order, on each of `engines`.
    pub fn all(engines: &[&'a str], runs: &[&'a Run]) -> Vec<Self> {
        let count = runs.iter().map(|run| run.reports.len()).max().unwrap_or(0);
        let loads = (0..count).filter_map(|place| {
            let at_place = |engine: &str| -> Vec<&'a Report> {
                let own = runs.iter().filter(|run| run.engine == engine);
                own.filter_map(|run| run.reports.get(place)).collect()
            };
            let first = runs.iter().find_map(|run| run.reports.get(place))?;
            Some(Self {
                load: &first.name,
                engines: engines
                    .iter()
                    .map(|&engine| Rounds {
                        engine,
                        reports: at_place(engine),
                    })
                    .collect(),
            })
        });
        loads.collect()
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
                return format!("{load:<22} {:<16} {:>10}", rounds.engine, "failed");
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
                "{load:<22} {:<16} {:>10} {:>10} {:>21} {ratio:>7} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
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
        "{:<22} {:<16} {:>10} {:>10} {:>21} {:>7} {:>9} {:>8} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
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
    for (place, load) in runs.iter().flat_map(|run| run.reports.iter().enumerate()) {
        let others = runs.iter().filter_map(|run| run.reports.get(place));
        for other in others {
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
mod tests {
    use super::*;

    /// A report with these figures and nothing else.
    fn report(engine: &str, kops: u32, space: Option<f64>, checksum: &str) -> Report {
        let io_stats = match engine {
            "windrow" => json!([{ "purpose": "log", "written_bytes": 30, "read_bytes": 10 }]),
            _ => json!([]),
        };
        let whole = json!({
            "name": "ycsb-a", "engine": engine, "ops": 1000, "seconds": 1.0,
            "settled_seconds": 1.0, "ops_per_second": f64::from(kops) * 2e3,
            "settled_ops_per_second": f64::from(kops) * 1e3,
            "cpu_seconds": 1.0, "cpu_us_per_op": 7.5,
            "p50_us": 1.0, "p95_us": 2.0, "p99_us": 3.0, "p999_us": 4.0, "max_us": 5.0,
            "latency_curve": [], "operations": [], "found": 1, "checksum": checksum,
            "repeatable": true, "user_bytes": 10, "write_amplification": 3.0, "io_amplification": 4.0,
            "separated_reads": { "transient_log_reads": 0, "value_log_reads": 0, "prefetched": 0 },
            "read_bytes": 10, "written_bytes": 30, "io_stats": io_stats,
            "device_reads_per_op": 1.5, "device_read_bytes_per_op": 6144.0,
            "device_written_bytes_per_op": 512.0,
            "process_read_bytes": 20, "process_written_bytes": 35,
            "peak_memory_bytes": 64 << 20, "stall_seconds": 0.0, "stalls_by_cause": [],
            "disk_bytes": 1, "space_amplification": space, "levels": [], "series": [],
        });
        serde_json::from_value(whole).unwrap()
    }

    fn run(engine: &str, round: u32, report: Report) -> Run {
        Run {
            label: format!("{engine} {round}"),
            engine: engine.to_owned(),
            round,
            group: "group".to_owned(),
            command: String::new(),
            reports: vec![report],
        }
    }

    #[test]
    fn engines_are_compared_by_their_medians() {
        let runs = [
            run("windrow", 0, report("windrow", 90, Some(1.5), "a")),
            run("windrow", 1, report("windrow", 100, Some(1.25), "a")),
            run("windrow", 2, report("windrow", 400, Some(1.5), "a")),
            run("rocksdb", 0, report("rocksdb", 50, None, "a")),
        ];
        let runs: Vec<&Run> = runs.iter().collect();
        let comparisons = Comparison::all(&["windrow", "rocksdb", "broken"], &runs);
        assert_eq!(comparisons.len(), 1);
        let object = comparisons[0].object("group");
        let [windrow, rocksdb, broken] = [0, 1, 2].map(|place| &object["engines"][place]);
        assert_eq!(windrow[SETTLED]["median"], 1e5);
        assert_eq!(windrow[SETTLED]["min"], 9e4);
        assert_eq!(windrow[SETTLED]["max"], 4e5);
        assert_eq!(windrow[SPACE]["median"], 1.5);
        assert_eq!(rocksdb[SETTLED]["ratio"], 2.0);
        assert_eq!(rocksdb[SPACE], Value::Null);
        for engine in [windrow, rocksdb] {
            assert_eq!(engine[WRITTEN]["median"], 3.5);
            assert_eq!(engine["process_read_per_user_byte"]["median"], 2.0);
        }
        assert_eq!(windrow[OWN_WRITTEN]["median"], 3.0);
        for own in [
            OWN_WRITTEN,
            "io_amplification",
            "read_bytes",
            "written_bytes",
        ] {
            assert_eq!(rocksdb[own], Value::Null);
        }
        assert_eq!(broken["rounds"], 0);
        let lines = comparisons[0].lines();
        let lines: Vec<Vec<&str>> = lines
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            lines[0],
            words(
                "ycsb-a windrow 200.0 100.0 90.0 to 400.0 7.50 3.50x 3.00x 1.50x 3.0 64 1.500 6144 512 - -"
            )
        );
        assert_eq!(
            lines[1],
            words("rocksdb 100.0 50.0 2.00x 7.50 3.50x - - 3.0 64 1.500 6144 512 - -")
        );
        assert_eq!(lines[2], words("broken failed"));
    }

    #[test]
    fn dropped_caches_stand_below_the_settings() {
        let mut cold = run("windrow", 0, report("windrow", 1, None, "a"));
        assert!(!settings_lines(&["windrow"], &[&cold]).contains("dropped"));
        let object = settings_object("group", &["windrow"], &[&cold]);
        assert_eq!(object["dropped_caches"], Value::Null);
        // No caches are dropped before a fill.
        cold.reports.push(Report {
            dropped_caches: Some(DroppedCaches::StoreFiles),
            ..cold.reports[0].clone()
        });
        let lines = settings_lines(&["windrow"], &[&cold]);
        let last = "dropped before each load: the cached pages of the store's files";
        assert_eq!(lines.lines().last(), Some(last));
        let object = settings_object("group", &["windrow"], &[&cold]);
        assert_eq!(object["dropped_caches"], "store_files");
    }

    #[test]
    fn different_checksums_are_an_error() {
        let first = run("windrow", 0, report("windrow", 1, None, "a"));
        let same = run("rocksdb", 0, report("rocksdb", 1, None, "a"));
        let mut other = run("fjall", 0, report("fjall", 1, None, "b"));
        assert!(check_checksums(&[&first, &same]).is_ok());
        assert!(check_checksums(&[&first, &same, &other]).is_err());
        other.reports[0].ops += 1;
        assert!(check_checksums(&[&first, &same, &other]).is_ok());
    }
}
