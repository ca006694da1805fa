//! The runs of a campaign by group of settings, load, engine and round. Engines have the order of the command of
//! the campaign. Everything else has the order of its first appearance in the file.

use super::record::{CampaignRecord, LoadReport, OperationLatency, Run};
use crate::report::figures::{Spread, throughput};

/// Runs with the same settings.
#[derive(Debug)]
pub(super) struct Group<'a> {
    /// The name of the settings in the campaign.
    pub(super) name: &'a str,
    /// The loads.
    pub(super) loads: Vec<Load<'a>>,
    /// All failures of runs.
    pub(super) failures: Vec<Failed<'a>>,
}

/// A failed run.
#[derive(Debug)]
pub(super) struct Failed<'a> {
    pub(super) run: &'a Run,
    /// Whether a later try passed.
    pub(super) is_mended: bool,
}

/// One load on all engines.
#[derive(Debug)]
pub(super) struct Load<'a> {
    /// Its name, with a number if a run repeats it.
    pub(super) name: String,
    /// Its engines.
    pub(super) engines: Vec<EngineRounds<'a>>,
}

/// One load on one engine.
#[derive(Debug)]
pub(super) struct EngineRounds<'a> {
    /// The engine.
    pub(super) name: &'a str,
    /// Its number in the campaign, which determines its look in all plots.
    pub(super) series: usize,
    /// The rounds.
    pub(super) rounds: Vec<Round<'a>>,
}

/// One round of one load on one engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round<'a> {
    pub(super) run: &'a Run,
    pub(super) report: &'a LoadReport,
}

/// Groups the runs of `campaign`. Runs with neither reports nor a failure make no group.
pub(super) fn digest(campaign: &CampaignRecord) -> Vec<Group<'_>> {
    let engines = engines(campaign);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in &campaign.runs {
        let group = run.group.as_deref().unwrap_or_default();
        let group = entry(
            &mut groups,
            |found| found.name == group,
            || Group {
                name: group,
                loads: Vec::new(),
                failures: Vec::new(),
            },
        );
        if run.failed.is_some() {
            let is_mended = run.label.is_some()
                && campaign
                    .runs
                    .iter()
                    .any(|other| other.failed.is_none() && other.label == run.label);
            group.failures.push(Failed { run, is_mended });
        }
        let engine = run.engine_name();
        let series = engines.iter().position(|&found| found == engine);
        let series = series.unwrap_or_default();
        for (position, report) in run.reports.iter().enumerate() {
            let load = load_name(run, position);
            let load = entry(
                &mut group.loads,
                |found| found.name == load,
                || Load {
                    name: load.clone(),
                    engines: Vec::new(),
                },
            );
            let of_engine = entry(
                &mut load.engines,
                |found| found.series == series,
                || EngineRounds {
                    name: engine,
                    series,
                    rounds: Vec::new(),
                },
            );
            of_engine.rounds.push(Round { run, report });
        }
    }
    groups.retain(|group| !group.loads.is_empty() || !group.failures.is_empty());
    for load in groups.iter_mut().flat_map(|group| &mut group.loads) {
        load.engines.sort_by_key(|engine| engine.series);
    }
    groups
}

