//! The memtable against a sorted map, and its memory.

use super::{Memtable, MemtableCursor};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Kind, Result, SequenceNumber, Step, Trailer};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// The place of an entry in the order.
type Place = (Vec<u8>, Reverse<SequenceNumber>);

type Model = BTreeMap<Place, (Kind, Vec<u8>)>;

fn insert(memtable: &Memtable, model: &mut Model, key: &[u8], sequence: u64, value: &[u8]) {
    let kind = if value.is_empty() {
        Kind::Tombstone
    } else {
        Kind::Value
    };
    memtable.insert(key, Trailer::new(sequence, kind), value);
    model.insert((key.to_vec(), Reverse(sequence)), (kind, value.to_vec()));
}

fn model_get<'model>(
    model: &'model Model,
    key: &[u8],
    sequence: SequenceNumber,
) -> Option<(Trailer, &'model [u8])> {
    let (found, (kind, value)) = model.range((key.to_vec(), Reverse(sequence))..).next()?;
    (found.0 == key).then(|| (Trailer::new(found.1.0, *kind), value.as_slice()))
}

type Seen = (Vec<u8>, SequenceNumber, Kind, Vec<u8>);

fn seen(cursor: &MemtableCursor) -> Option<Seen> {
    cursor.is_valid().then(|| {
        let trailer = cursor.trailer();
        (
            cursor.key().to_vec(),
            trailer.sequence(),
            trailer.kind(),
            cursor.value().to_vec(),
        )
    })
}

fn modelled(entry: (&Place, &(Kind, Vec<u8>))) -> Seen {
    let ((key, sequence), (kind, value)) = entry;
    (key.clone(), sequence.0, *kind, value.clone())
}

#[test]
fn an_empty_memtable_has_no_entry() {
    let memtable = Memtable::new(&Arc::default());
    assert!(memtable.is_empty());
    assert_eq!(memtable.get(b"key", SEQUENCE_MAX), None);
    let mut cursor = MemtableCursor::new(&memtable);
    assert!(!cursor.is_valid());
    assert_eq!(cursor.next().unwrap(), Step::END);
    for step in [Cursor::seek_to_first, Cursor::seek_to_last, Cursor::prev] {
        step(&mut cursor).unwrap();
        assert!(!cursor.is_valid());
    }
}

#[test]
fn a_get_finds_the_newest_version_at_its_sequence() {
    let memtable = Memtable::new(&Arc::default());
    memtable.insert(b"key", Trailer::new(3, Kind::Value), b"three");
    memtable.insert(b"key", Trailer::new(9, Kind::Tombstone), b"");
    memtable.insert(b"key", Trailer::new(6, Kind::Value), b"six");
    memtable.insert(b"kez", Trailer::new(1, Kind::Value), b"other");
    assert_eq!(memtable.get(b"key", 2), None);
    let three = Some((Trailer::new(3, Kind::Value), b"three".as_slice()));
    assert_eq!(memtable.get(b"key", 3), three);
    assert_eq!(memtable.get(b"key", 5), three);
    let six = Some((Trailer::new(6, Kind::Value), b"six".as_slice()));
    assert_eq!(memtable.get(b"key", 8), six);
    let nine = Some((Trailer::new(9, Kind::Tombstone), b"".as_slice()));
    assert_eq!(memtable.get(b"key", SEQUENCE_MAX), nine);
    assert_eq!(memtable.get(b"ke", SEQUENCE_MAX), None);
    assert_eq!(memtable.get(b"key\0", SEQUENCE_MAX), None);
    assert_eq!(memtable.entries(), 4);
}

// I1
#[test]
#[should_panic(expected = "a key has one entry per sequence number")]
fn a_repeated_key_and_sequence_panics() {
    let memtable = Memtable::new(&Arc::default());
    memtable.insert(b"key", Trailer::new(3, Kind::Value), b"three");
    memtable.insert(b"key", Trailer::new(3, Kind::Tombstone), b"");
}

#[test]
fn large_values_and_long_keys_are_found() {
    let memtable = Memtable::new(&Arc::default());
    let mut model = Model::new();
    for (sequence, length) in [1, 7, 100, 16_384, 70_000, 1_000_000, 3_000_000, 5]
        .into_iter()
        .enumerate()
    {
        let key = vec![b'k'; (length % 65_536).max(1)];
        let value = vec![b'v'; length];
        insert(&memtable, &mut model, &key, sequence as u64, &value);
    }
    for ((key, sequence), (kind, value)) in &model {
        let expected = Some((Trailer::new(sequence.0, *kind), value.as_slice()));
        assert_eq!(memtable.get(key, SEQUENCE_MAX), expected);
    }
}

