//! A database on a simulated disk, and beside it the model of what the database must contain.
//!
//! A session does each operation to both and compares the answers at once. After a crash, a fault or a new
//! open, the model gives the bounds of what the database may contain.
//!
//! Concurrency: the session steps background work on its own thread, from a seed. Only the model is shared:
//! an observer of the disk reads it during an operation.

mod expiring;
mod held;
mod operations;

use crate::filtered::seen;
use crate::model::{Bounds, Contents, differences};
use crate::settings::Setting;
use crate::{CrashPolicy, Model, SimDisk, SteppedRuntime};
use held::Held;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windrow::runtime::Runtime as _;
use windrow::{Db, ErrorKind, Keyspace, PendingPersist, Result, Scrub};

/// The folder of the database.
pub const FOLDER: &str = "/data/db";

/// The folder of checkpoints.
pub const CHECKPOINT: &str = "/data/checkpoint";

/// Where sessions write files that they ingest together.
const EXTERNAL: [&str; 2] = ["/data/external-1", "/data/external-2"];

/// More background jobs than any small history needs.
pub const JOBS_MAX: usize = 10_000;

/// A model that an observer of the disk can read while the database works.
pub type SharedModel = Arc<Mutex<Model>>;

/// A database and its model.
#[derive(Debug)]
pub struct Session {
    /// The disk, as the current process sees it.
    pub disk: SimDisk,
    /// The runtime. It outlives processes.
    pub runtime: SteppedRuntime,
    setting: Setting,
    model: SharedModel,
    /// `None` if the last open failed.
    db: Option<Db>,
    keyspaces: BTreeMap<String, Keyspace>,
    /// Snapshots and iterators, oldest first.
    held: VecDeque<Held>,
    /// A persist that was begun, and the number of commits before it.
    pending: Option<(PendingPersist, usize)>,
    /// Whether the last commit of the model failed. Only the next open shows whether it counts.
    unresolved: bool,
    /// Whether the next process sees everything that this one acknowledged. It does not after a power
    /// failure or a failed sync.
    trusts_cache: bool,
}

impl Session {
    /// A session on an empty disk. The database is not open yet, and the model is empty.
    ///
    /// The removal of a table or value file in use panics.
    pub fn new(seed: u64, setting: Setting) -> Self {
        let disk = SimDisk::new();
        disk.forbid_removal_in_use(".table");
        disk.forbid_removal_in_use(".values");
        let mut model = Model::default();
        if !setting.has_log() {
            model.without_log();
        }
        Self {
            disk,
            runtime: SteppedRuntime::new(seed),
            setting,
            model: Arc::new(Mutex::new(model)),
            db: None,
            keyspaces: BTreeMap::new(),
            held: VecDeque::new(),
            pending: None,
            unresolved: false,
            trusts_cache: true,
        }
    }

    /// The database.
    ///
    /// # Panics
    /// The last open failed.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    /// Whether the last open succeeded.
    pub fn is_open(&self) -> bool {
        self.db.is_some()
    }

    /// The keyspace `name`, opened at its first use.
    pub fn keyspace(&mut self, name: &str) -> Result<Keyspace> {
        if let Some(keyspace) = self.keyspaces.get(name) {
            return Ok(keyspace.clone());
        }
        let keyspace = self.setting.keyspace(self.db(), name)?;
        self.keyspaces.insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Closes and opens the database. Nothing may change, except that without a log it returns to the last point.
    pub fn reopen(&mut self) -> Result<()> {
        self.close()?;
        self.open()
    }

    /// As [`reopen`](Self::reopen), while the clock shows a time that is earlier by this many milliseconds.
    pub fn reopen_earlier(&mut self, milliseconds: u64) -> Result<()> {
        self.close()?;
        let moment = self.lock_model().moment().saturating_sub(milliseconds);
        self.runtime.set_unix_time(Duration::from_millis(moment));
        let opened = self.open();
        // Then the model knows again when new entries expire.
        self.show_moment();
        opened
    }

    /// Lets the clock show the moment of the model.
    fn show_moment(&self) {
        let moment = Duration::from_millis(self.lock_model().moment());
        self.runtime.set_unix_time(moment);
    }

    /// Closes the database, which makes everything durable if there is a log, and ends the process.
    pub fn close(&mut self) -> Result<()> {
        let closed = match self.db.take() {
            Some(db) => db.close(),
            None => Ok(()),
        };
        self.forget();
        if closed.is_ok() && self.setting.has_log() {
            self.lock_model().persisted();
        }
        self.disk = self.disk.end_process();
        closed
    }

    /// Ends the process and opens the database.
    pub fn kill(&mut self) -> Result<()> {
        self.disk = self.disk.end_process();
        self.forget();
        self.open()
    }

    /// Lets the power fail and opens what `policy` leaves.
    pub fn fail_power(&mut self, policy: CrashPolicy) -> Result<()> {
        self.disk = self.disk.crash(policy);
        self.forget();
        self.trusts_cache = false;
        self.open()
    }

    /// Forgets what belonged to the ended process.
    fn forget(&mut self) {
        self.held.clear();
        self.pending = None;
        self.keyspaces.clear();
        self.db = None;
    }

    /// A sync has failed. The next open may find less than what was acknowledged, even without a
    /// power failure.
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
        // A failed commit may be invisible to the handle that reported it.
        let without = self.unresolved.then(|| model.state(model.begun() - 1));
        assert!(
            found == model.current() || without.as_ref() == Some(&found),
            "the contents differ from the model: {}",
            differences(&model.current(), &found).join("; ")
        );
        Ok(())
    }

