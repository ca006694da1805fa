//! Transactions of several clients in turn, on a simulated disk: their history is checked for forbidden cycles.
//!
//! A seed chooses which client takes its next step: a read, a scan, an append, a savepoint, a commit. So transactions
//! overlap in every way, while flushes and compactions run between their steps. Some take locks, without waiting for
//! them, and some are prepared (`prepared.rs`) and end much later, after crashes, too. Some keys hold lists and some
//! registers. An append writes the whole list, or the element as an operand, or deletes a range of keys and writes them
//! again; a register is replaced, most often after a read. Single-key updates, operands and batches come in between. The
//! power fails during some steps, some processes end, and devices report errors.
//!
//! After each open the keys show which transactions have survived: all up to the last one of which anything is left.
//! - I1: a transaction survives as a whole or not at all;
//! - I2: all acknowledged ones survive the end of a process, and a power failure if a synced commit came after them;
//! - I3: the history of the survivors, over all crashes, has the isolation of the seed ([`histories`]).
//!
//! Concurrency: one thread runs a seed, so a commit has a group of its own. The tests of `schedules` and of the crate
//! `windrow` have groups.

mod client;
mod prepared;

use super::{Replay, Seeds, one_of, write_counts};
use crate::disk::{CrashPolicy, Fault, OperationKind, SimDisk};
use crate::histories::{self, Level, List, Step, Transaction};
use crate::session::{FOLDER, is_device_error, verify};
use crate::settings::Setting;
use crate::{Random, SteppedRuntime, combine};
use clap::Args;
use client::Client;
use prepared::Prepared;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windrow::operators::Append;
use windrow::{Batch, Db, Durability, Error, ErrorKind, Isolation, Keyspace, Result};

/// Keys of each history, half of them in each keyspace.
const KEYS: u64 = 10;

/// The first of the keys that hold registers. Those before it hold lists.
const REGISTERS: u64 = 6;

/// The keyspaces of even and odd keys.
const NAMES: [&str; 2] = ["even", "odd"];

const CLIENTS: usize = 4;

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the histories.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Steps in each history.
    #[arg(long, default_value_t = 1500)]
    pub operations: usize,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Histories.
    pub histories: u64,
    /// Transactions in the checked histories.
    pub transactions: u64,
    /// Commits that were refused by a conflict.
    pub conflicts: u64,
    /// Locks that were not free.
    pub locked: u64,
    /// Transactions that were prepared.
    pub prepared: u64,
    /// Ends of a process and power failures.
    pub crashes: u64,
    /// Transactions that a crash has lost.
    pub lost: u64,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        self.histories += other.histories;
        self.transactions += other.transactions;
        self.conflicts += other.conflicts;
        self.locked += other.locked;
        self.prepared += other.prepared;
        self.crashes += other.crashes;
        self.lost += other.lost;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_counts(
            f,
            &[
                ("histories", self.histories),
                ("transactions", self.transactions),
                ("conflicts", self.conflicts),
                ("refused locks", self.locked),
                ("prepared transactions", self.prepared),
                ("crashes", self.crashes),
                ("transactions lost in crashes", self.lost),
            ],
        )
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| run_seed(plan, seed))
}

fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let mut replay = Replay::new(
        "transactions",
        seed,
        &format!("--operations {}", plan.operations),
    );
    replay.at("the first open".to_owned());
    let mut run = Run::new(seed);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::default()).collect();
    for index in 0..plan.operations {
        replay.at(format!("operation {index}"));
        let outcome = run.operate(&mut clients);
        match outcome {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict => run.tally.conflicts += 1,
            Err(error) if error.kind() == ErrorKind::TimedOut => run.tally.locked += 1,
            Err(error) => {
                assert!(run.is_failing && is_device_error(error.kind()), "{error:?}");
                clients.iter_mut().for_each(Client::forget);
                run.crash();
            }
        }
    }
    replay.at("the end".to_owned());
    run.check();
    clients.iter_mut().for_each(Client::forget);
    run.crash();
    run.check();
    run.tally.histories = 1;
    run.tally.transactions = run.history.len() as u64;
    run.tally
}

/// A transaction of the history, and what is known of its commit.
struct Recorded {
    transaction: Transaction,
    /// Whether it was acknowledged since the last crash, or has survived one.
    is_acknowledged: bool,
    /// Whether a power failure may lose it.
    is_volatile: bool,
}

struct Run {
    random: Random,
    setting: Setting,
    isolation: Isolation,
    disk: SimDisk,
    runtime: SteppedRuntime,
    store: Option<Store>,
    history: Vec<Recorded>,
    prepared: BTreeMap<String, Prepared>,
    clock: u64,
    next_element: u64,
    /// Whether the disk may report errors.
    is_failing: bool,
    tally: Tally,
}

