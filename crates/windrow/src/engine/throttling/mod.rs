//! How the engine bounds the speed of writers and jobs, and its memory.
//!
//! - [`stall`]: delays and stops of writers.
//! - [`rate_limiter`]: the bytes per second that jobs may write.
//! - [`memory`]: the memory budget and what uses it.

pub(super) mod memory;
pub(super) mod rate_limiter;
pub(super) mod stall;
