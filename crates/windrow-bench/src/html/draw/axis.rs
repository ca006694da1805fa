//! Axes: the position of a value between the ends, and the ticks.
//!
//! 1. An axis has a length: its ends differ for any values.
//! 2. Ticks are round: 1, 2 or 5 times a power of ten (of two for bytes), or whole powers on a
//!    logarithmic axis.

use crate::html::draw::number::{self, Format, short};

/// Values along one side of a plot.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
    /// Values with a line and a label, by value.
    pub(crate) ticks: Vec<(f64, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Logarithmic,
    /// Quantiles; the last one has this number of nines.
    Quantiles(f64),
}

/// Logarithmic axes with more decades have labels at some of them only.
const LABELED_DECADES_MAX: i32 = 7;

impl Axis {
    /// From 0, or from a smaller least value, to a tick beyond the last value.
    pub(crate) fn linear(values: impl Iterator<Item = f64>, ticks: u32, format: Format) -> Self {
        let (least, most) = ends(values, |_| true).unwrap_or((0.0, 1.0));
        Self::rounded(least.min(0.0), most.max(0.0), ticks, 10.0, format)
    }

    /// As [`Self::linear`], but not from 0.
    pub(crate) fn between(values: impl Iterator<Item = f64>, ticks: u32, format: Format) -> Self {
        let (least, most) = ends(values, |_| true).unwrap_or((0.0, 1.0));
        Self::rounded(least, most, ticks, 10.0, format)
    }

    /// As [`Self::linear`], with ticks at round numbers of KiB, MiB and so on.
    pub(crate) fn bytes(values: impl Iterator<Item = f64>, ticks: u32) -> Self {
        let (_, most) = ends(values, |_| true).unwrap_or((0.0, 1.0));
        Self::rounded(0.0, most.max(0.0), ticks, 2.0, number::bytes)
    }

    fn rounded(least: f64, most: f64, ticks: u32, base: f64, format: Format) -> Self {
        let most = if most > least { most } else { least + 1.0 };
        let step = round_step((most - least) / f64::from(ticks.max(1)), base);
        let (first, last) = ((least / step).floor(), (most / step).ceil());
        let count = (last - first).clamp(1.0, 100.0);
        let at = (0..=100).map(f64::from).take_while(|&n| n <= count);
        Self {
            scale: Scale::Linear,
            least: first * step,
            most: (first + count) * step,
            ticks: at
                .map(|n| (first + n) * step)
                .map(|value| (value, short(&format(value))))
                .collect(),
        }
    }

    /// From power to power of a number, around all values above 0.
    pub(crate) fn logarithmic(
        values: impl Iterator<Item = f64>,
        powers_of: u8,
        format: Format,
    ) -> Self {
        let base = f64::from(powers_of);
        let (least, most) = ends(values, |value| value > 0.0).unwrap_or((1.0, base));
        let power = |value: f64| value.ln() / base.ln();
        // A rounding must not move a power beyond itself.
        let first = (power(least) + 1e-9).floor();
        let last = (power(most) - 1e-9).ceil().max(first + 1.0);
        let step = ((last - first) / f64::from(LABELED_DECADES_MAX)).ceil();
        let powers = (0..=i16::MAX)
            .map(|n| first + f64::from(n) * step)
            .take_while(|&power| power <= last);
        // Few powers leave space for ticks between them.
        let between: &[f64] = match powers_of {
            10 if last - first <= 2.0 => &[1.0, 2.0, 5.0],
            16 if last - first <= 2.0 => &[1.0, 4.0],
            _ => &[1.0],
        };
        let most = base.powf(last);
        let values = powers
            .flat_map(|power| between.iter().map(move |times| base.powf(power) * times))
            .filter(|&value| value <= most * (1.0 + 1e-9));
        Self {
            scale: Scale::Logarithmic,
            least: base.powf(first),
            most,
            ticks: values.map(|value| (value, short(&format(value)))).collect(),
        }
    }

    /// Quantiles, logarithmic towards 1: each nine has the same length. 1 itself lies a little beyond the last
    /// quantile below it.
    pub(crate) fn quantiles(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (_, below) = ends(values.clone(), |value| value < 1.0).unwrap_or((0.0, 0.99));
        let last = nines(below).max(1.0);
        let has_most = values.into_iter().any(|value| value >= 1.0);
        let whole = (1..=LABELED_DECADES_MAX)
            .map(f64::from)
            .take_while(|&count| count <= last + 1e-6);
        let mut ticks = vec![(0.0, "0".to_owned()), (0.5, "50\u{a0}%".to_owned())];
        ticks.extend(
            whole
                .map(|count| 1.0 - 10_f64.powf(-count))
                .map(|value| (value, number::quantile(value))),
        );
        let most = if has_most {
            ticks.push((1.0, "max".to_owned()));
            (last + 0.4).max(last.floor() + 0.8)
        } else {
            last
        };
        Self {
            scale: Scale::Quantiles(most),
            least: 0.0,
            most,
            ticks,
        }
    }

