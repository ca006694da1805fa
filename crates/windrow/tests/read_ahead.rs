//! Cursors over separated values read ahead if the page cache lacks the values, and only then. The tests use a file
//! system that reports which bytes are resident, and records the requests.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests are outside the engine, and damage a file"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use windrow::vfs::{Advice, File, LockGuard, OpenMode, OsVfs, Region, RegionBytes, Vfs};
use windrow::{BlockSource, Cursor, Db, ErrorKind, Keyspace, MediumInPlace, Options};

use common::Random;

const SOURCES: [BlockSource; 2] = [BlockSource::Mapped, BlockSource::Buffered];

/// The most values in one request.
const READ_BUFFER_MAX: u64 = 64;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The requests to a [`ColdVfs`].
#[derive(Debug, Default)]
struct Asked {
    /// Whether only requested bytes are resident.
    is_cold: bool,
    /// Whether advice has no effect.
    is_deaf: bool,
    /// The requested ranges, in order.
    advised: Vec<(PathBuf, Range<u64>)>,
    /// The number of queries for residency.
    looks: usize,
    /// Whether reads of value files and requests bring whole pages into memory.
    keeps_pages: bool,
    /// These pages.
    pages: BTreeSet<(PathBuf, u64)>,
    /// The pages of value files that reads have waited for.
    waits: usize,
}

impl Asked {
    fn is_resident(&self, path: &Path, offset: u64) -> bool {
        let is_asked_for = || {
            let mut advised = self.advised.iter();
            advised.any(|(asked, range)| asked == path && range.contains(&offset))
        };
        !self.is_cold
            || !self.is_deaf && is_asked_for()
            || self.pages.contains(&(path.to_owned(), offset / PAGE_BYTES))
    }
}

const PAGE_BYTES: u64 = 4096;

/// The real file system with a simulated page cache.
#[derive(Debug, Clone, Default)]
struct ColdVfs(Arc<Mutex<Asked>>);

impl ColdVfs {
    fn cold() -> Self {
        let vfs = Self::default();
        vfs.0.lock().unwrap().is_cold = true;
        vfs
    }

    /// The requests since the last call.
    fn take(&self) -> Asked {
        let mut asked = self.0.lock().unwrap();
        let fresh = Asked {
            is_cold: asked.is_cold,
            is_deaf: asked.is_deaf,
            keeps_pages: asked.keeps_pages,
            ..Asked::default()
        };
        std::mem::replace(&mut asked, fresh)
    }

    fn file(&self, path: &Path, file: io::Result<Arc<dyn File>>) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(ColdFile {
            file: file?,
            path: path.to_owned(),
            vfs: self.clone(),
        }))
    }
}

impl Vfs for ColdVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        OsVfs.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.file(path, OsVfs.create(path))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.file(path, OsVfs.open(path, mode))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsVfs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsVfs.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsVfs.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsVfs.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock(path)
    }
}

#[derive(Debug)]
struct ColdFile {
    file: Arc<dyn File>,
    path: PathBuf,
    vfs: ColdVfs,
}

impl File for ColdFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut asked = self.vfs.0.lock().unwrap();
        let is_values = self.path.extension().is_some_and(|end| end == "values");
        if asked.keeps_pages && is_values {
            let end = offset + buffer.len() as u64;
            for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
                if !asked.is_resident(&self.path, (page * PAGE_BYTES).max(offset)) {
                    asked.waits += 1;
                    asked.pages.insert((self.path.clone(), page));
                }
            }
        }
        drop(asked);
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buffer, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.reserve(offset, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        if advice == Advice::WillNeed {
            let mut asked = self.vfs.0.lock().unwrap();
            if asked.keeps_pages {
                let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
                asked
                    .pages
                    .extend(pages.map(|page| (self.path.clone(), page)));
            }
            asked.advised.push((self.path.clone(), range));
        }
    }

    fn is_resident(&self, offset: u64) -> bool {
        let mut asked = self.vfs.0.lock().unwrap();
        asked.looks += 1;
        asked.is_resident(&self.path, offset)
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        Ok(Arc::new(Region::new(ColdRegion {
            region: self.file.map(length)?,
            path: self.path.clone(),
            vfs: self.vfs.clone(),
        })))
    }
}

