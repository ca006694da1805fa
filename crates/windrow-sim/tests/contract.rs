//! The contract suite of the bindings: the file is what the generator makes, and the engine itself gives its answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::time::{Duration, SystemTime};

use windrow::{
    Batch, BatchEntry, BatchWrite, Change, Consumer, Db, Error, ErrorKind, Expiry, Isolation,
    Keyspace, Options, PreparedTransaction, Result, Savepoint, SequenceNumber, Snapshot,
    Transaction, View, operators,
};
use windrow_sim::contract::{
    Action, Answer, Begin, History, KeyRange, LISTS, LOCK_TIMEOUT, MAIN, OPERATOR, Place, Step,
    Write, suite, to_json,
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

#[expect(
    clippy::disallowed_methods,
    reason = "the clock that the engine has here"
)]
fn run(history: &History) {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::open(folder.path(), SystemTime::now());
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
    let known = [
        "AlreadyExists",
        "Closed",
        "Conflict",
        "InvalidArgument",
        "Locked",
        "NotFound",
        "TimedOut",
    ];
    known
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or("another")
}

/// Times to live are multiples of it, and longer than any history takes.
const HOUR: Duration = Duration::from_secs(3600);

struct Session<'p> {
    path: &'p Path,
    began: SystemTime,
    db: Db,
    keyspaces: BTreeMap<&'static str, Keyspace>,
    snapshots: BTreeMap<u32, Snapshot>,
    transactions: BTreeMap<u32, Transaction>,
    savepoints: BTreeMap<u32, Savepoint>,
    /// With the sequence numbers of the changes that were read last.
    consumers: BTreeMap<&'static str, (Consumer, Vec<SequenceNumber>)>,
}

