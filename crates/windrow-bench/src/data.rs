//! The keys and values of a run, made from a seed, and the check on what is read back.
//!
//! A key is the zero-padded decimal number of its index, as in `db_bench`; a record of the YCSB loads
//! has the key of a scrambled index, so that records in the order of their numbers are in no order
//! of their keys. A value begins with a tag (48 bits of the key's hash, 16 bits of the generation,
//! which says which write it was); the tag picks the size, so that each write of a key draws it anew, and
//! the rest from a fixed pool of bytes. So a value can be checked knowing only its key, and the tag
//! stands for the whole value once the check has passed.

use clap::ValueEnum;
use windrow::{Error, Result, limits};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::permutation::Permutation;

/// Digits of the number in a key, where the key is long enough.
const KEY_DIGITS: usize = 16;
/// The numbers in the keys of YCSB's records are below this: almost as many as there are digits for,
/// and a power of two, which the scrambling maps in one turn.
const SCRAMBLED_MAX: u64 = 1 << 53;
/// Where fillers start in the pool; a power of two.
const POOL_BYTES: usize = 1 << 20;
/// Bytes of the tag that a value begins with, where it is long enough.
const TAG_BYTES: usize = 8;
/// Bytes of the tag, from its start, that hold the generation.
const GENERATION_BYTES: usize = 2;

/// The mixes of value sizes of the Parallax paper: small, medium and large values of 9, 104 and 1004
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum Mix {
    /// Small values only
    S,
    /// Medium values only
    M,
    /// Large values only
    L,
    /// Small dominated: 60 % small, 20 % medium, 20 % large
    SD,
    /// Medium dominated: 20 % small, 60 % medium, 20 % large
    MD,
    /// Large dominated: 20 % small, 20 % medium, 60 % large
    LD,
}

impl Mix {
    /// Sizes in bytes, each with its share in percent.
    pub fn shares(self) -> [(usize, usize); 3] {
        let [small, medium, large] = match self {
            Self::S => [100, 0, 0],
            Self::M => [0, 100, 0],
            Self::L => [0, 0, 100],
            Self::SD => [60, 20, 20],
            Self::MD => [20, 60, 20],
            Self::LD => [20, 20, 60],
        };
        [(9, small), (104, medium), (1004, large)]
    }
}

/// The sizes of values: each write draws one of a hundred.
#[derive(Debug, Clone)]
pub struct ValueSizes([usize; 100]);

impl ValueSizes {
    /// All values of `size` bytes.
    pub fn same(size: usize) -> Self {
        Self([size; 100])
    }

    /// The sizes of `mix`.
    pub fn mix(mix: Mix) -> Self {
        let mut sizes = [0; 100];
        let all = mix.shares().into_iter();
        let all = all.flat_map(|(size, share)| std::iter::repeat_n(size, share));
        for (place, size) in sizes.iter_mut().zip(all) {
            *place = size;
        }
        Self(sizes)
    }

    /// The size of the value whose tag is `tag`.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "any of the bits will do")]
    fn of(&self, tag: u64) -> usize {
        self.0[mix(!tag) as usize % self.0.len()]
    }

    fn largest(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }

    fn smallest(&self) -> usize {
        self.0.iter().copied().min().unwrap_or(0)
    }
}

/// Random numbers, all of which follow from a seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        scaled(self.next(), bound)
    }

    /// A number from 0 to below 1.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

/// `random`, which is any word, brought below `bound`.
#[inline]
fn scaled(random: u64, bound: u64) -> u64 {
    ((u128::from(random) * u128::from(bound)) >> 64) as u64
}

/// What the check of a value found out.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// Stands for key and value.
    pub fingerprint: u64,
    /// Which write it was; 0 where the value is too short to tell.
    pub generation: u16,
}

/// Deterministic keys and values.
#[derive(Debug)]
pub struct DataSet {
    num: u64,
    key_digits: usize,
    key_size: usize,
    value_sizes: ValueSizes,
    seed: u64,
    pool: Vec<u8>,
    /// From a record's number to the number in its key.
    scramble: Permutation,
}

