//! The files of garbage collection: discard lists, records of value logs, GC outputs and relocation tables.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::base::{Error, MemoryTracker};
use crate::value::relocation::{BLOCK_ENTRIES, find_moves};
use crate::value::{
    DiscardList, DiscardListWriter, GcOutputWriter, Move, RecordReader, RelocationTable,
    ValueReadBuffers, discard_list_name, read_discard_list,
};
use crate::vfs::{Footprint, OpenMode, Vfs};

const ORIGIN: FileNumber = FileNumber(7);
const LIST: FileNumber = FileNumber(31);

fn flip(vfs: &MemoryVfs, name: &str, bit: usize) {
    let file = vfs.file(Path::new(name));
    file.bytes.lock()[bit / 8] ^= 1 << (bit % 8);
}

fn write_list(vfs: &MemoryVfs, garbage: &[(u64, u64)]) -> DiscardList {
    let mut writer = DiscardListWriter::create(vfs, Path::new(""), LIST).unwrap();
    for &(file, offset) in garbage {
        writer.add(FileNumber(file), offset).unwrap();
    }
    writer.finish().unwrap()
}

fn read_list(vfs: &MemoryVfs, list: &DiscardList) -> Result<Vec<(u64, u64)>> {
    let mut read = Vec::new();
    read_discard_list(vfs, Path::new(""), list, |file, offset| {
        read.push((file.0, offset));
        Ok(())
    })?;
    read.sort_unstable();
    Ok(read)
}

proptest! {
    /// I1 of discard lists. Records of deleted files are skipped.
    #[test]
    fn a_list_names_its_records(
        garbage in proptest::collection::btree_set((1..5_u64, any::<u64>()), 0..300),
        deleted in 1..5_u64,
    ) {
        let vfs = MemoryVfs::default();
        let garbage: Vec<(u64, u64)> = garbage.into_iter().collect();
        let mut list = write_list(&vfs, &garbage);
        let count = |file: u64| garbage.iter().filter(|(known, _)| *known == file).count() as u64;
        for file in 1..5 {
            prop_assert_eq!(list.counts.get(&FileNumber(file)).copied().unwrap_or(0), count(file));
        }
        prop_assert_eq!(&read_list(&vfs, &list).unwrap(), &garbage);
        list.counts.remove(&FileNumber(deleted));
        let left: Vec<_> = garbage.into_iter().filter(|(file, _)| *file != deleted).collect();
        prop_assert_eq!(read_list(&vfs, &list).unwrap(), left);
    }
}

/// More than one chunk, in any order.
#[test]
fn a_long_list_is_read_chunk_by_chunk() {
    let vfs = MemoryVfs::default();
    let garbage: Vec<(u64, u64)> = (0..20_000)
        .map(|at| (3 + at % 2, at * 977 % 20_011))
        .collect();
    let list = write_list(&vfs, &garbage);
    let mut sorted = garbage;
    sorted.sort_unstable();
    assert_eq!(read_list(&vfs, &list).unwrap(), sorted);
}

