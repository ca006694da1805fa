//! The load of a store, from its statistics.
//!
//! Statistics count operations since the store was opened, bytes of writes also since it was created, and entries of
//! tables. The fraction of inserts among the
//! writes follows from the last level: it holds each key about once, so of the writes that have left the levels above
//! it, only inserts have made it grow. With several lines, this holds for the writes between the first and the last
//! line; with one line, only for all writes ever.
//!
//! I1. A missing counter is an error, not a zero.
//!
//! Concurrency: none.

use std::fs;
use std::path::Path;

use serde_json::Value;
use windrow::{Compression, Error, KeyspaceOptions, Result};

use crate::amounts::whole;
use crate::commands::advise::demand::{EntryBytes, Known};
use crate::commands::cost::Fractions;

/// About the bytes of a memtable that an entry takes beside key and value.
const MEMTABLE_ENTRY_BYTES: f64 = 40.0;

/// What is wrong with the statistics.
type Fault = String;

/// The load of the statistics in `path`: those of `Db::stats` as JSON, one object or one a line.
///
/// Only the entries of `keyspace` count, or those of all keyspaces. Writes, gets and seeks are counted for all
/// keyspaces together, so the fractions of operations are always those of all.
///
/// # Errors
/// `InvalidArgument` if the file has no statistics, or not the keyspace.
pub(in crate::commands::advise) fn statistics(
    path: &Path,
    keyspace: Option<&str>,
) -> Result<Known> {
    let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    let wrong = |what: Fault| {
        Error::invalid_argument(format!(
            "{} {what}: it must be what `windrow stats DB --json` prints, or a `Stats` of a program as JSON",
            path.display()
        ))
    };
    let all = lines(&text).map_err(wrong)?;
    let newest = keyspaces(all.last().unwrap_or(&Value::Null)).map_err(wrong)?;
    let chosen = chosen(newest, keyspace)
        .map_err(|fault| Error::invalid_argument(format!("{} {fault}", path.display())))?;
    let asked = Asked::of(&chosen, chosen.len() == newest.len()).map_err(wrong)?;
    let all_lines: std::result::Result<Vec<Line>, Fault> = all.iter().map(Line::of).collect();
    let reported = Reported {
        all_lines: all_lines.map_err(wrong)?,
        asked,
    };
    let mut known = reported.known();
    known.source = path.display().to_string();
    Ok(known)
}

/// The objects of a file: one, or one in each line.
fn lines(text: &str) -> std::result::Result<Vec<Value>, Fault> {
    let no_json = |error: serde_json::Error| format!("is no JSON ({error})");
    let error = match serde_json::from_str(text) {
        Ok(stats) => return Ok(vec![stats]),
        Err(error) => error,
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let all: Vec<&str> = lines.collect();
    if all.len() < 2 {
        return Err(no_json(error));
    }
    let parsed = all.into_iter().map(serde_json::from_str);
    parsed
        .collect::<std::result::Result<_, _>>()
        .map_err(no_json)
}

/// The keyspaces that count, in the newest statistics.
#[derive(Debug)]
struct Asked {
    stored: Stored,
    /// Those of the keyspace, if it is one.
    options: Option<KeyspaceOptions>,
    is_compressed: bool,
    /// Whether all keyspaces count.
    is_all: bool,
}

/// The keyspace of this name, or all.
fn chosen<'a>(
    all: &'a [Value],
    keyspace: Option<&str>,
) -> std::result::Result<Vec<&'a Value>, Fault> {
    let is_asked = |it: &&Value| keyspace.is_none_or(|name| it["name"] == name);
    let asked: Vec<&Value> = all.iter().filter(is_asked).collect();
    if asked.is_empty() {
        let names: Vec<&str> = all.iter().filter_map(|it| it["name"].as_str()).collect();
        return Err(format!("has no such keyspace, but {}", names.join(", ")));
    }
    Ok(asked)
}

