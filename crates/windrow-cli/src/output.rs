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
    reader_is_gone: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            reader_is_gone: false,
        }
    }

    /// Writes a line for people; nothing under `--json`.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let written = writeln!(self.stdout, "{line}");
        self.outcome(written)
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
        let written = serde_json::to_writer(&mut self.stdout, object)
            .map_err(io::Error::from)
            .and_then(|()| self.stdout.write_all(b"\n"));
        self.outcome(written)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.stdout.write_all(bytes);
        self.outcome(written)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let written = self.stdout.flush();
        self.outcome(written)
    }

    /// Whether the reader of standard output has gone away, as `head` does when it has enough. Every
    /// call fails from then on, and the command with it.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.reader_is_gone
    }

    fn outcome(&mut self, written: io::Result<()>) -> Result<()> {
        written.map_err(|error| {
            self.reader_is_gone |= error.kind() == io::ErrorKind::BrokenPipe;
            Error::io("write to", Path::new("standard output"), error)
        })
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
