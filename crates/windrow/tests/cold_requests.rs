//! What whole seeks and gets over several sorted runs ask of a device: all blocks at once, before the first wait. The
//! tests use a file system whose tables are never in memory, and which records the requests.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_types, reason = "the tests are outside the engine")]

mod common;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use windrow::vfs::{Advice, File, LockGuard, OpenMode, OsVfs, Region, RegionBytes, Vfs};
use windrow::{Db, Keyspace, Near, Options};

use common::Random;

/// A range of a table.
type Piece = (PathBuf, Range<u64>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    /// Without a wait.
    Ahead(Piece),
    Read(Piece),
}

/// The real file system, whose tables are never in memory.
#[derive(Debug, Clone, Default)]
struct ColdVfs(Arc<Mutex<Vec<Request>>>);

impl ColdVfs {
    /// The requests since the last call.
    fn take(&self) -> Requests {
        Requests(std::mem::take(&mut *self.0.lock().unwrap()))
    }
}

/// The requests of one operation, in order.
#[derive(Debug)]
struct Requests(Vec<Request>);

/// Sums over the requests of several operations.
#[derive(Debug, Default)]
struct Sums {
    reads: u64,
    /// Reads of what was not asked for before.
    unasked: u64,
    /// The most groups of requests in one operation, each before a read that waits.
    groups_max: usize,
}

impl Requests {
    fn add_to(&self, sums: &mut Sums) {
        let is_ahead = |request: &Request| matches!(request, Request::Ahead(_));
        let groups = self
            .0
            .chunk_by(|left, right| is_ahead(left) == is_ahead(right));
        let groups = groups.filter(|group| group.first().is_some_and(is_ahead));
        sums.groups_max = sums.groups_max.max(groups.count());
        let mut asked = BTreeSet::new();
        for request in &self.0 {
            match request {
                Request::Ahead((path, range)) => {
                    asked.insert((path, range.start));
                }
                Request::Read((path, range)) => {
                    sums.reads += 1;
                    sums.unasked += u64::from(!asked.contains(&(path, range.start)));
                }
            }
        }
    }
}

impl Vfs for ColdVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        OsVfs.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        OsVfs.create(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = OsVfs.open(path, mode)?;
        if path
            .extension()
            .is_none_or(|extension| extension != "table")
        {
            return Ok(file);
        }
        Ok(Arc::new(ColdFile {
            file,
            path: path.to_owned(),
            vfs: self.clone(),
        }))
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

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        OsVfs.lock_shared(path)
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
        let piece = (self.path.clone(), offset..offset + buffer.len() as u64);
        self.vfs.0.lock().unwrap().push(Request::Read(piece));
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
            let piece = (self.path.clone(), range);
            self.vfs.0.lock().unwrap().push(Request::Ahead(piece));
        }
    }

    fn is_resident(&self, _: u64) -> bool {
        false
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        Ok(Arc::new(Region::new(ColdRegion(self.file.map(length)?))))
    }
}

#[derive(Debug)]
struct ColdRegion(Arc<Region>);

impl RegionBytes for ColdRegion {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn is_resident(&self, _: Range<usize>) -> bool {
        false
    }
}

const RUNS: u64 = 5;
const KEYS: u64 = 5000;

/// The key at a place in the order of keys.
fn key(place: u64) -> Vec<u8> {
    format!("key{place:05}").into_bytes()
}

