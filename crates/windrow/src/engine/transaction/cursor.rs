//! A cursor over the snapshot of a transaction with the transaction's own writes over it.
//!
//! A written key hides the entry of the snapshot, a removal hides the key, and a deleted range is passed at once. Own
//! operands are folded when the value is asked for. The cursor also shows writes that the transaction makes while it is
//! open, if they are still ahead of it: it looks its next own write up at each move.
//!
//! Invariants:
//! - I1: `base` is at no entry between the position and the next one in the present direction: forwards it is at the
//!   first entry of the snapshot at the position or behind it, backwards at the last one at the position or before it.
//!   Entries in deleted ranges do not count. A roll-back may bring them back, so the next step after one moves `base`.
//! - I2: `passed` covers every key of which the cursor has shown that it exists, or, by passing it, that it does not.
//!   The transaction has it at the latest when the cursor is dropped.
//!
//! Concurrency: owned by the thread of its transaction.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use super::TransactionCore;
use super::written::{Below, Own};
use crate::base::{ErrorKind, Moment, Result};
use crate::engine::{KeyspaceCore, StateCursor};
use crate::merge_operator::{Chain, KeyspaceOperator};
use crate::options::Isolation;
use crate::read::merge::{iteration_failed, out_of_order};
use crate::read::visible::KeyRange;

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// The entry of `base`.
    Base,
    /// The own write in `key` and `value`.
    Own,
    /// The own operands, on this base.
    Operands(OperandBase),
}

/// What own operands are folded on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandBase {
    Nothing,
    /// The own write in `value`.
    Own,
    /// The entry of `base`, which is at the position.
    Base,
}

/// Where `base` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BasePlace {
    AtEntry,
    BeforeFirst,
    BehindLast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// An end of what was passed.
#[derive(Debug)]
enum End {
    /// This key, included.
    Key(Vec<u8>),
    /// The bound of the range.
    OfRange,
}

impl End {
    /// Extends the end to `key`, or to the bound of the range. `order` is that of `key` to a key beyond which it is.
    fn extend(&mut self, key: Option<&[u8]>, order: Ordering) {
        match (&mut *self, key) {
            (Self::Key(end), Some(key)) if key.cmp(end) == order => {
                end.clear();
                end.extend_from_slice(key);
            }
            (Self::Key(_), None) => *self = Self::OfRange,
            _ => {}
        }
    }

    fn bound(self, of_range: &Bound<Box<[u8]>>) -> Bound<Box<[u8]>> {
        match self {
            Self::Key(key) => Bound::Included(key.into()),
            Self::OfRange => of_range.clone(),
        }
    }
}

/// What the cursor has passed since its last seek.
#[derive(Debug)]
struct Passed {
    lower: End,
    upper: End,
}

/// A cursor of a transaction.
#[derive(Debug)]
pub(crate) struct TransactionCursor<'a> {
    transaction: &'a TransactionCore,
    keyspace: Arc<KeyspaceCore>,
    range: KeyRange,
    base: StateCursor,
    place: BasePlace,
    /// The roll-backs of the transaction that `base` has followed.
    roll_backs: u64,
    shown: Shown,
    /// The position: the key that is shown, or the last removal that was passed.
    key: Vec<u8>,
    /// The value of an own write, and when it expires.
    value: Vec<u8>,
    /// Own operands, and the value that they are folded to.
    operands: Chain,
    folded: OnceCell<Vec<u8>>,
    operator: Arc<KeyspaceOperator>,
    expiry: Option<Moment>,
    passed: Option<Passed>,
    /// Whether `base` has led back into a deleted range: every later move is an error.
    is_out_of_order: bool,
}

impl<'a> TransactionCursor<'a> {
    /// A cursor over `range`; `base` is one over the same range of the snapshot.
    pub(super) fn new(
        transaction: &'a TransactionCore,
        keyspace: &Arc<KeyspaceCore>,
        range: KeyRange,
        base: StateCursor,
    ) -> Self {
        transaction.cursors.set(transaction.cursors.get() + 1);
        Self {
            transaction,
            keyspace: Arc::clone(keyspace),
            range,
            base,
            place: BasePlace::BeforeFirst,
            roll_backs: transaction.writes.borrow().roll_backs(),
            shown: Shown::Nothing,
            key: Vec::new(),
            value: Vec::new(),
            operands: Chain::default(),
            folded: OnceCell::new(),
            operator: keyspace.operator(),
            expiry: None,
            passed: None,
            is_out_of_order: false,
        }
    }

