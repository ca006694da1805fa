//! Prepared transactions: durable before their commit, which cannot fail by a conflict any more.
//!
//! A prepared transaction is an entry of a hidden keyspace: its name, and [what is stored of it](super::prepared_record).
//! The entry is written on the condition of the transaction's commit. The commit is one batch of the writes and the
//! removal of the entry; a roll-back is the removal alone. So logs, flushes, checkpoints and recovery know nothing of
//! prepared transactions, and a crash leaves the transaction prepared, or ended as a whole.
//!
//! From its preparation to its end the transaction holds what it writes and what it has read ([`Holds`](crate::engine::locks::Holds)). Every commit
//! that would change any of that is refused, whoever makes it. So all reads are still current when the transaction
//! commits, as if it had been decided there. It also keeps the locks of these keys: who takes locks waits for its end.
//!
//! Invariants:
//! - I1: The transaction holds all that before the entry is decided, and until its removal is published. So every write
//!   is in commit order before the preparation, which then sees it, or is refused, or comes after the end.
//! - I2: An open restores what all entries hold before any write.
//! - I3: One thread at a time prepares or ends a transaction of one name.
//!
//! Concurrency: one lock for the names, held for a few instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TransactionCore;
use super::locks::TransactionLocks;
use super::prepared_record::{PreparedRecord, encode};
use super::write_set::WriteSet;
use crate::base::key::SEQUENCE_MAX;
use crate::base::limits::{TRANSACTION_READS_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::sync::Mutex;
use crate::base::{Error, ErrorKind, Kind, Result};
use crate::codec::reader::DecodeError;
use crate::engine::commit::condition::Condition;
use crate::engine::commit::read_set::ReadSet;
use crate::engine::locks::{Hold, LockName, Mode, Owner};
use crate::engine::{Engine, KeyspaceCore, Write, counters};
use crate::log::batch::put_entry;
use crate::options::{Durability, Isolation};
use crate::read::visible::KeyRange;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// What a thread may do with a name.
#[derive(Debug)]
enum Named {
    /// A thread prepares it; it is not durable yet.
    Preparing,
    Prepared(Kept),
    /// A thread commits it or rolls it back.
    Ending,
}

/// What a prepared transaction keeps until its end.
#[derive(Debug)]
struct Kept {
    owner: Owner,
    locks: Vec<LockName>,
    hold: Hold,
}

impl Kept {
    fn release(self, engine: &Engine) {
        engine.holds.remove(self.owner, &self.hold);
        for name in &self.locks {
            engine.locks.release(self.owner, name);
        }
    }
}

/// The prepared transactions by name.
#[derive(Debug, Default)]
pub(crate) struct PreparedTransactions(Mutex<BTreeMap<String, Named>>);

impl PreparedTransactions {
    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let named = self.0.lock();
        let prepared = named.iter().filter(|it| !matches!(it.1, Named::Preparing));
        prepared.map(|(name, _)| name.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.names().len() as u64
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let named = self.0.lock();
        named
            .get(name)
            .is_some_and(|it| !matches!(it, Named::Preparing))
    }

    fn set(&self, name: &str, named: Named) {
        self.0.lock().insert(name.to_owned(), named);
    }

    fn remove(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// I3
    fn begin(&self, name: &str) -> Result<()> {
        let mut named = self.0.lock();
        if named.contains_key(name) {
            let message = format!("a transaction named \"{name}\" is prepared already");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        named.insert(name.to_owned(), Named::Preparing);
        Ok(())
    }

    /// I3
    fn begin_end(&self, name: &str) -> Result<Kept> {
        let mut named = self.0.lock();
        match named.get_mut(name) {
            None | Some(Named::Preparing) => Err(not_prepared(name)),
            Some(Named::Ending) => Err(Error::invalid_argument(format!(
                "another thread ends the prepared transaction \"{name}\""
            ))),
            Some(entry) => match std::mem::replace(entry, Named::Ending) {
                Named::Prepared(kept) => Ok(kept),
                Named::Preparing | Named::Ending => unreachable!("both were handled"),
            },
        }
    }
}

/// A name that a thread prepares or ends (I3). A drop leaves it as `is_prepared` says, also by a panic.
struct NameInUse<'a> {
    engine: &'a Engine,
    name: &'a str,
    kept: Option<Kept>,
    is_prepared: bool,
}

impl Drop for NameInUse<'_> {
    fn drop(&mut self) {
        let prepared = &self.engine.prepared;
        match self.kept.take() {
            Some(kept) if self.is_prepared => prepared.set(self.name, Named::Prepared(kept)),
            kept => {
                if let Some(kept) = kept {
                    kept.release(self.engine); // I1
                }
                prepared.remove(self.name);
            }
        }
    }
}

fn not_prepared(name: &str) -> Error {
    let message = format!("no transaction named \"{name}\" is prepared");
    Error::new(ErrorKind::NotFound, message)
}

impl TransactionCore {
    /// Makes the transaction durable under `name`, if nothing that it depends on has changed. From then on it can be
    /// committed, also after a crash.
    ///
    /// # Errors
    /// As those of a commit with `Sync`, and of the locks that it takes. `AlreadyExists` for a name in use.
    pub(crate) fn prepare(self, engine: &Engine, name: &str) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Error::invalid_argument(format!(
                "the name of a prepared transaction has 1 to {NAME_BYTES_MAX} bytes, not {}",
                name.len()
            )));
        }
        engine.check_writable()?;
        engine.check_logged()?;
        self.check_cursors()?;
        // Before any lock: the transaction of that name may be the one that has it.
        engine.prepared.begin(name)?;
        let mut in_use = NameInUse {
            engine,
            name,
            kept: None,
            is_prepared: false,
        };
        let keyspace = engine.prepared_keyspace()?;
        let writes = self.writes.take();
        if self.isolation == Isolation::Snapshot {
            self.read_what_is_replaced(&writes)?;
        }
        let condition = Condition {
            covers_writes: false,
            ..self.condition()?
        };
        let mut locks = match self.locks {
            Some(locks) => locks.into_inner(),
            None => TransactionLocks::new(&engine.locks, engine.options.lock_timeout),
        };
        let condition = Condition {
            owner: Some(locks.owner()),
            ..condition
        };
        for (keyspace, key) in writes.keys() {
            locks.take(engine, keyspace, key, Mode::Exclusive)?;
        }
        let nothing = Arc::default();
        let reads = condition.reads.as_ref().unwrap_or(&nothing);
        for reads in reads.keyspaces() {
            for key in reads.keys.keys() {
                locks.take(engine, &reads.keyspace, key, Mode::Shared)?;
            }
        }
        let hold = hold_of(&writes, reads);
        let encoded = writes.encode();
        drop(writes);
        let record = encode(&encoded, reads);
        drop(encoded);
        if record.len() > VALUE_BYTES_MAX {
            let message = "the writes of a prepared transaction, with what it has read, cannot be larger than 1 GiB";
            return Err(Error::invalid_argument(message));
        }
        let owner = locks.owner();
        if let Err(other) = engine.holds.add(owner, &hold) {
            let error = engine.held(other.keyspace, &other.key);
            engine.counters.add_refusal(&error);
            return Err(error);
        }
        // I1
        in_use.kept = Some(Kept {
            owner,
            locks: locks.keep(),
            hold,
        });
        let write = Write::One {
            keyspace: &keyspace,
            kind: Kind::Value,
            key: name.as_bytes(),
            value: &record,
        };
        let outcome = engine.commit_on(condition, &write, Durability::Sync);
        in_use.is_prepared = outcome.is_ok();
        outcome
    }

    /// Adds what `writes` replace to what was read: under snapshot isolation the commit covers it.
    ///
    /// # Errors
    /// `InvalidArgument` if that is too much.
    fn read_what_is_replaced(&self, writes: &WriteSet) -> Result<()> {
        self.check_reads()?;
        let mut reads = self.reads.borrow_mut();
        for (keyspace, key) in writes.replaced_keys() {
            reads.add_key(keyspace, key, self.since);
        }
        for (keyspace, range) in writes.deleted() {
            reads.add_range(keyspace, range, self.since);
        }
        if reads.is_full() {
            return Err(Error::invalid_argument(format!(
                "the transaction has written more than {} MiB of keys, with those that it has read, and cannot be prepared",
                TRANSACTION_READS_BYTES_MAX >> 20
            )));
        }
        Ok(())
    }
}

