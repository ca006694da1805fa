//! The reads and writes of a garbage collection, counted by a file system that records them.

#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::tests::ManualRuntime;
use super::*;
use crate::base::Kind;
use crate::base::sync::Mutex;
use crate::engine::Stats;
use crate::engine::{Access, Handle, Write};
use crate::manifest::ValueFileState;
use crate::options::{BlockSource, Durability, KeyspaceOptions, Options};
use crate::read::visible::KeyRange;
use crate::runtime::Runtime;
use crate::vfs::{Advice, File, LockGuard, OpenMode, Region, Vfs};

/// The operations on files of one kind, by the extension of their names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Done {
    created: usize,
    written: usize,
    read: usize,
    others: usize,
}

type Notes = Arc<Mutex<BTreeMap<String, Done>>>;

fn note(notes: &Notes, path: &Path, change: impl FnOnce(&mut Done)) {
    let end = path.extension().unwrap_or(path.as_os_str());
    let end = end.to_string_lossy().into_owned();
    change(notes.lock().entry(end).or_default());
}

/// The file system of the machine; it records the operations on files.
#[derive(Debug)]
struct RecordingVfs {
    inner: Arc<dyn Vfs>,
    notes: Notes,
}

#[derive(Debug)]
struct RecordingFile {
    inner: Arc<dyn File>,
    path: std::path::PathBuf,
    notes: Notes,
}

impl RecordingVfs {
    fn file(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(RecordingFile {
            inner,
            path: path.to_owned(),
            notes: Arc::clone(&self.notes),
        })
    }
}

impl File for RecordingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.inner.read_at(buffer, offset)?;
        note(&self.notes, &self.path, |done| done.read += read);
        Ok(read)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let written = self.inner.write_at(buffer, offset)?;
        note(&self.notes, &self.path, |done| done.written += written);
        Ok(written)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.reserve(offset, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        self.inner.advise(range, advice);
    }

    fn map(&self, length: u64) -> io::Result<Arc<Region>> {
        note(&self.notes, &self.path, |done| done.others += 1);
        self.inner.map(length)
    }
}

impl Vfs for RecordingVfs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        note(&self.notes, path, |done| done.created += 1);
        Ok(self.file(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(self.file(path, self.inner.open(path, mode)?))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        note(&self.notes, from, |done| done.others += 1);
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        note(&self.notes, path, |done| done.others += 1);
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.inner.lock(path)
    }
}

/// A keyspace without garbage collections, except those of the test.
struct Store {
    handle: Handle,
    keyspace: Arc<KeyspaceCore>,
    runtime: Arc<ManualRuntime>,
    notes: Notes,
    _directory: tempfile::TempDir,
}

impl Store {
    fn new(file_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Arc::new(ManualRuntime::default());
        let notes = Notes::default();
        let options = Options::default();
        let options = Options {
            vfs: Arc::new(RecordingVfs {
                inner: Arc::clone(&options.vfs),
                notes: Arc::clone(&notes),
            }),
            runtime: Arc::<ManualRuntime>::clone(&runtime),
            block_source: BlockSource::Buffered,
            // Only the jobs use the files.
            job_log_bytes: 0,
            status_interval: Duration::ZERO,
            keyspace: KeyspaceOptions {
                memtable_bytes: 1 << 20,
                file_bytes,
                large_from: 100,
                medium_from: 100,
                max_space_amp: 1.1,
                ..KeyspaceOptions::default()
            },
            ..options
        };
        let handle = Handle::open(directory.path(), options, Access::ReadWrite).unwrap();
        let keyspace = handle.engine().open_keyspace("map", None).unwrap();
        keyspace.work.lock().is_gc_running = true;
        Self {
            handle,
            keyspace,
            runtime,
            notes,
            _directory: directory,
        }
    }

    fn engine(&self) -> &Engine {
        self.handle.engine()
    }

    fn write(&self, key: u8, value: &[u8]) {
        self.write_at(&[key], value);
    }

    fn write_at(&self, key: &[u8], value: &[u8]) {
        let write = Write::One {
            keyspace: &self.keyspace,
            kind: Kind::Value,
            key,
            value,
        };
        self.engine().commit(&write, Durability::Buffered).unwrap();
    }

    /// Fills every log, flushes and compacts everything, and claims the garbage collection that is due.
    fn claim(&self) -> GcJob {
        self.keyspace.value_log.lock().retire();
        let everything = KeyRange::ALL;
        self.engine()
            .compact_range(&self.keyspace, &everything)
            .unwrap();
        self.keyspace.work.lock().is_gc_running = false;
        let now = self.runtime.now();
        self.engine().claim_gc(&self.keyspace, now).unwrap()
    }

    fn collect(&self, job: GcJob) {
        let outcome = self.engine().collect(&self.keyspace, &job);
        job.release(&self.keyspace, &outcome, self.runtime.now());
        outcome.unwrap();
    }
}

