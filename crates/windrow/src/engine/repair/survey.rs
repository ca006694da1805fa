//! What a folder says of its database: the state that the manifest gives, or the part of it that is sound, and the
//! files beside it.
//!
//! - The manifest is *whole* if an open would accept `CURRENT` and the manifest. Then only the files that it names
//!   count, as for an open.
//! - `CURRENT` alone may be damaged: the newest manifest whose snapshot is sound takes its place. It is whole if
//!   nothing proves that it has lost edits.
//! - Otherwise each log, table and value file of the folder counts: sequence numbers decide between versions.
//!
//! Concurrency: one thread, under a shared lock.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::report::{Loss, ManifestUse};
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, Result, SequenceNumber};
use crate::engine::Access;
use crate::engine::recovery::folder;
use crate::engine::recovery::replay::{RecordedLogs, read_header};
use crate::manifest::names::FileName;
use crate::manifest::{ManifestState, read_current, read_edits};
use crate::value::ValuePointer;
use crate::vfs::{OpenMode, Vfs};

/// The last id that a keyspace can have. A database counts its keyspaces, so none reaches the numbers behind it: they are left for
/// the new database.
pub(super) const KEYSPACE_MAX: KeyspaceId = KeyspaceId(u32::MAX - (1 << 20));

/// What a folder says of its database.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) state: ManifestState,
    pub(super) manifest: ManifestUse,
    pub(super) files: BTreeSet<FileName>,
    /// The log that an open has begun with the manifest, and the number of its first entry.
    pub(super) first_log: Option<(FileNumber, SequenceNumber)>,
    /// The value files that the manifest names and the folder does not have.
    lost_values: BTreeSet<FileName>,
    /// The logs that count and behind which one is missing.
    missing_behind: BTreeSet<FileNumber>,
    /// What is wrong with `CURRENT` and the manifest.
    pub(super) losses: Vec<Loss>,
}

impl Survey {
    /// Reads the folder.
    ///
    /// # Errors
    /// `NotFound` if it has no file of a database; `Corruption` if a repair into it has not ended: it lacks what that would
    /// have written; `Unsupported` for a newer format; `Io`.
    pub(super) fn read(vfs: &dyn Vfs, folder: &Path) -> Result<Self> {
        match vfs.list(folder) {
            Err(error) if folder::is_missing_folder(&error) => {
                return Err(folder::no_database(folder));
            }
            _ => {}
        }
        let files = folder::list(vfs, folder)?;
        folder::check_finished(folder, &files, Access::ReadOnly)?;
        let is_data = |file: &FileName| {
            !matches!(
                file,
                FileName::Lock | FileName::Reserve | FileName::CurrentNew | FileName::Repairing
            ) && !file.is_for_people()
        };
        if !files.iter().any(is_data) {
            return Err(folder::no_database(folder));
        }
        let mut survey = Self {
            state: ManifestState::default(),
            manifest: ManifestUse::Missing,
            files,
            first_log: None,
            lost_values: BTreeSet::new(),
            missing_behind: BTreeSet::new(),
            losses: Vec::new(),
        };
        survey.leave_out_dangling(vfs, folder)?;
        survey.read_manifest(vfs, folder)?;
        survey.lose_values();
        Ok(survey)
    }

