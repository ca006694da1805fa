//! The form of a data block: checked once, then read in place without allocation.
//!
//! See "Data blocks" in `docs/format.md`. [`search`](super::search) finds entries.
//!
//! A block may begin anywhere in the given bytes, such as a mapped file. All offsets count from their front.
//!
//! Invariants:
//! - I1. [`Layout::check`] accepts only payloads whose entries and slots fill them exactly.
//! - I2. No other function panics. They return `None` on bytes that would not pass the check, which a
//!   mapping has if the file is damaged later.
//! - I3. In a payload that passed the check, entries are in order, and an entry is marked as a repetition exactly if it has the
//!   key of the entry before it in the block. So nobody compares the keys of neighbours again.
//!
//! Concurrency: none; a layout is a copy of the header.

use std::cmp::Ordering;

use crate::base::expiry::EXPIRY_BYTES;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{KEY_BYTES_MAX, VALUE_BYTES_IN_PLACE_MAX};
use crate::base::{Kind, SequenceNumber, Step, Trailer};
use crate::codec::reader::DecodeError;

/// The bytes before the shared prefix.
pub(super) const HEADER_BYTES: usize = 28;

/// The most zeros after the slots.
const PADDING_BYTES_MAX: usize = 4095;

/// Slots are this wide up to [`NARROW_MAX`] bytes of entries.
pub(super) const NARROW_SLOT_BYTES: usize = 2;

/// Slots are this wide beyond.
pub(super) const WIDE_SLOT_BYTES: usize = 4;

/// The largest offset of the slots at which they are narrow.
const NARROW_MAX: usize = 1 << 16;

/// A word has at most so many bytes.
pub(super) const WORD_BYTES: usize = 8;

/// Selects the code of the kind, the lowest bits of a word.
pub(super) const KIND_MASK: u64 = 0xf;

/// Set in the word of an entry that has the key of the entry before.
pub(super) const REPEATS: u64 = 0x10;

/// Kind and mark together have so many bits.
pub(super) const MARK_BITS: u32 = 5;

/// The lengths of the suffixes of a block differ by less than 2 to this power.
const SUFFIX_BITS_MAX: u8 = 17;

/// The lengths of the values of a block differ by less than 2 to this power.
const VALUE_BITS_MAX: u8 = 21;

/// Lengths that the words of a block give: each is `least` and what the word says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    least: u32,
    /// Selects the bits of the word, after a shift.
    mask: u32,
}

impl Lengths {
    /// Decodes the field of the header: the least length in three bytes, then the number of bits, which counts up to 31.
    #[inline]
    fn read(field: [u8; 4]) -> Self {
        let field = u32::from_le_bytes(field);
        Self {
            least: field & 0xff_ffff,
            mask: (1 << (field >> 24 & 31)) - 1,
        }
    }

    /// The length in `word`, which is shifted so that its lowest bits are those of the length.
    #[inline]
    pub(super) fn of(self, word: u64) -> usize {
        let more = word & u64::from(self.mask);
        usize::try_from(u64::from(self.least) + more).unwrap_or(usize::MAX)
    }

    /// The least length.
    #[inline]
    pub(super) fn least(self) -> usize {
        self.of(0)
    }

    /// The largest length.
    #[inline]
    pub(super) fn most(self) -> usize {
        self.of(u64::MAX)
    }
}

/// The header of a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    /// The start of the block.
    pub(super) origin: usize,
    pub(super) count: usize,
    /// The start of the entries and end of the shared prefix.
    pub(super) entries: usize,
    /// The start of the slots and end of the entries.
    pub(super) slots: usize,
    base: SequenceNumber,
    pub(super) word_bytes: usize,
    /// Selects the bytes of a word from eight.
    pub(super) word_mask: u64,
    pub(super) suffixes: Lengths,
    values: Lengths,
    /// How far the length of the value is shifted in a word.
    value_shift: u32,
    /// How far the sequence number is shifted in a word.
    sequence_shift: u32,
}

/// The places of the parts of one entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The start of the key's suffix.
    pub(crate) suffix: usize,
    /// The end of the key's suffix and start of the value.
    pub(crate) value: usize,
    /// The end of the value and start of the next entry.
    pub(crate) end: usize,
    /// The sequence number and kind, and whether the key is that of the entry before in this block.
    pub(crate) step: Step,
}

