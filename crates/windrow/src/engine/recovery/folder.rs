//! The folder of a database: what is in it, whether that fits together, and the lock.
//!
//! Concurrency: one thread, before the database is open.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::replay::read_header;
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::engine::Access;
use crate::engine::catalog::Catalog;
use crate::engine::secondary::lease::READERS;
use crate::manifest::ManifestState;
use crate::manifest::names::{FILE_NUMBER_MAX, FileName};
use crate::options::{Options, Recovery};
use crate::vfs::{LockGuard, Vfs};

/// The name of the lock file.
pub(in crate::engine) const LOCK: &str = "LOCK";

/// A folder in which a database is created may hold this folder, and hidden files.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes sure that the folder exists, is durable in its parent, and is locked. If there is no database
/// and none is to be created, it leaves nothing behind, not even a lock.
pub(super) fn prepare_directory(
    vfs: &dyn Vfs,
    directory: &Path,
    options: &Options,
) -> Result<Box<dyn LockGuard>> {
    let names = match vfs.list(directory) {
        Ok(names) => names,
        Err(error) if is_missing_folder(&error) => Vec::new(),
        Err(error) => return Err(Error::io("list", directory, error)),
    };
    // The open checks under the lock whether it is a sound one.
    let is_database = names
        .iter()
        .filter_map(|name| FileName::parse(name))
        .any(|file| {
            matches!(
                file,
                FileName::Current
                    | FileName::Wal(_)
                    | FileName::Table(_)
                    | FileName::Values(_)
                    | FileName::DiscardList(_)
            )
        });
    if !is_database {
        if !options.create_if_missing {
            return Err(no_database(directory));
        }
        if let Some(name) = names.iter().find(|name| is_foreign(name)) {
            return Err(Error::invalid_argument(format!(
                "no database is created in {}: it holds other files, such as {name}",
                directory.display()
            )));
        }
    }
    if options.create_if_missing {
        vfs.create_dir_all(directory)
            .map_err(|error| Error::io("create", directory, error))?;
    }
    vfs.lock(&directory.join(LOCK))
        .map_err(|error| lock_failure(directory, error))
}

pub(in crate::engine) fn lock_failure(directory: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        let holder = error.get_ref().map(|holder| format!(" in {holder}"));
        let message = format!(
            "the database in {} is open already{}",
            directory.display(),
            holder.unwrap_or_default()
        );
        return Error::new(ErrorKind::Locked, message);
    }
    Error::io("lock", &directory.join(LOCK), error)
}

