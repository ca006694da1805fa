//! Layer 2: blocked Bloom filters with fractional bits per key.
//!
//! A filter is an array of 64-byte lines. One 64-bit hash of the user key serves every filter of a
//! read: its high half picks the line, its low half the bits within it, so a probe touches one
//! cache line.
//!
//! A segment holds up to four *units* ("Filter units" in `docs/format.md`). They are independent, so their
//! rates of false positives multiply: a reader that loads the first two spends the bits of two, and rejects
//! the same part of the keys as one filter with these bits.
//!
//! A unit is stored in pieces (`table/format/filter_unit.rs`). A probe needs one line and the unit's shape, so a reader
//! without the unit in memory reads one piece.
//!
//! Invariants:
//! - I1. A key that was added is never rejected.
//! - I2. A unit has exactly the number of lines that its shape says.
//!
//! Concurrency: a filter is immutable and shared freely.

#[cfg(test)]
mod tests;

use crate::base::limits::SEGMENTS_MAX;
use crate::codec::Reader;
use crate::codec::reader::DecodeError;

/// The most independent units of one segment.
pub(crate) const FILTER_UNITS_MAX: usize = 4;

const ALGORITHM: u8 = 1;
const LINE_WORDS: usize = 8;
pub(crate) const LINE_BYTES: usize = LINE_WORDS * 8;

/// The stored bytes of a [`UnitShape`].
pub(crate) const SHAPE_BYTES: usize = 8;

const LINE_BITS: f64 = (LINE_BYTES * 8) as f64;
const PROBES_MAX: u8 = 16;

/// The multiplier of hashes of each unit, which makes the units independent. All are odd, so distinct hashes
/// stay distinct.
const SALTS: [u64; FILTER_UNITS_MAX] = [
    1,
    0xbf58_476d_1ce4_e5b9,
    0x94d0_49bb_1331_11eb,
    0xd6e8_feb8_6659_fd93,
];

/// A number of filter units for each segment of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadedUnits(u64);

impl LoadedUnits {
    /// All units of all segments.
    pub(crate) const ALL: Self = Self(0x4444_4444_4444);

    /// None of any segment.
    pub(crate) const NONE: Self = Self(0);

    /// Unchanged for the first `segments`, and all units of the later ones.
    pub(crate) fn with_all_after(self, segments: usize) -> Self {
        assert!(segments <= SEGMENTS_MAX);
        let later = u64::MAX << (4 * segments);
        Self(self.0 & !later | Self::ALL.0 & later)
    }

    /// The units of `segment`. A file has at most [`SEGMENTS_MAX`] segments.
    pub(crate) fn of(self, segment: usize) -> usize {
        (self.0 >> (4 * segment) & 0xf) as usize
    }

    /// Adds a unit of `segment`, which must not have all of them.
    pub(crate) fn add(&mut self, segment: usize) {
        assert!(segment < SEGMENTS_MAX && self.of(segment) < FILTER_UNITS_MAX);
        self.0 += 1 << (4 * segment);
    }

    /// Lowers the units of `segment` to at most `units`.
    pub(crate) fn limit(&mut self, segment: usize, units: usize) {
        let shift = 4 * segment;
        let lowered = self.of(segment).min(units) as u64;
        self.0 = self.0 & !(0xf << shift) | lowered << shift;
    }

    /// All counts in one word.
    pub(crate) fn to_word(self) -> u64 {
        self.0
    }

    /// The inverse of [`to_word`](Self::to_word).
    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }
}

const _: () = assert!(4 * SEGMENTS_MAX <= 64 && FILTER_UNITS_MAX < 16);

/// Eight words that share a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line([u64; LINE_WORDS]);

