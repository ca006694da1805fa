//! A write that a job proposes in place of the newest version of a key.

use super::{Kind, SequenceNumber};

/// About the memory of a proposal beside its key and value. With a bound of bytes it bounds the number of proposals, too.
const OVERHEAD_BYTES: usize = 256;

/// A write in place of a version of a key. It holds as long as that version is the newest one.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) key: Box<[u8]>,
    /// The sequence number of that version.
    pub(crate) replaced: SequenceNumber,
    pub(crate) kind: Kind,
    /// What the write stores.
    pub(crate) stored: Vec<u8>,
}

impl Proposal {
    /// About the memory of one with this key and value.
    pub(crate) fn bytes_of(key: &[u8], stored: &[u8]) -> usize {
        OVERHEAD_BYTES + key.len() + stored.len()
    }
}