#[derive(Debug)]
struct ColdRegion {
    region: Arc<Region>,
    path: PathBuf,
    vfs: ColdVfs,
}

impl RegionBytes for ColdRegion {
    fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    fn is_resident(&self, range: Range<usize>) -> bool {
        let mut asked = self.vfs.0.lock().unwrap();
        asked.looks += 1;
        let range = range.start as u64..range.end as u64;
        range
            .step_by(usize::try_from(PAGE_BYTES).unwrap())
            .all(|offset| asked.is_resident(&self.path, offset))
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

fn options(vfs: &ColdVfs, source: BlockSource) -> Options {
    let mut options = Options::default().with_vfs(Arc::new(vfs.clone()));
    options.block_source = source;
    options.keyspace.medium_from = 120;
    options.keyspace.large_from = 400;
    options
}

/// A database with `count` flushed values of `length` bytes, written in the order of `place`: the key of
/// each write by its number.
fn filled(
    folder: &Path,
    options: Options,
    length: usize,
    count: u64,
    place: impl Fn(u64) -> u64,
) -> (Db, Keyspace, Model) {
    let db = Db::open(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    let mut model = Model::new();
    for number in (0..count).map(place) {
        let value = number.to_le_bytes().repeat(length / 8);
        map.insert(key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    db.flush().unwrap();
    (db, map, model)
}

/// Checks all entries of the cursor against `model`.
fn check_scan(cursor: &mut Cursor, model: &Model) {
    let mut found = cursor.seek_to_first().unwrap();
    for (key, value) in model {
        assert!(found);
        assert_eq!(cursor.key(), key);
        assert_eq!(cursor.value().unwrap(), value);
        found = cursor.next().unwrap();
    }
    assert!(!found);
}

#[test]
fn large_values_are_requested_before_they_are_read() {
    const COUNT: u64 = 500;
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        let mixed = |number| number * 179 % COUNT;
        let options = options(&vfs, source);
        let (db, map, model) = filled(folder.path(), options, 400, COUNT, mixed);
        vfs.take();
        check_scan(&mut map.cursor().unwrap(), &model);
        let stats = db.stats();
        assert_eq!(
            (stats.transient_log_reads, stats.value_log_reads),
            (0, COUNT)
        );
        // Values between requested ones are part of the request.
        assert!((COUNT / 4..=COUNT).contains(&stats.values_prefetched));
        let asked = vfs.take();
        let bytes: u64 = asked.advised.iter().map(|(_, it)| it.end - it.start).sum();
        assert!(bytes > COUNT * 400, "{bytes}");
    }
}

#[test]
fn a_buffer_over_a_transient_log_is_filled_by_one_call() {
    const COUNT: u64 = 500;
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::cold();
    let options = options(&vfs, BlockSource::Mapped);
    let (db, map, model) = filled(folder.path(), options, 200, COUNT, |number| number);
    vfs.take();
    check_scan(&mut map.cursor().unwrap(), &model);
    let stats = db.stats();
    assert_eq!(
        (stats.transient_log_reads, stats.value_log_reads),
        (COUNT, 0)
    );
    assert!(stats.values_prefetched >= COUNT);
    // Two single values, reads of 8, 16 and 32, and then of 64.
    let calls = vfs.take().advised.len() as u64;
    assert!(calls <= 5 + COUNT.div_ceil(READ_BUFFER_MAX), "{calls}");
}

#[test]
fn a_scan_waits_for_few_pages_of_a_transient_log() {
    const COUNT: u64 = 4000;
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::cold();
    vfs.0.lock().unwrap().keeps_pages = true;
    let options = options(&vfs, BlockSource::Buffered);
    let (db, map, model) = filled(folder.path(), options, 200, COUNT, |number| number);
    vfs.take();
    check_scan(&mut map.cursor().unwrap(), &model);
    let pages = COUNT * 200 / PAGE_BYTES;
    let asked = vfs.take();
    assert_eq!(db.stats().transient_log_reads, COUNT);
    // Two for each request, of which each is twice as long as the one before.
    assert!(
        (1..=14).contains(&asked.waits),
        "{} of {pages}",
        asked.waits
    );
    let bytes: u64 = asked.advised.iter().map(|(_, it)| it.end - it.start).sum();
    assert!(bytes < 3 * COUNT * 200, "{bytes}");

    // A short scan asks for no more than its first requests.
    let mut cursor = map.cursor().unwrap();
    assert!(cursor.seek(key(COUNT / 2)).unwrap());
    for _ in 0..30 {
        cursor.value().unwrap();
        assert!(cursor.next().unwrap());
    }
    let bytes: u64 = (vfs.take().advised.iter())
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "values"))
        .map(|(_, it)| it.end - it.start)
        .sum();
    assert!(bytes <= 24 << 10, "{bytes}");
}

#[test]
fn a_scan_asks_for_as_many_values_as_recent_scans_have_read() {
    const COUNT: u64 = 2000;
    for length in [200, 400] {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        // Values of 400 bytes are in a value log, in the order of these writes.
        let mixed = |number| number * 179 % COUNT;
        let mut options = options(&vfs, BlockSource::Buffered);
        // Reads that pay for a compaction would put the values of 200 bytes in place.
        options.keyspace.medium_in_place = MediumInPlace::Never;
        let (db, map, _) = filled(folder.path(), options, length, COUNT, mixed);
        let mut random = Random(7);
        let mut scan = |values: u64| {
            vfs.take();
            let mut cursor = map.cursor().unwrap();
            assert!(cursor.seek(key(random.below(COUNT - values))).unwrap());
            for _ in 0..values {
                cursor.value().unwrap();
                assert!(cursor.next().unwrap());
            }
            drop(cursor);
            vfs.take()
        };
        for _ in 0..60 {
            scan(20);
        }
        let prefetched = db.stats().values_prefetched;
        for _ in 0..20 {
            scan(20);
        }
        // A quarter more than are read.
        let prefetched = db.stats().values_prefetched - prefetched;
        assert!((20 * 20..=20 * 26).contains(&prefetched), "{prefetched}");
        // Scans of single values unlearn it.
        for _ in 0..100 {
            scan(1);
        }
        let prefetched = db.stats().values_prefetched;
        scan(1);
        assert_eq!(db.stats().values_prefetched - prefetched, 1);
    }
}

#[test]
fn a_scan_that_begins_at_a_value_in_memory_still_asks_ahead() {
    const COUNT: u64 = 2000;
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        vfs.0.lock().unwrap().keeps_pages = true;
        let mixed = |number| number * 179 % COUNT;
        let (db, ..) = filled(folder.path(), options(&vfs, source), 400, COUNT, mixed);
        // The value log is complete after the close, and nothing of it is in memory.
        db.close().unwrap();
        vfs.take();
        let db = Db::open(folder.path(), options(&vfs, source)).unwrap();
        let map = db.keyspace("map").unwrap();
        assert!(map.get(key(500)).unwrap().is_some());
        let waits = || vfs.0.lock().unwrap().waits;
        let before = waits();
        let mut cursor = map.cursor().unwrap();
        assert!(cursor.seek(key(500)).unwrap());
        for _ in 0..40 {
            cursor.value().unwrap();
            assert!(cursor.next().unwrap());
        }
        // Their values are on 40 pages. One waits, the next check asks for it alone, and then batches run ahead.
        let waits = waits() - before;
        assert!((1..=4).contains(&waits), "{waits}");
    }
}

#[test]
fn resident_values_are_not_requested() {
    const COUNT: u64 = 500;
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::default();
        let options = options(&vfs, source);
        let (db, map, model) = filled(folder.path(), options, 400, COUNT, |number| number);
        vfs.take();
        check_scan(&mut map.cursor().unwrap(), &model);
        let asked = vfs.take();
        assert!(asked.advised.is_empty() && db.stats().values_prefetched == 0);
        // A block that is read into the cache is one look more.
        let loads = match source {
            BlockSource::Mapped => 0,
            BlockSource::Buffered => usize::try_from(db.stats().block_loads).unwrap(),
        };
        let looks = asked.looks - loads;
        // Eight checks; a value over the end of a page takes two looks.
        assert!((1..=16).contains(&looks), "{looks}");
    }
}

