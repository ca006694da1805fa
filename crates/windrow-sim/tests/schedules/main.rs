//! The whole engine under shuttle: two background workers, writers, readers and snapshots on a
//! simulated disk, one schedule after the other. Run with `--cfg shuttle`; see `docs/testing.md`.
//!
//! A wait with a timeout never times out here. So a lost wake-up is a deadlock, which shuttle reports and a timeout
//! would hide.

#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod changes;
mod compaction_filters;
mod expiry;
mod histories;
mod ingestion;
mod operands;
mod points;
mod runtime;
mod secondaries;

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner, thread};
use windrow::{Batch, Db, Durability, Error, ErrorKind, Keyspace, Options, Result};
use windrow_sim::disk::OperationKind;
use windrow_sim::{CrashPolicy, SimDisk};

use runtime::ScheduledRuntime;

/// Schedules of each kind that each test runs, unless `SCHEDULES` says otherwise.
const SCHEDULES: usize = 1000;

/// The sum of each writer's two accounts.
const TOTAL: u64 = 1000;

/// Transfers of each writer: enough for a flush and a compaction of each keyspace.
const TRANSFERS: u64 = 6;

const WRITERS: u64 = 2;

/// Runs `test` under random schedules and under schedules with three preemptions at chosen places, or under the schedule
/// in the file that `REPLAY` names.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment chooses the schedules"
)]
fn explore(test: fn()) {
    if let Ok(schedule) = std::env::var("REPLAY") {
        return run(ReplayScheduler::new_from_file(schedule).unwrap(), test);
    }
    let schedules = std::env::var("SCHEDULES").map_or(SCHEDULES, |number| number.parse().unwrap());
    run(RandomScheduler::new(schedules), test);
    run(PctScheduler::new(3, schedules), test);
}

/// A failing schedule is written to a file. Shuttle prints its name.
fn run(scheduler: impl Scheduler + 'static, test: fn()) {
    let mut config = Config::new();
    config.stack_size = 256 << 10;
    config.failure_persistence = FailurePersistence::File(Some(env!("CARGO_TARGET_TMPDIR").into()));
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test);
}

/// Options for a database on `disk`, with sizes that make a few transfers fill memtables.
fn options(disk: &SimDisk) -> Options {
    let mut options = windrow_sim::unobserved(Options::default());
    options.keyspace.memtable_bytes = 4 << 10;
    options.keyspace.file_bytes = 2 << 10;
    options.keyspace.base_bytes = 2 << 10;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.level0_runs = 1;
    options.keyspace.block_bytes = 1 << 10;
    options.max_wal_bytes = 8 << 10;
    options
        .with_vfs(Arc::new(disk.clone()))
        .with_runtime(Arc::new(ScheduledRuntime::default()))
}

/// A bank: accounts in two keyspaces, and transfers between them.
#[derive(Debug, Clone)]
struct Bank {
    db: Db,
    left: Keyspace,
    right: Keyspace,
}

impl Bank {
    fn open(disk: &SimDisk) -> Self {
        Self::open_with(options(disk))
    }

    fn open_with(options: Options) -> Self {
        let db = Db::open("/bank", options).unwrap();
        let left = db.keyspace("left").unwrap();
        let right = db.keyspace("right").unwrap();
        Self { db, left, right }
    }

    /// Leaves `amount` in the left account of `writer` and the rest of its total in the right one.
    fn transfer(&self, writer: u64, amount: u64, durability: Durability) -> Result<()> {
        let mut batch = Batch::new();
        batch.insert(&self.left, account(writer), balance(amount))?;
        batch.insert(&self.right, account(writer), balance(TOTAL - amount))?;
        self.db.write_with(&batch, durability)
    }

    /// The same, after a deletion of both accounts as ranges.
    fn transfer_anew(&self, writer: u64, amount: u64) -> Result<()> {
        let range = account(writer)..account(writer + 1);
        let mut batch = Batch::new();
        batch.delete_range(&self.left, range.clone())?;
        batch.delete_range(&self.right, range)?;
        batch.insert(&self.left, account(writer), balance(amount))?;
        batch.insert(&self.right, account(writer), balance(TOTAL - amount))?;
        self.db.write(&batch)
    }

