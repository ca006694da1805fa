//! The checkpoint: a copy of the database in another folder, as of one sequence number.
//!
//! 1. Between two commits, after a sync of all logs, copy the state of the manifest and hold the files
//!    that it names: tables by versions, logs by open handles. Files that are removed from the folder
//!    afterwards still exist for the copy.
//! 2. Link the tables, the sealed value files and the discard lists, or copy them if the file system cannot
//!    link. The bytes that the state names never change. The source may append to its tables, behind these
//!    bytes. Copy the logs up to their ends, because an open writes over them. Copy the value logs that are
//!    being written, too; in the copy they are sealed.
//! 3. Write a new manifest that describes all of it, with every table sealed and the end of the last log
//!    recorded. Write `CURRENT` last.
//!
//! Invariants:
//! - I1: `CURRENT` exists only after all other files of the copy are durable. Before that, the folder is no database.
//! - I2: The checkpoint only reads the source. A failure in the target's folder neither changes nor
//!   poisons the source. A failed sync of the source's logs poisons it as usual.
//!
//! Concurrency: a checkpoint counts as a running job, so a close waits for it. Writers wait during the
//! second sync of the logs, and jobs wait while it takes handles. Both continue during links and copies.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::engine::Engine;
use crate::engine::copies::{copy_bytes, copy_file, link_or_copy};
use crate::engine::recovery::open::LOCK;
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, ManifestStore, Record, Version};
use crate::vfs::{File, OpenMode, Vfs};

/// The parts of the copy, held until it exists.
struct Source {
    state: ManifestState,
    /// Keep the tables on disk.
    _versions: Vec<Shared<Version>>,
    logs: Vec<Log>,
    /// Value logs that are being written. They are copied and never linked.
    growing: BTreeSet<FileName>,
}

/// A log and the length to copy.
struct Log {
    number: FileNumber,
    length: u64,
    file: Arc<dyn File>,
}

impl Engine {
    /// Creates a database in `target` that holds everything committed so far.
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        self.check_writable()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let vfs = &*self.options.vfs;
        check_outside(vfs, &self.directory, target)?;
        vfs.create_dir_all(target)
            .map_err(|error| Error::io("create", target, error))?;
        // A foreign folder gets nothing, not even a lock.
        check_empty(vfs, target)?;
        let lock_path = target.join(LOCK);
        let lock = vfs.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => not_empty(target),
            _ => Error::io("lock", &lock_path, error),
        })?;
        check_empty(vfs, target)?;
        let source = self.between_commits(|| self.hold_files())?;
        let copied = self.copy(&source, target);
        if copied.is_err() {
            remove_leftovers(vfs, target);
        }
        drop(lock);
        running.end_unchanged();
        copied
    }

    /// Holds the current files, between two commits.
    fn hold_files(&self) -> Result<Source> {
        let lengths = self.chain.lengths();
        // Under the catalog's lock no file that the state names is removed.
        self.catalog.with_state(|state| {
            let mut state = state.clone();
            let open = |(number, length): &(FileNumber, u64)| {
                let path = self.path_of(FileName::Wal(*number));
                let file = self.options.vfs.open(&path, OpenMode::Read);
                Ok(Log {
                    number: *number,
                    length: *length,
                    file: file.map_err(|error| Error::io("open", &path, error))?,
                })
            };
            let named = lengths.iter().filter(|log| state.logs.contains(&log.0));
            let logs = named.map(open).collect::<Result<Vec<_>>>()?;
            let first = logs.first().map(|log| log.number);
            let end = logs.last().map(|log| (log.number, log.length));
            state.end_history(first, end).map_err(|contradiction| {
                Error::new(ErrorKind::Poisoned, contradiction.to_string())
            })?;
            state.seal_files();
            let keyspaces = self.keyspaces.load();
            let mut growing = BTreeSet::new();
            for keyspace in keyspaces.iter() {
                let records = keyspace.value_log.lock().seals(keyspace.id());
                let files = records.iter().filter_map(Record::value_file);
                growing.extend(files.map(|file| FileName::Values(file.number)));
                state.apply(&Edit { records }).map_err(|contradiction| {
                    Error::new(ErrorKind::Poisoned, contradiction.to_string())
                })?;
            }
            let version =
                |keyspace: &Arc<super::KeyspaceCore>| Shared::clone(&keyspace.state_full().version);
            Ok(Source {
                state,
                _versions: keyspaces.iter().map(version).collect(),
                logs,
                growing,
            })
        })
    }

    /// Writes the copy (I1).
    fn copy(&self, source: &Source, target: &Path) -> Result<()> {
        let vfs = &*self.options.vfs;
        for log in &source.logs {
            self.check_cancelled()?;
            let to = target.join(FileName::Wal(log.number).to_string());
            copy_bytes(vfs, Arc::clone(&log.file), log.length, &to)?;
        }
        for own in source.state.keyspaces.values() {
            let tables = own.levels.iter().flat_map(BTreeMap::values);
            let tables = tables.map(|file| (FileName::Table(file.number), file.end()));
            let values = own.values.files.values().map(|values| &values.file);
            let values = values.map(|file| (FileName::Values(file.number), file.end));
            let garbage = own.values.discard_lists.values();
            let garbage = garbage.map(|list| (FileName::DiscardList(list.number), list.length));
            for (name, length) in tables.chain(values).chain(garbage) {
                self.check_cancelled()?;
                let (from, to) = (self.path_of(name), target.join(name.to_string()));
                if source.growing.contains(&name) {
                    copy_file(vfs, &from, length, &to)?;
                } else {
                    link_or_copy(vfs, &from, length, &to)?;
                }
            }
        }
        // This syncs the folder, with the names of all copied files, before `CURRENT`.
        let number = FileNumber(source.state.next_id);
        let vfs = Arc::clone(&self.options.vfs);
        ManifestStore::start(vfs, target, number, source.state.clone()).map(drop)
    }

    fn path_of(&self, file: FileName) -> PathBuf {
        self.directory.join(file.to_string())
    }
}

