//! Rows of columns, with delimiters and perhaps quotes: CSV and its relatives.
//!
//! I1. A row takes bounded memory, even if a quote never ends.
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
    /// What the reader may still read for the row.
    left: Rc<Cell<u64>>,
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
    /// `InvalidArgument` for a column that the header does not name.
    pub(super) fn new(
        input: Box<dyn Read>,
        name: &str,
        format: Format,
        args: &ColumnArgs,
    ) -> Result<Self> {
        let is_csv = format == Format::Csv;
        let left = Rc::new(Cell::new(LINE_BYTES_MAX));
        let input = Bounded {
            input,
            left: Rc::clone(&left),
        };
        let mut builder = ReaderBuilder::new();
        builder
            .delimiter(args.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }))
            .flexible(true)
            .has_headers(args.header);
        match args.quote {
            Some(Quote::Byte(quote)) => builder.quote(quote),
            Some(Quote::None) => builder.quoting(false),
            None => builder.quoting(is_csv),
        };
        let mut reader = builder.from_reader(input);
        let header = if args.header {
            let header = reader.byte_headers().map_err(|error| fault(name, error))?;
            Some(header.clone())
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
            left,
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
        self.left.set(LINE_BYTES_MAX);
        let read = self.reader.read_byte_record(&mut self.row);
        if !read.map_err(|error| fault(&self.name, error))? {
            return Ok(None);
        }
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
        Ok(Some(Entry {
            key: field(self.key)?,
            value: field(value)?,
        }))
    }
}

/// The place of a column that is given by its name, or by its number from 1.
fn column(text: &str, header: Option<&ByteRecord>) -> Result<usize> {
    let named = header.and_then(|header| header.iter().position(|name| name == text.as_bytes()));
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

/// An error of the reader: of the system, since rows of any length are taken.
fn fault(name: &str, error: csv::Error) -> Error {
    let message = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() != io::ErrorKind::InvalidData => {
            Error::io("read", Path::new(name), error)
        }
        csv::ErrorKind::Io(error) => Error::invalid_argument(format!("{name}: {error}")),
        _ => Error::invalid_argument(format!("{name}: {message}")),
    }
}

/// Input of which a row can take no more than is left. I1
struct Bounded {
    input: Box<dyn Read>,
    left: Rc<Cell<u64>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let left = self.left.get().checked_sub(read as u64);
        self.left.set(left.ok_or_else(|| {
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
        for (text, args, parts) in [
            ("a,1\nb,2,3", &plain, ["line 2", "--value-column"]),
            ("a\n", &plain, ["line 1", "1 columns"]),
            ("a,1\n", &columns("1", "3", false), ["line 1", "number 3"]),
            ("a,1\n", &columns("id", "2", false), ["\"id\"", "--header"]),
            ("k,v\na,1\n", &columns("id", "v", true), ["\"id\"", "k, v"]),
            ("a,1\n", &columns("0", "2", false), ["\"0\"", "from 1"]),
        ] {
            let fault = fault_of(text, args);
            assert!(parts.iter().all(|part| fault.contains(part)), "{fault}");
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
            input: Box::new(Endless),
            left: Rc::new(Cell::new(10_000)),
        };
        let error = io::copy(&mut input, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
