//! The anomalies of the Hermitage list in locking transactions, by their names.
//!
//! Nobody waits here: a lock that is not free at once is refused, where a thread would wait. Reads without a lock are
//! covered by the commit, as those of optimistic transactions are.

use std::time::Duration;

use windrow::{ErrorKind, Result, Transaction};

use super::{Store, is_conflict, text};

/// Keys 1 and 2 with the values 10 and 20.
fn store() -> Store {
    Store::with(&[("1", "10"), ("2", "20")])
}

fn begin<const N: usize>(store: &Store) -> [Transaction; N] {
    [0; N].map(|_| store.db.locking_transaction_with(Duration::ZERO))
}

/// Whether a lock was refused; all other errors end the test.
fn is_locked<T>(outcome: Result<T>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
            assert!(error.conflict().is_some(), "it names the key");
            true
        }
    }
}

fn read(store: &Store, transaction: &Transaction, key: &str) -> String {
    text(transaction.get(&store.keyspace, key).unwrap())
}

fn share(store: &Store, transaction: &Transaction, key: &str) -> Result<String> {
    let found = transaction.get_for_share(&store.keyspace, key);
    found.map(text)
}

fn lock(store: &Store, transaction: &Transaction, key: &str) -> Result<String> {
    let found = transaction.get_for_update(&store.keyspace, key);
    found.map(text)
}

fn write(store: &Store, transaction: &Transaction, key: &str, value: &str) -> Result<()> {
    transaction.insert(&store.keyspace, key, value)
}

/// The values that a scan of all entries finds.
fn values(store: &Store, transaction: &Transaction) -> Vec<String> {
    let entries = transaction.iter(&store.keyspace).unwrap();
    entries.map(|entry| text(Some(entry.unwrap().1))).collect()
}

fn both(store: &Store) -> [String; 2] {
    ["1", "2"].map(|key| store.text(key))
}

#[test]
fn g0_write_cycles() {
    let store = store();
    let [one, two] = begin(&store);
    write(&store, &one, "1", "11").unwrap();
    assert!(is_locked(write(&store, &two, "1", "12")));
    write(&store, &one, "2", "21").unwrap();
    one.commit().unwrap();
    assert_eq!(both(&store), ["11", "21"]);
    write(&store, &two, "1", "12").unwrap();
    write(&store, &two, "2", "22").unwrap();
    two.commit().unwrap();
    assert_eq!(both(&store), ["12", "22"]);
}

#[test]
fn g1a_aborted_reads() {
    let store = store();
    let [one, two] = begin(&store);
    write(&store, &one, "1", "101").unwrap();
    assert_eq!(values(&store, &two), ["10", "20"]);
    assert!(is_locked(share(&store, &two, "1")));
    one.roll_back();
    assert_eq!(share(&store, &two, "1").unwrap(), "10");
    assert_eq!(values(&store, &two), ["10", "20"]);
    two.commit().unwrap();
}

#[test]
fn g1b_intermediate_reads() {
    let store = store();
    let [one, two] = begin(&store);
    write(&store, &one, "1", "101").unwrap();
    assert_eq!(read(&store, &two, "1"), "10");
    write(&store, &one, "1", "11").unwrap();
    one.commit().unwrap();
    assert_eq!(read(&store, &two, "1"), "10");
    two.commit().unwrap();
    assert_eq!(store.text("1"), "11");
}

#[test]
fn g1c_circular_information_flow() {
    let store = store();
    let [one, two] = begin(&store);
    write(&store, &one, "1", "11").unwrap();
    write(&store, &two, "2", "22").unwrap();
    assert!(is_locked(share(&store, &one, "2")));
    assert!(is_locked(share(&store, &two, "1")));
    assert_eq!(read(&store, &one, "2"), "20");
    assert_eq!(read(&store, &two, "1"), "10");
    one.commit().unwrap();
    assert!(is_conflict(two.commit()));
}

#[test]
fn otv_observed_transaction_vanishes() {
    let store = store();
    let [one, two, three] = begin(&store);
    write(&store, &one, "1", "11").unwrap();
    write(&store, &one, "2", "19").unwrap();
    assert!(is_locked(write(&store, &two, "1", "12")));
    one.commit().unwrap();
    write(&store, &two, "1", "12").unwrap();
    assert_eq!(read(&store, &three, "1"), "10");
    write(&store, &two, "2", "18").unwrap();
    assert!(is_locked(share(&store, &three, "2")));
    two.commit().unwrap();
    assert_eq!(read(&store, &three, "2"), "20");
    assert_eq!(read(&store, &three, "1"), "10");
    three.commit().unwrap();
    assert_eq!(both(&store), ["12", "18"]);
}

#[test]
fn pmp_predicate_many_preceders() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(values(&store, &one), ["10", "20"]);
    write(&store, &two, "3", "30").unwrap();
    two.commit().unwrap();
    assert_eq!(values(&store, &one), ["10", "20"]);
    // What it has read is no longer there, and a write would depend on it.
    write(&store, &one, "4", "40").unwrap();
    assert!(is_conflict(one.commit()));
}

#[test]
fn pmp_for_write_predicates() {
    let store = store();
    let [one, two] = begin(&store);
    for (key, value) in [("1", "20"), ("2", "30")] {
        lock(&store, &one, key).unwrap();
        write(&store, &one, key, value).unwrap();
    }
    // The second removes the entry with the value 20.
    assert_eq!(values(&store, &two), ["10", "20"]);
    assert!(is_locked(two.remove(&store.keyspace, "2")));
    one.commit().unwrap();
    two.remove(&store.keyspace, "2").unwrap();
    assert!(is_conflict(two.commit()));
    assert_eq!(both(&store), ["20", "30"]);
}

