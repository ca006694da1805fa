//! A new backup.
//!
//! 1. For one file after the other: find its pieces. Those of the newest backup come first, as far as the file has the same
//!    bytes; the rest of the file is one more piece. So a file that has grown adds what it has grown by. Then copy the pieces
//!    that the store lacks.
//! 2. Write the manifest. From now on the backup exists.
//!
//! A file that the newest backup has from the same open of the database is not read again: no number is used twice in an
//! open, and bytes that the database has recorded never change. All others are read, because a restored backup and its
//! source give one number to different files. An attempt that was interrupted has left pieces, which the next one finds.
//!
//! Concurrency: the caller holds the files.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::manifest::{BackupManifest, Binding, MANIFEST_BYTES_MAX};
use super::names::{ObjectName, Piece};
use super::objects::{Bytes, Objects, read_manifest};
use super::store::BackupStore;
use super::transfer::{BackupPhase, Checked, DatabaseFile, Meter, Part, Settings, piece_of};
use crate::base::{Error, ErrorKind, Result, SequenceNumber};
use crate::manifest::ManifestState;
use crate::manifest::names::FileName;
use crate::vfs::File;

/// A file of more pieces than this becomes one piece again, so that no file falls into ever more of them.
const PIECES_MAX: usize = 64;

/// Opens a file of the database.
type OpenFile<'a> = dyn Fn(FileName) -> Result<Arc<dyn File>> + 'a;

/// What a backup is made of. The files do not change up to their lengths, and stay while this does.
pub(crate) struct Contents<'a> {
    /// A random number that this open of the database has drawn.
    pub(crate) instance: u128,
    /// The newest sequence number.
    pub(crate) sequence: SequenceNumber,
    pub(crate) state: ManifestState,
    /// How it belongs to the archive of the database.
    pub(crate) binding: Option<Binding>,
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
        let mut objects = Objects::list(self.store)?;
        let newest = objects.backups.last().copied().unwrap_or(0);
        let number = newest.checked_add(1).ok_or_else(|| {
            Error::invalid_argument(format!("no number is left after backup {newest}"))
        })?;
        let mut earlier = self.newest_readable(&objects);
        let is_same = earlier.as_ref().is_some_and(|it| continues(&contents, it));
        let bytes = contents.files.values().sum();
        let mut meter = Meter::new(self.settings, self.wanted);
        meter.begin(BackupPhase::Copying, bytes);
        let mut files = BTreeMap::new();
        let mut copied_bytes = 0;
        for (&name, &length) in &contents.files {
            let known = earlier.as_mut().and_then(|it| it.files.get_mut(&name));
            let known = Known {
                pieces: known.map(mem::take).unwrap_or_default(),
                is_same,
            };
            let mut file = Source::new(&contents, name);
            let pieces = compare(&mut file, length, &known, &objects, &mut meter)?;
            copied_bytes += self.copy(&mut file, &pieces, &mut objects, &mut meter)?;
            files.insert(name, pieces);
        }
        let now = self.settings.runtime.unix_time();
        let manifest = BackupManifest {
            created: Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)),
            instance: contents.instance,
            sequence: contents.sequence,
            files,
            state: contents.state,
            binding: contents.binding,
        };
        let encoded = manifest.encode(number);
        if encoded.len() > MANIFEST_BYTES_MAX {
            let message = "the database has too many files for a backup";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
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

    /// Copies the pieces of `file` that the store lacks, and returns their bytes.
    fn copy(
        &self,
        file: &mut Source<'_>,
        pieces: &[Piece],
        objects: &mut Objects,
        meter: &mut Meter<'_>,
    ) -> Result<u64> {
        let (mut offset, mut copied) = (0, 0);
        for &piece in pieces {
            let end = offset + piece.length;
            if !objects.has(piece) {
                meter.expect(piece.length);
                let name = file.name.to_string();
                let mut checked = Checked::new(file.part(offset, end, meter)?, piece, name);
                self.store.put(&piece.to_string(), &mut checked)?;
                objects.pieces.insert(piece, piece.length);
                copied += piece.length;
            }
            offset = end;
        }
        Ok(copied)
    }

    /// The newest backup whose manifest can be read: without one, all files are read.
    fn newest_readable(&self, objects: &Objects) -> Option<BackupManifest> {
        let mut newest = objects.backups.iter().rev();
        newest.find_map(|number| read_manifest(self.store, *number).ok())
    }
}

/// Whether `earlier` is a backup of the same open of the database. The numbers of an open only grow.
fn continues(contents: &Contents<'_>, earlier: &BackupManifest) -> bool {
    earlier.instance == contents.instance
        && earlier.sequence <= contents.sequence
        && earlier.state.next_id <= contents.state.next_id
}

/// The pieces that an earlier backup has of a file of the same name.
struct Known {
    pieces: Vec<Piece>,
    /// Whether it is the same file.
    is_same: bool,
}

/// A file of the database, which is opened when it is read.
struct Source<'a> {
    open: &'a OpenFile<'a>,
    name: FileName,
    file: Option<DatabaseFile>,
}

impl<'a> Source<'a> {
    fn new(contents: &'a Contents<'a>, name: FileName) -> Self {
        Self {
            open: &*contents.open,
            name,
            file: None,
        }
    }

    /// The bytes from `offset` up to `end`.
    fn part<'s, 'm>(
        &'s mut self,
        offset: u64,
        end: u64,
        meter: &'s mut Meter<'m>,
    ) -> Result<Part<'s, 'm>> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(DatabaseFile::new((self.open)(self.name)?, self.name)),
        };
        Ok(file.part(offset, end, meter))
    }
}

/// The pieces of the first `length` bytes of `file`.
fn compare(
    file: &mut Source<'_>,
    length: u64,
    known: &Known,
    objects: &Objects,
    meter: &mut Meter<'_>,
) -> Result<Vec<Piece>> {
    let (mut pieces, mut offset) = (Vec::new(), 0);
    for &piece in &known.pieces {
        let end = offset + piece.length;
        if end > length {
            break;
        }
        if known.is_same && objects.has(piece) {
            meter.skip(piece.length)?;
        } else if piece_of(&mut file.part(offset, end, meter)?, piece.length)? != piece {
            // The rest is read from here on.
            meter.expect(piece.length);
            break;
        }
        pieces.push(piece);
        offset = end;
    }
    if offset < length && pieces.len() >= PIECES_MAX {
        meter.expect(offset);
        (pieces, offset) = (Vec::new(), 0);
    }
    if offset < length {
        let mut rest = file.part(offset, length, meter)?;
        pieces.push(piece_of(&mut rest, length - offset)?);
    }
    Ok(pieces)
}
