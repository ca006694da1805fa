//! The figures that the papers compare, the columns of tables, and the text of figures.

use std::borrow::Borrow;

use crate::Report;

/// Figures that the papers compare.
pub(crate) trait Figures {
    /// Thousands of operations per second.
    fn kops(&self) -> f64;
    /// Microseconds per operation, background work after the load included.
    fn settled_micros(&self) -> f64;
    /// Bytes written per user byte; NaN for a load without a write amplification.
    fn written(&self) -> f64;
    /// Blocks read per operation.
    fn blocks(&self) -> f64;
    /// The deepest level with files.
    fn depth(&self) -> u64;
    /// Gets that `level` answered since the open.
    fn answered_by(&self, level: u64) -> u64;
    /// Bytes on disk per live byte.
    fn space(&self) -> f64;
    /// Bytes written and read for one purpose.
    fn moved_for(&self, purpose: &str) -> (u64, u64);
}

impl Figures for Report {
    fn kops(&self) -> f64 {
        self.ops_per_second / 1e3
    }

    fn settled_micros(&self) -> f64 {
        self.settled_seconds * 1e6 / self.ops.max(1) as f64
    }

    fn written(&self) -> f64 {
        self.write_amplification.unwrap_or(f64::NAN)
    }

    fn blocks(&self) -> f64 {
        self.block_reads_per_op.unwrap_or_default()
    }

    fn depth(&self) -> u64 {
        let filled = self.levels.iter().filter(|level| level.files > 0);
        filled.map(|level| level.level).max().unwrap_or(0)
    }

    fn answered_by(&self, level: u64) -> u64 {
        let levels = self.levels.iter().filter(|own| own.level == level);
        levels.map(|own| own.gets_answered).sum()
    }

    fn space(&self) -> f64 {
        self.space_amplification.unwrap_or_default()
    }

    fn moved_for(&self, purpose: &str) -> (u64, u64) {
        let moved = self.io_stats.iter().find(|moved| moved.purpose == purpose);
        moved.map_or((0, 0), |moved| (moved.written_bytes, moved.read_bytes))
    }
}

/// A column of a table: its heading, and its cell for a report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column(pub(crate) &'static str, pub(crate) fn(&Report) -> String);

pub(crate) const KOPS: Column = Column("kops/s", |report| short(report.kops()));
pub(crate) const SETTLED_MICROS: Column = Column("us per write, settled", |report| {
    short(report.settled_micros())
});
pub(crate) const WRITTEN: Column = Column("written per byte", |report| short(report.written()));
pub(crate) const LEVELS: Column = Column("levels", |report| report.depth().to_string());
pub(crate) const CPU: Column = Column("CPU us per operation", |report| short(report.cpu_us_per_op));
pub(crate) const SPACE: Column = Column("space", |report| short(report.space()));

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
pub(crate) fn list<F: Borrow<f64>>(figures: impl IntoIterator<Item = F>) -> String {
    let figures = figures.into_iter().map(|figure| short(*figure.borrow()));
    figures.collect::<Vec<_>>().join(", ")
}

/// The figure of the second report of each pair over that of the first.
pub(crate) fn pair_ratios(reports: &[Report], figure: fn(&Report) -> f64) -> Vec<f64> {
    let pairs = reports.chunks(2);
    pairs.map(|two| figure(&two[1]) / figure(&two[0])).collect()
}

/// Whether all figures are below `bound`.
pub(crate) fn all_below(figures: &[f64], bound: f64) -> bool {
    figures.iter().all(|&figure| figure < bound)
}

/// The geometric mean of ratios; NaN for none.
pub(crate) fn mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (logarithms / ratios.len() as f64).exp()
}

/// Whether no figure exceeds the one before it by more than the fraction `slack`.
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
