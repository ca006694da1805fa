//! What a store holds, and how its objects are read.
//!
//! Concurrency: a look at one moment; the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};

use super::manifest::BackupManifest;
use super::names::{ObjectName, Piece};
use super::store::{BackupStore, ByteSource};
use super::transfer::{Checked, Meter, Metered, is_damage, pass_all};
use crate::base::{Error, ErrorKind, Result};

/// A message names so many backups at most.
const NUMBERS_SHOWN: usize = 10;

/// The objects of a store.
#[derive(Debug)]
pub(super) struct Objects {
    /// The numbers of the backups.
    pub(super) backups: BTreeSet<u64>,
    /// The pieces, and the lengths of their objects.
    pub(super) pieces: BTreeMap<Piece, u64>,
}

impl Objects {
    pub(super) fn list(store: &dyn BackupStore) -> Result<Self> {
        let mut objects = Self {
            backups: BTreeSet::new(),
            pieces: BTreeMap::new(),
        };
        for object in store.list()? {
            match ObjectName::parse(&object.name) {
                Some(ObjectName::Manifest(number)) => {
                    objects.backups.insert(number);
                }
                Some(ObjectName::Piece(piece)) => {
                    objects.pieces.insert(piece, object.length);
                }
                None => {}
            }
        }
        Ok(objects)
    }

    /// Whether the store has `piece` in its length.
    pub(super) fn has(&self, piece: Piece) -> bool {
        self.pieces.get(&piece) == Some(&piece.length)
    }

    /// # Errors
    /// `NotFound` if there is no backup `number`.
    pub(super) fn check_exists(&self, number: u64) -> Result<()> {
        if self.backups.contains(&number) {
            return Ok(());
        }
        let message = format!("there is no backup {number}; {}", self.existing());
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// The manifest of backup `number`, all of whose pieces are there.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Corruption`, which names what is damaged; `Unsupported`; `Io`.
    pub(super) fn sound_backup(
        &self,
        store: &dyn BackupStore,
        number: u64,
    ) -> Result<BackupManifest> {
        self.check_exists(number)?;
        let manifest = read_manifest(store, number)?;
        let missing = manifest.pieces().find(|piece| !self.has(*piece));
        match missing {
            None => Ok(manifest),
            Some(piece) => {
                let what = match self.pieces.get(&piece) {
                    None => "it is missing",
                    Some(_) => "it has another length than its name says",
                };
                let error = Error::corruption(&piece.to_string(), 0, what);
                Err(of_backup(number, error))
            }
        }
    }

    fn existing(&self) -> String {
        if self.backups.is_empty() {
            return "there are none".to_owned();
        }
        let newest = self.backups.iter().rev().take(NUMBERS_SHOWN);
        let numbers: Vec<String> = newest.map(u64::to_string).collect();
        let more = match self.backups.len() - numbers.len() {
            0 => String::new(),
            more => format!(" and {more} older ones"),
        };
        format!("there are {}{more}", numbers.join(", "))
    }
}

/// The manifest of backup `number`.
///
/// # Errors
/// `Corruption` and `Unsupported` name the backup; `NotFound`; `Io`.
pub(super) fn read_manifest(store: &dyn BackupStore, number: u64) -> Result<BackupManifest> {
    let name = ObjectName::Manifest(number).to_string();
    let mut bytes = Vec::new();
    pass_all(&mut *store.get(&name)?, |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    BackupManifest::decode(number, &bytes).map_err(|error| of_backup(number, error))
}

/// The bytes of `piece`, checked.
pub(super) fn get_piece<'a, 'm>(
    store: &'a dyn BackupStore,
    piece: Piece,
    meter: &'a mut Meter<'m>,
) -> Result<Checked<Metered<'a, 'm>>> {
    let name = piece.to_string();
    let source = store.get(&name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::corruption(&name, 0, "it is missing"),
        _ => error,
    })?;
    Ok(Checked::new(Metered { source, meter }, piece, name))
}

/// `error` with the backup that it is about, if it says that stored bytes cannot be used.
pub(super) fn of_backup(number: u64, error: Error) -> Error {
    if is_damage(&error) {
        error.context(format_args!("backup {number} cannot be used"))
    } else {
        error
    }
}

/// Bytes in memory.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl ByteSource for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = buffer.len().min(self.0.len());
        let (head, rest) = self.0.split_at(count);
        buffer[..count].copy_from_slice(head);
        self.0 = rest;
        Ok(count)
    }
}
