//! How a large merge is cut into parts that run side by side.

use super::summary::{FileSummary, TreeSummary};
use crate::base::FileNumber;

/// A part has at least this many files of the size that it writes.
const PART_FILES: u64 = 4;

/// Where the parts of the merge of `inputs` into files of which it appends to `targets` end, but for the
/// last, as the keys with which the next ones begin, ascending: at most `parts_max` parts of about the same
/// size; none for a merge that is better done in one piece. It writes files of `file_bytes`, and puts values in
/// runs in place or leaves them there.
///
/// The ends lie where files of the deepest level that takes part begin, since those are sorted and disjoint;
/// the uppers are taken to lie evenly over them. None lies behind a file that is appended to and before one
/// that is written anew, since what is between them would get a file of its own.
pub(crate) fn part_ends<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    inputs: &[FileNumber],
    targets: &[FileNumber],
    (file_bytes, is_in_place): (u64, bool),
    parts_max: usize,
) -> Vec<K> {
    let is_target = |file: &FileSummary<K>| targets.contains(&file.number);
    let takes_part = |file: &&FileSummary<K>| is_target(file) || inputs.contains(&file.number);
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
    let worth = bytes / file_bytes.saturating_mul(PART_FILES).max(1);
    let parts = worth.min(parts_max as u64);
    let mut ends = Vec::new();
    let mut before = 0;
    let mut follows_target = false;
    for file in files {
        // How many parts should have ended by here.
        let due = u128::from(before) * u128::from(parts) / u128::from(bytes.max(1));
        if due > ends.len() as u128 && (is_target(file) || !follows_target) {
            ends.push(file.smallest.clone());
        }
        before += own(file) + each;
        follows_target = is_target(file);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::part_ends;
    use crate::base::FileNumber;
    use crate::policy::FileSummary;
    use crate::policy::tests::tables::{file, tree};

    fn ends(lower: u32, parts_max: usize) -> Vec<u32> {
        let lower: Vec<FileSummary<u32>> = (0..lower)
            .map(|index| file(u64::from(index) + 10, index * 10, index * 10 + 9, 1))
            .collect();
        let numbers: Vec<FileNumber> = lower.iter().map(|file| file.number).collect();
        let inputs = [&numbers[..], &[FileNumber(1)]].concat();
        let beside = file(5, 5000, 6000, 99);
        let level: Vec<_> = lower.into_iter().chain([beside]).collect();
        let tree = tree(1, vec![vec![file(1, 0, 5000, 0)], level]);
        part_ends(&tree, &inputs, &[], (1 << 10, false), parts_max)
    }

    #[test]
    fn parts_are_even_and_worth_it() {
        assert_eq!(ends(0, 4), []);
        assert_eq!(ends(7, 4), []);
        assert_eq!(ends(8, 4), [40]);
        assert_eq!(ends(8, 1), []);
        assert_eq!(ends(12, 4), [40, 80]);
        assert_eq!(ends(100, 4), [250, 500, 750]);
    }
}
