//! The kinds of work that loads are made of.

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
    Store(Maintenance),
    Machine(Machine),
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
