//! Garbage collections and compactions of one keyspace that overlap in any way, stepped by hand.

#![cfg(not(any(loom, shuttle)))]

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

use proptest::prelude::*;

use super::*;
use crate::base::{ErrorKind, Kind};
use crate::engine::jobs::compaction_claim::CompactionJob;
use crate::engine::{Access, Handle, Write};
use crate::manifest::FileHandle;
use crate::manifest::names::FileName;
use crate::options::{Durability, KeyspaceOptions, Options, SegmentLimit};
use crate::policy::ReadPoints;
use crate::read::visible::KeyRange;
use crate::runtime::{Runtime, Work, Workers};
use crate::vfs::{OpenMode, OsVfs, Vfs, read_exact_at, write_all_at};

/// A runtime without threads. Jobs run where the test runs them, and where other jobs read the clock,
/// which they do after writes.
#[derive(Debug, Default)]
pub(super) struct ManualRuntime {
    clock: AtomicU64,
    /// The number of clock reads that run a job.
    interludes: AtomicU64,
    work: OnceLock<Weak<dyn Work>>,
}

impl ManualRuntime {
    fn interrupt(&self) {
        // A job that interrupts another is not interrupted itself.
        let left = self.interludes.swap(0, Ordering::Relaxed);
        if left > 0 {
            if let Some(work) = self.work.get().and_then(Weak::upgrade) {
                work.run_one();
            }
            self.interludes.store(left - 1, Ordering::Relaxed);
        }
    }
}

#[derive(Debug)]
struct Nobody;

impl Workers for Nobody {}

impl Runtime for ManualRuntime {
    fn now(&self) -> Duration {
        self.interrupt();
        Duration::from_micros(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap();
        self.clock.fetch_add(micros, Ordering::Relaxed);
    }

    fn random(&self) -> u64 {
        4
    }

    fn start(&self, work: Arc<dyn Work>, _: usize) -> io::Result<Box<dyn Workers>> {
        self.work.set(Arc::downgrade(&work)).unwrap();
        Ok(Box::new(Nobody))
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        assert!(work.run_one(), "no job would end this wait");
        true
    }
}

/// One keyspace of large values, and its expected contents.
struct Store {
    handle: Handle,
    keyspace: Arc<KeyspaceCore>,
    runtime: Arc<ManualRuntime>,
    model: BTreeMap<u8, Vec<u8>>,
    written: u32,
    directory: tempfile::TempDir,
}

fn small() -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: 4 << 10,
        file_bytes: 2 << 10,
        base_bytes: 16 << 10,
        level0_runs: 1,
        medium_from: 100,
        large_from: 100,
        max_space_amp: 1.1,
        ..KeyspaceOptions::default()
    }
}

fn open(
    directory: &Path,
    keyspace: KeyspaceOptions,
) -> (Handle, Arc<KeyspaceCore>, Arc<ManualRuntime>) {
    let runtime = Arc::new(ManualRuntime::default());
    let options = Options {
        runtime: Arc::<ManualRuntime>::clone(&runtime),
        background_threads: 4,
        compaction_bytes_per_second: 1 << 40,
        keyspace,
        ..Options::default()
    };
    let handle = Handle::open(directory, options, Access::ReadWrite).unwrap();
    let keyspace = handle.engine().open_keyspace("map", None).unwrap();
    (handle, keyspace, runtime)
}

impl Store {
    fn new(options: KeyspaceOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (handle, keyspace, runtime) = open(directory.path(), options);
        Self {
            handle,
            keyspace,
            runtime,
            model: BTreeMap::new(),
            written: 0,
            directory,
        }
    }

    fn engine(&self) -> &Engine {
        self.handle.engine()
    }

    /// Runs the next `count` jobs in the middle of others.
    fn interrupt(&self, count: u8) {
        let count = u64::from(count);
        self.runtime.interludes.store(count, Ordering::Relaxed);
    }

