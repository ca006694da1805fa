//! Layer 1: what a user can choose, and the checks on it.
//!
//! Every field has a default that needs no tuning. [`Options::validate`] reports all faults at once.

mod recorded;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::base::limits::{self, SEGMENTS_MAX};
use crate::base::{Error, Result};
use crate::codec::Compression;
use crate::events::{EventListener, Listener};
use crate::runtime::{Runtime, Threads};
use crate::vfs::{OsVfs, Vfs};

pub(crate) use recorded::RecordedOptions;

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives the end of the process, not a power failure: the write is with the operating
    /// system. [`Db::persist`](crate::Db::persist) makes everything so far survive both.
    #[default]
    Buffered,
    /// Survives a power failure: the log is synced before the write is acknowledged.
    Sync,
}

/// Where reads take blocks of table files from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockSource {
    /// Read-only mappings: no copy and no system call for what the page cache holds. A device
    /// error while reading ends the process (SIGBUS); choose `Buffered` where that is unwanted.
    #[default]
    Mapped,
    /// `pread` into Windrow's own cache of `cache_bytes`.
    Buffered,
}

/// Named sets of the tuning options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Preset {
    /// What most loads want: Garnering levels, Monkey filters, values placed by size, space held to
    /// `max_space_amp`.
    #[default]
    Balanced,
    /// Plain leveled merging: one constant size ratio of 10, the same filter bits for every file, all
    /// values in place.
    Leveling,
    /// The Autumn paper's Garnering levels alone: size ratio 5 that grows by 1/0.8 towards the
    /// shallow levels, Monkey filters, no bound on space, all values in place.
    Autumn,
    /// The Parallax paper's hybrid placement alone: values placed by size, in levels of one constant
    /// size ratio of 8, without filters or a bound on space.
    Parallax,
    /// The LSMA paper's append merges alone: up to 12 segments in each file of every level, files of
    /// 2 MiB, one constant size ratio of 10, 4 filter bits per key for every file, no bound on space,
    /// all values in place.
    Lsma,
}

/// How filter bits are shared out among the files of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum FilterAllocation {
    /// Where they save most reads: a file's rate of false positives is proportional to its share of
    /// the entries in its range of keys (Monkey; AU-M4).
    #[default]
    Monkey,
    /// The same for every file.
    Uniform,
}

/// How many segments a table file of each level may have, of at most 12. In the last level with data it may
/// have fewer, the nearer the tree is to `max_space_amp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SegmentLimit {
    /// In proportion to the root of the ratio between a level and the one above it.
    #[default]
    Scaled,
    /// So many in every level: 1 for merges that append nothing, 12 as in the LSMA paper.
    Fixed(usize),
}

/// `scaled`, or a number.
impl fmt::Display for SegmentLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scaled => f.write_str("scaled"),
            Self::Fixed(limit) => limit.fmt(f),
        }
    }
}

impl FromStr for SegmentLimit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "scaled" => Ok(Self::Scaled),
            _ => text.parse().map(Self::Fixed).map_err(|_| {
                Error::invalid_argument(format!(
                    "a segment limit is \"scaled\" or a number, not \"{text}\""
                ))
            }),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for SegmentLimit {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The level from which on merges write values of medium size in place, instead of handing on where
/// they stand in a transient log. The last level is the deepest that really holds data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MediumInPlace {
    /// The last one (N-1 in the paper): least is rewritten.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "last"))]
    LastLevel,
    /// The level before the last (N-2), but never level 0. Transient logs take less space, and compactions rewrite more.
    #[cfg_attr(feature = "serde", serde(rename = "before-last"))]
    LevelBeforeLast,
    /// None: a run goes with the last pointer into it, and what is left in sparse files or in thin slices only
    /// moves to another run. The bound of what placement can save, for measurements (`NoMerge`).
    Never,
}

/// How a flush orders the values of medium size in its transient log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MediumOrder {
    /// By their keys: merges read them one behind the other.
    #[default]
    Sorted,
    /// As they were written: merges read each by itself. What sorting saves, for measurements.
    Written,
}

