//! Layer 2: caches with bounds on memory and on open files.
//!
//! [`BlockCache`] keeps verified blocks. [`OpenFiles`] keeps table and value files open.

mod block_cache;
mod open_files;

pub(crate) use block_cache::BlockCache;
pub(crate) use open_files::{CachedFile, FileSlot, OpenFile, OpenFiles};