    /// Checks every held snapshot.
    pub fn check_snapshots(&self) -> Result<()> {
        self.held.iter().try_for_each(Held::check)
    }

    /// Panics unless the full structural check finds nothing.
    pub fn verify(&self) -> Result<()> {
        verify(self.db())
    }

    /// Panics unless the folder holds exactly the tables, value files and discard lists that the manifest names.
    /// Releases snapshots and iterators, which keep others. Needs a device that works.
    pub fn check_tables(&mut self) -> Result<()> {
        self.held.clear();
        self.db().wait_idle()?;
        if !self.setting.has_log() {
            // Until then the files of the last point stay; merges may follow its flushes.
            self.persist()?;
            self.db().wait_idle()?;
            self.persist()?;
        }
        let keyspaces = self.db().stats().keyspaces;
        let levels = keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        let tables = levels.map(|level| level.files).sum();
        let values = keyspaces
            .iter()
            .map(|own| own.transient_logs.files + own.value_logs.files)
            .sum();
        let discard_lists = keyspaces.iter().map(|own| own.discard_lists).sum();
        let image = self.disk.image();
        for (extension, counted) in [
            ("table", tables),
            ("values", values),
            ("dead", discard_lists),
        ] {
            let present = image.files_with(extension).len();
            assert_eq!(
                present, counted,
                ".{extension} files in the folder and in the manifest"
            );
        }
        Ok(())
    }

    /// Makes everything durable.
    pub fn persist(&mut self) -> Result<()> {
        self.end_persist()?;
        self.lock_model().persisting();
        self.db().persist()?;
        self.lock_model().persisted();
        Ok(())
    }

    /// Begins to make everything durable. What follows may end it, and [`end_persist`](Self::end_persist) does.
    pub fn begin_persist(&mut self) -> Result<()> {
        self.end_persist()?;
        self.lock_model().persisting();
        let begun = self.lock_model().begun();
        let pending = self.db().begin_persist()?;
        let is_ended = pending.is_ended();
        self.pending = Some((pending, begun));
        if is_ended { self.end_persist() } else { Ok(()) }
    }

    /// Waits for the persist that was begun, if there is one.
    pub fn end_persist(&mut self) -> Result<()> {
        if let Some((pending, begun)) = self.pending.take() {
            pending.wait()?;
            self.lock_model().persisted_through(begun);
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
        // The first open of a keyspace chooses its options.
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
        let unix_time = self.runtime.unix_time().as_millis();
        let bounds = Bounds {
            from: u64::try_from(unix_time).expect("a small number"),
            ..bounds
        };
        let count = check(&model, &found, bounds);
        // Lost commits stay lost. What was read is durable from now on.
        model.recovered(count);
        model.persisted();
        drop(model);
        self.trusts_cache = true;
        Ok(())
    }

    /// The model, for an observer of the disk.
    pub fn shared_model(&self) -> SharedModel {
        Arc::clone(&self.model)
    }

    /// The model.
    pub fn lock_model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Panics unless the full structural check of `db` finds nothing, and neither does a scrub.
pub fn verify(db: &Db) -> Result<()> {
    let report = db.verify()?;
    assert!(report.is_sound(), "verify finds damage: {report:?}");
    let scrub = db.scrub(&Scrub::default())?;
    let mut damage = scrub.damage.into_iter().map(|it| it.error);
    let Some(error) = damage.next().or(scrub.left_out.into_iter().next()) else {
        return Ok(());
    };
    let is_of_device = is_device_error(error.kind());
    assert!(is_of_device, "a scrub finds damage: {error}");
    Err(error)
}

/// Everything that `db` contains, as if its compaction filter had seen it.
pub fn contents(db: &Db) -> Result<Contents> {
    let mut contents = Contents::new();
    for name in db.keyspace_names() {
        let entries = db.keyspace(&name)?.iter()?.collect::<Result<_>>()?;
        contents.insert(name, entries);
    }
    Ok(seen(contents))
}

/// The number of commits after which the database was `found`.
///
/// # Panics
/// `bounds` allow no such state.
pub fn check(model: &Model, found: &Contents, bounds: Bounds) -> usize {
    match model.check_recovered(found, bounds) {
        Ok(count) => count,
        Err(sentence) => panic!("{sentence}"),
    }
}

/// Whether a failed device may cause an error of `kind`.
pub fn is_device_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::Poisoned
    )
}
