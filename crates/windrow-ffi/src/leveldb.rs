//! What the interfaces of LevelDB for C, Python and Node, and that of RocksDB, which descends from it, share: the options in
//! Windrow, the open, and the removal. In files of their own: the entries with the empty key, and the cursor over them.
//!
//! Options that are not set have the values that `leveldb/options.h` documents, so a program that opens many databases
//! needs as little memory as before. Windrow's own options that have no counterpart keep their defaults, or follow from
//! these.
//!
//! Concurrency: no state.

mod cursor;
mod entries;

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use windrow::vfs::{OsVfs, Vfs};
use windrow::{Compression, Db, Keyspace, Options, Result};

pub use cursor::EntryCursor;
pub use entries::{Bounds, EMPTY_KEY_KEYSPACE, Entries, logical};

/// The keyspace of all keys but the empty one.
pub const KEYSPACE: &str = "default";

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The options of an open.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Whether a missing database is created.
    pub create_if_missing: bool,
    /// Whether a database that exists is an error.
    pub error_if_exists: bool,
    /// The bytes of a memtable.
    pub write_buffer_bytes: usize,
    /// How many files stay open.
    pub open_files: i32,
    /// The capacity of the cache.
    pub cache_bytes: usize,
    /// The bytes of a block before its compression.
    pub block_bytes: usize,
    /// The bytes of a table.
    pub file_bytes: usize,
    /// Whether blocks are compressed.
    pub is_compressed: bool,
    /// Those of a Bloom filter policy; `None` for those of Windrow.
    pub bits_per_key: Option<i32>,
}

/// The cache of a database that is given none.
const CACHE_BYTES: usize = 8 * MIB;

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            error_if_exists: false,
            write_buffer_bytes: 4 * MIB,
            open_files: 1000,
            cache_bytes: CACHE_BYTES,
            block_bytes: 4 * KIB,
            file_bytes: 2 * MIB,
            is_compressed: true,
            bits_per_key: None,
        }
    }
}

impl OpenOptions {
    /// Sets the capacity of the cache; `None` for that of a database that is given none.
    pub fn set_cache(&mut self, bytes: Option<usize>) {
        self.cache_bytes = bytes.unwrap_or(CACHE_BYTES);
    }

    /// Windrow's options. Sizes outside of what LevelDB or Windrow accepts become the nearest that both accept, as
    /// LevelDB does it.
    pub fn to_windrow(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing = self.create_if_missing;
        options.error_if_exists = self.error_if_exists;
        options.cache_bytes = self.cache_bytes as u64;
        options.open_files_max =
            usize::try_from(self.open_files).map_or(16, |files| files.clamp(16, 50_000));

        let memtable_bytes = self.write_buffer_bytes.clamp(64 * KIB, 1024 * MIB);
        let budget = (8 * memtable_bytes as u64).saturating_add(options.cache_bytes);
        options.memory_budget = options.memory_budget.max(budget);
        options.max_wal_bytes = options.max_wal_bytes.max(4 * memtable_bytes as u64);
        let keyspace = &mut options.keyspace;
        keyspace.memtable_bytes = memtable_bytes;
        keyspace.file_bytes = self.file_bytes.clamp(MIB, 1024 * MIB) as u64;
        keyspace.base_bytes = keyspace.file_bytes.max(4 * memtable_bytes as u64);
        keyspace.block_bytes = self.block_bytes.clamp(KIB, MIB);
        keyspace.compression = if self.is_compressed {
            Compression::Lz4
        } else {
            Compression::None
        };
        if let Some(bits) = self.bits_per_key {
            keyspace.bits_per_key = f64::from(bits.clamp(1, 64));
        }
        options
    }
}

/// Opens a database of this interface with its options, also if it exists: they hold from now on.
///
/// # Errors
/// Those of [`Db::open`] and [`Db::keyspace_with`].
pub fn open(folder: &Path, options: &OpenOptions) -> Result<(Db, Keyspace)> {
    let options = options.to_windrow();
    let keyspace = options.keyspace.clone();
    let db = Db::open(folder, options)?;
    let keyspace = db.keyspace_with(KEYSPACE, keyspace)?;
    Ok((db, keyspace))
}

/// Opens a database, which recovers it, and checks all of it. Windrow removes no damage.
///
/// # Errors
/// Those of [`Db::open`] and [`Db::verify`]; the first damage.
pub fn repair(folder: &Path, options: Options) -> Result<()> {
    let mut options = options;
    options.create_if_missing = false;
    options.error_if_exists = false;
    let db = Db::open(folder, options)?;
    let report = db.verify()?;
    db.close()?;
    match report.damage.into_iter().next() {
        None => Ok(()),
        Some(damage) => Err(damage),
    }
}

/// The file that the owner of a folder locks.
const LOCK: &str = "LOCK";

/// The folder in it where readers of other processes have their leases.
const READERS: &str = "readers";

/// Removes the database, and its folder if nothing else is in it.
///
/// # Errors
/// Those of [`Db::destroy`]. A folder that cannot be removed stays, as in LevelDB.
pub fn destroy(folder: &Path) -> Result<()> {
    destroy_with(folder, &[])
}

