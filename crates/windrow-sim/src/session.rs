//! A database on a simulated disk, and the model of what it must contain, side by side.
//!
//! Each operation is done to both, and what the database answers is held against the model at once. After a
//! crash, a fault or a reopening the model says between which bounds the contents must lie.
//!
//! Concurrency: background work is stepped by hand from a seed; only the model is shared, with an observer of the
//! disk that looks at it in the middle of an operation.

use crate::history::Operation;
use crate::model::{Bounds, Change, Contents, Status, differences};
use crate::settings::Setting;
use crate::{CrashPolicy, Model, SimDisk, SteppedRuntime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windrow::{Batch, Db, Durability, Entry, ErrorKind, Keyspace, Range, Result, Snapshot};

/// Where the database is on its disk.
pub const FOLDER: &str = "/data/db";

/// Where checkpoints are made.
pub const CHECKPOINT: &str = "/data/checkpoint";

/// More background jobs than any small history can need.
pub const JOBS_MAX: usize = 10_000;

/// A model that an observer of the disk can read while the database works.
pub type SharedModel = Arc<Mutex<Model>>;

/// A snapshot, the keyspaces that there were when it was taken, and what it must show of them.
#[derive(Debug)]
struct Held {
    snapshot: Snapshot,
    keyspaces: Vec<Keyspace>,
    contents: Contents,
}

/// A database and its model.
#[derive(Debug)]
pub struct Session {
    /// The disk, as the present process sees it.
    pub disk: SimDisk,
    /// The runtime, which outlives processes.
    pub runtime: SteppedRuntime,
    setting: Setting,
    model: SharedModel,
    /// `None` after it could not be opened.
    db: Option<Db>,
    keyspaces: BTreeMap<String, Keyspace>,
    /// Snapshots that are held, oldest first, with what they must show.
    snapshots: VecDeque<Held>,
    /// For each snapshot, iterators begun when it was taken, with their first entries.
    iterators: VecDeque<Vec<(String, Option<Entry>, Range)>>,
    /// Whether the last commit of the model failed, so that only a reopening shows its fate.
    unresolved: bool,
    /// Whether the next process sees all that was acknowledged in this one; not after a power
    /// failure or a sync that failed.
    trusts_cache: bool,
}

impl Session {
    /// A session on `disk` whose database is not open yet; the model says what it must contain.
    pub fn new(disk: SimDisk, seed: u64, setting: Setting, model: SharedModel) -> Self {
        Self {
            disk,
            runtime: SteppedRuntime::new(seed),
            setting,
            model,
            db: None,
            keyspaces: BTreeMap::new(),
            snapshots: VecDeque::new(),
            iterators: VecDeque::new(),
            unresolved: false,
            trusts_cache: true,
        }
    }

    /// The database.
    ///
    /// # Panics
    /// When the last try to open it failed.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// Whether the last try to open it succeeded.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// The keyspace `name`, opened when first used.
    pub fn keyspace(&mut self, name: &str) -> Result<Keyspace> {
        if let Some(keyspace) = self.keyspaces.get(name) {
            return Ok(keyspace.clone());
        }
        let keyspace = self.setting.keyspace(self.db(), name)?;
        self.keyspaces.insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Carries out one operation and keeps the model in step.
    ///
    /// # Errors
    /// What the database reported; the model then allows what the error leaves open.
    pub fn apply(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Write(changes, durability) => self.write(changes, *durability),
            Operation::Persist => {
                self.db().persist()?;
                self.lock_model().persisted();
                Ok(())
            }
            Operation::Flush => {
                self.db().flush()?;
                self.lock_model().persisted();
                Ok(())
            }
            Operation::Compact(keyspace, from, to) => {
                let keyspace = self.keyspace(keyspace)?;
                keyspace.compact_range(from.clone()..=to.clone())
            }
            Operation::Drop(name) => self.drop_keyspace(name),
            Operation::Checkpoint => self.checkpoint(),
            Operation::WaitIdle => self.db().wait_idle(),
            Operation::Step(count) => {
                for _ in 0..*count {
                    self.runtime.step();
                }
                Ok(())
            }
            Operation::Hold => {
                let snapshot = self.db().snapshot();
                let contents = self.visible()?;
                let iterators = self.begin_iterators()?;
                let names = self.db().keyspace_names();
                let keyspaces = names.iter().map(|name| self.keyspace(name));
                let keyspaces = keyspaces.collect::<Result<_>>()?;
                self.snapshots.push_back(Held {
                    snapshot,
                    keyspaces,
                    contents,
                });
                self.iterators.push_back(iterators);
                Ok(())
            }
            Operation::Release => {
                let iterators = self.iterators.pop_front().unwrap_or_default();
                match self.snapshots.pop_front() {
                    Some(held) => {
                        held.check()?;
                        check_iterators(iterators, &held.contents)
                    }
                    None => Ok(()),
                }
            }
            Operation::Reopen => self.reopen(),
            Operation::Kill => self.kill(),
        }
    }

    /// Commits `changes`, alone if it is one.
    pub fn write(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let keyspaces = changes
            .iter()
            .map(|(name, _, _)| self.keyspace(name))
            .collect::<Result<Vec<_>>>()?;
        let status = match durability {
            Durability::Sync => Status::Durable,
            Durability::Buffered => Status::Buffered,
        };
        self.change(changes.to_vec(), status, |session| {
            session.commit(&keyspaces, changes, durability)
        })
    }

    /// Drops the keyspace `name`, if it is there: to the model, a durable commit that removes every
    /// entry. Its old handle must refuse everything from then on.
    fn drop_keyspace(&mut self, name: &str) -> Result<()> {
        if !self.db().keyspace_names().iter().any(|own| own == name) {
            return Ok(());
        }
        let handle = self.keyspace(name)?;
        let model = self.lock_model();
        let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
        // Whether or not the last commit counts.
        for contents in [
            model.current(),
            &model.state(model.begun().saturating_sub(1)),
        ] {
            let entries = contents.get(name).into_iter().flatten();
            keys.extend(entries.map(|(key, _)| key.clone()));
        }
        drop(model);
        let removal = |key| (name.to_owned(), key, None);
        let changes = keys.into_iter().map(removal).collect();
        self.change(changes, Status::Durable, |session| {
            session.db().drop_keyspace(name)
        })?;
        self.keyspaces.remove(name);
        assert!(!self.db().keyspace_names().iter().any(|own| own == name));
        let refused = [
            handle.get("key").map(drop),
            handle.iter().map(drop),
            handle.insert("key", "value"),
            handle.compact_range::<&[u8]>(..),
        ];
        for outcome in refused {
            let kind = outcome.map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::NotFound), "of a dropped keyspace");
        }
        Ok(())
    }

    /// Makes a checkpoint, which must show what the database shows, and removes it.
    fn checkpoint(&mut self) -> Result<()> {
        let expected = self.visible()?;
        let outcome = self.check_checkpoint(&expected);
        self.disk.edit(|image| {
            for path in image.files() {
                if path.starts_with(CHECKPOINT) {
                    image
                        .remove(&path)
                        .expect("a file that was listed is there");
                }
            }
        });
        outcome
    }

    fn check_checkpoint(&self, expected: &Contents) -> Result<()> {
        self.db().checkpoint(CHECKPOINT)?;
        if !self.unresolved {
            self.lock_model().persisted();
        }
        let options = self.setting.on(&self.disk, &self.runtime);
        let copy = Db::open_read_only(CHECKPOINT, options)?;
        let found = contents(&copy)?;
        assert!(
            found == *expected,
            "a checkpoint shows something else: {}",
            differences(expected, &found).join("; ")
        );
        let report = copy.verify()?;
        assert!(
            report.is_sound(),
            "verify finds damage in a checkpoint: {report:?}"
        );
        copy.close()
    }

    /// Lets `commit` make `changes`, which have `status` when it succeeds.
    fn change(
        &mut self,
        changes: Vec<Change>,
        status: Status,
        commit: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        if self.unresolved {
            // A failure after which the next change goes on must have changed nothing; only one
            // that poisons may have left its own commit behind.
            let result = commit(self);
            if let Err(error) = &result
                && error.kind() == ErrorKind::Poisoned
            {
                return result;
            }
            let mut model = self.lock_model();
            model.withdraw();
            model.begin(changes);
            drop(model);
            result?;
            self.unresolved = false;
        } else {
            self.lock_model().begin(changes);
            let result = commit(self);
            self.unresolved = result.is_err();
            result?;
        }
        self.lock_model().finish(status);
        Ok(())
    }

    /// Closes and opens again; nothing may change.
    pub fn reopen(&mut self) -> Result<()> {
        self.close()?;
        self.open()
    }

    /// Closes the database, which makes everything durable, and ends the process.
    pub fn close(&mut self) -> Result<()> {
        let closed = match self.db.take() {
            Some(db) => db.close(),
            None => Ok(()),
        };
        self.forget();
        if closed.is_ok() {
            self.lock_model().persisted();
        }
        self.disk = self.disk.end_process();
        closed
    }

    /// Ends the process and opens again.
    pub fn kill(&mut self) -> Result<()> {
        self.disk = self.disk.end_process();
        self.forget();
        self.open()
    }

    /// Lets the power fail and opens again what `policy` leaves.
    pub fn fail_power(&mut self, policy: CrashPolicy) -> Result<()> {
        self.disk = self.disk.crash(policy);
        self.forget();
        self.trusts_cache = false;
        self.open()
    }

    /// Forgets what belonged to a process that has ended.
    fn forget(&mut self) {
        self.snapshots.clear();
        self.iterators.clear();
        self.keyspaces.clear();
        self.db = None;
    }

    /// A sync has failed: what was acknowledged and not yet durable may be gone at the next opening,
    /// even without a power failure.
    pub fn distrust_cache(&mut self) {
        self.trusts_cache = false;
    }

    /// Everything that the database contains now.
    pub fn contents(&self) -> Result<Contents> {
        contents(self.db())
    }

    /// Compares everything with the model.
    ///
    /// # Errors
    /// A read failed.
    ///
    /// # Panics
    /// Something differs.
    pub fn check(&self) -> Result<()> {
        let found = self.contents()?;
        let model = self.lock_model();
        // A failed commit may be invisible in the handle that reported it.
        let without = self.unresolved.then(|| model.state(model.begun() - 1));
        assert!(
            found == *model.current() || without.as_ref() == Some(&found),
            "the contents differ from the model: {}",
            differences(model.current(), &found).join("; ")
        );
        Ok(())
    }

    /// What the open database must show.
    fn visible(&self) -> Result<Contents> {
        if self.unresolved {
            self.check()?;
            return self.contents();
        }
        Ok(self.lock_model().current().clone())
    }

    /// Checks every snapshot that is held.
    pub fn check_snapshots(&self) -> Result<()> {
        self.snapshots.iter().try_for_each(Held::check)
    }

    /// Panics unless the full structural check finds nothing.
    pub fn verify(&self) -> Result<()> {
        let report = self.db().verify()?;
        assert!(report.is_sound(), "verify found damage: {report:?}");
        Ok(())
    }

    /// Panics unless the folder holds the tables and value files that count and no others. Lets go of what is held
    /// for reading, which keeps others, and needs a device that works.
    pub fn check_tables(&mut self) -> Result<()> {
        self.snapshots.clear();
        self.iterators.clear();
        self.db().wait_idle()?;
        let keyspaces = self.db().stats().keyspaces;
        let levels = keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        let tables: usize = levels.map(|level| level.files).sum();
        let values = keyspaces
            .iter()
            .map(|own| own.transient_logs.files + own.value_logs.files);
        let values: usize = values.sum();
        let garbage: usize = keyspaces.iter().map(|own| own.discard_lists).sum();
        let image = self.disk.image();
        for (extension, counted) in [("table", tables), ("values", values), ("dead", garbage)] {
            let is_one = |path: &&PathBuf| path.extension().is_some_and(|end| end == extension);
            let present = image.files().iter().filter(is_one).count();
            assert_eq!(
                present, counted,
                ".{extension} files in folder and manifest"
            );
        }
        Ok(())
    }

    /// Opens the database and compares it with the model.
    ///
    /// # Errors
    /// It could not be opened or read.
    ///
    /// # Panics
    /// It contains what the model does not allow.
    pub fn open(&mut self) -> Result<()> {
        self.unresolved = false;
        let options = self.setting.on(&self.disk, &self.runtime);
        let db = Db::open(Path::new(FOLDER), options)?;
        // The first opening of a keyspace chooses its options.
        for name in db.keyspace_names() {
            self.setting.keyspace(&db, &name)?;
        }
        let found = contents(&db)?;
        self.db = Some(db);
        let mut model = self.lock_model();
        let bounds = if self.trusts_cache {
            model.process_crash_bounds()
        } else {
            model.power_failure_bounds()
        };
        let count = check(&model, &found, bounds);
        // What was lost is lost for ever, and what was read back is durable from now on.
        model.recovered(count);
        model.persisted();
        drop(model);
        self.trusts_cache = true;
        Ok(())
    }

    fn commit(
        &self,
        keyspaces: &[Keyspace],
        changes: &[Change],
        durability: Durability,
    ) -> Result<()> {
        if let ([keyspace], [(_, key, value)]) = (keyspaces, changes) {
            return match value {
                Some(value) => keyspace.insert_with(key, value, durability),
                None => keyspace.remove_with(key, durability),
            };
        }
        let mut batch = Batch::new();
        for (keyspace, (_, key, value)) in keyspaces.iter().zip(changes) {
            match value {
                Some(value) => batch.insert(keyspace, key, value)?,
                None => batch.remove(keyspace, key)?,
            }
        }
        self.db().write_with(&batch, durability)
    }

    /// An iterator over each keyspace, one step into it.
    fn begin_iterators(&mut self) -> Result<Vec<(String, Option<Entry>, Range)>> {
        let names = self.db().keyspace_names();
        let begin = |name: String| {
            let mut iterator = self.keyspace(&name)?.iter()?;
            let first = iterator.next().transpose()?;
            Ok((name, first, iterator))
        };
        names.into_iter().map(begin).collect()
    }

    /// The model.
    pub fn lock_model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Whether the keyspaces are still there or not, they show what was there.
    fn check(&self) -> Result<()> {
        let mut found = Contents::new();
        for keyspace in &self.keyspaces {
            let view = keyspace.at(&self.snapshot)?;
            let entries = view.iter()?.collect::<Result<_>>()?;
            found.insert(keyspace.name().to_owned(), entries);
        }
        found.retain(|_, entries| !entries.is_empty());
        assert!(
            found == self.contents,
            "a snapshot shows something else: {}",
            differences(&self.contents, &found).join("; ")
        );
        Ok(())
    }
}

