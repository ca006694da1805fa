//! An ordered set of spans: ranges of keys that cursors have passed and found empty, each since a sequence number
//! ([`tombstone_spans`](super::tombstone_spans) says what that means for spans and for proposals).
//!
//! A new span joins those that it meets, and a write cuts its key out of a span and leaves the rest.
//!
//! A set is bounded in number and in bytes. A span is worth the entries that a cursor has passed to find it, and the span
//! that leaves is the one worth least, as far as it was not used lately: `GreedyDual` (Young, "The k-server dual and
//! loose competitiveness for paging", 1994), whose clock is the worth at which the last span has left. So one scan that
//! meets many short gaps does not take away the spans of queues. A span that was cut [`CUTS_MAX`] times without a use
//! leaves as well. Otherwise an insertion of many keys into it would cut it each time.
//!
//! Invariant: the spans are disjoint and ascending, none is empty, and no two of them touch.
//!
//! Concurrency: readers share a set and note their uses in it. A change is made to a copy of the list, not of its spans.

use crate::base::SequenceNumber;
use crate::base::key::next_key;
use crate::base::sync::Shared;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The most spans of a set.
const SPANS_MAX: usize = 128;

/// The most bytes of the spans of a set.
const BYTES_MAX: usize = 256 << 10;

/// A span is worth no more: compactions remove what cursors have passed, and a span that nobody uses must leave.
const WORTH_MAX: u64 = 1 << 16;

/// A span leaves after more cuts without a use.
const CUTS_MAX: u32 = 16;

/// The keys from `from` to before `to`, empty since `since`.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) from: Box<[u8]>,
    pub(super) to: Box<[u8]>,
    pub(super) since: SequenceNumber,
    /// The entries that a cursor passes without it.
    pub(super) worth: u64,
    /// The span with the least rank leaves first: its worth and the clock of the set at its last use.
    rank: AtomicU64,
    /// How often it was cut since its last use.
    cuts: AtomicU32,
}

impl Span {
    /// The bytes that it takes.
    fn bytes(&self) -> usize {
        let itself = size_of::<Self>() + size_of::<Shared<Self>>();
        itself + self.from.len() + self.to.len()
    }

    fn rank(&self) -> u64 {
        self.rank.load(Ordering::Relaxed)
    }
}

/// Disjoint spans.
#[derive(Debug, Clone, Default)]
pub(super) struct SpanSet {
    spans: Vec<Shared<Span>>,
    bytes: usize,
    /// The rank of the span that has left last.
    clock: u64,
}

