//! How many segments a table file should have, by size of the data: what writing and reading cost over size
//! ratios, scalings and segment limits, simulated.
//!
//! `cargo run --release --example segments -- inserts 10` for 10 GB of inserts in random order, `updates` for
//! as many and then overwriting until nothing changes.

use std::env;
use windrow::simulation::{Course, Load, simulate, simulate_large};
use windrow::{KeyspaceOptions, Preset, Result, SegmentLimit};

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

struct Row {
    ratio: f64,
    scaling: f64,
    limit: SegmentLimit,
    levels: usize,
    course: Course,
}

fn row(gigabytes: f64, updates: bool, ratio: f64, scaling: f64, limit: SegmentLimit) -> Result<Row> {
    let mut options = KeyspaceOptions::preset(Preset::Balanced);
    options.size_ratio = ratio;
    options.scaling = scaling;
    options.segment_limit = limit;
    options.medium_from = u64::MAX;
    options.large_from = u64::MAX;
    if env::var("NOSPACE").is_ok() { options.max_space_amp = f64::INFINITY; }
    let mut load = Load::inserts((gigabytes * 1e9) as u64, options);
    if updates {
        load = load.overwritten(2.0);
    }
    if gigabytes > 50.0 {
        load.files_per_level = if gigabytes > 500.0 { 256 } else { 512 };
    }
    if gigabytes > 2000.0 || env::var("LARGE").is_ok() {
        let measured = if updates { load.keys } else { load.writes() };
        load.files_per_level = env::var("F").map_or(256, |f| f.parse().unwrap());
        if let Ok(n) = env::var("FLUSHES") { load.flushes_max = n.parse().unwrap(); }
        if env::var("V").is_ok() { println!("{:?}", simulate_large(&load, measured)?); }
        let course = simulate_large(&load, measured)?;
        let levels = course.traffic.levels.len() - 1;
        return Ok(Row { ratio, scaling, limit, levels, course });
    }
    let outcome = simulate(&load)?;
    let course = if updates { outcome.course_from(load.writes() - load.keys) } else { outcome.course() };
    Ok(Row { ratio, scaling, limit, levels: outcome.samples.last().map_or(0, |s| s.level_count), course })
}

fn print(row: &Row) {
    let course = &row.course;
    println!(
        "T={:<4} c={:<4} m={:<7} L={} WA={:6.2} runs={:6.2} worst={:3} SA={:.2}",
        row.ratio, row.scaling, row.limit.to_string(), row.levels,
        course.write_amplification, course.runs_per_seek(), course.runs_per_seek_most(),
        course.space_amplification_most
    );
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let updates = arguments[1] == "updates";
    let gigabytes: f64 = arguments[2].parse().unwrap();
    let ratios: Vec<f64> = match arguments.get(3) { Some(r) => r.split(',').map(|t| t.parse().unwrap()).collect(), None => RATIOS.to_vec() };
    for &ratio in &ratios {
        for scaling in SCALINGS.into_iter().filter(|c| env::var("C").map_or(true, |t| t.split(',').any(|t| t.parse() == Ok(*c)))) {
            for limit in LIMITS.into_iter().filter(|c| env::var("M").map_or(true, |t| t.split(',').any(|t| t.parse().ok() == Some(*c)))) {
                print(&row(gigabytes, updates, ratio, scaling, limit)?);
            }
        }
    }
    Ok(())
}
