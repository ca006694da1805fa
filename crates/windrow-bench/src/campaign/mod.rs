//! A campaign: runs in child processes, each written down when it has ended, so that a campaign that
//! was broken off goes on where it stopped.
//!
//! The file is JSON lines: first a [`Header`], then a [`Run`] or a [`Failure`] a line. A run is known by
//! its label; a campaign that is begun again leaves out the runs that its file has, and tries again what
//! failed. A last line that is not whole is what a killed campaign was writing, and is written anew.
//!
//! 1. All runs of a campaign are of one command and the files that it names, one build, one machine and one place. What is whole, any build
//!    may look at.
//! 2. What fails leaves a line, whatever a later try finds.
//! 3. One process at a time goes on with a campaign.

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
use crate::Report;
use crate::campaign::host::Host;

/// The first line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// What was asked for, as on the command line.
    pub command: String,
    /// A digest of the program that ran it, as another build may do other things.
    pub program: String,
    /// The version that the program says it is.
    #[serde(default)]
    pub version: String,
    /// A digest of the files that its runs read, as they may change between two of them.
    #[serde(default)]
    pub inputs: String,
    /// Where it ran.
    pub machine: Host,
    /// The folder that the runs have theirs in; empty before the first.
    #[serde(default)]
    pub folder: String,
    /// When it began, in the form of RFC 3339.
    pub began: String,
}

impl Header {
    /// The header of a campaign that this program begins here and now, whose runs read the files `inputs`.
    ///
    /// # Errors
    /// `Io` where the program or an input cannot be read.
    pub fn now<'a>(command: String, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let inputs = inputs.into_iter().map(digest_of);
        let inputs: Vec<String> = inputs.collect::<Result<_>>()?;
        Ok(Self {
            command,
            program: digest_of(&child::program()?)?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: inputs.join(" "),
            machine: Host::here(),
            folder: String::new(),
            began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        })
    }

    /// That runs of `now` may be added to a campaign with this header. // 1
    fn check(&self, now: &Self) -> Result<()> {
        let refused = |what: String| {
            Err(Error::invalid_argument(format!(
                "the campaign cannot go on: {what}, and what the two measure cannot be compared"
            )))
        };
        if self.program != now.program {
            return refused("another build of this program began it".to_owned());
        }
        if self.inputs != now.inputs {
            return refused("a file that its runs read has changed since it began".to_owned());
        }
        if !self.machine.is_like(&now.machine) {
            return refused(format!(
                "it began on another machine: that was {}, and this is {}",
                self.machine, now.machine
            ));
        }
        if self.folder != now.folder {
            return refused(format!(
                "its runs were in {}, and not in {}",
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

/// What is told while a campaign runs.
pub trait CampaignProgress {
    /// Run `number` of `all` begins.
    fn begins(&mut self, number: usize, all: usize, command: &str);
    /// A load of it has ended.
    fn reports(&mut self, report: &Report);
}

/// A run that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Its name in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Which repetition it was, from 0.
    pub round: u32,
    /// Runs of the same settings belong together.
    pub group: String,
    /// The command line that does the same.
    pub command: String,
    /// A report of each load.
    pub reports: Vec<Report>,
}

/// A run that failed. It may be there several times, and have passed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Which repetition it was, from 0.
    pub round: u32,
    /// Runs of the same settings belong together.
    pub group: String,
    /// The command line that does the same.
    pub command: String,
    /// What happened, and behind which load.
    pub failed: String,
    /// The exit code of the process, where it had one.
    pub exit_code: Option<i32>,
}

/// A run that is wanted.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its name in the campaign.
    pub label: String,
    /// The engine.
    pub engine: String,
    /// Which repetition it is, from 0.
    pub round: u32,
    /// Runs of the same settings belong together.
    pub group: String,
    /// The program's name, for the command line in the record.
    pub program: String,
    /// What the program gets behind `run`: loads and settings.
    pub arguments: Vec<String>,
}

impl Order {
    /// The command line that does the same.
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

    /// That `what` happened, behind the load of the report `last`.
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

/// `words` as a line that a shell takes apart into the same words.
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

/// What has come of a run.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// It is whole.
    Done(&'a Run),
    /// It failed, as the campaign says from now on; others may go on.
    Failed(Error),
}

/// A campaign under way.
#[derive(Debug)]
pub struct Campaign {
    header: Header,
    /// What further runs would be of.
    now: Header,
    runs: Vec<Run>,
    failures: Vec<Failure>,
    lines: Option<Lines>,
}

impl Campaign {
    /// Goes on with the campaign in `file`, or begins it there with its first run; without a file it is
    /// nowhere but here.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is no campaign, or that of another command; `Locked` where another
    /// process goes on with it; `Corruption` for a line that cannot be read; what the file system reports.
    pub fn open(file: Option<&Path>, header: Header) -> Result<Self> {
        let mut campaign = Self {
            now: header.clone(),
            header,
            runs: Vec::new(),
            failures: Vec::new(),
            lines: None,
        };
        if let Some(path) = file {
            let (lines, contents) = Lines::open(path)?;
            if let Some(header) = contents.header {
                if header.command != campaign.now.command {
                    return Err(Error::invalid_argument(format!(
                        "{} has the campaign of another command: {}",
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

    /// The campaign in `file` as it is, to be looked at: another process may go on with it meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is no campaign, or has not begun to be one; `Corruption` for a line that
    /// cannot be read; what the file system reports.
    pub fn read(file: &Path) -> Result<Self> {
        let contents = Contents::read(file)?;
        let header = contents.header.ok_or_else(|| no_campaign(file))?;
        Ok(Self {
            now: header.clone(),
            header,
            runs: contents.runs,
            failures: contents.failures,
            lines: None,
        })
    }

    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The runs that are whole.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The runs that failed, each time that they did, also those that passed later.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether the run of this label has been done.
    pub fn has(&self, label: &str) -> bool {
        self.runs.iter().any(|run| run.label == label)
    }

    /// Does the run that `order` asks for, in a new folder below `parent` or where temporary files are,
    /// unless it has been done; `each` gets every report as soon as it is there.
    ///
    /// # Errors
    /// As [`attempt`](Self::attempt); what has failed in the run.
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

    /// As [`run`](Self::run), but that the run fails is no error: a campaign can go on with others.
    ///
    /// # Errors
    /// What no other run would pass, either. `InvalidArgument` where the campaign's runs were of another build of
    /// this program, on another machine or in another folder, or that of this label had other settings; what the
    /// file system reports.
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

    /// Gets ready for a run below `parent`: the first one settles what all are of. // 1
    fn go_on_in(&mut self, parent: &Path) -> Result<()> {
        let whole = std::fs::canonicalize(parent);
        let whole = whole.map_err(|error| Error::io("find the folder", parent, error))?;
        self.now.folder = whole.display().to_string();
        if !self.header.folder.is_empty() || !self.runs.is_empty() || !self.failures.is_empty() {
            return self.header.check(&self.now);
        }
        if let Some(lines) = &mut self.lines {
            lines.begin(&self.now)?;
        }
        self.header = self.now.clone();
        Ok(())
    }

    /// Adds a line to the file.
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
