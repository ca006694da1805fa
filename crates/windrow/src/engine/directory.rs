//! The folder of the database: its names become durable, its files are removed.
//!
//! Concurrency: one sync of the folder at a time, under `naming`.

use super::Engine;
use crate::base::{Error, ErrorKind, Result};
use crate::manifest::names::FileName;

impl Engine {
    /// Makes the names in the folder durable. A failure ends all writing: the system tells of it only
    /// once, and a later sync, perhaps for another thread's file, would succeed without it. So a
    /// sync begins only when it is known how the one before it went.
    pub(super) fn sync_directory(&self) -> Result<()> {
        let _naming = self.naming.lock();
        self.poison.check()?;
        self.options
            .vfs
            .sync_dir(&self.directory)
            .map_err(|error| Error::io("sync", &self.directory, error).with_kind(ErrorKind::Io))
            .inspect_err(|error| self.poison.set(error))
    }

    /// Removes files that nothing names and nobody reads any more.
    pub(super) fn remove_obsolete(&self) {
        self.remove_files(&self.obsolete.take());
    }

    pub(super) fn remove_files(&self, files: &[FileName]) {
        for file in files {
            self.remove_file(*file);
        }
    }

    /// Removes a file that the manifest no longer names; what cannot be removed now is removed when
    /// the database is opened next.
    pub(super) fn remove_file(&self, file: FileName) {
        drop(
            self.options
                .vfs
                .remove(&self.directory.join(file.to_string())),
        );
    }
}
