//! Tests of the writer, the reader and the sync together, on a file system with faults.

mod batches;
mod chunks;
mod holes;
mod rewrites;

use std::io;
use std::path::Path;

use proptest::prelude::*;

use super::memory::{MemoryVfs, Operation};
use super::reader::End;
use super::*;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Kind, Result};

const NUMBER: FileNumber = FileNumber(12);
/// The end and the content of each record.
type Records = Vec<(u64, Vec<u8>)>;

const NAME: &str = "000012.wal";

impl LogWriter {
    fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.begin().extend_from_slice(payload);
        self.commit()
    }
}

fn directory() -> &'static Path {
    Path::new("db")
}

fn create(vfs: &MemoryVfs) -> LogWriter {
    LogWriter::create(vfs, directory(), NAME, NUMBER, None).unwrap()
}

/// Reads all records and the end of the log.
fn read(vfs: &MemoryVfs, recorded: Option<u64>) -> Result<(Records, End)> {
    let mut reader = LogReader::open(vfs, directory(), NAME, NUMBER, recorded)?;
    let mut records = Vec::new();
    let mut position = 0;
    while let Some(record) = reader.next()? {
        assert!(record.offset >= position && record.end > record.offset);
        position = record.end;
        records.push((record.end, record.payload.to_vec()));
    }
    assert_eq!(reader.next()?, None);
    let end = reader.end()?;
    Ok((records, end))
}

fn sync(writer: &LogWriter) {
    writer.shared().sync_through(writer.end()).unwrap();
}

fn kind<T>(outcome: Result<T>) -> ErrorKind {
    outcome.err().as_ref().map(Error::kind).expect("an error")
}

/// A log of several records, with a sync between them: the file, the records and the offset of the marker.
fn sample(vfs: &MemoryVfs) -> (Vec<u8>, Records, u64) {
    let mut writer = create(vfs);
    let mut records = Vec::new();
    for (index, length) in [1, 40, 3, 100, 17, 60].into_iter().enumerate() {
        let payload = vec![u8::try_from(index).unwrap(); length];
        writer.append(&payload).unwrap();
        records.push((writer.end(), payload));
        if index % 2 == 1 {
            sync(&writer);
        }
    }
    let marker = writer.end();
    writer.append_marker().unwrap();
    (vfs.read(&directory().join(NAME)), records, marker)
}

proptest! {
    #[test]
    fn round_trips(
        lengths in proptest::collection::vec(1..5000usize, 0..40),
        large in proptest::option::of(0..600_000usize),
        pieces in proptest::option::of(1..3000usize),
        syncs in 1..10usize,
    ) {
        let vfs = MemoryVfs::default();
        if let Some(bytes) = pieces {
            vfs.move_in_pieces(bytes.max(200));
        }
        let mut writer = create(&vfs);
        let mut expected = Vec::new();
        for (index, length) in lengths.into_iter().chain(large).enumerate() {
            let payload: Vec<u8> = (0..=length).map(|byte| (byte * index).to_le_bytes()[0]).collect();
            writer.append(&payload).unwrap();
            expected.push((writer.end(), payload));
            if index % syncs == 0 {
                sync(&writer);
                writer.append_marker().unwrap();
            }
        }
        let (records, end) = read(&vfs, None).unwrap();
        prop_assert_eq!(records, expected);
        prop_assert_eq!(end.offset, writer.end());
        prop_assert_eq!(end.file_length, writer.end());
        prop_assert_eq!(end.action(false), TailAction::EndOfHistory);
    }

    #[test]
    fn arbitrary_bytes_are_not_a_log(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let vfs = MemoryVfs::default();
        vfs.write(&directory().join(NAME), &bytes);
        let (records, end) = read(&vfs, None).unwrap();
        prop_assert!(records.is_empty());
        prop_assert_eq!((end.offset, end.evidence), (0, 0));
    }
}

#[test]
fn an_append_is_one_write_and_reserves_rarely() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(&[0; 4096]).unwrap();
    let capacity = writer.begin().capacity();
    vfs.take_log();
    for _ in 0..100 {
        writer.begin().extend_from_slice(b"payload");
        writer.commit().unwrap();
    }
    assert_eq!(vfs.take_log(), [Operation::Write; 100]);
    assert_eq!(writer.begin().capacity(), capacity);
}

