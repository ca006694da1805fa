//! A compaction filter beside writers: each value that a thread has written is there, as written or as filtered, until it
//! writes the next one.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread::{self, ThreadId};
use windrow::{Candidate, CompactionFilter, Db, Decision, FilterError, Keyspace};
use windrow_sim::SimDisk;

use crate::{TRANSFERS, explore, options};

/// Removes values with `-` and lets those with `n` begin with `o`.
struct Marked;

impl CompactionFilter for Marked {
    fn name(&self) -> &'static str {
        "test.marked"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let value = candidate.value()?;
        Ok(match value.first() {
            Some(b'-') => Decision::Remove,
            Some(b'n') => Decision::Replace([b"o", &value[1..]].concat()),
            _ => Decision::Keep,
        })
    }
}

/// Notes whether a thread calls it.
struct Called {
    thread: ThreadId,
    is_called: Arc<AtomicBool>,
}

impl CompactionFilter for Called {
    fn name(&self) -> &'static str {
        "test.called"
    }

    fn decide(&self, _: &Candidate<'_>) -> Result<Decision, FilterError> {
        let here = thread::current().id() == self.thread;
        self.is_called.fetch_or(here, Ordering::SeqCst);
        Ok(Decision::Keep)
    }
}

/// A value so long that a few fill a memtable.
fn value(mark: u8, number: u64) -> Vec<u8> {
    let mut value = vec![mark; 892];
    value.extend(number.to_le_bytes());
    value
}

fn number_of(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.last_chunk().unwrap())
}

/// The mark and the number of the value of `key`.
fn read(keyspace: &Keyspace, key: &str) -> Option<(u8, u64)> {
    let value = keyspace.get(key).unwrap()?;
    Some((value[0], number_of(&value)))
}

/// Writes values that the filter removes and values that it replaces in turn.
fn write_in_turn(keyspace: &Keyspace) {
    for number in 1..=TRANSFERS {
        if number.is_multiple_of(2) {
            keyspace.insert("turn", value(b'-', number)).unwrap();
            let found = read(keyspace, "turn");
            assert!(
                found.is_none_or(|found| found == (b'-', number)),
                "{found:?}"
            );
        } else {
            keyspace.insert("turn", value(b'n', number)).unwrap();
            let (mark, found) = read(keyspace, "turn").unwrap();
            assert!([b'n', b'o'].contains(&mark) && found == number, "{found}");
        }
    }
}

fn count(db: &Db, keyspace: &Keyspace, thread: u64) {
    let increment = |old: Option<&[u8]>| value(b'n', old.map_or(0, number_of) + 1);
    for step in 0..TRANSFERS / 2 {
        if (thread + step).is_multiple_of(2) {
            keyspace
                .update("count", |old| Some(increment(old)))
                .unwrap();
        } else {
            let transaction = db.locking_transaction();
            let old = transaction.get_for_update(keyspace, "count").unwrap();
            let new = increment(old.as_deref());
            transaction.insert(keyspace, "count", new).unwrap();
            // Only a write without a lock comes in between, and that one tries again itself.
            if transaction.commit().is_err() {
                keyspace
                    .update("count", |old| Some(increment(old)))
                    .unwrap();
            }
        }
    }
}

#[test]
fn a_filter_never_overwrites_a_newer_write() {
    explore(|| {
        let disk = SimDisk::new();
        let options = options(&disk).with_compaction_filter("data", Arc::new(Marked));
        let db = Db::open("/data", options).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        let mut threads = Vec::new();
        for thread in 0..2 {
            let (db, keyspace) = (db.clone(), keyspace.clone());
            threads.push(thread::spawn(move || count(&db, &keyspace, thread)));
        }
        let writer = keyspace.clone();
        threads.push(thread::spawn(move || write_in_turn(&writer)));
        keyspace.compact_range::<&[u8]>(..).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        db.wait_idle().unwrap();
        keyspace.compact_range::<&[u8]>(..).unwrap();
        assert_eq!(read(&keyspace, "turn"), None);
        assert_eq!(read(&keyspace, "count"), Some((b'o', TRANSFERS)));
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
    });
}

#[test]
fn a_flush_calls_no_filter() {
    explore(|| {
        let disk = SimDisk::new();
        let is_called = Arc::<AtomicBool>::default();
        let filter = Called {
            thread: thread::current().id(),
            is_called: Arc::clone(&is_called),
        };
        let options = options(&disk).with_compaction_filter("data", Arc::new(filter));
        let db = Db::open("/data", options).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        for number in 0..8 {
            keyspace.insert("key", value(b'n', number)).unwrap();
            db.flush().unwrap();
        }
        assert_eq!(read(&keyspace, "key"), Some((b'n', 7)));
        // Its program may hold a lock that the filter needs.
        assert!(!is_called.load(Ordering::SeqCst));
        db.close().unwrap();
    });
}
