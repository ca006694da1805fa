//! How the engine bounds the speed of writers and jobs, and its memory.
//!
//! - [`debt`]: the throttle of a keyspace.
//! - [`stall`]: delays and stops of writers; [`atomic_throttle`]: the state that they share.
//! - [`rate_limiter`]: the bytes per second that jobs may write.
//! - [`memory`]: the memory budget and what uses it; [`memtable_use`]: the memtables' part.

pub(super) mod atomic_throttle;
mod debt;
pub(super) mod memory;
mod memtable_use;
pub(super) mod rate_limiter;
pub(super) mod stall;