impl Line {
    /// Reads a line.
    pub(crate) fn read(bytes: &[u8; LINE_BYTES]) -> Self {
        let mut words = [0; LINE_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self(words)
    }

    /// Appends the line to `output`.
    pub(crate) fn write(&self, output: &mut Vec<u8>) {
        for word in self.0 {
            output.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Whether the line has all bits of a key whose salted hash is `hash`.
    #[inline]
    fn has_all(&self, hash: u64, probes: u8) -> bool {
        let mut bits = Bits::of(hash);
        for _ in 0..probes {
            let (word, mask) = bits.next();
            if self.0[word] & mask == 0 {
                return false;
            }
        }
        true
    }
}

/// What a filter unit is, beside its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnitShape {
    pub(crate) lines: u32,
    probes: u8,
    /// The place of the unit among those of its segment.
    number: u8,
}

impl UnitShape {
    /// The shape as it is stored.
    pub(crate) fn encode(self) -> [u8; SHAPE_BYTES] {
        let mut bytes = [ALGORITHM, self.probes, self.number, 0, 0, 0, 0, 0];
        bytes[4..].copy_from_slice(&self.lines.to_le_bytes());
        bytes
    }

    /// Reads the shape of unit `number` with `lines` lines.
    pub(crate) fn decode(bytes: &[u8], number: usize, lines: u32) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let start = reader.clone();
        let [algorithm, probes, stored_number, zero] = reader.array::<4>("a filter is cut off")?;
        if algorithm != ALGORITHM {
            return Err(start.unsupported("a filter of an unknown kind"));
        }
        let stored_lines = reader.u32("a filter is cut off")?;
        if stored_lines != lines
            || usize::from(stored_number) != number
            || number >= FILTER_UNITS_MAX
            || !(1..=PROBES_MAX).contains(&probes)
            || zero != 0
        {
            return Err(start.error("a filter does not fit its header"));
        }
        Ok(Self {
            lines,
            probes,
            number: stored_number,
        })
    }

    /// Whether `line`, the line of `hash`, says that the key may be in the segment.
    pub(crate) fn passes(self, line: &Line, hash: u64) -> bool {
        let salt = SALTS[usize::from(self.number) % FILTER_UNITS_MAX];
        line.has_all(hash.wrapping_mul(salt), self.probes)
    }
}

/// The number of the line that unit `number` of `lines` lines has for `hash`.
pub(crate) fn line_number(hash: u64, number: usize, lines: u32) -> usize {
    line_of(hash.wrapping_mul(SALTS[number]), lines)
}

/// The bits of one hash within its line.
#[derive(Debug, Clone, Copy)]
struct Bits(u32);

impl Bits {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    fn of(hash: u64) -> Self {
        Self(hash as u32)
    }

    /// The next bit: its word and its mask.
    #[inline]
    fn next(&mut self) -> (usize, u64) {
        self.0 = self.0.wrapping_mul(0x9e37_79b9);
        // The upper nine bits: three for the word, six for the bit.
        ((self.0 >> 29) as usize, 1 << (self.0 >> 23 & 63))
    }
}

/// The line of `hash` among `lines`: its high half scaled to the range.
#[inline]
fn line_of(hash: u64, lines: u32) -> usize {
    (((hash >> 32) * u64::from(lines)) >> 32) as usize
}

/// Collects the keys of one filter.
#[derive(Debug, Default)]
pub(crate) struct FilterBuilder {
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// Adds the key with this hash.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
    }

    /// The hashes of all keys.
    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The bytes held in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
    }

    /// Unit `number`; `None` if there are no keys or no bits.
    pub(crate) fn unit(&self, number: u8, bits_per_key: f64) -> Option<Filter> {
        let salt = *SALTS.get(usize::from(number))?;
        if self.hashes.is_empty() || bits_per_key <= 0.0 {
            return None;
        }
        let lines = lines_for(self.hashes.len(), bits_per_key);
        let probes = probes_for(bits_per_key);
        let mut filter = vec![Line([0; LINE_WORDS]); lines as usize];
        for &hash in &self.hashes {
            let hash = hash.wrapping_mul(salt);
            let line = &mut filter[line_of(hash, lines)];
            let mut bits = Bits::of(hash);
            for _ in 0..probes {
                let (word, mask) = bits.next();
                line.0[word] |= mask;
            }
        }
        Some(Filter {
            lines: filter.into(),
            probes,
            number,
            salt,
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, and both are clamped"
)]
fn lines_for(keys: usize, bits_per_key: f64) -> u32 {
    (keys as f64 * bits_per_key / LINE_BITS).ceil().max(1.0) as u32
}

/// The number of probes with the fewest false positives, as if lines were unbounded: ln 2 for
/// each bit per key.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, and the result is clamped"
)]
fn probes_for(bits_per_key: f64) -> u8 {
    ((bits_per_key * std::f64::consts::LN_2).round() as u8).clamp(1, PROBES_MAX)
}

