//! Histories with one anomaly each.

use super::{Level, Step, Transaction, check};
use Step::{Append, Read};
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
    for (position, (steps, last, expected)) in cases.into_iter().enumerate() {
        let transactions = at_once(steps);
        let found =
            [Level::Serializable, Level::Snapshot].map(|level| name(&transactions, &last, level));
        assert_eq!(found, expected, "case {position}");
    }
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
