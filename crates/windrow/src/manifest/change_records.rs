//! The records of consumers of changes: places, kept logs and events, and their bytes. See "Manifest" in `docs/format.md`.
//!
//! I1. A field that decodes encodes to the same bytes.

use crate::base::expiry::MOMENT_MAX;
use crate::base::key::SEQUENCE_MAX;
use crate::base::{KeyspaceId, Moment, SequenceNumber};
use crate::codec::Reader;
use crate::codec::reader::DecodeError;

use super::field_codec::Field;

/// A named consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConsumerState {
    /// It has done with every change up to here.
    pub(crate) acknowledged: SequenceNumber,
    /// When it said so.
    pub(crate) moment: Moment,
    /// Whether it has fallen behind: it holds nothing, and changes behind its place may be gone.
    pub(crate) is_behind: bool,
}

/// A log that recovery does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptLog {
    /// Where it ends. It is durable up to there.
    pub(crate) length: u64,
    /// The sequence numbers of its first and its last entry.
    pub(crate) first: SequenceNumber,
    pub(crate) last: SequenceNumber,
    /// When recovery did not need it any more.
    pub(crate) moment: Moment,
}

/// A change that has no entries in a log, only a sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeEvent {
    Created {
        keyspace: KeyspaceId,
        name: String,
    },
    Dropped {
        keyspace: KeyspaceId,
        name: String,
    },
    /// The keyspace has the name `to`. If another one had it, that one has the name `from` now.
    Renamed {
        keyspace: KeyspaceId,
        from: String,
        to: String,
    },
    /// Tables were added to these keyspaces.
    TablesAdded(Vec<KeyspaceId>),
}

impl ConsumerState {
    /// The first sequence number that it holds.
    pub(super) fn holds_from(&self) -> Option<SequenceNumber> {
        (!self.is_behind).then_some(self.acknowledged + 1)
    }
}

fn read_sequence(reader: &mut Reader<'_>) -> Result<SequenceNumber, DecodeError> {
    reader.varint_at_most(SEQUENCE_MAX, "sequence number")
}

impl Field for ConsumerState {
    fn put(&self, body: &mut Vec<u8>) {
        self.acknowledged.put(body);
        self.moment.put(body);
        body.push(u8::from(self.is_behind));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let acknowledged = read_sequence(reader)?;
        let moment = reader.varint_at_most(MOMENT_MAX, "moment of a consumer")?;
        let start = reader.clone();
        let is_behind = match reader.u8("state of a consumer")? {
            0 => false,
            1 => true,
            _ => return Err(start.unsupported("an unknown state of a consumer")),
        };
        Ok(Self {
            acknowledged,
            moment,
            is_behind,
        })
    }
}

impl Field for KeptLog {
    fn put(&self, body: &mut Vec<u8>) {
        self.length.put(body);
        self.first.put(body);
        self.last.put(body);
        self.moment.put(body);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = u64::read(reader)?;
        let start = reader.clone();
        let (first, last) = (read_sequence(reader)?, read_sequence(reader)?);
        if first == 0 || last < first {
            return Err(start.error("a kept log without entries"));
        }
        let moment = reader.varint_at_most(MOMENT_MAX, "moment of a kept log")?;
        Ok(Self {
            length,
            first,
            last,
            moment,
        })
    }
}

impl Field for ChangeEvent {
    fn put(&self, body: &mut Vec<u8>) {
        match self {
            Self::Created { keyspace, name } => {
                body.push(0);
                keyspace.put(body);
                name.put(body);
            }
            Self::Dropped { keyspace, name } => {
                body.push(1);
                keyspace.put(body);
                name.put(body);
            }
            Self::Renamed { keyspace, from, to } => {
                body.push(2);
                keyspace.put(body);
                from.put(body);
                to.put(body);
            }
            Self::TablesAdded(keyspaces) => {
                body.push(3);
                for keyspace in keyspaces {
                    keyspace.put(body);
                }
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let code = reader.u8("kind of an event")?;
        Ok(match code {
            0 => Self::Created {
                keyspace: Field::read(reader)?,
                name: Field::read(reader)?,
            },
            1 => Self::Dropped {
                keyspace: Field::read(reader)?,
                name: Field::read(reader)?,
            },
            2 => Self::Renamed {
                keyspace: Field::read(reader)?,
                from: Field::read(reader)?,
                to: Field::read(reader)?,
            },
            3 => {
                let mut keyspaces = Vec::new();
                while !reader.is_empty() {
                    keyspaces.push(KeyspaceId::read(reader)?);
                }
                Self::TablesAdded(keyspaces)
            }
            _ => return Err(start.unsupported("an unknown kind of event")),
        })
    }
}
