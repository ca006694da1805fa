//! Compaction filters on the real file system: what they change, that no write of others is lost, what nobody may see
//! changed, and what becomes of a filter that fails.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_types,
    reason = "the filters belong to the tests and need no model"
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::Random;
use windrow::{
    Batch, Candidate, CompactionFilter, Db, Decision, Durability, ErrorKind, Event, Expiry,
    FilterError, Isolation, Keyspace, Options, Snapshot, operators,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Judged = Result<Decision, FilterError>;

/// A filter that calls a function.
struct Calls<F>(F);

impl<F: Fn(&Candidate<'_>) -> Judged + Send + Sync> CompactionFilter for Calls<F> {
    fn name(&self) -> &'static str {
        "test.calls"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Judged {
        (self.0)(candidate)
    }
}

fn filter(
    decide: impl Fn(&Candidate<'_>) -> Judged + Send + Sync + 'static,
) -> Arc<dyn CompactionFilter> {
    Arc::new(Calls(decide))
}

/// What [`marked`] makes of a value: those with `-` go, those with `*` become shorter or longer ones with `=`.
fn filtered(value: &[u8]) -> Option<Vec<u8>> {
    match value.first() {
        Some(b'-') => None,
        Some(b'*') if value.len() > 200 => Some(vec![b'='; 9]),
        Some(b'*') => Some(vec![b'='; 3 * value.len()]),
        _ => Some(value.to_vec()),
    }
}

/// A filter by [`filtered`].
fn marked() -> Arc<dyn CompactionFilter> {
    filter(|candidate| {
        let value = candidate.value()?;
        assert_eq!(candidate.value_bytes(), value.len() as u64);
        Ok(filtered(value).map_or(Decision::Remove, Decision::Replace))
    })
}

fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.keyspace.file_bytes = 8 << 10;
    options.keyspace.base_bytes = 16 << 10;
    options.keyspace.size_ratio = 3.0;
    options.keyspace.level0_runs = 2;
    options.keyspace.block_bytes = 512;
    options.keyspace.medium_from = 80;
    options.keyspace.large_from = 400;
    options
}

fn open_with(folder: &tempfile::TempDir, options: Options) -> (Db, Keyspace) {
    let db = Db::open(folder.path(), options).unwrap();
    let keyspace = db.keyspace("data").unwrap();
    (db, keyspace)
}

fn open(folder: &tempfile::TempDir, filter: &Arc<dyn CompactionFilter>) -> (Db, Keyspace) {
    open_with(
        folder,
        options().with_compaction_filter("data", Arc::clone(filter)),
    )
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

/// A value of any class with a mark or without one.
fn value(random: &mut Random) -> Vec<u8> {
    let mark = [b'-', b'*', b'.'][usize::try_from(random.below(3)).unwrap()];
    let length = [8, 90, 700][usize::try_from(random.below(3)).unwrap()];
    let mut value = vec![b'0' + u8::try_from(random.below(10)).unwrap(); length];
    value[0] = mark;
    value
}

fn entries(keyspace: &Keyspace, snapshot: &Snapshot) -> Model {
    let view = keyspace.at(snapshot).unwrap();
    let found: Model = view.iter().unwrap().map(Result::unwrap).collect();
    for (key, value) in &found {
        assert_eq!(view.get(key).unwrap().as_ref(), Some(value));
    }
    found
}

fn compact(keyspace: &Keyspace) {
    keyspace.compact_range::<&[u8]>(..).unwrap();
}

fn get(keyspace: &Keyspace, key: &str) -> Option<String> {
    let value = keyspace.get(key).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn a_compaction_removes_and_replaces_values_of_every_class() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new((0, 0)));
    let listener = {
        let seen = Arc::clone(&seen);
        move |event: &Event| {
            if let Event::CompactionEnded {
                entries_judged,
                entries_changed,
                ..
            } = event
            {
                let mut seen = seen.lock().unwrap();
                *seen = (seen.0 + entries_judged, seen.1 + entries_changed);
            }
        }
    };
    let observed = options().with_listener(Arc::new(listener));
    let filtering = observed.with_compaction_filter("data", marked());
    let (db, keyspace) = open_with(&folder, filtering);
    let mut random = Random(3);
    let mut model = Model::new();
    for number in 0..300 {
        let value = value(&mut random);
        keyspace.insert(key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    let writes = db.stats().user_writes;
    compact(&keyspace);
    let expected: Model = model
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), filtered(value)?)))
        .collect();
    assert_eq!(entries(&keyspace, &db.snapshot()), expected);
    let stats = db.stats();
    let removed = (model.len() - expected.len()) as u64;
    assert_eq!(stats.judged_removed, removed);
    assert!(stats.judged_replaced > 50 && stats.judged_failed == 0);
    assert!(stats.entries_judged >= model.len() as u64);
    assert_eq!(stats.user_writes, writes, "no caller has written");
    // The second call frees the space.
    compact(&keyspace);
    db.wait_idle().unwrap();
    let stats = db.stats();
    let seen = *seen.lock().unwrap();
    let changed = stats.judged_removed + stats.judged_replaced;
    assert_eq!(seen, (stats.entries_judged, changed));
    assert_eq!(stats.judged_removed, removed, "once each");
    let left: u64 = stats.keyspaces[0].levels.iter().map(|it| it.entries).sum();
    assert_eq!(left, expected.len() as u64, "no tombstones stay");
    assert_eq!(entries(&keyspace, &db.snapshot()), expected);
    assert!(db.verify().unwrap().is_sound());
    drop(keyspace);
    db.close().unwrap();
    let (db, keyspace) = open_with(&folder, options());
    assert_eq!(entries(&keyspace, &db.snapshot()), expected);
}

