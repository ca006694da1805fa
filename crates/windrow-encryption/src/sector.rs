//! The layout of an encrypted file, and the cryptography of its sectors.
//!
//! docs/encryption.md has the layout: sectors of 512 bytes, a header and *cells*, each of which has up to 480 bytes of the file.
//!
//! A device writes a sector as a whole or not at all, which the engine relies on already. So the last cell is written again with
//! more bytes, and a power failure leaves the old one or the new one: what was durable stays. A place in the file gives its cell,
//! without an index.

use std::io;

use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{AeadInOut, ChaCha20Poly1305, KeyInit, Nonce, Tag};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::keys::{KEY_BYTES, KEY_NAME_BYTES_MAX, Key};

/// Bytes of a sector.
pub(crate) const SECTOR_BYTES: usize = 512;
/// Bytes of the file in a full cell.
pub(crate) const CELL_BYTES: usize = 480;

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 12;
const TAG: std::ops::Range<usize> = 12..28;
const LENGTH: std::ops::Range<usize> = 28..30;
const DATA: std::ops::Range<usize> = 32..SECTOR_BYTES;

const MAGIC: [u8; 8] = *b"\x89WSECRET";
const VERSION: u32 = 1;
const NAME: std::ops::Range<usize> = 13..13 + KEY_NAME_BYTES_MAX;
const SALT: std::ops::Range<usize> = 80..112;
const HEADER_TAG: std::ops::Range<usize> = 112..128;
const CHECKSUM: std::ops::Range<usize> = 128..136;

pub(crate) type Sector = [u8; SECTOR_BYTES];

/// The bytes of a cell, and how many of them count.
#[derive(Clone)]
pub(crate) struct Cell {
    pub(crate) bytes: [u8; CELL_BYTES],
    pub(crate) length: usize,
}

impl Cell {
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; CELL_BYTES],
        length: 0,
    };
}

/// The keys of one file.
pub(crate) struct FileCipher {
    cells: ChaCha20Poly1305,
    unforeseen: ChaCha20Poly1305,
    /// A number of the file that all its handles have.
    id: u64,
}

