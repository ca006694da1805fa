//! What every sorted source of entries looks like to the layers above it.

use super::{Result, SequenceNumber, Trailer};

/// Where a `next` came to, in one word: it is handed up through all layers at each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step(u64);

impl Step {
    /// Behind the last entry.
    pub(crate) const END: Self = Self(u64::MAX);

    /// Set where the key is repeated; no kind has this bit.
    const REPEATS: u64 = 1 << 7;

    /// To an entry, which has the same user key as the one before it or not.
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

    /// Whether the entry has the same user key as the one that was left. There is an entry.
    #[inline]
    pub(crate) fn repeats_key(self) -> bool {
        self.0 & Self::REPEATS != 0
    }

    /// Whether there is an entry, of a new key, that is a value and at most `sequence`.
    #[inline]
    pub(crate) fn is_new_value(self, sequence: SequenceNumber) -> bool {
        // The lowest byte holds the kind, 0 for a tombstone, and the mark of a repeated key.
        let low = self.0 & u64::from(u8::MAX);
        low.wrapping_sub(1) < Self::REPEATS - 1 && self.0 >> 8 <= sequence
    }

    /// The sequence number and kind of the entry, which there is.
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
    /// Moves to the next entry and tells what there is.
    fn next(&mut self) -> Result<Step>;
    /// As [`next`](Self::next), where the next entry is at hand: by far the commonest case, in as few
    /// instructions as can be. `None` where it is not, or where there is none, or an error; nothing
    /// has moved then, and `next` does the rest.
    #[inline]
    fn step(&mut self) -> Option<Step> {
        None
    }
    /// Whether the cursor knows the key of its entry but has not gone to it: so whoever merges many opens
    /// only those that are met. Then its trailer says that the entry stands before all versions of the
    /// key where it moved forward, and behind all where it moved backward.
    fn is_ahead(&self) -> bool;
    /// Goes to the entry that is ahead.
    fn arrive(&mut self) -> Result<()>;
    /// Moves to the entry before.
    fn prev(&mut self) -> Result<()>;
    /// Whether the cursor stands on an entry.
    fn is_valid(&self) -> bool;
    /// The user key of the entry.
    fn key(&self) -> &[u8];
    /// The sequence number and kind of the entry.
    fn trailer(&self) -> Trailer;
    /// The value of the entry; empty for a tombstone.
    fn value(&self) -> &[u8];
}

/// A cursor of which there can be more over the same entries.
pub(crate) trait Sibling: Cursor {
    /// A new cursor over the same entries.
    fn sibling(&self) -> Self;
}
