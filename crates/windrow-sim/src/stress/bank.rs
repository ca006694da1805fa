//! The bank: threads move money between accounts and count it, on the real file system.
//!
//! Two writers move money by batches, each between its own accounts. Two readers count the money at snapshots, which
//! they keep and count again later, and by plain iterators. A fifth thread flushes memtables and compacts ranges all
//! the time. An account without money has no entry.
//!
//! Invariants:
//! - I1: the accounts of `left` and `right` together hold the same total at every snapshot.
//! - I2: the accounts of `alone` hold the same total, since no transfer leaves it. So an iterator without a snapshot
//!   shows the total too.
//! - I3: a writer finds its accounts as it left them.
//! - I4: each batch also increases its writer's number in `batches`. Readers look at the newest numbers: a snapshot
//!   shows at any later time what it shows first.

use super::write_counts;
use crate::session::verify;
use crate::{Random, combine};
use clap::Args;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use windrow::runtime::{Runtime, Threads};
use windrow::{Batch, Db, Durability, Keyspace, Options, Result, Snapshot, View};

const WRITERS: usize = 2;
const READERS: usize = 2;
const ACCOUNTS: usize = 200;
const MONEY: u64 = 1000;
/// The most snapshots that a reader keeps.
const SNAPSHOTS_MAX: usize = 12;

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// How long money moves.
    #[arg(long, default_value_t = 600)]
    pub seconds: u64,
    /// Fixes the random numbers of each thread.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Batches that moved money.
    pub transfers: AtomicU64,
    /// Counts of all money at a new snapshot.
    pub snapshots: AtomicU64,
    /// Counts at a kept snapshot.
    pub again: AtomicU64,
    /// Counts by an iterator without a snapshot.
    pub iterators: AtomicU64,
    /// Looks at the newest batches, each twice at one snapshot.
    pub looks: AtomicU64,
    /// Flushes.
    pub flushes: u64,
    /// Compactions.
    pub compactions: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write_counts(
            f,
            &[
                ("transfers", count(&self.transfers)),
                ("counted at snapshots", count(&self.snapshots)),
                ("  and again later", count(&self.again)),
                ("counted by iterators", count(&self.iterators)),
                ("looks at new batches", count(&self.looks)),
                ("flushes", self.flushes),
                ("compactions", self.compactions),
            ],
        )
    }
}

/// Runs the stress test in a new folder, which stays after a failure.
///
/// # Errors
/// The database reported one.
pub fn run(plan: &Plan) -> std::result::Result<Tally, Box<dyn std::error::Error>> {
    let mut folder = tempfile::tempdir()?;
    folder.disable_cleanup(true);
    let tally = run_in(plan, &folder.path().join("db"))?;
    folder.disable_cleanup(false);
    folder.close()?;
    Ok(tally)
}

fn run_in(plan: &Plan, directory: &Path) -> Result<Tally> {
    let db = Db::open(directory, options())?;
    let bank = Bank::new(&db, plan.seed)?;
    bank.open_accounts()?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let bank = &bank;
            threads.push(scope.spawn(move || bank.guarded(|| bank.write(writer))));
        }
        for reader in 0..READERS {
            let bank = &bank;
            threads.push(scope.spawn(move || bank.guarded(|| bank.read(reader))));
        }
        threads.push(scope.spawn(|| bank.guarded(|| bank.maintain())));
        let clock = Threads::default();
        let end = clock.now() + Duration::from_secs(plan.seconds);
        while clock.now() < end && !bank.is_over() {
            clock.sleep(Duration::from_millis(50));
        }
        bank.over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread of the bank panics"))
    })?;
    db.wait_idle()?;
    bank.check_all()?;
    let Bank { mut tally, .. } = bank;
    let stats = db.stats();
    (tally.flushes, tally.compactions) = (stats.flushes, stats.compactions);
    db.close()?;
    let db = Db::open(directory, options())?;
    Bank::new(&db, plan.seed)?.check_all()?;
    Ok(tally)
}

/// What the threads share.
struct Bank<'a> {
    db: &'a Db,
    seed: u64,
    /// `left`, `right` and `alone`.
    keyspaces: [Keyspace; 3],
    /// The number of batches of each writer.
    batches: Keyspace,
    over: AtomicBool,
    tally: Tally,
}

/// The money of each account of a keyspace.
type Accounts = BTreeMap<Vec<u8>, u64>;

