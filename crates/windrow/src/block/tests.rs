//! Blocks: round trips, limits, and bytes that are no block.

use super::*;
use crate::base::key::{SEQUENCE_MAX, compare_entries};
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::{Direction, Kind, Trailer};
use proptest::prelude::*;

type Raw = (Vec<u8>, u64, Option<Vec<u8>>);

fn trailer_of(raw: &Raw) -> Trailer {
    let kind = if raw.2.is_some() {
        Kind::Value
    } else {
        Kind::Tombstone
    };
    Trailer::new(raw.1, kind)
}

/// The payload of one block with all of `entries`.
fn build(entries: &[Raw]) -> Vec<u8> {
    let (payload, count) = build_first(entries);
    assert_eq!(count, entries.len());
    payload
}

/// The payload of one block with the first of `entries`, and how many words of 64 bits can distinguish.
fn build_first(entries: &[Raw]) -> (Vec<u8>, usize) {
    let mut builder = BlockBuilder::default();
    let added = entries.iter().take_while(|raw| {
        let value = raw.2.as_deref().unwrap_or_default();
        builder.try_add(&raw.0, trailer_of(raw), value, usize::MAX)
    });
    let count = added.count();
    let expected = builder.block_bytes();
    let mut payload = Vec::new();
    builder.finish(&mut payload);
    assert_eq!(payload.len(), expected);
    (payload, count)
}

fn entries() -> impl Strategy<Value = Vec<Raw>> {
    let key = prop_oneof![
        proptest::collection::vec(0..3u8, 1..5),
        proptest::collection::vec(0..2u8, 7..10),
        (proptest::collection::vec(0..2u8, 120..140)),
    ];
    let value = proptest::option::of(prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..5),
        (100..300usize).prop_map(|length| vec![1; length]),
        (16_000..17_000usize).prop_map(|length| vec![2; length]),
    ]);
    let sequence = prop_oneof![1..10u64, 0..=SEQUENCE_MAX];
    proptest::collection::vec((key, sequence, value), 1..60).prop_map(|mut entries| {
        entries.sort_by(|left, right| compare_entries(&left.0, left.1, &right.0, right.1));
        entries.dedup_by(|left, right| left.0 == right.0 && left.1 == right.1);
        entries
    })
}

/// The key, trailer and value of entry `index`.
fn entry_at(layout: &Layout, bytes: &[u8], index: usize) -> Option<(Vec<u8>, Trailer, Vec<u8>)> {
    let entry = layout.entry(bytes, layout.slot(bytes, index)?)?;
    let suffix = bytes.get(entry.suffix..entry.value)?;
    let key = [layout.prefix(bytes)?, suffix].concat();
    let value = bytes.get(entry.value..entry.end)?.to_vec();
    Some((key, entry.step.trailer(), value))
}

fn check_present(stride: &Stride, raw: &Raw) {
    assert_eq!(stride.key(), raw.0);
    assert_eq!(stride.value(), raw.2.as_deref().unwrap_or_default());
    if raw.2.is_some() {
        assert_eq!(stride.kind(), Kind::Value);
    }
}

#[test]
fn a_stride_ends_before_an_entry_that_is_one_newer() {
    let entry = |number: u8| (vec![b'k', number], u64::from(number), Some(vec![number; 9]));
    let entries: Vec<Raw> = (1..20).map(entry).collect();
    let bytes = [build(&entries), vec![0; 60]].concat();
    let layout = Layout::read(&bytes, 0).unwrap();
    let first = layout
        .entry(&bytes, layout.slot(&bytes, 0).unwrap())
        .unwrap();
    let start = StrideStart {
        index: 0,
        kind: Kind::Value,
        key: &entries[0].0,
        value: first.value,
        end: first.end,
    };
    let reach = Reach {
        direction: Direction::Forward,
        sequence: 10,
        end: None,
    };
    let mut stride = Stride::new();
    assert!(stride.begin(
        &BlockBytes::Cached(bytes.as_slice().into()),
        &layout,
        start,
        reach
    ));
    let shown = (2..20).take_while(|_| stride.step() == Moved::ToValue);
    assert!(shown.eq(2..=10));
}

