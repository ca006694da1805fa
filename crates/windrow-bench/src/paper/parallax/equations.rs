//! The model of the paper: PX-E9. Equations 1 to 4 give the gain of separation, and the fraction of a tree above its
//! last levels.

use windrow::Result;

use super::{Placement, RunSpec, Scale, moved, tiny, updated};
use crate::paper::experiment::{Check, Table};
use crate::paper::figures::{list, short};
use crate::paper::findings::Findings;
use crate::paper::run_spec::Results;

/// The I/O amplification of a tree of `levels` with the size ratio `ratio`, by equation 1.
fn amplification(levels: f64, ratio: f64) -> f64 {
    levels * (ratio + 1.0) - 1.0
}

/// The factor that separation saves if the bytes of keys are `fraction` of the bytes of values, by equations 2 and 3.
fn gain(levels: f64, ratio: f64, fraction: f64) -> f64 {
    let all = amplification(levels, ratio);
    all * (1.0 + fraction) / (all * fraction + 1.0 + fraction)
}

/// The bytes of the first `levels - above` levels over those of all `levels`.
fn fraction_above(levels: i32, ratio: f64, above: i32) -> f64 {
    (ratio.powi(levels - above + 1) - ratio) / (ratio.powi(levels + 1) - ratio)
}

/// Keys over values, and the paper's words on the gain in figure 4(a).
const GAINS: [(f64, &str); 3] = [
    (0.02, "can be more than ten times"),
    (0.2, "smaller, but substantial"),
    (1.0, "small"),
];

/// A growth factor, the number of last levels to leave out, and the published fraction of the others: figure 4(b).
const FRACTIONS: [(f64, i32, &str); 5] = [
    (4.0, 1, "25 %"),
    (8.0, 1, "13 %"),
    (10.0, 1, "10 %"),
    (4.0, 2, "at most 6 %"),
    (8.0, 2, "less than 3 %"),
];

/// The points of the paper's two curves: name, published figure, figure of the equations.
fn published_points() -> impl Iterator<Item = (String, &'static str, String)> {
    let gains = GAINS.into_iter().map(|(fraction, published)| {
        let what = format!("gain, keys over values {fraction}, N = 4, f = 8");
        (what, published, short(gain(4.0, 8.0, fraction)))
    });
    let fractions = FRACTIONS.into_iter().map(|(ratio, above, published)| {
        let what = format!("R({above}), N = 4, f = {ratio}");
        let fraction = 100.0 * fraction_above(4, ratio, above);
        (what, published, format!("{} %", short(fraction)))
    });
    gains.chain(fractions)
}

/// Bytes of the keys of the runs that the model describes.
const KEY_BYTES: f64 = 24.0;

/// The runs that the model describes: names, the bytes of a key over those of a value, and the runs with all values
/// in the log and all in place.
pub(super) fn modeled(scale: Scale) -> [(&'static str, f64, [RunSpec; 2]); 3] {
    let values = [Placement::Log, Placement::InPlace];
    let mix = |mix, value_bytes: f64| {
        let runs = values.map(|values| updated(scale, mix, values));
        (mix, KEY_BYTES / value_bytes, runs)
    };
    let tiny = values.map(|values| tiny(scale, values));
    [
        mix("L", 1004.0),
        mix("M", 104.0),
        ("64 bytes", KEY_BYTES / 64.0, tiny),
    ]
}

pub(super) fn judge(scale: Scale, results: Results<'_>) -> Result<Findings> {
    let mut table = Table::new(&["", "published", "model", "measured"]);
    for (what, published, model) in published_points() {
        table.row([what, published.to_owned(), model, "-".to_owned()]);
    }
    let mut pairs = Vec::new();
    for (name, fraction, runs) in modeled(scale) {
        let [log, in_place] = runs.map(|run| {
            let report = results.of(&run, "ycsb-load");
            report.map(|report| moved(&report))
        });
        let measured = in_place? / log?;
        let model = gain(3.0, 4.0, fraction);
        table.row([
            format!("gain, keys over values {fraction:.3} ({name}), N = 3, f = 4"),
            "-".to_owned(),
            short(model),
            short(measured),
        ]);
        pairs.push((model, measured));
    }
    let checks = vec![Check::new(
        "the measured gains are in the order of the model",
        "the gain falls with the fraction of the keys",
        list(pairs.iter().map(|(_, measured)| measured)),
        pairs.windows(2).all(|two| two[1].1 <= two[0].1),
    )];
    Ok(Findings::new(checks, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_give_the_published_figures() {
        assert!(gain(4.0, 8.0, 0.02) > 10.0);
        for (fraction, rebuilt) in [(0.02, 20.8), (0.2, 5.1), (1.0, 1.9)] {
            assert!(
                (gain(4.0, 8.0, fraction) - rebuilt).abs() < 0.06,
                "{fraction}"
            );
        }
        for (ratio, above, published) in FRACTIONS {
            let fraction = 100.0 * fraction_above(4, ratio, above);
            let words = published.split(' ');
            let published: f64 = words.filter_map(|word| word.parse::<f64>().ok()).sum();
            assert!(fraction < published + 0.4, "{ratio}, {above}: {fraction}");
            assert!(
                above == 2 || fraction > published - 1.0,
                "{ratio}: {fraction}"
            );
        }
    }
}
