//! Entries of a block, through which the layers above its cursor step by themselves.
//!
//! Most steps of a scan lead to the next entry of the same block, which has a new key and a visible value. Up to the next
//! key of other sources nothing else decides. So a cursor lends its block for a while: the [`Stride`] moves, and the
//! cursor stays behind, until [`Striding::end_stride`] lets it follow.
//!
//! A stride backward is one entry ahead of its cursor, as results backward are: it takes an entry only if that has the
//! newest version of its key. Whether the block has a newer one, the mark of repeated keys says.
//!
//! Invariants:
//! - I1. An active stride forward is on an entry of its block, at or after that of the cursor that lent it. An active stride backward
//!   is on the entry after that of its cursor, or before it.
//! - I2. Before it has followed, nobody asks the cursor for its entry, and only seeks move it.
//!
//! Concurrency: owned by one thread.

use super::bytes::BlockBytes;
use super::layout::{KIND_MASK, Layout, REPEATS, WORD_BYTES};
use crate::base::{Cursor, Direction, Kind, Result, SequenceNumber, Step};

/// Blocks with a longer prefix are not lent.
const PREFIX_BYTES_MAX: usize = 0x1f;

/// Blocks with a longer suffix are not lent. All suffixes are copied as pieces of this length.
const SUFFIX_BYTES_MAX: usize = 32;

/// The piece that is read of an entry: a word of any width that four bits can hold, and a suffix.
const PIECE_BYTES: usize = 0xf + SUFFIX_BYTES_MAX;

/// Where a step has led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// To a value or a pointer of a new key, which the reader sees.
    ToValue,
    /// To an entry that is none of this, or not known to be.
    ToOther,
    /// Nowhere: the stride is not active, or its cursor has to find the next entry.
    Nowhere,
}

/// How far a stride may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) direction: Direction,
    /// The reader sees no newer entries.
    pub(crate) sequence: SequenceNumber,
    /// The stride ends before it comes to this key.
    pub(crate) end: Option<&'a [u8]>,
}

impl<'a> Reach<'a> {
    /// The same, and not as far as `key`.
    #[inline]
    #[must_use]
    pub(crate) fn up_to(self, key: &'a [u8]) -> Self {
        let end = match (self.end, self.direction) {
            (None, _) => key,
            (Some(end), Direction::Forward) => end.min(key),
            (Some(end), Direction::Backward) => end.max(key),
        };
        Self {
            end: Some(end),
            ..self
        }
    }
}

/// A position in a lent block.
#[derive(Debug)]
pub(crate) struct Stride {
    lent: Lent,
    present: Present,
}

/// The lent block, and what a stride may take of it.
#[derive(Debug)]
struct Lent {
    /// The end of the entries that a stride forward may take; 0 for others, and while the stride is not active.
    entries_end: usize,
    /// The first entry that a stride backward may take; `NONE` for others, and while the stride is not active.
    first: usize,
    /// The reader sees no entries with this word and above.
    first_newer: u64,
    layout: Layout,
    prefix_length: usize,
    block: BlockBytes,
}

/// The present entry.
#[derive(Debug)]
struct Present {
    index: usize,
    value: usize,
    /// The end of the value and start of the next entry.
    end: usize,
    word: u64,
    key_length: usize,
    /// The key, and behind it what was copied with it.
    key: [u8; PREFIX_BYTES_MAX + SUFFIX_BYTES_MAX + 1],
}

/// No entry has this index.
const NONE: usize = usize::MAX;

/// The entry from which a stride begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StrideStart<'a> {
    pub(crate) index: usize,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    /// The start and the end of its value.
    pub(crate) value: usize,
    pub(crate) end: usize,
}

/// What a step reads of an entry.
struct Peek<'a> {
    word: u64,
    suffix: &'a [u8; SUFFIX_BYTES_MAX],
    suffix_length: usize,
    value: usize,
    end: usize,
}