impl Asked {
    fn of(keyspaces: &[&Value], is_all: bool) -> std::result::Result<Self, Fault> {
        let recorded = |own: &&Value| {
            recorded_options(&own["options"])
                .map_err(|error| format!("has options that this version does not take ({error})"))
        };
        let options = keyspaces.iter().map(recorded);
        let mut options: Vec<KeyspaceOptions> = options.collect::<std::result::Result<_, _>>()?;
        Ok(Self {
            stored: Stored::of(keyspaces.iter().copied())?,
            is_compressed: options
                .iter()
                .any(|own| own.compression != Compression::None),
            options: options.pop().filter(|_| keyspaces.len() == 1),
            is_all,
        })
    }
}

/// At least one.
fn keyspaces(stats: &Value) -> std::result::Result<&[Value], Fault> {
    match stats["keyspaces"].as_array() {
        Some(all) if !all.is_empty() => Ok(all),
        _ => Err("has no keyspaces".to_owned()),
    }
}

/// No counter is larger; sums of smaller ones are below 2^64.
const COUNTER_MAX: u64 = 1 << 53;

/// A whole number that a counter can be.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|&number| number <= COUNTER_MAX)
}

/// A counter, which is a whole number. I1
fn counter(of: &Value, name: &str) -> std::result::Result<u64, Fault> {
    let value = name.split('.').fold(of, |of, part| &of[part]);
    number(value).ok_or_else(|| match of["name"].as_str() {
        Some(keyspace) => format!("has no counter {name} of the keyspace {keyspace}"),
        None => format!("has no counter {name}"),
    })
}

/// The entries of tables and memtables.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Stored {
    entries: u64,
    tombstones: u64,
    /// In the deepest level with data below level 0. A tombstone there also stands for the entry that it deletes.
    last_keys: u64,
    /// In the levels above it.
    upper_entries: u64,
    upper_tombstones: u64,
    /// Of tables, and of the values that they refer to.
    bytes: u64,
    memtable_bytes: u64,
    gets_answered: u64,
}

impl Stored {
    fn of<'a>(keyspaces: impl IntoIterator<Item = &'a Value>) -> std::result::Result<Self, Fault> {
        let mut stored = Self::default();
        for keyspace in keyspaces {
            stored.bytes += counter(keyspace, "transient_logs.live_bytes")?;
            stored.bytes += counter(keyspace, "value_logs.live_bytes")?;
            stored.memtable_bytes += counter(keyspace, "memtable_bytes")?;
            stored.gets_answered += counter(keyspace, "gets_answered_by_memtables")?;
            stored.add_levels(keyspace)?;
        }
        Ok(stored)
    }

    fn add_levels(&mut self, keyspace: &Value) -> std::result::Result<(), Fault> {
        let count = keyspace["levels"].as_array().map_or(0, Vec::len);
        if count == 0 {
            return Err("has a keyspace without levels".to_owned());
        }
        let of = |level: usize, name: &str| {
            let value = &keyspace["levels"][level][name];
            number(value).ok_or_else(|| format!("has no counter {name} of a level"))
        };
        let mut last = 0;
        for level in 0..count {
            self.entries += of(level, "entries")?;
            self.tombstones += of(level, "tombstones")?;
            self.bytes += of(level, "bytes")?;
            self.gets_answered += of(level, "gets_answered")?;
            if of(level, "entries")? > 0 {
                last = level;
            }
        }
        for level in 0..last.max(1) {
            self.upper_entries += of(level, "entries")?;
            self.upper_tombstones += of(level, "tombstones")?;
        }
        if last > 0 {
            let deleted = of(last, "tombstones")?.saturating_mul(2);
            self.last_keys += of(last, "entries")?.saturating_sub(deleted);
        }
        Ok(())
    }

    /// The fraction of deletes among the writes above the last level, where tombstones are dropped.
    fn deleted(&self) -> f64 {
        if self.upper_entries > 0 {
            self.upper_tombstones as f64 / self.upper_entries as f64
        } else {
            self.tombstones as f64 / self.entries.max(1) as f64
        }
    }

    /// The number of keys, if this fraction of the writes above the last level is new.
    fn keys(&self, growth: f64, in_memtables: f64) -> u64 {
        let others = self.upper_entries as f64 + in_memtables;
        self.last_keys + whole((others * growth.max(0.0)).round())
    }
}

