//! fjall with the common settings and otherwise its own defaults: plain, and with large values in blob files, which it
//! collects when a quarter is stale. The capacity of its first level follows from the size of its files, so
//! `--base-bytes` has no counterpart.

mod filter;
mod transactions;

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{
    AbstractTree, CompressionType, Database, Iter, Keyspace, KeyspaceCreateOptions, KvPair,
    KvSeparationOptions, PersistMode,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{
    BenchArgs, Counters, Engine, Entry, Feature, LevelShape, Load, Scan, TransactionCalls,
    Transactions, wait_until_quiet,
};

use self::filter::Filter;
use self::transactions::{DatabaseSettings, Store};
use crate::idled::Idled;
use crate::settings::{Reported, Settings, reported};

/// A kind of fjall.
pub(crate) trait Kind {
    const NAME: &'static str;
    /// Large values are in blob files.
    const IS_SEPARATED: bool = false;
    /// The transactions that its database has.
    const TRANSACTIONS: Option<Transactions> = None;
}

/// Plain fjall.
pub(crate) enum Plain {}
/// fjall with large values in blob files.
pub(crate) enum Separated {}
/// fjall with optimistic transactions.
pub(crate) enum Optimistic {}
/// fjall with the transactions of a single writer.
pub(crate) enum SingleWriter {}

impl Kind for Plain {
    const NAME: &'static str = "fjall";
}

impl Kind for Separated {
    const NAME: &'static str = "fjall-separated";
    const IS_SEPARATED: bool = true;
}

impl Kind for Optimistic {
    const NAME: &'static str = "fjall-optimistic";
    const TRANSACTIONS: Option<Transactions> = Some(Transactions::Optimistic);
}

impl Kind for SingleWriter {
    const NAME: &'static str = "fjall-single-writer";
    const TRANSACTIONS: Option<Transactions> = Some(Transactions::Locking);
}

/// An open fjall.
pub(crate) struct Fjall<K> {
    store: Store,
    /// The compaction filter, if a load needs it.
    filter: Option<Arc<Filter>>,
    sync: bool,
    settings: Reported,
    idled: Idled,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Fjall<K> {
    /// Opens or creates the store in `folder` with the settings of `args`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fjall takes ratios and bits in single precision, and small sizes in 32 bits"
    )]
    pub(crate) fn open(folder: &Path, args: &BenchArgs, min_blob_bytes: u64) -> Result<Self> {
        let settings = Settings::of(args, Self::NAME)?;
        let compression = if settings.compressed {
            CompressionType::Lz4
        } else {
            CompressionType::None
        };
        let mut leveled = Leveled::default();
        if let Some(ratio) = settings.size_ratio {
            leveled = leveled.with_level_ratio_policy(vec![ratio as f32]);
        }
        if let Some(bytes) = settings.file_bytes {
            leveled = leveled.with_table_target_size(bytes);
        }
        let level0_runs = settings
            .level0_runs
            .map(|runs| u8::try_from(runs).unwrap_or(u8::MAX));
        if let Some(runs) = level0_runs {
            leveled = leveled.with_l0_threshold(runs);
        }
        let filter = match settings.bits_per_key {
            bits if bits > 0.0 => FilterPolicy::all(FilterPolicyEntry::Bloom(
                BloomConstructionPolicy::BitsPerKey(bits as f32),
            )),
            _ => FilterPolicy::disabled(),
        };
        let filtered = args.loads().contains(&Load::CompactFiltered);
        let judge = filtered.then(Arc::<Filter>::default);
        let database = DatabaseSettings {
            cache_bytes: settings.cache_bytes as u64,
            compression,
            threads: settings.background_threads,
            filter: judge.clone(),
        };
        let separation = K::IS_SEPARATED.then(|| {
            KvSeparationOptions::default()
                .compression(compression)
                .separation_threshold(u32::try_from(min_blob_bytes).unwrap_or(u32::MAX))
        });
        let reported = reported(&[
            ("cache_size", Some(settings.cache_bytes.to_string())),
            ("compression", Some(format!("{compression:?}"))),
            ("data_block_size", Some(settings.block_bytes.to_string())),
            (
                "filter_bits_per_key",
                Some(settings.bits_per_key.to_string()),
            ),
            ("l0_threshold", level0_runs.map(|runs| runs.to_string())),
            (
                "level_ratio",
                settings.size_ratio.map(|ratio| ratio.to_string()),
            ),
            (
                "max_memtable_size",
                Some(settings.memtable_bytes.to_string()),
            ),
            (
                "separation_threshold",
                separation.as_ref().map(|_| min_blob_bytes.to_string()),
            ),
            ("sync", Some(settings.sync.to_string())),
            ("version", Some(env!("FJALL_VERSION").to_owned())),
            (
                "table_target_size",
                settings.file_bytes.map(|bytes| bytes.to_string()),
            ),
            (
                "worker_threads",
                settings
                    .background_threads
                    .map(|threads| threads.to_string()),
            ),
        ]);
        let options = || {
            KeyspaceCreateOptions::default()
                .with_kv_separation(separation)
                .max_memtable_size(settings.memtable_bytes as u64)
                .data_block_size_policy(BlockSizePolicy::all(settings.block_bytes as u32))
                .data_block_compression_policy(CompressionPolicy::all(compression))
                .filter_policy(filter)
                .compaction_strategy(Arc::new(leveled))
        };
        Ok(Self {
            store: Store::open(folder, K::TRANSACTIONS, &database, options)?,
            filter: judge,
            sync: settings.sync,
            settings: reported,
            idled: Idled::default(),
            kind: PhantomData,
        })
    }

    fn database(&self) -> &Database {
        self.store.database()
    }

    fn keyspace(&self) -> &Keyspace {
        self.store.keyspace()
    }

    fn written(&self) -> Result<()> {
        if self.sync {
            self.database()
                .persist(PersistMode::SyncData)
                .map_err(failed)
        } else {
            Ok(())
        }
    }
}

