//! Opening a database: the one path through creation, recovery after a crash, and reopening after
//! a clean close.
//!
//! 1. Take the lock; look at the folder.
//! 2. Read the manifest; every file that it names must be there.
//! 3. Replay the logs into memtables ([`replay`](super::replay)); nothing on disk has changed yet.
//! 4. Sync the logs that count, so that what was read back is durable, then record in a new
//!    manifest where history ended. From here on a second crash recovers the same state.
//! 5. Begin a new log. No log and no table of the past is ever written again.
//! 6. Remove what the manifest does not name.
//!
//! A crash between any two steps leaves a folder that the next opening treats the same way.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::catalog::Catalog;
use super::keyspace::KeyspaceCore;
use super::poison::Poison;
use super::replay::{RecordedLogs, ReplayedLog, read_header, replay};
use super::stats::Counters;
use super::wal::WalChain;
use crate::base::key::Trailer;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber};
use crate::manifest::names::FileName;
use crate::manifest::{KeyspaceState, ManifestState, Obsolete, Version, read_manifest};
use crate::options::Options;
use crate::vfs::{LockGuard, OpenMode, Vfs};

/// The name of the lock file.
const LOCK: &str = "LOCK";

/// What opening found and built.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) lock: Box<dyn LockGuard>,
    pub(crate) catalog: Catalog,
    pub(crate) chain: WalChain,
    pub(crate) keyspaces: Vec<Arc<KeyspaceCore>>,
    /// The newest sequence number that was ever committed.
    pub(crate) last_sequence: SequenceNumber,
    /// The last replayed log and its end.
    pub(crate) last_log: Option<ReplayedLog>,
}

/// Opens the database in `directory`.
pub(crate) fn open(
    directory: &Path,
    options: &Options,
    obsolete: &Arc<Obsolete>,
    counters: &Arc<Counters>,
    poison: &Arc<Poison>,
) -> Result<Opened> {
    let vfs = &options.vfs;
    let lock = prepare_directory(&**vfs, directory, options)?;
    let files = list(&**vfs, directory)?;
    let mut state = match read_manifest(&**vfs, directory)? {
        Some(_) if options.error_if_exists => {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a database in {} already", directory.display()),
            ));
        }
        Some((manifest, state)) => {
            check_unnamed_logs(&**vfs, directory, manifest, &state, &files)?;
            state
        }
        None if options.create_if_missing => ManifestState::default(),
        None => return Err(no_database(directory)),
    };
    check_files(&state, &files)?;

    let keyspaces = build_keyspaces(&state, options, obsolete)?;
    let recorded = RecordedLogs {
        live: state.logs.iter().copied().collect(),
        ends: state.log_ends.clone(),
        synced: state.log_synced,
    };
    let replayed = replay(&**vfs, directory, &recorded, |entry| {
        let keyspace = keyspaces
            .iter()
            .find(|keyspace| keyspace.id() == entry.keyspace);
        let Some(keyspace) = keyspace else {
            return Err(unknown_keyspace(entry.keyspace));
        };
        let flushed = state
            .keyspaces
            .get(&entry.keyspace)
            .map_or(0, |state| state.flushed);
        if entry.sequence > flushed {
            let memtable = Arc::clone(&keyspace.state().active);
            memtable.insert(
                entry.key,
                Trailer::new(entry.sequence, entry.kind),
                entry.value,
            );
            if keyspace.is_memtable_full() {
                keyspace.rotate(entry.sequence);
            }
        }
        Ok(())
    })?;

    sync_logs(&**vfs, directory, &replayed)?;
    let flushed = state
        .keyspaces
        .values()
        .map(|keyspace| keyspace.flushed)
        .max()
        .unwrap_or(0);
    let last_log = replayed.last().copied();
    let last_sequence = last_log.map_or(0, |log| log.last_sequence).max(flushed);
    state
        .end_history(last_log.map(|log| (log.number, log.end)))
        .map_err(|contradiction| Error::new(ErrorKind::Corruption, contradiction.to_string()))?;
    let chain = WalChain::default();
    for log in &replayed {
        chain.push_replayed(log.number, log.end, log.last_sequence);
    }
    let catalog = Catalog::start(
        Arc::clone(vfs),
        directory,
        unused_number(&state, &files),
        state,
        Arc::clone(counters),
        Arc::clone(poison),
    )?;
    remove_strangers(&**vfs, directory, &files, &catalog);
    Ok(Opened {
        lock,
        catalog,
        chain,
        keyspaces,
        last_sequence,
        last_log,
    })
}

/// A number above all that the manifest knows and above all that an interrupted opening has used.
fn unused_number(state: &ManifestState, files: &BTreeSet<FileName>) -> FileNumber {
    let newest = files
        .iter()
        .filter_map(|file| file.number())
        .max()
        .unwrap_or_default();
    FileNumber(state.next_id.max(newest.0 + 1))
}