impl SpanSet {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes that its spans take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The position of the first span that ends behind `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.spans.partition_point(|span| *span.to <= *key)
    }

    /// The span at `position`.
    #[inline]
    pub(super) fn get(&self, position: usize) -> &Span {
        &self.spans[position]
    }

    /// The position of the span that holds `key`.
    #[inline]
    pub(super) fn around(&self, key: &[u8]) -> Option<usize> {
        let position = self.position(key);
        let span = self.spans.get(position)?;
        (*span.from <= *key).then_some(position)
    }

    /// The position of the span that holds the keys right before `key`.
    pub(super) fn before(&self, key: &[u8]) -> Option<usize> {
        let position = self.spans.partition_point(|span| *span.to < *key);
        let span = self.spans.get(position)?;
        (*span.from < *key).then_some(position)
    }

    /// Whether one span holds all keys from `from` to before `to`.
    pub(super) fn covers(&self, from: &[u8], to: &[u8]) -> bool {
        let around = self.around(from);
        around.is_some_and(|position| *to <= *self.get(position).to)
    }

    /// Whether a span holds a key from `smallest` to `largest`.
    #[inline]
    pub(super) fn meets(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let span = self.spans.get(self.position(smallest));
        span.is_some_and(|span| *span.from <= *largest)
    }

    /// Notes that a cursor has skipped the span at `position`.
    #[inline]
    pub(super) fn note_use(&self, position: usize) {
        let span = self.get(position);
        let rank = self.clock.saturating_add(span.worth);
        // Readers share the words, so most of them leave them as they are.
        if span.rank() != rank {
            span.rank.store(rank, Ordering::Relaxed);
        }
        if span.cuts.load(Ordering::Relaxed) > 0 {
            span.cuts.store(0, Ordering::Relaxed);
        }
    }

    /// Adds the keys from `from` to before `to`, empty since `since`, which a cursor has found by passing `worth` entries.
    pub(super) fn add(&mut self, from: &[u8], to: &[u8], since: SequenceNumber, worth: u64) {
        if from >= to {
            return;
        }
        let first = self.spans.partition_point(|span| *span.to < *from);
        let count = self.spans[first..].partition_point(|span| *span.from <= *to);
        let met = &self.spans[first..first + count];
        let worth = met
            .iter()
            .fold(worth, |sum, it| sum.saturating_add(it.worth))
            .min(WORTH_MAX);
        let joined = Span {
            from: met.first().map_or(from, |it| from.min(&it.from)).into(),
            to: met.last().map_or(to, |it| to.max(&it.to)).into(),
            since: met.iter().fold(since, |since, it| since.max(it.since)),
            worth,
            rank: AtomicU64::new(self.clock.saturating_add(worth)),
            cuts: AtomicU32::new(0),
        };
        self.replace(first, count, [joined]);
    }

    /// Removes the keys from `smallest` to `largest`, both included.
    pub(super) fn cut(&mut self, smallest: &[u8], largest: &[u8]) {
        let first = self.position(smallest);
        let count = self.spans[first..].partition_point(|span| *span.from <= *largest);
        let behind = next_key(largest);
        let mut pieces = Vec::new();
        for span in &self.spans[first..first + count] {
            let cuts = span.cuts.load(Ordering::Relaxed) + 1;
            if cuts > CUTS_MAX {
                continue;
            }
            let behind = behind
                .as_ref()
                .map_or(&*span.to, |behind| behind.as_slice());
            let parts = [(&*span.from, smallest), (behind, &*span.to)];
            let parts = parts.iter().filter(|(from, to)| from < to);
            // Parts that join again are worth what they were.
            let worth = span.worth / parts.clone().count().max(1) as u64;
            pieces.extend(parts.map(|(from, to)| Span {
                from: (*from).into(),
                to: (*to).into(),
                since: span.since,
                worth,
                rank: AtomicU64::new(span.rank() - span.worth + worth),
                cuts: AtomicU32::new(cuts),
            }));
        }
        self.replace(first, count, pieces);
    }

    /// Removes the spans with keys from `from` to before `to` that are empty since `since` or earlier; returns them.
    pub(super) fn take(
        &mut self,
        from: &[u8],
        to: &[u8],
        since: SequenceNumber,
    ) -> Vec<Shared<Span>> {
        let is_due = |it: &mut Shared<Span>| it.since <= since && *it.from < *to && *from < *it.to;
        let taken: Vec<_> = self.spans.extract_if(.., is_due).collect();
        self.bytes -= taken.iter().map(|span| span.bytes()).sum::<usize>();
        taken
    }

    /// Whether a span holds a key from `from` to before `to`.
    pub(super) fn overlaps(&self, from: &[u8], to: &[u8]) -> bool {
        let span = self.spans.get(self.position(from));
        span.is_some_and(|span| *span.from < *to)
    }

    /// Replaces the `count` spans from position `first` on.
    fn replace(&mut self, first: usize, count: usize, spans: impl IntoIterator<Item = Span>) {
        let mut bytes = self.bytes;
        let added = spans.into_iter().map(|span| {
            bytes += span.bytes();
            Shared::new(span)
        });
        let removed: Vec<_> = self.spans.splice(first..first + count, added).collect();
        self.bytes = bytes - removed.iter().map(|span| span.bytes()).sum::<usize>();
        while self.spans.len() > SPANS_MAX || self.bytes > BYTES_MAX {
            let by_rank = self.spans.iter().enumerate();
            let Some((least, span)) = by_rank.min_by_key(|(_, span)| span.rank()) else {
                return;
            };
            self.clock = self.clock.max(span.rank());
            self.bytes -= self.spans.remove(least).bytes();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{BYTES_MAX, CUTS_MAX, SPANS_MAX, SpanSet};
    use proptest::prelude::*;

    /// Spans of keys of one byte, as a list that says for each key since when it is empty.
    type Model = [Option<u64>; 40];

    fn check(set: &SpanSet, model: &Model) {
        for (key, since) in (0_u8..).zip(model) {
            let key = [key];
            let found = set.around(&key).map(|position| set.get(position));
            assert_eq!(found.is_some(), since.is_some(), "key {key:?}");
            assert_eq!(set.meets(&key, &key), since.is_some());
            // A span is at least as young as each of its keys.
            assert!(found.is_none_or(|span| Some(span.since) >= *since));
            // A span that holds the keys right before this one holds the last one of them.
            let last = [key[0].wrapping_sub(1), 255];
            let is_before = key[0] > 0 && set.around(&last).is_some();
            assert_eq!(set.before(&key).is_some(), is_before, "before key {key:?}");
        }
        for pair in set.spans.windows(2) {
            assert!(
                pair[0].to < pair[1].from,
                "spans are disjoint and do not touch"
            );
        }
        let bytes: usize = set.spans.iter().map(|span| span.bytes()).sum();
        assert_eq!(set.bytes(), bytes);
    }

    proptest! {
        #[test]
        fn a_set_holds_what_was_added_and_not_cut(
            changes in proptest::collection::vec((any::<bool>(), 0..40u8, 0..12u8), 1..60),
        ) {
            let mut set = SpanSet::default();
            let mut model: Model = [None; 40];
            for (since, (adds, from, length)) in (1..).zip(changes) {
                let to = (from + length).min(39);
                if adds {
                    set.add(&[from], &[to], since, 1);
                    model[usize::from(from)..usize::from(to)].fill(Some(since));
                } else {
                    set.cut(&[from], &[to]);
                    model[usize::from(from)..=usize::from(to)].fill(None);
                    (0..set.spans.len()).for_each(|position| set.note_use(position));
                }
                check(&set, &model);
            }
        }
    }

    fn key(number: usize) -> Vec<u8> {
        format!("{number:06}").into_bytes()
    }

    #[test]
    fn of_spans_of_equal_worth_one_that_was_not_used_leaves() {
        let mut set = SpanSet::default();
        for number in 0..=SPANS_MAX {
            set.add(&key(10 * number), &key(10 * number + 5), 1, 20);
        }
        assert_eq!(set.spans.len(), SPANS_MAX);
        let used = [10, 200, 500];
        for number in used {
            set.note_use(set.around(&key(number)).unwrap());
        }
        for number in 0..SPANS_MAX - used.len() - 1 {
            set.add(
                &key(90_000 + 10 * number),
                &key(90_005 + 10 * number),
                1,
                20,
            );
        }
        assert_eq!(set.spans.len(), SPANS_MAX);
        assert!(
            used.iter()
                .all(|number| set.around(&key(*number)).is_some())
        );
    }

    #[test]
    fn many_short_gaps_take_no_long_span_away() {
        let mut set = SpanSet::default();
        for queue in 0..9 {
            set.add(&key(queue), &key(queue).repeat(2), 1, 5_000);
        }
        for gap in 0..3_000 {
            set.add(&key(1_000 + 10 * gap), &key(1_005 + 10 * gap), 1, 300);
            if gap % 100 == 0 {
                (0..9).for_each(|queue| set.note_use(set.around(&key(queue)).unwrap()));
            }
        }
        // But one that nobody uses goes in the end.
        for gap in 3_000..6_000 {
            set.add(&key(1_000 + 10 * gap), &key(1_005 + 10 * gap), 1, 300);
        }
        assert!(set.around(&key(0)).is_none());
    }

    #[test]
    fn parts_that_join_again_are_worth_what_they_were() {
        let mut set = SpanSet::default();
        set.add(&key(0), &key(100), 1, 1_000);
        for _ in 0..100 {
            set.cut(&key(50), &key(50));
            set.note_use(set.around(&key(0)).unwrap());
            set.note_use(set.around(&key(99)).unwrap());
            set.add(&key(50), &key(51), 1, 0);
        }
        assert_eq!((set.spans.len(), set.get(0).worth), (1, 1_000));
    }

    #[test]
    fn the_spans_that_are_old_enough_are_taken() {
        let mut set = SpanSet::default();
        for (number, since) in [(0, 5), (10, 9), (20, 5), (30, 5)] {
            set.add(&key(number), &key(number + 5), since, 1);
        }
        let taken = set.take(&key(4), &key(30), 8);
        let firsts: Vec<_> = taken.iter().map(|it| it.from.to_vec()).collect();
        assert_eq!(firsts, [key(0), key(20)]);
        assert!(set.overlaps(&key(0), &key(11)) && !set.overlaps(&key(15), &key(30)));
        set.cut(&[], &[255]);
        assert_eq!(set.bytes(), 0);
    }

    #[test]
    fn the_bytes_of_a_set_are_bounded() {
        let mut set = SpanSet::default();
        let long = |first: u8| vec![first; 60_000];
        for first in 0..10 {
            set.add(&long(2 * first), &long(2 * first + 1), 1, 1);
            assert!(set.bytes() <= BYTES_MAX && set.around(&long(2 * first)).is_some());
        }
        set.cut(&[0], &[255]);
        assert_eq!(set.bytes(), 0);
    }

    #[test]
    fn a_span_that_is_cut_and_not_used_leaves() {
        let mut set = SpanSet::default();
        set.add(&key(0), &key(1_000), 1, 20);
        let cuts = usize::try_from(CUTS_MAX).unwrap();
        for number in 0..=cuts {
            assert!(set.around(&key(999)).is_some());
            set.cut(&key(number), &key(number));
        }
        assert!(set.around(&key(999)).is_none());
        set.add(&key(0), &key(1_000), 1, 20);
        for number in 0..3 * cuts {
            set.cut(&key(number), &key(number));
            set.note_use(set.around(&key(999)).unwrap());
        }
        assert!(set.around(&key(999)).is_some());
    }
}
