//! Backups within random histories, which go on while a backup is made. Each holds what the model held when it began.

use std::sync::{Arc, Mutex, PoisonError};

use windrow::Db;
use windrow::backup::{Backups, FolderStore};
use windrow_sim::history::{Generator, Operation, Profile};
use windrow_sim::session::{Session, contents, verify};
use windrow_sim::settings::Setting;

use super::{BACKUPS, RESTORED, remove_all};

/// A session, what it does next, and how much it has done beside backups.
struct History {
    session: Session,
    /// Without a log, the thread of a backup may not make keyspaces.
    has_log: bool,
    generator: Generator,
    writes_beside: u64,
    jobs_beside: u64,
}

impl History {
    /// Does what may be done on the thread of a backup: nothing that ends the database or waits for its jobs.
    fn go_on(&mut self) {
        if !self.has_log {
            return;
        }
        let operation = self.generator.operation();
        match operation {
            Operation::Write(..) => self.writes_beside += 1,
            Operation::Step(_) => self.jobs_beside += 1,
            Operation::Hold | Operation::Release => {}
            _ => return,
        }
        self.session.apply(&operation).unwrap();
    }
}

/// Makes a backup in the folder of the session's disk, and compares what it restores.
fn back_up(shared: &Arc<Mutex<History>>, setting: &Setting) {
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let (db, disk, runtime, expected) = {
        let history = lock();
        let session = &history.session;
        session.check().unwrap();
        let expected = session.contents().unwrap();
        (
            session.db().clone(),
            session.disk.clone(),
            session.runtime.clone(),
            expected,
        )
    };
    let store = FolderStore::open(Arc::new(disk.clone()), BACKUPS).unwrap();
    let backups = Backups::new(Arc::new(store)).with_vfs(Arc::new(disk.clone()));
    let backups = backups.with_runtime(Arc::new(runtime.clone()));
    let backups = backups.with_progress({
        let shared = Arc::clone(shared);
        move |_| {
            let mut history = shared.lock().unwrap_or_else(PoisonError::into_inner);
            history.go_on();
        }
    });
    let sequence = db.stats().sequence;
    let made = db.backup(&backups).unwrap();
    assert_eq!(made.sequence, sequence);
    if !setting.has_log() {
        // The backup includes it.
        lock().session.lock_model().persisted();
    }
    backups.restore(made.number, RESTORED).unwrap();
    let copy = Db::open_read_only(RESTORED, setting.on(&disk, &runtime)).unwrap();
    assert!(
        contents(&copy).unwrap() == expected,
        "backup {} in {}",
        made.number,
        setting.name
    );
    verify(&copy).unwrap();
    copy.close().unwrap();
    remove_all(&disk, RESTORED);
}

#[test]
fn a_backup_within_a_history_holds_the_state_of_the_model() {
    let (mut writes, mut jobs) = (0, 0);
    for (seed, setting) in (1..).zip(&Setting::all()) {
        let mut session = Session::new(seed, setting.clone());
        session.open().unwrap();
        let shared = Arc::new(Mutex::new(History {
            session,
            has_log: setting.has_log(),
            generator: Generator::new(seed, Profile::default()),
            writes_beside: 0,
            jobs_beside: 0,
        }));
        for _ in 0..8 {
            {
                let mut history = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let operations = history.generator.operations(15);
                for operation in &operations {
                    history.session.apply(operation).unwrap();
                }
            }
            back_up(&shared, setting);
        }
        let history = shared.lock().unwrap_or_else(PoisonError::into_inner);
        history.session.check().unwrap();
        writes += history.writes_beside;
        jobs += history.jobs_beside;
    }
    assert!(writes > 500 && jobs > 100, "{writes} and {jobs}");
}
