//! The analysis of the paper, on the policy's own code: AU-E10.

use std::iter;

use windrow::simulation::{Load, level_count, simulate};
use windrow::{KeyspaceOptions, Preset, Result};

use super::Scale;
use crate::paper::experiment::{Check, Table};
use crate::paper::figures::{all_below, list, short};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;

/// The data of a tree of six levels at T = 2 and c = 0.8.
const SIX_LEVELS_BYTES: u64 = 100_000_000_000;

/// The percentage of level 1 in the data of the full tree at the end of `load`, and in the bytes that its
/// compactions write. Compactions write into a level its ratio to the level above; for level 1, its ratio to a
/// memtable.
pub(in crate::paper) fn of_level_1(load: &Load) -> Result<[f64; 2]> {
    let outcome = simulate(load)?;
    let levels = outcome.samples.last().map(|sample| &sample.levels);
    let levels = levels.into_iter().flatten().skip(1);
    let capacities: Vec<f64> = levels.map(|level| level.capacity as f64).collect();
    let memtable = load.options.base_bytes as f64 / load.options.size_ratio;
    let above = iter::once(&memtable).chain(&capacities);
    let ratios: Vec<f64> = capacities
        .iter()
        .zip(above)
        .map(|(own, above)| own / above)
        .collect();
    Ok([capacities, ratios].map(|of| 100.0 * of[0] / of.iter().sum::<f64>()))
}

/// Whether the first of six levels has little of the data and much of the writes, in percent.
pub(in crate::paper) fn is_first_level_costly([data, writing]: [f64; 2]) -> bool {
    data < 1.0 && writing > 100.0 / 6.0 * 1.5
}

pub(super) fn judge(_: Scale, _: Results<'_>) -> Result<Findings> {
    let options = |scaling: f64| {
        let mut options = KeyspaceOptions::preset(Preset::Autumn);
        options.size_ratio = 2.0;
        options.scaling = scaling;
        options
    };
    let mut table = Table::new(&["bytes", "levels, c = 1", "levels, c = 0.8"]);
    let (mut leveling, mut autumn) = (Vec::new(), Vec::new());
    for exponent in [9, 10, 11, 12] {
        let bytes = 10_u64.pow(exponent);
        leveling.push(level_count(&options(1.0), bytes));
        autumn.push(level_count(&options(0.8), bytes));
        table.row([
            format!("10^{exponent}"),
            leveling[leveling.len() - 1].to_string(),
            autumn[autumn.len() - 1].to_string(),
        ]);
    }
    let steps: Vec<usize> = leveling.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, middle) = (autumn[0], autumn[3]);
    let most = level_count(&options(0.8), 10_u64.pow(15));
    table.row([
        "10^15".to_owned(),
        "more than the limit".to_owned(),
        most.to_string(),
    ]);
    let [data, writing] = of_level_1(&Load::inserts(SIX_LEVELS_BYTES, options(0.8)))?;
    let mut false_positives = Vec::new();
    for gigabytes in [1, 2, 4, 8] {
        let mut options = options(0.8);
        options.bits_per_key = 1.52;
        let mut load = Load::inserts(gigabytes * 1_000_000_000, options);
        load.filters = true;
        let outcome = simulate(&load)?;
        false_positives.push(
            outcome
                .samples
                .last()
                .map_or(f64::MAX, |sample| sample.false_positive_reads),
        );
    }
    let checks = vec![
        Check::new(
            "levels of leveling grow with the logarithm of the data",
            "log N",
            format!("from 10^9 to 10^12 bytes {leveling:?}"),
            steps[1..].iter().all(|step| step.abs_diff(3) <= 1),
        ),
        Check::new(
            "levels with c = 0.8 grow with its square root",
            "square root of log N",
            format!("{least}, {middle}, {most} levels for 10^9, 10^12, 10^15 bytes"),
            most - middle < middle - least && 2 * middle <= leveling[3] + 1,
        ),
        Check::new(
            "the first of six levels has little of the data and much of the writes",
            "0.18 % and 30 %",
            format!("capacities give {} % and {} %", short(data), short(writing)),
            is_first_level_costly([data, writing]),
        ),
        Check::new(
            "about 1.5 bits per key keep false-positive reads at one for every size",
            "at most 1.52, by a truncated sum; exactly 1.09 for T = 2, c = 0.8",
            format!(
                "at 1.52 bits, 1 to 8 GB: {} false-positive reads per absent key",
                list(&false_positives)
            ),
            false_positives.iter().all(|&reads| reads <= 1.0),
        )
        .or_since(
            "the formula assumes a full tree without level 0, and the last level fills only as the tree grows",
            all_below(&false_positives, 1.4),
        ),
    ];
    let points = |levels: &[usize]| -> Vec<[f64; 2]> {
        let levels = levels.iter().zip(9_u32..);
        levels
            .map(|(&levels, exponent)| [f64::from(exponent), levels as f64])
            .collect()
    };
    let labels = ["decimal logarithm of the bytes", "levels"];
    let mut below_one = points(&autumn);
    below_one.push([15.0, most as f64]);
    let series = vec![
        ("c = 1".to_owned(), points(&leveling)),
        ("c = 0.8".to_owned(), below_one),
    ];
    Ok(Findings::new(checks, table).drawn(labels, series))
}
