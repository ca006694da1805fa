//! The memory of open tables, their cursors and the block cache; `cache/open_files/tests.rs` has the
//! tests of the bounds.

use super::*;
use crate::ErrorKind;
use crate::base::Held;
use crate::base::sync::atomic::Ordering;
use crate::block::stored::Place;
use crate::table::{OpenTables, TableMemory, TableSlot};

fn entries(number: u64) -> Vec<Owned> {
    vec![Owned::new(b"key", number, Some(b"value"))]
}

struct Fixture {
    tables: OpenTables,
    files: Vec<(Arc<TableSlot>, FileMeta)>,
}

fn fixture(count: u64, open_max: usize) -> Fixture {
    fixture_in(count, open_max, TableMemory::default())
}

fn fixture_in(count: u64, open_max: usize, memory: TableMemory) -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let files = (0..count)
        .map(|number| {
            let meta = write_to(&vfs, FileNumber(number), &entries(number), &plain());
            (Arc::new(TableSlot::default()), meta)
        })
        .collect();
    let tables = OpenTables::new(TableContext {
        memory: Arc::new(memory),
        files: super::files(vfs, BlockSource::Mapped, open_max),
        ..context(BlockSource::Mapped)
    });
    Fixture { tables, files }
}

impl Fixture {
    fn read(&self, index: usize) {
        let (slot, meta) = &self.files[index];
        let table = self.tables.get(slot, meta).unwrap();
        let (trailer, _) = get(&table, b"key", 1000).unwrap().unwrap();
        assert_eq!(trailer.sequence(), index as u64);
    }
}

#[test]
fn a_table_and_its_cursor_outlive_the_close() {
    let fixture = fixture(40, 1);
    let (slot, meta) = &fixture.files[0];
    let open = fixture.tables.get(slot, meta).unwrap();
    let shared = Arc::clone(&open);
    slot.close();
    (1..40).for_each(|index| fixture.read(index));
    assert!(slot.peek().is_none());
    assert!(get(&open, b"key", 9).unwrap().is_some());
    drop(open);
    assert!(scan(&mut shared.cursor(0)).unwrap() == entries(0));
}

#[test]
fn a_table_stays_in_memory_without_its_file() {
    let vfs = Arc::new(MemoryVfs::default());
    let metas: Vec<FileMeta> = (0..20)
        .map(|number| write_to(&vfs, FileNumber(number), &entries(number), &plain()))
        .collect();
    let tables = OpenTables::new(TableContext {
        files: files(Arc::clone(&vfs), BlockSource::Mapped, 4),
        ..context(BlockSource::Mapped)
    });
    let slots: Vec<Arc<TableSlot>> = metas.iter().map(|_| Arc::default()).collect();
    let read = |key: &[u8]| {
        let opened = vfs.opened.load(Ordering::Relaxed);
        for (slot, meta) in slots.iter().zip(&metas) {
            let table = tables.get(slot, meta).unwrap();
            assert_eq!(get(&table, key, 1000).unwrap().is_some(), key == b"key");
        }
        vfs.opened.load(Ordering::Relaxed) - opened
    };
    assert_eq!(read(b"key"), 20);
    let bytes = tables.context().memory.tables.bytes();
    // The filters answer without a file, and a read of a block opens no more than the file.
    assert_eq!(read(b"absent"), 0);
    let reopened = read(b"key");
    assert!((16..=20).contains(&reopened), "{reopened}");
    assert_eq!(tables.context().memory.tables.bytes(), bytes);
    assert!(tables.context().files.open_files() <= 4);
}

#[test]
fn open_tables_stay_within_their_bytes() {
    let one = fixture(1, 8);
    let held = &one.tables.context().memory.tables;
    let (slot, meta) = &one.files[0];
    drop(one.tables.get(slot, meta).unwrap());
    let without_partition = held.bytes();
    assert!(without_partition >= size_of::<Table>() as u64);
    one.read(0);
    let table_bytes = held.bytes();
    let partition_bytes = table_bytes - without_partition;
    assert!(partition_bytes > 0);
    let memory = TableMemory {
        readers_min: 5 * table_bytes,
        lent_max: 3 * table_bytes,
        ..TableMemory::default()
    };
    let needed = Held::new(&memory.lender, 3 * table_bytes);
    let fixture = fixture_in(40, 1000, memory);
    let held = &fixture.tables.context().memory.tables;
    // A partition that a read has loaded counts at the next one.
    let fits = |tables: u64| {
        let most = tables * table_bytes + partition_bytes;
        (most - table_bytes..=most).contains(&held.bytes())
    };
    for index in 0..40 {
        fixture.read(index);
        assert!(held.bytes() <= 5 * table_bytes + partition_bytes);
    }
    assert!(fits(5));
    // While the lender holds nothing, tables may hold more.
    drop(needed);
    for index in 0..40 {
        fixture.read(index);
    }
    assert!(fits(8));
    let _needed = Held::new(&fixture.tables.context().memory.lender, 3 * table_bytes);
    fixture.tables.fit();
    assert!(fits(5) && held.bytes() <= 5 * table_bytes);
    fixture.tables.close();
    assert_eq!(held.bytes(), 0);
}