#[test]
fn seeks_and_backward_steps_request_no_more_than_they_read() {
    const COUNT: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::cold();
    let options = options(&vfs, BlockSource::Mapped);
    let (db, map, model) = filled(folder.path(), options, 400, COUNT, |number| number);
    let mut cursor = map.cursor().unwrap();
    for (number, value) in model.values().enumerate() {
        assert!(cursor.seek(key(number as u64)).unwrap());
        assert_eq!(cursor.value().unwrap(), value);
    }
    assert!(cursor.seek_to_last().unwrap());
    for value in model.values().rev() {
        assert_eq!(cursor.value().unwrap(), value);
        cursor.prev().unwrap();
    }
    // A cursor that reads keys alone requests nothing.
    let before = db.stats().values_prefetched;
    assert!(before <= 2 * COUNT, "{before}");
    let mut found = cursor.seek_to_first().unwrap();
    while found {
        found = cursor.next().unwrap();
    }
    assert_eq!(db.stats().values_prefetched, before);
}

#[test]
fn nothing_outside_the_range_is_requested() {
    const COUNT: u64 = 300;
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::cold();
    let options = options(&vfs, BlockSource::Mapped);
    let (db, map, mut model) = filled(folder.path(), options, 400, COUNT, |number| number);
    let behind = model.split_off(&key(100));
    for end in [Bound::Excluded(key(100)), Bound::Included(key(99))] {
        vfs.take();
        let before = db.stats().values_prefetched;
        let mut cursor = map.range_cursor((Bound::Unbounded, end)).unwrap();
        check_scan(&mut cursor, &model);
        assert_eq!(db.stats().values_prefetched - before, 100);
        // Records have equal lengths and are in key order.
        let length = std::fs::metadata(&vfs.take().advised[0].0).unwrap().len();
        assert!(length / (100 + behind.len() as u64) > 400);
    }
}

