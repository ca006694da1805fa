//! A campaign: runs in child processes. The campaign records each run at its end, so the same command resumes a
//! campaign that stopped.
//!
//! The file has JSON lines: a [`Header`], then a [`Run`] or a [`Failure`] per line. A label identifies a run. A
//! resumed campaign skips the runs in its file and retries failed ones. It repeats the run of an incomplete last
//! line.
//!
//! 1. All runs of a campaign have one command, the same input files, one build, one machine and one parent folder.
//!    Any build may read a complete campaign.
//! 2. Each failure leaves a line, also if a later try passes.
//! 3. One process at a time runs a campaign.

pub mod host;

mod child;
mod comparison;
mod lines;
mod rounds;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use windrow::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

pub use self::child::end_with_parent;
pub use self::comparison::{
    Comparison, check_checksums, heading, settings_lines, settings_object, settings_text,
};
pub use self::rounds::{RoundsArgs, parsed_run, run_rounds};

use self::lines::{Contents, Lines, no_campaign};
use crate::campaign::host::Host;
use crate::measure::child_process::program;
use crate::{DeviceArgs, DeviceLimits, Report};

/// The first line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// The command.
    pub command: String,
    /// A digest of the program. Another build may behave differently.
    pub program: String,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// A digest of the input files of its runs.
    #[serde(default)]
    pub inputs: String,
    /// The machine.
    pub machine: Host,
    /// The limits of the device of this folder, if its runs measure on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceLimits>,
    /// The parent of the folders of its runs; empty before the first run.
    #[serde(default)]
    pub folder: String,
    /// The time of its start (RFC 3339).
    pub began: String,
}

impl Header {
    /// The header of a new campaign of this program, with the input files `inputs`.
    ///
    /// # Errors
    /// `Io` if a read of the program or of an input fails.
    pub fn now<'a>(command: String, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let inputs = inputs.into_iter().map(digest_of);
        let inputs: Vec<String> = inputs.collect::<Result<_>>()?;
        Ok(Self {
            command,
            program: digest_of(&program()?)?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: inputs.join(" "),
            machine: Host::here(),
            device: None,
            folder: String::new(),
            began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        })
    }

    /// Checks that a campaign with this header may take runs of `now`. // 1
    fn check(&self, now: &Self) -> Result<()> {
        let refused = |what: String| {
            Err(Error::invalid_argument(format!(
                "the campaign cannot resume: {what}, so the figures are not comparable"
            )))
        };
        if self.program != now.program {
            return refused("another build of this program began it".to_owned());
        }
        if self.inputs != now.inputs {
            return refused("an input file of its runs has changed since its start".to_owned());
        }
        if !self.machine.is_like(&now.machine) {
            return refused(format!(
                "it began on another machine: {}, not {}",
                self.machine, now.machine
            ));
        }
        if self.folder != now.folder {
            return refused(format!(
                "its runs were in {}, not in {}",
                self.folder, now.folder
            ));
        }
        Ok(())
    }
}

/// XXH3 of the file at `path`, in hexadecimal digits.
fn digest_of(path: &Path) -> Result<String> {
    let failed = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let (mut digest, mut chunk) = (Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => return Ok(format!("{:016x}", digest.digest())),
            length => digest.update(&chunk[..length]),
        }
    }
}

/// The listener of a campaign.
pub trait CampaignProgress {
    /// Run `number` of `all` begins.
    fn begins(&mut self, number: usize, all: usize, command: &str);
    /// A load of the run ends.
    fn reports(&mut self, report: &Report);
}

/// A completed run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Its label in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Its round, from 0.
    pub round: u32,
    /// The group of runs with the same settings.
    pub group: String,
    /// The command line of the run.
    pub command: String,
    /// The reports of its loads.
    pub reports: Vec<Report>,
}

/// A failed run. The file has one line for each failure, also if a later try passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its label in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Its round, from 0.
    pub round: u32,
    /// The group of runs with the same settings.
    pub group: String,
    /// The command line of the run.
    pub command: String,
    /// The failure, and the load before it.
    pub failed: String,
    /// The exit code of the process, if any.
    pub exit_code: Option<i32>,
}

/// A requested run.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its label in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Its round, from 0.
    pub round: u32,
    /// The group of runs with the same settings.
    pub group: String,
    /// The name of the program, for the recorded command line.
    pub program: String,
    /// The arguments after `run`: loads and settings.
    pub arguments: Vec<String>,
}

impl Order {
    /// The command line of the run.
    pub fn command(&self) -> String {
        let arguments = self.arguments.iter().map(String::as_str);
        format!("{} run {}", self.program, shell_words(arguments))
    }

    fn run(&self, reports: Vec<Report>) -> Run {
        Run {
            label: self.label.clone(),
            engine: self.engine.clone(),
            round: self.round,
            group: self.group.clone(),
            command: self.command(),
            reports,
        }
    }

    /// The failure `what`, after the load of the report `last`.
    fn failure(&self, what: &str, last: Option<&Report>, exit_code: Option<i32>) -> Failure {
        let place = match last {
            Some(report) => format!("after {}", report.name),
            None => "before the first load ended".to_owned(),
        };
        Failure {
            label: self.label.clone(),
            engine: self.engine.clone(),
            round: self.round,
            group: self.group.clone(),
            command: self.command(),
            failed: format!("{what}, {place}"),
            exit_code,
        }
    }
}

/// `words` as a shell command.
pub fn shell_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+=.,:/@%".contains(c);
    let quoted = words.map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The outcome of a run.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The run passed.
    Done(&'a Run),
    /// The run failed, and the campaign has recorded it. Other runs can continue.
    Failed(Error),
}

