//! The study of `docs/simulation.md`: the cost of segment limits, T and c for sizes from 1 GB to 1 PB, by simulated
//! loads. Prints its tables as Markdown, and draws its plots.
//!
//!     cargo run --release -p windrow-bench --example study
//!
//! The whole study takes about ten minutes on two cores; `sizes`, `frontier` and `choices` are its parts. `default`
//! computes only the row of the default options, for comparisons with other constants in the policy.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "writes plots to the real file system, and prints tables"
)]

mod plots;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Parser, ValueEnum};
use windrow::simulation::{Load, simulate_large};
use windrow::{KeyspaceOptions, Preset, SegmentLimit};

use plots::{Chart, Dots, Line};

/// The sizes of data of the first part, and their names.
const SIZES: [(u64, &str); 7] = [
    (1, "1 GB"),
    (10, "10 GB"),
    (100, "100 GB"),
    (1_000, "1 TB"),
    (10_000, "10 TB"),
    (100_000, "100 TB"),
    (1_000_000, "1 PB"),
];

/// The size of the frontier, in gigabytes.
const FRONTIER_GIGABYTES: u64 = 100;

/// The sizes for the comparison of choices, in two groups. A mean over several sizes depends less on the fullness
/// of the last level.
const CHOICE_GIGABYTES: [[u64; 4]; 2] = [[20, 40, 80, 160], [1_250, 2_500, 5_000, 10_000]];

/// Computes the cost of segment limits, T and c, prints tables, and draws plots.
#[derive(Debug, Parser)]
struct Args {
    /// The parts to compute; sizes, frontier and choices by default.
    parts: Vec<Part>,
    /// The folder for plots.
    #[arg(long, default_value = "docs/plots")]
    plots: PathBuf,
    /// The number of parallel simulations.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// The approximate limit on files of a simulated tree: more files are slower and more exact.
    #[arg(long, default_value_t = 1024)]
    files_max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Presets and the best leveling, from 1 GB to 1 PB.
    Sizes,
    /// Many settings at 100 GB.
    Frontier,
    /// The default with one choice changed.
    Choices,
    /// The default only, as a row of choices.
    Default,
}

/// A load to simulate.
#[derive(Debug, Clone)]
struct Case {
    gigabytes: u64,
    options: KeyspaceOptions,
    files_max: u64,
}

/// The cost of a load.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Bytes written per user byte.
    written: f64,
    /// Segments that a seek visits.
    runs: f64,
    /// Segments of these in the deepest level.
    runs_last: f64,
    /// Levels with data, without level 0.
    levels: usize,
    /// The maximum of the bytes of tables over those of live entries.
    space: f64,
}

impl Case {
    /// All data is inserted in random order, then overwritten once.
    fn cost(&self) -> windrow::Result<Cost> {
        let load = Load::inserts(self.gigabytes * 1_000_000_000, self.options.clone());
        let mut load = load.overwritten(1.0);
        load.files_max = self.files_max;
        let interval = simulate_large(&load, load.writes())?.interval;
        let levels = interval.io_stats.levels.len() - 1;
        Ok(Cost {
            written: interval.write_amplification,
            runs: interval.runs_per_seek(),
            runs_last: interval.runs[levels],
            levels,
            space: interval.space_amplification_max,
        })
    }
}

impl Args {
    /// The costs of the cases.
    fn costs(&self, cases: &[Case]) -> Result<Vec<Cost>, Box<dyn Error>> {
        let next = AtomicUsize::new(0);
        let work = || -> windrow::Result<Vec<(usize, Cost)>> {
            let mut costs = Vec::new();
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(position) else {
                    return Ok(costs);
                };
                costs.push((position, case.cost()?));
            }
        };
        let mut costs = Vec::new();
        std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
            let workers: Vec<_> = (0..self.threads.max(1))
                .map(|_| scope.spawn(work))
                .collect();
            for worker in workers {
                costs.extend(worker.join().map_err(|_| "a simulation panicked")??);
            }
            Ok(())
        })?;
        costs.sort_by_key(|(position, _)| *position);
        Ok(costs.into_iter().map(|(_, cost)| cost).collect())
    }
}

