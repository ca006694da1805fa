//! The records of a node beside its log entries, and the encoding of everything: `MessagePack` with names of fields, which
//! all types with serde survive.

use serde::Serialize;
use serde::de::DeserializeOwned;
use windrow::{Batch, Db, Error, ErrorKind, Keyspace, Result};

/// The name of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Record {
    /// The last vote.
    Vote,
    /// The last committed log id.
    Committed,
    /// The last purged log id.
    Purged,
    /// Which keyspace is the state, and up to where.
    State,
}

impl Record {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Vote => "vote",
            Self::Committed => "committed",
            Self::Purged => "purged",
            Self::State => "state",
        }
    }
}

/// The keyspace with the records.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    keyspace: Keyspace,
}

impl Records {
    pub(crate) fn open(db: &Db) -> Result<Self> {
        let keyspace = db.keyspace("records")?;
        Ok(Self { keyspace })
    }

    pub(crate) fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, record: Record) -> Result<Option<T>> {
        let bytes = self.keyspace.get(record.key())?;
        bytes.map(|bytes| decode(&bytes)).transpose()
    }

    pub(crate) fn insert<T: Serialize>(
        &self,
        batch: &mut Batch,
        record: Record,
        value: &T,
    ) -> Result<()> {
        batch.insert(&self.keyspace, record.key(), encode(value)?)
    }
}

/// # Errors
/// `InvalidArgument` if `value` refuses to be serialized.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    rmp_serde::to_vec_named(value).map_err(|error| Error::invalid_argument(error.to_string()))
}

/// # Errors
/// `Corruption` if `bytes` are not a whole `T`.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    rmp_serde::from_slice(bytes).map_err(|error| {
        let message = format!("a record of raft cannot be decoded: {error}");
        Error::new(ErrorKind::Corruption, message)
    })
}