/// Makes sure that the folder is there, durable in its parent, and locked.
fn prepare_directory(
    vfs: &dyn Vfs,
    directory: &Path,
    options: &Options,
) -> Result<Box<dyn LockGuard>> {
    if options.create_if_missing {
        vfs.create_dir_all(directory)
            .map_err(|error| Error::io("create", directory, error))?;
    } else {
        // Nothing is left behind where there is no database, not even a lock.
        let files = list(vfs, directory).map_err(|error| error.with_kind(ErrorKind::NotFound))?;
        if !files.contains(&FileName::Current) {
            return Err(no_database(directory));
        }
    }
    let path = directory.join(LOCK);
    vfs.lock(&path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::WouldBlock {
            Error::new(
                ErrorKind::Locked,
                format!("the database in {} is open already", directory.display()),
            )
        } else {
            Error::io("lock", &path, error)
        }
    })
}

fn no_database(directory: &Path) -> Error {
    let message = format!("there is no database in {}", directory.display());
    Error::new(ErrorKind::NotFound, message)
}

/// The files of the folder that the engine has made.
fn list(vfs: &dyn Vfs, directory: &Path) -> Result<BTreeSet<FileName>> {
    let names = vfs
        .list(directory)
        .map_err(|error| Error::io("list", directory, error))?;
    Ok(names
        .iter()
        .filter_map(|name| FileName::parse(name))
        .collect())
}

/// The tables and logs that the manifest names.
fn named_files(state: &ManifestState) -> impl Iterator<Item = FileName> {
    let tables = state.files().iter().copied().map(FileName::Table);
    tables.chain(state.logs.iter().copied().map(FileName::Wal))
}

/// Checks that every file that the manifest names is there.
fn check_files(state: &ManifestState, files: &BTreeSet<FileName>) -> Result<()> {
    match named_files(state).find(|file| !files.contains(file)) {
        None => Ok(()),
        Some(file) => Err(Error::corruption(
            &file.to_string(),
            0,
            "the file is missing",
        )),
    }
}

/// Checks that no log has records whose manifest has never heard of it. A log is named durably
/// before its first record, so a later one that is not named means that the manifest has lost edits.
/// Logs older than the manifest are leftovers of a recovery that voided them.
fn check_unnamed_logs(
    vfs: &dyn Vfs,
    directory: &Path,
    manifest: FileNumber,
    state: &ManifestState,
    files: &BTreeSet<FileName>,
) -> Result<()> {
    for file in files {
        if let FileName::Wal(number) = *file
            && number > manifest
            && !state.logs.contains(&number)
            && state.logs.first().is_none_or(|oldest| *oldest < number)
            && read_header(vfs, directory, number)?.is_some()
        {
            return Err(Error::corruption(
                &FileName::Manifest(manifest).to_string(),
                0,
                format!("it has lost the edit that names {file}"),
            ));
        }
    }
    Ok(())
}

fn build_keyspaces(
    state: &ManifestState,
    options: &Options,
    obsolete: &Arc<Obsolete>,
) -> Result<Vec<Arc<KeyspaceCore>>> {
    let build = |(id, keyspace): (&KeyspaceId, &KeyspaceState)| {
        let version = Version::from_state(keyspace, obsolete).map_err(|contradiction| {
            Error::new(
                ErrorKind::Corruption,
                format!("the manifest contradicts itself: {contradiction}"),
            )
        })?;
        Ok(Arc::new(KeyspaceCore::new(
            *id,
            keyspace.name.clone(),
            options.keyspace.clone(),
            version,
            usize::from(keyspace.level_count),
        )))
    };
    state.keyspaces.iter().map(build).collect()
}

fn unknown_keyspace(id: KeyspaceId) -> Error {
    Error::new(
        ErrorKind::Corruption,
        format!("the write-ahead log names keyspace {id}, which the manifest does not know"),
    )
}

/// Makes the logs that were read durable: after a process crash their bytes may only be cached.
fn sync_logs(vfs: &dyn Vfs, directory: &Path, logs: &[ReplayedLog]) -> Result<()> {
    for log in logs {
        let path = directory.join(FileName::Wal(log.number).to_string());
        vfs.open(&path, OpenMode::ReadWrite)
            .and_then(|file| file.sync_data())
            .map_err(|error| Error::io("sync", &path, error))?;
    }
    Ok(())
}

/// Removes files that earlier attempts left behind. What cannot be removed now is tried again at
/// the next opening; files with other names are nobody's business here.
fn remove_strangers(
    vfs: &dyn Vfs,
    directory: &Path,
    files: &BTreeSet<FileName>,
    catalog: &Catalog,
) {
    let named: BTreeSet<FileName> = catalog.with_state(|state| named_files(state).collect());
    for file in files {
        // `files` was listed before the new manifest was made, so every manifest in it is old.
        let is_kept = matches!(file, FileName::Current | FileName::Lock) || named.contains(file);
        if !is_kept {
            drop(vfs.remove(&directory.join(file.to_string())));
        }
    }
}
