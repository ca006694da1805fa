//! Experiments of papers, repeated: what a campaign's first line tells of them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One experiment of a paper, and what came of it here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// A short name, such as `AU-E1`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The figures of the paper.
    #[serde(default)]
    pub published: String,
    /// Our figures.
    #[serde(default)]
    pub measured: String,
    /// What should hold on any machine: an order, a slope, a ratio.
    #[serde(default)]
    pub shape: String,
    /// What the comparison says.
    pub verdict: Verdict,
    /// Why.
    #[serde(default)]
    pub explanation: String,
    /// The command that repeats it; that of the campaign where this is empty.
    #[serde(default)]
    pub command: String,
    /// The figures.
    #[serde(default)]
    pub table: ExperimentTable,
    /// A picture of them.
    #[serde(default)]
    pub plot: Option<ExperimentPlot>,
}

/// Whether an experiment came out as published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As published.
    Confirmed,
    /// Not as published, and nobody knows why.
    Differs,
    /// Not as published, for a reason that is known.
    Explained,
}

/// Rows under headings. Cells are texts, numbers, or null where there is nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentTable {
    /// The headings.
    pub columns: Vec<String>,
    /// The rows; the first cell of each names it.
    pub rows: Vec<Vec<Value>>,
}

/// Series of points over common axes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentPlot {
    /// How they are drawn.
    pub kind: PlotKind,
    /// What the points lie over, with its unit.
    pub x_label: String,
    /// What the points tell, with its unit.
    pub y_label: String,
    /// The series.
    pub series: Vec<ExperimentSeries>,
    /// Whether x is drawn logarithmically; bars do not heed it.
    pub log_x: bool,
    /// Whether y is drawn logarithmically.
    pub log_y: bool,
}

/// How a plot is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// A line through the points of each series.
    #[default]
    Lines,
    /// A bar for each point, those of one x together.
    Bars,
}

/// Points that belong together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExperimentSeries {
    /// What they are points of.
    pub name: String,
    /// x and y of each; points that are not finite are left out when they are read.
    #[serde(deserialize_with = "finite_points")]
    pub points: Vec<[f64; 2]>,
}

/// JSON has null for numbers that are not finite.
fn finite_points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<[f64; 2]>, D::Error> {
    let points = Vec::<[Option<f64>; 2]>::deserialize(deserializer)?;
    let finite = points.into_iter().filter_map(|[x, y]| Some([x?, y?]));
    Ok(finite.collect())
}
