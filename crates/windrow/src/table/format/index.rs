//! The index of a segment: which data block a key is in.
//!
//! Each block is followed by a *separator*: a key that is at least the block's last key, and less
//! than the next block's first key (equal if both are one user key, whose versions may span
//! blocks). If a key exists, its newest version is in the first block whose separator is at least the
//! key.
//!
//! See "Index block" in `docs/format.md`. Data blocks lie one after the other from the start of the segment.

use crate::base::key::shared_bytes;
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::prefix_index::PrefixIndex;
use crate::block::stored::TRAILER_BYTES;
use crate::codec::Reader;
use crate::codec::compression::BLOCK_BYTES_MAX;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};

/// Builds the index of a segment that is being written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    blocks: u64,
    entries: Vec<u8>,
}

impl IndexBuilder {
    /// Adds a block of `stored_bytes` whose last key is `last`; `next` is the key that follows.
    pub(crate) fn add(&mut self, stored_bytes: u64, last: &[u8], next: Option<&[u8]>) {
        self.blocks += 1;
        put_varint(&mut self.entries, stored_bytes);
        match next.and_then(|next| separator_end(last, next)) {
            None => put_bytes(&mut self.entries, last),
            // `last` up to a byte that can be raised and stay below `next`.
            Some(end) => {
                put_varint(&mut self.entries, end as u64 + 1);
                self.entries.extend_from_slice(&last[..end]);
                self.entries.push(last[end] + 1);
            }
        }
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// About how many bytes `finish` will write.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.len()
    }

    /// The bytes held in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.capacity()
    }

    /// Appends the index to `output`.
    pub(crate) fn finish(&self, output: &mut Vec<u8>) {
        put_varint(output, self.blocks);
        output.extend_from_slice(&self.entries);
    }
}

/// The first position after the bytes shared by `last` and `next` at which the byte of `last` can
/// be raised by one so that the result is shorter than `last` and still below `next`.
fn separator_end(last: &[u8], next: &[u8]) -> Option<usize> {
    let shared = shared_bytes(last, next);
    // A byte raised at the first difference must stay below `next`; any later byte may be raised.
    let first = *last.get(shared)?;
    let end = if first + 1 < *next.get(shared)? {
        shared
    } else {
        let behind = last.get(shared + 1..)?;
        shared + 1 + behind.iter().position(|&byte| byte != u8::MAX)?
    };
    (end + 1 < last.len()).then_some(end)
}

/// The index of an open segment.
#[derive(Debug)]
pub(crate) struct SegmentIndex {
    separators: PrefixIndex,
    /// The offset of each block in the file, and the end of the last.
    offsets: Box<[u64]>,
}

impl SegmentIndex {
    /// Reads the index of the data blocks from `start` to `end` of the file.
    pub(crate) fn decode(payload: &[u8], start: u64, end: u64) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let count = reader.varint("an index is cut off")?;
        // Each block takes two bytes or more, which bounds the allocation.
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count > 0 && count <= payload.len() / 2)
            .ok_or_else(|| reader.error("an index has a wrong number of blocks"))?;
        let mut offsets = Vec::with_capacity(count + 1);
        let mut separators: Vec<&[u8]> = Vec::with_capacity(count);
        let mut offset = start;
        offsets.push(offset);
        for _ in 0..count {
            let at = reader.clone();
            let stored_max = (BLOCK_BYTES_MAX + TRAILER_BYTES) as u64;
            let length = reader.varint_at_most(stored_max, "an index has a block too long")?;
            if length <= TRAILER_BYTES as u64 {
                return Err(at.error("an index has a block too short"));
            }
            let separator = reader.prefixed_bytes(KEY_BYTES_MAX, "an index key is malformed")?;
            if separators.last().is_some_and(|last| *last > separator) {
                return Err(at.error("the keys of an index are out of order"));
            }
            separators.push(separator);
            offset = offset.saturating_add(length);
            offsets.push(offset);
        }
        let rest = reader.clone();
        reader.finish("an index has bytes after its end")?;
        if offset != end {
            return Err(rest.error("the blocks of an index do not fill the data"));
        }
        Ok(Self {
            separators: PrefixIndex::new(separators.iter().copied()),
            offsets: offsets.into(),
        })
    }

    /// The bytes that the index holds in memory, itself not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.separators.memory_bytes() + size_of_val(&*self.offsets)
    }

    /// The number of blocks.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The block to search for `key`; `blocks()` if all keys are less.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.separators.lower_bound(key)
    }

    /// The bytes of all blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.offsets[self.blocks()] - self.offsets[0]
    }

    /// The bytes of the blocks before the one to search for `key`.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> u64 {
        self.offsets[self.find(key)] - self.offsets[0]
    }

    /// The offset of `block` in the file, or the end of the blocks if there are only `block` of them.
    pub(crate) fn start(&self, block: usize) -> u64 {
        self.offsets[block]
    }

    /// The first block that begins at `offset` of the file or after it.
    pub(crate) fn first_from(&self, offset: u64) -> usize {
        let ends = &self.offsets[..self.blocks()];
        ends.partition_point(|&start| start < offset)
    }

    /// The offset of `block` in the file, and its stored length.
    #[inline]
    pub(crate) fn block(&self, block: usize) -> (u64, usize) {
        let offset = self.offsets[block];
        // decode bounds the length far below usize::MAX.
        #[expect(clippy::cast_possible_truncation, reason = "bounded in decode")]
        let length = (self.offsets[block + 1] - offset) as usize;
        (offset, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn separators_separate(
            mut keys in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![0..3u8, 253..=255u8], 1..8), 2),
        ) {
            keys.sort();
            let (last, next) = (&keys[0], &keys[1]);
            let mut builder = IndexBuilder::default();
            builder.add(100, last, Some(next));
            builder.add(100, next, None);
            let mut payload = Vec::new();
            builder.finish(&mut payload);
            let index = SegmentIndex::decode(&payload, 0, 200).unwrap();
            prop_assert_eq!(index.find(last), 0);
            if last < next {
                prop_assert_eq!(index.find(next), 1);
            } else {
                prop_assert_eq!(index.find(next), 0);
            }
        }

        #[test]
        fn decoding_anything_never_panics(
            payload in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            drop(SegmentIndex::decode(&payload, 0, 100));
        }
    }
}