fn not_empty(target: &Path) -> Error {
    let message = format!(
        "no checkpoint is made in {}: it is not empty",
        target.display()
    );
    Error::new(ErrorKind::AlreadyExists, message)
}

/// Refuses a target within the folder of the database, also through links.
fn check_outside(vfs: &dyn Vfs, own: &Path, target: &Path) -> Result<()> {
    let own = vfs
        .resolve(own)
        .map_err(|error| Error::io("resolve", own, error))?;
    let mut place = PathBuf::new();
    // What does not exist yet is no link, but may be left again by `..`.
    for component in target.components() {
        place.push(component);
        match vfs.resolve(&place) {
            Ok(resolved) => place = resolved,
            Err(_) if component == Component::ParentDir => {
                place.pop();
                place.pop();
            }
            Err(_) => {}
        }
    }
    if place.is_relative()
        && let Ok(here) = vfs.resolve(Path::new("."))
        && here.is_absolute()
    {
        place = here.join(place);
    }
    if place.starts_with(&own) {
        return Err(Error::invalid_argument(format!(
            "{} is in the folder of the database: a checkpoint has a folder of its own",
            target.display()
        )));
    }
    Ok(())
}

/// Checks that `target` contains at most a lock.
fn check_empty(vfs: &dyn Vfs, target: &Path) -> Result<()> {
    if list(vfs, target)?.iter().any(|name| name != LOCK) {
        return Err(not_empty(target));
    }
    Ok(())
}

fn list(vfs: &dyn Vfs, folder: &Path) -> Result<Vec<String>> {
    vfs.list(folder)
        .map_err(|error| Error::io("list", folder, error))
}

/// Removes what a failed attempt has left, unless it may be complete. What this cannot remove does not open as a
/// database.
fn remove_leftovers(vfs: &dyn Vfs, target: &Path) {
    let Ok(names) = list(vfs, target) else {
        return;
    };
    if names.contains(&FileName::Current.to_string()) {
        return;
    }
    for name in names.iter().filter(|name| *name != LOCK) {
        drop(vfs.remove(&target.join(name)));
    }
}
