//! The papers' experiments at a scale that a small machine can do, and a verdict on the shape of each.
//!
//! A plan says which runs it needs and judges what came of them. Runs are shared: what two
//! experiments ask for is run once. Sizes of memtables, files and level 1 are scaled with the data, so
//! that a tree has the shape that it has in the paper. Verdicts rest on counts (blocks, bytes, levels)
//! wherever the paper's statement allows it, and times are shown beside them; those that rest on time run three
//! times in turn.

pub mod experiment;

mod autumn;
mod findings;
mod line;
mod lsma;
mod model;
mod parallax;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches as _};
use windrow::{Error, Result};

use crate::campaign::{Campaign, CampaignProgress, Header, Order, Run};
use crate::check_destination;
use crate::html::{self, CampaignRecord};
use crate::paper::experiment::{Experiment, Verdict};
use findings::Findings;
use line::{Line, Results, Scale};

/// Which experiments to run, and how large.
#[derive(Debug, Clone, Args)]
pub struct PaperArgs {
    /// Experiments such as AU-E4, PX-E7 or LS-E2, a paper (AU, PX, LS), or all
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,

    /// Entries, and sizes of trees, as a share of what is the default
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub scale: f64,

    /// File in which runs are kept; the same command goes on where it stopped
    #[arg(long, value_name = "FILE")]
    pub campaign: Option<PathBuf>,

    /// Page to write on what was found, in one file; one that is there is replaced
    #[arg(short, long, value_name = "HTML")]
    pub output: Option<PathBuf>,

    /// Folder for the databases [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// What the commands of campaigns begin with.
const COMMAND: &str = "windrow-bench paper ";

impl PaperArgs {
    /// The command of a campaign, the same however its ids are typed.
    fn command(&self) -> String {
        let ids = self.ids.iter().map(|id| match id.to_ascii_uppercase() {
            all if all == "ALL" => "all".to_owned(),
            id => id,
        });
        let ids: Vec<String> = ids.collect();
        format!("{COMMAND}{} --scale {}", ids.join(" "), self.scale)
    }

    /// The arguments of a campaign of experiments.
    fn of_command(command: &str) -> Option<Self> {
        let words = command.strip_prefix(COMMAND)?.split(' ');
        let parser = Self::augment_args(clap::Command::new("paper")).no_binary_name(true);
        Self::from_arg_matches(&parser.try_get_matches_from(words).ok()?).ok()
    }
}

/// How an experiment of a paper is repeated.
#[derive(Debug, Clone, Copy)]
struct Plan {
    id: &'static str,
    title: &'static str,
    /// What is run, and how that follows from the paper's setting.
    setting: &'static str,
    /// Times that each line runs; an odd number, of whose figures the medians are judged.
    rounds: u32,
    lines: fn(Scale) -> Vec<Line>,
    judge: fn(Scale, Results<'_>) -> Result<Findings>,
}

/// Rounds where the verdict rests on time.
const TIMED: u32 = 3;
/// Rounds where it rests on counts.
const COUNTED: u32 = 1;

fn plans() -> impl Iterator<Item = &'static Plan> {
    autumn::EXPERIMENTS
        .iter()
        .chain(&parallax::EXPERIMENTS)
        .chain(&lsma::EXPERIMENTS)
}

impl Plan {
    /// Its runs, the lines in turn in each round.
    fn orders(&self, scale: Scale) -> impl Iterator<Item = Order> {
        (0..self.rounds).flat_map(move |round| {
            let lines = (self.lines)(scale).into_iter();
            lines.map(move |line| line.order(self.id, round))
        })
    }

    /// What came of it in `runs`.
    fn judged(&self, scale: Scale, runs: &[Run]) -> Result<Experiment> {
        let commands = (self.lines)(scale).into_iter();
        let commands = commands.map(|line| line.order(self.id, 0).command());
        let commands: Vec<String> = commands.collect();
        let findings = (self.judge)(scale, Results(runs))?;
        Ok(Experiment {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            setting: if commands.is_empty() {
                self.setting.to_owned()
            } else {
                scale.reported(self.setting)
            },
            verdict: Verdict::of(&findings.checks),
            checks: findings.checks,
            table: findings.table,
            plot: findings.plot,
            commands,
        })
    }
}

/// The experiments that `ids` name, each once, in the order of the papers.
fn chosen(ids: &[String]) -> Result<Vec<&'static Plan>> {
    let named = |id: &str, plan: &Plan| {
        let paper = plan.id.split('-').next().unwrap_or_default();
        id.eq_ignore_ascii_case("all")
            || id.eq_ignore_ascii_case(plan.id)
            || id.eq_ignore_ascii_case(paper)
    };
    for id in ids {
        if !plans().any(|plan| named(id, plan)) {
            let known: Vec<&str> = plans().map(|plan| plan.id).collect();
            return Err(Error::invalid_argument(format!(
                "there is no experiment {id}; there are {}",
                known.join(", ")
            )));
        }
    }
    let is_chosen = |plan: &&Plan| ids.iter().any(|id| named(id, plan));
    Ok(plans().filter(is_chosen).collect())
}

