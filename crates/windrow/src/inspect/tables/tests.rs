//! Table files with failed appends and with damage.

use std::path::Path;

use super::super::{Field, File, Report};
use super::{ErrorKind, FOOTER_BYTES, FileNumber, Kind, Result, SegmentId, table};
use crate::base::Trailer;
use crate::codec::Compression;
use crate::table::{FileMeta, TableOptions, TableWriter, file_name};
use crate::vfs::memory::MemoryVfs;

const NUMBER: FileNumber = FileNumber(7);

/// Writes a segment of `entries` entries, behind the segments of `before`.
fn write(vfs: &MemoryVfs, before: Option<&FileMeta>, id: u64, entries: u32) -> FileMeta {
    let options = TableOptions {
        block_bytes: 512,
        filter_units: [10.0, 0.0, 0.0, 0.0],
        compression: Compression::None,
    };
    let (folder, id) = (Path::new(""), SegmentId(id));
    let writer = match before {
        None => TableWriter::create(vfs, folder, NUMBER, id, &options),
        Some(before) => TableWriter::append(vfs, folder, before, id, &options),
    };
    let mut writer = writer.unwrap();
    for number in 0..entries {
        let trailer = Trailer::new(id.0, Kind::Value);
        writer
            .add(&number.to_be_bytes(), trailer, &[7; 50])
            .unwrap();
    }
    writer.finish().unwrap().file
}

/// The ids of the shown segments, the offset of the free space behind them, and the outcome.
fn shown(vfs: &MemoryVfs) -> (Vec<u64>, Option<u64>, Result<()>) {
    let name = file_name(NUMBER);
    let path = Path::new(&name);
    let (mut ids, mut free) = (Vec::new(), None);
    let mut visitor = |record: &super::Record<'_>| {
        let number = |field| match record.field(field) {
            Some(Field::Number(number)) => Some(number),
            _ => None,
        };
        match record.name() {
            "footer" => ids.extend(number("segment")),
            "free" => free = number("offset"),
            _ => {}
        }
        Ok(())
    };
    let mut report = Report {
        path,
        visitor: &mut visitor,
        damage: None,
    };
    let file = File {
        vfs,
        path,
        directory: Path::new(""),
        name: &name,
    };
    table(&file, NUMBER, &mut report).unwrap();
    let damage = report.damage.map_or(Ok(()), Err);
    (ids, free, damage)
}

#[test]
fn the_bytes_of_a_failed_append_are_skipped() {
    let vfs = MemoryVfs::default();
    let first = write(&vfs, None, 10, 50);
    let two = write(&vfs, Some(&first), 11, 50);
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let check = |expected: &[u64], free: Option<u64>| {
        let (ids, found, outcome) = shown(&vfs);
        outcome.unwrap();
        assert_eq!(ids, expected);
        assert_eq!(found, free);
    };
    check(&[10, 11], None);

    // Zeros: up to the bytes of one search step, and more.
    let sound = file.bytes.lock().clone();
    for more in [1, FOOTER_BYTES, (64 << 10) - 1, 64 << 10, 200 << 10] {
        file.bytes.lock().resize(sound.len() + more, 0);
        check(&[10, 11], Some(two.end()));
    }
    file.bytes.lock().truncate(sound.len());

    // An append whose end was never written.
    let long = write(&vfs, Some(&two), 12, 500);
    let length = file.bytes.lock().len();
    file.bytes.lock()[length - FOOTER_BYTES..].fill(0);
    check(&[10, 11], Some(two.end()));

    // A whole segment that no manifest names, which only a manifest could show; then shorter segments
    // at the same offset, and inside it.
    write(&vfs, Some(&two), 13, 500);
    check(&[10, 11, 13], None);
    let three = write(&vfs, Some(&two), 14, 50);
    check(&[10, 11, 14], Some(three.end()));
    let four = write(&vfs, Some(&three), 15, 50);
    assert!(four.end() < long.end());
    check(&[10, 11, 14, 15], Some(four.end()));
}

#[test]
fn a_damaged_segment_is_not_skipped() {
    let vfs = MemoryVfs::default();
    let first = write(&vfs, None, 10, 50);
    let two = write(&vfs, Some(&first), 11, 50);
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    let place = |offset: u64| usize::try_from(offset).unwrap();
    let offset = two.segments[1].offset;
    for (at, expected) in [
        // The first block, the index or behind it, the footer.
        (offset, vec![10, 11]),
        (two.end() - FOOTER_BYTES as u64 - 10, vec![10, 11]),
        (two.end() - 10, vec![10]),
    ] {
        file.bytes.lock()[place(at)] ^= 1;
        let (ids, _, outcome) = shown(&vfs);
        file.bytes.lock()[place(at)] ^= 1;
        assert_eq!(ids, expected, "damage at {at}");
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
    }
    // Without any footer.
    file.bytes.lock().truncate(FOOTER_BYTES);
    let (ids, _, outcome) = shown(&vfs);
    assert!(ids.is_empty());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
}
