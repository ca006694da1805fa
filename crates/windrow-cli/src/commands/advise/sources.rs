//! What is known of a load: from the statistics of a store, or from a trace.
//!
//! Concurrency: none.

mod statistics;
mod trace;

pub(super) use self::statistics::statistics;
pub(super) use self::trace::trace;
