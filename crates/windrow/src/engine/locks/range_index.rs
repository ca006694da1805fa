//! Held ranges of one keyspace, in an order in which a search does not look at all of them.
//!
//! The ranges are sorted by their starts. The middle of a part of the order knows the range of that part that reaches
//! furthest. So a search leaves out a part that ends before the key, and everything that begins behind it: it takes
//! the logarithm of the number of ranges, and a step for each range around the key.
//!
//! I1. `furthest` is that of the present ranges: a change computes it anew. Ranges change when a transaction is prepared
//!     or ends; each write of the meantime searches.
//!
//! Concurrency: none of its own.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use super::{Mode, Owner};
use crate::read::visible::KeyRange;

/// A range, who holds it, and how.
#[derive(Debug)]
pub(super) struct HeldRange {
    pub(super) owner: Owner,
    pub(super) range: KeyRange,
    pub(super) mode: Mode,
}

/// Ranges that are not empty; see the module.
#[derive(Debug, Default)]
pub(super) struct RangeIndex {
    ranges: Vec<HeldRange>,
    /// At the middle of each part, the position of the range of the part with the last end.
    furthest: Vec<usize>,
    #[cfg(test)]
    changes: usize,
}

/// What a search looks for: where a range is to it.
struct Search<B, A> {
    /// Whether a range ends before it.
    ends_before: B,
    /// Whether a range begins behind it.
    begins_behind: A,
}

impl RangeIndex {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn add(&mut self, ranges: impl Iterator<Item = HeldRange>) {
        self.ranges.extend(ranges);
        self.ranges.sort_by(|one, other| {
            let starts = (&one.range.lower, &other.range.lower);
            compare_starts(starts.0, starts.1)
        });
        self.note_all();
    }

    /// Removes the ranges of `owner`. The others stay in their order.
    pub(super) fn remove(&mut self, owner: Owner) {
        self.ranges.retain(|it| it.owner != owner);
        self.note_all();
    }

    /// How often the ranges have changed.
    #[cfg(test)]
    #[cfg(not(any(loom, shuttle)))]
    pub(super) fn changes(&self) -> usize {
        self.changes
    }

    /// A range with `key` that `accepts` accepts.
    pub(super) fn find_around(
        &self,
        key: &[u8],
        accepts: impl Fn(&HeldRange) -> bool,
    ) -> Option<&HeldRange> {
        let search = Search {
            ends_before: |range: &KeyRange| !range.is_below_upper(key),
            begins_behind: |range: &KeyRange| !range.is_above_lower(key),
        };
        self.find(0..self.ranges.len(), &search, &accepts)
    }

    /// A range with a key of `other`, which is not empty, that `accepts` accepts.
    pub(super) fn find_over(
        &self,
        other: &KeyRange,
        accepts: impl Fn(&HeldRange) -> bool,
    ) -> Option<&HeldRange> {
        let search = Search {
            ends_before: |range: &KeyRange| range.ends_before(other),
            begins_behind: |range: &KeyRange| other.ends_before(range),
        };
        self.find(0..self.ranges.len(), &search, &accepts)
    }

    fn find<B: Fn(&KeyRange) -> bool, A: Fn(&KeyRange) -> bool>(
        &self,
        part: Range<usize>,
        search: &Search<B, A>,
        accepts: &impl Fn(&HeldRange) -> bool,
    ) -> Option<&HeldRange> {
        if part.is_empty() {
            return None;
        }
        let middle = middle_of(&part);
        let furthest = &self.ranges[self.furthest[middle]];
        if (search.ends_before)(&furthest.range) {
            return None;
        }
        let found = self.find(part.start..middle, search, accepts);
        if found.is_some() {
            return found;
        }
        let held = &self.ranges[middle];
        if (search.begins_behind)(&held.range) {
            return None;
        }
        if !(search.ends_before)(&held.range) && accepts(held) {
            return Some(held);
        }
        self.find(middle + 1..part.end, search, accepts)
    }

