//! The rules of one tree under its options: where values are in place, and what may be appended.

use crate::options::KeyspaceOptions;
use crate::policy::append::Appends;
use crate::policy::placement::Placement;
use crate::policy::summary::FileSummary;
use crate::policy::tree::Tree;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) placement: Placement,
    pub(super) appends: Appends<'a>,
    /// What a range read reads of one more run.
    visit_bytes: u64,
}

impl<'a> Rules<'a> {
    /// For `tree`, whose files may have as many segments as `limits` says.
    pub(super) fn of<K: Clone>(
        tree: &dyn Tree<K>,
        options: &'a KeyspaceOptions,
        limits: &'a [usize],
    ) -> Self {
        Self {
            placement: Placement::of(tree, options),
            appends: Appends { limits, options },
            visit_bytes: options.block_bytes as u64,
        }
    }

    /// The same rules, except that nothing is appended in `level` or deeper.
    pub(super) fn appending_above(mut self, level: usize) -> Self {
        let limits = self.appends.limits;
        self.appends.limits = &limits[..level.min(limits.len())];
        self
    }

    /// About how many bytes this many visits of range reads have read.
    pub(super) fn visited_bytes(self, visits: u64) -> u64 {
        visits.saturating_mul(self.visit_bytes)
    }

    /// Whether a compaction of `file` into `level` puts values in place.
    pub(super) fn puts_in_place<K: Clone>(self, level: usize, file: &FileSummary<K>) -> bool {
        file.transient_bytes > 0 && self.placement.is_in_place(level)
    }
}
