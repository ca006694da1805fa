//! Reading a data block in place: checking it once, then searching it without allocation.
//!
//! A payload is
//!
//! | bytes | what |
//! |---|---|
//! | 4 | number of entries, at least 1 |
//! | 4 | length of the prefix that all keys share |
//! | 4 | offset of the slots |
//! | 8 | smallest sequence number << 8, plus the width of a trailer in bytes, 1 to 8 |
//! | | the shared prefix |
//! | | the entries, one behind the other |
//! | 2 or 4 each | slots: the offset of each entry; 4 bytes where the slots begin beyond 64 KiB |
//!
//! and an entry is: length of the suffix (varint), length of the value (varint),
//! `(sequence - smallest sequence) << 4 | kind` in the trailer's width, suffix, value.
//!
//! A block need not begin at the front of the bytes: a mapped file is searched where it lies. All
//! offsets in this module's interface count from the front of those bytes.
//!
//! Invariants:
//! - I1. [`Layout::check`] accepts only payloads whose entries and slots fill them exactly.
//! - I2. Every other function is total: on bytes that would not pass the check, which a mapping
//!   can show when the file is damaged after it, they return `None`, never panic.
//!
//! Concurrency: none; a layout is a copy of the header.

use std::cmp::Ordering;

use crate::base::key::{RESERVED_KINDS, SEQUENCE_MAX};
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{Kind, SequenceNumber, Trailer};
use crate::codec::reader::DecodeError;
use crate::codec::varint::get_varint;

/// The bytes before the shared prefix.
pub(super) const HEADER_BYTES: usize = 20;

/// Slots are this wide up to [`NARROW_MAX`] bytes of entries.
pub(super) const NARROW_SLOT_BYTES: usize = 2;

/// Slots are this wide beyond.
pub(super) const WIDE_SLOT_BYTES: usize = 4;

/// The largest offset of the slots at which they are narrow.
pub(super) const NARROW_MAX: usize = 1 << 16;

/// How far a sequence number is shifted in an entry's trailer.
pub(super) const KIND_BITS: u32 = 4;

/// Selects the kind of a trailer.
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

/// Eight bytes are loaded at once where they are there; a word holds the lengths of all but the
/// longest entries.
const WORD_BYTES: usize = 8;

/// The header of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    /// Where the block begins.
    origin: usize,
    count: usize,
    /// Where the entries begin and the shared prefix ends.
    entries: usize,
    /// Where the slots begin and the entries end.
    slots: usize,
    base: SequenceNumber,
    trailer_bytes: usize,
    /// Selects the trailer's bytes from a word.
    trailer_mask: u64,
}

/// Where the parts of one entry are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Where the key's suffix begins; the value begins where it ends.
    pub(crate) suffix: usize,
    pub(crate) value: usize,
    /// Where the value ends and the next entry begins.
    pub(crate) end: usize,
    /// The sequence number and kind.
    pub(crate) trailer: Trailer,
}

/// Where a search ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// The index of the first entry that is not before what was sought; the count if there is none.
    pub(crate) index: usize,
    /// Where that entry begins, if it is there.
    pub(crate) offset: usize,
    /// Whether that entry has the key that was sought.
    pub(crate) matches: bool,
    /// Whether the entry before it has that key, in a version too new.
    pub(crate) follows: bool,
}

/// The lengths that an entry begins with.
#[derive(Clone, Copy)]
struct Lengths {
    suffix: usize,
    value: usize,
    /// Where the trailer begins.
    trailer: usize,
}

/// The word at `offset`, little-endian; zeroes for what is beyond the end.
#[inline]
fn word_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let rest = bytes.get(offset..)?;
    Some(match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => cut_word(rest),
    })
}

/// The word that begins with fewer than eight bytes.
#[cold]
fn cut_word(rest: &[u8]) -> u64 {
    let mut word = [0; WORD_BYTES];
    for (target, source) in word.iter_mut().zip(rest) {
        *target = *source;
    }
    u64::from_le_bytes(word)
}

/// The first eight of the `length` bytes at `offset` as a word that orders like them; zeroes for
/// what is missing.
#[inline]
fn head_at(bytes: &[u8], offset: usize, length: usize) -> Option<u64> {
    let word = word_at(bytes, offset)?.swap_bytes();
    Some(if length < WORD_BYTES {
        word & !(u64::MAX >> (8 * length))
    } else {
        word
    })
}

/// A slot's offset.
#[inline]
fn slot_value<const WIDTH: usize>(slot: [u8; WIDTH]) -> usize {
    let mut word = [0; size_of::<usize>()];
    word[..WIDTH].copy_from_slice(&slot);
    usize::from_le_bytes(word)
}

