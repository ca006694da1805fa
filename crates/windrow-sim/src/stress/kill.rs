//! The kill test: a process that writes is killed repeatedly, on the real file system with real threads.
//!
//! A child process opens the database, writes batches over two keyspaces from several threads and reports each
//! acknowledgement to a pipe. This process kills it after a random time. Then this process opens the database and
//! checks it, or the next child opens it and may be killed during recovery.
//!
//! What the threads write, what must be found, and the invariants of that: `lanes`.

use super::lanes::{Counts, KEYSPACES, LANES, Model, Planned, add_mark, marked, with_lists};
use super::write_counts;
use crate::session::verify;
use crate::{Random, combine};
use clap::Args;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use windrow::runtime::{Runtime, Threads};
use windrow::{Batch, Db, Keyspace, Options, Result};

/// The subcommand of `windrow-sim` that writes until it is killed: see [`Writer`].
pub const WRITER: &str = "kill-writer";

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The number of kills.
    #[arg(long, default_value_t = 500)]
    pub rounds: u64,
    /// The longest life of a process, in milliseconds.
    #[arg(long, default_value_t = 200)]
    pub millis_max: u64,
    /// Fixes the batches, and the life of each process.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The process that is killed.
#[derive(Debug, Clone, Args)]
pub struct Writer {
    directory: PathBuf,
    seed: u64,
    round: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Processes killed.
    pub kills: u64,
    /// Processes killed before they had opened the database.
    pub early: u64,
    /// Full comparisons.
    pub checks: u64,
    /// Batches found at the end.
    pub batches: u64,
    /// Batches found without an acknowledgement.
    pub unacknowledged: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_counts(
            f,
            &[
                ("processes killed", self.kills),
                ("  before they had opened", self.early),
                ("comparisons", self.checks),
                ("batches", self.batches),
                ("  never acknowledged", self.unacknowledged),
            ],
        )
    }
}

/// Runs the stress test in a new folder, which stays after a failure. `executable` is `windrow-sim`.
///
/// # Errors
/// The processes could not be started, or the database could not be opened or read.
pub fn run(
    plan: &Plan,
    executable: &Path,
) -> std::result::Result<Tally, Box<dyn std::error::Error>> {
    let mut folder = tempfile::tempdir()?;
    folder.disable_cleanup(true);
    let directory = folder.path().join("db");
    #[expect(clippy::print_stderr, reason = "where to look after a failure")]
    {
        eprintln!("the database is in {}", directory.display());
    }
    let mut random = Random::new(plan.seed);
    let mut tally = Tally::default();
    let mut ledger = Ledger {
        acknowledged: Counts::default(),
        model: Model::new(plan.seed),
    };
    for round in 0..plan.rounds {
        let life = Duration::from_micros(random.below(plan.millis_max * 1000 + 1));
        let reports = live(plan, executable, &directory, round, life)?;
        tally.kills += 1;
        tally.early += u64::from(reports.is_empty());
        ledger.receive(&reports);
        if round + 1 == plan.rounds || random.chance(3, 4) {
            let db = Db::open(&directory, options(round))?;
            tally.unacknowledged += ledger.check(&db)?;
            tally.checks += 1;
            if random.chance(1, 2) {
                db.close()?;
            }
        }
    }
    tally.batches = ledger.acknowledged.iter().sum();
    folder.disable_cleanup(false);
    folder.close()?;
    Ok(tally)
}

/// Lets a process write for `life` and kills it; returns what it reported.
fn live(
    plan: &Plan,
    executable: &Path,
    directory: &Path,
    round: u64,
    life: Duration,
) -> io::Result<Vec<Report>> {
    let mut child = Command::new(executable)
        .arg(WRITER)
        .arg(directory)
        .arg(plan.seed.to_string())
        .arg(round.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdout.take().expect("the child has a pipe");
    let (killed, bytes) = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        });
        Threads::default().sleep(life);
        let killed = child.kill();
        (killed, reader.join().expect("the reader ends"))
    });
    killed?;
    let status = child.wait()?;
    assert!(
        status.code().is_none(),
        "a writer ended without a kill in round {round}: {status}"
    );
    Ok(Report::all(&bytes?))
}

