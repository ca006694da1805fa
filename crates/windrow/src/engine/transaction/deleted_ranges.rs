//! The ranges of keys that a transaction has deleted, disjoint and ascending.
//!
//! Concurrency: owned by one thread.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::base::range_tombstones::is_below;

/// Deleted ranges, as starts and ends; an empty end is behind all keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeletedRanges {
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The bytes of all starts and ends.
    bytes: usize,
}

/// What an addition has done, to undo it.
#[derive(Debug)]
pub(super) struct Added {
    /// The start of the range that has the added keys.
    start: Vec<u8>,
    /// The ranges in whose place it stands.
    replaced: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Added {
    /// The bytes of its keys.
    pub(super) fn bytes(&self) -> usize {
        let replaced = self.replaced.iter();
        let bytes = replaced.map(|(start, end)| start.len() + end.len());
        self.start.len() + bytes.sum::<usize>()
    }
}

impl DeletedRanges {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The bytes of all starts and ends.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The starts and ends.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let ranges = self.ranges.iter();
        ranges.map(|(start, end)| (&start[..], &end[..]))
    }

    /// Adds the keys from `start` to before `end`, and joins the ranges that they touch.
    pub(super) fn add(&mut self, mut start: Vec<u8>, mut end: Vec<u8>) -> Added {
        if let Some((before, reached)) = self.around(&start) {
            start = before.to_vec();
            if !is_below_end(reached, &end) {
                end = reached.to_vec();
            }
        }
        let within =
            |(other, _): (&Vec<u8>, &Vec<u8>)| is_below(other, &end).then(|| other.clone());
        let from_start = (Bound::Included(&start[..]), Bound::Unbounded);
        let later = self.ranges.range::<[u8], _>(from_start);
        let touched: Vec<Vec<u8>> = later.map_while(within).collect();
        let mut replaced = Vec::new();
        for other in touched {
            if let Some(reached) = self.remove(&other) {
                if is_below_end(&end, &reached) {
                    end.clone_from(&reached);
                }
                replaced.push((other, reached));
            }
        }
        self.insert(start.clone(), end);
        Added { start, replaced }
    }

    /// Undoes the last addition that is not undone.
    pub(super) fn undo(&mut self, added: Added) {
        self.remove(&added.start);
        for (start, end) in added.replaced {
            self.insert(start, end);
        }
    }

    fn insert(&mut self, start: Vec<u8>, end: Vec<u8>) {
        self.bytes += start.len() + end.len();
        self.ranges.insert(start, end);
    }

    fn remove(&mut self, start: &[u8]) -> Option<Vec<u8>> {
        let end = self.ranges.remove(start)?;
        self.bytes -= start.len() + end.len();
        Some(end)
    }

    /// The range that has `key`.
    pub(super) fn around(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let up_to = (Bound::Unbounded, Bound::Included(key));
        let (start, end) = self.ranges.range::<[u8], _>(up_to).next_back()?;
        is_below(key, end).then_some((start, end))
    }
}

/// Whether one end is before another one.
fn is_below_end(left: &[u8], right: &[u8]) -> bool {
    !left.is_empty() && is_below(left, right)
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_have_the_keys_that_were_added(
            added in proptest::collection::vec((0..30_u8, 1..9_u8, 0..20_u8), 0..12),
        ) {
            let mut ranges = DeletedRanges::default();
            let mut deleted = [false; 60];
            for (start, length, open) in added {
                let end = if open == 0 { Vec::new() } else { vec![start + length] };
                let to = if open == 0 { 60 } else { start + length };
                deleted[usize::from(start)..usize::from(to)].fill(true);
                let before = ranges.clone();
                let added = ranges.add(vec![start], end.clone());
                ranges.undo(added);
                prop_assert_eq!(&ranges, &before);
                ranges.add(vec![start], end);
                let bytes = ranges.iter().map(|(start, end)| start.len() + end.len());
                prop_assert_eq!(ranges.bytes(), bytes.sum::<usize>());
                for (key, deleted) in (0..).zip(deleted) {
                    prop_assert_eq!(ranges.around(&[key]).is_some(), deleted, "{}", key);
                }
                let ends: Vec<_> = ranges.iter().flat_map(|(start, end)| [start, end]).collect();
                let is_last = |end: &&&[u8]| end.is_empty();
                prop_assert!(ends.iter().rev().skip(1).all(|end| !is_last(&end)));
                prop_assert!(ends[..ends.len().saturating_sub(1)].is_sorted());
            }
        }
    }
}