impl<'a> Bank<'a> {
    fn new(db: &'a Db, seed: u64) -> Result<Self> {
        Ok(Self {
            db,
            seed,
            keyspaces: [
                db.keyspace("left")?,
                db.keyspace("right")?,
                db.keyspace("alone")?,
            ],
            batches: db.keyspace("batches")?,
            over: AtomicBool::new(false),
            tally: Tally::default(),
        })
    }

    /// Gives each account its money.
    fn open_accounts(&self) -> Result<()> {
        let mut batch = Batch::new();
        for keyspace in &self.keyspaces {
            for account in 0..ACCOUNTS {
                batch.insert(keyspace, key(account), encode(MONEY, 0))?;
            }
        }
        self.db.write(&batch)
    }

    /// The random numbers of thread `index`.
    fn random(&self, index: usize) -> Random {
        Random::new(combine(self.seed, index as u64))
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Runs `work`. Its end, in any way, ends the other threads.
    fn guarded(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&self.over);
        work()
    }

    /// Moves money between the accounts of one writer.
    fn write(&self, writer: usize) -> Result<()> {
        let mut random = self.random(writer);
        let mut mine: [Vec<u64>; 3] = std::array::from_fn(|_| vec![MONEY; ACCOUNTS]);
        let mut batch = Batch::new();
        let mut number = 0;
        while !self.is_over() {
            let [from, to] = if random.chance(1, 4) {
                [2, 2]
            } else {
                [random.index(2), random.index(2)]
            };
            let [payer, payee] = [0, 0].map(|_| own_account(&mut random, writer));
            if (from, payer) == (to, payee) {
                continue;
            }
            let keyspace = &self.keyspaces[from];
            let found = keyspace.get(key(payer))?;
            let found = found.map_or(0, |value| decode(&value));
            assert!(
                found == mine[from][payer],
                "account {payer} of {} holds {found} and was left with {}",
                keyspace.name(),
                mine[from][payer]
            );
            // Often everything, so that accounts appear and disappear.
            let amount = match random.below(3) {
                0 => found,
                _ => random.below(found + 1),
            };
            mine[from][payer] -= amount;
            mine[to][payee] += amount;
            batch.clear();
            for (index, account) in [(from, payer), (to, payee)] {
                match mine[index][account] {
                    0 => batch.remove(&self.keyspaces[index], key(account))?,
                    money => {
                        let padding = random.index(200);
                        batch.insert(
                            &self.keyspaces[index],
                            key(account),
                            encode(money, padding),
                        )?;
                    }
                }
            }
            number += 1;
            // Members of a large group insert their own entries; otherwise its leader inserts all.
            let padding = if random.chance(1, 4) { 20_000 } else { 0 };
            batch.insert(&self.batches, key(writer), encode(number, padding))?;
            let durability = match random.below(100) {
                0 => Durability::Sync,
                _ => Durability::Buffered,
            };
            self.db.write_with(&batch, durability)?;
            count(&self.tally.transfers);
        }
        Ok(())
    }

    /// Counts the money repeatedly.
    fn read(&self, reader: usize) -> Result<()> {
        let mut random = self.random(WRITERS + reader);
        let mut kept: VecDeque<(Snapshot, [Accounts; 3])> = VecDeque::new();
        let mut newest = [0; WRITERS];
        while !self.is_over() {
            for _ in 0..20 {
                self.look(&mut newest)?;
            }
            match random.below(4) {
                0 => {
                    // Without a snapshot: the iterator is a consistent view itself.
                    check_total(&[read_all(&self.keyspaces[2], random.below(2))?]);
                    count(&self.tally.iterators);
                }
                1 if !kept.is_empty() => {
                    let (snapshot, accounts) = &kept[random.index(kept.len())];
                    let again = self.accounts_at(snapshot, random.below(3))?;
                    assert!(again == *accounts, "a snapshot changed");
                    count(&self.tally.again);
                }
                _ => {
                    let snapshot = self.db.snapshot();
                    let accounts = self.accounts_at(&snapshot, random.below(3))?;
                    check_total(&accounts[..2]);
                    check_total(&accounts[2..]);
                    count(&self.tally.snapshots);
                    kept.push_back((snapshot, accounts));
                    if kept.len() > SNAPSHOTS_MAX {
                        kept.remove(random.index(kept.len()));
                    }
                }
            }
        }
        Ok(())
    }