// Reader I1.
#[test]
fn a_log_cut_anywhere_yields_the_records_before_the_cut() {
    let vfs = MemoryVfs::default();
    let (bytes, records, _) = sample(&vfs);
    for length in 0..=bytes.len() {
        vfs.write(&directory().join(NAME), &bytes[..length]);
        let (found, end) = read(&vfs, None).unwrap();
        let whole = records
            .iter()
            .filter(|(end, _)| *end <= length as u64)
            .count();
        assert_eq!(found, records[..whole]);
        // The cut removes its own evidence: only a recorded length can prove the loss.
        assert_eq!(end.action(false), TailAction::EndOfHistory);
        let (_, end) = read(&vfs, Some(bytes.len() as u64)).unwrap();
        let (lost, unproven) = if length == bytes.len() {
            (TailAction::NextLog, TailAction::NextLog)
        } else {
            (TailAction::Corruption, TailAction::EndOfHistory)
        };
        assert_eq!(end.action(true), lost);
        assert_eq!(end.action(false), unproven);
    }
}

// Reader I1, I3.
#[test]
fn every_flipped_bit_ends_the_log_and_lost_synced_bytes_are_detected() {
    let vfs = MemoryVfs::default();
    let (bytes, records, marker) = sample(&vfs);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        vfs.write(&directory().join(NAME), &damaged);
        let (found, end) = read(&vfs, None).unwrap();
        let whole = records
            .iter()
            .filter(|(end, _)| *end <= (bit / 8) as u64)
            .count();
        assert_eq!(found, records[..whole], "bit {bit}");
        // The marker at the end proves that everything before it was synced.
        let expected = if ((bit / 8) as u64) < marker {
            TailAction::Corruption
        } else {
            TailAction::EndOfHistory
        };
        assert_eq!(end.action(false), expected, "bit {bit}");
    }
}

#[test]
fn a_torn_tail_is_not_damage() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(b"synced").unwrap();
    sync(&writer);
    let synced = writer.end();
    for _ in 0..3 {
        writer.append(b"buffered").unwrap();
    }
    let bytes = vfs.read(&directory().join(NAME));
    // A hole before whole chunks, which record the sync but none beyond the hole.
    for hole in usize::try_from(synced).unwrap()..bytes.len() {
        let mut torn = bytes.clone();
        torn[hole] ^= 0x55;
        vfs.write(&directory().join(NAME), &torn);
        let (found, end) = read(&vfs, None).unwrap();
        assert!(!found.is_empty());
        assert!(end.evidence <= synced && end.offset >= synced);
        assert_eq!(end.action(false), TailAction::EndOfHistory);
    }
}

#[test]
fn chunks_of_another_log_or_place_are_invalid() {
    let vfs = MemoryVfs::default();
    let (bytes, _, _) = sample(&vfs);
    // Stale: the same bytes in the file of another log.
    let other = FileNumber(13);
    let mut reader = LogReader::open(&vfs, directory(), NAME, other, None).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(reader.end().unwrap().evidence, 0);
    // Misplaced: one byte further.
    let moved = [&[0], &bytes[..]].concat();
    vfs.write(&directory().join(NAME), &moved);
    let (records, end) = read(&vfs, None).unwrap();
    assert!(records.is_empty());
    assert_eq!(end.evidence, 0);
}

#[test]
fn a_recorded_length_ends_a_log_before_later_chunks() {
    let vfs = MemoryVfs::default();
    let (_, records, _) = sample(&vfs);
    let recorded = records[2].0;
    let (found, end) = read(&vfs, Some(recorded)).unwrap();
    assert_eq!(found, records[..3]);
    assert_eq!(end.offset, recorded);
    assert_eq!(end.action(false), TailAction::NextLog);
    // A length that is no end of a chunk was never recorded.
    let (_, end) = read(&vfs, Some(recorded - 1)).unwrap();
    assert_eq!(end.action(false), TailAction::Corruption);
}

