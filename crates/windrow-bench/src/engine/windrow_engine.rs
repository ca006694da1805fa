//! Windrow as an engine of the bench.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow::operators::{AddU64, Append};
use windrow::{
    Batch, Cursor, Db, Durability, Error, ErrorKind, Event, Isolation, Keyspace, Options, Result,
    TableWriter, Transaction,
};

use super::compaction_times::CompactionTimes;
use super::filter::Filter;

use crate::{
    Answer, BenchArgs, CompactionShape, Counters, Engine, Entry, Feature, IoShape, LevelShape,
    Load, MergeOperator, Scan, SeparatedReads, StallShape, TIME_TO_LIVE, TransactionCalls,
    Transactions,
};

/// The name of the keyspace.
const KEYSPACE: &str = "bench";

/// Windrow with one keyspace.
pub struct WindrowEngine {
    db: Db,
    keyspace: Keyspace,
    durability: Durability,
    /// The times since the last call of `compactions`.
    compactions: Arc<CompactionTimes>,
    filter: Arc<Filter>,
    /// Prepared transactions so far, for their names.
    prepared: AtomicU64,
    folder: PathBuf,
    /// For the files of ingestions.
    options: Options,
    settings: BTreeMap<String, String>,
}

impl std::fmt::Debug for WindrowEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("WindrowEngine")
            .finish_non_exhaustive()
    }
}

impl WindrowEngine {
    /// Opens or creates the store in `folder` with the settings of `args`.
    pub fn open(folder: &Path, args: &BenchArgs) -> Result<Self> {
        let compactions = Arc::new(CompactionTimes::default());
        let times = Arc::clone(&compactions);
        let listener = move |event: &Event| {
            if let Event::CompactionEnded { duration, .. } = event {
                times.add(*duration);
            }
        };
        let mut options = args.windrow_options()?.with_listener(Arc::new(listener));
        let mut settings = settings(&options);
        if let Some(operator) = args.merge_operator() {
            let operator: Arc<dyn windrow::MergeOperator> = match operator {
                MergeOperator::Add => Arc::new(AddU64::Wrapping),
                MergeOperator::Append => Arc::new(Append::new([MergeOperator::SEPARATOR])),
            };
            settings.insert("merge_operator".to_owned(), operator.name().to_owned());
            options = options.with_merge_operator(KEYSPACE, operator);
        }
        let filter = Arc::<Filter>::default();
        if args.loads().contains(&Load::CompactFiltered) {
            options = options.with_compaction_filter(KEYSPACE, Arc::clone(&filter) as _);
        }
        let durability = options.durability;
        let db = Db::open(folder, options.clone())?;
        let keyspace = db.keyspace(KEYSPACE)?;
        Ok(Self {
            db,
            keyspace,
            durability,
            compactions,
            filter,
            prepared: AtomicU64::new(0),
            folder: folder.to_owned(),
            options,
            settings,
        })
    }
}

