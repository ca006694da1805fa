//! The key under a cursor: the block's shared prefix, then the entry's suffix.
//!
//! Invariant I1: `bytes` has space for a short suffix after any short prefix and after the present
//! one, so that those are copied as pieces of fixed size.

use crate::block::SHORT_SUFFIX_BYTES;

/// Selects the first bytes of a piece, by their number.
const FRONT_MASKS: [u128; SHORT_SUFFIX_BYTES + 1] = {
    let mut masks = [u128::MAX; SHORT_SUFFIX_BYTES + 1];
    let mut length = 0;
    while length < SHORT_SUFFIX_BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

/// A piece of fixed size as one number, first byte lowest.
#[inline]
fn word(piece: &[u8]) -> u128 {
    piece
        .first_chunk()
        .map_or(0, |bytes| u128::from_le_bytes(*bytes))
}

/// A key that is rebuilt at each step, without allocation once it has held the longest key.
#[derive(Debug)]
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    prefix_length: usize,
    length: usize,
}

impl KeyBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; 4 * SHORT_SUFFIX_BYTES],
            prefix_length: 0,
            length: 0,
        }
    }

    /// Sets the prefix of the following keys.
    #[inline]
    pub(super) fn set_prefix(&mut self, prefix: &[u8]) {
        self.prefix_length = 0;
        let is_same = self.set_suffix(prefix);
        self.prefix_length = prefix.len();
        // A short suffix may have made the key that is now the prefix, without space after it (I1).
        if is_same && self.bytes.len() < self.length + SHORT_SUFFIX_BYTES {
            self.grow();
        }
    }

    /// Sets the prefix of the following keys to the first `length` bytes of `piece`.
    #[inline]
    pub(super) fn set_short_prefix(&mut self, piece: &[u8; SHORT_SUFFIX_BYTES], length: usize) {
        self.prefix_length = 0;
        self.set_short_suffix(piece, length);
        self.prefix_length = length;
    }

    /// Sets the key to the prefix and `suffix`; returns whether it is unchanged.
    #[inline]
    pub(super) fn set_suffix(&mut self, suffix: &[u8]) -> bool {
        if self.bytes.get(self.prefix_length..self.length) == Some(suffix) {
            return true;
        }
        self.length = self.prefix_length + suffix.len();
        if self.bytes.len() < self.length + SHORT_SUFFIX_BYTES {
            self.grow();
        }
        self.bytes[self.prefix_length..self.length].copy_from_slice(suffix);
        false
    }

    /// Sets the key to the prefix and the first `length` bytes of `piece`; returns whether it is
    /// unchanged.
    #[inline]
    pub(super) fn set_short_suffix(
        &mut self,
        piece: &[u8; SHORT_SUFFIX_BYTES],
        length: usize,
    ) -> bool {
        let end = self.prefix_length + SHORT_SUFFIX_BYTES;
        let suffix = &mut self.bytes[self.prefix_length..end];
        let changes = word(suffix) ^ word(piece);
        suffix.copy_from_slice(piece);
        let new_length = self.prefix_length + length;
        let is_same = self.length == new_length && changes & FRONT_MASKS[length] == 0;
        self.length = new_length;
        is_same
    }

    /// Restores I1 for any prefix within the present length.
    #[inline(never)]
    fn grow(&mut self) {
        self.bytes.resize(self.length + SHORT_SUFFIX_BYTES, 0);
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{KeyBuffer, SHORT_SUFFIX_BYTES};

    #[test]
    fn a_key_may_become_the_next_prefix() {
        let piece = [b's'; SHORT_SUFFIX_BYTES];
        let mut buffer = KeyBuffer::new();
        let mut key = Vec::new();
        for _ in 0..20 {
            buffer.set_prefix(&key);
            buffer.set_short_suffix(&piece, piece.len());
            key.extend(piece);
            assert_eq!(buffer.key(), key);
        }
    }
}
