//! The checkpoint: a copy of the database in another folder, as of one sequence number.
//!
//! 1. Hold the state and its files ([`held_files`](super::held_files)).
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

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::held_files::HeldFiles;
use crate::base::{Error, FileNumber, Result};
use crate::engine::Engine;
use crate::engine::copies::{copy_bytes, copy_file, link_or_copy};
use crate::manifest::names::FileName;
use crate::manifest::{ManifestStore, NewFolder};
use crate::vfs::Vfs;

impl Engine {
    /// Creates a database in `target` that holds everything committed so far.
    pub(crate) fn checkpoint(&self, target: &Path) -> Result<()> {
        self.check_copyable()?;
        self.check_may_wait()?;
        let Some(running) = self.signal.begin_job() else {
            return Err(Error::closed());
        };
        let vfs = &*self.options.vfs;
        check_outside(vfs, &self.directory, target)?;
        let folder = NewFolder::take(vfs, target, "no checkpoint is made in")?;
        let mut source = self.between_commits(|newest| self.hold_files(newest))?;
        // Both databases use the same bytes.
        source.state.seal_files();
        let copied = folder.fill(|| self.copy(&source, target));
        running.end_unchanged();
        copied
    }

    /// Writes the copy (I1).
    fn copy(&self, source: &HeldFiles, target: &Path) -> Result<()> {
        let vfs = &*self.options.vfs;
        for log in &source.logs {
            self.check_cancelled()?;
            let to = target.join(FileName::Wal(log.number).to_string());
            copy_bytes(vfs, Arc::clone(&log.file), log.length, &to)?;
        }
        for (name, length) in source.state.files() {
            self.check_cancelled()?;
            let (from, to) = (self.path_of(name), target.join(name.to_string()));
            if source.growing.contains(&name) {
                copy_file(vfs, &from, length, &to)?;
            } else {
                link_or_copy(vfs, &from, length, &to)?;
            }
        }
        // This syncs the folder, with the names of all copied files, before `CURRENT`.
        let number = FileNumber(source.state.next_id);
        let vfs = Arc::clone(&self.options.vfs);
        ManifestStore::start(vfs, target, number, source.state.clone()).map(drop)
    }
}

/// Refuses a target within the folder of the database, also through links.
pub(in crate::engine) fn check_outside(vfs: &dyn Vfs, own: &Path, target: &Path) -> Result<()> {
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
            "{} is in the folder of the database: a copy has a folder of its own",
            target.display()
        )));
    }
    Ok(())
}
