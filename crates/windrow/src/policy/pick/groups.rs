//! Level 0: runs that overlap, ordered by age, and which of them go down together.
//!
//! Runs that overlap, directly or through others, form a *group*. A compaction takes whole groups. So it
//! leaves no older run with a key of a run that it takes (I3), and it cuts no user key. The more
//! runs share one rewrite of level 1, the less is written per byte.

use crate::policy::tree::Tree;

/// Runs of level 0 that overlap, directly or through others.
#[derive(Debug)]
pub(super) struct RunGroup<K> {
    /// Positions in level 0, ascending: newest first.
    pub(super) runs: Vec<usize>,
    pub(super) smallest: K,
    pub(super) largest: K,
    /// Whether any of its runs is busy.
    pub(super) busy: bool,
}

impl<K> RunGroup<K> {
    /// The position of the oldest run.
    pub(super) fn oldest(&self) -> usize {
        self.runs.last().copied().unwrap_or_default()
    }
}

/// The groups of level 0; the one with the oldest run comes first.
pub(super) fn groups<K: Ord + Clone>(tree: &dyn Tree<K>) -> Vec<RunGroup<K>> {
    let runs = tree.files(0, 0..tree.len(0));
    let mut by_key: Vec<usize> = (0..runs.len()).collect();
    by_key.sort_by_key(|&position| &runs[position].smallest);
    let mut groups: Vec<RunGroup<K>> = Vec::new();
    for position in by_key {
        let run = &runs[position];
        match groups.last_mut() {
            Some(group) if run.smallest <= group.largest => {
                group.runs.push(position);
                group.busy |= run.busy;
                if group.largest < run.largest {
                    group.largest = run.largest.clone();
                }
            }
            _ => groups.push(RunGroup {
                runs: vec![position],
                smallest: run.smallest.clone(),
                largest: run.largest.clone(),
                busy: run.busy,
            }),
        }
    }
    for group in &mut groups {
        group.runs.sort_unstable();
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.oldest()));
    groups
}