#[test]
fn p4_lost_update() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(lock(&store, &one, "1").unwrap(), "10");
    assert!(is_locked(lock(&store, &two, "1")));
    write(&store, &one, "1", "11").unwrap();
    one.commit().unwrap();
    // The newest value, not that of the snapshot.
    assert_eq!(lock(&store, &two, "1").unwrap(), "11");
    write(&store, &two, "1", "12").unwrap();
    two.commit().unwrap();
    assert_eq!(store.text("1"), "12");
}

#[test]
fn p4_lost_update_after_a_read_without_a_lock() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(read(&store, &one, "1"), "10");
    assert_eq!(read(&store, &two, "1"), "10");
    write(&store, &one, "1", "11").unwrap();
    one.commit().unwrap();
    write(&store, &two, "1", "11").unwrap();
    assert!(is_conflict(two.commit()));
}

#[test]
fn p4_lost_update_beside_a_plain_write() {
    for reads_again in [false, true] {
        let store = store();
        let [transaction] = begin(&store);
        assert_eq!(lock(&store, &transaction, "1").unwrap(), "10");
        store.keyspace.insert("1", "12").unwrap();
        if reads_again {
            let outcome = lock(&store, &transaction, "1").map(drop);
            assert!(is_conflict(outcome), "two values under one lock");
        }
        write(&store, &transaction, "1", "11").unwrap();
        assert!(is_conflict(transaction.commit()));
        assert_eq!(store.text("1"), "12");
    }
}

#[test]
fn g_single_read_skew() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(read(&store, &one, "1"), "10");
    write(&store, &two, "1", "12").unwrap();
    write(&store, &two, "2", "18").unwrap();
    two.commit().unwrap();
    // The snapshot is one state.
    assert_eq!(read(&store, &one, "2"), "20");
    one.commit().unwrap();
}

#[test]
fn g_single_read_skew_under_locks() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(share(&store, &one, "1").unwrap(), "10");
    assert!(is_locked(write(&store, &two, "1", "12")));
    two.roll_back();
    assert_eq!(share(&store, &one, "2").unwrap(), "20");
    // A batch takes no locks. The first value is no longer current when the second one is read.
    store.keyspace.insert("1", "12").unwrap();
    store.keyspace.insert("3", "18").unwrap();
    assert_eq!(share(&store, &one, "3").unwrap(), "18");
    assert!(is_conflict(one.commit()));
}

#[test]
fn g_single_with_predicates() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(values(&store, &one), ["10", "20"]);
    write(&store, &two, "1", "12").unwrap();
    two.commit().unwrap();
    assert_eq!(values(&store, &one), ["10", "20"]);
    one.commit().unwrap();
}

#[test]
fn g_single_with_a_write() {
    let store = store();
    let [one, two] = begin(&store);
    assert_eq!(read(&store, &one, "1"), "10");
    write(&store, &two, "1", "12").unwrap();
    write(&store, &two, "2", "18").unwrap();
    two.commit().unwrap();
    one.remove(&store.keyspace, "2").unwrap();
    assert!(is_conflict(one.commit()));
}

#[test]
fn g2_item_write_skew() {
    let store = store();
    let [one, two] = begin(&store);
    for transaction in [&one, &two] {
        assert_eq!(read(&store, transaction, "1"), "10");
        assert_eq!(read(&store, transaction, "2"), "20");
    }
    write(&store, &one, "1", "11").unwrap();
    write(&store, &two, "2", "21").unwrap();
    one.commit().unwrap();
    assert!(is_conflict(two.commit()));
}

#[test]
fn g2_item_write_skew_under_locks() {
    let store = store();
    let [one, two] = begin(&store);
    for transaction in [&one, &two] {
        assert_eq!(share(&store, transaction, "1").unwrap(), "10");
        assert_eq!(share(&store, transaction, "2").unwrap(), "20");
    }
    assert!(is_locked(write(&store, &one, "1", "11")));
    assert!(is_locked(write(&store, &two, "2", "21")));
    one.roll_back();
    write(&store, &two, "2", "21").unwrap();
    two.commit().unwrap();
    assert_eq!(both(&store), ["10", "21"]);
}

#[test]
fn g2_anti_dependency_cycles_with_predicates() {
    let store = store();
    let [one, two] = begin(&store);
    for transaction in [&one, &two] {
        assert!(!values(&store, transaction).contains(&"30".into()));
    }
    write(&store, &one, "3", "30").unwrap();
    write(&store, &two, "4", "42").unwrap();
    one.commit().unwrap();
    assert!(is_conflict(two.commit()));
}

#[test]
fn g2_with_two_anti_dependency_edges() {
    let store = store();
    let [one] = begin(&store);
    assert_eq!(values(&store, &one), ["10", "20"]);
    let [two] = begin(&store);
    let old: u32 = lock(&store, &two, "2").unwrap().parse().unwrap();
    write(&store, &two, "2", &(old + 5).to_string()).unwrap();
    two.commit().unwrap();
    // It shows the order of the second before the first.
    let [three] = begin(&store);
    assert_eq!(values(&store, &three), ["10", "25"]);
    three.commit().unwrap();
    write(&store, &one, "1", "0").unwrap();
    assert!(is_conflict(one.commit()));
}

#[test]
fn long_fork() {
    let store = store();
    let [one, two] = begin(&store);
    write(&store, &one, "1", "11").unwrap();
    write(&store, &two, "2", "21").unwrap();
    let [before] = begin(&store);
    one.commit().unwrap();
    let [between] = begin(&store);
    two.commit().unwrap();
    let [after] = begin(&store);
    assert_eq!(values(&store, &before), ["10", "20"]);
    assert_eq!(values(&store, &between), ["11", "20"]);
    assert_eq!(values(&store, &after), ["11", "21"]);
}
