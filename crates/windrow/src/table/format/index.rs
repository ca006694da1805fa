//! The index of a segment: which data block a key is in.
//!
//! Each block is followed by a *separator*: a key that is at least the block's last key, and less
//! than the next block's first key (equal if both are one user key, whose versions may span
//! blocks). If a key exists, its newest version is in the first block whose separator is at least the
//! key.
//!
//! The separators are in *partitions* of about 8 KiB. The top-level index has the last separator of each partition and
//! is small enough to stay in memory, so a read loads only the partition that it needs.
//!
//! See "Index" in `docs/format.md`. Data blocks lie one after the other from the start of the segment, and so do
//! partitions after the filter units.

use std::cmp::Ordering;
use std::ops::Range;

use crate::base::key::shared_bytes;
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::prefix_index::{RestIndex, compare_to_prefix, head_after};
use crate::block::stored::TRAILER_BYTES;
use crate::codec::Reader;
use crate::codec::compression::BLOCK_BYTES_MAX;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{VARINT_BYTES_MAX, put_bytes, put_varint};

use super::footer::Handle;

/// A partition ends before the entry that would make it longer, unless that is its first.
const PARTITION_BYTES: usize = 8 << 10;

/// Builds the index of a segment that is being written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    blocks: u64,
    /// The bodies of all partitions, one after the other.
    bodies: Vec<u8>,
    partitions: Vec<PendingPartition>,
}

#[derive(Debug, Default)]
struct PendingPartition {
    /// The start of its body in `bodies`.
    start: usize,
    blocks: u64,
    /// The stored bytes of its data blocks.
    data_bytes: u64,
    last_separator: Vec<u8>,
}

impl IndexBuilder {
    /// Adds a block of `stored_bytes` whose last key is `last`; `next` is the key that follows.
    pub(crate) fn add(&mut self, stored_bytes: u64, last: &[u8], next: Option<&[u8]>) {
        let end = next.and_then(|next| separator_end(last, next));
        let length = end.map_or(last.len(), |end| end + 1);
        let needed = length + 2 * VARINT_BYTES_MAX;
        let fits = |partition: &PendingPartition| {
            self.bodies.len() - partition.start + needed <= PARTITION_BYTES
        };
        if !self.partitions.last().is_some_and(fits) {
            self.partitions.push(PendingPartition {
                start: self.bodies.len(),
                ..PendingPartition::default()
            });
        }
        let Some(partition) = self.partitions.last_mut() else {
            unreachable!("one was added if there was none");
        };
        let separator = &mut partition.last_separator;
        separator.clear();
        separator.extend_from_slice(&last[..length]);
        if let Some(end) = end {
            // `last` up to a byte that can be raised and stay below `next`.
            separator[end] += 1;
        }
        put_varint(&mut self.bodies, stored_bytes);
        put_bytes(&mut self.bodies, separator);
        partition.blocks += 1;
        partition.data_bytes += stored_bytes;
        self.blocks += 1;
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// About how many bytes the index will take.
    pub(crate) fn bytes(&self) -> usize {
        self.bodies.len()
    }

    /// The bytes held in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bodies.capacity() + self.partitions.capacity() * size_of::<PendingPartition>()
    }

    /// The end of the body of each partition.
    fn ends(&self) -> impl Iterator<Item = usize> {
        let starts = self.partitions.iter().skip(1);
        let ends = starts.map(|partition| partition.start);
        ends.chain([self.bodies.len()])
    }

    /// The bodies of the partitions, in order.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &[u8]> {
        let ranges = self.partitions.iter().zip(self.ends());
        ranges.map(|(partition, end)| &self.bodies[partition.start..end])
    }

    /// Appends the top-level index to `output`.
    pub(crate) fn finish(&self, output: &mut Vec<u8>) {
        put_varint(output, self.partitions.len() as u64);
        for (partition, end) in self.partitions.iter().zip(self.ends()) {
            put_varint(output, (end - partition.start + TRAILER_BYTES) as u64);
            put_varint(output, partition.blocks);
            put_varint(output, partition.data_bytes);
            put_bytes(output, &partition.last_separator);
        }
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

/// The part of an index that stays in memory while the table is open: the place of each partition.
#[derive(Debug)]
pub(crate) struct TopLevelIndex {
    /// The prefix of all separators.
    common: Box<[u8]>,
    /// The last separator of each partition.
    separators: RestIndex,
    /// Where each partition begins, and after the last one where it ends.
    starts: Box<[PartitionStart]>,
}

/// Where a partition begins.
#[derive(Debug, Clone, Copy)]
struct PartitionStart {
    /// Its offset in the file.
    offset: u64,
    /// The number of its first data block in the segment.
    block: usize,
    /// The offset of this block in the file.
    data: u64,
}

/// Where to look for a key in an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeySearch<'a> {
    /// The partition that has the block.
    pub(crate) partition: usize,
    /// The key after the prefix of all separators; empty if the key is below all separators.
    rest: &'a [u8],
    head: u64,
}

