//! A campaign: runs in child processes, each written down when it has ended, so that a campaign that
//! was broken off goes on where it stopped.
//!
//! The file is JSON lines: first a [`Header`], then a [`Run`] a line. A run is known by its label; a
//! campaign that is begun again leaves out what its file has. A last line that is not whole is what a
//! killed campaign was writing, and is written anew.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind as IoErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use windrow::{Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::host::Host;
use crate::{Report, exit_code};

/// The first line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// What was asked for, as on the command line.
    pub command: String,
    /// A digest of the program that ran it, as another build may do other things.
    pub program: String,
    /// Where it ran.
    pub machine: Host,
    /// When it began, in the form of RFC 3339.
    pub began: String,
}

impl Header {
    /// The header of a campaign that this program begins here and now.
    ///
    /// # Errors
    /// `Io` where the program cannot be read.
    pub fn now(command: String) -> Result<Self> {
        Ok(Self {
            command,
            program: digest_of_this_program()?,
            machine: Host::here(),
            began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        })
    }
}

/// XXH3 of the program's file, in hexadecimal digits.
fn digest_of_this_program() -> Result<String> {
    let path = program()?;
    let bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
    Ok(format!("{:016x}", xxh3_64(&bytes)))
}

/// The file of this program.
fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("find", Path::new("this program"), error))
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
        format!("{} run {}", self.program, self.arguments.join(" "))
    }
}

/// The first line, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct FirstLine {
    campaign: Header,
}

/// A campaign under way.
#[derive(Debug)]
pub struct Campaign {
    header: Header,
    runs: Vec<Run>,
    file: Option<(PathBuf, File)>,
}

impl Campaign {
    /// Goes on with the campaign in `file`, or begins it there; without a file it is nowhere but here.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is no campaign, or that of another command or another build of this
    /// program; `Corruption` for a line that cannot be read; what the file system reports.
    pub fn open(file: Option<&Path>, header: Header) -> Result<Self> {
        let mut campaign = Self {
            header,
            runs: Vec::new(),
            file: None,
        };
        let Some(path) = file else {
            return Ok(campaign);
        };
        let failed = |error| Error::io("open", path, error);
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let mut file = options.map_err(failed)?;
        let read = Read::of(path, &file)?;
        if let Some(header) = read.header {
            if header.command != campaign.header.command {
                return Err(Error::invalid_argument(format!(
                    "{} has the campaign of another command: {}",
                    path.display(),
                    header.command
                )));
            }
            if header.program != campaign.header.program {
                return Err(Error::invalid_argument(format!(
                    "{} has a campaign that another build of this program began; what the two measure cannot be \
                     compared",
                    path.display(),
                )));
            }
            campaign.header = header;
        }
        campaign.runs = read.runs;
        // What was being written when the campaign was broken off goes.
        file.set_len(read.whole).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        campaign.file = Some((path.to_owned(), file));
        if read.whole == 0 {
            let campaign_line = FirstLine {
                campaign: campaign.header.clone(),
            };
            campaign.write(&campaign_line)?;
        }
        Ok(campaign)
    }

    /// Reads the campaign in `path`, which may still be under way.
    ///
    /// # Errors
    /// As [`open`](Self::open); `InvalidArgument` for an empty file.
    pub fn read(path: &Path) -> Result<(Header, Vec<Run>)> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        let read = Read::of(path, &file)?;
        let header = read.header.ok_or_else(|| no_campaign(path))?;
        Ok((header, read.runs))
    }

    /// What it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What has been run.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Whether the run of this label has been done.
    pub fn has(&self, label: &str) -> bool {
        self.runs.iter().any(|run| run.label == label)
    }

    /// Does the run that `order` asks for, in a new folder below `parent` or where temporary files are,
    /// unless it has been done; `each` gets every report as soon as it is there.
    ///
    /// # Errors
    /// What stops the child; `Corruption` where it has read what was not written; `InvalidArgument` where a run of this label had other settings.
    pub fn run(
        &mut self,
        order: &Order,
        parent: Option<&Path>,
        each: impl FnMut(&Report),
    ) -> Result<&Run> {
        if let Some(place) = self.runs.iter().position(|run| run.label == order.label) {
            let run = &self.runs[place];
            if run.command != order.command() {
                return Err(Error::invalid_argument(format!(
                    "the campaign's run {} was: {}",
                    run.label, run.command
                )));
            }
            return Ok(run);
        }
        let run = Run {
            label: order.label.clone(),
            engine: order.engine.clone(),
            round: order.round,
            group: order.group.clone(),
            command: order.command(),
            reports: child(order, parent, each)?,
        };
        self.write(&run)?;
        self.runs.push(run);
        Ok(&self.runs[self.runs.len() - 1])
    }

    /// Adds a line to the file.
    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let failed = |error| Error::io("write to", path, error);
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(failed)
    }
}