impl FileCipher {
    /// The cipher of a new file, and its header.
    pub(crate) fn create(name: &str, key: &Key) -> io::Result<(Self, Sector)> {
        let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
        if name.is_empty() || usize::from(length) > KEY_NAME_BYTES_MAX {
            let message = "the name of a key must have 1 to 64 bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut header = [0; SECTOR_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12] = length;
        header[NAME][..name.len()].copy_from_slice(name.as_bytes());
        getrandom::fill(&mut header[SALT]).map_err(io::Error::other)?;
        let (cipher, of_header) = Self::derive(key, &header[SALT])?;
        let tag = of_header
            .encrypt_inout_detached(&Nonce::default(), &header, InOutBuf::from(&mut [][..]))
            .map_err(refused)?;
        header[HEADER_TAG].copy_from_slice(&tag);
        let sum = checksum(&header);
        header[CHECKSUM].copy_from_slice(&sum);
        Ok((cipher, header))
    }

    /// The cipher of the file that begins with `header`, whose key `key_of` finds by its name. The checksum shows
    /// damage without a key, so a missing or a wrong key is none.
    ///
    /// # Errors
    /// `InvalidData`: this is no header, or it is damaged. `PermissionDenied`: there is no such key, or it is another one.
    /// `Unsupported`: a later version. Or that of `key_of`.
    pub(crate) fn open(
        header: &Sector,
        key_of: impl FnOnce(&str) -> io::Result<Key>,
    ) -> io::Result<Self> {
        let error = |kind, what: &str| Err(io::Error::new(kind, what.to_owned()));
        if !begins_header(header) {
            let what = "the file is not encrypted, or its header is damaged";
            return error(io::ErrorKind::InvalidData, what);
        }
        if header[CHECKSUM] != checksum(header) {
            let what = "the header of the encrypted file is damaged";
            return error(io::ErrorKind::InvalidData, what);
        }
        if header[8..12] != VERSION.to_le_bytes() {
            let what = "the file is encrypted in a way that a later version may know";
            return error(io::ErrorKind::Unsupported, what);
        }
        let Some(name) = key_name(header) else {
            let what = "the header of the encrypted file has no name of a key";
            return error(io::ErrorKind::InvalidData, what);
        };
        let key = key_of(name)?;
        let (cipher, of_header) = Self::derive(&key, &header[SALT])?;
        let mut untagged = *header;
        untagged[HEADER_TAG].fill(0);
        untagged[CHECKSUM].fill(0);
        let tag = Tag::try_from(&header[HEADER_TAG]).map_err(refused)?;
        let nothing = InOutBuf::from(&mut [][..]);
        let checked = of_header.decrypt_inout_detached(&Nonce::default(), &untagged, nothing, &tag);
        if checked.is_err() {
            let what = format!(
                "the file is encrypted with the key {name:?}, and the key of this name is another one"
            );
            return error(io::ErrorKind::PermissionDenied, &what);
        }
        Ok(cipher)
    }

    /// The cipher of a file, and that of its header.
    fn derive(key: &Key, salt: &[u8]) -> io::Result<(Self, ChaCha20Poly1305)> {
        let derivation = Hkdf::<Sha256>::new(Some(salt), key.as_bytes());
        let cipher = |what: &[u8]| {
            let mut derived = Zeroizing::new([0; KEY_BYTES]);
            let expanded = derivation.expand(what, &mut *derived);
            let cipher = expanded.map(|()| ChaCha20Poly1305::new((&*derived).into()));
            cipher.map_err(refused)
        };
        let mix = |id: u64, byte: &u8| id.rotate_left(8) ^ u64::from(*byte);
        let file = Self {
            cells: cipher(b"windrow cells 1")?,
            unforeseen: cipher(b"windrow unforeseen 1")?,
            id: salt.iter().fold(0, mix),
        };
        Ok((file, cipher(b"windrow header 1")?))
    }

    /// A number that handles of the same file have in common.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Encrypts `cell`, the one with this number, under a nonce that was never used.
    pub(crate) fn seal(
        &self,
        number: u64,
        cell: &Cell,
        nonce: &[u8; NONCE_BYTES],
        sector: &mut Sector,
    ) -> io::Result<()> {
        sector.fill(0);
        sector[..NONCE_BYTES].copy_from_slice(nonce);
        let length = u16::try_from(cell.length).map_err(refused)?;
        sector[LENGTH].copy_from_slice(&length.to_le_bytes());
        sector[DATA].copy_from_slice(&cell.bytes);
        let place = place(number, sector);
        let data = InOutBuf::from(&mut sector[DATA]);
        let tag = self
            .cells
            .encrypt_inout_detached(&(*nonce).into(), &place, data);
        sector[TAG].copy_from_slice(&tag.map_err(refused)?);
        Ok(())
    }

    /// The cell with this number; `None` if it is not authentic.
    pub(crate) fn open_cell(&self, number: u64, sector: &Sector) -> Option<Cell> {
        let place = place(number, sector);
        let nonce = Nonce::try_from(&sector[..NONCE_BYTES]).ok()?;
        let tag = Tag::try_from(&sector[TAG]).ok()?;
        let mut cell = Cell::EMPTY;
        cell.length = usize::from(u16::from_le_bytes([sector[28], sector[29]]));
        cell.bytes.copy_from_slice(&sector[DATA]);
        let data = InOutBuf::from(&mut cell.bytes[..]);
        let opened = self
            .cells
            .decrypt_inout_detached(&nonce, &place, data, &tag);
        (opened.is_ok() && (1..=CELL_BYTES).contains(&cell.length)).then_some(cell)
    }

    /// What is read in the place of a cell that is not authentic: bytes that nobody can foresee, and the same each time. So
    /// nobody can choose what a checksum of the engine is held against.
    pub(crate) fn unforeseen_cell(&self, number: u64) -> io::Result<Cell> {
        let mut cell = Cell::EMPTY;
        cell.length = CELL_BYTES;
        let mut nonce = Nonce::default();
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        let data = InOutBuf::from(&mut cell.bytes[..]);
        let encrypted = self.unforeseen.encrypt_inout_detached(&nonce, &[], data);
        encrypted.map(|_| cell).map_err(refused)
    }
}

/// What a tag authenticates beside the encrypted bytes: the place, and the fields in clear.
fn place(number: u64, sector: &Sector) -> [u8; 12] {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&number.to_le_bytes());
    place[8..].copy_from_slice(&sector[28..32]);
    place
}

/// The checksum of a header, over all of it but the checksum.
fn checksum(header: &Sector) -> [u8; 8] {
    let mut unsummed = *header;
    unsummed[CHECKSUM].fill(0);
    let mut sum = [0; 8];
    sum.copy_from_slice(&Sha256::digest(unsummed)[..8]);
    sum
}

/// Whether a file that begins with `sector` is encrypted, or was before damage.
pub(crate) fn begins_header(sector: &Sector) -> bool {
    sector[..8] == MAGIC
}

/// The name of the key of a file; `None` if this is no header.
pub(crate) fn key_name(header: &Sector) -> Option<&str> {
    if !begins_header(header) {
        return None;
    }
    let name = header[NAME].get(..usize::from(header[12]))?;
    std::str::from_utf8(name).ok()
}

/// The error of a cipher for a message that is too long, which none is here.
fn refused<E>(_: E) -> io::Error {
    io::Error::other("the cipher refuses a message")
}