/// An offset or a length of `WIDTH` bytes.
#[inline]
pub(super) fn offset_of<const WIDTH: usize>(field: [u8; WIDTH]) -> usize {
    let mut word = [0; size_of::<usize>()];
    word[..WIDTH].copy_from_slice(&field);
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

/// The `N` bytes at the front of `rest`, padded with zeroes. Inlined, it turns the copy of a whole piece into a call.
#[cold]
#[inline(never)]
pub(super) fn cut_piece<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut piece = [0; N];
    for (target, source) in piece.iter_mut().zip(rest) {
        *target = *source;
    }
    piece
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
    #[expect(
        clippy::inline_always,
        reason = "each get and most seeks read a header, and use parts of it; measured"
    )]
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8], origin: usize) -> Option<Self> {
        let rest = bytes.get(origin..)?;
        let header = rest.first_chunk::<HEADER_BYTES>()?;
        let (fields, _) = header.as_chunks::<4>();
        let &[count, slots, prefix_length, suffixes, values, low, high] = fields.first_chunk()?;
        let (suffix_bits, value_bits, word_bytes) = (suffixes[3], values[3], low[0]);
        let sound_bits = suffix_bits <= SUFFIX_BITS_MAX && value_bits <= VALUE_BITS_MAX;
        let (count, slots) = (offset_of(count), offset_of(slots));
        let entries = HEADER_BYTES.checked_add(offset_of(prefix_length))?;
        let end = slots.checked_add(count.checked_mul(slot_bytes(slots))?)?;
        let sound =
            count > 0 && entries <= slots && end <= rest.len() && (1..=8).contains(&word_bytes);
        if !(sound && sound_bits) {
            return None;
        }
        let word = u64::from(u32::from_le_bytes(high)) << 32 | u64::from(u32::from_le_bytes(low));
        let value_shift = MARK_BITS + u32::from(suffix_bits);
        Some(Self {
            origin,
            count,
            entries: origin + entries,
            slots: origin + slots,
            base: word >> 8,
            word_bytes: usize::from(word_bytes),
            word_mask: u64::MAX >> (64 - 8 * u32::from(word_bytes)),
            suffixes: Lengths::read(suffixes),
            values: Lengths::read(values),
            value_shift,
            sequence_shift: value_shift + u32::from(value_bits),
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

    /// Reads the header of `payload` and checks everything (I1, I3).
    pub(crate) fn check(payload: &[u8]) -> Result<Self, DecodeError> {
        match Self::check_but_order(payload)? {
            (layout, None) => Ok(layout),
            (_, Some(offset)) => {
                let what = "the entries of a block are not in order";
                Err(DecodeError::damaged(offset, what))
            }
        }
    }

    /// The same for someone who sorts the entries. The offset is that of the first one that does not come after the one before.
    pub(crate) fn check_but_order(payload: &[u8]) -> Result<(Self, Option<usize>), DecodeError> {
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
        if layout.sequence_shift > u64::BITS - layout.word_mask.leading_zeros() {
            return Err(damaged(0, "the words of a block are too short"));
        }
        let mut offset = layout.entries;
        let mut before: Option<(&[u8], SequenceNumber)> = None;
        let mut out_of_order = None;
        for index in 0..layout.count {
            if layout.slot(payload, index) != Some(offset) {
                let slot = layout.slots + index * slot_bytes;
                return Err(damaged(slot, "a slot does not point at its entry"));
            }
            let malformed = || damaged(offset, "a block entry is malformed");
            let word = layout.word(payload, offset).ok_or_else(malformed)?;
            let entry = layout.entry_of(word, offset).ok_or_else(malformed)?;
            let suffix = payload.get(entry.suffix..entry.value);
            let suffix = suffix.ok_or_else(malformed)?;
            let kind = (word & KIND_MASK).to_le_bytes()[0];
            if Kind::is_reserved(kind) {
                let what = "an entry has an unknown kind";
                return Err(DecodeError::unsupported(offset, what));
            }
            let key_length = layout.prefix_length() + entry.value - entry.suffix;
            let value_length = entry.end - entry.value;
            let sound = Kind::from_code(kind).is_some_and(|kind| stores(kind, value_length))
                && word >> layout.sequence_shift <= SEQUENCE_MAX - layout.base
                && (1..=KEY_BYTES_MAX).contains(&key_length);
            if !sound {
                return Err(damaged(offset, "a block entry breaks the limits"));
            }
            let sequence = layout.sequence(word);
            let order = before.map_or(Ordering::Less, |before| before.0.cmp(suffix));
            if entry.step.repeats_key() != order.is_eq() {
                return Err(damaged(offset, "a repeated key is marked wrongly"));
            }
            let is_older = before.is_none_or(|before| before.1 > sequence);
            if order.is_gt() || order.is_eq() && !is_older {
                out_of_order = out_of_order.or(Some(offset));
            }
            before = Some((suffix, sequence));
            offset = entry.end;
        }
        if offset != layout.slots {
            return Err(damaged(offset, "a block has bytes that belong to no entry"));
        }
        Ok((layout, out_of_order))
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

    /// The shared prefix.
    #[inline]
    pub(crate) fn prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.origin + HEADER_BYTES..self.entries)
    }

    /// The bytes from the shared prefix on.
    #[inline]
    pub(crate) fn prefix_on<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(self.origin + HEADER_BYTES..)
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
    pub(super) fn slot_bytes(&self) -> usize {
        slot_bytes(self.slots - self.origin)
    }

    /// The slots, `WIDTH` bytes each.
    #[inline]
    pub(super) fn slots<'a, const WIDTH: usize>(
        &self,
        bytes: &'a [u8],
    ) -> Option<&'a [[u8; WIDTH]]> {
        let end = self.slots + self.count * WIDTH;
        Some(bytes.get(self.slots..end)?.as_chunks().0)
    }

    /// The offset of entry `index`.
    #[inline]
    pub(crate) fn slot(&self, bytes: &[u8], index: usize) -> Option<usize> {
        let offset = if self.slot_bytes() == NARROW_SLOT_BYTES {
            offset_of(*self.slots::<NARROW_SLOT_BYTES>(bytes)?.get(index)?)
        } else {
            offset_of(*self.slots::<WIDE_SLOT_BYTES>(bytes)?.get(index)?)
        };
        Some(self.origin + offset)
    }

    /// The word of the entry at `offset`.
    #[inline]
    pub(super) fn word(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        let rest = bytes.get(offset..)?;
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => u64::from_le_bytes(cut_piece(rest)),
        };
        Some(word & self.word_mask)
    }

    /// The length of the suffix of the entry with this word.
    #[inline]
    pub(super) fn suffix_length(&self, word: u64) -> usize {
        self.suffixes.of(word >> MARK_BITS)
    }

    /// The length of the value of the entry with this word.
    #[inline]
    pub(super) fn value_length(&self, word: u64) -> usize {
        self.values.of(word >> self.value_shift)
    }

    /// The sequence number of the entry with this word.
    #[inline]
    pub(super) fn sequence(&self, word: u64) -> SequenceNumber {
        self.base.wrapping_add(word >> self.sequence_shift) & SEQUENCE_MAX
    }

    /// The parts of the entry at `offset`, whose word is `word`.
    #[inline]
    fn entry_of(&self, word: u64, offset: usize) -> Option<Entry> {
        let suffix = offset + self.word_bytes;
        let value = suffix + self.suffix_length(word);
        let end = value + self.value_length(word);
        (end <= self.slots).then(|| Entry {
            suffix,
            value,
            end,
            step: self.step(word),
        })
    }

    /// The parts of the entry at `offset`.
    #[inline]
    pub(crate) fn entry(&self, bytes: &[u8], offset: usize) -> Option<Entry> {
        self.entry_of(self.word(bytes, offset)?, offset)
    }

    /// What the word of an entry says beside lengths.
    #[inline]
    pub(super) fn step(&self, word: u64) -> Step {
        let trailer = Trailer::from_word(self.sequence(word) << 8 | word & KIND_MASK);
        Step::to(trailer, word & REPEATS != 0)
    }

    /// The least word of an entry that is newer than `sequence`; all words below are of older ones. The largest word may
    /// stand for none.
    #[inline]
    pub(super) fn first_newer(&self, sequence: SequenceNumber) -> u64 {
        match sequence.saturating_add(1).checked_sub(self.base) {
            None => 0,
            Some(delta) if delta > u64::MAX >> self.sequence_shift => u64::MAX,
            Some(delta) => delta << self.sequence_shift,
        }
    }
}
