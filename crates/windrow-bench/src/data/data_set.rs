//! The keys and values of a run, which follow from a seed, and the check of values that reads return.
//!
//! A key is the zero-padded decimal number of its index, as in `db_bench`. A record of the YCSB loads has the key
//! of a scrambled index, so the order of records is not the order of keys. A value begins with a tag: 48 bits of
//! the hash of the key, and 16 bits of the generation, which identifies the write. The tag determines the size, so
//! each write of a key draws a size. Tag and size determine the rest, a part of a fixed pool of bytes. The check of
//! a value therefore needs only its key, and after the check the tag stands for the whole value. Loads with other
//! sizes than those of the data set pass the size. The check still finds a truncated value, because another size
//! selects another part of the pool.

use windrow::{Error, Result, limits};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::ValueSizes;
use crate::data::permutation::Permutation;
use crate::data::random::{GOLDEN, Rng, mix, scaled};

/// Digits of the number in a key that is long enough.
const KEY_DIGITS: usize = 16;
/// The bound of the numbers in the keys of YCSB's records: almost the largest number of these digits, and a power
/// of two, which the permutation maps in one round.
const SCRAMBLED_MAX: u64 = 1 << 53;
/// The range of the starts of fillers in the pool; a power of two.
const POOL_BYTES: usize = 1 << 20;
/// The default compressed size of a value as a fraction of its size.
pub(crate) const COMPRESSION_RATIO: f64 = 0.5;
/// Bytes of the tag at the start of a value.
const TAG_BYTES: usize = 8;
/// Bytes of the generation at the start of the tag.
const GENERATION_BYTES: usize = 2;

/// The result of the check of a value.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// A hash of key and value.
    pub fingerprint: u64,
    /// The generation of the write; 0 if the value is too short for one.
    pub generation: u16,
    /// The tag of the value.
    tag: u64,
}

