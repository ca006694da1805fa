//! RocksDB through its Rust binding, with the common settings and otherwise its own defaults. It runs plain, as
//! `BlobDB` with large values in blob files and garbage collection, with *direct I/O*, and as BlobDB with *direct write*. Direct write
//! writes large values to blob files at once; only their positions go through the log and the memtable.
//!
//! The settings are one string of options in RocksDB's own words. Reports record the applied settings, and the string
//! reaches options for which the binding has no method, such as direct write.
//!
//! Direct write promises less, as `advanced_options.h` of RocksDB 11 says, which calls it experimental and reduced
//! in scope. A crash loses large values since the last flush, even after synced writes: the log holds only their
//! positions, and its replay does not restore unfinished blob files. Writers do not insert into the memtable
//! concurrently. So its figures are those of an engine that promises less.

mod transactions;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::compaction_filter::Decision;
use rocksdb::{
    DB, DBAccess, DBRawIteratorWithThreadMode, IngestExternalFileOptions, OptimisticTransactionDB,
    Options, Range, ReadOptions, SstFileWriter, TransactionDB, WaitForCompactOptions, WriteBatch,
    WriteOptions,
};
use windrow::{Error, ErrorKind, Result};
use windrow_bench::{
    Answer, BenchArgs, Counters, Engine, Entry, Feature, LevelShape, Load, MergeOperator, Scan,
    TIME_TO_LIVE, is_filtered,
};

use self::transactions::TransactionalRocksDb;
use crate::settings::{Reported, Settings, reported};

/// Where large values are.
pub(crate) trait Kind {
    const NAME: &'static str;
    /// Large values are in blob files.
    const HAS_BLOBS: bool;
    /// A put writes them there at once.
    const WRITES_DIRECTLY: bool;
    /// Reads, flushes and compactions bypass the page cache.
    const HAS_DIRECT_IO: bool = false;
}

/// Plain RocksDB.
pub(crate) enum Plain {}
/// BlobDB.
pub(crate) enum Blobs {}
/// BlobDB with direct write.
pub(crate) enum DirectBlobs {}

/// RocksDB with direct I/O.
pub(crate) enum DirectIo {}

impl Kind for DirectIo {
    const NAME: &'static str = "rocksdb-direct-io";
    const HAS_BLOBS: bool = false;
    const WRITES_DIRECTLY: bool = false;
    const HAS_DIRECT_IO: bool = true;
}

impl Kind for Plain {
    const NAME: &'static str = "rocksdb";
    const HAS_BLOBS: bool = false;
    const WRITES_DIRECTLY: bool = false;
}

impl Kind for Blobs {
    const NAME: &'static str = "blobdb";
    const HAS_BLOBS: bool = true;
    const WRITES_DIRECTLY: bool = false;
}

impl Kind for DirectBlobs {
    const NAME: &'static str = "blobdb-direct";
    const HAS_BLOBS: bool = true;
    const WRITES_DIRECTLY: bool = true;
}

/// RocksDB with optimistic transactions.
pub(crate) type Optimistic = TransactionalRocksDb<OptimisticTransactionDB>;
/// RocksDB with locking transactions.
pub(crate) type Locking = TransactionalRocksDb<TransactionDB>;

