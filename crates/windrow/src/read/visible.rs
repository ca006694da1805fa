//! The keys of a stream of versions that are visible at one sequence number.
//!
//! The newest visible version of a key decides. A tombstone hides its key: the cursor skips all older versions. If it is
//! an operand, the cursor copies all operands and the entry below them; whoever asks for the value folds them.
//! If a seek passes [`PASSED_MIN`] entries or more, it reports them to the [tombstone span](TombstoneSpan), so
//! that later seeks skip them.
//!
//! The direction may change at any step. In forward direction the merged cursor is on the current entry. In
//! backward direction it passes the versions of a key from the oldest to the newest, so the newest visible
//! version is known only after it was passed. The current entry is then a copy, and the merged cursor is
//! before all versions of its key.
//!
//! Concurrency: owned by one thread.

use std::ops::Bound;
use std::sync::Arc;

use super::tombstone_span::{PASSED_MIN, ReadPoint, TombstoneSpan};
use super::unfolded::Unfolded;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Kind, Result, SequenceNumber, Sibling, Step};

/// The keys of a cursor.
#[derive(Debug, Clone)]
pub(crate) struct KeyRange {
    pub(crate) lower: Bound<Box<[u8]>>,
    pub(crate) upper: Bound<Box<[u8]>>,
}

impl KeyRange {
    /// Every key.
    pub(crate) const ALL: Self = Self {
        lower: Bound::Unbounded,
        upper: Bound::Unbounded,
    };

    /// Every key that begins with `prefix`.
    pub(crate) fn prefix(prefix: &[u8]) -> Self {
        // The first key after all keys with `prefix`: increment the last byte below 255.
        let end = prefix.iter().rposition(|&byte| byte < u8::MAX).map(|last| {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        });
        Self {
            lower: Bound::Included(prefix.into()),
            upper: end.map_or(Bound::Unbounded, |end| Bound::Excluded(end.into())),
        }
    }

    /// The bounds, with borrowed keys.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let lower = self.lower.as_ref().map(AsRef::as_ref);
        (lower, self.upper.as_ref().map(AsRef::as_ref))
    }

    /// The lower and the upper bound, whether included or not; `None` without one.
    pub(crate) fn ends(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        fn key(bound: &Bound<Box<[u8]>>) -> Option<&[u8]> {
            match bound {
                Bound::Unbounded => None,
                Bound::Included(key) | Bound::Excluded(key) => Some(key),
            }
        }
        (key(&self.lower), key(&self.upper))
    }

    /// Whether a file with keys from `smallest` to `largest` may hold keys of the range.
    pub(super) fn may_overlap(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.is_below_upper(smallest) && self.is_above_lower(largest)
    }

    #[inline]
    pub(crate) fn is_below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= &**upper,
            Bound::Excluded(upper) => key < &**upper,
        }
    }

    #[inline]
    pub(crate) fn is_above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= &**lower,
            Bound::Excluded(lower) => key > &**lower,
        }
    }
}

/// Whether a key can be within `bounds`, or at least between them. The standard library's maps refuse other bounds.
pub(crate) fn is_ordered(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(lower), Bound::Excluded(upper)) => lower < upper,
        (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) => lower <= upper,
    }
}

/// The position of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// On no entry.
    Invalid,
    /// On the merged cursor's entry.
    Live,
    /// On the copy in `shown_key`; the merged cursor is before its key.
    Copied,
    /// On the operands in `unfolded`, of `shown_key`; the merged cursor is behind them, perhaps behind the key.
    Passed,
}

