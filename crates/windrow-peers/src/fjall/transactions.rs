//! fjall's two databases with transactions: optimistic ones, and those of a single writer, which hold one lock each.

use std::sync::Arc;

use fjall::{
    Database, DatabaseBuilder, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase,
    OptimisticTxKeyspace, OptimisticWriteTx, PersistMode, Readable as _, SingleWriterTxDatabase,
    SingleWriterTxKeyspace, SingleWriterWriteTx, UserValue,
};
use windrow::Result;
use windrow_bench::{TransactionCalls, Transactions};

use super::failed;
use super::filter::Filter;

/// The settings of a database.
pub(super) struct DatabaseSettings {
    pub(super) cache_bytes: u64,
    pub(super) compression: fjall::CompressionType,
    pub(super) threads: Option<usize>,
    pub(super) filter: Option<Arc<Filter>>,
}

/// A database and its keyspace.
pub(super) enum Store {
    Plain(Database, Keyspace),
    Optimistic(OptimisticTxDatabase, OptimisticTxKeyspace),
    SingleWriter(SingleWriterTxDatabase, SingleWriterTxKeyspace),
}

/// The builder of a database with these settings. The trait of its type has no public name.
macro_rules! built {
    ($database:ty, $folder:expr, $settings:expr) => {{
        let DatabaseSettings {
            cache_bytes,
            compression,
            threads,
            filter,
        } = $settings;
        let builder: DatabaseBuilder<$database> = <$database>::builder($folder);
        let builder = builder
            .cache_size(*cache_bytes)
            .journal_compression(*compression);
        let builder = match threads {
            Some(threads) => builder.worker_threads(*threads),
            None => builder,
        };
        let builder = match filter {
            Some(filter) => builder.with_compaction_filter_factories(Filter::assigner(filter)),
            None => builder,
        };
        builder.open().map_err(failed)?
    }};
}

impl Store {
    /// Opens the database for transactions of `kind`, or for none.
    pub(super) fn open(
        folder: &std::path::Path,
        kind: Option<Transactions>,
        settings: &DatabaseSettings,
        options: impl FnOnce() -> KeyspaceCreateOptions,
    ) -> Result<Self> {
        const NAME: &str = "bench";
        Ok(match kind {
            None => {
                let database = built!(Database, folder, settings);
                let keyspace = database.keyspace(NAME, options).map_err(failed)?;
                Self::Plain(database, keyspace)
            }
            Some(Transactions::Optimistic) => {
                let database = built!(OptimisticTxDatabase, folder, settings);
                let keyspace = database.keyspace(NAME, options).map_err(failed)?;
                Self::Optimistic(database, keyspace)
            }
            Some(Transactions::Locking) => {
                let database = built!(SingleWriterTxDatabase, folder, settings);
                let keyspace = database.keyspace(NAME, options).map_err(failed)?;
                Self::SingleWriter(database, keyspace)
            }
        })
    }

    #[inline]
    pub(super) fn database(&self) -> &Database {
        match self {
            Self::Plain(database, _) => database,
            Self::Optimistic(database, _) => database.inner(),
            Self::SingleWriter(database, _) => database.inner(),
        }
    }

    #[inline]
    pub(super) fn keyspace(&self) -> &Keyspace {
        match self {
            Self::Plain(_, keyspace) => keyspace,
            Self::Optimistic(_, keyspace) => keyspace.inner(),
            Self::SingleWriter(_, keyspace) => keyspace.inner(),
        }
    }

    /// Runs `work` in a transaction until it commits. `mode` is the durability of the commit.
    pub(super) fn transact(
        &self,
        mode: PersistMode,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Plain(..) => Ok(()),
            Self::Optimistic(database, keyspace) => loop {
                let transaction = database.write_tx().map_err(failed)?.durability(Some(mode));
                let mut calls = OptimisticCalls(transaction, keyspace);
                work(&mut calls)?;
                if calls.0.commit().map_err(failed)?.is_ok() {
                    return Ok(());
                }
            },
            Self::SingleWriter(database, keyspace) => {
                let transaction = database.write_tx().durability(Some(mode));
                let mut calls = SingleWriterCalls(transaction, keyspace);
                work(&mut calls)?;
                calls.0.commit().map_err(failed)
            }
        }
    }

    /// Updates one key by fjall's own call. Its durability is that of a transaction by default: the system has it.
    pub(super) fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let changed = |old: Option<&UserValue>| {
            let mut value = old.map(|old| old.to_vec()).unwrap_or_default();
            change(&mut value);
            Some(value.into())
        };
        match self {
            Self::Plain(..) => Ok(()),
            Self::Optimistic(_, keyspace) => keyspace
                .update_fetch(key, changed)
                .map_err(failed)
                .map(drop),
            Self::SingleWriter(_, keyspace) => keyspace
                .update_fetch(key, changed)
                .map_err(failed)
                .map(drop),
        }
    }
}

/// Copies `found` into `value`.
fn copied(found: fjall::Result<Option<UserValue>>, value: &mut Vec<u8>) -> Result<bool> {
    value.clear();
    let found = found.map_err(failed)?;
    if let Some(found) = &found {
        value.extend_from_slice(found);
    }
    Ok(found.is_some())
}

/// The calls of an optimistic transaction.
struct OptimisticCalls<'a>(OptimisticWriteTx, &'a OptimisticTxKeyspace);

impl TransactionCalls for OptimisticCalls<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        copied(self.0.get(self.1, key), value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(self.1, key, value);
        Ok(())
    }
}

/// The calls of a transaction of the single writer.
struct SingleWriterCalls<'a>(SingleWriterWriteTx<'a>, &'a SingleWriterTxKeyspace);

impl TransactionCalls for SingleWriterCalls<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        copied(self.0.get(self.1, key), value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(self.1, key, value);
        Ok(())
    }
}