    /// The position of `value`: 0 at the lower end, 1 at the other. Values beyond an end lie at that end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Logarithmic => (value / self.least).ln() / (self.most / self.least).ln(),
            Scale::Quantiles(most) => nines(value).min(most) / most,
        };
        if place.is_nan() {
            0.0
        } else {
            place.clamp(0.0, 1.0)
        }
    }

    /// Whether `value` has a position.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Logarithmic || value > 0.0)
    }
}

/// The number of nines of a quantile: 1 for 0.9, 2 for 0.99.
fn nines(quantile: f64) -> f64 {
    0.0 - (1.0 - quantile.clamp(0.0, 1.0)).log10()
}

/// The minimum and maximum of the finite values that `counts` accepts.
fn ends(values: impl Iterator<Item = f64>, counts: impl Fn(f64) -> bool) -> Option<(f64, f64)> {
    values
        .filter(|&value| value.is_finite() && counts(value))
        .fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((least, most)) => Some((value.min(least), value.max(most))),
        })
}

/// The smallest round number that is not below `step`.
fn round_step(step: f64, base: f64) -> f64 {
    let step = step.clamp(f64::MIN_POSITIVE * 1e3, f64::MAX / 1e3);
    let whole = base.powf((step.ln() / base.ln()).floor());
    let multiples: &[f64] = if base > 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let fits = |multiple: &&f64| whole * **multiple >= step * (1.0 - 1e-9);
    whole * multiples.iter().find(fits).copied().unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        let labels = axis
            .ticks
            .iter()
            .map(|(_, label)| label.replace('\u{a0}', " "));
        labels.collect()
    }

    // I2
    #[test]
    fn ticks_are_round() {
        let linear = Axis::linear([853e3, 1e5].into_iter(), 5, number::quantity);
        assert_eq!(
            labels(&linear),
            ["0", "200 k", "400 k", "600 k", "800 k", "1 M"]
        );
        let bytes = Axis::bytes([3000.0].into_iter(), 4);
        assert_eq!(labels(&bytes), ["0 B", "1 KiB", "2 KiB", "3 KiB"]);
        let decades = Axis::logarithmic([3.0, 2e5].into_iter(), 10, number::micros);
        assert_eq!(
            labels(&decades),
            [
                "1 \u{b5}s",
                "10 \u{b5}s",
                "100 \u{b5}s",
                "1 ms",
                "10 ms",
                "100 ms",
                "1 s"
            ]
        );
        let narrow = Axis::logarithmic([3.0, 8.0].into_iter(), 10, number::quantity);
        assert_eq!(labels(&narrow), ["1", "2", "5", "10"]);
        let quantiles = Axis::quantiles([0.0, 0.5, 0.9995, 1.0].into_iter());
        assert_eq!(
            labels(&quantiles),
            ["0", "50 %", "90 %", "99 %", "99.9 %", "max"]
        );
    }

    // I1
    #[test]
    fn every_axis_has_a_length() {
        let cases: [&[f64]; 7] = [
            &[],
            &[0.0],
            &[7.0, 7.0],
            &[f64::NAN, f64::INFINITY],
            &[f64::MAX, f64::MIN_POSITIVE],
            &[-5.0, 5.0],
            &[1e-300, 1e300],
        ];
        for values in cases {
            let values = || values.iter().copied();
            for axis in [
                Axis::linear(values(), 5, number::quantity),
                Axis::between(values(), 5, number::quantity),
                Axis::bytes(values(), 5),
                Axis::logarithmic(values(), 10, number::quantity),
                Axis::quantiles(values()),
            ] {
                assert!(axis.most > axis.least, "{axis:?}");
                assert!((2..=101).contains(&axis.ticks.len()), "{axis:?}");
                for value in values().chain([0.0, f64::NAN]) {
                    assert!(
                        (0.0..=1.0).contains(&axis.place(value)),
                        "{value} on {axis:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn each_nine_has_the_same_length() {
        let axis = Axis::quantiles([0.9999].into_iter());
        let place = |quantile| (axis.place(quantile) * 4.0 * 1e6).round() / 1e6;
        let places = [0.0, 0.9, 0.99, 0.999, 0.9999].map(place);
        assert_eq!(
            places.map(|place| format!("{place:.3}")),
            ["0.000", "1.000", "2.000", "3.000", "4.000"]
        );
        let with_most = Axis::quantiles([0.99, 1.0].into_iter());
        assert!(with_most.place(0.99) < 0.9);
        assert!((with_most.place(1.0) - 1.0).abs() < 1e-9);
    }
}
