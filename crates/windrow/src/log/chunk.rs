//! The header of a chunk, in two forms: a short one of 5 or 6 bytes, and a long one of 20 bytes that also
//! has the synced offset of the log. See "Logs" in `docs/format.md`.
//!
//! I1. The checksums are seeded with (log number, chunk offset), so a chunk is valid in one place only.
//! I2. `synced_up_to` never exceeds the chunk's own offset.
//! I3. In both forms a checksum covers the bit that separates them, so no bytes are sound in both forms.
//!     A long header is sound on its own. The length in a short header is sound only together with the
//!     payload.

use crate::base::FileNumber;
use crate::codec::Reader;
use crate::codec::checksum::{checksum, seed};
use crate::codec::varint::get_varint;

/// The bytes before the payload of a long chunk; no chunk has more.
pub(crate) const HEADER_BYTES: usize = 20;

/// The checksum at the front: over the rest of the header in a long chunk, over the rest of the chunk in
/// a short one.
const CHECKSUM_BYTES: usize = 4;

/// The bit of a long chunk in the byte behind that checksum. The higher bits are the length.
const LONG: u8 = 1;

/// The largest payload of a short chunk: its length and the bit take two bytes at most.
pub(super) const SHORT_PAYLOAD_BYTES_MAX: usize = (1 << 13) - 1;

/// The largest payload of any chunk.
pub(super) const PAYLOAD_BYTES_MAX: u32 = u32::MAX >> 1;

/// The seed of the chunk at `offset` of log `number`.
fn chunk_seed(number: FileNumber, offset: u64) -> u64 {
    seed(number.0, 0, offset)
}

/// Writes the header of a payload of `payload_length` bytes, at most [`PAYLOAD_BYTES_MAX`], into the
/// [`HEADER_BYTES`] before it in `buffer`, and returns the whole chunk. The chunk is long if
/// `synced_up_to` is given, which an empty payload and one of more than [`SHORT_PAYLOAD_BYTES_MAX`] need.
pub(super) fn complete(
    buffer: &mut [u8],
    payload_length: u32,
    synced_up_to: Option<u64>,
    (number, offset): (FileNumber, u64),
) -> &[u8] {
    let seed = chunk_seed(number, offset);
    let head = payload_length << 1;
    let (start, covered) = if let Some(synced_up_to) = synced_up_to {
        let payload_checksum = checksum(seed, &buffer[HEADER_BYTES..]);
        buffer[4..8].copy_from_slice(&(head | u32::from(LONG)).to_le_bytes());
        buffer[8..12].copy_from_slice(&payload_checksum.to_le_bytes());
        buffer[12..20].copy_from_slice(&synced_up_to.to_le_bytes());
        (0, CHECKSUM_BYTES..HEADER_BYTES)
    } else {
        let [low, ..] = head.to_le_bytes();
        let [high, ..] = (head >> 7).to_le_bytes();
        let head_at = if high == 0 {
            buffer[HEADER_BYTES - 1] = low;
            HEADER_BYTES - 1
        } else {
            buffer[HEADER_BYTES - 2..HEADER_BYTES].copy_from_slice(&[low | 0x80, high]);
            HEADER_BYTES - 2
        };
        (head_at - CHECKSUM_BYTES, head_at..buffer.len())
    };
    let sum = checksum(seed, &buffer[covered]);
    buffer[start..start + CHECKSUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    &buffer[start..]
}

/// Whether `bytes`, which lie between two chunks at `offset` of log `number` and are not sound, may be those of a sync
/// marker: a part of them that only a marker has is intact.
pub(crate) fn may_be_marker(bytes: &[u8], number: FileNumber, offset: u64) -> bool {
    let Some(bytes) = bytes
        .first_chunk::<HEADER_BYTES>()
        .filter(|_| bytes.len() == HEADER_BYTES)
    else {
        return false;
    };
    let of_nothing = checksum(chunk_seed(number, offset), &[]);
    bytes[4..8] == u32::from(LONG).to_le_bytes() || bytes[8..12] == of_nothing.to_le_bytes()
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The checksum of the payload, and of the length in a short chunk.
    checksum: u32,
    /// The offset in the chunk at which the payload begins.
    pub(super) payload_at: usize,
    /// 0 for a sync marker, which is long and has no payload.
    pub(super) payload_bytes: usize,
    /// In a long chunk: the log was durable up to this offset at the write of the chunk.
    pub(super) synced_up_to: Option<u64>,
}

impl Header {
    /// The header at the start of `bytes`, which are at `offset` of log `number`. A short header is only
    /// verified by [`covers`](Self::covers).
    pub(super) fn decode(bytes: &[u8], number: FileNumber, offset: u64) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
        if rest.first()? & LONG == LONG {
            return Self::decode_long(bytes.first_chunk()?, number, offset);
        }
        let (head, head_bytes) = get_varint(rest)?;
        let payload_bytes = usize::try_from(head >> 1).ok()?;
        let is_short = (1..=SHORT_PAYLOAD_BYTES_MAX).contains(&payload_bytes);
        is_short.then_some(Self {
            checksum: u32::from_le_bytes(*sum),
            payload_at: CHECKSUM_BYTES + head_bytes,
            payload_bytes,
            synced_up_to: None,
        })
    }

    /// The sound header of a long chunk, if `bytes` begin with one.
    pub(super) fn decode_long(
        bytes: &[u8; HEADER_BYTES],
        number: FileNumber,
        offset: u64,
    ) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let own = reader.u32("header checksum").ok()?;
        let head = reader.u32("payload length").ok()?;
        let checksum_of_payload = reader.u32("payload checksum").ok()?;
        let synced_up_to = reader.u64("synced offset").ok()?;
        let sound = head & u32::from(LONG) != 0
            && synced_up_to <= offset // I2
            && own == checksum(chunk_seed(number, offset), &bytes[CHECKSUM_BYTES..]);
        sound.then_some(Self {
            checksum: checksum_of_payload,
            payload_at: HEADER_BYTES,
            payload_bytes: usize::try_from(head >> 1).ok()?,
            synced_up_to: Some(synced_up_to),
        })
    }

    /// The length of the whole chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.payload_at + self.payload_bytes
    }

    /// Whether `chunk`, which begins with this header and is at `offset` of log `number`, is sound.
    pub(super) fn covers(&self, chunk: &[u8], number: FileNumber, offset: u64) -> bool {
        let from = match self.synced_up_to {
            Some(_) => self.payload_at,
            None => CHECKSUM_BYTES,
        };
        self.checksum == checksum(chunk_seed(number, offset), &chunk[from..])
    }
}
