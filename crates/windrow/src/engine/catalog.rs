//! The catalog: the manifest while the database is open. It commits one edit at a time.
//!
//! Invariants:
//! - I1: An edit is durable before readers see its effects, and before anything that depends on it
//!   is returned or deleted. Without a log, it is durable at the next [point](Catalog::point) only.
//! - I2: The catalog allocates only numbers below a mark that the manifest has recorded.
//!
//! Concurrency: one lock, held until an edit is durable and installed. Reads of data never take it. The
//! leader of the commits takes it only to begin a new write-ahead log or value log.

use std::path::Path;
use std::sync::Arc;

use super::ids::Ids;
use super::keyspace::KeyspaceCore;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, FileNumber, LifetimeStats, Result, Totals};
use crate::engine::counters::{self, Counters};
use crate::engine::errors::poison::Poison;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestPosition, ManifestState, ManifestStore, Record};
use crate::vfs::Vfs;

/// The manifest, or its state if the database is open for reading.
#[derive(Debug)]
enum Description {
    Open(Box<ManifestStore>),
    /// For reading only: the state, and the bytes of the manifest that holds it.
    Fixed(Arc<ManifestState>, u64),
}

impl Description {
    fn state(&self) -> &ManifestState {
        match self {
            Self::Open(store) => store.state(),
            Self::Fixed(state, _) => state,
        }
    }

    fn length(&self) -> u64 {
        match self {
            Self::Open(store) => store.length(),
            Self::Fixed(_, length) => *length,
        }
    }
}

/// The durable description of the database.
#[derive(Debug)]
pub(crate) struct Catalog {
    vfs: Arc<dyn Vfs>,
    ids: Ids,
    store: Mutex<Description>,
    counters: Arc<Counters>,
    /// What earlier opens have counted.
    totals_before: Totals,
    poison: Arc<Poison>,
    /// Set under the lock of `store`. After that the manifest may belong to another process.
    is_closed: AtomicBool,
    /// See [`Point::next_file`].
    next_file: AtomicU64,
}

/// The state to which a crash takes back a database without a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// The end of the manifest that counts.
    position: ManifestPosition,
    /// The number of the first file that is newer than the state.
    next_file: FileNumber,
}

impl Point {
    /// Whether the state may need `file`, which the manifest at `dropped_at` does not name any more.
    pub(crate) fn needs(&self, file: FileName, dropped_at: ManifestPosition) -> bool {
        self.position < dropped_at && file.number().is_none_or(|it| it < self.next_file)
    }
}

impl Catalog {
    /// Begins manifest `number`, which describes `state`. Allocates later numbers from here on.
    pub(crate) fn start(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        number: FileNumber,
        state: ManifestState,
        counters: Arc<Counters>,
        poison: Arc<Poison>,
    ) -> Result<Self> {
        let totals_before = state.totals.clone();
        let store = ManifestStore::start(Arc::clone(&vfs), directory, number, state)?;
        counters::add(&counters.manifest_bytes, store.length());
        let next = number.0 + 1;
        Ok(Self {
            vfs,
            ids: Ids::new(next, next),
            store: Mutex::new(Description::Open(Box::new(store))),
            counters,
            totals_before,
            poison,
            is_closed: AtomicBool::new(false),
            next_file: AtomicU64::new(next),
        })
    }