/// What a file has.
#[derive(Default)]
struct Read {
    header: Option<Header>,
    runs: Vec<Run>,
    /// Bytes of the lines that are whole.
    whole: u64,
}

impl Read {
    fn of(path: &Path, file: &File) -> Result<Self> {
        let mut read = Self::default();
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        loop {
            line.clear();
            let length = match reader.read_line(&mut line) {
                Ok(length) => length,
                Err(error) if error.kind() == IoErrorKind::InvalidData => {
                    return Err(no_campaign(path));
                }
                Err(error) => return Err(Error::io("read", path, error)),
            };
            if !line.ends_with('\n') {
                // Only what begins as a campaign does may be cut.
                if read.whole == 0 && length > 0 && !line.starts_with("{\"campaign\"") {
                    return Err(no_campaign(path));
                }
                return Ok(read);
            }
            if read.header.is_none() {
                let first = serde_json::from_str::<FirstLine>(&line);
                read.header = Some(first.map_err(|_| no_campaign(path))?.campaign);
            } else {
                let run = serde_json::from_str(&line).map_err(|error| {
                    let message = format!("a run of the campaign cannot be read: {error}");
                    Error::corruption(&path.display().to_string(), read.whole, message)
                })?;
                read.runs.push(run);
            }
            read.whole += length as u64;
        }
    }
}

fn no_campaign(path: &Path) -> Error {
    Error::invalid_argument(format!("{} is not the file of a campaign", path.display()))
}

/// Runs the loads of `order` in a process of its own, this program with `run`, and a new folder, which
/// goes when the process is over.
fn child(
    order: &Order,
    parent: Option<&Path>,
    mut each: impl FnMut(&Report),
) -> Result<Vec<Report>> {
    let failed = |error| Error::io("run", Path::new(&order.label), error);
    let mut maker = tempfile::Builder::new();
    let folder = maker.prefix("windrow-campaign-");
    let folder = match parent {
        Some(parent) => folder.tempdir_in(parent),
        None => folder.tempdir(),
    };
    let folder = folder.map_err(failed)?;
    let mut arguments: Vec<OsString> = vec!["run".into(), "--json".into(), "--db".into()];
    arguments.push(folder.path().into());
    arguments.extend(order.arguments.iter().map(OsString::from));
    reports_of(
        Command::new(program()?).args(arguments),
        &order.label,
        &mut each,
    )
}

/// A process that is over when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Where it has ended by itself, neither does anything.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Runs `command`, which writes a report a line. It is over when this returns, whatever the outcome.
fn reports_of(
    command: &mut Command,
    label: &str,
    each: &mut dyn FnMut(&Report),
) -> Result<Vec<Report>> {
    let failed = |error| Error::io("run", Path::new(label), error);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Ended(command.spawn().map_err(failed)?);
    let mut reports = Vec::new();
    if let Some(stdout) = child.0.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(failed)?;
            let report = serde_json::from_str(&line).map_err(|error| failed(error.into()))?;
            each(&report);
            reports.push(report);
        }
    }
    let status = child.0.wait().map_err(failed)?;
    if status.code() == Some(i32::from(exit_code(ErrorKind::Corruption))) {
        // It has said what it is itself.
        return Err(Error::corruption(
            label,
            0,
            "what was read is not what was written",
        ));
    }
    if !status.success() {
        return Err(failed(std::io::Error::other(status.to_string())));
    }
    Ok(reports)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_child_whose_line_cannot_be_read_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("process");
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\"; echo nonsense; exec sleep 600"])
            .arg(&note);
        reports_of(&mut command, "a run", &mut |_| {}).unwrap_err();
        let process = fs::read_to_string(&note).unwrap();
        let entry = Path::new("/proc").join(process.trim());
        assert!(!entry.exists(), "{}", entry.display());
    }

    #[test]
    fn a_child_that_fails_is_an_error_that_names_the_run() {
        for (code, kind) in [("2", ErrorKind::Io), ("3", ErrorKind::Corruption)] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exit {code}")]);
            let error = reports_of(&mut command, "a run", &mut |_| {}).unwrap_err();
            assert!(error.to_string().contains("a run"), "{error}");
            assert_eq!(error.kind(), kind);
        }
    }
}
