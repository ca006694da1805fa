//! The measures of a load: time, operations and latencies of each thread, and the time series.

pub(crate) mod caches;
pub(crate) mod child_process;
pub(crate) mod device;
pub(crate) mod gauge;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod rate_limiter;
pub(crate) mod series;
pub(crate) mod stopwatch;
pub(crate) mod tally;
