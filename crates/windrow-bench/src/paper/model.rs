//! The model of the paper on hybrid placement, equations 1 to 4: what separation saves, and how much of a tree is
//! above its last levels.

use super::findings::short;

/// What each byte costs in a tree of `levels` with the size ratio `ratio`, by equation 1.
fn io_stats(levels: f64, ratio: f64) -> f64 {
    levels * (ratio + 1.0) - 1.0
}

/// By how much separation divides the traffic where keys have `share` of the bytes of values, by equations
/// 2 and 3.
pub(super) fn gain(levels: f64, ratio: f64, fraction: f64) -> f64 {
    let all = io_stats(levels, ratio);
    all * (1.0 + fraction) / (all * fraction + 1.0 + fraction)
}

/// The bytes of the first `levels - above` levels over those of all `levels`.
fn fraction_above(levels: i32, ratio: f64, above: i32) -> f64 {
    (ratio.powi(levels - above + 1) - ratio) / (ratio.powi(levels + 1) - ratio)
}

/// Keys over values, and what the paper says of the gain there, which it draws in figure 4(a).
const GAINS: [(f64, &str); 3] = [
    (0.02, "can be more than ten times"),
    (0.2, "smaller, but substantial"),
    (1.0, "small"),
];

/// A growth factor, how many levels at the end are left out, and the published share of the others: figure 4(b).
const FRACTIONS: [(f64, i32, &str); 5] = [
    (4.0, 1, "25 %"),
    (8.0, 1, "13 %"),
    (10.0, 1, "10 %"),
    (4.0, 2, "at most 6 %"),
    (8.0, 2, "less than 3 %"),
];

/// What the paper says of its two curves, beside what the equations give: what, published, model.
pub(super) fn published_points() -> impl Iterator<Item = (String, &'static str, String)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equations_are_those_that_are_published() {
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
