//! The soak: everything at once for an hour, on the real file system, with processes that are killed.
//!
//! A writer, two secondaries, a process that makes backups and one that keeps a replica by the change feed run beside each
//! other. This process kills each of them at random times and starts it again, and lets the disk of the writer be full now
//! and then. All compare what they see with a model that the seed fixes (`lanes`). In the end nobody is killed any more, and
//! the database, both secondaries, the newest backup, the newest archived state and the replica must be equal, and the
//! folder must have no file that nobody needs.
//!
//! - `child`: what the processes share; `writer`, `readers`, `backups`, `replica`: what they do.
//! - `full_disk`: the file system of the writer. `end`: the comparisons of the end.
//!
//! Concurrency: one thread directs the processes; one for each of them reads what it reports.

mod backups;
mod child;
mod end;
mod full_disk;
mod process;
mod readers;
mod replica;
mod writer;

pub use child::{Child, Event, Role};

use super::lanes::Counts;
use super::write_counts;
use crate::Random;
use child::{Acknowledged, Report, Stage};
use clap::Args;
use process::Process;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windrow::runtime::{Runtime, Threads};

/// The subcommand of `windrow-sim` for the processes: see [`Child`].
pub const CHILD: &str = "soak-child";

/// How often the processes are looked at.
const TICK: Duration = Duration::from_millis(10);

/// What has not happened in time may take so much longer.
const LATE: Duration = Duration::from_secs(120);

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// How long processes are killed, in seconds. It takes longer until everything has happened at least once.
    #[arg(long, default_value_t = 3600)]
    pub seconds: u64,
    /// Fixes the batches. The kills follow it, too, but their times are never the same twice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Plan {
    /// Between two backups, and between two looks at other things that take long.
    fn interval(&self) -> Duration {
        Duration::from_millis((self.seconds * 1000 / 60).clamp(300, 15_000))
    }

    /// The longest life of a process.
    fn life_max(&self) -> Duration {
        Duration::from_millis((self.seconds * 1000 / 4).clamp(2000, 60_000))
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Batches of both lanes.
    pub batches: u64,
    /// Processes killed.
    pub kills: BTreeMap<Role, u64>,
    /// Processes that were asked to end, and did.
    pub ends: BTreeMap<Role, u64>,
    /// Times at which the disk became full.
    pub full_disks: u64,
    /// What the processes have done.
    pub events: BTreeMap<Event, u64>,
}

impl Tally {
    /// What has never happened.
    pub fn missing(&self) -> Vec<String> {
        let mut counts = self.counts();
        counts.retain(|(_, count)| *count == 0);
        counts.into_iter().map(|(name, _)| name).collect()
    }

    fn counts(&self) -> Vec<(String, u64)> {
        let mut counts = vec![
            ("batches".to_owned(), self.batches),
            ("full disks".to_owned(), self.full_disks),
        ];
        let of = |what: &BTreeMap<Role, u64>, role| what.get(&role).copied().unwrap_or_default();
        for role in Role::ALL {
            counts.push((format!("killed: {}", role.name()), of(&self.kills, role)));
        }
        for role in Role::ALL {
            counts.push((format!("ended: {}", role.name()), of(&self.ends, role)));
        }
        for (event, name) in Event::ALL {
            let count = self.events.get(&event).copied().unwrap_or_default();
            counts.push((name.to_owned(), count));
        }
        counts
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let counts: Vec<_> = counts
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        write_counts(f, &counts)
    }
}

/// Runs the stress test in a new folder, which stays after a failure. `executable` is `windrow-sim`.
///
/// # Errors
/// The processes could not be started, or the database could not be opened or read.
///
/// # Panics
/// Something differs, a process has failed, or something has never happened.
pub fn run(plan: &Plan, executable: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut folder = tempfile::tempdir()?;
    folder.disable_cleanup(true);
    show(&format!(
        "soak --seconds {} --seed {}; everything is in {}",
        plan.seconds,
        plan.seed,
        folder.path().display()
    ));
    let mut soak = Soak::new(plan, executable, folder.path())?;
    soak.run()?;
    let missing = soak.tally.missing();
    assert!(
        missing.is_empty(),
        "{missing:?} never happened\n{}",
        soak.tally
    );
    folder.disable_cleanup(false);
    folder.close()?;
    Ok(soak.tally)
}

/// Runs one of the processes until its standard input ends.
///
/// # Errors
/// What must not happen.
pub fn run_child(child: &Child) -> windrow::Result<()> {
    let stage = Stage::new(child);
    match child.role {
        Role::Writer => writer::run(&stage, child.quiet),
        Role::FirstReader | Role::SecondReader => readers::run(&stage),
        Role::Backups => backups::run(&stage),
        Role::Replica => replica::run(&stage),
    }
}

/// Progress is for people.
#[expect(clippy::print_stderr, reason = "reports of progress")]
fn show(line: &str) {
    eprintln!("{line}");
}

/// A process, or when there is the next one.
#[derive(Debug)]
enum Slot {
    Running {
        process: Process,
        until: Duration,
    },
    /// It was asked to end, and must have ended by then.
    Ending {
        process: Process,
        until: Duration,
    },
    Waiting {
        until: Duration,
    },
}

struct Soak<'a> {
    plan: &'a Plan,
    executable: &'a Path,
    folder: PathBuf,
    acknowledged: Acknowledged,
    random: Random,
    clock: Threads,
    slots: BTreeMap<Role, Slot>,
    /// Processes of each role so far.
    lives: BTreeMap<Role, u64>,
    is_full: bool,
    /// When the disk becomes full, or is not any more.
    next_turn: Duration,
    last: BTreeMap<Role, Counts>,
    has_settled: bool,
    tally: Tally,
}

