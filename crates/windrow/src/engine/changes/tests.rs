//! Steps of consumers and tasks that tests from outside cannot put between two others.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Poll, Wake};
use std::time::Duration;

use crate::base::sync::atomic::Ordering;
use crate::base::{Error, ErrorKind, FileNumber, Kind};
use crate::engine::{Access, Engine, Handle, Scrub, Write};
use crate::options::{Durability, Options};

fn open(folder: &Path) -> Handle {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    Handle::open(folder, options, Access::ReadWrite).unwrap()
}

fn write(engine: &Engine, keyspace: &str, keys: std::ops::Range<u32>) {
    let keyspace = engine.open_keyspace(keyspace, None).unwrap();
    for key in keys {
        let write = Write::One {
            keyspace: &keyspace,
            kind: Kind::Value,
            key: &key.to_be_bytes(),
            value: &[1; 200],
        };
        engine.commit(&write, Durability::Buffered).unwrap();
    }
}

#[test]
fn an_edit_keeps_no_log_that_an_earlier_one_keeps_already() {
    let folder = tempfile::tempdir().unwrap();
    let handle = open(folder.path());
    let engine = handle.engine();
    engine.open_consumer("c").unwrap();
    // The first log is needed for `b`, so no flush of `a` makes a log unnecessary.
    write(engine, "b", 0..1);
    write(engine, "a", 0..2000);
    engine.sync_logs().unwrap();
    let logs: Vec<FileNumber> = engine.chain.lengths().iter().map(|log| log.0).collect();
    let (last, closed) = logs.split_last().unwrap();
    assert!(closed.len() > 2, "{closed:?}");
    // Two flushes end before the first of them has removed the logs from the chain.
    for first in [closed[1], *last] {
        let build = |state: &_| engine.oldest_log_records(first, state);
        engine.catalog.commit(build, |_| ()).unwrap();
    }
    let kept = engine.catalog.with_state(|state| {
        let logs = state.changes.kept_logs.keys();
        logs.copied().collect::<Vec<_>>()
    });
    assert_eq!(kept, closed);
    engine.poison.check().unwrap();
}

/// An acknowledgement may have failed between the edit of a flush and its removal of the logs. The manifest on disk may then
/// name what that in memory does not.
#[test]
fn a_poisoned_database_keeps_each_log() {
    let folder = tempfile::tempdir().unwrap();
    let handle = open(folder.path());
    let engine = handle.engine();
    write(engine, "a", 0..2000);
    let logs: Vec<FileNumber> = engine.chain.lengths().iter().map(|log| log.0).collect();
    assert!(logs.len() > 1 && logs.iter().all(|&log| !engine.is_kept(log)));
    engine.poison.set(&Error::closed());
    assert!(logs.iter().all(|&log| engine.is_kept(log)));
}

/// A log may be closed after the sync of a flush, with buffered entries of a keyspace that was dropped.
#[test]
fn a_log_is_not_kept_before_it_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let handle = open(folder.path());
    let engine = handle.engine();
    engine.open_consumer("c").unwrap();
    // They fill a log and no memtable, so no flush syncs.
    for keyspace in ["a", "b", "d"] {
        write(engine, keyspace, 0..120);
    }
    let logs: Vec<FileNumber> = engine.chain.lengths().iter().map(|log| log.0).collect();
    let (last, closed) = logs.split_last().unwrap();
    assert!(!closed.is_empty(), "{logs:?}");
    let records = || {
        let records = |state: &_| engine.oldest_log_records(*last, state);
        engine.catalog.with_state(records)
    };
    assert_eq!(records(), []);
    engine.sync_logs().unwrap();
    assert_eq!(records().len(), closed.len() + 1);
}

#[test]
fn a_log_that_was_let_go_before_it_leaves_the_chain_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let handle = open(folder.path());
    let engine = handle.engine();
    engine.open_consumer("c").unwrap();
    write(engine, "b", 0..1);
    write(engine, "a", 0..2000);
    engine.sync_logs().unwrap();
    let last = engine.chain.lengths().last().unwrap().0;
    let build = |state: &_| engine.oldest_log_records(last, state);
    engine.catalog.commit(build, |_| ()).unwrap();
    let mut feed = engine.changes(1, None).unwrap();
    assert!(
        engine
            .next_change(&mut feed, Duration::ZERO)
            .unwrap()
            .is_some()
    );
    let newest = engine.visible.load(Ordering::Acquire);
    engine.acknowledge("c", newest).unwrap();
    let error = engine.changes(1, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FellBehind, "{error}");
    assert!(engine.scrub(&Scrub::default()).unwrap().is_sound());
}

/// The thread that wakes tasks looks for a poison, which notifies nobody.
#[test]
fn a_poisoned_database_wakes_its_tasks() {
    struct Alarm(mpsc::Sender<()>);

    impl Wake for Alarm {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let handle = open(folder.path());
    let mut feed = handle.engine().changes(1, None).unwrap();
    let (called, calls) = mpsc::channel();
    let waker = Arc::new(Alarm(called)).into();
    assert!(handle.poll_change(&mut feed, &waker).is_pending());
    handle.engine().poison.set(&Error::closed());
    calls.recv().unwrap();
    let Poll::Ready(Some(Err(error))) = handle.poll_change(&mut feed, &waker) else {
        unreachable!("the database is poisoned");
    };
    assert_eq!(error.kind(), ErrorKind::Poisoned);
}
