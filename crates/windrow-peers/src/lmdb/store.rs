//! LMDB's environment with one database, as far as the bench needs it, behind safe types.
//!
//! # Safety argument
//!
//! - Opening maps a file, which nobody may change but LMDB. The bench opens it in a folder that it has
//!   made for this engine, with LMDB's own lock, once at a time.
//! - `MDB_NOSYNC` keeps memory safe: it gives up what a crash of the system leaves in the file, and the
//!   bench measures no crashes.
//! - A [`Position`] holds a range together with the transaction that the range reads in: the range
//!   borrows from a box in the same struct, and is declared to live as long as anything. That is sound,
//!   for the range never leaves the position and is dropped before the transaction, and from the first
//!   seek on nothing moves the transaction: a position that moves takes the box along and not what is
//!   in it, and nobody empties the box or borrows it mutably. The binding's range holds no reference to
//!   it besides, but a cursor of LMDB's, which points to memory that LMDB allocated and keeps until the
//!   transaction ends.
//! - What the range yields is part of the mapped file and stays as it is while the transaction is open,
//!   whichever range follows; it is lent for no longer than the position is borrowed.
//! - Read transactions use a place in LMDB's table of readers that belongs to their thread, and do not
//!   leave it: their type is not `Send`. A thread that has one open gets an error for a second one. A
//!   thread gives its place back when it ends, which touches the table while the environment is open:
//!   the bench joins its threads before it closes a store.
#![expect(
    unsafe_code,
    reason = "a mapped file, and a range beside its transaction"
)]

use std::mem;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoRange, RoRevRange, RoTxn, WithTls,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{Answer, Entry, Scan};

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
            // SAFETY: the safety argument above says why this is sound here.
            unsafe { options.flags(EnvFlags::NO_SYNC) };
        }
        // SAFETY: as above: nobody else touches the file.
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

/// Entries in order, one way or the other.
enum Walk {
    Forward(RoRange<'static, Bytes, Bytes>),
    Backward(RoRevRange<'static, Bytes, Bytes>),
}

/// A range of LMDB's as a scan; each seek opens a new one, since they cannot be moved, and so does the
/// first step back.
pub(crate) struct Position<'a> {
    /// Reads in `transaction`, and stands before it to be dropped first.
    walk: Option<Walk>,
    /// The same for what it yielded last.
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

    /// Moves to what the walk yields next.
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
