//! The keys and values of a run, made from a seed, and the check on what is read back.
//!
//! A key is the zero-padded decimal number of its index, as in `db_bench`. A value begins with a
//! tag (48 bits of the key's hash, 16 bits of the load that wrote it); the tag picks the rest from
//! a fixed pool of bytes. So a value can be checked knowing only its key, and the tag stands for
//! the whole value once the check has passed.

use windrow::{Error, Result, limits};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Digits of the number in a key, where the key is long enough.
const KEY_DIGITS: usize = 16;
/// Where fillers start in the pool; a power of two.
const POOL_BYTES: usize = 1 << 20;
const TAG_BYTES: usize = 8;
/// Bytes of the tag, from its start, that hold the generation.
const GENERATION_BYTES: usize = 2;

/// Deterministic keys and values.
#[derive(Debug)]
pub struct DataSet {
    num: u64,
    key_digits: usize,
    key_size: usize,
    value_size: usize,
    seed: u64,
    pool: Vec<u8>,
}

impl DataSet {
    /// Data of `num` keys.
    ///
    /// # Errors
    /// `InvalidArgument` when `key_size` is too small for `num` different keys, or a key, a missing
    /// key or a value is longer than Windrow's limits.
    pub fn new(num: u64, key_size: usize, value_size: usize, seed: u64) -> Result<Self> {
        let key_digits = key_size.min(KEY_DIGITS);
        let distinct = u32::try_from(key_digits).map_or(0, |digits| 10_u64.pow(digits));
        if key_size == 0 || num > distinct {
            return Err(Error::invalid_argument(format!(
                "keys of {key_size} bytes are too short for {num} different decimal numbers"
            )));
        }
        // A missing key is one byte longer.
        let longest = limits::KEY_BYTES_MAX - 1;
        if key_size > longest {
            return Err(Error::invalid_argument(format!(
                "keys of {key_size} bytes are longer than the bench's limit of {longest}"
            )));
        }
        if value_size > limits::VALUE_BYTES_MAX {
            return Err(Error::invalid_argument(format!(
                "values of {value_size} bytes are longer than the limit of {}",
                limits::VALUE_BYTES_MAX
            )));
        }
        Ok(Self {
            num,
            key_digits,
            key_size,
            value_size,
            seed,
            pool: pool(seed, POOL_BYTES + value_size),
        })
    }

    /// The number of different keys.
    pub fn num(&self) -> u64 {
        self.num
    }

    /// The index that step `step` of the random stream `stream` picks.
    #[inline]
    pub fn random_index(&self, stream: u64, step: u64) -> u64 {
        let random = mix(self.seed ^ mix(stream).wrapping_add(step.wrapping_mul(GOLDEN)));
        ((u128::from(random) * u128::from(self.num)) >> 64) as u64
    }

    /// Writes the key of `index` into `key`.
    #[inline]
    pub fn key(&self, index: u64, key: &mut Vec<u8>) {
        key.clear();
        key.resize(self.key_size, b'0');
        let mut rest = index;
        for digit in key[..self.key_digits].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Writes a key that no load ever writes, right behind the key of `index`.
    #[inline]
    pub fn missing_key(&self, index: u64, key: &mut Vec<u8>) {
        self.key(index, key);
        key.push(b'.');
    }

    /// Writes the value that the load `generation` gives to `key` into `value`.
    #[inline]
    pub fn value(&self, key: &[u8], generation: u16, value: &mut Vec<u8>) {
        let tag = self.tag(key) | u64::from(generation);
        let head = TAG_BYTES.min(self.value_size);
        value.clear();
        value.extend_from_slice(&tag.to_le_bytes()[..head]);
        value.extend_from_slice(self.filler(tag));
    }

    /// Checks that some load gave `value` to `key`; the result stands for the pair.
    #[inline]
    pub fn check(&self, key: &[u8], value: &[u8]) -> Result<u64> {
        let head = TAG_BYTES.min(self.value_size);
        let mut tag = [0; TAG_BYTES];
        if value.len() == self.value_size {
            tag[..head].copy_from_slice(&value[..head]);
            let expected = self.tag(key).to_le_bytes();
            let from = GENERATION_BYTES.min(head);
            let number = u64::from_le_bytes(tag);
            if tag[from..head] == expected[from..head] && value[head..] == *self.filler(number) {
                return Ok(mix(number ^ self.tag(key).rotate_left(7)));
            }
        }
        Err(wrong_value(key))
    }

    #[inline]
    fn tag(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed) & !0xffff
    }

    /// What follows the tag in a value.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are kept"
    )]
    fn filler(&self, tag: u64) -> &[u8] {
        let length = self.value_size.saturating_sub(TAG_BYTES);
        let start = mix(tag) as usize & (POOL_BYTES - 1);
        &self.pool[start..start + length]
    }
}

#[cold]
fn wrong_value(key: &[u8]) -> Error {
    Error::corruption(
        "the store",
        0,
        format!(
            "the value read for key {} is not one that was written",
            key.escape_ascii()
        ),
    )
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection that spreads its input over all bits (the finaliser of splitmix64).
#[inline]
pub(crate) fn mix(input: u64) -> u64 {
    let mut mixed = input.wrapping_add(GOLDEN);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Bytes of which half can be compressed away: pieces of 50 random bytes, each twice.
fn pool(seed: u64, length: usize) -> Vec<u8> {
    const PIECE: usize = 50;
    let mut pool = Vec::with_capacity(length + 2 * PIECE);
    let mut state = mix(seed);
    while pool.len() < length {
        let start = pool.len();
        while pool.len() < start + PIECE {
            state = state.wrapping_add(GOLDEN);
            let random = mix(state).to_le_bytes();
            let take = random.len().min(start + PIECE - pool.len());
            pool.extend_from_slice(&random[..take]);
        }
        pool.extend_from_within(start..);
    }
    pool.truncate(length);
    pool
}
