//! What a cursor passes without showing it, and the tombstone spans that it learns and uses.
//!
//! A cursor that has passed [`PASSED_MIN`] entries in one move looks for a span around its entry, and again after as
//! many more, or sooner behind a span: a write may have cut it. At the end of a long move it reports the keys that it has
//! passed as empty. A cursor whose entries may expire neither uses spans nor reports: a span says nothing about the moments
//! of its readers, and jobs may have dropped what an earlier one still sees.
//!
//! Concurrency: owned by one thread.

use std::sync::Arc;

use super::tombstone_spans::{ReadPoint, SpanGuard, TombstoneSpans};
use crate::base::key::put_next_key;

/// A cursor reports seeks that pass so many entries or more.
pub(super) const PASSED_MIN: u32 = 16;

/// A cursor reports steps that pass so many entries or more. A scan may meet many short gaps, and to remember one costs as
/// much as to pass some hundred entries.
const PASSED_BY_STEP_MIN: u32 = 256;

/// The entries behind a span after which a cursor looks for the next one.
const PASSED_BEHIND_SPAN: u32 = 4;

/// The entries that a move passes.
#[derive(Debug, Default)]
pub(super) struct Passing {
    /// The spans of the keyspace, if used, and the read point of the cursor.
    spans: Option<(Arc<TombstoneSpans>, ReadPoint)>,
    /// The entries that the present move has passed so far.
    passed: u32,
    /// The number of passed entries at which the cursor looks for a span.
    look_at: u32,
    /// The number of passed entries from which the move is reported.
    report_at: u32,
    /// The end of the passed keys where the move began, if known: forward the first key, backward the first one behind.
    start: Vec<u8>,
    is_start_known: bool,
    /// What earlier moves have passed and nobody has counted.
    uncounted: u64,
}

impl Passing {
    /// With the spans of a keyspace.
    pub(super) fn with(spans: Arc<TombstoneSpans>, reader: ReadPoint) -> Self {
        Self {
            spans: Some((spans, reader)),
            ..Self::default()
        }
    }

    /// For another cursor with the same read point.
    pub(super) fn sibling(&self) -> Self {
        Self {
            spans: self.spans.clone(),
            ..Self::default()
        }
    }

    /// Takes the number of entries that moves have passed since the last call.
    pub(super) fn take_passed(&mut self) -> u64 {
        self.begin();
        std::mem::take(&mut self.uncounted)
    }

    /// Begins a step.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.uncounted += u64::from(self.passed);
        self.passed = 0;
        self.look_at = PASSED_MIN;
        self.report_at = PASSED_BY_STEP_MIN;
        self.is_start_known = false;
    }

    /// Begins a seek.
    #[inline]
    pub(super) fn begin_seek(&mut self) {
        self.begin();
        self.report_at = PASSED_MIN;
    }

    /// Notes that the move began at `key`.
    pub(super) fn start_at(&mut self, key: &[u8]) -> bool {
        self.start.clear();
        self.start.extend_from_slice(key);
        self.is_start_known = true;
        true
    }

    /// Notes that the move began behind `key`; returns whether a key can be there.
    pub(super) fn start_behind(&mut self, key: &[u8]) -> bool {
        self.is_start_known = put_next_key(key, &mut self.start);
        self.is_start_known
    }

    /// Where the move began, if known.
    pub(super) fn start(&self) -> Option<&[u8]> {
        self.is_start_known.then_some(&self.start)
    }

    /// Looks for a span at once, if there may be any.
    pub(super) fn look_at_once(&mut self) {
        let spans = self.spans.as_ref();
        let has_any = spans.is_some_and(|(spans, _)| spans.has_any());
        self.look_at = if has_any { 0 } else { PASSED_MIN };
    }

    /// Counts an entry that the move passes.
    #[inline]
    pub(super) fn count(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    /// Whether the cursor should look for a span around its entry.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.passed >= self.look_at
    }

    /// Whether the move has passed enough to be reported.
    #[inline]
    pub(super) fn is_long(&self) -> bool {
        self.passed >= self.report_at
    }

    /// The span around `key`, if one may be skipped.
    #[inline]
    pub(super) fn span_around(&mut self, key: &[u8]) -> Option<SpanGuard> {
        let (spans, reader) = self.spans.as_ref()?;
        let span = spans.around(key, *reader);
        if span.is_some() {
            self.look_at = self.passed.saturating_add(PASSED_BEHIND_SPAN);
        }
        span
    }

    /// The same, for the keys right before the start of the move.
    pub(super) fn span_before_start(&self) -> Option<SpanGuard> {
        let (spans, reader) = self.spans.as_ref()?;
        spans.before(self.start()?, *reader)
    }

    /// Looks for the span around the entry at `key` of a move forward, which is due.
    #[cold]
    pub(super) fn look_forward(&mut self, key: &[u8]) -> Option<SpanGuard> {
        // The key may be the visible one that the move leaves. All that the move passes behind it is empty.
        self.look(key, |passing| passing.start_behind(key))
    }

    /// Looks for the span around the entry at `key` of a move backward, which is due.
    #[cold]
    pub(super) fn look_backward(&mut self, key: &[u8]) -> Option<SpanGuard> {
        self.look(key, |passing| passing.start_at(key))
    }

    fn look(
        &mut self,
        key: &[u8],
        note_start: impl FnOnce(&mut Self) -> bool,
    ) -> Option<SpanGuard> {
        if !self.is_start_known && self.spans.is_some() {
            note_start(self);
        }
        self.look_at = self.passed.saturating_add(PASSED_MIN);
        self.span_around(key)
    }

    /// Reports that the move has found no visible key from `from` to before `to`. Without `from` or `to` that is where
    /// it began.
    #[cold]
    pub(super) fn report(&self, from: Option<&[u8]>, to: Option<&[u8]>) {
        let start = self.start();
        if let Some((spans, reader)) = &self.spans
            && let Some(from) = from.or(start)
            && let Some(to) = to.or(start)
        {
            spans.note_empty(from, to, *reader, u64::from(self.passed));
        }
    }
}
