//! Layer 2: sorted data blocks and the bytes they live in.
//!
//! [`BlockBuilder`] makes a block's payload; [`Layout`] checks and searches one; [`stored`] puts a
//! payload on disk and takes it back. The bytes are described in `docs/format.md`.

mod builder;
mod layout;
pub(crate) mod stored;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use builder::BlockBuilder;
pub(crate) use layout::{Layout, SHORT_SUFFIX_BYTES};
pub use value::PinnedValue;
