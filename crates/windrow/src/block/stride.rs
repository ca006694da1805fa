//! The rest of a block, through which the layers above its cursor step by themselves.
//!
//! Most steps of a scan lead to the next entry of the same block, which has a new key and a visible value. If only one
//! source has entries left, nothing else decides. So a cursor lends its block for a while: the [`Stride`] moves, and the
//! cursor stays behind, until [`Striding::end_stride`] lets it follow.
//!
//! Invariants:
//! - I1. An active stride is on an entry of its block, at or after that of the cursor that lent it.
//! - I2. Before it has followed, nobody asks the cursor for its entry, and only seeks move it.
//!
//! Concurrency: owned by one thread.

use super::bytes::BlockBytes;
use super::layout::{KIND_MASK, Layout, REPEATS, WORD_BYTES};
use crate::base::{Cursor, Kind, SequenceNumber, Step};

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

/// A position in a lent block.
#[derive(Debug)]
pub(crate) struct Stride {
    /// The end of the entries; 0 while the stride is not active.
    entries_end: usize,
    index: usize,
    value: usize,
    /// The end of the value and start of the next entry.
    end: usize,
    word: u64,
    /// The reader sees no entries with this word and above.
    first_newer: u64,
    layout: Layout,
    block: BlockBytes,
    prefix_length: usize,
    key_length: usize,
    /// The present key, and behind it what was copied with it.
    key: [u8; PREFIX_BYTES_MAX + SUFFIX_BYTES_MAX + 1],
}

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

impl Stride {
    pub(crate) fn new() -> Self {
        Self {
            entries_end: 0,
            index: 0,
            value: 0,
            end: 0,
            word: 0,
            first_newer: 0,
            layout: Layout::default(),
            block: BlockBytes::Nothing,
            prefix_length: 0,
            key_length: 0,
            key: [0; PREFIX_BYTES_MAX + SUFFIX_BYTES_MAX + 1],
        }
    }

    /// Begins at an entry of the block that `layout` describes, for a reader at `sequence`. Returns whether it did: not if
    /// keys of the block may be too long, or its bytes cost a call.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        block: &BlockBytes,
        layout: &Layout,
        start: StrideStart<'_>,
        sequence: SequenceNumber,
    ) -> bool {
        let prefix_length = layout.prefix_length();
        let is_short =
            prefix_length <= PREFIX_BYTES_MAX && layout.suffixes.most() <= SUFFIX_BYTES_MAX;
        let key_length = start.key.len();
        let Some(key) = self.key.get_mut(..key_length).filter(|_| is_short) else {
            return false;
        };
        if block.in_place().is_none() {
            return false;
        }
        key.copy_from_slice(start.key);
        self.index = start.index;
        self.value = start.value;
        self.end = start.end;
        self.word = u64::from(start.kind.code());
        self.first_newer = layout.first_newer(sequence);
        self.layout = *layout;
        self.block = block.clone();
        (self.prefix_length, self.key_length) = (prefix_length, key_length);
        self.entries_end = layout.entries_end();
        true
    }

    /// Ends the stride, if it is active.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.entries_end > 0 {
            self.entries_end = 0;
            self.block = BlockBytes::Nothing;
        }
    }

    /// Moves to the next entry.
    #[expect(
        clippy::inline_always,
        reason = "a step of a cursor is little more than this; measured"
    )]
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Moved {
        let start = self.end;
        if start >= self.entries_end {
            return Moved::Nowhere;
        }
        let Some(rest) = self.block.in_place().and_then(|bytes| bytes.get(start..)) else {
            return Moved::Nowhere;
        };
        let Some(piece) = rest.first_chunk::<PIECE_BYTES>() else {
            return Moved::Nowhere;
        };
        let Some(word) = piece.first_chunk::<WORD_BYTES>() else {
            return Moved::Nowhere;
        };
        let layout = &self.layout;
        let word = u64::from_le_bytes(*word) & layout.word_mask;
        let suffix_length = layout.suffix_length(word);
        let value = start + layout.word_bytes + suffix_length;
        let end = value + layout.value_length(word);
        if end > self.entries_end {
            return Moved::Nowhere;
        }
        let suffix = &piece[layout.word_bytes & 0xf..][..SUFFIX_BYTES_MAX];
        self.key[self.prefix_length & PREFIX_BYTES_MAX..][..SUFFIX_BYTES_MAX]
            .copy_from_slice(suffix);
        self.key_length = self.prefix_length + suffix_length;
        self.index += 1;
        self.value = value;
        self.end = end;
        self.word = word;
        // The kinds of values are between those of tombstones, 0, and operands.
        let kind_and_mark = word.wrapping_sub(1) & (KIND_MASK | REPEATS);
        if kind_and_mark < Kind::Operand as u64 - 1 && word < self.first_newer {
            Moved::ToValue
        } else {
            Moved::ToOther
        }
    }

    /// The index of the present entry in its block.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The start and the end of the value of the present entry.
    #[inline]
    pub(crate) fn value_ends(&self) -> (usize, usize) {
        (self.value, self.end)
    }

    /// The outcome of the last step, which has led to an entry.
    #[inline]
    pub(crate) fn last_step(&self) -> Step {
        self.layout.step(self.word)
    }

    /// The key of the present entry.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.get(..self.key_length).unwrap_or_default()
    }

    /// What the present entry stores.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let bytes = self.block.in_place().unwrap_or_default();
        bytes.get(self.value..self.end).unwrap_or_default()
    }

    /// Whether the present entry, a value or a pointer, is a pointer.
    #[inline]
    pub(crate) fn is_pointer(&self) -> bool {
        self.word & KIND_MASK != Kind::Value as u64
    }
}

/// A cursor that may lend its block.
pub(crate) trait Striding: Cursor {
    /// Begins `stride` at the present entry, for a reader at `sequence`, if nothing but the present block decides about the
    /// next steps. Returns whether it did.
    fn begin_stride(&self, _stride: &mut Stride, _sequence: SequenceNumber) -> bool {
        false
    }

    /// Moves to the entry of `stride`, which this cursor has begun.
    fn end_stride(&mut self, _stride: &Stride) {}
}
