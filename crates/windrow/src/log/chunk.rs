//! The header of a chunk: 20 bytes, described under "Logs" in `docs/format.md`.
//!
//! I1. The checksums are seeded with (log number, chunk offset): a header is valid in one place only.
//! I2. `synced_up_to` never exceeds the chunk's own offset.

use crate::base::FileNumber;
use crate::codec::Reader;
use crate::codec::checksum::{checksum, seed};

/// The bytes before each payload.
pub(crate) const HEADER_BYTES: usize = 20;

/// Where the header's own checksum ends, which covers the rest of the header.
const HEADER_CHECKSUM_BYTES: usize = 4;

/// What stands before a payload, without the header's own checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) payload_checksum: u32,
    /// 0 for a sync marker, which has no payload.
    pub(super) payload_length: u32,
    /// The log was durable up to here when the chunk was written.
    pub(super) synced_up_to: u64,
}

/// The seed of the chunk at `offset` of log `number`.
fn chunk_seed(number: FileNumber, offset: u64) -> u64 {
    seed(number.0, 0, offset)
}

/// The checksum of a payload in the chunk at `offset` of log `number`.
pub(super) fn payload_checksum(number: FileNumber, offset: u64, payload: &[u8]) -> u32 {
    checksum(chunk_seed(number, offset), payload)
}

impl Header {
    /// The header's bytes for the chunk at `offset` of log `number`.
    pub(super) fn encode(self, number: FileNumber, offset: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.payload_checksum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_length.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.synced_up_to.to_le_bytes());
        let own = checksum(chunk_seed(number, offset), &bytes[HEADER_CHECKSUM_BYTES..]);
        bytes[..HEADER_CHECKSUM_BYTES].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The header that stands at `offset` of log `number`, or `None` if `bytes` is not one.
    pub(super) fn decode(
        bytes: &[u8; HEADER_BYTES],
        number: FileNumber,
        offset: u64,
    ) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let own = reader.u32("header checksum").ok()?;
        let header = Self {
            payload_checksum: reader.u32("payload checksum").ok()?,
            payload_length: reader.u32("payload length").ok()?,
            synced_up_to: reader.u64("synced offset").ok()?,
        };
        // The comparison costs less than the checksum and rejects nearly all bytes that are no
        // header, which is what makes scanning for evidence cheap.
        let sound = header.synced_up_to <= offset // I2
            && own == checksum(chunk_seed(number, offset), &bytes[HEADER_CHECKSUM_BYTES..]);
        sound.then_some(header)
    }
}
