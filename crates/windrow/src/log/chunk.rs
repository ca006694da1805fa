//! What stands before a payload, in two forms: 5 or 6 bytes, or 20 that also say how far the log was
//! synced. Described under "Logs" in `docs/format.md`.
//!
//! I1. The checksums are seeded with (log number, chunk offset): a chunk is valid in one place only.
//! I2. `synced_up_to` never exceeds the chunk's own offset.
//! I3. The bit that tells the forms apart is covered by a checksum in both, so no bytes are sound in
//!     both forms. A long payload is announced by a header that is sound by itself; the length of a
//!     short one is believed only together with the payload.

use crate::base::FileNumber;
use crate::codec::Reader;
use crate::codec::checksum::{checksum, seed};
use crate::codec::varint::get_varint;

/// The bytes before the payload of a long chunk; no chunk has more.
pub(crate) const HEADER_BYTES: usize = 20;

/// The checksum at the front: of a long chunk over the rest of the header, of a short one over the
/// rest of the chunk.
const CHECKSUM_BYTES: usize = 4;

/// Set in the byte behind that checksum where the chunk is long. The length stands above it.
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
/// [`HEADER_BYTES`] that `buffer` has before it, and returns the whole chunk. It is long where
/// `synced_up_to` is given, and has to be for an empty payload and one of more than
/// [`SHORT_PAYLOAD_BYTES_MAX`].
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

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Over the payload; of a short chunk over its length, too.
    checksum: u32,
    /// Where that begins in the chunk.
    pub(super) payload_at: usize,
    /// 0 for a sync marker, which is long and has no payload.
    pub(super) payload_bytes: usize,
    /// Of a long chunk: the log was durable up to here when it was written.
    pub(super) synced_up_to: Option<u64>,
}

impl Header {
    /// The header at the front of `bytes`, which stand at `offset` of log `number`; `None` if there is
    /// none. That of a short chunk may be any bytes until [`covers`](Self::covers) says otherwise.
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

    /// The sound header of a long chunk, if that is what `bytes` are.
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

    /// Whether `chunk`, which begins with this header and stands at `offset` of log `number`, is sound.
    pub(super) fn covers(&self, chunk: &[u8], number: FileNumber, offset: u64) -> bool {
        let from = match self.synced_up_to {
            Some(_) => self.payload_at,
            None => CHECKSUM_BYTES,
        };
        self.checksum == checksum(chunk_seed(number, offset), &chunk[from..])
    }
}
