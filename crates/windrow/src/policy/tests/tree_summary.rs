//! What levels remember.

use super::notation::{file, parse_tree};
use crate::policy::{Sum, Tree, TreeSummary};

/// The sums over level 1 are those of its files.
fn check(tree: &TreeSummary<u32>) {
    let idle: Vec<usize> = (0..tree.len(1))
        .filter(|&position| !tree.file(1, position).busy)
        .collect();
    for of in Sum::ALL {
        assert_eq!(tree.sum(1, of), tree.sum_within(1, 0..tree.len(1), of));
        let idle = idle
            .iter()
            .map(|&position| tree.sum_within(1, position..position + 1, of));
        assert_eq!(tree.idle_sum(1, of), idle.sum::<u64>());
    }
}

#[test]
fn a_level_forgets_its_sums_when_its_files_change() {
    let mut tree = parse_tree(" | 1:0-9/4 2:20-29/6");
    check(&tree);
    tree.levels[1][0].busy = true;
    check(&tree);
    tree.levels[1].push(file(3, 40, 49, 5));
    check(&tree);
    tree.levels[1][1].tombstones += 1;
    check(&tree);
    tree.levels[1].clear();
    check(&tree);
}
