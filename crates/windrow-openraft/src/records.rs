//! The records of a node beside its log entries, and the encoding of everything: `MessagePack` with names of fields. As in
//! other formats that describe themselves, `Some(None)` becomes `None`, and so does `Some(())`.

use std::fmt::Display;

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
/// `Corruption` if `bytes` are not a `T`, and nothing but that.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let damage = |what: &dyn Display| {
        let message = format!("a record of raft cannot be decoded: {what}");
        Error::new(ErrorKind::Corruption, message)
    };
    let mut rest = bytes;
    let value = rmp_serde::from_read(&mut rest).map_err(|error| damage(&error))?;
    if !rest.is_empty() {
        return Err(damage(&"bytes follow it"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_behind_a_record_are_damage() {
        let mut bytes = encode(&(1, "a")).unwrap();
        let decoded: (u64, String) = decode(&bytes).unwrap();
        assert_eq!(decoded, (1, "a".to_owned()));
        bytes.push(0);
        decode::<(u64, String)>(&bytes).unwrap_err();
    }
}
