//! What is known of a load: from the statistics of a store, or from a trace.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use windrow::simulation::{KeyDistribution, ValueSize};
use windrow::{Error, KeyspaceOptions, Result};
use windrow_bench::{Asked, Trace};
use xxhash_rust::xxh3::xxh3_64;

use super::demand::{Known, Shares};
use crate::amounts::whole;

/// What the statistics in `path` say: those that `Db::stats` returns, as JSON.
///
/// Of what is stored only the keyspace of this name counts, all where it is `None`. Writes, gets and seeks are
/// counted for all keyspaces together, so that shares of operations are always those of all.
///
/// # Errors
/// `InvalidArgument` for what are no statistics, or for a keyspace that they do not have.
pub(super) fn statistics(path: &Path, keyspace: Option<&str>) -> Result<Known> {
    let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    let wrong = |what: &str| {
        Error::invalid_argument(format!(
            "{} {what}: it must be what `windrow stats DB --json` prints, or a `Stats` of a program as JSON",
            path.display()
        ))
    };
    // A program may have appended to it again and again: the last line is the newest.
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let whole_file: std::result::Result<Value, _> = serde_json::from_str(&text);
    let stats: Value = match (whole_file, last) {
        (Ok(stats), _) => stats,
        (Err(_), Some(line)) => {
            serde_json::from_str(line).map_err(|error| wrong(&format!("is no JSON ({error})")))?
        }
        (Err(error), None) => return Err(wrong(&format!("is no JSON ({error})"))),
    };
    let all = stats["keyspaces"]
        .as_array()
        .ok_or_else(|| wrong("has no keyspaces"))?;
    let is_asked = |it: &&Value| keyspace.is_none_or(|name| it["name"] == name);
    let asked: Vec<&Value> = all.iter().filter(is_asked).collect();
    if asked.is_empty() {
        let names: Vec<&str> = all.iter().filter_map(|it| it["name"].as_str()).collect();
        return Err(Error::invalid_argument(format!(
            "{} has no such keyspace, but {}",
            path.display(),
            names.join(", ")
        )));
    }
    let (own, every) = (Stored::of(asked.iter().copied()), Stored::of(all));
    let (writes, gets) = (number(&stats, "user_writes"), number(&stats, "gets"));
    let found = every.gets_answered.min(gets);
    // Of all that was ever written, what is no key any more was an update.
    let ever = number(&stats, "sequence").max(1) as f64;
    let inserted = (every.keys() as f64 / ever).min(1.0);
    let deleted = every.tombstones as f64 / every.entries.max(1) as f64;
    let deleted = deleted.min(1.0 - inserted);
    let writes = writes as f64;
    let is_counted = writes > 0.0 && asked.len() == all.len();
    let entry_bytes = if is_counted {
        Some(number(&stats, "user_bytes") as f64 / writes)
    } else if own.entries > 0 {
        Some(own.bytes as f64 / own.entries as f64)
    } else {
        None
    };
    let options = match asked.as_slice() {
        [one] => Some(recorded_options(&one["options"]).map_err(|error| {
            wrong(&format!(
                "has options that this version does not take ({error})"
            ))
        })?),
        _ => None,
    };
    Ok(Known {
        source: path.display().to_string(),
        keys: Some(own.keys()).filter(|&keys| keys > 0),
        entry_bytes,
        weights: Some(Shares {
            inserts: writes * inserted,
            updates: writes * (1.0 - inserted - deleted),
            deletes: writes * deleted,
            gets: found as f64,
            missing: (gets - found) as f64,
            scans: number(&stats, "seeks") as f64,
        }),
        options,
        ..Known::default()
    })
}

/// What statistics tell of keyspaces one by one.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    entries: u64,
    tombstones: u64,
    /// Of tables, and of what they refer to.
    bytes: u64,
    gets_answered: u64,
}

