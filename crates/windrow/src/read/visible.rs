//! The keys of a stream of versions that are visible at one sequence number.
//!
//! The newest visible version of a key decides. A tombstone hides its key: the cursor skips all older versions. If it is
//! an operand, the cursor copies all operands and the entry below them; whoever asks for the value folds them.
//! A range tombstone hides the older visible versions of the keys that it covers, and the cursor passes them at once in
//! the older sources ([`Coverage`]). A cursor whose sources have none pays nothing for them.
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

use super::coverage::Coverage;
pub(crate) use super::key_range::{KeyRange, is_ordered};
use super::tombstone_span::{PASSED_MIN, ReadPoint, TombstoneSpan};
use super::unfolded::Unfolded;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Kind, Result, SequenceNumber, Sibling, Step, Trailer};

/// The position of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// On no entry.
    Invalid,
    /// On the merged cursor's entry.
    Live,
    /// The same, and the next entry may be covered by a range tombstone.
    LiveAmongRanges,
    /// On the copy in `shown_key`; the merged cursor is before its key.
    Copied,
    /// On the operands in `unfolded`, of `shown_key`; the merged cursor is behind them, perhaps behind the key.
    Passed,
}

/// What a move forward found out about the newest visible version of a key.
#[derive(Debug)]
enum Met {
    /// The cursor shows it.
    Shown,
    /// The key is deleted.
    Hidden,
    /// The merged cursor has passed it and more entries by this step.
    Passed(Step),
}

/// A cursor over the keys of a range, with the newest version of each key up to a sequence number. It
/// omits tombstones.
#[derive(Debug)]
pub(crate) struct VisibleCursor<C> {
    merged: C,
    sequence: SequenceNumber,
    range: KeyRange,
    position: Position,
    /// The range tombstones of the sources, if they have any.
    coverage: Option<Box<Coverage>>,
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
        let coverage = self.coverage.as_ref();
        sibling.coverage = coverage.map(|coverage| Box::new(coverage.sibling()));
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
            coverage: None,
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

    /// With the range tombstones of the sources, if they have any.
    pub(crate) fn covered_by(mut self, coverage: Option<Box<Coverage>>) -> Self {
        self.coverage = coverage;
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
            Position::Live | Position::LiveAmongRanges => self.merged.key(),
            Position::Copied | Position::Passed => &self.shown_key,
        }
    }

    /// Whether the entry has a pointer or operands instead of a value.
    #[inline]
    pub(crate) fn shows_indirect(&self) -> bool {
        match self.position {
            Position::Invalid => false,
            Position::Live | Position::LiveAmongRanges => self.merged.trailer().is_pointer(),
            Position::Copied => self.shown_kind != Kind::Value,
            Position::Passed => true,
        }
    }

    /// The operands of the entry, if it has any.
    pub(crate) fn unfolded(&self) -> Option<&Unfolded> {
        let has_any = match self.position {
            Position::Invalid | Position::Live | Position::LiveAmongRanges => false,
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
            Position::Live | Position::LiveAmongRanges => self.merged.value(),
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
        // A hole may reach beyond the range, where the cursor does not have all sources.
        let (passed_to, (_, upper)) = (self.merged.key(), self.range.ends());
        let to = upper.map_or(passed_to, |upper| upper.min(passed_to));
        tombstones.found(from, to, *read_point, self.passed);
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
            Position::LiveAmongRanges => {
                self.position = Position::Invalid;
                let step = self.merged.next()?;
                self.show_forward(step, true)
            }
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
            Position::Live | Position::LiveAmongRanges => {
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
                if is_visible && self.coverage.is_some() {
                    match self.meet_among_ranges(trailer)? {
                        Met::Shown => return Ok(true),
                        Met::Hidden => {}
                        Met::Passed(passed) => {
                            step = passed;
                            continue;
                        }
                    }
                } else if is_visible && !trailer.is_tombstone() {
                    if trailer.is_operand() {
                        self.pass_operands(0)?;
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

    /// Decides about the merged cursor's entry, the newest visible version of its key, among range tombstones.
    #[cold]
    fn meet_among_ranges(&mut self, trailer: Trailer) -> Result<Met> {
        let Some(coverage) = &mut self.coverage else {
            unreachable!("a cursor without range tombstones looks for none")
        };
        let floor = coverage.floor(self.merged.key())?;
        if trailer.sequence() < floor {
            let hole = coverage.hole();
            if !self.merged.pass_forward(hole.newest, &hole.end)? {
                return Ok(Met::Hidden);
            }
            self.passed = self.passed.saturating_add(1);
            let is_valid = self.merged.is_valid();
            let arrived = is_valid.then(|| Step::to(self.merged.trailer(), false));
            return Ok(Met::Passed(arrived.unwrap_or(Step::END)));
        }
        if trailer.is_tombstone() {
            return Ok(Met::Hidden);
        }
        if trailer.is_operand() {
            self.pass_operands(floor)?;
        } else {
            self.position = Position::LiveAmongRanges;
        }
        Ok(Met::Shown)
    }

    /// Copies the operands from the merged cursor's entry on, and the entry below them. What is older than `floor` does
    /// not count.
    #[cold]
    fn pass_operands(&mut self, floor: SequenceNumber) -> Result<()> {
        self.shown_key.clear();
        self.shown_key.extend_from_slice(self.merged.key());
        self.unfolded.restart(true);
        let merged = &mut self.merged;
        while merged.is_valid() && merged.key() == self.shown_key {
            let trailer = merged.trailer();
            if trailer.sequence() < floor || !self.unfolded.add_older(trailer, merged.value()) {
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
                if let Some(coverage) = &mut self.coverage
                    && trailer.sequence() < coverage.floor(key)?
                {
                    let hole = coverage.hole();
                    if !self.merged.pass_backward(hole.newest, &hole.start)? {
                        self.merged.prev()?;
                    }
                    continue;
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
