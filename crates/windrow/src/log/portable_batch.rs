//! A batch as bytes that leave the database: with the names of its keyspaces, and a checksum.
//!
//! See "Batches outside of a database" in `docs/format.md`.

use crate::base::KeyspaceId;
use crate::base::limits::KEYSPACE_NAME_BYTES_MAX;
use crate::codec::Reader;
use crate::codec::checksum::checksum;
use crate::codec::reader::DecodeError;
use crate::codec::varint::{put_bytes, put_varint};
use crate::log::batch::{BatchReader, put_count};

/// The version that this build writes and reads.
const VERSION: u8 = 1;

/// The bytes of `count` encoded entries, which name `keyspaces`.
pub(crate) fn encode(
    keyspaces: &[(KeyspaceId, impl AsRef<str>)],
    count: u32,
    entries: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<u32>()];
    bytes.push(VERSION);
    put_varint(&mut bytes, keyspaces.len() as u64);
    for (id, name) in keyspaces {
        put_varint(&mut bytes, u64::from(id.0));
        put_bytes(&mut bytes, name.as_ref().as_bytes());
    }
    if count > 0 {
        put_count(&mut bytes, count);
        bytes.extend_from_slice(entries);
    }
    let sum = checksum(0, &bytes[size_of::<u32>()..]);
    bytes[..size_of::<u32>()].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The decoded head of a batch, and what follows it.
#[derive(Debug)]
pub(crate) struct PortableBatch<'a> {
    /// The keyspaces that entries may name.
    pub(crate) keyspaces: Vec<(KeyspaceId, &'a str)>,
    /// The entries, unless there are none.
    payload: &'a [u8],
}

impl<'a> PortableBatch<'a> {
    /// Decodes the output of [`encode`]; entries are checked when they are read.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let start = reader.clone();
        let sum = reader.u32("checksum of a batch")?;
        if sum != checksum(0, reader.rest()) {
            return Err(start.error("the checksum does not match"));
        }
        let at_version = reader.clone();
        match reader.u8("version of a batch")? {
            VERSION => {}
            0 => return Err(at_version.error("version 0 of a batch")),
            _ => return Err(at_version.unsupported("an unknown version of a batch")),
        }
        let mut keyspaces = Vec::new();
        for _ in 0..reader.varint("count of keyspaces of a batch")? {
            let id = reader.varint_at_most(u64::from(u32::MAX), "keyspace of a batch")?;
            let at_name = reader.clone();
            let name = reader.prefixed_bytes(KEYSPACE_NAME_BYTES_MAX, "name of a keyspace")?;
            let name = str::from_utf8(name).map_err(|_| at_name.error("a name is not UTF-8"))?;
            let id = KeyspaceId(u32::try_from(id).unwrap_or(u32::MAX));
            keyspaces.push((id, name));
        }
        let payload = reader.rest();
        Ok(Self { keyspaces, payload })
    }

    /// The entries; `None` if there are none. Compressed ones are decompressed into `buffer`.
    pub(crate) fn entries(
        &self,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<BatchReader<'a>>, DecodeError> {
        if self.payload.is_empty() {
            return Ok(None);
        }
        BatchReader::new(self.payload, 1, buffer).map(Some)
    }
}
