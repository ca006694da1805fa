//! Where a value stands: beside its key, in a transient log, or in the value log (hybrid placement).
//!
//! A value's class follows from the bytes of key and value together (PX-M1). Small ones stay with
//! their keys. Medium ones are written once to a *transient log*, when the memtable is flushed
//! (D5), unless they come in the order of their keys; merges hand on where they stand, until one
//! writes into a level that is deep enough and puts them *in place* (PX-M4). Large ones are written to a value log when they are committed (PX-M3).
//!
//! I1. What is in place stays there: nothing turns a value in place into one in a run.
//! I2. A value of less than [`VALUE_BYTES_SEPARATED_MIN`] bytes is small under all options.
//! I3. A value of more than [`VALUE_BYTES_IN_PLACE_MAX`] bytes is large under all options.

use super::summary::{FileSummary, TreeSummary};
use crate::base::limits::{VALUE_BYTES_IN_PLACE_MAX, VALUE_BYTES_SEPARATED_MIN};
use crate::options::{KeyspaceOptions, MediumInPlace, MediumOrder};

/// What a value is by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It stands beside its key.
    Small,
    /// A flush writes it to a transient log, unless keys come in order, and a deep merge puts it beside its key
    /// again.
    Medium,
    /// It is written to a value log, once, when it is committed.
    Large,
}

/// Where a flush writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushPlace {
    /// Into the table, beside its key.
    Here,
    /// Into the transient log of the flush.
    TransientLog,
}

/// The class of a value of so many bytes under a key of so many, with these options.
pub fn class(key_bytes: usize, value_bytes: usize, options: &KeyspaceOptions) -> Class {
    let total = key_bytes.saturating_add(value_bytes) as u64;
    if value_bytes < VALUE_BYTES_SEPARATED_MIN {
        Class::Small
    } else if value_bytes > VALUE_BYTES_IN_PLACE_MAX || total >= options.large_from {
        Class::Large
    } else if total >= options.medium_from {
        Class::Medium
    } else {
        Class::Small
    }
}

/// What a flush does with such a value; medium ones [stay](mediums_stay) or not.
pub(crate) fn place_at_flush(
    key_bytes: usize,
    value_bytes: usize,
    mediums_stay: bool,
    options: &KeyspaceOptions,
) -> FlushPlace {
    match class(key_bytes, value_bytes, options) {
        Class::Medium if !mediums_stay => FlushPlace::TransientLog,
        Class::Small | Class::Medium | Class::Large => FlushPlace::Here,
    }
}

/// Whether a flush leaves medium values beside their keys: where no file of a tree that has some, each from its
/// smallest to its largest key, has keys between those of the flush. Keys come in order then, or nearly, and as long
/// as nothing overlaps such a table later, it goes down by moves alone: its values would be written to a run only to
/// be read and written again in the last level. Where something does, they are merged as small ones are.
pub(crate) fn mediums_stay<K: PartialOrd>(
    files: impl Iterator<Item = (K, K)>,
    (smallest, largest): (K, K),
    options: &KeyspaceOptions,
) -> bool {
    let mut files = files.peekable();
    options.medium_in_place != MediumInPlace::Never
        && files.peek().is_some()
        && files.all(|(first, last)| last < smallest || largest < first)
}

/// How long a file of a transient log is, in bytes, beside tables of `file_bytes`: so short that most of it
/// is freed soon after the merges that put its values in place have passed (D6), so long that there
/// are not too many.
pub(crate) fn transient_file_bytes(file_bytes: u64) -> u64 {
    file_bytes / 4
}

/// What a merge that leaves values in runs meets of one file of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MetTransientLog {
    /// Bytes of the file.
    pub(crate) length: u64,
    /// Those of them that are referred to, by whomever.
    pub(crate) referred_bytes: u64,
    /// Those that the inputs refer to.
    pub(crate) met_bytes: u64,
    /// How many segments of the inputs refer to it.
    pub(crate) slices: u64,
}

impl MetTransientLog {
    /// Whether a merge that writes tables of `file_bytes` writes what it meets of the file to a new run.
    ///
    /// So it does where little else of the file is referred to (D6): at most three bytes are
    /// written again for each that has died. And where tables have but thin slices of it: each level
    /// down cuts slices as many times thinner as the ratio to it is, while the runs of a level grow in
    /// number with it, so that without this a table of a large tree would refer to thousands of files,
    /// with a few values in each. A value is written once more for some of the levels that it passes.
    /// Values that runs have in the `order` of their writes stay so (PX-E7): every slice of these is thin.
    pub(crate) fn moves_on(self, order: MediumOrder, file_bytes: u64) -> bool {
        let is_sparse = self.referred_bytes < self.length / 4 * 3;
        let thin = self.slices.saturating_mul(slice_bytes_min(file_bytes));
        is_sparse || (order == MediumOrder::Sorted && self.met_bytes < thin)
    }
}

/// Slices of runs are at most so many times thinner than `file_bytes`, about: 32 KiB with the default, which is as
/// much as a merge reads of a run at a time.
const SLICES_MAX: u64 = 512;

/// What tables of `file_bytes` should have at least, on average, of each file of a run that they refer to.
fn slice_bytes_min(file_bytes: u64) -> u64 {
    file_bytes / SLICES_MAX
}

/// How long a value log is at least, in bytes, when another is begun.
pub(crate) fn value_log_bytes_min(options: &KeyspaceOptions) -> u64 {
    options.file_bytes.saturating_mul(4)
}

/// How long a value log is, in bytes, when another is begun and all logs hold `held` bytes: they grow with the
/// data, since where keys come in random order each table refers to values in nearly every log.
pub(crate) fn value_log_bytes(held: u64, options: &KeyspaceOptions) -> u64 {
    value_log_bytes_min(options).max(held / VALUE_LOGS)
}

/// So many value logs are as short as they may be; where there are more, another is a part of all of them.
const VALUE_LOGS: u64 = 512;

/// Whether a value log of so many bytes and records is full where they are to have `log_bytes`: nothing is added,
/// and another is begun.
pub(crate) fn is_value_log_full(bytes: u64, records: u64, log_bytes: u64) -> bool {
    bytes >= log_bytes || records >= VALUE_LOG_RECORDS_MAX
}

/// The most records of a value log, about: they decide the memory that its collection takes.
const VALUE_LOG_RECORDS_MAX: u64 = 1 << 19;

/// Into which levels of one tree merges write values in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The first of them; none where merges never do.
    first: Option<usize>,
}

impl Placement {
    /// For a tree whose effective last level is `effective_last` (D7).
    pub(crate) fn new(effective_last: usize, options: &KeyspaceOptions) -> Self {
        let first = match options.medium_in_place {
            MediumInPlace::LastLevel => Some(effective_last),
            MediumInPlace::LevelBeforeLast => Some(effective_last.saturating_sub(1)),
            MediumInPlace::Never => None,
        };
        Self {
            first: first.map(|level| level.max(1)),
        }
    }

    pub(crate) fn of<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> Self {
        Self::new(tree.effective_last_level(options.size_ratio), options)
    }

    /// Whether a merge into `target` writes values in place; never in level 0.
    pub(crate) fn merges_in_place(self, target: usize) -> bool {
        self.first.is_some_and(|first| first <= target)
    }

    /// Whether `file` refers to runs and, in `level`, must not.
    pub(super) fn converts<K>(self, level: usize, file: &FileSummary<K>) -> bool {
        file.transient_bytes > 0 && self.merges_in_place(level)
    }
}