/// A cursor over the keys of a range, with the newest version of each key up to a sequence number. It
/// omits tombstones.
#[derive(Debug)]
pub(crate) struct VisibleCursor<C> {
    merged: C,
    sequence: SequenceNumber,
    range: KeyRange,
    position: Position,
    /// The tombstone span of the keyspace, if used, and the read point of this cursor.
    tombstones: Option<(Arc<TombstoneSpan>, ReadPoint)>,
    /// The entries that the last seek has passed.
    passed: u32,
    /// The key of the copy, or the key that a backward move leaves.
    shown_key: Vec<u8>,
    /// The value or pointer of the copy, unless it has operands.
    shown_value: Vec<u8>,
    shown_kind: Kind,
    /// The operands of the copy, while `shown_kind` says that it has any.
    unfolded: Unfolded,
}

impl<C: Sibling> VisibleCursor<C> {
    /// A new cursor with the same range and read point.
    pub(super) fn sibling(&self) -> Self {
        let mut sibling = Self::new(self.merged.sibling(), self.sequence, self.range.clone());
        sibling.tombstones.clone_from(&self.tombstones);
        sibling
    }
}

impl<C: Cursor> VisibleCursor<C> {
    pub(crate) fn new(merged: C, sequence: SequenceNumber, range: KeyRange) -> Self {
        Self {
            merged,
            sequence,
            range,
            position: Position::Invalid,
            tombstones: None,
            passed: 0,
            shown_key: Vec::new(),
            shown_value: Vec::new(),
            shown_kind: Kind::Tombstone,
            unfolded: Unfolded::default(),
        }
    }

    /// Uses and updates the tombstone span of the keyspace. The merged cursor holds every version up to
    /// `complete`.
    pub(crate) fn skipping(
        mut self,
        tombstones: Arc<TombstoneSpan>,
        complete: SequenceNumber,
    ) -> Self {
        let read_point = ReadPoint {
            sequence: self.sequence,
            complete: complete.min(self.sequence),
        };
        self.tombstones = Some((tombstones, read_point));
        self
    }

    /// The merged cursor.
    pub(crate) fn merged_mut(&mut self) -> &mut C {
        &mut self.merged
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.position != Position::Invalid
    }

