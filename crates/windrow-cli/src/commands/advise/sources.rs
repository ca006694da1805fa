//! The sources of a load: the statistics of a store, or a trace.
//!
//! Concurrency: none.

mod statistics;
mod trace;

pub(super) use self::statistics::statistics;
pub(super) use self::trace::trace;
