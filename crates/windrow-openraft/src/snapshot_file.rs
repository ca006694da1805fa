//! The bytes of a snapshot, as the README of this crate lays them out: what it is, then the entries of the state, in
//! ascending order of their keys. Nothing of a file counts before its end was verified.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use openraft::{RaftTypeConfig, SnapshotMeta};
use windrow::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use windrow::{Cursor, Error, ErrorKind, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::records::{decode, encode};

const MAGIC: &[u8; 6] = b"WDRAFT";
const VERSION: &[u8; 2] = b"01";

/// The meta data of a snapshot with more bytes is damaged.
const META_BYTES_MAX: usize = 16 << 20;

/// The meta data of a snapshot of a type config.
pub(crate) type Meta<C> = SnapshotMeta<<C as RaftTypeConfig>::NodeId, <C as RaftTypeConfig>::Node>;

pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Writes a whole snapshot. `path` is for errors.
pub(crate) fn write<C: RaftTypeConfig>(
    file: impl Write,
    path: &Path,
    meta: &Meta<C>,
    entries: &mut Cursor,
) -> Result<()> {
    let mut file = Hashed::new(BufWriter::new(file), path);
    let meta = encode(meta)?;
    if meta.len() > META_BYTES_MAX {
        let message = "the membership is too long for a snapshot";
        return Err(Error::invalid_argument(message));
    }
    file.put(MAGIC)?;
    file.put(VERSION)?;
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
    let flushed = file.inner.flush();
    flushed.map_err(|error| Error::io("write", path, error))
}

/// Reads all of a snapshot.
///
/// # Errors
/// As those of [`SnapshotReader::open`] and of its entries.
pub(crate) fn verify<C: RaftTypeConfig>(file: impl Read, path: &Path) -> Result<Meta<C>> {
    let (meta, mut entries) = SnapshotReader::open::<C>(file, path)?;
    entries.try_for_each(|entry| entry.map(drop))?;
    Ok(meta)
}

/// Reads the entries of a snapshot. After the last one, or instead of it, comes an error if the file is damaged.
pub(crate) struct SnapshotReader<R> {
    file: Hashed<BufReader<R>>,
    is_over: bool,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads up to the first entry. `path` is for errors.
    ///
    /// # Errors
    /// `Corruption` if the file does not begin as a snapshot; `Unsupported` if it has another version; `Io`.
    pub(crate) fn open<C: RaftTypeConfig>(file: R, path: &Path) -> Result<(Meta<C>, Self)> {
        let mut file = Hashed::new(BufReader::new(file), path);
        if file.array::<6>()? != *MAGIC {
            return Err(file.damage("it does not begin as a snapshot"));
        }
        let version = file.array::<2>()?;
        if version != *VERSION {
            let path = path.display();
            let version = String::from_utf8_lossy(&version);
            let message = format!("{path} is a snapshot of version {version}, not 01");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let length = file.length(META_BYTES_MAX)?;
        let meta = file.bytes(length)?;
        let meta = decode(&meta).map_err(|error| file.damage(error))?;
        let reader = Self {
            file,
            is_over: false,
        };
        Ok((meta, reader))
    }

    fn entry(&mut self) -> Result<Option<Entry>> {
        let key_length = self.file.length(KEY_BYTES_MAX)?;
        if key_length > 0 {
            let value_length = self.file.length(VALUE_BYTES_MAX)?;
            let key = self.file.bytes(key_length)?;
            return Ok(Some((key, self.file.bytes(value_length)?)));
        }
        let hash = self.file.hash.digest();
        if self.file.array()? != hash.to_le_bytes() {
            return Err(self.file.damage("its checksum is wrong"));
        }
        match self.file.inner.fill_buf() {
            Ok([]) => Ok(None),
            Ok(_) => Err(self.file.damage("it is too long")),
            Err(error) => Err(self.file.failed(error)),
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

/// A file, with the number and the hash of all bytes that have passed.
struct Hashed<F> {
    inner: F,
    path: PathBuf,
    offset: u64,
    hash: Xxh3,
}

impl<F> Hashed<F> {
    fn new(inner: F, path: &Path) -> Self {
        Self {
            inner,
            path: path.to_owned(),
            offset: 0,
            hash: Xxh3::new(),
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.offset += bytes.len() as u64;
    }

    fn damage(&self, what: impl Display) -> Error {
        Error::corruption(&self.path.to_string_lossy(), self.offset, what)
    }

    fn failed(&self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return self.damage("it is too short");
        }
        Error::io("read", &self.path, error)
    }
}

impl<F: Write> Hashed<F> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.pass(bytes);
        let written = self.inner.write_all(bytes);
        written.map_err(|error| Error::io("write", &self.path, error))
    }
}

impl<F: Read> Hashed<F> {
    /// Memory grows with what is read, not with a length that may be damaged.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = &mut self.inner;
        let read = file.take(length as u64).read_to_end(&mut bytes);
        let read = read.map_err(|error| self.failed(error))?;
        if read < length {
            return Err(self.damage("it is too short"));
        }
        self.pass(&bytes);
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let read = self.inner.read_exact(&mut bytes);
        read.map_err(|error| self.failed(error))?;
        self.pass(&bytes);
        Ok(bytes)
    }

    fn length(&mut self, max: usize) -> Result<usize> {
        let length = u32::from_le_bytes(self.array()?);
        match usize::try_from(length) {
            Ok(length) if length <= max => Ok(length),
            _ => Err(self.damage(format!("a length is {length}, more than {max}"))),
        }
    }
}

fn length(bytes: &[u8]) -> Result<[u8; 4]> {
    let length = u32::try_from(bytes.len());
    let length = length.map_err(|_| Error::invalid_argument("an entry is too long"))?;
    Ok(length.to_le_bytes())
}

#[cfg(test)]
mod tests;