/// The options that matter for comparisons, by name.
fn settings(options: &Options) -> BTreeMap<String, String> {
    let keyspace = &options.keyspace;
    let settings = [
        ("background_threads", options.background_threads.to_string()),
        ("base_bytes", keyspace.base_bytes.to_string()),
        ("bits_per_key", keyspace.bits_per_key.to_string()),
        ("block_bytes", keyspace.block_bytes.to_string()),
        ("block_source", format!("{:?}", options.block_source)),
        ("cache_bytes", options.cache_bytes.to_string()),
        ("compression", format!("{:?}", keyspace.compression)),
        ("durability", format!("{:?}", options.durability)),
        ("file_bytes", keyspace.file_bytes.to_string()),
        (
            "filter_allocation",
            format!("{:?}", keyspace.filter_allocation),
        ),
        ("large_from", keyspace.large_from.to_string()),
        ("level0_runs", keyspace.level0_runs.to_string()),
        ("max_space_amp", keyspace.max_space_amp.to_string()),
        ("max_wal_bytes", options.max_wal_bytes.to_string()),
        ("medium_from", keyspace.medium_from.to_string()),
        ("medium_in_place", format!("{:?}", keyspace.medium_in_place)),
        ("medium_order", format!("{:?}", keyspace.medium_order)),
        ("memory_budget", options.memory_budget.to_string()),
        ("memtable_bytes", keyspace.memtable_bytes.to_string()),
        ("scaling", keyspace.scaling.to_string()),
        ("segment_limit", keyspace.segment_limit.to_string()),
        ("size_ratio", keyspace.size_ratio.to_string()),
        // All crates of the workspace have one version.
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let owned = |(name, value): (&str, String)| (name.to_owned(), value);
    settings.into_iter().map(owned).collect()
}

impl Engine for WindrowEngine {
    const NAME: &'static str = "windrow";
    const FEATURES: &'static [Feature] = &[
        Feature::Compaction,
        Feature::OptimisticTransactions,
        Feature::LockingTransactions,
        Feature::Updates,
        Feature::Merges,
        Feature::RangeDeletes,
        Feature::BulkLoads,
        Feature::Expiry,
        Feature::TwoPhaseCommit,
        Feature::CompactionFilters,
        Feature::ExternalFiles,
        Feature::ApproximateSizes,
    ];
    type Scan<'a> = CursorScan;

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert(key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert_with(key, value, Durability::Sync)
    }

    fn put_batch(&self, entries: &[Entry]) -> Result<()> {
        let mut batch = Batch::new();
        for entry in entries {
            batch.insert(&self.keyspace, &entry.key, &entry.value)?;
        }
        self.db.write(&batch)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.keyspace.remove(key)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.keyspace.get_into(key, value)
    }

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        let found = self.keyspace.multi_get(keys)?;
        for (answer, found) in answers.iter_mut().zip(found) {
            answer.is_found = found.is_some();
            answer.value = found.unwrap_or_default();
        }
        Ok(())
    }

    fn scan(&self) -> Result<CursorScan> {
        Ok(CursorScan(self.keyspace.cursor()?))
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        self.db.wait_idle()
    }

    fn flush(&self) -> Result<()> {
        self.db.flush()
    }

    fn compact(&self) -> Result<()> {
        self.db.flush()?;
        self.keyspace.compact_range::<&[u8]>(..)
    }

    fn transact(
        &self,
        kind: Transactions,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        let mut attempt = |transaction: &Transaction| {
            work(&mut Calls {
                transaction,
                keyspace: &self.keyspace,
                kind,
            })
        };
        loop {
            let done = match kind {
                Transactions::Optimistic => {
                    let isolation = Isolation::default();
                    self.db
                        .transact_with(isolation, self.durability, &mut attempt)
                }
                Transactions::Locking => self.db.transact_locking(self.durability, &mut attempt),
            };
            match done {
                // Windrow gives up after many tries.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
    }

    fn transact_in_two_phases(
        &self,
        work: &mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>,
    ) -> Result<()> {
        loop {
            let transaction = self.db.locking_transaction();
            let done = work(&mut Calls {
                transaction: &transaction,
                keyspace: &self.keyspace,
                kind: Transactions::Locking,
            });
            let number = self.prepared.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let done = done
                .and_then(|()| transaction.prepare(&name))
                .and_then(|prepared| prepared.commit_with(Durability::Sync));
            match done {
                Err(error)
                    if [
                        ErrorKind::Conflict,
                        ErrorKind::Deadlock,
                        ErrorKind::TimedOut,
                    ]
                    .contains(&error.kind()) => {}
                done => return done,
            }
        }
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(&mut Vec<u8>)) -> Result<()> {
        let changed = self.keyspace.update(key, |old| {
            let mut value = old.unwrap_or_default().to_vec();
            change(&mut value);
            Some(value)
        });
        changed.map(drop)
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.keyspace.merge(key, operand)
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.keyspace.delete_range(from..to)
    }

    fn put_expiring(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert_with_ttl(key, value, TIME_TO_LIVE)
    }

    fn bulk_load(&self, entries: &mut dyn Iterator<Item = Entry>) -> Result<()> {
        let entries = entries.map(|entry| (entry.key, entry.value));
        self.keyspace.bulk_load(entries).map(drop)
    }

    fn ingest(
        &self,
        entries: &mut dyn Iterator<Item = Entry>,
        entries_per_file: usize,
    ) -> Result<()> {
        let mut entries = entries.peekable();
        let mut paths = Vec::new();
        while entries.peek().is_some() {
            let path = self.folder.join(format!("{}.ingested", paths.len()));
            let mut writer = TableWriter::create(&path, &self.options)?;
            for entry in entries.by_ref().take(entries_per_file) {
                writer.insert(&entry.key, &entry.value)?;
            }
            writer.finish()?;
            paths.push(path);
        }
        let files = paths.iter().map(|path| (&self.keyspace, path));
        self.db.ingest(files)?;
        for path in &paths {
            fs::remove_file(path).map_err(|error| Error::io("remove", path, error))?;
        }
        Ok(())
    }

    fn compact_filtered(&self) -> Result<()> {
        loop {
            let dropped = self.db.stats().judged_dropped;
            self.filter.set(true);
            let judged = self.compact();
            self.filter.set(false);
            judged?;
            // What the filter has removed goes with the next compaction.
            self.compact()?;
            if self.db.stats().judged_dropped == dropped {
                return Ok(());
            }
        }
    }

    fn approximate_size(&self, from: &[u8], to: &[u8]) -> Result<u64> {
        self.keyspace.approximate_size(from..to)
    }

    fn counters(&self) -> Result<Counters> {
        let stats = self.db.stats();
        Ok(Counters {
            written_bytes: stats.written_bytes(),
            read_bytes: stats.read_bytes(),
            block_reads: Some(stats.block_reads),
            separated_reads: SeparatedReads {
                transient_log_reads: stats.transient_log_reads,
                value_log_reads: stats.value_log_reads,
                prefetched: stats.values_prefetched,
            },
            filter_probes: Some(stats.filter_probes),
            filter_false_positives: Some(stats.filter_false_positives),
            seeks: Some(stats.seeks),
            runs_visited: Some(stats.runs_visited),
            stalls: Some(stats.stall_count()),
            stall_seconds: stats.stall_micros() as f64 / 1e6,
        })
    }

    fn levels(&self) -> Result<Vec<LevelShape>> {
        let stats = self.db.stats();
        let keyspaces = stats.keyspaces.iter();
        let levels = keyspaces.flat_map(|keyspace| &keyspace.levels);
        Ok(levels
            .map(|level| LevelShape {
                level: level.level as u64,
                files: level.files as u64,
                segments: level.segments as u64,
                bytes: level.bytes,
                capacity: level.capacity,
                entries: level.entries,
                flushed_bytes: level.io_stats.flushed,
                appended_bytes: level.io_stats.appended,
                rewritten_bytes: level.io_stats.rewritten,
                consolidated_bytes: level.io_stats.consolidated,
                pointer_rewrite_bytes: level.io_stats.pointers_rewritten,
                transient_log_bytes: level.io_stats.transient_logs,
                read_bytes: level.io_stats.read,
                consolidation_read_bytes: level.io_stats.consolidation_read,
                pointer_rewrite_read_bytes: level.io_stats.pointer_rewrite_read,
                transient_log_read_bytes: level.io_stats.transient_logs_read,
                gets_answered: level.gets_answered,
            })
            .collect())
    }

    fn stalls(&self) -> Vec<StallShape> {
        let stats = self.db.stats();
        let met = stats.stalls.iter();
        met.filter(|stall| stall.delays + stall.stops > 0)
            .map(|stall| StallShape {
                cause: stall.cause.name().to_owned(),
                delays: stall.delays,
                stops: stall.stops,
                seconds: stall.micros as f64 / 1e6,
                longest_ms: stall.longest_micros as f64 / 1e3,
            })
            .collect()
    }

    fn compactions(&self) -> Option<CompactionShape> {
        Some(self.compactions.take())
    }

    fn io_stats(&self) -> Vec<IoShape> {
        let stats = self.db.stats();
        let moved = [
            ("write-ahead log", stats.wal_bytes, 0),
            ("value logs", stats.value_log_bytes, 0),
            ("flushes", stats.flush_bytes, 0),
            (
                "compactions",
                stats.compaction_bytes_written,
                stats.compaction_bytes_read,
            ),
            ("appends", stats.append_bytes_written, 0),
            (
                "consolidations",
                stats.consolidation_bytes_written,
                stats.consolidation_bytes_read,
            ),
            (
                "transient logs",
                stats.transient_log_bytes_written,
                stats.transient_log_bytes_read,
            ),
            (
                "garbage collection",
                stats.gc_bytes_written,
                stats.gc_bytes_read,
            ),
            ("manifest", stats.manifest_bytes, 0),
            ("gets and scans", 0, stats.block_load_bytes),
        ];
        let shape = |(purpose, written_bytes, read_bytes): (&str, u64, u64)| IoShape {
            purpose: purpose.to_owned(),
            written_bytes,
            read_bytes,
        };
        moved.map(shape).to_vec()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.settings.clone()
    }

    fn close(self) -> Result<()> {
        drop(self.keyspace);
        self.db.close()
    }
}

/// The calls of a transaction.
struct Calls<'a> {
    transaction: &'a Transaction,
    keyspace: &'a Keyspace,
    kind: Transactions,
}

impl TransactionCalls for Calls<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = match self.kind {
            Transactions::Optimistic => self.transaction.get(self.keyspace, key),
            Transactions::Locking => self.transaction.get_for_update(self.keyspace, key),
        }?;
        let is_found = found.is_some();
        *value = found.unwrap_or_default();
        Ok(is_found)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.transaction.insert(self.keyspace, key, value)
    }
}

/// Windrow's cursor as a scan.
pub struct CursorScan(Cursor);

impl std::fmt::Debug for CursorScan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CursorScan").finish_non_exhaustive()
    }
}

impl Scan for CursorScan {
    #[inline]
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.0.seek(key)
    }

    #[inline]
    fn next(&mut self) -> Result<bool> {
        self.0.next()
    }

    #[inline]
    fn prev(&mut self) -> Result<bool> {
        self.0.prev()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.0.seek_to_last()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.0.key()
    }

    #[inline]
    fn value(&self) -> Result<&[u8]> {
        self.0.value()
    }
}
