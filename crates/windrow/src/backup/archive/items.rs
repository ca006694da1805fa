//! The items of a stretch: what the records of the log have committed, without pointers.
//!
//! The layout is in `docs/backup.md`.
//!
//! I1. An item that decodes encodes to the same bytes.
//! I2. Each record of the log is one item, with its checksum. So whoever has the log can compare it with the archive, also
//!     where values or keyspaces are gone.
//!
//! Concurrency: none; values.

use crate::base::SequenceNumber;
use crate::base::key::SEQUENCE_MAX;
use crate::codec::Reader;
use crate::codec::checksum::{ContentChecksum, long_checksum};
use crate::codec::reader::DecodeError;
use crate::codec::varint::put_bytes;
use crate::log::batch;
use crate::manifest::Edit;

/// A part of a stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A record with entries: the checksum of the record, and a payload as in the log, whose entries have their values.
    Batch { record: u64, payload: &'a [u8] },
    /// A record that takes one number, and the event that has it, with a new keyspace. The edit may be empty.
    Numbered { record: u64, edit: Edit },
    /// A keyspace that exists from here on at the latest, without a number.
    Keyspace(Edit),
}

mod code {
    pub(super) const BATCH: u8 = 0;
    pub(super) const NUMBERED: u8 = 1;
    pub(super) const KEYSPACE: u8 = 2;
}

impl<'a> Item<'a> {
    /// Appends the item to `bytes`.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let put_edit = |bytes: &mut Vec<u8>, edit: &Edit| {
            let mut body = Vec::new();
            edit.encode(&mut body);
            put_bytes(bytes, &body);
        };
        match self {
            Self::Batch { record, payload } => {
                bytes.push(code::BATCH);
                bytes.extend(record.to_le_bytes());
                put_bytes(bytes, payload);
            }
            Self::Numbered { record, edit } => {
                bytes.push(code::NUMBERED);
                bytes.extend(record.to_le_bytes());
                put_edit(bytes, edit);
            }
            Self::Keyspace(edit) => {
                bytes.push(code::KEYSPACE);
                put_edit(bytes, edit);
            }
        }
    }

    /// Reads the next item.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let code = reader.u8("the kind of an item")?;
        let record = match code {
            code::BATCH | code::NUMBERED => reader.u64("the checksum of a record")?,
            code::KEYSPACE => 0,
            _ => return Err(start.unsupported("an unknown kind of item")),
        };
        let body = reader.prefixed_bytes(usize::MAX, "the body of an item")?;
        if code == code::BATCH {
            let payload = body;
            return Ok(Self::Batch { record, payload });
        }
        let offset = reader.position() - body.len();
        let edit = Edit::decode(body).map_err(|error| DecodeError {
            offset: offset + error.offset,
            ..error
        })?;
        Ok(match code {
            code::NUMBERED => Self::Numbered { record, edit },
            _ => Self::Keyspace(edit),
        })
    }

    /// The last sequence number of the item, whose first one is `next`; `None` if it has none.
    pub(crate) fn last(&self, next: SequenceNumber) -> Result<Option<SequenceNumber>, DecodeError> {
        match self {
            Self::Batch { payload, .. } => batch::last_sequence(payload, next).map(Some),
            Self::Numbered { .. } if next > SEQUENCE_MAX => Err(DecodeError::damaged(
                0,
                "a sequence number beyond the largest",
            )),
            Self::Numbered { .. } => Ok(Some(next)),
            Self::Keyspace(_) => Ok(None),
        }
    }

    /// The checksum of its record.
    pub(crate) fn record(&self) -> Option<u64> {
        match self {
            Self::Batch { record, .. } | Self::Numbered { record, .. } => Some(*record),
            Self::Keyspace(_) => None,
        }
    }
}

/// A checksum over consecutive records of a log, as they are there.
#[derive(Default)]
pub(crate) struct RecordsDigest(Option<ContentChecksum>);

impl RecordsDigest {
    /// The checksum of the record with the payload `payload`, whose first entry has the sequence number `first`.
    pub(crate) fn of_record(first: SequenceNumber, payload: &[u8]) -> u64 {
        long_checksum(first, payload)
    }

    /// Adds the next record by its checksum.
    pub(crate) fn add(&mut self, record: u64) {
        let sum = self.0.get_or_insert_with(ContentChecksum::new);
        sum.update(&record.to_le_bytes());
    }

    /// The digest so far: 0 without a record.
    pub(crate) fn finish(&self) -> u128 {
        self.0.as_ref().map_or(0, ContentChecksum::finish)
    }
}
