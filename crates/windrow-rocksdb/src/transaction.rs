//! Transactions: those that lock the keys they write, and optimistic ones.
//!
//! A transaction of RocksDB reads the newest state, or that of a snapshot, with its own writes over it; what it reads plainly
//! does not count at the commit. One of Windrow reads a snapshot. So plain reads go to the keyspace, and the transaction
//! of Windrow has the writes, the locks and the reads for update. It begins with the first of these, so that an optimistic
//! one conflicts with later writes of others only.
//!
//! A transaction with a snapshot of its own must not write a key that has changed since the snapshot. Where Windrow's
//! transaction began later, the values at both are compared: an equal value counts as unchanged.
//!
//! Concurrency: one thread at a time uses a transaction; it may go to another one.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use windrow::{
    Db, Error, ErrorKind, Isolation, PreparedTransaction, Result, Savepoint, Snapshot,
    Transaction as WindrowTransaction,
};

use crate::batch::{Write, WriteBatch};
use crate::database::{Database, check_write, write_in};
use crate::families::Family;
use crate::iterator::{EntryIterator, Source, Written};
use crate::options::{ReadOptions, WriteOptions};
use crate::status::unsupported;

/// A key of a column family.
type Place = (u32, Vec<u8>);

/// How a transaction finds out that others have changed its keys.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    /// It locks keys, and waits for each lock so long.
    Locking(Duration),
    /// It compares at the commit.
    Optimistic,
}

enum State {
    /// It may write; `None` before the first write or read for update.
    Open(Option<Box<WindrowTransaction>>),
    Prepared(PreparedTransaction),
    /// The commit has failed. Only a rollback may follow.
    Failed(ErrorKind, String),
    Ended,
}

/// A place to which a transaction can be rolled back.
#[derive(Debug, Clone, Copy)]
struct SavePoint {
    /// That of Windrow's transaction, if it had begun.
    inner: Option<Savepoint>,
}

/// A transaction.
pub(crate) struct Transaction {
    database: Database,
    control: Control,
    options: WriteOptions,
    state: State,
    /// That of the transaction. Its address is lent to the program.
    snapshot: Option<Box<Snapshot>>,
    /// Whether Windrow's transaction reads the snapshot, so that it finds all conflicts itself.
    reads_snapshot: bool,
    /// The writes, as a batch.
    writes: WriteBatch,
    /// The keys of the writes.
    written: BTreeSet<Place>,
    /// The keys that were read for update.
    tracked: BTreeSet<Place>,
    save_points: Vec<SavePoint>,
    name: Option<String>,
    /// Whether the name is among those of open transactions.
    is_name_held: bool,
    /// What it was asked for that Windrow can neither do nor ignore: then it never writes.
    refused: Option<&'static str>,
}

impl Transaction {
    pub(crate) fn begin(
        database: &Database,
        control: Control,
        options: WriteOptions,
        takes_snapshot: bool,
    ) -> Self {
        let mut transaction = Self {
            database: database.clone(),
            control,
            options,
            state: State::Open(None),
            snapshot: None,
            reads_snapshot: false,
            writes: WriteBatch::default(),
            written: BTreeSet::new(),
            tracked: BTreeSet::new(),
            save_points: Vec::new(),
            name: None,
            is_name_held: false,
            refused: None,
        };
        if takes_snapshot {
            transaction.take_snapshot();
        }
        transaction
    }

    /// Lets writes, locks, preparation and commit be errors for good: with options that Windrow can neither follow nor
    /// ignore.
    pub(crate) fn refuse(&mut self, what: &'static str) {
        self.refused = Some(what);
    }

    fn check_refused(&self) -> Result<()> {
        self.refused.map_or(Ok(()), |what| Err(unsupported(what)))
    }

