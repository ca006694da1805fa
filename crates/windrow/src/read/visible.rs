//! What a reader at one sequence number sees of a stream of versions.
//!
//! Moving forward, the merged cursor stands on the entry that is shown. Moving backward, versions
//! are met oldest first, so the newest visible one is known only when the merged cursor has passed
//! it: the entry that is shown is then a copy, and the merged cursor stands before all versions of
//! its key.
//!
//! Concurrency: owned by one thread.

use std::ops::Bound;
use std::sync::Arc;

use super::tombstone_span::{PASSED_MIN, ReadPoint, TombstoneSpan};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Result, SequenceNumber, Sibling, Step};

/// The keys that a cursor may show.
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
        // The first key after all that begin with `prefix`: the last byte that can grow grows.
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

    /// The outermost keys of the range, where it has any.
    pub(crate) fn ends(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        fn key(bound: &Bound<Box<[u8]>>) -> Option<&[u8]> {
            match bound {
                Bound::Unbounded => None,
                Bound::Included(key) | Bound::Excluded(key) => Some(key),
            }
        }
        (key(&self.lower), key(&self.upper))
    }

    /// Whether a file of keys from `smallest` to `largest` may hold keys of the range.
    pub(super) fn may_overlap(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.is_below_upper(smallest) && self.is_above_lower(largest)
    }

    #[inline]
    pub(super) fn is_below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= &**upper,
            Bound::Excluded(upper) => key < &**upper,
        }
    }

    #[inline]
    pub(super) fn is_above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= &**lower,
            Bound::Excluded(lower) => key > &**lower,
        }
    }
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// On no entry.
    Invalid,
    /// On the merged cursor's entry.
    Live,
    /// On the copy in `shown_key` and `shown_value`; the merged cursor stands before its key.
    Copied,
}

/// Shows, for each key of a range, the newest version that is at most a sequence number, and no
/// tombstones.
#[derive(Debug)]
pub(crate) struct VisibleCursor<C> {
    merged: C,
    sequence: SequenceNumber,
    range: KeyRange,
    position: Position,
    /// Where nothing is visible, if that is known of the keyspace, and up to where this cursor sees.
    tombstones: Option<(Arc<TombstoneSpan>, ReadPoint)>,
    /// Entries that the last seek has passed over.
    passed: u32,
    /// The copy that is shown, or the key that is being left backward.
    shown_key: Vec<u8>,
    shown_value: Vec<u8>,
    /// Whether the copy's value is a pointer.
    shown_pointer: bool,
}

impl<C: Sibling> VisibleCursor<C> {
    /// A new cursor that sees the same.
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
            shown_pointer: false,
        }
    }

    /// Makes use of what is known of the keyspace, and adds to it. The merged cursor holds every
    /// version up to `complete`.
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

    /// The cursor underneath.
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
            Position::Copied => &self.shown_key,
        }
    }

    /// Whether a pointer stands in the place of the value.
    #[inline]
    pub(crate) fn shows_pointer(&self) -> bool {
        match self.position {
            Position::Invalid => false,
            Position::Live => self.merged.trailer().is_pointer(),
            Position::Copied => self.shown_pointer,
        }
    }

    /// The value, or the pointer in its place; empty while invalid.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match self.position {
            Position::Invalid => &[],
            Position::Live => self.merged.value(),
            Position::Copied => &self.shown_value,
        }
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        // Out of the cursor while it is moved; put back whatever happens.
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

    /// Shows the first visible entry from `key` on, which is within the lower bound; the empty key
    /// comes before all.
    fn seek_from(&mut self, key: &[u8]) -> Result<bool> {
        let merged = &mut self.merged;
        let sequence = self.sequence;
        let tombstones = self.tombstones.as_ref();
        let skipped = tombstones.and_then(|(tombstones, read_point)| {
            tombstones.skip(key, *read_point, |to| merged.seek(to, sequence))
        });
        match skipped {
            Some(sought) => sought?,
            // Versions newer than `sequence` are not even looked at.
            None => self.merged.seek(key, sequence)?,
        }
        self.passed = 0;
        let found = self.show_from_here()?;
        if self.passed >= PASSED_MIN {
            self.report_discarded(key, found)?;
        }
        Ok(found)
    }

    /// Tells what a seek from `from` has passed over before what it `found`, if anything.
    #[cold]
    fn report_discarded(&mut self, from: &[u8], found: bool) -> Result<()> {
        let Some((tombstones, read_point)) = &self.tombstones else {
            return Ok(());
        };
        if !found {
            // To the last key that was passed.
            if self.merged.is_valid() {
                self.merged.prev()?;
            } else {
                self.merged.seek_to_last()?;
            }
        }
        tombstones.found(from, self.merged.key(), *read_point, self.passed);
        Ok(())
    }

    /// Moves to the next visible key; returns whether there is one.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.position != Position::Live {
            return self.next_from_elsewhere();
        }
        match self.merged.step() {
            // By far the commonest: to a value that is visible.
            Some(step) if self.shows_at_once(step) => Ok(true),
            step => self.next_beyond(step),
        }
    }

    /// Goes on from a shown entry where a step has not come to one that is to be shown.
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

    /// Whether the merged cursor's entry, at which `step` has come from a shown one, is to be shown
    /// whatever comes behind it.
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
            _ => self.refuse_after_error(),
        }
    }

    /// Passes everything up to the copied key, invisible entries before it too, and goes on forward.
    fn turn_forward(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        if self.merged.is_valid() {
            self.merged.next()?;
        } else {
            self.merged.seek_to_first()?;
        }
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
        }
        self.show_backward()
    }

    /// An exhausted cursor stays where it is; one that met an error says so again.
    fn refuse_after_error(&mut self) -> Result<bool> {
        if !self.merged.is_valid() {
            self.merged.next()?;
        }
        Ok(false)
    }

    /// Shows the first visible entry from where a seek has put the merged cursor.
    fn show_from_here(&mut self) -> Result<bool> {
        if self.merged.is_valid() {
            self.show_forward(Step::to(self.merged.trailer(), false), false)
        } else {
            Ok(false)
        }
    }

    /// Shows the first visible entry from the merged cursor onwards, which `step` has come to. With
    /// `is_decided`, what is to be shown of the key that was left is decided, and its older versions
    /// are passed over.
    fn show_forward(&mut self, mut step: Step, mut is_decided: bool) -> Result<bool> {
        while !step.is_end() {
            is_decided &= step.repeats_key();
            let trailer = step.trailer();
            if !is_decided {
                // Of invisible entries too, or a reader would go through all that is behind its
                // range and newer than its moment.
                if !self.range.is_below_upper(self.merged.key()) {
                    return Ok(false);
                }
                let is_visible = trailer.sequence() <= self.sequence;
                if is_visible && !trailer.is_tombstone() {
                    self.position = Position::Live;
                    return Ok(true);
                }
                is_decided = is_visible;
            }
            step = self.merged.next()?;
            self.passed = self.passed.saturating_add(1);
        }
        Ok(false)
    }

    /// Shows the last visible key before the merged cursor's position, that entry included.
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
                // Newer versions come later and replace what was found before.
                found = !trailer.is_tombstone();
                self.shown_key.clear();
                self.shown_key.extend_from_slice(key);
                if found {
                    self.shown_value.clear();
                    self.shown_value.extend_from_slice(self.merged.value());
                    self.shown_pointer = trailer.is_pointer();
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