impl Lent {
    /// Reads the entry at `start`; `None` if it ends behind `limit`, or is so close to the end of the bytes that it takes
    /// care.
    #[expect(clippy::inline_always, reason = "part of a step; measured")]
    #[inline(always)]
    fn peek(&self, start: usize, limit: usize) -> Option<Peek<'_>> {
        let rest = self.block.in_place()?.get(start..)?;
        let piece = rest.first_chunk::<PIECE_BYTES>()?;
        let layout = &self.layout;
        let word = u64::from_le_bytes(*piece.first_chunk::<WORD_BYTES>()?) & layout.word_mask;
        let suffix_length = layout.suffix_length(word);
        let value = start + layout.word_bytes + suffix_length;
        let end = value + layout.value_length(word);
        let suffix = piece[layout.word_bytes & 0xf..].first_chunk()?;
        (end <= limit).then_some(Peek {
            word,
            suffix,
            suffix_length,
            value,
            end,
        })
    }

    /// Whether the reader sees the entry with this word, which has a value or a pointer and does not repeat a key.
    #[inline]
    fn is_visible_value(&self, word: u64) -> bool {
        // The kinds of values are between those of tombstones, 0, and operands.
        let kind_and_mark = word.wrapping_sub(1) & (KIND_MASK | REPEATS);
        kind_and_mark < Kind::Operand as u64 - 1 && word < self.first_newer
    }
}

impl Present {
    #[expect(clippy::inline_always, reason = "part of a step; measured")]
    #[inline(always)]
    fn take(&mut self, prefix_length: usize, index: usize, entry: &Peek<'_>) {
        let suffix = &mut self.key[prefix_length & PREFIX_BYTES_MAX..][..SUFFIX_BYTES_MAX];
        suffix.copy_from_slice(entry.suffix);
        self.key_length = prefix_length + entry.suffix_length;
        self.index = index;
        self.value = entry.value;
        self.end = entry.end;
        self.word = entry.word;
    }
}

impl Stride {
    pub(crate) fn new() -> Self {
        Self {
            lent: Lent {
                entries_end: 0,
                first: NONE,
                first_newer: 0,
                layout: Layout::default(),
                prefix_length: 0,
                block: BlockBytes::Nothing,
            },
            present: Present {
                index: 0,
                value: 0,
                end: 0,
                word: 0,
                key_length: 0,
                key: [0; PREFIX_BYTES_MAX + SUFFIX_BYTES_MAX + 1],
            },
        }
    }

    /// Begins at the entry `start` of the block that `layout` describes, where the cursor is. Returns whether it did: not if
    /// there is no entry to take, if keys of the block may be too long, or if its bytes cost a call.
    pub(crate) fn begin(
        &mut self,
        block: &BlockBytes,
        layout: &Layout,
        start: StrideStart<'_>,
        reach: Reach<'_>,
    ) -> bool {
        let prefix_length = layout.prefix_length();
        let is_short =
            prefix_length <= PREFIX_BYTES_MAX && layout.suffixes.most() <= SUFFIX_BYTES_MAX;
        let Some(bytes) = block.in_place().filter(|_| is_short) else {
            return false;
        };
        let Some(key) = self.present.key.get_mut(..start.key.len()) else {
            return false;
        };
        let (entries_end, first, index) = match reach.direction {
            Direction::Forward => {
                let end = reach.end.map(|end| layout.end_before(bytes, end));
                let all = layout.entries_end();
                (
                    end.map_or(all, |end| end.unwrap_or(0).min(all)),
                    NONE,
                    start.index,
                )
            }
            Direction::Backward => {
                let end = reach.end.map(|end| layout.first_behind(bytes, end));
                // Whether the first entry of a block repeats a key, the block does not know.
                let first = end.map_or(1, |end| end.unwrap_or(NONE).max(1));
                (0, first, start.index + 1)
            }
        };
        if entries_end <= start.end && index <= first {
            return false;
        }
        key.copy_from_slice(start.key);
        self.present.key_length = start.key.len();
        self.present.index = index;
        self.present.value = start.value;
        self.present.end = start.end;
        self.present.word = u64::from(start.kind.code());
        self.lent.entries_end = entries_end;
        self.lent.first = first;
        self.lent.first_newer = layout.first_newer(reach.sequence);
        self.lent.layout = *layout;
        self.lent.prefix_length = prefix_length;
        self.lent.block.hold(block);
        true
    }