/// Runs the experiments that `args` names, unless the campaign has their runs; `each` gets every one as
/// soon as it is judged.
///
/// # Errors
/// `InvalidArgument` for an unknown id or a scale that is none; what stops a run.
pub fn paper(
    args: &PaperArgs,
    progress: &mut impl CampaignProgress,
    mut each: impl FnMut(&Experiment) -> Result<()>,
) -> Result<()> {
    if !(args.scale > 0.0 && args.scale <= 1000.0) {
        return Err(Error::invalid_argument(
            "the scale must be above 0 and at most 1000",
        ));
    }
    let scale = Scale(args.scale);
    let chosen = chosen(&args.ids)?;
    if let Some(path) = &args.output {
        // Better now than behind an hour of runs.
        check_destination(path, &args.campaign)?;
    }
    let mut campaign = Campaign::open(args.campaign.as_deref(), Header::now(args.command(), [])?)?;
    let mut orders: Vec<Order> = Vec::new();
    for experiment in &chosen {
        for order in experiment.orders(scale) {
            if !orders.iter().any(|other| other.label == order.label) {
                orders.push(order);
            }
        }
    }
    let all = orders.len();
    let mut experiments = Vec::new();
    let mut orders = orders.into_iter().enumerate().peekable();
    for experiment in chosen {
        let own: Vec<Order> = experiment.orders(scale).collect();
        while let Some((number, order)) =
            orders.next_if(|(_, order)| own.iter().any(|own| own.label == order.label))
        {
            if !campaign.has(&order.label) {
                progress.begins(number + 1, all, &order.command());
            }
            run(&mut campaign, &order, args.folder.as_deref(), progress)?;
        }
        let judged = experiment.judged(scale, campaign.runs())?;
        each(&judged)?;
        experiments.push(judged);
    }
    if let Some(path) = &args.output {
        let page = html::page(&CampaignRecord::of_experiments(&campaign, experiments));
        fs::write(path, page).map_err(|error| Error::io("write", path, error))?;
    }
    Ok(())
}

/// What the campaign in `file` shows of the experiments that it was begun for with `command`: of those whose runs
/// are all there. None where the command is another.
///
/// # Errors
/// As [`Campaign::read`].
pub(crate) fn judged(command: &str, file: &Path) -> Result<Option<CampaignRecord>> {
    let Some(args) = PaperArgs::of_command(command) else {
        return Ok(None);
    };
    let scale = Scale(args.scale);
    let campaign = Campaign::read(file)?;
    let chosen = chosen(&args.ids)?.into_iter();
    let is_whole = |plan: &&Plan| (plan.orders(scale)).all(|order| campaign.has(&order.label));
    let experiments = chosen
        .filter(is_whole)
        .map(|plan| plan.judged(scale, campaign.runs()));
    let experiments = experiments.collect::<Result<_>>()?;
    Ok(Some(CampaignRecord::of_experiments(&campaign, experiments)))
}

fn run(
    campaign: &mut Campaign,
    order: &Order,
    folder: Option<&Path>,
    progress: &mut impl CampaignProgress,
) -> Result<()> {
    campaign.run(order, folder, |report| progress.reports(report))?;
    Ok(())
}

impl Experiment {
    /// The text for people: title, verdict, checks and table.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("{} {}: {}", self.id, self.title, self.verdict.name()),
            format!("  {}", self.setting),
        ];
        for check in &self.checks {
            let mark = if check.holds {
                "holds"
            } else {
                "DOES NOT HOLD"
            };
            lines.push(format!("  {mark}: {}", check.shape));
            lines.push(format!("    published: {}", check.published));
            lines.push(format!("    measured:  {}", check.measured));
            if let Some(explanation) = &check.explanation {
                lines.push(format!("    because {explanation}"));
            }
        }
        lines.push(self.table.text());
        lines.join("\n")
    }
}
