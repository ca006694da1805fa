//! Layer 2: sorted data blocks and their stored form.
//!
//! [`BlockBuilder`] builds a block's payload; [`Layout`] checks and searches one; a [`Stride`] steps through one;
//! [`stored`] adds and checks the trailer of the stored form. `docs/format.md` describes the bytes.

mod builder;
mod bytes;
mod layout;
mod search;
pub(crate) mod stored;
mod stride;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use builder::BlockBuilder;
pub(crate) use bytes::BlockBytes;
pub(crate) use layout::Layout;
pub(crate) use stride::{Moved, Reach, Stride, StrideStart, Striding};
pub use value::PinnedValue;
