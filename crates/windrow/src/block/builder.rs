//! Builds the payload of a data block.
//!
//! The shared prefix is known only with the last key, so one buffer holds all entries until
//! [`BlockBuilder::finish`]. Keys ascend, so all share the prefix that the first and the last key
//! share.
//!
//! Invariants:
//! - I1. A block exceeds the limit given to [`BlockBuilder::try_add`] only with its first entry.
//! - I2. What `finish` writes passes [`Layout::check`](super::Layout::check).
//!
//! Concurrency: none.

use super::layout::{HEADER_BYTES, KIND_BITS, slot_bytes};
use crate::base::{SequenceNumber, Trailer};
use crate::codec::varint::{VARINT_BYTES_MAX, put_varint};

/// Collects the entries of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    /// Key and value of each entry, one after the other.
    bytes: Vec<u8>,
    entries: Vec<PendingEntry>,
    tally: Tally,
    /// The offset of each entry; scratch of `finish`.
    slots: Vec<u32>,
}

#[derive(Debug)]
struct PendingEntry {
    key_length: usize,
    value_length: usize,
    trailer: Trailer,
}

/// The sums that determine the size of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    count: usize,
    /// The number of bytes that all keys share.
    shared: usize,
    /// Bytes of keys and values and of their lengths.
    bytes: usize,
    sequence_min: SequenceNumber,
    sequence_max: SequenceNumber,
}

impl Tally {
    /// The bytes of one trailer.
    fn trailer_bytes(&self) -> usize {
        let largest = (self.sequence_max - self.sequence_min) << KIND_BITS | ((1 << KIND_BITS) - 1);
        (u64::BITS - largest.leading_zeros()).div_ceil(8) as usize
    }

    /// An upper bound of the payload's length; exact except for lengths that the prefix shortens.
    fn block_bytes(&self) -> usize {
        let entries = HEADER_BYTES + self.bytes + self.count * self.trailer_bytes() + self.shared
            - self.count * self.shared;
        entries + self.count * slot_bytes(entries)
    }
}

/// The bytes that `value` takes as a varint.
fn varint_bytes(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

impl BlockBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An upper bound of the length that `finish` would write.
    pub(crate) fn block_bytes(&self) -> usize {
        self.tally.block_bytes()
    }

    /// Adds an entry unless the block has one already and would exceed `limit` (I1); returns
    /// whether it did. Entries come in ascending order.
    #[inline]
    pub(crate) fn try_add(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        value: &[u8],
        limit: usize,
    ) -> bool {
        let tally = self.tally_with(key, trailer, value);
        if self.tally.count > 0 && tally.block_bytes() > limit {
            return false;
        }
        self.tally = tally;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(PendingEntry {
            key_length: key.len(),
            value_length: value.len(),
            trailer,
        });
        true
    }

    fn tally_with(&self, key: &[u8], trailer: Trailer, value: &[u8]) -> Tally {
        let bytes = key.len() + value.len() + varint_bytes(key.len()) + varint_bytes(value.len());
        let sequence = trailer.sequence();
        if self.tally.count == 0 {
            return Tally {
                count: 1,
                shared: key.len(),
                bytes,
                sequence_min: sequence,
                sequence_max: sequence,
            };
        }
        let shared = self.bytes[..self.tally.shared]
            .iter()
            .zip(key)
            .take_while(|(first, this)| first == this)
            .count();
        Tally {
            count: self.tally.count + 1,
            shared,
            bytes: self.tally.bytes + bytes,
            sequence_min: self.tally.sequence_min.min(sequence),
            sequence_max: self.tally.sequence_max.max(sequence),
        }
    }

    /// Appends the payload to `output` and starts the next block.
    pub(crate) fn finish(&mut self, output: &mut Vec<u8>) {
        assert!(!self.is_empty(), "a block needs an entry");
        let start = output.len();
        let tally = self.tally;
        let trailer_bytes = tally.trailer_bytes();
        output.reserve(tally.block_bytes() + VARINT_BYTES_MAX);
        output.extend_from_slice(&field(tally.count));
        output.extend_from_slice(&field(tally.shared));
        output.extend_from_slice(&[0; 4]);
        let word = tally.sequence_min << 8 | trailer_bytes as u64;
        output.extend_from_slice(&word.to_le_bytes());
        output.extend_from_slice(&self.bytes[..tally.shared]);

        self.slots.clear();
        let mut rest = &self.bytes[..];
        for entry in &self.entries {
            let (key, after_key) = rest.split_at(entry.key_length);
            let (value, after_value) = after_key.split_at(entry.value_length);
            rest = after_value;
            let suffix = &key[tally.shared..];
            let delta = (entry.trailer.sequence() - tally.sequence_min) << KIND_BITS
                | u64::from(entry.trailer.kind().code());
            self.slots
                .push(u32::from_le_bytes(field(output.len() - start)));
            put_varint(output, suffix.len() as u64);
            output.extend_from_slice(suffix);
            put_varint(output, value.len() as u64);
            output.extend_from_slice(&delta.to_le_bytes()[..trailer_bytes]);
            output.extend_from_slice(value);
        }

        let slots = output.len() - start;
        output[start + 8..start + 12].copy_from_slice(&field(slots));
        let slot_bytes = slot_bytes(slots);
        for slot in &self.slots {
            output.extend_from_slice(&slot.to_le_bytes()[..slot_bytes]);
        }
        self.bytes.clear();
        self.entries.clear();
        self.tally = Tally::default();
    }
}

/// A length or offset within a block, as it is stored.
fn field(value: usize) -> [u8; 4] {
    match u32::try_from(value) {
        Ok(value) => value.to_le_bytes(),
        Err(_) => unreachable!("the limits keep blocks below 4 GiB"),
    }
}
