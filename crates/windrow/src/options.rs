//! Layer 1: the options of a database, and of its keyspaces in the files below.
//!
//! Every field has a default that needs no tuning. [`Options::validate`] reports all faults at once.

mod check;
mod choices;
mod keyspace;
mod recorded;

use std::sync::Arc;
use std::time::Duration;

use check::{faults, report};

use crate::base::{PREPARED_KEYSPACE, Result};
use crate::compaction_filter::{CompactionFilter, CompactionFilters};
use crate::events::{EventListener, Listener};
use crate::merge_operator::{KeyspaceOperator, MergeOperator, MergeOperators};
use crate::operators;
use crate::runtime::{Runtime, Threads};
use crate::vfs::{OsVfs, Vfs};

pub(crate) use check::{check_key, check_operand, check_value};
pub use choices::{
    BlockSource, Durability, FileCheck, FilterAllocation, Isolation, MediumInPlace, MediumOrder,
    Preset, Recovery, Retention, SegmentLimit,
};
pub use keyspace::KeyspaceOptions;
pub(crate) use recorded::RecordedOptions;

/// Options of a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    // Behaviour
    /// Whether an open creates a missing database. Default true. Set false if a missing database is a mistake. A new
    /// database needs a folder of its own: the folder may hold hidden files and `lost+found`, but no others.
    pub create_if_missing: bool,
    /// Whether an open fails with `AlreadyExists` if the database exists. Default false.
    pub error_if_exists: bool,
    /// Durability of writes that do not name one. Default [`Durability::Buffered`]. Set `Sync` if every write must
    /// survive a power failure.
    pub durability: Durability,
    /// Whether writes go to a log. Default true. Without a log writes cost less, and only
    /// [`Db::persist`](crate::Db::persist) makes them durable: whatever ends the process, even a close, the next open finds
    /// the database exactly as it was at the last `persist`. Flushes, loads and changes of keyspaces count from the next one
    /// on, too. The files of that state stay until the next one. A checkpoint or a backup includes one. Set false
    /// for data that can be made again from elsewhere. Writes with [`Durability::Sync`], prepared transactions, the change
    /// feed and secondaries need a log.
    pub log: bool,
    /// What an open does if the write-ahead log is damaged. Default [`Recovery::Strict`]. Set `UpToDamage` to go on with
    /// the commits before the damage, if those behind it are not worth a [repair](crate::Db::repair).
    pub recovery: Recovery,
    /// How reads get blocks. Default [`BlockSource::Mapped`]. Set `Buffered` if a device error must not end the
    /// process, and give `cache_bytes` more memory.
    pub block_source: BlockSource,

    /// How long a transaction waits for each lock, unless it says otherwise. Default a second. Then it fails with
    /// `TimedOut`. Deadlocks are found without it. Set more if transactions hold locks for long.
    pub lock_timeout: Duration,

    // Resources
    /// Size of Windrow's own block cache, in bytes. Default 64 MiB. With mapped blocks only
    /// compressed tables use it.
    pub cache_bytes: u64,
    /// Bound on the bytes of the write-ahead log, and so on the time of a recovery. Default 512 MiB. From three
    /// quarters of it on, the memtables that pin the oldest log are flushed, whatever their size. It must be at least
    /// `memtable_bytes`; steady writing needs four times that.
    pub max_wal_bytes: u64,
    /// Threads for flushes, compactions and garbage collections, from 1 to 1024. Default 2. Set more if writes outrun
    /// compactions and the disk has bandwidth left.
    pub background_threads: usize,
    /// Open table files, from 16 to 2^24. Default 512. Value files may add half of this number. Each file takes a
    /// descriptor. Set less if the process may have fewer.
    pub open_files_max: usize,
    /// Rate limit of compactions and garbage collections, in bytes written per second. Default 0, no limit. Set it if
    /// other programs use the disk. Flushes count but never wait for it. No job waits while writers are throttled.
    pub compaction_bytes_per_second: u64,
    /// Bytes of memory that memtables, block cache, indexes and filters of open tables, cursors and buffers of
    /// background work may take together. Default 512 MiB; 0 for no limit, else at least 4 MiB for each of the
    /// `background_threads`. Half of it is for memtables, and one memtable takes at most an eighth, whatever
    /// `memtable_bytes` says. The block cache shrinks if tables and cursors need the memory.
    pub memory_budget: u64,
    /// Bytes of disk that are kept back for a full disk, so that it still allows removals and an open. Default 4 MiB;
    /// 0 for none; at most 1 TiB. A small database keeps back less: a sixteenth of its files, but at least 64 KiB and
    /// four times its manifest. A full disk counts as full until twice the reserve is free.
    pub reserve_bytes: u64,
    /// What each consumer of changes may hold on disk, and how long. The default is a GiB and a day. Set more if a consumer
    /// may stop for longer.
    pub change_retention: Retention,

    // Tuning
    /// A mapped block is verified again at its first read in each interval of this length, or of a second while memory
    /// is short. Default an hour. Set less to find damage behind the page cache sooner.
    pub scrub_interval: Duration,
    /// The time in which background work reads each byte of the database about once and compares the checksums, at most a
    /// MiB a second and only while no other work is due. Default 30 days; zero for never. Damage is an
    /// [event](crate::Event::DamageFound). Set less to find it sooner.
    pub full_scrub_interval: Duration,
    /// Bytes of the job log: the files `LOG` and `LOG.old` in the folder, with a line for each event of the database.
    /// Default 2 MiB; 0 for no job log. It need not be durable, and a failure to write it changes nothing else.
    pub job_log_bytes: u64,
    /// How often the file `STATUS` in the folder gets the statistics of this process, for programs such as `windrow top`.
    /// Default a second; zero for never. It takes at most a hundredth of the time of one thread, and with one of the
    /// `background_threads` it waits for the end of a job.
    pub status_interval: Duration,
    /// One of so many gets and commits is timed, rounded up to a power of two, and one of four times as many seeks and steps
    /// of cursors; all of them if it is 1. Default 128; 0 for no latencies at all. Flushes, compactions, garbage collections, syncs and stalls are all timed.
    pub latency_interval: u32,
    /// Options of keyspaces that are created without their own. Existing keyspaces keep theirs.
    pub keyspace: KeyspaceOptions,

    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) listener: Listener,
    pub(crate) merge_operators: MergeOperators,
    pub(crate) compaction_filters: CompactionFilters,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            error_if_exists: false,
            durability: Durability::default(),
            log: true,
            recovery: Recovery::default(),
            block_source: BlockSource::default(),
            lock_timeout: Duration::from_secs(1),
            cache_bytes: 64 << 20,
            max_wal_bytes: 512 << 20,
            background_threads: 2,
            open_files_max: 512,
            compaction_bytes_per_second: 0,
            memory_budget: 512 << 20,
            reserve_bytes: 4 << 20,
            change_retention: Retention::default(),
            scrub_interval: Duration::from_secs(3600),
            full_scrub_interval: Duration::from_secs(30 * 24 * 3600),
            job_log_bytes: 2 << 20,
            status_interval: Duration::from_secs(1),
            latency_interval: 128,
            keyspace: KeyspaceOptions::default(),
            vfs: Arc::new(OsVfs),
            runtime: Arc::new(Threads::default()),
            listener: Listener::default(),
            merge_operators: MergeOperators::default(),
            compaction_filters: CompactionFilters::default(),
        }
    }
}

