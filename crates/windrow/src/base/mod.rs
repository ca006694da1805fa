//! Layer 0: the words that every other layer speaks.
//!
//! Owns errors, identifiers, sequence numbers, entry kinds, limits, accounts of memory, counts of
//! traffic and the facade over synchronisation primitives. No I/O, no threads, no clocks.

pub(crate) mod account;
pub(crate) mod cursor;
pub(crate) mod error;
pub(crate) mod ids;
pub(crate) mod key;
pub mod limits;
pub(crate) mod prefix_index;
mod striped;
pub(crate) mod sync;
mod traffic;

pub(crate) use account::{Account, Held};
pub(crate) use cursor::{Cursor, Sibling, Step};
pub use error::{Error, ErrorKind, Result};
pub use ids::{FileNumber, KeyspaceId, SegmentId};
pub(crate) use key::Trailer;
pub use key::{Kind, SequenceNumber};
pub(crate) use striped::Striped;
pub use traffic::LevelTraffic;
pub(crate) use traffic::{Cause, TrafficByLevel};