/// What a transaction with these writes and reads holds.
fn hold_of(writes: &WriteSet, reads: &ReadSet) -> Hold {
    let mut hold = Hold::default();
    for reads in reads.keyspaces() {
        let id = reads.keyspace.id();
        let names = reads.keys.keys().map(|key| LockName::new(id, key));
        hold.keys.extend(names.map(|name| (name, Mode::Shared)));
        let ranges = reads.ranges.iter();
        hold.ranges
            .extend(ranges.map(|(range, _)| (id, range.clone(), Mode::Shared)));
    }
    let names = writes
        .keys()
        .map(|(keyspace, key)| LockName::new(keyspace.id(), key));
    hold.keys.extend(names.map(|name| (name, Mode::Exclusive)));
    let deleted = writes
        .deleted()
        .map(|(keyspace, range)| (keyspace.id(), range, Mode::Exclusive));
    hold.ranges.extend(deleted);
    hold.join_ranges();
    hold
}

/// The writes of a batch that ends a prepared transaction.
#[derive(Debug, Default)]
struct EndWrites {
    entries: Vec<u8>,
    count: u32,
    longest: usize,
    keyspaces: Vec<Arc<KeyspaceCore>>,
}

impl EndWrites {
    fn add(&mut self, keyspace: &Arc<KeyspaceCore>, kind: Kind, key: &[u8], value: &[u8]) {
        put_entry(&mut self.entries, keyspace.id(), kind, key, value);
        self.count += 1;
        self.longest = self.longest.max(key.len() + value.len());
        if !self.keyspaces.iter().any(|it| Arc::ptr_eq(it, keyspace)) {
            self.keyspaces.push(Arc::clone(keyspace));
        }
    }
}

