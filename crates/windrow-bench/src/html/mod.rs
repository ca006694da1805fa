//! Reports of benchmark campaigns: one page that needs nothing else, and its plots as SVG files.
//!
//! A campaign file ([`CampaignRecord`]) goes through three steps, a folder's part each: `digest`
//! sets the runs beside each other (group, load, engine, round), the plots and tables make figures
//! of that, and `page` writes them down. What the file does not tell leaves out its plot and
//! nothing else.
//!
//! The plots are written by `canvas` and not by a library for plots: the page follows the color
//! scheme of its reader and of paper, and has a title, a description and hatches in each plot, so
//! colors must be variables of a style sheet. Those libraries that draw SVG write fixed colors and
//! sizes, and say nothing to a screen reader.
//!
//! 1. All text from the file goes through `markup`, which escapes it.
//! 2. Page and plots are well-formed XML, and hold no script and no reference to another file.
//! 3. Nothing is told by color alone: names stand at lines and bars, series have marks, and bars
//!    beside each other have hatches.
//! 4. Numbers that are not finite are as good as missing.
//!
//! Pure functions, but for [`report`], which reads and writes files.

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
