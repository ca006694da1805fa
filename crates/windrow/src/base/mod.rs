//! Layer 0: the types that every other layer uses.
//!
//! Owns errors, identifiers, sequence numbers, entry kinds, limits, memory trackers, I/O statistics
//! and the facade over synchronisation primitives. No I/O, no threads, no clocks.

pub(crate) mod cursor;
pub(crate) mod error;
pub(crate) mod expiry;
pub(crate) mod gate;
pub(crate) mod ids;
mod io_stats;
pub(crate) mod key;
pub(crate) mod lifetime;
pub mod limits;
pub(crate) mod memory_tracker;
pub(crate) mod prefix_index;
mod proposal;
pub(crate) mod range_tombstones;
pub(crate) mod running_mean;
mod striped;
pub(crate) mod sync;
mod token_bucket;

pub(crate) use cursor::{Cursor, Direction, Sibling, Step};
pub use error::{Error, ErrorKind, Result};
pub use expiry::Expiry;
pub(crate) use expiry::Moment;
pub(crate) use ids::PREPARED_KEYSPACE;
pub use ids::{FileNumber, KeyspaceId, SegmentId};
pub use io_stats::LevelIoStats;
pub(crate) use io_stats::{Cause, IoStatsByLevel};
pub(crate) use key::Trailer;
pub use key::{Kind, SequenceNumber};
pub use lifetime::LifetimeStats;
pub(crate) use lifetime::{LifetimeCounters, Totals};
pub(crate) use memory_tracker::{Held, MemoryTracker};
pub(crate) use proposal::Proposal;
pub(crate) use range_tombstones::{RangeTombstone, RangeTombstones};
pub(crate) use striped::Striped;
pub(crate) use token_bucket::TokenBucket;