proptest! {
    // I2 of the builder, I1 of the layout.
    #[test]
    fn entries_round_trip_at_any_offset(
        entries in entries(),
        before in 0..20usize,
        behind in 0..20usize,
        probes in proptest::collection::vec(
            (any::<proptest::sample::Index>(), 0..=SEQUENCE_MAX, 0..4u8), 1..40),
    ) {
        let (payload, count) = build_first(&entries);
        let entries = &entries[..count];
        Layout::check(&payload).unwrap();
        let bytes = [vec![0xee; before], payload, vec![0xdd; behind]].concat();
        let layout = Layout::read(&bytes, before).unwrap();
        prop_assert_eq!(layout.count(), entries.len());
        for (index, raw) in entries.iter().enumerate() {
            let value = raw.2.clone().unwrap_or_default();
            let expected = (raw.0.clone(), trailer_of(raw), value);
            prop_assert_eq!(entry_at(&layout, &bytes, index), Some(expected));
        }
        for (index, sequence, change) in probes {
            let raw = index.get(entries);
            let (mut key, mut sequence) = (raw.0.clone(), sequence);
            match change {
                0 => sequence = raw.1,
                1 => key.push(0),
                2 => drop(key.pop()),
                _ => {}
            }
            let expected = entries.partition_point(
                |raw| compare_entries(&raw.0, raw.1, &key, sequence).is_lt());
            let position = layout.search(&bytes, &key, sequence).unwrap();
            prop_assert_eq!(position.index, expected);
            let has_key = |index: usize| entries.get(index).is_some_and(|raw| raw.0 == key);
            prop_assert_eq!(position.matches, has_key(expected));
            prop_assert_eq!(position.follows, expected > 0 && has_key(expected - 1));
            if expected < entries.len() {
                prop_assert_eq!(Some(position.offset), layout.slot(&bytes, expected));
            }
        }
    }

    // I3 of the layout
    #[test]
    fn repeated_keys_are_marked_and_no_others(entries in entries()) {
        let (mut payload, count) = build_first(&entries);
        let layout = Layout::check(&payload).unwrap();
        for index in 0..count {
            let offset = layout.slot(&payload, index).unwrap();
            let repeats = index > 0 && entries[index - 1].0 == entries[index].0;
            prop_assert_eq!(layout.entry(&payload, offset).unwrap().step.repeats_key(), repeats);
            let mark = layout::REPEATS.to_le_bytes()[0];
            payload[offset] ^= mark;
            prop_assert!(Layout::check(&payload).is_err());
            payload[offset] ^= mark;
        }
    }

    #[test]
    fn a_stride_takes_what_the_reader_sees_up_to_an_end(
        entries in entries(),
        start in any::<proptest::sample::Index>(),
        sequence in prop_oneof![1..10u64, 0..=SEQUENCE_MAX],
        end in proptest::option::of((any::<proptest::sample::Index>(), 0..3u8)),
        behind in 0..60usize,
    ) {
        let (payload, count) = build_first(&entries);
        let entries = &entries[..count];
        let bytes = [payload, vec![0xdd; behind]].concat();
        let layout = Layout::read(&bytes, 0).unwrap();
        let start = start.index(count);
        let entry = layout.entry(&bytes, layout.slot(&bytes, start).unwrap()).unwrap();
        let block = BlockBytes::Cached(bytes.as_slice().into());
        let end = end.map(|(index, change)| {
            let mut key = index.get(entries).0.clone();
            match change {
                1 => key.push(0),
                2 => drop(key.pop()),
                _ => {}
            }
            key
        });
        let repeats = |index: usize| index > 0 && entries[index - 1].0 == entries[index].0;
        let is_new_value = |index: usize| {
            let raw = &entries[index];
            raw.2.is_some() && raw.1 <= sequence && !repeats(index)
        };
        // Close to the end of the bytes a stride leaves the rest to the cursor.
        let left = |index| layout.slot(&bytes, index).map_or(0, |offset| bytes.len() - offset);
        let longest = entries.iter().map(|raw| raw.0.len()).max().unwrap_or(0);
        for direction in [Direction::Forward, Direction::Backward] {
            let mut stride = Stride::new();
            let start_entry = StrideStart {
                index: start,
                kind: entry.step.trailer().kind(),
                key: &entries[start].0,
                value: entry.value,
                end: entry.end,
            };
            let reach = Reach { direction, sequence, end: end.as_deref() };
            let begins = stride.begin(&block, &layout, start_entry, reach);
            let is_within = |index: usize| end.as_ref().is_none_or(|end| match direction {
                Direction::Forward => entries[index].0 < *end,
                Direction::Backward => entries[index].0 > *end,
            });
            prop_assert!(!begins || longest <= 63);
            let can_begin = match direction {
                Direction::Forward => start + 1 < count && is_within(start + 1),
                Direction::Backward => start > 0 && is_within(start),
            };
            prop_assert!(begins == can_begin || longest > 31 && !begins);
            if !begins {
                prop_assert!(stride.step() == Moved::Nowhere && !stride.step_back());
                continue;
            }
            if direction == Direction::Forward {
                let mut at = start;
                loop {
                    let moved = stride.step();
                    at += 1;
                    if moved == Moved::Nowhere {
                        let ends = at == count || !is_within(at);
                        prop_assert!(ends || left(at) < 64, "{at}");
                        break;
                    }
                    prop_assert!(is_within(at));
                    prop_assert_eq!(moved == Moved::ToValue, is_new_value(at));
                    let step = stride.last_step();
                    prop_assert_eq!(step.trailer(), trailer_of(&entries[at]));
                    prop_assert_eq!(step.repeats_key(), repeats(at));
                    check_present(&stride, &entries[at]);
                    prop_assert_eq!(stride.cursor_place(), (at, layout.slot(&bytes, at)));
                    prop_assert!(!stride.step_back());
                }
            } else {
                let mut at = start + 1;
                loop {
                    prop_assert_eq!(stride.cursor_place(), (at - 1, None));
                    prop_assert_eq!(stride.step(), Moved::Nowhere);
                    if !stride.step_back() {
                        let ends = at == 1 || !is_within(at - 1) || !is_new_value(at - 1);
                        prop_assert!(ends || left(at - 1) < 64, "{at}");
                        break;
                    }
                    at -= 1;
                    prop_assert!(at > 0 && is_within(at) && is_new_value(at));
                    check_present(&stride, &entries[at]);
                }
            }
            stride.end();
            prop_assert_eq!(stride.step(), Moved::Nowhere);
            prop_assert!(!stride.step_back());
        }
    }

    // I2 of the layout: nothing panics on bytes that are no block.
    #[test]
    fn damaged_blocks_never_panic(
        entries in entries(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        origin in 0..4usize,
    ) {
        let mut bytes = build_first(&entries).0;
        for (at, byte) in damage {
            let length = bytes.len();
            // Mostly in the header and the slots.
            let at = at.index(length.min(60));
            bytes[if byte % 2 == 0 { at } else { length - 1 - at }] = byte;
        }
        if let Ok(layout) = Layout::check(&bytes) {
            prop_assert!((0..layout.count()).all(|index| entry_at(&layout, &bytes, index).is_some()));
        }
        if let Some(layout) = Layout::read(&bytes, origin) {
            for index in 0..layout.count().min(100) {
                entry_at(&layout, &bytes, index);
            }
            for raw in &entries {
                layout.search(&bytes, &raw.0, raw.1);
            }
        }
    }

    #[test]
    fn checking_anything_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let checked = Layout::check(&bytes);
        prop_assert!(checked.is_err() || !bytes.is_empty());
    }
}

