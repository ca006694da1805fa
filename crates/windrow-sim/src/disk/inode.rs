//! A file's content: what is cached, what is durable, and the changes between the two.
//!
//! Invariant (I2 of [`Image`](super::Image)): only a sync or a crash changes what is durable.

use super::bytes::{Bytes, SECTOR_BYTES, Sector};
use super::crash::Fate;
use super::faults::AfterFailedSync;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64;

/// A change of a file that is not yet durable.
#[derive(Debug, Clone)]
enum PendingChange {
    Sector(usize, Sector),
    Length(u64),
    /// The file was cut to this length.
    Cut(u64),
}

/// A file's content.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    cached: Bytes,
    durable: Bytes,
    pending: Vec<PendingChange>,
    /// Bytes that writes can use without more space on the disk.
    allocated: u64,
    /// Hash of the durable bytes, computed at the first call.
    hash: OnceLock<u64>,
}

impl Inode {
    /// A file of `bytes`, all durable.
    pub(super) fn durable(bytes: Bytes) -> Self {
        Self {
            allocated: rounded(bytes.length()),
            cached: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    /// What running processes see.
    pub(super) fn cached(&self) -> &Bytes {
        &self.cached
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocated
    }

    pub(super) fn has_unsynced(&self) -> bool {
        !self.pending.is_empty()
    }

    /// A hash of the durable bytes.
    pub(super) fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| xxh3_64(&self.durable.to_vec()))
    }

    pub(super) fn write_at(&mut self, offset: u64, bytes: &[u8]) {
        let touched = self.cached.write(offset, bytes);
        let end = offset + bytes.len() as u64;
        self.reserve(end);
        let is_cut = |change: &PendingChange| matches!(change, PendingChange::Cut(_));
        if end > self.durable.length() || self.pending.iter().any(is_cut) {
            self.pending.push(PendingChange::Length(end));
        }
        self.pending.extend(
            touched
                .into_iter()
                .map(|(index, sector)| PendingChange::Sector(index, sector)),
        );
    }

    pub(super) fn reserve(&mut self, end: u64) {
        self.allocated = self.allocated.max(rounded(end));
    }

    pub(super) fn truncate(&mut self, length: u64) {
        if length < self.cached.length() {
            self.cached.set_length(length);
            self.pending.push(PendingChange::Cut(length));
        }
        self.allocated = self.allocated.min(rounded(self.cached.length()));
    }

    pub(super) fn sync(&mut self, failed: Option<AfterFailedSync>) {
        let pending = std::mem::take(&mut self.pending);
        match failed {
            None | Some(AfterFailedSync::Durable) => apply(&mut self.durable, &pending),
            Some(AfterFailedSync::LostAtCrash) => {}
            Some(AfterFailedSync::Reverted) => self.cached = self.durable.clone(),
        }
        self.hash = OnceLock::new();
    }

    /// What a power failure leaves.
    pub(super) fn crash(&self, fate: &mut Fate) -> Self {
        if self.pending.is_empty() {
            let crashed = Self::durable(self.durable.clone());
            // Computed here, where every later image of this unchanged file finds it.
            crashed.hash.get_or_init(|| self.hash());
            return crashed;
        }
        let mut bytes = self.durable.clone();
        let survivors = fate.survivors(self.pending.len());
        let chosen = self.pending.iter().zip(&survivors);
        apply(
            &mut bytes,
            chosen.filter_map(|(change, survives)| survives.then_some(change)),
        );
        if fate.leaves_garbage() {
            self.spoil(fate, &survivors, &mut bytes);
        }
        Self::durable(bytes)
    }

    /// Fills lost sectors by which the file grew with garbage.
    fn spoil(&self, fate: &mut Fate, survivors: &[bool], bytes: &mut Bytes) {
        for (change, survives) in self.pending.iter().zip(survivors) {
            let PendingChange::Sector(index, _) = change else {
                continue;
            };
            let grown = (index * SECTOR_BYTES) as u64 >= self.durable.length();
            if grown
                && !survives
                && let Some(garbage) = fate.garbage()
            {
                bytes.set_sector(*index, Arc::new(garbage));
            }
        }
    }
}

fn apply<'a>(bytes: &mut Bytes, changes: impl IntoIterator<Item = &'a PendingChange>) {
    let changes: Vec<_> = changes.into_iter().collect();
    // A change before a cut must not come back after it.
    let is_together =
        |_: &&PendingChange, next: &&PendingChange| !matches!(next, PendingChange::Cut(_));
    for changes in changes.chunk_by(is_together) {
        // The lengths first: a sector survives only within the length.
        for change in changes {
            match change {
                PendingChange::Length(length) if *length > bytes.length() => {
                    bytes.set_length(*length);
                }
                PendingChange::Cut(length) if *length < bytes.length() => {
                    bytes.set_length(*length);
                }
                _ => {}
            }
        }
        for change in changes {
            if let PendingChange::Sector(index, sector) = change {
                bytes.set_sector(*index, Arc::clone(sector));
            }
        }
    }
}

fn rounded(length: u64) -> u64 {
    length.next_multiple_of(SECTOR_BYTES as u64)
}