#[test]
fn only_an_open_with_the_filter_judges_and_then_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keyspace) = open_with(&folder, options());
    let all: BTreeSet<Vec<u8>> = (0..500).map(key).collect();
    for key in &all {
        keyspace.insert(key, "-".repeat(120)).unwrap();
    }
    compact(&keyspace);
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 500);
    assert_eq!(db.stats().entries_judged, 0);
    drop(keyspace);
    db.close().unwrap();
    let judged = Arc::new(Mutex::new(BTreeSet::new()));
    let noted = {
        let judged = Arc::clone(&judged);
        filter(move |candidate| {
            judged.lock().unwrap().insert(candidate.key().to_vec());
            Ok(Decision::Remove)
        })
    };
    // All is in the deepest level, and a compaction without a filter would leave it there.
    let (_db, keyspace) = open(&folder, &noted);
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 500);
    keyspace.compact_range(key(100)..key(200)).unwrap();
    assert!(judged.lock().unwrap().len() < 400, "the range alone");
    compact(&keyspace);
    assert_eq!(*judged.lock().unwrap(), all);
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 0);
}

#[test]
fn what_was_seen_before_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keyspace) = open(&folder, &marked());
    keyspace.insert("a", "-old").unwrap();
    keyspace.insert("b", "*old").unwrap();
    let snapshot = db.snapshot();
    let transaction = db.transaction();
    let mut cursor = keyspace.cursor().unwrap();
    assert!(cursor.seek_to_first().unwrap());
    let before = entries(&keyspace, &snapshot);
    compact(&keyspace);
    compact(&keyspace);
    assert_eq!(get(&keyspace, "a"), None);
    assert_eq!(get(&keyspace, "b").unwrap(), "=".repeat(12));
    assert_eq!(entries(&keyspace, &snapshot), before);
    assert_eq!(transaction.get(&keyspace, "a").unwrap().unwrap(), b"-old");
    assert_eq!(
        (cursor.key(), cursor.value().unwrap()),
        (&b"a"[..], &b"-old"[..])
    );
    assert!(cursor.next().unwrap());
    assert_eq!(
        (cursor.key(), cursor.value().unwrap()),
        (&b"b"[..], &b"*old"[..])
    );
}

