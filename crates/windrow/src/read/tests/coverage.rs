//! Cursors over sources with range tombstones.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::segment_runs::Fixture;
use super::{Entry, KeyRange, ListCursor, MergingCursor, VisibleCursor, bound, key, list};
use crate::base::sync::Shared;
use crate::base::{ErrorKind, Kind, SequenceNumber, Trailer};
use crate::memtable::Memtable;
use crate::read::coverage::{Coverage, CoveringSource, RunRanges};
use crate::read::run::Run;

/// A write to key number `key`; for a range, up to before key number `end`.
#[derive(Debug, Clone, Copy)]
struct Write {
    kind: Kind,
    key: u8,
    end: u8,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let kinds = prop_oneof![
        4 => Just(Kind::Value),
        1 => Just(Kind::Tombstone),
        2 => Just(Kind::Operand),
        2 => Just(Kind::RangeTombstone),
    ];
    let write = (kinds, 0..12_u8, 1..6_u8).prop_map(|(kind, key, length)| Write {
        kind,
        key,
        end: key + length,
    });
    proptest::collection::vec(write, 0..60)
}

fn entries(writes: &[Write], first: SequenceNumber) -> Vec<Entry> {
    let entry = |(sequence, write): (u64, &Write)| {
        let value = match write.kind {
            Kind::Tombstone => Vec::new(),
            Kind::RangeTombstone => key(write.end),
            _ => sequence.to_le_bytes().to_vec(),
        };
        (key(write.key), Trailer::new(sequence, write.kind), value)
    };
    (first..).zip(writes).map(entry).collect()
}

/// A memtable with the range tombstones of `entries`.
fn memtable(entries: &[Entry]) -> Arc<Memtable> {
    let memtable = Memtable::new(&Arc::default());
    for (key, trailer, value) in entries {
        if trailer.is_range_tombstone() {
            memtable.insert_tombstone(key, *trailer, value);
        }
    }
    Arc::new(memtable)
}

/// A cursor over `writes`, of which the last ones are in the newest source. Sources end before these positions.
fn cursor(
    writes: &[Write],
    ends: &[usize],
    sequence: SequenceNumber,
    range: KeyRange,
) -> VisibleCursor<MergingCursor<ListCursor>> {
    let mut ends: Vec<_> = ends.iter().map(|end| *end.min(&writes.len())).collect();
    ends.extend([0, writes.len()]);
    ends.sort_unstable();
    let parts = ends.windows(2).rev();
    let parts: Vec<_> = parts
        .map(|ends| entries(&writes[ends[0]..ends[1]], ends[0] as u64 + 1))
        .collect();
    let covering = parts.iter().enumerate().filter_map(|(position, entries)| {
        let memtable = memtable(entries);
        let source = CoveringSource::Memtable(Arc::clone(&memtable));
        memtable.has_ranges().then_some((position, source))
    });
    let coverage = Coverage::new(covering.collect(), sequence);
    let lists = parts.iter().cloned().map(ListCursor::new).collect();
    VisibleCursor::new(MergingCursor::new(lists), sequence, range).covered_by(coverage)
}

/// The operands and the value of each key, newest first.
fn visible_state(writes: &[Write], sequence: u64) -> BTreeMap<Vec<u8>, Vec<u64>> {
    let mut state: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for (at, write) in (1..=sequence).zip(writes) {
        let own = key(write.key);
        match write.kind {
            Kind::Value => drop(state.insert(own, vec![at])),
            Kind::Operand => state.entry(own).or_default().insert(0, at),
            Kind::RangeTombstone => state.retain(|it, _| *it < own || *it >= key(write.end)),
            _ => drop(state.remove(&own)),
        }
    }
    state
}

/// What the cursor shows, as [`visible_state`] has it.
fn shown(cursor: &VisibleCursor<MergingCursor<ListCursor>>) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let Some(unfolded) = cursor.unfolded() else {
        return vec![number(cursor.stored().0)];
    };
    let chain = unfolded.chain();
    let mut shown: Vec<_> = (0..chain.len()).map(|at| number(chain.get(at))).collect();
    shown.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
    let base = unfolded.base_bytes();
    shown.extend((!base.is_empty()).then(|| number(base)));
    shown
}

