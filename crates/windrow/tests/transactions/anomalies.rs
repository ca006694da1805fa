//! The anomalies of the Hermitage list, by their names. `github.com/ept/hermitage` has the histories.
//!
//! Each test runs under both isolations. Snapshot isolation permits G2-item and G2; all others never happen.

use windrow::{Isolation, Transaction};

use super::{Store, is_conflict, text};

const BOTH: [Isolation; 2] = [Isolation::Serializable, Isolation::Snapshot];

/// Keys 1 and 2 with the values 10 and 20.
fn store() -> Store {
    Store::with(&[("1", "10"), ("2", "20")])
}

fn read(store: &Store, transaction: &Transaction, key: &str) -> String {
    text(transaction.get(&store.keyspace, key).unwrap())
}

fn write(store: &Store, transaction: &Transaction, key: &str, value: &str) {
    transaction.insert(&store.keyspace, key, value).unwrap();
}

/// The values that a scan of all entries finds.
fn values(store: &Store, transaction: &Transaction) -> Vec<String> {
    let entries = transaction.iter(&store.keyspace).unwrap();
    entries.map(|entry| text(Some(entry.unwrap().1))).collect()
}

#[test]
fn g0_write_cycles() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "11");
        write(&store, &two, "1", "12");
        write(&store, &one, "2", "21");
        one.commit().unwrap();
        assert_eq!(
            (store.text("1"), store.text("2")),
            ("11".into(), "21".into())
        );
        write(&store, &two, "2", "22");
        // All writes of a transaction come before or after all of another one.
        let expected = if is_conflict(two.commit()) {
            ("11".into(), "21".into())
        } else {
            ("12".into(), "22".into())
        };
        assert_eq!((store.text("1"), store.text("2")), expected);
    }
}

#[test]
fn g1a_aborted_reads() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "101");
        assert_eq!(values(&store, &two), ["10", "20"]);
        one.roll_back();
        assert_eq!(values(&store, &two), ["10", "20"]);
        two.commit().unwrap();
    }
}

#[test]
fn g1b_intermediate_reads() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "101");
        assert_eq!(values(&store, &two), ["10", "20"]);
        write(&store, &one, "1", "11");
        one.commit().unwrap();
        assert_eq!(values(&store, &two), ["10", "20"]);
        two.commit().unwrap();
        assert_eq!(store.text("1"), "11");
    }
}

#[test]
fn g1c_circular_information_flow() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "11");
        write(&store, &two, "2", "22");
        assert_eq!(read(&store, &one, "2"), "20");
        assert_eq!(read(&store, &two, "1"), "10");
        one.commit().unwrap();
        let is_refused = is_conflict(two.commit());
        assert_eq!(is_refused, isolation == Isolation::Serializable);
    }
}

#[test]
fn otv_observed_transaction_vanishes() {
    for isolation in BOTH {
        let store = store();
        let [one, two, three] = [0; 3].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "11");
        write(&store, &one, "2", "19");
        write(&store, &two, "1", "12");
        one.commit().unwrap();
        assert_eq!(read(&store, &three, "1"), "10");
        write(&store, &two, "2", "18");
        assert_eq!(read(&store, &three, "2"), "20");
        let is_refused = is_conflict(two.commit());
        assert_eq!(is_refused, isolation == Isolation::Snapshot);
        // The third one still sees its state.
        assert_eq!(read(&store, &three, "2"), "20");
        assert_eq!(read(&store, &three, "1"), "10");
        three.commit().unwrap();
    }
}

#[test]
fn pmp_predicate_many_preceders() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        let is_thirty =
            |transaction: &Transaction| values(&store, transaction).contains(&"30".into());
        assert!(!is_thirty(&one));
        write(&store, &two, "3", "30");
        two.commit().unwrap();
        assert!(!is_thirty(&one));
        one.commit().unwrap();
    }
}

#[test]
fn pmp_for_write_predicates() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        // The first adds 10 to every value. The second removes the entry with the value 20.
        for (key, value) in [("1", "20"), ("2", "30")] {
            read(&store, &one, key);
            write(&store, &one, key, value);
        }
        let found = two
            .iter(&store.keyspace)
            .unwrap()
            .map(|entry| entry.unwrap());
        let found: Vec<_> = found.filter(|(_, value)| value == b"20").collect();
        assert_eq!(found.len(), 1);
        two.remove(&store.keyspace, &found[0].0).unwrap();
        one.commit().unwrap();
        assert!(is_conflict(two.commit()));
        assert_eq!(
            (store.text("1"), store.text("2")),
            ("20".into(), "30".into())
        );
    }
}