/// The counters of reads and compactions of tables.
fn of_tables(stats: &Stats) -> [u64; 11] {
    [
        stats.gets,
        stats.block_reads,
        stats.block_loads,
        stats.filter_probes,
        stats.flush_bytes,
        stats.compaction_bytes_written,
        stats.compaction_bytes_read,
        stats.transient_log_bytes_written,
        stats.transient_log_bytes_read,
        stats.wal_bytes,
        stats.value_log_bytes,
    ]
}

#[test]
fn a_garbage_collection_looks_up_no_key_and_writes_no_table() {
    let store = Store::new(4 << 10);
    for round in 0..4_u8 {
        for key in 0..64 {
            store.write(key, &[round; 200]);
        }
    }
    let job = store.claim();
    let records: u64 = job.victims.iter().map(|victim| victim.file.length).sum();
    let listed: u64 = job.lists.iter().map(|list| list.length).sum();
    assert!(records > 0 && listed > 0);
    let before = store.engine().stats();
    store.notes.lock().clear();
    store.collect(job);
    let notes = std::mem::take(&mut *store.notes.lock());
    let after = store.engine().stats();
    assert_eq!(of_tables(&before), of_tables(&after));
    assert_eq!(after.garbage_collections, before.garbage_collections + 1);
    // The logs have no relocation tables to read.
    assert_eq!(after.gc_bytes_read, records + listed);

    let ends: Vec<&str> = notes.keys().map(String::as_str).collect();
    assert_eq!(ends, ["dead", "manifest", "values"]);
    let garbage = Done {
        read: notes["dead"].read,
        ..Done::default()
    };
    assert_eq!(notes["dead"], garbage);
    let manifest = Done {
        written: notes["manifest"].written,
        ..Done::default()
    };
    assert_eq!(notes["manifest"], manifest);
    let values = &notes["values"];
    assert_eq!((values.created, values.others), (1, 0));
    assert_eq!(values.written as u64, after.gc_bytes_written);
    assert!(store.engine().verify().unwrap().is_sound());
}

/// How often `job` checks whether it is still needed, and the most memory that it holds at a check.
fn looks(store: &Store, job: &GcJob) -> (u64, u64) {
    let (looks, most) = (Cell::new(0), Cell::new(0));
    let held = || store.engine().memory.tables.jobs.bytes();
    let before = held();
    let wanted = || {
        looks.set(looks.get() + 1);
        most.set(most.get().max(held() - before));
        Ok(())
    };
    drop(collect(store.engine(), &wanted, &job.victims, &job.lists).unwrap());
    assert_eq!(held(), before);
    (looks.get(), most.get())
}

/// A close waits only briefly, with much garbage or with one long value.
#[test]
fn a_garbage_collection_checks_often_whether_it_is_needed() {
    let store = Store::new(4 << 20);
    for key in 0..120 {
        for round in 0..2 {
            let length = if round == 0 { 64 << 10 } else { 200 };
            store.write(key, &vec![round; length]);
        }
    }
    let job = store.claim();
    assert!(looks(&store, &job).0 >= 7);
    let store = Store::new(4 << 20);
    store.write(1, &vec![7; 4 << 20]);
    store.write(2, &vec![7; 8 << 20]);
    store.write(1, &[8; 200]);
    let job = store.claim();
    assert!(looks(&store, &job).0 >= 8 * 4);
}

/// I2 of `compact/garbage_collection.rs`: the memory for the garbage of an origin is counted, too.
#[test]
fn the_memory_for_origins_is_counted() {
    const VALUES: u64 = 100_000;
    let store = Store::new(64 << 20);
    for number in 0..VALUES {
        store.write_at(&number.to_be_bytes(), &[1; 92]);
        if number % 5 == 0 {
            store.write_at(&number.to_be_bytes(), &[2; 92]);
        }
    }
    let job = store.claim();
    store.collect(job);
    store.keyspace.work.lock().is_gc_running = true;
    for number in 10..VALUES {
        store.write_at(&number.to_be_bytes(), &[3; 92]);
    }
    let job = store.claim();
    assert_eq!(job.victims[0].tables.len(), 1);
    // More than the garbage by its offsets in the GC output, a MiB, and buffers.
    let (_, most) = looks(&store, &job);
    assert!(most > (1 << 20) + 2 * (256 << 10), "{most}");
}

#[test]
fn verify_counts_live_bytes_itself() {
    let store = Store::new(4 << 10);
    for round in 0..2_u8 {
        for key in 0..64 {
            store.write(key, &[round; 200]);
        }
    }
    drop(store.claim());
    let engine = store.engine();
    assert!(engine.verify().unwrap().is_sound());
    let mut wrong = engine
        .catalog
        .with_state(|state| state.keyspaces[&store.keyspace.id()].clone());
    let is_live = |log: &&ValueFileState| log.referred.bytes > 0;
    let log = wrong.values.files.values().find(is_live);
    let log = log.unwrap().file.number;
    wrong.values.files.get_mut(&log).unwrap().referred.bytes -= 1;
    store.keyspace.set_value_files(&wrong, &engine.obsolete);
    assert!(!engine.verify().unwrap().is_sound());
}
