//! A reader of the manifest, which may follow its writer.
//!
//! The writer may be another process. It appends edits, and now and then begins a new manifest, which `CURRENT` then names.
//! Reading changes nothing.
//!
//! I1. The state is that of a prefix of the edits. If the database keeps no log, this prefix ends at the length in `CURRENT`.
//! I2. Damage is reported only after a second look: a chunk that was being written at the first one is whole by then, if
//!     anything behind it is.
//!
//! Concurrency: one thread.

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, FileNumber, KeyspaceId, Result};
use crate::log::{LogReader, TailAction};
use crate::vfs::Vfs;

use super::edit::{Edit, Record};
use super::names::FileName;
use super::position::ManifestPosition;
use super::state::ManifestState;
use super::store::{Current, read_current};

/// The keyspaces whose files have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangedKeyspaces {
    These(BTreeSet<KeyspaceId>),
    /// Perhaps all of them: another manifest is current.
    All,
}

/// A manifest that is read up to its present end.
#[derive(Debug)]
pub(crate) struct ManifestFollower {
    number: FileNumber,
    name: String,
    reader: LogReader,
    is_begun: bool,
    /// Edits that are read and not applied, each with the offset of its payload.
    ahead: Vec<(u64, Edit)>,
    /// The offset behind what is applied.
    applied: u64,
    state: Arc<ManifestState>,
}

impl ManifestFollower {
    /// Reads the manifest that `CURRENT` names. `None` if no database exists.
    ///
    /// # Errors
    /// `Corruption` with file and offset; also if `CURRENT` is missing but logs, tables, value files or discard
    /// lists exist, which are never created before it. `Unsupported` for a newer format.
    pub(crate) fn open(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Self>> {
        let Some(mut current) = read_current(vfs, directory)? else {
            return Ok(None);
        };
        loop {
            let opened = Self::open_manifest(vfs, directory, current);
            if opened.is_ok() {
                return opened.map(Some);
            }
            // A writer may have begun another one meanwhile, and removed this one.
            match read_current(vfs, directory)? {
                Some(newest) if newest.number != current.number => current = newest,
                _ => return opened.map(Some),
            }
        }
    }

    fn open_manifest(vfs: &dyn Vfs, directory: &Path, current: Current) -> Result<Self> {
        let name = FileName::Manifest(current.number).to_string();
        let reader = LogReader::open(vfs, directory, &name, current.number, None)?;
        let mut follower = Self {
            number: current.number,
            name,
            reader,
            is_begun: false,
            ahead: Vec::new(),
            applied: 0,
            state: Arc::default(),
        };
        follower.read_next()?;
        if follower.is_unlogged() {
            follower.reader.extend_to(current.length)?;
        }
        follower.read_ahead()?;
        // The length in CURRENT was durable, and includes the snapshot.
        follower.check_end(current.length)?;
        follower.apply_ahead()?;
        Arc::make_mut(&mut follower.state).pack();
        Ok(follower)
    }

    /// Reads what was written since, without applying it. Returns whether that changes which keyspaces there are, their
    /// names or their options, as another manifest may.
    ///
    /// # Errors
    /// `Corruption` with file and offset: the follower is of no further use. `Io`.
    pub(crate) fn look(&mut self, vfs: &dyn Vfs, directory: &Path) -> Result<bool> {
        self.reader.refresh()?;
        self.read_ahead()?;
        self.check_end(0)?;
        let current = read_current(vfs, directory)?;
        Ok(current.is_some_and(|current| current.number != self.number)
            || self.ahead.iter().any(|(_, edit)| edit.changes_keyspaces()))
    }

    /// Reads and applies what was written since. `None` if nothing was.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub(crate) fn follow(
        &mut self,
        vfs: &dyn Vfs,
        directory: &Path,
    ) -> Result<Option<ChangedKeyspaces>> {
        self.look(vfs, directory)?;
        let has_edits = !self.ahead.is_empty();
        let changed = self.apply_ahead()?;
        let current = read_current(vfs, directory)?;
        if current.is_some_and(|current| current.number != self.number)
            && let Some(next) = Self::open(vfs, directory)?
        {
            *self = next;
            return Ok(Some(ChangedKeyspaces::All));
        }
        Ok(has_edits.then_some(ChangedKeyspaces::These(changed)))
    }

    /// Reads the sound edits from the present position on.
    fn read_ahead(&mut self) -> Result<()> {
        while self.read_next()? {}
        Ok(())
    }

    /// Reads the next edit. Returns whether there is a sound one.
    fn read_next(&mut self) -> Result<bool> {
        let Some(record) = self.reader.next()? else {
            return Ok(false);
        };
        let offset = record.payload_offset();
        let edit =
            Edit::decode(record.payload).map_err(|error| error.in_file(&self.name, offset))?;
        if !self.is_begun && edit.records.first() != Some(&Record::FormatVersion) {
            let what = "the first record is not a format version";
            return Err(Error::corruption(&self.name, offset, what));
        }
        self.is_begun = true;
        self.ahead.push((offset, edit));
        Ok(true)
    }

    /// Whether the snapshot that was read says that edits behind the length in `CURRENT` do not count.
    fn is_unlogged(&self) -> bool {
        let snapshot = self.ahead.first();
        snapshot.is_some_and(|(_, edit)| edit.records.contains(&Record::Unlogged))
    }

    /// Applies what was read. Returns the keyspaces whose files it changes.
    fn apply_ahead(&mut self) -> Result<BTreeSet<KeyspaceId>> {
        let mut changed = BTreeSet::new();
        for (offset, edit) in mem::take(&mut self.ahead) {
            changed.extend(edit.records.iter().filter_map(Record::keyspace_of_files));
            Arc::make_mut(&mut self.state)
                .apply(&edit)
                .map_err(|contradiction| Error::corruption(&self.name, offset, contradiction))?;
        }
        self.applied = self.reader.position();
        Ok(changed)
    }

    /// Checks that nothing proves that more was durable than what was read, nor the first `durable` bytes (I2).
    fn check_end(&mut self, durable: u64) -> Result<()> {
        loop {
            let end = self.reader.end()?;
            let is_damaged = !self.is_begun
                || end.offset < durable
                || end.action(false) == TailAction::Corruption;
            if !is_damaged {
                return Ok(());
            }
            self.reader.refresh()?;
            self.read_ahead()?;
            if self.reader.position() == end.offset {
                let what = "durable edits are lost";
                return Err(Error::corruption(&self.name, end.offset, what));
            }
        }
    }

    pub(crate) fn state(&self) -> &Arc<ManifestState> {
        &self.state
    }

    /// The number of the manifest.
    pub(crate) fn number(&self) -> FileNumber {
        self.number
    }

    /// The place behind the edits that the state contains, and behind the marks of syncs that follow them.
    pub(crate) fn position(&self) -> ManifestPosition {
        ManifestPosition {
            number: self.number.0,
            offset: self.applied,
        }
    }
}

/// Reads the number and the state of the manifest that `CURRENT` names. `None` if no database exists.
///
/// # Errors
/// As [`ManifestFollower::open`].
pub(crate) fn read_manifest(
    vfs: &dyn Vfs,
    directory: &Path,
) -> Result<Option<(FileNumber, ManifestState)>> {
    let follower = ManifestFollower::open(vfs, directory)?;
    Ok(follower.map(|it| (it.number, Arc::unwrap_or_clone(it.state))))
}
