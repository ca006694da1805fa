//! Standard output and standard error: lines for people or JSON for programs.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use windrow::{Error, Result};

use crate::text::human_bytes;

/// Where a command writes its answer.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
    stdout: BufWriter<Stdout>,
    reader_is_gone: bool,
    /// Fields that an error has, too.
    error_fields: Map<String, Value>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            reader_is_gone: false,
            error_fields: Map::new(),
        }
    }

    /// Whether the answer is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
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

    /// Writes how much disk the database took before the command and takes after it.
    pub(crate) fn disk_change(&mut self, before: u64, after: u64) -> Result<()> {
        self.object(&json!({ "disk_bytes_before": before, "disk_bytes_after": after }))?;
        let (before, after) = (human_bytes(before), human_bytes(after));
        self.line(format_args!("{before} on disk before, {after} after"))
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

    /// Whether the reader of standard output has closed it, as `head` does when it has enough. Every
    /// later call fails, and the command with it.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.reader_is_gone
    }

    /// Adds the field `name` to the error that the command may end with, under `--json`.
    pub(crate) fn set_error_field(&mut self, name: &str, value: impl Into<Value>) {
        self.error_fields.insert(name.to_owned(), value.into());
    }

    /// Writes to standard error what went wrong: a sentence, or an object under `--json`.
    pub(crate) fn show_error(&self, error: &Error) {
        show_error(error, self.json, self.error_fields.clone());
    }

    fn outcome(&mut self, written: io::Result<()>) -> Result<()> {
        written.map_err(|error| {
            self.reader_is_gone |= error.kind() == io::ErrorKind::BrokenPipe;
            Error::io("write to", Path::new("standard output"), error)
        })
    }

    /// Writes `note` to standard error; nothing under `--json`, where the answer has a field for it.
    pub(crate) fn note(&self, note: impl Display) {
        if !self.json {
            complain(format_args!("windrow: {note}"));
        }
    }

    /// The same, only if a person sees it: scripts rely on an empty standard error.
    pub(crate) fn hint(&self, hint: impl Display) {
        if io::stderr().is_terminal() {
            self.note(hint);
        }
    }
}

/// Writes to standard error what went wrong: a sentence, or an object under `--json`.
/// The object has the fields `fields`, too.
pub(crate) fn show_error(error: &Error, json: bool, mut fields: Map<String, Value>) {
    if !json {
        return complain(format_args!("windrow: {error}"));
    }
    fields.insert("kind".into(), format!("{:?}", error.kind()).into());
    fields.insert("message".into(), error.to_string().into());
    if let Some(file) = error.file() {
        fields.insert("file".into(), file.display().to_string().into());
    }
    if let Some(offset) = error.offset() {
        fields.insert("offset".into(), offset.into());
    }
    show_error_object(&fields);
}

/// Writes an error to standard error as JSON: its kind, its message and other fields.
pub(crate) fn show_error_object(fields: &Map<String, Value>) {
    complain(json!({ "error": fields }));
}

/// Writes a line to standard error. If that fails, no channel is left to report it.
pub(crate) fn complain(line: impl Display) {
    drop(writeln!(io::stderr(), "{line}"));
}