/// The reader notes which pages it reads, up to the recorded end.
#[test]
fn a_list_that_ends_before_its_recorded_end_is_refused_at_once() {
    let vfs = MemoryVfs::default();
    let list = write_list(&vfs, &[(7, 100)]);
    let forged = DiscardList {
        length: 1 << 60,
        ..list
    };
    let error = read_list(&vfs, &forged).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn a_damaged_list_is_found() {
    let vfs = MemoryVfs::default();
    let garbage: Vec<(u64, u64)> = (0..40).map(|at| (3 + at % 2, at * 1000)).collect();
    let list = write_list(&vfs, &garbage);
    let name = discard_list_name(LIST);
    let is_damage =
        |error: &Error| error.kind() == ErrorKind::Corruption && error.to_string().contains(&name);
    for bit in 0..usize::try_from(list.length).unwrap() * 8 {
        flip(&vfs, &name, bit);
        assert!(is_damage(&read_list(&vfs, &list).unwrap_err()), "bit {bit}");
        flip(&vfs, &name, bit);
    }
    let counted = |change: fn(&mut u64)| {
        let mut list = list.clone();
        list.counts.values_mut().for_each(change);
        read_list(&vfs, &list).unwrap_err()
    };
    assert!(is_damage(&counted(|count| *count += 1)));
    assert!(is_damage(&counted(|count| *count -= 1)));
    let longer = DiscardList {
        length: list.length + 1,
        ..list.clone()
    };
    assert!(is_damage(&read_list(&vfs, &longer).unwrap_err()));
    vfs.remove(Path::new(&name)).unwrap();
    assert!(is_damage(&read_list(&vfs, &list).unwrap_err()));
}

/// A GC output without records and with a table of `moves`.
fn with_table(vfs: &MemoryVfs, moves: &[Move]) -> (ValueFileMeta, RelocationTable) {
    with_table_of(vfs, NUMBER, ORIGIN, moves)
}

/// The same for any GC output and origin.
fn with_table_of(
    vfs: &MemoryVfs,
    gc_output: FileNumber,
    origin: FileNumber,
    moves: &[Move],
) -> (ValueFileMeta, RelocationTable) {
    let mut writer = GcOutputWriter::create(vfs, Path::new(""), gc_output).unwrap();
    let origin_bytes = moves.last().unwrap().0 + 100;
    writer.add_table(origin, origin_bytes, moves).unwrap();
    let (meta, tables) = writer.finish().unwrap();
    assert_eq!(tables.len(), 1);
    assert_eq!((meta.length, meta.end), (0, tables[0].end().unwrap()));
    (meta, tables[0])
}

fn pointer(file: FileNumber, offset: u64) -> ValuePointer {
    ValuePointer {
        file,
        offset,
        record_bytes: 50,
        value_bytes: 20,
    }
}

proptest! {
    /// Every offset of the table is found, and no other, however they are spread.
    #[test]
    fn a_table_relocates_its_offsets(
        steps in proptest::collection::vec(
            prop_oneof![1..3_u64, 1..1000_u64, 1..100_000_000_u64], 1..3 * BLOCK_ENTRIES,
        ),
        strange in any::<u32>(),
    ) {
        let mut old = 0;
        let moves: Vec<Move> = (0..).zip(&steps).map(|(index, step)| {
            old += step;
            (old, (index * 7919) % 1_000_003)
        }).collect();
        let vfs = MemoryVfs::default();
        let (meta, table) = with_table(&vfs, &moves);
        for source in SOURCES {
            let file = open(&vfs, &meta, source).unwrap();
            for &(old, new) in moves.iter().step_by(1 + moves.len() / 50) {
                let found = file.relocate(&table, &pointer(ORIGIN, old)).unwrap();
                prop_assert_eq!(found, pointer(NUMBER, new));
            }
            let strange = u64::from(strange);
            let known = moves.iter().find(|(old, _)| *old == strange);
            let found = file.relocate(&table, &pointer(ORIGIN, strange));
            if let Some((_, new)) = known {
                prop_assert_eq!(found.unwrap().offset, *new);
            } else {
                prop_assert_eq!(found.unwrap_err().kind(), ErrorKind::Corruption);
            }
        }
    }
}

/// I6 of the read buffers: blocks are read once if there is memory to cache them.
#[test]
fn read_buffers_cache_blocks_of_tables() {
    const OTHER: FileNumber = FileNumber(16);
    const OTHER_ORIGIN: FileNumber = FileNumber(8);
    let moves: Vec<Move> = (1..20_000).map(|at| (at * 100, at * 31)).collect();
    let vfs = Arc::new(MemoryVfs::default());
    let (meta, table) = with_table(&vfs, &moves);
    // Its blocks are in the same places.
    let (other_meta, other) = with_table_of(&vfs, OTHER, OTHER_ORIGIN, &moves);
    let all = table.bytes() + other.bytes();
    for (tracked_max, blocks_max) in [(u64::MAX, all), (all / 2, all / 4), (0, 0)] {
        let tracker: Arc<MemoryTracker> = Arc::default();
        let dynamic = Arc::clone(&vfs) as Arc<dyn Vfs>;
        let mut read_buffers = ValueReadBuffers::new(dynamic, "".into(), &tracker, tracked_max);
        for step in (0..moves.len()).map(|step| step * 7919 % moves.len()) {
            let (old, new) = moves[step];
            let mut lead = |meta, table, origin| {
                let found = read_buffers.relocate(meta, table, &pointer(origin, old));
                assert!(tracker.bytes() <= blocks_max);
                found.unwrap()
            };
            assert_eq!(lead(&meta, &table, ORIGIN), pointer(NUMBER, new));
            assert_eq!(lead(&other_meta, &other, OTHER_ORIGIN), pointer(OTHER, new));
        }
        assert_eq!(read_buffers.bytes_read() == all, blocks_max == all);
    }
}

/// I2 of the tables.
#[test]
fn a_damaged_table_is_detected() {
    let moves: Vec<Move> = (1..=4).map(|at| (at * 1000, at * 31)).collect();
    let vfs = MemoryVfs::default();
    let (meta, table) = with_table(&vfs, &moves);
    let name = file_name(NUMBER);
    for bit in 0..usize::try_from(meta.end).unwrap() * 8 {
        flip(&vfs, &name, bit);
        let file = open(&vfs, &meta, BlockSource::Buffered).unwrap();
        let error = file.relocate(&table, &pointer(ORIGIN, 2000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains(&name), "{error}");
        flip(&vfs, &name, bit);
    }
    // A sound block of another table is refused.
    let file = open(&vfs, &meta, BlockSource::Buffered).unwrap();
    let other = RelocationTable {
        origin: FileNumber(8),
        ..table
    };
    assert!(
        file.relocate(&other, &pointer(FileNumber(8), 2000))
            .is_err()
    );
    let all = bytes(&vfs, NUMBER);
    let found = find_moves(&all, (NUMBER, 0)).unwrap().unwrap();
    assert_eq!(
        (found.origin, found.entries, found.bytes),
        (ORIGIN, 4, all.len())
    );
}

/// Copies short and long, compressed and uncompressed records in another order.
#[test]
fn a_copied_record_has_the_same_value() {
    let lengths = [30, 0, 300, 9_000, 70_000, 300_000, 700_000, 64];
    let vfs = Arc::new(MemoryVfs::default());
    let entries = entries(&lengths);
    let (meta, pointers) = write(&vfs, ORIGIN, Keys::InRecords, &entries);
    let mut reader = RecordReader::open(&*vfs, Path::new(""), &meta).unwrap();
    let mut found = Vec::new();
    while let Some((key, pointer)) = reader.next().unwrap() {
        found.push((key.to_vec(), pointer));
    }
    let expected = entries.iter().map(|entry| entry.key.clone());
    assert!(found.iter().cloned().eq(expected.zip(pointers)));
    assert!(reader.bytes_read() <= meta.length);

    let mut writer = GcOutputWriter::create(&*vfs, Path::new(""), NUMBER).unwrap();
    let mut moves = BTreeMap::new();
    for (key, pointer) in found.iter().rev() {
        let offset = writer
            .copy(reader.footprint(), key, pointer, |_| Ok(()))
            .unwrap();
        moves.insert(pointer.offset, offset);
    }
    assert!(writer.memory_bytes() < 2 << 20);
    let moves: Vec<Move> = moves.into_iter().collect();
    writer.add_table(ORIGIN, meta.length, &moves).unwrap();
    let (gc_output, tables) = writer.finish().unwrap();
    assert_eq!(
        (gc_output.length, gc_output.entries),
        (meta.length, meta.entries)
    );
    assert_eq!(gc_output.value_bytes, meta.value_bytes);
    for source in SOURCES {
        let file = open(&vfs, &gc_output, source).unwrap();
        for (entry, (key, pointer)) in entries.iter().zip(&found) {
            let moved = file.relocate(&tables[0], pointer).unwrap();
            assert_eq!(*file.read(key, &moved).unwrap(), entry.value);
            // The record of another key.
            assert!(file.read(b"another", &moved).is_err());
        }
    }
    // The reader ends before the table.
    let mut reader = RecordReader::open(&*vfs, Path::new(""), &gc_output).unwrap();
    let mut count = 0;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, entries.len());
}

/// I1 of GC outputs.
#[test]
fn a_damaged_record_is_not_copied() {
    for length in [200, 600_000] {
        let vfs = MemoryVfs::default();
        let (meta, pointers) = write(&vfs, ORIGIN, Keys::InRecords, &entries(&[length]));
        let name = file_name(ORIGIN);
        let bits = usize::try_from(meta.length).unwrap() * 8;
        let source = vfs.open(Path::new(&name), OpenMode::Read).unwrap();
        let mut source = Footprint::new(source);
        for bit in (0..bits).step_by(1 + bits / 400) {
            flip(&vfs, &name, bit);
            let mut writer = GcOutputWriter::create(&vfs, Path::new(""), NUMBER).unwrap();
            let copied = writer.copy(&mut source, b"key00000", &pointers[0], |_| Ok(()));
            let error = copied.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
            assert!(error.to_string().contains(&name), "{error}");
            vfs.remove(Path::new(&file_name(NUMBER))).unwrap();
            flip(&vfs, &name, bit);
        }
    }
}

/// A damaged length causes no panic, no read beyond the file, and no empty key.
#[test]
fn a_reader_of_damaged_records_ends() {
    let vfs = MemoryVfs::default();
    let (meta, _) = write(&vfs, ORIGIN, Keys::InRecords, &entries(&[30, 300, 90]));
    let name = file_name(ORIGIN);
    for bit in 0..usize::try_from(meta.length).unwrap() * 8 {
        flip(&vfs, &name, bit);
        let mut reader = RecordReader::open(&vfs, Path::new(""), &meta).unwrap();
        let mut seen = 0;
        let end = loop {
            match reader.next() {
                Ok(Some((key, pointer))) => {
                    assert!(!key.is_empty() && seen == pointer.offset);
                    seen += pointer.record_bytes;
                }
                end => break end.map(|_| ()),
            }
        };
        let names_it = |error: &Error| {
            let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
            kinds.contains(&error.kind()) && error.to_string().contains(&name)
        };
        assert!(end.as_ref().err().is_none_or(names_it), "{end:?}");
        flip(&vfs, &name, bit);
    }
    // The file is shorter than recorded.
    let short = ValueFileMeta {
        length: meta.length + 1,
        end: meta.end + 1,
        ..meta
    };
    assert!(RecordReader::open(&vfs, Path::new(""), &short).is_err());
}
