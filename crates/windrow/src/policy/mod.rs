//! Layer 3: what the tree should look like, and what to do next to get there.
//!
//! The brain without hands: pure functions from a summary of the tree and the options to a plan.
//! The engine carries a plan out on disk; tests and simulations carry the same plan out on numbers.
//! Keys are any ordered type, so a boundary can be a byte string or an integer.
//!
//! Owns capacities, scores, the choice of the next job, what is appended where, where values stand, write pressure, the rules
//! by which a merge drops entries, where it cuts its output, and filter bits. No I/O, no state, no locks.
//!
//! Invariants of every plan, given a summary that obeys I1:
//!
//! - I1: in a level from 1 on, files are disjoint at user-key granularity and sorted; level 0 is
//!   ordered by age, newest first.
//! - I2: carried out, a plan leaves I1 true, also when running plans finish in any order.
//! - I3: for one key, a newer version never ends up below an older one, nor beside it in a level.
//! - I4: a busy file is never an input.
//! - I5: from any tree, carrying plans out ends in `Plan::Idle` with every level within capacity, and
//!   without debt in transient logs (`debt`).

mod append;
mod capacities;
mod cut;
mod debt;
mod filters;
mod fractions;
mod garbage_collection;
mod inputs;
mod level_zero;
mod pick;
mod placement;
mod retention;
mod scores;
mod split;
mod summary;
mod throttle;

pub(crate) use append::{Zones, segment_limits};
pub(crate) use capacities::{
    bounded_capacities, capacities, next_allowed, target_file_bytes, whole,
};
pub(crate) use cut::OutputCutter;
pub(crate) use filters::{
    allocate_filters, filter_units, flush_fraction, output_fractions, price_alone,
};
pub(crate) use garbage_collection::{
    LogSummary, VICTIMS_MAX, bytes_held, garbage_excess, values_behind_max, victims, wants_seal,
};
pub(crate) use pick::{Plan, Purpose, Wanted, plan, plan_range};
pub use placement::{Class, class};
pub(crate) use placement::{
    FlushPlace, MetTransientLog, Placement, is_value_log_full, mediums_stay, place_at_flush,
    transient_file_bytes, value_log_bytes,
};
pub(crate) use retention::{DeeperLevels, ReadPoints, Verdict, keep};
pub(crate) use scores::pending_bytes;
pub(crate) use split::part_ends;
pub(crate) use summary::{
    Claim, FileSummary, SegmentSummary, TRANSIENT_PARTS, TreeSummary, cut_bytes, merged_cut_bytes,
};
pub use throttle::StallCause;
pub(crate) use throttle::{
    Backlog, SharedBacklog, Throttle, memtable_throttle, memtables_may_slow, shared_throttle,
    throttle,
};

#[cfg(test)]
mod tests;
