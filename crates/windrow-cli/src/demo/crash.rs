//! The second load: it is killed in the middle, and the database is checked.
//!
//! A child process of the same program loads the input again, in batches of several files whose
//! contents all begin with the batch's tag. It prints the number of each batch when the store has
//! acknowledged it. When half of them are acknowledged, the parent kills it, reopens the store,
//! and checks:
//! C1. every batch whose number was printed is present, with the content of every file;
//! C2. every other batch is present as a whole, or absent;
//! C3. the batches that are present are a prefix of all, in their order.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdin, Command, Stdio};
use std::time::Instant;

use clap::Args;
use windrow::{Batch, Db, Error, Keyspace, Result};

use super::check::Checks;
use super::input::Input;
use super::options;
use super::report::Report;
use crate::files;
use crate::outcome::Outcome;
use crate::output::Output;
use crate::text::{escape, human_count};

/// The keyspace of the second load.
const KEYSPACE: &str = "second";

/// A batch is closed at so many files or bytes. The input is repeated until there are enough
/// batches for a kill to fall between them.
const BATCH_FILES: usize = 16;
const BATCH_BYTES: u64 = 512 << 10;
const BATCHES_MIN: usize = 200;

/// Arguments of the child process.
#[derive(Debug, Args)]
pub(crate) struct WriterArgs {
    /// Folder of the database
    #[arg(long)]
    db: PathBuf,

    /// Bytes of the input, from which the options follow
    #[arg(long)]
    input_bytes: u64,
}

/// A batch of the plan: keys, and the files that hold their contents.
type Planned = Vec<(Vec<u8>, OsString)>;

/// The prefix of every content in batch `number`.
fn tag(number: usize) -> String {
    format!("batch {number:08}\n")
}

