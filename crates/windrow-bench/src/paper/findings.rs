//! The findings of an experiment.

use super::experiment::{Check, Plot, PlotSeries, Table};

/// The findings of one experiment.
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