type Race = fn(&Db, &Keyspace);

/// What another thread may do to `a`, whose value is `*old`, after it was judged, and what is left of it.
const RACES: &[(Race, Option<&str>)] = &[
    (|_, it| it.insert("a", "new").unwrap(), Some("new")),
    (|_, it| it.remove("a").unwrap(), None),
    (|_, it| it.delete_range("a".."b").unwrap(), None),
    (|_, it| it.clear().unwrap(), None),
    // The same value is another write.
    (|_, it| it.insert("a", "*old").unwrap(), Some("*old")),
    (
        |_, it| {
            assert!(
                it.compare_and_swap("a", Some(b"*old"), Some(b"new"))
                    .unwrap()
            );
        },
        Some("new"),
    ),
    (
        |_, it| {
            drop(
                it.update("a", |old| Some([old.unwrap(), b"er"].concat()))
                    .unwrap(),
            );
        },
        Some("*older"),
    ),
    (
        |db, it| {
            let mut batch = Batch::new();
            batch.remove(it, "a").unwrap();
            batch.insert(it, "a", "new").unwrap();
            db.write(&batch).unwrap();
        },
        Some("new"),
    ),
    (
        |db, it| {
            let transaction = db.transaction();
            transaction.insert(it, "a", "new").unwrap();
            transaction.commit().unwrap();
        },
        Some("new"),
    ),
    (
        |db, it| {
            let transaction = db.locking_transaction();
            transaction.get_for_update(it, "a").unwrap();
            transaction.remove(it, "a").unwrap();
            transaction.commit().unwrap();
        },
        None,
    ),
    (
        |_, it| assert_eq!(it.bulk_load([("a", "new")]).unwrap(), 1),
        Some("new"),
    ),
    (
        |db, it| {
            it.insert("a", "new").unwrap();
            db.flush().unwrap();
        },
        Some("new"),
    ),
];

#[test]
fn a_write_after_the_judgement_wins() {
    for (number, (race, left)) in RACES.iter().enumerate() {
        for decision in [Decision::Remove, Decision::Replace(b"filtered".to_vec())] {
            let folder = tempfile::tempdir().unwrap();
            let handles = Arc::new(Mutex::new(None));
            let racing = {
                let (handles, decision) = (Arc::clone(&handles), decision.clone());
                filter(move |candidate| {
                    if candidate.key() != b"a" {
                        return Ok(Decision::Remove);
                    }
                    let handles: Option<(Db, Keyspace)> = handles.lock().unwrap().take();
                    let Some((db, keyspace)) = handles else {
                        return Ok(Decision::Keep);
                    };
                    race(&db, &keyspace);
                    Ok(decision.clone())
                })
            };
            let (db, keyspace) = open(&folder, &racing);
            keyspace.insert("a", "*old").unwrap();
            keyspace.insert("other", "1").unwrap();
            db.flush().unwrap();
            *handles.lock().unwrap() = Some((db.clone(), keyspace.clone()));
            compact(&keyspace);
            assert!(handles.lock().unwrap().is_none(), "it was judged");
            let what = format!("race {number}, {decision:?}");
            assert_eq!(get(&keyspace, "a").as_deref(), *left, "{what}");
            assert_eq!(get(&keyspace, "other"), None, "{what}");
            assert!(db.stats().judged_dropped > 0, "{what}");
        }
    }
}

#[test]
fn a_transaction_notices_what_the_filter_has_changed() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        for written in ["-gone", "*replaced"] {
            let folder = tempfile::tempdir().unwrap();
            let (db, keyspace) = open(&folder, &marked());
            keyspace.insert("a", written).unwrap();
            keyspace.insert("b", "kept").unwrap();
            let [one, other] = ["a", "b"].map(|key| {
                let transaction = db.transaction_with(isolation);
                transaction.get_for_update(&keyspace, key).unwrap();
                transaction.insert(&keyspace, key, "mine").unwrap();
                transaction
            });
            compact(&keyspace);
            compact(&keyspace);
            let refused = one.commit().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
            assert_eq!(refused.conflict().unwrap().1, b"a");
            other.commit().unwrap();
            // Who compares with the old value finds the new one.
            let swapped = keyspace.compare_and_swap("a", Some(written.as_bytes()), Some(b"x"));
            assert!(!swapped.unwrap());
        }
    }
}