impl TopLevelIndex {
    /// Reads the index of a segment whose keys are between `smallest` and `largest`, whose data blocks fill `data` in
    /// the file, and whose partitions fill `partitions`.
    pub(crate) fn decode(
        payload: &[u8],
        (smallest, largest): (&[u8], &[u8]),
        data: Handle,
        partitions: Handle,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let common = &largest[..shared_bytes(smallest, largest)];
        let count = reader.varint("an index is cut off")?;
        // Each partition takes four bytes or more, which bounds the allocation.
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count > 0 && count <= payload.len() / 4)
            .ok_or_else(|| reader.error("an index has a wrong number of partitions"))?;
        let mut starts = Vec::with_capacity(count + 1);
        let mut rests: Vec<&[u8]> = Vec::with_capacity(count);
        let mut next = PartitionStart {
            offset: partitions.offset,
            block: 0,
            data: data.offset,
        };
        starts.push(next);
        for _ in 0..count {
            let at = reader.clone();
            let stored = reader.varint("the length of an index partition")?;
            let blocks = reader.varint("the blocks of an index partition")?;
            let data_bytes = reader.varint("the bytes of an index partition")?;
            let separator = reader.prefixed_bytes(KEY_BYTES_MAX, "an index key is malformed")?;
            let Some(rest) = separator.strip_prefix(common) else {
                return Err(at.error("a key of an index is out of the bounds of its segment"));
            };
            if rests.last().is_some_and(|last| *last > rest) {
                return Err(at.error("the keys of an index are out of order"));
            }
            rests.push(rest);
            // A partition has at least a block, which takes at least two bytes in it.
            if blocks == 0 || blocks > stored / 2 || stored <= TRAILER_BYTES as u64 {
                return Err(at.error("an index partition has a wrong number of blocks"));
            }
            next = PartitionStart {
                offset: next.offset.saturating_add(stored),
                block: usize::try_from(blocks)
                    .ok()
                    .and_then(|blocks| next.block.checked_add(blocks))
                    .ok_or_else(|| at.error("an index has too many blocks"))?,
                data: next.data.saturating_add(data_bytes),
            };
            starts.push(next);
        }
        let rest = reader.clone();
        reader.finish("an index has bytes after its end")?;
        if Some(next.offset) != partitions.end() || Some(next.data) != data.end() {
            return Err(rest.error("the partitions of an index do not fill the segment"));
        }
        Ok(Self {
            common: common.into(),
            separators: RestIndex::new(rests.into_iter()),
            starts: starts.into(),
        })
    }

    /// The bytes that the index holds in memory, itself and its partitions not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.common.len() + self.separators.memory_bytes() + size_of_val(&*self.starts)
    }

    /// The number of partitions.
    pub(crate) fn partitions(&self) -> usize {
        self.separators.len()
    }

    /// The number of data blocks.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.starts[self.partitions()].block
    }

    /// The place of `partition` in the file.
    pub(crate) fn partition(&self, partition: usize) -> Handle {
        let offset = self.starts[partition].offset;
        Handle {
            offset,
            length: self.starts[partition + 1].offset - offset,
        }
    }

    /// The place of the data blocks of `partition` in the file.
    pub(crate) fn data(&self, partition: usize) -> Handle {
        let offset = self.starts[partition].data;
        Handle {
            offset,
            length: self.starts[partition + 1].data - offset,
        }
    }

    /// The offset in the file just after the last data block.
    pub(crate) fn data_end(&self) -> u64 {
        self.starts[self.partitions()].data
    }

    /// The numbers of the data blocks of `partition`.
    pub(crate) fn blocks_of(&self, partition: usize) -> Range<usize> {
        self.starts[partition].block..self.starts[partition + 1].block
    }

    /// The partition of data block `block`, which exists.
    #[inline]
    pub(crate) fn partition_of(&self, block: usize) -> usize {
        let ends = &self.starts[1..];
        ends.partition_point(|end| end.block <= block)
    }

    /// Where to look for `key`; `None` if all keys are less.
    #[inline]
    pub(crate) fn find<'a>(&self, key: &'a [u8]) -> Option<KeySearch<'a>> {
        let start = self.common.len();
        match compare_to_prefix(key, &self.common) {
            Ordering::Less => Some(KeySearch {
                partition: 0,
                rest: &[],
                head: 0,
            }),
            Ordering::Greater => None,
            Ordering::Equal => {
                let (rest, head) = (&key[start..], head_after(key, start));
                let partition = self.separators.lower_bound(rest, head);
                (partition < self.separators.len()).then_some(KeySearch {
                    partition,
                    rest,
                    head,
                })
            }
        }
    }

    /// Reads the payload of `partition`.
    pub(crate) fn decode_partition(
        &self,
        payload: &[u8],
        partition: usize,
    ) -> Result<IndexPartition, DecodeError> {
        let mut reader = Reader::new(payload);
        let (start, end) = (self.starts[partition], self.starts[partition + 1]);
        let count = end.block - start.block;
        let mut offsets = Vec::with_capacity(count + 1);
        let mut rests: Vec<&[u8]> = Vec::with_capacity(count);
        let mut offset = start.data;
        offsets.push(offset);
        for _ in 0..count {
            let at = reader.clone();
            let stored_max = (BLOCK_BYTES_MAX + TRAILER_BYTES) as u64;
            let length = reader.varint_at_most(stored_max, "an index has a block too long")?;
            if length <= TRAILER_BYTES as u64 {
                return Err(at.error("an index has a block too short"));
            }
            let separator = reader.prefixed_bytes(KEY_BYTES_MAX, "an index key is malformed")?;
            let Some(rest) = separator.strip_prefix(&*self.common) else {
                return Err(at.error("a key of an index is out of the bounds of its segment"));
            };
            let is_before = match rests.last() {
                Some(last) => rest < *last,
                None => partition > 0 && self.separators.compare(partition - 1, rest).is_gt(),
            };
            if is_before {
                return Err(at.error("the keys of an index are out of order"));
            }
            rests.push(rest);
            offset = offset.saturating_add(length);
            offsets.push(offset);
        }
        let rest = reader.clone();
        reader.finish("an index has bytes after its end")?;
        let last = rests.last().copied().unwrap_or_default();
        if offset != end.data || self.separators.compare(partition, last).is_ne() {
            return Err(rest.error("a partition differs from the top-level index"));
        }
        Ok(IndexPartition {
            separators: RestIndex::new(rests.into_iter()),
            first: start.block,
            offsets: offsets.into(),
        })
    }
}

