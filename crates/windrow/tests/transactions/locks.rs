//! Locking transactions of several threads: who waits, who is refused, and what ends a wait.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use windrow::runtime::{Runtime, Threads, Work, Workers};
use windrow::{Db, Durability, ErrorKind, Keyspace, Options, Result, Transaction};

use super::common::Random;
use super::{Store, is_conflict, text};

const LONG: Duration = Duration::from_secs(600);

fn begin(store: &Store) -> Transaction {
    store.db.locking_transaction_with(LONG)
}

fn lock(store: &Store, transaction: &Transaction, key: &str) -> Result<String> {
    let found = transaction.get_for_update(&store.keyspace, key);
    found.map(text)
}

/// Whether a transaction without patience can lock `key`.
fn is_free(store: &Store, key: &str) -> bool {
    let probe = store.db.locking_transaction_with(Duration::ZERO);
    match probe.get_for_update(&store.keyspace, key) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            false
        }
    }
}

/// Whether a transaction without patience can share the lock of `key`.
fn is_shared(store: &Store, key: &str) -> bool {
    let probe = store.db.locking_transaction_with(Duration::ZERO);
    probe.get_for_share(&store.keyspace, key).is_ok()
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

#[test]
fn who_waits_reads_what_was_committed() {
    let store = &Store::with(&[("a", "old")]);
    let one = begin(store);
    one.insert(&store.keyspace, "a", "new").unwrap();
    thread::scope(|scope| {
        let two = scope.spawn(|| {
            let two = begin(store);
            let found = lock(store, &two, "a").unwrap();
            two.insert(&store.keyspace, "a", found.clone() + "er")
                .unwrap();
            two.commit().unwrap();
            found
        });
        thread::park_timeout(Duration::from_millis(30));
        assert!(!two.is_finished());
        one.commit_with(Durability::Sync).unwrap();
        assert_eq!(two.join().unwrap(), "new");
    });
    assert_eq!(store.text("a"), "newer");
}

#[test]
fn no_increment_is_lost_and_none_is_refused() {
    const THREADS: u64 = 4;
    const INCREMENTS: u64 = 200;
    let store = &Store::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for step in 0..INCREMENTS {
                    let transaction = begin(store);
                    let old = transaction.get_for_update(&store.keyspace, "counter");
                    let new = number(old.unwrap()) + 1;
                    let new = new.to_le_bytes();
                    transaction.insert(&store.keyspace, "counter", new).unwrap();
                    let durability = match (step + thread) % 4 {
                        0 => Durability::Sync,
                        _ => Durability::Buffered,
                    };
                    transaction.commit_with(durability).unwrap();
                }
            });
        }
    });
    let counter = number(store.keyspace.get("counter").unwrap());
    assert_eq!(counter, THREADS * INCREMENTS);
    assert_eq!(store.db.memory().transactions, 0);
}

/// Transfers between keys in random order by locking, optimistic and single-key writers.
#[test]
fn kinds_of_writers_mix() {
    const KEYS: u64 = 6;
    const MONEY: u64 = 1000;
    let store = &Store::new();
    let keyspace = &store.keyspace;
    let key = |key: u64| key.to_be_bytes();
    for it in 0..KEYS {
        keyspace.insert(key(it), MONEY.to_le_bytes()).unwrap();
    }
    let gifts = AtomicU64::new(0);
    let transfer = |transaction: &Transaction, from: u64, to: u64| -> Result<()> {
        let left = number(transaction.get_for_update(keyspace, key(from))?);
        let right = number(transaction.get_for_update(keyspace, key(to))?);
        if from != to && left > 0 {
            transaction.insert(keyspace, key(from), (left - 1).to_le_bytes())?;
            transaction.insert(keyspace, key(to), (right + 1).to_le_bytes())?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (gifts, transfer) = (&gifts, &transfer);
            scope.spawn(move || {
                let mut random = Random(thread + 7);
                for _ in 0..300 {
                    let (from, to) = (random.below(KEYS), random.below(KEYS));
                    match thread {
                        0 => store.db.transact(|it| transfer(it, from, to)).unwrap(),
                        1 => {
                            let add = |old: Option<&[u8]>| {
                                let old = number(old.map(<[u8]>::to_vec));
                                Some((old + 1).to_le_bytes().to_vec())
                            };
                            keyspace.update(key(to), add).unwrap();
                            gifts.fetch_add(1, Ordering::Relaxed);
                        }
                        _ => {
                            let transfer = |it: &Transaction| transfer(it, from, to);
                            let durability = Durability::Buffered;
                            store.db.transact_locking(durability, transfer).unwrap();
                        }
                    }
                }
            });
        }
    });
    let total: u64 = (0..KEYS)
        .map(|it| number(keyspace.get(key(it)).unwrap()))
        .sum();
    assert_eq!(total, KEYS * MONEY + gifts.into_inner());
    assert_eq!(store.db.memory().transactions, 0);
}

