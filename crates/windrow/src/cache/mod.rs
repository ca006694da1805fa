//! Layer 2: caches with bounds on memory and on open files.
//!
//! [`BlockCache`] keeps verified blocks. [`OpenFiles`] keeps table and value files open. [`Marks`] say which pieces of
//! a mapping readers may use in place.

mod block_cache;
mod marks;
mod open_files;

pub(crate) use block_cache::{BlockCache, BlockKey};
pub(crate) use marks::{MarkClock, Marks};
pub(crate) use open_files::{CachedFile, Excess, FileSlot, OpenFile, OpenFiles};
