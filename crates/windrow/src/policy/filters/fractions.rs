//! The fraction of the entries in its key range that each file holds.
//!
//! The places of a file's entries in its range are unknown. The ends of all files, in order, divide
//! the keys into cells, which are many where there are many files. A file's entries
//! count as lying evenly over the cells that it covers.

use crate::policy::summary::FileSummary;
use crate::policy::tree_summary::TreeSummary;

/// The fraction of each file, above 0 and at most 1, in the order of the tree's levels and files.
pub(crate) fn fractions<K: Ord>(tree: &TreeSummary<K>) -> Vec<f64> {
    let files = || tree.levels.iter().flatten();
    let mut ends: Vec<&K> = files()
        .flat_map(|file| [&file.smallest, &file.largest])
        .collect();
    ends.sort_unstable();
    ends.dedup();
    // Cell 2i is the end i itself, cell 2i + 1 the keys between it and the next end.
    let cells = |file: &FileSummary<K>| {
        let first = ends.partition_point(|end| **end < file.smallest);
        let last = ends.partition_point(|end| **end < file.largest);
        (2 * first, 2 * last)
    };
    let mut density = vec![0.0; 2 * ends.len() + 1];
    for file in files() {
        let (first, last) = cells(file);
        let per_cell = file.entries as f64 / (last - first + 1) as f64;
        density[first] += per_cell;
        density[last + 1] -= per_cell;
    }
    // From changes to densities, from densities to the entries in all cells before.
    let mut before = Vec::with_capacity(density.len());
    let (mut present, mut sum) = (0.0, 0.0);
    for change in density {
        before.push(sum);
        present += change;
        sum += f64::max(present, 0.0);
    }
    let fraction = |file: &FileSummary<K>| {
        let (first, last) = cells(file);
        let entries = file.entries as f64;
        (entries / (before[last + 1] - before[first]).max(entries).max(1.0)).max(f64::MIN_POSITIVE)
    };
    files().map(fraction).collect()
}