/// Each of `count` transactions locks its own key, then that of the next one.
#[test]
fn of_each_cycle_one_is_refused() {
    for count in [2, 3, 7] {
        let store = &Store::new();
        let barrier = &Barrier::new(count);
        let outcomes: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..count)
                .map(|thread| {
                    scope.spawn(move || {
                        let transaction = begin(store);
                        let (own, next) = (thread.to_string(), (thread + 1) % count);
                        let keyspace = &store.keyspace;
                        transaction.insert(keyspace, &own, "own").unwrap();
                        barrier.wait();
                        let taken = transaction.insert(keyspace, next.to_string(), "next");
                        taken.and_then(|()| transaction.commit())
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        let refused = &refused[0];
        assert_eq!(refused.kind(), ErrorKind::Deadlock);
        let message = refused.to_string();
        for key in 0..count {
            assert!(message.contains(&format!("\"{key}\"")), "{message}");
        }
        assert_eq!(refused.conflict().unwrap().0, "data");
        assert_eq!(store.db.memory().transactions, 0);
    }
}

/// The real runtime with a clock that the test turns.
#[derive(Debug, Default)]
struct TurnedClock {
    threads: Threads,
    seconds: AtomicU64,
}

impl Runtime for TurnedClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Ordering::SeqCst))
    }

    fn unix_time(&self) -> Duration {
        self.threads.unix_time()
    }

    fn sleep(&self, duration: Duration) {
        self.threads.sleep(duration);
    }

    fn random(&self) -> u64 {
        self.threads.random()
    }

    fn start(&self, work: Arc<dyn Work>, count: usize) -> std::io::Result<Box<dyn Workers>> {
        self.threads.start(work, count)
    }

    fn step_instead_of_waiting(&self, work: &dyn Work) -> bool {
        self.threads.step_instead_of_waiting(work)
    }
}

#[test]
fn a_wait_ends_by_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(TurnedClock::default());
    let mut options = Options::default().with_runtime(Arc::<TurnedClock>::clone(&clock));
    options.lock_timeout = LONG;
    let db = &Db::open(folder.path(), options).unwrap();
    let keyspace = &db.keyspace("data").unwrap();
    let holder = db.locking_transaction();
    holder.insert(keyspace, "a", "held").unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let waiter = db.locking_transaction();
            waiter.insert(keyspace, "b", "held").unwrap();
            let refused = waiter.get_for_share(keyspace, "a").unwrap_err();
            // A refused lock ends nothing else.
            waiter.commit().map(|()| refused)
        });
        thread::park_timeout(Duration::from_millis(60));
        clock
            .seconds
            .fetch_add(LONG.as_secs() - 1, Ordering::SeqCst);
        thread::park_timeout(Duration::from_millis(60));
        assert!(!waits.is_finished());
        clock.seconds.fetch_add(1, Ordering::SeqCst);
        let refused = waits.join().unwrap().unwrap();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert_eq!(refused.conflict(), Some(("data", &b"a"[..])));
    });
    assert_eq!(keyspace.get("b").unwrap().as_deref(), Some(&b"held"[..]));
}

#[test]
fn a_close_ends_all_waits() {
    let store = &Store::new();
    let holder = begin(store);
    lock(store, &holder, "a").unwrap();
    let is_waiting = &AtomicBool::new(false);
    thread::scope(|scope| {
        let waits = scope.spawn(move || {
            let waiter = begin(store);
            is_waiting.store(true, Ordering::SeqCst);
            lock(store, &waiter, "a").unwrap_err()
        });
        while !is_waiting.load(Ordering::SeqCst) {
            thread::park_timeout(Duration::from_millis(1));
        }
        thread::park_timeout(Duration::from_millis(20));
        store.db.clone().close().unwrap();
        assert_eq!(waits.join().unwrap().kind(), ErrorKind::Closed);
    });
}

#[test]
fn every_end_releases_the_locks() {
    let store = &Store::with(&[("b", "old")]);
    let ends: [fn(&Store, Transaction); 5] = [
        |_, transaction| transaction.commit().unwrap(),
        |_, transaction| transaction.roll_back(),
        |_, transaction| drop(transaction),
        |store, transaction| {
            store.keyspace.insert("a", "in between").unwrap();
            assert!(is_conflict(transaction.commit()));
        },
        |store, transaction| {
            // The transaction ends on another thread.
            thread::scope(|scope| scope.spawn(move || drop(transaction)).join().unwrap());
            assert!(is_free(store, "a"));
        },
    ];
    for end in ends {
        let transaction = begin(store);
        transaction.insert(&store.keyspace, "a", "new").unwrap();
        assert_eq!(lock(store, &transaction, "b").unwrap(), "old");
        assert!(transaction.get_for_share(&store.keyspace, "c").is_ok());
        for key in ["a", "b", "c"] {
            assert!(!is_free(store, key));
        }
        assert!(is_shared(store, "c") && !is_shared(store, "b"));
        assert!(store.db.memory().transactions > 0);
        end(store, transaction);
        for key in ["a", "b", "c"] {
            assert!(is_free(store, key));
        }
        assert_eq!(store.db.memory().transactions, 0);
    }
}

