//! Checks a data block once, then searches it in place without allocation.
//!
//! See "Data blocks" in `docs/format.md`.
//!
//! A block may begin anywhere in the given bytes, such as a mapped file. All offsets count from their front.
//!
//! Invariants:
//! - I1. [`Layout::check`] accepts only payloads whose entries and slots fill them exactly.
//! - I2. No other function panics. They return `None` on bytes that would not pass the check, which a
//!   mapping has if the file is damaged later.
//!
//! Concurrency: none; a layout is a copy of the header.

use crate::base::expiry::EXPIRY_BYTES;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_IN_PLACE_MAX};
use crate::base::prefix_index::head_after;
use crate::base::{Kind, SequenceNumber, Trailer};
use crate::codec::reader::DecodeError;
use crate::codec::varint::get_varint;

/// The bytes before the shared prefix.
pub(super) const HEADER_BYTES: usize = 20;

/// The most zeros after the slots.
const PADDING_BYTES_MAX: usize = 4095;

/// Slots are this wide up to [`NARROW_MAX`] bytes of entries.
const NARROW_SLOT_BYTES: usize = 2;

/// Slots are this wide beyond.
const WIDE_SLOT_BYTES: usize = 4;

/// The largest offset of the slots at which they are narrow.
const NARROW_MAX: usize = 1 << 16;

/// How far a sequence number is shifted in an entry's trailer.
pub(super) const KIND_BITS: u32 = 4;

/// Selects the kind of a trailer.
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

/// The bytes of a key that are compared first.
const HEAD_BYTES: usize = 8;

/// Suffixes up to this length, by far the most frequent, are read as one piece of this size.
pub(crate) const SHORT_SUFFIX_BYTES: usize = 16;

/// The piece that is read of an entry with a short suffix: both lengths, the suffix and the trailer.
const SHORT_ENTRY_BYTES: usize = 32;

/// The header of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    /// The start of the block.
    origin: usize,
    count: usize,
    /// The start of the entries and end of the shared prefix.
    entries: usize,
    /// The start of the slots and end of the entries.
    slots: usize,
    base: SequenceNumber,
    trailer_bytes: usize,
    /// Selects the trailer's bytes from a word.
    trailer_mask: u64,
}

/// The places of the parts of one entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The start of the key's suffix.
    pub(crate) suffix: usize,
    /// The end of the key's suffix.
    pub(crate) suffix_end: usize,
    /// The start of the value.
    pub(crate) value: usize,
    /// The end of the value and start of the next entry.
    pub(crate) end: usize,
    /// The sequence number and kind.
    pub(crate) trailer: Trailer,
}

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

/// The `N` bytes at `offset`, padded with zeroes beyond the end.
#[inline]
fn piece_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    let rest = bytes.get(offset..)?;
    Some(match rest.first_chunk() {
        Some(piece) => *piece,
        None => cut_piece(rest),
    })
}

/// The piece that begins with fewer than `N` bytes. Inlined, it turns the copy of a whole piece into a call.
#[cold]
#[inline(never)]
fn cut_piece<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut piece = [0; N];
    for (target, source) in piece.iter_mut().zip(rest) {
        *target = *source;
    }
    piece
}

/// Masks of the bytes of a head that belong to a string of each one-byte length.
const HEAD_MASKS: [u64; 256] = {
    let mut masks = [u64::MAX; 256];
    let mut length = 0;
    while length < HEAD_BYTES {
        masks[length] = !(u64::MAX >> (8 * length));
        length += 1;
    }
    masks
};

/// A slot's offset.
#[inline]
fn slot_value<const WIDTH: usize>(slot: [u8; WIDTH]) -> usize {
    let mut word = [0; size_of::<usize>()];
    word[..WIDTH].copy_from_slice(&slot);
    usize::from_le_bytes(word)
}

/// The width of the slots that begin at `slots_offset` of the block.
pub(super) fn slot_bytes(slots_offset: usize) -> usize {
    if slots_offset <= NARROW_MAX {
        NARROW_SLOT_BYTES
    } else {
        WIDE_SLOT_BYTES
    }
}

/// Whether an entry of this kind may store so many bytes.
fn stores(kind: Kind, bytes: usize) -> bool {
    match kind {
        Kind::Tombstone => bytes == 0,
        kind if kind.is_expiring() => {
            (EXPIRY_BYTES..=EXPIRY_BYTES + VALUE_BYTES_IN_PLACE_MAX).contains(&bytes)
        }
        _ => bytes <= VALUE_BYTES_IN_PLACE_MAX,
    }
}

