//! The contract suite of the bindings: the file is what the generator makes, and the engine itself gives its answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use windrow::{
    Batch, Db, Error, Isolation, Keyspace, Options, Result, Savepoint, Snapshot, Transaction, View,
    operators,
};
use windrow_sim::contract::{
    Action, Answer, History, KeyRange, LISTS, MAIN, OPERATOR, Place, Step, Write, suite, to_json,
};

#[test]
#[expect(clippy::disallowed_methods, reason = "reads a file of the repository")]
fn the_file_is_what_the_generator_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/contract/suite.json");
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == to_json(&suite()),
        "cargo run -p windrow-sim -- contract >bindings/contract/suite.json"
    );
}

#[test]
fn the_engine_gives_the_answers() {
    let histories = suite();
    for history in &histories {
        run(history);
    }
    let answers = histories.iter().flat_map(|history| &history.steps);
    let conflicts = answers.filter(|step| step.answer == Answer::Error("Conflict"));
    assert!(conflicts.count() > 5, "the suite has few conflicts");
}

fn run(history: &History) {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::open(folder.path());
    for (number, step) in history.steps.iter().enumerate() {
        let found = session
            .step(step)
            .unwrap_or_else(|error| Answer::Error(name(&error)));
        assert_eq!(found, step.answer, "{}: step {number}", history.name);
    }
}

/// The name of the kind of an error.
fn name(error: &Error) -> &'static str {
    let name = format!("{:?}", error.kind());
    let known = ["Closed", "Conflict", "InvalidArgument", "Locked"];
    known
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("another")
}

struct Session<'p> {
    path: &'p Path,
    db: Db,
    keyspaces: BTreeMap<&'static str, Keyspace>,
    snapshots: BTreeMap<u32, Snapshot>,
    transactions: BTreeMap<u32, Transaction>,
    savepoints: BTreeMap<u32, Savepoint>,
}

impl<'p> Session<'p> {
    fn open(path: &'p Path) -> Self {
        let operator = operators::by_name(OPERATOR).unwrap();
        let options = Options::default().with_merge_operator(LISTS, operator);
        let db = Db::open(path, options).unwrap();
        let keyspaces = [MAIN, LISTS].map(|name| (name, db.keyspace(name).unwrap()));
        Self {
            path,
            db,
            keyspaces: keyspaces.into(),
            snapshots: BTreeMap::new(),
            transactions: BTreeMap::new(),
            savepoints: BTreeMap::new(),
        }
    }

    fn view(&self, keyspace: &str, place: Place) -> View {
        match place {
            Place::Snapshot(number) => {
                let snapshot = &self.snapshots[&number];
                self.keyspaces[keyspace].at(snapshot).unwrap()
            }
            _ => View::clone(&self.keyspaces[keyspace]),
        }
    }