#[test]
fn p4_lost_update() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        assert_eq!(read(&store, &one, "1"), "10");
        assert_eq!(read(&store, &two, "1"), "10");
        write(&store, &one, "1", "11");
        write(&store, &two, "1", "11");
        one.commit().unwrap();
        assert!(is_conflict(two.commit()));
    }
}

#[test]
fn p4_lost_update_beside_a_plain_write() {
    for isolation in BOTH {
        let store = store();
        let transaction = store.db.transaction_with(isolation);
        assert_eq!(read(&store, &transaction, "1"), "10");
        write(&store, &transaction, "1", "11");
        store.keyspace.insert("1", "12").unwrap();
        assert!(is_conflict(transaction.commit()));
        assert_eq!(store.text("1"), "12");
    }
}

#[test]
fn g_single_read_skew() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        assert_eq!(read(&store, &one, "1"), "10");
        assert_eq!(values(&store, &two), ["10", "20"]);
        write(&store, &two, "1", "12");
        write(&store, &two, "2", "18");
        two.commit().unwrap();
        assert_eq!(read(&store, &one, "2"), "20");
        one.commit().unwrap();
    }
}

#[test]
fn g_single_with_predicates() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        let fives = |transaction: &Transaction| {
            let found = values(&store, transaction);
            found
                .into_iter()
                .filter(|it| it.parse::<u32>().unwrap() % 5 == 0)
                .count()
        };
        assert_eq!(fives(&one), 2);
        write(&store, &two, "1", "12");
        two.commit().unwrap();
        assert_eq!(fives(&one), 2);
        one.commit().unwrap();
    }
}

#[test]
fn g_single_with_a_write() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        assert_eq!(read(&store, &one, "1"), "10");
        assert_eq!(values(&store, &two), ["10", "20"]);
        write(&store, &two, "1", "12");
        write(&store, &two, "2", "18");
        two.commit().unwrap();
        one.remove(&store.keyspace, "2").unwrap();
        assert!(is_conflict(one.commit()));
    }
}

#[test]
fn g2_item_write_skew() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        for transaction in [&one, &two] {
            assert_eq!(read(&store, transaction, "1"), "10");
            assert_eq!(read(&store, transaction, "2"), "20");
        }
        write(&store, &one, "1", "11");
        write(&store, &two, "2", "21");
        one.commit().unwrap();
        let is_refused = is_conflict(two.commit());
        assert_eq!(is_refused, isolation == Isolation::Serializable);
    }
}

#[test]
fn g2_item_write_skew_with_reads_for_update() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        for transaction in [&one, &two] {
            transaction.get_for_update(&store.keyspace, "1").unwrap();
            transaction.get_for_update(&store.keyspace, "2").unwrap();
        }
        write(&store, &one, "1", "11");
        write(&store, &two, "2", "21");
        one.commit().unwrap();
        assert!(is_conflict(two.commit()));
    }
}

#[test]
fn g2_anti_dependency_cycles_with_predicates() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        for transaction in [&one, &two] {
            assert!(!values(&store, transaction).contains(&"30".into()));
        }
        write(&store, &one, "3", "30");
        write(&store, &two, "4", "42");
        one.commit().unwrap();
        let is_refused = is_conflict(two.commit());
        assert_eq!(is_refused, isolation == Isolation::Serializable);
    }
}

#[test]
fn g2_with_two_anti_dependency_edges() {
    let store = store();
    let one = store.db.transaction();
    assert_eq!(values(&store, &one), ["10", "20"]);
    let two = store.db.transaction();
    let old: u32 = read(&store, &two, "2").parse().unwrap();
    write(&store, &two, "2", &(old + 5).to_string());
    two.commit().unwrap();
    // It shows the order of the second before the first.
    let three = store.db.transaction();
    assert_eq!(values(&store, &three), ["10", "25"]);
    three.commit().unwrap();
    write(&store, &one, "1", "0");
    assert!(is_conflict(one.commit()));
}

#[test]
fn long_fork() {
    for isolation in BOTH {
        let store = store();
        let [one, two] = [0; 2].map(|_| store.db.transaction_with(isolation));
        write(&store, &one, "1", "11");
        write(&store, &two, "2", "21");
        let before = store.db.transaction_with(isolation);
        one.commit().unwrap();
        let between = store.db.transaction_with(isolation);
        two.commit().unwrap();
        let after = store.db.transaction_with(isolation);
        // All readers see the two writes in one order.
        assert_eq!(values(&store, &before), ["10", "20"]);
        assert_eq!(values(&store, &between), ["11", "20"]);
        assert_eq!(values(&store, &after), ["11", "21"]);
    }
}
