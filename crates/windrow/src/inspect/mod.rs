//! Layer 5: the content of one file of a database, or of the manifest of a backup, for people.
//!
//! A visit reads one file and needs only its name. It opens no database, takes no lock and writes
//! nothing, so the file may belong to an open database. It shows only a part of a log that grows
//! meanwhile.
//!
//! [`visit`] passes the content of a file as [`Record`]s to a visitor, outer records before inner ones.
//! [`dump`] writes one line per record. `docs/format.md` and `docs/backup.md` describe the meaning of the records.
//!
//! I1. A visit shows only content that passes its checksum, with one exception: it shows records of value
//!     files without a key as not verified. It shows damage as a record `damage`, continues behind it if
//!     possible, and returns the first damage as its error.
//!
//! Concurrency: calls share nothing.

mod backups;
mod logs;
mod record;
mod status;
mod tables;
mod values;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::backup::ObjectName;
use crate::base::{Error, ErrorKind, Result};
use crate::manifest::names::FileName;
use crate::manifest::read_current;
use crate::vfs::{self, OpenMode, Vfs};

pub use record::{Field, Record};
pub use status::status;

/// Writes the content of the file at `path` in `vfs` to `out`, one line per [`Record`].
///
/// # Errors
/// As [`visit`]. The errors of the visitor are those of writing to `out`.
pub fn dump(vfs: &dyn Vfs, path: &Path, out: &mut dyn Write) -> Result<()> {
    visit(vfs, path, &mut |record| writeln!(out, "{record}"))
}

/// Passes the content of the file at `path` in `vfs` to `visitor`, record by record.
///
/// # Errors
/// `InvalidArgument` if the name is not that of a file with content; `NotFound`; `Corruption` and
/// `Unsupported`, after all readable content; `Io` if the file cannot be read, or for an error of
/// `visitor`, which ends the visit.
pub fn visit(
    vfs: &dyn Vfs,
    path: &Path,
    visitor: &mut dyn FnMut(&Record<'_>) -> io::Result<()>,
) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let place = File {
        vfs,
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
        Some(
            FileName::CurrentNew
            | FileName::Lock
            | FileName::Reserve
            | FileName::Repairing
            | FileName::JobLog
            | FileName::OldJobLog
            | FileName::Status
            | FileName::Scrub
            | FileName::ScrubByHand,
        )
        | None => match ObjectName::parse(name) {
            Some(ObjectName::Manifest(number)) => backups::manifest(&place, number, &mut report)?,
            Some(ObjectName::Stretch(name)) => backups::stretch(&place, name, &mut report)?,
            Some(ObjectName::Piece(_)) | None => {
                return Err(Error::invalid_argument(format!(
                    "{} is not a log, a manifest, a table, a value file, CURRENT, the manifest of a backup or a stretch of an \
                     archive",
                    path.display()
                )));
            }
        },
    }
    report.damage.map_or(Ok(()), Err)
}

/// The visited file.
struct File<'a> {
    vfs: &'a dyn Vfs,
    path: &'a Path,
    directory: &'a Path,
    name: &'a str,
}

impl File<'_> {
    /// Opens the file. A missing file is `NotFound`, not damage.
    fn open(&self) -> Result<Arc<dyn vfs::File>> {
        self.vfs
            .open(self.path, OpenMode::Read)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    let message = format!("the file {} does not exist", self.path.display());
                    Error::new(ErrorKind::NotFound, message)
                }
                _ => Error::io("open", self.path, error),
            })
    }
}

/// Passes records to the visitor and keeps the first damage.
struct Report<'a> {
    path: &'a Path,
    visitor: &'a mut dyn FnMut(&Record<'_>) -> io::Result<()>,
    damage: Option<Error>,
}

impl Report<'_> {
    fn show(&mut self, record: &Record<'_>) -> Result<()> {
        (self.visitor)(record).map_err(|error| Error::io("show", self.path, error))
    }

    /// The content of `outcome`. Shows damage and returns `None` for it; other errors end the visit.
    fn sound<T>(&mut self, outcome: Result<T>) -> Result<Option<T>> {
        let error = match outcome {
            Ok(content) => return Ok(Some(content)),
            Err(error) => error,
        };
        if !matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) {
            return Err(error);
        }
        self.show(&Record::new("damage").text("error", error.message()))?;
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
