//! A reader of the manifest, which may follow its writer.
//!
//! The writer may be another process. It appends edits, and now and then begins a new manifest, which `CURRENT` then names.
//! Reading changes nothing.
//!
//! I1. The state is that of a prefix of the edits.
//! I2. Damage is reported only after a second look: a chunk that was being written at the first one is whole by then, if
//!     anything behind it is.
//!
//! Concurrency: one thread.

use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, FileNumber, Result};
use crate::log::{LogReader, TailAction};
use crate::vfs::Vfs;

use super::edit::{Edit, Record};
use super::names::FileName;
use super::state::ManifestState;
use super::store::{Current, read_current};

/// A place in the manifests of a database: a manifest, and an offset in it. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ManifestPosition {
    pub(crate) number: u64,
    pub(crate) offset: u64,
}

/// What a manifest had to say since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// More edits.
    Edits,
    /// Another manifest is current. It begins with a snapshot of everything.
    Manifest,
}

/// A manifest that is read up to its present end.
#[derive(Debug)]
pub(crate) struct ManifestFollower {
    number: FileNumber,
    name: String,
    reader: LogReader,
    /// The offset behind the last edit; 0 before the first.
    end: u64,
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
            // A writer may have begun another one meanwhile, and removed this one.
            match read_current(vfs, directory)? {
                Some(newest) if opened.is_err() && newest.number != current.number => {
                    current = newest;
                }
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
            end: 0,
            state: Arc::default(),
        };
        follower.read_edits()?;
        // The length in CURRENT was durable, and includes the snapshot.
        while let Some(damage) = follower.damage(current.length)? {
            follower.reader.refresh()?;
            if !follower.read_edits()? {
                return Err(damage);
            }
        }
        Arc::make_mut(&mut follower.state).pack();
        Ok(follower)
    }

    /// Reads what was written since.
    ///
    /// # Errors
    /// `Corruption` with file and offset; `Io`. The next call reads the same again.
    pub(crate) fn follow(&mut self, vfs: &dyn Vfs, directory: &Path) -> Result<News> {
        self.reader.refresh()?;
        let has_edits = self.read_edits()?;
        let current = read_current(vfs, directory)?;
        if current.is_some_and(|current| current.number != self.number)
            && let Some(next) = Self::open(vfs, directory)?
        {
            *self = next;
            return Ok(News::Manifest);
        }
        Ok(if has_edits {
            News::Edits
        } else {
            News::Nothing
        })
    }

    /// Applies the sound edits from the present position on. Returns whether there were any.
    fn read_edits(&mut self) -> Result<bool> {
        let before = self.end;
        while let Some(record) = self.reader.next()? {
            let offset = record.payload_offset();
            let edit =
                Edit::decode(record.payload).map_err(|error| error.in_file(&self.name, offset))?;
            if self.end == 0 && edit.records.first() != Some(&Record::FormatVersion) {
                let what = "the first record is not a format version";
                return Err(Error::corruption(&self.name, offset, what));
            }
            self.end = record.end;
            Arc::make_mut(&mut self.state)
                .apply(&edit)
                .map_err(|contradiction| Error::corruption(&self.name, offset, contradiction))?;
        }
        Ok(self.end > before)
    }

    /// The damage at the end of what was read, if `durable` bytes were durable once.
    fn damage(&mut self, durable: u64) -> Result<Option<Error>> {
        let end = self.reader.end()?;
        let is_damaged =
            self.end == 0 || end.offset < durable || end.action(false) == TailAction::Corruption;
        let what = "durable edits are lost";
        Ok(is_damaged.then(|| Error::corruption(&self.name, end.offset, what)))
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
            offset: self.reader.position(),
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
