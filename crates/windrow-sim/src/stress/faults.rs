//! The fault sweep: each I/O of a history fails in each way of its kind, once or from then on. A failed sync has
//! one of three ends.
//!
//! During the faults every answer is right, or an error that the device caused: never `Corruption`, never a
//! panic, never an endless wait. Short and interrupted I/O causes no error. Afterwards the open database
//! still reads, and every crash leaves an allowed state.

use super::{Replay, Seeds, check_crashes, setting_of, write_counts};
use crate::disk::{AfterFailedSync, CrashPolicy, Effect, Fault, OperationKind, Repeat, SimDisk};
use crate::history::{Generator, Operation, Profile};
use crate::session::{Session, is_device_error};
use crate::settings::Setting;
use crate::{Random, combine};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use windrow::{Error, ErrorKind};

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the histories.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Operations in each history.
    #[arg(long, default_value_t = 40)]
    pub operations: usize,
    /// Try one in this many of the possible faults.
    #[arg(long, default_value_t = 1)]
    pub one_in: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs in which something went wrong, by kind of operation and effect.
    pub runs: BTreeMap<String, u64>,
    /// Errors that the database reported.
    pub errors: u64,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        self.errors += other.errors;
        for (kind, count) in other.runs {
            *self.runs.entry(kind).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("runs with a fault", self.runs.values().sum()),
            ("errors reported", self.errors),
        ];
        write_counts(f, &counts)?;
        for (kind, count) in &self.runs {
            writeln!(f, "  {kind:<34} {count:>10}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| run_seed(plan, seed))
}

/// Sweeps the history of one seed.
fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let Plan {
        operations, one_in, ..
    } = plan;
    let mut replay = Replay::new(
        "faults",
        seed,
        &format!("--operations {operations} --one-in {one_in}"),
    );
    let mut tally = Tally::default();
    let profile = Profile {
        keys: 30,
        keyspaces: 2,
        synced: 40,
        kills: false,
    };
    let operations = Generator::new(seed, profile).operations(*operations);
    let setting = setting_of(seed);
    let run = Run {
        seed,
        setting: &setting,
        operations: &operations,
    };
    let sound = run.carry_out(None, &mut replay);
    let mut random = Random::new(combine(seed, 2));
    for kind in OperationKind::ALL {
        for at in 0..sound.counts[&kind] {
            for fault in faults(kind, at) {
                if random.chance(1, *one_in) {
                    let end = run.carry_out(Some(fault), &mut replay);
                    tally.errors += end.errors;
                    let name = format!("{kind:?} {:?} {:?}", fault.effect, fault.repeat);
                    *tally.runs.entry(name).or_default() += 1;
                }
            }
        }
    }
    tally
}

/// Opens the database. If the fault prevents that, the next try without it must succeed.
///
/// That holds after a failed sync too. The cache may then show changes that never reach the disk, and changes that
/// were acknowledged since the last sync may be gone. But everything that the open shows is durable.
fn open(session: &mut Session, errors: &mut Errors) {
    for _ in 0..2 {
        if errors.sync_failed(&session.disk) {
            session.distrust_cache();
        }
        errors.note(session.open());
        if session.is_open() {
            return;
        }
        session.disk = session.disk.end_process();
        if errors.sync_failed(&session.disk) {
            session.distrust_cache();
        }
        session.disk.set_faults([]);
        errors.fault = None;
    }
}

/// All faults that operation `at` of `kind` can have.
fn faults(kind: OperationKind, at: u64) -> Vec<Fault> {
    use AfterFailedSync::{Durable, LostAtCrash, Reverted};
    use Effect::{Interrupted, Io, NoSpace, Short, TooManyFiles};

    let effects: &[Effect] = match kind {
        OperationKind::Read => &[Io, Interrupted, Short],
        OperationKind::Write => &[Io, NoSpace, Interrupted, Short],
        OperationKind::Reserve
        | OperationKind::Sync
        | OperationKind::WriteBack
        | OperationKind::SyncDir
        | OperationKind::CreateDir
        | OperationKind::Link
        | OperationKind::Rename => &[Io, NoSpace],
        OperationKind::Create => &[Io, NoSpace, TooManyFiles],
        OperationKind::Open => &[Io, TooManyFiles],
        OperationKind::Length
        | OperationKind::Map
        | OperationKind::Truncate
        | OperationKind::Remove
        | OperationKind::List
        | OperationKind::Lock => &[Io],
    };
    let ends: &[AfterFailedSync] = match kind {
        OperationKind::Sync | OperationKind::SyncDir | OperationKind::WriteBack => {
            &[LostAtCrash, Reverted, Durable]
        }
        _ => &[LostAtCrash],
    };
    let mut faults = Vec::new();
    for effect in effects {
        for after in ends {
            for repeat in [Repeat::Once, Repeat::FromThenOn] {
                faults.push(Fault {
                    kind,
                    at,
                    repeat,
                    effect: *effect,
                    after: *after,
                });
            }
        }
    }
    faults
}

