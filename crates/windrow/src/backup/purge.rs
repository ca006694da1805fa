//! The removal of backups.
//!
//! 1. Delete the manifests of the backups. From now on they do not exist.
//! 2. Delete the stretches of the archive that no other backup needs: those in front of its place in its history.
//! 3. Delete the pieces that no other backup and no stretch needs, also those that interrupted attempts have left.
//!
//! I1. Each step is durable before the next one begins. So a crash leaves no backup and no stretch that lacks pieces.
//! I2. While a manifest or a stretch cannot be read, nobody knows what it needs: nothing is deleted that it may need.
//!
//! One manifest or stretch at a time is in memory.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::archive;
use super::names::{ObjectName, Piece, StretchName};
use super::objects::{Objects, read_manifest};
use super::store::BackupStore;
use crate::base::{Error, ErrorKind, Result, SequenceNumber};

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
    /// The stretches of the archive that no other backup needs.
    pub stretches: u64,
    /// The pieces that nothing else needs.
    pub pieces: u64,
    /// The bytes of these pieces.
    pub bytes: u64,
    /// The numbers of backups that cannot be read. Because of them, no stretch and no piece was removed.
    pub unreadable: Vec<u64>,
    /// The names of stretches that cannot be read. Because of them, no piece was removed.
    pub unreadable_stretches: Vec<String>,
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
    // The place in each history from which on backups need it.
    let mut places: BTreeMap<u128, SequenceNumber> = BTreeMap::new();
    let removed: BTreeSet<&u64> = report.backups.iter().collect();
    for &number in objects.backups.iter().filter(|it| !removed.contains(it)) {
        match read_manifest(store, number) {
            Ok(manifest) => {
                for piece in manifest.pieces() {
                    unneeded.remove(&piece);
                }
                if let Some(binding) = manifest.binding {
                    let place = places.entry(binding.history).or_insert(binding.place);
                    *place = binding.place.min(*place);
                }
            }
            Err(_) => report.unreadable.push(number),
        }
    }
    // I2
    if !report.unreadable.is_empty() {
        return Ok(report);
    }
    let is_needed = |name: &&StretchName| {
        let place = places.get(&name.history);
        place.is_some_and(|place| name.last > *place)
    };
    let (needed, others): (Vec<&StretchName>, Vec<&StretchName>) =
        objects.stretches.iter().partition(is_needed);
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        store.delete(&names)?; // I1
    }
    report.stretches = others.len() as u64;
    for name in needed {
        match archive::read(store, *name) {
            Ok(stretch) => stretch.pieces.iter().for_each(|piece| {
                unneeded.remove(piece);
            }),
            Err(_) => report.unreadable_stretches.push(name.to_string()),
        }
    }
    // I2
    if !report.unreadable_stretches.is_empty() {
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