fn slot_bytes(slots_offset: usize) -> usize {
    if slots_offset <= NARROW_MAX {
        NARROW_SLOT_BYTES
    } else {
        WIDE_SLOT_BYTES
    }
}

impl Layout {
    /// Reads the header of a payload that begins at `origin` and was checked before. Bytes behind
    /// the payload do not matter.
    #[inline]
    pub(crate) fn read(bytes: &[u8], origin: usize) -> Option<Self> {
        let rest = bytes.get(origin..)?;
        let (header, _) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let (fields, word) = header.split_last_chunk::<WORD_BYTES>()?;
        let (fields, _) = fields.as_chunks::<4>();
        let &[count, prefix_length, slots] = fields.first_chunk()?;
        let (count, slots) = (slot_value(count), slot_value(slots));
        let entries = HEADER_BYTES.checked_add(slot_value(prefix_length))?;
        let end = slots.checked_add(count.checked_mul(slot_bytes(slots))?)?;
        let word = u64::from_le_bytes(*word);
        let trailer_bytes = word.to_le_bytes()[0];
        let sound = entries <= slots && end <= rest.len() && (1..=8).contains(&trailer_bytes);
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

    /// Reads the header of `payload` and checks everything but the order of the keys (I1).
    pub(crate) fn check(payload: &[u8]) -> Result<Self, DecodeError> {
        let damaged = |offset, what| DecodeError {
            what,
            offset,
            unsupported: false,
        };
        let layout =
            Self::read(payload, 0).ok_or_else(|| damaged(0, "a block header is malformed"))?;
        let slot_bytes = layout.slot_bytes();
        if layout.count == 0 || layout.slots + layout.count * slot_bytes != payload.len() {
            return Err(damaged(0, "a block does not have the length of its slots"));
        }
        let mut offset = layout.entries;
        for index in 0..layout.count {
            if layout.slot(payload, index) != Some(offset) {
                let slot = layout.slots + index * slot_bytes;
                return Err(damaged(slot, "a slot does not point at its entry"));
            }
            let entry = layout
                .strict_entry(payload, offset)
                .ok_or_else(|| damaged(offset, "a block entry is malformed"))?;
            let kind = layout.kind_code(payload, &entry);
            if RESERVED_KINDS.contains(&kind) {
                return Err(DecodeError {
                    what: "an entry has a kind that is not known yet",
                    offset,
                    unsupported: true,
                });
            }
            let key_length = layout.prefix_length() + entry.value - entry.suffix;
            let value_length = entry.end - entry.value;
            let sound = Kind::from_code(kind).is_some()
                && entry.trailer.sequence() >= layout.base
                && (1..=KEY_BYTES_MAX).contains(&key_length)
                && value_length <= VALUE_BYTES_MAX
                && !(entry.trailer.is_tombstone() && value_length > 0);
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

    /// How many entries there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// How long the shared prefix is.
    #[inline]
    pub(crate) fn prefix_length(&self) -> usize {
        self.entries - self.origin - HEADER_BYTES
    }

    /// What all keys begin with.
    #[inline]
    pub(crate) fn prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.origin + HEADER_BYTES..self.entries)
    }

    /// Where the entries begin.
    #[inline]
    pub(crate) fn entries_start(&self) -> usize {
        self.entries
    }

    /// Where the entries end.
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

    /// Where entry `index` begins.
    #[inline]
    pub(crate) fn slot(&self, bytes: &[u8], index: usize) -> Option<usize> {
        let offset = if self.slot_bytes() == NARROW_SLOT_BYTES {
            slot_value(*self.slots::<NARROW_SLOT_BYTES>(bytes)?.get(index)?)
        } else {
            slot_value(*self.slots::<WIDE_SLOT_BYTES>(bytes)?.get(index)?)
        };
        Some(self.origin + offset)
    }

    /// The lengths of the entry at `offset`.
    #[inline]
    fn lengths(&self, bytes: &[u8], offset: usize) -> Option<Lengths> {
        let [suffix, value, more, ..] = word_at(bytes, offset)?.to_le_bytes();
        if suffix < 0x80 && value < 0x80 {
            return Some(Lengths {
                suffix: usize::from(suffix),
                value: usize::from(value),
                trailer: offset + 2,
            });
        }
        if suffix < 0x80 && more < 0x80 {
            return Some(Lengths {
                suffix: usize::from(suffix),
                value: usize::from(value & 0x7f) | usize::from(more) << 7,
                trailer: offset + 3,
            });
        }
        self.long_lengths(bytes, offset)
    }

    /// Lengths of any size.
    #[inline(never)]
    fn long_lengths(&self, bytes: &[u8], offset: usize) -> Option<Lengths> {
        let rest = bytes.get(offset..self.slots)?;
        let (suffix, suffix_used) = get_varint(rest)?;
        let (value, value_used) = get_varint(rest.get(suffix_used..)?)?;
        // What is longer than the block cannot be.
        let bounded = |length: u64| {
            let length = usize::try_from(length).ok()?;
            (length <= self.slots).then_some(length)
        };
        Some(Lengths {
            suffix: bounded(suffix)?,
            value: bounded(value)?,
            trailer: offset + suffix_used + value_used,
        })
    }

    /// The parts of the entry at `offset`.
    #[inline]
    pub(crate) fn entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        let lengths = self.lengths(bytes, offset)?;
        self.entry_of(bytes, lengths)
    }

