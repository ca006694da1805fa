//! redb, a copy-on-write B-tree, with its default features.
//!
//! - It has no write buffer, no filters and no compression. Its cache gets the memory that other engines divide between
//!   write buffer and cache.
//! - Each put is a transaction. Without `--sync` it is not durable. Instead of the syncs of other engines' flushes,
//!   one transaction is durable for each write buffer of bytes. This favours redb: the other engines' logs survive
//!   the end of the process, and redb's transactions without durability do not.
//! - It has one writer at a time, so its transactions are locking ones, with a lock on the whole store. A range delete is
//!   one call that deletes key by key.
//! - Each get is a transaction, which sees the latest puts in no other way.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{
    AccessGuard, Database, Durability, Range, ReadOnlyTable, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{
    Answer, BenchArgs, Counters, Engine, Entry, Feature, LevelShape, Scan, TransactionCalls,
    Transactions,
};

use crate::settings::{Reported, Settings, reported};

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("bench");

/// An open redb.
pub(crate) struct Redb {
    database: Database,
    /// Bytes put since the last durable transaction. Only the current writer uses it.
    unsynced_bytes: AtomicU64,
    /// Bytes from which a transaction is durable.
    unsynced_bytes_max: u64,
    settings: Reported,
}

impl Redb {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?.uncompressed(Self::NAME)?;
        let cache_bytes = settings.memory_bytes();
        let unsynced_bytes_max = if settings.sync {
            0
        } else {
            settings.memtable_bytes as u64
        };
        let database = Database::builder()
            .set_cache_size(cache_bytes)
            .create(folder.join(Self::MARKER))
            .map_err(failed)?;
        let opened = Self {
            database,
            unsynced_bytes: AtomicU64::new(0),
            unsynced_bytes_max,
            settings: reported(&[
                ("cache_size", Some(cache_bytes.to_string())),
                (
                    "durable_transaction_each_bytes",
                    Some(unsynced_bytes_max.to_string()),
                ),
                ("version", Some(env!("REDB_VERSION").to_owned())),
            ]),
        };
        // A reader must find the table.
        opened.write(|_| Ok(u64::MAX))?;
        Ok(opened)
    }

    /// One transaction. `change` returns about how many bytes it writes.
    fn write(&self, change: impl FnOnce(&mut Table<'_>) -> Result<u64>) -> Result<()> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        let bytes = change(&mut transaction.open_table(TABLE).map_err(failed)?)?;
        let durability = self.durability(bytes);
        transaction.set_durability(durability).map_err(failed)?;
        WriteTransaction::commit(transaction).map_err(failed)
    }

    /// The durability of the transaction that writes about `bytes` more. Call it within the transaction.
    fn durability(&self, bytes: u64) -> Durability {
        let unsynced = self.unsynced_bytes.load(Ordering::Relaxed);
        let unsynced = unsynced.saturating_add(bytes);
        if unsynced >= self.unsynced_bytes_max {
            self.unsynced_bytes.store(0, Ordering::Relaxed);
            Durability::Immediate
        } else {
            self.unsynced_bytes.store(unsynced, Ordering::Relaxed);
            Durability::None
        }
    }

    /// The table as it is now.
    fn table(&self) -> Result<Reader> {
        let transaction = self.database.begin_read().map_err(failed)?;
        transaction.open_table(TABLE).map_err(failed)
    }
}

type Table<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;
type Reader = ReadOnlyTable<&'static [u8], &'static [u8]>;

