//! What every sorted source of entries looks like to the layers above it.

use super::{Result, SequenceNumber, Trailer};

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
    /// Moves to the next entry.
    fn next(&mut self) -> Result<()>;
    /// Moves to the entry before.
    fn prev(&mut self) -> Result<()>;
    /// Whether the entry has the same user key as the one that the last move, a `next`, came from.
    /// Without meaning after any other move.
    fn repeats_key(&self) -> bool;
    /// Whether the cursor stands on an entry.
    fn is_valid(&self) -> bool;
    /// The user key of the entry.
    fn key(&self) -> &[u8];
    /// The sequence number and kind of the entry.
    fn trailer(&self) -> Trailer;
    /// The value of the entry; empty for a tombstone.
    fn value(&self) -> &[u8];
}
