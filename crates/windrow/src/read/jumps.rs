//! The places to which a cursor jumps, which keep moves in one direction from going back.
//!
//! A cursor passes holes and tombstone spans by seeks. A table whose checksums are right may have its entries in any order, and then
//! a seek may lead back, again and again. All other moves go on through the blocks of each source, so they end.
//!
//! Invariants:
//! - I1. Between two seeks and turns of the cursor, each jump leads beyond the one before. In sound sources it does so by itself: each entry of a
//!   merged cursor comes behind the last one, whatever is inserted meanwhile, and each jump behind the entry where it begins.
//! - I2. After an error, every move is the error.
//!
//! Concurrency: owned by one thread.

use super::merge::{iteration_failed, out_of_order};
use crate::base::key::compare_entries;
use crate::base::{Cursor, Direction, Error, ErrorKind, Result, SequenceNumber};

/// Where the last jump has led.
#[derive(Debug, Default)]
pub(super) struct Jumps {
    key: Vec<u8>,
    sequence: SequenceNumber,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// No jump since the last seek or turn.
    #[default]
    None,
    /// The last jump has led to the noted entry.
    Landed,
    /// A move has failed with an error of this kind.
    Failed(ErrorKind),
}

impl Jumps {
    /// Begins a seek or a turn.
    ///
    /// # Errors
    /// One of the kind of that of an earlier move.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.refuse_after_error()?;
        self.state = State::None;
        Ok(())
    }

    /// # Errors
    /// One of the kind of that of an earlier move.
    pub(super) fn refuse_after_error(&self) -> Result<()> {
        match self.state {
            State::Failed(kind) => Err(iteration_failed(kind)),
            State::None | State::Landed => Ok(()),
        }
    }

    /// Lets all later moves fail as this one, with `error` (I2).
    #[cold]
    pub(super) fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error.kind());
        error
    }

    /// Notes the entry of `merged`, to which a jump in `direction` has led.
    ///
    /// # Errors
    /// `Corruption`, if it is not beyond the one before.
    #[cold]
    pub(super) fn land(&mut self, direction: Direction, merged: &impl Cursor) -> Result<()> {
        if !merged.is_valid() {
            return Ok(());
        }
        let (key, sequence) = (merged.key(), merged.trailer().sequence());
        let order = compare_entries(&self.key, self.sequence, key, sequence);
        let is_beyond = match direction {
            Direction::Forward => order.is_lt(),
            Direction::Backward => order.is_gt(),
        };
        if self.state == State::Landed && !is_beyond {
            return Err(self.fail(out_of_order(key)));
        }
        self.state = State::Landed;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.sequence = sequence;
        Ok(())
    }
}