    /// The prepared transactions of a database.
    pub(crate) fn prepared(database: &Database) -> Vec<Self> {
        let db = database.shared.db();
        let names = db.prepared_transactions().into_iter();
        let found = names.filter_map(|name| db.prepared_transaction(&name));
        let control = Control::Locking(Duration::ZERO);
        found
            .map(|prepared| {
                let mut transaction =
                    Self::begin(database, control, WriteOptions::default(), false);
                transaction.name = Some(prepared.name().to_owned());
                transaction.state = State::Prepared(prepared);
                transaction
            })
            .collect()
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_deref()
    }

    fn take_snapshot(&mut self) {
        if let Control::Optimistic = self.control {
            let inner = begin(&self.database.shared.db(), self.control);
            self.snapshot = Some(Box::new(inner.snapshot().clone()));
            self.state = State::Open(Some(Box::new(inner)));
            self.reads_snapshot = true;
        } else {
            self.snapshot = Some(Box::new(self.database.snapshot()));
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Names the transaction, for a preparation.
    pub(crate) fn set_name(&mut self, name: &[u8]) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid_argument(what));
        let Ok(name) = std::str::from_utf8(name) else {
            return refuse("the name of a transaction must be UTF-8");
        };
        if name.is_empty() || name.len() > 255 {
            return refuse("the name of a transaction has 1 to 255 bytes");
        }
        if self.name.is_some() || !matches!(self.state, State::Open(_)) {
            return refuse("the transaction has a name already, or has ended");
        }
        let shared = &self.database.shared;
        let names = shared.transaction_names.lock();
        let mut names = names.unwrap_or_else(PoisonError::into_inner);
        if shared.db().prepared_transaction(name).is_some() || !names.insert(name.to_owned()) {
            return refuse("the name of the transaction is in use");
        }
        self.name = Some(name.to_owned());
        self.is_name_held = true;
        Ok(())
    }

    /// The value of `key`: that of an own write, or else the newest one or that of the options.
    pub(crate) fn get(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        if self.has_written(family, key)
            && let State::Open(Some(inner)) = &self.state
        {
            return inner.get(&*family.keyspace()?, key);
        }
        let found = Database::get(family, key, options)?;
        Ok(found.map(|value| value.to_vec()))
    }

    /// The value of `key`, whose change by others fails the commit. A locking transaction locks it.
    pub(crate) fn get_for_update(
        &mut self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
        is_exclusive: bool,
    ) -> Result<Option<Vec<u8>>> {
        options.check()?;
        family.check_order(key)?;
        let is_written = self.has_written(family, key);
        let inner = self.inner()?;
        let found = if is_exclusive {
            inner.get_for_update(&*family.keyspace()?, key)?
        } else {
            inner.get_for_share(&*family.keyspace()?, key)?
        };
        if is_written {
            return Ok(found);
        }
        self.check_snapshot(family, key)?;
        self.tracked.insert((family.id, key.to_vec()));
        match options.snapshot {
            None => Ok(found),
            Some(_) => self.get(family, key, options),
        }
    }

    /// Makes a write that others see after the commit.
    pub(crate) fn write(&mut self, family: &Family, write: Write<'_>) -> Result<()> {
        let key = match write {
            Write::Put(key, _)
            | Write::Merge(key, _)
            | Write::Delete(key)
            | Write::SingleDelete(key) => key,
            Write::DeleteRange(..) => {
                return Err(unsupported("transactions cannot delete ranges"));
            }
        };
        check_write(family, write)?;
        let is_merge = matches!(write, Write::Merge(..));
        let is_optimistic = matches!(self.control, Control::Optimistic);
        let is_new = !self.has_written(family, key);
        let has_snapshot = self.snapshot.is_some() && !self.reads_snapshot;
        let inner = self.inner()?;
        // The lock comes before the comparison. An operand alone is no conflict in Windrow, but is one in RocksDB.
        if is_new && (has_snapshot || is_merge && is_optimistic) && !key.is_empty() {
            inner.get_for_update(&*family.keyspace()?, key)?;
            self.check_snapshot(family, key)?;
        }
        write_in(self.inner()?, family, write)?;
        if key.is_empty() {
            return Ok(());
        }
        self.writes.add(family.id, write);
        self.written.insert((family.id, key.to_vec()));
        Ok(())
    }

