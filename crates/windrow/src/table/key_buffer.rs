//! The key under a cursor: the block's shared prefix, then the entry's suffix.
//!
//! Invariant I1: `bytes` is at least [`SLACK`] longer than `length`, so that a short suffix, by far
//! the commonest, is copied as one piece of fixed size.

/// Suffixes up to this many bytes are copied in one piece.
const SLACK: usize = 16;

/// A key that is rebuilt at each step without allocation.
#[derive(Debug)]
pub(super) struct KeyBuffer {
    bytes: Vec<u8>,
    prefix_length: usize,
    length: usize,
}

impl KeyBuffer {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; 2 * SLACK],
            prefix_length: 0,
            length: 0,
        }
    }

    /// Begins all keys from here on with bytes `start..end` of `source`; `None` where they are not
    /// there.
    #[inline]
    pub(super) fn set_prefix(&mut self, source: &[u8], start: usize, end: usize) -> Option<()> {
        self.prefix_length = 0;
        self.set_suffix(source, start, end)?;
        self.prefix_length = self.length;
        Some(())
    }

    /// Makes the key the prefix and bytes `start..end` of `source`; `None` where they are not there.
    #[inline]
    pub(super) fn set_suffix(&mut self, source: &[u8], start: usize, end: usize) -> Option<()> {
        if end.wrapping_sub(start) <= SLACK
            && let Some(piece) = source.get(start..)?.first_chunk::<SLACK>()
            && let Some(target) = self.bytes.get_mut(self.prefix_length..)
            && let Some(target) = target.first_chunk_mut::<SLACK>()
        {
            *target = *piece;
            self.length = self.prefix_length + (end - start);
            if self.bytes.len() - self.length < SLACK {
                self.grow();
            }
        } else {
            self.append(source.get(start..end)?);
        }
        Some(())
    }

    /// Puts `suffix` behind the prefix.
    #[inline(never)]
    fn append(&mut self, suffix: &[u8]) {
        self.length = self.prefix_length + suffix.len();
        self.grow();
        self.bytes[self.prefix_length..self.length].copy_from_slice(suffix);
    }

    /// Restores I1.
    #[inline(never)]
    fn grow(&mut self) {
        if self.bytes.len() < self.length + SLACK {
            self.bytes.resize(self.length + SLACK, 0);
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
