//! Layer 2: sorted data blocks and their stored form.
//!
//! [`BlockBuilder`] builds a block's payload; [`Layout`] checks and searches one; [`stored`] adds and
//! checks the trailer of the stored form. `docs/format.md` describes the bytes.

mod builder;
mod layout;
pub(crate) mod stored;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use builder::BlockBuilder;
pub(crate) use layout::{Layout, SHORT_SUFFIX_BYTES};
pub use value::PinnedValue;
