//! Ranges of keys without visible keys, which cursors skip.
//!
//! A queue deletes at its front and seeks its first key again and again. Each seek would pass every tombstone at the
//! front. So a keyspace keeps *tombstone spans*: ranges of keys that cursors have passed and found empty. A cursor that
//! comes to a key of a span, by a seek or by steps, in either direction, continues behind the span.
//!
//! A span is *empty since* S: no reader at S or later sees a key in it. Only a write of a value into the span ends
//! this, and only for the key of the value; flushes and compactions do not. The sequence number of a reader may be above
//! the entries of its sources, because a memtable may rotate while the reader takes its sequence number. The
//! sources are complete up to the sequence number that was visible before. Writers check and readers propose:
//!
//! 1. A writer raises `newest` to its sequence number, then reads `generation`. It cuts its key out of the spans and
//!    out of the proposals. All that happens before the write is visible.
//! 2. A cursor that has passed many entries *proposes* the keys that it has found empty. It stores the proposal,
//!    stores a new `generation`, and only then reads `newest` as V. A writer that did not see the proposal has raised
//!    `newest` before, so V includes it; any other writer cuts its key out. A proposal that is stored stays until then:
//!    one for which the bounds leave no place is forgotten.
//! 3. A reader that is complete up to V sees all those writes. If it finds keys of the proposal empty, they are a span
//!    since the sequence number of that reader. If nobody writes, that is the reader that made the proposal, at
//!    once; otherwise a later one.
//!
//! Invariants:
//! - I1: A span is empty for every reader that is complete up to `since` and took its sequence number before it read
//!   the span. Another reader may see a key that was deleted in the span and miss the key at its end that replaced it.
//! - I2: Spans and proposals are bounded in number and bytes, and their bytes are counted.
//!
//! Two spans that meet are one: it is empty since the later of their sequence numbers. A part of a span is a span.
//!
//! Concurrency: steps 1 and 2 need the total order of sequentially consistent operations on `newest` and
//! `generation`. A lock guards changes; a writer takes it only if it writes into a span or a proposal.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use std::sync::Arc;

use super::span_set::SpanSet;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::base::sync::{ArcSwap, Guard, Mutex, Shared, keep_total_order};
use crate::base::{Held, MemoryTracker, SequenceNumber};

/// The tombstone spans of a keyspace.
#[derive(Debug)]
pub(crate) struct TombstoneSpans {
    found: ArcSwap<Found>,
    /// The number of changes so far, or 0 if there are no spans and no proposals.
    generation: AtomicU64,
    /// The largest sequence number of a written value.
    newest: AtomicU64,
    changes: Mutex<Changes>,
}

/// What guards changes.
#[derive(Debug)]
struct Changes {
    count: u64,
    /// The bytes of the spans.
    held: Held,
}

/// What cursors have found.
#[derive(Debug, Clone, Default)]
struct Found {
    spans: Shared<SpanSet>,
    /// Keys that a reader has found empty. Writes that did not see a proposal have at most the sequence number since which
    /// it may be empty.
    proposals: Shared<SpanSet>,
}

/// The sequence numbers that a reader sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPoint {
    /// The reader sees nothing newer.
    pub(crate) sequence: SequenceNumber,
    /// The reader sees everything up to here; at most `sequence`.
    pub(crate) complete: SequenceNumber,
}

/// A span that a reader skips.
pub(crate) struct SpanGuard {
    found: Guard<Shared<Found>>,
    position: usize,
}

impl SpanGuard {
    /// The first key.
    pub(super) fn from(&self) -> &[u8] {
        &self.found.spans.get(self.position).from
    }

    /// The first key behind it.
    pub(crate) fn to(&self) -> &[u8] {
        &self.found.spans.get(self.position).to
    }
}

impl Found {
    /// Whether a span or a proposal holds a key from `smallest` to `largest`.
    fn meets(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.spans.meets(smallest, largest) || self.proposals.meets(smallest, largest)
    }

    /// Makes spans of what `reader` has found empty from `from` to before `to`, as far as it was proposed before and the
    /// reader sees all writes that did not see the proposal.
    fn confirm(&mut self, from: &[u8], to: &[u8], reader: ReadPoint, passed: u64) {
        if !self.proposals.overlaps(from, to) {
            return;
        }
        let mut due = Vec::new();
        change(&mut self.proposals, |proposals| {
            due = proposals.take(from, to, reader.complete);
        });
        let passed = passed / due.len().max(1) as u64;
        change(&mut self.spans, |spans| {
            for it in due {
                spans.add(from.max(&it.from), to.min(&it.to), reader.sequence, passed);
            }
        });
    }

    fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.proposals.is_empty()
    }

    /// The bytes that it takes.
    fn bytes(&self) -> u64 {
        (self.spans.bytes() + self.proposals.bytes()) as u64
    }
}