    fn step(&mut self, step: &Step) -> Result<Answer> {
        let transaction = match step.place {
            Place::Transaction(number) => self.transactions.get(&number),
            _ => None,
        };
        match (&step.action, step.place) {
            (Action::Write(write), _) => match transaction {
                Some(transaction) => self.write_in(transaction, write)?,
                None => self.write(write)?,
            },
            (Action::Batch(writes), _) => {
                let mut batch = Batch::new();
                for write in writes {
                    self.add(&mut batch, write)?;
                }
                self.db.write(&batch)?;
            }
            (Action::Get(keyspace, key), place) => {
                return Ok(Answer::Value(match transaction {
                    Some(transaction) => transaction.get(&self.keyspaces[keyspace], key)?,
                    None => self.view(keyspace, place).get(key)?,
                }));
            }
            (Action::Scan(keyspace, range, reverse), place) => {
                let (keyspace, range) = (*keyspace, bounds(range));
                let mut entries: Vec<_> = if let Some(it) = transaction {
                    let found = it.range::<&[u8]>(&self.keyspaces[keyspace], range)?;
                    found.collect::<Result<_>>()?
                } else {
                    let found = self.view(keyspace, place).range::<&[u8]>(range)?;
                    found.collect::<Result<_>>()?
                };
                if *reverse {
                    entries.reverse();
                }
                return Ok(Answer::Entries(entries));
            }
            (Action::Neighbors(keyspace, key), place) => {
                let mut cursor = self.view(keyspace, place).cursor()?;
                let after = cursor.seek(key)?.then(|| cursor.key().to_vec());
                let is_before = match after {
                    Some(_) => cursor.prev()?,
                    None => cursor.seek_to_last()?,
                };
                let before = is_before.then(|| cursor.key().to_vec());
                return Ok(Answer::Neighbors(before, after));
            }
            (Action::Snapshot(number), _) => {
                self.snapshots.insert(*number, self.db.snapshot());
            }
            (Action::Release(number), _) => {
                self.snapshots.remove(number);
            }
            (action, Place::Transaction(number)) => self.transact(action, number)?,
            (Action::Flush, _) => self.db.flush()?,
            (Action::Compact(keyspace), _) => {
                self.keyspaces[keyspace].compact_range::<&[u8]>(..)?;
            }
            (Action::Close, _) => self.db.clone().close()?,
            (Action::Reopen, _) => {
                // A database that was closed is no error here.
                drop(self.db.clone().close());
                *self = Self::open(self.path);
            }
            (Action::OpenAgain, _) => drop(Db::open(self.path, Options::default())?),
            (action, place) => panic!("{action:?} at {place:?} is no step"),
        }
        Ok(Answer::Done)
    }

    fn transact(&mut self, action: &Action, number: u32) -> Result<()> {
        match action {
            Action::Begin(is_serializable) => {
                let isolation = if *is_serializable {
                    Isolation::Serializable
                } else {
                    Isolation::Snapshot
                };
                let transaction = self.db.transaction_with(isolation);
                self.transactions.insert(number, transaction);
            }
            Action::Commit => self.transactions.remove(&number).unwrap().commit()?,
            Action::RollBack => drop(self.transactions.remove(&number)),
            Action::Savepoint(mark) => {
                let savepoint = self.transactions[&number].savepoint();
                self.savepoints.insert(*mark, savepoint);
            }
            Action::RollBackTo(mark) => {
                self.transactions[&number].roll_back_to(self.savepoints[mark])?;
            }
            action => panic!("{action:?} is no step of a transaction"),
        }
        Ok(())
    }

    fn write(&self, write: &Write) -> Result<()> {
        match write {
            Write::Put(keyspace, key, value) => self.keyspaces[keyspace].insert(key, value),
            Write::Delete(keyspace, key) => self.keyspaces[keyspace].remove(key),
            Write::DeleteRange(keyspace, range) => {
                self.keyspaces[keyspace].delete_range::<&[u8]>(bounds(range))
            }
            Write::Merge(keyspace, key, operand) => self.keyspaces[keyspace].merge(key, operand),
        }
    }

    fn write_in(&self, transaction: &Transaction, write: &Write) -> Result<()> {
        match write {
            Write::Put(keyspace, key, value) => {
                transaction.insert(&self.keyspaces[keyspace], key, value)
            }
            Write::Delete(keyspace, key) => transaction.remove(&self.keyspaces[keyspace], key),
            Write::DeleteRange(keyspace, range) => {
                transaction.delete_range::<&[u8]>(&self.keyspaces[keyspace], bounds(range))
            }
            Write::Merge(keyspace, key, operand) => {
                transaction.merge(&self.keyspaces[keyspace], key, operand)
            }
        }
    }

    fn add(&self, batch: &mut Batch, write: &Write) -> Result<()> {
        match write {
            Write::Put(keyspace, key, value) => batch.insert(&self.keyspaces[keyspace], key, value),
            Write::Delete(keyspace, key) => batch.remove(&self.keyspaces[keyspace], key),
            Write::DeleteRange(keyspace, range) => {
                batch.delete_range::<&[u8]>(&self.keyspaces[keyspace], bounds(range))
            }
            Write::Merge(keyspace, key, operand) => {
                batch.merge(&self.keyspaces[keyspace], key, operand)
            }
        }
    }
}

fn bounds((start, end): &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (
        start.as_deref().map_or(Bound::Unbounded, Bound::Included),
        end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
    )
}
