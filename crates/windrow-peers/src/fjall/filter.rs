//! The compaction filter of the load `compactfiltered`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use windrow_bench::is_filtered;

/// What a database asks for the filters of its keyspaces.
type Assigner = Arc<dyn Fn(&str) -> Option<Arc<dyn Factory>> + Send + Sync>;

/// Removes what [`is_filtered`] says while it is on.
#[derive(Default)]
pub(super) struct Filter {
    is_on: AtomicBool,
}

impl Filter {
    pub(super) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Gives this filter to every keyspace.
    pub(super) fn assigner(self: &Arc<Self>) -> Assigner {
        let filter: Arc<dyn Factory> = Arc::new(Filters(Arc::clone(self)));
        Arc::new(move |_| Some(Arc::clone(&filter)))
    }
}

/// Makes the filters of compactions.
struct Filters(Arc<Filter>);

impl Factory for Filters {
    fn name(&self) -> &'static str {
        "odd-keys"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Judge {
            is_on: self.0.is_on.load(Ordering::Relaxed),
        })
    }
}

/// The filter of one compaction.
struct Judge {
    is_on: bool,
}

impl CompactionFilter for Judge {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        Ok(if self.is_on && is_filtered(item.key()) {
            Verdict::Remove
        } else {
            Verdict::Keep
        })
    }
}
