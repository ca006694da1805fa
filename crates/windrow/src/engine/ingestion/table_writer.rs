//! Writes table files outside of a database, for [`Db::ingest`](crate::Db::ingest).
//!
//! Concurrency: none; a writer belongs to one thread at a time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::base::expiry::{moment_of, put_expiring};
use crate::base::key::UNNUMBERED;
use crate::base::limits::VALUE_BYTES_IN_PLACE_MAX;
use crate::base::{Error, Kind, Result, Trailer};
use crate::engine::jobs::context::table_options;
use crate::options::{self, Options};
use crate::policy::{filter_units, price_alone};
use crate::table;

/// Writes a table file that [`Db::ingest`](crate::Db::ingest) adds to a database later: in another process, or on another
/// machine. It needs no database.
///
/// Keys come in strictly ascending order. All values are in the file itself, so they have at most 1 MiB; larger ones
/// need a [bulk load](crate::Keyspace::bulk_load). Memory is a block, a buffer, and the filter and index of the file. A
/// writer that is dropped before [`finish`](Self::finish) removes its file.
///
/// ```
/// # fn main() -> windrow::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let db = windrow::Db::open(folder.path().join("db"), windrow::Options::default())?;
/// # let users = db.keyspace("users")?;
/// # let path = folder.path().join("users.table");
/// use windrow::{Options, TableWriter};
///
/// let mut writer = TableWriter::create(&path, &Options::default())?;
/// writer.insert("ada", "mathematician")?;
/// writer.insert("grace", "admiral")?;
/// writer.finish()?;
///
/// assert_eq!(db.ingest([(&users, &path)])?, 2);
/// assert_eq!(users.get("grace")?.as_deref(), Some(&b"admiral"[..]));
/// # Ok(())
/// # }
/// ```
pub struct TableWriter {
    /// `None` once it is finished.
    writer: Option<table::TableWriter>,
    options: Options,
    path: PathBuf,
    last_key: Vec<u8>,
}

/// What a [`TableWriter`] has written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSummary {
    /// Entries, removals included.
    pub entries: u64,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The smallest key.
    pub smallest: Vec<u8>,
    /// The largest key.
    pub largest: Vec<u8>,
}

impl TableWriter {
    /// Creates the file `path`, which does not exist. Of the options, those of the file system and of keyspaces count:
    /// size of blocks, compression, filter bits.
    ///
    /// # Errors
    /// `InvalidArgument` for bad options; `Io` if the file exists or cannot be created; `NoSpace`.
    pub fn create(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        options.validate()?;
        let keyspace = &options.keyspace;
        let units = filter_units(1.0, price_alone(keyspace), keyspace);
        let path = path.as_ref().to_owned();
        let writer = table::TableWriter::create_external(
            &*options.vfs,
            path.clone(),
            options.runtime.random(),
            &table_options(keyspace, units),
        )?;
        Ok(Self {
            writer: Some(writer),
            options: options.clone(),
            path,
            last_key: Vec::new(),
        })
    }

    /// Sets the value of `key`, which is above all keys so far.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is not above the last one, or if the key or value is longer than its limit: nothing
    /// was written. `Io` or `NoSpace` from writing: the writer is of no further use.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_value(key, value)?;
        self.add(Kind::Value, key, value)
    }

    /// Sets the value of `key`, which is above all keys so far, until the time `expires_at` of the clock of the database
    /// that takes the file. From then on no read sees it. Parts of a millisecond count as a whole one. Such a file cannot be
    /// added to a keyspace with a merge operator.
    ///
    /// # Errors
    /// As [`insert`](Self::insert). `InvalidArgument` if the value would expire after the year 10889.
    pub fn insert_until(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at: SystemTime,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_value(key, value)?;
        let mut stored = Vec::new();
        put_expiring(&mut stored, moment_of(expires_at)?, value);
        self.add(Kind::ExpiringValue, key, &stored)
    }

    /// Removes `key`, which is above all keys so far, from the keyspace that takes the file.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(Kind::Tombstone, key.as_ref(), &[])
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<()> {
        options::check_key(key)?;
        if key <= &self.last_key[..] {
            return Err(super::out_of_order("a table file", key, &self.last_key));
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("a finished writer is gone");
        };
        writer.add(key, Trailer::new(UNNUMBERED, kind), value)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    /// About how long the file would be if it were finished now, to end it in time: a database makes files of
    /// [`KeyspaceOptions::file_bytes`](crate::KeyspaceOptions::file_bytes).
    pub fn bytes(&self) -> u64 {
        let writer = self.writer.as_ref();
        writer.map_or(0, table::TableWriter::bytes_written_so_far)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// `InvalidArgument` if it has no entry; `Io`; `NoSpace`. The file is removed then.
    ///
    /// # Durability
    /// The file and its name are durable when this returns.
    pub fn finish(mut self) -> Result<TableSummary> {
        if self.last_key.is_empty() {
            return Err(Error::invalid_argument("a table file needs an entry"));
        }
        let vfs = &*self.options.vfs;
        let finished = self.writer.take().map(|writer| {
            let written = writer.finish()?;
            let parent = self.path.parent().filter(|it| !it.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("."));
            vfs.sync_dir(parent)
                .map_err(|error| Error::io("sync", parent, error))?;
            Ok(written.file)
        });
        let Some(finished) = finished else {
            unreachable!("a finished writer is gone");
        };
        let file = finished.inspect_err(|_| drop(vfs.remove(&self.path)))?;
        let (smallest, largest) = file.range();
        Ok(TableSummary {
            entries: file.entries(),
            bytes: file.bytes(),
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
        })
    }
}

/// # Errors
/// `InvalidArgument` if no table has space for the `value` of `key`.
fn check_value(key: &[u8], value: &[u8]) -> Result<()> {
    if value.len() <= VALUE_BYTES_IN_PLACE_MAX {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "the value of key \"{}\" has {} bytes, and a table file takes values of at most \
         {VALUE_BYTES_IN_PLACE_MAX}: bulk loads take larger ones",
        key.escape_ascii(),
        value.len()
    )))
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            drop(self.options.vfs.remove(&self.path));
        }
    }
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
