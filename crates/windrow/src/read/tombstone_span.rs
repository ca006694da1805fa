//! A stretch of keys in which nothing is visible, so that seeks need not step over what was deleted
//! there.
//!
//! A queue deletes at its front and asks for its first key, again and again; each time every tombstone
//! at the front would be passed anew. So a keyspace remembers one stretch of keys, from a place where
//! seeks begin to the first visible key behind it; where there is none, to the last key that was
//! deleted, so that what the queue takes in later does not end the stretch.
//!
//! A stretch is *dead since* S: no reader at S or later sees a key in it. That stays true until a value
//! is written into it, whatever is flushed or merged. A reader may stand at more than what its sources
//! hold, since memtables may have rotated while it took its sequence number: they are complete up to
//! what was visible before. Writers check, readers remember:
//!
//! 1. A writer notes its sequence number in `newest`, then looks at `generation`, then, if there is a
//!    stretch and its key lies in it, forgets the stretch; all that before the write is visible.
//! 2. A seek that has passed over many entries *proposes* the stretch it has found dead: it publishes
//!    the proposal, counts `generation` up, and only then reads `newest`, as V. A writer that did not
//!    see the proposal has noted its number before, so V covers it; any other takes the proposal back.
//! 3. A later seek by a reader who is complete up to V, and so passes all those writes, that finds the
//!    proposed stretch dead again makes it count, since its own sequence number.
//!
//! Invariants:
//! - I1: A stretch that counts is dead for every reader who is complete up to `since` and took its
//!   sequence number before it looked. Another may hold a key that was removed in it, and not the one
//!   at its end that came for it.
//!
//! Concurrency: steps 1 and 2 rest on the one order of sequentially consistent operations on `newest`
//! and `generation`. Changes are made under a lock; a writer takes it only to forget a stretch.

use crate::base::SequenceNumber;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex, Shared};

/// A seek that passes over fewer entries is not worth remembering.
pub(super) const PASSED_MIN: u32 = 16;

/// The stretch of a keyspace, if it has one.
#[derive(Debug)]
pub(crate) struct TombstoneSpan {
    span: ArcSwap<Span>,
    /// How many proposals there were.
    generation: AtomicU64,
    /// The largest sequence number of any value that was written.
    newest: AtomicU64,
    changes: Mutex<()>,
}

/// Keys from `from` to before `to`, dead since `since`; none where both are the same.
#[derive(Debug, Clone, Default)]
struct Span {
    from: Box<[u8]>,
    to: Box<[u8]>,
    since: SequenceNumber,
    proposed: Option<Proposed>,
}

/// What may become a stretch: from the stretch's `from` to before `to`.
#[derive(Debug, Clone)]
struct Proposed {
    to: Box<[u8]>,
    /// Writes that did not see the proposal have at most this sequence number.
    after: SequenceNumber,
}

/// Up to where a reader sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPoint {
    /// It sees nothing newer.
    pub(crate) sequence: SequenceNumber,
    /// It sees everything up to here; at most `sequence`.
    pub(crate) complete: SequenceNumber,
}

impl Span {
    /// Whether a value for `key` ends the stretch or its proposal.
    fn is_ended_by(&self, key: &[u8]) -> bool {
        let proposed = self.proposed.as_ref().map_or(&self.to, |it| &it.to);
        *self.from <= *key && (*key < *self.to || *key < **proposed)
    }

    fn counts(&self) -> bool {
        self.from < self.to
    }
}

impl Default for TombstoneSpan {
    fn default() -> Self {
        Self {
            span: ArcSwap::from_pointee(Span::default()),
            generation: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            changes: Mutex::default(),
        }
    }
}

impl TombstoneSpan {
    /// Tells of a value for `key` under `sequence`, before anybody can see it.
    #[inline]
    pub(crate) fn note_write(&self, key: &[u8], sequence: SequenceNumber) {
        self.newest.fetch_max(sequence, Ordering::SeqCst);
        if self.generation.load(Ordering::SeqCst) > 0 && self.span.load().is_ended_by(key) {
            self.forget();
        }
    }

    #[cold]
    fn forget(&self) {
        let changing = self.changes.lock();
        self.span.store(Shared::new(Span::default()));
        drop(changing);
    }

    /// Where a seek for `key` by a reader may begin instead: calls `seek` with that key if there is
    /// such a place (I1).
    #[inline]
    pub(crate) fn skip<R>(
        &self,
        key: &[u8],
        reader: ReadPoint,
        seek: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        if self.generation.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let span = self.span.load();
        let holds = span.since <= reader.complete && *span.from <= *key && *key < *span.to;
        holds.then(|| seek(&span.to))
    }

