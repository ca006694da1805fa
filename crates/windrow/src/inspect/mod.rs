//! Layer 5: any one file of a database, shown to people.
//!
//! A file is read alone, with nothing but its name to go by: no database is opened, no lock is taken
//! and nothing is written, so the file may belong to a database that is open elsewhere. Of a log that
//! is being written meanwhile a part is seen.
//!
//! [`visit`] hands out what a file holds as [`Record`]s, outer ones before inner ones; [`dump`] writes
//! them as text, a line each. What the records mean is described in `docs/format.md`.
//!
//! I1. Only what passes its checksum is shown, but for records of value files that hold no key: they
//!     are shown as not verified. Damage is shown as a record `damage`, what can still be
//!     read behind it is read, and the first damage is the error at the end.
//!
//! Concurrency: none; a call works by itself.

mod logs;
mod record;
mod tables;
mod values;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, ErrorKind, Result};
use crate::manifest::names::FileName;
use crate::manifest::read_current;
use crate::vfs::{self, OpenMode, OsVfs, Vfs};

pub use record::{Field, Record};

/// Writes what the file at `path` holds to `out`, a line for each [`Record`].
///
/// # Errors
/// As [`visit`], where the visitor's errors are those of writing to `out`.
pub fn dump(path: &Path, out: &mut dyn Write) -> Result<()> {
    visit(path, &mut |record| writeln!(out, "{record}"))
}

/// Hands what the file at `path` holds to `visitor`, record by record.
///
/// # Errors
/// `InvalidArgument` for a file that is not called like one of a database, or holds nothing;
/// `NotFound`; `Corruption` and `Unsupported` after everything that could be read; `Io` where the
/// file cannot be read, or for an error of `visitor`, which ends the visit.
pub fn visit(path: &Path, visitor: &mut dyn FnMut(&Record<'_>) -> io::Result<()>) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let place = File {
        vfs: &OsVfs,
        path,
        directory: path.parent().unwrap_or(Path::new("")),
        name,
    };
    let mut report = Report {
        path,
        visitor,
        damage: None,
    };
    match FileName::parse(name) {
        Some(FileName::Wal(number)) => logs::wal(&place, number, &mut report)?,
        Some(FileName::Manifest(number)) => logs::manifest(&place, number, &mut report)?,
        Some(FileName::Table(number)) => tables::table(&place, number, &mut report)?,
        Some(FileName::DiscardList(number)) => values::discard_list(&place, number, &mut report)?,
        Some(FileName::Values(number)) => values::values(&place, number, &mut report)?,
        Some(FileName::Current) => current(&place, &mut report)?,
        Some(FileName::CurrentNew | FileName::Lock | FileName::Reserve) | None => {
            return Err(Error::invalid_argument(format!(
                "{} is not a log, a manifest, a table, a value file or CURRENT",
                path.display()
            )));
        }
    }
    report.damage.map_or(Ok(()), Err)
}

/// The file that is shown.
struct File<'a> {
    vfs: &'a dyn Vfs,
    path: &'a Path,
    directory: &'a Path,
    name: &'a str,
}

impl File<'_> {
    /// Opens the file; a missing one is no damage here.
    fn open(&self) -> Result<Arc<dyn vfs::File>> {
        self.vfs
            .open(self.path, OpenMode::Read)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    let message = format!("there is no file {}", self.path.display());
                    Error::new(ErrorKind::NotFound, message)
                }
                _ => Error::io("open", self.path, error),
            })
    }
}

/// Passes records on and keeps the first damage.
struct Report<'a> {
    path: &'a Path,
    visitor: &'a mut dyn FnMut(&Record<'_>) -> io::Result<()>,
    damage: Option<Error>,
}

impl Report<'_> {
    fn show(&mut self, record: &Record<'_>) -> Result<()> {
        (self.visitor)(record).map_err(|error| Error::io("show", self.path, error))
    }

    /// The content of `outcome`, or the damage that it is; all other errors end the visit.
    fn sound<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        let error = match outcome {
            Ok(content) => return Ok(Some(content)),
            Err(error) => error,
        };
        if !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) {
            return Err(error);
        }
        let message = error.to_string();
        self.show(&Record::new("damage").text("error", &message))?;
        self.damage.get_or_insert(error);
        Ok(None)
    }
}

fn current(file: &File<'_>, report: &mut Report<'_>) -> Result<()> {
    file.open()?;
    let named = read_current(file.vfs, file.directory);
    if let Some(Some(current)) = report.sound(named)? {
        let record = Record::new("current").number("manifest", current.number.0);
        report.show(&record.number("length", current.length))?;
    }
    Ok(())
}