/// The batches of the second load: the files of the input, repeated until there are enough batches. Keys
/// begin with the number of the repetition.
fn plan(input: &Input) -> Vec<Planned> {
    let mut batches = Vec::new();
    let mut batch = Planned::new();
    let mut bytes = 0;
    let mut round = 0;
    // An input has at least one file, so every round adds a batch.
    while batches.len() < BATCHES_MIN {
        for file in &input.files {
            let key = [format!("{round:04}/").as_bytes(), &file.key].concat();
            batch.push((key, file.path.clone().into_os_string()));
            bytes += file.bytes;
            if batch.len() == BATCH_FILES || bytes >= BATCH_BYTES {
                batches.push(std::mem::take(&mut batch));
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        round += 1;
    }
    batches
}

/// Runs the second load in a child, kills it, reopens the database and checks C1 to C3.
pub(super) fn survive(
    folder: &Path,
    input: &Input,
    report: &mut Report,
    checks: &mut Checks,
    output: &mut Output,
) -> Result<Db> {
    let batches = plan(input);
    let acknowledged = load_and_kill(folder, input.bytes, &batches)?;
    output.line_now(format_args!(
        "kill       a second load of {} batches after {} were acknowledged",
        human_count(batches.len() as u64),
        human_count(acknowledged as u64),
    ))?;

    let start = Instant::now();
    let db = Db::open(folder, options(input.bytes))?;
    let reopened_seconds = start.elapsed().as_secs_f64();
    let keyspace = db.keyspace(KEYSPACE)?;
    let mut whole = 0;
    let mut gap = false;
    for (number, batch) in batches.iter().enumerate() {
        let present = entries_present(&keyspace, number, batch, checks)?;
        let name = format!("batch {number} of the second load");
        if number < acknowledged {
            checks.check(present == batch.len(), || {
                format!("{name}: acknowledged, but only {present} entries are present") // C1
            });
            report.recovered += u64::from(present == batch.len());
        } else {
            checks.check(present == 0 || present == batch.len(), || {
                format!("{name}: {present} of {} entries are present", batch.len()) // C2
            });
        }
        checks.check(present == 0 || !gap, || {
            format!("{name}: present, but an earlier one is not") // C3
        });
        gap |= present == 0;
        whole += usize::from(present == batch.len());
    }
    report.acknowledged = acknowledged as u64;
    output.line_now(format_args!(
        "reopen     in {reopened_seconds:.3} s: {} of {} acknowledged batches whole, {} later ones",
        human_count(report.recovered),
        human_count(report.acknowledged),
        whole.saturating_sub(acknowledged),
    ))?;
    Ok(db)
}

/// How many entries of `batch` are present. Each must have the content that was written.
fn entries_present(
    keyspace: &Keyspace,
    number: usize,
    batch: &Planned,
    checks: &mut Checks,
) -> Result<usize> {
    let tag = tag(number);
    let mut present = 0;
    let mut value = Vec::new();
    for (key, path) in batch {
        if !keyspace.get_into(key, &mut value)? {
            continue;
        }
        present += 1;
        let content = files::read(Path::new(path))?;
        let holds = value.strip_prefix(tag.as_bytes()) == Some(content.as_slice());
        checks.check(holds, || {
            format!("{}: not the content of batch {number}", escape(key))
        });
    }
    Ok(present)
}

/// The child process, which does not outlive this.
struct Child(process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        // Both do nothing after its end. If they fail, nothing is left to report to.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the child, kills it when half of the batches are acknowledged, and returns how many batches
/// were.
fn load_and_kill(folder: &Path, input_bytes: u64, batches: &[Planned]) -> Result<usize> {
    let failed = |error| Error::io("run a second process of", Path::new("windrow"), error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .arg("demo-writer")
        .arg("--db")
        .arg(folder)
        .arg("--input-bytes")
        .arg(input_bytes.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(Child)
        .map_err(failed)?;
    let (Some(stdin), Some(stdout)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(failed(io::Error::other("it has no standard streams")));
    };
    // If this fails, the child has ended, or ends because its input does.
    let stdin = send(stdin, batches);
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    let mut acknowledged = 0;
    let mut killed = false;
    loop {
        line.clear();
        lines.read_until(b'\n', &mut line).map_err(failed)?;
        // Numbers come one by one and in order; one without its line end was cut off.
        if line != format!("{acknowledged}\n").as_bytes() {
            break;
        }
        acknowledged += 1;
        if !killed && acknowledged >= batches.len().div_ceil(2) {
            child.0.kill().map_err(failed)?;
            killed = true;
        }
    }
    drop((stdin, lines));
    let status = child.0.wait().map_err(failed)?;
    if !killed {
        let message = format!("the second load ended before it was killed ({status})");
        return Err(failed(io::Error::other(message)));
    }
    Ok(acknowledged)
}

/// Sends the plan: a line of JSON per batch, then an empty line. Returns the pipe, still open.
fn send(stdin: ChildStdin, batches: &[Planned]) -> io::Result<ChildStdin> {
    let mut writer = io::BufWriter::new(stdin);
    for batch in batches {
        serde_json::to_writer(&mut writer, batch)?;
        writer.write_all(b"\n")?;
    }
    writer.write_all(b"\n")?;
    Ok(writer.into_inner()?)
}

/// The child: writes the batches that standard input names, prints the number of each when it is
/// acknowledged, and then waits until it is killed.
pub(crate) fn write_until_killed(args: &WriterArgs) -> Result<Outcome> {
    let failed = |error| Error::io("talk to", Path::new("the parent process"), error);
    let db = Db::open(&args.db, options(args.input_bytes))?;
    let keyspace = db.keyspace(KEYSPACE)?;
    let mut stdin = io::stdin().lock();
    let batches = receive(&mut stdin).map_err(failed)?;
    let mut stdout = io::stdout().lock();
    let mut batch = Batch::new();
    for (number, planned) in batches.iter().enumerate() {
        batch.clear();
        for (key, path) in planned {
            let mut value = tag(number).into_bytes();
            value.extend(files::read(Path::new(path))?);
            batch.insert(&keyspace, key, &value)?;
        }
        db.write(&batch)?;
        stdout
            .write_all(format!("{number}\n").as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(failed)?;
    }
    // The parent closes the pipe only after the kill, so this returns only if the parent has died.
    stdin.read_to_end(&mut Vec::new()).map_err(failed)?;
    Ok(Outcome::Failed)
}

/// Reads the plan that [`send`] sent.
fn receive(stdin: &mut impl BufRead) -> io::Result<Vec<Planned>> {
    let mut batches = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        if stdin.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.trim_end().is_empty() {
            return Ok(batches);
        }
        batches.push(serde_json::from_str(&line)?);
    }
}