    /// Looks at the newest batches, and again when concurrent commits have ended.
    fn look(&self, newest: &mut [u64; WRITERS]) -> Result<()> {
        let view = self.batches.at(&self.db.snapshot())?;
        let read = |writer| Ok(view.get(key(writer))?.map_or(0, |value| decode(&value)));
        let first = (0..WRITERS).map(read).collect::<Result<Vec<_>>>()?;
        Threads::default().sleep(Duration::from_micros(20));
        let later = (0..WRITERS).map(read).collect::<Result<Vec<_>>>()?;
        assert!(
            first == later,
            "a snapshot shows batches {first:?} first and {later:?} later"
        );
        for (newest, number) in newest.iter_mut().zip(later) {
            assert!(
                *newest <= number,
                "batch {number} is the newest after {newest}"
            );
            *newest = number;
        }
        count(&self.tally.looks);
        Ok(())
    }

    /// Flushes, compacts and verifies all the time.
    fn maintain(&self) -> Result<()> {
        let mut random = self.random(WRITERS + READERS);
        let clock = Threads::default();
        while !self.is_over() {
            match random.below(8) {
                0..3 => self.db.flush()?,
                3 => self.db.persist()?,
                4 => {
                    verify(self.db)?;
                }
                _ => {
                    let [one, other] = [0, 0].map(|_| key(random.index(ACCOUNTS)));
                    let keyspace = random.pick(&self.keyspaces);
                    keyspace.compact_range(one.clone().min(other.clone())..one.max(other))?;
                }
            }
            clock.sleep(Duration::from_millis(random.below(20)));
        }
        Ok(())
    }

    fn accounts_at(&self, snapshot: &Snapshot, way: u64) -> Result<[Accounts; 3]> {
        let mut accounts: [Accounts; 3] = Default::default();
        for (keyspace, accounts) in self.keyspaces.iter().zip(&mut accounts) {
            *accounts = read_all(&keyspace.at(snapshot)?, way)?;
        }
        Ok(accounts)
    }

    /// Counts everything and checks the files.
    fn check_all(&self) -> Result<()> {
        let accounts = self.accounts_at(&self.db.snapshot(), 0)?;
        check_total(&accounts[..2]);
        check_total(&accounts[2..]);
        verify(self.db)
    }
}

/// Reads all accounts in one of three ways: forwards, backwards, or one by one.
fn read_all(view: &View, way: u64) -> Result<Accounts> {
    match way {
        0 => view
            .iter()?
            .map(|entry| entry.map(|(key, value)| (key, decode(&value))))
            .collect(),
        1 => {
            let mut accounts = Accounts::new();
            let mut cursor = view.cursor()?;
            let mut valid = cursor.seek_to_last()?;
            while valid {
                accounts.insert(cursor.key().to_vec(), decode(cursor.value()?));
                valid = cursor.prev()?;
            }
            Ok(accounts)
        }
        _ => {
            let keys: Vec<_> = (0..ACCOUNTS).map(key).collect();
            let values = view.multi_get(&keys)?;
            let found = keys.into_iter().zip(values);
            Ok(found
                .filter_map(|(key, value)| Some((key, decode(&value?))))
                .collect())
        }
    }
}

/// Panics unless these keyspaces together hold the money that they received.
fn check_total(keyspaces: &[Accounts]) {
    let total: u64 = keyspaces.iter().flat_map(Accounts::values).sum();
    let given = (keyspaces.len() * ACCOUNTS) as u64 * MONEY;
    assert!(total == given, "{total} was counted and {given} was given");
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A random account of this writer.
fn own_account(random: &mut Random, writer: usize) -> usize {
    random.index(ACCOUNTS / WRITERS) * WRITERS + writer
}

fn key(account: usize) -> Vec<u8> {
    format!("account/{account:05}").into_bytes()
}

fn encode(money: u64, padding: usize) -> Vec<u8> {
    let mut value = money.to_le_bytes().to_vec();
    value.resize(value.len() + padding, b'.');
    value
}

fn decode(value: &[u8]) -> u64 {
    let bytes = value.first_chunk().expect("a value begins with the money");
    u64::from_le_bytes(*bytes)
}

/// Small memtables, and several levels.
fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << 10;
    options.max_wal_bytes = 128 << 10;
    options.keyspace.file_bytes = 4 << 10;
    options.keyspace.base_bytes = 8 << 10;
    options.keyspace.size_ratio = 2.0;
    options.keyspace.level0_runs = 2;
    options.keyspace.block_bytes = 512;
    options.open_files_max = 16;
    options
}
