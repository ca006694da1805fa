//! The manifest of a backup: what the database was, and which pieces its files are.
//!
//! The layout is in `docs/backup.md`.
//!
//! Invariants:
//! - I1. One checksum covers all bytes and the number of the backup.
//! - I2. The files are those that the database's state names, with the same lengths.
//!
//! Concurrency: none; a value.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::damage::{ANOTHER_BACKUP, damage};
use super::names::{ObjectName, Piece};
use crate::base::{Result, SequenceNumber};
use crate::codec::Reader;
use crate::codec::checksum::long_checksum;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::manifest::names::{FILE_NUMBER_MAX, FileName};
use crate::manifest::{Edit, ManifestState, Record};

/// The first bytes.
const MAGIC: [u8; 8] = *b"\x89WBACKUP";

/// The version of the layout that this build writes and reads.
const VERSION: u32 = 1;

/// The version of the same with a binding to an archive.
const BOUND_VERSION: u32 = 2;

/// The bytes of the checksum, which ends the manifest.
const CHECKSUM_BYTES: usize = 8;

/// The longest manifest: about half a million tables.
pub(crate) const MANIFEST_BYTES_MAX: usize = 256 << 20;

/// The longest name of a file.
const NAME_BYTES_MAX: usize = 64;

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackupManifest {
    /// When it was made, since the start of 1970, in whole milliseconds.
    pub(crate) created: Duration,
    /// The open of the database that it was made in.
    pub(crate) instance: u128,
    /// The newest sequence number that it holds.
    pub(crate) sequence: SequenceNumber,
    /// The pieces of each file, in their order.
    pub(crate) files: BTreeMap<FileName, Vec<Piece>>,
    /// The state of the database's manifest.
    pub(crate) state: ManifestState,
    /// The archive of the database, if it has one.
    pub(crate) binding: Option<Binding>,
}

/// How a backup belongs to a history of the [archive](super::archive). Behind the place, up to which the database was
/// archived, it had these records in its log, up to the end of the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) history: u128,
    pub(crate) place: SequenceNumber,
    /// The digest of the records.
    pub(crate) digest: u128,
}

impl BackupManifest {
    /// The pieces of all files.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.files.values().flatten().copied()
    }

    /// The bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let lengths = self.pieces().map(|piece| piece.length);
        lengths.fold(0, u64::saturating_add)
    }

    /// The bytes of the manifest of backup `number`.
    pub(crate) fn encode(&self, number: u64) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let version = self.binding.map_or(VERSION, |_| BOUND_VERSION);
        bytes.extend(version.to_le_bytes());
        let milliseconds = u64::try_from(self.created.as_millis()).unwrap_or(u64::MAX);
        bytes.extend(milliseconds.to_le_bytes());
        bytes.extend(self.instance.to_le_bytes());
        put_varint(&mut bytes, self.sequence);
        put_varint(&mut bytes, self.files.len() as u64);
        for (name, pieces) in &self.files {
            put_bytes(&mut bytes, name.to_string().as_bytes());
            put_varint(&mut bytes, pieces.len() as u64);
            for piece in pieces {
                put_varint(&mut bytes, piece.length);
                bytes.extend(piece.checksum.to_le_bytes());
            }
        }
        let mut edit = Vec::new();
        self.state.snapshot().encode(&mut edit);
        put_bytes(&mut bytes, &edit);
        if let Some(binding) = &self.binding {
            bytes.extend(binding.history.to_le_bytes());
            put_varint(&mut bytes, binding.place);
            bytes.extend(binding.digest.to_le_bytes());
        }
        let sum = long_checksum(number, &bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Refuses what cannot be the beginning of the manifest of backup `number`.
    pub(crate) fn check_beginning(number: u64, bytes: &[u8]) -> Result<()> {
        let is_manifest = bytes.iter().zip(&MAGIC).all(|(own, magic)| own == magic);
        if is_manifest && bytes.len() <= MANIFEST_BYTES_MAX {
            return Ok(());
        }
        let file = ObjectName::Manifest(number).to_string();
        Err(damage(&file, 0, "it is no manifest of a backup"))
    }

    /// Reads the manifest of backup `number`.
    ///
    /// # Errors
    /// `Corruption`, which names the manifest; `Unsupported` for a newer version.
    pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<Self> {
        let file = ObjectName::Manifest(number).to_string();
        let length = bytes.len().saturating_sub(CHECKSUM_BYTES);
        let (body, sum) = bytes.split_at(length);
        Self::check_beginning(number, bytes)?;
        if sum != long_checksum(number, body).to_le_bytes() {
            return Err(damage(&file, 0, "its checksum is wrong"));
        }
        let manifest =
            read(body).map_err(|error| error.in_file(&file, 0).with_next_step(ANOTHER_BACKUP))?;
        manifest.check().map_err(|what| damage(&file, 0, what))?;
        Ok(manifest)
    }

    /// I2.
    fn check(&self) -> std::result::Result<(), String> {
        if self.state.next_id >= FILE_NUMBER_MAX / 2 {
            let number = self.state.next_id;
            return Err(format!(
                "it has a number that no database reaches: {number}"
            ));
        }
        let logs = self.state.logs.iter().copied().map(FileName::Wal);
        let ends = |name: &FileName| self.state.log_ends.get(&name.number()?).copied();
        let logs = logs.map(|name| (name, ends(&name)));
        let files = self
            .state
            .files()
            .map(|(name, length)| (name, Some(length)));
        let named: BTreeMap<FileName, Option<u64>> = logs.chain(files).collect();
        if let Some(extra) = self.files.keys().find(|name| !named.contains_key(name)) {
            return Err(format!("it has {extra}, which the database does not name"));
        }
        for (name, length) in named {
            let pieces = self.files.get(&name);
            let pieces = pieces.ok_or_else(|| format!("it lacks {name}"))?;
            let mut lengths = pieces.iter().map(|piece| piece.length);
            let sum = lengths.try_fold(0, u64::checked_add);
            if sum.is_none() || length.is_some_and(|length| sum != Some(length)) {
                return Err(format!("its {name} has another length than recorded"));
            }
        }
        Ok(())
    }
}

