//! The allocations of operations, counted for the calling thread alone.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

use allocation_counter::{AllocationInfo, measure};
use windrow::{Batch, BlockSource, Compression, Cursor, Db, Durability, Keyspace, Options};

const KEYS: u64 = 20_000;

/// A memtable's arenas: records, leaves and nodes.
const ARENAS: u64 = 3;

/// A chunk of an arena is two allocations, its header and its memory. The memory doubles from chunk to chunk.
const CHUNK_HEADER_BYTES: u64 = 6 * size_of::<usize>() as u64;
const CHUNK_BYTES_MIN: u64 = 8 << 10;
const CHUNK_BYTES_MAX: u64 = 2 << 20;

/// Keys in random order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

#[derive(Debug, Default)]
struct Chunks {
    count: u64,
    bytes: u64,
}

/// The chunks that a write added, if it allocated nothing else.
fn chunks(write: AllocationInfo) -> Option<Chunks> {
    let count = write.count_total / 2;
    let bytes = write.bytes_total.checked_sub(count * CHUNK_HEADER_BYTES)?;
    // A sum of `count` powers of two.
    let are_chunks = write.count_total == 2 * count
        && u64::from(bytes.count_ones()) <= count
        && bytes.is_multiple_of(CHUNK_BYTES_MIN)
        && bytes <= count * CHUNK_BYTES_MAX;
    (count <= ARENAS && are_chunks).then_some(Chunks { count, bytes })
}

/// A database with tables in two levels and a memtable above them; none of them has the keys of every third
/// number.
fn layered(directory: &std::path::Path, options: Options) -> (Db, Keyspace) {
    let db = Db::open(directory, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let put = |numbers: &mut dyn Iterator<Item = u64>, value: &[u8]| {
        for number in numbers.filter(|number| number % 3 != 0) {
            keyspace.insert(key(number), value).unwrap();
        }
    };
    put(&mut (0..KEYS), &[1; 100]);
    db.flush().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    put(&mut (0..KEYS).step_by(2), &[2; 80]);
    db.flush().unwrap();
    put(&mut (0..KEYS).step_by(7), &[3; 60]);
    db.wait_idle().unwrap();
    (db, keyspace)
}

/// Visits all entries in both directions, and every eleventh key with a turn. Returns the number of entries.
fn walk(cursor: &mut Cursor) -> u64 {
    let mut entries = 0;
    let mut valid = cursor.seek_to_first().unwrap();
    while valid {
        entries += 1;
        valid = cursor.next().unwrap();
    }
    valid = cursor.seek_to_last().unwrap();
    while valid {
        valid = cursor.prev().unwrap();
    }
    for number in (0..KEYS).step_by(11) {
        if cursor.seek(key(number)).unwrap() && cursor.next().unwrap() {
            cursor.prev().unwrap();
        }
    }
    entries
}

#[test]
fn a_warm_read_allocates_nothing() {
    let compressions = [Compression::None, Compression::Lz4];
    for source in [BlockSource::Mapped, BlockSource::Buffered] {
        for compression in compressions {
            let folder = tempfile::tempdir().unwrap();
            let mut options = Options::default();
            options.block_source = source;
            options.keyspace.compression = compression;
            options.keyspace.file_bytes = 256 << 10;
            let (_db, keyspace) = layered(folder.path(), options);
            let mut value = Vec::with_capacity(100);
            let mut found = 0;
            let mut gets = || {
                for number in 0..KEYS {
                    found += u64::from(keyspace.get_into(key(number), &mut value).unwrap());
                }
            };
            gets();
            let spent = measure(gets);
            assert_eq!(spent.count_total, 0, "gets: {source:?}, {compression:?}");

            let mut cursor = keyspace.cursor().unwrap();
            let entries = walk(&mut cursor);
            assert_eq!(found, 2 * entries);
            let spent = measure(|| assert_eq!(walk(&mut cursor), entries));
            assert_eq!(spent.count_total, 0, "moves: {source:?}, {compression:?}");
        }
    }
}

/// Writes entries by single puts, removals and batches.
struct Writer<'a> {
    db: &'a Db,
    keyspace: Keyspace,
    batch: Batch,
    durability: Durability,
}

impl<'a> Writer<'a> {
    fn new(db: &'a Db, durability: Durability) -> Self {
        let mut writer = Self {
            db,
            keyspace: db.keyspace("k").unwrap(),
            batch: Batch::new(),
            durability,
        };
        // The batch and the log's buffer grow once.
        (0..10).for_each(|number| writer.write(number));
        writer
    }

    fn write(&mut self, number: u64) {
        let Self {
            keyspace,
            batch,
            durability,
            ..
        } = self;
        if number.is_multiple_of(5) {
            batch.clear();
            for part in 1..4 {
                batch
                    .insert(keyspace, key(KEYS * part + number), [9; 30])
                    .unwrap();
            }
            self.db.write_with(batch, *durability).unwrap();
        } else if number.is_multiple_of(7) {
            keyspace.remove_with(key(number), *durability).unwrap();
        } else {
            keyspace
                .insert_with(key(number), [7; 100], *durability)
                .unwrap();
        }
    }
}

#[test]
fn a_write_allocates_chunks_of_its_memtable_and_nothing_else() {
    for (durability, writes) in [(Durability::Buffered, KEYS), (Durability::Sync, 2000)] {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path(), Options::default()).unwrap();
        let mut writer = Writer::new(&db, durability);
        let (mut count, mut bytes) = (0, 0);
        for number in 10..writes {
            let write = measure(|| writer.write(number));
            let chunks = chunks(write).unwrap_or_else(|| panic!("{durability:?}: {write:?}"));
            count += chunks.count;
            bytes += chunks.bytes;
        }
        // Chunks double up to the largest, so the unused bytes are at most twice the used ones.
        let used = db.stats().keyspaces[0].memtable_bytes;
        assert!(bytes <= 3 * used, "{bytes} bytes for {used}");
        let doublings = u64::from((CHUNK_BYTES_MAX / CHUNK_BYTES_MIN).ilog2());
        assert!(
            count <= ARENAS * doublings + bytes / CHUNK_BYTES_MAX,
            "{count} chunks"
        );
    }
}

#[test]
fn only_a_change_of_memtables_or_logs_allocates_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 256 << 10;
    let log_bytes = options.keyspace.memtable_bytes as u64;
    let db = Db::open(folder.path(), options).unwrap();
    let mut writer = Writer::new(&db, Durability::Buffered);
    let mut others = 0;
    for number in 10..2 * KEYS {
        let write = measure(|| writer.write(number));
        if chunks(write).is_none() {
            others += 1;
            // The write made a memtable and the summary of the tree for write throttling, made a log with its name,
            // or let the buffer of a new log grow; or it has waited for background work, which the job log notes. Beside
            // that it may have needed a chunk, of at most 128 KiB in such a small memtable.
            assert!(
                write.count_total <= 40 && write.bytes_total <= (64 + 128 + 1) << 10,
                "{write:?}"
            );
        }
    }
    db.flush().unwrap();
    let stats = db.stats();
    let changes = stats.flushes + 2 * (stats.wal_bytes / log_bytes) + stats.stall_count();
    assert!(
        others <= changes,
        "{others} other writes for {changes} changes"
    );
    assert!(stats.flushes > 10);
}
