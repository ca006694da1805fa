//! The papers' experiments at a scale for a small machine, and a verdict on the shape of each.
//!
//! A plan names its runs and judges their reports. Experiments share runs: a run that two experiments need runs
//! once. Sizes of memtables, files and level 1 scale with the data, so a tree keeps the shape that it has in the
//! paper. Verdicts rest on counts (blocks, bytes, levels) if the paper's statement allows it, with times next to
//! them. Verdicts that rest on time take three rounds.

pub mod experiment;

mod autumn;
mod figures;
mod findings;
mod lsma;
mod parallax;
mod run_spec;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches as _};
use windrow::{Error, Result};

use crate::campaign::{Campaign, CampaignProgress, Header, Order, Run};
use crate::check_destination;
use crate::html::{self, CampaignRecord};
use crate::measure::memory::check_left;
use crate::paper::experiment::{Experiment, Verdict};
use crate::parse_bytes;
use findings::Findings;
use run_spec::{Results, RunSpec, Scale};

/// The experiments to run, and their scale.
#[derive(Debug, Clone, Args)]
pub struct PaperArgs {
    /// Experiments such as AU-E4, PX-E7 or LS-E2, a paper (AU, PX, LS), or all
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,

    /// Factor on entries and on sizes of trees
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub scale: f64,

    /// File for the reports of runs; the same command resumes it
    #[arg(long, value_name = "FILE")]
    pub campaign: Option<PathBuf>,

    /// HTML page to write with the findings, in one file; it replaces an existing file
    #[arg(short, long, value_name = "HTML")]
    pub output: Option<PathBuf>,

    /// Folder for the databases [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Memory that the machine has left for each run, as for `run`
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,

    /// Drop caches before each load on existing data, as for `run`
    #[arg(long)]
    pub drop_caches: bool,
}

/// The prefix of the commands of campaigns.
const COMMAND: &str = "windrow-bench paper ";

impl PaperArgs {
    /// The command of a campaign. It does not depend on the case of the ids.
    fn command(&self) -> String {
        let ids = self.ids.iter().map(|id| match id.to_ascii_uppercase() {
            all if all == "ALL" => "all".to_owned(),
            id => id,
        });
        let ids: Vec<String> = ids.collect();
        let settings = self.settings().map(|word| format!(" {word}"));
        let settings: String = settings.collect();
        format!(
            "{COMMAND}{} --scale {}{settings}",
            ids.join(" "),
            self.scale
        )
    }

    /// The settings of every run.
    fn settings(&self) -> impl Iterator<Item = String> {
        let memory = self
            .memory
            .map(|left| ["--memory".to_owned(), left.to_string()]);
        let caches = self.drop_caches.then(|| "--drop-caches".to_owned());
        memory.into_iter().flatten().chain(caches)
    }

    /// `order` with these settings.
    fn with_settings(&self, mut order: Order) -> Order {
        order.arguments.extend(self.settings());
        order
    }

    /// The arguments of a campaign of experiments.
    fn of_command(command: &str) -> Option<Self> {
        let words = command.strip_prefix(COMMAND)?.split(' ');
        let parser = Self::augment_args(clap::Command::new("paper")).no_binary_name(true);
        Self::from_arg_matches(&parser.try_get_matches_from(words).ok()?).ok()
    }
}

/// The plan of an experiment.
#[derive(Debug, Clone, Copy)]
struct Plan {
    id: &'static str,
    title: &'static str,
    /// The setting, and how it follows from the paper's.
    setting: &'static str,
    /// Rounds of each run: an odd number. The judgement takes medians.
    rounds: u32,
    runs: fn(Scale) -> Vec<RunSpec>,
    judge: Judge,
}

/// The judgement of the reports of a plan's runs.
type Judge = fn(Scale, Results<'_>) -> Result<Findings>;

/// Rounds of verdicts that rest on time.
const TIMED: u32 = 3;
/// Rounds of verdicts that rest on counts.
const COUNTED: u32 = 1;

fn plans() -> impl Iterator<Item = &'static Plan> {
    autumn::EXPERIMENTS
        .iter()
        .chain(&parallax::EXPERIMENTS)
        .chain(&lsma::EXPERIMENTS)
}

impl Plan {
    /// Its runs; each round has each of them once.
    fn orders(&self, scale: Scale) -> impl Iterator<Item = Order> {
        (0..self.rounds).flat_map(move |round| {
            let runs = (self.runs)(scale).into_iter();
            runs.map(move |run| run.order(self.id, round))
        })
    }

    /// The verdict on `runs`.
    fn judged(&self, args: &PaperArgs, runs: &[Run]) -> Result<Experiment> {
        let scale = Scale(args.scale);
        let commands = (self.runs)(scale).into_iter();
        let commands = commands.map(|run| args.with_settings(run.order(self.id, 0)).command());
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

/// The experiments of `ids`, each once, in the order of the papers.
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
                "no experiment {id} exists; the experiments are {}",
                known.join(", ")
            )));
        }
    }
    let is_chosen = |plan: &&Plan| ids.iter().any(|id| named(id, plan));
    Ok(plans().filter(is_chosen).collect())
}

/// Runs the experiments of `args`, except for runs that the campaign holds. Calls `each` with every verdict as soon
/// as it is known.
///
/// # Errors
/// `InvalidArgument` for an unknown id or an invalid scale; the error of a run that fails.
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
    if let Some(left) = args.memory {
        check_left(left)?;
    }
    if let Some(path) = &args.output {
        // Fails now instead of after an hour of runs.
        check_destination(path, &args.campaign)?;
    }
    let mut campaign = Campaign::open(args.campaign.as_deref(), Header::now(args.command(), [])?)?
        .calibrated(args.settings().next().is_some());
    let mut orders: Vec<Order> = Vec::new();
    for experiment in &chosen {
        for order in experiment.orders(scale) {
            if !orders.iter().any(|other| other.label == order.label) {
                orders.push(args.with_settings(order));
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
        let judged = experiment.judged(args, campaign.runs())?;
        each(&judged)?;
        experiments.push(judged);
    }
    if let Some(path) = &args.output {
        let page = html::page(&CampaignRecord::of_experiments(&campaign, experiments));
        fs::write(path, page).map_err(|error| Error::io("write", path, error))?;
    }
    Ok(())
}

/// The verdicts on the experiments of the campaign in `file`, which `command` began: on those with all of their
/// runs. `None` if the command is not one of experiments.
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
        .map(|plan| plan.judged(&args, campaign.runs()));
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
    /// The report as text: title, verdict, checks and table.
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
