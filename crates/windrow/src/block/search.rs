//! Searches a data block in place: first the heads of the suffixes, their first eight bytes, then whole entries.
//!
//! Concurrency: none.

use super::layout::{Layout, NARROW_SLOT_BYTES, WIDE_SLOT_BYTES, WORD_BYTES, cut_piece, offset_of};
use crate::base::SequenceNumber;
use crate::base::key::SEQUENCE_MAX;
use crate::base::prefix_index::head_after;

/// The bytes of a key that are compared first.
const HEAD_BYTES: usize = 8;

/// The piece that is read of an entry for its head: a word of any width that four bits can hold, and the head.
const PIECE_BYTES: usize = 0xf + HEAD_BYTES;

/// Masks of the bytes of a head that belong to a suffix of each shorter length.
const HEAD_MASKS: [u64; HEAD_BYTES] = {
    let mut masks = [0; HEAD_BYTES];
    let mut length = 1;
    while length < HEAD_BYTES {
        masks[length] = !(u64::MAX >> (8 * length));
        length += 1;
    }
    masks
};

/// The result of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// The index of the first entry that is not before the target; the count if there is none.
    pub(crate) index: usize,
    /// The offset of that entry, if there is one.
    pub(crate) offset: usize,
    /// Whether that entry has the key of the target.
    pub(crate) matches: bool,
    /// Whether the entry before it has that key, in a version too new.
    pub(crate) follows: bool,
}

impl Layout {
    /// Searches for the first entry that is not before (`key`, `sequence`).
    #[inline]
    pub(crate) fn search(
        &self,
        bytes: &[u8],
        key: &[u8],
        sequence: SequenceNumber,
    ) -> Option<Position> {
        let prefix = self.prefix(bytes)?;
        let Some(rest) = key.strip_prefix(prefix) else {
            let front = key < prefix;
            return Some(Position {
                index: if front { 0 } else { self.count },
                offset: if front { self.entries } else { self.slots },
                matches: false,
                follows: false,
            });
        };
        let target = head_after(key, prefix.len());
        if self.slot_bytes() == NARROW_SLOT_BYTES {
            let slots = self.slots::<NARROW_SLOT_BYTES>(bytes)?;
            self.search_slots(bytes, slots, target, rest, sequence)
        } else {
            let slots = self.slots::<WIDE_SLOT_BYTES>(bytes)?;
            self.search_slots(bytes, slots, target, rest, sequence)
        }
    }

    /// The end of the entries before `key`.
    pub(super) fn end_before(&self, bytes: &[u8], key: &[u8]) -> Option<usize> {
        Some(self.search(bytes, key, SEQUENCE_MAX)?.offset)
    }

    /// The index of the first entry behind `key`; the count if there is none.
    pub(super) fn first_behind(&self, bytes: &[u8], key: &[u8]) -> Option<usize> {
        let found = self.search(bytes, key, 0)?;
        Some(found.index + usize::from(found.matches))
    }

    /// Searches for (`rest`, `sequence`), the key without the shared prefix: first among the heads
    /// for `target`, the head of `rest`, then among whole entries if heads tie.
    #[inline]
    fn search_slots<const WIDTH: usize>(
        &self,
        bytes: &[u8],
        slots: &[[u8; WIDTH]],
        target: u64,
        rest: &[u8],
        sequence: SequenceNumber,
    ) -> Option<Position> {
        let heads = Heads {
            layout: self,
            head: self.word_bytes & 0xf,
            are_whole: self.suffixes.least() >= HEAD_BYTES,
        };
        let (mut low, mut high) = (0, slots.len());
        let mut head_at_high = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.origin + offset_of(*slots.get(middle)?);
            let head = heads.at(bytes, offset)?;
            if head < target {
                low = middle + 1;
            } else {
                high = middle;
                head_at_high = head;
            }
        }
        let mut position = Position {
            index: low,
            offset: self.slots,
            matches: false,
            follows: false,
        };
        let Some(slot) = slots.get(low) else {
            return Some(position);
        };
        position.offset = self.origin + offset_of(*slot);
        if head_at_high == target {
            let word = self.word(bytes, position.offset)?;
            let short = rest.len() <= HEAD_BYTES && rest.len() == self.suffix_length(word);
            if short && self.sequence(word) <= sequence {
                // The heads contain all bytes.
                position.matches = true;
            } else {
                return self.search_tied(bytes, slots, rest, sequence, low);
            }
        }
        Some(position)
    }

    /// Searches from entry `low` on by comparison of whole keys.
    #[inline(never)]
    fn search_tied<const WIDTH: usize>(
        &self,
        bytes: &[u8],
        slots: &[[u8; WIDTH]],
        rest: &[u8],
        sequence: SequenceNumber,
        mut low: usize,
    ) -> Option<Position> {
        let (mut matches, mut follows) = (false, false);
        let mut high = slots.len();
        // The first entry usually decides.
        let mut middle = low;
        while low < high {
            let offset = self.origin + offset_of(*slots.get(middle)?);
            let word = self.word(bytes, offset)?;
            let suffix = offset + self.word_bytes;
            let order = bytes
                .get(suffix..suffix + self.suffix_length(word))?
                .cmp(rest);
            let newer = order.is_eq() && self.sequence(word) > sequence;
            if order.is_lt() || newer {
                low = middle + 1;
                follows = newer;
            } else {
                high = middle;
                matches = order.is_eq();
            }
            middle = low + (high - low) / 2;
        }
        let offset = match slots.get(low) {
            Some(slot) => self.origin + offset_of(*slot),
            None => self.slots,
        };
        Some(Position {
            index: low,
            offset,
            matches,
            follows,
        })
    }
}

/// Reads the heads of the suffixes of a block: the first eight bytes of each as a big-endian word.
struct Heads<'a> {
    layout: &'a Layout,
    /// The start of a head in the piece of an entry.
    head: usize,
    /// Whether all suffixes have as many bytes.
    are_whole: bool,
}

impl Heads<'_> {
    /// The head of the entry at `offset`.
    #[inline]
    fn at(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        let rest = bytes.get(offset..)?;
        Some(match rest.first_chunk() {
            Some(piece) => self.of(piece),
            None => self.of(&cut_piece(rest)),
        })
    }

    /// The head of the entry that begins with `piece`.
    #[inline]
    fn of(&self, piece: &[u8; PIECE_BYTES]) -> u64 {
        let head = piece[self.head & 0xf..].first_chunk();
        let head = head.map_or(0, |head| u64::from_be_bytes(*head));
        if self.are_whole {
            return head;
        }
        let word = piece.first_chunk::<WORD_BYTES>();
        let word = word.map_or(0, |word| u64::from_le_bytes(*word)) & self.layout.word_mask;
        let mask = HEAD_MASKS.get(self.layout.suffix_length(word));
        head & mask.copied().unwrap_or(u64::MAX)
    }
}
