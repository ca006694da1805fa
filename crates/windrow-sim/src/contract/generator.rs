//! Histories: random ones from a seed, and one of limits and errors.
//!
//! Concurrency: none.

use super::model::Model;
use super::{Action, Answer, Bytes, History, KeyRange, LISTS, MAIN, Place, Step, Write};
use crate::random::{Random, combine};

/// The seed of the suite.
const SEED: u64 = 2026;

/// Random histories of the suite.
const HISTORIES: u64 = 12;

/// Steps of a random history.
const STEPS: usize = 120;

/// The longest key.
const KEY_BYTES_MAX: usize = 64 << 10;

/// The bytes of random keys: both ends of the order, and two in its middle.
const LETTERS: &[u8] = &[0x00, b'a', b'b', 0xff];

/// All histories of the suite.
pub fn suite() -> Vec<History> {
    let random = (0..HISTORIES).map(|number| History {
        name: format!("random {number}"),
        steps: Generator::new(combine(SEED, number)).steps(STEPS),
    });
    let limits = History {
        name: "limits and errors".to_owned(),
        steps: limits(),
    };
    random.chain([limits]).collect()
}

struct Generator {
    random: Random,
    model: Model,
    steps: Vec<Step>,
    /// Of snapshots, transactions and savepoints.
    numbers: u32,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            model: Model::new(),
            steps: Vec::new(),
            numbers: 0,
        }
    }

    fn steps(mut self, count: usize) -> Vec<Step> {
        while self.steps.len() < count {
            self.step();
        }
        for keyspace in [MAIN, LISTS] {
            self.push(Action::Scan(keyspace, (None, None), false), Place::Latest);
        }
        self.steps
    }

    fn push(&mut self, action: Action, place: Place) {
        let answer = self.model.step(&action, place);
        self.steps.push(Step {
            action,
            place,
            answer,
        });
    }

    fn step(&mut self) {
        let (snapshots, transactions) = (self.model.snapshots(), self.model.transactions());
        match self.random.below(40) {
            0..12 => {
                let place = self.place(&[], &transactions);
                let write = self.write();
                self.push(Action::Write(write), place);
            }
            12..15 => {
                let count = 1 + self.random.index(4);
                let writes = (0..count).map(|_| self.write()).collect();
                self.push(Action::Batch(writes), Place::Latest);
            }
            15..23 => {
                let place = self.place(&snapshots, &transactions);
                let (keyspace, key) = (self.keyspace(), self.key());
                self.push(Action::Get(keyspace, key), place);
            }
            23..26 => {
                let place = self.place(&snapshots, &transactions);
                let (keyspace, range) = (self.keyspace(), self.range());
                let reverse = self.random.chance(1, 2);
                self.push(Action::Scan(keyspace, range, reverse), place);
            }
            26..28 => {
                let place = self.place(&snapshots, &[]);
                let (keyspace, key) = (self.keyspace(), self.key());
                self.push(Action::Neighbors(keyspace, key), place);
            }
            28 if snapshots.len() < 3 => {
                let number = self.number();
                self.push(Action::Snapshot(number), Place::Latest);
            }
            29 if !snapshots.is_empty() => {
                let number = *self.random.pick(&snapshots);
                self.push(Action::Release(number), Place::Latest);
            }
            30..33 if transactions.len() < 3 => {
                let place = Place::Transaction(self.number());
                let is_serializable = self.random.chance(1, 2);
                self.push(Action::Begin(is_serializable), place);
            }
            33..37 if !transactions.is_empty() => {
                let number = *self.random.pick(&transactions);
                self.within(number);
            }
            37 if self.random.chance(1, 2) => self.push(Action::Flush, Place::Latest),
            38 if self.random.chance(1, 2) => {
                let keyspace = self.keyspace();
                self.push(Action::Compact(keyspace), Place::Latest);
            }
            39 if self.random.chance(1, 4) => self.reopen(&snapshots, &transactions),
            _ => {}
        }
    }

    /// A savepoint of a transaction, or its end.
    fn within(&mut self, transaction: u32) {
        let savepoints = self.model.savepoints(transaction);
        let action = match self.random.below(10) {
            0..3 => Action::Savepoint(self.number()),
            3..6 if !savepoints.is_empty() => Action::RollBackTo(*self.random.pick(&savepoints)),
            6 => Action::RollBack,
            _ => Action::Commit,
        };
        self.push(action, Place::Transaction(transaction));
    }

    /// Opens the database anew, after the end of all that would not survive it.
    fn reopen(&mut self, snapshots: &[u32], transactions: &[u32]) {
        for number in snapshots {
            self.push(Action::Release(*number), Place::Latest);
        }
        for number in transactions {
            self.push(Action::RollBack, Place::Transaction(*number));
        }
        self.push(Action::Reopen, Place::Latest);
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    fn place(&mut self, snapshots: &[u32], transactions: &[u32]) -> Place {
        match self.random.below(4) {
            0 if !snapshots.is_empty() => Place::Snapshot(*self.random.pick(snapshots)),
            0..2 if !transactions.is_empty() => Place::Transaction(*self.random.pick(transactions)),
            _ => Place::Latest,
        }
    }

    fn write(&mut self) -> Write {
        let (keyspace, key) = (self.keyspace(), self.key());
        match self.random.below(10) {
            0..2 => Write::Delete(keyspace, key),
            2 => Write::DeleteRange(keyspace, self.range()),
            3..6 => Write::Merge(LISTS, key, self.short()),
            _ => Write::Put(keyspace, key, self.value()),
        }
    }

    fn keyspace(&mut self) -> &'static str {
        let names: [&'static str; 2] = [MAIN, LISTS];
        names[self.random.index(names.len())]
    }

    fn key(&mut self) -> Bytes {
        let length = 1 + self.random.index(2);
        (0..length).map(|_| *self.random.pick(LETTERS)).collect()
    }

    fn range(&mut self) -> KeyRange {
        let bound = |generator: &mut Self| {
            let is_bounded = generator.random.chance(3, 4);
            is_bounded.then(|| generator.key())
        };
        (bound(self), bound(self))
    }

    fn short(&mut self) -> Bytes {
        let length = self.random.index(4);
        self.random.bytes(length)
    }

    /// Empty, short, medium or large.
    fn value(&mut self) -> Bytes {
        match self.random.below(8) {
            0 => Bytes::new(),
            1 => vec![self.random.byte(); 300],
            2 => vec![self.random.byte(); 5000],
            _ => self.short(),
        }
    }
}

