//! The kinds of work that loads are made of.

use crate::Transactions;
use crate::data::ycsb::Workload;

/// Bytes of the values of fill100K.
pub(crate) const LARGE_VALUE_BYTES: usize = 100_000;

/// The work of the threads of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Write(Keys),
    Update,
    Append,
    Delete(Keys),
    Read(Keys),
    MultiRead,
    ReadOrWrite,
    Walk(Direction),
    Open,
    /// Steps and their direction, if the load and not the arguments determines them.
    Seek(Option<u32>, Option<Direction>),
    MixGraph,
    Replay,
    Insert,
    Records(Workload),
    Count(Counting),
    Post(Posting),
    BulkLoad,
    Ingest,
    /// A full compaction with a filter.
    Filter,
    /// Estimates of the bytes between two keys.
    Size,
    DeleteRange,
    /// Scans from before the deleted range to behind it.
    SeekAcross,
    /// Takes the first entry of each of this number of queues in turn.
    Pop(u64),
    Store(Maintenance),
    Machine(Machine),
}

impl Work {
    /// Whether an operation needs two counters.
    pub(crate) fn is_on_pairs(self) -> bool {
        matches!(
            self,
            Self::Count(Counting::Pair(_) | Counting::PreparedPair)
        )
    }
}

/// The keys that a load picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    InOrder,
    Random,
    /// Each key once, in random order.
    Shuffled,
    /// Random keys of the first hundredth.
    Hot,
    /// Random keys that do not exist, each directly after one that may.
    Missing,
}

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// An operation on counters: values that begin with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Puts zero at each key in order.
    Fill,
    Read,
    /// Puts a number without a read.
    Put,
    /// Increments by the merge operator.
    Merge,
    /// Increments by a get and a put.
    ReadPut,
    /// Increments by an update in one step.
    Update,
    /// Increments two counters by two gets and two puts, in a transaction or not.
    Pair(Option<Transactions>),
    /// The same in a transaction with two phases.
    PreparedPair,
}

/// An operation on postings: values that are lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posting {
    Read,
    /// Appends by the merge operator.
    Merge,
    /// Appends by a get and a put.
    ReadPut,
}

/// What a store holds for loads. Loads on one kind do not know the values of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The entries of `db_bench`.
    Entries,
    /// YCSB's records.
    Records,
    Counters,
    Postings,
}

impl Kind {
    /// The loads that fill a store with it.
    pub(crate) fn fills(self) -> &'static str {
        match self {
            Self::Entries => "fillseq or fillrandom",
            Self::Records => "ycsb-load",
            Self::Counters => "fillcounters",
            Self::Postings => "mergepostings or appendpostings",
        }
    }
}

/// An operation on the whole store, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintenance {
    Compact,
    Flush,
    Settle,
    Show,
}

/// A measurement of the machine, not of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    Hash32,
    Hash64,
    Hash3,
    Compress,
    Decompress,
}

/// The companion thread of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Companion {
    Writer,
    Scanner,
}
