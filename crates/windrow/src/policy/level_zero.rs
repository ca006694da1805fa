//! Level 0: runs that overlap, ordered by age, and which of them go down together.
//!
//! Runs that overlap, directly or through others, form a *heap*. A merge takes whole heaps: it
//! leaves no older run behind that shares a key with what it takes (I3), it cuts no user key, and
//! the more runs share one rewrite of level 1, the less is written per byte.

use super::summary::{FileSummary, TreeSummary};

/// Runs of level 0 that overlap, directly or through others.
#[derive(Debug)]
pub(super) struct Heap<K> {
    /// Positions in level 0, ascending: newest first.
    pub(super) runs: Vec<usize>,
    pub(super) smallest: K,
    pub(super) largest: K,
    /// Whether any of its runs is busy.
    pub(super) busy: bool,
}

impl<K> Heap<K> {
    /// The position of the oldest run.
    pub(super) fn oldest(&self) -> usize {
        self.runs.last().copied().unwrap_or_default()
    }
}

/// The heaps of level 0; the one with the oldest run comes first.
pub(super) fn heaps<K: Ord + Clone>(tree: &TreeSummary<K>) -> Vec<Heap<K>> {
    let runs = tree.level(0);
    let mut by_key: Vec<usize> = (0..runs.len()).collect();
    by_key.sort_by_key(|&position| &runs[position].smallest);
    let mut heaps: Vec<Heap<K>> = Vec::new();
    for position in by_key {
        let run: &FileSummary<K> = &runs[position];
        match heaps.last_mut() {
            Some(heap) if run.smallest <= heap.largest => {
                heap.runs.push(position);
                heap.busy |= run.busy;
                if heap.largest < run.largest {
                    heap.largest = run.largest.clone();
                }
            }
            _ => heaps.push(Heap {
                runs: vec![position],
                smallest: run.smallest.clone(),
                largest: run.largest.clone(),
                busy: run.busy,
            }),
        }
    }
    for heap in &mut heaps {
        heap.runs.sort_unstable();
    }
    heaps.sort_by_key(|heap| std::cmp::Reverse(heap.oldest()));
    heaps
}
