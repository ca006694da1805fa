//! A range of keys without visible keys, which seeks skip.
//!
//! A queue deletes at its front and seeks its first key again and again. Each seek would pass every
//! tombstone at the front. So a keyspace keeps one tombstone span: from the target of a seek to the first
//! visible key behind it. If no such key exists, the span ends at the last deleted key, so that later
//! insertions at the end of the queue do not end it.
//!
//! A span is *empty since* S: no reader at S or later sees a key in it. Only a write of a value into the
//! span ends this; flushes and compactions do not. The sequence number of a reader may be above the
//! entries of its sources, because a memtable may rotate while the reader takes its sequence number. The
//! sources are complete up to the sequence number that was visible before. Writers check and readers
//! propose:
//!
//! 1. A writer raises `newest` to its sequence number, then reads `generation`. If a span or proposal
//!    contains its key, it removes both. All that happens before the write is visible.
//! 2. A seek that has passed many entries *proposes* the span that it has found empty. It stores the
//!    proposal, increments `generation`, and only then reads `newest` as V. A writer that did not see the
//!    proposal has raised `newest` before, so V includes it; any other writer removes the proposal.
//! 3. A later seek by a reader that is complete up to V sees all those writes. If it also finds the
//!    proposed span empty, the span becomes valid since the sequence number of that reader.
//!
//! Invariants:
//! - I1: A valid span is empty for every reader that is complete up to `since` and took its sequence
//!   number before it read the span. Another reader may see a key that was deleted in the span and miss
//!   the key at its end that replaced it.
//!
//! Concurrency: steps 1 and 2 need the total order of sequentially consistent operations on `newest` and
//! `generation`. A lock guards changes; a writer takes it only to remove a span.

use crate::base::SequenceNumber;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Mutex, Shared};

/// The fewest passed entries of a seek that proposes a span.
pub(super) const PASSED_MIN: u32 = 16;

/// The tombstone span of a keyspace.
#[derive(Debug)]
pub(crate) struct TombstoneSpan {
    span: ArcSwap<Span>,
    /// The number of proposals so far.
    generation: AtomicU64,
    /// The largest sequence number of a written value.
    newest: AtomicU64,
    changes: Mutex<()>,
}

/// The keys from `from` to before `to`, empty since `since`. Equal bounds mean no span.
#[derive(Debug, Clone, Default)]
struct Span {
    from: Box<[u8]>,
    to: Box<[u8]>,
    since: SequenceNumber,
    proposed: Option<Proposed>,
}

/// A proposal: a span from the same `from` to before `to`.
#[derive(Debug, Clone)]
struct Proposed {
    to: Box<[u8]>,
    /// Writes that did not see the proposal have at most this sequence number.
    after: SequenceNumber,
}

/// The sequence numbers that a reader sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPoint {
    /// The reader sees nothing newer.
    pub(crate) sequence: SequenceNumber,
    /// The reader sees everything up to here; at most `sequence`.
    pub(crate) complete: SequenceNumber,
}

impl Span {
    /// Whether a value of `key` ends the span or its proposal.
    fn is_ended_by(&self, key: &[u8]) -> bool {
        self.is_ended_within(key, key)
    }

    /// Whether a value of a key from `smallest` to `largest` may end the span or its proposal.
    fn is_ended_within(&self, smallest: &[u8], largest: &[u8]) -> bool {
        let proposed = self.proposed.as_ref().map_or(&self.to, |it| &it.to);
        *self.from <= *largest && (*smallest < *self.to || *smallest < **proposed)
    }