// I1 of the builder
#[test]
fn only_a_single_entry_exceeds_the_limit() {
    let mut builder = BlockBuilder::default();
    let trailer = Trailer::new(1, Kind::Value);
    assert!(builder.try_add(b"a", trailer, &[0; 500], 100));
    assert!(!builder.try_add(b"b", trailer, b"", 100));
    builder.finish(&mut Vec::new());
    let mut count = 0;
    while builder.try_add(format!("{count:05}").as_bytes(), trailer, b"value", 1000) {
        count += 1;
    }
    assert!(count > 50);
    let mut payload = Vec::new();
    builder.finish(&mut payload);
    assert!(
        payload.len() <= 1000 && payload.len() > 980,
        "{}",
        payload.len()
    );
}

#[test]
fn words_have_at_most_64_bits() {
    let mut builder = BlockBuilder::default();
    let mut add = |key: &[u8], sequence, value: &[u8]| {
        let trailer = Trailer::new(sequence, Kind::Value);
        builder.try_add(key, trailer, value, usize::MAX)
    };
    assert!(add(b"a", SEQUENCE_MAX, b""));
    // 5 bits for kind and mark, 56 for the sequence number.
    assert!(add(b"b", 0, &[0; 7]));
    assert!(!add(b"c", 0, &[0; 8]));
    assert!(!add(b"cc", 0, b""));
    let mut payload = Vec::new();
    builder.finish(&mut payload);
    let layout = Layout::check(&payload).unwrap();
    let (_, trailer, value) = entry_at(&layout, &payload, 0).unwrap();
    assert_eq!((trailer.sequence(), value.len()), (SEQUENCE_MAX, 0));
}

