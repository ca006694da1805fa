//! The quota sweep: the disk fills up at every possible size.
//!
//! Writes fail with `NoSpace`, and reads succeed. Writes succeed again as soon as there is space, without a new open.
//! No crash loses an acknowledged write. With a reserve, a full disk allows removals and an open.

use super::{Replay, Seeds, check_crashes, setting_of, write_counts};
use crate::disk::CrashPolicy;
use crate::history::{Generator, Operation, Profile};
use crate::model::Effect;
use crate::session::Session;
use crate::settings::Setting;
use clap::Args;
use std::fmt;
use windrow::{Durability, ErrorKind, Result};

/// What is done.
#[derive(Debug, Clone, Copy, Args)]
pub struct Plan {
    /// The seeds of the histories.
    #[command(flatten)]
    pub seeds: Seeds,
    /// Operations in each history.
    #[arg(long, default_value_t = 60)]
    pub operations: usize,
    /// Distance between two quotas, in bytes.
    #[arg(long, default_value_t = 2 << 10)]
    pub step_bytes: u64,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Quotas tried.
    pub quotas: u64,
    /// Operations that failed with `NoSpace`.
    pub failures: u64,
    /// Failures while the database held a reserve.
    pub reserves: u64,
}

impl super::Tally for Tally {
    fn add(&mut self, other: Self) {
        self.quotas += other.quotas;
        self.failures += other.failures;
        self.reserves += other.reserves;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_counts(
            f,
            &[
                ("quotas tried", self.quotas),
                ("failures with NoSpace", self.failures),
                ("  with a reserve", self.reserves),
            ],
        )
    }
}

/// Runs the stress test.
pub fn run(plan: &Plan) -> Tally {
    plan.seeds.sum(|seed| run_seed(plan, seed))
}

/// Tries every quota on the history of one seed.
fn run_seed(plan: &Plan, seed: u64) -> Tally {
    let Plan {
        operations,
        step_bytes,
        ..
    } = plan;
    let mut replay = Replay::new(
        "quota",
        seed,
        &format!("--operations {operations} --step-bytes {step_bytes}"),
    );
    let profile = Profile {
        kills: false,
        ..Profile::default()
    };
    let operations = Generator::new(seed, profile).operations(*operations);
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
        quota += step_bytes;
    }
}

/// Uses the reserve of a full disk: entries can be removed, and the next process can open the database and
/// remove more.
fn use_reserve(session: &mut Session) {
    let remove = |session: &mut Session| {
        // The reserve does not serve new keyspaces.
        let Some(name) = session.db().keyspace_names().into_iter().next() else {
            return Ok(());
        };
        session.write(
            &[(name, b"gone".to_vec(), Effect::Remove)],
            Durability::Sync,
        )
    };
    let mut use_it = || {
        if session.is_open() {
            remove(session)?;
            session.kill()?;
        } else {
            session.disk = session.disk.end_process();
            session.open()?;
        }
        session.check()?;
        remove(session)
    };
    use_it().expect("the reserve serves removals and an open");
}

/// Runs one history and adds what failed to `tally`.
fn run_with_quota(
    seed: u64,
    setting: &Setting,
    operations: &[Operation],
    quota: u64,
    tally: &mut Tally,
) {
    let mut session = Session::new(seed, setting.clone());
    session.disk.set_quota(Some(quota));
    let mut attempt = |session: &mut Session, what: &mut dyn FnMut(&mut Session) -> Result<()>| {
        let was_held = session.is_open() && session.db().stats().reserve_bytes > 0;
        let Err(error) = what(session) else {
            return;
        };
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
        tally.failures += 1;
        if session.is_open() {
            session.check().expect("reads succeed on a full disk");
        }
        check_crash(session, setting);
        if was_held {
            tally.reserves += 1;
            use_reserve(session);
        }
        // With space, an open database writes again without a new open. Then the space goes.
        session.disk.set_quota(None);
        if !session.is_open() {
            session.disk = session.disk.end_process();
        }
        let again = if session.is_open() {
            what(session)
        } else {
            session.open()
        };
        again.expect("the operation succeeds with space");
        session
            .disk
            .set_quota(Some(session.disk.used_bytes() + quota));
    };
    attempt(&mut session, &mut Session::open);
    for operation in operations {
        if matches!(operation, Operation::Reopen) {
            // The open removes leftover files.
            attempt(&mut session, &mut Session::check_tables);
        }
        attempt(&mut session, &mut |session| session.apply(operation));
    }
    session.disk.set_quota(None);
    session
        .check()
        .and_then(|()| session.verify())
        .and_then(|()| session.check_tables())
        .expect("the database is sound after the disk was full");
    check_crash(&session, setting);
}

/// Panics unless a power failure on the full disk leaves an allowed state.
fn check_crash(session: &Session, setting: &Setting) {
    let model = session.lock_model().clone();
    let policies = [CrashPolicy::DropUnsynced, CrashPolicy::KeepAll];
    let bounds = model.power_failure_bounds();
    check_crashes(&session.disk.image(), &policies, setting, &model, bounds);
}