impl Engine {
    /// Commits the prepared transaction `name`, without what it has written to keyspaces that were dropped meanwhile.
    ///
    /// # Errors
    /// `NotFound` if there is none; otherwise as those of a batch. The transaction stays prepared if nothing was written.
    pub(crate) fn commit_prepared(&self, name: &str, durability: Durability) -> Result<()> {
        self.end_prepared(name, |owner| self.commit_record(name, owner, durability))?;
        counters::add(&self.counters.transactions_committed, 1);
        Ok(())
    }

    /// Rolls back the prepared transaction `name`.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub(crate) fn roll_back_prepared(&self, name: &str, durability: Durability) -> Result<()> {
        let keyspace = self.prepared_keyspace()?;
        let removal = Write::One {
            keyspace: &keyspace,
            kind: Kind::Tombstone,
            key: name.as_bytes(),
            value: &[],
        };
        self.end_prepared(name, |_| self.commit(&removal, durability))
    }

    fn end_prepared(&self, name: &str, write: impl FnOnce(Owner) -> Result<()>) -> Result<()> {
        let kept = self.prepared.begin_end(name)?;
        let owner = kept.owner;
        let mut in_use = NameInUse {
            engine: self,
            name,
            kept: Some(kept),
            is_prepared: true,
        };
        let outcome = write(owner);
        in_use.is_prepared = outcome.is_err();
        outcome
    }

    fn commit_record(&self, name: &str, owner: Owner, durability: Durability) -> Result<()> {
        let stored = self.prepared_keyspace()?;
        let key = name.as_bytes();
        let record = self.get(&stored, key, None, |found| found.to_vec())?;
        let record = record.ok_or_else(|| not_prepared(name))?;
        let record = PreparedRecord::decode(&record).map_err(|error| damaged(name, error))?;
        loop {
            let keyspaces = self.keyspaces.load_full();
            let mut end = EndWrites::default();
            let mut writes = record.writes();
            while let Some(entry) = writes.next().map_err(|error| damaged(name, error))? {
                let keyspace = keyspaces.iter().find(|it| it.id() == entry.keyspace);
                if let Some(keyspace) = keyspace {
                    end.add(keyspace, entry.kind, entry.key, entry.value);
                }
            }
            end.add(&stored, Kind::Tombstone, key, &[]);
            let write = Write::Batch {
                entries: &end.entries,
                count: end.count,
                longest: end.longest,
                keyspaces: &end.keyspaces,
            };
            let condition = Condition {
                since: SEQUENCE_MAX,
                owner: Some(owner),
                ..Condition::default()
            };
            match self.commit_on(condition, &write, durability) {
                // Another keyspace was dropped meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                outcome => return outcome,
            }
        }
    }

    /// Restores what prepared transactions hold (I2).
    ///
    /// # Errors
    /// As those of reads; `Corruption` or `Unsupported` for a record that cannot be decoded.
    pub(in crate::engine) fn restore_prepared(&self) -> Result<()> {
        let Some(keyspace) = self.existing_prepared_keyspace() else {
            return Ok(());
        };
        let mut cursor = self.state_view(&keyspace, None)?.cursor(KeyRange::ALL);
        let mut is_valid = cursor.moving().seek_to_first()?;
        while is_valid {
            let name = String::from_utf8_lossy(cursor.key()).into_owned();
            let record = cursor.value()?;
            let record = PreparedRecord::decode(record).map_err(|error| damaged(&name, error))?;
            let hold = restored_hold(&record).map_err(|error| damaged(&name, error))?;
            let owner = self.locks.new_owner();
            if let Err(other) = self.holds.add(owner, &hold) {
                let context =
                    format!("the prepared transaction \"{name}\" contradicts another one");
                let error = self.held(other.keyspace, &other.key).context(context);
                return Err(error.with_kind(ErrorKind::Corruption));
            }
            let kept = Kept {
                owner,
                locks: hold.keys.keys().cloned().collect(),
                hold,
            };
            for (name, mode) in &kept.hold.keys {
                self.locks.restore(owner, name, *mode);
            }
            self.prepared.set(&name, Named::Prepared(kept));
            is_valid = cursor.next()?;
        }
        Ok(())
    }
}