#[test]
fn index_partitions_go_before_filters() {
    let one = fixture(1, 8);
    one.read(0);
    let held = &one.tables.context().memory.tables;
    let table_bytes = held.bytes();
    let memory = TableMemory {
        readers_min: 8 * table_bytes - 1,
        ..TableMemory::default()
    };
    let fixture = fixture_in(8, 1000, memory);
    for index in 0..8 {
        fixture.read(index);
    }
    // The next read of any table finds all of them over the limit. It takes the partition of the least used.
    fixture.read(7);
    let in_memory = |(slot, _): &&(Arc<TableSlot>, FileMeta)| slot.peek().is_some();
    assert_eq!(fixture.files.iter().filter(in_memory).count(), 8);
    let has_index = |(slot, _): &&(Arc<TableSlot>, FileMeta)| {
        slot.peek().unwrap().segments[0]
            .loaded_partition(0)
            .is_some()
    };
    assert_eq!(fixture.files.iter().filter(has_index).count(), 7);
    (0..8).for_each(|index| fixture.read(index));
}

/// The places of a thousand blocks.
fn places() -> impl Iterator<Item = Place> {
    (0..1000).map(|offset| Place {
        file: NUMBER,
        segment: SEGMENT,
        offset,
    })
}

#[test]
fn the_cache_gives_way_to_tables_and_cursors() {
    let memory = TableMemory {
        readers_min: 64 << 10,
        cache_floor: 8 << 10,
        ..TableMemory::default()
    };
    let fixture = fixture_in(40, 1000, memory);
    let context = fixture.tables.context();
    let fill = || {
        for place in places() {
            context.cache.insert(place, vec![0; 500].into());
        }
        context.cache.bytes()
    };
    assert!(fill() > 64 << 10);
    fixture.read(0);
    let some = fill();
    assert!(some <= 64 << 10 && some > 8 << 10, "{some}");
    let (slot, meta) = &fixture.files[0];
    let table = Arc::clone(&fixture.tables.get(slot, meta).unwrap());
    let cursors: Vec<_> = (0..100).map(|_| table.cursor(0)).collect();
    (1..40).for_each(|index| fixture.read(index));
    assert!(context.memory.cursors.bytes() > 10 << 10);
    let less = fill();
    let left = (64 << 10) - context.memory.tables.bytes() - context.memory.cursors.bytes();
    assert!(less <= left.max(8 << 10), "{less} of {left}");
    drop(cursors);
    assert_eq!(context.memory.cursors.bytes(), 0);
}

#[test]
fn the_cache_gives_way_to_cursors_where_no_table_is_opened() {
    let memory = TableMemory {
        readers_min: 256 << 10,
        cache_floor: 8 << 10,
        ..TableMemory::default()
    };
    let fixture = fixture_in(1, 1000, memory);
    let context = fixture.tables.context();
    let (slot, meta) = &fixture.files[0];
    let table = Arc::clone(&fixture.tables.get(slot, meta).unwrap());
    let cursors: Vec<_> = (0..400).map(|_| table.cursor(0)).collect();
    let left = context.memory.left_for_cache();
    assert!(left < 160 << 10, "{left}");
    for place in places() {
        context.keep(place, &vec![0; 500].into());
    }
    let held = context.cache.bytes();
    assert!(held <= left, "{held} of {left}");
    drop(cursors);
}

#[test]
fn a_missing_file_is_damage() {
    let fixture = fixture(1, 8);
    let (slot, meta) = &fixture.files[0];
    let other = FileMeta {
        number: FileNumber(77),
        sealed: false,
        segments: meta.segments.clone(),
    };
    let error = fixture.tables.get(slot, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("000077.table"), "{error}");
}