/// The engines of a campaign. Ratios are those of the first engine to each other one, also if the first has failed.
///
/// They have the order of the command, which its own output uses, too. Others follow in the order of the first
/// round, failed runs included: later rounds may begin with another engine.
pub(super) fn engines(campaign: &CampaignRecord) -> Vec<&str> {
    let mut words = campaign.command.split_whitespace();
    let named = words.find(|&word| word == "--engines").and(words.next());
    let named = named.into_iter().flat_map(|names| names.split(','));
    let is_first = |run: &&Run| run.round.unwrap_or_default() == 0;
    let first = campaign.runs.iter().filter(is_first);
    let runs = first.chain(&campaign.runs).map(Run::engine_name);
    let mut engines = Vec::new();
    for engine in named.chain(runs) {
        if !engine.is_empty() && !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    engines
}

/// The name of the report at `position`, with a number if earlier reports have the same name.
fn load_name(run: &Run, position: usize) -> String {
    let name = |report: &LoadReport| report.name.clone().unwrap_or_else(|| "load".to_owned());
    let mut before = run.reports.iter().take(position + 1).map(name).rev();
    let own = before.next().unwrap_or_default();
    match before.filter(|earlier| *earlier == own).count() {
        0 => own,
        earlier => format!("{own}, time {}", earlier + 1),
    }
}

/// The element of `all` that `is` finds, or a `new` one.
fn entry<T>(all: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let position = all.iter().position(is).unwrap_or_else(|| {
        all.push(new());
        all.len() - 1
    });
    &mut all[position]
}

impl<'a> EngineRounds<'a> {
    /// A figure over the rounds that have it.
    pub(super) fn spread(&self, figure: impl Fn(&LoadReport) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| figure(round.report)))
    }

    /// The median of a figure.
    pub(super) fn median(&self, figure: impl Fn(&LoadReport) -> Option<f64>) -> Option<f64> {
        self.spread(figure).map(|spread| spread.median)
    }

    /// The round with the median throughput (the slower of two). Figures without a median are those of this round.
    pub(super) fn middle(&self) -> Round<'a> {
        let mut rounds = self.rounds.clone();
        let rate = |round: &Round<'_>| round.report.rate().unwrap_or_default();
        rounds.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        // Every engine here has a round.
        rounds[(rounds.len() - 1) / 2]
    }

    /// The kinds of operation of the median round.
    pub(super) fn kinds(&self) -> &'a [OperationLatency] {
        self.middle()
            .report
            .operations
            .as_deref()
            .unwrap_or_default()
    }
}

impl LoadReport {
    /// Operations per second for comparisons: with settling, or without it if the load only reads or the file lacks
    /// it.
    pub(super) fn rate(&self) -> Option<f64> {
        let settled = self.settled_ops_per_second.or(self.ops_per_second)?;
        let name = self.name.as_deref().unwrap_or_default();
        let alone = self.ops_per_second.unwrap_or(settled);
        Some(throughput(name, alone, settled))
    }

    /// Bytes that the process wrote per user byte, if the load has a write amplification.
    pub(super) fn write_ratio(&self) -> Option<f64> {
        self.per_user_byte(self.process_written_bytes?)
    }

    /// Bytes that the process read by system calls per user byte, if the load has a write amplification.
    pub(super) fn read_ratio(&self) -> Option<f64> {
        self.per_user_byte(self.process_read_bytes?)
    }

    /// Bytes that the process read by system calls per operation.
    pub(super) fn read_bytes_per_op(&self) -> Option<f64> {
        self.per_op(self.process_read_bytes?)
    }

    /// Bytes written per user byte by the engine's own count.
    pub(super) fn own_write_ratio(&self) -> Option<f64> {
        self.per_user_byte(self.own()?.written_bytes?)
    }

    /// Bytes read per user byte by the engine's own count, gets and background work together.
    pub(super) fn own_read_ratio(&self) -> Option<f64> {
        self.per_user_byte(self.own()?.read_bytes?)
    }

    /// Bytes read per operation by the engine's own count.
    pub(super) fn own_read_bytes_per_op(&self) -> Option<f64> {
        self.per_op(self.own()?.read_bytes?)
    }

    /// Whether the load wrote anything.
    pub(super) fn writes(&self) -> bool {
        self.user_bytes.is_some_and(|bytes| bytes > 0.0)
    }

    /// The report of an engine with its own counters, which it reports by purpose. Reports of other engines have
    /// the kernel's count instead.
    fn own(&self) -> Option<&Self> {
        let io_stats = self.io_stats.as_ref()?;
        (!io_stats.is_empty()).then_some(self)
    }

    fn per_user_byte(&self, bytes: f64) -> Option<f64> {
        self.write_amplification?;
        self.user_bytes
            .filter(|&user| user > 0.0)
            .map(|user| bytes / user)
    }

    fn per_op(&self, bytes: f64) -> Option<f64> {
        let ops = self.ops.filter(|&ops| ops > 0.0)?;
        Some(bytes / ops)
    }
}
