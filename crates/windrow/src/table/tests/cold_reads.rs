//! Reads of blocks that are not in memory.

use super::*;
use crate::ErrorKind;
use crate::base::sync::atomic::Ordering;
use crate::table::{Bounds, PointRead};
use crate::vfs::memory::Held;

/// A table of several blocks, and its file.
fn fixture() -> (Arc<MemoryFile>, Arc<Table>, Vec<Owned>) {
    let entry = |number: u32| Owned::new(format!("key{number:05}").as_bytes(), 1, Some(&[7; 200]));
    let entries: Vec<Owned> = (0..200).map(entry).collect();
    let (meta, bytes) = write(&entries, &plain());
    let file = MemoryFile::holding(bytes);
    let table = open_file(Arc::clone(&file) as _, &meta, context(BlockSource::Mapped)).unwrap();
    // Loads the index.
    block(&table, 0);
    (file, table, entries)
}

/// The place of the block that may have `key`.
fn find(table: &Table, key: &[u8]) -> BlockPlace {
    table.find_block(&table.segments[0], key).unwrap().unwrap()
}

/// The value of `entry`, and the bytes that the read took from the file.
fn read(file: &MemoryFile, table: &Table, entry: &Owned) -> Result<usize> {
    let before = file.read_bytes.load(Ordering::Relaxed);
    let (_, value) = get(table, &entry.key, 1)?.unwrap();
    assert!(value == entry.value);
    Ok(file.read_bytes.load(Ordering::Relaxed) - before)
}

#[test]
fn a_cold_read_moves_one_block_and_leaves_no_mark() {
    let (file, table, entries) = fixture();
    let blocks = table.segments[0].index.blocks();
    assert!(blocks > 8);
    let cache = &file.page_cache;
    *cache.holds.lock() = Held::Nothing;
    for entry in &entries {
        let block = find(&table, &entry.key);
        for _ in 0..2 {
            assert_eq!(read(&file, &table, entry).unwrap(), block.length);
        }
    }
    assert_eq!(table.context.cache.bytes(), 0);

    // In memory, each block is asked for once, and no byte is copied.
    *cache.holds.lock() = Held::All;
    cache.questions.store(0, Ordering::Relaxed);
    for entry in entries.iter().chain(&entries) {
        assert_eq!(read(&file, &table, entry).unwrap(), 0);
    }
    assert_eq!(cache.questions.load(Ordering::Relaxed), blocks);
}

#[test]
fn a_failing_device_is_an_error_that_names_the_place() {
    let (file, table, entries) = fixture();
    *file.page_cache.holds.lock() = Held::Nothing;
    *file.fails_from.lock() = Some(block(&table, 3).offset);
    let outcomes: Vec<bool> = entries
        .iter()
        .map(|entry| match read(&file, &table, entry) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io);
                assert!(error.to_string().contains(&file_name(NUMBER)), "{error}");
                assert!(error.to_string().contains("offset"), "{error}");
                false
            }
        })
        .collect();
    assert!(outcomes.is_sorted_by(|first, next| first >= next));
    assert!(outcomes[0] && !outcomes[199]);
    // The failure leaves no trace.
    *file.fails_from.lock() = None;
    assert!(
        entries
            .iter()
            .all(|entry| read(&file, &table, entry).is_ok())
    );
}

#[test]
fn a_request_names_the_block_of_a_key_unless_it_is_in_memory() {
    let (file, table, entries) = fixture();
    *file.page_cache.holds.lock() = Held::Nothing;
    let key = &entries[150].key;
    let block = find(&table, key);
    let block = block.offset..block.end();
    assert!(table.announce_get(key, key_hash(key)));
    table.announce(0, key, &Bounds::default());
    assert_eq!(*file.asked_for.lock(), [block.clone(), block]);
    table.announce(0, b"z", &Bounds::default());
    assert!(!table.announce_get(b"z", key_hash(b"z")));
    *file.page_cache.holds.lock() = Held::All;
    assert!(table.announce_get(key, key_hash(key)));
    assert_eq!(file.asked_for.lock().len(), 2);
}

#[test]
fn a_cold_scan_asks_ahead_up_to_its_end() {
    let (file, table, entries) = fixture();
    *file.page_cache.holds.lock() = Held::Nothing;
    let end = &entries[150].key;
    let mut cursor = table.cursor(0).within(Bounds {
        start: None,
        end: Some(end.as_slice().into()),
        scans: None,
    });
    cursor.seek_to_first().unwrap();
    while cursor.is_valid() && cursor.key() < end.as_slice() {
        cursor.next().unwrap();
    }
    let asked_for = file.asked_for.lock().clone();
    assert!(asked_for.len() > 1 && asked_for.windows(2).all(|two| two[0].end == two[1].start));
    // The first two blocks are read alone, and the last request ends with the block of the last key.
    assert_eq!(asked_for[0].start, block(&table, 2).offset);
    assert_eq!(asked_for.last().unwrap().end, find(&table, end).end());
}

#[test]
fn full_blocks_lie_in_single_pages() {
    let (_, table, _) = fixture();
    for number in 0..table.segments[0].index.blocks() - 1 {
        let place = block(&table, number);
        assert!(place.offset.is_multiple_of(4096), "{place:?}");
        assert_eq!(place.length, 4096);
    }
}

#[test]
fn a_sequential_reader_asks_for_the_next_buffer() {
    let entry = |number: u32| Owned::new(format!("key{number:05}").as_bytes(), 1, Some(&[7; 1000]));
    let entries: Vec<Owned> = (0..1000).map(entry).collect();
    let (meta, bytes) = write(&entries, &plain());
    let file = MemoryFile::holding(bytes);
    let table = open_file(Arc::clone(&file) as _, &meta, context(BlockSource::Mapped)).unwrap();
    assert!(scan(&mut table.sequential_cursor(0)).unwrap() == entries);
    let asked_for = file.asked_for.lock().clone();
    assert!(asked_for.len() > 1);
    let end = table.segments[0].index.data_end();
    assert_eq!(asked_for.last().unwrap().end, end);
}