    /// Writes or removes `count` keys from `key` on.
    fn write(&mut self, key: u8, count: u8, kind: Kind) {
        for key in (0..count).map(|step| key.wrapping_add(step) % 64) {
            self.written += 1;
            let mut value = Vec::new();
            self.model.remove(&key);
            if kind == Kind::Value {
                value = self.written.to_le_bytes().repeat(60);
                self.model.insert(key, value.clone());
            }
            let write = Write::One {
                keyspace: &self.keyspace,
                kind,
                key: &[key],
                value: &value,
            };
            self.engine().commit(&write, Durability::Buffered).unwrap();
        }
    }

    /// Runs up to `count` jobs.
    fn run(&self, count: u8) {
        for _ in 0..count {
            if !self.engine().run_one() {
                break;
            }
        }
    }

    /// Writes all memtables to tables.
    fn flush(&self) {
        self.engine().rotate(&[Arc::clone(&self.keyspace)]).unwrap();
        while let Some(oldest) = self.keyspace.state_full().frozen.last() {
            self.engine().flush(&self.keyspace, oldest).unwrap();
        }
    }

    /// What a reader finds.
    fn held(&self) -> BTreeMap<u8, Vec<u8>> {
        let view = self.engine().state_view(&self.keyspace, None).unwrap();
        let mut cursor = view.cursor(KeyRange::ALL);
        let mut held = BTreeMap::new();
        let mut found = cursor.moving().seek_to_first().unwrap();
        while found {
            held.insert(cursor.key()[0], cursor.value().unwrap().to_vec());
            found = cursor.moving().next().unwrap();
        }
        held
    }

    fn check(&self) {
        assert!(self.held() == self.model);
        // This compares the counted references with those of all tables.
        let report = self.engine().verify().unwrap();
        assert!(report.is_sound(), "{report:?}");
        self.moved_below_level_0();
    }

    /// The bytes that tables below level 0 refer to through relocation tables. Checks that no segment has a pointer
    /// into an origin that led to its generation, or to an older GC output.
    fn moved_below_level_0(&self) -> u64 {
        let version = Shared::clone(&self.keyspace.state().version);
        let mut moved = 0;
        for (level, files) in version.levels().iter().enumerate() {
            for file in files.files() {
                let table = self.engine().tables.get(file.slot(), &file.meta).unwrap();
                for (segment, list) in file.meta.segments.iter().zip(table.log_references()) {
                    for (number, referred) in list.unwrap().iter() {
                        let Some(relocation) = version.values().table(number) else {
                            continue;
                        };
                        let logs = segment.references.logs().unwrap();
                        assert!(
                            logs.generation < relocation.gc_output,
                            "{number:?}: {logs:?}"
                        );
                        moved += if level > 0 { referred.bytes } else { 0 };
                    }
                }
            }
        }
        moved
    }

    fn reopen(&mut self) {
        self.handle.close().unwrap();
        (self.handle, self.keyspace, self.runtime) = open(self.directory.path(), small());
    }
}

/// The claimed jobs that a history has not run yet.
#[derive(Default)]
struct Held {
    gc: Option<GcJob>,
    merges: Vec<CompactionJob>,
}

impl Held {
    fn end_gc(&mut self, store: &Store) {
        if let Some(job) = self.gc.take() {
            let outcome = store.engine().collect(&store.keyspace, &job);
            job.release(&store.keyspace, &outcome, store.runtime.now());
            outcome.unwrap();
        }
    }

    fn end_compaction(&mut self, store: &Store) {
        if let Some(job) = self.merges.pop() {
            let outcome = store.engine().compact(&store.keyspace, &job);
            job.release(&store.keyspace, &outcome, store.runtime.now());
            outcome.unwrap();
        }
    }

