//! LMDB's environment with one database behind safe types, as far as the bench needs it.
//!
//! # Safety argument
//!
//! - The open maps a file, which only LMDB may change. The bench opens it in a folder that it made for this
//!   engine, with LMDB's own lock, once at a time.
//! - `MDB_NOSYNC` keeps memory safe. It affects only the file after a crash of the system, and the bench
//!   measures no crashes.
//! - A [`Position`] holds a range and the transaction in which the range reads. The range borrows from a box
//!   in the same struct, with the lifetime `'static`. That is sound: the range never leaves the position and is
//!   dropped before the transaction, and after the first seek nothing moves the transaction. A moved position
//!   moves the box and not its content, and nothing empties the box or borrows it mutably. The binding's range
//!   itself holds no reference to the transaction but a cursor, in memory that LMDB keeps until the transaction
//!   ends.
//! - The entries of the range are part of the mapped file and do not change while the transaction is open,
//!   with any later range. A position lends them no longer than it is borrowed.
//! - A read transaction uses the slot of its thread in LMDB's table of readers and does not leave the thread:
//!   its type is not `Send`. A thread with one open gets an error for a second one. A thread frees its slot at
//!   its end, which needs an open environment: the bench joins its threads before it closes a store.
#![expect(
    unsafe_code,
    reason = "a mapped file, and a range beside its transaction"
)]

use std::mem;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoRange, RoRevRange, RoTxn,
    RwTxn, WithTls,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{Answer, Entry, Scan, TransactionCalls};

/// An open environment and its one database.
pub(super) struct Store {
    env: Env<WithTls>,
    database: Database<'static, Bytes, Bytes>,
}

impl Store {
    pub(super) fn open(folder: &Path, map_bytes: usize, readers: u32, sync: bool) -> Result<Self> {
        let mut options = EnvOpenOptions::new().read_txn_with_tls();
        options.map_size(map_bytes).max_readers(readers);
        if !sync {
            // SAFETY: see the safety argument above.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: as above: nothing else uses the file.
        let env = unsafe { options.open(folder) }.map_err(failed)?;
        let transaction = env.write_txn().map_err(failed)?;
        let database = env.create_databases_and_commit(transaction, |opener, transaction| {
            let database = opener.create_database(transaction, None)?;
            Ok(CommitOrAbort::<_, ()>::Commit(database))
        });
        let database = database.map_err(failed)?.unwrap_commit();
        Ok(Self { env, database })
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        let put = self.database.put(&mut transaction, key, value);
        put.and_then(|()| transaction.commit()).map_err(failed)
    }

    /// Puts all of `entries` in one transaction.
    pub(super) fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        for entry in entries {
            let put = self
                .database
                .put(&mut transaction, &entry.key, &entry.value);
            put.map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        let deleted = self.database.delete(&mut transaction, key);
        deleted.and_then(|_| transaction.commit()).map_err(failed)
    }

    /// Deletes all keys from `from` on that are before `to`.
    pub(super) fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        let range = (Bound::Included(from), Bound::Excluded(to));
        let deleted = self.database.delete_range(&mut transaction, &range);
        deleted.and_then(|_| transaction.commit()).map_err(failed)
    }

    /// Puts `entries`, whose keys are behind all others, in one transaction.
    pub(super) fn append(&self, entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(failed)?;
        for Entry { key, value } in entries {
            self.database
                .put_with_flags(&mut transaction, PutFlags::APPEND, &key, &value)
                .map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    /// Runs `work` in a transaction.
    pub(super) fn transact(
        &self,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        let mut calls = Calls(self.env.write_txn().map_err(failed)?, self);
        work(&mut calls)?;
        calls.0.commit().map_err(failed)
    }

    pub(super) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let transaction = self.env.read_txn().map_err(failed)?;
        self.get_in(&transaction, key, value)
    }

    /// Gets all of `keys` in one transaction.
    pub(super) fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        let transaction = self.env.read_txn().map_err(failed)?;
        for (key, answer) in keys.iter().zip(answers) {
            answer.is_found = self.get_in(&transaction, key, &mut answer.value)?;
        }
        Ok(())
    }