proptest! {
    #[test]
    fn a_reader_sees_the_state_at_its_sequence(
        writes in writes(),
        ends in proptest::collection::vec(0..60_usize, 0..4),
        sequence in 0..70_u64,
        lower in (0..3_u8, 0..13_u8),
        upper in (0..3_u8, 0..13_u8),
        walk in proptest::collection::vec((0..7_u8, 0..13_u8), 1..60),
    ) {
        let range = KeyRange { lower: bound(lower), upper: bound(upper) };
        let state: Vec<_> = visible_state(&writes, sequence).into_iter().filter(|(key, _)| {
            range.is_above_lower(key) && range.is_below_upper(key)
        }).collect();
        let mut cursor = cursor(&writes, &ends, sequence, range);
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
                prop_assert_eq!(shown(&cursor), &state[position].1[..]);
            }
        }
    }
}

/// The entries of a table whose checksums are right may be in any order. The hole leads to `a` or `z`, and from there the
/// cursor comes to the hole again.
#[test]
fn a_hole_that_leads_back_is_corruption() {
    let hole: Entry = (
        vec![b'b'],
        Trailer::new(9, Kind::RangeTombstone),
        vec![b'd'],
    );
    for (keys, is_backward) in [(b"czc", false), (b"cac", true)] {
        let older = ListCursor {
            entries: list_of(keys),
            ..ListCursor::default()
        };
        let newest = ListCursor::new(vec![hole.clone()]);
        let covering = CoveringSource::Memtable(memtable(std::slice::from_ref(&hole)));
        let coverage = Coverage::new(vec![(0, covering)], 9);
        let merged = MergingCursor::new(vec![newest, older]);
        let mut cursor = VisibleCursor::new(merged, 9, KeyRange::ALL).covered_by(coverage);
        let mut moved = if is_backward {
            cursor.seek_to_last()
        } else {
            cursor.seek_to_first()
        };
        for _ in 0..10 {
            if !matches!(moved, Ok(true)) {
                break;
            }
            moved = if is_backward {
                cursor.prev()
            } else {
                cursor.next()
            };
        }
        assert_eq!(moved.unwrap_err().kind(), ErrorKind::Corruption);
        assert!(!cursor.is_valid());
        assert!(cursor.next().is_err() && cursor.prev().is_err());
        assert!(cursor.seek(b"a").is_err() && cursor.seek_to_last().is_err());
    }
}

/// A file in a wrong level has a range tombstone that is older than an entry of a run below, or newer than one of a run
/// above. Whether an operand is in order is seen of each one by itself.
#[test]
fn a_range_tombstone_that_is_not_in_the_order_of_age_is_corruption() {
    let entry = |sequence, kind| (vec![b'c'], Trailer::new(sequence, kind), vec![0; 8]);
    let range = |sequence| {
        let trailer = Trailer::new(sequence, Kind::RangeTombstone);
        (vec![b'b'], trailer, vec![b'd'])
    };
    for (runs, is_ordered) in [
        ([vec![range(4)], vec![entry(3, Kind::Value)]], true),
        ([vec![range(4)], vec![entry(5, Kind::Value)]], false),
        ([vec![range(4)], vec![entry(5, Kind::Tombstone)]], false),
        ([vec![entry(5, Kind::Value)], vec![range(4)]], true),
        ([vec![entry(3, Kind::Value)], vec![range(4)]], false),
        ([vec![range(4), entry(3, Kind::Value)], vec![]], true),
        ([vec![range(4), entry(5, Kind::Value)], vec![]], true),
        (
            [
                vec![range(4), entry(6, Kind::Operand)],
                vec![entry(3, Kind::Operand)],
            ],
            true,
        ),
        (
            [
                vec![range(4), entry(6, Kind::Operand)],
                vec![entry(5, Kind::Operand)],
            ],
            false,
        ),
        (
            [
                vec![entry(6, Kind::Operand), entry(3, Kind::Operand)],
                vec![range(4)],
            ],
            false,
        ),
    ] {
        for is_backward in [false, true] {
            let covering = runs.iter().enumerate().filter_map(|(position, entries)| {
                let memtable = memtable(entries);
                let source = CoveringSource::Memtable(Arc::clone(&memtable));
                memtable.has_ranges().then_some((position, source))
            });
            let coverage = Coverage::new(covering.collect(), 9);
            let merged = MergingCursor::new(runs.iter().cloned().map(ListCursor::new).collect());
            let mut cursor = VisibleCursor::new(merged, 9, KeyRange::ALL).covered_by(coverage);
            let moved = if is_backward {
                cursor.seek_to_last()
            } else {
                cursor.seek_to_first()
            };
            assert_eq!(
                moved.is_ok(),
                is_ordered,
                "{runs:?}, backward: {is_backward}"
            );
            if let Err(error) = moved {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert!(!cursor.is_valid());
                assert!(cursor.next().is_err() && cursor.prev().is_err());
                assert!(cursor.seek(b"a").is_err());
            }
        }
    }
}

