//! The description of a stretch, and the way through its changes.
//!
//! The layout is in `docs/backup.md`.
//!
//! I1. One checksum covers all bytes, which repeat the name of the object.
//! I2. The items of a stretch have all numbers from its first to its last, and the digest that it records.
//!
//! Concurrency: none; values.

use std::time::Duration;

use super::items::{Item, RecordsDigest};
use crate::backup::damage::damage;
use crate::backup::names::{Piece, StretchName};
use crate::backup::objects::{Objects, get_piece};
use crate::backup::store::BackupStore;
use crate::backup::transfer::{Meter, pass_all};
use crate::base::limits::BATCH_BYTES_MAX;
use crate::base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use crate::codec::Reader;
use crate::codec::checksum::long_checksum;
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_varint;

/// The first bytes.
const MAGIC: [u8; 8] = *b"\x89WARCHIV";

/// The version of the layout that this build writes and reads.
const VERSION: u32 = 1;

/// The bytes of the checksum, which ends the description.
const CHECKSUM_BYTES: usize = 8;

/// The longest description.
pub(crate) const STRETCH_BYTES_MAX: usize = 16 << 20;

/// The longest piece: a little more than one item with the largest batch.
const PIECE_BYTES_MAX: u64 = 2 * BATCH_BYTES_MAX as u64;

/// What a restore has to know of a stretch before it reads the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// A bulk load or an ingestion has added tables. Only a backup has their entries.
    TablesAdded(SequenceNumber),
    /// The keyspace was dropped before these changes were archived. Values, or what the keyspace was, are missing in changes
    /// that end at these numbers, the first and the last one.
    LeftOut {
        keyspace: KeyspaceId,
        first: SequenceNumber,
        last: SequenceNumber,
    },
    /// The keyspace was dropped, with all that is missing.
    Dropped {
        keyspace: KeyspaceId,
        sequence: SequenceNumber,
    },
}

/// A stretch of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) name: StretchName,
    /// When the archiving began, since the start of 1970, in whole milliseconds: all of its changes were committed before.
    pub(crate) moment: Duration,
    /// The digest of its records.
    pub(crate) digest: u128,
    /// The pieces of its items, in their order. Each has whole items.
    pub(crate) pieces: Vec<Piece>,
    pub(crate) notes: Vec<Note>,
}

impl Stretch {
    /// The bytes of all pieces.
    pub(crate) fn bytes(&self) -> u64 {
        let lengths = self.pieces.iter().map(|piece| piece.length);
        lengths.fold(0, u64::saturating_add)
    }

    /// # Errors
    /// `Corruption` that names the stretch and a piece that is not there.
    pub(crate) fn check_whole(&self, objects: &Objects) -> Result<()> {
        let checked = objects.check_pieces(self.pieces.iter().copied());
        checked.map_err(|error| of_stretch(self.name, error))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.name.history.to_le_bytes());
        put_varint(&mut bytes, self.name.first);
        put_varint(&mut bytes, self.name.last);
        let milliseconds = u64::try_from(self.moment.as_millis()).unwrap_or(u64::MAX);
        bytes.extend(milliseconds.to_le_bytes());
        bytes.extend(self.digest.to_le_bytes());
        put_varint(&mut bytes, self.pieces.len() as u64);
        for piece in &self.pieces {
            put_varint(&mut bytes, piece.length);
            bytes.extend(piece.checksum.to_le_bytes());
        }
        put_varint(&mut bytes, self.notes.len() as u64);
        for note in &self.notes {
            note.encode(&mut bytes);
        }
        let sum = long_checksum(0, &bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads the description of the stretch `name`.
    ///
    /// # Errors
    /// `Corruption`, which names the object; `Unsupported` for a newer version.
    pub(crate) fn decode(name: StretchName, bytes: &[u8]) -> Result<Self> {
        let file = name.to_string();
        check_beginning(&file, bytes)?;
        let length = bytes.len().saturating_sub(CHECKSUM_BYTES);
        let (body, sum) = bytes.split_at(length);
        if sum != long_checksum(0, body).to_le_bytes() {
            return Err(damage(&file, 0, "its checksum is wrong"));
        }
        let stretch = read_body(body).map_err(|error| error.in_file(&file, 0))?;
        if stretch.name != name {
            return Err(damage(&file, 0, "it is another stretch"));
        }
        Ok(stretch)
    }
}

/// Refuses what cannot be the beginning of a description.
fn check_beginning(file: &str, bytes: &[u8]) -> Result<()> {
    let is_stretch = bytes.iter().zip(&MAGIC).all(|(own, magic)| own == magic);
    if is_stretch && bytes.len() <= STRETCH_BYTES_MAX {
        return Ok(());
    }
    Err(damage(file, 0, "it is no stretch of an archive"))
}

fn read_body(body: &[u8]) -> std::result::Result<Stretch, DecodeError> {
    let mut reader = Reader::new(body);
    reader.array::<8>("the magic")?;
    if reader.u32("the version")? != VERSION {
        return Err(reader.unsupported("its version"));
    }
    let name = StretchName {
        history: u128::from_le_bytes(reader.array("the history")?),
        first: reader.varint("the first sequence number")?,
        last: reader.varint("the last sequence number")?,
    };
    let moment = Duration::from_millis(reader.u64("the time")?);
    let digest = u128::from_le_bytes(reader.array("the digest of the records")?);
    let mut pieces = Vec::new();
    for _ in 0..reader.varint("the count of pieces")? {
        let start = reader.clone();
        let length = reader.varint_at_most(PIECE_BYTES_MAX, "the length of a piece")?;
        if length == 0 {
            return Err(start.error("a piece without bytes"));
        }
        let checksum = u128::from_le_bytes(reader.array("the checksum of a piece")?);
        pieces.push(Piece { checksum, length });
    }
    let mut notes = Vec::new();
    for _ in 0..reader.varint("the count of notes")? {
        notes.push(Note::read(name, &mut reader)?);
    }
    reader.finish("the end")?;
    Ok(Stretch {
        name,
        moment,
        digest,
        pieces,
        notes,
    })
}

impl Note {
    fn encode(self, bytes: &mut Vec<u8>) {
        let (code, keyspace, first, last) = match self {
            Self::TablesAdded(sequence) => (0, KeyspaceId(0), sequence, sequence),
            Self::LeftOut {
                keyspace,
                first,
                last,
            } => (1, keyspace, first, last),
            Self::Dropped { keyspace, sequence } => (2, keyspace, sequence, sequence),
        };
        bytes.push(code);
        put_varint(bytes, u64::from(keyspace.0));
        put_varint(bytes, first);
        put_varint(bytes, last - first);
    }

