//! The manifest of a backup, and a stretch of an archive.

use super::logs::changes;
use super::{File, Record, Report};
use crate::backup::archive::{Note, STRETCH_BYTES_MAX, Stretch};
use crate::backup::{BackupManifest, MANIFEST_BYTES_MAX, StretchName};
use crate::base::{Error, Result};
use crate::vfs::read_exact_at;

/// Shows what the manifest of backup `number` says, if all of it is sound: one checksum covers it.
pub(super) fn manifest(file: &File<'_>, number: u64, report: &mut Report<'_>) -> Result<()> {
    let bytes = read(file, MANIFEST_BYTES_MAX)?;
    let Some(manifest) = report.sound(BackupManifest::decode(number, &bytes))? else {
        return Ok(());
    };
    let created = u64::try_from(manifest.created.as_millis()).unwrap_or(u64::MAX);
    let instance = format!("{:032x}", manifest.instance);
    report.show(
        &Record::new("backup")
            .number("number", number)
            .number("unix_milliseconds", created)
            .text("instance", &instance)
            .number("sequence", manifest.sequence)
            .number("files", manifest.files.len() as u64)
            .number("bytes", manifest.bytes()),
    )?;
    for (name, pieces) in &manifest.files {
        let name = name.to_string();
        report.show(
            &Record::new("file")
                .at_depth(1)
                .text("name", &name)
                .number("pieces", pieces.len() as u64),
        )?;
        for piece in pieces {
            let name = piece.to_string();
            report.show(&Record::new("piece").at_depth(2).text("name", &name))?;
        }
    }
    if let Some(binding) = &manifest.binding {
        let history = format!("{:032x}", binding.history);
        report.show(
            &Record::new("archive")
                .text("history", &history)
                .number("place", binding.place),
        )?;
    }
    let state = manifest.state.snapshot();
    report.show(&Record::new("state").number("records", state.records.len() as u64))?;
    changes(&state, report)
}

/// Shows what the object of the stretch `name` says, if all of it is sound.
pub(super) fn stretch(file: &File<'_>, name: StretchName, report: &mut Report<'_>) -> Result<()> {
    let bytes = read(file, STRETCH_BYTES_MAX)?;
    let Some(stretch) = report.sound(Stretch::decode(name, &bytes))? else {
        return Ok(());
    };
    let moment = u64::try_from(stretch.moment.as_millis()).unwrap_or(u64::MAX);
    let history = format!("{:032x}", name.history);
    report.show(
        &Record::new("stretch")
            .text("history", &history)
            .number("first", name.first)
            .number("last", name.last)
            .number("unix_milliseconds", moment)
            .number("bytes", stretch.bytes()),
    )?;
    for piece in &stretch.pieces {
        let name = piece.to_string();
        report.show(&Record::new("piece").at_depth(1).text("name", &name))?;
    }
    for note in &stretch.notes {
        let (what, keyspace, first, last) = match *note {
            Note::TablesAdded(sequence) => ("tables_added", None, sequence, sequence),
            Note::LeftOut {
                keyspace,
                first,
                last,
            } => ("left_out", Some(keyspace), first, last),
            Note::Dropped { keyspace, sequence } => ("dropped", Some(keyspace), sequence, sequence),
        };
        let mut record = Record::new(what).at_depth(1);
        if let Some(keyspace) = keyspace {
            record = record.number("keyspace", keyspace.0.into());
        }
        report.show(&record.number("first", first).number("last", last))?;
    }
    Ok(())
}

/// The bytes of the file, and one more than `bytes_max` if it is longer.
fn read(file: &File<'_>, bytes_max: usize) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", file.path, error);
    let opened = file.open()?;
    let length = opened.length().map_err(failed)?;
    let length = length.min(bytes_max as u64 + 1);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    read_exact_at(&*opened, &mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}