/// A lane's number of batches in the database.
#[derive(Debug, Clone, Copy)]
struct Report {
    lane: usize,
    count: u64,
}

impl Report {
    fn send(self) -> io::Result<()> {
        let word = (self.lane as u64) << 56 | self.count;
        let mut pipe = io::stdout().lock();
        pipe.write_all(&word.to_le_bytes())?;
        pipe.flush()
    }

    /// The reports that were complete before the kill.
    fn all(bytes: &[u8]) -> Vec<Self> {
        let (words, _cut) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        words
            .map(|word| Self {
                lane: usize::try_from(word >> 56).unwrap_or(usize::MAX),
                count: word & (u64::MAX >> 8),
            })
            .collect()
    }
}

/// Opens the database and writes until the process is killed or the pipe is closed.
///
/// # Errors
/// The database reported one.
pub fn write(writer: &Writer) -> Result<()> {
    let Writer {
        directory,
        seed,
        round,
    } = writer;
    let db = Db::open(directory, options(*round))?;
    let keyspaces = [db.keyspace(KEYSPACES[0])?, db.keyspace(KEYSPACES[1])?];
    let [left, right] = [marked(&keyspaces[0])?, marked(&keyspaces[1])?];
    assert_eq!(left, right, "half a batch is there");
    let acknowledged = left.map(AtomicU64::new);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..LANES)
            .map(|lane| {
                let (db, keyspaces, acknowledged) = (&db, &keyspaces, &acknowledged);
                scope.spawn(move || write_batches(db, keyspaces, *seed, lane, acknowledged))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a writer does not panic"))
    })
}

fn write_batches(
    db: &Db,
    keyspaces: &[Keyspace; 2],
    seed: u64,
    lane: usize,
    acknowledged: &[AtomicU64; LANES],
) -> Result<()> {
    let mut batch = Batch::new();
    loop {
        let known: Counts = std::array::from_fn(|lane| acknowledged[lane].load(Ordering::SeqCst));
        let count = known[lane];
        // What was found counts as acknowledged: it must never be lost again.
        if (Report { lane, count }).send().is_err() {
            return Ok(());
        }
        let planned = Planned::new(seed, lane, count);
        batch.clear();
        add_mark(&mut batch, keyspaces, lane, count + 1, known)?;
        planned.add_to(&mut batch, keyspaces)?;
        db.write_with(&batch, planned.durability)?;
        acknowledged[lane].store(count + 1, Ordering::SeqCst);
        match Random::new(combine(combine(!seed, lane as u64), count)).below(1000) {
            0 => db.flush()?,
            1 => keyspaces[0].compact_range::<&[u8]>(..)?,
            2..5 => db.persist()?,
            _ => {}
        }
    }
}

/// What the parent knows.
#[derive(Debug)]
struct Ledger {
    /// The batches of each lane that must be found.
    acknowledged: Counts,
    model: Model,
}

impl Ledger {
    fn receive(&mut self, reports: &[Report]) {
        for Report { lane, count } in reports {
            let known = &mut self.acknowledged[*lane];
            assert!(
                count >= known,
                "lane {lane} found {count} batches after {known} were acknowledged"
            );
            *known = *count;
        }
    }

    /// Compares everything; returns the number of batches that were found without an acknowledgement.
    fn check(&mut self, db: &Db) -> Result<u64> {
        verify(db)?;
        let before = self.acknowledged;
        let found = self.model.check(db, before, "after the kill")?;
        self.acknowledged = found;
        let added = found.iter().zip(before).map(|(found, known)| found - known);
        Ok(added.sum())
    }
}

/// Sizes so small that each life has flushes, compactions and several logs. They change with the round.
fn options(round: u64) -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 16 << (round % 3 * 2) << 10;
    options.max_wal_bytes = 512 << 10;
    options.keyspace.file_bytes = 16 << 10;
    options.keyspace.base_bytes = 64 << 10;
    options.keyspace.size_ratio = 3.0;
    options.keyspace.block_bytes = 1 << 10;
    with_lists(options)
}
