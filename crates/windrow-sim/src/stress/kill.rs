//! The kill test: a process that writes is killed repeatedly, on the real file system with real threads.
//!
//! A child process opens the database, writes batches over two keyspaces from several threads and reports each
//! acknowledgement to a pipe. This process kills it after a random time. Then this process opens the database and
//! checks it, or the next child opens it and may be killed during recovery.
//!
//! The seed fixes the content of each writer's batches by their numbers. Each batch also writes a mark to both
//! keyspaces: its own number, and the number of batches of the other writer that were acknowledged before it began.
//!
//! Invariants of what is found:
//! - I1: no acknowledged batch is missing.
//! - I2: with a batch comes every batch that was acknowledged before it began: the batches are a prefix of the
//!   commit order.
//! - I3: batches are whole, and the contents of each writer are the state after some number of its batches.

use super::write_counts;
use crate::model::{Entries, differences};
use crate::session::verify;
use crate::{Random, combine};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use windrow::runtime::{Runtime, Threads};
use windrow::{Batch, Db, Durability, Keyspace, Options, Result};

/// The subcommand of `windrow-sim` that writes until it is killed: see [`Writer`].
pub const WRITER: &str = "kill-writer";

const WRITERS: usize = 2;
const KEYSPACES: [&str; 2] = ["left", "right"];

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
    let mut ledger = Ledger::new(plan.seed);
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
    tally.batches = ledger.found.iter().sum();
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

/// A writer's number of batches in the database.
#[derive(Debug, Clone, Copy)]
struct Report {
    writer: usize,
    count: u64,
}

impl Report {
    fn send(self) -> io::Result<()> {
        let word = (self.writer as u64) << 56 | self.count;
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
                writer: usize::try_from(word >> 56).unwrap_or(usize::MAX),
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
    let keyspaces = open_keyspaces(&db)?;
    let marks = read_marks(&keyspaces)?;
    let acknowledged: [AtomicU64; WRITERS] =
        std::array::from_fn(|writer| AtomicU64::new(marks[writer][writer]));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (db, keyspaces, acknowledged) = (&db, &keyspaces, &acknowledged);
                scope.spawn(move || write_batches(db, keyspaces, *seed, writer, acknowledged))
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
    writer: usize,
    acknowledged: &[AtomicU64; WRITERS],
) -> Result<()> {
    let mut count = acknowledged[writer].load(Ordering::SeqCst);
    let mut batch = Batch::new();
    // What was found counts as acknowledged: it must never be lost again.
    while (Report { writer, count }).send().is_ok() {
        let planned = Planned::new(seed, writer, count);
        let mut mark: Mark =
            std::array::from_fn(|other| acknowledged[other].load(Ordering::SeqCst));
        mark[writer] = count + 1;
        batch.clear();
        for keyspace in keyspaces {
            batch.insert(keyspace, mark_key(writer), encode(&mark))?;
        }
        for (index, key, value) in planned.changes {
            match value {
                Some(value) => batch.insert(&keyspaces[index], key, value)?,
                None => batch.remove(&keyspaces[index], key)?,
            }
        }
        db.write_with(&batch, planned.durability)?;
        count += 1;
        acknowledged[writer].store(count, Ordering::SeqCst);
        match planned.afterwards {
            0 => db.flush()?,
            1 => keyspaces[0].compact_range::<&[u8]>(..)?,
            2..5 => db.persist()?,
            _ => {}
        }
    }
    Ok(())
}

/// What the batch with a given number does.
#[derive(Debug)]
struct Planned {
    /// Index of the keyspace, key, and the value or `None` for a removal.
    changes: Vec<(usize, Vec<u8>, Option<Vec<u8>>)>,
    durability: Durability,
    afterwards: u64,
}

impl Planned {
    fn new(seed: u64, writer: usize, number: u64) -> Self {
        let mut random = Random::new(combine(combine(seed, writer as u64), number));
        let mut change = || {
            let index = random.index(KEYSPACES.len());
            let key = format!("writer-{writer}/{:03}", random.below(300));
            let value = (!random.chance(1, 4)).then(|| {
                let mut value = number.to_le_bytes().to_vec();
                let length = random.index(200);
                value.extend(random.bytes(length));
                value
            });
            (index, key.into_bytes(), value)
        };
        let changes = (0..=number % 6).map(|_| change()).collect();
        let durability = match random.below(8) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        Self {
            changes,
            durability,
            afterwards: random.below(1000),
        }
    }
}

/// What the parent knows.
#[derive(Debug)]
struct Ledger {
    seed: u64,
    /// The batches of each writer that must be found.
    acknowledged: [u64; WRITERS],
    /// The batches of each writer that were found last, which made `contents`.
    found: [u64; WRITERS],
    contents: BTreeMap<String, Entries>,
}

impl Ledger {
    fn new(seed: u64) -> Self {
        let names = KEYSPACES.iter().map(|name| (*name).to_owned());
        Self {
            seed,
            acknowledged: [0; WRITERS],
            found: [0; WRITERS],
            contents: names.map(|name| (name, Entries::new())).collect(),
        }
    }

