//! The command that writes a campaign's page and plots.

use std::path::{Path, PathBuf};

use clap::Args;
use windrow::{Error, Result};

use super::{CampaignRecord, page, plots};
use crate::check_destination;
use crate::paper::judged;

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example:
  windrow-bench report campaign.jsonl --output campaign.html --plots plots")]
pub struct ReportArgs {
    /// The file of the campaign
    #[arg(value_name = "CAMPAIGN")]
    pub campaign: PathBuf,

    /// The page to write; it replaces an existing file
    #[arg(short, long, value_name = "HTML")]
    pub output: PathBuf,

    /// Folder for the plots as SVG files; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

/// Writes the page of a campaign, and its plots if the arguments request them. Judges the complete experiments of a
/// campaign of the papers first. Returns the written files, the page first.
///
/// # Errors
///
/// [`windrow::ErrorKind::InvalidArgument`] for a file that is not a campaign, or a page that would overwrite it;
/// [`windrow::ErrorKind::Corruption`], with the file and the line, for an invalid campaign. It then writes nothing.
pub fn report(args: &ReportArgs) -> Result<Vec<PathBuf>> {
    let failed = |operation: &'static str, path: &Path| {
        let path = path.to_owned();
        move |error| Error::io(operation, &path, error)
    };
    check_destination(&args.output, [&args.campaign])?;
    let text = std::fs::read(&args.campaign).map_err(failed("read", &args.campaign))?;
    let campaign = CampaignRecord::parse(&args.campaign.display().to_string(), &text)?;
    let campaign = match judged(&campaign.command, &args.campaign)? {
        Some(judged) => judged,
        None => campaign,
    };
    let mut files = vec![(args.output.clone(), page(&campaign))];
    if let Some(folder) = &args.plots {
        std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
        let plots = plots(&campaign).into_iter();
        files.extend(plots.map(|plot| (folder.join(plot.name), plot.svg)));
    }
    let mut written = Vec::new();
    for (path, text) in files {
        std::fs::write(&path, text).map_err(failed("write", &path))?;
        written.push(path);
    }
    Ok(written)
}