#[test]
fn locked_keys_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keyspace) = open(&folder, &marked());
    for key in ["free", "read", "shared", "written"] {
        keyspace.insert(key, "-old").unwrap();
    }
    let transaction = db.locking_transaction();
    let read = transaction.get_for_update(&keyspace, "read").unwrap();
    assert_eq!(read.unwrap(), b"-old");
    transaction.get_for_share(&keyspace, "shared").unwrap();
    transaction.insert(&keyspace, "written", "mine").unwrap();
    compact(&keyspace);
    assert_eq!(get(&keyspace, "free"), None);
    for key in ["read", "shared", "written"] {
        assert_eq!(get(&keyspace, key).unwrap(), "-old");
    }
    assert_eq!(db.stats().judged_dropped, 3);
    transaction.commit().unwrap();
    compact(&keyspace);
    assert_eq!(get(&keyspace, "read"), None);
    assert_eq!(get(&keyspace, "shared"), None);
    assert_eq!(get(&keyspace, "written").unwrap(), "mine");
    // The locks of the filter are free.
    let transaction = db.locking_transaction_with(Duration::ZERO);
    for key in ["free", "read"] {
        transaction.insert(&keyspace, key, "again").unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn what_a_prepared_transaction_holds_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (db, keyspace) = open(&folder, &marked());
    for key in ["free", "r1", "r2", "read", "written"] {
        keyspace.insert(key, "-old").unwrap();
    }
    let transaction = db.transaction();
    transaction.get(&keyspace, "read").unwrap();
    let range = transaction.range(&keyspace, "r1".."r3").unwrap();
    assert_eq!(range.count(), 2);
    transaction.insert(&keyspace, "written", "-mine").unwrap();
    let prepared = transaction.prepare("one").unwrap();
    compact(&keyspace);
    let check_held = |keyspace: &Keyspace| {
        assert_eq!(get(keyspace, "free"), None);
        for key in ["r1", "r2", "read", "written"] {
            assert_eq!(get(keyspace, key).unwrap(), "-old", "{key}");
        }
    };
    check_held(&keyspace);
    drop((prepared, keyspace));
    db.close().unwrap();
    let (db, keyspace) = open(&folder, &marked());
    compact(&keyspace);
    check_held(&keyspace);
    db.prepared_transaction("one").unwrap().commit().unwrap();
    assert_eq!(get(&keyspace, "written").unwrap(), "-mine");
    compact(&keyspace);
    assert!(keyspace.is_empty().unwrap(), "nothing is held any more");
}

#[test]
fn a_filter_that_fails_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let is_broken = Arc::new(AtomicBool::new(true));
    let failing = {
        let is_broken = Arc::clone(&is_broken);
        filter(move |candidate| match candidate.key() {
            b"error" if is_broken.load(Ordering::Relaxed) => Err(FilterError::new("as planned")),
            // As a panic, without its message.
            b"panic" if is_broken.load(Ordering::Relaxed) => {
                std::panic::resume_unwind(Box::new(()))
            }
            _ => Ok(Decision::Remove),
        })
    };
    let (db, keyspace) = open(&folder, &failing);
    for key in ["error", "fine", "panic"] {
        keyspace.insert(key, key).unwrap();
    }
    compact(&keyspace);
    for key in ["error", "panic"] {
        assert_eq!(get(&keyspace, key).unwrap(), key);
    }
    assert_eq!(get(&keyspace, "fine"), None);
    assert!(db.stats().judged_failed >= 2);
    is_broken.store(false, Ordering::Relaxed);
    compact(&keyspace);
    assert!(keyspace.is_empty().unwrap());
}

