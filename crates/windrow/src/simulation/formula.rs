//! A bound on what compactions write, as one formula (D0). It holds if pieces are worth a sync and space does not limit
//! appends.
//!
//! In one cycle a file of size S that may have m segments receives m pieces of `S/r`. All except the last are
//! appended. With the last one everything is written anew. For each byte that comes into the level that is
//! `2 - 1/m + r/m`: `1 + r` without appends, towards 2 with many. The formula takes every level as full and every
//! file as compacted just after it was written anew, so it is an upper bound.

use crate::base::FileNumber;
use crate::base::limits::TABLE_FILES_MAX;
use crate::options::KeyspaceOptions;
use crate::policy::{FileSummary, TreeSummary, capacities, segment_limits};

/// Bytes that compactions into a level of `ratio` times the bytes of the one above write for each byte that
/// comes into it, if files may have this many `segments`.
fn written_per_byte(ratio: f64, segments: usize) -> f64 {
    let segments = segments.max(1) as f64;
    2.0 - 1.0 / segments + ratio / segments
}

/// The bound on bytes written for each byte given while a tree has `level_count` levels: to the write-ahead log, by
/// flushes, and by compactions into each level. Entries take `table_bytes` in tables for each byte given.
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

/// A tree in which each level has one file of the level's capacity.
fn full(capacities: &[u64]) -> TreeSummary<u64> {
    // Their sum must not overflow. Only their proportions count.
    let file = |bytes: &u64| {
        let bytes = (bytes / 64).max(1);
        vec![FileSummary::new(FileNumber(1), (0, u64::MAX), bytes, 1)]
    };
    let levels = capacities.iter().map(file).collect();
    TreeSummary::new(capacities.len() - 1, levels, TABLE_FILES_MAX)
}