/// A unit with more keys to a line on average passes almost every key: all but some in a billion.
const LINE_KEYS_MAX: f64 = 10_000.0;

/// The rate of false positives of a unit with `bits_per_key`.
///
/// The number of keys in a line has a Poisson distribution, and lines with more keys pass more.
pub(crate) fn false_positive_rate(bits_per_key: f64) -> f64 {
    // The number of entries in a forged table may have no relation to its filter.
    if bits_per_key <= LINE_BITS / LINE_KEYS_MAX {
        return 1.0;
    }
    let probes = i32::from(probes_for(bits_per_key));
    let mean = LINE_BITS / bits_per_key;
    let most = (mean + 8.0 * mean.sqrt() + 8.0).ceil();
    // The probability that a key leaves a bit unset, and that all keys do.
    let unset = (1.0 - 1.0 / LINE_BITS).powi(probes);
    let mut all_unset = 1.0;
    let (mut keys, mut logarithm, mut rate) = (0.0, -mean, 0.0);
    // Simulations call this for each segment of trees with thousands of them, so powers are products here.
    while keys <= most {
        rate += f64::exp(logarithm) * f64::powi(1.0 - all_unset, probes);
        keys += 1.0;
        all_unset *= unset;
        logarithm += mean.ln() - f64::ln(keys);
    }
    rate
}

/// The rate of false positives of units of these lengths over `keys` keys: 1 without any.
pub(crate) fn units_rate(units: impl Iterator<Item = u64>, keys: u64) -> f64 {
    units
        .map(|bytes| false_positive_rate(bytes as f64 * 8.0 / keys.max(1) as f64))
        .product()
}

/// If the filters together have a higher rate of false positives, they are of no use for estimates.
const RATE_MAX: f64 = 0.9;

/// About how many of `probed` keys are in at least one of some segments. `passed` of them passed the filter
/// of at least one; `rates` are the rates of false positives of these filters. All of the keys if the rates
/// are too high.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from float saturates, and the result is clamped"
)]
pub(crate) fn keys_present(probed: f64, passed: f64, rates: impl IntoIterator<Item = f64>) -> u64 {
    let rejected: f64 = rates.into_iter().map(|rate| 1.0 - rate).product();
    let present = if rejected < 1.0 - RATE_MAX {
        probed
    } else {
        probed - (probed - passed) / rejected
    };
    present.clamp(0.0, probed).round() as u64
}

/// A filter unit in memory.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    lines: Box<[Line]>,
    probes: u8,
    number: u8,
    salt: u64,
}

impl Filter {
    /// The unit of this shape; `None` if the number of `lines` is another.
    pub(crate) fn new(shape: UnitShape, lines: Vec<Line>) -> Option<Self> {
        // I2
        (lines.len() as u64 == u64::from(shape.lines)).then(|| Self {
            lines: lines.into(),
            probes: shape.probes,
            number: shape.number,
            salt: SALTS[usize::from(shape.number) % FILTER_UNITS_MAX],
        })
    }

    /// What the unit is, beside its lines.
    pub(crate) fn shape(&self) -> UnitShape {
        #[expect(clippy::cast_possible_truncation, reason = "the count is a u32")]
        let lines = self.lines.len() as u32;
        UnitShape {
            lines,
            probes: self.probes,
            number: self.number,
        }
    }

    /// All lines, in order.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether the key with this hash may be in the segment (I1).
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let hash = hash.wrapping_mul(self.salt);
        #[expect(clippy::cast_possible_truncation, reason = "the count is a u32")]
        let line = &self.lines[line_of(hash, self.lines.len() as u32)];
        line.has_all(hash, self.probes)
    }

    /// The bytes that this filter holds in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}