    /// Ends the stride, if it is active.
    #[inline]
    pub(crate) fn end(&mut self) {
        (self.lent.entries_end, self.lent.first) = (0, NONE);
        self.lent.block.release();
    }

    /// Moves to the next entry.
    #[expect(
        clippy::inline_always,
        reason = "a step of a cursor is little more than this; measured"
    )]
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Moved {
        let Self { lent, present } = self;
        let start = present.end;
        if start >= lent.entries_end {
            return Moved::Nowhere;
        }
        let Some(entry) = lent.peek(start, lent.entries_end) else {
            return Moved::Nowhere;
        };
        present.take(lent.prefix_length, present.index + 1, &entry);
        if lent.is_visible_value(entry.word) {
            Moved::ToValue
        } else {
            Moved::ToOther
        }
    }

    /// Moves to the entry before, if that has a value or a pointer which the reader sees, and no newer version. Returns
    /// whether it did.
    #[expect(
        clippy::inline_always,
        reason = "a step of a cursor is little more than this; measured"
    )]
    #[inline(always)]
    pub(crate) fn step_back(&mut self) -> bool {
        let Self { lent, present } = self;
        if present.index <= lent.first {
            return false;
        }
        let index = present.index - 1;
        let bytes = lent.block.in_place().unwrap_or_default();
        let Some(start) = lent.layout.slot(bytes, index) else {
            return false;
        };
        match lent.peek(start, lent.layout.entries_end()) {
            Some(entry) if lent.is_visible_value(entry.word) => {
                present.take(lent.prefix_length, index, &entry);
                true
            }
            _ => false,
        }
    }

    /// The index of the entry to which the cursor has to follow, and its offset if that is known.
    #[inline]
    pub(crate) fn cursor_place(&self) -> (usize, Option<usize>) {
        let (lent, present) = (&self.lent, &self.present);
        if lent.first == NONE {
            let key_bytes = lent.layout.word_bytes + present.key_length - lent.prefix_length;
            (present.index, present.value.checked_sub(key_bytes))
        } else {
            (present.index - 1, None)
        }
    }

    /// What a step forward to the present entry finds out.
    #[inline]
    pub(crate) fn last_step(&self) -> Step {
        self.lent.layout.step(self.present.word)
    }

    /// The key of the present entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let present = &self.present;
        present.key.get(..present.key_length).unwrap_or_default()
    }

    /// What the present entry stores.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let bytes = self.lent.block.in_place().unwrap_or_default();
        bytes
            .get(self.present.value..self.present.end)
            .unwrap_or_default()
    }

    /// The kind of the present entry, if it is a value or a pointer.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        let code = self.present.word & KIND_MASK;
        if code == Kind::Value as u64 {
            Kind::Value
        } else if code == Kind::TransientPointer as u64 {
            Kind::TransientPointer
        } else {
            Kind::ValueLogPointer
        }
    }
}

/// A cursor that may lend its block.
pub(crate) trait Striding: Cursor {
    /// Begins `stride` at the present entry, if nothing but the present block decides about the next steps within `reach`.
    /// Returns whether it did.
    fn begin_stride(&self, _stride: &mut Stride, _reach: Reach<'_>) -> bool {
        false
    }

    /// Moves to the entry of `stride`, which this cursor has begun, or to the one before if the stride goes backward.
    fn end_stride(&mut self, _stride: &Stride) -> Result<()> {
        Ok(())
    }
}