/// Finishes iterators; whatever happened since they were begun, they show what was there then.
fn check_iterators(
    iterators: Vec<(String, Option<Entry>, Range)>,
    expected: &Contents,
) -> Result<()> {
    let mut found = Contents::new();
    for (name, first, rest) in iterators {
        let entries = first.map(Ok).into_iter().chain(rest);
        found.insert(name, entries.collect::<Result<_>>()?);
    }
    found.retain(|_, entries| !entries.is_empty());
    assert!(
        found == *expected,
        "an iterator shows something else: {}",
        differences(expected, &found).join("; ")
    );
    Ok(())
}

/// Everything that `db` contains.
pub fn contents(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.keyspace_names() {
        let entries = db.keyspace(&name)?.iter()?.collect::<Result<_>>()?;
        contents.insert(name, entries);
    }
    contents.retain(|_, entries| !entries.is_empty());
    Ok(contents)
}

/// After how many commits the database was `found`.
///
/// # Panics
/// It is none of the states that `bounds` allow.
pub fn check(model: &Model, found: &Contents, bounds: Bounds) -> usize {
    match model.check_recovered(found, bounds) {
        Ok(count) => count,
        Err(sentence) => panic!("{sentence}"),
    }
}

/// Whether an error may follow from a device that failed.
pub fn is_device_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Poisoned
    )
}
