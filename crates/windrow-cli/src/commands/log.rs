//! `log`: the job log of a database, which another process may write.
//!
//! The database renames its file `LOG` to `LOG.old` when it is long, and begins a new one. An open file stays the same file
//! through that: so its end is read before the new one.
//!
//! Concurrency: one thread; the files may grow meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};
use windrow::vfs::{self, OpenMode};
use windrow::{Error, ErrorKind, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::{self, DbArgs};

/// The file of the log, and the one before it.
const LOG: &str = "LOG";
const OLD_LOG: &str = "LOG.old";

/// With `--follow`, the log is read again after this time.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints a line for each event since the log began: the time, what happened, and its fields; times are in seconds. \
The log is kept within Options::job_log_bytes. It may lack the last lines before a crash. With --json, each event is \
an object.

With --follow the command waits for more lines. Ctrl-C ends it.

Examples:
  windrow log shop.db
  windrow log shop.db --last 20 --follow
  windrow log shop.db --json")]
pub(crate) struct LogArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Print only the last lines of those that are there
    #[arg(long, value_name = "N")]
    last: Option<usize>,

    /// Wait for more lines
    #[arg(long)]
    follow: bool,
}

pub(crate) fn run(args: &LogArgs, output: &mut Output) -> Result<Outcome> {
    let folder = &args.of.db;
    let mut reader = Reader::new(folder);
    let mut lines = Vec::new();
    read_old(folder, &mut lines)?;
    reader.read(&mut lines)?;
    let is_there = !lines.is_empty() || reader.file.is_some();
    if !is_there && !args.follow {
        let message = format!("{} has no job log", folder.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    let passed = args.last.map_or(0, |last| lines.len().saturating_sub(last));
    show(&lines[passed..], output)?;
    if args.follow {
        loop {
            thread::sleep(LOOK_INTERVAL);
            lines.clear();
            reader.read(&mut lines)?;
            show(&lines, output)?;
        }
    }
    Ok(Outcome::Done)
}

fn show(lines: &[String], output: &mut Output) -> Result<()> {
    for line in lines {
        output.object(&parsed(line))?;
        output.line(line)?;
    }
    output.flush()
}

/// The lines of the log before the present one.
fn read_old(folder: &Path, lines: &mut Vec<String>) -> Result<()> {
    let path = folder.join(OLD_LOG);
    let mut rest = Vec::new();
    if let Some(mut file) = LogFile::open(&path)? {
        file.read_lines(&mut rest, lines)?;
        lines.extend(cleaned(&rest));
    }
    Ok(())
}

/// Reads the log as it grows.
struct Reader {
    path: PathBuf,
    file: Option<LogFile>,
    /// The begin of a line whose end is not written yet.
    rest: Vec<u8>,
}

impl Reader {
    fn new(folder: &Path) -> Self {
        Self {
            path: folder.join(LOG),
            file: None,
            rest: Vec::new(),
        }
    }

    /// Adds the lines that are new.
    fn read(&mut self, lines: &mut Vec<String>) -> Result<()> {
        if self.file.is_none() {
            self.file = LogFile::open(&self.path)?;
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.read_lines(&mut self.rest, lines)?;
        // A shorter file of that name is the next one.
        let Some(mut present) = LogFile::open(&self.path)? else {
            return Ok(());
        };
        if present.length()? < file.length()? {
            file.read_lines(&mut self.rest, lines)?;
            lines.extend(cleaned(&std::mem::take(&mut self.rest)));
            present.read_lines(&mut self.rest, lines)?;
            self.file = Some(present);
        }
        Ok(())
    }
}

/// A file of the log, and how far it is read.
struct LogFile {
    file: Arc<dyn vfs::File>,
    path: PathBuf,
    place: u64,
}

impl LogFile {
    /// Opens the file `path`, if it is there.
    fn open(path: &Path) -> Result<Option<Self>> {
        let opened = store::files(path)?.open(path, OpenMode::Read);
        if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let file = opened.map_err(|error| Error::io("open", path, error))?;
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            place: 0,
        }))
    }

    fn length(&self) -> Result<u64> {
        let length = self.file.length();
        length.map_err(|error| Error::io("read the length of", &self.path, error))
    }

    /// Adds the lines that are complete to `lines`. The last one waits in `rest` for its end.
    fn read_lines(&mut self, rest: &mut Vec<u8>, lines: &mut Vec<String>) -> Result<()> {
        let mut buffer = [0; 8 << 10];
        loop {
            let count = vfs::read_up_to_end_at(&*self.file, &mut buffer, self.place)
                .map_err(|error| Error::io("read", &self.path, error))?;
            rest.extend(&buffer[..count]);
            self.place += count as u64;
            if count < buffer.len() {
                break;
            }
        }
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
            let complete: Vec<u8> = rest.drain(..=end).collect();
            lines.extend(complete.split(|byte| *byte == b'\n').filter_map(cleaned));
        }
        Ok(())
    }
}

/// A line without the zeros and other bytes that a crash leaves; `None` if nothing is left.
fn cleaned(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let text: String = text.chars().filter(|it| !it.is_control()).collect();
    (!text.is_empty()).then_some(text)
}

/// The fields of a line; the line as it is if a crash has torn it.
fn parsed(line: &str) -> Map<String, Value> {
    fields(line).unwrap_or_else(|| {
        let mut torn = Map::new();
        torn.insert("line".to_owned(), line.into());
        torn
    })
}

fn fields(line: &str) -> Option<Map<String, Value>> {
    let (time, line) = line.split_once(' ')?;
    let (event, mut rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut fields = Map::new();
    fields.insert("time".to_owned(), time.into());
    fields.insert("event".to_owned(), event.into());
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(behind).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = behind.get(values.byte_offset()..)?;
        rest = rest.strip_prefix(' ').unwrap_or(rest);
        fields.insert(name.to_owned(), value);
    }
    time.ends_with('Z').then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::parsed;
    use serde_json::{Value, json};

    #[test]
    fn a_line_is_parsed_into_its_fields() {
        for (line, expected) in [
            (
                "2026-11-27T00:04:36.123Z flush_ended keyspace=\"a \\\"b\\\" c=d\" entries=7 duration=0.500000",
                json!({"time": "2026-11-27T00:04:36.123Z", "event": "flush_ended",
                    "keyspace": "a \"b\" c=d", "entries": 7, "duration": 0.5}),
            ),
            (
                "2026-11-27T00:04:36.123Z no_space",
                json!({"time": "2026-11-27T00:04:36.123Z", "event": "no_space"}),
            ),
            ("torn line", json!({"line": "torn line"})),
            ("Z a b=", json!({"line": "Z a b="})),
            ("Z a b=\"c", json!({"line": "Z a b=\"c"})),
        ] {
            assert_eq!(Value::Object(parsed(line)), expected, "{line}");
        }
    }
}