    /// The amount in the left account of `writer`.
    fn amount(&self, writer: u64) -> Option<u64> {
        let value = self.left.get(account(writer)).unwrap();
        value.map(|value| amount_of(&value))
    }

    /// Checks the totals at a snapshot; returns the amounts of the left accounts.
    fn audit(&self) -> Vec<Option<u64>> {
        let snapshot = self.db.snapshot();
        let left = self.left.at(&snapshot).unwrap();
        let right = self.right.at(&snapshot).unwrap();
        let read = || -> Vec<_> {
            let amounts = |writer| {
                let left = left.get(account(writer)).unwrap();
                let right = right.get(account(writer)).unwrap();
                let total = |left: &Vec<u8>, right: &Vec<u8>| amount_of(left) + amount_of(right);
                let sum = left.as_ref().zip(right.as_ref());
                assert_eq!(left.is_some(), right.is_some(), "half a transfer");
                assert!(sum.is_none_or(|(left, right)| total(left, right) == TOTAL));
                left.map(|value| amount_of(&value))
            };
            (0..WRITERS).map(amounts).collect()
        };
        let amounts = read();
        let scanned = left
            .iter()
            .unwrap()
            .map(|entry| amount_of(&entry.unwrap().1));
        let present: Vec<_> = amounts.iter().flatten().copied().collect();
        assert_eq!(scanned.collect::<Vec<_>>(), present);
        assert_eq!(read(), amounts, "a snapshot has changed");
        amounts
    }
}

fn account(writer: u64) -> [u8; 1] {
    [b'a' + u8::try_from(writer).unwrap()]
}

/// An amount with so much padding that a few fill a memtable.
/// Of odd amounts long enough that members of a group insert their own entries; those of even amounts are inserted by
/// the leader.
fn balance(amount: u64) -> Vec<u8> {
    let mut value = amount.to_le_bytes().to_vec();
    value.resize(value_bytes(amount), 0);
    value
}

fn value_bytes(amount: u64) -> usize {
    if amount.is_multiple_of(2) { 450 } else { 1350 }
}

fn amount_of(value: &[u8]) -> u64 {
    let amount = u64::from_le_bytes(*value.first_chunk().unwrap());
    assert_eq!(value.len(), value_bytes(amount));
    amount
}

#[test]
fn totals_hold_and_amounts_never_decrease() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let bank = bank.clone();
            threads.push(thread::spawn(move || {
                for amount in 1..=TRANSFERS {
                    let durability = match writer {
                        0 => Durability::Buffered,
                        _ => Durability::Sync,
                    };
                    bank.transfer(writer, amount, durability).unwrap();
                    assert_eq!(
                        bank.amount(writer),
                        Some(amount),
                        "a writer does not see its own write"
                    );
                }
            }));
        }
        let reader = bank.clone();
        threads.push(thread::spawn(move || {
            let mut last = vec![None; usize::try_from(WRITERS).unwrap()];
            for _ in 0..4 {
                let now: Vec<_> = (0..WRITERS).map(|writer| reader.amount(writer)).collect();
                assert!(now.iter().zip(&last).all(|(now, last)| now >= last));
                last = now;
            }
        }));
        let auditor = bank.clone();
        threads.push(thread::spawn(move || {
            let first = auditor.audit();
            let second = auditor.audit();
            assert!(
                second
                    .iter()
                    .zip(&first)
                    .all(|(second, first)| second >= first)
            );
        }));
        for thread in threads {
            thread.join().unwrap();
        }
        bank.db.flush().unwrap();
        bank.db.wait_idle().unwrap();
        assert!(bank.db.verify().unwrap().is_sound());
        let all = vec![Some(TRANSFERS); usize::try_from(WRITERS).unwrap()];
        assert_eq!(bank.audit(), all);
        let stats = bank.db.stats();
        assert!(stats.flushes >= 2 && stats.compactions + stats.trivial_moves >= 2);
        bank.db.close().unwrap();
        assert_eq!(Bank::open(&disk).audit(), all);
    });
}

#[test]
fn close_keeps_every_acknowledged_write() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let writer = bank.clone();
        let writer = thread::spawn(move || {
            let mut acknowledged = None;
            for amount in 1..=TRANSFERS {
                match writer.transfer(0, amount, Durability::Buffered) {
                    Ok(()) => acknowledged = Some(amount),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                        break;
                    }
                }
            }
            acknowledged
        });
        bank.audit();
        bank.db.close().unwrap();
        let acknowledged = writer.join().unwrap();
        let disk = disk.crash(CrashPolicy::DropUnsynced);
        assert_eq!(Bank::open(&disk).audit(), [acknowledged, None]);
    });
}

