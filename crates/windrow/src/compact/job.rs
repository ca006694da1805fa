//! The interface between jobs and the engine.
//!
//! Concurrency: each job has one thread; a context serves many jobs.

use std::path::Path;
use std::sync::Arc;

use crate::base::{MemoryTracker, Result, SegmentId};
use crate::vfs::Vfs;

/// How urgent a job's writes are, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IoPriority {
    /// A flush: queued writers need the memory of its memtable.
    Flush,
    /// A compaction of level 0: reads slow down with the number of its runs.
    Level0,
    /// A compaction of deeper levels, or a garbage collection.
    Compaction,
}

/// Fails with the reason if the job is cancelled.
pub(crate) type CancelCheck<'a> = &'a dyn Fn() -> Result<()>;

/// The services of the engine for a job.
pub(crate) trait JobContext {
    /// The file system.
    fn vfs(&self) -> &dyn Vfs;
    /// The folder of the database.
    fn directory(&self) -> &Path;
    /// A new id.
    fn allocate_id(&self) -> Result<u64>;
    /// Makes the file names in the folder durable.
    fn sync_directory(&self) -> Result<()>;
    /// Waits until a job of `priority` may write `bytes` more, or fails if `cancel` does.
    fn request_io(&self, priority: IoPriority, bytes: u64, cancel: CancelCheck<'_>) -> Result<()>;
    /// Fails with `NoSpace` if the disk has so little space left that writers may soon need it. A job of `priority`
    /// that has more to write calls it after each request.
    fn leave_space(&self, priority: IoPriority) -> Result<()>;
    /// Notes that a job has written `segment` durably, whose blocks readers find in the page cache as they were written.
    fn note_written(&self, segment: SegmentId);
    /// The tracker of the buffers of jobs.
    fn memory(&self) -> &Arc<MemoryTracker>;
}
