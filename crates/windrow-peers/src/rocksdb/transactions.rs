//! RocksDB's two databases with transactions: `OptimisticTransactionDB` and `TransactionDB`, with the options of the
//! plain engine.
//!
//! - Both get the keys of a transaction *for update*, as RocksDB's documentation advises for keys that it will put.
//! - `TransactionDB` detects deadlocks. A transaction begins again at once after a conflict, a deadlock, or a time-out of
//!   a lock.
//! - A transaction with two phases syncs its preparation and its commit, as in Windrow.
//! - RocksDB has no update of one key in one step: that is a transaction of one key.
//! - The binding has no call that waits for the compactions of a `TransactionDB`, so its settling ends when it has
//!   written nothing for a while.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rocksdb::{
    DBAccess, DBPinnableSlice, DBRawIteratorWithThreadMode, OptimisticTransactionDB,
    OptimisticTransactionOptions, Options, ReadOptions, Transaction, TransactionDB,
    TransactionDBOptions, TransactionOptions, WaitForCompactOptions, WriteBatchWithTransaction,
    WriteOptions,
};
use windrow::Result;
use windrow_bench::{
    BenchArgs, Counters, Engine, Entry, Feature, TransactionCalls, Transactions, wait_until_quiet,
};

use super::{Plain, RocksScan, failed, opening};
use crate::idled::Idled;
use crate::settings::{Reported, Settings};

/// The outcome of a call of RocksDB.
type Outcome<T> = std::result::Result<T, rocksdb::Error>;

/// One of the two databases.
pub(crate) trait Transactional: DBAccess + Sized + Sync {
    const NAME: &'static str;
    const KIND: Transactions;
    const SETTLES_BY_QUIET: bool;

    fn open(options: &Options, folder: &Path) -> Outcome<Self>;
    fn put(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Outcome<()>;
    fn delete(&self, key: &[u8], options: &WriteOptions) -> Outcome<()>;
    fn write(&self, batch: WriteBatchWithTransaction<true>, options: &WriteOptions) -> Outcome<()>;
    fn get(&self, key: &[u8], options: &ReadOptions) -> Outcome<Option<DBPinnableSlice<'_>>>;
    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self>;
    fn scan(&self) -> DBRawIteratorWithThreadMode<'_, Self>;
    fn flush(&self) -> Outcome<()>;
    /// Waits for background work. Returns the idle time at the end of the wait.
    fn wait(&self) -> Result<Duration>;
}

/// The calls that both databases have under the same names.
macro_rules! common_calls {
    () => {
        fn put(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Outcome<()> {
            self.put_opt(key, value, options)
        }

        fn delete(&self, key: &[u8], options: &WriteOptions) -> Outcome<()> {
            self.delete_opt(key, options)
        }

        fn write(
            &self,
            batch: WriteBatchWithTransaction<true>,
            options: &WriteOptions,
        ) -> Outcome<()> {
            self.write_opt(batch, options)
        }

        fn get(&self, key: &[u8], options: &ReadOptions) -> Outcome<Option<DBPinnableSlice<'_>>> {
            self.get_pinned_opt(key, options)
        }

        fn scan(&self) -> DBRawIteratorWithThreadMode<'_, Self> {
            self.raw_iterator()
        }

        fn flush(&self) -> Outcome<()> {
            Self::flush(self)
        }
    };
}

impl Transactional for OptimisticTransactionDB {
    const NAME: &'static str = "rocksdb-optimistic";
    const KIND: Transactions = Transactions::Optimistic;
    const SETTLES_BY_QUIET: bool = false;

    common_calls!();

    fn open(options: &Options, folder: &Path) -> Outcome<Self> {
        Self::open(options, folder)
    }

    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self> {
        self.transaction_opt(options, &OptimisticTransactionOptions::default())
    }

    fn wait(&self) -> Result<Duration> {
        self.wait_for_compact(&WaitForCompactOptions::default())
            .map_err(failed)?;
        Ok(Duration::ZERO)
    }
}

impl Transactional for TransactionDB {
    const NAME: &'static str = "rocksdb-locking";
    const KIND: Transactions = Transactions::Locking;
    const SETTLES_BY_QUIET: bool = true;

