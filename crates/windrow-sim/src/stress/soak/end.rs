//! The end of the soak: nobody is killed any more, and everything must be equal.

use super::child::{Role, db_folder, options, removed};
use super::process::Process;
use super::{LATE, Slot, Soak, TICK, backups, replica};
use crate::session::verify;
use crate::stress::lanes::{Counts, Model};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use windrow::backup::{Backups, RestoreTo};
use windrow::runtime::Runtime;
use windrow::vfs::{OsVfs, Vfs};
use windrow::{Db, ErrorKind, Result};

impl Soak<'_> {
    /// Kills the writer once more. Then a quiet one serves the feed until the replica has everything, and all others end.
    pub(super) fn end(&mut self) -> std::result::Result<(), Box<dyn Error>> {
        for role in Role::ALL {
            match self.slots.remove(&role) {
                Some(Slot::Running { mut process, .. }) => process.kill()?,
                Some(Slot::Ending { mut process, .. }) => process.finish(role)?,
                Some(Slot::Waiting { .. }) | None => {}
            }
        }
        self.is_full = false;
        self.has_settled = false;
        self.last.clear();
        let mut running = BTreeMap::new();
        for role in Role::ALL {
            running.insert(role, self.start(role, role == Role::Writer)?);
        }
        self.await_settled(&mut running)?;
        for role in Role::ALL.into_iter().rev() {
            let mut process = running.remove(&role).expect("it was started");
            process.finish(role)?;
            self.receive(role, &mut process);
        }
        self.compare_all()
    }

    fn await_settled(
        &mut self,
        running: &mut BTreeMap<Role, Process>,
    ) -> std::result::Result<(), Box<dyn Error>> {
        let until = self.clock.now() + LATE;
        while !self.has_settled {
            assert!(
                self.clock.now() < until,
                "the replica does not get all changes"
            );
            for (role, process) in &mut *running {
                self.receive(*role, process);
                assert!(!process.has_ended()?, "the {} has failed", role.name());
            }
            self.clock.sleep(TICK);
        }
        Ok(())
    }

    fn compare_all(&mut self) -> std::result::Result<(), Box<dyn Error>> {
        let path = db_folder(&self.folder);
        let mut model = Model::new(self.plan.seed);
        let db = Db::open(&path, options())?;
        let counts = model.check(&db, self.acknowledged.get(), "the database at the end")?;
        self.tally.batches = counts.iter().sum();
        for role in Role::ALL {
            let last = self.last.get(&role);
            assert_eq!(last, Some(&counts), "the last state of the {}", role.name());
        }
        verify(&db)?;
        self.check_files(&db)?;
        db.close()?;
        self.check_copies(&mut model, counts)?;
        let replica = Db::open(self.folder.join(replica::REPLICA), options())?;
        verify(&replica)?;
        let last = model.check(&replica, counts, "the replica at the end")?;
        assert_eq!(last, counts, "the replica at the end");
        replica.close()?;
        Ok(())
    }

    /// The newest backup and the newest archived state.
    fn check_copies(&self, model: &mut Model, counts: Counts) -> Result<()> {
        let target = removed(self.folder.join("restored"));
        let store = Backups::open(self.folder.join(backups::BACKUPS))?;
        let newest = store.newest()?.expect("there is a backup");
        store.restore(newest, &target)?;
        let last = backups::compare(&target, model, counts, "the newest backup")?;
        assert_eq!(last, counts, "the newest backup");
        let target = removed(target);
        let store = Backups::open(self.folder.join(backups::ARCHIVE))?;
        let reachable = store.reachable()?;
        let is_sound = reachable.unusable.is_empty() && reachable.damage.is_empty();
        assert!(is_sound, "the archive: {reachable:?}");
        let newest = reachable.states.last().expect("there is an archive");
        let range = newest.sequences.last().expect("there is a state");
        let to = RestoreTo::Sequence(*range.end());
        store.restore_to(to, Some(newest.backup), &target)?;
        let last = backups::compare(&target, model, counts, "the newest archived state")?;
        assert_eq!(last, counts, "the newest archived state");
        Ok(())
    }

    /// The folder has exactly the files that the manifest names: no dead lease keeps one.
    fn check_files(&self, db: &Db) -> Result<()> {
        for consumer in db.consumers() {
            // They may hold logs, and the values behind them.
            match db.remove_consumer(&consumer.name) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
        let until = self.clock.now() + LATE;
        loop {
            db.wait_idle()?;
            let (needed, present) = (needed(db), present(db.path()));
            if db.stats().files_held_by_readers == 0 && needed == present {
                return Ok(());
            }
            assert!(
                self.clock.now() < until,
                "the folder has {present:?} files, and the manifest names {needed:?}; readers hold {}",
                db.stats().files_held_by_readers
            );
            self.clock.sleep(TICK * 10);
        }
    }
}

/// The tables, value files and discard lists that the manifest names.
fn needed(db: &Db) -> [usize; 3] {
    let keyspaces = db.stats().keyspaces;
    let levels = keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
    let values = keyspaces
        .iter()
        .map(|own| own.transient_logs.files + own.value_logs.files);
    [
        levels.map(|level| level.files).sum(),
        values.sum(),
        keyspaces.iter().map(|own| own.discard_lists).sum(),
    ]
}

/// Those in the folder.
fn present(folder: &Path) -> [usize; 3] {
    let names = OsVfs.list(folder).expect("the folder can be listed");
    let count = |ending: &str| names.iter().filter(|name| name.ends_with(ending)).count();
    [".table", ".values", ".dead"].map(count)
}
