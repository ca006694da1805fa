//! Compression codecs for blocks and values.
//!
//! A compressed body is the length before compression as a little-endian `u32`, then the codec's
//! bytes. Invariants:
//! - I1. The stored length is never trusted: above [`BLOCK_BYTES_MAX`], or above what LZ4 could make of the
//!   present bytes, it is damage and nothing is allocated.
//! - I2. Decompression yields exactly the stored length or fails.

use super::reader::DecodeError;

/// The compression of data blocks and values. The values are the codes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[repr(u8)]
pub enum Compression {
    /// No compression.
    #[default]
    None = 0,
    /// LZ4: fast to compress and to decompress.
    Lz4 = 1,
    /// Zstandard: smaller and slower; needs the feature `zstd`.
    Zstd = 2,
}

/// The most bytes that a body may have before compression: more than any block, batch or value that is
/// compressed.
pub(crate) const BLOCK_BYTES_MAX: usize = 32 << 20;

/// The bytes of the stored length.
const LENGTH_BYTES: usize = 4;

/// One byte of LZ4 decompresses to at most 255 bytes.
const LZ4_RATIO_MAX: usize = 255;

/// The default level of RocksDB: most of the gain at a fraction of the cost.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 3;

impl Compression {
    /// Whether this build has the codec.
    pub fn is_available(self) -> bool {
        self != Self::Zstd || cfg!(feature = "zstd")
    }

    /// The codec with this code on disk.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The code on disk.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// Compresses blocks one after the other, reusing its tables.
pub(crate) struct Compressor {
    codec: Compression,
    lz4: lz4_flex::block::CompressTable,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor")
            .field("codec", &self.codec)
            .finish_non_exhaustive()
    }
}

impl Compressor {
    pub(crate) fn new(codec: Compression) -> Self {
        Self {
            codec,
            lz4: lz4_flex::block::CompressTable::default(),
        }
    }

    /// Compresses with `codec` from now on.
    pub(crate) fn set_codec(&mut self, codec: Compression) {
        self.codec = codec;
    }

    /// Appends `block` to `output`, compressed if that saves an eighth, and returns the codec.
    pub(crate) fn append(&mut self, block: &[u8], output: &mut Vec<u8>) -> Compression {
        let codec = self.append_smaller(block, output);
        if codec == Compression::None {
            output.extend_from_slice(block);
        }
        codec
    }

    /// Appends the compressed `block` to `output` if that saves an eighth, and nothing otherwise.
    pub(crate) fn append_smaller(&mut self, block: &[u8], output: &mut Vec<u8>) -> Compression {
        let start = output.len();
        if self.codec != Compression::None
            && let Ok(length) = u32::try_from(block.len())
        {
            output.extend_from_slice(&length.to_le_bytes());
            let compressed = self.encode(block, output).is_some();
            if compressed && output.len() - start <= block.len() - block.len() / 8 {
                return self.codec;
            }
            output.truncate(start);
        }
        Compression::None
    }

    fn encode(&mut self, block: &[u8], output: &mut Vec<u8>) -> Option<()> {
        let start = output.len();
        match self.codec {
            Compression::None => None,
            Compression::Lz4 => {
                let space = lz4_flex::block::get_maximum_output_size(block.len());
                output.resize(start + space, 0);
                let target = &mut output[start..];
                let written =
                    lz4_flex::block::compress_into_with_table(block, target, &mut self.lz4).ok()?;
                output.truncate(start + written);
                Some(())
            }
            Compression::Zstd => encode_zstd(block, output),
        }
    }
}

#[cfg(feature = "zstd")]
fn encode_zstd(block: &[u8], output: &mut Vec<u8>) -> Option<()> {
    output.extend_from_slice(&zstd::bulk::compress(block, ZSTD_LEVEL).ok()?);
    Some(())
}

#[cfg(not(feature = "zstd"))]
fn encode_zstd(_: &[u8], _: &mut Vec<u8>) -> Option<()> {
    None
}

/// The length before compression of a compressed `body`, checked against I1.
pub(crate) fn unpacked_length(codec: Compression, body: &[u8]) -> Result<usize, DecodeError> {
    unpacked_length_by_front(codec, body, body.len())
}

