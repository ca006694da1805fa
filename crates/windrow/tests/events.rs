//! Listeners receive events that agree with the statistics, and a panic in a listener has no effect.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the listeners belong to the tests and need no model"
)]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use windrow::{Db, ErrorKind, Event, Options};

/// Options under which a few kilobytes make several tables.
fn tiny() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.level0_runs = 2;
    options
}

fn work(db: &Db) {
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..2000_u32 {
        keyspace
            .insert((number % 100).to_be_bytes(), [7; 100])
            .unwrap();
    }
    db.flush().unwrap();
    keyspace.compact_range::<&[u8]>(..).unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn flushes_and_compactions_notify_and_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    let own = Arc::new(OnceLock::<Db>::new());
    let handle = Arc::clone(&own);
    let listener = move |event: &Event| {
        // The thread holds no lock, so the listener may use the database.
        if let Some(db) = handle.get() {
            assert_eq!(db.keyspace_names(), ["main"]);
            assert!(db.stats().wal_bytes > 0);
        }
        sink.lock().unwrap().push(event.clone());
    };
    let db = Db::open(folder.path(), tiny().with_listener(Arc::new(listener))).unwrap();
    db.keyspace("main").unwrap();
    assert!(own.set(db.clone()).is_ok());
    work(&db);
    let stats = db.stats();
    let (mut flushes, mut flushed, mut compactions) = (0, 0, 0);
    let (mut read, mut written, mut entries, mut dropped) = (0, 0, 0, 0);
    let (mut stalls_begun, mut stalls_ended) = (0, 0);
    let (mut flushes_begun, mut compactions_begun) = (0, 0);
    let (mut opens, mut moves) = (0, 0);
    for event in &*received.lock().unwrap() {
        match event {
            Event::FlushEnded {
                keyspace,
                entries: own,
                entries_dropped,
                bytes_written,
                ..
            } => {
                assert_eq!(keyspace, "main");
                flushes += 1;
                flushed += bytes_written;
                entries += own;
                dropped += entries_dropped;
            }
            Event::CompactionEnded {
                keyspace,
                level,
                bytes_read,
                bytes_written,
                entries_dropped,
                ..
            } => {
                assert_eq!(keyspace, "main");
                assert!(*level > 0);
                compactions += 1;
                read += bytes_read;
                written += bytes_written;
                dropped += entries_dropped;
            }
            Event::StallBegan { cause, .. } => stalls_begun += u64::from(!cause.is_empty()),
            Event::StallEnded { .. } => stalls_ended += 1,
            Event::FlushBegan { .. } => flushes_begun += 1,
            Event::CompactionBegan { purpose, files, .. } => {
                assert_eq!((*purpose, *files > 0), ("tree", true));
                compactions_begun += 1;
            }
            Event::FileMoved { .. } => moves += 1,
            Event::Opened { is_new, logs, .. } => {
                assert_eq!((*is_new, *logs, opens), (true, 0, 0));
                opens += 1;
            }
            other => panic!("{other:?} did not happen"),
        }
    }
    assert_eq!((opens, moves), (1, stats.trivial_moves));
    assert_eq!((flushes_begun, compactions_begun), (flushes, compactions));
    assert_eq!((flushes, flushed), (stats.flushes, stats.flush_bytes));
    assert_eq!(compactions, stats.compactions);
    assert_eq!(
        (read, written),
        (stats.compaction_bytes_read, stats.compaction_bytes_written)
    );
    assert_eq!((entries, dropped), (2000, 1900));
    let stalls = stats.stall_count();
    assert_eq!((stalls_begun, stalls_ended), (stalls, stalls));
    db.close().unwrap();
}

