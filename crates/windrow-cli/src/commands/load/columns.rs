//! Rows of columns, with delimiters and perhaps quotes: CSV and its relatives.
//!
//! I1. A row takes bounded memory, even if a quote never ends.
//! I2. The input ends with two more line feeds than the source. The reader skips them as empty lines, unless a quote
//!     has not ended: then the last row takes both.
//!
//! Concurrency: none.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use clap::Args;
use csv::{ByteRecord, Reader, ReaderBuilder};
use windrow::{Error, Result};

use super::entry::{Entry, Format, LINE_BYTES_MAX};

/// Which columns of a row are key and value, and how columns are separated.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ColumnArgs {
    /// The first row of csv or tsv names the columns, and is no entry
    #[arg(long)]
    header: bool,

    /// Column of the key in csv or tsv: its number, from 1, or its name in the header [default: 1]
    #[arg(long, value_name = "COLUMN")]
    key_column: Option<String>,

    /// Column of the value in csv or tsv [default: 2, if there are two columns]
    #[arg(long, value_name = "COLUMN")]
    value_column: Option<String>,

    /// Character between the columns of csv or tsv [default: a comma for csv, a tab for tsv]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_byte)]
    delimiter: Option<u8>,

    /// Character around columns of csv that hold delimiters or line ends, or "none" [default: "]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_quote)]
    quote: Option<Quote>,
}

/// The quote of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Byte(u8),
}

/// A character of ASCII; `\t` stands for a tab.
fn parse_byte(text: &str) -> std::result::Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err("expected one ASCII character, or \\t for a tab".to_owned()),
    }
}

fn parse_quote(text: &str) -> std::result::Result<Quote, String> {
    match text {
        "none" => Ok(Quote::None),
        text => parse_byte(text).map(Quote::Byte),
    }
}

impl ColumnArgs {
    /// Whether any was given.
    pub(super) fn are_given(&self) -> bool {
        self.header
            || self.delimiter.is_some()
            || self.quote.is_some()
            || self.key_column.is_some()
            || self.value_column.is_some()
    }
}

/// Entries that each are a row.
pub(super) struct RowSource {
    reader: Reader<Bounded>,
    limits: Rc<Limits>,
    name: String,
    row: ByteRecord,
    key: usize,
    /// `None` for the second of two.
    value: Option<usize>,
}

impl RowSource {
    /// Rows of `input`, which is called `name` in messages.
    ///
    /// # Errors
    /// `InvalidArgument` for a column that the header does not name or names twice, and for a delimiter that is the
    /// quote.
    pub(super) fn new(
        input: Box<dyn Read>,
        name: &str,
        format: Format,
        args: &ColumnArgs,
    ) -> Result<Self> {
        let is_csv = format == Format::Csv;
        let limits = Rc::new(Limits::default());
        let input = Bounded {
            has_ended: false,
            input,
            limits: Rc::clone(&limits),
        };
        let delimiter = args.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' });
        let quote = match args.quote {
            None if is_csv => Quote::Byte(b'"'),
            None => Quote::None,
            Some(quote) => quote,
        };
        if quote == Quote::Byte(delimiter) {
            return Err(Error::invalid_argument(
                "the delimiter and the quote are the same character",
            ));
        }
        let mut builder = ReaderBuilder::new();
        builder
            .delimiter(delimiter)
            .flexible(true)
            .has_headers(args.header);
        match quote {
            Quote::Byte(quote) => builder.quote(quote),
            Quote::None => builder.quoting(false),
        };
        let mut reader = builder.from_reader(input);
        let header = if args.header {
            let header = reader.byte_headers();
            let header = header.map_err(|error| fault(name, 1, error))?.clone();
            limits.check_quotes(&reader, &header, name)?;
            Some(header)
        } else {
            None
        };
        let column = |given: &Option<String>| {
            let given = given.as_deref();
            given.map(|text| column(text, header.as_ref())).transpose()
        };
        let key = column(&args.key_column)?.unwrap_or(0);
        let value = column(&args.value_column)?;
        Ok(Self {
            reader,
            limits,
            name: name.to_owned(),
            row: ByteRecord::new(),
            key,
            value,
        })
    }

    pub(super) fn place(&self) -> String {
        let line = self.row.position().map_or(0, csv::Position::line);
        format!("{}, line {line}", self.name)
    }

