//! What merges write at most, as one formula (D0), where pieces are worth a sync and
//! appends are not held back for lack of room.
//!
//! In one cycle a file of size S that may have m segments receives m pieces of `S/r`; all but the last are
//! appended, and with that one everything is written anew. For each byte that comes into the level that is
//! `2 - 1/m + r/m`: `1 + r` without appends, towards 2 with many. It takes every level for full and every
//! file for pushed down just after it was written anew, so it is an upper bound.

use crate::base::FileNumber;
use crate::base::limits::TABLE_FILES_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::{FileSummary, TreeSummary, capacities, segment_limits};

/// Bytes that merges into a level `ratio` times as large as the one above write for each byte that comes
/// into it, where files may have `segments`.
fn written_per_byte(ratio: f64, segments: usize) -> f64 {
    let segments = segments.max(1) as f64;
    2.0 - 1.0 / segments + ratio / segments
}

/// Bytes written for each byte given at most while a tree has `level_count` levels: to the log, by flushes,
/// and by merges into each level. Entries in tables take `table_bytes` for each byte that was given.
pub fn write_amplification_bound(
    options: &KeyspaceOptions,
    level_count: usize,
    table_bytes: f64,
) -> f64 {
    let capacities = capacities(options, level_count);
    let limits = segment_limits(&full(&capacities), options);
    let level = |level: usize| {
        let ratio = capacities[level] as f64 / capacities[level - 1].max(1) as f64;
        written_per_byte(ratio.max(1.0), limits[level])
    };
    1.0 + table_bytes * (1.0 + (1..=level_count).map(level).sum::<f64>())
}

/// A tree in which each level has one file as large as the level may be.
fn full(capacities: &[u64]) -> TreeSummary<u64> {
    // All together must not overflow; only their proportions count.
    let file = |bytes: u64| FileSummary {
        number: FileNumber(1),
        smallest: 0,
        largest: u64::MAX,
        bytes,
        logical_bytes: bytes,
        entries: 1,
        tombstones: 0,
        sequence_min: 1,
        transient_bytes: 0,
        pinned_bytes: 0,
        transient_files: 0,
        log_bytes: 0,
        moved_bytes: 0,
        segments: Vec::new(),
        visits: 0,
        sealed: false,
        busy: false,
    };
    TreeSummary {
        level_count: capacities.len() - 1,
        levels: capacities
            .iter()
            .map(|bytes| vec![file((bytes / 64).max(1))])
            .collect(),
        claims: Vec::new(),
        allowed: Vec::new(),
        files_max: TABLE_FILES_MAX,
        transient_files: 0,
        logs: Vec::new(),
    }
}