/// A preset with all values in place.
fn preset(preset: Preset) -> KeyspaceOptions {
    let mut options = KeyspaceOptions::preset(preset);
    options.medium_from = u64::MAX;
    options.large_from = u64::MAX;
    options
}

/// The same with a change.
fn with(base: Preset, change: impl FnOnce(&mut KeyspaceOptions)) -> KeyspaceOptions {
    let mut options = preset(base);
    change(&mut options);
    options
}

const OTHER_SCALING: &str = "autumn, c = 0.4";

/// One line of the first part: the setting with the fewest written bytes at each size.
struct Contestant {
    name: &'static str,
    color: usize,
    /// The offset in pixels, for lines that would overlap.
    width: u32,
    settings: Vec<KeyspaceOptions>,
}

fn contestants() -> Vec<Contestant> {
    let leveling = [4.0, 5.0, 6.0, 8.0, 10.0, 12.0].map(|size_ratio| {
        with(Preset::Leveling, |options| {
            options.size_ratio = size_ratio;
        })
    });
    let one = |name, color, width, options| Contestant {
        name,
        color,
        width,
        settings: vec![options],
    };
    vec![
        Contestant {
            name: "leveling, best T",
            color: 0,
            width: 3,
            settings: leveling.to_vec(),
        },
        one("autumn", 1, 13, preset(Preset::Autumn)),
        one(
            OTHER_SCALING,
            2,
            3,
            with(Preset::Autumn, |options| options.scaling = 0.4),
        ),
        one("lsma", 3, 8, preset(Preset::Lsma)),
        one("balanced", 5, 3, preset(Preset::Balanced)),
    ]
}

/// A contestant at each of the sizes: the cost of the setting with the fewest written bytes, and its T.
struct Standing {
    contestant: Contestant,
    best: Vec<(Cost, f64)>,
}

impl Standing {
    fn of(contestant: Contestant, args: &Args) -> Result<Self, Box<dyn Error>> {
        let settings = &contestant.settings;
        let mut cases = Vec::new();
        for (gigabytes, _) in SIZES {
            cases.extend(settings.iter().map(|options| Case {
                gigabytes,
                options: options.clone(),
                files_max: args.files_max,
            }));
        }
        let costs = args.costs(&cases)?;
        let best = costs.chunks(settings.len()).filter_map(|costs| {
            let ratios = settings.iter().map(|options| options.size_ratio);
            let costs = costs.iter().copied().zip(ratios);
            costs.min_by(|left, right| left.0.written.total_cmp(&right.0.written))
        });
        let best = best.collect();
        Ok(Self { contestant, best })
    }

    /// The value for a plot.
    fn line(&self, width: u32, of: fn(&Cost) -> f64) -> Line<'_> {
        Line {
            name: self.contestant.name,
            color: self.contestant.color,
            width,
            values: self.best.iter().map(|(cost, _)| of(cost)).collect(),
        }
    }
}