/// The open database.
struct Store {
    db: Db,
    keyspaces: [Keyspace; 2],
}

impl Store {
    fn open(setting: &Setting, disk: &SimDisk, runtime: &SteppedRuntime) -> Result<Self> {
        let mut options = setting.on(disk, runtime);
        // There is one thread.
        options.lock_timeout = Duration::ZERO;
        let appending = NAMES.into_iter().fold(options, |options, name| {
            options.with_merge_operator(name, Arc::new(Append::new([])))
        });
        let db = Db::open(Path::new(FOLDER), appending)?;
        let [even, odd] = NAMES;
        let keyspaces = [setting.keyspace(&db, even)?, setting.keyspace(&db, odd)?];
        Ok(Self { db, keyspaces })
    }

    fn keyspace(&self, key: u64) -> &Keyspace {
        &self.keyspaces[usize::from(key % 2 == 1)]
    }

    /// All lists and registers.
    fn lists(&self) -> Result<BTreeMap<u64, List>> {
        let mut lists = BTreeMap::new();
        for keyspace in &self.keyspaces {
            for entry in keyspace.iter()? {
                let (key, list) = entry?;
                lists.insert(decode_key(&key), decode(&list));
            }
        }
        Ok(lists)
    }
}

fn encode_key(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

fn decode_key(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("a key has eight bytes"))
}

fn encode(list: &[u64]) -> Vec<u8> {
    list.iter()
        .flat_map(|element| element.to_le_bytes())
        .collect()
}

fn decode(list: &[u8]) -> List {
    let elements = list.chunks(8);
    let element = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("whole elements"));
    elements.map(element).collect()
}

/// Whether any of `steps` is a write.
fn writes(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.written().is_some())
}

