//! The source of a load: a file, a folder or standard input, read one line, row or file at a time.
//!
//! Concurrency: none.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;
use windrow::{Error, Expiry, Result, limits};

use super::columns::{ColumnArgs, RowSource};
use super::entry::{Entry, Format, LINE_BYTES_MAX};
use crate::files::{self, Walk};
use crate::tables::plural;
use crate::text::{EXPIRY_FIELD, expiry_at, from_hex};

/// A stream of entries.
pub(crate) struct Source {
    entries: Entries,
    /// Bytes in all, if they are known.
    total_bytes: Option<u64>,
}

/// Where entries come from.
enum Entries {
    Lines(LineSource),
    Rows(RowSource),
    Folder(FolderSource),
}

/// Files of a folder that are not loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Skipped {
    /// Files that are larger than a value may be.
    large: u64,
    links: u64,
    /// Pipes, sockets and devices.
    special: u64,
    databases: u64,
}

impl Source {
    /// Opens `path`, or standard input if it is `None` or `-`.
    ///
    /// # Errors
    /// `InvalidArgument` for a database, which is no folder of files, and for columns of a format that
    /// has none.
    pub(crate) fn open(
        path: Option<&Path>,
        format: Option<Format>,
        columns: &ColumnArgs,
    ) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("-"));
        let format = format.unwrap_or_else(|| guess(path));
        let has_columns = matches!(format, Format::Csv | Format::Tsv);
        if columns.are_given() && !has_columns {
            return Err(Error::invalid_argument(
                "only csv and tsv have columns: give --format csv or --format tsv",
            ));
        }
        if format == Format::Folder {
            let root = path.ok_or_else(|| {
                Error::invalid_argument("a folder cannot come from standard input: name it")
            })?;
            return Ok(Self {
                entries: Entries::Folder(FolderSource::new(root)?),
                total_bytes: None,
            });
        }
        let (input, name, total_bytes) = match path {
            None => (
                Box::new(io::stdin()) as Box<dyn Read>,
                "standard input".to_owned(),
                None,
            ),
            Some(path) => {
                let file = File::open(path).map_err(|error| files::failed("open", path, error))?;
                let metadata = file
                    .metadata()
                    .map_err(|error| Error::io("read", path, error))?;
                if metadata.is_dir() {
                    let message = format!("{} is a folder, not a file", path.display());
                    return Err(Error::invalid_argument(message));
                }
                let total_bytes = metadata.is_file().then_some(metadata.len());
                (
                    Box::new(file) as Box<dyn Read>,
                    path.display().to_string(),
                    total_bytes,
                )
            }
        };
        let entries = if format == Format::Csv || columns.are_given() {
            Entries::Rows(RowSource::new(input, &name, format, columns)?)
        } else {
            Entries::Lines(LineSource {
                reader: BufReader::with_capacity(256 << 10, input),
                name,
                format,
                line: Vec::new(),
                number: 0,
                position: 0,
            })
        };
        Ok(Self {
            entries,
            total_bytes,
        })
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>> {
        match &mut self.entries {
            Entries::Lines(lines) => lines.next_entry(),
            Entries::Rows(rows) => rows.next_entry(),
            Entries::Folder(folder) => folder.next_entry(),
        }
    }

    /// The place of the last entry.
    pub(crate) fn place(&self) -> String {
        match &self.entries {
            Entries::Lines(lines) => lines.place(),
            Entries::Rows(rows) => rows.place(),
            Entries::Folder(folder) => folder.last.display().to_string(),
        }
    }

    /// Bytes in all, if they are known.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> u64 {
        match &self.entries {
            Entries::Lines(lines) => lines.position,
            Entries::Rows(rows) => rows.position(),
            Entries::Folder(folder) => folder.position,
        }
    }

    /// The files that were not loaded.
    pub(crate) fn skipped(&self) -> Skipped {
        match &self.entries {
            Entries::Lines(_) | Entries::Rows(_) => Skipped::default(),
            Entries::Folder(folder) => folder.skipped(),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [
            (self.links, "link", ""),
            (self.special, "special file", ""),
            (self.databases, "database", ""),
            (self.large, "file", " larger than a value may be"),
        ];
        let present = kinds.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = present
            .map(|(count, noun, more)| plural(count, noun) + more)
            .collect();
        formatter.write_str(&parts.join(", "))
    }
}

fn guess(path: Option<&Path>) -> Format {
    let Some(path) = path else {
        return Format::Lines;
    };
    if path.is_dir() {
        return Format::Folder;
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("tsv") => Format::Tsv,
        Some("csv") => Format::Csv,
        Some("jsonl" | "ndjson") => Format::Jsonl,
        _ => Format::Lines,
    }
}

/// Entries that each stand on a line.
struct LineSource {
    reader: BufReader<Box<dyn Read>>,
    name: String,
    format: Format,
    line: Vec<u8>,
    number: u64,
    position: u64,
}

impl LineSource {
    fn place(&self) -> String {
        format!("{}, line {}", self.name, self.number)
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        while self.read_line()? {
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let entry = match self.format {
                Format::Tsv if line.is_empty() => continue,
                Format::Jsonl if line.trim_ascii().is_empty() => continue,
                Format::Tsv => tab_separated(line),
                Format::Jsonl => json_line(line),
                Format::Lines | Format::Csv | Format::Folder => {
                    let key = format!("{:016}", self.number).into_bytes();
                    Ok(Entry::new(key, line.to_vec()))
                }
            };
            let entry = entry.map_err(|fault| format!("{}: {fault}", self.place()));
            return entry.map(Some).map_err(Error::invalid_argument);
        }
        Ok(None)
    }

