//! The manifest on disk: a log of edits that begins with a snapshot, and `CURRENT`, which names the log.
//!
//! Owns the manifest's log, `CURRENT` and `CURRENT.new`. Every open for writing and every
//! rollover starts a new manifest, so nothing is written behind a torn tail.
//!
//! I1. `CURRENT` names a manifest and a length. This length of the manifest and its name are durable before
//!     `CURRENT` is. A rename replaces `CURRENT`.
//! I2. An edit is durable before [`commit`](ManifestStore::commit) returns success.
//! I3. After a failure that leaves an edit's durability unknown, nothing more is committed.
//! I4. A sync marker follows every durable edit. So damage of any edit differs from a torn tail.
//! I5. If the database keeps no log, I2 and I4 do not hold: edits count, and are durable, up to the length in `CURRENT`.
//!
//! Concurrency: one thread at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::codec::checksum::checksum;
use crate::log::{HEADER_BYTES, LogWriter};
use crate::vfs::{self, OpenMode, Vfs};

use super::edit::Edit;
use super::names::FileName;
use super::position::ManifestPosition;
use super::state::ManifestState;

/// A manifest below this size is not rolled over.
const ROLLOVER_BYTES_MIN: u64 = 4 << 20;

/// A manifest is rolled over when it has grown to this many times its snapshot.
const ROLLOVER_FACTOR: u64 = 4;

/// The most bytes of `CURRENT`.
const CURRENT_BYTES_MAX: u64 = 256;

/// The text of `CURRENT` before the manifest's name.
const CURRENT_PREFIX: &str = "windrow manifest ";

