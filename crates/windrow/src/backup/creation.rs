//! A new backup.
//!
//! 1. Compare: find the pieces of each file. Those of the newest backup come first, as far as the file has the same bytes;
//!    the rest of the file is one more piece. So a file that has grown adds what it has grown by.
//! 2. Copy the pieces that the store lacks.
//! 3. Write the manifest. From now on the backup exists.
//!
//! A file that the newest backup has from the same open of the database is not read again: no number is used twice in an
//! open, and bytes that the database has recorded never change. All others are read, because a restored backup and its
//! source give one number to different files. An attempt that was interrupted has left pieces, which the next one finds.
//!
//! Concurrency: the caller holds the files.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::manifest::BackupManifest;
use super::names::{ObjectName, Piece};
use super::objects::{Bytes, Objects, read_manifest};
use super::store::BackupStore;
use super::transfer::{BackupPhase, Checked, DatabaseFile, Meter, Settings, is_damage, piece_of};
use crate::base::{Error, Result, SequenceNumber};
use crate::manifest::ManifestState;
use crate::manifest::names::FileName;
use crate::vfs::File;

/// A file of more pieces than this becomes one piece again, so that no file falls into ever more of them.
const PIECES_MAX: usize = 64;

/// Opens a file of the database; the path is for messages.
type OpenFile<'a> = dyn Fn(FileName) -> Result<(Arc<dyn File>, PathBuf)> + 'a;

/// What a backup is made of. The files do not change up to their lengths, and stay while this does.
pub(crate) struct Contents<'a> {
    /// A random number that this open of the database has drawn.
    pub(crate) instance: u128,
    /// The newest sequence number.
    pub(crate) sequence: SequenceNumber,
    pub(crate) state: ManifestState,
    /// All files that the state names, with their lengths.
    pub(crate) files: BTreeMap<FileName, u64>,
    /// Opens one of them.
    pub(crate) open: Box<OpenFile<'a>>,
}

/// What a new backup has cost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of the backup.
    pub number: u64,
    /// The newest sequence number that it holds.
    pub sequence: SequenceNumber,
    /// The files of the database.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    /// The bytes that were copied to the store, the manifest of the backup included.
    pub copied_bytes: u64,
}

/// The attempt to make a backup.
pub(super) struct Creation<'a> {
    pub(super) store: &'a dyn BackupStore,
    pub(super) settings: &'a Settings,
    pub(super) wanted: &'a dyn Fn() -> Result<()>,
}

