//! What a store holds, for people, and the check of all its bytes.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::archive;
use super::manifest::{BackupManifest, time_of};
use super::names::Piece;
use super::objects::{Objects, get_piece, of_backup, read_manifest};
use super::store::BackupStore;
use super::transfer::{BackupPhase, Meter, pass_all};
use crate::base::{Error, Result, SequenceNumber};

/// A backup of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// When it was made, by the clock of the system.
    pub created: SystemTime,
    /// The newest sequence number that it holds.
    pub sequence: SequenceNumber,
    /// The files of the database.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    /// The bytes that no other backup needs: a purge of this one frees them.
    pub own_bytes: u64,
}

/// A backup of a list.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedBackup {
    /// Its number.
    pub number: u64,
    /// What it is, or why it cannot be used. A list reads the manifests and sees that all pieces are there; it does not
    /// read the pieces.
    pub backup: Result<BackupInfo>,
}

/// A part of a store that is damaged or could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct BackupDamage {
    /// The numbers of the backups that cannot be used because of it. None for damage of the archive alone.
    pub backups: Vec<u64>,
    /// What is damaged, or could not be read.
    pub error: Error,
}

/// What a check of backups has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BackupCheck {
    /// The numbers of the backups that were checked.
    pub backups: Vec<u64>,
    /// The stretches of the archive that were checked.
    pub stretches: u64,
    /// The pieces that were read.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<BackupDamage>,
}

impl BackupCheck {
    /// Whether all of the backups and the archive can be used.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// The backups of `store`, oldest first. One manifest at a time is in memory, and of the others the names of pieces.
pub(super) fn list(store: &dyn BackupStore) -> Result<Vec<ListedBackup>> {
    let objects = Objects::list(store)?;
    // Each piece, with the only backup that needs it.
    let mut users: BTreeMap<Piece, Option<u64>> = BTreeMap::new();
    let mut listed = Vec::new();
    for &number in &objects.backups {
        let manifest = read_manifest(store, number);
        for piece in manifest.iter().flat_map(BackupManifest::pieces) {
            let user = users.entry(piece).or_insert(Some(number));
            *user = user.filter(|user| *user == number);
        }
        let backup = manifest.and_then(|manifest| {
            objects.check_whole(number, &manifest)?;
            Ok(info(&manifest))
        });
        listed.push(ListedBackup { number, backup });
    }
    let mut own: BTreeMap<u64, u64> = BTreeMap::new();
    for (piece, user) in users {
        if let Some(number) = user {
            let bytes = own.entry(number).or_default();
            *bytes = bytes.saturating_add(piece.length);
        }
    }
    for listed in &mut listed {
        if let Ok(info) = &mut listed.backup {
            info.own_bytes = own.get(&listed.number).copied().unwrap_or(0);
        }
    }
    Ok(listed)
}

/// What `manifest` says of its backup alone.
fn info(manifest: &BackupManifest) -> BackupInfo {
    BackupInfo {
        created: time_of(manifest.created),
        sequence: manifest.sequence,
        files: manifest.files.len() as u64,
        bytes: manifest.bytes(),
        own_bytes: 0,
    }
}

/// Reads all pieces of backup `number`, or of all backups: each piece once.
pub(super) fn check(
    store: &dyn BackupStore,
    number: Option<u64>,
    meter: &mut Meter<'_>,
) -> Result<BackupCheck> {
    let objects = Objects::list(store)?;
    if let Some(number) = number {
        objects.check_exists(number)?;
    }
    let mut report = BackupCheck {
        backups: match number {
            Some(number) => vec![number],
            None => objects.backups.iter().copied().collect(),
        },
        ..BackupCheck::default()
    };
    let mut users: BTreeMap<Piece, Vec<u64>> = BTreeMap::new();
    for &backup in &report.backups {
        match objects.whole_backup(store, backup) {
            Ok(manifest) => {
                for piece in manifest.pieces().collect::<BTreeSet<_>>() {
                    users.entry(piece).or_default().push(backup);
                }
            }
            Err(error) => report.damage.push(BackupDamage {
                backups: vec![backup],
                error,
            }),
        }
    }
    meter.begin(
        BackupPhase::Verifying,
        users
            .keys()
            .fold(0, |sum, piece| piece.length.saturating_add(sum)),
    );
    for (piece, backups) in users {
        report.pieces += 1;
        report.bytes = report.bytes.saturating_add(piece.length);
        let read =
            get_piece(store, piece, meter).and_then(|mut bytes| pass_all(&mut bytes, |_| Ok(())));
        if let Err(error) = read {
            let error = of_backup(backups[0], error);
            report.damage.push(BackupDamage { backups, error });
        }
    }
    if number.is_none() {
        check_archive(store, &objects, &mut report, meter);
    }
    Ok(report)
}

/// Reads all changes of the archive, and compares those up to each backup with what its database had.
fn check_archive(
    store: &dyn BackupStore,
    objects: &Objects,
    report: &mut BackupCheck,
    meter: &mut Meter<'_>,
) {
    let mut damage = |backups: Vec<u64>, error: Error| {
        report.damage.push(BackupDamage { backups, error });
    };
    // What cannot be used is in the report already.
    let (bases, _) = archive::bases(store, objects);
    for error in archive::Histories::new(objects).faults(&bases) {
        damage(Vec::new(), error);
    }
    for &name in &objects.stretches {
        report.stretches += 1;
        let read = archive::read(store, name).and_then(|stretch| {
            meter.begin(BackupPhase::Verifying, stretch.bytes());
            report.pieces += stretch.pieces.len() as u64;
            report.bytes = report.bytes.saturating_add(stretch.bytes());
            archive::each_item(store, &stretch, meter, &mut |_, _, _| Ok(true))
        });
        if let Err(error) = read {
            damage(Vec::new(), error);
        }
    }
    for &number in &report.backups {
        // One that cannot be read is in the report already.
        let manifest = objects.whole_backup(store, number);
        let checked = manifest.map_or(Ok(()), |manifest| {
            archive::check_base(store, objects, (number, &manifest), meter)
        });
        if let Err(error) = checked {
            damage(Vec::new(), error);
        }
    }
}