/// The step that writes `element` to `key`, which had `list`, and the value that it writes.
fn write_of(key: u64, list: &[u64], element: u64) -> (Step, Vec<u8>) {
    if key >= REGISTERS {
        (Step::Write(key, element), encode(&[element]))
    } else {
        let list = [list, &[element]].concat();
        (Step::Append(key, element), encode(&list))
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let setting = one_of(&Setting::logged(), seed);
        let (disk, runtime) = (SimDisk::new(), SteppedRuntime::new(seed));
        let store = Store::open(&setting, &disk, &runtime).expect("a sound disk");
        Self {
            random: Random::new(combine(seed, 5)),
            setting,
            isolation: *Random::new(seed).pick(&[Isolation::Serializable, Isolation::Snapshot]),
            disk,
            runtime,
            store: Some(store),
            history: Vec::new(),
            prepared: BTreeMap::new(),
            clock: 0,
            next_element: 0,
            is_failing: false,
            tally: Tally::default(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("the database is open")
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn element(&mut self) -> u64 {
        self.next_element += 1;
        self.next_element
    }

    /// Does something: most often the next step of a client.
    fn operate(&mut self, clients: &mut [Client]) -> Result<()> {
        match self.random.below(400) {
            0..24 => self.write_alone(),
            24..36 => {
                self.runtime.step();
                Ok(())
            }
            36..40 => self.store().db.flush(),
            40..42 => {
                let keyspace = self.random.index(2);
                self.store().keyspaces[keyspace].compact_range::<&[u8]>(..)
            }
            42 => {
                // The power fails at one of the next changes of the disk, or a device does.
                self.check();
                self.is_failing = true;
                let at = self.random.below(30);
                match self.random.below(3) {
                    0 => self.disk.set_faults([Fault::io(OperationKind::Write, at)]),
                    1 => self
                        .disk
                        .set_faults([Fault::io(OperationKind::Sync, at % 4)]),
                    _ => self.disk.crash_at(at),
                }
                Ok(())
            }
            43 => {
                clients.iter_mut().for_each(Client::forget);
                self.end_process();
                Ok(())
            }
            44..64 if self.has_prepared() => self.end_prepared(),
            _ => {
                let client = self.random.index(clients.len());
                clients[client].step(self)
            }
        }
    }

    fn durability(&mut self) -> Durability {
        *self
            .random
            .pick(&[Durability::Buffered, Durability::Buffered, Durability::Sync])
    }

    /// Writes without a transaction: by an update, by a batch that nothing can come before, or without a read.
    fn write_alone(&mut self) -> Result<()> {
        let (key, element, begun) = (self.random.below(KEYS), self.element(), self.tick());
        let store = self.store();
        let (keyspace, encoded) = (store.keyspace(key), encode_key(key));
        let mut found = List::new();
        let (step, whole) = write_of(key, &found, element);
        let mut steps = vec![step];
        let outcome = match element % 4 {
            0 if key >= REGISTERS => keyspace.insert(encoded, whole),
            0 => keyspace.merge(encoded, whole),
            kind => {
                let outcome = if kind == 2 {
                    let write = |old: Option<&[u8]>| {
                        found = decode(old.unwrap_or_default());
                        Some(write_of(key, &found, element).1)
                    };
                    keyspace.update(encoded, write).map(drop)
                } else {
                    found = decode(&keyspace.get(encoded)?.unwrap_or_default());
                    let mut batch = Batch::new();
                    if element % 3 == 0 {
                        batch.delete_range(keyspace, encoded..encode_key(key + 1))?;
                    }
                    batch.insert(keyspace, encoded, write_of(key, &found, element).1)?;
                    store.db.write(&batch)
                };
                steps.insert(0, Step::Read(key, found));
                outcome
            }
        };
        self.record(steps, begun, Durability::Buffered, outcome)
    }

    /// Adds a transaction to the history, unless it was refused.
    fn record(
        &mut self,
        steps: Vec<Step>,
        begun: u64,
        durability: Durability,
        outcome: Result<()>,
    ) -> Result<()> {
        let is_conflict = |error: &Error| error.kind() == ErrorKind::Conflict;
        if outcome.as_ref().is_err_and(is_conflict) {
            return outcome;
        }
        let ended = self.tick();
        // A commit without writes syncs nothing.
        let is_synced = outcome.is_ok() && durability == Durability::Sync && writes(&steps);
        self.history.push(Recorded {
            transaction: Transaction {
                steps,
                begun,
                ended,
            },
            is_acknowledged: outcome.is_ok(),
            is_volatile: true,
        });
        if is_synced {
            self.note_sync();
        }
        outcome
    }

    /// Everything that was acknowledged is durable (I2).
    fn note_sync(&mut self) {
        for recorded in self.history.iter_mut().filter(|it| it.is_acknowledged) {
            recorded.is_volatile = false;
        }
        self.prepared.values_mut().for_each(Prepared::note_sync);
    }

    fn end_process(&mut self) {
        self.check();
        self.store = None;
        self.disk = self.disk.end_process();
        if self.is_failing {
            return self.crash();
        }
        self.recover(false);
    }

    /// Lets the power fail.
    fn crash(&mut self) {
        self.store = None;
        let seed = self.random.next_u64();
        let policy = *self.random.pick(&CrashPolicy::all(seed));
        self.disk = self.disk.crash(policy);
        self.recover(true);
    }

    /// Opens the database and forgets the transactions that have not survived.
    fn recover(&mut self, has_power_failed: bool) {
        self.is_failing = false;
        let store = Store::open(&self.setting, &self.disk, &self.runtime);
        let store = store.expect("the database opens after a crash");
        let lists = store
            .lists()
            .expect("the database can be read after a crash");
        let is_seen = |recorded: &Recorded| {
            let mut written = recorded.transaction.steps.iter().filter_map(Step::written);
            let has = |list: &List, element| list.contains(&element);
            written.any(|(key, element)| lists.get(&key).is_some_and(|list| has(list, element)))
        };
        // Half a transaction stays in the history, whose check then finds it (I1). A commit that was replaced is not
        // seen, but the one that has replaced it comes later.
        let survivors = self.history.iter().rposition(is_seen);
        let survivors = survivors.map_or(0, |last| last + 1);
        let before = self.history.len();
        for (position, recorded) in self.history.iter_mut().enumerate() {
            let has_survived = position < survivors;
            let must_survive =
                recorded.is_acknowledged && !(has_power_failed && recorded.is_volatile);
            // Those that only read, after the last that has survived, may have read what was lost.
            if writes(&recorded.transaction.steps) {
                assert!(
                    has_survived || !must_survive,
                    "an acknowledged commit was lost: {:?} of {lists:?}",
                    recorded.transaction
                ); // I2
            }
            recorded.is_acknowledged = has_survived;
            recorded.is_volatile = false;
        }
        self.history.retain(|recorded| recorded.is_acknowledged);
        self.tally.lost += (before - self.history.len()) as u64;
        self.tally.crashes += 1;
        verify(&store.db).expect("the database can be verified");
        self.store = Some(store);
        self.recover_prepared(&lists, has_power_failed);
        self.check();
    }

    /// Checks the history so far (I3), unless faults have left its end unknown.
    fn check(&self) {
        if self.is_failing {
            return;
        }
        let transactions: Vec<_> = self
            .history
            .iter()
            .map(|it| it.transaction.clone())
            .collect();
        let last = self.store().lists().expect("a sound disk");
        let level = match self.isolation {
            Isolation::Serializable => Level::Serializable,
            Isolation::Snapshot => Level::Snapshot,
        };
        if let Err(anomaly) = histories::check(&transactions, &last, level) {
            panic!("{anomaly}");
        }
    }
}