fn read(body: &[u8]) -> std::result::Result<BackupManifest, DecodeError> {
    let mut reader = Reader::new(body);
    reader.array::<8>("the magic")?;
    let is_bound = match reader.u32("the version")? {
        VERSION => false,
        BOUND_VERSION => true,
        _ => return Err(reader.unsupported("its version")),
    };
    let created = Duration::from_millis(reader.u64("the time")?);
    let instance = u128::from_le_bytes(reader.array("the instance")?);
    let sequence = reader.varint("the sequence number")?;
    let mut files: BTreeMap<FileName, Vec<Piece>> = BTreeMap::new();
    for _ in 0..reader.varint("the count of files")? {
        let what = "the name of a file";
        let name = reader.prefixed_bytes(NAME_BYTES_MAX, what)?;
        let name = str::from_utf8(name).ok().and_then(FileName::parse);
        let name = name.filter(|name| {
            use FileName::{DiscardList, Table, Values, Wal};
            matches!(name, Wal(_) | Table(_) | Values(_) | DiscardList(_))
        });
        let name = name.ok_or_else(|| reader.error(what))?;
        if files
            .last_key_value()
            .is_some_and(|(last, _)| *last >= name)
        {
            return Err(reader.error("the order of files"));
        }
        let mut pieces = Vec::new();
        for _ in 0..reader.varint("the count of pieces")? {
            let length = reader.varint("the length of a piece")?;
            if length == 0 {
                return Err(reader.error("a piece without bytes"));
            }
            let checksum = u128::from_le_bytes(reader.array("the checksum of a piece")?);
            pieces.push(Piece { checksum, length });
        }
        files.insert(name, pieces);
    }
    let edit = reader.prefixed_bytes(usize::MAX, "the state of the database")?;
    let start = reader.position() - edit.len();
    let mut binding = None;
    if is_bound {
        binding = Some(Binding {
            history: u128::from_le_bytes(reader.array("the history")?),
            place: reader.varint_at_most(sequence, "the place in the history")?,
            digest: u128::from_le_bytes(reader.array("the digest of the records")?),
        });
    }
    reader.finish("the end")?;
    Ok(BackupManifest {
        created,
        instance,
        sequence,
        files,
        state: read_state(edit, start)?,
        binding,
    })
}

/// A time that the system can show.
pub(super) fn time_of(since_1970: Duration) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(since_1970);
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The state that the edit at offset `start` describes.
fn read_state(edit: &[u8], start: usize) -> std::result::Result<ManifestState, DecodeError> {
    let edit = Edit::decode(edit).map_err(|error| DecodeError {
        offset: start + error.offset,
        ..error
    })?;
    let contradiction = DecodeError::damaged(start, "the state of the database");
    if edit.records.first() != Some(&Record::FormatVersion) {
        return Err(contradiction);
    }
    let mut state = ManifestState::default();
    state.apply(&edit).map_err(|_| contradiction)?;
    Ok(state)
}

#[cfg(test)]
mod tests;