/// The least memory budget for each background thread. An eighth of it holds the buffers of a compaction.
const MEMORY_PER_THREAD_MIN: u64 = 4 << 20;

impl Options {
    /// The options of a preset.
    pub fn preset(preset: Preset) -> Self {
        Self {
            keyspace: KeyspaceOptions::preset(preset),
            ..Self::default()
        }
    }

    /// Uses another file system, for example a simulated one.
    #[must_use]
    pub fn with_vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Uses other threads, clock and randomness, for example stepped ones.
    #[must_use]
    pub fn with_runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = runtime;
        self
    }

    /// Notifies `listener` of the [events](crate::Event) of the database: flushes, compactions, stalls, a full disk.
    #[must_use]
    pub fn with_listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = Listener::new(listener);
        self
    }

    /// Gives the keyspace of this name a merge operator, which folds the operands of
    /// [`Keyspace::merge`](crate::Keyspace::merge). The database records the name of the operator when it opens or
    /// creates the keyspace. From then on the keyspace keeps this operator: an open with another one fails. A keyspace
    /// that is renamed keeps it, too; later opens give it by the new name. An open without it reads and writes
    /// everything but keys with operands that are not folded yet. Ready [`operators`](crate::operators) are found by
    /// their recorded names.
    #[must_use]
    pub fn with_merge_operator(
        mut self,
        keyspace: impl Into<String>,
        operator: Arc<dyn MergeOperator>,
    ) -> Self {
        self.merge_operators.register(keyspace.into(), operator);
        self
    }

    /// Gives the keyspace of this name a [compaction filter](CompactionFilter), which removes or replaces values that
    /// compactions come across. The database records nothing of it: each open may give another one, or none. A keyspace
    /// that is renamed keeps its filter until the close. The filter of a name that no keyspace has is never called. That
    /// of the keyspace of prepared transactions, `windrow.prepared`, is refused.
    #[must_use]
    pub fn with_compaction_filter(
        mut self,
        keyspace: impl Into<String>,
        filter: Arc<dyn CompactionFilter>,
    ) -> Self {
        self.compaction_filters.register(keyspace.into(), filter);
        self
    }

    /// The merge operator of a keyspace whose manifest has `recorded`.
    ///
    /// # Errors
    /// `InvalidArgument` if another one is given to it.
    pub(crate) fn merge_operator(
        &self,
        keyspace: &str,
        recorded: Option<&str>,
    ) -> Result<KeyspaceOperator> {
        self.merge_operators
            .of_keyspace(keyspace, recorded, operators::by_name)
    }

    /// Whether anybody wants the events of the database.
    pub(crate) fn is_observed(&self) -> bool {
        cfg!(feature = "tracing")
            || self.listener.is_any()
            || self.job_log_bytes > 0
            || self.latency_interval > 0
    }

    /// Checks every field.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every fault.
    pub fn validate(&self) -> Result<()> {
        let memory_min = MEMORY_PER_THREAD_MIN.saturating_mul(self.background_threads as u64);
        let mut faults = faults([
            (
                (1..=1024).contains(&self.background_threads),
                "background_threads must be from 1 to 1024".to_owned(),
            ),
            (
                (16..=1 << 24).contains(&self.open_files_max),
                "open_files_max must be from 16 to 16,777,216".to_owned(),
            ),
            (
                !self.error_if_exists || self.create_if_missing,
                "error_if_exists without create_if_missing can never succeed".to_owned(),
            ),
            (
                self.log || self.durability == Durability::Buffered,
                "durability can be Sync only with a log".to_owned(),
            ),
            (
                self.reserve_bytes <= 1 << 40,
                "reserve_bytes must be at most 1 TiB".to_owned(),
            ),
            (
                self.memory_budget == 0 || self.memory_budget >= memory_min,
                format!(
                    "memory_budget must be 0 or at least {memory_min}, 4 MiB for each of the \
                     background_threads"
                ),
            ),
            (
                !self.compaction_filters.has(PREPARED_KEYSPACE),
                format!(
                    "the keyspace \"{PREPARED_KEYSPACE}\" holds prepared transactions and can have no \
                     compaction filter"
                ),
            ),
        ]);
        faults.extend(self.misfit(&self.keyspace));
        faults.extend(self.keyspace.faults());
        report(&faults)
    }

    /// Checks that a database with these options can have a keyspace with the options `keyspace`.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(crate) fn check_fits(&self, keyspace: &KeyspaceOptions) -> Result<()> {
        let faults: Vec<String> = self.misfit(keyspace).into_iter().collect();
        report(&faults)
    }

    fn misfit(&self, keyspace: &KeyspaceOptions) -> Option<String> {
        let fits = self.max_wal_bytes >= keyspace.memtable_bytes as u64;
        (!fits).then(|| "max_wal_bytes must be at least memtable_bytes".to_owned())
    }
}
