//! The levels of new tables.

use super::notation::{KIB, claim, parse_tree};
use crate::options::KeyspaceOptions;
use crate::policy::ingestion::{BulkLoadOutput, NewTable, bulk_load_output, ingestion_plan};
use crate::policy::{Claim, capacities};

fn new(smallest: u32, largest: u32, kib: u64) -> NewTable<u32> {
    NewTable {
        smallest,
        largest,
        logical_bytes: kib * KIB,
        held_from: usize::MAX,
    }
}

/// The levels of tables, given by their ends and the first level with a key between them.
fn levels(tree: &str, claims: &[Claim<u32>], tables: &[(u32, u32, usize)]) -> Vec<usize> {
    let mut tree = parse_tree(tree);
    tree.claims = claims.to_vec();
    let table = |&(from, to, held_from): &(u32, u32, usize)| NewTable {
        held_from,
        ..new(from, to, 1)
    };
    let tables: Vec<_> = tables.iter().map(table).collect();
    ingestion_plan(&tree, &KeyspaceOptions::default(), &tables, true).levels
}

#[test]
fn a_table_goes_below_all_levels_without_its_keys() {
    let tree = "1:0-9/8 | 2:20-29/8 3:50-59/8 | | 4:10-19/8 5:40-49/8";
    let cases = [
        // Level 0 has keys.
        ((9, 9, 0), 0),
        ((0, 100, 0), 0),
        ((5, 15, 0), 0),
        // Its file overlaps without a key there, and so does a file of level 3.
        ((5, 8, 9), 3),
        ((7, 12, 9), 2),
        // Level 1 has keys.
        ((20, 20, 1), 0),
        ((15, 25, 1), 0),
        // Its file overlaps without a key there.
        ((20, 20, 9), 3),
        // Level 3 has keys.
        ((10, 10, 3), 2),
        ((42, 44, 3), 2),
        // None has: between, before and behind tables.
        ((30, 39, 9), 3),
        ((60, 70, 9), 3),
    ];
    for (table, level) in cases {
        assert_eq!(levels(tree, &[], &[table]), [level], "{table:?}");
    }
    let all: Vec<_> = cases.iter().map(|case| case.0).collect();
    let expected: Vec<_> = cases.iter().map(|case| case.1).collect();
    assert_eq!(levels(tree, &[], &all), expected);
}

#[test]
fn a_table_avoids_what_running_jobs_write() {
    let tree = "| | | 4:10-19/8";
    for (claims, expected) in [
        (vec![claim(3, 30, 40)], [2, 3]),
        (vec![claim(3, 39, 50), claim(2, 0, 30)], [1, 3]),
        (
            vec![claim(3, 0, 99), claim(2, 0, 99), claim(1, 0, 99)],
            [0, 0],
        ),
    ] {
        let found = levels(tree, &claims, &[(30, 39, 9), (60, 70, 9)]);
        assert_eq!(found, expected, "{claims:?}");
    }
}

#[test]
fn the_tree_gets_the_levels_that_the_tables_need() {
    let options = KeyspaceOptions::default();
    let tree = parse_tree("|");
    let plan = |kib, may_grow| ingestion_plan(&tree, &options, &[new(1, 2, kib)], may_grow);
    let is_within = |kib: u64, count: usize| kib * KIB <= capacities(&options, count)[count];
    for kib in [1, 100 << 10, 1 << 20, 10 << 20, 1 << 30] {
        let found = plan(kib, true);
        let needed = (1..=15).find(|count| is_within(kib, *count)).unwrap();
        assert_eq!(
            (found.level_count, &found.levels[..]),
            (needed, &[needed][..])
        );
        let found = plan(kib, false);
        assert_eq!((found.level_count, &found.levels[..]), (1, &[1][..]));
    }
}

#[test]
fn the_last_level_gets_nothing_while_it_may_go() {
    let tree = parse_tree("| | | ");
    let found = ingestion_plan(&tree, &KeyspaceOptions::default(), &[new(1, 2, 1)], false);
    assert_eq!((found.level_count, &found.levels[..]), (3, &[2][..]));
}

#[test]
fn medium_values_are_in_place_where_nothing_has_to_be_compacted() {
    let tree = parse_tree("1:0-9/8 | 2:20-29/8 | | 4:10-19/99 5:40-49/99");
    let options = KeyspaceOptions::default();
    for (key, in_place) in [(5, false), (25, false), (15, false), (30, true), (60, true)] {
        let BulkLoadOutput {
            file_bytes,
            are_mediums_in_place,
        } = bulk_load_output(&tree, &options, &key);
        assert_eq!(are_mediums_in_place, in_place, "{key}");
        assert!(file_bytes >= options.file_bytes);
    }
}
