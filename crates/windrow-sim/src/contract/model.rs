//! The answers to the steps of one keyspace, key or transaction without locks: sorted maps, snapshots as copies of them, and
//! transactions that remember what they have read.
//!
//! A commit conflicts if another commit since the begin of the transaction has written what it depends on. So the model
//! keeps the number of the last commit for each key that was ever written, and all ranges that were deleted.
//!
//! Concurrency: none.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Action, Answer, Begin, Bytes, KeyRange, LISTS, MAIN, Place, Write};
use crate::model::SEPARATOR;

/// A value, with its time to live.
type Stored = (Bytes, Option<u64>);

type Entries = BTreeMap<Bytes, Stored>;

/// The entries of both keyspaces.
pub(super) type State = BTreeMap<&'static str, Entries>;

#[derive(Debug)]
pub(super) struct Model {
    state: State,
    /// The number of the last commit.
    commits: u64,
    written: BTreeMap<(&'static str, Bytes), u64>,
    deleted: Vec<(&'static str, KeyRange, u64)>,
    snapshots: BTreeMap<u32, State>,
    transactions: BTreeMap<u32, Transaction>,
}

#[derive(Debug)]
struct Transaction {
    is_serializable: bool,
    since: u64,
    /// The snapshot with the writes over it.
    state: State,
    writes: Vec<Write>,
    reads: Vec<(&'static str, Bytes)>,
    /// What was read for an update.
    updates: Vec<(&'static str, Bytes)>,
    scans: Vec<(&'static str, KeyRange)>,
    savepoints: BTreeMap<u32, (State, usize)>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            state: State::from([(MAIN, Entries::new()), (LISTS, Entries::new())]),
            commits: 0,
            written: BTreeMap::new(),
            deleted: Vec::new(),
            snapshots: BTreeMap::new(),
            transactions: BTreeMap::new(),
        }
    }

    /// The numbers of the open snapshots.
    pub(super) fn snapshots(&self) -> Vec<u32> {
        self.snapshots.keys().copied().collect()
    }

    /// The numbers of the open transactions.
    pub(super) fn transactions(&self) -> Vec<u32> {
        self.transactions.keys().copied().collect()
    }

    /// The numbers of the savepoints of a transaction.
    pub(super) fn savepoints(&self, transaction: u32) -> Vec<u32> {
        let found = self.transactions.get(&transaction);
        found.map_or_else(Vec::new, |it| it.savepoints.keys().copied().collect())
    }

    /// The newest value of a key.
    pub(super) fn value(&self, keyspace: &'static str, key: &Bytes) -> Option<Bytes> {
        value(&self.state, keyspace, key)
    }

    /// Does what `action` does. Returns the answer.
    pub(super) fn step(&mut self, action: &Action, place: Place) -> Answer {
        match (action, place) {
            (Action::Write(write), Place::Transaction(number)) => {
                let transaction = self.transaction(number);
                apply(&mut transaction.state, write);
                transaction.writes.push(write.clone());
            }
            (Action::Write(write), _) => self.commit(std::slice::from_ref(write)),
            (Action::Batch(writes), _) => self.commit(writes),
            (Action::Get(keyspace, key), _) => {
                if let Place::Transaction(number) = place {
                    let transaction = self.transaction(number);
                    transaction.note_read(keyspace, key);
                }
                return Answer::Value(value(self.state_at(place), keyspace, key));
            }
            (Action::GetForUpdate(keyspace, key), Place::Transaction(number)) => {
                let transaction = self.transaction(number);
                if transaction.note_read(keyspace, key) {
                    transaction.updates.push((keyspace, key.clone()));
                }
                return Answer::Value(value(self.state_at(place), keyspace, key));
            }
            (Action::MultiGet(keyspace, keys), _) => {
                let state = self.state_at(place);
                let values = keys.iter().map(|key| value(state, keyspace, key));
                return Answer::Values(values.collect());
            }
            (Action::ExpiresAt(keyspace, key), _) => {
                let found = self.state_at(place)[keyspace].get(key);
                return Answer::TimeToLive(found.map(|(_, ttl)| *ttl));
            }
            (Action::PutIfAbsent(keyspace, key, new), _) => {
                return self.swap((keyspace, key), None, Some(new));
            }
            (Action::CompareAndSwap(keyspace, key, expected, new), _) => {
                return self.swap((keyspace, key), expected.as_ref(), new.as_ref());
            }
            (Action::Scan(keyspace, range, reverse), _) => {
                if let Place::Transaction(number) = place {
                    let transaction = self.transaction(number);
                    transaction.scans.push((keyspace, range.clone()));
                }
                let mut entries = entries(&self.state_at(place)[keyspace], range);
                if *reverse {
                    entries.reverse();
                }
                return Answer::Entries(entries);
            }
            (Action::Neighbors(keyspace, key), _) => {
                let entries = &self.state_at(place)[keyspace];
                let key = key.as_slice();
                let before = entries.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key)));
                let after = entries.range::<[u8], _>((Bound::Included(key), Bound::Unbounded));
                let (mut before, mut after) = (before.rev(), after);
                let key_of = |entry: Option<(&Bytes, &Stored)>| entry.map(|(key, _)| key.clone());
                return Answer::Neighbors(key_of(before.next()), key_of(after.next()));
            }
            (Action::Snapshot(number), _) => {
                self.snapshots.insert(*number, self.state.clone());
            }
            (Action::Release(number), _) => {
                self.snapshots.remove(number);
            }
            (Action::Begin(kind), Place::Transaction(number)) => {
                let transaction = Transaction {
                    is_serializable: *kind == Begin::Serializable,
                    since: self.commits,
                    state: self.state.clone(),
                    writes: Vec::new(),
                    reads: Vec::new(),
                    updates: Vec::new(),
                    scans: Vec::new(),
                    savepoints: BTreeMap::new(),
                };
                self.transactions.insert(number, transaction);
            }
            (Action::Commit, Place::Transaction(number)) => {
                let transaction = self.transactions.remove(&number).expect("it is open");
                if self.conflicts(&transaction) {
                    return Answer::Error("Conflict");
                }
                self.commit(&transaction.writes);
            }
            (Action::RollBack, Place::Transaction(number)) => {
                self.transactions.remove(&number);
            }
            (Action::Savepoint(mark), Place::Transaction(number)) => {
                let transaction = self.transaction(number);
                let saved = (transaction.state.clone(), transaction.writes.len());
                transaction.savepoints.insert(*mark, saved);
            }
            (Action::RollBackTo(mark), Place::Transaction(number)) => {
                let transaction = self.transaction(number);
                let (state, writes) = transaction.savepoints[mark].clone();
                transaction.state = state;
                transaction.writes.truncate(writes);
                transaction.savepoints.retain(|other, _| other <= mark);
            }
            _ => {}
        }
        Answer::Done
    }

