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
//! and an entry is: length of the suffix (varint), suffix, length of the value (varint),
//! `(sequence - smallest sequence) << 4 | kind` in the trailer's width, value.
//!
//! Invariants:
//! - I1. [`Layout::check`] accepts only payloads whose entries and slots fill them exactly.
//! - I2. Every other function is total: on bytes that would not pass the check, which a mapping
//!   can show when the file is damaged after it, they return `None`, never panic.
//!
//! Concurrency: none; a layout is a copy of the header.

use std::ops::Range;

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

/// The header of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    count: usize,
    prefix_end: usize,
    slots: usize,
    base: SequenceNumber,
    /// Selects the trailer's bytes from eight.
    trailer_mask: u64,
    trailer_bytes: usize,
}

/// Where the parts of one entry are in the payload.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The key after the shared prefix.
    pub(crate) suffix: Range<usize>,
    /// The value; it ends where the next entry begins.
    pub(crate) value: Range<usize>,
    /// The sequence number and kind.
    pub(crate) trailer: Trailer,
}

#[inline]
fn u32_at(bytes: &[u8], offset: usize) -> Option<usize> {
    let field = bytes.get(offset..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*field)).ok()
}

/// Eight bytes from `offset`, zeroes beyond the end.
#[inline]
fn eight_at(bytes: &[u8], offset: usize) -> Option<[u8; 8]> {
    let rest = bytes.get(offset..)?;
    Some(match rest.first_chunk() {
        Some(bytes) => *bytes,
        None => pad(rest),
    })
}

/// Fewer than eight bytes, padded with zeroes.
#[cold]
fn pad(rest: &[u8]) -> [u8; 8] {
    let mut padded = [0; 8];
    for (target, source) in padded.iter_mut().zip(rest) {
        *target = *source;
    }
    padded
}

/// The first eight bytes of the `length` bytes at `offset` as a big-endian word; zeroes for what
/// is missing.
#[inline]
fn head_at(bytes: &[u8], offset: usize, length: usize) -> Option<u64> {
    let word = u64::from_be_bytes(eight_at(bytes, offset)?);
    Some(if length < 8 {
        word & !(u64::MAX >> (8 * length))
    } else {
        word
    })
}

impl Layout {
    /// Reads the header of a payload that was checked before. Bytes behind the payload do not
    /// matter.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let count = u32_at(header, 0)?;
        let prefix_end = HEADER_BYTES + u32_at(header, 4)?;
        let slots = u32_at(header, 8)?;
        let word = u64::from_le_bytes(*header.last_chunk()?);
        let trailer_bytes = word.to_le_bytes()[0];
        let sound = prefix_end <= slots && slots <= bytes.len() && (1..=8).contains(&trailer_bytes);
        sound.then(|| Self {
            count,
            prefix_end,
            slots,
            base: word >> 8,
            trailer_mask: u64::MAX >> (64 - 8 * u32::from(trailer_bytes)),
            trailer_bytes: usize::from(trailer_bytes),
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
            Self::read(payload).ok_or_else(|| damaged(0, "a block header is malformed"))?;
        let slot_bytes = layout.count.checked_mul(layout.slot_bytes());
        if layout.count == 0
            || slot_bytes.and_then(|bytes| bytes.checked_add(layout.slots)) != Some(payload.len())
        {
            return Err(damaged(0, "a block does not have the length of its slots"));
        }
        let prefix_length = layout.prefix_length();
        let mut offset = layout.prefix_end;
        for index in 0..layout.count {
            if layout.slot(payload, index) != Some(offset) {
                let slot = layout.slots + index * layout.slot_bytes();
                return Err(damaged(slot, "a slot does not point at its entry"));
            }
            let entry = layout
                .entry(payload, offset)
                .ok_or_else(|| damaged(offset, "a block entry is malformed"))?;
            let kind = layout.kind_code(payload, &entry);
            if RESERVED_KINDS.contains(&kind) {
                return Err(DecodeError {
                    what: "an entry has a kind that is not known yet",
                    offset,
                    unsupported: true,
                });
            }
            let sound = Kind::from_code(kind).is_some()
                && entry.trailer.sequence() >= layout.base
                && entry.trailer.sequence() <= SEQUENCE_MAX
                && (1..=KEY_BYTES_MAX).contains(&(prefix_length + entry.suffix.len()))
                && entry.value.len() <= VALUE_BYTES_MAX
                && !(entry.trailer.is_tombstone() && !entry.value.is_empty());
            if !sound {
                return Err(damaged(offset, "a block entry breaks the limits"));
            }
            offset = entry.value.end;
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
        self.prefix_end - HEADER_BYTES
    }

    /// What all keys begin with.
    #[inline]
    pub(crate) fn prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(HEADER_BYTES..self.prefix_end)
    }

    /// Where the entries begin.
    #[inline]
    pub(crate) fn entries_start(&self) -> usize {
        self.prefix_end
    }

    /// Where the entries end.
    #[inline]
    pub(crate) fn entries_end(&self) -> usize {
        self.slots
    }

    fn slot_bytes(&self) -> usize {
        if self.slots <= NARROW_MAX {
            NARROW_SLOT_BYTES
        } else {
            WIDE_SLOT_BYTES
        }
    }

    /// Where entry `index` begins.
    #[inline]
    pub(crate) fn slot(&self, bytes: &[u8], index: usize) -> Option<usize> {
        if self.slots <= NARROW_MAX {
            let at = self
                .slots
                .checked_add(index.checked_mul(NARROW_SLOT_BYTES)?)?;
            Some(usize::from(u16::from_le_bytes(
                *bytes.get(at..)?.first_chunk()?,
            )))
        } else {
            let at = self
                .slots
                .checked_add(index.checked_mul(WIDE_SLOT_BYTES)?)?;
            u32_at(bytes, at)
        }
    }

    /// The range of the suffix of the entry at `offset`.
    #[inline]
    fn suffix(&self, bytes: &[u8], offset: usize) -> Option<Range<usize>> {
        let (length, used) = get_varint(bytes.get(offset..self.slots)?)?;
        let start = offset + used;
        let length = usize::try_from(length).ok()?;
        (length <= self.slots - start).then(|| start..start + length)
    }

    /// The parts of the entry at `offset`.
    #[inline]
    pub(crate) fn entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        let suffix = self.suffix(bytes, offset)?;
        let (length, used) = get_varint(bytes.get(suffix.end..self.slots)?)?;
        let trailer_start = suffix.end + used;
        let word = self.trailer_word(bytes, trailer_start)?;
        let start = trailer_start + self.trailer_bytes;
        let length = usize::try_from(length).ok()?;
        if start > self.slots || length > self.slots - start {
            return None;
        }
        let sequence = self.base.wrapping_add(word >> KIND_BITS) & SEQUENCE_MAX;
        let kind = if word & ((1 << KIND_BITS) - 1) == 0 {
            Kind::Tombstone
        } else {
            Kind::Value
        };
        Some(Entry {
            suffix,
            value: start..start + length,
            trailer: Trailer::new(sequence, kind),
        })
    }