/// What each language must refuse, and the longest key that it must not.
fn limits() -> Vec<Step> {
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let longer = vec![b'k'; KEY_BYTES_MAX + 1];
    let put = |key: &Bytes| Action::Write(Write::Put(MAIN, key.clone(), b"1".to_vec()));
    let get = |key: &Bytes| Action::Get(MAIN, key.clone());
    let invalid = Answer::Error("InvalidArgument");
    let closed = Answer::Error("Closed");
    let key = b"a".to_vec();
    let mut steps = Vec::new();
    let mut push = |action: Action, place: Place, answer: Answer| {
        steps.push(Step {
            action,
            place,
            answer,
        });
    };
    let latest = Place::Latest;
    for wrong in [&Bytes::new(), &longer] {
        push(put(wrong), latest, invalid.clone());
        push(get(wrong), latest, invalid.clone());
        let delete = Write::Delete(MAIN, wrong.clone());
        push(Action::Write(delete.clone()), latest, invalid.clone());
        push(Action::Batch(vec![delete]), latest, invalid.clone());
    }
    push(put(&longest), latest, Answer::Done);
    push(get(&longest), latest, Answer::Value(Some(b"1".to_vec())));
    let merge = Write::Merge(MAIN, key.clone(), key.clone());
    push(Action::Write(merge), latest, invalid.clone());
    // An empty range and one whose end comes first have no keys.
    for end in [b"a", b"A"] {
        let range = (Some(key.clone()), Some(end.to_vec()));
        let delete = Write::DeleteRange(MAIN, range.clone());
        push(Action::Write(delete), latest, Answer::Done);
        let scan = Action::Scan(MAIN, range, false);
        push(scan, latest, Answer::Entries(Vec::new()));
    }
    push(Action::OpenAgain, latest, Answer::Error("Locked"));

    let reader = Place::Transaction(1);
    push(Action::Begin(true), reader, Answer::Done);
    push(get(&key), reader, Answer::Value(None));
    push(put(&key), latest, Answer::Done);
    push(get(&key), reader, Answer::Value(None));
    push(put(&longest), reader, Answer::Done);
    push(put(&longer), reader, invalid);
    push(Action::Commit, reader, Answer::Error("Conflict"));

    push(Action::Snapshot(1), latest, Answer::Done);
    push(Action::Begin(true), Place::Transaction(2), Answer::Done);
    push(put(&key), Place::Transaction(2), Answer::Done);
    push(Action::Close, latest, Answer::Done);
    for place in [latest, Place::Snapshot(1), Place::Transaction(2)] {
        push(get(&longest), place, closed.clone());
        let scan = Action::Scan(MAIN, (None, None), false);
        push(scan, place, closed.clone());
    }
    push(put(&key), latest, closed.clone());
    push(Action::Commit, Place::Transaction(2), closed.clone());
    push(Action::Flush, latest, closed);
    push(Action::Release(1), latest, Answer::Done);
    push(Action::Reopen, latest, Answer::Done);
    push(get(&key), latest, Answer::Value(Some(b"1".to_vec())));
    steps
}