// Reader I2.
#[test]
fn the_next_call_after_a_read_error_continues() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    let payload = vec![7; 150_000];
    for _ in 0..8 {
        writer.append(&payload).unwrap();
    }
    vfs.take_log();
    read(&vfs, None).unwrap();
    let reads = vfs.take_log().len();
    for after in 0..reads {
        vfs.fail_once(Operation::Read, after, io::ErrorKind::Other);
        let outcome = LogReader::open(&vfs, directory(), NAME, NUMBER, None);
        let mut reader = outcome.unwrap();
        let (mut records, mut errors) = (0, 0);
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    assert_eq!(record.payload, payload);
                    records += 1;
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io);
                    errors += 1;
                }
            }
        }
        assert_eq!(records, 8);
        assert!(errors <= 1);
        vfs.heal();
    }
}

#[test]
fn a_missing_log_is_corruption_and_an_unreadable_one_is_not() {
    let vfs = MemoryVfs::default();
    assert_eq!(kind(read(&vfs, None)), ErrorKind::Corruption);
    drop(create(&vfs));
    vfs.fail_once(Operation::Open, 0, io::ErrorKind::PermissionDenied);
    assert_eq!(kind(read(&vfs, None)), ErrorKind::Io);
}

// Writer I3.
#[test]
fn a_full_disk_is_reported_before_anything_changes() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    vfs.set_quota(1000);
    writer.append(&[1; 500]).unwrap();
    let before = vfs.read(&directory().join(NAME));
    for _ in 0..3 {
        assert_eq!(kind(writer.append(&[2; 500])), ErrorKind::NoSpace);
    }
    assert!(!writer.is_broken());
    assert_eq!(vfs.read(&directory().join(NAME)), before);
    writer.append(&[3; 400]).unwrap();
    vfs.heal();
    writer.append(&[4; 500]).unwrap();
    let (records, end) = read(&vfs, None).unwrap();
    let sizes: Vec<_> = records.iter().map(|(_, payload)| payload.len()).collect();
    assert_eq!(sizes, [500, 400, 500]);
    assert_eq!(end.offset, writer.end());
}

#[test]
fn a_log_works_on_a_file_system_that_cannot_reserve() {
    let vfs = MemoryVfs::default();
    vfs.fail_once(Operation::Reserve, 0, io::ErrorKind::Unsupported);
    let mut writer = create(&vfs);
    writer.append(b"one").unwrap();
    writer.append(b"two").unwrap();
    let reserves = vfs.take_log();
    let reserves = reserves.iter().filter(|step| **step == Operation::Reserve);
    assert_eq!(reserves.count(), 1);
    // If the disk is full during a write, it is unknown whether the record was written.
    vfs.fail_once(Operation::Write, 0, io::ErrorKind::StorageFull);
    assert_eq!(kind(writer.append(b"three")), ErrorKind::Poisoned);
    assert!(writer.is_broken());
}

#[test]
fn a_failed_write_breaks_the_log_permanently() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(b"one").unwrap();
    sync(&writer);
    vfs.fail_once(Operation::Write, 0, io::ErrorKind::Other);
    assert_eq!(kind(writer.append(b"two")), ErrorKind::Io);
    vfs.take_log();
    assert_eq!(kind(writer.append(b"three")), ErrorKind::Poisoned);
    assert_eq!(kind(writer.append_marker()), ErrorKind::Poisoned);
    assert!(vfs.take_log().is_empty());
    // What was durable before stays so.
    writer.shared().sync_through(writer.end()).unwrap();
}

// Sync I3.
#[test]
fn a_failed_sync_is_never_repeated() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(b"one").unwrap();
    sync(&writer);
    let durable = writer.end();
    writer.append(b"two").unwrap();
    vfs.fail_once(Operation::Sync, 0, io::ErrorKind::Other);
    let shared = writer.shared();
    assert_eq!(kind(shared.sync_through(writer.end())), ErrorKind::Io);
    vfs.take_log();
    assert_eq!(kind(shared.sync_through(writer.end())), ErrorKind::Poisoned);
    assert_eq!(kind(writer.append(b"three")), ErrorKind::Poisoned);
    assert!(vfs.take_log().is_empty());
    assert!(writer.is_broken());
    assert_eq!(shared.synced(), durable);
    shared.sync_through(durable).unwrap();
}