#[test]
fn advice_without_effect_changes_nothing() {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        vfs.0.lock().unwrap().is_deaf = true;
        let options = options(&vfs, source);
        let (_db, map, model) = filled(folder.path(), options, 400, 300, |number| number);
        check_scan(&mut map.cursor().unwrap(), &model);
    }
}

#[test]
fn a_damaged_value_ahead_fails_only_its_own_read() {
    const COUNT: u64 = 200;
    const DAMAGED: usize = 100;
    for (source, length) in SOURCES.into_iter().zip([200, 400]) {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        let options = || options(&vfs, source);
        let (db, map, model) = filled(folder.path(), options(), length, COUNT, |number| number);
        drop(map);
        db.close().unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| {
            let is_values = path.extension().is_some_and(|end| end == "values");
            is_values && path.metadata().unwrap().len() > 0
        });
        let path = path.unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let record = bytes.len() / usize::try_from(COUNT).unwrap();
        bytes[record * DAMAGED + record / 2] ^= 1;
        std::fs::write(&path, bytes).unwrap();

        let db = Db::open(folder.path(), options()).unwrap();
        let map = db.keyspace("map").unwrap();
        let mut cursor = map.cursor().unwrap();
        let mut found = cursor.seek_to_first().unwrap();
        for (number, (key, value)) in model.iter().enumerate() {
            assert!(found);
            assert_eq!(cursor.key(), key);
            if number == DAMAGED {
                let error = cursor.value().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption);
                let name = path.file_name().unwrap().to_str().unwrap();
                let place = format!("{name} is damaged at offset {}:", record * DAMAGED);
                let message = error.to_string();
                assert!(message.contains(&place), "{message}");
                assert!(message.contains("\"key00100\""), "{message}");
            } else {
                assert_eq!(cursor.value().unwrap(), value);
            }
            found = cursor.next().unwrap();
        }
        assert!(!found && db.stats().values_prefetched >= COUNT);
    }
}

