//! Value logs: the places of values, and the state after a failure.

use std::io;

use super::super::log_writer::LogPosition;
use super::super::{ValueLogWriter, rewrite};
use super::*;
use crate::base::ErrorKind;
use crate::log::memory::{MemoryVfs, Operation};
use crate::vfs::Vfs;
use crate::vfs::WRITE_BYTES;

fn create(vfs: &MemoryVfs) -> ValueLogWriter {
    ValueLogWriter::create(vfs, Path::new(""), NUMBER).unwrap()
}

fn append(writer: &mut ValueLogWriter, entry: &Owned) -> Result<ValuePointer> {
    writer.append(&entry.key, &entry.value, entry.compression)
}

/// Values of `lengths` that are as long in the file, whatever codecs are built in.
fn incompressible<const COUNT: usize>(lengths: [usize; COUNT]) -> [Owned; COUNT] {
    let plain = |mut entry: Owned| {
        entry.compression = Compression::None;
        entry
    };
    let entries: Vec<Owned> = entries(&lengths).into_iter().map(plain).collect();
    entries
        .try_into()
        .unwrap_or_else(|_| unreachable!("one for each length"))
}

/// Appends what belongs together, and writes and keeps it.
fn commit(writer: &mut ValueLogWriter, group: &[Owned]) -> Vec<ValuePointer> {
    let pointers = group.iter().map(|entry| append(writer, entry).unwrap());
    let pointers = pointers.collect();
    writer.write().unwrap();
    writer.keep();
    pointers
}

fn stored(vfs: &MemoryVfs) -> Vec<u8> {
    vfs.read(Path::new(&file_name(NUMBER)))
}

/// Reads each value where its pointer says.
fn check(vfs: &MemoryVfs, entries: &[Owned], pointers: &[ValuePointer]) {
    let meta = ValueFileMeta::growing(NUMBER);
    let file = ValueFile::open(vfs, Path::new(""), &meta, &BlockSource::Mapped.into()).unwrap();
    assert_eq!(entries.len(), pointers.len());
    for (entry, pointer) in entries.iter().zip(pointers) {
        assert!(*file.read(&entry.key, pointer).unwrap() == *entry.value);
    }
}

fn kind<T>(outcome: Result<T>) -> ErrorKind {
    outcome.map(drop).unwrap_err().kind()
}

// I1, I2 of the writer of logs: also values at and beyond the bounds of its buffer.
#[test]
fn records_lie_in_commit_order_and_count_once_they_are_kept() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    let entries = entries(&[
        300,
        0,
        WRITE_BYTES - 40,
        5000,
        WRITE_BYTES,
        3 * WRITE_BYTES + 1,
        9,
        WRITE_BYTES / 2,
        WRITE_BYTES / 2,
        7,
    ]);
    let mut pointers = Vec::new();
    let mut expected = LogPosition::default();
    for group in entries.chunks(3) {
        let begun = writer.shared().written();
        for entry in group {
            pointers.push(append(&mut writer, entry).unwrap());
            assert_eq!(writer.position(), expected);
            assert_eq!(writer.shared().written(), begun);
        }
        let end = pointers
            .last()
            .map_or(0, |last| last.offset + last.record_bytes);
        assert_eq!(writer.write().unwrap(), end - begun);
        assert_eq!(
            (writer.position(), writer.shared().written()),
            (expected, end)
        );
        writer.keep();
        expected.end = end;
        expected.entries += group.len() as u64;
        expected.value_bytes += group.iter().map(|it| it.value.len() as u64).sum::<u64>();
        assert_eq!(writer.position(), expected);
        check(&vfs, &entries[..pointers.len()], &pointers);
    }
    let mut end = 0;
    for (pointer, entry) in pointers.iter().zip(&entries) {
        assert_eq!((pointer.file, pointer.offset), (NUMBER, end));
        assert_eq!(pointer.value_bytes, entry.value.len() as u64);
        end += pointer.record_bytes;
    }
    assert_eq!(stored(&vfs).len() as u64, end);
}

#[test]
fn a_group_of_short_values_is_one_write() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    let group = entries(&[1000; 20]);
    commit(&mut writer, &group);
    vfs.take_log();
    commit(&mut writer, &group);
    assert_eq!(vfs.take_log(), [Operation::Write]);
}

// I1 of the writer of logs.
#[test]
fn a_log_ends_before_written_values_of_a_failed_group() {
    for length in [500, 2 * WRITE_BYTES] {
        for is_written in [false, true] {
            let vfs = MemoryVfs::default();
            let mut writer = create(&vfs);
            let [kept, abandoned, next] =
                <[Owned; 3]>::try_from(entries(&[400, length, 600])).unwrap();
            let first = commit(&mut writer, std::slice::from_ref(&kept))[0];
            let (position, before) = (writer.position(), stored(&vfs));
            let place = append(&mut writer, &abandoned).unwrap();
            if is_written {
                writer.write().unwrap();
            }
            let can_continue = writer.forget();
            assert_eq!(writer.position(), position);
            assert_eq!(can_continue, stored(&vfs) == before);
            assert!(can_continue != is_written || length > WRITE_BYTES);
            if can_continue {
                let second = commit(&mut writer, std::slice::from_ref(&next))[0];
                assert_eq!(second.offset, place.offset);
                check(&vfs, &[kept, next], &[first, second]);
            } else {
                check(&vfs, &[kept], &[first]);
            }
        }
    }
}