    /// As `entry`, accepting only the shortest form of lengths.
    fn strict_entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        let lengths = self.long_lengths(bytes, offset)?;
        self.entry_of(bytes, lengths)
    }

    #[inline]
    fn entry_of(&self, bytes: &[u8], lengths: Lengths) -> Option<Entry> {
        let word = self.trailer_word(bytes, lengths)?;
        let suffix = lengths.trailer + self.trailer_bytes;
        let value = suffix.checked_add(lengths.suffix)?;
        let end = value.checked_add(lengths.value)?;
        let sequence = self.sequence(word) & SEQUENCE_MAX;
        let kind = if word & KIND_MASK == 0 {
            Kind::Tombstone
        } else {
            Kind::Value
        };
        (end <= self.slots).then_some(Entry {
            suffix,
            value,
            end,
            trailer: Trailer::new(sequence, kind),
        })
    }

    #[inline]
    fn trailer_word(&self, bytes: &[u8], lengths: Lengths) -> Option<u64> {
        Some(word_at(bytes, lengths.trailer)? & self.trailer_mask)
    }

    /// The kind's code of an entry that was decoded from `bytes`.
    fn kind_code(&self, bytes: &[u8], entry: &Entry) -> u8 {
        bytes
            .get(entry.suffix - self.trailer_bytes)
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
        if self.slot_bytes() == NARROW_SLOT_BYTES {
            let slots = self.slots::<NARROW_SLOT_BYTES>(bytes)?;
            self.search_slots(bytes, slots, rest, sequence)
        } else {
            let slots = self.slots::<WIDE_SLOT_BYTES>(bytes)?;
            self.search_slots(bytes, slots, rest, sequence)
        }
    }

    /// Searches for (`rest`, `sequence`), the key without the shared prefix.
    #[inline]
    fn search_slots<const WIDTH: usize>(
        &self,
        bytes: &[u8],
        slots: &[[u8; WIDTH]],
        rest: &[u8],
        sequence: SequenceNumber,
    ) -> Option<Position> {
        let target = head_at(rest, 0, rest.len())?;
        let mut position = Position {
            index: slots.len(),
            offset: self.slots,
            matches: false,
            follows: false,
        };
        let mut low = 0;
        while low < position.index {
            let middle = low + (position.index - low) / 2;
            let offset = self.origin + slot_value(*slots.get(middle)?);
            let lengths = self.lengths(bytes, offset)?;
            let suffix = lengths.trailer + self.trailer_bytes;
            let head = head_at(bytes, suffix, lengths.suffix)?;
            let mut equal = false;
            let mut before = head < target;
            if head == target {
                let order = compare_tied(bytes, suffix, lengths.suffix, rest)?;
                equal = order.is_eq();
                before = order.is_lt()
                    || equal && self.sequence(self.trailer_word(bytes, lengths)?) > sequence;
            }
            if before {
                low = middle + 1;
                position.follows = equal;
            } else {
                position.index = middle;
                position.offset = offset;
                position.matches = equal;
            }
        }
        Some(position)
    }

    #[inline]
    fn sequence(&self, trailer_word: u64) -> SequenceNumber {
        self.base.wrapping_add(trailer_word >> KIND_BITS)
    }
}

/// Compares the `length` bytes at `offset` with `rest`, whose heads are equal.
#[inline]
fn compare_tied(bytes: &[u8], offset: usize, length: usize, rest: &[u8]) -> Option<Ordering> {
    if length <= WORD_BYTES && rest.len() <= WORD_BYTES {
        // All bytes are in the heads; where only zeroes pad the shorter one, it comes first.
        return Some(length.cmp(&rest.len()));
    }
    let end = offset.checked_add(length)?;
    Some(bytes.get(offset..end)?.cmp(rest))
}
