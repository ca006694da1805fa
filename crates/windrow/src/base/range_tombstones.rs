//! Range tombstones: deletions of all keys from a start to before an end.
//!
//! A range tombstone with sequence number T states a fact: every entry of its keyspace with a key in the range and a
//! sequence number below T is deleted. So a job may apply it to any entry, wherever both are stored; reads demand
//! the order of the runs (I1 of `read/coverage.rs`).
//!
//! A [`RangeTombstones`] answers which of many range tombstones cover a key. It is a segment tree: the starts and ends
//! divide the keys into pieces, one leaf each, and a tombstone stands at the O(log n) nodes that make up its range. A
//! search visits the nodes above one leaf, with a binary search in each. Fragments that list all their tombstones would
//! take n * n places for n tombstones that begin at one key, as those of a queue do; the tree takes n * log n.
//!
//! Concurrency: immutable.

use super::SequenceNumber;
use super::limits::KEY_BYTES_MAX;
use std::cmp::Ordering;
use std::sync::Arc;

/// A deletion of a range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    /// The first key.
    pub(crate) start: Arc<[u8]>,
    /// The first key behind the range, above the start; empty if there is no end.
    pub(crate) end: Arc<[u8]>,
    pub(crate) sequence: SequenceNumber,
}

/// A key up to which range tombstones are cut. All that reach behind it share one end, so they take little memory however long
/// the key is.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    /// The bytes right behind the key; no key, if that is as long as a key can be.
    behind: Arc<[u8]>,
}

impl Limit {
    /// The limit `key`.
    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            behind: [key, &[0]].concat().into(),
        }
    }

    fn key(&self) -> &[u8] {
        self.behind.split_last().map_or(&[], |(_, key)| key)
    }
}

impl RangeTombstone {
    /// Whether the range has `key`.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        *self.start <= *key && is_below(key, &self.end)
    }

    /// Whether the range has all keys from `smallest` to `largest`.
    pub(crate) fn covers_all(&self, smallest: &[u8], largest: &[u8]) -> bool {
        *self.start <= *smallest && is_below(largest, &self.end)
    }

    /// Adds the keys of `next` to the range, which begins first, if no key is between them. Returns whether it did.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let joins = self.end.is_empty() || next.start <= self.end;
        if joins && is_below_end(&self.end, &next.end) {
            self.end.clone_from(&next.end);
        }
        joins
    }

    /// This tombstone for the keys up to `limit` alone; `None` if it has none of them. It then has an end.
    pub(crate) fn up_to(&self, limit: &Limit) -> Option<Self> {
        if *self.start > *limit.key() {
            return None;
        }
        let reaches_behind = !is_below_end(&self.end, &limit.behind);
        let end = if reaches_behind {
            &limit.behind
        } else {
            &self.end
        };
        Some(Self {
            start: Arc::clone(&self.start),
            end: Arc::clone(end),
            sequence: self.sequence,
        })
    }

    /// The largest key that the range may have, if it has an end.
    pub(crate) fn largest(&self) -> &[u8] {
        largest_below(&self.end)
    }
}

/// Whether `key` is before `end`; an empty end is behind all keys.
pub(crate) fn is_below(key: &[u8], end: &[u8]) -> bool {
    end.is_empty() || key < end
}

/// Whether one end is before another one.
fn is_below_end(left: &[u8], right: &[u8]) -> bool {
    !left.is_empty() && is_below(left, right)
}

/// Whether a range tombstone may have this start and this end: a range of keys that tables can name.
pub(crate) fn is_range(start: &[u8], end: &[u8]) -> bool {
    is_below(start, end) && largest_below(end).len() <= KEY_BYTES_MAX
}

/// A bound of the keys before `end`, as small as it can be written: `end` itself, or what is right before it.
pub(crate) fn largest_below(end: &[u8]) -> &[u8] {
    match end.split_last() {
        Some((0, before)) if !before.is_empty() => before,
        _ => end,
    }
}

/// How many tombstones that cover a start are looked at in each list for one that covers a whole range. Without a bound n
/// ranges with one start and falling ends would cost n * n looks.
const AROUND_MAX: usize = 64;

/// Some range tombstones, for searches by key.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeTombstones {
    /// Ascending by sequence number, then by start.
    all: Box<[RangeTombstone]>,
    /// The bounds of the pieces, ascending and distinct.
    bounds: Box<[Bound]>,
    /// The nodes of the tree, as positions in `all`, ascending. The children of node i are 2i and 2i + 1, and the leaf of
    /// the piece from `bounds[j]` on is node `bounds.len() + j`.
    nodes: Box<[Box<[u32]>]>,
    /// The bytes of all these in memory.
    bytes: usize,
}