/// A tree of [`RUNS`] sorted runs over all keys, whose tables are open.
fn runs(folder: &Path, vfs: &ColdVfs) -> (Db, Keyspace) {
    let mut options = Options::default().with_vfs(Arc::new(vfs.clone()));
    options.keyspace.level0_runs = 64;
    options.keyspace.medium_from = u64::MAX;
    options.keyspace.large_from = u64::MAX;
    let db = Db::open(folder, options.clone()).unwrap();
    let map = db.keyspace("map").unwrap();
    let mut random = Random(7);
    let run_of: Vec<u64> = (0..KEYS).map(|_| random.below(RUNS)).collect();
    for run in 0..RUNS {
        for place in (0..KEYS).filter(|&place| run_of[usize::try_from(place).unwrap()] == run) {
            map.insert(key(place), [b'v'; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    // Nothing changes the tree.
    let db = Db::open_read_only(folder, options).unwrap();
    let map = db.keyspace("map").unwrap();
    let mut cursor = map.cursor().unwrap();
    assert!(cursor.seek(key(KEYS / 2)).unwrap());
    (db, map)
}

/// Runs an operation at many places in the order of keys.
fn often(vfs: &ColdVfs, mut operation: impl FnMut(u64)) -> Sums {
    let mut random = Random(3);
    let mut sums = Sums::default();
    for _ in 0..SEEKS {
        drop(vfs.take());
        operation(1 + random.below(KEYS - 2));
        vfs.take().add_to(&mut sums);
    }
    sums
}

const SEEKS: u64 = 300;

/// A seek does not know before that it lands between two blocks of a run.
fn check_seeks(sums: &Sums, groups: usize) {
    assert_eq!(sums.groups_max, groups, "{sums:?}");
    assert!(sums.unasked * 100 <= sums.reads, "{sums:?}");
}

#[test]
fn a_seek_asks_for_the_blocks_of_all_runs_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let sums = often(&vfs, |place| {
        let mut cursor = map.cursor().unwrap();
        assert!(cursor.seek(key(place)).unwrap());
        assert_eq!(cursor.key(), key(place));
    });
    assert!(sums.reads.abs_diff(SEEKS * RUNS) < SEEKS / 50, "{sums:?}");
    check_seeks(&sums, 1);
}

#[test]
fn a_seek_backward_asks_for_the_blocks_before_at_once_too() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let to_last = often(&vfs, |place| {
        let mut cursor = map.range_cursor(..key(place)).unwrap();
        assert!(cursor.seek_to_last().unwrap());
        assert_eq!(cursor.key(), key(place - 1));
    });
    let step_back = often(&vfs, |place| {
        let mut cursor = map.cursor().unwrap();
        assert!(cursor.seek(key(place)).unwrap() && cursor.prev().unwrap());
        assert_eq!(cursor.key(), key(place - 1));
    });
    for sums in [to_last, step_back] {
        assert!(sums.reads > SEEKS * RUNS, "{sums:?}");
        check_seeks(&sums, 2);
    }
}

#[test]
fn gets_of_many_keys_ask_for_the_blocks_of_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let mut random = Random(5);
    let sums = often(&vfs, |place| {
        let mut keys: Vec<Vec<u8>> = (0..15).map(|_| key(random.below(KEYS))).collect();
        keys.push(key(place));
        let values = map.multi_get(&keys).unwrap();
        assert!(values.iter().all(Option::is_some));
    });
    // After a block that a filter passed without need, another one has the key.
    let gets = SEEKS * 16;
    let false_positives = sums.reads - gets;
    assert!(
        false_positives < gets / 20 && sums.unasked <= false_positives,
        "{sums:?}"
    );
    assert_eq!(sums.groups_max, 1, "{sums:?}");
}

/// The blocks that were asked for, and those that were read.
fn blocks(requests: &Requests) -> (u64, u64) {
    let mut asked = 0;
    let mut read = BTreeSet::new();
    for request in &requests.0 {
        match request {
            Request::Ahead((_, range)) => asked += (range.end - range.start) / 4000,
            Request::Read((path, range)) => drop(read.insert((path, range.start))),
        }
    }
    (asked, read.len() as u64)
}

#[test]
fn a_seek_asks_for_as_many_blocks_as_recent_scans_have_passed() {
    const STEPS: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let mut random = Random(11);
    let mut scan = |steps: u64| {
        drop(vfs.take());
        let mut cursor = map.cursor().unwrap();
        assert!(
            cursor
                .seek(key(1 + random.below(KEYS - 2 - steps)))
                .unwrap()
        );
        for _ in 0..steps {
            assert!(cursor.next().unwrap());
        }
        drop(cursor);
        vfs.take()
    };
    let waits_of = |requests: &Requests| {
        let mut sums = Sums::default();
        requests.add_to(&mut sums);
        sums.groups_max
    };
    let first = waits_of(&scan(STEPS));
    for _ in 0..60 {
        scan(STEPS);
    }
    // 600 entries take about four blocks of each run. Few scans need another request.
    let scans: Vec<Requests> = (0..20).map(|_| scan(STEPS)).collect();
    let mut waits: Vec<usize> = scans.iter().map(waits_of).collect();
    waits.sort_unstable();
    assert!(first > 4 && waits[10] <= 2, "{first}, then {waits:?}");
    let asked: u64 = scans.iter().map(|scan| blocks(scan).0).sum();
    let read: u64 = scans.iter().map(|scan| blocks(scan).1).sum();
    assert!((read / 2..=2 * read).contains(&asked), "{asked} for {read}");

    // Seeks without steps unlearn it.
    for _ in 0..60 {
        scan(0);
    }
    assert_eq!(blocks(&scan(0)).0, RUNS);
}

#[test]
fn nothing_behind_the_end_of_a_range_is_asked_for_at_a_seek() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let pass = |range: Range<u64>| {
        drop(vfs.take());
        let mut cursor = map.range_cursor(key(range.start)..key(range.end)).unwrap();
        let mut is_valid = cursor.seek_to_first().unwrap();
        while is_valid {
            is_valid = cursor.next().unwrap();
        }
        drop(cursor);
        vfs.take()
    };
    for start in 0..60 {
        pass(50 * start..50 * start + 1000);
    }
    // Most runs have one block of these keys, and few have two.
    let (asked, _) = blocks(&pass(2500..2520));
    assert!((RUNS..=RUNS + 2).contains(&asked), "{asked}");
}

#[test]
fn a_near_read_asks_nothing_of_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let vfs = ColdVfs::default();
    let (_db, map) = runs(folder.path(), &vfs);
    let mut absent = 0;
    drop(vfs.take());
    for place in 0..KEYS {
        let near = |key: &[u8]| map.get_near(key, <[u8]>::len).unwrap();
        assert_eq!(near(&key(place)), Near::Unknown);
        // The filters of all runs reject most keys that do not exist.
        absent += u64::from(near(&[&key(place)[..], b"-"].concat()) == Near::Absent);
    }
    assert!(vfs.take().0.is_empty());
    assert!(absent * 10 > KEYS * 8, "{absent}");
}