/// An open RocksDB.
pub(crate) struct RocksDb<K> {
    db: DB,
    /// For gets: without them the binding makes new ones for each get.
    read_options: ReadOptions,
    /// For the files of bulk loads and ingestions.
    options: Options,
    /// Whether the compaction filter removes anything.
    is_filtering: Arc<AtomicBool>,
    folder: PathBuf,
    write_options: WriteOptions,
    settings: Reported,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> RocksDb<K> {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub(crate) fn open(folder: &Path, args: &BenchArgs, min_blob_bytes: u64) -> Result<Self> {
        let mut settings = Settings::of(args, K::NAME)?;
        if let Some(memory) = args.memory.filter(|_| K::HAS_DIRECT_IO) {
            // Memtables, filters and the bench's own checks need the rest.
            settings.cache_bytes = usize::try_from(memory / 8 * 3).unwrap_or(usize::MAX);
        }
        let (mut options, write_options, reported) = opening::<K>(&settings, args, min_blob_bytes)?;
        let is_filtering = Arc::<AtomicBool>::default();
        if args.loads().contains(&Load::CompactFiltered) {
            let is_on = Arc::clone(&is_filtering);
            options.set_compaction_filter("odd-keys", move |_, key: &[u8], _: &[u8]| {
                if is_on.load(Ordering::Relaxed) && is_filtered(key) {
                    Decision::Remove
                } else {
                    Decision::Keep
                }
            });
        }
        // Gets do not look at the age of values; compactions drop old ones.
        let expires = args.loads().contains(&Load::FillExpiring);
        let db = if expires {
            DB::open_with_ttl(&options, folder, TIME_TO_LIVE)
        } else {
            DB::open(&options, folder)
        };
        let db = db.map_err(failed)?;
        Ok(Self {
            db,
            read_options: ReadOptions::default(),
            options,
            is_filtering,
            folder: folder.to_owned(),
            write_options,
            settings: reported,
            kind: PhantomData,
        })
    }
}

/// The options of a store, those of its writes, and the settings in reports.
fn opening<K: Kind>(
    settings: &Settings,
    args: &BenchArgs,
    min_blob_bytes: u64,
) -> Result<(Options, WriteOptions, Reported)> {
    let mut reported = options::<K>(settings, args.merge_operator(), min_blob_bytes);
    let text = reported
        .iter()
        .map(|(name, value)| format!("{name}={value};"));
    let mut options = Options::default()
        .get_options_from_string(text.collect::<String>())
        .map_err(failed)?;
    options.create_if_missing(true);
    let mut write_options = WriteOptions::default();
    write_options.set_sync(settings.sync);
    reported.insert("sync".to_owned(), settings.sync.to_string());
    // The version of RocksDB itself follows the plus sign.
    reported.insert("version".to_owned(), env!("ROCKSDB_VERSION").to_owned());
    Ok((options, write_options, reported))
}

/// The options in RocksDB's own words.
fn options<K: Kind>(
    settings: &Settings,
    merge_operator: Option<MergeOperator>,
    min_blob_bytes: u64,
) -> Reported {
    let compression = if settings.compressed {
        "kLZ4Compression"
    } else {
        "kNoCompression"
    };
    let filter = match settings.bits_per_key {
        bits if bits > 0.0 => format!("bloomfilter:{bits}:false"),
        _ => "nullptr".to_owned(),
    };
    let table = format!(
        "{{block_size={};block_cache={};filter_policy={filter}}}",
        settings.block_bytes, settings.cache_bytes
    );
    let mut options = vec![
        ("block_based_table_factory", Some(table)),
        ("compression", Some(compression.to_owned())),
        (
            "write_buffer_size",
            Some(settings.memtable_bytes.to_string()),
        ),
        (
            "max_bytes_for_level_multiplier",
            settings.size_ratio.map(|ratio| ratio.to_string()),
        ),
        (
            "max_bytes_for_level_base",
            settings.base_bytes.map(|bytes| bytes.to_string()),
        ),
        (
            "target_file_size_base",
            settings.file_bytes.map(|bytes| bytes.to_string()),
        ),
        (
            "level0_file_num_compaction_trigger",
            settings.level0_runs.map(|runs| runs.to_string()),
        ),
        (
            "merge_operator",
            merge_operator.map(|operator| {
                let name = match operator {
                    MergeOperator::Add => "uint64add",
                    // Its separator is a comma.
                    MergeOperator::Append => "stringappend",
                };
                name.to_owned()
            }),
        ),
        (
            "max_background_jobs",
            settings.background_threads.map(|jobs| jobs.to_string()),
        ),
    ];
    if K::HAS_BLOBS {
        options.extend([
            ("enable_blob_files", Some("true".to_owned())),
            ("min_blob_size", Some(min_blob_bytes.to_string())),
            ("blob_compression_type", Some(compression.to_owned())),
            ("enable_blob_garbage_collection", Some("true".to_owned())),
        ]);
    }
    if K::HAS_DIRECT_IO {
        options.extend([
            ("use_direct_reads", Some("true".to_owned())),
            (
                "use_direct_io_for_flush_and_compaction",
                Some("true".to_owned()),
            ),
        ]);
    }
    if K::WRITES_DIRECTLY {
        options.extend([
            ("enable_blob_direct_write", Some("true".to_owned())),
            // Direct write requires it.
            ("allow_concurrent_memtable_write", Some("false".to_owned())),
        ]);
    }
    reported(&options)
}

impl<K: Kind> Engine for RocksDb<K> {
    const NAME: &'static str = K::NAME;
    const FEATURES: &'static [Feature] = if K::HAS_BLOBS {
        // Ingested files would hold large values, too.
        &[Feature::Compaction, Feature::Merges, Feature::RangeDeletes]
    } else {
        &[
            Feature::Compaction,
            Feature::Merges,
            Feature::RangeDeletes,
            Feature::BulkLoads,
            Feature::Expiry,
            Feature::CompactionFilters,
            Feature::ExternalFiles,
            Feature::ApproximateSizes,
        ]
    };
    type Scan<'a>
        = RocksScan<'a, DB>
    where
        K: 'a;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db
            .put_opt(key, value, &self.write_options)
            .map_err(failed)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.put_opt(key, value, &options).map_err(failed)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for entry in entries {
            batch.put(&entry.key, &entry.value);
        }
        self.db
            .write_opt(batch, &self.write_options)
            .map_err(failed)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.db.delete_opt(key, &self.write_options).map_err(failed)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.db.get_pinned_opt(key, &self.read_options);
        let found = found.map_err(failed)?;
        if let Some(found) = &found {
            value.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        let found = self.db.multi_get_opt(keys, &self.read_options);
        for (answer, found) in answers.iter_mut().zip(found) {
            let found = found.map_err(failed)?;
            answer.is_found = found.is_some();
            answer.value = found.unwrap_or_default();
        }
        Ok(())
    }

