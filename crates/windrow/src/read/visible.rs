//! The keys of a stream of versions that are visible at one sequence number.
//!
//! The newest visible version of a key decides. A tombstone hides its key: the cursor skips all older versions. If it is
//! an operand, the cursor copies all operands and the entry below them; whoever asks for the value folds them.
//! An entry that has expired at the moment of the cursor hides its key, too.
//! A range tombstone hides the older visible versions of the keys that it covers, and the cursor passes them at once in
//! the older sources ([`Coverage`]). A cursor whose sources have none pays nothing for them.
//! A move that passes many entries reports them to the [tombstone spans](TombstoneSpans), so that later moves skip
//! them ([`passing`](super::passing)).
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
use super::jumps::Jumps;
pub(crate) use super::key_range::{KeyRange, is_ordered};
use super::passing::Passing;
use super::tombstone_spans::{ReadPoint, SpanGuard, TombstoneSpans};
use super::unfolded::Unfolded;
use crate::base::expiry::{is_expired, split_expiring};
use crate::base::key::{SEQUENCE_MAX, next_key};
use crate::base::{Direction, Kind, Moment, Result, SequenceNumber, Sibling, Step, Trailer};
use crate::block::{Moved, Reach, Stride, Striding};

/// The position of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// On no entry.
    Invalid,
    /// On the merged cursor's entry.
    Live,
    /// The same once the merged cursor has followed the stride, which goes forward and shows the entry.
    Striding,
    /// The same, and the next entry may be covered by a range tombstone.
    LiveAmongRanges,
    /// The same, and the entry expires.
    LiveExpiring,
    /// On the copy in `shown_key`; the merged cursor is before its key.
    Copied,
    /// On the entry of the stride, which goes backward; the merged cursor is before its key once it has followed.
    StridingBack,
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
    stride: Stride,
    /// The moment at which the cursor reads, if anything that it sees may expire.
    moment: Option<Moment>,
    range: KeyRange,
    position: Position,
    /// The range tombstones of the sources, if they have any.
    coverage: Option<Box<Coverage>>,
    passing: Passing,
    /// The seeks over range tombstones and spans.
    jumps: Jumps,
    /// The key of the copy, or the key that a backward move leaves.
    shown_key: Vec<u8>,
    /// The value or pointer of the copy, unless it has operands.
    shown_value: Vec<u8>,
    /// The kind of an entry that never expires.
    shown_kind: Kind,
    shown_expiry: Option<Moment>,
    /// The operands of the copy, while `shown_kind` says that it has any.
    unfolded: Unfolded,
}

impl<C: Sibling + Striding> VisibleCursor<C> {
    /// A new cursor with the same range and read point.
    pub(super) fn sibling(&self) -> Self {
        let mut sibling = Self::new(self.merged.sibling(), self.sequence, self.range.clone());
        sibling.passing = self.passing.sibling();
        sibling.moment = self.moment;
        let coverage = self.coverage.as_ref();
        sibling.coverage = coverage.map(|coverage| Box::new(coverage.sibling()));
        sibling
    }
}

impl<C: Striding> VisibleCursor<C> {
    pub(crate) fn new(merged: C, sequence: SequenceNumber, range: KeyRange) -> Self {
        Self {
            merged,
            sequence,
            stride: Stride::new(),
            moment: None,
            range,
            position: Position::Invalid,
            coverage: None,
            passing: Passing::default(),
            jumps: Jumps::default(),
            shown_key: Vec::new(),
            shown_value: Vec::new(),
            shown_kind: Kind::Tombstone,
            shown_expiry: None,
            unfolded: Unfolded::default(),
        }
    }

    /// Reads at `moment`. Without one, nothing that the cursor sees expires.
    pub(crate) fn at_moment(mut self, moment: Option<Moment>) -> Self {
        self.moment = moment;
        self
    }

    /// Uses and updates the tombstone spans of the keyspace, unless something that the cursor sees may expire. The merged
    /// cursor holds every version up to `complete`.
    pub(crate) fn skipping(mut self, spans: Arc<TombstoneSpans>, complete: SequenceNumber) -> Self {
        if self.moment.is_some() {
            return self;
        }
        let read_point = ReadPoint {
            sequence: self.sequence,
            complete: complete.min(self.sequence),
        };
        self.passing = Passing::with(spans, read_point);
        self
    }