    /// Leaves out the names that lead to no file, links whose target is gone, and what is so damaged that it has no bytes.
    fn leave_out_dangling(&mut self, vfs: &dyn Vfs, folder: &Path) -> Result<()> {
        for file in self.files.clone() {
            let is_read = matches!(
                file,
                FileName::Wal(_) | FileName::Table(_) | FileName::Values(_) | FileName::Manifest(_)
            );
            if !is_read {
                continue;
            }
            let path = folder.join(file.to_string());
            match vfs.open(&path, OpenMode::Read) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.files.remove(&file);
                    self.lose("the name leads to no file", file, None);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.files.remove(&file);
                    self.lose("it cannot be opened", file, None);
                }
                Err(error) => return Err(Error::io("open", &path, error)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the manifest that `CURRENT` names; else the newest one that begins soundly.
    fn read_manifest(&mut self, vfs: &dyn Vfs, folder: &Path) -> Result<()> {
        let current = match read_current(vfs, folder) {
            Err(error) if error.kind() == ErrorKind::Corruption => {
                self.lose("it does not name the manifest", FileName::Current, None);
                None
            }
            current => current?,
        };
        let named = current.map(|current| current.number);
        let manifests = self.files.iter().rev().filter_map(|file| match file {
            FileName::Manifest(number) => Some(*number),
            _ => None,
        });
        let others = manifests.filter(|number| Some(*number) != named);
        let candidates: Vec<FileNumber> = named.into_iter().chain(others).collect();
        for number in candidates {
            let file = FileName::Manifest(number);
            if !self.files.contains(&file) {
                self.lose("the file is missing", file, None);
                continue;
            }
            let snapshot = read_edits(vfs, folder, number, 1)?.state;
            let length = current.filter(|current| current.number == number);
            let is_unlogged = snapshot.as_ref().is_some_and(|it| it.is_unlogged);
            let counted = length.filter(|_| is_unlogged);
            let until = counted.map_or(u64::MAX, |current| current.length);
            let read = read_edits(vfs, folder, number, until)?;
            let is_cut = length.is_some_and(|current| read.end < current.length);
            let lost = read.fault.is_some() || is_cut;
            if lost {
                let fault = read.fault.as_ref().map(Error::kind);
                let what = if fault == Some(ErrorKind::Unsupported) {
                    "edits of the manifest from here on have records of an unknown kind: a later version may know them"
                } else {
                    "edits of the manifest from here on are damaged or missing"
                };
                self.lose(what, file, Some(read.end));
            }
            let Some(state) = read.state else { continue };
            let unnamed = folder::check_unnamed_logs(vfs, folder, number, &state, &self.files);
            let is_behind = match unnamed {
                // It says nothing about the manifest.
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                unnamed => unnamed.is_err(),
            };
            // Another manifest than the named one may be older than the files.
            let is_other = named.is_some_and(|named| named != number);
            if is_behind && !lost {
                let what = "a newer log shows that edits of the manifest are missing";
                self.lose(what, file, Some(read.end));
            }
            self.first_log = snapshot
                .filter(is_of_open)
                .map(|snapshot| (FileNumber(number.0 + 1), snapshot.last_sequence() + 1));
            self.state = state;
            self.manifest = if lost || is_behind || is_other {
                ManifestUse::Part
            } else {
                ManifestUse::Whole
            };
            return Ok(());
        }
        Ok(())
    }

    /// Reports the value files that the manifest names and the folder does not have.
    fn lose_values(&mut self) {
        let named = self.state.files().map(|(file, _)| file);
        let is_lost =
            |file: &FileName| matches!(file, FileName::Values(_)) && !self.files.contains(file);
        let lost: Vec<FileName> = named.filter(is_lost).collect();
        if self.is_whole() {
            for &file in &lost {
                self.lose("the value file is missing", file, None);
            }
        }
        self.lost_values = lost.into_iter().collect();
    }

    /// Whether `pointer` leads to a file that the manifest names and the folder does not have.
    pub(super) fn has_lost_file(&self, pointer: &[u8]) -> bool {
        let pointer = ValuePointer::decode(pointer);
        pointer.is_ok_and(|it| self.lost_values.contains(&FileName::Values(it.file)))
    }

    fn lose(&mut self, what: &str, file: FileName, offset: Option<u64>) {
        self.losses.push(Loss {
            what: what.to_owned(),
            file: Some(file.to_string()),
            offset,
            ..Loss::default()
        });
    }

    /// Whether only the files that the manifest names count.
    pub(super) fn is_whole(&self) -> bool {
        self.manifest == ManifestUse::Whole
    }

    /// The logs that count, oldest first, as the manifest describes them. Those that are missing are losses.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn logs(&mut self, vfs: &dyn Vfs, folder: &Path) -> Result<RecordedLogs> {
        let (live, ends) = if self.is_whole() {
            let named = self.state.logs.clone();
            let (live, missing): (BTreeSet<_>, BTreeSet<_>) = named
                .into_iter()
                .partition(|number| self.files.contains(&FileName::Wal(*number)));
            for number in missing {
                self.missing_behind.extend(live.range(..number).next_back());
                self.lose("the log is missing", FileName::Wal(number), None);
            }
            (live.into_iter().collect(), self.state.log_ends.clone())
        } else {
            (self.chain(vfs, folder)?, self.state.log_ends.clone())
        };
        let ends = ends
            .into_iter()
            .filter(|(number, _)| live.contains(number))
            .collect();
        Ok(RecordedLogs {
            live,
            ends,
            synced: self.state.log_synced,
        })
    }

    /// The logs of the folder that continue each other, from the newest one backward. A log that an earlier recovery has
    /// declared void is no predecessor of another one.
    fn chain(&self, vfs: &dyn Vfs, folder: &Path) -> Result<Vec<FileNumber>> {
        let logs = self.files.iter().filter_map(|file| match file {
            FileName::Wal(number) => Some(*number),
            _ => None,
        });
        let logs: Vec<FileNumber> = logs.collect();
        let mut chain = Vec::new();
        let mut wanted = None;
        for &number in logs.iter().rev() {
            if wanted.is_some_and(|wanted| number > wanted) {
                continue;
            }
            chain.push(number);
            let header = match read_header(vfs, folder, number) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                header => header.unwrap_or(None),
            };
            // Without a header the log before it is the next older one, as far as anybody knows.
            wanted = header.map(|header| {
                let predecessor = header.predecessor;
                predecessor.map_or(FileNumber(0), |predecessor| predecessor.number)
            });
        }
        chain.reverse();
        Ok(chain)
    }

