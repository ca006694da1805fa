//! Which value logs garbage collection takes, and when.

use proptest::prelude::*;

use super::notation::{file, tree};
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;
use crate::policy::{
    FileSummary, TreeSummary, VICTIMS_MAX, garbage_excess, is_value_log_full, value_log_bytes,
    values_behind_max, victims, wants_seal,
};

use crate::value::LogSummary;

const MIB: u64 = 1 << 20;

fn log(number: u64, live_mib: u64, garbage_mib: u64) -> LogSummary {
    LogSummary {
        number: FileNumber(number),
        table_bytes: 0,
        live_bytes: live_mib * MIB,
        garbage_bytes: garbage_mib * MIB,
        moves: 1000,
        is_ready: true,
        is_held: false,
        is_open: false,
        failures: 0,
        is_resting: false,
    }
}

/// A tree of one level that refers to all that is live in `logs`.
fn tree_over(logs: Vec<LogSummary>) -> TreeSummary<u32> {
    let live = logs.iter().map(|log| log.live_bytes).sum();
    let pointers = FileSummary {
        log_bytes: live,
        ..file(1, 0, 100, 64)
    };
    TreeSummary {
        logs,
        ..tree(1, vec![vec![], vec![pointers]])
    }
}

fn options(max_space_amp: f64) -> KeyspaceOptions {
    KeyspaceOptions {
        max_space_amp,
        ..KeyspaceOptions::default()
    }
}

const NONE: [u64; 0] = [];

fn chosen(tree: &TreeSummary<u32>, max_space_amp: f64) -> Vec<u64> {
    let victims = victims(tree, &options(max_space_amp), VICTIMS_MAX);
    victims.into_iter().map(|number| number.0).collect()
}

#[test]
fn logs_with_most_garbage_come_first_once_the_space_is_used() {
    // 200 MiB live; 40, 20 and 4 MiB of garbage.
    let logs = vec![log(2, 60, 4), log(3, 24, 40), log(4, 44, 20), log(5, 72, 0)];
    let of = |max_space_amp| chosen(&tree_over(logs.clone()), max_space_amp);
    // The live bytes of one garbage collection are about a log: 24 and 44 are more than 64 MiB.
    assert_eq!(of(1.1), [3]);
    assert_eq!(of(1.3), [3]);
    assert_eq!(of(1.35), NONE);
    assert_eq!(of(f64::INFINITY), NONE);
    // Little garbage is not collected.
    assert_eq!(chosen(&tree_over(vec![log(2, 100, 5)]), 1.01), NONE);
    // Several go together.
    let many = (2..10).map(|number| log(number, 10, 54)).collect();
    assert_eq!(chosen(&tree_over(many), 1.1).len(), 6);
}

/// I1; and the open log is sealed early for its garbage.
#[test]
fn logs_with_pointers_outside_of_tables_are_not_collected() {
    let mut early = log(3, 24, 40);
    early.is_ready = false;
    let logs = vec![early, log(4, 44, 20), log(5, 100, 0)];
    assert_eq!(chosen(&tree_over(logs), 1.1), [4]);
    let tree = tree_over(vec![early, log(5, 100, 0)]);
    assert_eq!(chosen(&tree, 1.1), NONE);
    assert!(!wants_seal(&tree, &options(1.1)));
    let open = LogSummary {
        is_open: true,
        ..early
    };
    let tree = tree_over(vec![open, log(5, 100, 0)]);
    assert!(wants_seal(&tree, &options(1.1)));
    assert!(!wants_seal(&tree, &options(2.0)));
    // Not while consumers hold an older log, or another one can be collected.
    let held = LogSummary {
        is_ready: false,
        is_held: true,
        ..log(2, 24, 0)
    };
    let tree = tree_over(vec![held, open, log(5, 100, 0)]);
    assert!(!wants_seal(&tree, &options(1.1)));
    let tree = tree_over(vec![open, log(5, 100, 50)]);
    assert!(!wants_seal(&tree, &options(1.1)));
}

/// I2.
#[test]
fn relocation_tables_bound_the_victims() {
    let many = (2..10).map(|number| LogSummary {
        moves: 500_000,
        ..log(number, 1, 60)
    });
    assert_eq!(chosen(&tree_over(many.collect()), 1.1).len(), 2);
}

