//! The options that are a choice of a few.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::base::{Error, Result};

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives the end of the process, but not a power failure: the operating system has the write.
    /// [`Db::persist`](crate::Db::persist) makes all writes so far survive both.
    #[default]
    Buffered,
    /// It survives a power failure: the log is synced before the write is acknowledged.
    Sync,
}

/// What an open does if bytes of the write-ahead log are damaged that were durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// It fails with `Corruption` and changes nothing. Right after a crash this never happens: what a crash has torn was
    /// not durable.
    #[default]
    Strict,
    /// It recovers every commit before the damage, and the event [`HistoryCut`](crate::Event::HistoryCut) names the
    /// damage. The commits behind it are gone: an open for writing removes what is left of them, which
    /// [`repair`](crate::Db::repair) could have saved. It still fails if tables hold later commits, because then the
    /// commits before the damage cannot be had alone; or if anything but the write-ahead log, and values that it points
    /// to, is damaged.
    UpToDamage,
}

/// What must not have changed when a transaction commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Everything that the transaction has read: keys, absent keys, and ranges that cursors have passed. All transactions
    /// with writes then behave as if they had run one after the other, in the order of their commits. Keys that were
    /// written without a read may have changed.
    #[default]
    Serializable,
    /// The keys that the transaction inserts, removes or deletes in a range, or has read with `get_for_update` or
    /// `get_for_share`. A key that it only merges is not among them, even if it has read it plainly. Two transactions
    /// that each read what the other one writes can both commit (write skew).
    Snapshot,
}

/// What an [ingestion](crate::Db::ingest) checks of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileCheck {
    /// Everything: each checksum, the order of the keys, the filters, the counts. It reads the whole file.
    #[default]
    Whole,
    /// The footer and the properties alone. The first read of a damaged block reports it, as for any table, but keys in
    /// a wrong order give wrong answers. For files that were checked since they were written.
    Metadata,
}

/// How reads of table files get their blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockSource {
    /// From read-only memory maps if the data is in the page cache, without a copy and a system call; otherwise by
    /// `pread`. A device error ends the process (SIGBUS) only if the page cache has dropped a page a moment before;
    /// choose `Buffered` if it must never. Files that a [`Vfs`](crate::vfs::Vfs) cannot map are read as with `Buffered`.
    #[default]
    Mapped,
    /// By `pread` into Windrow's own cache of `cache_bytes`.
    Buffered,
}

/// Named sets of the tuning options. Each except `Balanced` is one design alone, for measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Preset {
    /// For most loads, and the default: Garnering levels, Monkey filters, placement of values by size, space within
    /// `max_space_amp`.
    #[default]
    Balanced,
    /// Plain leveled compaction: one constant size ratio of 10, the same filter bits for every file, no bound on
    /// space, all values in place.
    Leveling,
    /// The Autumn paper's Garnering levels alone: size ratio 5 that grows by 1/0.8 towards the
    /// shallow levels, Monkey filters, no bound on space, all values in place.
    Autumn,
    /// The Parallax paper's hybrid placement alone: values placed by size, in levels of one constant
    /// size ratio of 8, without filters, space within `max_space_amp` of 1.6. The paper's design includes garbage
    /// collection of value logs, and without a bound on space there is none. The bound is that of `Balanced`, not the
    /// paper's threshold of 10 % garbage in a log, so that both can be compared at the same space.
    Parallax,
    /// The LSMA paper's append merges alone: up to 12 segments in each file of every level from 1 on, files
    /// of 2 MiB, one constant size ratio of 10, 4 filter bits per key for every file, no bound on space, all
    /// values in place.
    Lsma,
}

/// How the files of a keyspace divide its filter bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum FilterAllocation {
    /// So that the most reads are saved: the false-positive rate of a file is proportional to its fraction of
    /// the entries in its key range (Monkey; AU-M4).
    #[default]
    Monkey,
    /// Every file has the same bits per key.
    Uniform,
}

/// The most segments of a table file, by level, from 1 to 12. In the last level (see [`MediumInPlace`]) the limit falls
/// as the tree comes close to `max_space_amp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SegmentLimit {
    /// In proportion to the root of the ratio between a level and the level above it, and at least 6 in level 1. From
    /// the last level on it is 1.
    #[default]
    Scaled,
    /// The same number in each level from 1 on: 1 for no appends, 12 as in the LSMA paper.
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

/// The level from which on compactions write medium values in place. Above it they copy only the pointers to the
/// transient logs. The last level is the deepest that holds at least 1/(2 `size_ratio`) of all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MediumInPlace {
    /// The last level (N-1 in the paper). Compactions rewrite least.
    #[default]
    #[cfg_attr(feature = "serde", serde(rename = "last"))]
    LastLevel,
    /// The level before the last (N-2), but never level 0. Transient logs take less space, and compactions rewrite
    /// more.
    #[cfg_attr(feature = "serde", serde(rename = "before-last"))]
    LevelBeforeLast,
    /// No level (`NoMerge` in the paper), to measure the most that placement can save. A transient log is deleted
    /// with the last pointer into it. A compaction copies values to another transient log if a quarter of a file is
    /// garbage, or if its tables would refer to few values of a file each.
    Never,
}

/// How a flush orders the medium values in its transient log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum MediumOrder {
    /// By key. Compactions read the values sequentially.
    #[default]
    Sorted,
    /// In the order of their writes, to measure what sorting saves. A compaction reads each value alone.
    Written,
}

/// How much the [consumers](crate::Consumer) of a change feed may hold. One that holds more falls behind, when the next
/// log would be kept for it: it holds nothing from then on, and has to begin again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Bytes on disk that one consumer may hold: logs that recovery does not need, and garbage in the value logs that
    /// they point to. Default 1 GiB.
    pub bytes: u64,
    /// How long a consumer may hold them without an acknowledgement. Default a day.
    pub idle: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            idle: Duration::from_secs(24 * 3600),
        }
    }
}