struct Run<'a> {
    seed: u64,
    setting: &'a Setting,
    operations: &'a [Operation],
}

/// How a run ended.
struct End {
    errors: u64,
    counts: BTreeMap<OperationKind, u64>,
}

impl Run<'_> {
    fn carry_out(&self, fault: Option<Fault>, replay: &mut Replay) -> End {
        let mut session = Session::new(self.seed, self.setting.clone());
        session.disk.set_faults(fault);
        let mut errors = Errors {
            fault,
            faults_seen: 0,
            count: 0,
        };
        let shown = fault.map_or_else(|| "no fault".to_owned(), |fault| fault.to_string());
        replay.at(format!("{shown}, the first open"));
        open(&mut session, &mut errors);
        for (index, operation) in self.operations.iter().enumerate() {
            if !session.is_open() {
                break;
            }
            replay.at(format!("{shown}, operation {index}, {operation:?}"));
            if matches!(operation, Operation::Reopen) {
                errors.note(session.close());
                open(&mut session, &mut errors);
                continue;
            }
            errors.note(session.apply(operation));
            if index.is_multiple_of(8) {
                errors.note(session.check());
                errors.note(session.check_snapshots());
            }
        }
        let counts = OperationKind::ALL
            .into_iter()
            .map(|kind| (kind, session.disk.operations(kind)))
            .collect();
        let log = session.disk.fault_log();
        replay.at(format!("{shown}, after the history; faults: {log:?}"));
        self.finish(fault, &mut session);
        End {
            errors: errors.count,
            counts,
        }
    }

    /// Checks everything without further faults, now and after each kind of crash.
    fn finish(&self, fault: Option<Fault>, session: &mut Session) {
        session.disk.set_faults([]);
        // The values that a failed sync reverted are gone, and reads of them report that. The next open
        // ends history before them.
        let took_values = |error: &Error| {
            let took = |fault: Fault| {
                fault.kind == OperationKind::Sync && fault.after != AfterFailedSync::Durable
            };
            error.kind() == ErrorKind::Poisoned && fault.is_some_and(took)
        };
        if session.is_open()
            && let Err(error) = session.check().and_then(|()| session.check_snapshots())
            && !took_values(&error)
        {
            panic!("reads fail although the device works again: {error:?}");
        }
        // While the leases of readers cannot be listed, files that they may need stay, until somebody looks again.
        session.runtime.advance(Duration::from_secs(6));
        // A file that could not be removed stays until the next open.
        let is_removed = fault.is_none_or(|fault| fault.kind != OperationKind::Remove);
        if session.is_open() && is_removed {
            match session.check_tables() {
                Err(error) if error.kind() != ErrorKind::Poisoned => {
                    panic!("jobs fail although the device works again: {error:?}")
                }
                _ => {}
            }
        }
        let image = session.disk.image();
        let model = session.lock_model().clone();
        let bounds = model.power_failure_bounds();
        let policies = [CrashPolicy::KeepAll, CrashPolicy::Random(self.seed)];
        check_crashes(&image, &policies, self.setting, &model, bounds);
        session
            .fail_power(CrashPolicy::DropUnsynced)
            .and_then(|()| session.verify())
            .and_then(|()| session.reopen())
            .and_then(|()| session.check())
            .expect("the database works again after a fault");
    }
}

/// Judges the errors of a run.
struct Errors {
    fault: Option<Fault>,
    /// The number of faults at the last call of `sync_failed`.
    faults_seen: usize,
    count: u64,
}

impl Errors {
    /// Whether a sync has failed since the last call and did not make its changes durable.
    fn sync_failed(&mut self, disk: &SimDisk) -> bool {
        let before = std::mem::replace(&mut self.faults_seen, disk.fault_log().len());
        before < self.faults_seen
            && self.fault.is_some_and(|fault| {
                matches!(fault.kind, OperationKind::Sync | OperationKind::SyncDir)
                    && fault.after != AfterFailedSync::Durable
            })
    }

    fn note(&mut self, result: Result<(), Error>) {
        let Err(error) = result else {
            return;
        };
        self.count += 1;
        let Some(fault) = self.fault else {
            panic!("an error without a fault: {error:?}");
        };
        let is_harmless = matches!(fault.effect, Effect::Interrupted | Effect::Short);
        assert!(
            !is_harmless,
            "short or interrupted I/O caused an error: {error:?}"
        );
        assert!(is_device_error(error.kind()), "no device error: {error:?}");
    }
}