fn get(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool> {
    value.clear();
    let found = table.get(key).map_err(failed)?;
    if let Some(found) = &found {
        value.extend_from_slice(found.value());
    }
    Ok(found.is_some())
}

impl Engine for Redb {
    const NAME: &'static str = "redb";
    const FEATURES: &'static [Feature] = &[
        Feature::LockingTransactions,
        Feature::Updates,
        Feature::RangeDeletes,
    ];
    const MARKER: &'static str = "bench.redb";
    type Scan<'a> = RedbScan;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|table| {
            table.insert(key, value).map_err(failed)?;
            Ok((key.len() + value.len()) as u64)
        })
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|table| {
            table.insert(key, value).map_err(failed)?;
            Ok(u64::MAX)
        })
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let bytes = |entry: &Entry| (entry.key.len() + entry.value.len()) as u64;
        self.write(|table| {
            for entry in entries {
                let (key, value) = (entry.key.as_slice(), entry.value.as_slice());
                table.insert(key, value).map_err(failed)?;
            }
            Ok(entries.iter().map(bytes).sum())
        })
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.write(|table| {
            table.remove(key).map_err(failed)?;
            Ok(key.len() as u64)
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        get(&self.table()?, key, value)
    }

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        let table = self.table()?;
        for (key, answer) in keys.iter().zip(answers) {
            answer.is_found = get(&table, key, &mut answer.value)?;
        }
        Ok(())
    }

    fn scan(&self) -> Result<RedbScan> {
        Ok(RedbScan {
            table: self.table()?,
            range: None,
            entry: None,
            is_backward: false,
        })
    }

    fn transact(
        &self,
        _: Transactions,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        self.write(|table| {
            let mut calls = Calls { table, bytes: 0 };
            work(&mut calls)?;
            Ok(calls.bytes)
        })
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let mut value = Vec::new();
        self.transact(Transactions::Locking, &mut |calls| {
            calls.get(key, &mut value)?;
            change(&mut value);
            calls.put(key, &value)
        })
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.write(|table| {
            table.retain_in(from..to, |_, _| false).map_err(failed)?;
            Ok((from.len() + to.len()) as u64)
        })
    }

    /// Makes everything durable; there is no background work.
    fn settle(&self) -> Result<()> {
        self.write(|_| Ok(u64::MAX))
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        Ok(Vec::new())
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        self.database.close().map_err(failed)
    }
}

/// The calls of a transaction.
struct Calls<'a, 't> {
    table: &'a mut Table<'t>,
    bytes: u64,
}

impl TransactionCalls for Calls<'_, '_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        get(self.table, key, value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table.insert(key, value).map_err(failed)?;
        self.bytes += (key.len() + value.len()) as u64;
        Ok(())
    }
}

type Guard = AccessGuard<'static, &'static [u8]>;

/// A range of redb as a scan. Ranges cannot be moved, so each seek opens a new one, and so does the first step back.
pub(crate) struct RedbScan {
    table: Reader,
    range: Option<Range<'static, &'static [u8], &'static [u8]>>,
    entry: Option<(Guard, Guard)>,
    /// The range ends before the entry, and steps come from its end.
    is_backward: bool,
}

impl RedbScan {
    fn land(&mut self, next: Option<redb::Result<(Guard, Guard)>>) -> Result<bool> {
        self.entry = next.transpose().map_err(failed)?;
        Ok(self.entry.is_some())
    }
}

impl Scan for RedbScan {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.range = Some(self.table.range(key..).map_err(failed)?);
        self.is_backward = false;
        self.next()
    }

    fn next(&mut self) -> Result<bool> {
        let next = self.range.as_mut().and_then(Iterator::next);
        self.land(next)
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.is_backward {
            self.range = Some(self.table.range(..self.key()).map_err(failed)?);
            self.is_backward = true;
        }
        let next = self.range.as_mut();
        let next = next.and_then(DoubleEndedIterator::next_back);
        self.land(next)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.range = Some(self.table.range::<&[u8]>(..).map_err(failed)?);
        self.is_backward = true;
        self.prev()
    }

    fn key(&self) -> &[u8] {
        self.entry
            .as_ref()
            .map(|(key, _)| key.value())
            .unwrap_or_default()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self
            .entry
            .as_ref()
            .map(|(_, value)| value.value())
            .unwrap_or_default())
    }
}

fn failed(error: impl Into<redb::Error>) -> Error {
    Error::new(ErrorKind::Io, format!("redb: {}", error.into()))
}
