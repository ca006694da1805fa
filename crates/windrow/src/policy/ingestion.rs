//! Where the tables of an ingestion go: the deepest level with space for them.
//!
//! A level takes a table if no file of it overlaps the table, and if neither it nor a level above holds keys between the
//! ends of the table. All such keys are older, or there are none, so the table hides them, and nothing is hidden from it.
//! A file above may overlap the table without a key there: a flush of a few keys covers a wide range. If there is no such
//! level the table goes to level 0, above all others.
//!
//! If the last level would be over its capacity with all tables that may go there by their keys, the tree gets as many
//! levels more as they need. Otherwise they would move down by trivial moves, one after the other.
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
    /// The first level that holds a key between the ends. It may be one above, but not one below.
    pub(crate) held_from: usize,
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
    let is_over = |last: usize| {
        let at_last = tables.iter().filter(|table| table.held_from > last);
        let added = at_last.fold(0_u64, |sum, table| sum.saturating_add(table.logical_bytes));
        let held = tree.logical_bytes(last).saturating_add(added);
        added > 0 && held > capacities(options, last)[last]
    };
    while may_grow && last < LEVELS_MAX && is_over(last) {
        last += 1;
    }
    let level = |table| deepest_free(tree, table, last);
    IngestionPlan {
        level_count: level_count.max(last),
        levels: tables.iter().map(level).collect(),
    }
}

/// How a bulk load that begins with `key` writes its tables: as if all of them went where that key goes.
pub(crate) fn bulk_load_output<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    key: &K,
) -> BulkLoadOutput {
    let (held_at, last) = (overlaps(tree, key, key), tree.level_count());
    let first = NewTable {
        smallest: key.clone(),
        largest: key.clone(),
        logical_bytes: 0,
        held_from: (0..=last).find(held_at).unwrap_or(last + 1),
    };
    let level = deepest_free(tree, &first, last);
    BulkLoadOutput {
        file_bytes: target_file_bytes(tree, options, level.max(1)),
        are_mediums_in_place: Placement::of(tree, options).is_in_place(level),
    }
}

/// The deepest level down to `last` that takes `table`; 0 if none does.
fn deepest_free<K: Ord + Clone>(tree: &dyn Tree<K>, table: &NewTable<K>, last: usize) -> usize {
    let (smallest, largest) = (&table.smallest, &table.largest);
    let has_overlap = overlaps(tree, smallest, largest);
    // Keys that a running job writes are those of its inputs, but its files may be wider.
    let is_claimed = |level: usize| {
        let mut claims = tree.claims().iter().filter(|it| it.level == level);
        claims.any(|it| it.smallest <= *largest && *smallest <= it.largest)
    };
    let above_its_keys = 1..table.held_from.min(last + 1);
    let free = |level: &usize| !has_overlap(level) && !is_claimed(*level);
    above_its_keys.rev().find(free).unwrap_or(0)
}

/// Whether a file of a level overlaps the keys from `smallest` to `largest`.
fn overlaps<'a, K: Ord + Clone>(
    tree: &'a dyn Tree<K>,
    smallest: &'a K,
    largest: &'a K,
) -> impl Fn(&usize) -> bool + 'a {
    move |level| match level {
        0 => {
            let files = tree.files(0, 0..tree.len(0));
            let mut files = files.iter();
            files.any(|file| file.smallest <= *largest && *smallest <= file.largest)
        }
        level => !tree.overlapping(*level, smallest, largest).is_empty(),
    }
}
