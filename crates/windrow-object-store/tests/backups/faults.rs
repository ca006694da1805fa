//! Each request of a backup and of a purge fails in each way.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use windrow::backup::{Backups, Purge};
use windrow::{Db, ErrorKind};
use windrow_object_store::BucketStore;

use crate::common::{bucket, entries, fill, names, noise, open, options, restored, sound};
use crate::faulty::{Fault, Faulty};

/// A database with two backups in a store, and what has changed since.
struct History {
    folder: tempfile::TempDir,
    db: Db,
    stored: InMemory,
}

impl History {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(folder.path().join("db"), options()).unwrap();
        let stored = InMemory::new();
        let objects: Arc<dyn ObjectStore> = Arc::new(stored.clone());
        for round in 1..=2 {
            fill(&db, 300, round);
            db.flush().unwrap();
            let keyspace = db.keyspace("k").unwrap();
            keyspace.compact_range::<&[u8]>(..).unwrap();
            db.backup(&open(&objects).unwrap()).unwrap();
        }
        fill(&db, 100, 3);
        // Larger than a part.
        db.keyspace("k")
            .unwrap()
            .insert("large", noise(1, 9 << 20))
            .unwrap();
        Self { folder, db, stored }
    }

    /// The store as it was, whose requests may fail.
    fn store(&self) -> (Faulty, Arc<dyn ObjectStore>) {
        let faulty = Faulty::new(Arc::new(self.stored.fork()));
        let objects = Arc::new(faulty.clone());
        (faulty, objects)
    }
}

/// Calls `attempt` with each fault at each of the requests that it makes, and then `check`.
fn at_each_request(
    history: &History,
    attempt: impl Fn(&Arc<dyn ObjectStore>) -> windrow::Result<()>,
    check: impl Fn(&Arc<dyn ObjectStore>, bool, &str),
) {
    let (faulty, objects) = history.store();
    attempt(&objects).unwrap();
    let requests = faulty.requests();
    for fault in [Fault::Lost, Fault::Unanswered] {
        for (number, request) in requests.iter().enumerate() {
            let (faulty, objects) = history.store();
            faulty.plan(number, fault);
            let is_done = attempt(&objects).is_ok();
            faulty.heal();
            // Whether the store has put the parts together is unknown then.
            let left = i64::from(request == "complete");
            assert!(faulty.unfinished_uploads() <= left, "{request}");
            check(&objects, is_done, &format!("{fault:?} {request}"));
        }
    }
}

#[test]
fn a_backup_whose_requests_fail_is_whole_or_missing() {
    let history = History::new();
    let state = entries(&history.db);
    let attempt = |objects: &Arc<dyn ObjectStore>| {
        let backups = open(objects)?;
        history.db.backup(&backups).map(drop)
    };
    at_each_request(&history, attempt, |objects, is_done, context| {
        let numbers = sound(objects);
        if is_done {
            assert_eq!(numbers, [1, 2, 3], "{context}");
        } else {
            // Of a manifest whose answer is lost nobody knows.
            assert!(numbers.starts_with(&[1, 2]), "{context}");
        }
        let backups = open(objects).unwrap();
        let made = history.db.backup(&backups).unwrap();
        assert_eq!(made.number, numbers.len() as u64 + 1, "{context}");
        assert_eq!(sound(objects).len(), numbers.len() + 1, "{context}");
        if context.ends_with("complete") {
            assert!(restored(&backups, made.number, history.folder.path()) == state);
        }
    });
}

#[test]
fn a_purge_whose_requests_fail_deletes_nothing_that_a_backup_needs() {
    let history = History::new();
    let whole = |objects: &Arc<dyn ObjectStore>| {
        let backups = open(objects)?;
        backups.purge(Purge::KeepNewest(1)).map(drop)
    };
    let (_, objects) = history.store();
    whole(&objects).unwrap();
    let expected = names(&objects);
    assert!(expected.len() + 2 < names(&history.store().1).len());
    at_each_request(&history, whole, |objects, is_done, context| {
        let numbers = sound(objects);
        assert!(numbers == [2] || numbers == [1, 2] && !is_done, "{context}");
        whole(objects).unwrap();
        assert_eq!(names(objects), expected, "{context}");
        assert_eq!(sound(objects), [2]);
    });
}

/// After a change whose outcome nobody knows, only another open changes anything.
#[test]
fn an_unknown_outcome_of_a_change_ends_all_changes() {
    let history = History::new();
    for (what, fault) in [
        ("put backups/shop/000003.backup", Fault::Lost),
        ("delete 1", Fault::Unanswered),
    ] {
        let (faulty, objects) = history.store();
        let backups = open(&objects).unwrap();
        let attempt = |backups: &Backups| match what {
            "delete 1" => backups.purge(Purge::Backup(1)).map(drop),
            _ => history.db.backup(backups).map(drop),
        };
        // Where the request is.
        let (counted, others) = history.store();
        let counting = open(&others).unwrap();
        counted.heal();
        attempt(&counting).unwrap();
        let number = counted
            .requests()
            .iter()
            .position(|request| request == what)
            .unwrap();
        faulty.plan_all(number..usize::MAX, fault);
        assert_eq!(
            attempt(&backups).unwrap_err().kind(),
            ErrorKind::Io,
            "{what}"
        );
        faulty.heal();
        let refused = [
            backups.purge(Purge::Backup(2)).unwrap_err(),
            history.db.backup(&backups).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
        }
        // The request may still be on its way, so somebody must know that it is not.
        drop(backups);
        let error = BucketStore::open(&bucket(&objects), "the next").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{what}: {error}");
        history.db.backup(&open(&objects).unwrap()).unwrap();
    }
}

/// Nobody need unlock the store after a lost piece, and a manifest survives one lost request or answer.
#[test]
fn a_network_that_fails_once_leaves_no_lock() {
    let history = History::new();
    for fault in [Fault::Lost, Fault::Unanswered] {
        for what in ["piece", "backup"] {
            let (faulty, objects) = history.store();
            let (counted, others) = history.store();
            let counting = open(&others).unwrap();
            counted.heal();
            history.db.backup(&counting).unwrap();
            let requests = counted.requests();
            let is_meant = |request: &String| request.starts_with("put") && request.ends_with(what);
            let number = requests.iter().position(is_meant).unwrap();
            let backups = open(&objects).unwrap();
            faulty.plan(number, fault);
            let made = history.db.backup(&backups);
            assert_eq!(made.is_ok(), what == "backup", "{fault:?} {what}");
            drop(backups);
            let next = BucketStore::open(&bucket(&objects), "the next").unwrap();
            let backups = Backups::new(Arc::new(next));
            history.db.backup(&backups).unwrap();
            assert_eq!(sound(&objects).len(), if what == "backup" { 4 } else { 3 });
        }
    }
}

#[test]
fn a_store_that_does_not_answer_ends_the_call() {
    let history = History::new();
    let (faulty, objects) = history.store();
    let limited = bucket(&objects).with_time_limit(Duration::from_millis(200));
    for number in [0, 1, 2] {
        faulty.plan(number, Fault::Hanging);
        let error = BucketStore::open(&limited, "a test").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error.message().contains("no answer within 0.2 seconds"),
            "{error}"
        );
        faulty.heal();
        BucketStore::unlock(&bucket(&objects)).unwrap();
    }
}