#[test]
fn a_filter_that_asks_for_no_value_reads_none() {
    let folder = tempfile::tempdir().unwrap();
    let by_key = filter(|candidate| {
        let is_old = candidate.key() < &key(100)[..] && candidate.value_bytes() == 700;
        Ok(if is_old {
            Decision::Remove
        } else {
            Decision::Keep
        })
    });
    let (db, keyspace) = open(&folder, &by_key);
    for number in 0..200 {
        keyspace.insert(key(number), [7; 700]).unwrap();
    }
    compact(&keyspace);
    assert_eq!(db.stats().value_log_reads, 0);
    assert_eq!(keyspace.count::<&[u8]>(..).unwrap(), 100);
}

#[test]
fn the_keyspace_of_prepared_transactions_has_no_filter() {
    let folder = tempfile::tempdir().unwrap();
    let options = options().with_compaction_filter("windrow.prepared", marked());
    let refused = Db::open(folder.path(), options).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
}

#[test]
fn a_filter_cannot_close() {
    let folder = tempfile::tempdir().unwrap();
    let handle = Arc::new(Mutex::new(None));
    let refused = Arc::new(Mutex::new(None));
    let closing = {
        let (handle, refused) = (Arc::clone(&handle), Arc::clone(&refused));
        filter(move |_| {
            let handle: Option<Db> = handle.lock().unwrap().take();
            if let Some(db) = handle {
                *refused.lock().unwrap() = Some(db.close().unwrap_err().kind());
            }
            Ok(Decision::Remove)
        })
    };
    let (db, keyspace) = open(&folder, &closing);
    keyspace.insert("a", "1").unwrap();
    *handle.lock().unwrap() = Some(db.clone());
    compact(&keyspace);
    let refused = refused.lock().unwrap().take();
    assert_eq!(refused, Some(ErrorKind::InvalidArgument));
    assert!(keyspace.is_empty().unwrap(), "nothing has changed by it");
    db.close().unwrap();
}

#[test]
fn an_equal_replacement_is_none_though_nobody_has_read_the_value() {
    for length in [8, 90, 700] {
        let folder = tempfile::tempdir().unwrap();
        let constant = filter(move |_| Ok(Decision::Replace(vec![b'c'; length])));
        let (db, keyspace) = open(&folder, &constant);
        keyspace.insert("longer", "x".repeat(900)).unwrap();
        keyspace.insert("other", "y".repeat(length)).unwrap();
        keyspace.insert("same", "c".repeat(length)).unwrap();
        for _ in 0..4 {
            compact(&keyspace);
        }
        for key in ["longer", "other", "same"] {
            assert_eq!(get(&keyspace, key).unwrap(), "c".repeat(length));
        }
        let stats = db.stats();
        assert_eq!(stats.judged_replaced, 2, "{length}");
        assert_eq!((stats.judged_dropped, stats.judged_failed), (0, 0));
    }
}

#[test]
fn a_value_of_another_length_is_not_read_to_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let constant = filter(|_| Ok(Decision::Replace(b"c".to_vec())));
    let (db, keyspace) = open(&folder, &constant);
    keyspace.insert("a", "x".repeat(700)).unwrap();
    compact(&keyspace);
    let stats = db.stats();
    assert_eq!((stats.judged_replaced, stats.value_log_reads), (1, 0));
}

#[test]
fn what_a_failed_compaction_has_judged_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let handle = Arc::new(Mutex::new(None));
    let dropping = {
        let handle = Arc::clone(&handle);
        filter(move |candidate| {
            let handle: Option<Db> = handle.lock().unwrap().take();
            if let Some(db) = handle {
                db.drop_keyspace("data").unwrap();
            }
            match candidate.key() {
                b"c" => Err(FilterError::new("as planned")),
                _ => Ok(Decision::Remove),
            }
        })
    };
    let (db, keyspace) = open(&folder, &dropping);
    for key in ["a", "b", "c"] {
        keyspace.insert(key, "1").unwrap();
    }
    *handle.lock().unwrap() = Some(db.clone());
    let failed = keyspace.compact_range::<&[u8]>(..).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NotFound, "{failed}");
    let stats = db.stats();
    assert_eq!((stats.entries_judged, stats.judged_failed), (3, 1));
    assert_eq!((stats.judged_removed, stats.judged_dropped), (0, 2));
}

