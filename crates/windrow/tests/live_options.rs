//! Options that change while a database is open.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_types, reason = "the test is outside the engine")]

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{Db, ErrorKind, Keyspace, Options};

/// Real threads, which it counts, and a clock that a sleep only turns.
#[derive(Debug, Default)]
struct Observed {
    threads: Threads,
    started: Mutex<Vec<usize>>,
    sleeps: AtomicUsize,
    slept_nanos: AtomicU64,
}

impl Runtime for Observed {
    fn now(&self) -> Duration {
        self.threads.now() + Duration::from_nanos(self.slept_nanos.load(Ordering::SeqCst))
    }

    fn unix_time(&self) -> Duration {
        self.threads.unix_time()
    }

    fn sleep(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap();
        self.slept_nanos.fetch_add(nanos, Ordering::SeqCst);
        self.sleeps.fetch_add(1, Ordering::SeqCst);
    }

    fn random(&self) -> u64 {
        self.threads.random()
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> io::Result<Box<dyn Workers>> {
        self.started.lock().unwrap().push(count);
        self.threads.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.threads.step_instead_of_waiting(work)
    }
}

fn open(runtime: &Arc<Observed>, folder: &std::path::Path) -> Db {
    let runtime: Arc<dyn Runtime> = Arc::<Observed>::clone(runtime);
    Db::open(folder, Options::default().with_runtime(runtime)).unwrap()
}

#[test]
fn missing_threads_are_started_and_spare_ones_kept() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Arc::<Observed>::default();
    let db = open(&runtime, folder.path());
    for (count, started) in [(5, 3), (1, 0), (4, 0), (6, 1)] {
        let before: usize = runtime.started.lock().unwrap().iter().sum();
        db.set_background_threads(count).unwrap();
        let after: usize = runtime.started.lock().unwrap().iter().sum();
        assert_eq!(after - before, started, "{count}");
    }
    let error = db.set_background_threads(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // The budget has 4 MiB for each of 128 threads.
    let error = db.set_background_threads(129).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);

    let keyspace = db.keyspace("entries").unwrap();
    rewrite(&keyspace);
    let path = db.path().to_owned();
    db.close().unwrap();
    let error = keyspace.insert("key", "value").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    drop(keyspace);
    // All workers have ended, so nothing holds the folder.
    open(&runtime, &path).close().unwrap();
}

/// Writes 64 KiB and compacts everything.
fn rewrite(keyspace: &Keyspace) {
    for number in 0..64_u8 {
        keyspace.insert([number], [number; 1024]).unwrap();
    }
    keyspace.compact_range::<&[u8]>(..).unwrap();
}

#[test]
fn jobs_follow_a_changed_rate() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Arc::<Observed>::default();
    let db = open(&runtime, folder.path());
    let keyspace = db.keyspace("entries").unwrap();
    let sleeps_of_a_rewrite = || {
        // The second one rewrites what the first one has written.
        rewrite(&keyspace);
        let before = runtime.sleeps.load(Ordering::SeqCst);
        rewrite(&keyspace);
        runtime.sleeps.load(Ordering::SeqCst) - before
    };
    assert_eq!(sleeps_of_a_rewrite(), 0);
    db.set_compaction_bytes_per_second(1 << 10);
    assert!(sleeps_of_a_rewrite() > 0);
    db.set_compaction_bytes_per_second(0);
    assert_eq!(sleeps_of_a_rewrite(), 0);
}