impl Layout {
    /// Reads the header of a payload that begins at `origin` and was checked before. Bytes after the
    /// payload have no effect.
    #[inline]
    pub(crate) fn read(bytes: &[u8], origin: usize) -> Option<Self> {
        let rest = bytes.get(origin..)?;
        let (header, _) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let (fields, word) = header.split_last_chunk::<8>()?;
        let (fields, _) = fields.as_chunks::<4>();
        let &[count, prefix_length, slots] = fields.first_chunk()?;
        let (count, slots) = (slot_value(count), slot_value(slots));
        let entries = HEADER_BYTES.checked_add(slot_value(prefix_length))?;
        let end = slots.checked_add(count.checked_mul(slot_bytes(slots))?)?;
        let word = u64::from_le_bytes(*word);
        let trailer_bytes = word.to_le_bytes()[0];
        let sound =
            count > 0 && entries <= slots && end <= rest.len() && (1..=8).contains(&trailer_bytes);
        sound.then(|| Self {
            origin,
            count,
            entries: origin + entries,
            slots: origin + slots,
            base: word >> 8,
            trailer_bytes: usize::from(trailer_bytes),
            trailer_mask: u64::MAX >> (64 - 8 * u32::from(trailer_bytes)),
        })
    }

    /// The same block with sequence numbers that are higher by `raise`.
    #[inline]
    #[must_use]
    pub(crate) fn raised(self, raise: SequenceNumber) -> Self {
        Self {
            base: self.base.wrapping_add(raise),
            ..self
        }
    }

    /// Reads the header of `payload` and checks everything but the order of the keys (I1).
    pub(crate) fn check(payload: &[u8]) -> Result<Self, DecodeError> {
        let damaged = DecodeError::damaged;
        let layout =
            Self::read(payload, 0).ok_or_else(|| damaged(0, "a block header is malformed"))?;
        let slot_bytes = layout.slot_bytes();
        let padding = payload
            .get(layout.slots + layout.count * slot_bytes..)
            .ok_or_else(|| damaged(0, "a block is shorter than its slots"))?;
        if padding.len() > PADDING_BYTES_MAX || padding.iter().any(|&byte| byte != 0) {
            return Err(damaged(0, "a block has bytes after its slots"));
        }
        let mut offset = layout.entries;
        for index in 0..layout.count {
            if layout.slot(payload, index) != Some(offset) {
                let slot = layout.slots + index * slot_bytes;
                return Err(damaged(slot, "a slot does not point at its entry"));
            }
            let entry = layout
                .long_entry(payload, offset)
                .ok_or_else(|| damaged(offset, "a block entry is malformed"))?;
            let kind = layout.kind_code(payload, &entry);
            if Kind::is_reserved(kind) {
                let what = "an entry has an unknown kind";
                return Err(DecodeError::unsupported(offset, what));
            }
            let key_length = layout.prefix_length() + entry.suffix_end - entry.suffix;
            let value_length = entry.end - entry.value;
            let sound = Kind::from_code(kind).is_some_and(|kind| stores(kind, value_length))
                && entry.trailer.sequence() >= layout.base
                && (1..=KEY_BYTES_MAX).contains(&key_length);
            if !sound {
                return Err(damaged(offset, "a block entry breaks the limits"));
            }
            offset = entry.end;
        }
        if offset != layout.slots {
            return Err(damaged(offset, "a block has bytes that belong to no entry"));
        }
        Ok(layout)
    }

    /// The number of entries.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The length of the shared prefix.
    #[inline]
    pub(crate) fn prefix_length(&self) -> usize {
        self.entries - self.origin - HEADER_BYTES
    }