#[test]
fn a_returned_flush_is_counted() {
    explore(|| {
        let bank = Bank::open(&SimDisk::new());
        bank.transfer(0, 1, Durability::Buffered).unwrap();
        bank.db.flush().unwrap();
        // Both keyspaces have one entry.
        let stats = bank.db.stats();
        assert!(stats.flushes >= 2 && stats.flush_bytes > 0);
    });
}

#[test]
fn close_waits_for_jobs_of_callers() {
    explore(|| {
        let disk = SimDisk::new();
        disk.forbid_removal_in_use(".table");
        let bank = Bank::open(&disk);
        for amount in 1..=TRANSFERS {
            bank.transfer(0, amount, Durability::Buffered).unwrap();
        }
        let callers: [fn(&Bank) -> Result<()>; 4] = [
            |bank| bank.db.flush(),
            |bank| bank.db.wait_idle(),
            |bank| bank.left.compact_range::<&[u8]>(..),
            |bank| bank.db.keyspace("new").map(drop),
        ];
        let callers = callers.map(|call| {
            let bank = bank.clone();
            thread::spawn(move || {
                let outcome = call(&bank);
                let is_closed = |error: &Error| error.kind() == ErrorKind::Closed;
                assert!(outcome.as_ref().err().is_none_or(is_closed), "{outcome:?}");
                outcome.is_ok()
            })
        });
        let other = bank.clone();
        let other = thread::spawn(move || other.db.clone().close().unwrap());
        bank.db.clone().close().unwrap();
        // The lock is free, and no thread uses the old files.
        let again = Bank::open(&disk);
        assert_eq!(again.audit(), [Some(TRANSFERS), None]);
        let [.., creates] = callers.map(|caller| caller.join().unwrap());
        // Every acknowledged keyspace exists.
        let names = again.db.keyspace_names();
        assert!(!creates || names.iter().any(|name| name == "new"));
        other.join().unwrap();
        assert!(again.db.verify().unwrap().is_sound());
        again.db.close().unwrap();
        assert_eq!(Bank::open(&disk).audit(), [Some(TRANSFERS), None]);
    });
}

#[test]
fn compactions_by_callers_run_beside_writers_and_background_work() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let writer = bank.clone();
        let writer = thread::spawn(move || {
            for amount in 1..=TRANSFERS {
                if amount.is_multiple_of(2) {
                    writer.transfer_anew(0, amount).unwrap();
                } else {
                    writer.transfer(0, amount, Durability::Buffered).unwrap();
                }
            }
        });
        let idler = bank.clone();
        let idler = thread::spawn(move || {
            idler.db.persist().unwrap();
            idler.db.wait_idle().unwrap();
        });
        let before = bank.audit();
        bank.left.compact_range::<&[u8]>(..).unwrap();
        assert!(bank.audit() >= before);
        writer.join().unwrap();
        idler.join().unwrap();
        bank.left.compact_range::<&[u8]>(..).unwrap();
        assert!(bank.db.verify().unwrap().is_sound());
        assert_eq!(bank.audit(), [Some(TRANSFERS), None]);
        bank.db.close().unwrap();
    });
}

#[test]
fn a_seek_finds_a_write_into_a_tombstone_span() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let queue = bank.left.clone();
        for key in 0..20_u8 {
            queue.insert([key], [key]).unwrap();
            queue.remove([key]).unwrap();
        }
        queue.insert([99], [99]).unwrap();
        let first = |queue: &Keyspace| queue.first_key_value().unwrap().unwrap().0[0];
        // The finder publishes a tombstone span while the writer is preempted.
        let finder = queue.clone();
        let finder = thread::spawn(move || {
            for _ in 0..3 {
                let found = first(&finder);
                assert!([5, 99].contains(&found), "{found}");
            }
        });
        let writer = queue.clone();
        let writer = thread::spawn(move || {
            writer.insert([5], [5]).unwrap();
            assert_eq!(first(&writer), 5);
            writer.remove([5]).unwrap();
            assert_eq!(first(&writer), 99);
        });
        writer.join().unwrap();
        finder.join().unwrap();
        assert_eq!(first(&queue), 99);
        assert_eq!(first(&queue), 99);
        queue.insert([3], [3]).unwrap();
        assert_eq!(first(&queue), 3);
    });
}

