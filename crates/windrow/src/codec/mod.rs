//! Layer 1: how values become bytes and bytes become values. No I/O.
//!
//! Owns variable-length integers, the bounded [`Reader`] that never trusts a length, the seeded
//! checksum and the compression codecs. The bytes are described in `docs/format.md`.

pub(crate) mod checksum;
pub(crate) mod compression;
pub(crate) mod reader;
pub(crate) mod varint;

pub use compression::Compression;
pub(crate) use reader::Reader;