impl Stored {
    fn of<'a>(keyspaces: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut stored = Self::default();
        for keyspace in keyspaces {
            for files in ["runs", "value_logs"] {
                stored.bytes += number(&keyspace[files], "live_bytes");
            }
            stored.gets_answered += number(keyspace, "gets_answered_by_memtables");
            for level in keyspace["levels"].as_array().into_iter().flatten() {
                stored.entries += number(level, "entries");
                stored.tombstones += number(level, "tombstones");
                stored.bytes += number(level, "bytes");
                stored.gets_answered += number(level, "gets_answered");
            }
        }
        stored
    }

    /// A tombstone stands for an entry that is gone, too.
    fn keys(&self) -> u64 {
        self.entries.saturating_sub(2 * self.tombstones)
    }
}

fn number(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or(0)
}

/// Options as statistics name them, read as an options file, and valid.
fn recorded_options(options: &Value) -> Result<KeyspaceOptions> {
    let defaults = KeyspaceOptions::default();
    let mut lines = Vec::new();
    for (name, _) in defaults.fields() {
        let text = match &options[name] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Number(number) if number.as_u64() == Some(u64::MAX) => "never".to_owned(),
            Value::Number(number) => number.to_string(),
            other => other.to_string(),
        };
        lines.push(format!("{name} = {text}"));
    }
    // No bound is no number in JSON.
    if options["max_space_amp"].is_null() && options.is_object() {
        lines.push("max_space_amp = inf".to_owned());
    }
    lines.join("\n").parse()
}

/// No more keys than this are told apart; where there are more, a half of them, chosen by their hashes, stands
/// for all, then a quarter, and so on.
const KEYS_MAX: usize = 1 << 20;

/// Sizes of values are told apart by halves of powers of two.
const SIZE_STEPS: f64 = 2.0;

/// A size counts that has this part of all values, or of their bytes; others are added to those beside them.
const SIZE_SHARE_MIN: f64 = 0.001;

/// What the trace in `path` says. It begins with an empty store, unless `is_filled` says that what it reads and
/// writes is there.
///
/// # Errors
/// `InvalidArgument` that names the line for one that is no operation, or for a trace without any; `Io`.
pub(super) fn trace(path: &Path, is_filled: bool) -> Result<Known> {
    let mut trace = Trace::open(path)?;
    let mut seen = Seen::default();
    while let Some((asked, key)) = trace.next()? {
        seen.note(asked, key);
    }
    if seen.operations == 0 {
        return Err(Error::invalid_argument(format!(
            "{} holds no operation",
            path.display()
        )));
    }
    Ok(seen.known(path, is_filled))
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, Default)]
struct KeyUse {
    operations: u64,
    is_there: bool,
    was_written: bool,
}

/// How many values there are of about one size, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct SizeCount {
    values: u64,
    bytes: u64,
}

impl SizeCount {
    fn and(self, other: Self) -> Self {
        Self {
            values: self.values + other.values,
            bytes: self.bytes + other.bytes,
        }
    }

    /// Whether that is enough of all values, or of their bytes, to be told apart.
    fn is_much_of(self, all: Self) -> bool {
        let part = |own: u64, all: u64| own as f64 >= SIZE_SHARE_MIN * all as f64;
        part(self.values, all.values) || part(self.bytes, all.bytes)
    }
}

/// A trace as far as it was read.
#[derive(Debug, Default)]
struct Seen {
    operations: u64,
    key_bytes: u64,
    /// Of each size, by steps.
    sizes: HashMap<i64, SizeCount>,
    puts: u64,
    deletes: u64,
    gets: u64,
    scans: u64,
    steps: u64,
    /// The keys whose hashes end with so many zeros.
    zeros: u32,
    keys: HashMap<u64, KeyUse>,
    /// Of these keys: puts, those of keys that were not there, gets, and those that found something.
    told_puts: u64,
    told_inserts: u64,
    told_gets: u64,
    told_found: u64,
}