    /// A catalog that takes no edits: `state`, from a manifest of `length` bytes.
    pub(crate) fn read_only(
        vfs: Arc<dyn Vfs>,
        state: Arc<ManifestState>,
        length: u64,
        counters: Arc<Counters>,
        poison: Arc<Poison>,
    ) -> Self {
        Self {
            vfs,
            ids: Ids::new(state.next_id, state.next_id),
            next_file: AtomicU64::new(state.next_id),
            totals_before: state.totals.clone(),
            store: Mutex::new(Description::Fixed(state, length)),
            counters,
            poison,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Refuses every later edit.
    pub(crate) fn close(&self) {
        let store = self.store.lock();
        self.is_closed.store(true, Ordering::Release);
        drop(store);
    }

    /// Allocates a number that was never used.
    ///
    /// # Errors
    /// Those of the edit that records a new mark, if the numbers below the old mark are used up.
    pub(crate) fn allocate(&self) -> Result<u64> {
        loop {
            if let Some(number) = self.ids.allocate() {
                return Ok(number);
            }
            self.commit(|_| Vec::new(), |_| ())?;
        }
    }

    /// Builds an edit of the current state, makes it durable, and calls `install` before any later edit.
    ///
    /// # Errors
    /// `NoSpace`, `Closed` and `ReadOnly`: nothing has changed. Any other failure poisons the database.
    pub(crate) fn commit<R>(
        &self,
        build: impl FnOnce(&ManifestState) -> Vec<Record>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        self.try_commit(|state| Ok(build(state)), install)
    }

    /// What this open and all before it have counted.
    fn totals(&self) -> Totals {
        let mut totals = self.totals_before.clone();
        self.counters.totals.add_to(&mut totals);
        totals
    }

    /// The same by name.
    pub(crate) fn lifetime(&self) -> LifetimeStats {
        LifetimeStats::from_totals(&self.totals())
    }

    fn try_commit<R>(
        &self,
        build: impl FnOnce(&ManifestState) -> Result<Vec<Record>>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        let mut description = self.store.lock();
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let Description::Open(store) = &mut *description else {
            return Err(Error::read_only());
        };
        self.poison.check()?;
        let mut records = build(store.state())?;
        let mark = self.ids.mark_due();
        if let Some(mark) = mark {
            records.insert(0, Record::NextId(mark)); // I2
        }
        if records.is_empty() {
            // Another thread has raised the mark meanwhile.
            return Ok(install(store.state()));
        }
        // At no cost of its own: what is counted later is recorded with the next edit.
        let totals = self.totals();
        if totals != store.state().totals {
            records.push(Record::Totals(totals));
        }
        let before = store.length();
        let committed = store.commit(&Edit { records });
        counters::add(&self.counters.manifest_bytes, store.length() - before);
        if let Err(error) = committed {
            if error.kind() != ErrorKind::NoSpace {
                self.poison.set(&error);
            }
            return Err(error);
        }
        if let Some(mark) = mark {
            self.ids.recorded(mark);
        }
        let installed = install(store.state()); // I1
        if !store.state().is_unlogged {
            self.roll_over_if_due(store);
        }
        Ok(installed)
    }

    /// The same as [`commit`](Self::commit), for an edit of one keyspace.
    ///
    /// # Errors
    /// Also `NotFound`, with nothing changed, if the keyspace was dropped meanwhile.
    pub(crate) fn commit_in<R>(
        &self,
        keyspace: &KeyspaceCore,
        build: impl FnOnce(&ManifestState) -> Vec<Record>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        self.commit_in_each(&[keyspace], build, install)
    }

    /// The same as [`commit`](Self::commit), for an edit of these keyspaces.
    ///
    /// # Errors
    /// Also `NotFound`, with nothing changed, if one of them was dropped meanwhile.
    pub(crate) fn commit_in_each<R>(
        &self,
        keyspaces: &[&KeyspaceCore],
        build: impl FnOnce(&ManifestState) -> Vec<Record>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        let build = |state: &ManifestState| {
            keyspaces.iter().try_for_each(|it| it.check_exists())?;
            let mut records = build(state);
            records.extend(keyspaces.iter().filter_map(|it| it.totals_record(state)));
            Ok(records)
        };
        self.try_commit(build, install)
    }

    /// Records the length of the manifest in `CURRENT`. Later opens then know that every edit in it is durable. Without a log
    /// only these count.
    ///
    /// # Errors
    /// `NoSpace`, `Closed` and `ReadOnly`: nothing has changed. Any other failure poisons the database.
    pub(crate) fn record_manifest_length(&self) -> Result<()> {
        let mut description = self.store.lock();
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let Description::Open(store) = &mut *description else {
            return Err(Error::read_only());
        };
        // First: after a failure it may count or not.
        self.next_file.store(self.ids.next(), Ordering::Release);
        if store.state().is_unlogged {
            self.roll_over_if_due(store);
        }
        store.record_length().inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.poison.set(error);
            }
        })
    }

    /// Reads the current state.
    pub(crate) fn with_state<R>(&self, read: impl FnOnce(&ManifestState) -> R) -> R {
        read(self.store.lock().state())
    }

    /// The bytes of the current manifest.
    pub(crate) fn manifest_bytes(&self) -> u64 {
        self.store.lock().length()
    }

    /// The end of the manifest.
    pub(crate) fn position(&self) -> ManifestPosition {
        match &*self.store.lock() {
            Description::Open(store) => store.position(),
            Description::Fixed(..) => ManifestPosition::default(),
        }
    }

    /// The last point, if the database keeps no log.
    pub(crate) fn point(&self) -> Option<Point> {
        match &*self.store.lock() {
            Description::Open(store) if store.state().is_unlogged => Some(Point {
                position: store.recorded_position(),
                next_file: FileNumber(self.next_file.load(Ordering::Acquire)),
            }),
            _ => None,
        }
    }

    /// Begins a new manifest if the present one is long. A full disk is no error: the old manifest stays current, and a later edit
    /// tries again.
    fn roll_over_if_due(&self, store: &mut ManifestStore) {
        if !store.needs_rollover() {
            return;
        }
        let Some(number) = self.ids.allocate() else {
            return;
        };
        let old = store.number();
        let rolled = store.roll_over(FileNumber(number));
        match rolled {
            Ok(()) => {
                counters::add(&self.counters.manifest_bytes, store.length());
                // If this fails, the next open removes the file.
                drop(
                    self.vfs
                        .remove(&store.directory().join(FileName::Manifest(old).to_string())),
                );
            }
            Err(error) if store.is_poisoned() => self.poison.set(&error),
            Err(_) => {}
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use super::{Catalog, Counters, Record};
    use crate::base::FileNumber;
    use crate::engine::ids::RESERVED_AHEAD;
    use crate::manifest::ManifestState;
    use crate::vfs::OsVfs;

    #[test]
    fn an_empty_edit_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = Catalog::start(
            Arc::new(OsVfs),
            folder.path(),
            FileNumber(1),
            ManifestState::default(),
            Arc::new(Counters::new()),
            Arc::default(),
        )
        .unwrap();
        let nothing = || catalog.commit(|_| Vec::<Record>::new(), |state| state.next_id);
        // The mark is due at first. Then it is not: two threads may find no number left at once.
        assert_eq!(nothing().unwrap(), 2 + RESERVED_AHEAD);
        let length = catalog.manifest_bytes();
        assert_eq!(nothing().unwrap(), 2 + RESERVED_AHEAD);
        assert_eq!(catalog.manifest_bytes(), length);
        assert_eq!(catalog.allocate().unwrap(), 2);
    }
}
