//! The bounded set of open tables, and what the writer leaves behind.

use super::*;
use crate::ErrorKind;
use crate::base::Held;
use crate::base::sync::atomic::Ordering;
use crate::block::stored::Place;
use crate::filter::LoadedUnits;
use crate::table::{OpenTables, TableMemory, TableSlot};

fn entries(number: u64) -> Vec<Owned> {
    vec![Owned::new(b"key", number, Some(b"value"))]
}

struct Fixture {
    vfs: Arc<MemoryVfs>,
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
    let tables = OpenTables::new(
        Arc::clone(&vfs) as Arc<dyn crate::vfs::Vfs>,
        "".into(),
        TableContext {
            memory: Arc::new(memory),
            ..context(BlockSource::Mapped)
        },
        open_max,
    );
    Fixture { vfs, tables, files }
}

impl TableSlot {
    fn is_open(&self) -> bool {
        self.table.load().is_some()
    }
}

impl Fixture {
    fn read(&self, index: usize) {
        let (slot, meta) = &self.files[index];
        let table = self.tables.get(slot, meta).unwrap();
        let (trailer, _) = get(&table, b"key", 1000).unwrap().unwrap();
        assert_eq!(trailer.sequence(), index as u64);
    }

    fn opened(&self) -> usize {
        self.vfs.opened.load(Ordering::Relaxed)
    }
}

#[test]
fn an_open_table_is_opened_once() {
    let fixture = fixture(4, 16);
    for _ in 0..3 {
        (0..4).for_each(|index| fixture.read(index));
    }
    assert_eq!(fixture.opened(), 4);
}

#[test]
fn tables_beyond_the_bound_are_closed_and_opened_again() {
    let fixture = fixture(40, 8);
    for round in 0..3 {
        for index in 0..40 {
            fixture.read(index);
            // One that is used all the time stays open.
            fixture.read(0);
        }
        assert!(fixture.opened() >= 39 * (round + 1) - 8);
    }
    let open = |(slot, _): &&(Arc<TableSlot>, FileMeta)| slot.is_open();
    assert!(fixture.files.iter().filter(open).count() <= 8);
    let before = fixture.opened();
    fixture.read(0);
    assert_eq!(fixture.opened(), before);
}

#[test]
fn a_loan_outlives_the_closing() {
    let fixture = fixture(40, 1);
    let (slot, meta) = &fixture.files[0];
    let loan = fixture.tables.get(slot, meta).unwrap();
    let shared = Arc::clone(&loan);
    slot.close();
    (1..40).for_each(|index| fixture.read(index));
    assert!(!slot.is_open());
    assert!(get(&loan, b"key", 9).unwrap().is_some());
    drop(loan);
    assert!(scan(&mut shared.cursor(0)).unwrap() == entries(0));
}

#[test]
fn tables_that_are_read_stay_open_and_others_go_in_their_place() {
    let fixture = fixture(40, 8);
    let read: Vec<Arc<Table>> = fixture.files[..6]
        .iter()
        .map(|(slot, meta)| Arc::clone(&fixture.tables.get(slot, meta).unwrap()))
        .collect();
    (6..40).for_each(|index| fixture.read(index));
    let before = fixture.opened();
    (0..6).for_each(|index| fixture.read(index));
    assert_eq!(fixture.opened(), before);
    let open = |(slot, _): &&(Arc<TableSlot>, FileMeta)| slot.is_open();
    assert!(fixture.files.iter().filter(open).count() <= 8);
    drop(read);
    (6..40).for_each(|index| fixture.read(index));
    assert!(!fixture.files[0].0.is_open());
}

#[test]
fn open_tables_stay_within_their_bytes() {
    let one = fixture(1, 8);
    one.read(0);
    let table_bytes = one.tables.context().memory.tables.bytes();
    assert!(table_bytes >= size_of::<Table>() as u64);
    let memory = TableMemory {
        readers_min: 5 * table_bytes,
        lent_max: 3 * table_bytes,
        ..TableMemory::default()
    };
    let needed = Held::new(&memory.lender, 3 * table_bytes);
    let fixture = fixture_in(40, 1000, memory);
    let held = &fixture.tables.context().memory.tables;
    for index in 0..40 {
        fixture.read(index);
        assert!(held.bytes() <= 5 * table_bytes);
    }
    assert_eq!(held.bytes(), 5 * table_bytes);
    // They may hold more for a while.
    drop(needed);
    for index in 0..40 {
        fixture.read(index);
    }
    assert_eq!(held.bytes(), 8 * table_bytes);
    let _needed = Held::new(&fixture.tables.context().memory.lender, 3 * table_bytes);
    fixture.tables.fit();
    assert_eq!(held.bytes(), 5 * table_bytes);
    fixture.tables.close();
    assert_eq!(held.bytes(), 0);
}