    /// The key; empty while invalid.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.position {
            Position::Invalid => &[],
            Position::Live => self.merged.key(),
            Position::Copied | Position::Passed => &self.shown_key,
        }
    }

    /// Whether the entry has a pointer or operands instead of a value.
    #[inline]
    pub(crate) fn shows_indirect(&self) -> bool {
        match self.position {
            Position::Invalid => false,
            Position::Live => self.merged.trailer().is_pointer(),
            Position::Copied => self.shown_kind != Kind::Value,
            Position::Passed => true,
        }
    }

    /// The operands of the entry, if it has any.
    pub(crate) fn unfolded(&self) -> Option<&Unfolded> {
        let has_any = match self.position {
            Position::Invalid | Position::Live => false,
            Position::Copied => self.shown_kind == Kind::Operand,
            Position::Passed => true,
        };
        has_any.then_some(&self.unfolded)
    }

    /// The value or the pointer; empty while invalid, and for operands.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.position {
            Position::Invalid | Position::Passed => &[],
            Position::Live => self.merged.value(),
            Position::Copied => &self.shown_value,
        }
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        // The range is taken out of the cursor for the move, and put back on success and on error.
        let lower = std::mem::replace(&mut self.range.lower, Bound::Unbounded);
        let found = match &lower {
            Bound::Unbounded => self.seek_from(&[]),
            Bound::Included(lower) => self.seek_from(lower),
            // Sequence numbers begin at 1, so this passes every version of `lower`.
            Bound::Excluded(lower) => match self.merged.seek(lower, 0) {
                Ok(()) => self.show_from_here(),
                Err(error) => Err(error),
            },
        };
        self.range.lower = lower;
        found
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        let after = match &self.range.upper {
            Bound::Unbounded => None,
            Bound::Included(upper) => Some((upper, 0)),
            Bound::Excluded(upper) => Some((upper, SEQUENCE_MAX)),
        };
        if let Some((key, sequence)) = after {
            self.merged.seek(key, sequence)?;
        }
        if after.is_some() && self.merged.is_valid() {
            self.merged.prev()?;
        } else {
            self.merged.seek_to_last()?;
        }
        self.show_backward()
    }

    /// Moves to the first visible key of the range that is `key` or greater.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if !self.range.is_above_lower(key) {
            return self.seek_to_first();
        }
        self.position = Position::Invalid;
        self.seek_from(key)
    }

    /// Moves to the first visible entry at `key` or after it. `key` is within the lower bound; the empty
    /// key precedes all keys.
    fn seek_from(&mut self, key: &[u8]) -> Result<bool> {
        let merged = &mut self.merged;
        let sequence = self.sequence;
        let tombstones = self.tombstones.as_ref();
        let skipped = tombstones.and_then(|(tombstones, read_point)| {
            tombstones.skip(key, *read_point, |to| merged.seek(to, sequence))
        });
        match skipped {
            Some(sought) => sought?,
            // The seek skips versions that are newer than `sequence`.
            None => self.merged.seek(key, sequence)?,
        }
        self.passed = 0;
        let found = self.show_from_here()?;
        if self.passed >= PASSED_MIN {
            self.report_discarded(key, found)?;
        }
        Ok(found)
    }

    /// Records in the tombstone span what a seek from `from` has passed before the visible key, if it
    /// `found` one.
    #[cold]
    fn report_discarded(&mut self, from: &[u8], found: bool) -> Result<()> {
        let Some((tombstones, read_point)) = &self.tombstones else {
            return Ok(());
        };
        if self.position == Position::Passed {
            tombstones.found(from, &self.shown_key, *read_point, self.passed);
            return Ok(());
        }
        if !found {
            // The span ends at the last passed key.
            if self.merged.is_valid() {
                self.merged.prev()?;
            } else {
                self.merged.seek_to_last()?;
            }
        }
        tombstones.found(from, self.merged.key(), *read_point, self.passed);
        Ok(())
    }

    /// Moves to the next visible key; returns whether it exists.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.position != Position::Live {
            return self.next_from_elsewhere();
        }
        match self.merged.step() {
            // By far the most common case: the next key has a visible value.
            Some(step) if self.shows_at_once(step) => Ok(true),
            step => self.next_beyond(step),
        }
    }

    /// Continues after a step from the current entry to an entry that is not the next result.
    #[inline(never)]
    fn next_beyond(&mut self, step: Option<Step>) -> Result<bool> {
        let arrived = step.map_or_else(|| self.merged.next(), Ok);
        match arrived {
            Ok(step) if self.shows_at_once(step) => Ok(true),
            arrived => {
                self.position = Position::Invalid;
                self.show_forward(arrived?, true)
            }
        }
    }

    /// Whether the entry after `step` is the next result.
    #[inline]
    fn shows_at_once(&self, step: Step) -> bool {
        step.is_new_value(self.sequence)
            && (self.range.upper == Bound::Unbounded
                || self.range.is_below_upper(self.merged.key()))
    }

    #[cold]
    fn next_from_elsewhere(&mut self) -> Result<bool> {
        match self.position {
            Position::Copied => self.turn_forward(),
            Position::Passed => {
                self.position = Position::Invalid;
                self.pass_shown_key()
            }
            _ => self.refuse_after_error(),
        }
    }

    /// Passes all entries up to the copied key, and continues forward.
    fn turn_forward(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        if self.merged.is_valid() {
            self.merged.next()?;
        } else {
            self.merged.seek_to_first()?;
        }
        self.pass_shown_key()
    }

    /// Continues forward behind the copied key.
    fn pass_shown_key(&mut self) -> Result<bool> {
        while self.merged.is_valid() && *self.merged.key() <= *self.shown_key {
            self.merged.next()?;
        }
        self.show_from_here()
    }

    pub(crate) fn prev(&mut self) -> Result<bool> {
        match self.position {
            Position::Invalid => return self.refuse_after_error(),
            Position::Live => {
                self.shown_key.clear();
                self.shown_key.extend_from_slice(self.merged.key());
                self.position = Position::Invalid;
                while self.merged.is_valid() && self.merged.key() == self.shown_key {
                    self.merged.prev()?;
                }
            }
            Position::Copied => self.position = Position::Invalid,
            Position::Passed => {
                self.position = Position::Invalid;
                if !self.merged.is_valid() {
                    self.merged.seek_to_last()?;
                }
                while self.merged.is_valid() && *self.merged.key() >= *self.shown_key {
                    self.merged.prev()?;
                }
            }
        }
        self.show_backward()
    }

    /// An exhausted cursor does not move; a failed cursor returns its error again.
    fn refuse_after_error(&mut self) -> Result<bool> {
        if !self.merged.is_valid() {
            self.merged.next()?;
        }
        Ok(false)
    }

    /// Moves to the first visible entry after a seek of the merged cursor.
    fn show_from_here(&mut self) -> Result<bool> {
        if self.merged.is_valid() {
            self.show_forward(Step::to(self.merged.trailer(), false), false)
        } else {
            Ok(false)
        }
    }

    /// Moves to the first visible entry from the merged cursor's entry on, which `step` has reached. With
    /// `is_decided`, it skips the older versions of the previous key.
    fn show_forward(&mut self, mut step: Step, mut is_decided: bool) -> Result<bool> {
        while !step.is_end() {
            is_decided &= step.repeats_key();
            let trailer = step.trailer();
            if !is_decided {
                // The check includes invisible entries. Otherwise a reader would pass all entries
                // behind its range that are newer than its sequence number.
                if !self.range.is_below_upper(self.merged.key()) {
                    return Ok(false);
                }
                let is_visible = trailer.sequence() <= self.sequence;
                if is_visible && !trailer.is_tombstone() {
                    if trailer.is_operand() {
                        self.pass_operands()?;
                    } else {
                        self.position = Position::Live;
                    }
                    return Ok(true);
                }
                is_decided = is_visible;
            }
            step = self.merged.next()?;
            self.passed = self.passed.saturating_add(1);
        }
        Ok(false)
    }

    /// Copies the operands from the merged cursor's entry on, and the entry below them.
    #[cold]
    fn pass_operands(&mut self) -> Result<()> {
        self.shown_key.clear();
        self.shown_key.extend_from_slice(self.merged.key());
        self.unfolded.restart(true);
        let merged = &mut self.merged;
        while merged.is_valid() && merged.key() == self.shown_key {
            if !self.unfolded.add_older(merged.trailer(), merged.value()) {
                break;
            }
            merged.next()?;
        }
        self.position = Position::Passed;
        Ok(())
    }

    /// Moves to the last visible key at or before the merged cursor's entry.
    fn show_backward(&mut self) -> Result<bool> {
        let mut found = false;
        while self.merged.is_valid() {
            let trailer = self.merged.trailer();
            let key = self.merged.key();
            if !self.range.is_above_lower(key) {
                break;
            }
            if trailer.sequence() <= self.sequence {
                if found && key != self.shown_key {
                    break;
                }
                if trailer.is_operand() {
                    let below = if found {
                        self.shown_kind
                    } else {
                        Kind::Tombstone
                    };
                    if below != Kind::Operand {
                        self.unfolded.restart(false);
                        self.unfolded.set_base(below, &self.shown_value);
                    }
                    self.unfolded.push(self.merged.value());
                }
                // Newer versions come later. They replace older ones, or add to them.
                found = !trailer.is_tombstone();
                self.shown_key.clear();
                self.shown_key.extend_from_slice(key);
                if found {
                    self.shown_value.clear();
                    self.shown_value.extend_from_slice(self.merged.value());
                    self.shown_kind = trailer.kind();
                }
            }
            self.merged.prev()?;
        }
        if found {
            self.position = Position::Copied;
        }
        Ok(found)
    }
}
