//! Random histories from a seed, and all histories.
//!
//! Concurrency: none.

use super::model::Model;
use super::{Action, Begin, Bytes, History, KeyRange, LISTS, MAIN, Place, Step, Write, scripted};
use crate::random::{Random, combine};

/// The seed of the suite.
const SEED: u64 = 2026;

/// Random histories of the suite.
const HISTORIES: u64 = 12;

/// Steps of a random history.
const STEPS: usize = 120;

/// Times to live, in milliseconds: whole days, so that all values outlive the history.
const TIMES_TO_LIVE: &[u64] = &[864_000_000, 2_592_000_000];

/// The bytes of random keys: both ends of the order, and two in its middle.
const LETTERS: &[u8] = &[0x00, b'a', b'b', 0xff];

/// All histories of the suite.
pub fn suite() -> Vec<History> {
    let random = (0..HISTORIES).map(|number| History {
        name: format!("random {number}"),
        steps: Generator::new(combine(SEED, number)).steps(STEPS),
    });
    random.chain(scripted::histories()).collect()
}

struct Generator {
    random: Random,
    model: Model,
    steps: Vec<Step>,
    /// The key that was last written with a time to live.
    expiring: Bytes,
    /// Of snapshots, transactions and savepoints.
    numbers: u32,
}

impl Generator {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            model: Model::new(),
            steps: Vec::new(),
            expiring: vec![b'a'],
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
        match self.random.below(48) {
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
                let kind = *self.random.pick(&[Begin::Serializable, Begin::Snapshot]);
                self.push(Action::Begin(kind), place);
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
            40 => {
                let place = self.place(&snapshots, &[]);
                let keyspace = self.keyspace();
                let count = 1 + self.random.index(5);
                let keys = (0..count).map(|_| self.key()).collect();
                self.push(Action::MultiGet(keyspace, keys), place);
            }
            41..43 => {
                let key = match self.random.below(4) {
                    0 => self.key(),
                    _ => self.expiring.clone(),
                };
                self.push(Action::ExpiresAt(MAIN, key), Place::Latest);
            }
            43 => {
                let (keyspace, key, value) = (self.keyspace(), self.key(), self.value());
                self.push(Action::PutIfAbsent(keyspace, key, value), Place::Latest);
            }
            44..46 => self.swap(),
            46 if !transactions.is_empty() => {
                let place = Place::Transaction(*self.random.pick(&transactions));
                let (keyspace, key) = (self.keyspace(), self.key());
                self.push(Action::GetForUpdate(keyspace, key), place);
            }
            _ => {}
        }
    }

    /// A change of one key, whose value is the expected one as often as not.
    fn swap(&mut self) {
        let (keyspace, key) = (self.keyspace(), self.key());
        let expected = match self.random.below(4) {
            0 => None,
            1 => Some(self.short()),
            _ => self.model.value(keyspace, &key),
        };
        let new = self.random.chance(3, 4).then(|| self.value());
        let action = Action::CompareAndSwap(keyspace, key, expected, new);
        self.push(action, Place::Latest);
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
            3..5 => Write::Merge(LISTS, key, self.short()),
            5..7 => {
                let ttl = *self.random.pick(TIMES_TO_LIVE);
                self.expiring.clone_from(&key);
                Write::PutFor(MAIN, key, self.value(), ttl)
            }
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