    fn transaction(&mut self, number: u32) -> &mut Transaction {
        self.transactions.get_mut(&number).expect("it is open")
    }

    fn state_at(&self, place: Place) -> &State {
        match place {
            Place::Latest => &self.state,
            Place::Snapshot(number) => &self.snapshots[&number],
            Place::Transaction(number) => &self.transactions[&number].state,
        }
    }

    /// Replaces the value of a key if it is `expected`.
    fn swap(
        &mut self,
        (keyspace, key): (&'static str, &Bytes),
        expected: Option<&Bytes>,
        new: Option<&Bytes>,
    ) -> Answer {
        let old = self.value(keyspace, key);
        let is_expected = old.as_ref() == expected;
        if is_expected && (old.is_some() || new.is_some()) {
            let write = match new {
                Some(new) => Write::Put(keyspace, key.clone(), new.clone()),
                None => Write::Delete(keyspace, key.clone()),
            };
            self.commit(&[write]);
        }
        Answer::Outcome(is_expected)
    }

    fn commit(&mut self, writes: &[Write]) {
        self.commits += 1;
        for write in writes {
            apply(&mut self.state, write);
            match write {
                Write::Put(keyspace, key, _)
                | Write::PutFor(keyspace, key, ..)
                | Write::Delete(keyspace, key)
                | Write::Merge(keyspace, key, _) => {
                    self.written.insert((keyspace, key.clone()), self.commits);
                }
                Write::DeleteRange(keyspace, range) => {
                    self.deleted.push((keyspace, range.clone(), self.commits));
                }
            }
        }
    }

    fn conflicts(&self, transaction: &Transaction) -> bool {
        let since = transaction.since;
        let key_changed = |keyspace: &'static str, key: &Bytes| {
            let last = self.written.get(&(keyspace, key.clone()));
            last.is_some_and(|last| *last > since)
                || self.deleted.iter().any(|(other, range, at)| {
                    *other == keyspace && *at > since && contains(range, key)
                })
        };
        let range_changed = |keyspace: &'static str, range: &KeyRange| {
            let mut keys = self.written.iter();
            keys.any(|((other, key), at)| *other == keyspace && *at > since && contains(range, key))
                || self.deleted.iter().any(|(other, deleted, at)| {
                    *other == keyspace && *at > since && meet(range, deleted)
                })
        };
        if transaction.writes.is_empty() {
            return false;
        }
        let mut updates = transaction.updates.iter();
        if updates.any(|(keyspace, key)| key_changed(keyspace, key)) {
            return true;
        }
        if transaction.is_serializable {
            let mut reads = transaction.reads.iter();
            let mut scans = transaction.scans.iter();
            return reads.any(|(keyspace, key)| key_changed(keyspace, key))
                || scans.any(|(keyspace, range)| range_changed(keyspace, range));
        }
        transaction.writes.iter().any(|write| match write {
            Write::Put(keyspace, key, _)
            | Write::PutFor(keyspace, key, ..)
            | Write::Delete(keyspace, key) => key_changed(keyspace, key),
            Write::DeleteRange(keyspace, range) => range_changed(keyspace, range),
            Write::Merge(..) => false,
        })
    }
}