/// Options of one keyspace. The database records them: a keyspace that is opened without options has
/// those that it had last. Any may change from one opening to the next, or while the database is
/// open ([`Db::keyspace_with`](crate::Db::keyspace_with)); none changes a file that is there.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// Memory of one memtable, in bytes. Default 64 MiB. Larger: fewer flushes and less
    /// rewriting, more memory and a longer recovery.
    pub memtable_bytes: usize,
    /// Size ratio T of the last two levels, at least 2. Default 5. Smaller: less rewriting per
    /// level, more levels.
    pub size_ratio: f64,
    /// Garnering's c, above 0 and at most 1: ratios grow by 1/c towards the shallow levels. 1 is
    /// plain leveling. Default 0.8. Smaller: fewer levels, more rewriting in the shallow ones.
    pub scaling: f64,
    /// Capacity of level 1 while it is the only level, in bytes. Default 256 MiB.
    pub base_bytes: u64,
    /// Size at which a table file is closed, in bytes. Default 16 MiB.
    pub file_bytes: u64,
    /// Size of a data block before compression, in bytes. Default 4 KiB.
    pub block_bytes: usize,
    /// Filter bits per key in memory, over all files; fractions count. 0 turns filters off.
    /// Default 10.
    pub bits_per_key: f64,
    /// How these bits are shared out. Default [`FilterAllocation::Monkey`].
    pub filter_allocation: FilterAllocation,
    /// Compression of data blocks, of values apart from their keys, and, always with LZ4, of log records
    /// of 256 bytes and more; each only where it saves an eighth. Default none.
    pub compression: Compression,
    /// Runs in level 0 before a compaction merges them into level 1. Default 4. Larger: fewer, larger compactions
    /// and slower reads.
    pub level0_runs: usize,
    /// The most segments of a table file. A compaction appends a segment to a file that has fewer, instead of
    /// rewriting the file. Default [`SegmentLimit::Scaled`]. Larger: less rewriting, and reads visit more segments.
    pub segment_limit: SegmentLimit,
    /// The bound on space amplification: bytes of tables and value files over bytes of live data. Compactions and
    /// garbage collections aim to stay below it. Above 1.05. Infinity: no bound; a value log is then deleted only
    /// when all its values are garbage. Default 1.6. Smaller: less disk, more rewriting.
    pub max_space_amp: f64,
    /// A value is medium from this many bytes on, key and value together. A flush writes it to a transient log,
    /// unless keys come in order. Compactions move only its pointer, until the level of `medium_in_place`. So it is
    /// rewritten less. Transient logs take space instead: at rest up to 1/`size_ratio` of the data. Default 120. At
    /// most `large_from`, or `u64::MAX` for never. If both are equal, no value is medium. Values of less than 64
    /// bytes always stay in their tables.
    pub medium_from: u64,
    /// Bytes of key and value together from which on a value is large: it is written once, to a value
    /// log, when it is committed, and merges move only a pointer to it. Default 1024; `u64::MAX` for
    /// never. Values of more than 1 MiB are large in any case.
    pub large_from: u64,
    /// Where merges write values of medium size in place. Default [`MediumInPlace::LastLevel`].
    pub medium_in_place: MediumInPlace,
    /// How flushes order values of medium size. Default [`MediumOrder::Sorted`].
    pub medium_order: MediumOrder,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            size_ratio: 5.0,
            scaling: 0.8,
            base_bytes: 256 << 20,
            file_bytes: 16 << 20,
            block_bytes: 4 << 10,
            bits_per_key: 10.0,
            filter_allocation: FilterAllocation::Monkey,
            compression: Compression::None,
            level0_runs: 4,
            segment_limit: SegmentLimit::Scaled,
            max_space_amp: 1.6,
            medium_from: 120,
            large_from: 1024,
            medium_in_place: MediumInPlace::LastLevel,
            medium_order: MediumOrder::Sorted,
        }
    }
}

