//! How many segments a table file should have: what writing and reading cost over size ratios, scalings and
//! segment limits, simulated for data of several sizes.
//!
//! `cargo run --release --example segments -- 1 10` for 1 GB and 10 GB, by inserts in random order and then
//! by overwriting twice. A hundred GB take minutes, and more is simulated in parts.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;

use windrow::simulation::{Course, Load, simulate_large};
use windrow::{KeyspaceOptions, Result, SegmentLimit};

const RATIOS: [f64; 9] = [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
const SCALINGS: [f64; 6] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.4];
const LIMITS: [SegmentLimit; 6] = [
    SegmentLimit::Fixed(1),
    SegmentLimit::Fixed(2),
    SegmentLimit::Fixed(3),
    SegmentLimit::Fixed(4),
    SegmentLimit::Scaled,
    SegmentLimit::Fixed(12),
];

/// What appends should save of the best leveling: they write at most this part of it.
const PART_WANTED: f64 = 0.72;

/// What one setting costs.
struct Row {
    options: KeyspaceOptions,
    course: Course,
}

impl Row {
    /// One of so many gigabytes; `rewrites` times as much is written over it, of which the last time counts.
    fn of(gigabytes: u64, rewrites: u32, options: KeyspaceOptions) -> Result<Self> {
        let load = Load::inserts(gigabytes * 1_000_000_000, options.clone());
        let mut load = load.overwritten(f64::from(rewrites));
        if gigabytes >= 100 {
            load.files_max = 2048;
        }
        let course = simulate_large(&load, load.keys)?;
        Ok(Self { options, course })
    }

    fn is_leveling(&self) -> bool {
        self.options.segment_limit == SegmentLimit::Fixed(1) && self.options.scaling >= 1.0
    }

    fn is_default(&self) -> bool {
        let default = KeyspaceOptions::default();
        self.options.segment_limit == default.segment_limit
            && self.options.scaling.to_bits() == default.scaling.to_bits()
            && self.options.size_ratio.to_bits() == default.size_ratio.to_bits()
    }

    fn print(&self, what: &str) {
        let (options, course) = (&self.options, &self.course);
        println!(
            "{what:10} T = {:2}, c = {:.1}, {:6} segments: {:6.2} written, {:5.2} runs ({} at most), \
             {:.2} space at most",
            options.size_ratio,
            options.scaling,
            options.segment_limit.to_string(),
            course.write_amplification,
            course.runs_per_seek(),
            course.runs_per_seek_most(),
            course.space_amplification_most,
        );
    }
}

/// Every setting for one size.
fn rows(gigabytes: u64, rewrites: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for size_ratio in RATIOS {
        for scaling in SCALINGS {
            for segment_limit in LIMITS {
                let mut options = KeyspaceOptions::default();
                options.size_ratio = size_ratio;
                options.scaling = scaling;
                options.segment_limit = segment_limit;
                options.medium_from = u64::MAX;
                options.large_from = u64::MAX;
                let row = Row::of(gigabytes, rewrites, options)?;
                row.print("");
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// The rows that matter most.
fn print_best(rows: &[Row]) {
    let written = |row: &&Row| row.course.write_amplification;
    let leveling = rows.iter().filter(|row| row.is_leveling());
    let leveling = leveling.min_by(|left, right| written(left).total_cmp(&written(right)));
    let Some(leveling) = leveling else { return };
    leveling.print("leveling");
    for row in rows.iter().filter(|row| row.is_default()) {
        row.print("default");
    }
    let most = leveling.course.write_amplification * PART_WANTED;
    let cheap = rows
        .iter()
        .filter(|row| row.course.write_amplification <= most);
    let runs = |row: &&Row| row.course.runs_per_seek();
    if let Some(best) = cheap.min_by(|left, right| runs(left).total_cmp(&runs(right))) {
        best.print("cheap");
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    for argument in env::args().skip(1) {
        let gigabytes = argument.parse()?;
        for (rewrites, what) in [(0, "inserts"), (2, "overwriting")] {
            println!("{gigabytes} GB, {what}");
            print_best(&rows(gigabytes, rewrites)?);
        }
    }
    Ok(())
}
