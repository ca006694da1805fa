//! How a large compaction is divided into subcompactions that run in parallel.

use std::collections::BTreeSet;

use crate::base::FileNumber;
use crate::policy::pick::Compaction;
use crate::policy::summary::{FileSummary, TreeSummary};

/// A subcompaction writes at least this many files of the target size.
const FILES_MIN: u64 = 4;

/// Where the subcompactions of `compaction` end, except the last, as the keys with which the next ones begin,
/// ascending. It writes files of `file_bytes`, and puts values in transient logs in place or leaves them there. There
/// are at most `count_max` subcompactions of about the same size, and no end for a compaction that is better done in
/// one piece.
///
/// The ends lie where files of the deepest level that takes part begin, because those are sorted and disjoint. The
/// upper files count as lying evenly over them. No end lies after a file that is appended to and before one that is
/// written anew, because the keys between them would get a file of their own.
pub(super) fn ends<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    compaction: &Compaction<K>,
    (file_bytes, is_in_place): (u64, bool),
    count_max: usize,
) -> Vec<K> {
    let numbers: BTreeSet<FileNumber> = compaction
        .inputs()
        .chain(compaction.targets.iter().copied())
        .collect();
    let takes_part = |file: &&FileSummary<K>| numbers.contains(&file.number);
    let is_target = |file: &FileSummary<K>| compaction.targets.contains(&file.number);
    let Some(deepest) = (1..tree.levels.len())
        .rev()
        .find(|&level| tree.level(level).iter().any(|file| takes_part(&file)))
    else {
        return Vec::new();
    };
    let files: Vec<&FileSummary<K>> = tree.level(deepest).iter().filter(takes_part).collect();
    let above = tree.levels[..deepest].iter().flatten().filter(takes_part);
    let merged = |file: &FileSummary<K>| file.merged_cut_bytes(is_in_place);
    let each = above.map(merged).sum::<u64>() / (files.len() as u64).max(1);
    let own = |file: &FileSummary<K>| if is_target(file) { 0 } else { merged(file) };
    let bytes: u64 = files.iter().map(|file| own(file) + each).sum();
    let worthwhile = bytes / file_bytes.saturating_mul(FILES_MIN).max(1);
    let count = worthwhile.min(count_max as u64);
    let mut ends = Vec::new();
    let mut before = 0;
    let mut is_after_target = false;
    for file in files {
        // How many subcompactions should have ended by here.
        let due = u128::from(before) * u128::from(count) / u128::from(bytes.max(1));
        if due > ends.len() as u128 && (is_target(file) || !is_after_target) {
            ends.push(file.smallest.clone());
        }
        before += own(file) + each;
        is_after_target = is_target(file);
    }
    ends
}