impl KeyspaceOptions {
    /// The options of a preset.
    pub fn preset(preset: Preset) -> Self {
        let options = Self::default();
        match preset {
            Preset::Balanced => options,
            Preset::Leveling => Self {
                size_ratio: 10.0,
                scaling: 1.0,
                filter_allocation: FilterAllocation::Uniform,
                segment_limit: SegmentLimit::Fixed(1),
                max_space_amp: f64::INFINITY,
                medium_from: u64::MAX,
                large_from: u64::MAX,
                ..options
            },
            Preset::Autumn => Self {
                segment_limit: SegmentLimit::Fixed(1),
                max_space_amp: f64::INFINITY,
                medium_from: u64::MAX,
                large_from: u64::MAX,
                ..options
            },
            Preset::Parallax => Self {
                size_ratio: 8.0,
                scaling: 1.0,
                bits_per_key: 0.0,
                segment_limit: SegmentLimit::Fixed(1),
                ..options
            },
            Preset::Lsma => Self {
                size_ratio: 10.0,
                scaling: 1.0,
                file_bytes: 2 << 20,
                bits_per_key: 4.0,
                filter_allocation: FilterAllocation::Uniform,
                segment_limit: SegmentLimit::Fixed(SEGMENTS_MAX),
                max_space_amp: f64::INFINITY,
                medium_from: u64::MAX,
                large_from: u64::MAX,
                ..options
            },
        }
    }
}

/// Options of a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    // Behaviour
    /// Create the database where there is none. Default true. It gets a folder of its own: one that
    /// holds other files is refused, but for hidden ones and `lost+found`.
    pub create_if_missing: bool,
    /// Fail with `AlreadyExists` where there is a database. Default false.
    pub error_if_exists: bool,
    /// Durability of writes that do not name one. Default [`Durability::Buffered`].
    pub durability: Durability,
    /// Where reads take blocks from. Default [`BlockSource::Mapped`].
    pub block_source: BlockSource,

    // Resources
    /// Bytes of blocks kept in Windrow's own cache. Default 64 MiB. With mapped blocks only
    /// compressed tables use it.
    pub cache_bytes: u64,
    /// Log bytes after which the oldest memtable is flushed, whatever its size. Default 512 MiB.
    pub max_wal_bytes: u64,
    /// Threads for flushes and compactions. Default 2.
    pub background_threads: usize,
    /// Table files kept open, and half as many value files; each takes a descriptor. Default 512.
    pub open_files_max: usize,
    /// Bytes per second that merges may write, 0 for no bound, which is the default. Flushes count but
    /// never wait, and nobody waits while writers are held up for lack of merging.
    pub compaction_bytes_per_second: u64,
    /// Bytes of memory that memtables, block cache, indexes and filters of open tables, cursors and
    /// buffers of background work may take together. Default 512 MiB; 0 for no limit. Half of it is
    /// for memtables, and a memtable takes at most an eighth, whatever `memtable_bytes` says; the
    /// block cache gives way to tables and cursors.
    pub memory_budget: u64,
    /// Bytes of disk kept back, so that on a full disk entries can still be removed, and the database
    /// opened. Default 4 MiB; 0 for none. A small database keeps back less: a sixteenth of its files,
    /// and 64 KiB at least. Once the disk was full, it counts as full until twice as much is free as is
    /// kept back.
    pub reserve_bytes: u64,

    // Tuning
    /// How long a mapped block is trusted before its checksum is verified again. Default an hour.
    pub scrub_interval: Duration,
    /// Options for keyspaces that are created without their own. Keyspaces that are there keep theirs.
    pub keyspace: KeyspaceOptions,

    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) listener: Listener,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            error_if_exists: false,
            durability: Durability::default(),
            block_source: BlockSource::default(),
            cache_bytes: 64 << 20,
            max_wal_bytes: 512 << 20,
            background_threads: 2,
            open_files_max: 512,
            compaction_bytes_per_second: 0,
            memory_budget: 512 << 20,
            reserve_bytes: 4 << 20,
            scrub_interval: Duration::from_secs(3600),
            keyspace: KeyspaceOptions::default(),
            vfs: Arc::new(OsVfs),
            runtime: Arc::new(Threads::default()),
            listener: Listener::default(),
        }
    }
}