    /// Tells that a seek from `from` by a reader has passed over `passed` entries and found nothing
    /// before `to`.
    #[inline]
    pub(crate) fn found(&self, from: &[u8], to: &[u8], reader: ReadPoint, passed: u32) {
        if passed >= PASSED_MIN && from < to {
            self.remember(from, to, reader);
        }
    }

    #[cold]
    fn remember(&self, from: &[u8], to: &[u8], reader: ReadPoint) {
        let changing = self.changes.lock();
        let mut next = Span::clone(&self.span.load());
        let covers = |next: &Span, end: &[u8]| from <= &*next.from && end <= to;
        match next.proposed.take() {
            Some(proposed) if covers(&next, &proposed.to) => {
                if reader.complete < proposed.after {
                    // Writes that were under way may be missing from what this reader sees. To propose
                    // anew would put it off for as long as there are writers.
                    return;
                }
                next.to = proposed.to;
                next.since = reader.sequence;
            }
            _ if next.counts() && covers(&next, &next.to) => {}
            // Something else is asked for now.
            _ => {
                next = Span {
                    from: from.into(),
                    to: from.into(),
                    ..Span::default()
                };
            }
        }
        if *to > *next.to {
            let propose = |after| Proposed {
                to: to.into(),
                after,
            };
            next.proposed = Some(propose(SequenceNumber::MAX));
            self.span.store(Shared::new(next.clone()));
            self.generation.fetch_add(1, Ordering::SeqCst);
            next.proposed = Some(propose(self.newest.load(Ordering::SeqCst)));
        }
        self.span.store(Shared::new(next));
        drop(changing);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{ReadPoint, TombstoneSpan};

    /// The sight of a reader who misses nothing.
    fn at(sequence: u64) -> ReadPoint {
        ReadPoint {
            sequence,
            complete: sequence,
        }
    }

    /// Where a seek for `key` at `sequence` begins.
    fn skip(span: &TombstoneSpan, key: &[u8], sequence: u64) -> Option<Vec<u8>> {
        span.skip(key, at(sequence), <[u8]>::to_vec)
    }

    #[test]
    fn what_is_found_twice_counts_until_it_is_written_to() {
        let span = TombstoneSpan::default();
        span.note_write(b"m", 5);
        span.found(b"", b"k", at(7), 15);
        span.found(b"", b"k", at(7), 15);
        assert_eq!(skip(&span, b"", 9), None, "too little was passed");
        span.found(b"", b"k", at(7), 16);
        assert_eq!(skip(&span, b"", 9), None, "once");
        span.found(b"", b"l", at(8), 16);
        assert_eq!(skip(&span, b"", 8), Some(b"k".to_vec()));
        assert_eq!(skip(&span, b"a", 9), Some(b"k".to_vec()));
        assert_eq!(skip(&span, b"", 7), None, "a reader of before");
        assert_eq!(skip(&span, b"k", 9), None, "behind it");
        // The stretch grows.
        span.found(b"", b"m", at(9), 16);
        assert_eq!(skip(&span, b"", 9), Some(b"l".to_vec()));
        span.note_write(b"m", 10);
        assert_eq!(skip(&span, b"", 10), Some(b"l".to_vec()));
        span.note_write(b"a", 11);
        assert_eq!(skip(&span, b"", 11), None);
    }

    #[test]
    fn a_write_takes_a_proposal_back() {
        let span = TombstoneSpan::default();
        span.found(b"", b"k", at(7), 99);
        span.note_write(b"b", 8);
        span.found(b"", b"k", at(7), 99);
        assert_eq!(skip(&span, b"", 9), None);
        // That was a proposal after the write, which a reader of before cannot make count.
        span.found(b"", b"k", at(7), 99);
        assert_eq!(skip(&span, b"", 9), None);
        span.found(b"", b"k", at(8), 99);
        assert_eq!(skip(&span, b"", 9), Some(b"k".to_vec()));
    }

    #[test]
    fn a_reader_of_before_does_not_put_a_proposal_off() {
        let span = TombstoneSpan::default();
        span.note_write(b"x", 8);
        span.found(b"", b"k", at(7), 99);
        span.note_write(b"y", 9);
        span.found(b"", b"k", at(7), 99);
        span.found(b"", b"k", at(8), 99);
        assert_eq!(skip(&span, b"", 9), Some(b"k".to_vec()));
    }

    #[test]
    fn another_place_takes_over() {
        let span = TombstoneSpan::default();
        for _ in 0..2 {
            span.found(b"a", b"c", at(1), 99);
        }
        assert_eq!(skip(&span, b"b", 1), Some(b"c".to_vec()));
        for _ in 0..2 {
            span.found(b"x", b"z", at(1), 99);
        }
        assert_eq!(skip(&span, b"b", 1), None);
        assert_eq!(skip(&span, b"x", 1), Some(b"z".to_vec()));
    }
}
