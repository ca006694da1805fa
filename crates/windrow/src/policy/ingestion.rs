//! Where the tables of an ingestion go: the deepest level with space for them.
//!
//! A level takes a table if neither it nor a level above holds keys between the ends of the table. All these keys are
//! older then, or there are none, so the table hides them, and nothing is hidden from it. If there is no such level the
//! table goes to level 0, above all others.
//!
//! If the last level would be over its capacity, the tree gets as many levels more as the tables need. Otherwise they
//! would move down by trivial moves, one after the other.
//!
//! Pure, without state.

use super::capacities::{capacities, target_file_bytes};
use super::placement::Placement;
use super::tree::Tree;
use crate::base::limits::LEVELS_MAX;
use crate::options::KeyspaceOptions;

/// A table that is to be added.
#[derive(Debug, Clone)]
pub(crate) struct NewTable<K> {
    pub(crate) smallest: K,
    pub(crate) largest: K,
    pub(crate) logical_bytes: u64,
}

/// Where tables go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IngestionPlan {
    /// The nominal number of levels that the tree should have.
    pub(crate) level_count: usize,
    /// The level of each table.
    pub(crate) levels: Vec<usize>,
}

/// How a bulk load writes its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BulkLoadOutput {
    /// The length of a table.
    pub(crate) file_bytes: u64,
    /// Whether medium values are beside their keys.
    pub(crate) are_mediums_in_place: bool,
}

/// Where these `tables`, disjoint, go. The number of levels may change if `may_grow`; otherwise another job may be about
/// to take the last level away, so it gets nothing.
pub(crate) fn ingestion_plan<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    tables: &[NewTable<K>],
    may_grow: bool,
) -> IngestionPlan {
    let level_count = tree.level_count();
    let mut last = if may_grow {
        level_count
    } else {
        level_count.saturating_sub(1).max(1)
    };
    loop {
        let level = |table| deepest_free(tree, table, last);
        let levels: Vec<usize> = tables.iter().map(level).collect();
        let at_last = levels.iter().zip(tables).filter(|it| *it.0 == last);
        let added = at_last.fold(0_u64, |sum, it| sum.saturating_add(it.1.logical_bytes));
        let held = tree.logical_bytes(last).saturating_add(added);
        let is_over = added > 0 && held > capacities(options, last)[last];
        if !may_grow || !is_over || last == LEVELS_MAX {
            let level_count = level_count.max(last);
            return IngestionPlan {
                level_count,
                levels,
            };
        }
        last += 1;
    }
}

/// How a bulk load that begins with `key` writes its tables: as if all of them went where that key goes.
pub(crate) fn bulk_load_output<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    key: &K,
) -> BulkLoadOutput {
    let first = NewTable {
        smallest: key.clone(),
        largest: key.clone(),
        logical_bytes: 0,
    };
    let level = deepest_free(tree, &first, tree.level_count());
    BulkLoadOutput {
        file_bytes: target_file_bytes(tree, options, level.max(1)),
        are_mediums_in_place: Placement::of(tree, options).is_in_place(level),
    }
}

/// The deepest level down to `last` that takes `table`; 0 if none does.
fn deepest_free<K: Ord + Clone>(tree: &dyn Tree<K>, table: &NewTable<K>, last: usize) -> usize {
    let (smallest, largest) = (&table.smallest, &table.largest);
    let holds_keys = |level: &usize| match level {
        0 => {
            let files = tree.files(0, 0..tree.len(0));
            let mut files = files.iter();
            files.any(|file| file.smallest <= *largest && *smallest <= file.largest)
        }
        level => !tree.overlapping(*level, smallest, largest).is_empty(),
    };
    // Keys that a running job writes are those of its inputs, but its files may be wider.
    let is_claimed = |level: usize| {
        let mut claims = tree.claims().iter().filter(|it| it.level == level);
        claims.any(|it| it.smallest <= *largest && *smallest <= it.largest)
    };
    let first_taken = (0..=last).find(holds_keys).unwrap_or(last + 1);
    let free = (1..first_taken).rev().find(|level| !is_claimed(*level));
    free.unwrap_or(0)
}