#[test]
fn read_ahead_is_counted_as_memory_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::cold();
    let options = options(&vfs, BlockSource::Buffered);
    let (db, map, model) = filled(folder.path(), options, 800, 500, |number| number);
    let mut cursor = map.cursor().unwrap();
    cursor.seek_to_first().unwrap();
    let before = db.memory().cursors;
    for _ in 0..model.len() / 2 {
        cursor.value().unwrap();
        cursor.next().unwrap();
    }
    let used = db.memory().cursors;
    assert!(
        used > before && used < before + (32 << 10),
        "{before} {used}"
    );
    drop(cursor);
    assert_eq!(db.memory().cursors, 0);
}

/// Overwrites and removes entries in a small tree, beside flushes, compactions and garbage collections.
fn churn(map: &Keyspace, model: &mut Model, random: &mut Random, keys: u64) {
    const LENGTHS: [usize; 4] = [16, 136, 304, 1200];
    for _ in 0..800 {
        let number = random.below(keys);
        if random.below(5) == 0 {
            map.remove(key(number)).unwrap();
            model.remove(&key(number));
        } else {
            let length = LENGTHS[usize::try_from(random.below(4)).unwrap()];
            let value = random
                .below(u64::MAX >> 33)
                .to_le_bytes()
                .repeat(length / 8);
            map.insert(key(number), &value).unwrap();
            model.insert(key(number), value);
        }
    }
}

/// Moves the cursor at random, mostly forward. Compares each key and most values.
fn check_walk(cursor: &mut Cursor, model: &Model, random: &mut Random, keys: u64) {
    let mut at: Option<&Vec<u8>> = None;
    for _ in 0..2000 {
        let next =
            |from: Bound<&Vec<u8>>| model.range::<Vec<u8>, _>((from, Bound::Unbounded)).next();
        let expected = match (random.below(30), at) {
            (0, _) | (_, None) => {
                let to = key(random.below(keys));
                cursor.seek(&to).unwrap();
                model.range(to..).next()
            }
            (1 | 2, Some(here)) => {
                cursor.prev().unwrap();
                model.range::<Vec<u8>, _>(..here).next_back()
            }
            (_, Some(here)) => {
                cursor.next().unwrap();
                next(Bound::Excluded(here))
            }
        };
        at = expected.map(|(key, _)| key);
        assert_eq!(cursor.is_valid(), expected.is_some());
        if let Some((key, value)) = expected {
            assert_eq!(cursor.key(), key);
            if random.below(8) > 0 {
                assert_eq!(cursor.value().unwrap(), value);
            }
        }
    }
}

#[test]
fn scans_beside_compactions_and_garbage_collections_read_their_snapshot() {
    const KEYS: u64 = 400;
    for (seed, source) in (0..6).zip(SOURCES.into_iter().cycle()) {
        let folder = tempfile::tempdir().unwrap();
        let vfs = ColdVfs::cold();
        let mut options = options(&vfs, source);
        options.open_files_max = 16;
        options.keyspace.memtable_bytes = 32 << 10;
        options.keyspace.file_bytes = 16 << 10;
        options.keyspace.base_bytes = 64 << 10;
        options.keyspace.block_bytes = 512;
        options.keyspace.size_ratio = 3.0;
        options.keyspace.max_space_amp = 1.3;
        let db = Db::open(folder.path(), options).unwrap();
        let map = db.keyspace("map").unwrap();
        let (mut model, mut random) = (Model::new(), Random(seed));
        for _ in 0..8 {
            churn(&map, &mut model, &mut random, KEYS);
            let mut cursor = map.cursor().unwrap();
            check_walk(&mut cursor, &model, &mut random, KEYS);
            let snapshot = db.snapshot();
            let then = model.clone();
            churn(&map, &mut model, &mut random, KEYS);
            // Values ahead of the cursor may be collected, and be deleted for newer readers.
            check_walk(&mut cursor, &then, &mut random, KEYS);
            let view = map.at(&snapshot).unwrap();
            check_walk(&mut view.cursor().unwrap(), &then, &mut random, KEYS);
            vfs.take();
        }
        db.wait_idle().unwrap();
        let stats = db.stats();
        assert!(stats.values_prefetched > 0 && stats.compactions > 0);
        assert!(stats.garbage_collections > 0, "no garbage collection ran");
        assert!(db.verify().unwrap().is_sound());
    }
}
