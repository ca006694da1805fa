//! A campaign of Windrow only: several rounds of the same loads, each in its own process and folder.

use std::path::PathBuf;

use clap::{Args, Parser};
use windrow::{Error, Result};

use super::{Campaign, CampaignProgress, Header, Order, shell_words};
use crate::{BenchArgs, Engine as _, WindrowEngine, check_loads};

/// The loads of a campaign, its rounds, and its file.
#[derive(Debug, Clone, Args)]
pub struct RoundsArgs {
    /// File for completed runs; the same command resumes it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Rounds of the loads
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Folder for the databases [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Loads and settings, as for `run`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "LOADS AND SETTINGS"
    )]
    pub bench: Vec<String>,
}

/// The command line of a run, to find its errors before anything runs.
#[derive(Debug, Parser)]
#[command(name = "run", disable_help_flag = true, args_override_self = true)]
struct RunLine {
    #[command(flatten)]
    bench: BenchArgs,
    /// The campaign passes it to a run.
    #[arg(long)]
    json: bool,
}

/// Parses the `arguments` after `run`.
///
/// # Errors
/// `InvalidArgument` with the first line of the error.
pub fn parsed_run<L: Parser>(arguments: &[String]) -> Result<L> {
    let words = std::iter::once("run").chain(arguments.iter().map(String::as_str));
    L::try_parse_from(words).map_err(|error| {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        Error::invalid_argument(message.trim_start_matches("error: ").to_owned())
    })
}

impl RoundsArgs {
    /// The arguments of each run.
    ///
    /// # Errors
    /// `InvalidArgument` if a run would refuse them.
    fn checked(&self) -> Result<BenchArgs> {
        let line: RunLine = parsed_run(&self.bench)?;
        if line.json {
            return Err(Error::invalid_argument("--json must be before the loads"));
        }
        if line.bench.db.is_some() {
            return Err(Error::invalid_argument(
                "each run has its own folder: use --folder before the loads instead of --db",
            ));
        }
        check_loads::<WindrowEngine>(&line.bench)?;
        Ok(line.bench)
    }

    fn order(&self, round: u32) -> Order {
        let settings = shell_words(self.bench.iter().map(String::as_str));
        Order {
            label: format!("{settings} {round}"),
            engine: WindrowEngine::NAME.to_owned(),
            round,
            group: settings,
            program: "windrow-bench".to_owned(),
            arguments: self.bench.clone(),
        }
    }

    /// The command line of the campaign.
    fn command(&self) -> String {
        let settings = shell_words(self.bench.iter().map(String::as_str));
        format!("windrow-bench campaign --rounds {} {settings}", self.rounds)
    }
}

/// Runs all rounds of `args` that the file lacks. Returns the campaign with all runs.
///
/// # Errors
/// `InvalidArgument`, before anything runs, for arguments that a run would refuse; as [`Campaign::open`] and
/// [`Campaign::run`].
pub fn run_rounds(args: &RoundsArgs, progress: &mut impl CampaignProgress) -> Result<Campaign> {
    let bench = args.checked()?;
    let header = Header::now(args.command(), bench.inputs())?;
    let mut campaign = Campaign::open(Some(&args.file), header)?.calibrated(bench.runs_on_device());
    for round in 0..args.rounds {
        let order = args.order(round);
        if !campaign.has(&order.label) {
            let number = round as usize + 1;
            progress.begins(number, args.rounds as usize, &order.command());
        }
        campaign.run(&order, args.folder.as_deref(), |report| {
            progress.reports(report);
        })?;
    }
    Ok(campaign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> RoundsArgs {
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            rounds: RoundsArgs,
        }
        let words = ["campaign", "file"].iter().chain(words);
        Line::try_parse_from(words).unwrap().rounds
    }

    #[test]
    fn what_a_run_would_refuse_is_refused_before_it() {
        assert!(args(&["fillseq", "--num", "10"]).checked().is_ok());
        for words in [
            ["fillseq", "--nmu", "10"].as_slice(),
            &["nothing"],
            &["fillseq", "--json"],
            &["fillseq", "--db", "here"],
            &["fillseq", "--size-ratio", "0.5"],
            &["replay"],
        ] {
            assert!(args(words).checked().is_err(), "{words:?}");
        }
    }

    #[test]
    fn rounds_have_labels_of_their_own() {
        let args = args(&["--rounds", "2", "fillseq", "--num", "10"]);
        let labels = [0, 1].map(|round| args.order(round).label);
        assert_eq!(labels, ["fillseq --num 10 0", "fillseq --num 10 1"]);
        assert_eq!(
            args.command(),
            "windrow-bench campaign --rounds 2 fillseq --num 10"
        );
    }
}
