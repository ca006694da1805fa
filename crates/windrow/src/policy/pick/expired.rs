//! Expired entries: whole files of them go by an edit alone, and files with many of them are rewritten.
//!
//! A file goes without being read if every entry is expired or a tombstone, all readers find them, and nothing older is in
//! its range: then they find nothing there, with the file or without it. A snapshot that is older than an entry keeps the
//! file, because the commit of its transaction must find that the key was written. Files that refer to value logs are rewritten instead, because
//! the rewrite lists the values that it drops.
//!
//! Expired entries take at most the part [`EXPIRED_SPACE`] of the space that `max_space_amp` leaves above the others.
//! If they take more, a file with the largest part of them is rewritten, where it is. How many there are is estimated, from
//! the moments by which each eighth of a segment has expired. Parts of files are compared in eighths, too, as bounds of chunks
//! are, so a plan looks at the files of few chunks.
//!
//! I1. The estimate of a file that was rewritten is zero until another entry expires, and it is wrong by about an eighth of
//!     what expires. So rewrites end, and a file is not rewritten for a few entries while expired ones may take more than an
//!     eighth.

use super::compaction::compact_group;
use super::groups::RunGroup;
use super::plan::{Plan, Purpose};
use super::rewrite::{best, rewrite_file};
use super::rules::Rules;
use crate::options::KeyspaceOptions;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Bounds, Sum, Tree};
use crate::table::Expiring;

/// The part of the space above the live data that expired entries may take. Levels above the last one have the rest.
const EXPIRED_SPACE: f64 = 0.5;

/// The most files that go by one edit.
const FILES_MAX: usize = 64;

/// Drops files of the deepest level that has files of expired entries alone.
pub(super) fn drop_files<K: Ord + Clone>(tree: &dyn Tree<K>) -> Option<Plan<K>> {
    (0..tree.depth()).rev().find_map(|level| {
        let goes = |position: &usize| {
            let file = tree.file(level, *position);
            let is_alone = |older: usize| {
                let older = tree.file(0, older);
                older.largest < file.smallest || file.largest < older.smallest
            };
            let mut older = match level {
                0 => position + 1..tree.len(0),
                _ => 0..0,
            };
            !file.busy
                && file.is_expired
                && file.log_bytes == 0
                && !tree.overlaps_below(level, &file.smallest, &file.largest)
                && older.all(is_alone)
        };
        let files: Vec<_> = (0..tree.chunks(level))
            .filter(|&chunk| tree.bounds(level, chunk).may_be_expired)
            .flat_map(|chunk| tree.chunk(level, chunk))
            .filter(goes)
            .take(FILES_MAX)
            .map(|position| tree.file(level, position).number)
            .collect();
        (!files.is_empty()).then_some(Plan::Drop { level, files })
    })
}

/// Rewrites the file with the largest part of expired entries if they take too much space. Runs of level 0 that have a
/// larger part go down instead.
pub(super) fn rewrite<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    groups: &[RunGroup<K>],
    first: usize,
) -> Option<Plan<K>> {
    if !is_too_much(tree, options) {
        return None;
    }
    let most = |_, chunk: &Bounds| Some(eighths(chunk.expired_part_max)).filter(|most| *most > 0.0);
    let part = |_, file: &FileSummary<K>| {
        let part = eighths(expired_part(file));
        (part > 0.0).then_some(part)
    };
    let plan = |(level, position)| {
        let part = expired_part(&tree.file(level, position));
        let plan = rewrite_file(tree, rules, (level, position), Purpose::Expiry)?;
        Some((part, plan))
    };
    let file = best(tree, first..tree.depth(), most, part, plan);
    let mut groups_by_part: Vec<(f64, &RunGroup<K>)> = groups
        .iter()
        .filter(|_| first == 1)
        .map(|group| (expired_part_of_runs(tree, group), group))
        .filter(|(part, _)| *part > file.as_ref().map_or(0.0, |(part, _)| *part))
        .collect();
    groups_by_part.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let mut groups_by_part = groups_by_part.into_iter();
    groups_by_part
        .find_map(|(_, group)| compact_group(tree, rules, group, groups))
        .or(file.map(|(_, plan)| plan))
}

/// The part of the bytes that a compaction of a group of level 0 rewrites, in level 1 as well, which belong to expired
/// entries of the group.
fn expired_part_of_runs<K: Clone>(tree: &dyn Tree<K>, group: &RunGroup<K>) -> f64 {
    let lower = tree.overlapping(1, &group.smallest, &group.largest);
    let (mut expired, mut rewritten) = (0_u64, tree.sum_within(1, lower, Sum::HeldBytes));
    for run in group.runs.iter().map(|&run| tree.file(0, run)) {
        let own = run.held_bytes();
        expired = expired.saturating_add(run.expired_bytes.min(own));
        rewritten = rewritten.saturating_add(own);
    }
    expired as f64 / rewritten.max(1) as f64
}

/// The eighths of a part, the last one whole.
fn eighths(part: f64) -> f64 {
    (part * Expiring::PARTS as f64).ceil()
}

/// The part of the bytes of `file` that belong to expired entries.
fn expired_part<K: Clone>(file: &FileSummary<K>) -> f64 {
    let held = file.held_bytes();
    file.expired_bytes.min(held) as f64 / held.max(1) as f64
}

/// Whether expired entries of idle files take more than their part of the space. Only earlier readers need a look at the
/// files: they still see some of what has expired by now.
fn is_too_much<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> bool {
    let space = (options.max_space_amp - 1.0) * EXPIRED_SPACE;
    if space.is_infinite() {
        return false;
    }
    let held = tree.total(Sum::HeldBytes);
    let takes_too_much =
        |expired: u64| expired as f64 > space * held.saturating_sub(expired) as f64;
    takes_too_much(tree.expired_bytes())
        && (!tree.has_earlier_readers() || takes_too_much(expired_for_all(tree)))
}

/// About how many bytes of idle files belong to entries that every reader finds expired.
fn expired_for_all<K: Clone>(tree: &dyn Tree<K>) -> u64 {
    let chunks = |level| (0..tree.chunks(level)).map(move |chunk| (level, chunk));
    (0..tree.depth())
        .flat_map(chunks)
        .filter(|&(level, chunk)| tree.bounds(level, chunk).expired_part_max > 0.0)
        .flat_map(|(level, chunk)| tree.chunk(level, chunk).map(move |file| (level, file)))
        .map(|(level, position)| tree.file(level, position))
        .filter(|file| !file.busy)
        .map(|file| file.expired_bytes.min(file.held_bytes()))
        .fold(0, u64::saturating_add)
}