/// The statistics of one line.
#[derive(Debug, Clone, Copy)]
struct Line {
    sequence: u64,
    writes: u64,
    user_bytes: u64,
    /// Since the store was created; earlier versions count since the open only.
    lifetime_writes: u64,
    lifetime_bytes: u64,
    gets: u64,
    seeks: u64,
    /// Of all keyspaces.
    stored: Stored,
}

impl Line {
    fn of(stats: &Value) -> std::result::Result<Self, Fault> {
        let lifetime = stats.get("lifetime").unwrap_or(stats);
        Ok(Self {
            lifetime_writes: counter(lifetime, "user_writes")?,
            lifetime_bytes: counter(lifetime, "user_bytes")?,
            sequence: counter(stats, "sequence")?,
            writes: counter(stats, "user_writes")?,
            user_bytes: counter(stats, "user_bytes")?,
            gets: counter(stats, "gets")?,
            seeks: counter(stats, "seeks")?,
            stored: Stored::of(keyspaces(stats)?)?,
        })
    }

    /// Bytes of the average entry, as callers wrote it if that was counted, else as it is stored.
    fn mean_bytes(&self) -> Option<f64> {
        if self.lifetime_writes > 0 {
            return Some(self.lifetime_bytes as f64 / self.lifetime_writes as f64);
        }
        let stored = self.stored;
        (stored.entries > 0).then(|| stored.bytes as f64 / stored.entries as f64)
    }

    /// About how many entries memtables of this many bytes have; no table has them.
    fn in_memtables(&self, bytes: u64) -> f64 {
        let each = self.mean_bytes().unwrap_or(0.0) + MEMTABLE_ENTRY_BYTES;
        let others = self.sequence.saturating_sub(self.stored.entries);
        (bytes as f64 / each).min(others as f64)
    }

    /// Writes that are flushed.
    fn flushed(&self) -> f64 {
        self.sequence as f64 - self.in_memtables(self.stored.memtable_bytes)
    }

    /// Operations since `earlier`, or since the open if the store was opened in between.
    fn since(&self, earlier: &Self) -> Counted {
        let pairs = [
            (self.writes, earlier.writes),
            (self.user_bytes, earlier.user_bytes),
            (self.gets, earlier.gets),
            (self.seeks, earlier.seeks),
        ];
        let all = self.counted();
        if pairs.iter().any(|(now, earlier)| now < earlier) {
            return all;
        }
        let before = earlier.counted();
        Counted {
            writes: all.writes - before.writes,
            gets: all.gets - before.gets,
            found: all.found.saturating_sub(before.found),
            scans: all.scans - before.scans,
        }
    }

    /// Operations since the open.
    fn counted(&self) -> Counted {
        Counted {
            writes: self.writes,
            gets: self.gets,
            found: self.stored.gets_answered,
            scans: self.seeks,
        }
    }
}

/// Counted operations.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    writes: u64,
    gets: u64,
    found: u64,
    scans: u64,
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.gets += other.gets;
        self.found += other.found;
        self.scans += other.scans;
    }
}

/// The fraction of the writes that added a key, among those that have left the upper levels; if none has, among all
/// in tables.
fn growth(of: &Line) -> f64 {
    let reached = of.flushed() - of.stored.upper_entries as f64;
    if of.stored.last_keys > 0 && reached >= 1.0 {
        return of.stored.last_keys as f64 / reached;
    }
    let keys = of.stored.entries.saturating_sub(2 * of.stored.tombstones);
    keys as f64 / of.flushed().max(1.0)
}

/// The same for the writes between two lines; `None` if none of them is known to have left the upper levels.
fn growth_between(first: &Line, last: &Line) -> Option<f64> {
    let difference = |now: u64, earlier: u64| now as f64 - earlier as f64;
    let upper = difference(last.stored.upper_entries, first.stored.upper_entries);
    let reached = last.flushed() - first.flushed() - upper;
    let more = difference(last.stored.last_keys, first.stored.last_keys);
    // If another level has become the last one in between, it says nothing of these writes.
    let is_same = first.stored.last_keys > 0 && more.abs() <= reached * 1.01;
    (is_same && reached >= 1.0).then_some(more / reached)
}

