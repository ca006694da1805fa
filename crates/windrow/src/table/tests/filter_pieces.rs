//! Filters that are read by pieces: the answers, the bytes that they read, and faults.

use std::ops::Range;

use super::*;
use crate::ErrorKind;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::atomic::Ordering;
use crate::table::PointRead;
use crate::vfs::memory::Held;

/// Entries whose filter has several pieces.
fn entries(count: u32) -> Vec<Owned> {
    let entry = |number: u32| Owned::new(format!("key{number:06}").as_bytes(), 1, Some(b"v"));
    (0..count).map(|number| entry(2 * number)).collect()
}

/// Keys between those of the entries.
fn absent(count: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|number| format!("key{:06}", 2 * number + 1).into_bytes())
}

/// The place of the first filter unit: its pieces fill the space between data blocks and partitions.
fn unit(table: &Table, meta: &FileMeta) -> Range<u64> {
    let start = table.segments[0].index.data_end();
    start..start + meta.segments[0].filter_units[0]
}

fn probe(table: &Table, key: &[u8], counters: &mut ReadCounters) -> Result<bool> {
    let mut read = PointRead::default();
    let found = table.get(key, key_hash(key), SEQUENCE_MAX, &mut read)?;
    counters.add(&read.counters);
    Ok(found.is_some())
}

#[test]
fn probes_by_pieces_answer_as_the_first_unit_in_memory() {
    let entries = entries(15_000);
    for filter_units in [[10.0, 0.0, 0.0, 0.0], [6.0, 4.0, 4.0, 0.0]] {
        let options = TableOptions {
            filter_units,
            ..plain()
        };
        let (meta, bytes) = write(&entries, &options);
        let file = || MemoryFile::holding(bytes.clone());
        for source in SOURCES {
            let whole = open_file(file(), &meta, context(source)).unwrap();
            let pieced = open_by_pieces(file(), &meta, context(source)).unwrap();
            let [mut in_memory, mut by_pieces] = [ReadCounters::default(); 2];
            // A second pass finds marks and cached pieces.
            for _ in 0..2 {
                for entry in &entries {
                    assert!(probe(&pieced, &entry.key, &mut by_pieces).unwrap());
                    assert!(probe(&whole, &entry.key, &mut in_memory).unwrap());
                }
                for key in absent(15_000) {
                    assert!(!probe(&pieced, &key, &mut by_pieces).unwrap());
                    assert!(!probe(&whole, &key, &mut in_memory).unwrap());
                }
            }
            assert_eq!(by_pieces.filter_probes, in_memory.filter_probes);
            let passed = |counters: ReadCounters| {
                let rejected = counters.filter_rejects + counters.filter_false_positives;
                assert_eq!(rejected, 30_000);
                counters.filter_false_positives
            };
            let (pieced_passed, whole_passed) = (passed(by_pieces), passed(in_memory));
            if filter_units[1] > 0.0 {
                // Only the first unit is probed.
                assert!(pieced_passed > 5 * whole_passed && pieced_passed < 3000);
            } else {
                // Pieces take space in a cache, and marks are forgotten with time: so blocks may be loaded again.
                let aside = |counters| ReadCounters {
                    block_loads: 0,
                    block_load_bytes: 0,
                    ..counters
                };
                assert_eq!(aside(by_pieces), aside(in_memory));
            }
            assert!(pieced.context.piece_reads.loads() > 0);
            assert_eq!(whole.context.piece_reads.loads(), 0);
        }
    }
}

/// Entries, the file of a table of them of which nothing is in memory, the table, which reads its filter by pieces, and
/// the place of the unit.
fn cold_table() -> (Vec<Owned>, Arc<MemoryFile>, Arc<Table>, Range<u64>) {
    let entries = entries(15_000);
    let (meta, bytes) = write(&entries, &plain());
    let file = MemoryFile::holding(bytes);
    let table =
        open_by_pieces(Arc::clone(&file) as _, &meta, context(BlockSource::Mapped)).unwrap();
    let unit = unit(&table, &meta);
    *file.page_cache.holds.lock() = Held::Nothing;
    (entries, file, table, unit)
}