/// A campaign that runs.
#[derive(Debug)]
pub struct Campaign {
    header: Header,
    /// The header of further runs.
    now: Header,
    runs: Vec<Run>,
    failures: Vec<Failure>,
    lines: Option<Lines>,
    /// Whether its first run begins with the limits of the device.
    calibrates: bool,
}

impl Campaign {
    /// Resumes the campaign in `file`, or begins it there with its first run. Without a file, the campaign is in
    /// memory only.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is not a campaign or has another command; `Locked` if another process runs
    /// it; `Corruption` for an invalid line; an error of the file system.
    pub fn open(file: Option<&Path>, header: Header) -> Result<Self> {
        let mut campaign = Self {
            now: header.clone(),
            header,
            runs: Vec::new(),
            failures: Vec::new(),
            lines: None,
            calibrates: false,
        };
        if let Some(path) = file {
            let (lines, contents) = Lines::open(path)?;
            if let Some(header) = contents.header {
                if header.command != campaign.now.command {
                    return Err(Error::invalid_argument(format!(
                        "{} has a campaign with another command: {}",
                        path.display(),
                        header.command
                    )));
                }
                campaign.header = header;
            }
            campaign.runs = contents.runs;
            campaign.failures = contents.failures;
            campaign.lines = Some(lines);
        }
        Ok(campaign)
    }

    /// Reads the campaign in `file`. Another process may run it at the same time.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is not a campaign or has no header yet; `Corruption` for an invalid line;
    /// an error of the file system.
    pub fn read(file: &Path) -> Result<Self> {
        let contents = Contents::read(file)?;
        let header = contents.header.ok_or_else(|| no_campaign(file))?;
        Ok(Self {
            now: header.clone(),
            header,
            runs: contents.runs,
            failures: contents.failures,
            lines: None,
            calibrates: false,
        })
    }

    /// Measures the limits of the device before the first run, if `runs_on_device`.
    #[must_use]
    pub fn calibrated(mut self, runs_on_device: bool) -> Self {
        self.calibrates = runs_on_device;
        self
    }

    /// The limits of the device as a line, if the campaign has them.
    pub fn device_line(&self) -> Option<String> {
        let limits = self.header.device?;
        Some(format!("device: {}", limits.text()))
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The runs that passed.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// All failures, also of runs that passed later.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether the run with this label has passed.
    pub fn has(&self, label: &str) -> bool {
        self.runs.iter().any(|run| run.label == label)
    }

    /// Runs `order` in a new folder below `parent`, or in the folder for temporary files, unless the campaign has
    /// the run. Calls `each` with every report as soon as it exists.
    ///
    /// # Errors
    /// As [`attempt`](Self::attempt); the failure of the run.
    pub fn run(
        &mut self,
        order: &Order,
        parent: Option<&Path>,
        each: impl FnMut(&Report),
    ) -> Result<&Run> {
        match self.attempt(order, parent, each)? {
            Outcome::Done(run) => Ok(run),
            Outcome::Failed(error) => Err(error),
        }
    }

    /// As [`run`](Self::run), but a failed run is no error: the campaign can continue with other runs.
    ///
    /// # Errors
    /// A failure that affects all runs. `InvalidArgument` if the runs of the campaign were of another build,
    /// machine or folder, or if the run of this label had other settings; an error of the file system.
    pub fn attempt(
        &mut self,
        order: &Order,
        parent: Option<&Path>,
        each: impl FnMut(&Report),
    ) -> Result<Outcome<'_>> {
        if let Some(place) = self.runs.iter().position(|run| run.label == order.label) {
            let run = &self.runs[place];
            if run.command != order.command() {
                return Err(Error::invalid_argument(format!(
                    "the campaign's run {} was: {}",
                    run.label, run.command
                )));
            }
            return Ok(Outcome::Done(run));
        }
        let temporary = std::env::temp_dir();
        let parent = parent.unwrap_or(&temporary);
        self.go_on_in(parent)?;
        match child::run(order, parent, each)? {
            Ok(reports) => {
                let run = order.run(reports);
                self.write(&run)?;
                self.runs.push(run);
                Ok(Outcome::Done(&self.runs[self.runs.len() - 1]))
            }
            Err((failure, error)) => {
                self.write(&failure)?;
                self.failures.push(failure);
                Ok(Outcome::Failed(error))
            }
        }
    }

    /// Prepares a run below `parent`. The first run fixes build, machine and folder of all runs. // 1
    fn go_on_in(&mut self, parent: &Path) -> Result<()> {
        let whole = std::fs::canonicalize(parent);
        let whole = whole.map_err(|error| Error::io("find the folder", parent, error))?;
        self.now.folder = whole.display().to_string();
        if !self.header.folder.is_empty() || !self.runs.is_empty() || !self.failures.is_empty() {
            return self.header.check(&self.now);
        }
        if self.calibrates {
            self.now.device = Some(DeviceArgs::of(parent).measure()?);
        }
        if let Some(lines) = &mut self.lines {
            lines.begin(&self.now)?;
        }
        self.header = self.now.clone();
        Ok(())
    }

    /// Appends a line to the file.
    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        match &mut self.lines {
            Some(lines) => lines.add(line),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        let words = ["fillseq,ycsb-a", "--db", "/my dir/*", "", "it's", "50%"];
        let line = shell_words(words.into_iter());
        assert_eq!(line, r"fillseq,ycsb-a --db '/my dir/*' '' 'it'\''s' 50%");
    }
}