    /// Whether log `number` is followed by one that is missing: then history does not end in it.
    pub(super) fn is_missing_behind(&self, number: FileNumber) -> bool {
        self.missing_behind.contains(&number)
    }

    /// Whether entries of keyspace `id` count: nothing says that it was dropped.
    pub(super) fn has_keyspace(&self, id: KeyspaceId) -> bool {
        match self.manifest {
            ManifestUse::Whole => self.state.keyspaces.contains_key(&id),
            ManifestUse::Part | ManifestUse::Missing => {
                id.0 > 0 && id <= KEYSPACE_MAX && !self.state.is_dropped(id)
            }
        }
    }

    /// The sequence number up to which all entries of keyspace `id` are in tables.
    pub(super) fn flushed(&self, id: KeyspaceId) -> SequenceNumber {
        let keyspace = self.state.keyspaces.get(&id);
        keyspace.map_or(0, |keyspace| keyspace.flushed)
    }

    /// The largest number of an entry in a table of keyspace `id` that the manifest names.
    pub(super) fn newest_in_tables(&self, id: KeyspaceId) -> SequenceNumber {
        let keyspace = self.state.keyspaces.get(&id);
        let levels = keyspace.into_iter().flat_map(|keyspace| &keyspace.levels);
        let tables = levels.flat_map(|level| level.values());
        let newest = tables.map(|table| table.sequence_max()).max();
        newest.unwrap_or(0).max(self.flushed(id))
    }

    /// The same of each keyspace that the manifest names.
    pub(super) fn newest_in_all_tables(&self) -> BTreeMap<KeyspaceId, SequenceNumber> {
        let ids = self.state.keyspaces.keys();
        ids.map(|&id| (id, self.newest_in_tables(id))).collect()
    }
}

/// Whether a manifest that begins with `snapshot` was begun by an open: then the last log has ended. At a later time one
/// is in use, and the manifest does not know its last number.
fn is_of_open(snapshot: &ManifestState) -> bool {
    let last = snapshot.logs.last();
    last.is_none_or(|log| snapshot.log_ends.contains_key(log))
}

#[cfg(test)]
mod tests {
    use super::{ManifestState, is_of_open};
    use crate::base::FileNumber;

    #[test]
    fn a_manifest_that_began_while_a_log_was_in_use_is_of_no_open() {
        let mut state = ManifestState::default();
        assert!(is_of_open(&state));
        state.logs.insert(FileNumber(3));
        state.log_ends.insert(FileNumber(3), 100);
        assert!(is_of_open(&state));
        state.logs.insert(FileNumber(4));
        assert!(!is_of_open(&state));
    }
}
