//! Whether what a job writes stays in the page cache, by what was resident of the inputs for it.
//!
//! Concurrency: owned by one job. Each writer of the job has its own.

use std::sync::Arc;

use crate::policy::stays_in_page_cache;
use crate::vfs::PassedBytes;

/// The inputs of a writer since its last whole piece.
#[derive(Debug, Default)]
pub(super) struct Residence {
    passed: Arc<PassedBytes>,
    /// The totals at the last piece.
    seen: (u64, u64),
}

impl Residence {
    /// For a writer of the job whose inputs count what they pass in `passed`.
    pub(super) fn new(passed: Arc<PassedBytes>) -> Self {
        Self {
            passed,
            seen: (0, 0),
        }
    }

    /// Whether the pieces that were written since the last call stay.
    pub(super) fn stays(&mut self) -> bool {
        let before = std::mem::replace(&mut self.seen, self.passed.totals());
        stays_in_page_cache(self.seen.0 - before.0, self.seen.1 - before.1)
    }
}
