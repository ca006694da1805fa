//! The kinds of work that loads are made of.

use crate::data::ycsb::Workload;

/// What the threads of a load do.
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
    /// Steps and their way, where the load and not the arguments say them.
    Seek(Option<u32>, Option<Direction>),
    MixGraph,
    Replay,
    Insert,
    Records(Workload),
    Store(Maintenance),
    Machine(Machine),
}

/// Which keys a load picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    InOrder,
    Random,
    /// Each once, in random order.
    Shuffled,
    /// At random among the first hundredth.
    Hot,
    /// At random, and right behind keys that may exist.
    Missing,
}

/// The way of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// What is done once, to the whole store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maintenance {
    Compact,
    Flush,
    Settle,
    Show,
}

/// What measures the machine and not the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    Hash32,
    Hash64,
    Hash3,
    Compress,
    Decompress,
}

/// Who works beside the threads of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Companion {
    Writer,
    Scanner,
}
