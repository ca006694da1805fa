//! How a large compaction is divided into subcompactions that run in parallel.

use std::borrow::Cow;

use crate::base::FileNumber;
use crate::policy::summary::FileSummary;

/// A subcompaction writes at least this many files of the target size.
const FILES_MIN: u64 = 4;

/// Where the subcompactions of a compaction of the files `above` into the sorted files `deepest` end, except the last,
/// as the keys with which the next ones begin, ascending. It appends to `targets`, writes files of `file_bytes`, and
/// puts values in transient logs in place or leaves them there. There are at most `count_max` subcompactions of about
/// the same size, and no end for a compaction that is better done in one piece.
///
/// The ends lie where files of the deepest level that takes part begin, because those are sorted and disjoint. The
/// upper files count as lying evenly over them. No end lies after a file that is appended to and before one that is
/// written anew, because the keys between them would get a file of their own.
pub(super) fn ends<K: Ord + Clone>(
    above: &[Cow<'_, FileSummary<K>>],
    deepest: &[Cow<'_, FileSummary<K>>],
    targets: &[FileNumber],
    (file_bytes, is_in_place): (u64, bool),
    count_max: usize,
) -> Vec<K> {
    let is_target = |file: &FileSummary<K>| targets.contains(&file.number);
    let merged = |file: &FileSummary<K>| file.merged_cut_bytes(is_in_place);
    let sum = |all: u64, bytes: u64| all.saturating_add(bytes);
    let each = above.iter().map(|file| merged(file)).fold(0, sum);
    let each = each / (deepest.len() as u64).max(1);
    let own = |file: &FileSummary<K>| if is_target(file) { 0 } else { merged(file) };
    let bytes = deepest.iter().map(|file| sum(own(file), each)).fold(0, sum);
    let worthwhile = bytes / file_bytes.saturating_mul(FILES_MIN).max(1);
    let count = worthwhile.min(count_max as u64);
    let mut ends = Vec::new();
    let mut before = 0;
    let mut is_after_target = false;
    for file in deepest {
        // How many subcompactions should have ended by here.
        let due = u128::from(before) * u128::from(count) / u128::from(bytes.max(1));
        if due > ends.len() as u128 && (is_target(file) || !is_after_target) {
            ends.push(file.smallest.clone());
        }
        before = sum(before, sum(own(file), each));
        is_after_target = is_target(file);
    }
    ends
}
