//! The context of all jobs: the files of their output, and the parts of the edit that installs it.
//!
//! Concurrency: called by the thread that runs a job.

use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{KeyspaceId, MemoryTracker, Result, SegmentId};
use crate::compact::fold::FoldCounts;
use crate::compact::job::{CancelCheck, IoPriority, JobContext};
use crate::engine::counters;
use crate::engine::{Engine, KeyspaceCore};
use crate::filter::FILTER_UNITS_MAX;
use crate::manifest::names::FileName;
use crate::manifest::{FileHandle, ManifestState, Record, Version};
use crate::options::KeyspaceOptions;
use crate::policy::ReadPoints;
use crate::read::value_reader::ValueReader;
use crate::table::{FileMeta, TableOptions};
use crate::value::{DiscardList, ValueFileMeta, ValueReadBuffers};
use crate::vfs::Vfs;

/// A file and its level.
type LeveledFile = (u8, Shared<FileHandle>);

impl Engine {
    /// Buffers for a job that reads values in the order of their keys.
    pub(in crate::engine) fn value_read_buffers(&self) -> ValueReadBuffers {
        let vfs = Arc::clone(&self.options.vfs);
        let memory = &self.memory.tables;
        ValueReadBuffers::new(vfs, self.directory.clone(), &memory.jobs, memory.jobs_max)
    }

    /// # Errors
    /// `Closed` once the close has begun, `NotFound` once `keyspace` is dropped: a job is not needed then.
    pub(in crate::engine) fn check_needed(&self, keyspace: &KeyspaceCore) -> Result<()> {
        self.check_cancelled()?;
        keyspace.check_exists()
    }

    /// The sequence numbers and moments at which readers read or may yet read.
    pub(in crate::engine) fn read_points(&self) -> ReadPoints {
        self.snapshots
            .read_points(&self.visible, || self.expiry_clock.now())
    }

    /// The current version of `keyspace` with `adds` and without `removes`, for an edit that `state`
    /// includes.
    pub(in crate::engine) fn next_version(
        &self,
        keyspace: &KeyspaceCore,
        state: &ManifestState,
        adds: &[LeveledFile],
        removes: &[LeveledFile],
    ) -> Version {
        let version = match keyspace.state().version.apply(adds, removes) {
            Ok(version) => version,
            Err(contradiction) => {
                unreachable!("a job broke the order of its level: {contradiction}")
            }
        };
        match state.keyspaces.get(&keyspace.id()) {
            Some(keyspace) => version.with_values(keyspace, &self.obsolete),
            None => unreachable!("an edit of a keyspace is refused once that is dropped"),
        }
    }

    /// Marks those of `lists` as obsolete that the edit which adds them also removes: it removes the last
    /// live values of the logs that they describe.
    pub(in crate::engine) fn remove_unneeded_lists(
        &self,
        keyspace: &KeyspaceCore,
        state: &ManifestState,
        lists: &[DiscardList],
    ) {
        let known = state.keyspaces.get(&keyspace.id());
        for list in lists {
            if known.is_some_and(|it| !it.values.discard_lists.contains_key(&list.number)) {
                self.obsolete.add(FileName::DiscardList(list.number));
            }
        }
    }

    /// Reads values of the files in `version`.
    pub(in crate::engine) fn value_reader<'a>(&'a self, version: &'a Version) -> ValueReader<'a> {
        ValueReader {
            files: version.values(),
            open: &self.values,
        }
    }

    /// Counts what a job has folded.
    pub(super) fn count_folds(&self, folds: FoldCounts) {
        counters::add(&self.counters.entries_folded, folds.folded);
        counters::add(&self.counters.folds_failed, folds.failed);
    }

    /// Handles for new files of `level`.
    pub(in crate::engine) fn handles(&self, level: usize, files: &[FileMeta]) -> Vec<LeveledFile> {
        let handle = |file: &FileMeta| FileHandle::new(file.clone(), &self.obsolete);
        files
            .iter()
            .map(|file| (on_disk(level), handle(file)))
            .collect()
    }
}

impl JobContext for Engine {
    fn vfs(&self) -> &dyn Vfs {
        &*self.options.vfs
    }

    fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    fn allocate_id(&self) -> Result<u64> {
        self.catalog.allocate()
    }

    fn sync_directory(&self) -> Result<()> {
        self.sync_directory()
    }

    fn request_io(&self, priority: IoPriority, bytes: u64, cancel: CancelCheck<'_>) -> Result<()> {
        self.limit_rate(priority, bytes, cancel)
    }

    fn note_written(&self, segment: SegmentId) {
        self.tables.context().clock.note_written(segment);
    }

    fn leave_space(&self, priority: IoPriority) -> Result<()> {
        match priority {
            IoPriority::Flush => Ok(()),
            IoPriority::Level0 | IoPriority::Compaction => self.reserve.check_left(),
        }
    }

    fn memory(&self) -> &Arc<MemoryTracker> {
        &self.memory.tables.jobs
    }
}

/// The records that add discard lists.
pub(in crate::engine) fn garbage_records(
    keyspace: KeyspaceId,
    lists: &[DiscardList],
) -> impl Iterator<Item = Record> {
    let add = move |list: &DiscardList| Record::AddDiscardList {
        keyspace,
        list: list.clone(),
    };
    lists.iter().map(add)
}

/// The records that add value logs which a job has written whole.
pub(in crate::engine) fn value_log_records(
    keyspace: KeyspaceId,
    logs: &[ValueFileMeta],
) -> impl Iterator<Item = Record> {
    let add = move |&file: &ValueFileMeta| Record::AddGcOutput { keyspace, file };
    logs.iter().map(add)
}

/// A level as in the manifest.
pub(in crate::engine) fn on_disk(level: usize) -> u8 {
    u8::try_from(level).unwrap_or(u8::MAX)
}

/// The options of tables with these filter units.
pub(in crate::engine) fn table_options(
    options: &KeyspaceOptions,
    filter_units: [f64; FILTER_UNITS_MAX],
) -> TableOptions {
    TableOptions {
        block_bytes: options.block_bytes,
        filter_units,
        compression: options.compression,
    }
}