// I2
#[test]
fn memory_is_counted_exactly() {
    let memtable = Memtable::new(&Arc::default());
    let mut expected = memtable.memory_bytes();
    let (mut splits, mut split_bytes) = (0, 0);
    for sequence in 0..10_000_u64 {
        let key = sequence.to_be_bytes();
        let value = vec![7; (sequence % 300) as usize];
        memtable.insert(&key, Trailer::new(sequence, Kind::Value), &value);
        let record = (16 + key.len() + value.len()).next_multiple_of(8);
        let split = memtable.memory_bytes() - expected - record;
        assert_eq!(split % 8, 0);
        splits += usize::from(split > 0);
        split_bytes += split;
        expected += record + split;
    }
    // Ascending entries fill their leaves.
    assert_eq!(splits, 10_000_usize.div_ceil(15) - 1);
    assert!(split_bytes < 300 * splits);
}

/// I4: as by readers at many snapshots of one long list.
#[test]
fn replacements_take_half_of_the_memory() {
    let memtable = Memtable::new(&Arc::default());
    let operand = |sequence| Trailer::new(sequence, Kind::Operand);
    for sequence in 1..=1000 {
        memtable.insert(b"list", operand(sequence), &[7; 10]);
    }
    let before = memtable.memory_bytes();
    let value = vec![7; 10_000];
    for sequence in (1..=1000).rev() {
        memtable.replace(b"list", operand(sequence).with_kind(Kind::Value), &value);
    }
    let after = memtable.memory_bytes();
    assert!(
        before < after && after <= 2 * before + 1000,
        "{before} {after}"
    );
    assert_eq!(memtable.get(b"list", 1000).unwrap().1, &value[..]);
    assert_eq!(
        memtable.get(b"list", 1).unwrap(),
        (operand(1), &[7; 10][..])
    );
    assert_eq!(memtable.entries(), 1000);
}

#[test]
fn one_history_takes_the_same_memory_each_time() {
    let fill = || {
        let memtable = Memtable::new(&Arc::default());
        for sequence in 0..5000_u64 {
            let key = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            memtable.insert(&key, Trailer::new(sequence, Kind::Value), b"value");
        }
        memtable.memory_bytes()
    };
    assert_eq!(fill(), fill());
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few letters make many shared prefixes and repeated keys.
    prop_oneof![
        proptest::collection::vec(0..3u8, 1..12),
        proptest::collection::vec(any::<u8>(), 1..20),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_map(
        writes in proptest::collection::vec(
            (key(), proptest::collection::vec(any::<u8>(), 0..40)), 0..200),
        probes in proptest::collection::vec((key(), 0..220_u64), 1..50),
        walk in proptest::collection::vec((0..8_u8, key(), 0..220_u64), 1..200),
        common in proptest::collection::vec(0..3u8, 0..16),
    ) {
        // The first keys begin alike; of the others, and of what is sought, some do.
        let alike = |is_alike, key: Vec<u8>| {
            if is_alike { [&common[..], &key].concat() } else { key }
        };
        let writes: Vec<_> = writes
            .into_iter()
            .enumerate()
            .map(|(at, (key, value))| (alike(at < 20 || key.len() % 2 == 0, key), value))
            .collect();
        let probes: Vec<_> = probes
            .into_iter()
            .map(|(key, sequence)| (alike(key.len() % 2 == 0, key), sequence))
            .collect();
        let memtable = Memtable::new(&Arc::default());
        let mut model = Model::new();
        for (sequence, (key, value)) in writes.iter().enumerate() {
            insert(&memtable, &mut model, key, sequence as u64, value);
        }
        let written = writes.iter().map(|(key, _)| (key, SEQUENCE_MAX));
        for (key, sequence) in
            probes.iter().map(|(key, sequence)| (key, *sequence)).chain(written)
        {
            prop_assert_eq!(memtable.get(key, sequence), model_get(&model, key, sequence));
        }

        let mut cursor = MemtableCursor::new(&memtable);
        let mut position: Option<Place> = None;
        for (step, key, sequence) in walk {
            let key = alike(key.len() % 2 == 0, key);
            let seek = (key.clone(), Reverse(sequence));
            let expected = match step {
                0 => {
                    cursor.seek_to_first().unwrap();
                    model.first_key_value()
                }
                1 => {
                    cursor.seek_to_last().unwrap();
                    model.last_key_value()
                }
                2 | 3 => {
                    cursor.seek(&key, sequence).unwrap();
                    model.range(seek..).next()
                }
                4 | 5 => {
                    cursor.next().unwrap();
                    position.and_then(|at| model.range(at..).nth(1))
                }
                _ => {
                    cursor.prev().unwrap();
                    position.and_then(|at| model.range(..at).next_back())
                }
            };
            prop_assert_eq!(seen(&cursor), expected.map(modelled));
            position = expected.map(|(at, _)| at.clone());
        }
    }
}

/// A key; the keys of the threads spread over the whole order.
fn scattered(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

#[test]
fn threads_insert_and_read_at_once() {
    const WRITERS: u64 = 4;
    let each: u64 = if cfg!(debug_assertions) {
        5_000
    } else {
        50_000
    };
    let memtable = Arc::new(Memtable::new(&Arc::default()));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let memtable = &memtable;
            scope.spawn(move || {
                for number in 0..each {
                    let sequence = number * WRITERS + writer;
                    // Every fourth entry is a further version of one contended key.
                    let key = if number % 4 == 0 {
                        scattered(u64::MAX)
                    } else {
                        scattered(sequence)
                    };
                    memtable.insert(&key, Trailer::new(sequence, Kind::Value), &key);
                    let found = memtable.get(&key, sequence);
                    assert_eq!(found, Some((Trailer::new(sequence, Kind::Value), &key[..])));
                }
            });
        }
        for forward in [true, false] {
            let memtable = &memtable;
            scope.spawn(move || {
                let mut entries = 0;
                while entries < WRITERS * each {
                    let before = memtable.entries();
                    entries = walk(memtable, forward);
                    assert!(entries >= before, "an entry inserted before is not met");
                }
            });
        }
    });
    assert_eq!(memtable.entries(), WRITERS * each);
    assert_eq!(walk(&memtable, true), WRITERS * each);
    assert_eq!(walk(&memtable, false), WRITERS * each);
}

