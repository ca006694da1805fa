//! What takes the place of mappings on a system where Windrow makes none: [`File::map`](crate::vfs::File::map) answers `Unsupported`, and
//! readers load what they need.
//!
//! Concurrency: there are no values.

use std::ops::Range;

/// A mapping; there is none.
#[derive(Debug)]
pub(in crate::vfs) enum Mapping {}

impl Mapping {
    pub(in crate::vfs) fn is_resident(&self, _: Range<usize>) -> bool {
        match *self {}
    }

    pub(in crate::vfs) fn bytes(&self) -> &[u8] {
        match *self {}
    }
}
