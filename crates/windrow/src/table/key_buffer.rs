//! The key under a cursor: the block's shared prefix, then the entry's suffix.
//!
//! Invariant I1: `bytes` has room for a short suffix behind any short prefix and behind the present
//! one, so that those are copied as pieces of fixed size.

use crate::block::SHORT_SUFFIX_BYTES;

/// A key that is rebuilt at each step, without allocation once it has met the longest key.
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

    /// Begins all keys from here on with `prefix`.
    #[inline]
    pub(super) fn set_prefix(&mut self, prefix: &[u8]) {
        self.prefix_length = 0;
        self.set_suffix(prefix);
        self.prefix_length = prefix.len();
    }

    /// Begins all keys from here on with the first `length` bytes of `piece`.
    #[inline]
    pub(super) fn set_short_prefix(&mut self, piece: &[u8; SHORT_SUFFIX_BYTES], length: usize) {
        self.prefix_length = 0;
        self.set_short_suffix(piece, length);
        self.prefix_length = length;
    }

    /// Makes the key the prefix and `suffix`.
    #[inline]
    pub(super) fn set_suffix(&mut self, suffix: &[u8]) {
        self.length = self.prefix_length + suffix.len();
        if self.bytes.len() < self.length + SHORT_SUFFIX_BYTES {
            self.grow();
        }
        self.bytes[self.prefix_length..self.length].copy_from_slice(suffix);
    }

    /// Makes the key the prefix and the first `length` bytes of `piece`.
    #[inline]
    pub(super) fn set_short_suffix(&mut self, piece: &[u8; SHORT_SUFFIX_BYTES], length: usize) {
        let end = self.prefix_length + SHORT_SUFFIX_BYTES;
        self.bytes[self.prefix_length..end].copy_from_slice(piece);
        self.length = self.prefix_length + length;
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
