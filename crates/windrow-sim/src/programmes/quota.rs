//! The disk fills up at every possible size: writes fail with `NoSpace`, reads go on, and as soon
//! as there is room writing goes on by itself. Nothing acknowledged is lost, whatever crashes. Where
//! space was kept back, entries can be removed from the full disk, and it can be opened.

use super::{Replay, check_crashes, empty_model, for_seeds, history, setting_of};
use crate::disk::{CrashPolicy, SimDisk};
use crate::history::{Operation, Profile};
use crate::session::Session;
use crate::settings::Setting;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use windrow::{Durability, ErrorKind};

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Histories, one for each seed.
    pub seeds: u64,
    /// Operations in each history.
    pub operations: usize,
    /// Distance between two quotas, in bytes.
    pub step_bytes: u64,
    /// Threads.
    pub threads: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seeds: 8,
            operations: 60,
            step_bytes: 2 << 10,
            threads: 2,
            first_seed: 1,
        }
    }
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Quotas tried.
    pub quotas: u64,
    /// Operations that failed with `NoSpace`.
    pub failures: u64,
    /// Failures at which space was kept back.
    pub reserves: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "quotas tried          {:>8}", self.quotas)?;
        writeln!(f, "failures with NoSpace {:>8}", self.failures)?;
        writeln!(f, "  with a reserve      {:>8}", self.reserves)
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
            tally.quotas += of_seed.quotas;
            tally.failures += of_seed.failures;
            tally.reserves += of_seed.reserves;
        },
    );
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Tries every quota on the history of one seed.
pub fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let arguments = format!(
        "--first-seed {seed} --operations {} --step-bytes {}",
        plan.operations, plan.step_bytes
    );
    let mut replay = Replay::new("quota", &arguments);
    let profile = Profile {
        kills: false,
        ..Profile::default()
    };
    let operations = history(seed, profile).operations(plan.operations);
    let setting = setting_of(seed);
    let mut tally = Tally::default();
    let mut quota = 0;
    loop {
        replay.at(format!("quota {quota}"));
        tally.quotas += 1;
        let before = tally.failures;
        run_with_quota(seed, &setting, &operations, quota, &mut tally);
        if tally.failures == before {
            return tally;
        }
        quota += plan.step_bytes;
    }
}

/// On a full disk whose reserve was there: entries can be removed, and the next process can open the
/// database and remove more.
fn use_reserve(session: &mut Session) {
    let remove = |session: &mut Session| {
        // The reserve is not for new keyspaces.
        let Some(name) = session.db().keyspace_names().into_iter().next() else {
            return Ok(());
        };
        session.write(&[(name, b"gone".to_vec(), None)], Durability::Sync)
    };
    let used = if session.is_open() {
        remove(session).and_then(|()| session.kill())
    } else {
        session.disk = session.disk.end_process();
        session.open()
    };
    let used = used
        .and_then(|()| session.check())
        .and_then(|()| remove(session));
    if let Err(error) = used {
        panic!("the reserve is of no use: {error:?}");
    }
}

/// Adds to `tally` what failed.
fn run_with_quota(
    seed: u64,
    setting: &Setting,
    operations: &[Operation],
    quota: u64,
    tally: &mut Tally,
) {
    let disk = SimDisk::new();
    disk.set_quota(Some(quota));
    let mut session = Session::new(disk, seed, setting.clone(), empty_model());
    let mut attempt =
        |session: &mut Session, what: &mut dyn FnMut(&mut Session) -> windrow::Result<()>| {
            let was_held = session.is_open() && session.db().stats().reserve_bytes > 0;
            let Err(error) = what(session) else {
                return;
            };
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
            tally.failures += 1;
            // Reads go on.
            if session.is_open()
                && let Err(error) = session.check()
            {
                panic!("reads fail because the disk is full: {error:?}");
            }
            check_crash(session, setting);
            if was_held {
                tally.reserves += 1;
                use_reserve(session);
            }
            // There is room now; no reopening is needed to write on, and then it is gone again.
            session.disk.set_quota(None);
            if !session.is_open() {
                session.disk = session.disk.end_process();
            }
            let again = if session.is_open() {
                what(session)
            } else {
                session.open()
            };
            if let Err(error) = again {
                panic!("there is room and it still fails: {error:?}");
            }
            session
                .disk
                .set_quota(Some(session.disk.used_bytes() + quota));
        };
    attempt(&mut session, &mut Session::open);
    for operation in operations {
        if matches!(operation, Operation::Reopen) {
            // Opening removes what is left over.
            attempt(&mut session, &mut Session::check_tables);
        }
        attempt(&mut session, &mut |session| session.apply(operation));
    }
    session.disk.set_quota(None);
    let checked = session
        .check()
        .and_then(|()| session.verify())
        .and_then(|()| session.check_tables());
    if let Err(error) = checked {
        panic!("the database is not sound after the disk was full: {error:?}");
    }
    check_crash(&session, setting);
}

/// A power failure on the full disk leaves an allowed state once there is room.
fn check_crash(session: &Session, setting: &Setting) {
    let model = session.lock_model().clone();
    let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
    let image = session.disk.image();
    check_crashes(
        &image,
        &policies,
        setting,
        &model,
        model.power_failure_bounds(),
    );
}