    #[inline]
    fn trailer_word(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(eight_at(bytes, offset)?) & self.trailer_mask)
    }

    /// The kind's code of an entry that was decoded from `bytes`.
    fn kind_code(&self, bytes: &[u8], entry: &Entry) -> u8 {
        bytes
            .get(entry.value.start - self.trailer_bytes)
            .map_or(u8::MAX, |byte| byte & ((1 << KIND_BITS) - 1))
    }

    /// The index of the first entry that is not before (`key`, `sequence`); `count` if there is
    /// none.
    #[inline]
    pub(crate) fn search(
        &self,
        bytes: &[u8],
        key: &[u8],
        sequence: SequenceNumber,
    ) -> Option<usize> {
        let prefix = self.prefix(bytes)?;
        let Some(rest) = key.strip_prefix(prefix) else {
            return Some(if key < prefix { 0 } else { self.count });
        };
        let target = head_at(rest, 0, rest.len())?;
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let suffix = self.suffix(bytes, self.slot(bytes, middle)?)?;
            let head = head_at(bytes, suffix.start, suffix.len())?;
            let before = if head == target {
                self.is_before(bytes, &suffix, rest, sequence)?
            } else {
                head < target
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// Whether the entry with `suffix` is before (`rest`, `sequence`), by whole comparison.
    fn is_before(
        &self,
        bytes: &[u8],
        suffix: &Range<usize>,
        rest: &[u8],
        sequence: SequenceNumber,
    ) -> Option<bool> {
        Some(match bytes.get(suffix.clone())?.cmp(rest) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => {
                let (_, used) = get_varint(bytes.get(suffix.end..self.slots)?)?;
                let word = self.trailer_word(bytes, suffix.end + used)?;
                self.base.wrapping_add(word >> KIND_BITS) > sequence
            }
        })
    }

    /// Whether the key of `entry` is `key`.
    #[inline]
    pub(crate) fn has_key(&self, bytes: &[u8], entry: &Entry, key: &[u8]) -> bool {
        // The suffix first: it differs where the key is absent.
        let prefix_length = self.prefix_length();
        key.len() == prefix_length + entry.suffix.len()
            && bytes.get(entry.suffix.clone()) == key.get(prefix_length..)
            && self.prefix(bytes) == key.get(..prefix_length)
    }
}
