//! The manifest of a backup.

use super::logs::changes;
use super::{File, Record, Report};
use crate::backup::{BackupManifest, MANIFEST_BYTES_MAX};
use crate::base::{Error, Result};
use crate::vfs::read_exact_at;

/// Shows what the manifest of backup `number` says, if all of it is sound: one checksum covers it.
pub(super) fn manifest(file: &File<'_>, number: u64, report: &mut Report<'_>) -> Result<()> {
    let bytes = read(file)?;
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
    let state = manifest.state.snapshot();
    report.show(&Record::new("state").number("records", state.records.len() as u64))?;
    changes(&state, report)
}

/// The bytes of the file, and one more than any manifest has if it is longer.
fn read(file: &File<'_>) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", file.path, error);
    let opened = file.open()?;
    let length = opened.length().map_err(failed)?;
    let length = length.min(MANIFEST_BYTES_MAX as u64 + 1);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    read_exact_at(&*opened, &mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}