/// I4.
#[test]
fn failed_logs_go_alone_and_block_nothing() {
    let failed = |number, live_mib, garbage_mib, failures| LogSummary {
        failures,
        ..log(number, live_mib, garbage_mib)
    };
    let resting = |number, live_mib, garbage_mib| LogSummary {
        is_resting: true,
        ..failed(number, live_mib, garbage_mib, 1)
    };
    let rest = log(9, 400, 0);
    // Resting logs are passed over.
    let tree = tree_over(vec![
        resting(2, 1, 60),
        log(3, 30, 30),
        log(4, 20, 40),
        rest,
    ]);
    assert_eq!(chosen(&tree, 1.1), [4, 3]);
    // Each failure lowers the priority, and a failed log goes alone.
    for (failures, expected) in [(1, vec![2]), (2, vec![3, 4])] {
        let logs = vec![
            failed(2, 0, 60, failures),
            log(3, 40, 20),
            log(4, 20, 10),
            rest,
        ];
        assert_eq!(chosen(&tree_over(logs), 1.05), expected);
    }
    // Their garbage slows no writer, and no other log is collected for it.
    let tree = tree_over(vec![resting(2, 10, 60), log(3, 40, 20), log(4, 400, 0)]);
    assert_eq!(garbage_excess(&tree, &options(1.1)), 0);
    assert_eq!(chosen(&tree, 1.1), NONE);
    let tree = tree_over(vec![failed(2, 10, 60, 1), log(4, 400, 0)]);
    assert_eq!(garbage_excess(&tree, &options(1.1)), 0);
    assert_eq!(chosen(&tree, 1.1), [2]);
    // The caller may allow fewer logs.
    let many = tree_over((2..10).map(|number| log(number, 1, 60)).collect());
    assert_eq!(victims(&many, &options(1.1), 3).len(), 3);
    assert_eq!(victims(&many, &options(1.1), 1).len(), 1);
}

#[test]
fn values_behind_a_memtable_follow_the_space() {
    let behind = |live_mib, garbage_mib, max_space_amp| {
        let tree = tree_over(vec![log(2, live_mib, garbage_mib)]);
        values_behind_max(&tree, &options(max_space_amp)) / MIB
    };
    let memtable = options(1.3).memtable_bytes as u64 / MIB;
    assert_eq!(behind(0, 0, 1.3), memtable);
    assert_eq!(behind(4000, 0, 1.5), 475);
    assert_eq!(behind(4000, 1500, 1.5), 100);
    assert_eq!(behind(4000, 2500, 1.5), memtable);
    assert_eq!(behind(1, 0, f64::INFINITY), u64::MAX / MIB);
    // The values of level 0 may supersede as many bytes.
    let unmerged = FileSummary {
        log_bytes: 1500 * MIB,
        ..file(1, 0, 100, 64)
    };
    let tree = TreeSummary {
        logs: vec![log(2, 4000, 0)],
        ..tree(1, vec![vec![unmerged]])
    };
    assert_eq!(values_behind_max(&tree, &options(1.5)) / MIB, 100);
}

proptest! {
    /// Garbage collection ends, with the bound kept or no worthwhile log left. Each round removes garbage.
    #[test]
    fn garbage_collection_ends(
        sizes in proptest::collection::vec((0..64_u64, 0..64_u64), 1..40),
        max_space_amp in 1.02..2.5_f64,
    ) {
        let logs = (2..).zip(sizes).map(|(number, (live, garbage))| log(number, live, garbage));
        let mut tree = tree_over(logs.collect());
        let options = options(max_space_amp);
        for next in 100.. {
            let before = garbage_excess(&tree, &options);
            let count = tree.logs.len();
            let victims = victims(&tree, &options, VICTIMS_MAX);
            if victims.is_empty() {
                prop_assert_eq!(before, 0);
                break;
            }
            let taken = |log: &LogSummary| victims.contains(&log.number);
            let live: u64 = tree.logs.iter().filter(|log| taken(log)).map(|log| log.live_bytes).sum();
            tree.logs.retain(|log| !taken(log));
            tree.logs.push(log(next, live / MIB, 0));
            let is_fewer = before == 0 && tree.logs.len() < count;
            prop_assert!(garbage_excess(&tree, &options) < before || is_fewer);
        }
    }
}

