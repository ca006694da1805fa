//! Where `load` takes entries from. Reads one line or one file at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use windrow::{Error, Result, limits};

use super::Format;
use crate::files::{self, Walk};
use crate::text::from_hex;

/// No line of any format can be longer: a value in JSON takes at most six bytes per byte.
const LINE_BYTES_MAX: u64 = 8 * (limits::VALUE_BYTES_MAX + limits::KEY_BYTES_MAX) as u64;

/// One entry to load.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// A stream of entries.
pub(crate) enum Source {
    Lines(LineSource),
    Folder(FolderSource),
}

impl Source {
    /// Opens `path`, or standard input where it is `None` or `-`.
    pub(crate) fn open(path: Option<&Path>, format: Option<Format>) -> Result<Self> {
        let path = path.filter(|path| *path != Path::new("-"));
        let format = format.unwrap_or_else(|| guess(path));
        if format == Format::Folder {
            let root = path.ok_or_else(|| {
                Error::invalid_argument("a folder cannot come from standard input: name it")
            })?;
            return Ok(Self::Folder(FolderSource::new(root)?));
        }
        let (reader, name, total_bytes): (Box<dyn BufRead>, _, _) = match path {
            None => (
                Box::new(BufReader::new(io::stdin())),
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
                let reader = BufReader::with_capacity(256 << 10, file);
                (Box::new(reader), path.display().to_string(), total_bytes)
            }
        };
        Ok(Self::Lines(LineSource {
            reader,
            name,
            total_bytes,
            format,
            line: Vec::new(),
            number: 0,
            position: 0,
        }))
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>> {
        match self {
            Self::Lines(lines) => lines.next_entry(),
            Self::Folder(folder) => folder.next_entry(),
        }
    }

    /// Where the last entry came from.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Lines(lines) => lines.place(),
            Self::Folder(folder) => folder.last.display().to_string(),
        }
    }

    /// Bytes in all, where that is known.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        match self {
            Self::Lines(lines) => lines.total_bytes,
            Self::Folder(_) => None,
        }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.position,
            Self::Folder(folder) => folder.position,
        }
    }

    /// Files left out because they are larger than a value may be.
    pub(crate) fn skipped(&self) -> u64 {
        match self {
            Self::Lines(_) => 0,
            Self::Folder(folder) => folder.skipped,
        }
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
        Some("jsonl" | "ndjson") => Format::Jsonl,
        _ => Format::Lines,
    }
}

/// Entries that each stand on a line.
pub(crate) struct LineSource {
    reader: Box<dyn BufRead>,
    name: String,
    total_bytes: Option<u64>,
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
                Format::Lines | Format::Folder => Ok(Entry {
                    key: format!("{:016}", self.number).into_bytes(),
                    value: line.to_vec(),
                }),
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
    Ok(Entry {
        key: line[..tab].to_vec(),
        value: line[tab + 1..].to_vec(),
    })
}

fn json_line(line: &[u8]) -> std::result::Result<Entry, String> {
    // The fields as they are written, so that what is no string is kept byte by byte.
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
    Ok(Entry {
        key: field("key")?,
        value: field("value")?,
    })
}

/// What is wrong with a line, without the number that the parser gives to the only line it has seen.
fn json_fault(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&place) {
        Some(what) => format!("{what} at column {}", error.column()),
        None => message,
    }
}

/// The files below a folder.
pub(crate) struct FolderSource {
    root: PathBuf,
    walk: Walk,
    last: PathBuf,
    position: u64,
    skipped: u64,
}

impl FolderSource {
    fn new(root: &Path) -> Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            walk: Walk::new(root)?,
            last: root.to_owned(),
            position: 0,
            skipped: 0,
        })
    }

    fn next_entry(&mut self) -> Result<Option<Entry>> {
        for file in &mut self.walk {
            let file = file?;
            if file.bytes > limits::VALUE_BYTES_MAX as u64 {
                self.skipped += 1;
                continue;
            }
            let value = files::read(&file.path)?;
            self.position += value.len() as u64;
            let key = files::key_of(&self.root, &file.path);
            self.last = file.path;
            return Ok(Some(Entry { key, value }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &[u8], value: &[u8]) -> Entry {
        Entry {
            key: key.to_vec(),
            value: value.to_vec(),
        }
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
        for wrong in [
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
