//! Manual compactions of a key range.

use std::ops::Range;

use super::compaction::{compact_file, compact_group};
use super::groups::groups;
use super::plan::{Plan, Purpose};
use super::rewrite::rewrite_file;
use super::rules::Rules;
use crate::base::{FileNumber, SequenceNumber};
use crate::options::KeyspaceOptions;
use crate::policy::append::segment_limits;
use crate::policy::summary::FileSummary;
use crate::policy::tree::Tree;

/// What a manual compaction covers: the range as it was at the request.
#[derive(Debug)]
pub(crate) struct ManualCompaction<'k, K> {
    /// The smallest key, and the largest; unbounded where absent.
    pub(crate) smallest: Option<&'k K>,
    pub(crate) largest: Option<&'k K>,
    /// Files from this number on are new.
    pub(crate) before: FileNumber,
    /// Entries above this sequence number are new.
    pub(crate) through: SequenceNumber,
    /// Whether any file may hold what a rewrite changes: operands that can be folded, or values that a compaction filter
    /// judges.
    pub(crate) rewrites_all: bool,
}

impl<K: Ord + Clone> ManualCompaction<'_, K> {
    /// Whether `file` holds any of it.
    fn covers(&self, file: &FileSummary<K>) -> bool {
        file.sequence_min <= self.through
            && self
                .smallest
                .is_none_or(|smallest| *smallest <= file.largest)
            && self.largest.is_none_or(|largest| file.smallest <= *largest)
    }

    /// The files of `level` in its range.
    fn files(&self, tree: &dyn Tree<K>, level: usize) -> Range<usize> {
        let from = |key: &K| tree.overlapping(level, key, key).start;
        let to = |key: &K| tree.overlapping(level, key, key).end;
        self.smallest.map_or(0, from)..self.largest.map_or(tree.len(level), to)
    }
}

/// The next job of the manual compaction `wanted`. It brings the range down to the deepest level that holds
/// data, and drops what no reader needs. Newer entries stay, or the compaction might never end.
///
/// Nothing is appended in the deepest level, because tombstones must meet what they hide. Old files there with
/// tombstones, expired entries or several segments, or all of them if rewrites change more, are rewritten in place, each once. So are files to which other
/// compactions have appended meanwhile, and files that refer to transient logs, unless compactions never put values in
/// place.
///
/// `Idle` when all that is done, or while running jobs block the rest.
pub(crate) fn plan_range<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    wanted: &ManualCompaction<'_, K>,
) -> Plan<K> {
    let limits = segment_limits(tree, options);
    let rules = Rules::of(tree, options, &limits).appending_above(tree.deepest_level());
    let groups = groups(tree);
    let group = groups
        .iter()
        .filter(|group| {
            let mut runs = group.runs.iter().map(|&run| tree.file(0, run));
            runs.any(|run| wanted.covers(&run))
        })
        .find_map(|group| compact_group(tree, rules, group, &groups));
    let file = || {
        let selected = |file: &FileSummary<K>| wanted.covers(file);
        (1..tree.deepest_level()).find_map(|level| {
            wanted
                .files(tree, level)
                .filter(|&file| selected(&tree.file(level, file)))
                .find_map(|file| compact_file(tree, rules, (level, file), selected))
        })
    };
    let rewrite = || {
        let level = tree.deepest_level();
        let is_due = |&file: &usize| {
            let file = tree.file(level, file);
            let is_untidy = file.tombstones > 0
                || file.expired_bytes > 0
                || file.segments.len() > 1
                || wanted.rewrites_all;
            let is_old = is_untidy && file.number < wanted.before;
            let mut later = file.segments.iter().skip(1);
            let was_appended = later.any(|segment| segment.sequence_min <= wanted.through);
            (is_old || was_appended || rules.puts_in_place(level, &file)) && wanted.covers(&file)
        };
        let mut due = wanted.files(tree, level).filter(is_due);
        due.find_map(|file| rewrite_file(tree, rules, (level, file), Purpose::Tree))
    };
    group.or_else(file).or_else(rewrite).unwrap_or(Plan::Idle)
}