/// The bytes of manifest `number`.
pub(crate) fn manifest_length(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> Result<u64> {
    let path = directory.join(FileName::Manifest(number).to_string());
    vfs.open(&path, OpenMode::Read)
        .and_then(|file| file.length())
        .map_err(|error| Error::io("read", &path, error))
}

/// The current manifest, open for edits.
#[derive(Debug)]
pub(crate) struct ManifestStore {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    log: LogWriter,
    state: ManifestState,
    snapshot_bytes: u64,
    /// The length in `CURRENT`.
    current_length: u64,
    /// The end of the manifest when `CURRENT` was written.
    recorded_end: u64,
    is_poisoned: bool,
}

impl ManifestStore {
    /// Starts manifest `number` with a snapshot of `state`, and makes it the current manifest. `number` is
    /// above all ids of `state`.
    pub(crate) fn start(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        number: FileNumber,
        mut state: ManifestState,
    ) -> Result<Self> {
        assert!(number.0 >= state.next_id, "a manifest has a new number");
        state.next_id = number.0 + 1;
        let log = write_snapshot(&*vfs, directory, number, &state)?;
        write_new_current(&*vfs, directory, Current::of(&log))?;
        install_current(&*vfs, directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            snapshot_bytes: log.end(),
            current_length: Current::of(&log).length,
            recorded_end: log.end(),
            is_poisoned: false,
            log,
            state,
            vfs,
        })
    }

    /// Makes `edit` durable, unless I5 allows less, and applies it to the state.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full: nothing has changed. `Poisoned` after an earlier failure, and for
    /// an edit that contradicts the state, which is not written. After any other error the durability of
    /// the edit is unknown. All errors except `NoSpace` poison the store.
    pub(crate) fn commit(&mut self, edit: &Edit) -> Result<()> {
        self.check_sound()?;
        let chunk = self.log.begin();
        edit.encode(chunk);
        let payload = &chunk[HEADER_BYTES..];
        assert!(
            Edit::decode(payload).as_ref() == Ok(edit),
            "an edit reads back as it was written"
        );
        let payload_bytes = payload.len();
        match self.log.reserve(payload_bytes) {
            Err(error) if error.kind() == ErrorKind::NoSpace => return Err(error),
            outcome => self.poison_on_error(outcome)?,
        }
        let outcome = self.state.apply(edit).map_err(|contradiction| {
            Error::new(
                ErrorKind::Poisoned,
                format!("an edit contradicts the manifest and was not written: {contradiction}"),
            )
        });
        self.poison_on_error(outcome)?;
        let outcome = self.log.commit();
        self.poison_on_error(outcome)?;
        if self.state.is_unlogged {
            return Ok(()); // I5
        }
        let outcome = sync(&self.log);
        self.poison_on_error(outcome)?;
        // The edit is durable even if the marker cannot be written (I4). The next commit reports the
        // failure.
        self.log.append_marker().ok();
        Ok(())
    }

    pub(crate) fn state(&self) -> &ManifestState {
        &self.state
    }

    /// The folder that holds the manifest.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The number of the manifest.
    pub(crate) fn number(&self) -> FileNumber {
        self.log.number()
    }

    /// The bytes of the manifest.
    pub(crate) fn length(&self) -> u64 {
        self.log.end()
    }

    /// The end of the manifest.
    pub(crate) fn position(&self) -> ManifestPosition {
        ManifestPosition {
            number: self.number().0,
            offset: self.length(),
        }
    }

    /// Its end when `CURRENT` was written.
    pub(crate) fn recorded_position(&self) -> ManifestPosition {
        ManifestPosition {
            number: self.number().0,
            offset: self.recorded_end,
        }
    }

    /// Whether nothing more can be committed.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned || self.log.is_broken()
    }

    /// Whether most of the manifest is edits that a snapshot would replace.
    pub(crate) fn needs_rollover(&self) -> bool {
        let length = self.log.end();
        length > ROLLOVER_BYTES_MIN && length > ROLLOVER_FACTOR * self.snapshot_bytes
    }

    /// Switches to manifest `number`, a new id, which begins with a snapshot. The old manifest is then
    /// obsolete.
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed, and the store keeps the old manifest. Any other error
    /// [poisons](Self::is_poisoned) the store.
    pub(crate) fn roll_over(&mut self, number: FileNumber) -> Result<()> {
        self.check_sound()?;
        assert!(number > self.number(), "a manifest has a new number");
        let next_id = self.state.next_id;
        self.state.next_id = next_id.max(number.0 + 1);
        let log = match self.write_next(number) {
            Ok(log) => log,
            Err(error) => {
                self.state.next_id = next_id;
                // The system reports a failed sync of the folder only once. A later sync of the folder
                // would succeed without the lost names.
                self.is_poisoned |= error.kind() != ErrorKind::NoSpace;
                // The new manifest would use space of a full disk. If it cannot be removed now, the next
                // open removes it.
                let name = FileName::Manifest(number).to_string();
                self.vfs.remove(&self.directory.join(name)).ok();
                return Err(error);
            }
        };
        let outcome = install_current(&*self.vfs, &self.directory);
        self.poison_on_error(outcome)?;
        self.snapshot_bytes = log.end();
        self.current_length = Current::of(&log).length;
        self.recorded_end = log.end();
        self.log = log;
        Ok(())
    }

    /// Records the present length in `CURRENT`. After that, the loss of any edit so far is detected.
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed. Any other error poisons the store.
    pub(crate) fn record_length(&mut self) -> Result<()> {
        self.check_sound()?;
        if self.state.is_unlogged {
            if self.log.end() == self.recorded_end {
                return Ok(());
            }
            let outcome = sync(&self.log);
            self.poison_on_error(outcome)?;
        }
        let current = Current::of(&self.log);
        if current.length == self.current_length {
            return Ok(());
        }
        match write_new_current(&*self.vfs, &self.directory, current) {
            Err(error) if error.kind() == ErrorKind::NoSpace => return Err(error),
            outcome => self.poison_on_error(outcome)?,
        }
        let outcome = install_current(&*self.vfs, &self.directory);
        self.poison_on_error(outcome)?;
        self.current_length = current.length;
        self.recorded_end = self.log.end();
        Ok(())
    }

    /// Writes the next manifest and the next `CURRENT`.
    fn write_next(&self, number: FileNumber) -> Result<LogWriter> {
        let log = write_snapshot(&*self.vfs, &self.directory, number, &self.state)?;
        write_new_current(&*self.vfs, &self.directory, Current::of(&log))?;
        Ok(log)
    }

    fn check_sound(&self) -> Result<()> {
        if self.is_poisoned() {
            Err(Error::new(
                ErrorKind::Poisoned,
                format!(
                    "an earlier change of {} failed: reopen the database to write again",
                    FileName::Manifest(self.number())
                ),
            ))
        } else {
            Ok(())
        }
    }

    /// Ensures I3.
    fn poison_on_error<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.is_poisoned |= outcome.is_err();
        outcome
    }
}

fn sync(log: &LogWriter) -> Result<()> {
    log.shared().sync_through(log.end())
}

