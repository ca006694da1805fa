//! Reports of benchmark campaigns: one self-contained page, and its plots as SVG files.
//!
//! A campaign file ([`CampaignRecord`]) goes through three steps. `digest` groups the runs (group, load, engine,
//! round). `plots` and `summary` make figures and tables of the groups. `page` writes them. Missing data leaves out
//! its plot and nothing else.
//!
//! `canvas` writes the plots instead of a plotting library. The page follows the color scheme of its reader and of
//! paper, so colors must be variables of a style sheet, and each plot has a title, a description and hatches.
//! Libraries for SVG write fixed colors and sizes, and no text for screen readers.
//!
//! 1. All text from the file goes through `markup`, which escapes it.
//! 2. Page and plots are well-formed XML, and hold no script and no reference to another file.
//! 3. No information is in color only: lines and bars have names, series have marks, and neighbouring bars have
//!    hatches.
//! 4. Numbers that are not finite count as missing.
//!
//! All functions are pure, except for [`report`], which reads and writes files.

mod command;
mod digest;
mod draw;
mod experiments;
mod page;
mod plots;
mod record;
mod summary;

pub use command::{ReportArgs, report};
pub use page::{PlotFile, page, plots};
pub use record::{CampaignRecord, Machine, Run};

#[cfg(test)]
mod tests;
