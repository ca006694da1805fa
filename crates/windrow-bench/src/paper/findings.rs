//! What an experiment found: its table, and whether the shape that the paper found is there.

use serde::{Deserialize, Serialize};

/// One statement on the shape of what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What should hold.
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
    pub(crate) fn new(shape: &str, published: &str, measured: String, holds: bool) -> Self {
        Self {
            shape: shape.to_owned(),
            published: published.to_owned(),
            measured,
            holds,
            explanation: None,
        }
    }

    /// Says why it differs here, which counts only where it does.
    pub(crate) fn or_since(mut self, explanation: &str) -> Self {
        if !self.holds {
            self.explanation = Some(explanation.to_owned());
        }
        self
    }
}

/// What is said of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check holds.
    Confirmed,
    /// Where a check does not hold, it is known why.
    Explained,
    /// A check does not hold, and nobody knows why.
    Differs,
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
            Self::Explained => "explained",
            Self::Differs => "differs",
        }
    }
}

/// Measured figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each as long as the columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self {
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(Vec::from(cells));
    }
}

/// What one experiment found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Findings {
    pub(crate) checks: Vec<Check>,
    pub(crate) table: Table,
}

/// A figure with about three digits.
pub(crate) fn short(figure: f64) -> String {
    match figure.abs() {
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
    fn one_check_without_an_explanation_differs() {
        let check = |holds| Check::new("", "", String::new(), holds);
        assert_eq!(Verdict::of(&[check(true)]), Verdict::Confirmed);
        // What holds needs no explanation, and gets none.
        assert_eq!(check(true).or_since("slow").explanation, None);
        let explained = check(false).or_since("slow");
        let two = [check(true), explained.clone()];
        assert_eq!(Verdict::of(&two), Verdict::Explained);
        assert_eq!(Verdict::of(&[explained, check(false)]), Verdict::Differs);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(list([0.0, 1.234, 12.34, 123.4]), "0, 1.23, 12.3, 123");
        assert!(falls(&[2.0, 2.0, 1.0], 0.0) && falls(&[1.0, 1.04], 0.05));
        assert!(!falls(&[1.0, 1.1], 0.05) && falls(&[], 0.0));
    }
}
