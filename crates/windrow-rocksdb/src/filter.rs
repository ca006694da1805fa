//! Compaction filters of the caller.
//!
//! Concurrency: any thread may ask a filter at any time, as in RocksDB.

use std::sync::atomic::{AtomicUsize, Ordering};

use windrow::{Candidate, CompactionFilter, Decision, FilterError};

/// What a filter may know of the compaction that asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// Whether the program has asked for it.
    pub(crate) is_manual: bool,
}

/// Decides about a key and its value.
pub(crate) type Decide = Box<dyn Fn(Context, &[u8], &[u8]) -> Decision + Send + Sync>;

/// A filter by functions of the caller.
pub(crate) struct Filter {
    name: String,
    decide: Decide,
    /// How many manual compactions run with it.
    manual: AtomicUsize,
}

impl Filter {
    pub(crate) fn new(name: String, decide: Decide) -> Self {
        Self {
            name,
            decide,
            manual: AtomicUsize::new(0),
        }
    }

    /// What runs until the result is dropped is a manual compaction.
    pub(crate) fn manual(&self) -> Manual<'_> {
        self.manual.fetch_add(1, Ordering::Relaxed);
        Manual(self)
    }
}

/// A manual compaction that runs.
pub(crate) struct Manual<'a>(&'a Filter);

impl Drop for Manual<'_> {
    fn drop(&mut self) {
        self.0.manual.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CompactionFilter for Filter {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let context = Context {
            is_manual: self.manual.load(Ordering::Relaxed) > 0,
        };
        let value = candidate.value()?;
        Ok((self.decide)(context, candidate.key(), value))
    }
}