/// The statistics of a file.
#[derive(Debug)]
struct Reported {
    /// At least one.
    all_lines: Vec<Line>,
    asked: Asked,
}

impl Reported {
    fn known(self) -> Known {
        let (Some(first), Some(last)) = (self.all_lines.first(), self.all_lines.last()) else {
            return Known::default();
        };
        let (counted, between) = match self.all_lines.as_slice() {
            [one] => (one.counted(), None),
            all => {
                let mut counted = Counted::default();
                for pair in all.windows(2) {
                    counted += pair[1].since(&pair[0]);
                }
                (counted, growth_between(first, last))
            }
        };
        let ever = growth(last);
        let grown = between.unwrap_or(ever).clamp(-1.0, 1.0);
        // As many keys are assumed to be inserted again as are deleted.
        let deletes = last.stored.deleted().min((1.0 - grown) / 2.0);
        let inserts = (grown + deletes).max(0.0);
        let writes = counted.writes as f64;
        let found = counted.found.min(counted.gets);
        let own = &self.asked.stored;
        let is_counted = last.lifetime_writes > 0 && self.asked.is_all;
        let entry_bytes = if is_counted {
            last.mean_bytes().map(|mean| EntryBytes { mean, deletes })
        } else if own.entries > 0 {
            let of_all = |part: u64| part as f64 / own.entries as f64;
            Some(EntryBytes {
                mean: of_all(own.bytes),
                deletes: of_all(own.tombstones),
            })
        } else {
            None
        };
        let keys = own.keys(ever.min(1.0), last.in_memtables(own.memtable_bytes));
        let is_of_all_time = between.is_none() && last.writes < last.sequence;
        Known {
            keys: Some(keys).filter(|&keys| keys > 0),
            entry_bytes,
            weights: Some(Fractions {
                inserts: writes * inserts,
                updates: writes * (1.0 - inserts - deletes).max(0.0),
                deletes: writes * deletes,
                gets: found as f64,
                missing: (counted.gets - found) as f64,
                scans: counted.scans as f64,
                ..Fractions::default()
            }),
            weights_note: (is_of_all_time && writes > 0.0).then(|| OF_ALL_TIME.to_owned()),
            entry_note: (self.asked.is_compressed && !is_counted).then(|| ON_DISK.to_owned()),
            options: self.asked.options,
            ..Known::default()
        }
    }
}

const OF_ALL_TIME: &str = "the fraction of the inserts among the writes is that of all writes ever, also before \
    the store was opened: with several lines of statistics, far enough apart, it is that between the first and the \
    last";

const ON_DISK: &str = "the size of entries is that on disk, where they are compressed, so larger values may be \
    taken for smaller ones: give --value-size";

/// The options of statistics, read as an options file, and valid. Options that are missing, as in statistics of an
/// earlier version, have their default.
fn recorded_options(options: &Value) -> Result<KeyspaceOptions> {
    if !options.is_object() {
        return Err(Error::invalid_argument("there are none"));
    }
    let defaults = KeyspaceOptions::default();
    let mut lines = Vec::new();
    for (name, _) in defaults.fields() {
        let Some(value) = options.get(name) else {
            continue;
        };
        let is_threshold = ["medium_from", "large_from"].contains(&name);
        let text = match value {
            // No bound is no number in JSON.
            Value::Null if name == "max_space_amp" => "inf".to_owned(),
            Value::Null if name == "default_ttl" => "never".to_owned(),
            // A duration.
            Value::Object(time) if name == "default_ttl" => {
                let part = |name: &str| time.get(name).and_then(Value::as_u64).unwrap_or(0);
                let seconds = part("secs").saturating_mul(1000);
                seconds
                    .saturating_add(part("nanos") / 1_000_000)
                    .to_string()
            }
            Value::String(text) => text.clone(),
            Value::Number(number) if is_threshold && number.as_u64() == Some(u64::MAX) => {
                "never".to_owned()
            }
            other => other.to_string(),
        };
        lines.push(format!("{name} = {text}"));
    }
    lines.join("\n").parse()
}

#[cfg(test)]
mod tests;
