//! The bytes of a snapshot: what it is, then the entries of the state, in ascending order of their keys.
//!
//! ```text
//! magic         8 bytes  "WDRAFT01"
//! meta          length in 4 bytes, then openraft's SnapshotMeta in MessagePack
//! each entry    length of the key in 4 bytes, length of the value in 4 bytes, key, value
//! end           4 bytes 0 (no key is empty), then XXH3 of all bytes before it, in 8 bytes
//! ```
//!
//! All numbers are little-endian. Nothing of a file counts before its end was verified.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

use openraft::{RaftTypeConfig, SnapshotMeta};
use windrow::{Cursor, Error, ErrorKind, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::records::{decode, encode};

const MAGIC: &[u8; 8] = b"WDRAFT01";

/// The meta data of a snapshot of a type config.
pub(crate) type Meta<C> = SnapshotMeta<<C as RaftTypeConfig>::NodeId, <C as RaftTypeConfig>::Node>;

pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Writes a whole snapshot.
pub(crate) fn write<C: RaftTypeConfig>(
    file: impl Write,
    meta: &Meta<C>,
    entries: &mut Cursor,
) -> Result<()> {
    let mut file = Hashed::new(BufWriter::new(file));
    let meta = encode(meta)?;
    file.put(MAGIC)?;
    file.put(&length(&meta)?)?;
    file.put(&meta)?;
    let mut is_valid = entries.seek_to_first()?;
    while is_valid {
        let (key, value) = (entries.key(), entries.value()?);
        file.put(&length(key)?)?;
        file.put(&length(value)?)?;
        file.put(key)?;
        file.put(value)?;
        is_valid = entries.next()?;
    }
    file.put(&[0; 4])?;
    let hash = file.hash.digest();
    file.put(&hash.to_le_bytes())?;
    file.inner.flush().map_err(failed)
}

/// Reads the entries of a snapshot. After the last one, or instead of it, comes an error if the file is damaged.
pub(crate) struct SnapshotReader<R> {
    file: Hashed<BufReader<R>>,
    is_over: bool,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads up to the first entry.
    pub(crate) fn open<C: RaftTypeConfig>(file: R) -> Result<(Meta<C>, Self)> {
        let mut file = Hashed::new(BufReader::new(file));
        if file.array::<8>()? != *MAGIC {
            return Err(damage("it does not begin as one"));
        }
        let length = file.length()?;
        let meta = decode(&file.bytes(length)?)?;
        let reader = Self {
            file,
            is_over: false,
        };
        Ok((meta, reader))
    }

    fn entry(&mut self) -> Result<Option<Entry>> {
        let key_length = self.file.length()?;
        if key_length > 0 {
            let value_length = self.file.length()?;
            let key = self.file.bytes(key_length)?;
            return Ok(Some((key, self.file.bytes(value_length)?)));
        }
        let hash = self.file.hash.digest();
        if self.file.array()? != hash.to_le_bytes() {
            return Err(damage("its checksum is wrong"));
        }
        match self.file.inner.fill_buf().map_err(failed)? {
            [] => Ok(None),
            _ => Err(damage("it is too long")),
        }
    }
}

impl<R: Read> Iterator for SnapshotReader<R> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let entry = self.entry();
        self.is_over = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    }
}

/// A file and the hash of all bytes that have passed.
struct Hashed<F> {
    inner: F,
    hash: Xxh3,
}

impl<F> Hashed<F> {
    fn new(inner: F) -> Self {
        let hash = Xxh3::new();
        Self { inner, hash }
    }
}

impl<F: Write> Hashed<F> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes).map_err(failed)
    }
}

impl<F: Read> Hashed<F> {
    /// Memory grows with what is read, not with a length that may be damaged.
    fn bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = &mut self.inner;
        let read = file.take(u64::from(length)).read_to_end(&mut bytes);
        if read.map_err(failed)? < length as usize {
            return Err(damage("it is too short"));
        }
        self.hash.update(&bytes);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes).map_err(failed)?;
        self.hash.update(&bytes);
        Ok(bytes)
    }

    fn length(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }
}

fn length(bytes: &[u8]) -> Result<[u8; 4]> {
    let length = u32::try_from(bytes.len());
    let length = length.map_err(|_| Error::invalid_argument("the meta data is too long"))?;
    Ok(length.to_le_bytes())
}

fn damage(what: impl Display) -> Error {
    let message = format!("the snapshot of the state is damaged: {what}");
    Error::new(ErrorKind::Corruption, message)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where errors are mapped"
)]
fn failed(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return damage("it is too short");
    }
    let message = format!("a file with a snapshot of the state: {error}");
    Error::new(ErrorKind::Io, message)
}