impl<'p> Session<'p> {
    fn open(path: &'p Path, began: SystemTime) -> Self {
        let operator = operators::by_name(OPERATOR).unwrap();
        let mut options = Options::default().with_merge_operator(LISTS, operator);
        options.lock_timeout = Duration::from_millis(LOCK_TIMEOUT);
        let db = Db::open(path, options).unwrap();
        let keyspaces = [MAIN, LISTS].map(|name| (name, db.keyspace(name).unwrap()));
        Self {
            path,
            began,
            db,
            keyspaces: keyspaces.into(),
            snapshots: BTreeMap::new(),
            transactions: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            consumers: BTreeMap::new(),
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
            (Action::GetForUpdate(keyspace, key), _) => {
                let transaction = transaction.unwrap();
                let found = transaction.get_for_update(&self.keyspaces[keyspace], key)?;
                return Ok(Answer::Value(found));
            }
            (Action::MultiGet(keyspace, keys), place) => {
                return self
                    .view(keyspace, place)
                    .multi_get(keys)
                    .map(Answer::Values);
            }
            (Action::ExpiresAt(keyspace, key), place) => {
                let expiry = self.view(keyspace, place).expires_at(key)?;
                let ttl = expiry.map(|expiry| match expiry {
                    Expiry::At(time) => Some(self.time_to_live(time)),
                    Expiry::Never => None,
                });
                return Ok(Answer::TimeToLive(ttl));
            }
            (Action::PutIfAbsent(keyspace, key, value), _) => {
                let done = self.keyspaces[keyspace].insert_if_absent(key, value)?;
                return Ok(Answer::Outcome(done));
            }
            (Action::CompareAndSwap(keyspace, key, expected, new), _) => {
                let keyspace = &self.keyspaces[keyspace];
                let done = keyspace.compare_and_swap(key, expected.as_deref(), new.as_deref())?;
                return Ok(Answer::Outcome(done));
            }
            (Action::PreparedNames, _) => {
                return Ok(names(&self.db.prepared_transactions(), &step.answer));
            }
            (Action::CommitPrepared(name), _) => self.prepared(name)?.commit()?,
            (Action::RollBackPrepared(name), _) => self.prepared(name)?.roll_back()?,
            (Action::ConsumerNames, _) => {
                let consumers = self.db.consumers().into_iter();
                let found: Vec<_> = consumers.map(|it| it.name).collect();
                return Ok(names(&found, &step.answer));
            }
            (Action::Consumer(name), _) => {
                let consumer = self.db.consumer(name)?;
                self.consumers.insert(name, (consumer, Vec::new()));
            }
            (Action::Changes(name), _) => return self.changes(name),
            (Action::Acknowledge(name, count), _) => {
                let (consumer, read) = &self.consumers[name];
                consumer.acknowledge(read[count - 1])?;
                assert_eq!(consumer.acknowledged()?, read[count - 1]);
            }
            (Action::RemoveConsumer(name), _) => self.db.remove_consumer(name)?,
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
                *self = Self::open(self.path, self.began);
            }
            (Action::OpenAgain, _) => drop(Db::open(self.path, Options::default())?),
            (action, place) => panic!("{action:?} at {place:?} is no step"),
        }
        Ok(Answer::Done)
    }

    fn transact(&mut self, action: &Action, number: u32) -> Result<()> {
        match action {
            Action::Begin(kind) => {
                let transaction = match kind {
                    Begin::Serializable => self.db.transaction_with(Isolation::Serializable),
                    Begin::Snapshot => self.db.transaction_with(Isolation::Snapshot),
                    Begin::Locking => self.db.locking_transaction(),
                };
                self.transactions.insert(number, transaction);
            }
            Action::Commit => self.transactions.remove(&number).unwrap().commit()?,
            Action::Prepare(name) => {
                let transaction = self.transactions.remove(&number).unwrap();
                drop(transaction.prepare(name)?);
            }
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

    /// A prepared transaction; `NotFound` as in the other languages, which have no object for it.
    fn prepared(&self, name: &str) -> Result<PreparedTransaction> {
        let found = self.db.prepared_transaction(name);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, name))
    }

    /// The time to live of what expires at this time, in milliseconds.
    fn time_to_live(&self, expiry: SystemTime) -> u64 {
        let since = expiry.duration_since(self.began).unwrap() + HOUR / 2;
        since.as_secs() / HOUR.as_secs() * HOUR.as_secs() * 1000
    }

    fn changes(&mut self, name: &'static str) -> Result<Answer> {
        let mut feed = self.consumers[name].0.changes()?;
        let (mut read, mut changes) = (Vec::new(), Vec::new());
        while let Some(change) = feed.next(Duration::ZERO)? {
            read.push(change.sequence());
            let Change::Batch(batch) = change else {
                panic!("{change:?} is no batch");
            };
            changes.push(batch.iter().map(|entry| self.written(&entry)).collect());
        }
        self.consumers.get_mut(name).unwrap().1 = read;
        Ok(Answer::Changes(changes))
    }

    /// A write of a change.
    fn written(&self, entry: &BatchEntry<'_>) -> Write {
        let keyspace = match &*entry.keyspace {
            MAIN => MAIN,
            LISTS => LISTS,
            name => panic!("{name} has no changes"),
        };
        let key = entry.key.to_vec();
        match entry.write {
            BatchWrite::Insert(value) => Write::Put(keyspace, key, value.to_vec()),
            BatchWrite::InsertUntil(value, expiry) => {
                Write::PutFor(keyspace, key, value.to_vec(), self.time_to_live(expiry))
            }
            BatchWrite::Remove => Write::Delete(keyspace, key),
            BatchWrite::Merge(operand) => Write::Merge(keyspace, key, operand.to_vec()),
            BatchWrite::DeleteRange(end) => {
                Write::DeleteRange(keyspace, (Some(key), end.map(<[u8]>::to_vec)))
            }
            write => panic!("{write:?} is no write of the suite"),
        }
    }

    fn write(&self, write: &Write) -> Result<()> {
        match write {
            Write::Put(keyspace, key, value) => self.keyspaces[keyspace].insert(key, value),
            Write::PutFor(keyspace, key, value, ttl) => {
                let ttl = Duration::from_millis(*ttl);
                self.keyspaces[keyspace].insert_with_ttl(key, value, ttl)
            }
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
            Write::PutFor(keyspace, key, value, ttl) => {
                let ttl = Duration::from_millis(*ttl);
                transaction.insert_with_ttl(&self.keyspaces[keyspace], key, value, ttl)
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
            Write::PutFor(keyspace, key, value, ttl) => {
                let ttl = Duration::from_millis(*ttl);
                batch.insert_with_ttl(&self.keyspaces[keyspace], key, value, ttl)
            }
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

/// `expected` if its names are those that were found, which are no constants.
fn names(found: &[String], expected: &Answer) -> Answer {
    let Answer::Names(names) = expected else {
        panic!("{expected:?} has no names");
    };
    assert_eq!(found, names);
    expected.clone()
}

fn bounds((start, end): &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (
        start.as_deref().map_or(Bound::Unbounded, Bound::Included),
        end.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
    )
}