impl Creation<'_> {
    pub(super) fn run(&self, contents: Contents<'_>) -> Result<BackupReport> {
        let objects = Objects::list(self.store)?;
        let newest = objects.backups.last().copied().unwrap_or(0);
        let number = newest.checked_add(1).ok_or_else(|| {
            Error::invalid_argument(format!("no number is left after backup {newest}"))
        })?;
        let earlier = self.newest_sound(&objects)?;
        let mut meter = Meter::new(self.settings, self.wanted);

        let files = Self::compare(&contents, earlier, &objects, &mut meter)?;
        let bytes = contents.files.values().sum();
        let mut copied_bytes = self.copy(&contents, &files, objects, &mut meter)?;
        let now = self.settings.runtime.unix_time();
        let manifest = BackupManifest {
            created: Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
            instance: contents.instance,
            sequence: contents.sequence,
            files,
            state: contents.state,
        };
        let encoded = manifest.encode(number);
        assert!(
            BackupManifest::decode(number, &encoded).as_ref().ok() == Some(&manifest),
            "the manifest of a backup reads back as it was written"
        );
        let name = ObjectName::Manifest(number).to_string();
        self.store.put(&name, &mut Bytes(&encoded))?;
        copied_bytes += encoded.len() as u64;
        Ok(BackupReport {
            number,
            sequence: manifest.sequence,
            files: manifest.files.len() as u64,
            bytes,
            copied_bytes,
        })
    }

    /// The pieces of all files.
    fn compare(
        contents: &Contents<'_>,
        mut earlier: Option<BackupManifest>,
        objects: &Objects,
        meter: &mut Meter<'_>,
    ) -> Result<BTreeMap<FileName, Vec<Piece>>> {
        meter.begin(BackupPhase::Comparing, contents.files.values().sum());
        let mut files = BTreeMap::new();
        for (&name, &length) in &contents.files {
            let known = earlier.as_mut().and_then(|earlier| {
                let pieces = mem::take(earlier.files.get_mut(&name)?);
                let is_same = earlier.instance == contents.instance;
                Some(Known { pieces, is_same })
            });
            let pieces = compare(contents, name, length, known.as_ref(), objects, meter)?;
            files.insert(name, pieces);
        }
        Ok(files)
    }

    /// Copies the pieces of `files` that the store lacks, and returns their bytes.
    fn copy(
        &self,
        contents: &Contents<'_>,
        files: &BTreeMap<FileName, Vec<Piece>>,
        mut objects: Objects,
        meter: &mut Meter<'_>,
    ) -> Result<u64> {
        let missing = files
            .values()
            .flatten()
            .filter(|piece| !objects.has(**piece));
        let missing: BTreeSet<&Piece> = missing.collect();
        let bytes = missing.iter().map(|piece| piece.length).sum();
        meter.begin(BackupPhase::Copying, bytes);
        for (&name, pieces) in files {
            let mut file = None;
            let mut offset = 0;
            for &piece in pieces {
                let end = offset + piece.length;
                if !objects.has(piece) {
                    let file = match &mut file {
                        Some(file) => file,
                        none => none.insert(open(contents, name)?),
                    };
                    let part = file.part(offset, end, meter);
                    let mut checked = Checked::new(part, piece, name.to_string());
                    self.store.put(&piece.to_string(), &mut checked)?;
                    objects.pieces.insert(piece, piece.length);
                }
                offset = end;
            }
        }
        Ok(bytes)
    }

    /// The newest backup whose manifest can be read.
    fn newest_sound(&self, objects: &Objects) -> Result<Option<BackupManifest>> {
        for &number in objects.backups.iter().rev() {
            match read_manifest(self.store, number) {
                Ok(manifest) => return Ok(Some(manifest)),
                Err(error) if is_damage(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The pieces that an earlier backup has of a file of the same name.
struct Known {
    pieces: Vec<Piece>,
    /// Whether it is the same file.
    is_same: bool,
}

/// The pieces of the file `name`.
fn compare(
    contents: &Contents<'_>,
    name: FileName,
    length: u64,
    known: Option<&Known>,
    objects: &Objects,
    meter: &mut Meter<'_>,
) -> Result<Vec<Piece>> {
    let (mut pieces, mut offset) = (Vec::new(), 0);
    let mut file = None;
    let mut read = |start: u64, end: u64, meter: &mut Meter<'_>| {
        let file = match &mut file {
            Some(file) => file,
            none => none.insert(open(contents, name)?),
        };
        piece_of(&mut file.part(start, end, meter), end - start)
    };
    for piece in known.into_iter().flat_map(|known| &known.pieces) {
        let end = offset + piece.length;
        if end > length {
            break;
        }
        let is_same = known.is_some_and(|known| known.is_same);
        if is_same && objects.has(*piece) {
            meter.skip(piece.length)?;
        } else if read(offset, end, meter)? != *piece {
            break;
        }
        pieces.push(*piece);
        offset = end;
    }
    if offset < length && pieces.len() >= PIECES_MAX {
        (pieces, offset) = (Vec::new(), 0);
    }
    if offset < length {
        pieces.push(read(offset, length, meter)?);
    }
    Ok(pieces)
}

fn open(contents: &Contents<'_>, name: FileName) -> Result<DatabaseFile> {
    let (file, path) = (contents.open)(name)?;
    Ok(DatabaseFile::new(file, path))
}