/// What each background thread needs of the memory budget: an eighth of it holds the buffers of a
/// merge.
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

    /// Checks every field.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every fault.
    pub fn validate(&self) -> Result<()> {
        let mut faults = Vec::new();
        let mut check = |sound: bool, fault: &str| {
            if !sound {
                faults.push(fault.to_owned());
            }
        };
        check(
            (1..=1024).contains(&self.background_threads),
            "background_threads must be from 1 to 1024",
        );
        check(
            (16..=1 << 24).contains(&self.open_files_max),
            "open_files_max must be from 16 to 16,777,216",
        );
        check(
            !self.error_if_exists || self.create_if_missing,
            "error_if_exists without create_if_missing can never succeed",
        );
        if self.reserve_bytes > 1 << 40 {
            faults.push("reserve_bytes must be at most 1 TiB".to_owned());
        }
        let memory_min = MEMORY_PER_THREAD_MIN.saturating_mul(self.background_threads as u64);
        if self.memory_budget != 0 && self.memory_budget < memory_min {
            faults.push(format!(
                "memory_budget must be 0 or at least {memory_min}, 4 MiB for each of the \
                 background_threads"
            ));
        }
        faults.extend(self.misfit(&self.keyspace));
        faults.extend(self.keyspace.faults());
        report(&faults)
    }

    /// Checks that a keyspace with `keyspace` fits into a database with these options.
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

impl KeyspaceOptions {
    /// Checks every field.
    ///
    /// # Errors
    /// `InvalidArgument` that lists every fault.
    pub fn validate(&self) -> Result<()> {
        report(&self.faults())
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |sound: bool, fault: String| {
            if !sound {
                faults.push(fault);
            }
        };
        check(
            self.size_ratio >= 2.0 && self.size_ratio <= 1000.0,
            format!("size_ratio must be from 2 to 1000, not {}", self.size_ratio),
        );
        check(
            self.scaling > 0.0 && self.scaling <= 1.0,
            format!(
                "scaling must be above 0 and at most 1, not {}",
                self.scaling
            ),
        );
        check(
            (0.0..=64.0).contains(&self.bits_per_key),
            format!(
                "bits_per_key must be from 0 to 64, not {}",
                self.bits_per_key
            ),
        );
        check(
            (4 << 10..=64 << 30).contains(&(self.memtable_bytes as u64)),
            "memtable_bytes must be from 4 KiB to 64 GiB".to_owned(),
        );
        check(
            (128..=1 << 20).contains(&self.block_bytes),
            format!(
                "block_bytes must be from 128 to 1 MiB, not {}",
                self.block_bytes
            ),
        );
        check(
            (1 << 10..=64 << 30).contains(&self.file_bytes),
            "file_bytes must be from 1 KiB to 64 GiB".to_owned(),
        );
        check(
            self.base_bytes >= self.file_bytes,
            "base_bytes must be at least file_bytes".to_owned(),
        );
        check(
            (1..=64).contains(&self.level0_runs),
            format!("level0_runs must be from 1 to 64, not {}", self.level0_runs),
        );
        if let SegmentLimit::Fixed(limit) = self.segment_limit {
            check(
                (1..=SEGMENTS_MAX).contains(&limit),
                format!("segment_limit must be from 1 to {SEGMENTS_MAX}, not {limit}"),
            );
        }
        check(
            self.max_space_amp > 1.05,
            format!(
                "max_space_amp must be above 1.05, not {}",
                self.max_space_amp
            ),
        );
        check(
            self.medium_from <= self.large_from || self.medium_from == u64::MAX,
            format!(
                "medium_from must be at most large_from, {}, not {}",
                self.large_from, self.medium_from
            ),
        );
        check(
            self.compression.is_available(),
            format!("{:?} compression is not in this build", self.compression),
        );
        faults
    }
}

fn report(faults: &[String]) -> Result<()> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::invalid_argument(faults.join("; ")))
    }
}

/// Checks a key that a user gave.
#[inline]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid_argument("a key must have at least one byte"));
    }
    if key.len() > limits::KEY_BYTES_MAX {
        return Err(Error::invalid_argument(format!(
            "a key of {} bytes is longer than the limit of {}",
            key.len(),
            limits::KEY_BYTES_MAX
        )));
    }
    Ok(())
}

/// Checks a value that a user gave.
#[inline]
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    if value.len() > limits::VALUE_BYTES_MAX {
        return Err(Error::invalid_argument(format!(
            "a value of {} bytes is longer than the limit of {}",
            value.len(),
            limits::VALUE_BYTES_MAX
        )));
    }
    Ok(())
}
