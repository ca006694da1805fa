//! The load of a trace.
//!
//! I1. Facts about all keys come from the sample of keys that is left at the end, each with all of its operations.
//!
//! Concurrency: none.

use std::collections::HashMap;
use std::path::Path;

use windrow::simulation::{KeyDistribution, ValueSize};
use windrow::{Error, Result};
use windrow_bench::{Trace, TraceOp};
use xxhash_rust::xxh3::xxh3_64;

use crate::amounts::whole;
use crate::commands::advise::demand::Known;
use crate::commands::cost::Fractions;
use crate::progress;

/// The largest sample of keys. If a trace has more, half of them are kept, chosen by their hashes, then a quarter,
/// and so on.
const KEYS_MAX: usize = 1 << 20;

/// Two sizes of values are the same within half a power of two.
const SIZE_STEPS: f64 = 2.0;

/// The step of a value of this many bytes.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a size is small"
)]
fn size_step(bytes: usize) -> i32 {
    ((bytes as f64 + 1.0).log2() * SIZE_STEPS) as i32
}

/// The smallest value of a step.
fn size_from(step: i32) -> u64 {
    let least = (f64::from(step) / SIZE_STEPS).exp2() - 1.0;
    whole(least.ceil())
}

/// A size counts if it has this fraction of all values, or of their bytes; others are added to their neighbours.
const SIZE_FRACTION_MIN: f64 = 0.001;

/// The load of the trace in `path`. It begins with an empty store, unless `is_filled` says that all of its keys are
/// stored.
///
/// # Errors
/// `InvalidArgument` for a line that is no operation, or for a trace without operations; `Io`.
pub(in crate::commands::advise) fn trace(path: &Path, is_filled: bool) -> Result<Known> {
    let mut trace = Trace::open(path)?;
    let mut seen = Seen::default();
    let bar = progress::spinner("reading");
    let read = seen.read(&mut trace);
    bar.finish_and_clear();
    read?;
    if seen.operations == 0 {
        return Err(Error::invalid_argument(format!(
            "{} holds no operation",
            path.display()
        )));
    }
    Ok(seen.known(path, is_filled))
}

/// The operations on a key.
#[derive(Debug, Clone, Copy, Default)]
struct KeyUse {
    operations: u64,
    puts: u64,
    /// Puts while it was absent.
    inserts: u64,
    gets: u64,
    /// Gets while it was present.
    found: u64,
    is_present: bool,
}

/// The number of values of about one size, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct SizeCount {
    values: u64,
    bytes: u64,
}

