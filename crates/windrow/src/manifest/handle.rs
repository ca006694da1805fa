//! Handles on the table files and value files of a keyspace.
//!
//! Versions hold the handles. The last holder of a file that the manifest has removed adds its name
//! to [`Obsolete`].
//!
//! Concurrency: everything is shared freely.

use std::sync::{Arc, OnceLock};

use crate::base::sync::Shared;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::table::{FileMeta, SegmentMeta, TableSlot};
use crate::value::{ValueFileMeta, ValueSlot};

use super::names::FileName;
use super::obsolete::{Obsolete, ObsoleteGuard};

/// A table file in use.
///
/// An append gives the file a new handle. A reader with an older handle sees the older segments.
#[derive(Debug)]
pub(crate) struct FileHandle {
    pub(crate) meta: Arc<FileMeta>,
    /// The segments that hold the smallest and the largest key.
    ends: (u8, u8),
    /// How many sorted runs range reads have visited that the file's compaction would save them: one
    /// for a file of level 0, the segments except one for a deeper file. A new handle starts at 0.
    visits: AtomicU64,
    slot: Arc<TableSlot>,
    /// Made when the file is removed or grows. Until then this handle is the only one on the file, and a database has many
    /// such files.
    guard: OnceLock<Arc<ObsoleteGuard>>,
    obsolete: Arc<Obsolete>,
}

impl FileHandle {
    /// A handle on the file that `meta` describes.
    pub(crate) fn new(meta: impl Into<Arc<FileMeta>>, obsolete: &Arc<Obsolete>) -> Shared<Self> {
        let meta = meta.into();
        Self::with_guard(meta, Arc::default(), OnceLock::new(), obsolete)
    }

    /// A handle on the same file after an append, as `meta` describes it.
    pub(crate) fn grown(&self, meta: FileMeta) -> Shared<Self> {
        let slot = Arc::new(self.slot.grown(self.meta.segments.len()));
        let guard = OnceLock::from(Arc::clone(self.guard()));
        Self::with_guard(Arc::new(meta), slot, guard, &self.obsolete)
    }

    fn with_guard(
        meta: Arc<FileMeta>,
        slot: Arc<TableSlot>,
        guard: OnceLock<Arc<ObsoleteGuard>>,
        obsolete: &Arc<Obsolete>,
    ) -> Shared<Self> {
        let segments = || (0_u8..).zip(&meta.segments);
        let smallest = segments().min_by_key(|(_, segment)| segment.smallest());
        let largest = segments().max_by_key(|(_, segment)| segment.largest());
        let position = |end: Option<(u8, &SegmentMeta)>| end.map_or(0, |(position, _)| position);
        Shared::new(Self {
            ends: (position(smallest), position(largest)),
            meta,
            visits: AtomicU64::new(0),
            slot,
            guard,
            obsolete: Arc::clone(obsolete),
        })
    }

    /// The guard of the file, which all its handles share.
    fn guard(&self) -> &Arc<ObsoleteGuard> {
        let new = || ObsoleteGuard::new(FileName::Table(self.meta.number), &self.obsolete);
        self.guard.get_or_init(new)
    }

    /// How many sorted runs range reads have visited that the file's compaction would save them.
    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    /// Counts one more such run, and returns how many there are.
    pub(crate) fn note_visit(&self) -> u64 {
        self.visits.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The smallest key.
    #[inline]
    pub(crate) fn smallest(&self) -> &[u8] {
        self.meta.segments[usize::from(self.ends.0)].smallest()
    }

    /// The largest key.
    #[inline]
    pub(crate) fn largest(&self) -> &[u8] {
        self.meta.segments[usize::from(self.ends.1)].largest()
    }

    /// The slot of the open table.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<TableSlot> {
        &self.slot
    }

    /// Whether `key` lies between the smallest and the largest key.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.smallest() <= key && key <= self.largest()
    }

    /// Records that the edit that removes the file is durable. The file is deleted after its last
    /// handle is dropped.
    pub(crate) fn mark_obsolete(&self) {
        self.guard().mark();
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if self.guard.get().is_some_and(|guard| guard.is_marked()) {
            self.slot.close(); // The file may be deleted right after its name is added.
        }
    }
}

/// A value file in use.
#[derive(Debug)]
pub(crate) struct ValueHandle {
    pub(crate) meta: ValueFileMeta,
    /// Whether it belongs to a transient log.
    pub(crate) is_transient: bool,
    pub(super) slot: Arc<ValueSlot>,
    pub(super) guard: Arc<ObsoleteGuard>,
}

impl ValueHandle {
    /// The slot of the open file.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<ValueSlot> {
        &self.slot
    }
}

impl Drop for ValueHandle {
    fn drop(&mut self) {
        if self.guard.is_marked() {
            self.slot.close();
        }
    }
}
