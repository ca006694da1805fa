//! The seeded checksum: the low 32 bits of XXH3-64.
//!
//! The seed is the place of the bytes (file, segment, offset). So sound bytes in the wrong place, or
//! left by an earlier attempt, fail the check like damaged ones.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

/// A checksum of `bytes` under `seed`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the checksum is the low half of the hash"
)]
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u32 {
    xxh3_64_with_seed(bytes, seed) as u32
}

/// The checksum of the concatenation of `head` and `tail`.
pub(crate) fn checksum_of_two(seed: u64, head: &[u8], tail: &[u8]) -> u32 {
    let mut sum = PartialChecksum::new(seed);
    sum.update(head);
    sum.update(tail);
    sum.finish()
}

/// A checksum that is computed piece by piece.
pub(crate) struct PartialChecksum(Xxh3);

impl PartialChecksum {
    /// The checksum of no bytes, under `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xxh3::with_seed(seed))
    }

    /// Adds the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the checksum is the low half of the hash"
    )]
    pub(crate) fn finish(&self) -> u32 {
        self.0.digest() as u32
    }
}

/// A checksum of 128 bits without a seed, computed piece by piece: it names bytes by what they are, wherever they are. It
/// finds damage, not an attacker who makes two contents of one checksum.
pub(crate) struct ContentChecksum(Xxh3);

impl ContentChecksum {
    /// The checksum of no bytes.
    pub(crate) fn new() -> Self {
        Self(Xxh3::new())
    }

    /// Adds the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes.
    pub(crate) fn finish(&self) -> u128 {
        self.0.digest128()
    }
}

/// A checksum of 64 bits of `bytes` under `seed`.
pub(crate) fn long_checksum(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// The seed for bytes at `offset` of segment `segment` of file `file`; logs and value files use
/// segment 0.
#[inline]
pub(crate) fn seed(file: u64, segment: u64, offset: u64) -> u64 {
    // Odd multipliers distinguish the three; each is a bijection of its own argument.
    file.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(21)
        ^ segment.wrapping_mul(0xc2b2_ae3d_27d4_eb4f).rotate_left(42)
        ^ offset.wrapping_mul(0x1656_67b1_9e37_79f9)
}

/// The hash of a user key that serves every filter.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

#[cfg(test)]
mod tests {
    use super::{checksum, checksum_of_two};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_parts_have_the_checksum_of_the_whole(
            seed: u64,
            head in proptest::collection::vec(any::<u8>(), 0..400),
            tail in proptest::collection::vec(any::<u8>(), 0..2000),
        ) {
            let whole = [&head[..], &tail[..]].concat();
            prop_assert_eq!(checksum_of_two(seed, &head, &tail), checksum(seed, &whole));
        }
    }
}