#[test]
fn a_cold_probe_moves_one_piece_in_one_page() {
    let (entries, file, table, unit) = cold_table();
    // All index partitions.
    for number in 0..table.segments[0].index.blocks() {
        block(&table, number);
    }
    let count = || {
        (
            file.reads.load(Ordering::Relaxed),
            file.read_bytes.load(Ordering::Relaxed),
        )
    };
    let mut counters = ReadCounters::default();
    let (mut reads, mut most) = (0, 0);
    for key in absent(2000) {
        let (before, rejects) = (count(), counters.filter_rejects);
        assert!(!probe(&table, &key, &mut counters).unwrap());
        if counters.filter_rejects > rejects {
            reads += count().0 - before.0;
            most = most.max(count().1 - before.1);
        }
    }
    assert_eq!(reads as u64, counters.filter_rejects);
    assert!(counters.filter_rejects > 1900 && most <= 4096, "{most}");
    let before = count();
    let key = &entries[7000].key;
    assert!(probe(&table, key, &mut counters).unwrap());
    let block = table.find_block(&table.segments[0], key).unwrap().unwrap();
    let (reads, bytes) = (count().0 - before.0, count().1 - before.1);
    assert!(
        reads == 2 && bytes <= 4096 + block.length,
        "{reads} {bytes}"
    );
    assert_eq!(table.context.cache.bytes(), 0);

    // In memory each piece is verified once, in place.
    *file.page_cache.holds.lock() = Held::All;
    let (before, loads) = (count(), table.context.piece_reads.loads());
    for entry in entries.iter().chain(&entries) {
        assert!(probe(&table, &entry.key, &mut counters).unwrap());
    }
    assert_eq!(count(), before);
    let pieces = (unit.end - unit.start).div_ceil(4096);
    let loads = table.context.piece_reads.loads() - loads;
    assert!(loads <= pieces + 1, "{loads} of {pieces}");
}

#[test]
fn a_request_names_the_piece_of_a_key_and_then_its_block() {
    let (entries, file, table, unit) = cold_table();
    let key = &entries[7000].key;
    let block = table.find_block(&table.segments[0], key).unwrap().unwrap();
    file.asked_for.lock().clear();
    assert!(!table.announce_get(key, key_hash(key)));
    let asked_for = std::mem::take(&mut *file.asked_for.lock());
    assert_eq!(asked_for.len(), 1);
    assert!(unit.start <= asked_for[0].start && asked_for[0].end <= unit.end);
    // Blocks are not asked for before the filter has passed the key.
    *file.page_cache.holds.lock() = Held::All;
    assert!(table.announce_get(key, key_hash(key)));
    *file.page_cache.holds.lock() = Held::Nothing;
    assert!(table.announce_get(key, key_hash(key)));
    let asked_for = file.asked_for.lock();
    assert_eq!(asked_for.len(), 1);
    assert_eq!(asked_for[0], block.offset..block.end());
}