/// Whether the compaction filter of the loads removes `key`: the number in it is odd.
pub fn is_filtered(key: &[u8]) -> bool {
    let digits = &key[..key.len().min(KEY_DIGITS)];
    digits.last().is_some_and(|digit| digit % 2 == 1)
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
    /// Maps the number of a record to the number in its key.
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
            pool: pool(seed, 2 * POOL_BYTES, COMPRESSION_RATIO),
            scramble: Permutation::new(distinct.min(SCRAMBLED_MAX), seed),
        })
    }

    /// The same keys with values that compress to the fraction `ratio`.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not from 0 to 1.
    pub fn with_compression_ratio(self, ratio: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&ratio) {
            let message = format!("the compression ratio must be from 0 to 1, not {ratio}");
            return Err(Error::invalid_argument(message));
        }
        let pool = pool(self.seed, self.pool.len(), ratio);
        Ok(Self { pool, ..self })
    }

    /// The number of different keys.
    pub fn num(&self) -> u64 {
        self.num
    }

    /// The seed of all keys and values.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The index that step `step` of the random stream `stream` picks.
    #[inline]
    pub fn random_index(&self, stream: u64, step: u64) -> u64 {
        scaled(self.random(stream, step), self.num)
    }

    /// The index below `bound` that step `step` of the random stream `stream` picks.
    #[inline]
    pub(crate) fn random_below(&self, stream: u64, step: u64, bound: u64) -> u64 {
        scaled(self.random(stream, step), bound)
    }

    /// The random numbers of step `step` of the stream `stream`.
    #[inline]
    pub(crate) fn rng(&self, stream: u64, step: u64) -> Rng {
        Rng::new(self.random(stream, step))
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
        self.key(self.record_number(record), key);
    }

    /// The record whose key is `key`; `None` if it is not a key of this data set.
    #[inline]
    pub(crate) fn record_of(&self, key: &[u8]) -> Option<u64> {
        let number = self.number_of(key)?;
        (number < self.scramble.size()).then(|| self.scramble.backward(number))
    }

    /// The number in the key of the YCSB record `record`. Keys are in the order of their numbers.
    #[inline]
    pub(crate) fn record_number(&self, record: u64) -> u64 {
        self.scramble.forward(record)
    }

    /// The number in `key`; `None` if it is not a key of this data set.
    #[inline]
    pub(crate) fn number_of(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.key_size {
            return None;
        }
        let (digits, rest) = key.split_at(self.key_digits);
        let number = digits.iter().try_fold(0, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + u64::from(digit - b'0'))
        })?;
        rest.iter().all(|&byte| byte == b'0').then_some(number)
    }

    /// The maximal number of records with these keys.
    pub(crate) fn records_max(&self) -> u64 {
        self.scramble.size()
    }

    /// Refuses more records than the keys allow.
    pub(crate) fn check_records(&self, count: u64) -> Result<()> {
        if count > self.records_max() {
            return Err(Error::invalid_argument(format!(
                "the keys are too short for {count} records"
            )));
        }
        Ok(())
    }

    /// Whether all values have one size.
    pub(crate) fn has_one_size(&self) -> bool {
        self.value_sizes.smallest() == self.value_sizes.largest()
    }

    /// Whether values are long enough to hold their generation.
    pub(crate) fn holds_generations(&self) -> bool {
        self.value_sizes.smallest() >= TAG_BYTES
    }

    /// Bytes of the longest key, a missing one.
    pub(crate) fn key_bytes_max(&self) -> usize {
        self.key_size + 1
    }

    /// Writes a key that no load writes, the next key in byte order after the key of `index`.
    #[inline]
    pub fn missing_key(&self, index: u64, key: &mut Vec<u8>) {
        self.key(index, key);
        key.push(b'.');
    }

    /// Writes the value of generation `generation` of `key` into `value`.
    #[inline]
    pub fn value(&self, key: &[u8], generation: u16, value: &mut Vec<u8>) {
        let tag = self.tag(key) | u64::from(generation);
        self.fill(tag, self.value_sizes.of(tag), value);
    }

    /// Writes the value of generation `generation` of `key` that has `size` bytes into `value`.
    #[inline]
    pub(crate) fn value_of_size(
        &self,
        key: &[u8],
        generation: u16,
        size: usize,
        value: &mut Vec<u8>,
    ) {
        self.fill(self.tag(key) | u64::from(generation), size, value);
    }

    /// Writes the value of `size` bytes that begins with `tag` into `value`.
    #[inline]
    fn fill(&self, tag: u64, size: usize, value: &mut Vec<u8>) {
        let head = TAG_BYTES.min(size);
        value.clear();
        value.extend_from_slice(&tag.to_le_bytes()[..head]);
        let filler = self.filler(tag, size);
        while value.len() < size {
            let more = filler.len().min(size - value.len());
            value.extend_from_slice(&filler[..more]);
        }
    }

    /// Bytes of the value of generation `generation` of `key`.
    #[inline]
    pub(crate) fn value_size(&self, key: &[u8], generation: u16) -> usize {
        self.value_sizes.of(self.tag(key) | u64::from(generation))
    }

    /// Checks that some load gave `value` to `key`, with one of the sizes of the data set.
    #[inline]
    pub fn check(&self, key: &[u8], value: &[u8]) -> Result<Checked> {
        let checked = self.check_bytes(key, value)?;
        if value.len() == self.value_sizes.of(checked.tag) {
            Ok(checked)
        } else {
            Err(wrong_value(key))
        }
    }

    /// Checks that some load gave `value` to `key`, with any size.
    #[inline]
    pub(crate) fn check_bytes(&self, key: &[u8], value: &[u8]) -> Result<Checked> {
        let expected = self.tag(key);
        let head = TAG_BYTES.min(value.len());
        let mut tag = [0; TAG_BYTES];
        tag[..head].copy_from_slice(&value[..head]);
        let bytes = expected.to_le_bytes();
        let from = GENERATION_BYTES.min(head);
        let tag_read = u64::from_le_bytes(tag);
        let filler = self.filler(tag_read, value.len());
        let is_ours = tag[from..head] == bytes[from..head]
            && value[head..]
                .chunks(POOL_BYTES)
                .all(|chunk| *chunk == filler[..chunk.len()]);
        if is_ours {
            return Ok(Checked {
                fingerprint: mix(tag_read ^ expected.rotate_left(7)),
                generation: (tag_read & 0xffff) as u16,
                tag: tag_read,
            });
        }
        Err(wrong_value(key))
    }

    /// A block of bytes from the pool of values.
    pub(crate) fn block(&self, bytes: usize) -> &[u8] {
        &self.pool[..bytes.min(self.pool.len())]
    }

    /// The average bytes of a key and its value.
    pub(crate) fn entry_bytes(&self) -> u64 {
        (self.key_size + self.value_sizes.average()) as u64
    }

    #[inline]
    fn tag(&self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.seed) & !0xffff
    }

    /// The bytes after the tag in a value of `size` bytes. A longer value repeats them.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are kept"
    )]
    fn filler(&self, tag: u64, size: usize) -> &[u8] {
        let place = tag.wrapping_add((size as u64).wrapping_mul(GOLDEN));
        let start = mix(place) as usize & (POOL_BYTES - 1);
        &self.pool[start..start + POOL_BYTES]
    }
}

#[cold]
pub(crate) fn wrong_value(key: &[u8]) -> Error {
    Error::corruption(
        "the store",
        0,
        format!(
            "the value of key {} is not a value that was written",
            key.escape_ascii()
        ),
    )
}

/// Bytes that compress to the fraction `ratio`: pieces of 100 bytes that begin with random bytes and repeat them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ratio is from 0 to 1"
)]
fn pool(seed: u64, length: usize, ratio: f64) -> Vec<u8> {
    const PIECE: usize = 100;
    let unlike = ((PIECE as f64 * ratio).round() as usize).clamp(1, PIECE);
    let mut pool = Vec::with_capacity(length + PIECE);
    let mut state = mix(seed);
    while pool.len() < length {
        let start = pool.len();
        while pool.len() < start + unlike {
            state = state.wrapping_add(GOLDEN);
            let random = mix(state).to_le_bytes();
            let take = random.len().min(start + unlike - pool.len());
            pool.extend_from_slice(&random[..take]);
        }
        while pool.len() < start + PIECE {
            let take = unlike.min(start + PIECE - pool.len());
            pool.extend_from_within(start..start + take);
        }
    }
    pool.truncate(length);
    pool
}
