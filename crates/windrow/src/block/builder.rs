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

use super::layout::{HEADER_BYTES, MARK_BITS, REPEATS, WORD_BYTES, slot_bytes};
use crate::base::Trailer;

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

/// The least and the most of some lengths or numbers.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    least: u64,
    most: u64,
}

impl Default for Extremes {
    fn default() -> Self {
        Self {
            least: u64::MAX,
            most: 0,
        }
    }
}

impl Extremes {
    fn with(self, number: u64) -> Self {
        Self {
            least: self.least.min(number),
            most: self.most.max(number),
        }
    }

    /// The bits that distinguish all numbers between the extremes.
    fn bits(self) -> u32 {
        u64::BITS - self.most.saturating_sub(self.least).leading_zeros()
    }
}

/// The sums that determine the size of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    count: usize,
    /// The number of bytes that all keys share.
    shared: usize,
    /// Bytes of keys and values.
    bytes: usize,
    keys: Extremes,
    values: Extremes,
    sequences: Extremes,
}

impl Tally {
    /// The bits of a word.
    fn word_bits(&self) -> u32 {
        MARK_BITS + self.keys.bits() + self.values.bits() + self.sequences.bits()
    }

    /// The bytes of a word.
    fn word_bytes(&self) -> usize {
        self.word_bits().div_ceil(8) as usize
    }

    /// The offset of the slots.
    fn slots_offset(&self) -> usize {
        let suffixes_and_values = self.bytes + self.shared - self.count * self.shared;
        HEADER_BYTES + suffixes_and_values + self.count * self.word_bytes()
    }

    /// The payload's length.
    fn block_bytes(&self) -> usize {
        let slots = self.slots_offset();
        slots + self.count * slot_bytes(slots)
    }
}

impl BlockBuilder {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The length that `finish` would write.
    pub(crate) fn block_bytes(&self) -> usize {
        self.tally.block_bytes()
    }

    /// Adds an entry unless the block has one already and would exceed `limit` (I1), or its words 64 bits; returns
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
        let fits = tally.word_bits() <= u64::BITS && tally.block_bytes() <= limit;
        if self.tally.count > 0 && !fits {
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
        let tally = &self.tally;
        let shared = if tally.count == 0 {
            key.len()
        } else {
            self.bytes[..tally.shared]
                .iter()
                .zip(key)
                .take_while(|(first, this)| first == this)
                .count()
        };
        Tally {
            count: tally.count + 1,
            shared,
            bytes: tally.bytes + key.len() + value.len(),
            keys: tally.keys.with(key.len() as u64),
            values: tally.values.with(value.len() as u64),
            sequences: tally.sequences.with(trailer.sequence()),
        }
    }

    /// Appends the payload to `output` and starts the next block.
    pub(crate) fn finish(&mut self, output: &mut Vec<u8>) {
        assert!(!self.is_empty(), "a block needs an entry");
        let start = output.len();
        let tally = self.tally;
        let (word_bytes, slots) = (tally.word_bytes(), tally.slots_offset());
        output.reserve(tally.block_bytes() + WORD_BYTES);
        output.extend_from_slice(&field(tally.count));
        output.extend_from_slice(&field(slots));
        output.extend_from_slice(&field(tally.shared));
        output.extend_from_slice(&lengths(tally.keys, tally.shared));
        output.extend_from_slice(&lengths(tally.values, 0));
        let base = tally.sequences.least;
        output.extend_from_slice(&(base << 8 | word_bytes as u64).to_le_bytes());
        output.extend_from_slice(&self.bytes[..tally.shared]);

        let value_shift = MARK_BITS + tally.keys.bits();
        let sequence_shift = value_shift + tally.values.bits();
        self.slots.clear();
        let (mut rest, mut before) = (&self.bytes[..], &[][..]);
        for entry in &self.entries {
            let (key, after_key) = rest.split_at(entry.key_length);
            let (value, after_value) = after_key.split_at(entry.value_length);
            rest = after_value;
            let mark = if key == before { REPEATS } else { 0 };
            let word = u64::from(entry.trailer.kind().code())
                | mark
                | (key.len() as u64 - tally.keys.least) << MARK_BITS
                | (value.len() as u64 - tally.values.least) << value_shift
                | (entry.trailer.sequence() - base) << sequence_shift;
            let offset = output.len();
            self.slots.push(u32::from_le_bytes(field(offset - start)));
            output.extend_from_slice(&word.to_le_bytes());
            output.truncate(offset + word_bytes);
            output.extend_from_slice(&key[tally.shared..]);
            output.extend_from_slice(value);
            before = key;
        }

        assert_eq!(output.len() - start, slots, "the tally of a block is wrong");
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

/// The field of the header about lengths that are each `shared` less than those of `extremes`.
fn lengths(extremes: Extremes, shared: usize) -> [u8; 4] {
    let least = extremes.least - shared as u64;
    assert!(least < 1 << 24, "the limits keep lengths below 16 MiB");
    let [first, second, third, ..] = least.to_le_bytes();
    let bits = extremes.bits().to_le_bytes();
    [first, second, third, bits[0]]
}