    fn scan(&self) -> Result<RocksScan<'_, DB>> {
        // The binding makes new options for each iterator, since they must outlive it.
        Ok(RocksScan(self.db.raw_iterator()))
    }

    fn settle(&self) -> Result<()> {
        self.db.flush().map_err(failed)?;
        self.db
            .wait_for_compact(&WaitForCompactOptions::default())
            .map_err(failed)
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(failed)
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let options = &self.write_options;
        self.db.merge_opt(key, operand, options).map_err(failed)
    }

    /// A store that was opened for values that expire adds the time to each one.
    fn put_expiring(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(key, value)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let mut batch = WriteBatch::default();
        batch.delete_range(from, to);
        self.db
            .write_opt(batch, &self.write_options)
            .map_err(failed)
    }

    /// Writes one file beside the store and moves it in.
    fn bulk_load(&self, entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        self.ingest(entries, usize::MAX)
    }

    fn ingest(
        &self,
        entries: &mut dyn Iterator<Item = Entry>,
        entries_per_file: usize,
    ) -> Result<()> {
        let mut entries = entries.peekable();
        let mut paths = Vec::new();
        while entries.peek().is_some() {
            let path = self.folder.join(format!("{}.sst", paths.len()));
            let mut writer = SstFileWriter::create(&self.options);
            writer.open(&path).map_err(failed)?;
            for entry in entries.by_ref().take(entries_per_file) {
                writer.put(&entry.key, &entry.value).map_err(failed)?;
            }
            writer.finish().map_err(failed)?;
            paths.push(path);
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db
            .ingest_external_file_opts(&options, paths)
            .map_err(failed)
    }

    fn compact_filtered(&self) -> Result<()> {
        self.db.flush().map_err(failed)?;
        self.is_filtering.store(true, Ordering::Relaxed);
        let compacted = self.compact();
        self.is_filtering.store(false, Ordering::Relaxed);
        compacted
    }

    fn approximate_size(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        let sizes = self.db.get_approximate_sizes(&[Range::new(from, to)]);
        Ok(sizes.iter().sum())
    }

    fn counters(&self) -> Result<Counters> {
        Counters::of_process()
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        let mut levels: Vec<LevelShape> = Vec::new();
        for file in self.db.live_files().map_err(failed)? {
            let number = usize::try_from(file.level).unwrap_or(0);
            while levels.len() <= number {
                levels.push(LevelShape {
                    level: levels.len() as u64,
                    ..LevelShape::default()
                });
            }
            let level = &mut levels[number];
            level.files += 1;
            level.segments += 1;
            level.bytes += file.size as u64;
            level.entries += file.num_entries;
        }
        Ok(levels)
    }

    fn settings(&self) -> Reported {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// RocksDB's iterator as a scan.
pub(crate) struct RocksScan<'a, D: DBAccess>(DBRawIteratorWithThreadMode<'a, D>);

impl<D: DBAccess> RocksScan<'_, D> {
    fn landed(&self) -> Result<bool> {
        let valid = self.0.valid();
        if !valid {
            self.0.status().map_err(failed)?;
        }
        Ok(valid)
    }
}

impl<D: DBAccess> Scan for RocksScan<'_, D> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key);
        self.landed()
    }

    fn next(&mut self) -> Result<bool> {
        self.0.next();
        self.landed()
    }

    fn prev(&mut self) -> Result<bool> {
        self.0.prev();
        self.landed()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.0.seek_to_last();
        self.landed()
    }

    fn key(&self) -> &[u8] {
        self.0.key().unwrap_or_default()
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(self.0.value().unwrap_or_default())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn failed(error: rocksdb::Error) -> Error {
    let kind = match error.kind() {
        // Those of a transaction, which may be tried again.
        rocksdb::ErrorKind::Busy | rocksdb::ErrorKind::TimedOut | rocksdb::ErrorKind::TryAgain => {
            ErrorKind::Conflict
        }
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("RocksDB: {error}"))
}