    /// Takes the number of entries that moves have passed since the last call.
    pub(crate) fn take_passed(&mut self) -> u64 {
        self.passing.take_passed()
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
            Position::Striding | Position::StridingBack => self.stride.key(),
            Position::Live | Position::LiveAmongRanges | Position::LiveExpiring => {
                self.merged.key()
            }
            Position::Copied | Position::Passed => &self.shown_key,
        }
    }

    /// What the entry stores, and whether that is a pointer, or nothing for operands, instead of a value; empty while
    /// invalid.
    #[inline]
    pub(crate) fn stored(&self) -> (&[u8], bool) {
        let merged = &self.merged;
        match self.position {
            Position::Invalid => (&[], false),
            Position::Striding | Position::StridingBack => {
                (self.stride.value(), self.stride.kind() != Kind::Value)
            }
            Position::Live | Position::LiveAmongRanges => {
                (merged.value(), merged.trailer().is_pointer())
            }
            Position::LiveExpiring => {
                let is_pointer = merged.trailer().kind() != Kind::ExpiringValue;
                (split_expiring(merged.value()).1, is_pointer)
            }
            Position::Copied => (&self.shown_value, self.shown_kind != Kind::Value),
            Position::Passed => (&[], true),
        }
    }

    /// The operands of the entry, if it has any.
    pub(crate) fn unfolded(&self) -> Option<&Unfolded> {
        let has_any = match self.position {
            Position::Invalid
            | Position::Striding
            | Position::StridingBack
            | Position::Live
            | Position::LiveAmongRanges
            | Position::LiveExpiring => false,
            Position::Copied => self.shown_kind == Kind::Operand,
            Position::Passed => true,
        };
        has_any.then_some(&self.unfolded)
    }

    /// When the entry expires; `None` if it never does, and while invalid.
    pub(crate) fn expiry(&self) -> Option<Moment> {
        match self.position {
            Position::LiveExpiring => Some(split_expiring(self.merged.value()).0),
            Position::Copied => self.shown_expiry,
            _ => None,
        }
    }

    /// Whether the cursor does not see an entry that stores this, because it has expired.
    fn is_expired(&self, stored: &[u8]) -> bool {
        let (expiry, _) = split_expiring(stored);
        self.moment.is_some_and(|now| is_expired(expiry, now))
    }

    fn begin_seek(&mut self) -> Result<()> {
        self.stride.end();
        self.passing.begin_seek();
        self.jumps.begin()
    }

    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        // The range is taken out of the cursor for the move, and put back on success and on error.
        let lower = std::mem::replace(&mut self.range.lower, Bound::Unbounded);
        let found = match &lower {
            Bound::Unbounded => self.seek_from(&[]),
            Bound::Included(lower) => self.seek_from(lower),
            // Sequence numbers begin at 1, so this passes every version of `lower`.
            Bound::Excluded(lower) => {
                let begun = self.begin_seek();
                let sought = begun.and_then(|()| self.merged.seek(lower, 0));
                sought.and_then(|()| self.show_from_here(None))
            }
        };
        self.range.lower = lower;
        found
    }

    pub(crate) fn seek_to_last(&mut self) -> Result<bool> {
        self.position = Position::Invalid;
        self.begin_seek()?;
        let is_bounded = match &self.range.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => self.passing.start_behind(upper),
            Bound::Excluded(upper) => self.passing.start_at(upper),
        };
        if is_bounded {
            let span = self.passing.span_before_start();
            let from = span.as_ref().map(SpanGuard::from);
            let end = from.or(self.passing.start()).unwrap_or_default();
            Self::seek_before(&mut self.merged, end)?;
        } else {
            self.merged.seek_to_last()?;
            if self.merged.is_valid() {
                self.passing.start_behind(self.merged.key());
            }
        }
        self.passing.look_at_once();
        self.show_backward()
    }

    /// Moves the merged cursor to the last entry before `key`.
    fn seek_before(merged: &mut C, key: &[u8]) -> Result<()> {
        merged.seek(key, SEQUENCE_MAX)?;
        if merged.is_valid() {
            merged.prev()
        } else {
            merged.seek_to_last()
        }
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
        self.begin_seek()?;
        let span = self.passing.span_around(key);
        // The seek skips versions that are newer than `sequence`.
        let start = span.as_ref().map_or(key, SpanGuard::to);
        self.merged.seek(start, self.sequence)?;
        self.show_from_here(Some(key))
    }

    /// Reports what a move forward from `start` has passed before the visible key, if it `found` one. Without `start`
    /// the move has noted it.
    #[cold]
    fn report_forward(&mut self, start: Option<&[u8]>, found: bool) -> Result<()> {
        if self.position == Position::Passed {
            self.passing.report(start, Some(&self.shown_key));
            return Ok(());
        }
        if !found {
            // The span ends at the last passed key, so that later insertions at the end of a queue do not cut it.
            if self.merged.is_valid() {
                self.merged.prev()?;
            } else {
                self.merged.seek_to_last()?;
            }
        }
        if self.merged.is_valid() {
            // The keys may reach beyond the range, where the cursor does not have all sources.
            let (passed_to, (_, upper)) = (self.merged.key(), self.range.ends());
            let to = upper.map_or(passed_to, |upper| upper.min(passed_to));
            self.passing.report(start, Some(to));
        }
        Ok(())
    }

    /// Reports what a move backward has passed behind the visible key, if it `found` one.
    #[cold]
    fn report_backward(&mut self, found: bool) {
        let first = match &self.range.lower {
            _ if found => next_key(&self.shown_key),
            Bound::Unbounded => Some(Vec::new()),
            Bound::Included(lower) => Some(lower.to_vec()),
            Bound::Excluded(lower) => next_key(lower),
        };
        self.passing.report(first.as_deref(), None);
    }

    /// Moves to the next visible key; returns whether it exists.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        match self.stride.step() {
            // By far the most common case: the next key has a visible value.
            Moved::ToValue => Ok(true),
            moved => self.next_beyond(moved),
        }
    }

    /// Completes a step that the stride could not take, or not to the next result.
    #[inline(never)]
    fn next_beyond(&mut self, moved: Moved) -> Result<bool> {
        let last_step = self.stride.last_step();
        self.end_stride()?;
        if self.position != Position::Live {
            return self.next_from_elsewhere();
        }
        let arrived = match moved {
            Moved::Nowhere => self.merged.next(),
            Moved::ToValue | Moved::ToOther => Ok(last_step),
        };
        match arrived {
            Ok(step)
                if step.is_new_value(self.sequence)
                    && self.range.is_below_upper(self.merged.key()) =>
            {
                if self.begin_stride(Direction::Forward) {
                    self.position = Position::Striding;
                }
                Ok(true)
            }
            arrived => {
                self.position = Position::Invalid;
                self.passing.begin();
                self.move_forward(arrived?, true, None)
            }
        }
    }

    #[inline]
    fn begin_stride(&mut self, direction: Direction) -> bool {
        let (lower, upper) = self.range.ends();
        let end = match direction {
            Direction::Forward => upper,
            Direction::Backward => lower,
        };
        let reach = Reach {
            direction,
            sequence: self.sequence,
            end,
        };
        self.merged.begin_stride(&mut self.stride, reach)
    }

    /// Lets the merged cursor follow the stride, if it is active.
    #[inline]
    fn end_stride(&mut self) -> Result<()> {
        let position = match self.position {
            Position::Striding => Position::Live,
            Position::StridingBack => {
                self.copy_from_stride();
                Position::Copied
            }
            // A stride backward may have begun without a step.
            _ => {
                self.stride.end();
                return Ok(());
            }
        };
        self.position = Position::Invalid;
        let followed = self.merged.end_stride(&self.stride);
        self.stride.end();
        followed?;
        self.position = position;
        Ok(())
    }

    fn copy_from_stride(&mut self) {
        self.shown_key.clear();
        self.shown_key.extend_from_slice(self.stride.key());
        self.shown_value.clear();
        self.shown_value.extend_from_slice(self.stride.value());
        self.shown_kind = self.stride.kind();
        self.shown_expiry = None;
    }

    #[cold]
    fn next_from_elsewhere(&mut self) -> Result<bool> {
        self.passing.begin();
        match self.position {
            Position::Copied => self.turn_forward(),
            Position::LiveAmongRanges | Position::LiveExpiring => {
                self.position = Position::Invalid;
                let step = self.merged.next()?;
                self.move_forward(step, true, None)
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
        self.jumps.begin()?;
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
        self.show_from_here(None)
    }

    /// Moves to the visible key before; returns whether it exists.
    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        if self.stride.step_back() {
            self.position = Position::StridingBack;
            Ok(true)
        } else {
            self.prev_beyond()
        }
    }

    /// Completes a step that the stride could not take.
    #[inline(never)]
    fn prev_beyond(&mut self) -> Result<bool> {
        self.end_stride()?;
        self.passing.begin();
        match self.position {
            Position::Invalid | Position::Striding | Position::StridingBack => {
                return self.refuse_after_error();
            }
            Position::Live | Position::LiveAmongRanges | Position::LiveExpiring => {
                self.shown_key.clear();
                self.shown_key.extend_from_slice(self.merged.key());
                self.position = Position::Invalid;
                self.jumps.begin()?;
                while self.merged.is_valid() && self.merged.key() == self.shown_key {
                    self.merged.prev()?;
                }
            }
            Position::Copied => self.position = Position::Invalid,
            Position::Passed => {
                self.position = Position::Invalid;
                self.jumps.begin()?;
                if !self.merged.is_valid() {
                    self.merged.seek_to_last()?;
                }
                while self.merged.is_valid() && *self.merged.key() >= *self.shown_key {
                    self.merged.prev()?;
                }
            }
        }
        let found = self.show_backward()?;
        if found && self.coverage.is_none() {
            self.begin_stride(Direction::Backward);
        }
        Ok(found)
    }

    /// An exhausted cursor does not move; a failed cursor returns its error again.
    fn refuse_after_error(&mut self) -> Result<bool> {
        self.jumps.refuse_after_error()?;
        if !self.merged.is_valid() {
            self.merged.next()?;
        }
        Ok(false)
    }

    /// Moves to the first visible entry after a seek of the merged cursor, by a move that began at `start`.
    fn show_from_here(&mut self, start: Option<&[u8]>) -> Result<bool> {
        self.move_forward(self.step_here(), false, start)
    }

    /// The step to the merged cursor's entry after a seek.
    fn step_here(&self) -> Step {
        if self.merged.is_valid() {
            Step::to(self.merged.trailer(), false)
        } else {
            Step::END
        }
    }

    /// Moves forward as [`show_forward`](Self::show_forward), and reports what the move has passed from `start` on.
    fn move_forward(&mut self, step: Step, is_decided: bool, start: Option<&[u8]>) -> Result<bool> {
        let found = self.show_forward(step, is_decided)?;
        if self.passing.is_long() {
            self.report_forward(start, found)?;
        }
        Ok(found)
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
                } else if is_visible
                    && !trailer.is_tombstone()
                    && self.show_or_pass(trailer, Position::Live, 0)?
                {
                    return Ok(true);
                }
                is_decided = is_visible;
            }
            step = self.merged.next()?;
            self.passing.count();
            if self.passing.is_due() && !step.is_end() {
                // Nothing visible is in the span, and what is decided about the last key says nothing of the next one.
                if let Some(span) = self.passing.look_forward(self.merged.key()) {
                    self.merged.seek(span.to(), self.sequence)?;
                    self.jumps.land(Direction::Forward, &self.merged)?;
                    (step, is_decided) = (self.step_here(), false);
                }
            }
        }
        Ok(false)
    }

    /// Decides about the merged cursor's entry, the newest visible version of its key, among range tombstones.
    #[cold]
    fn meet_among_ranges(&mut self, trailer: Trailer) -> Result<Met> {
        let Some(coverage) = &mut self.coverage else {
            unreachable!("a cursor without range tombstones looks for none")
        };
        let floor = coverage.floor_of(&self.merged);
        let floor = floor.map_err(|error| self.jumps.fail(error))?;
        if trailer.sequence() < floor {
            let hole = coverage.hole();
            if !self.merged.pass_forward(hole.newest, &hole.end)? {
                return Ok(Met::Hidden);
            }
            self.jumps.land(Direction::Forward, &self.merged)?;
            self.passing.count();
            return Ok(Met::Passed(self.step_here()));
        }
        if trailer.is_tombstone() {
            return Ok(Met::Hidden);
        }
        if self.show_or_pass(trailer, Position::LiveAmongRanges, floor)? {
            Ok(Met::Shown)
        } else {
            Ok(Met::Hidden)
        }
    }

    /// Shows the merged cursor's entry, which is the newest visible version of its key and no tombstone: as `live` if it
    /// is a value. Returns false if it has expired. What is older than `floor` does not count.
    #[inline]
    fn show_or_pass(
        &mut self,
        trailer: Trailer,
        live: Position,
        floor: SequenceNumber,
    ) -> Result<bool> {
        if trailer.is_expiring() {
            if self.is_expired(self.merged.value()) {
                return Ok(false);
            }
            self.position = Position::LiveExpiring;
        } else if trailer.is_operand() {
            self.pass_operands(floor)?;
        } else {
            self.position = live;
        }
        Ok(true)
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
            if let Some(coverage) = &self.coverage {
                let ordered = coverage.refuse_disorder(floor, merged);
                ordered.map_err(|error| self.jumps.fail(error))?;
            }
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
        let (mut found, mut is_hidden) = (false, false);
        while self.merged.is_valid() {
            let trailer = self.merged.trailer();
            let key = self.merged.key();
            if !self.range.is_above_lower(key) {
                break;
            }
            if !found
                && self.passing.is_due()
                && let Some(span) = self.passing.look_backward(key)
            {
                Self::seek_before(&mut self.merged, span.from())?;
                self.jumps.land(Direction::Backward, &self.merged)?;
                continue;
            }
            if trailer.sequence() <= self.sequence {
                if found && key != self.shown_key {
                    break;
                }
                let floor = match &mut self.coverage {
                    Some(coverage) => coverage.floor_of(&self.merged),
                    None => Ok(0),
                };
                let floor = floor.map_err(|error| self.jumps.fail(error))?;
                if let Some(coverage) = &self.coverage
                    && trailer.sequence() < floor
                {
                    let hole = coverage.hole();
                    if self.merged.pass_backward(hole.newest, &hole.start)? {
                        self.jumps.land(Direction::Backward, &self.merged)?;
                    } else {
                        self.merged.prev()?;
                    }
                    continue;
                }
                if trailer.is_operand() {
                    // An expired entry is no base either: it cannot be folded, whichever way a reader comes.
                    let has_base = found || is_hidden && key == self.shown_key;
                    let below = match (has_base, self.shown_expiry) {
                        (false, _) => Kind::Tombstone,
                        (true, None) => self.shown_kind,
                        (true, Some(_)) => self.shown_kind.expiring(),
                    };
                    if below != Kind::Operand {
                        self.unfolded.restart(false);
                        self.unfolded.set_base(below, &self.shown_value);
                    }
                    self.unfolded.push(self.merged.value());
                }
                // Newer versions come later. They replace older ones, or add to them.
                is_hidden = trailer.is_expiring() && self.is_expired(self.merged.value());
                found = !trailer.is_tombstone() && !is_hidden;
                self.shown_key.clear();
                self.shown_key.extend_from_slice(key);
                if found || is_hidden {
                    let stored = self.merged.value();
                    let (expiry, value) = if trailer.is_expiring() {
                        let (expiry, value) = split_expiring(stored);
                        (Some(expiry), value)
                    } else {
                        (None, stored)
                    };
                    self.shown_value.clear();
                    self.shown_value.extend_from_slice(value);
                    self.shown_kind = trailer.kind().lasting();
                    self.shown_expiry = expiry;
                }
            }
            self.merged.prev()?;
            self.passing.count();
        }
        if self.passing.is_long() {
            self.report_backward(found);
        }
        if found {
            self.position = Position::Copied;
        }
        Ok(found)
    }
}