impl<'a> Soak<'a> {
    fn new(plan: &'a Plan, executable: &'a Path, folder: &Path) -> std::io::Result<Self> {
        let clock = Threads::default();
        let until = clock.now();
        Ok(Self {
            plan,
            executable,
            folder: folder.to_owned(),
            acknowledged: Acknowledged::create(folder)?,
            random: Random::new(plan.seed),
            slots: Role::ALL.map(|role| (role, Slot::Waiting { until })).into(),
            lives: BTreeMap::new(),
            is_full: false,
            next_turn: clock.now() + plan.life_max() / 2,
            clock,
            last: BTreeMap::new(),
            has_settled: false,
            tally: Tally::default(),
        })
    }

    fn run(&mut self) -> Result<(), Box<dyn Error>> {
        let end = self.clock.now() + Duration::from_secs(self.plan.seconds);
        let mut next_report = self.clock.now();
        loop {
            let now = self.clock.now();
            let is_late = now >= end;
            if is_late && (self.tally.missing().is_empty() || now >= end + LATE) {
                break;
            }
            if now >= next_report {
                show(&format!(
                    "{} s left: {} batches, {} killed",
                    end.saturating_sub(now).as_secs(),
                    self.tally.batches,
                    self.tally.kills.values().sum::<u64>()
                ));
                next_report = now + self.plan.interval().max(Duration::from_secs(5));
            }
            self.turn_disk(now)?;
            for role in Role::ALL {
                self.direct(role, now)?;
            }
            self.tally.batches = self.acknowledged.get().iter().sum();
            self.clock.sleep(TICK);
        }
        self.end()
    }

    /// Fills and empties the disk of the writer.
    fn turn_disk(&mut self, now: Duration) -> std::io::Result<()> {
        if now < self.next_turn {
            return Ok(());
        }
        self.is_full = !self.is_full;
        let longest = if self.is_full {
            self.tally.full_disks += 1;
            Duration::from_secs(2)
        } else {
            self.plan.life_max()
        };
        self.next_turn = now + self.part_of(longest);
        if let Some(Slot::Running { process, .. }) = self.slots.get_mut(&Role::Writer) {
            process.set_full(self.is_full)?;
        }
        Ok(())
    }

    fn part_of(&mut self, longest: Duration) -> Duration {
        let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random.below(micros + 1))
    }

    /// Starts, kills, or ends the process of `role`, if it is time.
    fn direct(&mut self, role: Role, now: Duration) -> Result<(), Box<dyn Error>> {
        let slot = self.slots.remove(&role).expect("every role has a slot");
        let slot = match slot {
            Slot::Waiting { until } if now >= until => {
                let process = self.start(role, false)?;
                let until = now + self.life();
                Slot::Running { process, until }
            }
            Slot::Running { mut process, until } => {
                self.receive(role, &mut process);
                assert!(!process.has_ended()?, "the {} has failed", role.name());
                if now < until {
                    Slot::Running { process, until }
                } else if self.random.chance(1, 5) {
                    process.ask_to_end();
                    Slot::Ending {
                        process,
                        until: now + LATE,
                    }
                } else {
                    process.kill()?;
                    self.receive(role, &mut process);
                    *self.tally.kills.entry(role).or_default() += 1;
                    self.pause(now)
                }
            }
            Slot::Ending { mut process, until } => {
                self.receive(role, &mut process);
                if process.has_ended()? {
                    process.finish(role)?;
                    self.receive(role, &mut process);
                    *self.tally.ends.entry(role).or_default() += 1;
                    self.pause(now)
                } else {
                    assert!(now < until, "the {} does not end", role.name());
                    Slot::Ending { process, until }
                }
            }
            waiting @ Slot::Waiting { .. } => waiting,
        };
        self.slots.insert(role, slot);
        Ok(())
    }

    /// A third of the processes live so short that they are killed while they open.
    fn life(&mut self) -> Duration {
        let longest = if self.random.chance(1, 3) {
            Duration::from_millis(300)
        } else {
            self.plan.life_max()
        };
        self.part_of(longest)
    }

    /// Most processes are started again at once, some so late that others must not rely on them.
    fn pause(&mut self, now: Duration) -> Slot {
        let longest = if self.random.chance(1, 6) {
            self.plan.life_max()
        } else {
            Duration::ZERO
        };
        let until = now + self.part_of(longest);
        Slot::Waiting { until }
    }

    fn start(&mut self, role: Role, quiet: bool) -> std::io::Result<Process> {
        let life = self.lives.entry(role).or_default();
        *life += 1;
        let child = Child {
            role,
            folder: self.folder.clone(),
            seed: self.plan.seed,
            life: *life,
            interval: u64::try_from(self.plan.interval().as_millis()).unwrap_or(u64::MAX),
            quiet,
        };
        let mut process = Process::start(self.executable, &child)?;
        if role == Role::Writer {
            process.set_full(self.is_full)?;
        }
        Ok(process)
    }

    /// Counts what the process has reported.
    fn receive(&mut self, role: Role, process: &mut Process) {
        for report in process.reports() {
            match report {
                Report::Event(event) => *self.tally.events.entry(event).or_default() += 1,
                Report::Last(counts) => drop(self.last.insert(role, counts)),
                Report::Settled => self.has_settled = true,
            }
        }
    }
}
