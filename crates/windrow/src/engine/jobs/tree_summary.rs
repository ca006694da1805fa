//! The summary of a version for the policy: numbers and key bounds, and no access to files.

use std::time::Duration;

use crate::base::limits::TABLE_FILES_MAX;
use crate::base::sync::Shared;
use crate::engine::keyspace::KeyspaceWork;
use crate::manifest::{FileHandle, ValueLogUsage, Version};
use crate::policy::{Claim, FileSummary, LogSummary, SegmentSummary, TreeSummary};
use crate::table::SegmentMeta;

/// Summarizes `version` for the policy.
pub(in crate::engine) fn summary<'a>(
    version: &'a Version,
    work: &'a KeyspaceWork,
) -> TreeSummary<&'a [u8]> {
    let segment = |segment: &SegmentMeta| SegmentSummary {
        bytes: segment.length,
        entries: segment.entries,
        sequence_min: segment.sequence_min,
        overwrites: segment.overwrites,
        filter_units: segment.filter_units,
    };
    let file = |file: &'a Shared<FileHandle>| FileSummary {
        number: file.meta.number,
        smallest: file.smallest(),
        largest: file.largest(),
        bytes: file.meta.bytes(),
        logical_bytes: file.meta.logical_bytes(),
        entries: file.meta.entries(),
        tombstones: file.meta.tombstones(),
        sequence_min: file.meta.sequence_min(),
        transient_bytes: file.meta.transient_bytes(),
        pinned_bytes: version.values().pinned_bytes(&file.meta),
        transient_files: file.meta.transient_files(),
        log_bytes: file.meta.log_bytes(),
        moved_bytes: version.values().relocated_bytes(&file.meta),
        segments: file.meta.segments.iter().map(segment).collect(),
        visits: file.visits(),
        sealed: file.meta.sealed,
        busy: work.busy.contains(&file.meta.number),
    };
    let mut logs: Vec<LogSummary> = version.logs().iter().map(log_summary).collect();
    // A job that takes logs checks itself whether their pause is over.
    work.gc_backoffs.annotate(&mut logs, Duration::MAX);
    TreeSummary {
        level_count: work.level_count,
        levels: version
            .levels()
            .iter()
            .map(|level| level.files().iter().map(file).collect())
            .collect(),
        claims: work.claims.iter().map(Claim::borrowed).collect(),
        allowed: work.allowed.clone(),
        files_max: TABLE_FILES_MAX,
        transient_files: version.transient_files() as u64,
        logs,
    }
}

fn log_summary(log: &ValueLogUsage) -> LogSummary {
    LogSummary {
        number: log.file.number,
        table_bytes: log.file.end - log.file.length,
        live_bytes: log.live.bytes,
        // Memtables may refer to values that no table refers to.
        garbage_bytes: if log.is_collectable || log.is_open {
            log.file.length - log.live.bytes
        } else {
            0
        },
        moves: log.file.entries + log.relocated_entries,
        is_ready: log.is_collectable,
        is_open: log.is_open,
        failures: 0,
        is_resting: false,
    }
}
