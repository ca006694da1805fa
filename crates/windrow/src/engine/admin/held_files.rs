//! The files of the database as of one sequence number, held for a copy of them: a checkpoint or a backup.
//!
//! Between two commits, after a sync of all logs, the state of the manifest is copied, and the files that it names are held:
//! tables, value files and discard lists by versions, logs by open handles. Files that are removed from the folder
//! afterwards still exist for the copy. The state has the end of the last log, and describes value logs that are being written
//! as sealed. It has no consumers of changes, and nothing that only they hold.
//!
//! I1. The bytes that the state names never change. The database may append to its tables and value logs, behind these bytes.
//!
//! Concurrency: writers wait during the second sync of the logs, and jobs wait while the handles are taken.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, Result, SequenceNumber};
use crate::engine::{Engine, KeyspaceCore};
use crate::manifest::names::FileName;
use crate::manifest::{Edit, ManifestState, Record, Version};
use crate::vfs::{File, OpenMode};

/// The files of one state. They exist while this does.
pub(super) struct HeldFiles {
    pub(super) state: ManifestState,
    /// The newest sequence number of the state.
    pub(super) sequence: SequenceNumber,
    /// Keep the tables, value files and discard lists on disk.
    _versions: Vec<Shared<Version>>,
    pub(super) logs: Vec<HeldLog>,
    /// Value logs that are being written.
    pub(super) growing: BTreeSet<FileName>,
}

/// A log and the length that counts.
pub(super) struct HeldLog {
    pub(super) number: FileNumber,
    pub(super) length: u64,
    pub(super) file: Arc<dyn File>,
}

impl Engine {
    /// Holds the current files, which have everything up to `sequence`, and nothing later.
    pub(super) fn hold_files(&self, sequence: SequenceNumber) -> Result<HeldFiles> {
        let lengths = self.chain.lengths();
        // Under the catalog's lock no file that the state names is removed.
        self.catalog.with_state(|state| {
            let mut state = state.clone();
            state.is_unlogged = false;
            let open = |(number, length): &(FileNumber, u64)| {
                let path = self.path_of(FileName::Wal(*number));
                let file = self.options.vfs.open(&path, OpenMode::Read);
                Ok(HeldLog {
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
            state.forget_consumers().map_err(|contradiction| {
                Error::new(ErrorKind::Poisoned, contradiction.to_string())
            })?;
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
                |keyspace: &Arc<KeyspaceCore>| Shared::clone(&keyspace.state_full().version);
            Ok(HeldFiles {
                state,
                sequence,
                _versions: keyspaces.iter().map(version).collect(),
                logs,
                growing,
            })
        })
    }

    /// The path of a file of the database.
    pub(super) fn path_of(&self, file: FileName) -> PathBuf {
        self.directory.join(file.to_string())
    }
}
