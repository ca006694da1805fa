//! How the engine bounds the speed of writers and jobs, and its memory.
//!
//! - [`debt`]: the throttle of a keyspace.
//! - [`stall`]: delays and stops of writers.
//! - [`rate_limiter`]: the bytes per second that jobs may write.
//! - [`memory`]: the memory budget and what uses it.

mod debt;
pub(super) mod memory;
pub(super) mod rate_limiter;
pub(super) mod stall;