/// Presets over sizes.
fn sizes(args: &Args) -> Result<(), Box<dyn Error>> {
    let contestants = contestants().into_iter();
    let standings = contestants.map(|contestant| Standing::of(contestant, args));
    let standings = standings.collect::<Result<Vec<_>, _>>()?;
    print!("| data |");
    for Standing { contestant, .. } in &standings {
        print!(" {} |", contestant.name);
    }
    println!("\n|---|{}", "---|".repeat(standings.len()));
    for (position, (_, name)) in SIZES.iter().enumerate() {
        print!("| {name} |");
        for Standing { contestant, best } in &standings {
            let (cost, size_ratio) = best[position];
            if contestant.settings.len() > 1 {
                print!(" T = {size_ratio}:");
            }
            print!(" {:.1} ({:.1}; {}) |", cost.written, cost.runs, cost.levels);
        }
        println!();
    }
    println!();
    // Autumn with another c appears only in the plot of levels, because it writes far more than all others.
    let presets = || {
        let presets = standings.iter();
        presets.filter(|standing| standing.contestant.name != OTHER_SCALING)
    };
    let names = SIZES.map(|(_, name)| name);
    let draw = |file: &str, title, y, lines: Vec<Line<'_>>| -> Result<(), Box<dyn Error>> {
        let chart = Chart {
            title,
            x: "data",
            y,
        };
        fs::write(args.plots.join(file), chart.lines(&names, &lines)?)?;
        Ok(())
    };
    let written = presets().map(|standing| standing.line(3, |cost| cost.written));
    let title = "Written bytes by size of data";
    draw(
        "written.svg",
        title,
        "bytes written per user byte",
        written.collect(),
    )?;
    let runs = presets().map(|standing| standing.line(3, |cost| cost.runs));
    let title = "Runs per seek by size of data";
    draw("runs.svg", title, "runs per seek", runs.collect())?;
    let levels = standings
        .iter()
        .map(|standing| standing.line(standing.contestant.width, |cost| cost.levels as f64));
    let title = "Levels with data, by size of data";
    draw("levels.svg", title, "levels", levels.collect())
}

/// The segment limits of the frontier.
const LIMITS: [SegmentLimit; 6] = [
    SegmentLimit::Fixed(1),
    SegmentLimit::Fixed(2),
    SegmentLimit::Fixed(3),
    SegmentLimit::Fixed(4),
    SegmentLimit::Fixed(12),
    SegmentLimit::Scaled,
];

/// Whether the options are the default in everything that the study varies.
fn is_default(options: &KeyspaceOptions) -> bool {
    let default = KeyspaceOptions::default();
    options.segment_limit == default.segment_limit
        && options.scaling.to_bits() == default.scaling.to_bits()
        && options.size_ratio.to_bits() == default.size_ratio.to_bits()
}

/// Many settings at one size.
fn frontier(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut cases = Vec::new();
    for segment_limit in LIMITS {
        for size_ratio in [4.0, 5.0, 6.0, 8.0, 10.0] {
            for scaling in [1.0, 0.8, 0.6, 0.4] {
                let options = with(Preset::Balanced, |options| {
                    options.size_ratio = size_ratio;
                    options.scaling = scaling;
                    options.segment_limit = segment_limit;
                });
                cases.push(Case {
                    gigabytes: FRONTIER_GIGABYTES,
                    options,
                    files_max: args.files_max,
                });
            }
        }
    }
    let costs = args.costs(&cases)?;
    let is_beaten = |own: &Cost| {
        costs.iter().any(|other| {
            other.written <= own.written
                && other.runs <= own.runs
                && (other.written < own.written || other.runs < own.runs)
        })
    };
    let mut rows: Vec<(&Case, Cost)> = cases.iter().zip(costs.iter().copied()).collect();
    rows.retain(|(case, cost)| is_default(&case.options) || !is_beaten(cost));
    rows.sort_by(|left, right| left.1.runs.total_cmp(&right.1.runs));
    println!("| T | c | segments | written | runs | |");
    println!("|---|---|---|---|---|---|");
    for (Case { options, .. }, cost) in &rows {
        let KeyspaceOptions {
            size_ratio,
            scaling,
            segment_limit,
            ..
        } = options;
        let Cost { written, runs, .. } = cost;
        let mark = if is_default(options) { "default" } else { "" };
        println!(
            "| {size_ratio} | {scaling:.1} | {segment_limit} | {written:.2} | {runs:.2} | {mark} |"
        );
    }
    println!();
    let point = |cost: &Cost| (cost.runs, cost.written);
    let dots = LIMITS.map(|limit| {
        let own = cases.iter().zip(&costs);
        let own = own.filter(|(case, _)| case.options.segment_limit == limit);
        Dots {
            name: match limit {
                SegmentLimit::Scaled => "scaled".to_owned(),
                SegmentLimit::Fixed(1) => "1 segment".to_owned(),
                SegmentLimit::Fixed(limit) => format!("{limit} segments"),
            },
            points: own.map(|(_, cost)| point(cost)).collect(),
        }
    });
    let edge: Vec<(f64, f64)> = rows
        .iter()
        .filter(|(_, cost)| !is_beaten(cost))
        .map(|(_, cost)| point(cost))
        .collect();
    let default = rows.iter().find(|(case, _)| is_default(&case.options));
    let default = default.ok_or("the default is not among the settings")?;
    let chart = Chart {
        title: "Settings at 100 GB: T from 4 to 10, c from 0.4 to 1",
        x: "runs per seek",
        y: "bytes written per user byte",
    };
    let svg = chart.dots(&dots, &edge, point(&default.1))?;
    fs::write(args.plots.join("frontier.svg"), svg)?;
    Ok(())
}

