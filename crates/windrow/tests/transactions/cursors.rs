//! Cursors of a transaction beside a sorted map: random moves in both directions between random writes.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::common::Random;
use super::{Store, appended};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(random: &mut Random) -> Vec<u8> {
    format!("key{:03}", random.below(120)).into_bytes()
}

/// The keys of the cursor: all, or some.
fn bounds(random: &mut Random) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let mut ends = [key(random), key(random)];
    ends.sort();
    let [lower, upper] = ends;
    let lower = match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(lower),
        _ => Bound::Excluded(lower),
    };
    let upper = match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(upper),
        _ => Bound::Excluded(upper),
    };
    (lower, upper)
}

/// The entries of `map` within `range`. The standard map refuses some empty ranges.
fn within<'a>(
    map: &'a Map,
    range: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
) -> impl DoubleEndedIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    let range = range.clone();
    map.iter().filter(move |(key, _)| {
        let is_above = match &range.0 {
            Bound::Unbounded => true,
            Bound::Included(lower) => *key >= lower,
            Bound::Excluded(lower) => *key > lower,
        };
        let is_below = match &range.1 {
            Bound::Unbounded => true,
            Bound::Included(upper) => *key <= upper,
            Bound::Excluded(upper) => *key < upper,
        };
        is_above && is_below
    })
}

#[test]
fn cursors_show_what_a_sorted_map_shows() {
    let mut random = Random(11);
    for round in 0..60 {
        let store = Store::new();
        let mut map = Map::new();
        for step in 0..random.below(300) {
            let key = key(&mut random);
            match random.below(16) {
                0..4 => {
                    store.keyspace.remove(&key).unwrap();
                    map.remove(&key);
                }
                4..7 => {
                    store.keyspace.merge(&key, "operand").unwrap();
                    map.insert(key.clone(), appended(map.get(&key), b"operand"));
                }
                _ => {
                    let value = format!("base{step}").into_bytes();
                    store.keyspace.insert(&key, &value).unwrap();
                    map.insert(key, value);
                }
            }
            if random.below(100) == 0 {
                store.db.flush().unwrap();
            }
        }
        let transaction = store.db.transaction();
        // Nobody sees what comes later.
        for _ in 0..random.below(20) {
            store.keyspace.insert(key(&mut random), "later").unwrap();
        }
        for _ in 0..6 {
            let range = bounds(&mut random);
            let mut cursor = transaction
                .range_cursor(&store.keyspace, range.clone())
                .unwrap();
            // The key and value that are shown.
            let mut shown: Option<(Vec<u8>, Vec<u8>)> = None;
            for step in 0..200 {
                let own = |entry: (&Vec<u8>, &Vec<u8>)| (entry.0.clone(), entry.1.clone());
                let (found, expected) = match random.below(14) {
                    0 => (cursor.seek_to_first(), within(&map, &range).next().map(own)),
                    1 => (
                        cursor.seek_to_last(),
                        within(&map, &range).next_back().map(own),
                    ),
                    2 => {
                        let key = key(&mut random);
                        let expected = within(&map, &range).find(|entry| *entry.0 >= key);
                        (cursor.seek(&key), expected.map(own))
                    }
                    3..6 => {
                        let next = shown.as_ref().and_then(|(position, _)| {
                            within(&map, &range)
                                .find(|entry| entry.0 > position)
                                .map(own)
                        });
                        (cursor.next(), next)
                    }
                    6..9 => {
                        let previous = shown.as_ref().and_then(|(position, _)| {
                            let mut before = within(&map, &range).rev();
                            before.find(|entry| entry.0 < position).map(own)
                        });
                        (cursor.prev(), previous)
                    }
                    9..11 => {
                        let (key, operand) = (key(&mut random), format!("own{step}"));
                        transaction.merge(&store.keyspace, &key, &operand).unwrap();
                        map.insert(key.clone(), appended(map.get(&key), operand.as_bytes()));
                        continue;
                    }
                    11 => {
                        let key = key(&mut random);
                        transaction.remove(&store.keyspace, &key).unwrap();
                        map.remove(&key);
                        continue;
                    }
                    _ => {
                        let (key, value) = (key(&mut random), format!("own{step}").into_bytes());
                        transaction.insert(&store.keyspace, &key, &value).unwrap();
                        map.insert(key, value);
                        continue;
                    }
                };
                assert_eq!(
                    found.unwrap(),
                    expected.is_some(),
                    "round {round}, step {step}"
                );
                assert_eq!(cursor.is_valid(), expected.is_some());
                let (key, value) = expected.clone().unwrap_or_default();
                assert_eq!(
                    (cursor.key(), cursor.value().unwrap()),
                    (&key[..], &value[..])
                );
                shown = expected;
            }
            drop(cursor);
            let entries = transaction.range(&store.keyspace, range.clone()).unwrap();
            let entries: Vec<_> = entries.map(Result::unwrap).collect();
            let expected: Vec<_> = within(&map, &range)
                .map(|it| (it.0.clone(), it.1.clone()))
                .collect();
            assert_eq!(entries, expected);
            let mut both = transaction.range(&store.keyspace, range.clone()).unwrap();
            let mut met = Vec::new();
            while let Some(front) = both.next() {
                met.push(front.unwrap().0);
                met.extend(both.next_back().map(|back| back.unwrap().0));
            }
            met.sort();
            assert!(met.iter().eq(expected.iter().map(|entry| &entry.0)));
        }
        let keys: Vec<_> = (0..120)
            .map(|number| format!("key{number:03}").into_bytes())
            .collect();
        let values = transaction.multi_get(&store.keyspace, &keys).unwrap();
        for (key, value) in keys.iter().zip(values) {
            assert_eq!(value.as_ref(), map.get(key));
            assert_eq!(
                transaction.get(&store.keyspace, key).unwrap().as_ref(),
                map.get(key)
            );
        }
    }
}