    common_calls!();

    fn open(options: &Options, folder: &Path) -> Outcome<Self> {
        Self::open(options, &TransactionDBOptions::default(), folder)
    }

    fn begin(&self, options: &WriteOptions) -> Transaction<'_, Self> {
        let mut own = TransactionOptions::default();
        own.set_deadlock_detect(true);
        self.transaction_opt(options, &own)
    }

    fn wait(&self) -> Result<Duration> {
        wait_until_quiet(|| true)
    }
}

/// An open RocksDB with transactions.
pub(crate) struct TransactionalRocksDb<D> {
    db: D,
    read_options: ReadOptions,
    write_options: WriteOptions,
    /// For transactions with two phases.
    synced: WriteOptions,
    /// Prepared transactions so far, for their names.
    prepared: AtomicU64,
    settings: Reported,
    idled: Idled,
}

impl<D: Transactional> TransactionalRocksDb<D> {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let settings = Settings::of(args, D::NAME)?;
        let (options, write_options, reported) = opening::<Plain>(&settings, args, 0)?;
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(Self {
            db: D::open(&options, folder).map_err(failed)?,
            read_options: ReadOptions::default(),
            write_options,
            synced,
            prepared: AtomicU64::new(0),
            settings: reported,
            idled: Idled::default(),
        })
    }
}

/// The calls of a transaction.
struct Calls<'a, 'db, D>(&'a Transaction<'db, D>);

impl<D> TransactionCalls for Calls<'_, '_, D> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.0.get_pinned_for_update(key, true).map_err(failed)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value).map_err(failed)
    }
}

impl<D: Transactional> Engine for TransactionalRocksDb<D> {
    const NAME: &'static str = D::NAME;
    const FEATURES: &'static [Feature] = match D::KIND {
        Transactions::Optimistic => &[Feature::OptimisticTransactions, Feature::Updates],
        Transactions::Locking => &[
            Feature::LockingTransactions,
            Feature::Updates,
            Feature::TwoPhaseCommit,
        ],
    };
    const SETTLES_BY_QUIET: bool = D::SETTLES_BY_QUIET;
    type Scan<'a>
        = RocksScan<'a, D>
    where
        D: 'a;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let options = &self.write_options;
        self.db.put(key, value, options).map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.put(key, value, &options).map_err(failed)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        for entry in entries {
            batch.put(&entry.key, &entry.value);
        }
        self.db.write(batch, &self.write_options).map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete(key, &self.write_options).map_err(failed)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get(key, &self.read_options).map_err(failed)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(&self) -> Result<RocksScan<'_, D>> {
        Ok(RocksScan(self.db.scan()))
    }

    fn transact(
        &self,
        kind: Transactions,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        debug_assert_eq!(kind, D::KIND);
        loop {
            let transaction = self.db.begin(&self.write_options);
            let done =
                work(&mut Calls(&transaction)).and_then(|()| transaction.commit().map_err(failed));
            match done {
                Err(error) if error.kind() == windrow::ErrorKind::Conflict => {}
                done => return done,
            }
        }
    }

    fn transact_in_two_phases(
        &self,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        loop {
            let transaction = self.db.begin(&self.synced);
            let name = self.prepared.fetch_add(1, Ordering::Relaxed).to_string();
            let named = transaction.set_name(name.as_bytes()).map_err(failed);
            let done = named
                .and_then(|()| work(&mut Calls(&transaction)))
                .and_then(|()| transaction.prepare().map_err(failed))
                .and_then(|()| transaction.commit().map_err(failed));
            match done {
                Err(error) if error.kind() == windrow::ErrorKind::Conflict => {}
                done => return done,
            }
        }
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let mut value = Vec::new();
        self.transact(D::KIND, &mut |calls| {
            calls.get(key, &mut value)?;
            change(&mut value);
            calls.put(key, &value)
        })
    }

    fn settle(&self) -> Result<()> {
        self.db.flush().map_err(failed)?;
        self.idled.set(self.db.wait()?);
        Ok(())
    }

    fn idled(&self) -> Duration {
        self.idled.get()
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(failed)
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}