#[test]
fn garbage_collections_notify_and_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    let listener = move |event: &Event| sink.lock().unwrap().push(event.clone());
    let mut options = tiny();
    (options.keyspace.medium_from, options.keyspace.large_from) = (90, 90);
    options.keyspace.max_space_amp = 1.2;
    let db = Db::open(folder.path(), options.with_listener(Arc::new(listener))).unwrap();
    for _ in 0..3 {
        work(&db);
    }
    let stats = db.stats();
    let (mut garbage_collections, mut dropped, mut read, mut written) = (0, 0, 0, 0);
    for event in &*received.lock().unwrap() {
        if let Event::GarbageCollectionEnded {
            keyspace,
            files,
            bytes_read,
            bytes_written,
            values_dropped,
            ..
        } = event
        {
            assert_eq!(keyspace, "main");
            assert!(*files > 0);
            garbage_collections += 1;
            read += bytes_read;
            written += bytes_written;
            dropped += values_dropped;
        }
    }
    assert!(garbage_collections > 0);
    assert_eq!(
        (garbage_collections, dropped),
        (stats.garbage_collections, stats.gc_values_dropped)
    );
    // A garbage collection whose result was not needed counts its bytes only.
    assert!(read <= stats.gc_bytes_read);
    assert!(written <= stats.gc_bytes_written);
    db.close().unwrap();
}

/// A close waits for the job that calls the listener.
#[test]
fn a_listener_cannot_close_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let own = Arc::new(OnceLock::<Db>::new());
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let (handle, sink) = (Arc::clone(&own), Arc::clone(&outcomes));
    let listener = move |_: &Event| {
        if let Some(db) = handle.get() {
            let error = db.clone().close().unwrap_err();
            sink.lock().unwrap().push(error.kind());
        }
    };
    let db = Db::open(folder.path(), tiny().with_listener(Arc::new(listener))).unwrap();
    assert!(own.set(db.clone()).is_ok());
    work(&db);
    let keyspace = db.keyspace("main").unwrap();
    for number in 0..100_u32 {
        keyspace.insert(number.to_be_bytes(), [8; 100]).unwrap();
    }
    let before = outcomes.lock().unwrap().len();
    // The close flushes, which is an event, too.
    db.close().unwrap();
    let outcomes = outcomes.lock().unwrap();
    assert!(before > 0 && outcomes.len() > before);
    assert!(
        outcomes
            .iter()
            .all(|kind| *kind == ErrorKind::InvalidArgument)
    );
}

#[test]
fn a_listener_on_a_worker_may_drop_the_last_handle() {
    let folder = tempfile::tempdir().unwrap();
    let own = Arc::new(Mutex::new(None::<Db>));
    let (is_last, wait_until_last) = channel();
    let (dropped, wait_until_dropped) = channel();
    let handle = Arc::clone(&own);
    let (wait_until_last, dropped) = (Mutex::new(wait_until_last), Mutex::new(dropped));
    let listener = move |event: &Event| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        if matches!(event, Event::FlushEnded { .. }) && name.starts_with("windrow-") {
            let last = handle.lock().unwrap().take();
            if let Some(db) = last {
                wait_until_last.lock().unwrap().recv().unwrap();
                drop(db);
                dropped.lock().unwrap().send(()).unwrap();
            }
        }
    };
    let db = Db::open(folder.path(), tiny().with_listener(Arc::new(listener))).unwrap();
    *own.lock().unwrap() = Some(db.clone());
    let keyspace = db.keyspace("main").unwrap();
    // More than a memtable, and less than writers wait for.
    for number in 0..200_u32 {
        keyspace.insert(number.to_be_bytes(), [7; 100]).unwrap();
    }
    drop((keyspace, db));
    is_last.send(()).unwrap();
    let minute = Duration::from_secs(60);
    wait_until_dropped.recv_timeout(minute).unwrap();
    // The worker closes the database soon after.
    let start = Instant::now();
    let db = loop {
        match Db::open(folder.path(), tiny()) {
            Err(error) if error.kind() == ErrorKind::Locked && start.elapsed() < minute => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => break opened.unwrap(),
        }
    };
    let count = db.keyspace("main").unwrap().count::<&[u8]>(..).unwrap();
    assert_eq!(count, 200);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_panic_of_a_listener_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let listener = |_: &Event| panic!("a listener that panics");
    let db = Db::open(folder.path(), tiny().with_listener(Arc::new(listener))).unwrap();
    work(&db);
    assert!(db.stats().compactions > 0);
    assert!(db.verify().unwrap().is_sound());
    db.keyspace("main").unwrap().insert("a", "b").unwrap();
    db.close().unwrap();
}