impl Transaction {
    /// Returns whether the read depends on others: one that own writes answer alone depends on nothing.
    fn note_read(&mut self, keyspace: &'static str, key: &Bytes) -> bool {
        let mut newest_first = self.writes.iter().rev();
        let answer = newest_first.find(|write| match write {
            Write::Put(other, written, _)
            | Write::PutFor(other, written, ..)
            | Write::Delete(other, written) => (*other, written) == (keyspace, key),
            Write::DeleteRange(other, range) => *other == keyspace && contains(range, key),
            Write::Merge(..) => false,
        });
        let depends = answer.is_none();
        if depends {
            self.reads.push((keyspace, key.clone()));
        }
        depends
    }
}

fn apply(state: &mut State, write: &Write) {
    match write {
        Write::Put(keyspace, key, value) => {
            of(state, keyspace).insert(key.clone(), (value.clone(), None));
        }
        Write::PutFor(keyspace, key, value, ttl) => {
            of(state, keyspace).insert(key.clone(), (value.clone(), Some(*ttl)));
        }
        Write::Delete(keyspace, key) => {
            of(state, keyspace).remove(key);
        }
        Write::DeleteRange(keyspace, range) => {
            of(state, keyspace).retain(|key, _| !contains(range, key));
        }
        Write::Merge(keyspace, key, operand) => {
            let entries = of(state, keyspace);
            let folded = match entries.get(key) {
                Some((old, _)) => [old, &[SEPARATOR][..], operand].concat(),
                None => operand.clone(),
            };
            entries.insert(key.clone(), (folded, None));
        }
    }
}

fn value(state: &State, keyspace: &'static str, key: &Bytes) -> Option<Bytes> {
    let found = state[keyspace].get(key);
    found.map(|(value, _)| value.clone())
}

fn of<'s>(state: &'s mut State, keyspace: &str) -> &'s mut Entries {
    state.get_mut(keyspace).expect("one of two keyspaces")
}

fn contains((start, end): &KeyRange, key: &Bytes) -> bool {
    start.as_ref().is_none_or(|start| start <= key) && end.as_ref().is_none_or(|end| key < end)
}

/// Whether some key can be in both ranges.
fn meet(left: &KeyRange, right: &KeyRange) -> bool {
    let start = left.0.iter().chain(&right.0).max();
    let end = left.1.iter().chain(&right.1).min();
    match (start, end) {
        (Some(start), Some(end)) => start < end,
        _ => true,
    }
}

fn entries(entries: &Entries, range: &KeyRange) -> Vec<(Bytes, Bytes)> {
    let found = entries.iter().filter(|(key, _)| contains(range, key));
    found
        .map(|(key, (value, _))| (key.clone(), value.clone()))
        .collect()
}
