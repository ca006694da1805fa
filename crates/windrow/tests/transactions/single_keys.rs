//! Changes of one key in one step.

use super::{Store, text};

#[test]
fn update_writes_what_the_old_value_becomes() {
    let store = Store::with(&[("a", "1")]);
    let keyspace = &store.keyspace;
    let twice = |old: Option<&[u8]>| Some(old.unwrap_or(b"0").repeat(2));
    assert_eq!(text(keyspace.update("a", twice).unwrap()), "11");
    assert_eq!(text(keyspace.update("b", twice).unwrap()), "00");
    assert_eq!(
        (store.text("a"), store.text("b")),
        ("11".into(), "00".into())
    );
    assert_eq!(keyspace.update("a", |_| None).unwrap(), None);
    assert!(!keyspace.contains_key("a").unwrap());
    // No value becomes no value: nothing is written.
    let before = store.db.snapshot().sequence();
    assert_eq!(keyspace.update("a", |_| None).unwrap(), None);
    assert_eq!(store.db.snapshot().sequence(), before);
    assert!(keyspace.update("", twice).is_err());
}

#[test]
fn an_update_is_tried_again_after_another_write() {
    let store = Store::with(&[("a", "1")]);
    // A write, a removal, and a rotation between the read and the commit.
    let between: [fn(&Store); 4] = [
        |store| store.keyspace.insert("a", "2").unwrap(),
        |store| store.keyspace.remove("a").unwrap(),
        |store| {
            store.keyspace.remove("a").unwrap();
            store.keyspace.compact_range::<&[u8]>(..).unwrap();
        },
        |store| store.db.flush().unwrap(),
    ];
    for (position, between) in between.iter().enumerate() {
        store.keyspace.insert("a", "1").unwrap();
        let mut seen = Vec::new();
        let outcome = store.keyspace.update("a", |old| {
            if seen.is_empty() {
                between(&store);
            }
            seen.push(text(old.map(<[u8]>::to_vec)));
            Some([old.unwrap_or_default(), b"!"].concat())
        });
        let last = match position {
            0 => "2",
            3 => "1",
            _ => "",
        };
        assert_eq!(seen, ["1", last], "case {position}");
        assert_eq!(text(outcome.unwrap()), format!("{last}!"));
        assert_eq!(store.text("a"), format!("{last}!"));
    }
}

#[test]
fn an_update_ignores_writes_to_other_keys() {
    let store = Store::with(&[("a", "1")]);
    let mut calls = 0;
    let outcome = store.keyspace.update("a", |_| {
        calls += 1;
        store.keyspace.insert("b", "1").unwrap();
        Some(b"2".to_vec())
    });
    assert_eq!((text(outcome.unwrap()), calls), ("2".into(), 1));
}

#[test]
fn compare_and_swap_compares() {
    let store = Store::new();
    let keyspace = &store.keyspace;
    let swap = |expected: Option<&str>, new: Option<&str>| {
        let [expected, new] = [expected, new].map(|it| it.map(str::as_bytes));
        keyspace.compare_and_swap("a", expected, new).unwrap()
    };
    assert!(!swap(Some("1"), Some("2")));
    assert!(swap(None, Some("1")));
    assert!(!swap(None, Some("2")));
    assert!(swap(Some("1"), Some("1")));
    assert!(swap(Some("1"), Some("2")));
    assert_eq!(store.text("a"), "2");
    assert!(!swap(Some("1"), None));
    assert!(swap(Some("2"), None));
    assert!(swap(None, None));
    assert!(!keyspace.contains_key("a").unwrap());
}

#[test]
fn insert_if_absent_and_fetch_remove_look_first() {
    let store = Store::new();
    let keyspace = &store.keyspace;
    assert!(keyspace.insert_if_absent("a", "1").unwrap());
    assert!(!keyspace.insert_if_absent("a", "2").unwrap());
    assert_eq!(store.text("a"), "1");
    assert_eq!(text(keyspace.fetch_remove("a").unwrap()), "1");
    assert_eq!(keyspace.fetch_remove("a").unwrap(), None);
    assert!(keyspace.insert_if_absent("a", "3").unwrap());
}