    fn read(name: StretchName, reader: &mut Reader<'_>) -> std::result::Result<Self, DecodeError> {
        let start = reader.clone();
        let code = reader.u8("the kind of a note")?;
        let keyspace = reader.varint_at_most(u64::from(u32::MAX), "the keyspace of a note")?;
        let keyspace = KeyspaceId(u32::try_from(keyspace).unwrap_or(u32::MAX));
        let what = "the place of a note";
        let first = reader.varint_at_most(name.last, what)?;
        let length = reader.varint_at_most(name.last - first, what)?;
        let last = first + length;
        if first < name.first || code != 1 && length > 0 || code == 0 && keyspace.0 > 0 {
            return Err(start.error(what));
        }
        Ok(match code {
            0 => Self::TablesAdded(first),
            1 => Self::LeftOut {
                keyspace,
                first,
                last,
            },
            2 => Self::Dropped {
                keyspace,
                sequence: first,
            },
            _ => return Err(start.unsupported("an unknown kind of note")),
        })
    }
}

/// The description of the stretch `name`. Of a file that is none it reads only the beginning.
///
/// # Errors
/// `Corruption`, `Unsupported` or `Io`, which name it.
pub(crate) fn read(store: &dyn BackupStore, name: StretchName) -> Result<Stretch> {
    let file = name.to_string();
    let read = || {
        let mut bytes = Vec::new();
        let mut source = store.get(&file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => damage(&file, 0, "it is missing"),
            _ => error,
        })?;
        pass_all(&mut *source, |piece| {
            bytes.extend_from_slice(piece);
            check_beginning(&file, &bytes)
        })?;
        Stretch::decode(name, &bytes)
    };
    read().map_err(|error| of_stretch(name, error))
}

/// What gets each item with its first and its last sequence number. It returns whether it wants more.
type Visit<'a> = dyn FnMut(&Item<'_>, SequenceNumber, Option<SequenceNumber>) -> Result<bool> + 'a;

/// Gives `visit` each item of `stretch` with its first and its last sequence number, which an item without one does not
/// have, until it returns false. One piece at a time is in memory. Returns whether all items were visited.
///
/// # Errors
/// `Corruption`, `Unsupported` or `Io`, which name the stretch; those of `visit`.
pub(crate) fn each_item(
    store: &dyn BackupStore,
    stretch: &Stretch,
    meter: &mut Meter<'_>,
    visit: &mut Visit<'_>,
) -> Result<bool> {
    let name = stretch.name;
    let mut next = name.first;
    let mut digest = RecordsDigest::default();
    for &piece in &stretch.pieces {
        let mut bytes = Vec::new();
        let read = get_piece(store, piece, meter).and_then(|mut source| {
            pass_all(&mut source, |part| {
                bytes.extend_from_slice(part);
                Ok(())
            })
        });
        read.map_err(|error| of_stretch(name, error))?;
        let in_piece = |error: DecodeError| of_stretch(name, error.in_file(&piece.to_string(), 0));
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            let start = reader.position();
            let item = Item::read(&mut reader).map_err(in_piece)?;
            let last = item.last(next).map_err(|error| {
                in_piece(DecodeError {
                    offset: start + error.offset,
                    ..error
                })
            })?;
            if let Some(record) = item.record() {
                digest.add(record);
            }
            if !visit(&item, next, last)? {
                return Ok(false);
            }
            next = last.map_or(next, |last| last + 1);
        }
    }
    // I2
    if next != name.last + 1 || digest.finish() != stretch.digest {
        let error = damage(&name.to_string(), 0, "its pieces have other changes");
        return Err(of_stretch(name, error));
    }
    Ok(true)
}

/// `error` with the stretch that it is about.
pub(crate) fn of_stretch(name: StretchName, error: Error) -> Error {
    error.context(format_args!(
        "the archived changes {} to {} cannot be used",
        name.first, name.last
    ))
}
