//! The fault sweep: each I/O of a history goes wrong in each way that its kind can, once and from
//! then on, with each of the three ends of a failed sync.
//!
//! While things go wrong every answer is right or an error that a device explains; never
//! `Corruption`, never a panic, never a wait for ever. Short and interrupted I/O is no error at
//! all. Afterwards the open database still reads, and every crash leaves an allowed state.

use super::{Replay, check_crashes, empty_model, for_seeds, history, setting_of};
use crate::disk::{AfterFailedSync, CrashPolicy, Effect, Fault, OperationKind, Repeat, SimDisk};
use crate::history::{Operation, Profile};
use crate::session::{Session, is_device_error};
use crate::settings::Setting;
use crate::{Random, combine};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use windrow::{Error, ErrorKind};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Histories, one for each seed.
    pub seeds: u64,
    /// Operations in each history.
    pub operations: usize,
    /// One in so many of the possible faults is tried.
    pub one_in: u64,
    /// Threads.
    pub threads: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seeds: 8,
            operations: 40,
            one_in: 1,
            threads: 2,
            first_seed: 1,
        }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Runs in which something went wrong, by kind of operation and effect.
    pub runs: BTreeMap<String, u64>,
    /// Errors that the database reported.
    pub errors: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum: u64 = self.runs.values().sum();
        writeln!(f, "runs with a fault {sum:>10}")?;
        writeln!(f, "errors reported   {:>10}", self.errors)?;
        for (kind, count) in &self.runs {
            writeln!(f, "  {kind:<34} {count:>8}")?;
        }
        Ok(())
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    let tally = Mutex::new(Tally::default());
    for_seeds(
        plan.first_seed,
        plan.threads,
        |seed| seed < plan.first_seed + plan.seeds,
        |seed| {
            let of_seed = run_seed(plan, seed);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.errors += of_seed.errors;
            for (kind, count) in of_seed.runs {
                *tally.runs.entry(kind).or_default() += count;
            }
        },
    );
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Sweeps the history of one seed.
pub fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let arguments = format!(
        "--first-seed {seed} --operations {} --one-in {}",
        plan.operations, plan.one_in
    );
    let mut replay = Replay::new("faults", &arguments);
    let mut tally = Tally::default();
    let profile = Profile {
        keys: 30,
        keyspaces: 2,
        synced: 40,
        kills: false,
    };
    let operations = history(seed, profile).operations(plan.operations);
    let setting = setting_of(seed);
    let run = Run {
        seed,
        setting: &setting,
        operations: &operations,
    };
    replay.at("the run without faults".to_owned());
    let sound = run.carry_out(None, &mut replay);
    let mut random = Random::new(combine(seed, 2));
    for kind in OperationKind::ALL {
        for at in 0..sound.counts[&kind] {
            for fault in faults(kind, at) {
                if random.chance(1, plan.one_in) {
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

/// Opens the database. Where the fault keeps it from opening, the next try must succeed without.
///
/// A sync that failed is no exception: what the cache shows then may never reach the disk by itself,
/// and what was acknowledged since the last sync may be gone already, but all that the opening hands
/// out is durable.
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
        session.disk.set_faults(Vec::new());
        errors.fault = None;
    }
}

/// Everything that can go wrong with operation `at` of `kind`.
fn faults(kind: OperationKind, at: u64) -> Vec<Fault> {
    use AfterFailedSync::{Durable, LostAtCrash, Reverted};
    use Effect::{Interrupted, Io, NoSpace, Short, TooManyFiles};

    let effects: &[Effect] = match kind {
        OperationKind::Read => &[Io, Interrupted, Short],
        OperationKind::Write => &[Io, NoSpace, Interrupted, Short],
        OperationKind::Reserve
        | OperationKind::Sync
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
        OperationKind::Sync | OperationKind::SyncDir => &[LostAtCrash, Reverted, Durable],
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
        let disk = SimDisk::new();
        disk.forbid_removal_in_use(".table");
        disk.forbid_removal_in_use(".values");
        disk.set_faults(fault.into_iter().collect());
        let mut session = Session::new(disk, self.seed, self.setting.clone(), empty_model());
        let mut errors = Errors {
            fault,
            faults_seen: 0,
            count: 0,
        };
        let shown = fault.map_or_else(String::new, |fault| fault.to_string());

        replay.at(format!("{shown}, the first opening"));
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

    /// Nothing goes wrong any more: everything must be there, now and after each kind of crash.
    fn finish(&self, fault: Option<Fault>, session: &mut Session) {
        session.disk.set_faults(Vec::new());
        // What a failed sync took back of a value log is gone until the next opening ends history
        // before it, and readers are told so.
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
        // What could not be removed stays until the next opening.
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
        let again = session
            .fail_power(CrashPolicy::DropUnsynced)
            .and_then(|()| session.verify())
            .and_then(|()| session.reopen())
            .and_then(|()| session.check());
        if let Err(error) = again {
            panic!("the database does not go on after a fault: {error:?}");
        }
    }
}

/// Judges the errors of a run.
struct Errors {
    fault: Option<Fault>,
    /// How many faults had happened at the last look.
    faults_seen: usize,
    count: u64,
}

impl Errors {
    /// Whether a sync has failed since the last call and took back what it was to make durable.
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
            panic!("an error without a cause: {error:?}");
        };
        let is_harmless = matches!(fault.effect, Effect::Interrupted | Effect::Short);
        assert!(
            !is_harmless,
            "short and interrupted I/O is no error: {error:?}"
        );
        assert!(
            is_device_error(error.kind()),
            "a device error was reported as something else: {error:?}"
        );
    }
}