    /// The prefix of all keys.
    #[inline]
    pub(crate) fn prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.origin + HEADER_BYTES..self.entries)
    }

    /// The piece that begins with the shared prefix, if that is short.
    #[inline]
    pub(crate) fn short_prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8; SHORT_SUFFIX_BYTES]> {
        if self.prefix_length() > SHORT_SUFFIX_BYTES {
            return None;
        }
        bytes.get(self.origin + HEADER_BYTES..)?.first_chunk()
    }

    /// The start of the entries.
    #[inline]
    pub(crate) fn entries_start(&self) -> usize {
        self.entries
    }

    /// The end of the entries.
    #[inline]
    pub(crate) fn entries_end(&self) -> usize {
        self.slots
    }

    #[inline]
    fn slot_bytes(&self) -> usize {
        slot_bytes(self.slots - self.origin)
    }

    /// The slots, `WIDTH` bytes each.
    #[inline]
    fn slots<'a, const WIDTH: usize>(&self, bytes: &'a [u8]) -> Option<&'a [[u8; WIDTH]]> {
        let end = self.slots + self.count * WIDTH;
        Some(bytes.get(self.slots..end)?.as_chunks().0)
    }

    /// The offset of entry `index`.
    #[inline]
    pub(crate) fn slot(&self, bytes: &[u8], index: usize) -> Option<usize> {
        let offset = if self.slot_bytes() == NARROW_SLOT_BYTES {
            slot_value(*self.slots::<NARROW_SLOT_BYTES>(bytes)?.get(index)?)
        } else {
            slot_value(*self.slots::<WIDE_SLOT_BYTES>(bytes)?.get(index)?)
        };
        Some(self.origin + offset)
    }

    /// The range of the bytes whose length, of any size, is at `offset`.
    #[inline(never)]
    fn long_length(&self, bytes: &[u8], offset: usize) -> Option<(usize, usize)> {
        let rest = bytes.get(offset..self.slots)?;
        let (length, used) = get_varint(rest)?;
        let start = offset + used;
        let length = usize::try_from(length).ok()?;
        (length <= self.slots - start).then(|| (start, start + length))
    }

    /// The parts of the entry at `offset`.
    #[inline]
    pub(crate) fn entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        match self.short_entry(bytes, offset) {
            Some((entry, _)) => Some(entry),
            None => self.long_entry(bytes, offset),
        }
    }

    /// The parts of the entry at `offset` and the piece that begins with its suffix; `None` for a long suffix
    /// or value, or close to the end of the bytes: `long_entry` reads these.
    #[expect(
        clippy::inline_always,
        reason = "a step of a cursor is little more than this; measured"
    )]
    #[inline(always)]
    pub(crate) fn short_entry<'a>(
        &self,
        bytes: &'a [u8],
        offset: usize,
    ) -> Option<(Entry, &'a [u8; SHORT_SUFFIX_BYTES])> {
        let piece = bytes.get(offset..)?.first_chunk::<SHORT_ENTRY_BYTES>()?;
        let suffix_length = usize::from(piece[0]);
        if suffix_length > SHORT_SUFFIX_BYTES {
            return None;
        }
        let rest = &piece[1 + suffix_length..];
        let (used, length) = if rest[0] < 0x80 {
            (1, usize::from(rest[0]))
        } else if rest[1] < 0x80 {
            (2, usize::from(rest[0] & 0x7f) | usize::from(rest[1]) << 7)
        } else {
            return None;
        };
        let word = u64::from_le_bytes(*rest[used..].first_chunk()?) & self.trailer_mask;
        let suffix = offset + 1;
        let suffix_end = suffix + suffix_length;
        let value = suffix_end + used + self.trailer_bytes;
        let end = value + length;
        let entry = Entry {
            suffix,
            suffix_end,
            value,
            end,
            trailer: self.trailer(word),
        };
        (end <= self.slots).then_some((entry, piece[1..].first_chunk()?))
    }

    /// The parts of the entry at `offset`, with lengths of any size, each in its shortest form.
    #[inline(never)]
    pub(crate) fn long_entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        let (suffix, suffix_end) = self.long_length(bytes, offset)?;
        let rest = bytes.get(suffix_end..self.slots)?;
        let (length, used) = get_varint(rest)?;
        let trailer = suffix_end + used;
        let word = u64::from_le_bytes(piece_at(bytes, trailer)?) & self.trailer_mask;
        let value = trailer + self.trailer_bytes;
        let end = usize::try_from(length).ok()?.checked_add(value)?;
        (end <= self.slots).then(|| Entry {
            suffix,
            suffix_end,
            value,
            end,
            trailer: self.trailer(word),
        })
    }

    /// Decodes a trailer's word.
    #[inline]
    fn trailer(&self, word: u64) -> Trailer {
        let sequence = self.base.wrapping_add(word >> KIND_BITS) & SEQUENCE_MAX;
        Trailer::from_word(sequence << 8 | word & KIND_MASK)
    }

    /// The code of the kind of `entry`, which was decoded from `bytes`.
    fn kind_code(&self, bytes: &[u8], entry: &Entry) -> u8 {
        bytes
            .get(entry.value - self.trailer_bytes)
            .map_or(u8::MAX, |byte| byte & KIND_MASK.to_le_bytes()[0])
    }

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
        let (mut low, mut high) = (0, slots.len());
        let mut head_at_high = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.origin + slot_value(*slots.get(middle)?);
            let head = self.head_at(bytes, offset)?;
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
        position.offset = self.origin + slot_value(*slot);
        if head_at_high == target {
            let entry = self.entry(bytes, position.offset)?;
            let short = rest.len() <= HEAD_BYTES && rest.len() == entry.suffix_end - entry.suffix;
            if short && entry.trailer.sequence() <= sequence {
                // The heads contain all bytes.
                position.matches = true;
            } else {
                return self.search_tied(bytes, slots, rest, sequence, low);
            }
        }
        Some(position)
    }

    /// The head of the suffix of the entry at `offset`: its first eight bytes as a big-endian word.
    #[inline]
    fn head_at(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        let [first, bytes_of_head @ ..] = piece_at::<{ 1 + HEAD_BYTES }>(bytes, offset)?;
        if first < 0x80 {
            return Some(u64::from_be_bytes(bytes_of_head) & HEAD_MASKS[usize::from(first)]);
        }
        let (start, _) = self.long_length(bytes, offset)?;
        piece_at(bytes, start).map(u64::from_be_bytes)
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
            let entry = self.entry(bytes, self.origin + slot_value(*slots.get(middle)?))?;
            let order = bytes.get(entry.suffix..entry.suffix_end)?.cmp(rest);
            let newer = order.is_eq() && entry.trailer.sequence() > sequence;
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
            Some(slot) => self.origin + slot_value(*slot),
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
