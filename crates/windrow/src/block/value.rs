//! A value that outlives the read that found it, without a copy if possible.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::vfs::Region;

/// A value that was read, held in place: in a mapped file, in the block cache, or on its own.
///
/// It dereferences to its bytes and keeps their mapping or block alive, so drop it soon.
#[derive(Clone)]
pub struct PinnedValue(Holder);

#[derive(Clone)]
enum Holder {
    Mapped(Arc<Region>, Range<usize>),
    Cached(Arc<[u8]>, Range<usize>),
    Owned(Vec<u8>),
}

impl PinnedValue {
    /// Bytes `range` of a mapping.
    pub(crate) fn mapped(region: Arc<Region>, range: Range<usize>) -> Self {
        Self(Holder::Mapped(region, range))
    }

    /// Bytes `range` of a cached block.
    pub(crate) fn cached(block: Arc<[u8]>, range: Range<usize>) -> Self {
        Self(Holder::Cached(block, range))
    }

    /// A value of its own.
    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        Self(Holder::Owned(bytes))
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Holder::Mapped(region, range) => &region.bytes()[range.clone()],
            Holder::Cached(block, range) => &block[range.clone()],
            Holder::Owned(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq<[u8]> for PinnedValue {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