    /// Reads the next line; `false` at the end.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        let mut bounded = (&mut self.reader).take(LINE_BYTES_MAX);
        let read = bounded.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Error::io("read", Path::new(&self.name), error))?;
        self.number += u64::from(read > 0);
        self.position += read as u64;
        Ok(read > 0)
    }
}

fn tab_separated(line: &[u8]) -> std::result::Result<Entry, String> {
    let tab = line.iter().position(|&byte| byte == b'\t');
    let tab = tab.ok_or("expected a tab between key and value")?;
    Ok(Entry::new(line[..tab].to_vec(), line[tab + 1..].to_vec()))
}

fn json_line(line: &[u8]) -> std::result::Result<Entry, String> {
    // A raw value keeps the text of a field byte by byte, which matters for values that are no strings.
    let object: BTreeMap<String, &RawValue> =
        serde_json::from_slice(line).map_err(|error| json_fault(&error))?;
    let string = |field: &RawValue| -> std::result::Result<String, String> {
        serde_json::from_str(field.get()).map_err(|error| json_fault(&error))
    };
    let field = |name: &str| -> std::result::Result<Vec<u8>, String> {
        let hex = format!("{name}_hex");
        let is_string = |field: &RawValue| field.get().starts_with('"');
        match (object.get(name), object.get(&hex)) {
            (Some(field), None) if is_string(field) => string(field).map(String::into_bytes),
            (Some(field), None) if name == "value" => Ok(field.get().as_bytes().to_vec()),
            (None, Some(field)) if is_string(field) => {
                from_hex(&string(field)?).ok_or_else(|| format!("\"{hex}\" is not hexadecimal"))
            }
            _ => Err(format!("expected an object with \"{name}\" or \"{hex}\"")),
        }
    };
    let expiry = object.get(EXPIRY_FIELD).map(|field| {
        let expiry = match serde_json::from_str(field.get()) {
            Ok(None) => Some(Expiry::Never),
            Ok(Some(milliseconds)) => expiry_at(milliseconds),
            Err(_) => None,
        };
        expiry.ok_or_else(|| format!("\"{EXPIRY_FIELD}\" is no number of milliseconds, nor null"))
    });
    Ok(Entry {
        key: field("key")?,
        value: field("value")?,
        expiry: expiry.transpose()?,
    })
}

/// The fault of a line, without the line number of the parser, which has seen one line only.
fn json_fault(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&place) {
        Some(what) => format!("{what} at column {}", error.column()),
        None => message,
    }
}

/// The files below a folder.
struct FolderSource {
    root: PathBuf,
    walk: Walk,
    last: PathBuf,
    position: u64,
    /// Files that are larger than a value may be.
    large: u64,
}

impl FolderSource {
    fn new(root: &Path) -> Result<Self> {
        if files::is_database(root) {
            return Err(Error::invalid_argument(format!(
                "{} is a database, not a folder of files: copy it with checkpoint, or its entries with \
                 scan --json and load --format jsonl",
                root.display()
            )));
        }
        Ok(Self {
            root: root.to_owned(),
            walk: Walk::new(root)?,
            last: root.to_owned(),
            position: 0,
            large: 0,
        })
    }

    fn skipped(&self) -> Skipped {
        let passed_over = self.walk.passed_over();
        Skipped {
            large: self.large,
            links: passed_over.links,
            special: passed_over.special,
            databases: passed_over.databases,
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        for file in &mut self.walk {
            let file = file?;
            if file.bytes > limits::VALUE_BYTES_MAX as u64 {
                self.large += 1;
                continue;
            }
            let value = files::read(&file.path)?;
            self.position += value.len() as u64;
            let key = files::key_of(&self.root, &file.path);
            self.last = file.path;
            return Ok(Some(Entry::new(key, value)));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &[u8], value: &[u8]) -> Entry {
        Entry::new(key.to_vec(), value.to_vec())
    }

    #[test]
    fn tabs_separate_only_once() {
        assert_eq!(tab_separated(b"a\tb\tc"), Ok(entry(b"a", b"b\tc")));
        assert_eq!(tab_separated(b"a\t"), Ok(entry(b"a", b"")));
        assert!(tab_separated(b"a").is_err());
    }

    #[test]
    fn json_lines_take_text_hexadecimal_and_other_values() {
        let line = |text: &str| json_line(text.as_bytes());
        assert_eq!(line(r#"{"key":"a","value":"b"}"#), Ok(entry(b"a", b"b")));
        assert_eq!(
            line(r#"{"key_hex":"ff00","value_hex":""}"#),
            Ok(entry(b"\xff\x00", b""))
        );
        for kept in [
            "[1, 2]",
            r#"{"b":1.0,"a":1e3}"#,
            "null",
            "12345678901234567890123",
        ] {
            assert_eq!(
                line(&format!(r#"{{"key":"a", "value": {kept} }}"#)),
                Ok(entry(b"a", kept.as_bytes()))
            );
        }
        let until = line(r#"{"key":"a","value":"b","expires_at_ms":7}"#).unwrap();
        assert_eq!((until.key, until.expiry), (b"a".to_vec(), expiry_at(7)));
        let lasting = line(r#"{"key":"a","value":"b","expires_at_ms":null}"#).unwrap();
        assert_eq!(lasting.expiry, Some(Expiry::Never));
        for wrong in [
            r#"{"key":"a","value":"b","expires_at_ms":-1}"#,
            r#"{"key":"a","value":"b","expires_at_ms":"7"}"#,
            "",
            "7",
            "{}",
            r#"{"key":1,"value":""}"#,
            r#"{"key":"a"}"#,
            r#"{"key":"a","value":"\ud800"}"#,
            r#"{"key":"a","value":"","value_hex":""}"#,
        ] {
            let fault = line(wrong).unwrap_err();
            assert!(!fault.contains("line"), "{wrong}: {fault}");
        }
    }
}