/// What the transaction of `record` holds.
fn restored_hold(record: &PreparedRecord<'_>) -> std::result::Result<Hold, DecodeError> {
    let mut hold = Hold::default();
    for (keyspace, key) in &record.keys {
        hold.keys
            .insert(LockName::new(*keyspace, key), Mode::Shared);
    }
    let mut writes = record.writes();
    while let Some(entry) = writes.next()? {
        if entry.kind == Kind::RangeTombstone {
            let range = KeyRange::from_start(entry.key, entry.value);
            hold.ranges.push((entry.keyspace, range, Mode::Exclusive));
            continue;
        }
        let name = LockName::new(entry.keyspace, entry.key);
        hold.keys.insert(name, Mode::Exclusive);
    }
    let ranges = record.ranges.iter().cloned();
    hold.ranges
        .extend(ranges.map(|(keyspace, range)| (keyspace, range, Mode::Shared)));
    hold.join_ranges();
    Ok(hold)
}

fn damaged(name: &str, error: DecodeError) -> Error {
    let kind = if error.unsupported {
        ErrorKind::Unsupported
    } else {
        ErrorKind::Corruption
    };
    let message = format!(
        "the prepared transaction \"{name}\" cannot be read: {}",
        error.what
    );
    Error::new(kind, message)
}