    fn get_in(&self, transaction: &RoTxn<'_>, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.database.get(transaction, key).map_err(failed)?;
        if let Some(found) = found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    pub(super) fn position(&self) -> Result<Position<'_>> {
        Ok(Position {
            walk: None,
            entry: None,
            transaction: Box::new(self.env.read_txn().map_err(failed)?),
            database: self.database,
        })
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.env.force_sync().map_err(failed)
    }
}

/// The calls of a transaction.
struct Calls<'a>(RwTxn<'a>, &'a Store);

impl TransactionCalls for Calls<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.1.get_in(&self.0, key, value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let put = self.1.database.put(&mut self.0, key, value);
        put.map_err(failed)
    }
}

/// Entries in ascending or descending order.
enum Walk {
    Forward(RoRange<'static, Bytes, Bytes>),
    Backward(RoRevRange<'static, Bytes, Bytes>),
}

/// A range of LMDB as a scan. Ranges cannot be moved, so each seek opens a new one, and so does the first step back.
pub(crate) struct Position<'a> {
    /// Reads in `transaction`. Its place before `transaction` makes it drop first.
    walk: Option<Walk>,
    /// The last entry; as for `walk`.
    entry: Option<(&'static [u8], &'static [u8])>,
    transaction: Box<RoTxn<'a, WithTls>>,
    database: Database<'static, Bytes, Bytes>,
}

impl Position<'_> {
    /// Walks from `from` to the end.
    fn forward(&mut self, from: Bound<&[u8]>) -> Result<()> {
        let bounds = (from, Bound::Unbounded);
        let range = self.database.range(&self.transaction, &bounds);
        let range = range.map_err(failed)?;
        // SAFETY: the range is dropped before the transaction that it borrows, which does not move.
        let range = unsafe {
            mem::transmute::<RoRange<'_, Bytes, Bytes>, RoRange<'static, Bytes, Bytes>>(range)
        };
        self.walk = Some(Walk::Forward(range));
        Ok(())
    }

    /// Walks from `to` to the beginning.
    fn backward(&mut self, to: Bound<&[u8]>) -> Result<()> {
        let bounds = (Bound::Unbounded, to);
        let range = self.database.rev_range(&self.transaction, &bounds);
        let range = range.map_err(failed)?;
        // SAFETY: as above.
        let range = unsafe {
            mem::transmute::<RoRevRange<'_, Bytes, Bytes>, RoRevRange<'static, Bytes, Bytes>>(range)
        };
        self.walk = Some(Walk::Backward(range));
        Ok(())
    }

    /// Moves to the next entry of the walk.
    fn step(&mut self) -> Result<bool> {
        let next = match &mut self.walk {
            Some(Walk::Forward(range)) => range.next(),
            Some(Walk::Backward(range)) => range.next(),
            None => None,
        };
        self.entry = next.transpose().map_err(failed)?;
        Ok(self.entry.is_some())
    }
}

impl Scan for Position<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.forward(Bound::Included(key))?;
        self.step()
    }

    fn next(&mut self) -> Result<bool> {
        self.step()
    }

    fn prev(&mut self) -> Result<bool> {
        if let (Some(Walk::Forward(_)), Some((key, _))) = (&self.walk, self.entry) {
            self.backward(Bound::Excluded(key))?;
        }
        self.step()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.backward(Bound::Unbounded)?;
        self.step()
    }

    fn key(&self) -> &[u8] {
        self.entry.map(|(key, _)| key).unwrap_or_default()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.entry.map(|(_, value)| value).unwrap_or_default())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn failed(error: heed::Error) -> Error {
    Error::new(ErrorKind::Io, format!("LMDB: {error}"))
}