/// Changes a copy of `set`, which readers may have.
fn change(set: &mut Shared<SpanSet>, change: impl FnOnce(&mut SpanSet)) {
    let mut next = SpanSet::clone(set);
    change(&mut next);
    *set = Shared::new(next);
}

impl TombstoneSpans {
    /// Spans that `tracker` counts.
    pub(crate) fn new(tracker: &Arc<MemoryTracker>) -> Self {
        Self {
            found: ArcSwap::from_pointee(Found::default()),
            generation: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            changes: Mutex::new(Changes {
                count: 0,
                held: Held::new(tracker, 0),
            }),
        }
    }

    /// Records the write of a value for `key` at `sequence`, before the write is visible.
    #[inline]
    pub(crate) fn note_write(&self, key: &[u8], sequence: SequenceNumber) {
        self.note_writes(key, key, sequence);
    }

    /// Records the writes of values for keys from `smallest` to `largest` at `sequence`, before they are visible.
    #[inline]
    pub(crate) fn note_writes(&self, smallest: &[u8], largest: &[u8], sequence: SequenceNumber) {
        self.newest.fetch_max(sequence, Ordering::SeqCst);
        keep_total_order();
        if self.generation.load(Ordering::SeqCst) > 0 {
            self.cut(smallest, largest);
        }
    }

    #[inline(never)]
    fn cut(&self, smallest: &[u8], largest: &[u8]) {
        if !self.found.load().meets(smallest, largest) {
            return;
        }
        let mut changes = self.changes.lock();
        let mut next = Found::clone(&self.found.load());
        for set in [&mut next.spans, &mut next.proposals] {
            if set.meets(smallest, largest) {
                change(set, |set| set.cut(smallest, largest));
            }
        }
        self.store(&mut changes, next);
    }

    /// Makes `next` what writers and readers find.
    fn store(&self, changes: &mut Changes, next: Found) {
        changes.count += 1;
        let generation = if next.is_empty() { 0 } else { changes.count };
        changes.held.set(next.bytes());
        self.found.store(Shared::new(next));
        self.generation.store(generation, Ordering::SeqCst);
    }

    /// Whether there may be spans.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.generation.load(Ordering::SeqCst) > 0
    }

    /// The span that holds `key`, if one does that is valid for `reader` (I1).
    #[inline]
    pub(crate) fn around(&self, key: &[u8], reader: ReadPoint) -> Option<SpanGuard> {
        self.find(reader, |spans| spans.around(key))
    }

    /// The span that holds the keys right before `key`, if one does that is valid for `reader` (I1).
    pub(super) fn before(&self, key: &[u8], reader: ReadPoint) -> Option<SpanGuard> {
        self.find(reader, |spans| spans.before(key))
    }

    #[inline]
    fn find(
        &self,
        reader: ReadPoint,
        position: impl FnOnce(&SpanSet) -> Option<usize>,
    ) -> Option<SpanGuard> {
        if !self.has_any() {
            return None;
        }
        let found = self.found.load();
        let position = position(&found.spans)?;
        let is_valid = found.spans.get(position).since <= reader.complete;
        is_valid.then(|| {
            found.spans.note_use(position);
            SpanGuard { found, position }
        })
    }

    /// Records that a reader has passed `passed` entries and has found no visible key from `from` to before `to`.
    #[cold]
    pub(crate) fn note_empty(&self, from: &[u8], to: &[u8], reader: ReadPoint, passed: u64) {
        if from >= to || self.found.load().spans.covers(from, to) {
            return;
        }
        let mut changes = self.changes.lock();
        let mut next = Found::clone(&self.found.load());
        next.confirm(from, to, reader, passed);
        if next.spans.covers(from, to) || next.proposals.overlaps(from, to) {
            // A new proposal would delay the span for as long as writers exist.
            self.store(&mut changes, next);
            return;
        }
        change(&mut next.proposals, |proposals| {
            proposals.add(from, to, SequenceNumber::MAX, passed);
        });
        let is_seen = next.proposals.covers(from, to);
        self.store(&mut changes, next.clone());
        if !is_seen {
            // The proposals are full. Writers would not cut their keys out of this one.
            return;
        }
        keep_total_order();
        let after = self.newest.load(Ordering::SeqCst);
        // With those that it has joined.
        let mut proposed = Vec::new();
        change(&mut next.proposals, |proposals| {
            proposed = proposals.take(from, to, SequenceNumber::MAX);
        });
        if after <= reader.complete {
            change(&mut next.spans, |spans| {
                spans.add(from, to, reader.sequence, passed);
            });
        } else {
            change(&mut next.proposals, |proposals| {
                for it in proposed {
                    proposals.add(&it.from, &it.to, after, it.worth);
                }
            });
        }
        self.store(&mut changes, next);
    }
}