    /// The cursor over the snapshot.
    pub(crate) fn base_mut(&mut self) -> &mut StateCursor {
        &mut self.base
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.shown != Shown::Nothing
    }

    /// The key; empty while invalid.
    pub(crate) fn key(&self) -> &[u8] {
        self.shown_key().unwrap_or_default()
    }

    fn shown_key(&self) -> Option<&[u8]> {
        (self.shown != Shown::Nothing).then_some(&self.key)
    }

    /// The value; empty while invalid.
    ///
    /// # Errors
    /// As [`StateCursor::value`].
    pub(crate) fn value(&self) -> Result<&[u8]> {
        let base = match self.shown {
            Shown::Nothing => return Ok(&[]),
            Shown::Base => return self.base.value(),
            Shown::Own => return Ok(&self.value),
            Shown::Operands(base) => base,
        };
        if let Some(folded) = self.folded.get() {
            return Ok(folded);
        }
        let base = match base {
            OperandBase::Nothing => None,
            OperandBase::Own => Some(&self.value[..]),
            OperandBase::Base => Some(self.base.value()?),
        };
        let mut value = Vec::new();
        self.operator
            .full_merge(&self.key, base, &self.operands, &mut value)?;
        Ok(self.folded.get_or_init(|| value))
    }

    /// When the entry expires; `None` if it never does, and while invalid.
    pub(crate) fn expiry(&self) -> Option<Moment> {
        match self.shown {
            // Where operators fold, nothing expires.
            Shown::Nothing | Shown::Operands(_) => None,
            Shown::Base => self.base.expiry(),
            Shown::Own => self.expiry,
        }
    }

    /// Moves to the first entry; returns whether it exists.
    pub(crate) fn seek_to_first(&mut self) -> Result<bool> {
        self.leave()?;
        let found = self.base.seek_to_first()?;
        self.place_base(found, Direction::Forward);
        let lower = self.range.lower.clone();
        let found = self.show(Direction::Forward, Some(lower))?;
        self.begin_passed(End::OfRange, Direction::Forward);
        Ok(found)
    }

