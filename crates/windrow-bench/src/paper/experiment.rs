//! What came of an experiment of a paper: the checks of its shape, the figures, and a picture of them.
//!
//! A check says what should hold on any machine, what was published, and what was measured. One that does not
//! hold is excused only within the range in which that was found and explained.

use serde::Serialize;

/// One experiment of a paper, and what came of it here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    /// Its id, as in docs/papers.md, such as `AU-E1`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What was run, and how that follows from the paper's setting.
    pub setting: String,
    /// What the checks come to.
    pub verdict: Verdict,
    /// Statements on the shape of what was measured.
    pub checks: Vec<Check>,
    /// The figures.
    pub table: Table,
    /// A picture of them.
    pub plot: Option<Plot>,
    /// The command lines of its runs.
    pub commands: Vec<String>,
}

/// One statement on the shape of what was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What should hold on any machine: an order, a slope, a ratio.
    pub shape: String,
    /// What was published.
    pub published: String,
    /// What was measured.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
    /// Why it may differ here; for where it does not hold.
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

    /// Says why it differs here, which counts only where it does, and only while what was measured is
    /// `as_known`: in the range that was found and explained. Beyond it nobody knows why, and the verdict is
    /// [`Verdict::Differs`].
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
    /// A check does not hold, and nobody knows why.
    Differs,
    /// Where a check does not hold, it is known why.
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

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Differs => "differs",
            Self::Explained => "explained",
        }
    }
}

/// Rows under headings.
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
    /// What the points lie over, with its unit.
    pub x_label: String,
    /// What the points tell, with its unit.
    pub y_label: String,
    /// The series.
    pub series: Vec<PlotSeries>,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlotSeries {
    /// What they are points of.
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
        // What holds needs no explanation, and gets none.
        assert_eq!(check(true).or_since("slow", true).explanation, None);
        let explained = check(false).or_since("slow", true);
        let two = [check(true), explained.clone()];
        assert_eq!(Verdict::of(&two), Verdict::Explained);
        assert_eq!(Verdict::of(&[explained, check(false)]), Verdict::Differs);
        // Beyond what was found the explanation is none.
        assert_eq!(
            Verdict::of(&[check(false).or_since("slow", false)]),
            Verdict::Differs
        );
    }
}
