//! Readers beside tables that are added: whoever sees a write sees the tables that were there before it.

use shuttle::thread;
use windrow::{Db, Keyspace, operators};
use windrow_sim::SimDisk;

use crate::{explore, options};

const LOADED: u64 = 100;

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

fn get(keyspace: &Keyspace, key: &str) -> u64 {
    number(&keyspace.get(key).unwrap().unwrap())
}

/// A load, and then increments of what it has loaded.
fn load_and_count(keyspace: &Keyspace) {
    let entries = ["a", "b"].map(|key| (key, LOADED.to_le_bytes()));
    keyspace.bulk_load(entries).unwrap();
    for key in ["b", "a"] {
        keyspace.merge(key, 1_u64.to_le_bytes()).unwrap();
    }
}

#[test]
fn a_read_has_the_tables_that_were_added_before_what_it_sees() {
    explore(|| {
        let disk = SimDisk::new();
        let operator = operators::by_name("windrow.add_u64.wrapping").unwrap();
        let options = options(&disk).with_merge_operator("data", operator);
        let db = Db::open("/data", options).unwrap();
        let keyspace = db.keyspace("data").unwrap();
        for key in ["a", "b"] {
            keyspace.merge(key, 5_u64.to_le_bytes()).unwrap();
        }
        db.flush().unwrap();
        let writer = keyspace.clone();
        let writer = thread::spawn(move || load_and_count(&writer));
        let reader = keyspace.clone();
        let reader = thread::spawn(move || {
            for _ in 0..3 {
                let found = get(&reader, "a");
                assert!([5, LOADED, LOADED + 1].contains(&found), "{found}");
            }
        });
        let both = keyspace.multi_get(&["a", "b"]).unwrap();
        let both = (
            number(both[0].as_deref().unwrap()),
            number(both[1].as_deref().unwrap()),
        );
        assert!(
            [
                (5, 5),
                (LOADED, LOADED),
                (LOADED, LOADED + 1),
                (LOADED + 1, LOADED + 1)
            ]
            .contains(&both),
            "{both:?}"
        );
        writer.join().unwrap();
        reader.join().unwrap();
        for key in ["a", "b"] {
            assert_eq!(get(&keyspace, key), LOADED + 1);
        }
        db.flush().unwrap();
        assert_eq!(get(&keyspace, "a"), LOADED + 1);
        db.close().unwrap();
    });
}