impl<K: Kind> Engine for Fjall<K> {
    const NAME: &'static str = K::NAME;
    const SETTLES_BY_QUIET: bool = true;
    const FEATURES: &'static [Feature] = match K::TRANSACTIONS {
        None => &[
            Feature::Compaction,
            Feature::BulkLoads,
            Feature::CompactionFilters,
        ],
        Some(Transactions::Optimistic) => &[
            Feature::Compaction,
            Feature::BulkLoads,
            Feature::OptimisticTransactions,
            Feature::Updates,
        ],
        Some(Transactions::Locking) => &[
            Feature::Compaction,
            Feature::BulkLoads,
            Feature::LockingTransactions,
            Feature::Updates,
        ],
    };
    const MARKER: &'static str = "version";
    type Scan<'a>
        = FjallScan<'a>
    where
        K: 'a;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace().insert(key, value).map_err(failed)?;
        self.written()
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace().insert(key, value).map_err(failed)?;
        self.database()
            .persist(PersistMode::SyncData)
            .map_err(failed)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = self.database().batch();
        for entry in entries {
            batch.insert(
                self.keyspace(),
                entry.key.as_slice(),
                entry.value.as_slice(),
            );
        }
        batch.commit().map_err(failed)?;
        self.written()
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.keyspace().remove(key).map_err(failed)?;
        self.written()
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.keyspace().get(key).map_err(failed)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(&self) -> Result<FjallScan<'_>> {
        Ok(FjallScan {
            keyspace: self.keyspace(),
            iterator: None,
            entry: None,
            is_backward: false,
        })
    }

    fn settle(&self) -> Result<()> {
        self.keyspace().rotate_memtable_and_wait().map_err(failed)?;
        let idled = wait_until_quiet(|| {
            self.database().outstanding_flushes() == 0 && self.database().active_compactions() == 0
        });
        self.idled.set(idled?);
        Ok(())
    }

    fn idled(&self) -> Duration {
        self.idled.get()
    }

    fn flush(&self) -> Result<()> {
        self.keyspace().rotate_memtable_and_wait().map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.keyspace().major_compact().map_err(failed)
    }

    fn transact(
        &self,
        kind: Transactions,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        debug_assert_eq!(Some(kind), K::TRANSACTIONS);
        let mode = if self.sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        self.store.transact(mode, work)
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        self.store.update(key, change)?;
        self.written()
    }

    fn bulk_load(&self, entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        let mut ingestion = self.keyspace().start_ingestion().map_err(failed)?;
        for entry in entries {
            ingestion.write(entry.key, entry.value).map_err(failed)?;
        }
        ingestion.finish().map_err(failed)
    }

    fn compact_filtered(&self) -> Result<()> {
        let set = |is_on| {
            if let Some(filter) = &self.filter {
                filter.set(is_on);
            }
        };
        set(true);
        let compacted = self.compact();
        set(false);
        compacted
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        let version = self.keyspace().tree.current_version();
        let levels = version.iter_levels().zip(0..);
        Ok(levels
            .map(|(level, number)| {
                let tables = || level.iter().flat_map(|run| run.iter());
                LevelShape {
                    level: number,
                    files: tables().count() as u64,
                    segments: tables().count() as u64,
                    bytes: tables().map(|table| table.metadata.file_size).sum(),
                    capacity: 0,
                    entries: tables().map(|table| table.metadata.item_count).sum(),
                    ..LevelShape::default()
                }
            })
            .collect())
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A range of fjall as a scan. Ranges cannot be moved, so each seek opens a new one, and so does the first step back.
pub(crate) struct FjallScan<'a> {
    keyspace: &'a Keyspace,
    iterator: Option<Iter>,
    entry: Option<KvPair>,
    /// The iterator ends before the entry, and steps come from its end.
    is_backward: bool,
}

impl FjallScan<'_> {
    fn land(&mut self, next: Option<fjall::Guard>) -> Result<bool> {
        self.entry = next
            .map(fjall::Guard::into_inner)
            .transpose()
            .map_err(failed)?;
        Ok(self.entry.is_some())
    }
}

impl Scan for FjallScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.iterator = Some(self.keyspace.range(key..));
        self.is_backward = false;
        self.next()
    }

    fn next(&mut self) -> Result<bool> {
        let next = self.iterator.as_mut().and_then(Iterator::next);
        self.land(next)
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.is_backward {
            let key = self.key();
            self.iterator = Some(self.keyspace.range(..key));
            self.is_backward = true;
        }
        let next = self
            .iterator
            .as_mut()
            .and_then(DoubleEndedIterator::next_back);
        self.land(next)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.iterator = Some(self.keyspace.range::<&[u8], _>(..));
        self.is_backward = true;
        self.prev()
    }

    fn key(&self) -> &[u8] {
        self.entry
            .as_ref()
            .map(|(key, _)| &**key)
            .unwrap_or_default()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self
            .entry
            .as_ref()
            .map(|(_, value)| &**value)
            .unwrap_or_default())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn failed(error: fjall::Error) -> Error {
    Error::new(ErrorKind::Io, format!("fjall: {error}"))
}
