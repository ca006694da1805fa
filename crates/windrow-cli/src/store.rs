//! The database and keyspace that a command works on.

use std::path::PathBuf;

use clap::Args;
use windrow::{Db, Durability, Error, ErrorKind, Keyspace, Options, Result};

/// The longest name that a keyspace can have, in bytes.
const KEYSPACE_NAME_BYTES_MAX: usize = 255;

/// A database and one of its keyspaces.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    pub(crate) db: PathBuf,

    /// Keyspace within the database
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) keyspace: String,
}

impl StoreArgs {
    /// Opens what exists, and creates nothing.
    pub(crate) fn open(&self) -> Result<(Db, Keyspace)> {
        self.keyspace_of(open(&self.db)?)
    }

    /// Opens what exists for a command that only reads.
    pub(crate) fn open_to_read(&self) -> Result<(Db, Keyspace)> {
        self.keyspace_of(open_to_read(&self.db)?)
    }

    fn keyspace_of(&self, db: Db) -> Result<(Db, Keyspace)> {
        if !db.keyspace_names().contains(&self.keyspace) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "{} has no keyspace \"{}\"",
                    self.db.display(),
                    self.keyspace
                ),
            ));
        }
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }

    /// Opens the database and the keyspace, and creates what is missing; nothing for a keyspace that
    /// cannot be.
    pub(crate) fn open_or_create(&self, sync: bool) -> Result<(Db, Keyspace)> {
        if !(1..=KEYSPACE_NAME_BYTES_MAX).contains(&self.keyspace.len()) {
            return Err(Error::invalid_argument(format!(
                "a keyspace's name has 1 to {KEYSPACE_NAME_BYTES_MAX} bytes, not {}",
                self.keyspace.len()
            )));
        }
        let mut options = Options::default();
        if sync {
            options.durability = Durability::Sync;
        }
        let db = Db::open(&self.db, options)?;
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }
}

/// Opens a database that exists, and writes nothing.
pub(crate) fn open_to_read(folder: &PathBuf) -> Result<Db> {
    Db::open_read_only(folder, Options::default())
}

/// Opens a database that exists.
pub(crate) fn open(folder: &PathBuf) -> Result<Db> {
    let mut options = Options::default();
    options.create_if_missing = false;
    Db::open(folder, options)
}
