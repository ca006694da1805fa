//! The outcome of an experiment of a paper: the checks of its shape, the figures, and a plot.
//!
//! A check has a statement that should hold on any machine, the published figures, and the measured ones. An
//! explanation excuses a check that does not hold, but only in the range in which the difference is known.

use serde::Serialize;

/// One experiment of a paper, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// Its id, as in docs/papers.md, such as `AU-E1`.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// The setting, and how it follows from the paper's.
    pub setting: String,
    /// The verdict of the checks.
    pub verdict: Verdict,
    /// Statements on the shape of the figures.
    pub checks: Vec<Check>,
    /// The figures.
    pub table: Table,
    /// A plot of the figures.
    pub plot: Option<Plot>,
    /// The command lines of its runs.
    pub commands: Vec<String>,
}

/// One statement on the shape of the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The statement, which should hold on any machine: an order, a slope, a ratio.
    pub shape: String,
    /// The published figures.
    pub published: String,
    /// The measured figures.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why a check that does not hold differs here.
    pub explanation: Option<String>,
}

impl Check {
    /// A statement without an explanation.
    pub(crate) fn new(shape: &str, published: &str, measured: String, holds: bool) -> Self {
        Self {
            shape: shape.to_owned(),
            published: published.to_owned(),
            measured,
            holds,
            explanation: None,
        }
    }

    /// Explains a check that does not hold, if the figures are `as_known`: in the range of the known difference.
    /// Outside of it the verdict is [`Verdict::Differs`].
    pub(crate) fn or_since(mut self, explanation: &str, as_known: bool) -> Self {
        if !self.holds && as_known {
            self.explanation = Some(explanation.to_owned());
        }
        self
    }
}

/// Whether an experiment came out as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check holds.
    Confirmed,
    /// A check does not hold, for an unknown reason.
    Differs,
    /// Each check that does not hold has an explanation.
    Explained,
}

impl Verdict {
    /// The verdict on `checks`.
    pub fn of(checks: &[Check]) -> Self {
        let mut failed = checks.iter().filter(|check| !check.holds).peekable();
        if failed.peek().is_none() {
            Self::Confirmed
        } else if failed.all(|check| check.explanation.is_some()) {
            Self::Explained
        } else {
            Self::Differs
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Differs => "differs",
            Self::Explained => "explained",
        }
    }
}

/// Rows with headings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The headings.
    pub columns: Vec<String>,
    /// The rows, each as long as the headings; the first cell of each names it.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(Vec::from(cells));
    }

    /// The table with its columns aligned.
    pub fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row);
        }
        let lines: Vec<String> = table
            .lines()
            .map(|line| format!("  {}", line.trim_end()))
            .collect();
        lines.join("\n")
    }
}

/// Series of points over common axes, with a line through those of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// The label of the x axis, with its unit.
    pub x_label: String,
    /// The label of the y axis, with its unit.
    pub y_label: String,
    /// The series.
    pub series: Vec<PlotSeries>,
}

/// The points of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotSeries {
    /// The name of the series.
    pub name: String,
    /// x and y of each.
    pub points: Vec<[f64; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_without_an_explanation_differs() {
        let check = |holds| Check::new("", "", String::new(), holds);
        assert_eq!(Verdict::of(&[check(true)]), Verdict::Confirmed);
        // A check that holds gets no explanation.
        assert_eq!(check(true).or_since("slow", true).explanation, None);
        let explained = check(false).or_since("slow", true);
        let two = [check(true), explained.clone()];
        assert_eq!(Verdict::of(&two), Verdict::Explained);
        assert_eq!(Verdict::of(&[explained, check(false)]), Verdict::Differs);
        // The explanation does not count outside its range.
        assert_eq!(
            Verdict::of(&[check(false).or_since("slow", false)]),
            Verdict::Differs
        );
    }
}
