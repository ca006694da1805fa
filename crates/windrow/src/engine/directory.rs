//! The folder of the database: syncs of its names, and removal of its files.
//!
//! Concurrency: one sync of the folder at a time, under `naming`.

use super::Engine;
use crate::base::{Error, ErrorKind, Result};
use crate::manifest::names::FileName;

impl Engine {
    /// Makes the names in the folder durable. A failure poisons the database: the system reports it only
    /// once, and a later sync, even of another thread's file, could succeed without it. So no sync begins
    /// before the outcome of the previous one is known.
    pub(super) fn sync_directory(&self) -> Result<()> {
        let _naming = self.naming.lock();
        self.poison.check()?;
        self.options
            .vfs
            .sync_dir(&self.directory)
            .map_err(|error| Error::io("sync", &self.directory, error).with_kind(ErrorKind::Io))
            .inspect_err(|error| self.poison.set(error))
    }

    /// Makes the name of a new `file` durable, then calls `commit` for the edit that adds the file. Removes
    /// the file if either fails, unless the manifest on disk may name it.
    pub(super) fn add_to_manifest(
        &self,
        file: FileName,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let added = self.sync_directory().and_then(|()| commit());
        added.inspect_err(|_| {
            if !self.poison.is_set() {
                self.remove_file(file);
            }
        })
    }

    /// Removes the files that no version names and no reader uses.
    pub(super) fn remove_obsolete(&self) {
        self.remove_files(&self.obsolete.take());
    }

    /// Removes a file that the manifest does not name, unless a reader in another process needs it.
    pub(super) fn remove_file(&self, file: FileName) {
        self.remove_files(&[file]);
    }
}
