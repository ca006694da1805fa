//! Histories with one anomaly each.

use super::{Level, Step, Transaction, check};
use Step::{Append, Read, Write};
use std::collections::BTreeMap;

/// The transactions all run at once, unless a test says otherwise.
fn at_once(steps: Vec<Vec<Step>>) -> Vec<Transaction> {
    let transaction = |steps| Transaction {
        steps,
        begun: 0,
        ended: 100,
    };
    steps.into_iter().map(transaction).collect()
}

fn name(
    transactions: &[Transaction],
    last: &[(u64, &[u64])],
    level: Level,
) -> Option<&'static str> {
    let last = last.iter().map(|(key, list)| (*key, list.to_vec()));
    let last: BTreeMap<_, _> = last.collect();
    check(transactions, &last, level).err().map(|it| it.name)
}

/// A history, its last lists, and the anomaly that each level forbids in it.
type Case = (
    Vec<Vec<Step>>,
    Vec<(u64, &'static [u64])>,
    [Option<&'static str>; 2],
);

#[test]
fn each_anomaly_is_found() {
    let both = |name| [name, name];
    let cases: Vec<Case> = vec![
        (
            vec![
                vec![Read(1, vec![]), Append(1, 1)],
                vec![Read(1, vec![1]), Append(1, 2), Read(1, vec![1, 2])],
            ],
            vec![(1, &[1, 2])],
            both(None),
        ),
        (
            vec![
                vec![Append(1, 1), Append(2, 3)],
                vec![Append(1, 2), Append(2, 4)],
            ],
            vec![(1, &[1, 2]), (2, &[4, 3])],
            both(Some("G0")),
        ),
        (
            vec![vec![Read(1, vec![9])]],
            vec![(1, &[9])],
            both(Some("G1a")),
        ),
        (
            vec![vec![Append(1, 1), Append(1, 2)], vec![Read(1, vec![1])]],
            vec![(1, &[1, 2])],
            both(Some("G1b")),
        ),
        (
            vec![
                vec![Append(1, 1), Read(2, vec![2])],
                vec![Append(2, 2), Read(1, vec![1])],
            ],
            vec![(1, &[1]), (2, &[2])],
            both(Some("G1c")),
        ),
        // Lost update.
        (
            vec![
                vec![Read(1, vec![]), Append(1, 1)],
                vec![Read(1, vec![]), Append(1, 2)],
            ],
            vec![(1, &[1, 2])],
            both(Some("G-single")),
        ),
        // Read skew.
        (
            vec![
                vec![Read(1, vec![]), Read(2, vec![2])],
                vec![Append(1, 1), Append(2, 2)],
            ],
            vec![(1, &[1]), (2, &[2])],
            both(Some("G-single")),
        ),
        // Write skew, and with empty lists a phantom.
        (
            vec![
                vec![Read(1, vec![]), Append(2, 2)],
                vec![Read(2, vec![]), Append(1, 1)],
            ],
            vec![(1, &[1]), (2, &[2])],
            [Some("G2"), None],
        ),
        // A long fork.
        (
            vec![
                vec![Append(1, 1)],
                vec![Append(2, 2)],
                vec![Read(1, vec![1]), Read(2, vec![])],
                vec![Read(1, vec![]), Read(2, vec![2])],
            ],
            vec![(1, &[1]), (2, &[2])],
            [Some("G2"), None],
        ),
        (
            vec![vec![Append(1, 1), Append(2, 2)]],
            vec![(1, &[1]), (2, &[])],
            both(Some("lost")),
        ),
        (
            vec![vec![Append(1, 1), Read(1, vec![])]],
            vec![(1, &[1])],
            both(Some("internal")),
        ),
        (
            vec![vec![Read(1, vec![]), Read(1, vec![1])], vec![Append(1, 1)]],
            vec![(1, &[1])],
            both(Some("internal")),
        ),
        (
            vec![
                vec![Append(1, 1)],
                vec![Append(1, 2)],
                vec![Read(1, vec![2])],
            ],
            vec![(1, &[1, 2])],
            both(Some("incompatible order")),
        ),
    ];
    check_cases(cases);
}

fn check_cases(cases: Vec<Case>) {
    for (position, (steps, last, expected)) in cases.into_iter().enumerate() {
        let transactions = at_once(steps);
        let found =
            [Level::Serializable, Level::Snapshot].map(|level| name(&transactions, &last, level));
        assert_eq!(found, expected, "case {position}");
    }
}

#[test]
fn each_anomaly_of_registers_is_found() {
    let both = |name| [name, name];
    let cases: Vec<Case> = vec![
        (
            vec![
                vec![Write(1, 1)],
                vec![Read(1, vec![1]), Write(1, 2), Read(1, vec![2])],
                vec![Read(1, vec![2]), Read(2, vec![]), Write(1, 3), Write(1, 4)],
            ],
            vec![(1, &[4])],
            both(None),
        ),
        // The same version is read by both.
        (
            vec![
                vec![Write(1, 1)],
                vec![Read(1, vec![1]), Write(1, 2)],
                vec![Read(1, vec![1]), Write(1, 3)],
            ],
            vec![(1, &[3])],
            both(Some("lost update")),
        ),
        (
            vec![
                vec![Read(1, vec![]), Write(1, 1)],
                vec![Read(1, vec![]), Write(1, 2)],
            ],
            vec![(1, &[2])],
            both(Some("lost update")),
        ),
        // Write skew: each replaces what the other one has read.
        (
            vec![
                vec![Write(1, 1), Write(2, 2)],
                vec![Read(1, vec![1]), Read(2, vec![2]), Write(1, 3)],
                vec![Read(1, vec![1]), Read(2, vec![2]), Write(2, 4)],
            ],
            vec![(1, &[3]), (2, &[4])],
            [Some("G2"), None],
        ),
        // The same over keys without values.
        (
            vec![
                vec![Read(1, vec![]), Write(2, 2)],
                vec![Read(2, vec![]), Write(1, 1)],
            ],
            vec![(1, &[1]), (2, &[2])],
            [Some("G2"), None],
        ),
        // Write skew over a list and a register.
        (
            vec![
                vec![Read(1, vec![]), Write(2, 2)],
                vec![Read(2, vec![]), Append(1, 1)],
            ],
            vec![(1, &[1]), (2, &[2])],
            [Some("G2"), None],
        ),
        // Read skew.
        (
            vec![
                vec![Write(1, 1), Write(2, 2)],
                vec![Read(1, vec![1]), Write(1, 3), Read(2, vec![2]), Write(2, 4)],
                vec![Read(1, vec![1]), Read(2, vec![4])],
            ],
            vec![(1, &[3]), (2, &[4])],
            both(Some("G-single")),
        ),
        // Two that see each other.
        (
            vec![
                vec![Write(1, 1), Read(2, vec![2])],
                vec![Write(2, 2), Read(1, vec![1])],
            ],
            vec![(1, &[1]), (2, &[2])],
            both(Some("G1c")),
        ),
        // Half of the second one is there.
        (
            vec![
                vec![Write(1, 1), Write(2, 2)],
                vec![Read(1, vec![1]), Write(1, 3), Read(2, vec![2]), Write(2, 4)],
            ],
            vec![(1, &[3]), (2, &[2])],
            both(Some("G0")),
        ),
        (
            vec![vec![Write(1, 1)], vec![Read(1, vec![9])]],
            vec![(1, &[1])],
            both(Some("G1a")),
        ),
        (
            vec![vec![Write(1, 1), Write(1, 2)], vec![Read(1, vec![1])]],
            vec![(1, &[2])],
            both(Some("G1b")),
        ),
        (
            vec![vec![Write(1, 1), Write(1, 2)]],
            vec![(1, &[1])],
            both(Some("G1b")),
        ),
        (vec![vec![Write(1, 1)]], vec![], both(Some("lost"))),
        (
            vec![vec![Write(1, 1), Read(1, vec![])]],
            vec![(1, &[1])],
            both(Some("internal")),
        ),
    ];
    check_cases(cases);
}

#[test]
fn the_clock_orders_values_that_nobody_reads_before_a_write() {
    let writes = vec![vec![Write(1, 1)], vec![Write(1, 2)], vec![Read(1, vec![1])]];
    let mut transactions = at_once(writes);
    assert_eq!(name(&transactions, &[(1, &[2])], Level::Snapshot), None);
    (transactions[0].begun, transactions[0].ended) = (1, 2);
    (transactions[1].begun, transactions[1].ended) = (3, 4);
    assert_eq!(name(&transactions, &[(1, &[2])], Level::Snapshot), None);
    // The first value at the end.
    assert_eq!(
        name(&transactions, &[(1, &[1])], Level::Snapshot),
        Some("G0")
    );
    // It is read after the second one was acknowledged.
    (transactions[2].begun, transactions[2].ended) = (5, 6);
    let found = name(&transactions, &[(1, &[2])], Level::Snapshot);
    assert_eq!(found, Some("G-single"));
}

#[test]
fn a_read_of_an_old_state_is_found_by_the_clock() {
    let mut transactions = at_once(vec![vec![Append(1, 1)], vec![Read(1, vec![])]]);
    assert_eq!(name(&transactions, &[(1, &[1])], Level::Snapshot), None);
    (transactions[0].ended, transactions[1].begun) = (10, 20);
    for level in [Level::Serializable, Level::Snapshot] {
        assert_eq!(name(&transactions, &[(1, &[1])], level), Some("G-single"));
    }
}
