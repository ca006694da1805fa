//! The database and keyspace that a command works on.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::Args;
use windrow::backup::{Backups, FolderStore};
use windrow::limits::KEYSPACE_NAME_BYTES_MAX;
use windrow::vfs::{OsVfs, Vfs};
use windrow::{Db, Durability, Error, ErrorKind, Keyspace, Options, Result};
use windrow_encryption::{EncryptedVfs, KeyRing, is_encrypted};

use crate::output::Output;

/// The file system of the whole run, if it is not that of the system.
static ENCRYPTED: OnceLock<Arc<dyn Vfs>> = OnceLock::new();

/// A message names so many keyspaces at most.
const NAMES_SHOWN: usize = 10;

/// A database.
#[derive(Debug, Clone, Args)]
pub(crate) struct DbArgs {
    /// Folder of the database
    #[arg(value_name = "DB")]
    pub(crate) db: PathBuf,
}

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
        check_keyspace(&db, &self.keyspace)?;
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }

    /// Opens the database and the keyspace, and creates what is missing; nothing if the name cannot be
    /// that of a keyspace.
    pub(crate) fn open_or_create(&self, sync: bool) -> Result<(Db, Keyspace)> {
        let db = self.open_or_create_db(sync)?;
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }

    /// The same for the database alone.
    pub(crate) fn open_or_create_db(&self, sync: bool) -> Result<Db> {
        if !(1..=KEYSPACE_NAME_BYTES_MAX).contains(&self.keyspace.len()) {
            return Err(Error::invalid_argument(format!(
                "the name of a keyspace has 1 to {KEYSPACE_NAME_BYTES_MAX} bytes, not {}",
                self.keyspace.len()
            )));
        }
        let mut options = options(&self.db)?;
        if sync {
            options.durability = Durability::Sync;
        }
        Db::open(&self.db, options)
    }
}

/// From here on all databases and backups of this run are encrypted with the keys in the file `path`. Says so if every user of
/// the system can read it: a secret that a container gets may be like that, so it is no error.
///
/// # Errors
/// The file cannot be read, or does not have keys.
pub(crate) fn use_keys(path: &Path, output: &Output) -> Result<()> {
    let text = fs::read(path).map_err(|error| Error::io("read the keys of", path, error))?;
    let unusable = |what: &dyn Display| {
        Error::invalid_argument(format!("{} has no keys: {what}", path.display()))
    };
    let text = String::from_utf8(text).map_err(|_| unusable(&"it is no text in UTF-8"))?;
    let keys: KeyRing = text.parse().map_err(|error| unusable(&error))?;
    if every_user_can_read(path) {
        output.note(format_args!(
            "every user can read the keys in {}",
            path.display()
        ));
    }
    ENCRYPTED.get_or_init(|| Arc::new(EncryptedVfs::new(Arc::new(OsVfs), Arc::new(keys))));
    Ok(())
}

#[cfg(unix)]
fn every_user_can_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn every_user_can_read(_: &Path) -> bool {
    false
}

/// The file system for what is at `path`: a database, a folder of backups, or one file of them.
///
/// # Errors
/// `InvalidArgument` if that is encrypted, and the run has no keys: all of it would count as damaged.
pub(crate) fn files(path: &Path) -> Result<Arc<dyn Vfs>> {
    if let Some(encrypted) = ENCRYPTED.get() {
        return Ok(Arc::clone(encrypted));
    }
    if holds_encrypted(path) {
        let message = format!(
            "{} is encrypted: name the file with its keys by --key-file",
            path.display()
        );
        return Err(Error::invalid_argument(message));
    }
    Ok(Arc::new(OsVfs))
}

/// Whether `path` is an encrypted file, or a folder with such a file among those that say what is in it. What cannot be read
/// is an error of the command itself.
fn holds_encrypted(path: &Path) -> bool {
    let is_encrypted = |path: &Path| is_encrypted(&OsVfs, path).unwrap_or(false);
    let names = OsVfs.list(path).unwrap_or_default();
    let says_what = |name: &&String| {
        let extension = Path::new(name).extension();
        *name == "CURRENT" || extension.is_some_and(|it| it == "manifest" || it == "backup")
    };
    let mut names = names.iter().filter(says_what);
    is_encrypted(path) || names.any(|name| is_encrypted(&path.join(name)))
}

/// The options of the database in `folder`, but for what the command itself wants.
///
/// # Errors
/// Those of [`files`].
pub(crate) fn options(folder: &Path) -> Result<Options> {
    Ok(Options::default().with_vfs(files(folder)?))
}

/// The backups in the folder `path`, which is created if need be.
pub(crate) fn backups(path: &Path) -> Result<Backups> {
    let vfs = files(path)?;
    let store = FolderStore::open(Arc::clone(&vfs), path)?;
    Ok(Backups::new(Arc::new(store)).with_vfs(vfs))
}

/// The same, to read them.
pub(crate) fn backups_to_read(path: &Path) -> Result<Backups> {
    let vfs = files(path)?;
    let store = FolderStore::open_read_only(Arc::clone(&vfs), path)?;
    Ok(Backups::new(Arc::new(store)).with_vfs(vfs))
}

/// Checks that `db` has the keyspace `name`.
///
/// # Errors
/// `NotFound`, with the names of the keyspaces that exist.
pub(crate) fn check_keyspace(db: &Db, name: &str) -> Result<()> {
    let names = db.keyspace_names();
    if names.iter().any(|own| own == name) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::NotFound,
        format!(
            "{} has no keyspace \"{name}\"; {}",
            db.path().display(),
            existing(&names)
        ),
    ))
}

/// The keyspaces that exist, as part of a sentence.
pub(crate) fn existing(names: &[String]) -> String {
    if names.is_empty() {
        return "it has no keyspaces yet".to_owned();
    }
    let shown = names.iter().take(NAMES_SHOWN);
    let shown: Vec<String> = shown.map(|name| format!("\"{name}\"")).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("it has {}{more}", shown.join(", "))
}

/// Opens a database that exists, and changes nothing of it. If a writer has it open, this is the state of now.
pub(crate) fn open_to_read(folder: &Path) -> Result<Db> {
    let options = options(folder)?;
    match Db::open_read_only(folder, options.clone()) {
        Err(locked) if locked.kind() == ErrorKind::Locked => {
            let reader = Db::open_secondary(folder, options);
            reader.map(|reader| reader.db()).map_err(|error| {
                let context = format!("{locked}, and cannot be read beside it");
                error.context(context)
            })
        }
        outcome => outcome,
    }
}

/// Opens a database that exists.
pub(crate) fn open(folder: &Path) -> Result<Db> {
    let mut options = options(folder)?;
    options.create_if_missing = false;
    Db::open(folder, options)
}