impl Seen {
    fn note(&mut self, asked: Asked, key: &[u8]) {
        self.operations += 1;
        self.key_bytes += key.len() as u64;
        match asked {
            Asked::Put(bytes) => {
                self.puts += 1;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "the logarithm of a size is small"
                )]
                let step = ((bytes as f64 + 1.0).log2() * SIZE_STEPS) as i64;
                let size = self.sizes.entry(step).or_default();
                *size = size.and(SizeCount {
                    values: 1,
                    bytes: bytes as u64,
                });
            }
            Asked::Get => self.gets += 1,
            Asked::Delete => self.deletes += 1,
            Asked::Scan(steps) => {
                self.scans += 1;
                self.steps += steps;
            }
        }
        let hash = xxh3_64(key);
        if hash.trailing_zeros() < self.zeros {
            return;
        }
        let own = self.keys.entry(hash).or_default();
        own.operations += 1;
        match asked {
            Asked::Put(_) => {
                self.told_puts += 1;
                self.told_inserts += u64::from(!own.is_there);
                own.is_there = true;
                own.was_written = true;
            }
            Asked::Get => {
                self.told_gets += 1;
                self.told_found += u64::from(own.is_there);
            }
            Asked::Delete => own.is_there = false,
            Asked::Scan(_) => {}
        }
        if self.keys.len() > KEYS_MAX {
            self.zeros += 1;
            let zeros = self.zeros;
            self.keys.retain(|hash, _| hash.trailing_zeros() >= zeros);
        }
    }

    fn known(&self, path: &Path, is_filled: bool) -> Known {
        let part = |part: u64, of: u64| part as f64 / of.max(1) as f64;
        let (inserts, found) = if is_filled {
            (0.0, 1.0)
        } else {
            (
                part(self.told_inserts, self.told_puts),
                part(self.told_found, self.told_gets),
            )
        };
        let puts = self.puts as f64;
        let gets = self.gets as f64;
        let written = self.keys.values().filter(|it| it.was_written).count() as u64;
        Known {
            source: path.display().to_string(),
            keys: Some(written << self.zeros).filter(|&keys| keys > 0),
            key_bytes: Some((self.key_bytes as f64 / self.operations as f64).round())
                .map(|bytes| whole(bytes).max(1)),
            values: self.values(),
            weights: Some(Shares {
                inserts: puts * inserts,
                updates: puts * (1.0 - inserts),
                deletes: self.deletes as f64,
                gets: gets * found,
                missing: gets * (1.0 - found),
                scans: self.scans as f64,
            }),
            scan_length: (self.scans > 0).then(|| part(self.steps, self.scans)),
            distribution: Some(self.distribution()),
            ..Known::default()
        }
    }

    /// The sizes of values, few enough to be simulated; none of the values is lost, and none of their bytes.
    fn values(&self) -> Vec<ValueSize> {
        let mut steps: Vec<_> = self.sizes.iter().collect();
        steps.sort_unstable();
        let all = SizeCount {
            values: self.puts,
            bytes: self.sizes.values().map(|own| own.bytes).sum(),
        };
        let mut counted: Vec<SizeCount> = Vec::new();
        let mut few = SizeCount::default();
        for (_, own) in steps {
            let together = few.and(*own);
            if own.is_much_of(all) {
                // The few go to the smaller ones beside them, so that they make no large ones small.
                match counted.last_mut() {
                    Some(smaller) => {
                        *smaller = smaller.and(few);
                        counted.push(*own);
                    }
                    None => counted.push(together),
                }
                few = SizeCount::default();
            } else if together.is_much_of(all) {
                counted.push(together);
                few = SizeCount::default();
            } else {
                few = together;
            }
        }
        match counted.last_mut() {
            Some(smaller) => *smaller = smaller.and(few),
            None => counted.push(few),
        }
        let counted = counted.iter().filter(|it| it.values > 0);
        let size = |it: &SizeCount| ValueSize {
            share: it.values as f64,
            bytes: it.bytes / it.values,
        };
        counted.map(size).collect()
    }

    /// Whether few keys have most of the operations: the exponent under which the hottest hundredth of the keys
    /// has the part of all operations that it has here.
    fn distribution(&self) -> KeyDistribution {
        let mut counts: Vec<u64> = self.keys.values().map(|it| it.operations).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let all: u64 = counts.iter().sum();
        let hot = counts.len() / 100;
        if hot < HOT_MIN || all < 2 * counts.len() as u64 {
            return KeyDistribution::Uniform;
        }
        let hottest: u64 = counts.iter().take(hot).sum();
        let share = hottest as f64 / all as f64;
        let of = |exponent: f64| {
            let weights = |count: usize| -> f64 {
                (1..=count).map(|rank| (rank as f64).powf(-exponent)).sum()
            };
            weights(hot) / weights(counts.len())
        };
        let (mut low, mut high) = (0.0, EXPONENT_MAX);
        for _ in 0..16 {
            let middle = f64::midpoint(low, high);
            if of(middle) < share {
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

/// A hundredth of fewer keys says nothing.
const HOT_MIN: usize = 10;

/// What chance makes of keys that are all alike looks like an exponent of less.
const EXPONENT_MIN: f64 = 0.3;
const EXPONENT_MAX: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(operations: impl IntoIterator<Item = (Asked, u64)>) -> Seen {
        let mut seen = Seen::default();
        for (asked, key) in operations {
            seen.note(asked, &key.to_be_bytes());
        }
        seen
    }

    #[test]
    fn puts_are_inserts_or_updates_and_gets_find_something_or_not() {
        let seen = seen([
            (Asked::Put(100), 1),
            (Asked::Put(100), 1),
            (Asked::Put(300), 2),
            (Asked::Get, 1),
            (Asked::Get, 3),
            (Asked::Delete, 1),
            (Asked::Get, 1),
            (Asked::Scan(20), 2),
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
        // In a store that is filled, the same are updates, and find what they ask for.
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
                    seen.note(Asked::Put(bytes), &key.to_be_bytes());
                }
            }
            let values = seen.values().into_iter();
            let values: Vec<_> = values.map(|it| (whole(it.share), it.bytes)).collect();
            assert_eq!(values.iter().map(|it| it.0).sum::<u64>(), key);
            values
        };
        // One in ten thousand, wherever it comes, has nine tenths of the bytes.
        let large = 10 << 20;
        let both = [(10_000, 100), (1, large as u64)];
        assert_eq!(sizes(&[(100, 10_000), (large, 1)]), both);
        assert_eq!(sizes(&[(large, 1), (100, 10_000)]), both);
        // What has few of both goes to those below it, and makes the large one no smaller.
        assert_eq!(
            sizes(&[(100, 10_000), (300, 3), (large, 1)]),
            [(10_003, 100), both[1]]
        );
        assert_eq!(sizes(&[(100, 10_000), (300, 3)]), [(10_003, 100)]);
        // Or to those above it where it is the smallest, and together they may be enough.
        assert_eq!(sizes(&[(8, 3), (100, 10_000)]), [(10_003, 99)]);
        assert_eq!(
            sizes(&[(8, 6), (30, 6), (100, 10_000)]),
            [(12, 19), (10_000, 100)]
        );
        assert_eq!(sizes(&[(0, 10)]), [(10, 0)]);
        assert_eq!(sizes(&[]), []);
    }

    #[test]
    fn many_keys_are_counted_by_a_part_of_them() {
        let keys = 3 * KEYS_MAX as u64;
        let seen = seen((0..keys).map(|key| (Asked::Put(10), key)));
        assert!(seen.zeros > 0 && seen.keys.len() <= KEYS_MAX);
        let told = seen.known(Path::new("trace"), false).keys.unwrap();
        assert!(told.abs_diff(keys) < keys / 50, "{told}");
    }

    #[test]
    fn skew_is_told() {
        let uniform = seen((0..20_000).map(|place| (Asked::Get, place * 7919 % 5000)));
        assert_eq!(uniform.distribution(), KeyDistribution::Uniform);
        // The key of rank r is asked for in proportion to 1/r.
        let ranks = (1..=2000_u64).flat_map(|rank| {
            let times = 20_000 / rank;
            (0..times).map(move |_| (Asked::Get, rank))
        });
        let KeyDistribution::Zipfian { exponent } = seen(ranks).distribution() else {
            panic!("a few keys are far hotter than the others");
        };
        assert!((exponent - 1.0).abs() < 0.1, "{exponent}");
    }

    #[test]
    fn options_of_statistics_read_back() {
        let mut options = KeyspaceOptions::preset(windrow::Preset::Lsma);
        options.large_from = 4096;
        options.medium_from = 4096;
        let json = serde_json::to_value(&options).unwrap();
        assert_eq!(recorded_options(&json).unwrap(), options);
        let options = KeyspaceOptions::preset(windrow::Preset::Leveling);
        let json = serde_json::to_value(&options).unwrap();
        assert_eq!(recorded_options(&json).unwrap(), options);
    }
}
