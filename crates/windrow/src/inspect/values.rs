//! A value file, record by record.
//!
//! Without the tables that point to it, a record shows only what its form says. The key seeds the checksum,
//! so a record without a key is shown as not verified.

use std::io;

use super::tables::compression_name;
use super::{File, Record, Report};
use crate::base::{Error, FileNumber, Result};
use crate::value::{
    Found, RECORD_HEAD_BYTES_MAX, each_discarded, find_moves, find_record, record_bytes,
};
use crate::vfs::{self, read_exact_at};

/// The bytes of one read, except for a longer record.
const READ_BYTES: usize = 1 << 20;

/// Shows a value file.
pub(super) fn values(file: &File<'_>, number: FileNumber, report: &mut Report<'_>) -> Result<()> {
    let source = file.open()?;
    let length = source
        .length()
        .map_err(|error| Error::io("read the length of", file.path, error))?;
    report.show(
        &Record::new("values")
            .number("file", number.0)
            .number("length", length),
    )?;
    let mut read_buffer = ReadBuffer {
        source: &*source,
        length,
        offset: 0,
        bytes: Vec::new(),
        passed: 0,
    };
    while read_buffer.position() < length {
        let offset = read_buffer.position();
        let read = |error| Error::read(file.name, offset, error);
        let mut bytes = read_buffer.fill(RECORD_HEAD_BYTES_MAX).map_err(read)?;
        if let Some(length) = record_bytes(bytes) {
            bytes = read_buffer.fill(length).map_err(read)?;
        }
        if let Some(moves) = find_moves(bytes, (number, offset)) {
            let moves = moves.map_err(|error| error.in_file(file.name, offset));
            let Some(moves) = report.sound(moves)? else {
                break;
            };
            report.show(
                &Record::new("relocations")
                    .number("offset", offset)
                    .number("origin", moves.origin.0)
                    .number("entries", moves.entries as u64),
            )?;
            read_buffer.passed += moves.bytes;
            continue;
        }
        let found = find_record(bytes, (number, offset));
        // Behind a malformed record, the offset of the next record is unknown.
        let found = found.map_err(|error| error.in_file(file.name, offset));
        let Some(found) = report.sound(found)? else {
            break;
        };
        if found.is_sound == Some(false) {
            let what = "a record fails its checksum";
            report.sound::<()>(Err(Error::corruption(file.name, offset, what)))?;
        } else {
            report.show(&record_of(&found, offset))?;
        }
        read_buffer.passed += found.record_bytes;
    }
    Ok(())
}

/// Shows a discard list.
pub(super) fn discard_list(
    file: &File<'_>,
    number: FileNumber,
    report: &mut Report<'_>,
) -> Result<()> {
    let source = file.open()?;
    let length = source
        .length()
        .map_err(|error| Error::io("read the length of", file.path, error))?;
    report.show(
        &Record::new("discard_list")
            .number("file", number.0)
            .number("length", length),
    )?;
    let shown = each_discarded(&*source, number, length, |values, offset| {
        report.show(
            &Record::new("garbage_value")
                .number("file", values.0)
                .number("offset", offset),
        )
    });
    report.sound(shown).map(drop)
}

fn record_of<'a>(found: &Found<'a>, offset: u64) -> Record<'a> {
    let mut record = Record::new("value")
        .number("offset", offset)
        .number("record_bytes", found.record_bytes as u64)
        .text("compression", compression_name(found.codec));
    if !found.stored_key.is_empty() {
        record = record.bytes("key", found.stored_key);
    }
    let checksum = match found.is_sound {
        Some(_) => "verified",
        None => "not verified",
    };
    record
        .number("value_bytes", found.value_bytes as u64)
        .text("checksum", checksum)
}

/// A buffered part of the file.
struct ReadBuffer<'a> {
    source: &'a dyn vfs::File,
    length: u64,
    /// The offset of the bytes in the file.
    offset: u64,
    bytes: Vec<u8>,
    /// The number of consumed bytes.
    passed: usize,
}

impl ReadBuffer<'_> {
    /// The offset of the next record in the file.
    fn position(&self) -> u64 {
        self.offset + self.passed as u64
    }

    /// The bytes from the position on: at least `count`, or all that are left.
    fn fill(&mut self, count: usize) -> io::Result<&[u8]> {
        let left = usize::try_from(self.length - self.position()).unwrap_or(usize::MAX);
        if self.bytes.len() - self.passed < left.min(count) {
            self.offset = self.position();
            self.bytes.drain(..self.passed);
            self.passed = 0;
            let kept = self.bytes.len();
            self.bytes.resize(left.min(count.max(READ_BYTES)), 0);
            let offset = self.offset + kept as u64;
            read_exact_at(self.source, &mut self.bytes[kept..], offset)?;
        }
        Ok(&self.bytes[self.passed..])
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use crate::base::{ErrorKind, FileNumber};
    use crate::codec::Compression;
    use crate::inspect::dump;
    use crate::value::ValueLogWriter;
    use crate::vfs::{OpenMode, OsVfs, Vfs, write_all_at};

    /// Records with keys are verified, and the records behind a damaged one are shown.
    #[test]
    fn records_with_keys_are_verified() {
        let folder = tempfile::tempdir().unwrap();
        let number = FileNumber(15);
        let mut writer = ValueLogWriter::create(&OsVfs, folder.path(), number).unwrap();
        for (key, value) in [("apple", "red"), ("apricot", "orange"), ("plum", "blue")] {
            writer
                .append(key.as_bytes(), value.as_bytes(), Compression::None)
                .unwrap();
        }
        writer.write().unwrap();
        writer.keep();
        let length = writer.position().end;
        let path = folder.path().join("000015.values");
        let shown = || {
            let mut out = Vec::new();
            let outcome = dump(&OsVfs, &path, &mut out);
            (String::from_utf8(out).unwrap(), outcome)
        };
        let lines = [
            format!("values: file 15, length {length}\n"),
            "value: offset 0, record_bytes 15, compression none, key \"apple\", value_bytes 3, checksum verified\n".to_owned(),
            "value: offset 15, record_bytes 20, compression none, key \"apricot\", value_bytes 6, checksum verified\n".to_owned(),
            "value: offset 35, record_bytes 15, compression none, key \"plum\", value_bytes 4, checksum verified\n".to_owned(),
        ];
        let (text, outcome) = shown();
        outcome.unwrap();
        assert_eq!(text, lines.concat());

        let file = OsVfs.open(&path, OpenMode::ReadWrite).unwrap();
        write_all_at(&*file, b"?", 25).unwrap();
        let (text, outcome) = shown();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let damage = format!("damage: error {}\n", error.message());
        assert_eq!(
            text,
            [&lines[0], &lines[1], &damage, &lines[3]]
                .map(String::as_str)
                .concat()
        );
    }
}
