//! The removal of backups.
//!
//! 1. Delete the manifests of the backups. From now on they do not exist.
//! 2. Delete the pieces that no other backup needs, also those that interrupted attempts have left.
//!
//! I1. The first step is durable before the second one begins. So a crash leaves no backup that lacks pieces.
//! I2. While a manifest cannot be read, nobody knows what it needs: no piece is deleted.
//!
//! Concurrency: the caller keeps others from changing the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::manifest::BackupManifest;
use super::names::ObjectName;
use super::objects::{Objects, read_manifest};
use super::store::BackupStore;
use super::transfer::usable;
use crate::base::{Error, Result};

/// Which backups a purge removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purge {
    /// All but this many of the newest, at least 1.
    KeepNewest(usize),
    /// Those that were made longer ago than this by the clock of the system. The newest backup stays.
    OlderThan(Duration),
    /// The one of this number, whatever its state.
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
}

/// Removes the backups that `purge` names, at the time `now` since 1970.
///
/// # Errors
/// `InvalidArgument`; `NotFound`; `Corruption` or `Unsupported` if a choice by number or age finds a manifest that
/// cannot be read, and nothing is removed; `Io`.
pub(super) fn purge(store: &dyn BackupStore, purge: Purge, now: Duration) -> Result<PurgeReport> {
    let objects = Objects::list(store)?;
    let mut manifests = BTreeMap::new();
    for &number in &objects.backups {
        manifests.insert(number, usable(read_manifest(store, number))?);
    }
    if let Purge::Backup(number) = purge {
        objects.check_exists(number)?;
    }
    let removed = choose(&mut manifests, purge, now)?;
    let names: Vec<String> = removed
        .iter()
        .map(|number| ObjectName::Manifest(*number).to_string())
        .collect();
    if !names.is_empty() {
        store.delete(&names)?; // I1
    }
    let mut report = PurgeReport {
        backups: removed,
        ..PurgeReport::default()
    };
    // I2
    if manifests.values().any(Result::is_err) {
        return Ok(report);
    }
    let kept = manifests.values().flatten();
    let needed: BTreeSet<_> = kept.flat_map(BackupManifest::pieces).collect();
    let unneeded = objects.pieces.iter();
    let unneeded: Vec<_> = unneeded
        .filter(|(piece, _)| !needed.contains(piece))
        .collect();
    let names: Vec<String> = unneeded
        .iter()
        .map(|(piece, _)| piece.to_string())
        .collect();
    if !names.is_empty() {
        store.delete(&names)?;
    }
    report.pieces = names.len() as u64;
    report.bytes = unneeded.iter().map(|(_, length)| **length).sum();
    Ok(report)
}

/// Takes the backups that `purge` names out of `manifests`.
fn choose(
    manifests: &mut BTreeMap<u64, Result<BackupManifest>>,
    purge: Purge,
    now: Duration,
) -> Result<Vec<u64>> {
    if let Purge::Backup(number) = purge {
        manifests.remove(&number);
        return Ok(vec![number]);
    }
    if purge == Purge::KeepNewest(0) {
        let message = "a purge keeps at least the newest backup";
        return Err(Error::invalid_argument(message));
    }
    // What cannot be read has no time, and must not count as one of those that are kept.
    if let Some(damaged) = manifests
        .values()
        .find_map(|manifest| manifest.as_ref().err())
    {
        let what = "nothing was removed; remove this backup by its number first";
        return Err(damaged.duplicate().context(what));
    }
    let newest = manifests.keys().next_back().copied();
    let count = manifests.len();
    let goes = |(index, (number, manifest)): (usize, (&u64, &Result<BackupManifest>))| {
        let goes = match (purge, manifest) {
            (Purge::KeepNewest(kept), _) => index + kept < count,
            (Purge::OlderThan(age), Ok(manifest)) => {
                Some(*number) != newest && now.saturating_sub(manifest.created) > age
            }
            _ => false,
        };
        goes.then_some(*number)
    };
    let removed: Vec<u64> = manifests.iter().enumerate().filter_map(goes).collect();
    manifests.retain(|number, _| !removed.contains(number));
    Ok(removed)
}