    fn is_valid(&self) -> bool {
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
    /// Records the write of a value for `key` at `sequence`, before the write is visible.
    #[inline]
    pub(crate) fn note_write(&self, key: &[u8], sequence: SequenceNumber) {
        self.newest.fetch_max(sequence, Ordering::SeqCst);
        if self.generation.load(Ordering::SeqCst) > 0 && self.span.load().is_ended_by(key) {
            self.remove();
        }
    }

    /// Records the writes of values for keys from `smallest` to `largest` at `sequence`, before they are visible.
    pub(crate) fn note_writes(&self, smallest: &[u8], largest: &[u8], sequence: SequenceNumber) {
        self.newest.fetch_max(sequence, Ordering::SeqCst);
        if self.generation.load(Ordering::SeqCst) > 0
            && self.span.load().is_ended_within(smallest, largest)
        {
            self.remove();
        }
    }

    #[cold]
    fn remove(&self) {
        let changing = self.changes.lock();
        self.span.store(Shared::new(Span::default()));
        drop(changing);
    }

    /// Calls `seek` with the end of the span if the span contains `key` and is valid for `reader` (I1).
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

    /// Records that a seek from `from` has passed `passed` entries and found no visible key before `to`.
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
                    // The reader may not see concurrent writes. A new proposal would delay the span for
                    // as long as writers exist.
                    return;
                }
                next.to = proposed.to;
                next.since = reader.sequence;
            }
            _ if next.is_valid() && covers(&next, &next.to) => {}
            // The seek is outside the span, so a new span replaces it.
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

    /// The read point of a reader with complete sources.
    fn at(sequence: u64) -> ReadPoint {
        ReadPoint {
            sequence,
            complete: sequence,
        }
    }

    /// The key at which a seek for `key` at `sequence` begins, if the span contains `key`.
    fn skip(span: &TombstoneSpan, key: &[u8], sequence: u64) -> Option<Vec<u8>> {
        span.skip(key, at(sequence), <[u8]>::to_vec)
    }

    #[test]
    fn a_span_is_valid_from_the_second_seek_until_a_write_into_it() {
        let span = TombstoneSpan::default();
        span.note_write(b"m", 5);
        span.found(b"", b"k", at(7), 15);
        span.found(b"", b"k", at(7), 15);
        assert_eq!(skip(&span, b"", 9), None, "too few entries were passed");
        span.found(b"", b"k", at(7), 16);
        assert_eq!(skip(&span, b"", 9), None, "the span is only proposed");
        span.found(b"", b"l", at(8), 16);
        assert_eq!(skip(&span, b"", 8), Some(b"k".to_vec()));
        assert_eq!(skip(&span, b"a", 9), Some(b"k".to_vec()));
        assert_eq!(skip(&span, b"", 7), None, "an older reader");
        assert_eq!(skip(&span, b"k", 9), None, "behind the span");
        // The span grows.
        span.found(b"", b"m", at(9), 16);
        assert_eq!(skip(&span, b"", 9), Some(b"l".to_vec()));
        span.note_write(b"m", 10);
        assert_eq!(skip(&span, b"", 10), Some(b"l".to_vec()));
        span.note_write(b"a", 11);
        assert_eq!(skip(&span, b"", 11), None);
    }

    #[test]
    fn a_write_removes_a_proposal() {
        let span = TombstoneSpan::default();
        span.found(b"", b"k", at(7), 99);
        span.note_write(b"b", 8);
        span.found(b"", b"k", at(7), 99);
        assert_eq!(skip(&span, b"", 9), None);
        // The last seek proposed the span after the write, and an older reader cannot confirm it.
        span.found(b"", b"k", at(7), 99);
        assert_eq!(skip(&span, b"", 9), None);
        span.found(b"", b"k", at(8), 99);
        assert_eq!(skip(&span, b"", 9), Some(b"k".to_vec()));
    }

    #[test]
    fn an_older_reader_does_not_delay_a_proposal() {
        let span = TombstoneSpan::default();
        span.note_write(b"x", 8);
        span.found(b"", b"k", at(7), 99);
        span.note_write(b"y", 9);
        span.found(b"", b"k", at(7), 99);
        span.found(b"", b"k", at(8), 99);
        assert_eq!(skip(&span, b"", 9), Some(b"k".to_vec()));
    }

    #[test]
    fn a_span_elsewhere_replaces_the_span() {
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