/// Walks the whole memtable, checks order and content, and returns the number of entries.
fn walk(memtable: &Memtable, forward: bool) -> u64 {
    type Move = fn(&mut MemtableCursor) -> Result<()>;
    let (start, step): (Move, Move) = if forward {
        (Cursor::seek_to_first, |cursor| cursor.next().map(drop))
    } else {
        (Cursor::seek_to_last, Cursor::prev)
    };
    let mut cursor = MemtableCursor::new(memtable);
    assert!(start(&mut cursor).is_ok());
    let mut last: Option<Place> = None;
    let mut entries = 0;
    while cursor.is_valid() {
        assert_eq!(cursor.key(), cursor.value());
        let at = (cursor.key().to_vec(), Reverse(cursor.trailer().sequence()));
        if let Some(last) = last {
            assert_eq!(last < at, forward);
            assert_ne!(last, at);
        }
        last = Some(at);
        entries += 1;
        assert!(step(&mut cursor).is_ok());
    }
    entries
}

/// `cargo test --release -p windrow memtable_costs -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[expect(
    clippy::disallowed_methods,
    reason = "measures the memtable alone, without a runtime"
)]
fn memtable_costs() {
    const ENTRIES: u32 = 450_000;
    let time = |name: &str, count: u32, run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        println!("    {name}: {} ns", (start.elapsed() / count).as_nanos());
    };
    let decimal = |number: u64| format!("{number:016}").into_bytes();
    let keys: [(&str, Vec<Vec<u8>>); 3] = [
        (
            "random bytes",
            (0..ENTRIES).map(|n| scattered(n.into()).to_vec()).collect(),
        ),
        (
            "random decimals",
            // An odd factor permutes the numbers below a power of two.
            (0..ENTRIES)
                .map(|n| decimal(u64::from(n) * 0x9e_3779 % (1 << 23)))
                .collect(),
        ),
        (
            "ascending decimals",
            (0..ENTRIES).map(|n| decimal(n.into())).collect(),
        ),
    ];
    for (name, keys) in &keys {
        println!("{name}");
        let memtable = Memtable::new(&Arc::default());
        time("insert", ENTRIES, &mut || {
            for (sequence, key) in keys.iter().enumerate() {
                memtable.insert(key, Trailer::new(sequence as u64, Kind::Value), &[7; 100]);
            }
        });
        time("get", ENTRIES / 7, &mut || {
            for key in keys.iter().step_by(7) {
                assert!(memtable.get(key, SEQUENCE_MAX).is_some());
            }
        });
        let mut cursor = MemtableCursor::new(&memtable);
        time("next", ENTRIES, &mut || {
            cursor.seek_to_first().unwrap();
            while cursor.is_valid() {
                assert_eq!(cursor.value().len(), 100);
                cursor.next().unwrap();
            }
        });
        let entry = memtable.memory_bytes() / keys.len();
        println!("    memory of an entry: {entry} bytes");
    }
}
