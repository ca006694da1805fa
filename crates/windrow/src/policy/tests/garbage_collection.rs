//! Which value logs are collected, and when.

use proptest::prelude::*;

use super::tables::{file, tree};
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;
use crate::policy::{
    Compaction, FileSummary, LogSummary, Plan, Purpose, TreeSummary, VICTIMS_MAX, garbage_excess,
    is_value_log_full, plan, value_log_bytes, values_behind_max, victims, wants_seal,
};

const MIB: u64 = 1 << 20;

fn log(number: u64, live_mib: u64, garbage_mib: u64) -> LogSummary {
    LogSummary {
        number: FileNumber(number),
        table_bytes: 0,
        live_bytes: live_mib * MIB,
        garbage_bytes: garbage_mib * MIB,
        moves: 1000,
        is_ready: true,
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

fn chosen(tree: &TreeSummary<u32>, max_space_amp: f64) -> Vec<u64> {
    let victims = victims(tree, &options(max_space_amp), VICTIMS_MAX);
    victims.into_iter().map(|number| number.0).collect()
}

#[test]
fn those_with_most_that_is_dead_go_first_and_none_before_the_room_is_used() {
    // 200 MiB live; 40, 20 and 4 dead.
    let logs = vec![log(2, 60, 4), log(3, 24, 40), log(4, 44, 20), log(5, 72, 0)];
    let of = |max_space_amp| chosen(&tree_over(logs.clone()), max_space_amp);
    // The live bytes of one collection are about a log: 24 and 44 are more than 64 MiB.
    assert_eq!(of(1.1), [3]);
    assert_eq!(of(1.3), [3]);
    assert_eq!(of(1.35), []);
    assert_eq!(of(f64::INFINITY), []);
    // What little is dead is not worth it.
    assert_eq!(chosen(&tree_over(vec![log(2, 100, 5)]), 1.01), []);
    // Several go together.
    let many = (2..10).map(|number| log(number, 10, 54)).collect();
    assert_eq!(chosen(&tree_over(many), 1.1).len(), 6);
}

/// I1; and a log that is being written is completed for it.
#[test]
fn what_may_still_be_pointed_to_waits() {
    let mut waits = log(3, 24, 40);
    waits.is_ready = false;
    let logs = vec![waits, log(4, 44, 20), log(5, 100, 0)];
    assert_eq!(chosen(&tree_over(logs), 1.1), [4]);
    let tree = tree_over(vec![waits, log(5, 100, 0)]);
    assert_eq!(chosen(&tree, 1.1), []);
    assert!(!wants_seal(&tree, &options(1.1)));
    let open = LogSummary {
        is_open: true,
        ..waits
    };
    let tree = tree_over(vec![open, log(5, 100, 0)]);
    assert!(wants_seal(&tree, &options(1.1)));
    assert!(!wants_seal(&tree, &options(2.0)));
    // Not while there is something to collect.
    let tree = tree_over(vec![open, log(5, 100, 50)]);
    assert!(!wants_seal(&tree, &options(1.1)));
}

/// I2.
#[test]
fn tables_bound_what_is_collected_together() {
    let many = (2..10).map(|number| LogSummary {
        moves: 500_000,
        ..log(number, 1, 60)
    });
    assert_eq!(chosen(&tree_over(many.collect()), 1.1).len(), 2);
}

/// I4.
#[test]
fn what_has_failed_goes_alone_and_holds_up_nothing() {
    let failed = |number, live_mib, garbage_mib, failures| LogSummary {
        failures,
        ..log(number, live_mib, garbage_mib)
    };
    let resting = |number, live_mib, garbage_mib| LogSummary {
        is_resting: true,
        ..failed(number, live_mib, garbage_mib, 1)
    };
    let rest = log(9, 400, 0);
    // Those that rest are passed over.
    let tree = tree_over(vec![
        resting(2, 1, 60),
        log(3, 30, 30),
        log(4, 20, 40),
        rest,
    ]);
    assert_eq!(chosen(&tree, 1.1), [4, 3]);
    // Each failure makes the turn later, and whose turn comes goes alone.
    for (failures, expected) in [(1, vec![2]), (2, vec![3, 4])] {
        let logs = vec![
            failed(2, 0, 60, failures),
            log(3, 40, 20),
            log(4, 20, 10),
            rest,
        ];
        assert_eq!(chosen(&tree_over(logs), 1.05), expected);
    }
    // Nobody waits for them, nor is more collected elsewhere for their sake.
    let tree = tree_over(vec![resting(2, 10, 60), log(3, 40, 20), log(4, 400, 0)]);
    assert_eq!(garbage_excess(&tree, &options(1.1)), 0);
    assert_eq!(chosen(&tree, 1.1), []);
    let tree = tree_over(vec![failed(2, 10, 60, 1), log(4, 400, 0)]);
    assert_eq!(garbage_excess(&tree, &options(1.1)), 0);
    assert_eq!(chosen(&tree, 1.1), [2]);
    // Where there was no room for more.
    let many = tree_over((2..10).map(|number| log(number, 1, 60)).collect());
    assert_eq!(victims(&many, &options(1.1), 3).len(), 3);
    assert_eq!(victims(&many, &options(1.1), 1).len(), 1);
}

#[test]
fn what_stands_behind_a_memtable_follows_the_room() {
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
    // What level 0 refers to may supersede as much.
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
    /// Collections end, with the room kept or nothing left that is worth it; each takes garbage away.
    #[test]
    fn collections_end(
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

/// I5: the number of files follows the data, at a price that does, too.
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
    // A bound on room that is not there is kept by nothing.
    let many: Vec<LogSummary> = (2..40).map(|number| log(number, 1, 0)).collect();
    assert_eq!(chosen(&tree_over(many.clone()), f64::INFINITY), []);
    assert!(chosen(&tree_over(many), 1.5).len() >= 8);
}

#[test]
fn value_logs_grow_with_what_they_hold() {
    let options = options(1.5);
    let mib = |held_gib: u64| value_log_bytes(held_gib << 30, &options) >> 20;
    assert_eq!([0, 32, 33, 64, 1024].map(mib), [64, 64, 66, 128, 2048]);
    // Of long values, and of those of a KiB, of which a collection cannot take so many at once.
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

/// Where there was no room for more, two fragments go, so that it is not none for ever.
#[test]
fn few_fragments_are_put_together_where_room_is_short() {
    let logs = (0..5).map(|number| log(number + 2, 1 << number, 0));
    let tree = tree_over(logs.collect());
    let options = options(1.5);
    let chosen = |at_most| victims(&tree, &options, at_most);
    assert_eq!(chosen(VICTIMS_MAX), []);
    assert_eq!(chosen(1), [FileNumber(2), FileNumber(3)]);
    assert_eq!(chosen(2), [FileNumber(2), FileNumber(3)]);
    assert_eq!(chosen(4), [2, 3, 4, 5].map(FileNumber));
}

/// I5: fragments whose collection failed go behind all others, in pairs, so that in the end only what is
/// damaged stays.
#[test]
fn fragments_that_fail_hold_up_no_others() {
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

/// Where too many values are found only through tables, the file with most of them for its bytes is
/// written anew where it is.
#[test]
fn pointers_follow_values_that_have_moved() {
    let options = options(f64::INFINITY);
    let plan_for = |moved: [u64; 2]| {
        let file = |number, smallest, largest, moved_mib: u64| FileSummary {
            log_bytes: 100 * MIB,
            moved_bytes: moved_mib * MIB,
            ..file(number, smallest, largest, 64)
        };
        let level = vec![file(1, 0, 100, moved[0]), file(2, 101, 200, moved[1])];
        let tree = TreeSummary {
            logs: vec![log(3, 200, 0)],
            ..tree(1, vec![vec![], level])
        };
        plan(&tree, &options, &[])
    };
    assert_eq!(plan_for([20, 30]), Plan::Idle);
    let Plan::Compact(Compaction {
        level,
        upper,
        lower,
        claim,
        purpose,
        ..
    }) = plan_for([20, 31])
    else {
        panic!("nothing is rewritten");
    };
    assert_eq!((level, upper, lower), (1, vec![FileNumber(2)], vec![]));
    assert_eq!((claim.level, claim.smallest, claim.largest), (1, 101, 200));
    assert_eq!(purpose, Purpose::PointerRewrite);
}
