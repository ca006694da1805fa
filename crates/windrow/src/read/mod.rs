//! Layer 4: point reads, merging cursors, visibility.
//!
//! [`get`] asks sources one after the other; [`source`], [`run`] and [`merge`] make one sorted stream
//! of them, [`visible`] shows what a reader sees of it, and [`values`] fetches values that stand
//! apart, which [`ahead`] has the system bring in before. [`state`] is what a reader holds.

mod ahead;
pub(crate) mod get;
pub(crate) mod merge;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod tombstone_span;
pub(crate) mod values;
pub(crate) mod visible;

#[cfg(test)]
mod tests;
