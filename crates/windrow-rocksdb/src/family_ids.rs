//! The ids of column families.
//!
//! The keyspace `rocksdb.families` has them, so that a family keeps its id over all opens and no id is used twice. It
//! exists from the first family beside `default` on, which has the id 0 and no record.
//!
//! Concurrency: one thread at a time changes the ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use windrow::{Batch, Db, Durability, Error, ErrorKind, Keyspace, Result};
use windrow_ffi::leveldb::KEYSPACE;

use crate::batch::DEFAULT_FAMILY;

/// The keyspace of the ids.
const IDS: &str = "rocksdb.families";

/// The key with the next id.
const NEXT: &[u8] = b"next";

/// What the key with the id of a family begins with.
const OF_FAMILY: &str = "id/";

/// The names of the column families, `default` first. `default` exists in every database.
pub(crate) fn names(db: &Db) -> Vec<String> {
    let mut names = db.keyspace_names();
    names.retain(|name| name != IDS && name != KEYSPACE);
    names.insert(0, KEYSPACE.to_owned());
    names
}

/// The ids of the column families of a database.
pub(crate) struct Ids {
    keyspace: Option<Keyspace>,
    known: KnownIds,
    next: u32,
    is_read_only: bool,
}

/// The ids at a moment.
#[derive(Clone)]
pub(crate) struct KnownIds {
    by_name: Arc<BTreeMap<String, u32>>,
    /// How often they have changed since the open.
    version: u64,
}

impl KnownIds {
    /// The id of the family `name`; none if the keyspace is that of the ids.
    ///
    /// # Errors
    /// `Unsupported` if the keyspace has no id: another program has made it, and nobody has opened it as a family.
    pub(crate) fn of(&self, name: &str) -> Result<Option<u32>> {
        if name == IDS {
            return Ok(None);
        }
        let missing = || {
            let message = format!("the keyspace \"{name}\" has no id of a column family");
            Error::new(ErrorKind::Unsupported, message)
        };
        self.by_name
            .get(name)
            .copied()
            .map(Some)
            .ok_or_else(missing)
    }

    /// Whether nothing has changed since `other`, which is of the same open.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.version == other.version
    }

    fn insert(&mut self, name: &str, id: u32) {
        Arc::make_mut(&mut self.by_name).insert(name.to_owned(), id);
        self.version += 1;
    }

    fn remove(&mut self, name: &str) {
        Arc::make_mut(&mut self.by_name).remove(name);
        self.version += 1;
    }
}

impl Ids {
    pub(crate) fn open(db: &Db, is_read_only: bool) -> Result<Self> {
        let mut ids = Self {
            keyspace: db.existing_keyspace(IDS)?,
            known: KnownIds {
                by_name: Arc::new(BTreeMap::from([(KEYSPACE.to_owned(), DEFAULT_FAMILY)])),
                version: 0,
            },
            next: DEFAULT_FAMILY + 1,
            is_read_only,
        };
        let Some(keyspace) = &ids.keyspace else {
            return Ok(ids);
        };
        if let Some(next) = keyspace.get(NEXT)? {
            ids.next = decode(&next)?;
        }
        for entry in keyspace.prefix(OF_FAMILY)? {
            let (key, id) = entry?;
            let name = String::from_utf8_lossy(&key[OF_FAMILY.len()..]);
            ids.known.insert(&name, decode(&id)?);
        }
        Ok(ids)
    }

    /// All of them.
    pub(crate) fn known(&self) -> KnownIds {
        self.known.clone()
    }

    /// The id of the family `name`, which gets one if it has none: another program may have made the keyspace.
    pub(crate) fn of(&mut self, db: &Db, name: &str) -> Result<u32> {
        match self.known.by_name.get(name) {
            Some(&id) => Ok(id),
            None => self.add(db, name),
        }
    }

    /// Whether the family `name` has the id `id`, or none that is recorded.
    pub(crate) fn may_be(&self, name: &str, id: u32) -> bool {
        let found = self.known.by_name.get(name);
        found.is_none_or(|found| *found == id)
    }

    /// # Errors
    /// `ReadOnly` if no ids can be added.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_read_only {
            let message = "the database is open for reading";
            return Err(Error::new(ErrorKind::ReadOnly, message));
        }
        Ok(())
    }

    /// A new id for the family `name`, which takes the place of an earlier one. It is durable when this returns.
    pub(crate) fn add(&mut self, db: &Db, name: &str) -> Result<u32> {
        let id = self.next;
        let next = id.checked_add(1);
        let next = next.ok_or_else(|| Error::invalid_argument("there are no more ids"))?;
        if !self.is_read_only {
            let keyspace = match self.keyspace.take() {
                Some(keyspace) => keyspace,
                None => db.keyspace(IDS)?,
            };
            let keyspace = self.keyspace.insert(keyspace);
            let mut batch = Batch::new();
            batch.insert(keyspace, NEXT, next.to_le_bytes())?;
            batch.insert(keyspace, key(name), id.to_le_bytes())?;
            db.write_with(&batch, Durability::Sync)?;
        }
        self.next = next;
        self.known.insert(name, id);
        Ok(id)
    }

    /// Forgets the id of a family that was dropped.
    pub(crate) fn remove(&mut self, name: &str) -> Result<()> {
        self.known.remove(name);
        match &self.keyspace {
            Some(keyspace) => keyspace.remove(key(name)),
            None => Ok(()),
        }
    }
}

fn key(name: &str) -> String {
    format!("{OF_FAMILY}{name}")
}

fn decode(id: &[u8]) -> Result<u32> {
    let id = id.try_into().map(u32::from_le_bytes);
    id.map_err(|_| {
        Error::new(
            ErrorKind::Corruption,
            "the keyspace of column family ids has another form",
        )
    })
}