/// The same for a body of `length` bytes that begins with `front`.
pub(crate) fn unpacked_length_by_front(
    codec: Compression,
    front: &[u8],
    length: usize,
) -> Result<usize, DecodeError> {
    let damaged = |what| DecodeError::damaged(0, what);
    let unpacked = front
        .first_chunk::<LENGTH_BYTES>()
        .and_then(|bytes| usize::try_from(u32::from_le_bytes(*bytes)).ok())
        .ok_or_else(|| damaged("a compressed block has no length"))?;
    let packed = length
        .checked_sub(LENGTH_BYTES)
        .ok_or_else(|| damaged("a compressed block has no length"))?;
    let possible = codec != Compression::Lz4 || unpacked <= packed.saturating_mul(LZ4_RATIO_MAX);
    if unpacked > BLOCK_BYTES_MAX || !possible {
        return Err(damaged("a compressed block has an impossible length"));
    }
    Ok(unpacked)
}

/// Decompresses `body` into `output`, which has the length that [`unpacked_length`] gave.
pub(crate) fn unpack(
    codec: Compression,
    body: &[u8],
    output: &mut [u8],
) -> Result<(), DecodeError> {
    let packed = body.get(LENGTH_BYTES..).unwrap_or_default();
    let written = match codec {
        Compression::None => None,
        Compression::Lz4 => lz4_flex::block::decompress_into(packed, output).ok(),
        Compression::Zstd => decode_zstd(packed, output)?,
    };
    if written == Some(output.len()) {
        Ok(())
    } else {
        let what = "a compressed block does not decompress to its length";
        Err(DecodeError::damaged(LENGTH_BYTES, what))
    }
}

#[cfg(feature = "zstd")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "without the feature the codec is unsupported"
)]
fn decode_zstd(packed: &[u8], output: &mut [u8]) -> Result<Option<usize>, DecodeError> {
    Ok(zstd::bulk::decompress_to_buffer(packed, output).ok())
}

#[cfg(not(feature = "zstd"))]
fn decode_zstd(_: &[u8], _: &mut [u8]) -> Result<Option<usize>, DecodeError> {
    let what = "a block is compressed with zstd, which this build lacks";
    Err(DecodeError::unsupported(0, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::checksum::key_hash;
    use proptest::prelude::*;

    fn codecs() -> Vec<Compression> {
        [Compression::None, Compression::Lz4, Compression::Zstd]
            .into_iter()
            .filter(|codec| codec.is_available())
            .collect()
    }

    fn round_trip(codec: Compression, block: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        match Compressor::new(codec).append(block, &mut body) {
            Compression::None => body,
            used => {
                let mut output = vec![0; unpacked_length(used, &body).unwrap()];
                unpack(used, &body, &mut output).unwrap();
                output
            }
        }
    }

    proptest! {
        #[test]
        fn round_trips(block in proptest::collection::vec(0..3u8, 0..5000)) {
            for codec in codecs() {
                prop_assert_eq!(round_trip(codec, &block), &block[..]);
            }
        }

        // I1, I2
        #[test]
        fn never_trusts_a_length(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            for codec in codecs() {
                if let Ok(length) = unpacked_length(codec, &body) {
                    prop_assert!(length <= BLOCK_BYTES_MAX);
                    let mut output = vec![0; length];
                    // Damage is an error or some bytes of the right length, never a panic.
                    if let Err(error) = unpack(codec, &body, &mut output) {
                        prop_assert!(!error.unsupported);
                    }
                }
            }
        }
    }

    #[test]
    fn incompressible_blocks_are_stored_uncompressed() {
        let noise: Vec<u8> = (0..512u64)
            .flat_map(|word| key_hash(&word.to_le_bytes()).to_le_bytes())
            .collect();
        let mut body = Vec::new();
        let used = Compressor::new(Compression::Lz4).append(&noise, &mut body);
        assert!(used == Compression::None && body == noise);
    }

    #[test]
    fn an_impossible_ratio_allocates_nothing() {
        let mut body = (1u32 << 24).to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 8]);
        assert!(unpacked_length(Compression::Lz4, &body).is_err());
    }
}
