//! The removal of backups.
//!
//! 1. Delete the manifests of the backups. From now on they do not exist.
//! 2. Delete the pieces that no other backup needs, also those that interrupted attempts have left.
//!
//! I1. The first step is durable before the second one begins. So a crash leaves no backup that lacks pieces.
//! I2. While a manifest cannot be read, nobody knows what it needs: no piece is deleted.
//!
//! One manifest at a time is in memory.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::collections::BTreeSet;
use std::time::Duration;

use super::names::{ObjectName, Piece};
use super::objects::{Objects, read_manifest};
use super::store::BackupStore;
use crate::base::{Error, ErrorKind, Result};

/// Which backups a purge removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purge {
    /// All but this many of the newest, at least 1.
    KeepNewest(usize),
    /// Those that were made longer ago than this by the clock of the system. The newest backup stays.
    OlderThan(Duration),
    /// The one of this number, whatever its state. If it is the newest, the next backup gets its number.
    Backup(u64),
}

/// What a purge has removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PurgeReport {
    /// The numbers of the backups.
    pub backups: Vec<u64>,
    /// The pieces that no other backup needs.
    pub pieces: u64,
    /// The bytes of these pieces.
    pub bytes: u64,
    /// The numbers of backups that cannot be read. Because of them, no piece was removed.
    pub unreadable: Vec<u64>,
}

/// Removes the backups that `purge` names, at the time `now` since 1970.
///
/// # Errors
/// `InvalidArgument`; `NotFound`; that of a manifest that cannot be read if the choice is by count or age: nothing is removed;
/// `Io`.
pub(super) fn purge(store: &dyn BackupStore, purge: Purge, now: Duration) -> Result<PurgeReport> {
    let objects = Objects::list(store)?;
    let mut report = PurgeReport {
        backups: choose(store, &objects, purge, now)?,
        ..PurgeReport::default()
    };
    let numbers = report.backups.iter();
    let names: Vec<String> = numbers
        .map(|number| ObjectName::Manifest(*number).to_string())
        .collect();
    if !names.is_empty() {
        store.delete(&names)?; // I1
    }
    let mut unneeded = objects.pieces;
    let removed: BTreeSet<&u64> = report.backups.iter().collect();
    for &number in objects.backups.iter().filter(|it| !removed.contains(it)) {
        match read_manifest(store, number) {
            Ok(manifest) => manifest.pieces().for_each(|piece| {
                unneeded.remove(&piece);
            }),
            Err(_) => report.unreadable.push(number),
        }
    }
    // I2
    if !report.unreadable.is_empty() {
        return Ok(report);
    }
    let names: Vec<String> = unneeded.keys().map(Piece::to_string).collect();
    if !names.is_empty() {
        store.delete(&names)?;
    }
    report.pieces = names.len() as u64;
    let lengths = unneeded.values().copied();
    report.bytes = lengths.fold(0, u64::saturating_add);
    Ok(report)
}

/// The numbers of the backups that `purge` names, in ascending order.
fn choose(
    store: &dyn BackupStore,
    objects: &Objects,
    purge: Purge,
    now: Duration,
) -> Result<Vec<u64>> {
    match purge {
        Purge::Backup(number) => {
            objects.check_exists(number)?;
            Ok(vec![number])
        }
        Purge::KeepNewest(0) => {
            let message = "a purge keeps at least the newest backup";
            Err(Error::invalid_argument(message))
        }
        Purge::KeepNewest(kept) => {
            let made = times(store, objects)?;
            let gone = made.len().saturating_sub(kept);
            Ok(made[..gone].iter().map(|(number, _)| *number).collect())
        }
        Purge::OlderThan(age) => {
            let mut made = times(store, objects)?;
            made.pop();
            made.retain(|(_, created)| now.saturating_sub(*created) > age);
            Ok(made.into_iter().map(|(number, _)| number).collect())
        }
    }
}

/// The numbers of all backups, and when they were made.
///
/// What cannot be read has no time, and must not count as one of those that are kept: an error.
fn times(store: &dyn BackupStore, objects: &Objects) -> Result<Vec<(u64, Duration)>> {
    let time = |&number: &u64| match read_manifest(store, number) {
        Ok(manifest) => Ok((number, manifest.created)),
        Err(error) => Err(match error.kind() {
            ErrorKind::Corruption => {
                error.context("nothing was removed; remove this backup by its number first")
            }
            ErrorKind::Unsupported => {
                error.context("nothing was removed; purge with the version that made this backup")
            }
            _ => error.context("nothing was removed"),
        }),
    };
    objects.backups.iter().map(time).collect()
}