#[test]
fn the_memory_of_proposals_is_counted() {
    const BYTES: u64 = 40_000;
    let folder = tempfile::tempdir().unwrap();
    let handle = Arc::new(Mutex::new(None));
    let used = Arc::new(Mutex::new(Vec::new()));
    let growing = {
        let (handle, used) = (Arc::clone(&handle), Arc::clone(&used));
        filter(move |_| {
            let handle = handle.lock().unwrap();
            let db: &Option<Db> = &handle;
            if let Some(db) = db {
                used.lock().unwrap().push(db.memory().jobs);
            }
            Ok(Decision::Replace(vec![7; usize::try_from(BYTES).unwrap()]))
        })
    };
    let (db, keyspace) = open(&folder, &growing);
    for number in 0..6 {
        keyspace.insert(key(number), "1").unwrap();
    }
    *handle.lock().unwrap() = Some(db.clone());
    compact(&keyspace);
    *handle.lock().unwrap() = None;
    let used = used.lock().unwrap();
    // The first entry may have brought the buffers of the output.
    assert!(used[5] >= used[1] + 4 * BYTES, "{used:?}");
    db.wait_idle().unwrap();
    assert!(
        db.memory().jobs < used[5] - 4 * BYTES,
        "and no more after it"
    );
}

#[test]
fn expiring_entries_keep_their_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let at = Arc::new(Mutex::new(None));
    let shortening = {
        let at = Arc::clone(&at);
        filter(move |candidate| {
            *at.lock().unwrap() = Some(candidate.expiry());
            let value = candidate.value()?;
            Ok(Decision::Replace(value[..value.len().min(3)].to_vec()))
        })
    };
    let (_db, keyspace) = open(&folder, &shortening);
    for length in [5, 100, 500] {
        keyspace
            .insert_with_ttl("a", "x".repeat(length), Duration::from_secs(3600))
            .unwrap();
        let expiry = keyspace.expires_at("a").unwrap();
        assert!(matches!(expiry, Some(Expiry::At(_))));
        compact(&keyspace);
        assert_eq!(get(&keyspace, "a").unwrap(), "xxx", "{length}");
        assert_eq!(keyspace.expires_at("a").unwrap(), expiry);
        assert_eq!(*at.lock().unwrap(), expiry);
    }
}

#[test]
fn operands_are_judged_once_they_are_folded() {
    let folder = tempfile::tempdir().unwrap();
    let append = operators::Append::new("+");
    let options = options().with_merge_operator("data", Arc::new(append));
    let (db, keyspace) = open_with(&folder, options.with_compaction_filter("data", marked()));
    keyspace.merge("a", "-1").unwrap();
    keyspace.merge("a", "2").unwrap();
    let snapshot = db.snapshot();
    keyspace.merge("a", "3").unwrap();
    compact(&keyspace);
    compact(&keyspace);
    // The snapshot keeps them apart.
    assert_eq!(get(&keyspace, "a").unwrap(), "-1+2+3");
    drop(snapshot);
    compact(&keyspace);
    compact(&keyspace);
    assert_eq!(get(&keyspace, "a"), None);
    keyspace.merge("a", "4").unwrap();
    assert_eq!(get(&keyspace, "a").unwrap(), "4");
}

