//! Layer 3: what the tree should look like, and the next job that brings it there.
//!
//! Pure functions from the tree, as the trait [`Tree`] shows it, and the options to a plan. The engine executes the
//! plan on disk; tests and the simulation execute the same plan on numbers. Keys are of any ordered type, so a boundary
//! can be a byte string or an integer.
//!
//! Owns capacities, scores, the choice of the next job ([`pick`]), the plan of a compaction's output
//! ([`output`]), the place of values, the choice of value logs for garbage collection, what consumers of changes may hold, the
//! order and the times of scrubs, write throttling, and filter bits. No I/O, no state, no locks.
//!
//! Invariants of every plan, given a tree that obeys I1:
//!
//! - I1: in a level from 1 on, files are disjoint at user-key granularity and sorted; level 0 is
//!   ordered by age, newest first.
//! - I2: executed, a plan leaves I1 true, also when running plans finish in any order.
//! - I3: for one key, a newer version never ends up below an older one, nor beside it in a level.
//! - I4: a busy file is never an input.
//! - I5: from any tree, executing plans ends in `Plan::Idle` with every level within capacity, and
//!   without [debt in transient logs](pick).

mod append;
mod capacities;
mod change_retention;
mod filters;
mod garbage_collection;
mod ingestion;
mod moved_values;
mod output;
mod page_cache;
mod pick;
mod placement;
mod scores;
mod scrub;
mod summary;
mod throttle;
mod tombstones;
mod tree;
mod tree_summary;

pub(crate) use append::segment_limits;
pub(crate) use capacities::{bounded_capacities, capacities, next_allowed, whole};
pub(crate) use change_retention::{ConsumerPlace, HeldBytes, falls_behind};
pub(crate) use filters::{
    allocate_filters, filter_units, flush_fraction, is_allocation_due, price_alone,
};
pub(crate) use garbage_collection::{
    VICTIMS_MAX, bytes_held, garbage_excess, values_behind_max, victims, wants_seal,
};
pub(crate) use ingestion::{NewTable, bulk_load_output, ingestion_plan};
pub(crate) use moved_values::{MovedValues, ReferredLog};
pub(crate) use output::{
    DeeperLevels, Met, OutputCutter, OutputPlan, OutputUnits, ReadPoints, TransientLogFate,
    Verdict, hides_all, is_offered, keep, keep_range,
};
pub(crate) use page_cache::stays_in_page_cache;
pub(crate) use pick::{Compaction, ManualCompaction, Plan, Purpose, plan, plan_range};
pub use placement::{Class, class};
pub(crate) use placement::{
    FlushPlace, InputTransientLog, Placement, is_value_log_full, mediums_stay, place_at_flush,
    transient_file_bytes, value_log_bytes,
};
pub(crate) use scores::pending_bytes;
pub(crate) use scrub::ScrubPass;
pub(crate) use summary::{
    Claim, FileSummary, SegmentSummary, TRANSIENT_PARTS, cut_bytes, merged_cut_bytes,
};
pub use throttle::StallCause;
pub(crate) use throttle::{
    Backlog, SharedBacklog, Throttle, memtable_throttle, memtables_may_slow, shared_throttle,
    throttle,
};

pub(crate) use tombstones::{is_flush_worthwhile, is_idle};
pub(crate) use tree::{Bounds, Sum, Tree};
pub(crate) use tree_summary::TreeSummary;

#[cfg(test)]
mod tests;
