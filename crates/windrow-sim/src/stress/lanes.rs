//! What the kill test and the soak write, and what a database must contain after it.
//!
//! Two lanes write, each to keys of its own in both keyspaces. The seed, the lane and the number of a batch fix the batch. So
//! the numbers of batches of both lanes fix the contents, and any process computes them.
//!
//! Each batch also writes a mark to both keyspaces: the number of batches of its lane with this one, and the number of
//! batches of the other lane that were acknowledged before it began.
//!
//! Invariants of each state that somebody sees:
//! - I1: no batch is missing that was acknowledged before the look.
//! - I2: the batches are a prefix of the commit order: with a batch comes every batch that was acknowledged before it began.
//! - I3: batches are whole, and the contents are those after the numbers of the marks.
//!
//! Concurrency: a model has one user.

use crate::model::{Contents, Entries, differences};
use crate::{Random, combine};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use windrow::operators::Append;
use windrow::{Batch, Db, Durability, Keyspace, Options, Result, Snapshot};

pub(super) const LANES: usize = 2;
pub(super) const KEYSPACES: [&str; 2] = ["left", "right"];
/// Between two operands of a list.
const SEPARATOR: &str = ",";
/// The prefix of the marks' keys, behind all others.
const MARK: &[u8] = b"~mark";
/// The plain keys of a lane in a keyspace.
const KEYS: u64 = 1500;
/// The lists of a lane in a keyspace.
const LISTS: u64 = 40;

/// `options` with what the lists of both keyspaces need.
pub(super) fn with_lists(options: Options) -> Options {
    KEYSPACES.into_iter().fold(options, |options, name| {
        options.with_merge_operator(name, Arc::new(Append::new(SEPARATOR)))
    })
}

/// The number of batches of each lane.
pub(super) type Counts = [u64; LANES];

/// A value, as short as the seed allows.
#[derive(Debug, Clone)]
enum Value {
    /// So many random bytes.
    Filled { seed: u64, length: usize },
    /// Operands, one after the other.
    List(String),
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Filled { seed, length } => {
                let mut random = Random::new(*seed);
                let mut bytes = Vec::with_capacity(length + 8);
                while bytes.len() < *length {
                    bytes.extend(random.next_u64().to_le_bytes());
                }
                bytes.truncate(*length);
                bytes
            }
            Self::List(list) => list.clone().into_bytes(),
        }
    }
}

/// A change of one of the keyspaces.
enum Change {
    Insert(String, Value),
    Remove(String),
    Append(String, String),
    DeleteRange(String, String),
}

/// The batch with a given number.
pub(super) struct Planned {
    /// Each with the index of the keyspace.
    changes: Vec<(usize, Change)>,
    pub(super) durability: Durability,
}

impl Planned {
    pub(super) fn new(seed: u64, lane: usize, number: u64) -> Self {
        let seed = combine(combine(seed, lane as u64), number);
        let mut random = Random::new(seed);
        let count = random.below(8) + 1;
        let changes = (0..count)
            .map(|at| {
                let index = random.index(KEYSPACES.len());
                let key = random.below(KEYS);
                let list = format!("lane-{lane}/list-{:02}", random.below(LISTS));
                let change = match random.below(32) {
                    0..19 => {
                        let value = Value::Filled {
                            seed: combine(seed, at),
                            length: length(&mut random),
                        };
                        Change::Insert(plain(lane, key), value)
                    }
                    19..25 => Change::Remove(plain(lane, key)),
                    25..30 => Change::Append(list, format!("{number}.{at}")),
                    30 => Change::Remove(list),
                    _ => {
                        let end = key + random.below(KEYS / 50);
                        Change::DeleteRange(plain(lane, key), plain(lane, end))
                    }
                };
                (index, change)
            })
            .collect();
        let durability = match random.below(16) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        Self {
            changes,
            durability,
        }
    }

    /// Adds the changes to `batch`.
    pub(super) fn add_to(&self, batch: &mut Batch, keyspaces: &[Keyspace; 2]) -> Result<()> {
        for (index, change) in &self.changes {
            let keyspace = &keyspaces[*index];
            match change {
                Change::Insert(key, value) => batch.insert(keyspace, key, value.bytes())?,
                Change::Remove(key) => batch.remove(keyspace, key)?,
                Change::Append(key, operand) => batch.merge(keyspace, key, operand)?,
                Change::DeleteRange(from, to) => {
                    batch.delete_range(keyspace, from.as_str()..to.as_str())?;
                }
            }
        }
        Ok(())
    }
}

fn plain(lane: usize, key: u64) -> String {
    format!("lane-{lane}/{key:05}")
}

/// Lengths of small, medium and large values.
fn length(random: &mut Random) -> usize {
    match random.below(64) {
        0..32 => random.index(80),
        32..56 => 120 + random.index(800),
        56..63 => 1100 + random.index(4000),
        _ => 20_000,
    }
}

/// Adds the mark of a batch: its lane has then `count` batches, and so many of each were acknowledged before.
pub(super) fn add_mark(
    batch: &mut Batch,
    keyspaces: &[Keyspace; 2],
    lane: usize,
    count: u64,
    acknowledged: Counts,
) -> Result<()> {
    let mut mark = acknowledged;
    mark[lane] = count;
    let mark: Vec<u8> = mark.iter().flat_map(|count| count.to_le_bytes()).collect();
    for keyspace in keyspaces {
        batch.insert(keyspace, mark_key(lane), &mark)?;
    }
    Ok(())
}

