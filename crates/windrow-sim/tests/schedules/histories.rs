//! Transactions of several threads over a list and a register, beside flushes and a compaction: what the threads have seen
//! has no forbidden cycle.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use windrow::operators::Append;
use windrow::{ErrorKind, Isolation, Keyspace, Result};
use windrow_sim::SimDisk;
use windrow_sim::histories::{Level, List, Step, Transaction, check};

use crate::{Bank, explore, options};

/// The key of the list.
const LIST: u64 = 0;

/// The key of the register.
const REGISTER: u64 = 1;

/// The elements that each thread writes.
const ELEMENTS: u64 = 3;

/// What is added to an element to make a second value of the same transaction.
const SECOND: u64 = 100;

fn encoded_key(key: u64) -> [u8; 1] {
    [u8::try_from(key).unwrap()]
}

fn decoded(value: Option<Vec<u8>>) -> List {
    let elements = value.unwrap_or_default();
    elements.into_iter().map(u64::from).collect()
}

fn encoded(list: &[u64]) -> Vec<u8> {
    list.iter().map(|it| u8::try_from(*it).unwrap()).collect()
}

/// The step that writes `element` to `key`, which had `list`, and the value that it writes.
fn write_of(key: u64, list: &[u64], element: u64) -> (Step, Vec<u8>) {
    if key == REGISTER {
        (Step::Write(key, element), encoded(&[element]))
    } else {
        let list = [list, &[element]].concat();
        (Step::Append(key, element), encoded(&list))
    }
}

/// The transactions of a history: optimistic ones, or locking ones.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Optimistic(Isolation),
    Locking,
}

impl Kind {
    /// Whether its transactions may append operands: only those that cover their reads have one place in the order.
    fn merges(self) -> bool {
        !matches!(self, Self::Optimistic(Isolation::Snapshot))
    }
}

/// An open transaction, and what it has done.
struct Open<'a> {
    keyspace: &'a Keyspace,
    transaction: windrow::Transaction,
    steps: &'a mut Vec<Step>,
}

impl Open<'_> {
    /// Reads both keys by a scan.
    fn scan(&mut self) -> Result<[List; 2]> {
        let entries = self.transaction.iter(self.keyspace)?;
        let entries: Vec<_> = entries.collect::<Result<_>>()?;
        Ok([LIST, REGISTER].map(|key| {
            let found = entries.iter().find(|entry| entry.0 == encoded_key(key));
            let list = decoded(found.map(|entry| entry.1.clone()));
            self.steps.push(Step::Read(key, list.clone()));
            list
        }))
    }

    /// Reads both keys under locks, in one order or the other.
    fn read_locked(&mut self, element: u64) -> Result<[List; 2]> {
        let mut lists = [List::new(), List::new()];
        for read in [element % 2, (element + 1) % 2] {
            let (transaction, key) = (&self.transaction, encoded_key(read));
            let found = if element.is_multiple_of(5) && read != element % 2 {
                transaction.get_for_share(self.keyspace, key)?
            } else {
                transaction.get_for_update(self.keyspace, key)?
            };
            let list = decoded(found);
            self.steps.push(Step::Read(read, list.clone()));
            lists[usize::try_from(read).unwrap()] = list;
        }
        Ok(lists)
    }

    fn insert(&mut self, key: u64, list: &[u64], element: u64) -> Result<()> {
        let (step, value) = write_of(key, list, element);
        self.steps.push(step);
        self.transaction
            .insert(self.keyspace, encoded_key(key), value)
    }

    /// Writes `element` to its key, after a read of both `lists`: the whole value, an operand, or both keys after a
    /// deletion of both.
    fn write(&mut self, lists: &[List; 2], element: u64, merges: bool) -> Result<()> {
        let [list, register] = lists;
        match element {
            1 => {
                let savepoint = self.transaction.savepoint();
                self.transaction
                    .insert(self.keyspace, encoded_key(LIST), "undone")?;
                self.transaction.roll_back_to(savepoint)?;
                self.insert(REGISTER, register, element)
            }
            4 if merges => {
                self.steps.push(Step::Append(LIST, element));
                let operand = encoded(&[element]);
                self.transaction
                    .merge(self.keyspace, encoded_key(LIST), operand)
            }
            8 => {
                let both = encoded_key(LIST)..=encoded_key(REGISTER);
                self.transaction.delete_range(self.keyspace, both)?;
                self.insert(LIST, list, element)?;
                self.insert(REGISTER, register, element + SECOND)
            }
            _ if element % 2 == LIST => self.insert(LIST, list, element),
            _ => self.insert(REGISTER, register, element),
        }
    }
}

