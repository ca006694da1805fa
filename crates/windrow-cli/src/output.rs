//! Standard output: lines for people or JSON for programs.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use windrow::{Error, Result};

/// Where a command says what it found.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    stdout: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
        }
    }

    /// Writes a line for people; nothing under `--json`.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        if self.json {
            return Ok(());
        }
        writeln!(self.stdout, "{line}").map_err(failed)
    }

    /// Writes a line for people and shows it at once.
    pub(crate) fn line_now(&mut self, line: impl Display) -> Result<()> {
        self.line(line)?;
        self.flush()
    }

    /// Writes an object on a line of its own under `--json`; nothing for people.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<()> {
        if !self.json {
            return Ok(());
        }
        serde_json::to_writer(&mut self.stdout, object)
            .map_err(|error| failed(io::Error::from(error)))?;
        self.stdout.write_all(b"\n").map_err(failed)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.stdout.write_all(bytes).map_err(failed)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stdout.flush().map_err(failed)
    }

    /// Says `note` on standard error.
    pub(crate) fn note(note: impl Display) {
        // There is nowhere left to report that reporting failed.
        drop(writeln!(io::stderr(), "windrow: {note}"));
    }

    /// Says on standard error what went wrong, and under `--json` in an object, too.
    pub(crate) fn error(&mut self, error: &Error) {
        Self::note(error);
        let kind = format!("{:?}", error.kind());
        let object = json!({ "error": { "kind": kind, "message": error.to_string() } });
        drop(self.object(&object));
        drop(self.flush());
    }
}

fn failed(error: io::Error) -> Error {
    Error::io("write to", Path::new("standard output"), error)
}
