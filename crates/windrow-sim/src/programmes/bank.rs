//! Money moves between accounts while it is counted, on the real file system with real threads.
//!
//! Two writers move money by batches, each between accounts of its own; two readers count it at
//! snapshots, which they keep and count again later, and by plain iterators; meanwhile memtables
//! are flushed and ranges merged all the time. An account without money has no entry.
//!
//! The accounts of `left` and `right` together always hold the same total; those of `alone`, whose
//! money never leaves it, do so by themselves, so that an iterator without a snapshot must show it.
//! A writer finds its accounts as it left them. Each batch also counts itself in `batches`, where the
//! readers look at what was written that very moment: what a snapshot shows at once, it shows later.

use crate::{Random, combine};
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
/// Snapshots that a reader keeps.
const SNAPSHOTS_MAX: usize = 12;

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// For how long money moves.
    pub duration: Duration,
    /// Fixes what each thread draws, but not how the threads meet.
    pub seed: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Batches that moved money.
    pub transfers: AtomicU64,
    /// Countings of everything at a new snapshot.
    pub snapshots: AtomicU64,
    /// Countings at a snapshot that was kept.
    pub again: AtomicU64,
    /// Countings by an iterator without a snapshot.
    pub iterators: AtomicU64,
    /// Looks at the newest batches, each two times at one snapshot.
    pub looks: AtomicU64,
    /// Flushes.
    pub flushes: u64,
    /// Merges.
    pub compactions: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        writeln!(f, "transfers              {:>10}", count(&self.transfers))?;
        writeln!(f, "counted at snapshots   {:>10}", count(&self.snapshots))?;
        writeln!(f, "  and again later      {:>10}", count(&self.again))?;
        writeln!(f, "counted by iterators   {:>10}", count(&self.iterators))?;
        writeln!(f, "looks at new batches   {:>10}", count(&self.looks))?;
        writeln!(f, "flushes                {:>10}", self.flushes)?;
        writeln!(f, "compactions              {:>10}", self.compactions)
    }
}

/// Runs the stress test in a folder of its own, which stays where it is after a failure.
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
    bank.found()?;
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
        threads.push(scope.spawn(|| bank.guarded(|| bank.tidy())));
        let clock = Threads::default();
        let end = clock.now() + plan.duration;
        while clock.now() < end && !bank.is_over() {
            clock.sleep(Duration::from_millis(50));
        }
        bank.over.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("the bank holds"))
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
    /// How many batches each writer has written.
    batches: Keyspace,
    over: AtomicBool,
    tally: Tally,
}

/// The money of each account of a keyspace.
type MemoryTrackers = BTreeMap<Vec<u8>, u64>;

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
    fn found(&self) -> Result<()> {
        let mut batch = Batch::new();
        for keyspace in &self.keyspaces {
            for account in 0..ACCOUNTS {
                batch.insert(keyspace, key(account), encode(MONEY, 0))?;
            }
        }
        self.db.write(&batch)
    }

    /// What thread `index` draws from.
    fn random(&self, index: usize) -> Random {
        Random::new(combine(self.seed, index as u64))
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Runs `work`; whatever way it ends, everybody else ends too.
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
            let [payer, payee] = [0, 0].map(|_| own_tracker(&mut random, writer));
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
            // Often everything, so that accounts come and go.
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
            batch.insert(&self.batches, key(writer), encode(number, 0))?;
            let durability = match random.below(100) {
                0 => Durability::Sync,
                _ => Durability::Buffered,
            };
            self.db.write_with(&batch, durability)?;
            count(&self.tally.transfers);
        }
        Ok(())
    }

    /// Counts the money, again and again.
    fn read(&self, reader: usize) -> Result<()> {
        let mut random = self.random(WRITERS + reader);
        let mut kept: VecDeque<(Snapshot, [MemoryTrackers; 3])> = VecDeque::new();
        let mut newest = [0; WRITERS];
        while !self.is_over() {
            for _ in 0..20 {
                self.look(&mut newest)?;
            }
            match random.below(4) {
                0 => {
                    // No snapshot: the iterator is one itself.
                    check_total(&[read_all(&self.keyspaces[2], random.below(2))?]);
                    count(&self.tally.iterators);
                }
                1 if !kept.is_empty() => {
                    let (snapshot, accounts) = &kept[random.index(kept.len())];
                    let again = self.accounts_at(snapshot, random.below(3))?;
                    assert!(again == *accounts, "a snapshot shows something else later");
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

    /// Looks at the newest batches, and again when whatever was under way is over.
    fn look(&self, newest: &mut [u64; WRITERS]) -> Result<()> {
        let view = self.batches.at(&self.db.snapshot())?;
        let read = |writer| Ok(view.get(key(writer))?.map_or(0, |value| decode(&value)));
        let at_once = (0..WRITERS).map(read).collect::<Result<Vec<_>>>()?;
        Threads::default().sleep(Duration::from_micros(20));
        let later = (0..WRITERS).map(read).collect::<Result<Vec<_>>>()?;
        assert!(
            at_once == later,
            "a snapshot shows batches {at_once:?} at once and {later:?} later"
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

    /// Keeps the files moving.
    fn tidy(&self) -> Result<()> {
        let mut random = self.random(WRITERS + READERS);
        let clock = Threads::default();
        while !self.is_over() {
            match random.below(8) {
                0..3 => self.db.flush()?,
                3 => self.db.persist()?,
                4 => {
                    let report = self.db.verify()?;
                    assert!(report.is_sound(), "verify finds damage: {report:?}");
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

    fn accounts_at(&self, snapshot: &Snapshot, way: u64) -> Result<[MemoryTrackers; 3]> {
        let mut accounts: [MemoryTrackers; 3] = Default::default();
        for (keyspace, accounts) in self.keyspaces.iter().zip(&mut accounts) {
            *accounts = read_all(&keyspace.at(snapshot)?, way)?;
        }
        Ok(accounts)
    }

    /// Counts everything once more, and checks the files.
    fn check_all(&self) -> Result<()> {
        let accounts = self.accounts_at(&self.db.snapshot(), 0)?;
        check_total(&accounts[..2]);
        check_total(&accounts[2..]);
        let report = self.db.verify()?;
        assert!(report.is_sound(), "verify finds damage: {report:?}");
        Ok(())
    }
}

/// Reads all accounts in one of three ways: forwards, backwards, or one by one.
fn read_all(view: &View, way: u64) -> Result<MemoryTrackers> {
    match way {
        0 => view
            .iter()?
            .map(|entry| entry.map(|(key, value)| (key, decode(&value))))
            .collect(),
        1 => {
            let mut accounts = MemoryTrackers::new();
            let mut cursor = view.cursor()?;
            let mut stands = cursor.seek_to_last()?;
            while stands {
                accounts.insert(cursor.key().to_vec(), decode(cursor.value()?));
                stands = cursor.prev()?;
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

/// Panics unless these keyspaces together hold what they were given.
fn check_total(keyspaces: &[MemoryTrackers]) {
    let total: u64 = keyspaces.iter().flat_map(MemoryTrackers::values).sum();
    let given = (keyspaces.len() * ACCOUNTS) as u64 * MONEY;
    assert!(total == given, "{total} was counted and {given} was given");
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// An account that only this writer touches.
fn own_tracker(random: &mut Random, writer: usize) -> usize {
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

/// Memtables of moments, and several levels.
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
