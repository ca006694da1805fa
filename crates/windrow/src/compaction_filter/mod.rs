//! Layer 1: compaction filters, which judge values while compactions rewrite them.
//!
//! I1. A filter is only called through [`judge`], which catches its panics and checks its results.
//!
//! Concurrency: any number of threads call a filter at once.

mod candidate;
mod filter;
mod registry;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::limits::VALUE_BYTES_MAX;
pub(crate) use candidate::Content;
pub use candidate::{Candidate, FilterError};
pub use filter::{CompactionFilter, Decision};
pub(crate) use registry::CompactionFilters;

/// What `filter` decides about `candidate`; `None` if it fails, or if a value that is needed cannot be read. A
/// replacement by the same value is none.
pub(crate) fn judge(filter: &dyn CompactionFilter, candidate: &Candidate<'_>) -> Option<Decision> {
    let called = catch_unwind(AssertUnwindSafe(|| filter.decide(candidate)));
    if candidate.is_unreadable() {
        return None;
    }
    match called {
        Ok(Ok(Decision::Replace(value))) if value.len() > VALUE_BYTES_MAX => None,
        Ok(Ok(Decision::Replace(value))) => match candidate.has_value(&value) {
            Ok(true) => Some(Decision::Keep),
            Ok(false) => Some(Decision::Replace(value)),
            Err(_) => None,
        },
        Ok(Ok(decision)) => Some(decision),
        Ok(Err(_)) | Err(_) => None,
    }
}
