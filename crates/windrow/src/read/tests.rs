//! Random walks of the merging and the visible cursor against a sorted list.

mod coverage;
mod segment_runs;

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::merge::MergingCursor;
use super::visible::{KeyRange, VisibleCursor};
use crate::base::key::compare_entries;
use crate::base::{Cursor, Error, ErrorKind, Kind, Result, SequenceNumber, Step, Trailer};
use crate::block::Striding;

type Entry = (Vec<u8>, Trailer, Vec<u8>);

/// A cursor over a sorted list, which can fail once at a given move.
#[derive(Debug, Clone, Default)]
struct ListCursor {
    entries: Vec<Entry>,
    position: Option<usize>,
    moves_until_error: Option<usize>,
    /// A position whose key differs from the key of the list.
    damaged: Option<(usize, Vec<u8>)>,
    /// The entry that another thread writes right after the next seek.
    written: Option<Entry>,
}

impl ListCursor {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|left, right| {
            compare_entries(&left.0, left.1.sequence(), &right.0, right.1.sequence())
        });
        Self {
            entries,
            ..Self::default()
        }
    }

    fn go(&mut self, position: Option<usize>) -> Result<()> {
        self.position = None;
        if let Some(moves) = &mut self.moves_until_error {
            if *moves == 0 {
                self.moves_until_error = None;
                return Err(Error::new(ErrorKind::Corruption, "planted"));
            }
            *moves -= 1;
        }
        self.position = position.filter(|&position| position < self.entries.len());
        Ok(())
    }

    fn entry(&self) -> &Entry {
        &self.entries[self.position.unwrap()]
    }
}

impl Cursor for ListCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.go(Some(0))
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.go(self.entries.len().checked_sub(1))
    }
    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()> {
        let position = self.entries.partition_point(|entry| {
            compare_entries(&entry.0, entry.1.sequence(), key, sequence).is_lt()
        });
        self.go(Some(position))?;
        if let Some(entry) = self.written.take() {
            let (key, trailer, _) = &entry;
            let at = self.entries.partition_point(|other| {
                compare_entries(&other.0, other.1.sequence(), key, trailer.sequence()).is_lt()
            });
            self.entries.insert(at, entry);
            self.position = self.position.map(|it| it + usize::from(at <= it));
        }
        Ok(())
    }
    fn next(&mut self) -> Result<Step> {
        let left = self.position;
        self.go(left.map(|left| left + 1))?;
        Ok(match (left, self.position) {
            (Some(left), Some(_)) => Step::to(self.trailer(), self.key() == self.entries[left].0),
            _ => Step::END,
        })
    }
    #[inline]
    fn is_ahead(&self) -> bool {
        false
    }

    fn arrive(&mut self) -> Result<()> {
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.go(self.position.and_then(|position| position.checked_sub(1)))
    }
    fn is_valid(&self) -> bool {
        self.position.is_some()
    }
    fn key(&self) -> &[u8] {
        match &self.damaged {
            Some((position, key)) if Some(*position) == self.position => key,
            _ => &self.entry().0,
        }
    }
    fn trailer(&self) -> Trailer {
        self.entry().1
    }
    fn value(&self) -> &[u8] {
        &self.entry().2
    }
}

impl Striding for ListCursor {}

/// Writes in commit order: (key, is a deletion, the oldest child that holds it).
fn writes() -> impl Strategy<Value = Vec<(u8, bool, usize)>> {
    proptest::collection::vec((0..12u8, prop::bool::weighted(0.3), 0..4usize), 0..60)
}

/// Keys in the order of their numbers. Many are prefixes of others.
fn key(number: u8) -> Vec<u8> {
    vec![number / 4; 1 + usize::from(number % 4)]
}

/// The newest child first: a write is in none that is older than that of an earlier write of its key.
fn children(writes: &[(u8, bool, usize)]) -> Vec<ListCursor> {
    let mut lists = vec![Vec::new(); 4];
    let mut newest = BTreeMap::new();
    for (index, &(number, deletion, child)) in writes.iter().enumerate() {
        let child = newest
            .get(&number)
            .map_or(child, |newest| child.min(*newest));
        newest.insert(number, child);
        let sequence = index as u64 + 1;
        let (kind, value) = if deletion {
            (Kind::Tombstone, Vec::new())
        } else {
            (Kind::Value, sequence.to_le_bytes().to_vec())
        };
        lists[child].push((key(number), Trailer::new(sequence, kind), value));
    }
    lists.into_iter().map(ListCursor::new).collect()
}

