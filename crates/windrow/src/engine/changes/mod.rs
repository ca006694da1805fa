//! The change feed: committed batches in their order, from the write-ahead logs.
//!
//! - [`feed`]: the reader of the logs, which gives out each batch once.
//! - [`look`]: how far a feed may read, and the names of keyspaces.
//! - [`committed`]: a batch as it was written, with values in the place of pointers.
//! - [`logged`]: a record as it was logged, in the form of an archive.
//! - [`consumers`]: named consumers, their places, and the logs that are kept for them.
//! - [`notice`]: the wake-up of threads that wait for the next commit.
//! - [`tasks`]: the tasks that wait for the next change, and the thread that wakes them.
//!
//! Invariants:
//! - I1: A feed gives out every change from its beginning on once, in the commit order, or an error. It never leaves a gap.
//!   So each look also asks whether the consumer of the feed still holds what comes next.
//! - I2: It gives out only what is visible and durable: after a power failure a later write could have the sequence number
//!   of one that was lost.
//! - I3: What a consumer has not acknowledged stays, over opens, until the consumer falls behind. The edit that makes a
//!   log unnecessary to recovery also keeps it.
//! - I4: A feed holds no lock that writers take, except for a few instructions, and during a sync the one of the log. A
//!   writer pays for feeds only while one waits.
//!
//! Concurrency: each feed has one user. Everything else is for any thread.

mod committed;
mod consumers;
mod feed;
mod logged;
mod look;
#[cfg(all(test, loom))]
mod models;
mod notice;
mod tasks;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;

pub(crate) use committed::{CommittedBatch, CommittedChange};
pub use consumers::ConsumerStats;
pub(super) use consumers::present;
pub(crate) use feed::ChangeFeed;
pub(super) use logged::{Logged, LoggedBody};
pub(crate) use notice::CommitNotice;
pub(crate) use tasks::PendingTasks;