/// The default, and the default with one choice changed.
fn alternatives() -> Vec<(String, KeyspaceOptions)> {
    let mut rows = vec![("default".to_owned(), preset(Preset::Balanced))];
    let mut add = |name: String, change: &dyn Fn(&mut KeyspaceOptions)| {
        rows.push((name, with(Preset::Balanced, change)));
    };
    for size_ratio in [4.0, 6.0] {
        add(format!("T = {size_ratio}"), &|options| {
            options.size_ratio = size_ratio;
        });
    }
    for scaling in [1.0, 0.6] {
        add(format!("c = {scaling:.1}"), &|options| {
            options.scaling = scaling;
        });
    }
    for limit in [1, 4, 12] {
        add(format!("segments: {limit}"), &|options| {
            options.segment_limit = SegmentLimit::Fixed(limit);
        });
    }
    rows
}

/// A row for each choice, with means over each group of sizes.
fn choices(args: &Args, rows: &[(String, KeyspaceOptions)]) -> Result<(), Box<dyn Error>> {
    let sizes = CHOICE_GIGABYTES.as_flattened();
    let case = |options: &KeyspaceOptions, gigabytes: u64| Case {
        gigabytes,
        options: options.clone(),
        files_max: args.files_max,
    };
    let cases = rows
        .iter()
        .flat_map(|(_, options)| sizes.iter().map(|gigabytes| case(options, *gigabytes)));
    let costs = args.costs(&cases.collect::<Vec<_>>())?;
    print!("| |");
    for gigabytes in CHOICE_GIGABYTES {
        let [first, .., last] = gigabytes;
        print!(" {first} to {last} GB: written | runs | in the last level | space |");
    }
    println!("\n|---|{}", "---|".repeat(4 * CHOICE_GIGABYTES.len()));
    for ((name, _), costs) in rows.iter().zip(costs.chunks(sizes.len())) {
        print!("| {name} |");
        for costs in costs.chunks(sizes.len() / CHOICE_GIGABYTES.len()) {
            let mean =
                |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
            print!(
                " {:.2} | {:.2} | {:.2} | {:.2} |",
                mean(|cost| cost.written),
                mean(|cost| cost.runs),
                mean(|cost| cost.runs_last),
                mean(|cost| cost.space),
            );
        }
        println!();
    }
    println!();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    fs::create_dir_all(&args.plots)?;
    let parts = if args.parts.is_empty() {
        &[Part::Sizes, Part::Frontier, Part::Choices][..]
    } else {
        &args.parts
    };
    for part in parts {
        match part {
            Part::Sizes => sizes(&args)?,
            Part::Frontier => frontier(&args)?,
            Part::Choices => choices(&args, &alternatives())?,
            Part::Default => choices(&args, &alternatives()[..1])?,
        }
    }
    Ok(())
}
