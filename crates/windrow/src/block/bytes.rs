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