#[test]
fn counters_beside_a_filter_lose_no_increment() {
    const THREADS: u64 = 3;
    const INCREMENTS: u64 = 1000;
    const KEYS: u64 = 40;
    // The filter marks each count as old, and each increment as new.
    let folder = tempfile::tempdir().unwrap();
    let aging = filter(|candidate| {
        let mut value = candidate.value()?.to_vec();
        value[0] = b'o';
        Ok(Decision::Replace(value))
    });
    let (db, keyspace) = open(&folder, &aging);
    let increment = |old: Option<&[u8]>| {
        let count = old.map_or(0, |old| u64::from_le_bytes(*old.last_chunk().unwrap()));
        let mut new = vec![b'n'; 60];
        new.extend((count + 1).to_le_bytes());
        new
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|writer| {
                let (db, keyspace) = (&db, &keyspace);
                scope.spawn(move || {
                    let mut random = Random(writer);
                    for _ in 0..INCREMENTS {
                        let key = key(random.below(KEYS));
                        match random.below(3) {
                            0 => drop(keyspace.update(&key, |old| Some(increment(old))).unwrap()),
                            1 => db
                                .transact(|transaction| {
                                    let old = transaction.get_for_update(keyspace, &key)?;
                                    transaction.insert(keyspace, &key, increment(old.as_deref()))
                                })
                                .unwrap(),
                            _ => db
                                .transact_locking(Durability::Buffered, |transaction| {
                                    let old = transaction.get_for_update(keyspace, &key)?;
                                    transaction.insert(keyspace, &key, increment(old.as_deref()))
                                })
                                .unwrap(),
                        }
                    }
                })
            })
            .collect();
        let (keyspace, is_over) = (&keyspace, &is_over);
        let compactor = scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                compact(keyspace);
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        compactor.join().unwrap();
    });
    compact(&keyspace);
    let values = keyspace.iter().unwrap().map(|entry| entry.unwrap().1);
    let counts: Vec<u64> = values
        .map(|value| u64::from_le_bytes(*value.last_chunk().unwrap()))
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), THREADS * INCREMENTS);
    assert!(db.stats().judged_replaced > 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn snapshots_never_change_beside_filters_and_compactions() {
    let mut appends = 0;
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let filter = marked();
        let (mut db, mut keyspace) = open(&folder, &filter);
        let mut random = Random(seed);
        let mut model = Model::new();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for step in 0..4000 {
            let key = key(random.below(150));
            match random.below(200) {
                0..20 => {
                    keyspace.remove(&key).unwrap();
                    model.remove(&key);
                }
                20 => {
                    let end = [&key[..], b"z"].concat();
                    keyspace.delete_range(&key[..]..&end[..]).unwrap();
                    model.retain(|it, _| *it < key || *it >= end);
                }
                21..24 => {
                    let snapshot = db.snapshot();
                    let seen = entries(&keyspace, &snapshot);
                    snapshots.push((snapshot, seen));
                }
                24..27 if !snapshots.is_empty() => {
                    let chosen = random.below(snapshots.len() as u64);
                    let (snapshot, seen) = snapshots.swap_remove(usize::try_from(chosen).unwrap());
                    assert_eq!(entries(&keyspace, &snapshot), seen, "seed {seed}, {step}");
                }
                27 => db.flush().unwrap(),
                28 if random.below(4) == 0 => compact(&keyspace),
                29 if random.below(20) == 0 => {
                    snapshots.clear();
                    drop(keyspace);
                    appends += db.stats().appends;
                    db.close().unwrap();
                    (db, keyspace) = open(&folder, &filter);
                }
                _ => {
                    let value = value(&mut random);
                    keyspace.insert(&key, &value).unwrap();
                    model.insert(key.clone(), value);
                }
            }
            // The newest state shows each value as it was written, or as the filter makes it.
            let found = keyspace.get(&key).unwrap();
            let written = model.get(&key);
            let changed = written.and_then(|value| filtered(value));
            assert!(
                found.as_ref() == written || found == changed,
                "seed {seed}, {step}"
            );
        }
        for (snapshot, seen) in &snapshots {
            assert_eq!(entries(&keyspace, snapshot), *seen, "seed {seed}");
        }
        appends += db.stats().appends;
        drop(snapshots);
        assert!(db.stats().entries_judged > 0);
        assert!(db.verify().unwrap().is_sound());
    }
    assert!(appends > 0, "the configuration appends nothing");
}