/// The start or the end of a tombstone, by its position.
#[derive(Debug, Clone, Copy)]
enum Bound {
    Start(u32),
    End(u32),
}

impl RangeTombstones {
    /// For `tombstones` in any order; at most 2^32.
    pub(crate) fn new(mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.sort_by(|left, right| {
            let by_sequence = left.sequence.cmp(&right.sequence);
            by_sequence.then_with(|| left.start.cmp(&right.start))
        });
        let mut set = Self {
            all: tombstones.into(),
            ..Self::default()
        };
        let mut bounds = Vec::with_capacity(2 * set.all.len());
        for (position, tombstone) in (0..).zip(&set.all) {
            bounds.push(Bound::Start(position));
            if !tombstone.end.is_empty() {
                bounds.push(Bound::End(position));
            }
        }
        bounds.sort_by(|left, right| set.key(*left).cmp(set.key(*right)));
        bounds.dedup_by(|left, right| set.key(*left) == set.key(*right));
        set.bounds = bounds.into();
        let mut nodes = vec![Vec::new(); 2 * set.bounds.len()];
        for (position, tombstone) in (0..).zip(&set.all) {
            let count = set.bounds.len();
            let from = count + set.bounds_below(&tombstone.start);
            let to = match &*tombstone.end {
                [] => count,
                end => set.bounds_below(end),
            };
            for_each_node(from, count + to, |node| nodes[node].push(position));
        }
        set.nodes = nodes.into_iter().map(Vec::into_boxed_slice).collect();
        set.bytes = set.count_bytes();
        set
    }

    fn count_bytes(&self) -> usize {
        // Ends at one limit are shared.
        let mut last_end: Option<&Arc<[u8]>> = None;
        let keys = self.all.iter().map(|it| {
            let is_shared = last_end
                .replace(&it.end)
                .is_some_and(|last| Arc::ptr_eq(last, &it.end));
            it.start.len() + if is_shared { 0 } else { it.end.len() }
        });
        let nodes = self.nodes.iter().map(|node| size_of_val(&**node));
        keys.sum::<usize>()
            + nodes.sum::<usize>()
            + size_of_val(&*self.all)
            + size_of_val(&*self.bounds)
            + size_of_val(&*self.nodes)
    }

    fn key(&self, bound: Bound) -> &[u8] {
        match bound {
            Bound::Start(position) => &self.at(position).start,
            Bound::End(position) => &self.at(position).end,
        }
    }

    fn at(&self, position: u32) -> &RangeTombstone {
        &self.all[position as usize]
    }

    /// How many bounds are below `key`.
    fn bounds_below(&self, key: &[u8]) -> usize {
        self.bounds.partition_point(|bound| self.key(*bound) < key)
    }

    /// The tombstones, ascending by sequence number.
    pub(crate) fn all(&self) -> &[RangeTombstone] {
        &self.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The bytes that it holds in memory, itself included.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes
    }

    /// The tombstones of each node above the piece of `key`: ascending lists, which have all that cover it.
    fn lists(&self, key: &[u8]) -> impl Iterator<Item = &[u32]> {
        let bounds = self.bounds.partition_point(|bound| self.key(*bound) <= key);
        // Without a piece there is no node.
        let mut node = bounds
            .checked_sub(1)
            .map_or(0, |piece| self.bounds.len() + piece);
        std::iter::from_fn(move || {
            let list = &*self.nodes[Some(node).filter(|node| *node > 0)?];
            node /= 2;
            Some(list)
        })
    }

    /// How many tombstones of `list` are at most `sequence`.
    fn count_up_to(&self, list: &[u32], sequence: SequenceNumber) -> usize {
        list.partition_point(|position| self.at(*position).sequence <= sequence)
    }

    /// The newest tombstone that covers `key` and is at most `sequence`.
    pub(crate) fn newest(&self, key: &[u8], sequence: SequenceNumber) -> Option<&RangeTombstone> {
        let newest = |list: &[u32]| {
            let count = self.count_up_to(list, sequence);
            count.checked_sub(1).map(|last| list[last])
        };
        let newest = self.lists(key).filter_map(newest).max()?;
        Some(self.at(newest))
    }

    /// The oldest tombstone that covers `key` and is above `sequence`: the next newer one.
    pub(crate) fn next_newer(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
    ) -> Option<&RangeTombstone> {
        let next = |list: &[u32]| list.get(self.count_up_to(list, sequence)).copied();
        let next = self.lists(key).filter_map(next).min()?;
        Some(self.at(next))
    }

