//! Where the newest state of an open database is: in one database that it has open, or, for a secondary, in the state that
//! it has read last of a database that another process may write.
//!
//! I1. The keyspaces of a secondary are all of one state, that of its database: a catch-up changes them together.
//!
//! Concurrency: any thread may make any call. One catch-up at a time, and none during reads that need one state, in lock
//! order: `catching_up`, then `state`, which is held for no I/O.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use windrow::{Db, Error, ErrorKind, Keyspace, Options, Result};

use crate::family_ids::Ids;
use crate::status;

/// Where the newest state of an open database is.
pub(crate) enum Origin {
    /// What this process has open.
    Own(Db),
    /// What it has read last.
    Secondary(Arc<Secondary>),
}

impl Origin {
    /// The newest state.
    pub(crate) fn db(&self) -> Cow<'_, Db> {
        match self {
            Self::Own(db) => Cow::Borrowed(db),
            Self::Secondary(secondary) => Cow::Owned(secondary.db()),
        }
    }

    /// Calls `read`. The state that is the newest one when it begins is that until it ends, unless this process writes.
    pub(crate) fn stay<R>(&self, read: impl FnOnce() -> R) -> R {
        let catching_up = match self {
            Self::Own(_) => None,
            Self::Secondary(secondary) => Some(secondary.catching_up.read()),
        };
        let _stays = catching_up.map(|guard| guard.unwrap_or_else(PoisonError::into_inner));
        read()
    }

    /// Reads what another process has written since.
    ///
    /// # Errors
    /// `Unsupported` if the database is no secondary; those of [`windrow::Secondary::catch_up`].
    pub(crate) fn catch_up(&self) -> Result<()> {
        match self {
            Self::Own(_) => Err(status::unsupported("the database is no secondary")),
            Self::Secondary(secondary) => secondary.catch_up(),
        }
    }
}

/// Opens a database for reading, beside any other process and without keeping a writer out: no RocksDB that reads takes the
/// lock. A folder that cannot be written has no place for what such a reader notes there, and then has no writer.
pub(crate) fn open_for_reading(path: &Path, options: Options) -> Result<Db> {
    match Db::open_secondary(path, options.clone()) {
        Ok(reader) => Ok(reader.db()),
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace) => {
            Db::open_read_only(path, options)
        }
        Err(error) => Err(error),
    }
}

/// A reader of a database that another process may write.
pub(crate) struct Secondary {
    reader: windrow::Secondary,
    /// Written by a catch-up, read by those who need one state.
    catching_up: RwLock<()>,
    state: RwLock<State>,
}

/// What was read last.
struct State {
    db: Db,
    /// The column families that the program has opened, by id: the name, and the keyspace unless it was dropped.
    families: BTreeMap<u32, (String, Option<Keyspace>)>,
}

impl Secondary {
    pub(crate) fn open(path: &Path, options: Options) -> Result<Arc<Self>> {
        let reader = Db::open_secondary(path, options)?;
        let state = State {
            db: reader.db(),
            families: BTreeMap::new(),
        };
        Ok(Arc::new(Self {
            reader,
            catching_up: RwLock::default(),
            state: RwLock::new(state),
        }))
    }

    fn db(&self) -> Db {
        self.read(|state| state.db.clone())
    }

    /// Reads the column family `name` from now on.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn add(&self, id: u32, name: &str) -> Result<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let keyspace = state.db.keyspace(name)?;
        state.families.insert(id, (name.to_owned(), Some(keyspace)));
        Ok(())
    }

    /// The keyspace of a column family.
    ///
    /// # Errors
    /// `NotFound` if it was dropped.
    pub(crate) fn keyspace(&self, id: u32) -> Result<Keyspace> {
        let found = self.read(|state| state.families.get(&id).and_then(|(_, it)| it.clone()));
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, "the column family was dropped"))
    }

    fn read<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        read(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn catch_up(&self) -> Result<()> {
        let guard = self.catching_up.write();
        let _guard = guard.unwrap_or_else(PoisonError::into_inner);
        let db = self.reader.catch_up()?;
        let ids = Ids::open(&db, true)?;
        let mut families = self.read(|state| state.families.clone());
        for (id, (name, keyspace)) in &mut families {
            // A family of this name may be another one.
            *keyspace = if ids.may_be(name, *id) {
                db.existing_keyspace(name)?
            } else {
                None
            };
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = State { db, families };
        Ok(())
    }
}