#[test]
fn keys_of_different_keyspaces_have_different_locks() {
    let store = &Store::new();
    let other: Keyspace = store.db.keyspace("other").unwrap();
    let one = begin(store);
    one.insert(&other, "a", "1").unwrap();
    assert!(is_free(store, "a"));
    one.insert(&store.keyspace, "a", "1").unwrap();
    assert!(!is_free(store, "a"));
}

#[test]
fn a_savepoint_releases_the_locks_after_it_and_no_others() {
    let store = &Store::with(&[("before", "1"), ("read", "2")]);
    let transaction = begin(store);
    lock(store, &transaction, "before").unwrap();
    transaction
        .get_for_share(&store.keyspace, "shared")
        .unwrap();
    let savepoint = transaction.savepoint();
    // Locks that it has, a new one, and one that it shared before.
    transaction.insert(&store.keyspace, "before", "3").unwrap();
    transaction.insert(&store.keyspace, "after", "3").unwrap();
    transaction.insert(&store.keyspace, "shared", "3").unwrap();
    lock(store, &transaction, "read").unwrap();
    for key in ["before", "after", "shared", "read"] {
        assert!(!is_free(store, key), "{key}");
    }
    assert!(!is_shared(store, "shared"));
    transaction.roll_back_to(savepoint).unwrap();
    assert!(
        !is_free(store, "before"),
        "the lock is older than the savepoint"
    );
    assert!(is_shared(store, "shared") && !is_free(store, "shared"));
    assert!(is_free(store, "after") && is_free(store, "read"));
    // What was written and undone may change.
    store.keyspace.insert("after", "4").unwrap();
    transaction.insert(&store.keyspace, "shared", "5").unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.text("shared"), "5");
    assert_eq!(store.text("before"), "1");
}

// What was read under a lock stays covered.
#[test]
fn a_read_whose_lock_a_savepoint_released_is_covered() {
    for has_writes in [false, true] {
        let store = &Store::with(&[("read", "1")]);
        let transaction = begin(store);
        let savepoint = transaction.savepoint();
        lock(store, &transaction, "read").unwrap();
        transaction.roll_back_to(savepoint).unwrap();
        if has_writes {
            transaction.insert(&store.keyspace, "other", "1").unwrap();
        }
        store.keyspace.insert("read", "2").unwrap();
        assert!(is_conflict(transaction.commit()));
    }
}

#[test]
fn reads_under_locks_are_of_the_newest_state() {
    let store = &Store::with(&[("a", "1"), ("b", "1")]);
    let transaction = begin(store);
    store.keyspace.insert("a", "2").unwrap();
    assert_eq!(lock(store, &transaction, "a").unwrap(), "2");
    let found = transaction.multi_get(&store.keyspace, &["a", "b", "c"]);
    let found: Vec<_> = found.unwrap().into_iter().map(text).collect();
    assert_eq!(found, ["2", "1", ""]);
    assert_eq!(text(transaction.get(&store.keyspace, "a").unwrap()), "2");
    let scanned = transaction.iter(&store.keyspace).unwrap();
    let scanned = scanned.map(|entry| text(Some(entry.unwrap().1)));
    assert_eq!(scanned.collect::<Vec<_>>(), ["1", "1"], "of the snapshot");
    // The scan has passed what has changed since.
    assert!(is_conflict(transaction.commit()));
}

#[test]
fn a_writer_is_not_starved_by_readers() {
    let store = &Store::with(&[("a", "0")]);
    let is_done = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                // The lock is shared by someone at any time.
                while !is_done.load(Ordering::SeqCst) {
                    let reader = begin(store);
                    reader.get_for_share(&store.keyspace, "a").unwrap();
                    thread::park_timeout(Duration::from_millis(3));
                    reader.commit().unwrap();
                }
            });
        }
        for step in 1..=10 {
            let writer = begin(store);
            lock(store, &writer, "a").unwrap();
            let value = step.to_string();
            writer.insert(&store.keyspace, "a", value).unwrap();
            writer.commit().unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    assert_eq!(store.text("a"), "10");
}

#[test]
fn updates_of_one_hot_key_are_never_refused() {
    const THREADS: u64 = 64;
    const UPDATES: u64 = 20;
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.durability = Durability::Sync;
    options.lock_timeout = LONG;
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = &db.keyspace("data").unwrap();
    let (failed, failures) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let failed = failed.clone();
            scope.spawn(move || {
                for _ in 0..UPDATES {
                    let add = |old: Option<&[u8]>| {
                        let old = number(old.map(<[u8]>::to_vec));
                        Some((old + 1).to_le_bytes().to_vec())
                    };
                    if let Err(error) = keyspace.update("hot", add) {
                        failed.send(error).unwrap();
                    }
                }
            });
        }
    });
    drop(failed);
    let failures: Vec<_> = failures.into_iter().collect();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(number(keyspace.get("hot").unwrap()), THREADS * UPDATES);
}