/// Writes manifest `number` with a snapshot of `state`, and makes it and its name durable.
fn write_snapshot(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
    state: &ManifestState,
) -> Result<LogWriter> {
    let name = FileName::Manifest(number).to_string();
    remove_leftover(vfs, directory, &name)?;
    let mut log = LogWriter::create(vfs, directory, &name, number, None)?;
    state.snapshot().encode(log.begin());
    log.commit()?;
    sync(&log)?;
    log.append_marker()?;
    sync_directory(vfs, directory)?;
    Ok(log)
}

/// Writes the next `CURRENT`, and makes it durable except for its name.
fn write_new_current(vfs: &dyn Vfs, directory: &Path, current: Current) -> Result<()> {
    let name = FileName::CurrentNew.to_string();
    remove_leftover(vfs, directory, &name)?;
    let path = directory.join(name);
    let file = vfs
        .create(&path)
        .map_err(|error| Error::io("create", &path, error))?;
    vfs::write_all_at(&*file, current.line().as_bytes(), 0)
        .map_err(|error| Error::io("write to", &path, error))?;
    file.sync_data()
        .map_err(|error| Error::io("sync", &path, error))
}

/// Replaces `CURRENT`.
fn install_current(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    let new = directory.join(FileName::CurrentNew.to_string());
    let current = directory.join(FileName::Current.to_string());
    vfs.rename(&new, &current)
        .map_err(|error| Error::io("rename", &new, error))?;
    sync_directory(vfs, directory)
}

/// Removes the file `name` of a failed attempt before a new file takes the name. After a crash the name
/// must not refer to the old file.
fn remove_leftover(vfs: &dyn Vfs, directory: &Path, name: &str) -> Result<()> {
    let path = directory.join(name);
    match vfs.remove(&path) {
        Ok(()) => sync_directory(vfs, directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", &path, error)),
    }
}

fn sync_directory(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    vfs.sync_dir(directory)
        .map_err(|error| Error::io("sync", directory, error).with_kind(ErrorKind::Io))
}

/// The content of `CURRENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Current {
    /// The current manifest.
    pub(crate) number: FileNumber,
    /// The durable length of the manifest at the write of `CURRENT`.
    pub(crate) length: u64,
}

impl Current {
    fn of(log: &LogWriter) -> Self {
        Self {
            number: log.number(),
            length: log.shared().synced(),
        }
    }

    fn line(self) -> String {
        let name = FileName::Manifest(self.number);
        let text = format!("{CURRENT_PREFIX}{name} {}", self.length);
        let sum = checksum(0, text.as_bytes());
        format!("{text} {sum:08x}\n")
    }

    /// Parses the line, which must equal the output of [`line`](Self::line).
    fn parse(bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes).ok()?;
        let mut words = line.strip_prefix(CURRENT_PREFIX)?.split(' ');
        let number = FileName::parse(words.next()?)?.number()?;
        let length = words.next()?.parse().ok()?;
        let current = Self { number, length };
        (current.line() == line).then_some(current)
    }
}

/// The content of `CURRENT`; `None` if no database exists.
pub(crate) fn read_current(vfs: &dyn Vfs, directory: &Path) -> Result<Option<Current>> {
    let name = FileName::Current.to_string();
    let path = directory.join(&name);
    let failure = |error: io::Error| Error::io("read", &path, error);
    let file = match vfs.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if holds_data(vfs, directory)? {
                return Err(Error::corruption(&name, 0, "the file is missing"));
            }
            return Ok(None);
        }
        outcome => outcome.map_err(|error| Error::open(&name, &path, error))?,
    };
    let length = file.length().map_err(failure)?;
    let mut bytes = vec![0; usize::try_from(length.min(CURRENT_BYTES_MAX)).unwrap_or(0)];
    vfs::read_exact_at(&*file, &mut bytes, 0).map_err(failure)?;
    match Current::parse(&bytes) {
        Some(current) => Ok(Some(current)),
        None => Err(Error::corruption(&name, 0, "it does not name a manifest")),
    }
}

/// Whether `directory` holds logs, tables, value files or discard lists.
fn holds_data(vfs: &dyn Vfs, directory: &Path) -> Result<bool> {
    let names = match vfs.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        outcome => outcome.map_err(|error| Error::io("list", directory, error))?,
    };
    Ok(names.iter().any(|name| {
        matches!(
            FileName::parse(name),
            Some(
                FileName::Wal(_)
                    | FileName::Table(_)
                    | FileName::Values(_)
                    | FileName::DiscardList(_)
            )
        )
    }))
}