impl DataSet {
    /// Data of `num` keys.
    ///
    /// # Errors
    /// `InvalidArgument` when `key_size` is too small for `num` different keys, or a key, a missing
    /// key or a value is longer than Windrow's limits.
    pub fn new(num: u64, key_size: usize, value_sizes: ValueSizes, seed: u64) -> Result<Self> {
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
        let largest = value_sizes.largest();
        if largest > limits::VALUE_BYTES_MAX {
            return Err(Error::invalid_argument(format!(
                "values of {largest} bytes are longer than the limit of {}",
                limits::VALUE_BYTES_MAX
            )));
        }
        Ok(Self {
            num,
            key_digits,
            key_size,
            value_sizes,
            seed,
            pool: pool(seed, POOL_BYTES + largest),
            scramble: Permutation::new(distinct.min(SCRAMBLED_MAX), seed),
        })
    }

    /// The number of different keys.
    pub fn num(&self) -> u64 {
        self.num
    }

    /// The index that step `step` of the random stream `stream` picks.
    #[inline]
    pub fn random_index(&self, stream: u64, step: u64) -> u64 {
        scaled(self.random(stream, step), self.num)
    }

    /// The random numbers of step `step` of the stream `stream`.
    #[inline]
    pub(crate) fn draws(&self, stream: u64, step: u64) -> Draws {
        Draws::new(self.random(stream, step))
    }

    #[inline]
    fn random(&self, stream: u64, step: u64) -> u64 {
        mix(self.seed ^ mix(stream).wrapping_add(step.wrapping_mul(GOLDEN)))
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

    /// Writes the key of the YCSB record `record` into `key`.
    #[inline]
    pub(crate) fn record_key(&self, record: u64, key: &mut Vec<u8>) {
        self.key(self.scramble.forward(record), key);
    }

    /// The record whose key is `key`; `None` where it is no key of this data set.
    #[inline]
    pub(crate) fn record_of(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.key_size {
            return None;
        }
        let (digits, rest) = key.split_at(self.key_digits);
        let number = digits.iter().try_fold(0, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + u64::from(digit - b'0'))
        })?;
        let is_ours = number < self.scramble.size() && rest.iter().all(|&byte| byte == b'0');
        is_ours.then(|| self.scramble.backward(number))
    }

    /// How many different records the keys allow.
    pub(crate) fn records_max(&self) -> u64 {
        self.scramble.size()
    }

    /// Whether the size of a value is known without knowing which write of its key it is of.
    pub(crate) fn has_one_size(&self) -> bool {
        self.value_sizes.smallest() == self.value_sizes.largest()
    }

    /// Whether values are long enough to say which write they are of.
    pub(crate) fn tells_generations(&self) -> bool {
        self.value_sizes.smallest() >= TAG_BYTES
    }

    /// Writes a key that no load ever writes, right behind the key of `index`.
    #[inline]
    pub fn missing_key(&self, index: u64, key: &mut Vec<u8>) {
        self.key(index, key);
        key.push(b'.');
    }

    /// Writes the value of generation `generation` of `key` into `value`.
    #[inline]
    pub fn value(&self, key: &[u8], generation: u16, value: &mut Vec<u8>) {
        let tag = self.tag(key) | u64::from(generation);
        let size = self.value_sizes.of(tag);
        let head = TAG_BYTES.min(size);
        value.clear();
        value.extend_from_slice(&tag.to_le_bytes()[..head]);
        value.extend_from_slice(self.filler(tag, size));
    }

    /// Bytes of the value of generation `generation` of `key`.
    #[inline]
    pub(crate) fn value_size(&self, key: &[u8], generation: u16) -> usize {
        self.value_sizes.of(self.tag(key) | u64::from(generation))
    }

    /// Checks that some load gave `value` to `key`.
    #[inline]
    pub fn check(&self, key: &[u8], value: &[u8]) -> Result<Checked> {
        let expected = self.tag(key);
        let head = TAG_BYTES.min(value.len());
        let mut tag = [0; TAG_BYTES];
        tag[..head].copy_from_slice(&value[..head]);
        let bytes = expected.to_le_bytes();
        let from = GENERATION_BYTES.min(head);
        let number = u64::from_le_bytes(tag);
        let size = self.value_sizes.of(number);
        if value.len() == size
            && tag[from..head] == bytes[from..head]
            && value[head..] == *self.filler(number, size)
        {
            return Ok(Checked {
                fingerprint: mix(number ^ expected.rotate_left(7)),
                generation: (number & 0xffff) as u16,
            });
        }
        Err(wrong_value(key))
    }

    #[inline]
    fn tag(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed) & !0xffff
    }

    /// What follows the tag in a value of `size` bytes.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are kept"
    )]
    fn filler(&self, tag: u64, size: usize) -> &[u8] {
        let length = size.saturating_sub(TAG_BYTES);
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