    /// An iterator over the newest state or that of the options, with the writes so far over it.
    pub(crate) fn iterator(&self, family: &Arc<Family>, options: &ReadOptions) -> EntryIterator {
        let written = self.written(family, options);
        let source = written.and_then(|written| Source::new(family, options, Some(written)));
        EntryIterator::new(source)
    }

    fn written(&self, family: &Family, options: &ReadOptions) -> Result<Written> {
        let mut written = Written::new();
        let State::Open(Some(inner)) = &self.state else {
            return Ok(written);
        };
        let first = (family.id, options.lower.clone().unwrap_or_default());
        let of_family = self.written.range(first..).take_while(|(id, key)| {
            let is_below = |upper: &Vec<u8>| key < upper;
            *id == family.id && options.upper.as_ref().is_none_or(is_below)
        });
        for (_, key) in of_family {
            written.insert(key.clone(), inner.get(&*family.keyspace()?, key)?);
        }
        Ok(written)
    }

    pub(crate) fn set_save_point(&mut self) {
        let inner = match &self.state {
            State::Open(inner) => inner.as_deref().map(WindrowTransaction::savepoint),
            _ => None,
        };
        self.writes.set_save_point();
        self.save_points.push(SavePoint { inner });
    }

    /// Undoes the writes after the last save point, and forgets the save point.
    pub(crate) fn roll_back_to_save_point(&mut self) -> Result<()> {
        let State::Open(inner) = &mut self.state else {
            return Err(Error::invalid_argument("the transaction has ended"));
        };
        let Some(save_point) = self.save_points.pop() else {
            return Err(Error::new(ErrorKind::NotFound, "there is no save point"));
        };
        match (save_point.inner, inner.as_ref()) {
            (Some(save_point), Some(inner)) => inner.roll_back_to(save_point)?,
            _ => *inner = None,
        }
        self.writes.roll_back_to_save_point()?;
        self.written.clear();
        for write in self.writes.writes() {
            let (id, write) = write?;
            if let Write::Put(key, _)
            | Write::Merge(key, _)
            | Write::Delete(key)
            | Write::SingleDelete(key) = write
            {
                self.written.insert((id, key.to_vec()));
            }
        }
        Ok(())
    }

