//! Loads beside threads that write, read and compact.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::Store;

/// Writers and loads set all of these keys to one number; each sees the numbers of the others in commit order.
const KEYS: usize = 200;

fn key(number: usize) -> String {
    format!("key{number:04}")
}

#[test]
fn a_load_is_one_commit_among_others() {
    let store = Store::new();
    let is_over = AtomicBool::new(false);
    let batch = |number: u32| {
        let mut batch = windrow::Batch::new();
        for at in 0..KEYS {
            batch
                .insert(&store.keyspace, key(at), number.to_string())
                .unwrap();
        }
        batch
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..600).step_by(2) {
                store.db.write(&batch(number)).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            for number in (1..).step_by(2) {
                if is_over.load(Ordering::Acquire) {
                    break;
                }
                let entries = (0..KEYS).map(|at| (key(at), number.to_string()));
                store.keyspace.bulk_load(entries).unwrap();
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                store.keyspace.compact_range::<&[u8]>(..).unwrap();
            }
        });
        while !is_over.load(Ordering::Acquire) {
            let snapshot = store.db.snapshot();
            let view = store.keyspace.at(&snapshot).unwrap();
            let values: Vec<_> = view.iter().unwrap().map(|entry| entry.unwrap().1).collect();
            assert!(
                values.is_empty() || values.len() == KEYS,
                "{}",
                values.len()
            );
            assert!(values.iter().all(|value| *value == values[0]));
            if let Some(first) = values.first() {
                assert_eq!(view.get(key(KEYS / 2)).unwrap().as_ref(), Some(first));
            }
        }
    });
    store.check_sound();
    let values = |store: &Store| -> Vec<_> {
        let entries = store.keyspace.iter().unwrap();
        entries.map(|entry| entry.unwrap()).collect()
    };
    let before = values(&store);
    let store = store.reopened();
    assert_eq!(values(&store), before);
}
