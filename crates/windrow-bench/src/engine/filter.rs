//! Windrow's compaction filter of the load `compactfiltered`.

use std::sync::atomic::{AtomicBool, Ordering};

use windrow::{Candidate, CompactionFilter, Decision, FilterError};

use crate::is_filtered;

/// Removes what [`is_filtered`] says while it is on.
#[derive(Debug, Default)]
pub(super) struct Filter {
    is_on: AtomicBool,
}

impl Filter {
    pub(super) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }
}

impl CompactionFilter for Filter {
    fn name(&self) -> &'static str {
        "windrow-bench.odd-keys"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        if self.is_on.load(Ordering::Relaxed) && is_filtered(candidate.key()) {
            return Ok(Decision::Remove);
        }
        Ok(Decision::Keep)
    }
}