    fn receive(&mut self, reports: &[Report]) {
        for Report { writer, count } in reports {
            let known = &mut self.acknowledged[*writer];
            assert!(
                count >= known,
                "writer {writer} found {count} batches after {known} were acknowledged"
            ); // I1
            *known = *count;
        }
    }

    /// Compares everything; returns the number of batches that were found without an acknowledgement.
    fn check(&mut self, db: &Db) -> Result<u64> {
        verify(db)?;
        let keyspaces = open_keyspaces(db)?;
        let marks = read_marks(&keyspaces)?;
        let mut unacknowledged = 0;
        for writer in 0..WRITERS {
            let count = marks[writer][writer];
            for (other, mark) in marks.iter().enumerate() {
                assert!(
                    count >= mark[writer],
                    "writer {other} saw {} batches of writer {writer}, and only {count} are there",
                    mark[writer]
                ); // I2
            }
            let acknowledged = self.acknowledged[writer];
            self.receive(&[Report { writer, count }]);
            unacknowledged += count - acknowledged;
            for number in self.found[writer]..count {
                self.apply(Planned::new(self.seed, writer, number));
            }
            self.found[writer] = count;
        }
        let mut found = BTreeMap::new();
        for keyspace in &keyspaces {
            let mut entries: Entries = keyspace.iter()?.collect::<Result<_>>()?;
            entries.retain(|key, _| !key.starts_with(MARK));
            found.insert(keyspace.name(), entries);
        }
        assert!(
            found == self.contents,
            "the contents differ from those after {:?} batches: {}",
            self.found,
            differences(&self.contents, &found).join("; ")
        ); // I3
        Ok(unacknowledged)
    }

    fn apply(&mut self, planned: Planned) {
        for (index, key, value) in planned.changes {
            let entries = self.contents.get_mut(KEYSPACES[index]);
            let entries = entries.expect("every keyspace has entries");
            match value {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
    }
}

/// For each writer, its batches that were acknowledged before a batch began; for the writer of the batch, its
/// number.
type Mark = [u64; WRITERS];

/// The prefix of the marks' keys, behind all others.
const MARK: &[u8] = b"~mark";

fn mark_key(writer: usize) -> Vec<u8> {
    [MARK, format!("-{writer}").as_bytes()].concat()
}

fn encode(mark: &Mark) -> Vec<u8> {
    mark.iter().flat_map(|count| count.to_le_bytes()).collect()
}

/// The marks of the last batch of each writer. Both keyspaces must hold them.
fn read_marks(keyspaces: &[Keyspace; 2]) -> Result<[Mark; WRITERS]> {
    let mut marks = [Mark::default(); WRITERS];
    for (writer, mark) in marks.iter_mut().enumerate() {
        let key = mark_key(writer);
        let [left, right] = [keyspaces[0].get(&key)?, keyspaces[1].get(&key)?];
        assert!(left == right, "half a batch of writer {writer} is there"); // I3
        let (counts, _) = left.as_deref().unwrap_or_default().as_chunks();
        for (count, bytes) in mark.iter_mut().zip(counts) {
            *count = u64::from_le_bytes(*bytes);
        }
    }
    Ok(marks)
}

fn open_keyspaces(db: &Db) -> Result<[Keyspace; 2]> {
    Ok([db.keyspace(KEYSPACES[0])?, db.keyspace(KEYSPACES[1])?])
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
    options
}