/// The keys that one thread changes while another one writes all of them at once. Each is a chance to come in between.
const CONTESTED: std::ops::Range<u8> = 10..22;

/// Lets `change` append 2 to the values of keys while `write` sets them to 1. Whichever comes first, 1 is never lost.
fn check_no_lost_write(bank: &Bank, write: fn(&Bank) -> Result<()>, change: fn(&Bank)) {
    let writer = bank.clone();
    let writer = thread::spawn(move || write(&writer).unwrap());
    change(bank);
    writer.join().unwrap();
    for key in CONTESTED {
        let last = bank.left.get([key]).unwrap().unwrap();
        assert!(last == [1] || last == [1, 2], "{last:?}");
    }
}

/// The value with 2 at its end.
fn extended(value: Option<&[u8]>) -> Vec<u8> {
    [value.unwrap_or_default(), &[2]].concat()
}

fn allow_conflict(outcome: Result<()>) {
    if let Err(error) = outcome {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

fn change_under_locks(bank: &Bank) {
    let read = |key| {
        let transaction = bank.db.locking_transaction();
        let value = transaction.get_for_update(&bank.left, [key]).unwrap();
        (key, value, transaction)
    };
    let all: Vec<_> = CONTESTED.map(read).collect();
    for (key, value, transaction) in all {
        let value = extended(value.as_deref());
        transaction.insert(&bank.left, [key], value).unwrap();
        allow_conflict(transaction.commit());
    }
}

fn change_one_by_one(bank: &Bank) {
    for key in CONTESTED {
        let change = |value: Option<&[u8]>| Some(extended(value));
        allow_conflict(bank.left.update([key], change).map(drop));
    }
}

/// Lets each kind of change run beside writes to a new memtable.
fn check_rotation(change: fn(&Bank)) {
    let bank = Bank::open(&SimDisk::new());
    // The memtable is full now, so the next commit begins with a rotation.
    for _ in 0..5 {
        bank.left.insert([0], balance(1)).unwrap();
    }
    let write = |bank: &Bank| {
        let mut batch = Batch::new();
        for key in CONTESTED {
            batch.insert(&bank.left, [key], [1])?;
        }
        bank.db.write(&batch)
    };
    check_no_lost_write(&bank, write, change);
}

/// The same beside a table that is added.
fn check_ingestion(change: fn(&Bank)) {
    let bank = Bank::open(&SimDisk::new());
    let write = |bank: &Bank| {
        let entries = CONTESTED.map(|key| ([key], [1]));
        bank.left.bulk_load(entries).map(drop)
    };
    check_no_lost_write(&bank, write, change);
}

#[test]
fn a_read_for_a_change_does_not_miss_a_rotation() {
    explore(|| check_rotation(change_under_locks));
    explore(|| check_rotation(change_one_by_one));
}

#[test]
fn a_read_for_a_change_does_not_miss_an_ingestion() {
    explore(|| check_ingestion(change_under_locks));
    explore(|| check_ingestion(change_one_by_one));
}

// Such a commit would publish a part of the tables.
#[test]
fn no_commit_follows_a_panic_while_tables_are_added() {
    explore(|| {
        let disk = SimDisk::new();
        let bank = Bank::open(&disk);
        let has_begun = Arc::new(AtomicBool::new(false));
        disk.on_change({
            let has_begun = Arc::clone(&has_begun);
            move |event, _| {
                if event.is(OperationKind::Write, "manifest") {
                    has_begun.store(true, Ordering::SeqCst);
                    panic!("planted");
                }
            }
        });
        let writer = bank.clone();
        let writer = thread::spawn(move || {
            for number in 0..3 {
                let is_late = has_begun.load(Ordering::SeqCst);
                let outcome = writer.right.insert([number], [number]);
                assert!(!is_late || outcome.is_err(), "a write after the panic");
            }
        });
        let outcome = bank.left.bulk_load([([1], [1])]);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
        writer.join().unwrap();
        assert!(bank.right.insert([9], [9]).is_err());
    });
}