    /// The oldest tombstone that covers all of `tombstone` and is newer, among the first ones that cover its start: who
    /// finds none keeps more than is needed.
    pub(crate) fn next_around(&self, tombstone: &RangeTombstone) -> Option<&RangeTombstone> {
        let reaches = |position: &u32| !is_below_end(&self.at(*position).end, &tombstone.end);
        let next = |list: &[u32]| {
            let newer = &list[self.count_up_to(list, tombstone.sequence)..];
            newer.iter().take(AROUND_MAX).copied().find(reaches)
        };
        let next = self.lists(&tombstone.start).filter_map(next).min()?;
        Some(self.at(next))
    }

    /// The tombstone that begins at `start` with `sequence`.
    pub(crate) fn find(&self, start: &[u8], sequence: SequenceNumber) -> Option<&RangeTombstone> {
        let order = |it: &RangeTombstone| -> Ordering {
            let by_sequence = it.sequence.cmp(&sequence);
            by_sequence.then_with(|| (*it.start).cmp(start))
        };
        let found = self.all.binary_search_by(order).ok()?;
        self.all.get(found)
    }
}

/// Visits the nodes that make up the leaves from node `from` to before node `to`.
fn for_each_node(mut from: usize, mut to: usize, mut visit: impl FnMut(usize)) {
    while from < to {
        if from % 2 == 1 {
            visit(from);
            from += 1;
        }
        if to % 2 == 1 {
            to -= 1;
            visit(to);
        }
        (from, to) = (from / 2, to / 2);
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tombstone(start: &[u8], end: &[u8], sequence: SequenceNumber) -> RangeTombstone {
        RangeTombstone {
            start: start.into(),
            end: end.into(),
            sequence,
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..3_u8, 1..4)
    }

    /// Tombstones with distinct sequence numbers, of which some have no end.
    fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
        let range = (key(), key(), 0..8_u8);
        proptest::collection::vec(range, 0..40).prop_map(|ranges| {
            let made = (1..)
                .zip(ranges)
                .filter_map(|(sequence, (start, end, open))| {
                    let end = if open == 0 { Vec::new() } else { end };
                    is_below(&start, &end).then(|| tombstone(&start, &end, sequence))
                });
            made.collect()
        })
    }

    #[test]
    fn a_tombstone_is_cut_right_behind_the_limit() {
        let cut = |end: &[u8], limit: &[u8]| {
            let cut = tombstone(b"c", end, 1).up_to(&Limit::new(limit));
            cut.map(|it| (it.end.to_vec(), it.largest().to_vec()))
        };
        assert_eq!(cut(b"", b"m"), Some((b"m\0".to_vec(), b"m".to_vec())));
        assert_eq!(cut(b"z", b"m"), Some((b"m\0".to_vec(), b"m".to_vec())));
        assert_eq!(cut(b"m\0", b"m"), Some((b"m\0".to_vec(), b"m".to_vec())));
        assert_eq!(cut(b"m", b"m"), Some((b"m".to_vec(), b"m".to_vec())));
        assert_eq!(cut(b"f", b"m"), Some((b"f".to_vec(), b"f".to_vec())));
        assert_eq!(cut(b"f", b"c"), Some((b"c\0".to_vec(), b"c".to_vec())));
        assert_eq!(cut(b"f", b"b"), None);
    }

    proptest! {
        #[test]
        fn the_tree_agrees_with_a_list(
            list in tombstones(),
            keys in proptest::collection::vec(key(), 1..20),
            sequence in 0..45_u64,
        ) {
            let set = RangeTombstones::new(list.iter().rev().cloned().collect());
            prop_assert_eq!(set.all(), &list[..]);
            for key in &keys {
                let covering = || list.iter().filter(|it| it.covers(key));
                let newest = covering().rev().find(|it| it.sequence <= sequence);
                prop_assert_eq!(set.newest(key, sequence), newest);
                let next = covering().find(|it| it.sequence > sequence);
                prop_assert_eq!(set.next_newer(key, sequence), next);
            }
            for own in &list {
                let around = list.iter().find(|it| {
                    let reaches = it.end.is_empty() || !own.end.is_empty() && own.end <= it.end;
                    it.sequence > own.sequence && it.start <= own.start && reaches
                });
                prop_assert_eq!(set.next_around(own), around);
                prop_assert_eq!(set.find(&own.start, own.sequence), Some(own));
                prop_assert_eq!(set.find(&own.start, own.sequence + 100), None);
            }
        }

        #[test]
        fn many_tombstones_of_one_start_take_little_space(count in 1..200_u64) {
            let at = |sequence: u64| tombstone(b"a", format!("b{sequence:03}").as_bytes(), sequence);
            let set = RangeTombstones::new((1..=count).map(at).collect());
            let places: usize = set.nodes.iter().map(|node| node.len()).sum();
            prop_assert!(places <= 20 * set.all.len());
        }
    }
}