/// I5: the number of files follows the data, and so do the bytes copied.
#[test]
fn fragments_are_put_together() {
    const LOG_KIB: u64 = 64 << 10;
    let options = options(1.5);
    for sizes in [
        [3, 3, 3],
        [1, 100, 9000],
        [20_000, 30, 20_000],
        [1, 31_000, 2],
    ] {
        let mut tree = tree_over(vec![]);
        let (mut total, mut copied) = (0, 0);
        for number in 1..3000_u64 {
            let kib = sizes[usize::try_from(number % 3).unwrap()];
            let with = |number, kib| LogSummary {
                live_bytes: kib << 10,
                moves: kib,
                ..log(number, 0, 0)
            };
            tree.logs.push(with(number, kib));
            total += kib;
            for step in 0.. {
                let victims = victims(&tree, &options, VICTIMS_MAX);
                if victims.is_empty() {
                    break;
                }
                let taken = |log: &LogSummary| victims.contains(&log.number);
                let taken_logs = tree.logs.iter().filter(|log| taken(log));
                let kib: u64 = taken_logs.map(|log| log.live_bytes >> 10).sum();
                tree.logs.retain(|log| !taken(log));
                tree.logs.push(with(10_000 * (step + 1) + number, kib));
                copied += kib;
            }
            let whole = usize::try_from(2 * total / LOG_KIB).unwrap();
            assert!(
                tree.logs.len() <= whole + 28,
                "{} of {total}",
                tree.logs.len()
            );
        }
        assert!(copied <= 8 * total, "{copied} of {total}");
    }
    // Without a bound on space, no fragment is copied.
    let many: Vec<LogSummary> = (2..40).map(|number| log(number, 1, 0)).collect();
    assert_eq!(chosen(&tree_over(many.clone()), f64::INFINITY), NONE);
    assert!(chosen(&tree_over(many), 1.5).len() >= 8);
}

#[test]
fn value_logs_grow_with_what_they_hold() {
    let options = options(1.5);
    let mib = |held_gib: u64| value_log_bytes(held_gib << 30, &options) >> 20;
    assert_eq!([0, 32, 33, 64, 1024].map(mib), [64, 64, 66, 128, 2048]);
    // Long values, and values of a KiB, whose number bounds a log.
    for (record_bytes, most) in [(1 << 20, 2400), (1 << 10, 3200)] {
        let (mut held, mut logs) = (0, 0);
        while held < 1 << 40 {
            let log_bytes = value_log_bytes(held, &options);
            let mut records = 0;
            while !is_value_log_full(records * record_bytes, records, log_bytes) {
                records += ((256 << 10) / record_bytes).max(1);
            }
            held += records * record_bytes;
            logs += 1;
        }
        assert!(logs < most, "{logs} of {record_bytes}");
    }
}

/// If the bound on victims is small, two fragments go, so that their number falls.
#[test]
fn two_fragments_go_under_a_small_bound() {
    let logs = (0..5).map(|number| log(number + 2, 1 << number, 0));
    let tree = tree_over(logs.collect());
    let options = options(1.5);
    let chosen = |at_most| victims(&tree, &options, at_most);
    assert_eq!(chosen(VICTIMS_MAX), []);
    assert_eq!(chosen(1), [FileNumber(2), FileNumber(3)]);
    assert_eq!(chosen(2), [FileNumber(2), FileNumber(3)]);
    assert_eq!(chosen(4), [2, 3, 4, 5].map(FileNumber));
}

/// I5: fragments whose garbage collection failed go after all others, in pairs, so that in the end only damaged ones
/// stay.
#[test]
fn failed_fragments_block_no_others() {
    const DAMAGED: [u64; 2] = [5, 12];
    let mut tree = tree_over((3..23).map(|number| log(number, 1, 0)).collect());
    let options = options(1.5);
    let mut together = 30;
    for _ in 0..60 {
        let victims = victims(&tree, &options, VICTIMS_MAX);
        let is_victim = |log: &LogSummary| victims.contains(&log.number);
        if victims.iter().any(|victim| DAMAGED.contains(&victim.0)) {
            for log in &mut tree.logs {
                log.is_resting = victims.contains(&log.number);
                log.failures += u32::from(log.is_resting);
            }
        } else if victims.is_empty() {
            tree.logs.iter_mut().for_each(|log| log.is_resting = false);
        } else {
            let live: u64 = tree
                .logs
                .iter()
                .filter(|log| is_victim(log))
                .map(|log| log.live_bytes)
                .sum();
            tree.logs.retain(|log| !is_victim(log));
            tree.logs.push(log(together, live >> 20, 0));
            together += 1;
        }
    }
    let left = |number| tree.logs.iter().any(|log| log.number == FileNumber(number));
    assert!(DAMAGED.into_iter().all(left));
    assert!(tree.logs.len() <= DAMAGED.len() + 8, "{:?}", tree.logs);
}