/// Where a thousand blocks stand.
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
fn windows_are_small_where_the_memory_for_jobs_is_used_up() {
    let entries: Vec<Owned> = (0..10_000u32)
        .map(|number| Owned::new(format!("{number:08}").as_bytes(), 1, Some(&[3; 90])))
        .collect();
    let (meta, bytes) = write(&entries, &plain());
    let context = TableContext {
        memory: Arc::new(TableMemory {
            jobs_max: 600 << 10,
            ..TableMemory::default()
        }),
        ..context(BlockSource::Buffered)
    };
    let jobs = Arc::clone(&context.memory.jobs);
    let file = MemoryFile::holding(bytes);
    let table = Table::open(
        file,
        file_name(NUMBER),
        &meta,
        context,
        LoadedUnits::ALL,
        None,
    );
    let table = Arc::new(table.unwrap());
    let mut cursors: Vec<_> = (0..40).map(|_| table.sequential_cursor(0)).collect();
    for cursor in &mut cursors {
        cursor.seek_to_first().unwrap();
    }
    let (large, small) = (2 * (260 << 10), 38 * (40 << 10));
    assert!(jobs.bytes() <= large + small, "{}", jobs.bytes());
    for cursor in &mut cursors {
        assert!(scan(cursor).unwrap() == entries);
    }
    drop(cursors);
    assert_eq!(jobs.bytes(), 0);
}

#[test]
fn slots_of_dropped_files_leave_the_clock() {
    let mut fixture = fixture(40, 8);
    (0..40).for_each(|index| fixture.read(index));
    fixture.files.clear();
    let meta = write_to(&fixture.vfs, FileNumber(99), &entries(99), &plain());
    let slot = Arc::new(TableSlot::default());
    fixture.tables.get(&slot, &meta).unwrap();
    assert!(slot.is_open());
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

#[test]
fn the_writer_syncs_before_it_reports() {
    let vfs = MemoryVfs::default();
    write_to(&vfs, NUMBER, &entries(1), &plain());
    let file = vfs.file(Path::new(&file_name(NUMBER)));
    assert_eq!(file.syncs.load(Ordering::Relaxed), 1);
    let error = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &plain()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn the_writer_knows_about_how_long_the_file_is() {
    let vfs = MemoryVfs::default();
    let options = plain();
    let mut writer = TableWriter::create(&vfs, Path::new(""), NUMBER, SEGMENT, &options).unwrap();
    for number in 0..20_000u32 {
        let key = format!("{number:08}");
        let trailer = Trailer::new(5, Kind::Value);
        writer.add(key.as_bytes(), trailer, &[3; 90]).unwrap();
    }
    let estimate = writer.bytes_written_so_far();
    let actual = writer.finish().unwrap().bytes();
    assert!(estimate <= actual && estimate > actual * 95 / 100);
}

#[test]
#[should_panic(expected = "must ascend")]
fn the_writer_refuses_disorder() {
    let vfs = MemoryVfs::default();
    let disorder = [Owned::new(b"b", 1, None), Owned::new(b"b", 2, None)];
    write_to(&vfs, NUMBER, &disorder, &plain());
}

/// A sequential cursor reads through its window, in few reads, and leaves the cache alone.
#[test]
fn a_sequential_cursor_reads_ahead_and_bypasses_the_cache() {
    let entries: Vec<Owned> = (0..10_000u32)
        .map(|number| Owned::new(format!("{number:08}").as_bytes(), 1, Some(&[3; 90])))
        .collect();
    let (meta, bytes) = write(&entries, &plain());
    let file = MemoryFile::holding(bytes);
    let context = context(BlockSource::Buffered);
    let table = Table::open(
        Arc::clone(&file) as Arc<dyn crate::vfs::File>,
        file_name(NUMBER),
        &meta,
        context.clone(),
        LoadedUnits::ALL,
        None,
    );
    let table = Arc::new(table.unwrap());
    let before = file.reads.load(Ordering::Relaxed);
    assert!(scan(&mut table.sequential_cursor(0)).unwrap() == entries);
    let windows = meta.bytes() / (256 << 10) + 1;
    // The file gives at most 100,000 bytes a read: three for a window.
    let reads = file.reads.load(Ordering::Relaxed) - before;
    assert!(reads as u64 <= 3 * windows, "{reads} reads");
    assert_eq!(context.cache.bytes(), 0);
}