// Sync I2.
#[test]
fn one_sync_covers_all_earlier_writes() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append(b"one").unwrap();
    let first = writer.end();
    writer.append(b"two").unwrap();
    vfs.take_log();
    let shared = writer.shared();
    shared.sync_through(first).unwrap();
    shared.sync_through(writer.end()).unwrap();
    assert_eq!(vfs.take_log(), [Operation::Sync]);
    assert_eq!(
        (shared.synced(), shared.written()),
        (writer.end(), writer.end())
    );
}

#[test]
fn markers_are_written_only_after_a_new_sync() {
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    writer.append_marker().unwrap();
    assert_eq!(writer.end(), 0);
    writer.append(b"one").unwrap();
    sync(&writer);
    let synced = writer.end();
    writer.append_marker().unwrap();
    let end = writer.end();
    assert_eq!(end, synced + HEADER_BYTES as u64);
    writer.append_marker().unwrap();
    assert_eq!(writer.end(), end);
    let (records, found) = read(&vfs, None).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((found.offset, found.evidence), (end, synced));
}

// Sync I4.
#[test]
fn a_sync_of_a_log_syncs_the_previous_log() {
    let vfs = MemoryVfs::default();
    let create_next = |before: &LogWriter, number: u64| {
        let name = format!("{number:06}.wal");
        let before = Some(before.shared());
        LogWriter::create(&vfs, directory(), &name, FileNumber(number), before).unwrap()
    };
    let mut first = create(&vfs);
    first.append(b"one").unwrap();
    let mut second = create_next(&first, 13);
    second.append(b"two").unwrap();
    let mut third = create_next(&second, 14);
    third.append(b"three").unwrap();
    vfs.take_log();
    sync(&third);
    assert_eq!(vfs.take_log(), [Operation::Sync; 3]);
    assert_eq!(first.shared().synced(), first.end());
    assert_eq!(second.shared().synced(), second.end());
    // Once is enough.
    assert_eq!(std::sync::Arc::strong_count(&first.shared()), 2);
    third.append(b"four").unwrap();
    vfs.take_log();
    sync(&third);
    assert_eq!(vfs.take_log(), [Operation::Sync]);
}

// Sync I3, I4.
#[test]
fn a_failed_sync_of_the_previous_log_breaks_the_log() {
    let vfs = MemoryVfs::default();
    let mut first = create(&vfs);
    first.append(b"one").unwrap();
    let before = Some(first.shared());
    let number = FileNumber(13);
    let mut second = LogWriter::create(&vfs, directory(), "000013.wal", number, before).unwrap();
    second.append(b"two").unwrap();
    vfs.fail_once(Operation::Sync, 0, io::ErrorKind::Other);
    let shared = second.shared();
    assert_eq!(kind(shared.sync_through(second.end())), ErrorKind::Io);
    assert_eq!(kind(shared.sync_through(second.end())), ErrorKind::Poisoned);
    assert_eq!(kind(second.append(b"three")), ErrorKind::Poisoned);
    assert_eq!(shared.synced(), 0);
}

/// Bytes as `docs/format.md` shows them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(32).map(|line| {
        let bytes: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n    ")
}

#[test]
fn the_examples_of_the_format_document_are_true() {
    let document = include_str!("../../../../../docs/format.md");
    let vfs = MemoryVfs::default();
    let mut writer = create(&vfs);
    let predecessor = Predecessor {
        number: FileNumber(9),
        end: 4660,
        synced: true,
    };
    let header = WalHeader {
        predecessor: Some(predecessor),
        base: 1000,
    };
    header.encode(writer.begin());
    writer.commit().unwrap();
    let header_end = usize::try_from(writer.end()).unwrap();
    let buffer = writer.begin();
    batch::put_count(buffer, 2);
    batch::put_entry(buffer, KeyspaceId(1), Kind::Value, b"apple", b"red");
    batch::put_entry(buffer, KeyspaceId(300), Kind::Tombstone, b"pear", b"");
    writer.commit().unwrap();
    let record_end = usize::try_from(writer.end()).unwrap();
    sync(&writer);
    writer.append_marker().unwrap();
    let bytes = vfs.read(&directory().join(NAME));
    for part in [
        &bytes[..header_end],
        &bytes[header_end..record_end],
        &bytes[record_end..],
    ] {
        assert!(document.contains(&hex(part)), "{}", hex(part));
    }
}