/// Entries of these keys in this order.
fn list_of(keys: &[u8]) -> Vec<Entry> {
    let trailer = Trailer::new(1, Kind::Value);
    keys.iter()
        .map(|key| (vec![*key], trailer, Vec::new()))
        .collect()
}

/// A hole of 180 keys in the middle of a list costs the list few moves, in either direction.
#[test]
fn a_hole_is_passed_at_once_in_older_sources() {
    let hole: Entry = (vec![10], Trailer::new(9, Kind::RangeTombstone), vec![190]);
    for is_backward in [false, true] {
        let mut older = list(8..192, 1);
        older.moves_until_error = Some(12);
        let newest = ListCursor::new(vec![hole.clone()]);
        let covering = CoveringSource::Memtable(memtable(std::slice::from_ref(&hole)));
        let coverage = Coverage::new(vec![(0, covering)], 9);
        let merged = MergingCursor::new(vec![newest, older]);
        let mut cursor = VisibleCursor::new(merged, 9, KeyRange::ALL).covered_by(coverage);
        let mut keys = Vec::new();
        let mut found = if is_backward {
            cursor.seek_to_last().unwrap()
        } else {
            cursor.seek_to_first().unwrap()
        };
        while found {
            keys.push(cursor.key()[0]);
            found = if is_backward {
                cursor.prev().unwrap()
            } else {
                cursor.next().unwrap()
            };
        }
        keys.sort_unstable();
        assert_eq!(keys, [8, 9, 190, 191]);
    }
}

/// The level above has a range tombstone behind all its other entries; the level below has files inside of it, which are
/// not opened, and keys behind it. One key of them is newer than a snapshot.
#[test]
fn a_range_tombstone_reaches_behind_the_entries_of_its_file() {
    let value = |number: u8, sequence| -> Entry {
        let trailer = Trailer::new(sequence, Kind::Value);
        (vec![number], trailer, vec![number])
    };
    let deleted: Entry = (vec![10], Trailer::new(50, Kind::RangeTombstone), vec![60]);
    let upper = vec![vec![vec![value(5, 40), deleted]], vec![vec![value(70, 41)]]];
    let lower = (0..10).map(|file| vec![(0..8).map(|at| value(8 * file + at, 1)).collect()]);
    let fixture = Fixture::new(&[upper, lower.collect()]);
    for (sequence, visible) in [(60, 10 + 20), (49, 80)] {
        for is_backward in [false, true] {
            let opened = fixture.opened();
            let levels = fixture.version.levels();
            let ranges = RunRanges::new(
                Run::OfLevel(Shared::clone(&levels[1]), 0),
                Arc::clone(&fixture.tables),
            );
            let coverage = Coverage::new(vec![(0, CoveringSource::Run(ranges))], sequence);
            let merged = MergingCursor::new(fixture.runs());
            let mut cursor = VisibleCursor::new(merged, sequence, KeyRange::ALL);
            cursor = cursor.covered_by(coverage);
            let mut keys = Vec::new();
            let mut found = if is_backward {
                cursor.seek_to_last().unwrap()
            } else {
                cursor.seek_to_first().unwrap()
            };
            while found {
                keys.push(cursor.key()[0]);
                found = if is_backward {
                    cursor.prev().unwrap()
                } else {
                    cursor.next().unwrap()
                };
            }
            if is_backward {
                keys.reverse();
            }
            assert_eq!(keys.len(), visible);
            assert!(keys.is_sorted());
            assert!(visible == 80 || keys.iter().all(|key| !(10..60).contains(key)));
            if visible < 80 && opened == 0 {
                // Both files above; below, those around the hole.
                assert!(fixture.opened() <= 8, "{}", fixture.opened());
            }
        }
    }
}
