//! What a store holds, for people, and the check of all its bytes.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::manifest::BackupManifest;
use super::names::Piece;
use super::objects::{Objects, get_piece, of_backup};
use super::store::BackupStore;
use super::transfer::{BackupPhase, Meter, pass_all, usable};
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

/// Damage in a store.
#[derive(Debug)]
#[non_exhaustive]
pub struct BackupDamage {
    /// The numbers of the backups that cannot be used because of it.
    pub backups: Vec<u64>,
    /// What is damaged.
    pub error: Error,
}

/// What a check of backups has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BackupCheck {
    /// The numbers of the backups that were checked.
    pub backups: Vec<u64>,
    /// The pieces that were read.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is damaged.
    pub damage: Vec<BackupDamage>,
}

impl BackupCheck {
    /// Whether all of the backups can be restored.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// The backups of `store`, oldest first.
pub(super) fn list(store: &dyn BackupStore) -> Result<Vec<ListedBackup>> {
    let objects = Objects::list(store)?;
    let mut manifests = Vec::new();
    for &number in &objects.backups {
        manifests.push((number, usable(objects.sound_backup(store, number))?));
    }
    let mut users: BTreeMap<Piece, u64> = BTreeMap::new();
    for (_, manifest) in &manifests {
        let pieces = manifest.iter().flat_map(BackupManifest::pieces);
        for piece in pieces.collect::<BTreeSet<_>>() {
            *users.entry(piece).or_default() += 1;
        }
    }
    let info = |manifest: BackupManifest| {
        let pieces: BTreeSet<Piece> = manifest.pieces().collect();
        let own = pieces.iter().filter(|piece| users.get(piece) == Some(&1));
        BackupInfo {
            created: time(manifest.created),
            sequence: manifest.sequence,
            files: manifest.files.len() as u64,
            bytes: manifest.bytes(),
            own_bytes: own.map(|piece| piece.length).fold(0, u64::saturating_add),
        }
    };
    let listed = manifests
        .into_iter()
        .map(|(number, manifest)| ListedBackup {
            number,
            backup: manifest.map(info),
        });
    Ok(listed.collect())
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
        match usable(objects.sound_backup(store, backup))? {
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
        users.keys().map(|piece| piece.length).sum(),
    );
    for (piece, backups) in users {
        report.pieces += 1;
        report.bytes += piece.length;
        let read =
            get_piece(store, piece, meter).and_then(|mut bytes| pass_all(&mut bytes, |_| Ok(())));
        if let Err(error) = usable(read)? {
            let error = of_backup(backups[0], error);
            report.damage.push(BackupDamage { backups, error });
        }
    }
    Ok(report)
}

/// A time that the system can show.
fn time(since_1970: Duration) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(since_1970);
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
