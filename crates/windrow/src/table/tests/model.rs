//! Tables against a sorted list, both sources, both kinds of cursor.

use super::*;
use crate::base::key::{SEQUENCE_MAX, compare_entries};
use crate::table::PointRead;
use proptest::prelude::*;

fn entries() -> impl Strategy<Value = Vec<Owned>> {
    let key = prop_oneof![
        proptest::collection::vec(0..3u8, 1..6),
        proptest::collection::vec(prop_oneof![Just(0u8), Just(255u8)], 1..20),
        (0..2000u32).prop_map(|number| format!("key{number:08}").into_bytes()),
    ];
    let sequence = prop_oneof![1..20u64, 1..SEQUENCE_MAX];
    let value = proptest::option::of(prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        (0..600usize).prop_map(|length| vec![7; length]),
    ]);
    proptest::collection::vec((key, sequence, value), 1..200).prop_map(|raw| {
        let mut entries: Vec<Owned> = raw
            .into_iter()
            .map(|(key, sequence, value)| Owned::new(&key, sequence, value.as_deref()))
            .collect();
        entries.sort_by(|left, right| {
            compare_entries(
                &left.key,
                left.trailer.sequence(),
                &right.key,
                right.trailer.sequence(),
            )
        });
        entries.dedup_by(|left, right| {
            left.key == right.key && left.trailer.sequence() == right.trailer.sequence()
        });
        entries
    })
}

pub(super) fn options() -> impl Strategy<Value = TableOptions> {
    (
        prop_oneof![Just(128usize), Just(500), Just(4096)],
        prop_oneof![
            Just([0.0; 4]),
            Just([2.5, 0.0, 0.0, 0.0]),
            Just([9.0, 3.0, 4.0, 1.0]),
        ],
        prop_oneof![Just(Compression::None), Just(Compression::Lz4)],
    )
        .prop_map(|(block_bytes, filter_units, compression)| TableOptions {
            block_bytes,
            filter_units,
            compression,
        })
}

