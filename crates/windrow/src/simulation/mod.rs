//! Layer 4: the policy executed on sizes, so that the cost of a load is known before there is a disk for it.
//!
//! The policy's own code decides here, on expectations instead of entries. When a memtable is full it is flushed, and
//! jobs run until none is due ([`simulate`]). Loads with too many flushes are simulated in parts
//! ([`simulate_large`]). A petabyte takes half a minute under the default options.
//!
//! Owns the description of a [`Load`] and of its [`Outcome`]. No I/O, no randomness: a load has one outcome.
//!
//! I1. The tree is one that the invariants of the policy hold for.
//! I2. No insert is lost: compactions write what they read.

mod entry_sizes;
mod formula;
mod key_space;
mod large;
mod lifetimes;
mod live;
mod load;
mod mass;
mod merge;
mod outcome;
mod part;
mod references;
mod run;
mod transient_logs;
mod tree;
mod value_file;
mod value_files;

pub use formula::write_amplification_bound;
pub use large::{Estimate, level_count, simulate_large};
pub use load::{KeyDistribution, Load, ValueSize};
pub use outcome::{Interval, IoStats, LevelShape, Outcome, Sample, ValueSpace};
pub use run::simulate;

pub use crate::base::LevelIoStats;
pub use crate::policy::{Class as ValueClass, class as value_class};

#[cfg(test)]
mod tests;
