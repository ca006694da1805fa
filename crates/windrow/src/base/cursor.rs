//! The cursor interface of every sorted source of entries.

use super::{Kind, Result, SequenceNumber, Trailer};

/// Where a cursor moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// The outcome of a `next`, in one word: all layers return it at each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step(u64);

impl Step {
    /// Past the last entry.
    pub(crate) const END: Self = Self(u64::MAX);

    /// Set where the key is repeated; no kind has this bit.
    const REPEATS: u64 = 1 << 4;

    /// A step to an entry; `repeats_key` if it has the same user key as the one before it.
    #[inline]
    pub(crate) fn to(trailer: Trailer, repeats_key: bool) -> Self {
        let mark = if repeats_key { Self::REPEATS } else { 0 };
        Self(trailer.word() | mark)
    }

    /// Whether there is no entry.
    #[inline]
    pub(crate) fn is_end(self) -> bool {
        self == Self::END
    }

    /// Whether the entry has the same user key as the previous one. There must be an entry.
    #[inline]
    pub(crate) fn repeats_key(self) -> bool {
        self.0 & Self::REPEATS != 0
    }

    /// Whether there is an entry, of a new key, that is a value or a pointer and at most `sequence`.
    #[inline]
    pub(crate) fn is_new_value(self, sequence: SequenceNumber) -> bool {
        // The lowest byte holds the kind and the mark of a repeated key. The kinds of values are between those of
        // tombstones, 0, and operands.
        let low = self.0 & u64::from(u8::MAX);
        low.wrapping_sub(1) < Kind::Operand as u64 - 1 && self.0 >> 8 <= sequence
    }

    /// The sequence number and kind of the entry. There must be one.
    #[inline]
    pub(crate) fn trailer(self) -> Trailer {
        Trailer::from_word(self.0 & !Self::REPEATS)
    }
}

/// A lending cursor over entries in the order of [`compare_entries`](super::key::compare_entries):
/// key ascending, sequence number descending.
///
/// A new cursor is not valid until a seek. Moving past either end makes it invalid; a valid
/// position is then reached only by another seek. `key`, `trailer` and `value` may be called only
/// while it is valid, and what they return lives until the next move. After an error the cursor is
/// invalid and every further move returns an error.
pub(crate) trait Cursor {
    /// Moves to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry that is not before (`key`, `sequence`): the newest version of
    /// `key` that is at most `sequence`, or else the first entry of a greater key.
    fn seek(&mut self, key: &[u8], sequence: SequenceNumber) -> Result<()>;
    /// Asks the system, without a wait, for what a seek to `key` will read from a device. Returns whether such requests
    /// are of use now: whether reads have waited for a device a short time ago.
    fn announce(&mut self, _key: &[u8]) -> bool {
        true
    }
    /// As [`announce`](Self::announce), for what [`prev`](Self::prev) will read.
    fn announce_prev(&mut self) -> bool {
        true
    }
    /// Moves to the next entry.
    fn next(&mut self) -> Result<Step>;
    /// Whether the cursor knows the key of its entry but has not read it. So a merging cursor reads only the entries
    /// that it reaches. The trailer then orders the entry before all versions of the key after a forward move, and
    /// after all versions after a backward move.
    fn is_ahead(&self) -> bool;
    /// Reads the entry whose key is known.
    fn arrive(&mut self) -> Result<()>;
    /// Passes entries that a range tombstone covers. Of the sources that the cursor merges, newest first, those behind
    /// number `newest` go to `end` if they are before it. Returns whether the present entry was passed. It must have
    /// been reached in forward direction.
    fn pass_forward(&mut self, _newest: usize, _end: &[u8]) -> Result<bool> {
        Ok(false)
    }
    /// As [`pass_forward`](Self::pass_forward), in backward direction: to the last entry before `start`.
    fn pass_backward(&mut self, _newest: usize, _start: &[u8]) -> Result<bool> {
        Ok(false)
    }
    /// The number of the source that holds the entry, among those that the cursor merges, newest first.
    fn source(&self) -> usize {
        0
    }
    /// Moves to the previous entry.
    fn prev(&mut self) -> Result<()>;
    /// Whether the cursor is on an entry.
    fn is_valid(&self) -> bool;
    /// The user key of the entry.
    fn key(&self) -> &[u8];
    /// The sequence number and kind of the entry.
    fn trailer(&self) -> Trailer;
    /// The value of the entry; empty for a tombstone.
    fn value(&self) -> &[u8];
}

/// A cursor that can be duplicated.
pub(crate) trait Sibling: Cursor {
    /// A new cursor over the same entries.
    fn sibling(&self) -> Self;
}