    /// I1
    fn note_all(&mut self) {
        #[cfg(test)]
        {
            self.changes += 1;
        }
        self.furthest.clear();
        self.furthest.resize(self.ranges.len(), 0);
        self.note_furthest(0..self.ranges.len());
    }

    /// Notes the furthest range of each part of `part`, and returns that of `part`.
    fn note_furthest(&mut self, part: Range<usize>) -> Option<usize> {
        if part.is_empty() {
            return None;
        }
        let middle = middle_of(&part);
        let sides = [part.start..middle, middle + 1..part.end];
        let mut furthest = middle;
        for side in sides {
            if let Some(other) = self.note_furthest(side) {
                let ends = [furthest, other].map(|it| &self.ranges[it].range.upper);
                if compare_ends(ends[0], ends[1]) == Ordering::Less {
                    furthest = other;
                }
            }
        }
        self.furthest[middle] = furthest;
        Some(furthest)
    }
}

fn middle_of(part: &Range<usize>) -> usize {
    part.start + part.len() / 2
}

/// In the order of the first keys.
pub(super) fn compare_starts(one: &Bound<Box<[u8]>>, other: &Bound<Box<[u8]>>) -> Ordering {
    fn start(bound: &Bound<Box<[u8]>>) -> Option<(&[u8], bool)> {
        match bound {
            Bound::Unbounded => None,
            Bound::Included(key) => Some((key, false)),
            Bound::Excluded(key) => Some((key, true)),
        }
    }
    start(one).cmp(&start(other))
}

pub(super) fn compare_ends(one: &Bound<Box<[u8]>>, other: &Bound<Box<[u8]>>) -> Ordering {
    fn end(bound: &Bound<Box<[u8]>>) -> (bool, &[u8], bool) {
        match bound {
            Bound::Unbounded => (true, &[], false),
            Bound::Included(key) => (false, key, true),
            Bound::Excluded(key) => (false, key, false),
        }
    }
    end(one).cmp(&end(other))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read::visible::is_ordered;

    fn bound() -> impl Strategy<Value = Bound<Box<[u8]>>> {
        (0..9_u8, 0..20_u8).prop_map(|(kind, key)| match kind {
            0 => Bound::Unbounded,
            1..5 => Bound::Included([key].into()),
            _ => Bound::Excluded([key].into()),
        })
    }

    fn range() -> impl Strategy<Value = KeyRange> {
        let bounds = (bound(), bound());
        let range = bounds.prop_map(|(lower, upper)| KeyRange { lower, upper });
        range.prop_filter("not empty", |range| is_ordered(range.bounds()))
    }

    proptest! {
        #[test]
        fn a_search_finds_what_a_look_at_all_finds(
            ranges in proptest::collection::vec((range(), 0..3_u64), 0..20),
            sought in range(),
            key in 0..21_u8,
            ended in 0..3_u64,
        ) {
            let held = |(range, owner): &(KeyRange, u64)| HeldRange {
                owner: Owner(*owner),
                range: range.clone(),
                mode: Mode::Shared,
            };
            let mut index = RangeIndex::default();
            for ranges in ranges.chunks(3) {
                index.add(ranges.iter().map(held));
            }
            index.remove(Owner(ended));
            let left: Vec<_> = ranges.iter().filter(|it| it.1 != ended).collect();
            prop_assert_eq!(index.is_empty(), left.is_empty());
            for owner in 0..3 {
                let own = || left.iter().filter(|it| it.1 == owner).map(|it| &it.0);
                let accepts = |it: &HeldRange| it.owner == Owner(owner);
                let key = [key];
                let around = own().any(|it| it.is_above_lower(&key) && it.is_below_upper(&key));
                prop_assert_eq!(index.find_around(&key, accepts).is_some(), around);
                let over = own().any(|it| !it.ends_before(&sought) && !sought.ends_before(it));
                prop_assert_eq!(index.find_over(&sought, accepts).is_some(), over);
            }
        }
    }
}
