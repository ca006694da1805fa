//! What an experiment found, and how figures are told.

use crate::paper::experiment::{Check, Plot, PlotSeries, Table};

/// What one experiment found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Findings {
    pub(crate) checks: Vec<Check>,
    pub(crate) table: Table,
    pub(crate) plot: Option<Plot>,
}

impl Findings {
    pub(crate) fn new(checks: Vec<Check>, table: Table) -> Self {
        Self {
            checks,
            table,
            plot: None,
        }
    }

    /// With a line through the points of each series.
    pub(crate) fn drawn(mut self, labels: [&str; 2], series: Vec<(String, Vec<[f64; 2]>)>) -> Self {
        let series = series.into_iter();
        self.plot = Some(Plot {
            x_label: labels[0].to_owned(),
            y_label: labels[1].to_owned(),
            series: series
                .map(|(name, points)| PlotSeries { name, points })
                .collect(),
        });
        self
    }
}

/// A figure with about three digits; "none" for a ratio to nothing.
pub(crate) fn short(figure: f64) -> String {
    match figure.abs() {
        size if !size.is_finite() => "none".to_owned(),
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

/// Several figures with about three digits each.
pub(crate) fn list(figures: impl IntoIterator<Item = f64>) -> String {
    let figures: Vec<String> = figures.into_iter().map(short).collect();
    figures.join(", ")
}

/// The geometric mean of ratios; NaN for none.
pub(crate) fn mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / ratios.len() as f64).exp()
}

/// Whether no figure is above the one before it by more than the share `slack`.
pub(crate) fn falls(figures: &[f64], slack: f64) -> bool {
    figures
        .windows(2)
        .all(|pair| pair[1] <= pair[0] * (1.0 + slack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(list([0.0, 1.234, 12.34, 123.4]), "0, 1.23, 12.3, 123");
        assert!(falls(&[2.0, 2.0, 1.0], 0.0) && falls(&[1.0, 1.04], 0.05));
        assert!(!falls(&[1.0, 1.1], 0.05) && falls(&[], 0.0));
        assert!((mean(&[0.5, 8.0]) - 2.0).abs() < 1e-12);
    }
}