fn visible_state(writes: &[(u8, bool, usize)], sequence: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state = BTreeMap::new();
    for (index, &(number, deletion, _)) in writes.iter().enumerate() {
        let at = index as u64 + 1;
        if at > sequence {
            break;
        }
        if deletion {
            state.remove(&key(number));
        } else {
            state.insert(key(number), at.to_le_bytes().to_vec());
        }
    }
    state
}

fn bound(choice: (u8, u8)) -> Bound<Box<[u8]>> {
    let key = key(choice.1).into_boxed_slice();
    match choice.0 {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

proptest! {
    #[test]
    fn the_merged_stream_equals_one_list(
        writes in writes(),
        walk in proptest::collection::vec((0..6u8, 0..13u8, 0..70u64), 1..60),
    ) {
        let mut merged = MergingCursor::new(children(&writes));
        let all = children(&writes).into_iter().flat_map(|child| child.entries).collect();
        let mut single = ListCursor::new(all);
        for (step, number, sequence) in walk {
            let steps = [&mut merged as &mut dyn Cursor, &mut single].map(|cursor| {
                match step {
                    0 => cursor.seek_to_first().unwrap(),
                    1 => cursor.seek_to_last().unwrap(),
                    2 => cursor.seek(&key(number), sequence).unwrap(),
                    3 | 4 => return Some(cursor.next().unwrap()),
                    _ => cursor.prev().unwrap(),
                }
                None
            });
            prop_assert_eq!(steps[0], steps[1]);
            prop_assert_eq!(merged.is_valid(), single.is_valid());
            if single.is_valid() {
                prop_assert_eq!(merged.key(), single.key());
                prop_assert_eq!(merged.trailer(), single.trailer());
                prop_assert_eq!(merged.value(), single.value());
            }
        }
    }

    #[test]
    fn a_reader_sees_the_state_at_its_sequence(
        writes in writes(),
        sequence in 0..70u64,
        lower in (0..3u8, 0..13u8),
        upper in (0..3u8, 0..13u8),
        walk in proptest::collection::vec((0..7u8, 0..13u8), 1..60),
    ) {
        let range = KeyRange { lower: bound(lower), upper: bound(upper) };
        let state: Vec<_> = visible_state(&writes, sequence).into_iter().filter(|(key, _)| {
            range.is_above_lower(key) && range.is_below_upper(key)
        }).collect();
        let mut cursor =
            VisibleCursor::new(MergingCursor::new(children(&writes)), sequence, range);
        let mut expected: Option<usize> = None;
        for (step, number) in walk {
            let (found, position) = match step {
                0 => (cursor.seek_to_first().unwrap(), Some(0)),
                1 => (cursor.seek_to_last().unwrap(), state.len().checked_sub(1)),
                2 => {
                    let position = state.partition_point(|(other, _)| *other < key(number));
                    (cursor.seek(&key(number)).unwrap(), Some(position))
                }
                3 | 4 => (cursor.next().unwrap(), expected.map(|position| position + 1)),
                _ => (cursor.prev().unwrap(), expected.and_then(|position| position.checked_sub(1))),
            };
            expected = position.filter(|&position| position < state.len());
            prop_assert_eq!(found, expected.is_some());
            prop_assert_eq!(cursor.is_valid(), found);
            if let Some(position) = expected {
                prop_assert_eq!(cursor.key(), &state[position].0[..]);
                prop_assert_eq!(cursor.stored().0, &state[position].1[..]);
            }
        }
    }

    #[test]
    fn an_error_stays_an_error(
        writes in writes(),
        failing in 0..4usize,
        moves in 0..20usize,
        backward: bool,
    ) {
        let mut lists = children(&writes);
        lists[failing].moves_until_error = Some(moves);
        let mut cursor =
            VisibleCursor::new(MergingCursor::new(lists), SequenceNumber::MAX, KeyRange::ALL);
        let mut outcome = if backward { cursor.seek_to_last() } else { cursor.seek_to_first() };
        while matches!(outcome, Ok(true)) {
            outcome = if backward { cursor.prev() } else { cursor.next() };
        }
        if outcome.is_err() {
            prop_assert!(!cursor.is_valid());
            prop_assert!(cursor.next().is_err());
            prop_assert!(cursor.prev().is_err());
            prop_assert!(cursor.seek(&[0]).is_err());
        }
    }
}

/// Entries of one-byte keys, each with one value.
fn list(keys: std::ops::Range<u8>, sequence: SequenceNumber) -> ListCursor {
    let trailer = Trailer::new(sequence, Kind::Value);
    ListCursor::new(keys.map(|key| (vec![key], trailer, Vec::new())).collect())
}

#[test]
fn a_scan_stops_at_its_bound_before_newer_entries() {
    let mut behind = list(10..200, 9);
    behind.moves_until_error = Some(8);
    let range = KeyRange {
        lower: Bound::Unbounded,
        upper: Bound::Excluded(Box::new([5])),
    };
    let mut cursor = VisibleCursor::new(MergingCursor::new(vec![list(1..3, 1), behind]), 1, range);
    assert!(cursor.seek_to_first().unwrap());
    assert!(cursor.next().unwrap());
    assert!(!cursor.next().unwrap());

    let mut before = list(10..200, 9);
    before.moves_until_error = Some(8);
    let range = KeyRange {
        lower: Bound::Included(Box::new([201])),
        upper: Bound::Unbounded,
    };
    let sources = vec![list(201..203, 1), before];
    let mut cursor = VisibleCursor::new(MergingCursor::new(sources), 1, range);
    assert!(cursor.seek_to_last().unwrap());
    assert!(cursor.prev().unwrap());
    assert!(!cursor.prev().unwrap());
}

/// A write to a memtable between the two steps of a cursor that changes its direction.
#[test]
fn a_cursor_changes_direction_during_writes() {
    for (range, before) in [(1..2, Some([1])), (8..9, None)] {
        let children = vec![list(5..6, 1), list(range, 2)];
        let mut merged = MergingCursor::new(children);
        merged.seek(&[5], 1).unwrap();
        let entry = (vec![7], Trailer::new(9, Kind::Value), Vec::new());
        for child in merged.children_mut() {
            child.written = Some(entry.clone());
        }
        merged.prev().unwrap();
        let found = merged.is_valid().then(|| merged.key());
        assert_eq!(found, before.as_ref().map(<[u8; 1]>::as_slice));
    }
}

#[test]
fn keys_that_change_under_a_cursor_are_corruption() {
    let mut cursor = MergingCursor::new(vec![list(1..9, 2), list(1..9, 1)]);
    cursor.seek(&[5], SequenceNumber::MAX).unwrap();
    // So does a mapping if its file is damaged after the verification.
    cursor.children_mut()[1].damaged = Some((3, vec![6]));
    assert_eq!(cursor.prev().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(!cursor.is_valid());
    assert_eq!(cursor.next().unwrap_err().kind(), ErrorKind::Corruption);
}

/// A point read would find the entry of the first child, and a walk the newer one.
#[test]
fn children_that_are_not_in_the_order_of_their_age_are_corruption() {
    for sequence in [1, 2] {
        let lists = || vec![list(1..4, 1), list(3..6, sequence), list(7..8, 9)];
        let mut forward = MergingCursor::new(lists());
        forward.seek_to_first().unwrap();
        forward.next().unwrap();
        let found = forward.next().unwrap_err();
        assert_eq!(found.kind(), ErrorKind::Corruption);
        assert!(
            found.to_string().contains("older one holds a newer write"),
            "{found}"
        );
        assert!(forward.next().is_err());
        let mut backward = MergingCursor::new(lists());
        backward.seek_to_last().unwrap();
        let steps = std::iter::repeat_with(|| backward.prev());
        let found = steps.take(9).find_map(Result::err).unwrap();
        assert_eq!(found.kind(), ErrorKind::Corruption);
    }
}

#[test]
fn the_end_of_a_prefix_is_the_next_prefix() {
    let end = |prefix: &[u8]| KeyRange::prefix(prefix).upper;
    assert_eq!(end(b"ab"), Bound::Excluded(Box::from(*b"ac")));
    assert_eq!(end(b"a\xff\xff"), Bound::Excluded(Box::from(*b"b")));
    assert_eq!(end(b"\xff"), Bound::Unbounded);
    assert_eq!(end(b""), Bound::Unbounded);
}