// I3 of the writer of logs.
#[test]
fn a_full_disk_fails_before_any_value_counts() {
    for length in [3000, 2 * WRITE_BYTES] {
        let vfs = MemoryVfs::default();
        vfs.set_quota(1000);
        let mut writer = create(&vfs);
        let [kept, small, large] = incompressible([100, 100, length]);
        let first = commit(&mut writer, std::slice::from_ref(&kept))[0];
        let (position, before) = (writer.position(), stored(&vfs));
        for _ in 0..3 {
            append(&mut writer, &small).unwrap();
            assert_eq!(kind(append(&mut writer, &large)), ErrorKind::NoSpace);
            writer.forget();
            assert_eq!(writer.position(), position);
            assert_eq!(stored(&vfs), before);
        }
        // The remaining space is enough for a shorter value.
        let second = commit(&mut writer, std::slice::from_ref(&small))[0];
        vfs.heal();
        let third = commit(&mut writer, std::slice::from_ref(&large))[0];
        check(&vfs, &[kept, small, large], &[first, second, third]);
    }
}

#[test]
fn a_file_system_without_reservation_is_written() {
    let vfs = MemoryVfs::default();
    vfs.fail_once(Operation::Reserve, 0, io::ErrorKind::Unsupported);
    let mut writer = create(&vfs);
    let entries = entries(&[500; 3]);
    vfs.take_log();
    let pointers = commit(&mut writer, &entries);
    assert_eq!(vfs.take_log(), [Operation::Reserve, Operation::Write]);
    check(&vfs, &entries, &pointers);
    // Without a reservation, a full disk during a write leaves the state of the values unknown.
    append(&mut writer, &entries[0]).unwrap();
    vfs.fail_once(Operation::Write, 0, io::ErrorKind::StorageFull);
    assert_eq!(kind(writer.write()), ErrorKind::Poisoned);
    assert!(writer.shared().is_broken());
}

// I3 of the writer of logs.
#[test]
fn a_failed_write_breaks_the_log_for_good() {
    for length in [500, 2 * WRITE_BYTES] {
        let vfs = MemoryVfs::default();
        let mut writer = create(&vfs);
        let [kept, failed] = <[Owned; 2]>::try_from(entries(&[400, length])).unwrap();
        let first = commit(&mut writer, std::slice::from_ref(&kept))[0];
        writer.shared().sync_through(writer.position().end).unwrap();
        let position = writer.position();
        vfs.fail_once(Operation::Write, 0, io::ErrorKind::Other);
        let written = append(&mut writer, &failed).and_then(|_| writer.write());
        assert_eq!(kind(written), ErrorKind::Io);
        writer.forget();
        vfs.take_log();
        assert_eq!(kind(append(&mut writer, &kept)), ErrorKind::Poisoned);
        assert!(vfs.take_log().is_empty());
        assert_eq!(writer.position(), position);
        assert_eq!(writer.shared().written(), position.end);
        // Durable values stay durable.
        writer.shared().sync_through(position.end).unwrap();
        check(&vfs, &[kept], &[first]);
    }
}

// I3 of the writer of logs.
#[test]
fn any_other_failed_reservation_breaks_the_log() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    let entry = &entries(&[500])[0];
    vfs.fail_once(Operation::Reserve, 0, io::ErrorKind::Other);
    assert_eq!(kind(append(&mut writer, entry)), ErrorKind::Io);
    assert_eq!(kind(append(&mut writer, entry)), ErrorKind::Poisoned);
}

#[test]
fn short_writes_are_continued() {
    let vfs = MemoryVfs::default();
    vfs.move_in_pieces(1000);
    let mut writer = create(&vfs);
    let entries = entries(&[3000, 2 * WRITE_BYTES, 10]);
    let pointers = commit(&mut writer, &entries);
    check(&vfs, &entries, &pointers);
}

// I2 of rewriting.
#[test]
fn rewritten_values_survive_a_crash() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    vfs.sync_dir(Path::new("")).unwrap();
    let entries = entries(&[300, 2 * WRITE_BYTES, 0, 500]);
    let pointers = commit(&mut writer, &entries);
    let before = stored(&vfs);
    vfs.move_in_pieces(1000);
    rewrite(&vfs, Path::new(""), NUMBER, &places(&pointers)).unwrap();
    vfs.crash();
    assert_eq!(stored(&vfs), before);
    check(&vfs, &entries, &pointers);
}

// I1 of rewriting.
#[test]
fn lost_values_are_not_rewritten() {
    let entries = incompressible([300, 400, 500]);
    for harm in 0..3 {
        let vfs = MemoryVfs::default();
        let pointers = commit(&mut create(&vfs), &entries);
        let mut bytes = stored(&vfs);
        let second = usize::try_from(pointers[1].offset).unwrap();
        match harm {
            0 => bytes.truncate(second + 20),
            1 => bytes[second..].fill(0),
            _ => bytes[second + 100] ^= 1,
        }
        vfs.write(Path::new(&file_name(NUMBER)), &bytes);
        vfs.take_log();
        let outcome = rewrite(&vfs, Path::new(""), NUMBER, &places(&pointers));
        assert_eq!(kind(outcome), ErrorKind::Io);
        assert!(!vfs.take_log().contains(&Operation::Sync));
        assert_eq!(stored(&vfs), bytes);
    }
}

fn places(pointers: &[ValuePointer]) -> Vec<(u64, usize)> {
    let place = |it: &ValuePointer| (it.offset, usize::try_from(it.record_bytes).unwrap());
    pointers.iter().map(place).collect()
}