    /// Moves to the first entry at `key` or behind it; returns whether it exists.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        if !self.range.is_above_lower(key) {
            return self.seek_to_first();
        }
        self.leave()?;
        let found = self.base.seek(key)?;
        self.place_base(found, Direction::Forward);
        let lower = Bound::Included(key.into());
        let found = self.show(Direction::Forward, Some(lower))?;
        self.begin_passed(End::Key(key.to_vec()), Direction::Forward);
        Ok(found)
    }

    /// Moves to the last entry; returns whether it exists.
    pub(crate) fn seek_to_last(&mut self) -> Result<bool> {
        self.leave()?;
        let found = self.base.seek_to_last()?;
        self.place_base(found, Direction::Backward);
        let upper = self.range.upper.clone();
        let found = self.show(Direction::Backward, Some(upper))?;
        self.begin_passed(End::OfRange, Direction::Backward);
        Ok(found)
    }

    /// Moves to the next entry; returns whether it exists.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.shown == Shown::Nothing {
            return self.refuse_after_error();
        }
        self.shown = Shown::Nothing;
        self.follow_roll_backs(Direction::Forward)?;
        if self.place == BasePlace::BeforeFirst {
            let found = self.base.seek_to_first()?;
            self.place_base(found, Direction::Forward);
        }
        while self.place == BasePlace::AtEntry && self.base.key() <= &self.key[..] {
            self.step_base(Direction::Forward)?;
        }
        let found = self.show(Direction::Forward, None)?;
        if let Some(mut passed) = self.passed.take() {
            passed.upper.extend(self.shown_key(), Ordering::Greater);
            self.passed = Some(passed);
        }
        Ok(found)
    }

    /// Moves to the previous entry; returns whether it exists.
    pub(crate) fn prev(&mut self) -> Result<bool> {
        if self.shown == Shown::Nothing {
            return self.refuse_after_error();
        }
        self.shown = Shown::Nothing;
        self.follow_roll_backs(Direction::Backward)?;
        if self.place == BasePlace::BehindLast {
            let found = self.base.seek_to_last()?;
            self.place_base(found, Direction::Backward);
        }
        while self.place == BasePlace::AtEntry && self.base.key() >= &self.key[..] {
            self.step_base(Direction::Backward)?;
        }
        let found = self.show(Direction::Backward, None)?;
        if let Some(mut passed) = self.passed.take() {
            passed.lower.extend(self.shown_key(), Ordering::Less);
            self.passed = Some(passed);
        }
        Ok(found)
    }

    /// An exhausted cursor does not move; a failed cursor returns its error again.
    fn refuse_after_error(&mut self) -> Result<bool> {
        self.check_order()?;
        // At the end of the keys, `base` may have stayed in a deleted range.
        if self.base.is_valid() {
            return Ok(false);
        }
        self.base.next()
    }

    /// Shows the nearest entry among that of `base` and the own writes from `start` on, or beyond the position.
    fn show(&mut self, direction: Direction, mut start: Option<Bound<Box<[u8]>>>) -> Result<bool> {
        let transaction = self.transaction;
        loop {
            self.pass_deleted(direction)?;
            let writes = transaction.writes.borrow();
            let start_bound = match &start {
                Some(start) => start.as_ref().map(AsRef::as_ref),
                None => Bound::Excluded(&self.key[..]),
            };
            let written = match direction {
                Direction::Forward => {
                    let upper = self.range.upper.as_ref().map(AsRef::as_ref);
                    writes.first_in(&self.keyspace, (start_bound, upper))
                }
                Direction::Backward => {
                    let lower = self.range.lower.as_ref().map(AsRef::as_ref);
                    writes.last_in(&self.keyspace, (lower, start_bound))
                }
            };
            let base = (self.place == BasePlace::AtEntry).then(|| self.base.key());
            let Some((key, own)) = written.filter(|(key, _)| is_nearer(direction, key, base))
            else {
                return Ok(self.show_base());
            };
            let hides_base = base == Some(key);
            self.key.clear();
            self.key.extend_from_slice(key);
            self.value.clear();
            self.folded.take();
            let shown = match own {
                Own::Decided(None) => None,
                Own::Decided(Some(written)) => {
                    self.value.extend_from_slice(&written.value);
                    self.expiry = written.expiry;
                    Some(Shown::Own)
                }
                Own::Operands(below, operands) => {
                    self.operands.clone_from(operands);
                    Some(Shown::Operands(match below {
                        Below::Unwritten if hides_base => OperandBase::Base,
                        Below::Unwritten | Below::Written(None) => OperandBase::Nothing,
                        Below::Written(Some(value)) => {
                            self.value.extend_from_slice(value);
                            OperandBase::Own
                        }
                    }))
                }
            };
            drop(writes);
            // The operands still need their base. I1 holds: the position is that of `base`.
            if hides_base && shown != Some(Shown::Operands(OperandBase::Base)) {
                self.step_base(direction)?;
            }
            if let Some(shown) = shown {
                self.shown = shown;
                return Ok(true);
            }
            start = None;
        }
    }

    /// Moves `base` out of the ranges that the transaction has deleted.
    fn pass_deleted(&mut self, direction: Direction) -> Result<()> {
        let transaction = self.transaction;
        while self.place == BasePlace::AtEntry {
            let writes = transaction.writes.borrow();
            let Some((start, end)) = writes.deleted_around(&self.keyspace, self.base.key()) else {
                return Ok(());
            };
            let found = match direction {
                Direction::Forward if end.is_empty() => false,
                Direction::Forward => self.base.seek(end)?,
                Direction::Backward => {
                    if self.base.seek(start)? {
                        self.base.prev()?
                    } else {
                        self.base.seek_to_last()?
                    }
                }
            };
            let key = self.base.key();
            let is_within = match direction {
                Direction::Forward => key < end,
                Direction::Backward => key >= start,
            };
            // A table whose checksums are right may have its entries in any order, and the loop would not end.
            if found && is_within {
                self.is_out_of_order = true;
                return Err(out_of_order(key));
            }
            self.place_base(found, direction);
        }
        Ok(())
    }

    /// Moves `base` back to the position if the transaction was rolled back: there may be entries again where `base` has
    /// left a deleted range (I1).
    fn follow_roll_backs(&mut self, direction: Direction) -> Result<()> {
        let roll_backs = self.transaction.writes.borrow().roll_backs();
        if mem::replace(&mut self.roll_backs, roll_backs) == roll_backs {
            return Ok(());
        }
        let found = self.base.seek(&self.key)?;
        let found = match direction {
            Direction::Forward => found,
            Direction::Backward if !found => self.base.seek_to_last()?,
            Direction::Backward if self.base.key() > &self.key[..] => self.base.prev()?,
            Direction::Backward => true,
        };
        self.place_base(found, direction);
        Ok(())
    }

    /// Shows the entry of `base`, if it is at one.
    fn show_base(&mut self) -> bool {
        if self.place != BasePlace::AtEntry {
            return false;
        }
        self.key.clear();
        self.key.extend_from_slice(self.base.key());
        self.shown = Shown::Base;
        true
    }

    fn step_base(&mut self, direction: Direction) -> Result<()> {
        let found = match direction {
            Direction::Forward => self.base.next()?,
            Direction::Backward => self.base.prev()?,
        };
        self.place_base(found, direction);
        Ok(())
    }

    /// Notes where `base` is after a move that has `found` an entry or not.
    fn place_base(&mut self, found: bool, direction: Direction) {
        self.place = match direction {
            _ if found => BasePlace::AtEntry,
            Direction::Forward => BasePlace::BehindLast,
            Direction::Backward => BasePlace::BeforeFirst,
        };
    }

    /// Leaves the present position for one elsewhere.
    ///
    /// # Errors
    /// As [`check_order`](Self::check_order).
    fn leave(&mut self) -> Result<()> {
        self.shown = Shown::Nothing;
        self.report();
        self.check_order()
    }

    /// # Errors
    /// `Corruption` after `base` has led back.
    fn check_order(&self) -> Result<()> {
        if self.is_out_of_order {
            return Err(iteration_failed(ErrorKind::Corruption));
        }
        Ok(())
    }

    /// Begins at `start`, after a seek in `direction`.
    fn begin_passed(&mut self, start: End, direction: Direction) {
        if self.transaction.isolation != Isolation::Serializable {
            return;
        }
        let shown = match self.shown_key() {
            Some(key) => End::Key(key.to_vec()),
            None => End::OfRange,
        };
        let (lower, upper) = match direction {
            Direction::Forward => (start, shown),
            Direction::Backward => (shown, start),
        };
        self.passed = Some(Passed { lower, upper });
    }

    /// Adds what was passed to the reads of the transaction (I2).
    fn report(&mut self) {
        if let Some(Passed { lower, upper }) = self.passed.take() {
            let passed = KeyRange {
                lower: lower.bound(&self.range.lower),
                upper: upper.bound(&self.range.upper),
            };
            let mut reads = self.transaction.reads.borrow_mut();
            reads.add_range(&self.keyspace, passed, self.transaction.since);
            drop(reads);
            self.transaction.count_memory();
        }
    }
}

/// Whether the written `key` comes before the entry of the snapshot, or hides it.
fn is_nearer(direction: Direction, key: &[u8], base: Option<&[u8]>) -> bool {
    base.is_none_or(|base| match direction {
        Direction::Forward => key <= base,
        Direction::Backward => key >= base,
    })
}

impl Drop for TransactionCursor<'_> {
    fn drop(&mut self) {
        self.report();
        self.transaction
            .cursors
            .set(self.transaction.cursors.get() - 1);
    }
}