/// Writes `element` in a transaction that reads both keys; some of those with locks are prepared first.
fn transact(bank: &Bank, kind: Kind, element: u64, steps: &mut Vec<Step>) -> Result<()> {
    let mut open = Open {
        keyspace: &bank.left,
        transaction: match kind {
            Kind::Optimistic(isolation) => bank.db.transaction_with(isolation),
            Kind::Locking => bank.db.locking_transaction(),
        },
        steps,
    };
    let lists = match kind {
        Kind::Optimistic(_) => open.scan()?,
        Kind::Locking => open.read_locked(element)?,
    };
    open.write(&lists, element, kind.merges())?;
    if matches!(kind, Kind::Locking) && element.is_multiple_of(4) {
        let prepared = open.transaction.prepare(&element.to_string())?;
        prepared.commit().unwrap();
        Ok(())
    } else {
        open.transaction.commit()
    }
}

/// Writes `element` in a transaction, by an update, or unseen. Returns what was committed.
fn write(bank: &Bank, clock: &AtomicU64, kind: Kind, element: u64) -> Option<Transaction> {
    let begun = clock.fetch_add(1, Ordering::SeqCst);
    let mut steps = Vec::new();
    let key = element % 2;
    let outcome = match element {
        3 | 6 => {
            let mut found = List::new();
            let change = |old: Option<&[u8]>| {
                found = decoded(old.map(<[u8]>::to_vec));
                Some(write_of(key, &found, element).1)
            };
            let outcome = bank.left.update(encoded_key(key), change).map(drop);
            steps.push(Step::Read(key, found));
            steps.push(write_of(key, &[], element).0);
            outcome
        }
        9 => {
            let (step, value) = write_of(REGISTER, &[], element);
            steps.push(step);
            bank.left.insert(encoded_key(REGISTER), value)
        }
        _ => transact(bank, kind, element, &mut steps),
    };
    let ended = clock.fetch_add(1, Ordering::SeqCst);
    match outcome {
        Ok(()) => Some(Transaction {
            steps,
            begun,
            ended,
        }),
        Err(error) => {
            let is_refused = [ErrorKind::Conflict, ErrorKind::Deadlock].contains(&error.kind());
            assert!(is_refused, "{error}");
            None
        }
    }
}

fn check_history(kind: Kind, level: Level) {
    let disk = SimDisk::new();
    let options = options(&disk).with_merge_operator("left", Arc::new(Append::new([])));
    let bank = Bank::open_with(options);
    // Time 0 is before all of them.
    let clock = Arc::new(AtomicU64::new(1));
    let threads = (0..3_u64).map(|thread| {
        let (bank, clock) = (bank.clone(), Arc::clone(&clock));
        thread::spawn(move || -> Vec<_> {
            let elements = (1..=ELEMENTS).map(|step| thread * ELEMENTS + step);
            elements
                .filter_map(|element| write(&bank, &clock, kind, element))
                .collect()
        })
    });
    let threads: Vec<_> = threads.collect();
    bank.left.compact_range::<&[u8]>(..).unwrap();
    let committed: Vec<_> = threads
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    assert!(!committed.is_empty());
    let last = [LIST, REGISTER].map(|key| {
        let value = bank.left.get(encoded_key(key)).unwrap();
        (key, decoded(value))
    });
    if let Err(anomaly) = check(&committed, &last.into(), level) {
        panic!("{anomaly}");
    }
}

#[test]
fn serializable_transactions_leave_no_cycle() {
    explore(|| {
        check_history(
            Kind::Optimistic(Isolation::Serializable),
            Level::Serializable,
        )
    });
}

#[test]
fn snapshot_transactions_leave_no_forbidden_cycle() {
    explore(|| check_history(Kind::Optimistic(Isolation::Snapshot), Level::Snapshot));
}

// A wait that nobody ends is a deadlock of the schedule.
#[test]
fn locking_transactions_leave_no_cycle_and_none_waits_for_ever() {
    explore(|| check_history(Kind::Locking, Level::Serializable));
}
