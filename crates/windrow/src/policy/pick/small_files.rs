//! Small files: neighbours in a level that are far shorter than its target become one by a consolidation.
//!
//! A trivial move keeps a file as it is. Where keys come in order and memtables are flushed while they hold little, a level
//! would fill with such files. Each of them costs a block on the device, memory, and a record of the manifest, whatever
//! it holds.
//!
//! I1. No file is more than half of what such a consolidation writes. So an entry is rewritten at most as many times as
//!     its file can double until it is no longer small.
//! I2. What it writes is one file: a [cut](crate::policy::output) needs half a target file. So it leaves less to do.

use super::plan::{Plan, Purpose};
use super::rewrite::rewrite_files;
use super::rules::Rules;
use crate::options::KeyspaceOptions;
use crate::policy::capacities::target_file_bytes;
use crate::policy::tree::Tree;

/// At least this many files become one: fewer are no burden.
const FILES_MIN: usize = 4;

/// A file is small below a target file divided by this.
const SMALL_PART: u64 = 8;

/// The one has at most the length of a target file divided by this.
const WHOLE_PART: u64 = 2;

/// Consolidates the first neighbours of level `first` or deeper that are small and idle, as many as may become one.
pub(super) fn consolidate<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    first: usize,
) -> Option<Plan<K>> {
    (first..tree.depth()).find_map(|level| {
        let target = target_file_bytes(tree, options, level);
        let is_in_place = rules.placement.is_in_place(level);
        let small = |position: usize| {
            let file = tree.file(level, position);
            let bytes = file.merged_cut_bytes(is_in_place);
            (!file.busy && bytes < target / SMALL_PART).then_some(bytes)
        };
        (0..tree.chunks(level))
            .filter(|&chunk| tree.bounds(level, chunk).bytes_min < target / SMALL_PART)
            .flat_map(|chunk| tree.chunk(level, chunk))
            .find_map(|from| {
                let sizes = (from..tree.len(level)).map_while(small);
                let taken = from..from + count_taken(sizes, target / WHOLE_PART)?;
                rewrite_files(tree, level, taken, Purpose::Consolidation)
            })
    })
}

/// How many files with these sizes, from the first on, may become one of at most `bytes_max`: the most that may.
fn count_taken(sizes: impl Iterator<Item = u64>, bytes_max: u64) -> Option<usize> {
    let (mut all, mut largest) = (0_u64, 0);
    let mut taken = None;
    for (count, size) in (1..).zip(sizes) {
        all = all.saturating_add(size);
        largest = largest.max(size);
        if all > bytes_max {
            break;
        }
        if count >= FILES_MIN && largest <= all / 2 {
            taken = Some(count);
        }
    }
    taken
}