/// Whether an error of a list says that the folder does not exist.
pub(in crate::engine) fn is_missing_folder(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whether a file of this name shows that the folder serves another purpose.
fn is_foreign(name: &str) -> bool {
    let of_engine = |file: FileName| !file.is_for_people() || file.is_scrub_note();
    let is_own = name == READERS || FileName::parse(name).is_some_and(of_engine);
    !name.starts_with('.') && name != LOST_AND_FOUND && !is_own
}

pub(in crate::engine) fn no_database(directory: &Path) -> Error {
    let message = format!("there is no database in {}", directory.display());
    Error::new(ErrorKind::NotFound, message)
}

/// The files of the engine in the folder.
pub(in crate::engine) fn list(vfs: &dyn Vfs, directory: &Path) -> Result<BTreeSet<FileName>> {
    let names = vfs
        .list(directory)
        .map_err(|error| Error::io("list", directory, error))?;
    Ok(names
        .iter()
        .filter_map(|name| FileName::parse(name))
        .collect())
}

/// Refuses a folder that a repair or a restore has not finished. Only its maker opens it.
pub(in crate::engine) fn check_finished(
    directory: &Path,
    files: &BTreeSet<FileName>,
    access: Access,
) -> Result<()> {
    if access == Access::Repair || !files.contains(&FileName::Repairing) {
        return Ok(());
    }
    let what = "a repair or a restore into this folder has not ended";
    let error = Error::corruption(&FileName::Repairing.to_string(), 0, what)
        .with_next_step("remove the folder, and repair or restore again");
    Err(error.context(directory.display()))
}

/// The tables, value files and logs that the data of the database is in.
fn needed_files(state: &ManifestState) -> impl Iterator<Item = FileName> {
    let files = state.files().map(|(name, _)| name);
    files.chain(state.logs.iter().copied().map(FileName::Wal))
}

/// Checks that every file exists that data is in. A log that is kept for a consumer of changes is none: that consumer
/// reports its damage. The replay looks for the others if history may end at one that is missing.
pub(super) fn check_files(
    state: &ManifestState,
    files: &BTreeSet<FileName>,
    recovery: Recovery,
) -> Result<()> {
    let may_miss =
        |file: &FileName| recovery == Recovery::UpToDamage && matches!(file, FileName::Wal(_));
    match needed_files(state).find(|file| !files.contains(file) && !may_miss(file)) {
        None => Ok(()),
        Some(file) => Err(Error::corruption(
            &file.to_string(),
            0,
            "the file is missing",
        )),
    }
}

/// Checks that the manifest names every log with records. A log is named durably before its first
/// record, so a newer log without a name means that the manifest has lost edits. Logs older than the
/// manifest are leftovers of a recovery that dropped them. A database without a log names its files without records in edits
/// that need not count.
pub(in crate::engine) fn check_unnamed_logs(
    vfs: &dyn Vfs,
    directory: &Path,
    manifest: FileNumber,
    state: &ManifestState,
    files: &BTreeSet<FileName>,
) -> Result<()> {
    if state.is_unlogged {
        return Ok(());
    }
    for file in files {
        if let FileName::Wal(number) = *file
            && number > manifest
            && !state.logs.contains(&number)
            && !state.changes.kept_logs.contains_key(&number)
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

/// The files that earlier opens have left behind, and in a new database the notes of scrubs of another one. Files with foreign
/// names are none.
pub(super) fn unnamed_files(
    files: &BTreeSet<FileName>,
    catalog: &Catalog,
    is_new: bool,
) -> Vec<FileName> {
    let named: BTreeSet<FileName> = catalog.with_state(|state| {
        let kept = state.changes.kept_logs.keys();
        needed_files(state)
            .chain(kept.copied().map(FileName::Wal))
            .collect()
    });
    // `files` was listed before the new manifest was made, so every manifest in it is old.
    let is_kept = |file: &FileName| {
        // The write of a `CURRENT.new` removes the one before: nobody else may, while another thread renames it.
        matches!(
            file,
            FileName::Current
                | FileName::CurrentNew
                | FileName::Lock
                | FileName::Reserve
                | FileName::Repairing
        ) || file.is_for_people() && !(is_new && file.is_scrub_note())
            || named.contains(file)
    };
    files
        .iter()
        .copied()
        .filter(|file| !is_kept(file))
        .collect()
}

/// A file number above all that the manifest knows and all that an interrupted open has used.
///
/// # Errors
/// `Corruption` if it is so large that numbers could run out. No real database comes that far.
pub(super) fn unused_number(
    state: &ManifestState,
    files: &BTreeSet<FileName>,
) -> Result<FileNumber> {
    let newest = files.iter().copied().max_by_key(|file| file.number());
    let after_newest = newest
        .and_then(FileName::number)
        .map_or(0, |number| number.0 + 1);
    let number = state.next_id.max(after_newest);
    if number < FILE_NUMBER_MAX / 2 {
        return Ok(FileNumber(number));
    }
    let culprit = newest
        .filter(|_| after_newest > state.next_id)
        .map_or_else(|| "the manifest".to_owned(), |file| file.to_string());
    Err(Error::new(
        ErrorKind::Corruption,
        format!("{culprit} has a number that no database reaches: {number}"),
    ))
}