    fn step(&mut self, store: &mut Store, [verb, first, second]: [u8; 3]) {
        // Stopped writers wait for these jobs.
        if verb % 10 < 5 && store.keyspace.throttle_by_disk().fraction > 0.0 {
            self.end(store);
            store.run(4);
        }
        match verb % 10 {
            0..=3 => store.write(first, second % 32, Kind::Value),
            4 => store.write(first, second % 8, Kind::Tombstone),
            5 => store.run(second % 8),
            6 => {
                store.interrupt(second % 4);
                self.end_gc(store);
                let now = store.runtime.now();
                self.gc = store.engine().claim_gc(&store.keyspace, now);
            }
            7 => self.merges.extend(CompactionJob::claim(
                &store.keyspace,
                store.runtime.now(),
                &ReadPoints::without_clock(Vec::new(), 0),
            )),
            8 => {
                store.interrupt(second % 4);
                self.end_gc(store);
            }
            _ => {
                store.interrupt(second % 4);
                self.end_compaction(store);
            }
        }
        store.interrupt(0);
    }

    fn end(&mut self, store: &Store) {
        self.end_gc(store);
        while !self.merges.is_empty() {
            self.end_compaction(store);
        }
    }
}

/// The manifest on disk may name bytes after the known end of a file.
#[test]
fn a_compaction_claimed_before_a_poison_changes_nothing() {
    let mut store = Store::new(KeyspaceOptions {
        large_from: u64::MAX,
        medium_from: u64::MAX,
        max_space_amp: f64::INFINITY,
        segment_limit: SegmentLimit::Fixed(4),
        ..small()
    });
    let (job, target) = loop {
        store.write(0, 16, Kind::Value);
        let readers = ReadPoints::without_clock(Vec::new(), 0);
        let Some(job) = CompactionJob::claim(&store.keyspace, store.runtime.now(), &readers) else {
            store.run(1);
            continue;
        };
        if let CompactionJob::Compact { inputs, .. } = &job
            && let Some(target) = inputs.targets.first()
        {
            let target = target.meta.number;
            break (job, target);
        }
        let outcome = store.engine().compact(&store.keyspace, &job);
        job.release(&store.keyspace, &outcome, store.runtime.now());
    };
    let path = store
        .directory
        .path()
        .join(FileName::Table(target).to_string());
    let file = OsVfs.open(&path, OpenMode::ReadWrite).unwrap();
    let end = file.length().unwrap();
    let segment = [7; 4096];
    write_all_at(&*file, &segment, end).unwrap();
    let files = OsVfs.list(store.directory.path()).unwrap().len();

    store
        .engine()
        .poison
        .set(&Error::new(ErrorKind::Io, "of a test"));
    let outcome = store.engine().compact(&store.keyspace, &job);
    job.release(&store.keyspace, &outcome, store.runtime.now());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
    let mut found = [0; 4096];
    read_exact_at(&*file, &mut found, end).unwrap();
    assert_eq!(found, segment);
    assert_eq!(OsVfs.list(store.directory.path()).unwrap().len(), files);
}

