//! The key under a cursor: the block's shared prefix, then the entry's suffix.
//!
//! Invariant I1: `bytes` has space for a short suffix after any short prefix and after the present
//! one, so that those are copied as pieces of fixed size.

/// Suffixes up to this length, by far the most frequent, are copied as one piece of this size.
pub(super) const SHORT_SUFFIX_BYTES: usize = 16;

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

    /// Sets the prefix of the following keys to the first `length` bytes of `rest`, which has as many.
    #[inline]
    pub(super) fn set_prefix(&mut self, rest: &[u8], length: usize) {
        self.prefix_length = 0;
        self.set_suffix(rest, length);
        self.prefix_length = length;
    }

    /// Sets the key to the prefix and the first `length` bytes of `rest`, which has as many.
    #[expect(clippy::inline_always, reason = "a call costs more than the copy")]
    #[inline(always)]
    pub(super) fn set_suffix(&mut self, rest: &[u8], length: usize) {
        match rest.first_chunk() {
            Some(piece) if length <= SHORT_SUFFIX_BYTES => self.set_short_suffix(piece, length),
            _ => self.set_long_suffix(rest.get(..length).unwrap_or_default()),
        }
    }

    /// Sets the key to the prefix and `suffix`.
    #[inline(never)]
    fn set_long_suffix(&mut self, suffix: &[u8]) {
        self.length = self.prefix_length + suffix.len();
        if self.bytes.len() < self.length + SHORT_SUFFIX_BYTES {
            self.grow();
        }
        self.bytes[self.prefix_length..self.length].copy_from_slice(suffix);
    }

    /// Sets the key to the prefix and the first `length` bytes of `piece`.
    #[inline]
    fn set_short_suffix(&mut self, piece: &[u8; SHORT_SUFFIX_BYTES], length: usize) {
        self.length = self.prefix_length + length;
        self.bytes[self.prefix_length..][..SHORT_SUFFIX_BYTES].copy_from_slice(piece);
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
            buffer.set_prefix(&key, key.len());
            buffer.set_suffix(&piece, piece.len());
            key.extend(piece);
            assert_eq!(buffer.key(), key);
        }
    }
}