/// The batches that the marks in `keyspace` count.
pub(super) fn marked(keyspace: &Keyspace) -> Result<Counts> {
    let mut counts = Counts::default();
    for (lane, count) in counts.iter_mut().enumerate() {
        if let Some(mark) = keyspace.get(mark_key(lane))? {
            let (numbers, _) = mark.as_chunks::<8>();
            *count = u64::from_le_bytes(numbers[lane]);
        }
    }
    Ok(counts)
}

fn mark_key(lane: usize) -> Vec<u8> {
    [MARK, format!("-{lane}").as_bytes()].concat()
}

/// The contents after some numbers of batches.
#[derive(Debug, Clone)]
pub(super) struct Model {
    seed: u64,
    counts: Counts,
    entries: [BTreeMap<Vec<u8>, Value>; 2],
}

impl Model {
    /// The model of the empty database.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            counts: [0; LANES],
            entries: Default::default(),
        }
    }

    /// Moves to the contents after `counts` batches.
    fn move_to(&mut self, counts: Counts) {
        if counts.iter().zip(self.counts).any(|(to, at)| *to < at) {
            *self = Self::new(self.seed);
        }
        for (lane, count) in counts.into_iter().enumerate() {
            for number in self.counts[lane]..count {
                let planned = Planned::new(self.seed, lane, number);
                for (index, change) in planned.changes {
                    apply(&mut self.entries[index], change);
                }
            }
        }
        self.counts = counts;
    }

    /// Compares `db` with the contents that its marks stand for; it must have at least the batches `least`.
    pub(super) fn check(&mut self, db: &Db, least: Counts, what: &str) -> Result<Counts> {
        let snapshot = db.snapshot();
        let mut found = Contents::new();
        for name in KEYSPACES {
            found.insert(name.to_owned(), read(db, name, &snapshot)?);
        }
        Ok(self.check_contents(found, least, what))
    }

    /// As [`check`](Self::check), of all entries of the keyspaces.
    pub(super) fn check_contents(
        &mut self,
        mut found: Contents,
        least: Counts,
        what: &str,
    ) -> Counts {
        let [left, right] = KEYSPACES.map(|name| take_marks(&mut found, name));
        assert!(
            left == right,
            "{what}: half a batch is there: {left:?} and {right:?}"
        ); // I3
        let counts: Counts = std::array::from_fn(|lane| left[lane][lane]);
        for (lane, count) in counts.into_iter().enumerate() {
            assert!(
                count >= least[lane],
                "{what}: {count} batches of lane {lane} are there, and {} were acknowledged",
                least[lane]
            ); // I1
            for (other, mark) in left.iter().enumerate() {
                assert!(
                    count >= mark[lane],
                    "{what}: lane {other} saw {} batches of lane {lane}, and only {count} are there",
                    mark[lane]
                ); // I2
            }
        }
        self.move_to(counts);
        let expected = self.contents();
        if found != expected {
            let mut differences = differences(&expected, &found);
            let count = differences.len();
            differences.truncate(10);
            panic!(
                "{what}: {count} entries differ from those after {counts:?} batches: {}",
                differences.join("; ")
            ); // I3
        }
        counts
    }

    fn contents(&self) -> Contents {
        let entries = |index: usize| {
            let entries = self.entries[index].iter();
            entries
                .map(|(key, value)| (key.clone(), value.bytes()))
                .collect()
        };
        let names = KEYSPACES.iter().enumerate();
        names
            .map(|(index, name)| ((*name).to_owned(), entries(index)))
            .collect()
    }
}

fn apply(entries: &mut BTreeMap<Vec<u8>, Value>, change: Change) {
    match change {
        Change::Insert(key, value) => {
            entries.insert(key.into_bytes(), value);
        }
        Change::Remove(key) => {
            entries.remove(key.as_bytes());
        }
        Change::Append(key, operand) => match entries.get_mut(key.as_bytes()) {
            Some(Value::List(list)) => *list += &(SEPARATOR.to_owned() + &operand),
            _ => {
                entries.insert(key.into_bytes(), Value::List(operand));
            }
        },
        Change::DeleteRange(from, to) => {
            let range = (
                Bound::Included(from.into_bytes()),
                Bound::Excluded(to.into_bytes()),
            );
            let keys: Vec<_> = entries.range(range).map(|(key, _)| key.clone()).collect();
            for key in keys {
                entries.remove(&key);
            }
        }
    }
}

/// All entries of the keyspace `name`; none if it does not exist yet.
fn read(db: &Db, name: &str, snapshot: &Snapshot) -> Result<Entries> {
    match db.existing_keyspace(name)? {
        Some(keyspace) => keyspace.at(snapshot)?.iter()?.collect(),
        None => Ok(Entries::new()),
    }
}

/// Takes the marks of the last batch of each lane out of the contents.
fn take_marks(contents: &mut Contents, name: &str) -> [Counts; LANES] {
    let mut marks = [Counts::default(); LANES];
    let Some(entries) = contents.get_mut(name) else {
        return marks;
    };
    for (lane, mark) in marks.iter_mut().enumerate() {
        let bytes = entries.remove(&mark_key(lane)).unwrap_or_default();
        let (counts, _) = bytes.as_chunks();
        for (count, bytes) in mark.iter_mut().zip(counts) {
            *count = u64::from_le_bytes(*bytes);
        }
    }
    marks
}
