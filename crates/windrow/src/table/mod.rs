//! Layer 2: table files of 1 to 12 segments.

pub(crate) mod meta;