/// A partition of an index in memory.
#[derive(Debug)]
pub(crate) struct IndexPartition {
    separators: RestIndex,
    /// The number of its first block in the segment.
    first: usize,
    /// The offset of each block in the file, and the end of the last.
    offsets: Box<[u64]>,
}

/// The place of a data block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    /// Its number in the segment.
    pub(crate) number: usize,
    /// Its offset in the file.
    pub(crate) offset: u64,
    /// Its stored bytes.
    pub(crate) length: usize,
}

impl BlockPlace {
    /// The offset just after the block.
    pub(crate) fn end(self) -> u64 {
        self.offset + self.length as u64
    }
}

impl IndexPartition {
    /// The bytes that the partition holds in memory, itself not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.separators.memory_bytes() + size_of_val(&*self.offsets)
    }

    /// The block to search for the key of `search`, which found this partition.
    #[inline]
    pub(crate) fn find(&self, search: KeySearch<'_>) -> BlockPlace {
        let position = self.separators.lower_bound(search.rest, search.head);
        self.at(position)
    }

    /// The place of the block with this number in the segment, which is in this partition.
    #[inline]
    pub(crate) fn block(&self, number: usize) -> BlockPlace {
        self.at(number - self.first)
    }

    #[inline]
    fn at(&self, position: usize) -> BlockPlace {
        let offset = self.offsets[position];
        // decode bounds the length far below usize::MAX.
        #[expect(clippy::cast_possible_truncation, reason = "bounded in decode")]
        let length = (self.offsets[position + 1] - offset) as usize;
        BlockPlace {
            number: self.first + position,
            offset,
            length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The top-level index and the partitions of an index, read again.
    fn read(
        builder: &IndexBuilder,
        bounds: (&[u8], &[u8]),
        data_bytes: u64,
    ) -> Result<(TopLevelIndex, Vec<IndexPartition>), DecodeError> {
        let mut payload = Vec::new();
        builder.finish(&mut payload);
        let bodies: Vec<&[u8]> = builder.partitions().collect();
        let stored = bodies.iter().map(|body| body.len() + TRAILER_BYTES);
        let data = Handle {
            offset: 4096,
            length: data_bytes,
        };
        let partitions = Handle {
            offset: 4096 + data_bytes,
            length: stored.sum::<usize>() as u64,
        };
        let index = TopLevelIndex::decode(&payload, bounds, data, partitions)?;
        let partitions = bodies.iter().enumerate();
        let partitions = partitions.map(|(number, body)| index.decode_partition(body, number));
        let partitions = partitions.collect::<Result<_, _>>()?;
        Ok((index, partitions))
    }

    /// An index of `count` blocks, block n of n + 6 bytes with the last key `key{n:05}`.
    fn builder(count: u64) -> IndexBuilder {
        let mut builder = IndexBuilder::default();
        for block in 0..count {
            let last = format!("key{block:05}-and-more");
            let next = format!("key{:05}", block + 1);
            builder.add(block + 6, last.as_bytes(), Some(next.as_bytes()));
        }
        builder
    }

    #[test]
    fn every_block_is_found_by_key_and_by_number_over_many_partitions() {
        let builder = builder(3000);
        let bytes = (0..3000_u64).map(|block| block + 6).sum();
        let (index, partitions) = read(&builder, (b"key00000", b"key02999-z"), bytes).unwrap();
        assert_eq!(index.partitions(), partitions.len());
        assert!(partitions.len() >= 4, "{}", partitions.len());
        assert!(
            builder
                .partitions()
                .all(|body| body.len() <= PARTITION_BYTES)
        );
        assert_eq!((index.blocks(), index.data_end()), (3000, 4096 + bytes));
        let mut offset = 4096;
        for block in 0..3000 {
            let place = BlockPlace {
                number: block,
                offset,
                length: block + 6,
            };
            let partition = index.partition_of(block);
            assert_eq!(partitions[partition].block(block), place);
            for key in [format!("key{block:05}"), format!("key{block:05}-and-more")] {
                let search = index.find(key.as_bytes()).unwrap();
                assert_eq!(search.partition, partition);
                assert_eq!(partitions[partition].find(search), place, "{key}");
            }
            offset = place.end();
        }
        let before = index.find(b"a").unwrap();
        assert_eq!(partitions[before.partition].find(before).number, 0);
        assert!(index.find(b"key03000").is_none() && index.find(b"z").is_none());
    }

    #[test]
    fn a_partition_that_differs_from_the_top_level_index_is_damage() {
        let bounds: (&[u8], &[u8]) = (b"key00000", b"key02999-z");
        let bytes = (0..3000_u64).map(|block| block + 6).sum();
        let right = builder(3000);
        let (index, _) = read(&right, bounds, bytes).unwrap();
        let bodies: Vec<&[u8]> = right.partitions().collect();
        assert!(bodies.len() > 2);
        for number in 0..bodies.len() {
            for (other, body) in bodies.iter().enumerate() {
                let read = index.decode_partition(body, number);
                assert_eq!(read.is_ok(), number == other, "{number} {other}");
            }
            let body = bodies[number];
            for length in (0..body.len()).step_by(7) {
                assert!(index.decode_partition(&body[..length], number).is_err());
            }
        }
        assert!(read(&right, bounds, bytes + 1).is_err());
        assert!(read(&right, (b"kez", b"kez1"), bytes).is_err());
    }

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
            let (index, partitions) = read(&builder, (last, next), 200).unwrap();
            let find = |key| partitions[0].find(index.find(key).unwrap()).number;
            prop_assert_eq!(find(last), 0);
            prop_assert_eq!(find(next), usize::from(last < next));
        }

        #[test]
        fn decoding_anything_never_panics(
            top in proptest::collection::vec(any::<u8>(), 0..60),
            partition in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let handle = Handle { offset: 0, length: 100 };
            drop(TopLevelIndex::decode(&top, (b"a", b"b"), handle, handle));
            let (index, _) = read(&builder(1), (b"key00000", b"key00000-z"), 6).unwrap();
            drop(index.decode_partition(&partition, 0));
        }
    }
}