#[derive(Debug, Clone)]
enum Move {
    First,
    Last,
    Next(u8),
    Prev(u8),
    /// To the entry at this fraction of the list, or just beside it.
    Seek(proptest::sample::Index, u64, bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    proptest::collection::vec(
        prop_oneof![
            Just(Move::First),
            Just(Move::Last),
            (1..40u8).prop_map(Move::Next),
            (1..40u8).prop_map(Move::Prev),
            (
                any::<proptest::sample::Index>(),
                0..SEQUENCE_MAX,
                any::<bool>()
            )
                .prop_map(|(index, sequence, exact)| Move::Seek(index, sequence, exact)),
        ],
        1..40,
    )
}

/// The position of the first entry not before (`key`, `sequence`).
fn lower_bound(entries: &[Owned], key: &[u8], sequence: u64) -> usize {
    entries.partition_point(|entry| {
        compare_entries(&entry.key, entry.trailer.sequence(), key, sequence).is_lt()
    })
}

/// Walks `cursor` through `moves` beside a position in `entries`.
fn walk(cursor: &mut impl Cursor, entries: &[Owned], moves: &[Move]) {
    let mut position: Option<usize> = None;
    let agree = |cursor: &_, position: Option<usize>| {
        assert_eq!(
            Owned::under(cursor),
            position.map(|position| entries[position].clone())
        );
    };
    for step in moves {
        match step {
            Move::First => {
                cursor.seek_to_first().unwrap();
                position = Some(0);
            }
            Move::Last => {
                cursor.seek_to_last().unwrap();
                position = Some(entries.len() - 1);
            }
            Move::Next(count) => {
                for _ in 0..*count {
                    cursor.next().unwrap();
                    position = position
                        .map(|position| position + 1)
                        .filter(|position| *position < entries.len());
                    agree(cursor, position);
                }
            }
            Move::Prev(count) => {
                for _ in 0..*count {
                    cursor.prev().unwrap();
                    position = position.and_then(|position| position.checked_sub(1));
                    agree(cursor, position);
                }
            }
            Move::Seek(index, sequence, exact) => {
                let mut key = index.get(entries).key.clone();
                let sequence = if *exact {
                    index.get(entries).trailer.sequence()
                } else {
                    key.push(1);
                    *sequence
                };
                cursor.seek(&key, sequence).unwrap();
                let found = lower_bound(entries, &key, sequence);
                position = Some(found).filter(|found| *found < entries.len());
            }
        }
        agree(cursor, position);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn reads_agree_with_a_sorted_list(
        entries in entries(),
        options in options(),
        moves in moves(),
        probes in proptest::collection::vec(
            (any::<proptest::sample::Index>(), prop_oneof![0..25u64, 0..SEQUENCE_MAX]), 1..50),
    ) {
        let (meta, bytes) = write(&entries, &options);
        let segment = &meta.segments[0];
        prop_assert_eq!(segment.length, bytes.len() as u64);
        prop_assert_eq!(meta.entries(), entries.len() as u64);
        prop_assert_eq!(meta.segments[0].smallest(), &entries[0].key[..]);
        prop_assert_eq!(meta.segments[0].largest(), &entries[entries.len() - 1].key[..]);
        for source in SOURCES {
            let table = open(bytes.clone(), &meta, source).unwrap();
            prop_assert_eq!(&scan(&mut table.cursor(0)).unwrap(), &entries);
            prop_assert_eq!(&scan(&mut table.sequential_cursor(0)).unwrap(), &entries);
            walk(&mut table.cursor(0), &entries, &moves);
            walk(&mut table.sequential_cursor(0), &entries, &moves);
            for (index, sequence) in &probes {
                for suffix in [&[][..], &[0][..], &[1][..]] {
                    let key = [&index.get(&entries).key, suffix].concat();
                    let expected = entries
                        .get(lower_bound(&entries, &key, *sequence))
                        .filter(|entry| entry.key == key)
                        .map(|entry| (entry.trailer, entry.value.clone()));
                    prop_assert_eq!(get(&table, &key, *sequence).unwrap(), expected);
                }
            }
            let mut damage = Vec::new();
            let report = table.verify(&mut damage, &mut |_, _| Ok(())).unwrap();
            prop_assert!(damage.is_empty(), "{:?}", damage);
            prop_assert_eq!(report.entries, entries.len() as u64);
        }
    }
}

/// Many versions of one key span blocks; each is found from above and from below.
#[test]
fn versions_of_one_key_span_blocks() {
    let mut entries = vec![Owned::new(b"a", 5, Some(b"first"))];
    for sequence in (1..=500).rev() {
        entries.push(Owned::new(b"hot", sequence * 2, Some(&[b'v'; 20])));
    }
    entries.push(Owned::new(b"hotter", 7, None));
    let options = TableOptions {
        block_bytes: 256,
        ..plain()
    };
    let (meta, bytes) = write(&entries, &options);
    for source in SOURCES {
        let table = open(bytes.clone(), &meta, source).unwrap();
        for sequence in 1..=1001 {
            let expected = (sequence / 2 * 2).min(1000);
            let found = get(&table, b"hot", sequence).unwrap();
            assert_eq!(
                found.map(|(trailer, _)| trailer.sequence()),
                (expected > 0).then_some(expected)
            );
        }
        assert_eq!(get(&table, b"hot", 1).unwrap(), None);
        let mut damage = Vec::new();
        table.verify(&mut damage, &mut |_, _| Ok(())).unwrap();
        assert!(damage.is_empty());
    }
}

/// The largest entries, and blocks with wide slots.
#[test]
fn large_entries_and_blocks() {
    let huge_key = vec![b'k'; crate::limits::KEY_BYTES_MAX];
    let huge_value = vec![b'v'; crate::limits::VALUE_BYTES_IN_PLACE_MAX];
    let mut entries = vec![Owned::new(b"a", 1, Some(b"small"))];
    entries.push(Owned::new(&huge_key, 2, Some(&huge_value)));
    for number in 0..40_000u32 {
        entries.push(Owned::new(
            format!("m{number:06}").as_bytes(),
            3,
            Some(b"x"),
        ));
    }
    for compression in [Compression::None, Compression::Lz4] {
        let options = TableOptions {
            block_bytes: 1 << 20,
            compression,
            ..plain()
        };
        let (meta, bytes) = write(&entries, &options);
        for source in SOURCES {
            let table = open(bytes.clone(), &meta, source).unwrap();
            for entry in entries.iter().step_by(97).chain(&entries[1..2]) {
                let found = get(&table, &entry.key, SEQUENCE_MAX).unwrap();
                assert_eq!(found, Some((entry.trailer, entry.value.clone())));
            }
            assert!(scan(&mut table.sequential_cursor(0)).unwrap() == entries);
        }
    }
}

#[test]
fn pinned_values_outlive_the_table() {
    let (meta, bytes) = write(&[Owned::new(b"k", 1, Some(b"value"))], &plain());
    for source in SOURCES {
        let table = open(bytes.clone(), &meta, source).unwrap();
        let mut read = PointRead::default();
        let found = table.get(b"k", key_hash(b"k"), 9, &mut read);
        let pinned = found.unwrap().unwrap().pin();
        drop(table);
        assert_eq!(&*pinned, b"value");
    }
}

#[test]
fn counters_count_the_work_of_a_read() {
    let entries: Vec<Owned> = (0..1000u32)
        .map(|number| Owned::new(format!("{number:04}").as_bytes(), 1, Some(&[0; 100])))
        .collect();
    let (meta, bytes) = write(&entries, &plain());
    for source in SOURCES {
        let table = open(bytes.clone(), &meta, source).unwrap();
        let mut read = PointRead::default();
        for _ in 0..2 {
            let found = table.get(b"0500", key_hash(b"0500"), 9, &mut read);
            assert!(found.unwrap().is_some());
        }
        assert_eq!(read.counters.runs_probed, 2);
        assert_eq!(read.counters.block_reads, 2);
        assert_eq!(read.counters.block_loads, 1);
        assert!(read.counters.block_load_bytes > 3000);
        assert_eq!(
            (read.counters.filter_probes, read.counters.filter_rejects),
            (2, 0)
        );
        let mut read = PointRead::default();
        for number in 0..1000u32 {
            let key = format!("x{number:04}").into_bytes();
            assert_eq!(
                table
                    .get(&key, key_hash(&key), 9, &mut read)
                    .unwrap()
                    .map(|found| found.trailer()),
                None
            );
        }
        assert_eq!(
            read.counters.filter_rejects + read.counters.filter_false_positives,
            1000
        );
        assert!(read.counters.filter_false_positives < 40);
    }
}

proptest! {
    /// A search for older versions is spared only if there are none.
    #[test]
    fn older_versions_are_known(entries in entries(), options in options()) {
        let (meta, bytes) = write(&entries, &options);
        for source in SOURCES {
            let table = open(bytes.clone(), &meta, source).unwrap();
            for (at, entry) in entries.iter().enumerate() {
                let (key, sequence) = (&entry.key, entry.trailer.sequence());
                let mut read = PointRead::default();
                let found = table.get(key, key_hash(key), sequence, &mut read).unwrap();
                let has_older = entries.get(at + 1).is_some_and(|next| next.key == *key);
                prop_assert!(table.may_have_older(&found.unwrap()) || !has_older);
            }
        }
    }
}

#[test]
fn a_search_for_older_versions_is_spared() {
    let entry = |key: &[u8], sequence| Owned::new(key, sequence, Some(b"value"));
    let vfs = MemoryVfs::default();
    let one = [
        entry(b"a", 1),
        entry(b"b", 4),
        entry(b"b", 3),
        entry(b"bb", 2),
    ];
    let first = write_to(&vfs, NUMBER, &one, &plain());
    let second = append(
        &vfs,
        &first,
        14,
        &[entry(b"a", 9), entry(b"c", 8)],
        &plain(),
    );
    let file = || vfs.file(Path::new(&file_name(NUMBER)));
    let may_have_older = |meta: &FileMeta, key: &[u8], sequence| {
        let table = open_file(file(), meta, context(BlockSource::Buffered)).unwrap();
        let mut read = PointRead::default();
        let found = table.get(key, key_hash(key), sequence, &mut read);
        table.may_have_older(&found.unwrap().unwrap())
    };
    assert!(!may_have_older(&first, b"a", 9));
    assert!(may_have_older(&first, b"b", 9));
    assert!(!may_have_older(&first, b"b", 3), "the next key is longer");
    assert!(
        may_have_older(&first, b"bb", 9),
        "the next block may have some"
    );
    assert!(
        may_have_older(&second, b"a", 9),
        "the first segment has one"
    );
}
