//! Hybrid placement: a value is beside its key, in a transient log, or in a value log.
//!
//! A value's class follows from the bytes of key and value together (PX-M1). Small values stay with their
//! keys. A flush writes medium values to a *transient log* (D5), unless they come in the order of their keys.
//! Compactions copy the pointers, until one writes into a level that is deep enough and puts the values *in
//! place* (PX-M4). A commit writes large values to a value log (PX-M3).
//!
//! Why: a compaction sorts keys only. With the value apart it copies a pointer of about ten bytes instead of
//! the value. The last level holds most of the data, so values are in place there: scans of most of the data
//! follow no pointers.
//!
//! Each compaction decides anew which levels have values in place. So the values of one level may be in
//! several places. Each entry says where its own value is.
//!
//! I1. A value in place stays there: nothing moves it to a transient log.
//! I2. A value of less than [`VALUE_BYTES_SEPARATED_MIN`] bytes is small under all options.
//! I3. A value of more than [`VALUE_BYTES_IN_PLACE_MAX`] bytes is large under all options.

use super::tree::Tree;
use crate::base::limits::{VALUE_BYTES_IN_PLACE_MAX, VALUE_BYTES_SEPARATED_MIN};
use crate::options::{KeyspaceOptions, MediumInPlace, MediumOrder};

/// The class of a value by its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It is beside its key.
    Small,
    /// A flush writes it to a transient log, unless keys come in order. A compaction into a deep level puts it beside
    /// its key again.
    Medium,
    /// A commit writes it to a value log, once.
    Large,
}

/// Where a flush writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushPlace {
    /// Into the table, beside its key.
    Table,
    /// Into the transient log of the flush.
    TransientLog,
    /// Into a value log of the flush: the value comes from operands, since commits write large values to value logs.
    ValueLog,
}

/// The class of a value of `value_bytes` under a key of `key_bytes`.
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

/// Where a flush writes such a value. Medium values [stay](mediums_stay) in the table or not.
pub(crate) fn place_at_flush(
    key_bytes: usize,
    value_bytes: usize,
    mediums_stay: bool,
    options: &KeyspaceOptions,
) -> FlushPlace {
    match class(key_bytes, value_bytes, options) {
        Class::Medium if !mediums_stay => FlushPlace::TransientLog,
        Class::Large => FlushPlace::ValueLog,
        Class::Small | Class::Medium => FlushPlace::Table,
    }
}

/// Whether a flush leaves medium values beside their keys: if the tree has files and none of them, from its smallest to
/// its largest key, overlaps the keys of the flush.
///
/// Keys come in order then, or nearly. While nothing overlaps such a table later, it goes down by trivial moves alone.
/// A transient log would only add one more read and write of its values. If something overlaps it, its values are
/// compacted like small ones.
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

/// The length of a transient log file beside tables of `file_bytes`. It is so short that most of it
/// is freed soon after compactions have put its values in place (D6), and so long that there
/// are not too many files.
pub(crate) fn transient_file_bytes(file_bytes: u64) -> u64 {
    file_bytes / 4
}

/// What the inputs of a compaction refer to in one transient log file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InputTransientLog {
    /// Bytes of the file.
    pub(crate) length: u64,
    /// Those of them that any entry refers to.
    pub(crate) referred_bytes: u64,
    /// Those that the inputs refer to.
    pub(crate) input_bytes: u64,
    /// How many segments of the inputs refer to it.
    pub(crate) slices: u64,
}

impl InputTransientLog {
    /// Whether a compaction that leaves values in transient logs, and writes tables of `file_bytes`, copies what its
    /// inputs refer to here to a new transient log.
    ///
    /// It does if the file is sparse (D6): at most three bytes are copied for each garbage byte. So an often
    /// overwritten key does not keep the space of its neighbours. It also does if its tables would have only
    /// thin slices of the file. Each level down cuts slices thinner by the size ratio, and a larger level has
    /// more transient logs. Without this rule a table of a large tree would refer to thousands of files, with
    /// a few values in each. With it, a value is written once more for some of the levels that it passes.
    /// Values in the `order` of their writes stay so (PX-E7), because all their slices are thin.
    pub(crate) fn is_rewritten(self, order: MediumOrder, file_bytes: u64) -> bool {
        let is_sparse = self.referred_bytes < self.length / 4 * 3;
        let thin = self.slices.saturating_mul(slice_bytes_min(file_bytes));
        is_sparse || (order == MediumOrder::Sorted && self.input_bytes < thin)
    }
}

/// Slices of transient logs are about `file_bytes` over this at least: 32 KiB with the default, which a compaction
/// reads at a time.
const SLICES_MAX: u64 = 512;

/// What tables of `file_bytes` should have at least, on average, of each transient log file that they refer to.
fn slice_bytes_min(file_bytes: u64) -> u64 {
    file_bytes / SLICES_MAX
}

/// The least length of a value log when the next one is begun.
pub(crate) fn value_log_bytes_min(options: &KeyspaceOptions) -> u64 {
    options.file_bytes.saturating_mul(4)
}

/// The length of a value log when the next one is begun, while all value logs hold `held` bytes. Value logs grow with
/// the data, because on random keys each table refers to values in nearly every value log.
pub(crate) fn value_log_bytes(held: u64, options: &KeyspaceOptions) -> u64 {
    value_log_bytes_min(options).max(held / VALUE_LOGS)
}

/// Up to this many value logs have the least length. Beyond that, the next one is this part of all of them.
const VALUE_LOGS: u64 = 512;

/// Whether a value log of `bytes` and `records` is full, so that the next one is begun, if value logs are to have
/// `log_bytes`.
pub(crate) fn is_value_log_full(bytes: u64, records: u64, log_bytes: u64) -> bool {
    bytes >= log_bytes || records >= VALUE_LOG_RECORDS_MAX
}

/// About the most records of a value log. They decide the memory that its garbage collection takes.
const VALUE_LOG_RECORDS_MAX: u64 = 1 << 19;

/// The levels of one tree into which compactions write values in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The first of them, if any.
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

    pub(crate) fn of<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> Self {
        Self::new(tree.effective_last_level(options.size_ratio), options)
    }

    /// Whether compactions into `target` put values in place; never in level 0.
    pub(crate) fn is_in_place(self, target: usize) -> bool {
        self.first.is_some_and(|first| first <= target)
    }
}