    /// Makes the transaction durable without its commit.
    pub(crate) fn prepare(&mut self) -> Result<()> {
        self.check_refused()?;
        if let Control::Optimistic = self.control {
            return Err(unsupported("optimistic transactions cannot be prepared"));
        }
        let Some(name) = self.name.clone() else {
            return Err(Error::invalid_argument(
                "a transaction without a name cannot be prepared",
            ));
        };
        self.inner()?;
        let State::Open(Some(inner)) = self.end() else {
            return Err(Error::invalid_argument("the transaction has ended"));
        };
        match inner.prepare(&name) {
            Ok(prepared) => {
                self.state = State::Prepared(prepared);
                Ok(())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        self.check_refused()?;
        let durability = self.options.durability;
        let outcome = match self.end() {
            State::Open(None) => Ok(()),
            State::Open(Some(inner)) => self.check_tracked(&inner).and_then(|()| {
                let commit = || inner.commit_with(durability);
                self.database.shared.counted(&self.writes, commit)
            }),
            State::Prepared(prepared) => {
                let name = prepared.name().to_owned();
                let commit = || prepared.commit_with(durability);
                let outcome = self.database.shared.counted(&self.writes, commit);
                if outcome.is_err() {
                    // What was not committed stays prepared.
                    let prepared = self.database.shared.db().prepared_transaction(&name);
                    self.state = prepared.map_or(State::Ended, State::Prepared);
                }
                return outcome;
            }
            State::Failed(kind, message) => Err(Error::new(kind, message)),
            State::Ended => Err(Error::invalid_argument("the transaction has ended")),
        };
        outcome.map_err(|error| self.failed(error))
    }

    /// Discards the writes. The transaction can be used again, unless it was prepared.
    pub(crate) fn roll_back(&mut self) -> Result<()> {
        let state = self.end();
        self.clear();
        match state {
            State::Open(_) | State::Failed(..) => {
                self.state = State::Open(None);
                Ok(())
            }
            State::Prepared(prepared) => prepared.roll_back_with(self.options.durability),
            State::Ended => Err(Error::invalid_argument("the transaction has ended")),
        }
    }

    fn clear(&mut self) {
        self.writes.clear();
        self.written.clear();
        self.tracked.clear();
        self.save_points.clear();
        self.reads_snapshot = false;
    }

    fn has_written(&self, family: &Family, key: &[u8]) -> bool {
        !self.written.is_empty() && self.written.contains(&(family.id, key.to_vec()))
    }

    /// Windrow's transaction, which begins now if it has not yet.
    fn inner(&mut self) -> Result<&WindrowTransaction> {
        self.check_refused()?;
        match &mut self.state {
            State::Open(inner) => {
                let (db, control) = (self.database.shared.db(), self.control);
                Ok(inner.get_or_insert_with(|| Box::new(begin(&db, control))))
            }
            _ => Err(Error::invalid_argument("the transaction has ended")),
        }
    }

    fn end(&mut self) -> State {
        std::mem::replace(&mut self.state, State::Ended)
    }

    /// Notes why a commit has failed, and returns it.
    fn failed(&mut self, error: Error) -> Error {
        if !matches!(self.state, State::Ended) {
            return error;
        }
        self.state = State::Failed(error.kind(), error.to_string());
        error
    }

    /// Checks that a key has not changed since the snapshot of the transaction.
    fn check_snapshot(&self, family: &Family, key: &[u8]) -> Result<()> {
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| !self.reads_snapshot) else {
            return Ok(());
        };
        let before = family.keyspace()?.at(snapshot)?.get_pinned(key)?;
        if is_equal(
            before.as_deref(),
            family.keyspace()?.get_pinned(key)?.as_deref(),
        ) {
            return Ok(());
        }
        Err(changed(family, key))
    }

    /// Windrow commits a transaction without writes in any case: it has read one state. RocksDB compares what it has read
    /// for update with the newest state.
    fn check_tracked(&self, inner: &WindrowTransaction) -> Result<()> {
        if !self.written.is_empty() {
            return Ok(());
        }
        for (id, key) in &self.tracked {
            let Some(family) = self.database.family(*id) else {
                continue;
            };
            let before = inner.get(&*family.keyspace()?, key)?;
            let now = family.keyspace()?.get_pinned(key)?;
            if !is_equal(before.as_deref(), now.as_deref()) {
                return Err(changed(&family, key));
            }
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(name) = self.name.as_ref().filter(|_| self.is_name_held) {
            let names = self.database.shared.transaction_names.lock();
            let mut names = names.unwrap_or_else(PoisonError::into_inner);
            names.remove(name);
        }
    }
}

fn begin(db: &Db, control: Control) -> WindrowTransaction {
    match control {
        Control::Locking(timeout) => db.locking_transaction_with(timeout),
        Control::Optimistic => db.transaction_with(Isolation::Snapshot),
    }
}

fn is_equal(first: Option<&[u8]>, second: Option<&[u8]>) -> bool {
    first == second
}

fn changed(family: &Family, key: &[u8]) -> Error {
    let message = format!(
        "the key \"{}\" of column family \"{}\" has changed",
        key.escape_ascii(),
        family.name
    );
    Error::new(ErrorKind::Conflict, message)
}