/// A damaged list of references stops compactions of its table, before they write. Everything else continues.
#[test]
fn a_damaged_list_of_references_stops_compactions_of_its_table_alone() {
    let mut store = Store::new(small());
    let refers = |file: &Shared<FileHandle>| file.meta.log_bytes() > 0;
    let (job, damaged) = loop {
        store.write(0, 16, Kind::Value);
        let readers = ReadPoints::without_clock(Vec::new(), 0);
        if let Some(job) = CompactionJob::claim(&store.keyspace, store.runtime.now(), &readers) {
            if let CompactionJob::Compact { inputs, .. } = &job
                && let Some(file) = inputs.lower.iter().find(|file| refers(file))
            {
                let file = Shared::clone(file);
                break (job, file);
            }
            let outcome = store.engine().compact(&store.keyspace, &job);
            job.release(&store.keyspace, &outcome, store.runtime.now());
        } else {
            store.run(1);
        }
    };
    let engine = store.engine();
    let table = engine.tables.get(damaged.slot(), &damaged.meta).unwrap();
    let mut list = Vec::new();
    let of_table = table.log_references().next().unwrap().unwrap();
    of_table.encode(&mut list);
    let name = FileName::Table(damaged.meta.number).to_string();
    let path = store.directory.path().join(&name);
    let file = OsVfs.open(&path, OpenMode::ReadWrite).unwrap();
    let mut bytes = vec![0; usize::try_from(file.length().unwrap()).unwrap()];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    let place = bytes.windows(list.len()).rposition(|it| it == list);
    let place = place.unwrap() as u64;
    write_all_at(&*file, &[list[0] ^ 1], place).unwrap();
    let is_named = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let named = format!("{name} is damaged at offset {place}");
        assert!(error.to_string().contains(&named), "{error}");
    };

    // The compaction, the report and the full check name the place.
    let allocated = engine.catalog.allocate().unwrap();
    let outcome = engine.compact(&store.keyspace, &job);
    job.release(&store.keyspace, &outcome, store.runtime.now());
    is_named(&outcome.unwrap_err());
    assert_eq!(
        engine.catalog.allocate().unwrap(),
        allocated + 1,
        "no output was begun"
    );
    is_named(&engine.value_files(&store.keyspace).unwrap_err());
    let report = engine.verify().unwrap();
    assert_eq!(report.damage.len(), 1, "{report:?}");
    is_named(&report.damage[0]);

    // Flushes, garbage collections and reads continue.
    let job = loop {
        store.write(40, 8, Kind::Value);
        store.write(40, 8, Kind::Value);
        store.flush();
        if let Some(job) = store
            .engine()
            .claim_gc(&store.keyspace, store.runtime.now())
        {
            break job;
        }
    };
    let outcome = store.engine().collect(&store.keyspace, &job);
    job.release(&store.keyspace, &outcome, store.runtime.now());
    outcome.unwrap();
    assert!(store.engine().poison.check().is_ok());
    assert!(store.held() == store.model);
    write_all_at(&*file, &list[..1], place).unwrap();
    store.check();
}

/// With more live records than tables refer to, the next garbage collection would be that of the output, and so on. With
/// fewer, somebody would miss a value.
#[test]
fn discard_lists_that_disagree_with_tables_are_damage() {
    let mut store = Store::new(small());
    let mut job = loop {
        store.write(0, 8, Kind::Value);
        store.write(0, 4, Kind::Value);
        store.flush();
        let now = store.runtime.now();
        match store.engine().claim_gc(&store.keyspace, now) {
            Some(job) => break job,
            None => store.run(1),
        }
    };
    let refused = |victims: &[Victim], lists: &[Arc<DiscardList>]| {
        let error = collect(store.engine(), &|| Ok(()), victims, lists).map(drop);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("discard lists leave"), "{error}");
    };
    assert!(!job.lists.is_empty());
    refused(&job.victims, &[]);
    for (entries, bytes) in [(1, 1), (0, 1)] {
        let mut victims = job.victims.clone();
        victims[0].live.entries += entries;
        victims[0].live.bytes += bytes;
        refused(&victims, &job.lists);
    }
    drop(collect(store.engine(), &|| Ok(()), &job.victims, &job.lists).unwrap());

    job.lists.clear();
    let outcome = store.engine().collect(&store.keyspace, &job);
    assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::Corruption);
    let now = store.runtime.now();
    job.release(&store.keyspace, &outcome, now);
    // It does not come again at once.
    let next = store.engine().claim_gc(&store.keyspace, now);
    assert!(next.is_none());
    store.check();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // I1, I2
    #[test]
    fn jobs_that_overlap_a_garbage_collection_change_no_answer(
        steps in proptest::collection::vec(any::<[u8; 3]>(), 1..120),
    ) {
        let mut store = Store::new(small());
        let mut held = Held::default();
        for step in &steps {
            held.step(&mut store, *step);
            if step[0] % 16 == 0 {
                store.check();
            }
        }
        store.check();
        held.end(&store);
        store.check();
        store.run(200);
        store.check();
        // At rest few values are found through relocation tables.
        if !store.engine().run_one() {
            let version = Shared::clone(&store.keyspace.state().version);
            let live = version.value_sums().logs.live_bytes;
            let moved = store.moved_below_level_0();
            prop_assert!(moved <= live / 4, "{moved} of {live} bytes");
        }
        store.reopen();
        store.check();
    }
}