/// Removes the database with the files `own` of the interface, and its folder if nothing else is in it. If something
/// else is, these files stay.
///
/// # Errors
/// As [`destroy`].
pub fn destroy_with(folder: &Path, own: &[&str]) -> Result<()> {
    Db::destroy(folder, &Options::default())?;
    if has_only(folder, own).is_ok_and(|only| only)
        && let Ok(lock) = OsVfs.lock(&folder.join(LOCK))
    {
        // Who has opened the lock file before its removal, and locks it afterwards, finds that it was removed.
        drop(remove_unused(folder, own));
        drop(lock);
    }
    Ok(())
}

/// Removes the folder, whose lock the caller has, if nobody has created a database in it.
#[expect(
    clippy::disallowed_methods,
    reason = "Windrow itself removes no folders"
)]
fn remove_unused(folder: &Path, own: &[&str]) -> io::Result<()> {
    if !has_only(folder, own)? {
        return Ok(());
    }
    // First: while a reader is in there, the folder stays as it is.
    match fs::remove_dir(folder.join(READERS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    for name in own {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(folder.join(LOCK))?;
    fs::remove_dir(folder)
}

/// Whether nothing but the lock file, the folder of readers and files of the names `own`, or nothing at all, is in the folder.
#[expect(
    clippy::disallowed_methods,
    reason = "Windrow itself removes no folders"
)]
fn has_only(folder: &Path, own: &[&str]) -> io::Result<bool> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<OsString>>>()?;
    let is_known =
        |name: &OsString| name == LOCK || name == READERS || own.iter().any(|own| name == own);
    Ok(names.iter().all(is_known))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests look at folders")]
mod tests {
    use std::fs;

    use windrow::{Compression, Db, ErrorKind};

    use super::{KEYSPACE, OpenOptions, destroy, destroy_with, open, remove_unused};

    fn creating() -> OpenOptions {
        OpenOptions {
            create_if_missing: true,
            ..OpenOptions::default()
        }
    }

    #[test]
    fn a_folder_goes_with_its_database_unless_it_has_other_files() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("db");
        destroy(&folder).unwrap();
        open(&folder, &creating()).unwrap().0.close().unwrap();
        fs::write(folder.join("other"), "").unwrap();
        destroy(&folder).unwrap();
        let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        destroy_with(&folder, &["log"]).unwrap();
        assert!(folder.join("other").exists());
        destroy_with(&folder, &["log", "other"]).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_goes_with_a_database_that_others_have_read() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("db");
        open(&folder, &creating()).unwrap().0.close().unwrap();
        drop(Db::open_secondary(&folder, windrow::Options::default()).unwrap());
        fs::write(folder.join("readers").join("other"), "").unwrap();
        destroy_with(&folder, &["log"]).unwrap();
        assert!(folder.join("readers").join("other").exists());
        fs::remove_file(folder.join("readers").join("other")).unwrap();
        destroy(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn a_database_that_another_program_has_created_meanwhile_stays() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("db");
        let (db, keyspace) = open(&folder, &creating()).unwrap();
        keyspace.insert("a", "1").unwrap();
        // What `destroy` does after the removal of its own database.
        remove_unused(&folder, &[]).unwrap();
        assert_eq!(destroy(&folder).unwrap_err().kind(), ErrorKind::Locked);
        db.close().unwrap();
        let db = Db::open_read_only(&folder, windrow::Options::default()).unwrap();
        let found = db.keyspace(KEYSPACE).unwrap().get("a").unwrap();
        assert_eq!(found.as_deref(), Some(&b"1"[..]));
    }

    /// All sizes, however odd, become valid options.
    #[test]
    fn any_options_are_valid_after_the_conversion() {
        let sizes = [0, 1, 10_000, 4 << 20, 64 << 20, 3 << 30, usize::MAX];
        for write_buffer_bytes in sizes {
            for file_bytes in sizes {
                for block_bytes in sizes {
                    for (open_files, bits) in
                        [(i32::MIN, i32::MIN), (0, 0), (10, 10), (i32::MAX, i32::MAX)]
                    {
                        let options = OpenOptions {
                            write_buffer_bytes,
                            file_bytes,
                            block_bytes,
                            open_files,
                            cache_bytes: file_bytes,
                            bits_per_key: Some(bits),
                            ..creating()
                        };
                        options.to_windrow().validate().unwrap();
                    }
                }
            }
        }
        let options = OpenOptions::default().to_windrow();
        assert!(!options.create_if_missing && !options.error_if_exists);
        assert_eq!(options.keyspace.memtable_bytes, 4 << 20);
        assert_eq!(options.keyspace.compression, Compression::Lz4);
        // A memtable of any size fits the budget.
        let large = OpenOptions {
            write_buffer_bytes: 512 << 20,
            ..creating()
        };
        let budget = large.to_windrow().memory_budget;
        assert!(budget / 8 >= 512 << 20, "{budget}");
    }

    #[test]
    fn options_hold_for_a_database_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let before = OpenOptions {
            is_compressed: false,
            ..creating()
        };
        drop(open(folder.path(), &before).unwrap());
        let now = OpenOptions {
            block_bytes: 32 << 10,
            cache_bytes: usize::MAX,
            ..creating()
        };
        let (_db, keyspace) = open(folder.path(), &now).unwrap();
        let options = keyspace.options();
        assert_eq!(options, now.to_windrow().keyspace);
        assert_eq!(options.block_bytes, 32 << 10);
    }
}