impl SizeCount {
    fn and(self, other: Self) -> Self {
        Self {
            values: self.values.saturating_add(other.values),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Whether this is enough of all values, or of their bytes, to count as a size.
    fn is_much_of(self, all: Self) -> bool {
        let part = |own: u64, all: u64| own as f64 >= SIZE_FRACTION_MIN * all as f64;
        part(self.values, all.values) || part(self.bytes, all.bytes)
    }
}

/// The part of a trace that was read.
#[derive(Debug, Default)]
struct Seen {
    operations: u64,
    key_bytes: u64,
    /// Of each size, by steps.
    sizes: HashMap<i32, SizeCount>,
    puts: u64,
    deletes: u64,
    gets: u64,
    scans: u64,
    steps: u64,
    /// The sample: keys whose hashes end with this many zeros.
    zeros: u32,
    keys: HashMap<u64, KeyUse>,
    /// How many keys of the sample are present, and the most of all keys that were present at a time.
    present: u64,
    most: u64,
}

impl Seen {
    /// Reads a trace to its end.
    fn read(&mut self, trace: &mut Trace) -> Result<()> {
        while let Some((asked, key)) = trace.next()? {
            self.note(asked, key);
        }
        Ok(())
    }

    fn note(&mut self, asked: TraceOp, key: &[u8]) {
        self.operations += 1;
        self.key_bytes += key.len() as u64;
        match asked {
            TraceOp::Put(bytes) => {
                self.puts += 1;
                let size = self.sizes.entry(size_step(bytes)).or_default();
                *size = size.and(SizeCount {
                    values: 1,
                    bytes: bytes as u64,
                });
            }
            TraceOp::Get => self.gets += 1,
            TraceOp::Delete => self.deletes += 1,
            TraceOp::Scan(steps) => {
                self.scans += 1;
                self.steps = self.steps.saturating_add(steps);
            }
        }
        let hash = xxh3_64(key);
        if hash.trailing_zeros() < self.zeros {
            return;
        }
        let own = self.keys.entry(hash).or_default();
        own.operations += 1;
        match asked {
            TraceOp::Put(_) => {
                own.puts += 1;
                own.inserts += u64::from(!own.is_present);
                self.present += u64::from(!own.is_present);
                own.is_present = true;
            }
            TraceOp::Get => {
                own.gets += 1;
                own.found += u64::from(own.is_present);
            }
            TraceOp::Delete => {
                self.present -= u64::from(own.is_present);
                own.is_present = false;
            }
            TraceOp::Scan(_) => {}
        }
        self.most = self.most.max(self.present << self.zeros);
        if self.keys.len() > KEYS_MAX {
            self.zeros += 1;
            let zeros = self.zeros;
            self.keys.retain(|hash, _| hash.trailing_zeros() >= zeros);
            let present = self.keys.values().filter(|key| key.is_present);
            self.present = present.count() as u64;
        }
    }

    fn known(&self, path: &Path, is_filled: bool) -> Known {
        let part = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        // I1
        let all = |of: fn(&KeyUse) -> u64| -> u64 { self.keys.values().map(of).sum() };
        let (inserts, found) = if is_filled {
            (0.0, 1.0)
        } else {
            (
                part(all(|key| key.inserts), all(|key| key.puts)),
                part(all(|key| key.found), all(|key| key.gets)),
            )
        };
        let puts = self.puts as f64;
        let gets = self.gets as f64;
        let (values, values_from) = self.values();
        Known {
            source: path.display().to_string(),
            keys: Some(self.most).filter(|&keys| keys > 0),
            key_bytes: Some((self.key_bytes as f64 / self.operations as f64).round())
                .map(|bytes| whole(bytes).max(1)),
            values,
            values_from,
            weights: Some(Fractions {
                inserts: puts * inserts,
                updates: puts * (1.0 - inserts),
                deletes: self.deletes as f64,
                gets: gets * found,
                missing: gets * (1.0 - found),
                scans: self.scans as f64,
                ..Fractions::default()
            }),
            scan_length: (self.scans > 0).then(|| part(self.steps, self.scans)),
            distribution: Some(self.distribution()),
            ..Known::default()
        }
    }

    /// The sizes of values, few enough to be simulated, without loss of values or of their bytes; and the smallest
    /// value of each size.
    fn values(&self) -> (Vec<ValueSize>, Vec<u64>) {
        let mut steps: Vec<_> = self.sizes.iter().collect();
        steps.sort_unstable();
        let all = SizeCount {
            values: self.puts,
            bytes: self
                .sizes
                .values()
                .fold(0, |all: u64, own| all.saturating_add(own.bytes)),
        };
        let mut counted: Vec<(u64, SizeCount)> = Vec::new();
        let mut few: Option<(u64, SizeCount)> = None;
        for (step, own) in steps {
            let (from, together) = few.map_or((size_from(*step), *own), |(from, few)| {
                (from, few.and(*own))
            });
            if own.is_much_of(all) {
                // The few are added to the next smaller size, so that large sizes do not shrink.
                match (counted.last_mut(), few) {
                    (Some(smaller), Some((_, few))) => {
                        smaller.1 = smaller.1.and(few);
                        counted.push((size_from(*step), *own));
                    }
                    _ => counted.push((from, together)),
                }
                few = None;
            } else if together.is_much_of(all) {
                counted.push((from, together));
                few = None;
            } else {
                few = Some((from, together));
            }
        }
        match (counted.last_mut(), few) {
            (Some(smaller), Some((_, few))) => smaller.1 = smaller.1.and(few),
            (None, Some(few)) => counted.push(few),
            (_, None) => {}
        }
        let size = |(from, it): (u64, SizeCount)| {
            let size = ValueSize {
                fraction: it.values as f64,
                bytes: it.bytes / it.values,
            };
            (size, from)
        };
        counted.into_iter().map(size).unzip()
    }

    /// The skew of the operations: the exponent with which the hottest hundredth of the keys has the fraction of all
    /// operations that it has here.
    fn distribution(&self) -> KeyDistribution {
        let mut counts: Vec<u64> = self.keys.values().map(|it| it.operations).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let all: u64 = counts.iter().sum();
        let hot = counts.len() / 100;
        if hot < HOT_MIN || all < 2 * counts.len() as u64 {
            return KeyDistribution::Uniform;
        }
        let hottest: u64 = counts.iter().take(hot).sum();
        let fraction = hottest as f64 / all as f64;
        let of = |exponent: f64| {
            let weights = |count: usize| -> f64 {
                (1..=count).map(|rank| (rank as f64).powf(-exponent)).sum()
            };
            weights(hot) / weights(counts.len())
        };
        let (mut low, mut high) = (0.0, EXPONENT_MAX);
        for _ in 0..16 {
            let middle = f64::midpoint(low, high);
            if of(middle) < fraction {
                low = middle;
            } else {
                high = middle;
            }
        }
        if low < EXPONENT_MIN {
            return KeyDistribution::Uniform;
        }
        KeyDistribution::Zipfian {
            exponent: (low * 100.0).round() / 100.0,
        }
    }
}

/// A hundredth of fewer keys is too small a sample.
const HOT_MIN: usize = 10;

/// Uniform keys look like a smaller exponent by chance.
const EXPONENT_MIN: f64 = 0.3;
const EXPONENT_MAX: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(operations: impl IntoIterator<Item = (TraceOp, u64)>) -> Seen {
        let mut seen = Seen::default();
        for (asked, key) in operations {
            seen.note(asked, &key.to_be_bytes());
        }
        seen
    }

    #[test]
    fn puts_are_inserts_or_updates_and_gets_find_something_or_not() {
        let seen = seen([
            (TraceOp::Put(100), 1),
            (TraceOp::Put(100), 1),
            (TraceOp::Put(300), 2),
            (TraceOp::Get, 1),
            (TraceOp::Get, 3),
            (TraceOp::Delete, 1),
            (TraceOp::Get, 1),
            (TraceOp::Scan(20), 2),
        ]);
        let known = seen.known(Path::new("trace"), false);
        let weights = known.weights.unwrap();
        assert_eq!(known.keys, Some(2));
        assert_eq!(known.key_bytes, Some(8));
        assert!((weights.inserts - 2.0).abs() < 1e-9);
        assert!((weights.updates - 1.0).abs() < 1e-9);
        assert!((weights.gets - 1.0).abs() < 1e-9);
        assert!((weights.missing - 2.0).abs() < 1e-9);
        assert!((weights.sum() - 8.0).abs() < 1e-9);
        assert_eq!(known.scan_length, Some(20.0));
        assert_eq!(known.values.len(), 2);
        // In a filled store, the puts are updates, and the gets find their keys.
        let weights = seen.known(Path::new("trace"), true).weights.unwrap();
        assert!(weights.inserts.abs() < 1e-9 && weights.missing.abs() < 1e-9);
    }

    #[test]
    fn few_values_count_where_they_have_many_of_the_bytes() {
        let sizes = |puts: &[(usize, u64)]| -> Vec<(u64, u64)> {
            let mut key = 0;
            let mut seen = Seen::default();
            for &(bytes, times) in puts {
                for _ in 0..times {
                    key += 1_u64;
                    seen.note(TraceOp::Put(bytes), &key.to_be_bytes());
                }
            }
            let (values, from) = seen.values();
            // A threshold at the least of a size has all of its values on one side.
            let least = |size: &ValueSize| puts.iter().any(|put| put.0 as u64 <= size.bytes);
            assert!(values.iter().all(least) && from.len() == values.len());
            assert!(from.iter().zip(&values).all(|(from, it)| *from <= it.bytes));
            let values = values.into_iter();
            let values: Vec<_> = values.map(|it| (whole(it.fraction), it.bytes)).collect();
            assert_eq!(values.iter().map(|it| it.0).sum::<u64>(), key);
            values
        };
        // One in ten thousand, wherever it comes, has nine tenths of the bytes.
        let large = 10 << 20;
        let both = [(10_000, 100), (1, large as u64)];
        assert_eq!(sizes(&[(100, 10_000), (large, 1)]), both);
        assert_eq!(sizes(&[(large, 1), (100, 10_000)]), both);
        // A size with few of both is added to the next smaller one, so that the large one does not shrink.
        assert_eq!(
            sizes(&[(100, 10_000), (300, 3), (large, 1)]),
            [(10_003, 100), both[1]]
        );
        assert_eq!(sizes(&[(100, 10_000), (300, 3)]), [(10_003, 100)]);
        // The smallest is added to the next larger one, and several together may be enough.
        assert_eq!(sizes(&[(8, 3), (100, 10_000)]), [(10_003, 99)]);
        assert_eq!(
            sizes(&[(8, 6), (30, 6), (100, 10_000)]),
            [(12, 19), (10_000, 100)]
        );
        assert_eq!(sizes(&[(0, 10)]), [(10, 0)]);
        assert_eq!(sizes(&[]), []);
    }

    #[test]
    fn each_size_has_all_of_its_values_above_its_least() {
        for bytes in [0, 1, 7, 63, 64, 100, 127, 128, 1000, 1 << 20, (1 << 30) - 1] {
            let step = size_step(bytes);
            assert!(size_from(step) <= bytes as u64, "{bytes}");
            assert!(size_from(step + 1) > bytes as u64, "{bytes}");
        }
        // Half of them are smaller than their mean.
        let bytes = [91, 95, 99, 103, 107, 111, 115, 119, 123];
        let own = seen(
            bytes
                .into_iter()
                .zip(1..)
                .map(|(bytes, key)| (TraceOp::Put(bytes), key)),
        );
        let known = own.known(Path::new("trace"), false);
        assert_eq!((known.values[0].bytes, known.values_from[0]), (107, 90));
    }

    // I1
    #[test]
    fn early_operations_count_as_much_as_late_ones() {
        let keys = 3 * KEYS_MAX as u64;
        let inserts = (0..keys).map(|key| (TraceOp::Put(10), key));
        let updates = (0..keys).map(|key| (TraceOp::Put(10), key));
        // Of the gets two thirds find nothing.
        let gets = (0..keys).map(|place| (TraceOp::Get, place * 3));
        let seen = seen(inserts.chain(updates).chain(gets));
        assert!(seen.zeros > 1);
        let weights = seen.known(Path::new("trace"), false).weights.unwrap();
        let part = weights.inserts / (weights.inserts + weights.updates);
        assert!((part - 0.5).abs() < 0.01, "{part}");
        let found = weights.gets / (weights.gets + weights.missing);
        assert!((found - 1.0 / 3.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn scans_without_an_end_are_long() {
        let seen = seen([(TraceOp::Scan(u64::MAX), 1), (TraceOp::Scan(u64::MAX), 2)]);
        let known = seen.known(Path::new("trace"), false);
        assert!(known.scan_length.unwrap() > 1e18);
    }

    #[test]
    fn many_keys_are_counted_by_a_part_of_them() {
        let keys = 3 * KEYS_MAX as u64;
        let seen = seen((0..keys).map(|key| (TraceOp::Put(10), key)));
        assert!(seen.zeros > 0 && seen.keys.len() <= KEYS_MAX);
        let reported = seen.known(Path::new("trace"), false).keys.unwrap();
        assert!(reported.abs_diff(keys) < keys / 50, "{reported}");
    }

    #[test]
    fn deleted_keys_do_not_count_as_stored() {
        // A queue of ten.
        let queue = (0..5000).flat_map(|place: u64| {
            let oldest = place.checked_sub(10);
            let delete = oldest.map(|key| (TraceOp::Delete, key));
            delete.into_iter().chain([(TraceOp::Put(10), place)])
        });
        let known = seen(queue).known(Path::new("trace"), false);
        assert_eq!(known.keys, Some(10));
        let weights = known.weights.unwrap();
        assert!((weights.inserts - 5000.0).abs() < 1e-9);
        assert!((weights.deletes - 4990.0).abs() < 1e-9);
        // Deletes of absent keys change nothing.
        let known = seen([
            (TraceOp::Delete, 1),
            (TraceOp::Put(10), 1),
            (TraceOp::Delete, 1),
            (TraceOp::Delete, 1),
            (TraceOp::Put(10), 2),
        ]);
        assert_eq!(known.known(Path::new("trace"), false).keys, Some(1));
    }

    #[test]
    fn skew_is_found() {
        let uniform = seen((0..20_000).map(|place| (TraceOp::Get, place * 7919 % 5000)));
        assert_eq!(uniform.distribution(), KeyDistribution::Uniform);
        // The key of rank r is asked for in proportion to 1/r.
        let ranks = (1..=2000_u64).flat_map(|rank| {
            let times = 20_000 / rank;
            (0..times).map(move |_| (TraceOp::Get, rank))
        });
        let KeyDistribution::Zipfian { exponent } = seen(ranks).distribution() else {
            panic!("a few keys are far hotter than the others");
        };
        assert!((exponent - 1.0).abs() < 0.1, "{exponent}");
    }
}
