//! Two threads: one is held at a critical place while the other continues.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use windrow::vfs::{File, LockGuard, OpenMode, Vfs};
use windrow::{Db, ErrorKind, Options, SegmentLimit};
use windrow_sim::{SimDisk, SteppedRuntime};

use crate::common::{FOLDER, check_sound, kind, open};

/// Holds the first thread that passes until the gate opens.
#[derive(Debug, Default)]
struct Gate {
    /// Whether a thread has come, and whether it may continue.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
    /// The number of threads that pass first.
    free: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        let one_less = |free: usize| free.checked_sub(1);
        let is_free = self.free.fetch_update(Relaxed, Relaxed, one_less);
        if is_free.is_ok() {
            return;
        }
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        self.changed.notify_all();
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn has_thread(&self) -> bool {
        self.state.lock().unwrap().0
    }

    fn wait_for_thread(&self) {
        let mut state = self.state.lock().unwrap();
        while !state.0 {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// The name of the thread that a [`GatedDisk`] holds.
const HELD: &str = "held";

/// A disk on which one thread is held before it creates a table or appends to one.
#[derive(Debug)]
struct GatedDisk {
    disk: SimDisk,
    gate: Arc<Gate>,
}

impl GatedDisk {
    fn hold(&self, path: &Path) {
        let is_table = path.extension().is_some_and(|kind| kind == "table");
        if is_table && thread::current().name() == Some(HELD) {
            self.gate.pass();
        }
    }
}

impl Vfs for GatedDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.hold(path);
        self.disk.create(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode == OpenMode::ReadWrite {
            self.hold(path);
        }
        self.disk.open(path, mode)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.disk.lock(path)
    }
}

/// Sizes under which little data makes many jobs. Callers run all jobs.
fn small(vfs: Arc<dyn Vfs>) -> Options {
    let mut options = crate::common::small();
    options.max_wal_bytes = 64 << 10;
    options
        .with_vfs(vfs)
        .with_runtime(Arc::new(SteppedRuntime::new(1)))
}

/// Runs `call` in a thread that a [`GatedDisk`] holds.
fn held<R: Send + 'static>(
    db: &Db,
    call: impl FnOnce(&Db) -> windrow::Result<R> + Send + 'static,
) -> thread::JoinHandle<windrow::Result<R>> {
    let db = db.clone();
    let thread = thread::Builder::new().name(HELD.to_owned());
    thread.spawn(move || call(&db)).unwrap()
}

#[test]
fn close_waits_for_jobs_of_callers() {
    let disk = SimDisk::new();
    let gate = Arc::new(Gate::default());
    let gated = GatedDisk {
        disk: disk.clone(),
        gate: Arc::clone(&gate),
    };
    let (db, keyspace) = open(small(Arc::new(gated)));
    for round in 0..3 {
        for key in 0..20 {
            let value = format!("value {round}");
            keyspace.insert(format!("key {key}"), value).unwrap();
        }
        db.flush().unwrap();
    }
    let compacting = held(&db, Db::wait_idle);
    gate.wait_for_thread();
    let closing = {
        let db = db.clone();
        thread::spawn(move || db.close())
    };
    // A held compaction keeps the lock for any time.
    for _ in 0..100 {
        let second = Db::open(FOLDER, small(Arc::new(disk.clone())));
        assert_eq!(kind(second), ErrorKind::Locked);
        thread::yield_now();
    }
    gate.open();
    closing.join().unwrap().unwrap();
    match compacting.join().unwrap() {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
    }
    let (again, keyspace) = open(small(Arc::new(disk)));
    let value = keyspace.get("key 7").unwrap();
    assert_eq!(value.as_deref(), Some(&b"value 2"[..]));
    check_sound(&again);
}

/// One compaction is held at a table or an append. Others continue in the same levels.
#[test]
fn compactions_avoid_the_range_of_one_that_appends() {
    let (mut held_up, mut beside) = (0, 0);
    for fill in 4..36_u64 {
        let disk = SimDisk::new();
        let gate = Arc::new(Gate::default());
        gate.free.store(usize::try_from(fill % 7).unwrap(), Relaxed);
        let gated = GatedDisk {
            disk: disk.clone(),
            gate: Arc::clone(&gate),
        };
        let runtime = SteppedRuntime::new(fill);
        let mut options = small(Arc::new(gated)).with_runtime(Arc::new(runtime.clone()));
        options.background_threads = 4;
        options.keyspace.size_ratio = 2.0;
        options.keyspace.segment_limit = SegmentLimit::Fixed(12);
        options.keyspace.max_space_amp = f64::INFINITY;
        options.keyspace.file_bytes = 4 << 10;
        let (db, keyspace) = open(options);
        let mut model = BTreeMap::new();
        let mut write = |round: u64| {
            for step in 0..60 {
                let key = (round * 60 + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
                let (key, value) = (key % 500, round * 60 + step);
                keyspace
                    .insert(key.to_be_bytes(), [value; 6].map(u64::to_be_bytes).concat())
                    .unwrap();
                model.insert(key, value);
            }
            model.clone()
        };
        for round in 0..fill {
            write(round);
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        write(100);
        db.flush().unwrap();
        write(101);
        db.flush().unwrap();
        let appends = db.stats().appends;
        let compacting = held(&db, Db::wait_idle);
        while !gate.has_thread() && !compacting.is_finished() {
            thread::yield_now();
        }
        held_up += u32::from(!compacting.is_finished());
        let compactions = db.stats().compactions;
        let check = |model: &BTreeMap<u64, u64>| {
            let found = keyspace.iter().unwrap().map(|entry| {
                let (key, value) = entry.unwrap();
                let number = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().unwrap());
                (number(&key), number(&value))
            });
            assert!(found.eq(model.iter().map(|(key, value)| (*key, *value))));
            check_sound(&db);
        };
        for round in 200..204 {
            let model = write(round);
            db.flush().unwrap();
            runtime.run_until_idle(1000);
            check(&model);
        }
        beside += db.stats().compactions - compactions;
        gate.open();
        compacting.join().unwrap().unwrap();
        let model = write(300);
        db.wait_idle().unwrap();
        check(&model);
        assert!(db.stats().appends > appends);
    }
    assert!(held_up > 10 && beside > 10, "{held_up} and {beside}");
}

/// One compaction is held while it writes. Loads put tables into the same levels, and none into its range.
#[test]
fn loads_avoid_the_range_of_a_compaction() {
    let mut held_up = 0;
    for fill in 4..24_u64 {
        let disk = SimDisk::new();
        let gate = Arc::new(Gate::default());
        gate.free.store(usize::try_from(fill % 5).unwrap(), Relaxed);
        let gated = GatedDisk {
            disk: disk.clone(),
            gate: Arc::clone(&gate),
        };
        let mut options = small(Arc::new(gated));
        options.background_threads = 4;
        options.keyspace.size_ratio = 2.0;
        // Loads wait for the held compaction if level 0 has too many runs.
        options.keyspace.level0_runs = 6;
        let (db, keyspace) = open(options);
        let mut model = BTreeMap::new();
        // Keys with gaps, which are within the files and the claims of others.
        for number in 0..fill * 60 {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let key = (key % 500 / 50 * 100 + key % 50).to_be_bytes().to_vec();
            keyspace.insert(&key, number.to_be_bytes()).unwrap();
            model.insert(key, number.to_be_bytes().to_vec());
        }
        db.flush().unwrap();
        let compacting = held(&db, Db::wait_idle);
        while !gate.has_thread() && !compacting.is_finished() {
            thread::yield_now();
        }
        held_up += u32::from(!compacting.is_finished());
        let entries = || -> BTreeMap<Vec<u8>, Vec<u8>> {
            let entries = keyspace.iter().unwrap();
            entries.map(Result::unwrap).collect()
        };
        for gap in 0..10_u64 {
            let numbers = gap * 100 + 60..gap * 100 + 70 + gap * 4;
            let load = numbers.map(|number| (number.to_be_bytes().to_vec(), b"loaded".to_vec()));
            let load: BTreeMap<_, _> = load.collect();
            keyspace.bulk_load(&load).unwrap();
            model.extend(load);
        }
        assert_eq!(entries(), model);
        check_sound(&db);
        gate.open();
        compacting.join().unwrap().unwrap();
        assert_eq!(entries(), model);
        db.wait_idle().unwrap();
        assert_eq!(entries(), model);
        check_sound(&db);
    }
    assert!(held_up > 5, "{held_up}");
}

#[test]
fn calls_on_a_closed_database_report_it() {
    let disk = SimDisk::new();
    let (db, keyspace) = open(small(Arc::new(disk)));
    for key in 0..200 {
        keyspace.insert(format!("key {key}"), "value").unwrap();
    }
    db.flush().unwrap();
    let mut cursor = keyspace.cursor().unwrap();
    db.clone().close().unwrap();
    // A second close has the outcome of the first.
    db.clone().close().unwrap();
    for refused in [
        kind(cursor.seek_to_first()),
        kind(db.keyspace("new")),
        kind(db.wait_idle()),
        kind(keyspace.compact_range::<&[u8]>(..)),
    ] {
        assert_eq!(refused, ErrorKind::Closed);
    }
}

#[test]
fn a_snapshot_of_another_database_is_refused() {
    let open = || Db::open(FOLDER, small(Arc::new(SimDisk::new()))).unwrap();
    let (one, other) = (open(), open());
    let keyspace = one.keyspace("k").unwrap();
    let view = keyspace.at(&other.snapshot());
    assert_eq!(kind(view), ErrorKind::InvalidArgument);
}