    pub(super) fn position(&self) -> u64 {
        self.reader.position().byte()
    }

    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>> {
        self.limits.left.set(LINE_BYTES_MAX);
        let line = self.reader.position().line();
        let read = self.reader.read_byte_record(&mut self.row);
        if !read.map_err(|error| fault(&self.name, line, error))? {
            return Ok(None);
        }
        let (reader, row) = (&self.reader, &self.row);
        self.limits.check_quotes(reader, row, &self.name)?;
        let columns = self.row.len();
        let wrong = |what: String| {
            let place = self.place();
            Error::invalid_argument(format!("{place}: {what}"))
        };
        let value = match self.value {
            Some(value) => value,
            None if columns == 2 && self.key < 2 => 1 - self.key,
            None => {
                return Err(wrong(format!(
                    "the row has {columns} columns, not two: give --value-column"
                )));
            }
        };
        let field = |column: usize| {
            let field = self.row.get(column).map(<[u8]>::to_vec);
            field.ok_or_else(|| {
                wrong(format!(
                    "the row has {columns} columns, and none with the number {}",
                    column + 1
                ))
            })
        };
        Ok(Some(Entry::new(field(self.key)?, field(value)?)))
    }
}

/// The place of a column that is given by its name, or by its number from 1.
fn column(text: &str, header: Option<&ByteRecord>) -> Result<usize> {
    let named = |header: &ByteRecord| {
        let is_named = |name: &[u8]| name == text.as_bytes();
        let first = header.iter().position(is_named);
        if header.iter().filter(|name| is_named(name)).count() > 1 {
            let message = format!("the header names \"{text}\" twice: give a number");
            return Err(Error::invalid_argument(message));
        }
        Ok(first)
    };
    let named = header.map(named).transpose()?.flatten();
    let numbered = text.parse::<usize>().ok().filter(|&number| number > 0);
    named
        .or_else(|| numbered.map(|number| number - 1))
        .ok_or_else(|| {
            let known = match header {
                None => "without --header, columns have numbers from 1".to_owned(),
                Some(header) => {
                    let names = header.iter().map(String::from_utf8_lossy);
                    format!("the header has {}", names.collect::<Vec<_>>().join(", "))
                }
            };
            Error::invalid_argument(format!("there is no column \"{text}\": {known}"))
        })
}

/// An error of the reader in the row at `line`: of the system, since rows of any length are taken.
fn fault(name: &str, line: u64, error: csv::Error) -> Error {
    let message = error.to_string();
    let place = format!("{name}, line {line}");
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
            Error::io("read", Path::new(name), error)
        }
        csv::ErrorKind::Io(error) => Error::invalid_argument(format!("{place}: {error}")),
        _ => Error::invalid_argument(format!("{place}: {message}")),
    }
}

/// What the reader may read, and what it has read.
struct Limits {
    /// What it may still read for the row.
    left: Cell<u64>,
    /// Bytes of the source so far.
    bytes: Cell<u64>,
    /// Line feeds behind the source. I2
    more: Cell<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            left: Cell::new(LINE_BYTES_MAX),
            bytes: Cell::new(0),
            more: Cell::new(2),
        }
    }
}

impl Limits {
    /// Checks that no quote of `row`, which `reader` has read last, is open at the end of the source.
    ///
    /// # Errors
    /// `InvalidArgument` with the line of the quote.
    fn check_quotes(&self, reader: &Reader<Bounded>, row: &ByteRecord, name: &str) -> Result<()> {
        if self.more.get() > 0 || reader.position().byte() < self.bytes.get() + 2 {
            return Ok(()); // I2
        }
        // It begins the last column, which reaches to the end.
        let column = row.iter().next_back().unwrap_or_default();
        let within = column.split(|byte| *byte == b'\n').skip(1).count() as u64;
        let line = reader.position().line() - within;
        let message = format!("{name}, line {line}: a quote begins here and does not end");
        Err(Error::invalid_argument(message))
    }
}

