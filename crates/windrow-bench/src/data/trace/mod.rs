//! Trace files: one operation per line, `KEY OPERATION SIZE`, in this order, separated by spaces, tabs or commas.
//!
//! A key has any bytes except for these and the end of a line. Operations are `get`, `put`, `delete`, `scan` and
//! `seek`, in upper or lower case. The size is that of a put's value in bytes, or the number of steps of a scan;
//! gets and deletes need none. The reader skips empty lines and lines that begin with #.
//!
//! A file may be compressed by gzip, zstd or LZ4, in one part or several; its first bytes determine the format. The
//! reader streams the file line by line and never holds it in memory. A truncated file is an error.

mod frames;

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use windrow::{Error, Result, limits};

use self::frames::{Frames, are_frames};

/// Bytes of the longest line: the longest key, and the other fields.
const LINE_BYTES_MAX: u64 = limits::KEY_BYTES_MAX as u64 + 64;
const BUFFER_BYTES: usize = 256 << 10;

/// The operation of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOp {
    /// A get.
    Get,
    /// A put with the bytes of its value.
    Put(usize),
    /// A delete.
    Delete,
    /// A scan with its number of steps.
    Scan(u64),
}

/// An open trace file.
pub struct Trace {
    path: PathBuf,
    lines: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Trace {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// `Io` if the read fails.
    #[expect(clippy::disallowed_types, reason = "a trace is no file of a store")]
    pub fn open(path: &Path) -> Result<Self> {
        let file = fs::File::open(path).map_err(|error| Error::io("open", path, error))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Self::of(path, reader).map_err(|error| Error::io("read", path, error))
    }

    /// A trace of `reader`; messages name the path.
    fn of(path: &Path, mut reader: impl BufRead + Send + 'static) -> io::Result<Self> {
        let start = reader.fill_buf()?;
        let lines: Box<dyn BufRead + Send> = if start.starts_with(&[0x1f, 0x8b]) {
            buffered(MultiGzDecoder::new(reader))
        } else if are_frames(start) {
            buffered(Frames::new(reader))
        } else {
            Box::new(reader)
        };
        Ok(Self {
            path: path.to_owned(),
            lines,
            line: Vec::new(),
            number: 0,
        })
    }

    /// The next operation and its key; `None` at the end.
    ///
    /// # Errors
    /// `InvalidArgument` with the number of an invalid line; `Io`.
    #[expect(
        clippy::should_implement_trait,
        reason = "the result borrows from the trace"
    )]
    pub fn next(&mut self) -> Result<Option<(TraceOp, &[u8])>> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut line = self.lines.by_ref().take(LINE_BYTES_MAX);
            let read = line.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| Error::io("read", &self.path, error))?;
            if read == 0 {
                return Ok(None);
            }
            if self.line.last() != Some(&b'\n') && read as u64 == LINE_BYTES_MAX {
                return Err(self.refused("is longer than any key"));
            }
            let is_content = |byte: &u8| !is_between(*byte);
            if self.line.iter().any(is_content) && !self.line.starts_with(b"#") {
                break;
            }
        }
        match parse(&self.line) {
            Ok((asked, key)) => Ok(Some((asked, &self.line[key]))),
            Err(fault) => Err(self.refused(fault)),
        }
    }

    #[cold]
    fn refused(&self, fault: impl Display) -> Error {
        let path = self.path.display();
        Error::invalid_argument(format!("{path}, line {}: {fault}", self.number))
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Trace")
            .field("path", &self.path)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

fn buffered(reader: impl Read + Send + 'static) -> Box<dyn BufRead + Send> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
}

/// Whether a byte separates the fields of a line.
fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',' | b'\r' | b'\n')
}

/// The operation of a line, and the range of its key.
fn parse(line: &[u8]) -> std::result::Result<(TraceOp, std::ops::Range<usize>), String> {
    let mut parts = line
        .split(|&byte| is_between(byte))
        .scan(0, |start, part| {
            let range = *start..*start + part.len();
            *start = range.end + 1;
            Some((range, part))
        })
        .filter(|(_, part)| !part.is_empty());
    let (Some((place, key)), Some((_, operation))) = (parts.next(), parts.next()) else {
        return Err("expected a key, an operation and a size".to_owned());
    };
    let size = parts.next().map(|(_, size)| number(size)).transpose()?;
    if let Some((_, more)) = parts.next() {
        return Err(format!(
            "does not end after the size, but has {}",
            more.escape_ascii()
        ));
    }
    if key.len() > limits::KEY_BYTES_MAX {
        return Err(format!("has a key of {} bytes", key.len()));
    }
    let needed = || size.ok_or_else(|| "lacks the size".to_owned());
    let asked = match operation.to_ascii_lowercase().as_slice() {
        b"get" => TraceOp::Get,
        b"delete" => TraceOp::Delete,
        b"put" => match usize::try_from(needed()?) {
            Ok(size) if size <= limits::VALUE_BYTES_MAX => TraceOp::Put(size),
            _ => return Err("has a value that is larger than the limit".to_owned()),
        },
        b"scan" | b"seek" => TraceOp::Scan(needed()?),
        _ => {
            return Err(format!(
                "has the operation {}, which is none of get, put, delete, scan and seek",
                operation.escape_ascii()
            ));
        }
    };
    Ok((asked, place))
}

fn number(text: &[u8]) -> std::result::Result<u64, String> {
    let number = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("has the size {}, which is no number", text.escape_ascii()))
}

#[cfg(test)]
mod tests;
