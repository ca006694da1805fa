//! The stored form of every block of a table file: body, compression code, checksum.
//!
//! The checksum covers body and code and is seeded with the block's [`Place`], so a sound block in
//! the wrong file, segment or offset is damage.

use std::sync::Arc;

use crate::base::{FileNumber, SegmentId};
use crate::codec::Compression;
use crate::codec::checksum::{checksum, seed};
use crate::codec::compression::{unpack, unpacked_length};
use crate::codec::reader::DecodeError;

/// The compression code and the checksum.
pub(crate) const TRAILER_BYTES: usize = 5;

/// The place of a stored block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: FileNumber,
    pub(crate) segment: SegmentId,
    /// From the start of the file.
    pub(crate) offset: u64,
}

impl Place {
    /// The seed of checksums at this place.
    #[inline]
    pub(crate) fn seed(self) -> u64 {
        seed(self.file.0, self.segment.0, self.offset)
    }
}

/// Appends the trailer to the body that begins at `start` of `buffer`.
pub(crate) fn seal(buffer: &mut Vec<u8>, start: usize, codec: Compression, place: Place) {
    buffer.push(codec.code());
    let sum = checksum(place.seed(), &buffer[start..]);
    buffer.extend_from_slice(&sum.to_le_bytes());
}

/// Checks the trailer of `stored`; returns the codec and the body.
pub(crate) fn verify(stored: &[u8], place: Place) -> Result<(Compression, &[u8]), DecodeError> {
    let damaged = |what| DecodeError::damaged(0, what);
    let Some((covered, sum)) = stored.split_last_chunk() else {
        return Err(damaged("a block is shorter than its trailer"));
    };
    if checksum(place.seed(), covered) != u32::from_le_bytes(*sum) {
        return Err(damaged("a block fails its checksum"));
    }
    let Some((&code, body)) = covered.split_last() else {
        return Err(damaged("a block is shorter than its trailer"));
    };
    let what = "a block is compressed with an unknown codec";
    let codec = Compression::from_code(code).ok_or(DecodeError::unsupported(0, what))?;
    Ok((codec, body))
}

/// The payload of a compressed body.
pub(crate) fn decompress(codec: Compression, body: &[u8]) -> Result<Arc<[u8]>, DecodeError> {
    let mut payload = zeroed(unpacked_length(codec, body)?);
    if let Some(target) = Arc::get_mut(&mut payload) {
        unpack(codec, body, target)?;
    }
    Ok(payload)
}

/// Bytes that have no other owner yet.
pub(crate) fn zeroed(length: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, length).collect()
}