/// Changes one byte of a sound block and checks it.
fn check_with(
    payload: &[u8],
    at: usize,
    byte: u8,
) -> Result<Layout, crate::codec::reader::DecodeError> {
    let mut changed = payload.to_vec();
    changed[at] = byte;
    Layout::check(&changed)
}

#[test]
fn violations_of_the_format_are_refused() {
    let payload = build(&[
        (b"ab".to_vec(), 7, Some(b"x".to_vec())),
        (b"ac".to_vec(), 7, None),
    ]);
    // Header, "a", then: word "b" "x", word "c", two slots. The words have a bit for the length of the value.
    let entries = layout::HEADER_BYTES + 1;
    let length = 1 << layout::MARK_BITS;
    assert_eq!(payload[entries], Kind::Value.code() | length);
    for kind in (6..=8).chain(12..=15) {
        let changed = check_with(&payload, entries, kind | length);
        assert!(changed.unwrap_err().unsupported);
    }
    // An entry that expires has more bytes.
    for kind in 9..=11 {
        let changed = check_with(&payload, entries, kind | length);
        assert!(!changed.unwrap_err().unsupported);
    }
    // A tombstone has no value.
    assert!(check_with(&payload, entries, length).is_err());
    // Slots point at their entries, lengths stay within.
    let changes = [
        (entries, length),
        (payload.len() - 1, 1),
        (payload.len() - 4, 1),
    ];
    for (at, bits) in changes {
        assert!(check_with(&payload, at, payload[at] ^ bits).is_err());
    }
    // The fields of lengths have bits for the longest keys and values, and no more.
    for (at, bits) in [(15, 18), (19, 22), (20, 0), (20, 9)] {
        assert!(check_with(&payload, at, bits).is_err());
    }
    // A key longer than any key can be.
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    assert!(Layout::check(&build(&[(long, 1, None)])).is_err());
    assert!(Layout::check(&build(&[(Vec::new(), 1, None)])).is_err());
}

#[test]
fn entries_out_of_order_are_refused_except_to_sort_them() {
    let entry = |key: &str, sequence| (key.into(), sequence, Some(vec![b'.'; 9]));
    let sound = build(&[entry("k0", 9), entry("k5", 8), entry("k5", 7)]);
    for (from, to) in [("5", "/"), ("0", "6")] {
        let mut payload = sound.clone();
        for at in 0..payload.len() - 1 {
            if payload[at] == from.as_bytes()[0] && payload[at + 1] == b'.' {
                payload[at] = to.as_bytes()[0];
            }
        }
        assert_ne!(payload, sound);
        let error = Layout::check(&payload).unwrap_err();
        assert!(format!("{error:?}").contains("not in order"));
        let (layout, disorder) = Layout::check_but_order(&payload).unwrap();
        assert_eq!((layout.count(), disorder), (3, layout.slot(&payload, 1)));
    }
    let (layout, disorder) = Layout::check_but_order(&sound).unwrap();
    assert_eq!((layout.count(), disorder), (3, None));
    // Versions of one key from the oldest on.
    let layout_of = |sequences: [u64; 2]| {
        let mut builder = BlockBuilder::default();
        for sequence in sequences {
            let trailer = Trailer::new(sequence, Kind::Value);
            assert!(builder.try_add(b"k", trailer, b".", usize::MAX));
        }
        let mut payload = Vec::new();
        builder.finish(&mut payload);
        Layout::check(&payload)
    };
    assert!(layout_of([8, 7]).is_ok());
    assert!(layout_of([7, 8]).is_err() && layout_of([7, 7]).is_err());
}