/// A table whose index has several partitions, freshly opened, and its file.
fn partitioned() -> (Arc<MemoryFile>, Arc<Table>, Vec<Owned>) {
    let entry = |number: u32| Owned::new(format!("key{number:05}").as_bytes(), 1, Some(&[7; 200]));
    let entries: Vec<Owned> = (0..2000).map(entry).collect();
    let options = TableOptions {
        block_bytes: 256,
        ..plain()
    };
    let (meta, bytes) = write(&entries, &options);
    let file = MemoryFile::holding(bytes);
    let table = open_file(Arc::clone(&file) as _, &meta, context(BlockSource::Mapped)).unwrap();
    assert!(table.segments[0].index.partitions() > 2);
    (file, table, entries)
}

#[test]
fn a_read_loads_only_the_index_partition_that_it_needs() {
    let (file, table, entries) = partitioned();
    let index = &table.segments[0].index;
    *file.page_cache.holds.lock() = Held::Nothing;
    let memory = || table.context.memory.tables.bytes();
    let mut loaded = 0;
    for entry in &entries {
        let partition = index.find(&entry.key).unwrap().partition;
        let before = memory();
        let bytes = read(&file, &table, entry).unwrap();
        let block = find(&table, &entry.key).length;
        if partition < loaded {
            assert_eq!((bytes, memory()), (block, before));
        } else {
            let length = usize::try_from(index.partition(partition).length).unwrap();
            assert_eq!(bytes, block + length);
            assert!(memory() > before);
            loaded += 1;
        }
    }
    assert_eq!(loaded, index.partitions());
    let less = table.segments[0].without_partitions().unwrap();
    assert!(less.memory_bytes() < table.segments[0].memory_bytes());
    assert!(less.without_partitions().is_none());
}

#[test]
fn a_scan_fails_only_at_the_index_partition_that_cannot_be_read() {
    let (file, table, entries) = partitioned();
    let index = &table.segments[0].index;
    *file.page_cache.holds.lock() = Held::Nothing;
    block(&table, 0);
    *file.fails_from.lock() = Some(index.partition(1).offset);
    let is_before = |entry: &&Owned| index.find(&entry.key).unwrap().partition == 0;
    let readable = entries.iter().filter(is_before).count();
    assert!(readable > 100 && readable < entries.len());
    let mut cursor = table.cursor(0).within(Bounds {
        start: None,
        end: Some(entries[1500].key.as_slice().into()),
        scans: None,
    });
    cursor.seek_to_first().unwrap();
    for _ in 1..readable {
        cursor.next().unwrap();
    }
    assert_eq!(cursor.key(), entries[readable - 1].key);
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_request_without_the_index_names_its_partition() {
    let (file, table, entries) = partitioned();
    let index = &table.segments[0].index;
    *file.page_cache.holds.lock() = Held::Nothing;
    let key = &entries[1000].key;
    let partition = index.partition(index.find(key).unwrap().partition);
    assert!(table.announce_get(key, key_hash(key)));
    let asked_for = file.asked_for.lock()[0].clone();
    assert_eq!(asked_for, partition.offset..partition.end().unwrap());
    *file.page_cache.holds.lock() = Held::All;
    assert!(table.announce_get(key, key_hash(key)));
    assert_eq!(file.asked_for.lock().len(), 1);
}

/// Whether a read that must not wait has found the entry, or has ended without an answer.
fn near(table: &Table, key: &[u8]) -> Option<bool> {
    let mut read = PointRead::without_wait();
    let found = table.get(key, key_hash(key), 9, &mut read).unwrap();
    (!read.is_far()).then_some(found.is_some())
}

#[test]
fn a_read_without_a_wait_is_answered_if_its_block_is_in_memory() {
    let (file, table, entries) = fixture();
    let cache = &file.page_cache;
    let before = file.read_bytes.load(Ordering::Relaxed);
    *cache.holds.lock() = Held::Nothing;
    cache.questions.store(0, Ordering::Relaxed);
    assert!(
        entries
            .iter()
            .all(|entry| near(&table, &entry.key).is_none())
    );
    assert_eq!(cache.questions.load(Ordering::Relaxed), entries.len());
    // The filter and the bounds of the index need no block.
    assert_eq!(near(&table, b"z"), Some(false));

    *cache.holds.lock() = Held::All;
    assert_eq!(near(&table, &entries[150].key), Some(true));
    // A block with a mark is in memory as far as anybody knows, and nobody asks.
    *cache.holds.lock() = Held::Nothing;
    cache.questions.store(0, Ordering::Relaxed);
    assert_eq!(near(&table, &entries[150].key), Some(true));
    assert_eq!(cache.questions.load(Ordering::Relaxed), 0);
    assert_eq!(near(&table, &entries[10].key), None);
    assert_eq!(file.read_bytes.load(Ordering::Relaxed), before);
}

#[test]
fn a_read_without_a_wait_loads_no_index() {
    let (file, table, entries) = fixture();
    let key = &entries[150].key;
    let table = table.without_partitions().unwrap();
    let before = file.read_bytes.load(Ordering::Relaxed);
    assert_eq!(near(&table, key), None);
    assert_eq!(file.read_bytes.load(Ordering::Relaxed), before);
    // Another read loads it.
    assert!(read(&file, &table, &entries[150]).unwrap() > 0);
    assert_eq!(near(&table, key), Some(true));
}
