//! First reads of blocks that this process has written.

use super::*;
use crate::ErrorKind;
use crate::base::sync::atomic::Ordering;
use crate::table::Bounds;
use crate::vfs::memory::Held;

/// The entry of whose value a bit is flipped in the file.
const DAMAGED: usize = 3000;

/// Several groups of blocks and partitions of the index.
fn entries() -> Vec<Owned> {
    let entry = |number: u32| Owned::new(format!("key{number:05}").as_bytes(), 1, Some(&[7; 200]));
    (0..20_000).map(entry).collect()
}

/// The table with these entries in memory, noted as written if `is_noted`. The value of entry [`DAMAGED`] is not the one
/// that was written.
fn fixture(entries: &[Owned], is_noted: bool) -> (Arc<MemoryFile>, Arc<Table>, FileMeta) {
    let (meta, mut bytes) = write(entries, &plain());
    let sound = open(bytes.clone(), &meta, BlockSource::Mapped).unwrap();
    let key = &*entries[DAMAGED].key;
    let block = sound.find_block(&sound.segments[0], key).unwrap().unwrap();
    let stored = &mut bytes[usize::try_from(block.offset).unwrap()..][..block.length];
    // Keys share their first bytes, which are in the block once.
    let suffix = &key[key.len() - 2..];
    let at = stored.windows(2).position(|two| two == suffix).unwrap();
    stored[at + 20] ^= 1;
    let file = MemoryFile::holding(bytes);
    *file.page_cache.holds.lock() = Held::All;
    let context = context(BlockSource::Mapped);
    if is_noted {
        context.clock.note_written(SEGMENT);
    }
    let table = open_file(Arc::clone(&file) as _, &meta, context).unwrap();
    for number in 0..table.segments[0].index.blocks() {
        // Loads the index.
        self::block(&table, number);
    }
    file.page_cache.questions.store(0, Ordering::Relaxed);
    (file, table, meta)
}

/// The value of entry [`DAMAGED`].
fn read(table: &Table, entries: &[Owned]) -> Result<Vec<u8>> {
    let (_, value) = get(table, &entries[DAMAGED].key, 1)?.unwrap();
    Ok(value)
}

#[test]
fn blocks_are_not_verified_in_the_interval_in_which_they_were_written() {
    let entries = entries();
    let (_, unknown, _) = fixture(&entries, false);
    assert_eq!(
        read(&unknown, &entries).unwrap_err().kind(),
        ErrorKind::Corruption
    );
    let (_, table, _) = fixture(&entries, true);
    // Nobody looks: such damage is that of memory, as it is for blocks that were verified.
    assert_ne!(read(&table, &entries).unwrap(), entries[DAMAGED].value);
    table.context.clock.advance();
    assert_eq!(
        read(&table, &entries).unwrap_err().kind(),
        ErrorKind::Corruption
    );
    assert_eq!(table.context.clock.written_in(SEGMENT), None);
}

#[test]
fn a_group_of_blocks_is_asked_for_once() {
    let entries = entries();
    let (file, table, _) = fixture(&entries, true);
    for _ in 0..2 {
        for entry in &entries {
            get(&table, &entry.key, 1).unwrap().unwrap();
        }
    }
    let index = &table.segments[0].index;
    let groups: usize = (0..index.partitions())
        .map(|partition| {
            let blocks = index.blocks_of(partition);
            blocks.end.div_ceil(16) - blocks.start / 16
        })
        .sum();
    assert!(index.partitions() > 1 && groups > 60, "{groups}");
    let sentinel = entries.iter().filter(|entry| {
        let block = table.find_block(&table.segments[0], &entry.key);
        block.unwrap().unwrap().number == 512
    });
    let expected = groups + 2 * sentinel.count();
    assert_eq!(file.page_cache.questions.load(Ordering::Relaxed), expected);
}

/// Bytes that have left the page cache may come back as others, so no block of the segment counts as written any more.
#[test]
fn what_has_left_memory_is_verified_when_it_is_back() {
    let entries = entries();
    for held in [Held::Some, Held::Nothing] {
        for asks in [false, true] {
            let (file, table, meta) = fixture(&entries, true);
            *file.page_cache.holds.lock() = held;
            let other = &entries[10].key;
            if asks {
                table.announce(0, other, &Bounds::default());
                assert_eq!(
                    file.asked_for.lock().len(),
                    usize::from(held == Held::Nothing)
                );
            }
            if !asks || held == Held::Some {
                get(&table, other, 1).unwrap().unwrap();
            }
            *file.page_cache.holds.lock() = Held::All;
            let again = open_file(Arc::clone(&file) as _, &meta, table.context.clone());
            for table in [table, again.unwrap()] {
                assert_eq!(
                    read(&table, &entries).unwrap_err().kind(),
                    ErrorKind::Corruption
                );
            }
        }
    }
}

#[test]
fn only_plain_blocks_that_stay_count_as_written() {
    let entries = entries();
    let write = |options: &TableOptions, stays: bool| {
        let vfs = MemoryVfs::default();
        let writer = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, options);
        let mut writer = writer.unwrap();
        for entry in &entries {
            writer.add(&entry.key, entry.trailer, &entry.value).unwrap();
            if writer.has_unjudged_piece() {
                writer.judge(stays || entry.key < entries[DAMAGED].key);
            }
        }
        writer.finish().unwrap().stays
    };
    let compressed = TableOptions {
        compression: Compression::Lz4,
        ..plain()
    };
    assert!(write(&plain(), true));
    assert!(!write(&plain(), false));
    assert!(!write(&compressed, true));
}
