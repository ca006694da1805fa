//! The memory of open tables, their cursors and the block cache; `cache/open_files/tests.rs` has the
//! tests of the bounds.

use super::*;
use crate::ErrorKind;
use crate::base::Held;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::block::stored::Place;
use crate::cache::BlockKey;
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
    fixture_of(count, open_max, memory, entries, &plain())
}

fn fixture_of(
    count: u64,
    open_max: usize,
    memory: TableMemory,
    entries: impl Fn(u64) -> Vec<Owned>,
    options: &TableOptions,
) -> Fixture {
    let vfs = Arc::new(MemoryVfs::default());
    let files = (0..count)
        .map(|number| {
            let meta = write_to(&vfs, FileNumber(number), &entries(number), options);
            (Arc::new(TableSlot::default()), meta)
        })
        .collect();
    let tables = OpenTables::new(TableContext {
        memory: Arc::new(memory),
        files: super::files(Arc::clone(&vfs) as _, BlockSource::Mapped, open_max),
        ..context(BlockSource::Mapped)
    });
    Fixture { vfs, tables, files }
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
        (most - 2 * table_bytes..=most).contains(&held.bytes())
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

impl Fixture {
    /// Of table `index`: whether it is open, has its filter in memory, and has an index partition.
    fn state(&self, index: usize) -> [bool; 3] {
        let table = self.files[index].0.peek();
        table.map_or([false; 3], |table| {
            let segment = &table.segments[0];
            let filter = segment.filter.can_be_dropped();
            [true, filter, segment.loaded_partition(0).is_some()]
        })
    }

    /// How many tables are open, have their filters in memory, and have an index partition.
    fn states(&self) -> [usize; 3] {
        let states = (0..self.files.len()).map(|index| self.state(index));
        states.fold([0; 3], |[open, filters, partitions], state| {
            [
                open + usize::from(state[0]),
                filters + usize::from(state[1]),
                partitions + usize::from(state[2]),
            ]
        })
    }

    /// Asks all tables for a key that they do not have, without what the page cache holds.
    fn probe(&self, index: usize) {
        let (slot, meta) = &self.files[index];
        let file = self.vfs.file(Path::new(&file_name(meta.number)));
        *file.page_cache.holds.lock() = crate::vfs::memory::Held::Nothing;
        let table = self.tables.get(slot, meta).unwrap();
        assert!(get(&table, b"key", 1000).unwrap().is_none());
    }
}

#[test]
fn index_partitions_go_before_filters_and_filters_before_tables() {
    const COUNT: usize = 32;
    let memory = TableMemory {
        readers_min: 0,
        lent_max: 1 << 30,
        ..TableMemory::default()
    };
    let fixture = fixture_of(COUNT as u64, 1000, memory, filtered, &plain());
    let read = |index: usize| {
        let (slot, meta) = &fixture.files[index];
        let table = fixture.tables.get(slot, meta).unwrap();
        assert!(get(&table, b"key0500", 1000).unwrap().is_some());
    };
    (0..COUNT).for_each(read);
    assert_eq!(fixture.states(), [COUNT; 3]);
    let memory = &fixture.tables.context().memory;
    let one = |bytes: u64| bytes / COUNT as u64;
    let (partition, filter) = (one(memory.partitions.bytes()), one(memory.filters.bytes()));
    let lender = Arc::clone(&memory.lender);
    let mut needed = Held::new(&lender, (1 << 30) - memory.tables.bytes());
    let mut seen = vec![fixture.states()];
    // The limit falls in small steps.
    while fixture.states()[0] > 1 {
        needed.grow_to(needed.bytes() + 40);
        fixture.tables.fit();
        let kept = memory.tables_max() / 16;
        let states = fixture.states();
        let [open, filters, _] = states;
        assert!(memory.tables.bytes() <= memory.tables_max() || open == 1);
        if filters < open {
            assert!(memory.partitions.bytes() <= kept + partition, "{states:?}");
        }
        if open < COUNT {
            assert!(memory.filters.bytes() <= kept + filter, "{states:?}");
        }
        if seen.last() != Some(&states) {
            seen.push(states);
        }
    }
    // Each kind goes one after the other, and a few parts are kept for the tables that are used most.
    assert!(seen.len() > COUNT, "{seen:?}");
    assert!(seen.iter().any(|[open, filters, partitions]| {
        *open == COUNT && *filters == COUNT && *partitions < COUNT
    }));
    assert!(seen.iter().any(|[open, filters, partitions]| {
        *open == COUNT && *filters < COUNT / 2 && *partitions > 0
    }));
    drop(needed);
    (0..COUNT).for_each(read);
}

/// Entries of a table with a filter of one piece.
fn filtered(number: u64) -> Vec<Owned> {
    let key = |key: u32| format!("key{key:04}").into_bytes();
    let entry = |number_of_key| Owned::new(&key(number_of_key), number, Some(b"value"));
    (0..1000).map(entry).collect()
}

/// Tables of which about `whole` have space for their filters.
fn crowded(count: u64, whole: u64) -> Fixture {
    let all = fixture_of(count, 1000, TableMemory::default(), filtered, &plain());
    (0..all.files.len()).for_each(|index| all.probe(index));
    let memory = &all.tables.context().memory;
    let filter = memory.filters.bytes() / count;
    let rest = memory.tables.bytes() - memory.filters.bytes();
    let table = all.files[0].0.peek().unwrap();
    let before = memory.tables.bytes();
    let less = table.without_filters();
    let pieced = memory.tables.bytes() - before;
    assert!(
        less.is_some() && pieced < filter / 4,
        "{pieced} of {filter}"
    );
    let memory = TableMemory {
        // Less than a filter more, also before the rest of the first table counts.
        readers_min: rest + whole * filter + (count - whole) * pieced + filter / 4,
        ..TableMemory::default()
    };
    fixture_of(count, 1000, memory, filtered, &plain())
}

#[test]
fn tables_that_are_probed_most_get_their_filters() {
    let fixture = crowded(20, 8);
    let memory = &fixture.tables.context().memory;
    (0..20).for_each(|index| fixture.probe(index));
    // No table was closed for the filter of another.
    let [open, filters, partitions] = fixture.states();
    assert_eq!((open, partitions), (20, 0));
    assert!((7..=9).contains(&filters), "{filters}");
    // The slot of a table says what it keeps in memory and what it probes.
    for index in 0..20 {
        let used = fixture.files[index].0.used_units();
        let units = (used.in_memory.of(0), used.probed.of(0));
        let is_whole = fixture.state(index)[1];
        assert_eq!(units, if is_whole { (4, 4) } else { (0, 1) });
    }

    // The last ones are probed all the time, the first one now and then, the others no more.
    for round in 0..20 {
        for index in 14..20 {
            fixture.probe(index);
            assert!(memory.tables.bytes() <= memory.tables_max());
        }
        if round % 2 == 0 {
            fixture.probe(0);
        }
    }
    let whole: Vec<usize> = (0..20).filter(|index| fixture.state(*index)[1]).collect();
    assert!((14..20).all(|index| whole.contains(&index)), "{whole:?}");
    assert!(whole.contains(&0), "{whole:?}");
    assert_eq!(fixture.states()[0], 20);
    let loads = fixture.tables.context().piece_reads.loads();
    (14..20).for_each(|index| fixture.probe(index));
    assert_eq!(fixture.tables.context().piece_reads.loads(), loads);
}

#[test]
fn a_filter_that_cannot_be_loaded_stays_in_pieces() {
    let fixture = crowded(20, 2);
    (0..20).for_each(|index| fixture.probe(index));
    let (slot, meta) = &fixture.files[19];
    assert!(!fixture.state(19)[1]);
    (0..3).for_each(|_| fixture.probe(19));
    // The last probe has asked for the filter. The next one finds that it cannot be read.
    let file = fixture.vfs.file(Path::new(&file_name(meta.number)));
    *file.fails_from.lock() = Some(0);
    let table = fixture.tables.get(slot, meta).unwrap();
    assert!(!fixture.state(19)[1]);
    assert_eq!(get(&table, b"key", 1).unwrap_err().kind(), ErrorKind::Io);
    drop(table);
    *file.fails_from.lock() = None;
    (0..5).for_each(|_| fixture.probe(19));
    assert!(fixture.state(19)[1]);
}

#[test]
fn a_filter_that_exceeds_the_limit_alone_is_never_loaded() {
    let fixture = crowded(1, 0);
    let file = fixture
        .vfs
        .file(Path::new(&file_name(fixture.files[0].1.number)));
    fixture.probe(0);
    assert!(!fixture.state(0)[1]);
    let reads = || file.reads.load(Ordering::Relaxed);
    let before = reads();
    (0..40).for_each(|_| fixture.probe(0));
    assert_eq!(reads() - before, 40, "each probe reads its piece");
    assert!(!fixture.state(0)[1]);
}

#[test]
fn larger_allocations_stay_within_the_limit() {
    let fixture = crowded(20, 8);
    let memory = &fixture.tables.context().memory;
    let allocate = |units| {
        for (slot, meta) in &fixture.files {
            fixture.tables.set_filter_units(slot, meta, units).unwrap();
            assert!(memory.tables.bytes() <= memory.tables_max());
        }
    };
    allocate(crate::filter::LoadedUnits::NONE);
    (0..20).for_each(|index| fixture.probe(index));
    assert_eq!(fixture.states(), [20, 0, 20], "without filters");
    let last = Path::new(&file_name(fixture.files[19].1.number)).to_owned();
    let reads = || fixture.vfs.file(&last).reads.load(Ordering::Relaxed);
    let before = reads();
    allocate(crate::filter::LoadedUnits::ALL);
    assert_eq!(reads(), before, "a filter without space is not loaded");
    let [open, filters, _] = fixture.states();
    assert_eq!(open, 20);
    assert!((7..=9).contains(&filters), "{filters}");
}

#[test]
fn more_units_of_filters_in_memory_take_parts_of_others() {
    let memory = TableMemory {
        readers_min: 0,
        lent_max: 1 << 30,
        ..TableMemory::default()
    };
    let options = TableOptions {
        filter_units: [6.0, 4.0, 0.0, 0.0],
        ..plain()
    };
    let fixture = fixture_of(12, 1000, memory, filtered, &options);
    let memory = &fixture.tables.context().memory;
    let mut one = crate::filter::LoadedUnits::NONE;
    one.add(0);
    let allocate = |units| {
        for (slot, meta) in &fixture.files {
            fixture.tables.set_filter_units(slot, meta, units).unwrap();
            assert!(memory.tables.bytes() <= memory.tables_max());
        }
    };
    allocate(one);
    (0..12).for_each(|index| fixture.probe(index));
    assert_eq!(fixture.states()[..2], [12, 12]);
    let limit = memory.tables.bytes() + 1000;
    let _needed = Held::new(&memory.lender, (1 << 30) - limit);
    allocate(crate::filter::LoadedUnits::ALL);
    let [open, filters, _] = fixture.states();
    assert!(open == 12 && filters < 12, "{filters}");
}

/// An allocation of units that changes while a table reads by pieces.
#[test]
fn an_allocation_counts_for_filters_in_pieces() {
    let fixture = crowded(20, 2);
    (0..20).for_each(|index| fixture.probe(index));
    let (slot, meta) = &fixture.files[19];
    let none = crate::filter::LoadedUnits::NONE;
    let probes = || {
        let table = fixture.tables.get(slot, meta).unwrap();
        let mut read = PointRead::default();
        let found = table.get(b"key", key_hash(b"key"), 9, &mut read);
        assert!(found.unwrap().is_none());
        read.counters.filter_probes
    };
    assert_eq!(probes(), 1);
    fixture.tables.set_filter_units(slot, meta, none).unwrap();
    assert_eq!(probes(), 0);
    let mut one = none;
    one.add(0);
    fixture.tables.set_filter_units(slot, meta, one).unwrap();
    assert_eq!(probes(), 1);
}

#[test]
fn readers_go_on_while_filters_and_tables_come_and_go() {
    let fixture = &crowded(12, 12);
    let memory = &fixture.tables.context().memory;
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3_usize {
            scope.spawn(move || {
                let mut step = seed;
                while !is_over.load(Ordering::Relaxed) {
                    step = step.wrapping_mul(25_214_903_917).wrapping_add(11);
                    let (slot, meta) = &fixture.files[step / 64 % 12];
                    let table = fixture.tables.get(slot, meta).unwrap();
                    let key = format!("key{:04}", step / 4096 % 2000).into_bytes();
                    let found = get(&table, &key, 1000).unwrap();
                    assert_eq!(found.is_some(), key < b"key1000".to_vec());
                }
            });
        }
        for step in 0..2000_u64 {
            let limit = memory.readers_min;
            let held = limit / 16 * (step % 16);
            let _part = (step % 3 > 0).then(|| Held::new(&memory.tables, held));
            fixture.tables.fit();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    fixture.tables.close();
    assert_eq!(memory.tables.bytes(), 0);
    assert_eq!((memory.partitions.bytes(), memory.filters.bytes()), (0, 0));
}

/// A thousand blocks.
fn blocks() -> impl Iterator<Item = BlockKey> {
    let key = |offset| {
        let place = Place {
            file: NUMBER,
            segment: SEGMENT,
            offset,
        };
        BlockKey::new(NUMBER, place)
    };
    (0..1000).map(key)
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
        for key in blocks() {
            context.cache.insert(key, vec![0; 500].into());
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
    let used = context.memory.tables.bytes() + context.memory.cursors.bytes();
    let left = (64_u64 << 10).saturating_sub(used);
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
    for key in blocks() {
        context.keep(key, &vec![0; 500].into());
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
        external: false,
        segments: meta.segments.clone(),
    };
    let error = fixture.tables.get(slot, &other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("000077.table"), "{error}");
}