/// Input of which a row can take no more than is left. I1
struct Bounded {
    input: Box<dyn Read>,
    /// Whether the input has ended. A terminal could go on after its end.
    has_ended: bool,
    limits: Rc<Limits>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limits = &self.limits;
        let read = if self.has_ended {
            0
        } else {
            self.input.read(buffer)?
        };
        if read == 0 && !buffer.is_empty() {
            self.has_ended = true;
            let more = limits.more.get().min(buffer.len() as u64);
            limits.more.set(limits.more.get() - more);
            return Read::read(&mut io::repeat(b'\n').take(more), buffer);
        }
        limits.bytes.set(limits.bytes.get() + read as u64);
        let left = limits.left.get().checked_sub(read as u64);
        limits.left.set(left.ok_or_else(|| {
            let what = "a row is longer than any entry: perhaps a quote does not end";
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &'static str, format: Format, args: &ColumnArgs) -> Vec<(String, String)> {
        let mut rows = RowSource::new(Box::new(text.as_bytes()), "rows", format, args).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = rows.next_entry().unwrap() {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            entries.push((text(entry.key), text(entry.value)));
        }
        entries
    }

    fn fault_of(text: &'static str, args: &ColumnArgs) -> String {
        let read = || -> Result<()> {
            let mut rows = RowSource::new(Box::new(text.as_bytes()), "rows", Format::Csv, args)?;
            while rows.next_entry()?.is_some() {}
            Ok(())
        };
        read().unwrap_err().to_string()
    }

    fn columns(key: &str, value: &str, header: bool) -> ColumnArgs {
        ColumnArgs {
            header,
            key_column: Some(key.to_owned()),
            value_column: Some(value.to_owned()),
            ..ColumnArgs::default()
        }
    }

    #[test]
    fn rows_become_entries() {
        let plain = ColumnArgs::default();
        let semicolons = ColumnArgs {
            delimiter: Some(b';'),
            quote: Some(Quote::None),
            ..ColumnArgs::default()
        };
        let header = ColumnArgs {
            header: true,
            ..ColumnArgs::default()
        };
        let second = ColumnArgs {
            key_column: Some("2".to_owned()),
            ..ColumnArgs::default()
        };
        for (text, format, args, expected) in [
            (
                "a,1\nb,2\r\n\n",
                Format::Csv,
                &plain,
                [("a", "1"), ("b", "2")],
            ),
            (
                "a,\"1,\n\"\"\"\nb,\n",
                Format::Csv,
                &plain,
                [("a", "1,\n\""), ("b", "")],
            ),
            (
                "a\t\"1\"\nb\t2",
                Format::Tsv,
                &plain,
                [("a", "\"1\""), ("b", "2")],
            ),
            (
                "a;\"\nb;2",
                Format::Csv,
                &semicolons,
                [("a", "\""), ("b", "2")],
            ),
            (
                "k,v\na,1\nb,2",
                Format::Csv,
                &header,
                [("a", "1"), ("b", "2")],
            ),
            ("1,a\n2,b", Format::Csv, &second, [("a", "1"), ("b", "2")]),
            (
                "x,1,a\ny,2,b,more",
                Format::Csv,
                &columns("3", "2", false),
                [("a", "1"), ("b", "2")],
            ),
            (
                "name,id\n1,a\n2,b",
                Format::Csv,
                &columns("id", "1", true),
                [("a", "1"), ("b", "2")],
            ),
        ] {
            let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
            assert_eq!(rows(text, format, args), expected, "{text}");
        }
    }

    #[test]
    fn faults_name_the_line_and_the_columns() {
        let plain = ColumnArgs::default();
        let same = ColumnArgs {
            delimiter: Some(b'"'),
            ..ColumnArgs::default()
        };
        for (text, args, parts) in [
            ("a,1\nb,2,3", &plain, ["line 2", "--value-column"]),
            ("a\n", &plain, ["line 1", "1 columns"]),
            ("a,1\n", &columns("1", "3", false), ["line 1", "number 3"]),
            ("a,1\n", &columns("id", "2", false), ["\"id\"", "--header"]),
            ("k,v\na,1\n", &columns("id", "v", true), ["\"id\"", "k, v"]),
            ("a,1\n", &columns("0", "2", false), ["\"0\"", "from 1"]),
            (
                "k,v,k\na,1,b\n",
                &columns("k", "v", true),
                ["\"k\" twice", "number"],
            ),
            ("a,1\n", &same, ["delimiter", "quote"]),
        ] {
            let fault = fault_of(text, args);
            assert!(parts.iter().all(|part| fault.contains(part)), "{fault}");
        }
    }

    // I2
    #[test]
    fn a_quote_without_an_end_is_refused_and_its_line_is_named() {
        let plain = ColumnArgs::default();
        let header = columns("1", "2", true);
        for (text, args, line) in [
            ("a,\"1", &plain, 1),
            ("a,1\nb,\"x,y\nx,y\nx,y\n", &plain, 2),
            ("a,1\n\"b\n\nc\",\"1\"\"\n", &plain, 4),
            ("a,1\r\nb,\"1\r\n", &plain, 2),
            ("k,\"v\na,1\n", &header, 1),
        ] {
            let fault = fault_of(text, args);
            let place = format!("rows, line {line}: a quote");
            assert!(fault.contains(&place), "{text:?}: {fault}");
        }
        for end in ["", "\n", "\n\n", "\r\n", "\r", "\n\n\n\r\n"] {
            for last in ["b,\"2\"", "b,2", "\"b\",\"2\""] {
                let text = format!("a,\"1\"\n{last}{end}").leak();
                let expected = [("a", "1"), ("b", "2")];
                let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
                assert_eq!(rows(text, Format::Csv, &plain), expected, "{text:?}");
            }
        }
    }

    // I1
    #[test]
    fn a_row_without_an_end_is_refused() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                buffer.fill(b',');
                Ok(buffer.len())
            }
        }
        let mut input = Bounded {
            has_ended: false,
            input: Box::new(Endless),
            limits: Rc::default(),
        };
        input.limits.left.set(10_000);
        let error = io::copy(&mut input, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
