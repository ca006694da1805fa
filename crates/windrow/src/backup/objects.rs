//! What a store holds, and how its objects are read.
//!
//! Concurrency: a look at one moment; the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};

use super::damage::damage;
use super::manifest::BackupManifest;
use super::names::{ObjectName, Piece, StretchName};
use super::store::{BackupStore, ByteSource};
use super::transfer::{Checked, Meter, Metered, pass_all};
use crate::base::{Error, ErrorKind, Result};

/// A message names so many backups at most.
const NUMBERS_SHOWN: usize = 10;

/// The objects of a store.
#[derive(Debug)]
pub(crate) struct Objects {
    /// The numbers of the backups.
    pub(super) backups: BTreeSet<u64>,
    /// The pieces, and the lengths of their objects.
    pub(super) pieces: BTreeMap<Piece, u64>,
    /// The stretches of the archive.
    pub(super) stretches: BTreeSet<StretchName>,
}

impl Objects {
    pub(crate) fn list(store: &dyn BackupStore) -> Result<Self> {
        let mut objects = Self {
            backups: BTreeSet::new(),
            pieces: BTreeMap::new(),
            stretches: BTreeSet::new(),
        };
        for object in store.list()? {
            match ObjectName::parse(&object.name) {
                Some(ObjectName::Manifest(number)) => {
                    objects.backups.insert(number);
                }
                Some(ObjectName::Piece(piece)) => {
                    objects.pieces.insert(piece, object.length);
                }
                Some(ObjectName::Stretch(name)) => {
                    objects.stretches.insert(name);
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
    /// `NotFound` if there is no such backup; otherwise an error that names the backup and what of it cannot be used:
    /// `Corruption`, `Unsupported` or `Io`.
    pub(super) fn whole_backup(
        &self,
        store: &dyn BackupStore,
        number: u64,
    ) -> Result<BackupManifest> {
        self.check_exists(number)?;
        let manifest = read_manifest(store, number)?;
        self.check_whole(number, &manifest)?;
        Ok(manifest)
    }

    /// # Errors
    /// `Corruption` that names backup `number` and a piece that is not there.
    pub(super) fn check_whole(&self, number: u64, manifest: &BackupManifest) -> Result<()> {
        let checked = self.check_pieces(manifest.pieces());
        checked.map_err(|error| of_backup(number, error))
    }

    /// # Errors
    /// `Corruption` that names one of `pieces` that is not there.
    pub(super) fn check_pieces(&self, mut pieces: impl Iterator<Item = Piece>) -> Result<()> {
        let missing = pieces.find(|piece| !self.has(*piece));
        missing.map_or(Ok(()), |piece| {
            let what = match self.pieces.get(&piece) {
                None => "it is missing",
                Some(_) => "it has another length than its name says",
            };
            Err(damage(&piece.to_string(), 0, what))
        })
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

/// The manifest of backup `number`. Of a file that is none it reads only the beginning.
///
/// # Errors
/// `Corruption`, `Unsupported` or `Io`, which name the backup.
pub(super) fn read_manifest(store: &dyn BackupStore, number: u64) -> Result<BackupManifest> {
    let read = || {
        let name = ObjectName::Manifest(number).to_string();
        let mut bytes = Vec::new();
        pass_all(&mut *store.get(&name)?, |piece| {
            bytes.extend_from_slice(piece);
            BackupManifest::check_beginning(number, &bytes)
        })?;
        BackupManifest::decode(number, &bytes)
    };
    read().map_err(|error| of_backup(number, error))
}

/// The bytes of `piece`, checked.
pub(super) fn get_piece<'a, 'm>(
    store: &'a dyn BackupStore,
    piece: Piece,
    meter: &'a mut Meter<'m>,
) -> Result<Checked<Metered<'a, 'm>>> {
    let name = piece.to_string();
    let source = store.get(&name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => damage(&name, 0, "it is missing"),
        _ => error,
    })?;
    Ok(Checked::new(Metered { source, meter }, piece, name))
}

/// `error` with the backup that it is about.
pub(super) fn of_backup(number: u64, error: Error) -> Error {
    error.context(format_args!("backup {number} cannot be used"))
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
