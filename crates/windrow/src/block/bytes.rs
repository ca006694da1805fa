//! The bytes around a block, owned.

use std::sync::Arc;

use crate::vfs::Region;

/// Keeps the bytes that contain a block.
#[derive(Debug, Clone, Default)]
pub(crate) enum BlockBytes {
    Mapped(Arc<Region>),
    /// The block alone.
    Cached(Arc<[u8]>),
    /// No block.
    #[default]
    Nothing,
}

impl BlockBytes {
    /// The bytes.
    #[inline]
    pub(crate) fn get(&self) -> &[u8] {
        match self {
            Self::Mapped(region) => region.bytes(),
            Self::Cached(block) => block,
            Self::Nothing => &[],
        }
    }

    /// Becomes the same as `other`. Where that is the same mapping, the count of its holders, which all threads share, stays.
    #[inline]
    pub(super) fn hold(&mut self, other: &Self) {
        match (&*self, other) {
            (Self::Mapped(own), Self::Mapped(other)) if Arc::ptr_eq(own, other) => {}
            _ => *self = other.clone(),
        }
    }

    /// Gives a block up. A mapping stays, since the next block is most likely in it.
    #[inline]
    pub(super) fn release(&mut self) {
        if matches!(self, Self::Cached(_)) {
            *self = Self::Nothing;
        }
    }

    /// The bytes, if they cost no call.
    #[inline]
    pub(super) fn in_place(&self) -> Option<&[u8]> {
        match self {
            Self::Mapped(region) => region.mapping(),
            Self::Cached(block) => Some(block),
            Self::Nothing => None,
        }
    }
}
