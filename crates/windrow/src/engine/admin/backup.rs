//! A backup: the files of one state, given to [`backup`](crate::backup).
//!
//! I1. A backup only reads the database. A failure in the store neither changes nor poisons it.
//!
//! Concurrency: a backup counts as a running job, so a close waits for it, and ends it early. Writers and jobs continue,
//! except while the files are taken. Compactions cannot free the files that they replace before the backup has ended.

use std::mem;
use std::sync::Arc;

use super::held_files::HeldFiles;
use crate::backup::{BackupReport, Backups, Contents};
use crate::base::{Error, Result};
use crate::engine::Engine;
use crate::manifest::names::FileName;
use crate::vfs::{File, OpenMode};

impl Engine {
    /// Makes a backup of everything committed so far.
    pub(crate) fn back_up(&self, backups: &Backups) -> Result<BackupReport> {
        self.check_copyable()?;
        self.check_may_wait()?;
        // A backup that waits for its turn is no job: a close does not wait for what is before it.
        let mut running = None;
        let hold = || {
            running = Some(self.signal.begin_job().ok_or_else(Error::closed)?);
            self.contents()
        };
        let made = backups.create(hold, &|| self.check_cancelled());
        if let Some(running) = running {
            running.end_unchanged();
        }
        made
    }

    fn contents(&self) -> Result<Contents<'_>> {
        let mut held = self.between_commits(|newest| self.hold_files(newest))?;
        let state = mem::take(&mut held.state);
        let binding = self.binding(held.sequence)?;
        let logs = held.logs.iter();
        let logs = logs.map(|log| (FileName::Wal(log.number), log.length));
        Ok(Contents {
            instance: self.instance(),
            sequence: held.sequence,
            files: state.files().chain(logs).collect(),
            state,
            binding,
            open: Box::new(move |name| self.open_held(&held, name)),
        })
    }

    /// Opens a file of `held`. A log may have lost its name.
    fn open_held(&self, held: &HeldFiles, name: FileName) -> Result<Arc<dyn File>> {
        let path = self.path_of(name);
        let log = held
            .logs
            .iter()
            .find(|log| FileName::Wal(log.number) == name);
        let file = match log {
            Some(log) => Ok(Arc::clone(&log.file)),
            None => self.options.vfs.open(&path, OpenMode::Read),
        };
        file.map_err(|error| Error::open(&name.to_string(), &path, error))
    }

    /// The number by which a backup knows another one of the same open of the database.
    fn instance(&self) -> u128 {
        *self.instance.lock().get_or_insert_with(|| {
            let [high, low] = [(); 2].map(|()| self.options.runtime.random());
            (u128::from(high) << 64) | u128::from(low)
        })
    }
}
