//! The range tombstones that a job, or a part of one, meets.
//!
//! The job knows all of them before it begins, from the memtable or from the lists of its tables. They are cut to the
//! keys that its output may cover. So the parts of one range tombstone stay disjoint wherever jobs and cuts divide it, and
//! no two sources hold the same entry.
//!
//! Concurrency: owned by one job.

use std::sync::Arc;

use crate::base::range_tombstones::Limit;
use crate::base::{RangeTombstone, RangeTombstones};

/// The range tombstones of a job or a subcompaction.
#[derive(Debug, Default)]
pub(crate) struct JobRanges {
    pub(super) all: RangeTombstones,
    /// Those that begin before the subcompaction, cut to begin with it; ascending by sequence number.
    pub(super) continued: Vec<RangeTombstone>,
}

impl JobRanges {
    /// Of `tombstones`, for the keys from `from` on up to `limit`: a key, or the largest of all sources.
    pub(crate) fn new(
        tombstones: impl IntoIterator<Item = RangeTombstone>,
        from: Option<&[u8]>,
        limit: &[u8],
    ) -> Self {
        let mut continued = Vec::new();
        let mut all = Vec::new();
        let limit = Limit::new(limit);
        let from: Option<Arc<[u8]>> = from.map(Arc::from);
        for tombstone in tombstones {
            let Some(mut within) = tombstone.up_to(&limit) else {
                continue;
            };
            if let Some(from) = &from
                && within.start < *from
            {
                if within.end <= *from {
                    continue;
                }
                within.start = Arc::clone(from);
                continued.push(within.clone());
            }
            all.push(within);
        }
        continued.sort_by_key(|tombstone| tombstone.sequence);
        Self {
            all: RangeTombstones::new(all),
            continued,
        }
    }
}