#[test]
fn a_piece_that_cannot_be_read_is_an_error_and_not_an_absent_key() {
    let entries = entries(15_000);
    let (meta, bytes) = write(&entries, &plain());
    for source in SOURCES {
        let file = MemoryFile::holding(bytes.clone());
        let table = open_by_pieces(Arc::clone(&file) as _, &meta, context(source)).unwrap();
        let unit = unit(&table, &meta);
        *file.page_cache.holds.lock() = Held::Nothing;
        *file.fails_from.lock() = Some(unit.start);
        for key in [entries[5].key.clone()].into_iter().chain(absent(200)) {
            let error = get(&table, &key, 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            let message = error.to_string();
            assert!(message.contains(&file_name(NUMBER)), "{message}");
            assert!(message.contains("offset"), "{message}");
        }
        // The failure leaves no trace.
        *file.fails_from.lock() = None;
        for entry in &entries {
            assert!(get(&table, &entry.key, 1).unwrap().is_some());
        }
    }
}

#[test]
fn a_damaged_piece_gives_the_right_answer_or_names_the_place() {
    let entries = entries(6000);
    let (meta, bytes) = write(&entries, &plain());
    let sound = open(bytes.clone(), &meta, BlockSource::Buffered).unwrap();
    let unit = unit(&sound, &meta);
    let mut damaged = bytes;
    for at in (unit.start..unit.end).step_by(61) {
        let byte = usize::try_from(at).unwrap();
        damaged[byte] ^= 0xff;
        assert!(open(damaged.clone(), &meta, BlockSource::Mapped).is_err());
        for source in SOURCES {
            let file = MemoryFile::holding(damaged.clone());
            let table = open_by_pieces(file, &meta, context(source)).unwrap();
            let mut errors = 0;
            let present = entries
                .iter()
                .step_by(50)
                .map(|entry| (entry.key.clone(), true));
            for (key, is_present) in present.chain(absent(120).map(|key| (key, false))) {
                match get(&table, &key, 1) {
                    Ok(found) => assert_eq!(found.is_some(), is_present),
                    Err(error) => {
                        let message = error.to_string();
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{message}");
                        assert!(message.contains(&file_name(NUMBER)), "{message}");
                        assert!(message.contains("offset"), "{message}");
                        errors += 1;
                    }
                }
            }
            assert!(errors > 0, "the damage at {at} was not found");
        }
        damaged[byte] ^= 0xff;
    }
}

/// What a mapping shows may change after its verification: any outcome but a panic, and the next interval finds it.
#[test]
fn pieces_in_a_mapping_are_verified_again_after_the_scrub_interval() {
    let entries = entries(6000);
    let (meta, bytes) = write(&entries, &plain());
    let context = context(BlockSource::Buffered);
    let file = MemoryFile::holding(bytes);
    let table = open_by_pieces(Arc::clone(&file) as _, &meta, context).unwrap();
    let segment = &table.segments[0];
    let crate::table::read::SegmentFilter::ByPieces(filter) = &segment.filter else {
        panic!("the filter is read by pieces");
    };
    let clock = &table.context.clock;
    filter.marks.insert(0, clock);
    assert!(filter.marks.contains(0, clock));
    clock.advance();
    assert!(!filter.marks.contains(0, clock));
    // Bytes that were never verified pass no key and cause no panic.
    assert_eq!(filter.layout.passes(&[0xff; 5000], 3, 7), None);
    assert_eq!(filter.layout.passes(&[], 0, 7), None);
}

#[test]
fn a_filter_changes_its_form_and_keeps_index_and_answers() {
    let entries = entries(6000);
    let options = TableOptions {
        filter_units: [6.0, 4.0, 0.0, 0.0],
        ..plain()
    };
    let (meta, bytes) = write(&entries, &options);
    let file = MemoryFile::holding(bytes);
    let whole = open_file(Arc::clone(&file) as _, &meta, context(BlockSource::Mapped)).unwrap();
    block(&whole, 0);
    let memory = &whole.context.memory;
    let (partitions, filters) = (memory.partitions.bytes(), memory.filters.bytes());
    assert!(partitions > 0 && filters >= meta.segments[0].filter_bytes() * 9 / 10);
    let pieced = whole.without_filters().unwrap();
    assert!(pieced.without_filters().is_none());
    assert!(pieced.segments[0].loaded_partition(0).is_some());
    assert_eq!(memory.partitions.bytes(), partitions);
    drop(whole);
    let memory = Arc::clone(&pieced.context.memory);
    assert_eq!(memory.filters.bytes(), 0);
    for entry in &entries {
        assert!(get(&pieced, &entry.key, 1).unwrap().is_some());
    }
    let again = pieced.with_whole_filters().unwrap().unwrap();
    assert!(again.with_whole_filters().unwrap().is_none());
    assert_eq!(memory.filters.bytes(), filters);
    let mut counters = ReadCounters::default();
    for key in absent(6000) {
        assert!(!probe(&again, &key, &mut counters).unwrap());
    }
    // Both units are in memory again: 10 bits in two units pass one key in 60.
    assert!(counters.filter_false_positives < 200, "{counters:?}");
    drop((pieced, again));
    assert_eq!(memory.tables.bytes(), 0);
}
