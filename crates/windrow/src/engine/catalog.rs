//! The manifest as the engine uses it: one edit at a time, installed in the order of the log.
//!
//! Invariants:
//! - I1: What an edit says is durable before anything that depends on it is seen by readers, handed
//!   out, or deleted.
//! - I2: Every number that is handed out lies below a mark that the manifest has recorded.
//!
//! Concurrency: one lock, held while an edit is made durable and installed. Reads of data never take
//! it; the leader of the commits takes it only to begin a new log.

use std::path::Path;
use std::sync::Arc;

use super::ids::Ids;
use super::keyspace::KeyspaceCore;
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::engine::counters::{self, Counters};
use crate::engine::errors::poison::Poison;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, ManifestStore, Record};
use crate::vfs::Vfs;

/// The manifest, or what was read of it.
#[derive(Debug)]
enum Description {
    Open(ManifestStore),
    /// Open for reading only: the state and the bytes of the manifest that holds it.
    Fixed(ManifestState, u64),
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
    poison: Arc<Poison>,
    /// Set under the lock of `store`, after which the manifest may be another process's.
    is_closed: AtomicBool,
}

impl Catalog {
    /// Begins manifest `number`, which describes `state`. Later numbers are handed out.
    pub(crate) fn start(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        number: FileNumber,
        state: ManifestState,
        counters: Arc<Counters>,
        poison: Arc<Poison>,
    ) -> Result<Self> {
        let store = ManifestStore::start(Arc::clone(&vfs), directory, number, state)?;
        counters::add(&counters.manifest_bytes, store.length());
        let next = number.0 + 1;
        Ok(Self {
            vfs,
            ids: Ids::new(next, next),
            store: Mutex::new(Description::Open(store)),
            counters,
            poison,
            is_closed: AtomicBool::new(false),
        })
    }

    /// A description that takes no edits: `state`, from a manifest of `length` bytes.
    pub(crate) fn read_only(
        vfs: Arc<dyn Vfs>,
        state: ManifestState,
        length: u64,
        counters: Arc<Counters>,
        poison: Arc<Poison>,
    ) -> Self {
        Self {
            vfs,
            ids: Ids::new(state.next_id, state.next_id),
            store: Mutex::new(Description::Fixed(state, length)),
            counters,
            poison,
            is_closed: AtomicBool::new(false),
        }
    }

    /// Refuses every edit from here on.
    pub(crate) fn close(&self) {
        let store = self.store.lock();
        self.is_closed.store(true, Ordering::Release);
        drop(store);
    }

    /// A number that was never used.
    ///
    /// # Errors
    /// Those of recording a new mark, once in a while.
    pub(crate) fn allocate(&self) -> Result<u64> {
        loop {
            if let Some(number) = self.ids.allocate() {
                return Ok(number);
            }
            self.commit(|_| Vec::new(), |_| ())?;
        }
    }

    /// Makes the edit that `build` makes of the present state durable, then calls `install` before
    /// any later edit.
    ///
    /// # Errors
    /// `NoSpace` and `Closed`, where nothing has changed; any other failure poisons the database.
    pub(crate) fn commit<R>(
        &self,
        build: impl FnOnce(&ManifestState) -> Vec<Record>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        self.try_commit(|state| Ok(build(state)), install)
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
            // The mark was due, and somebody else has raised it meanwhile.
            return Ok(install(store.state()));
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
        if store.needs_rollover() {
            self.roll_over(store);
        }
        Ok(installed)
    }

    /// As [`commit`](Self::commit), for an edit of one keyspace.
    ///
    /// # Errors
    /// `NotFound`, too, where nothing has changed since the keyspace was dropped meanwhile.
    pub(crate) fn commit_in<R>(
        &self,
        keyspace: &KeyspaceCore,
        build: impl FnOnce(&ManifestState) -> Vec<Record>,
        install: impl FnOnce(&ManifestState) -> R,
    ) -> Result<R> {
        let build = |state: &ManifestState| {
            keyspace.check_exists()?;
            Ok(build(state))
        };
        self.try_commit(build, install)
    }

    /// Records that every edit until now is durable.
    ///
    /// # Errors
    /// `NoSpace`, where nothing has changed; any other failure poisons the database.
    pub(crate) fn vouch(&self) -> Result<()> {
        let mut description = self.store.lock();
        let Description::Open(store) = &mut *description else {
            return Err(Error::read_only());
        };
        store.vouch().inspect_err(|error| {
            if error.kind() != ErrorKind::NoSpace {
                self.poison.set(error);
            }
        })
    }

    /// Reads the described state.
    pub(crate) fn with_state<R>(&self, read: impl FnOnce(&ManifestState) -> R) -> R {
        read(self.store.lock().state())
    }

    /// The bytes of the manifest that counts.
    pub(crate) fn manifest_bytes(&self) -> u64 {
        self.store.lock().length()
    }

    /// Goes on in a new manifest. A full disk, which leaves the old one in force, is no error: a
    /// later edit tries again.
    fn roll_over(&self, store: &mut ManifestStore) {
        let Some(number) = self.ids.allocate() else {
            return;
        };
        let old = store.number();
        let rolled = store.roll_over(FileNumber(number));
        match rolled {
            Ok(()) => {
                counters::add(&self.counters.manifest_bytes, store.length());
                // A leftover is removed when the database is opened next.
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
    fn an_edit_that_says_nothing_is_not_written() {
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
        // The mark is due; then it is not, as when two threads find no number left at once.
        assert_eq!(nothing().unwrap(), 2 + RESERVED_AHEAD);
        let length = catalog.manifest_bytes();
        assert_eq!(nothing().unwrap(), 2 + RESERVED_AHEAD);
        assert_eq!(catalog.manifest_bytes(), length);
        assert_eq!(catalog.allocate().unwrap(), 2);
    }
}
