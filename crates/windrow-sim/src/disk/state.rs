//! The state of a simulated disk besides its image: counters, plans, handles and rules.
//!
//! One lock of the disk protects all of it. Names and bytes are in the image alone, so a copy of the image is
//! a copy of the disk.

use super::bytes::SECTOR_BYTES;
use super::directory::InodeId;
use super::faults::{AfterFailedSync, Fault, OperationKind};
use super::image::Image;
use super::page_cache::PageCache;
use super::region::SimRegion;
use crate::random::combine;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use xxhash_rust::xxh3::xxh3_64;

/// One I/O that changed the disk or tried to.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its number, from 0.
    pub index: u64,
    /// What it was.
    pub kind: OperationKind,
    /// The file or directory; for a rename the new name.
    pub path: PathBuf,
    /// The offset in the file, for writes.
    pub offset: u64,
    /// The bytes written.
    pub bytes: Vec<u8>,
}

impl Event {
    /// Whether this is a `kind` of I/O on a file with `extension`.
    pub fn is(&self, kind: OperationKind, extension: &str) -> bool {
        self.kind == kind && self.path.extension().is_some_and(|own| own == extension)
    }
}

/// A function that receives each change.
type Observer = Box<dyn FnMut(&Event, &Image) + Send>;

/// Everything under the lock of a disk.
#[derive(Default)]
pub(super) struct State {
    pub(super) image: Image,
    pub(super) page_cache: PageCache,
    /// The process that may use the disk.
    pub(super) process: u64,
    pub(super) observer: Option<Observer>,

    pub(super) changes: u64,
    pub(super) power_off_after: Option<u64>,
    pub(super) trace: u64,

    pub(super) faults: Vec<Fault>,
    pub(super) fault_log: Vec<String>,
    /// Operations since the faults were set.
    pub(super) counts: BTreeMap<OperationKind, u64>,
    pub(super) quota: Option<u64>,
    pub(super) cannot_reserve: bool,
    pub(super) cannot_link: bool,

    /// The locks that are held: `None` exclusively, else by this number of readers.
    pub(super) locked: BTreeMap<PathBuf, Option<usize>>,
    pub(super) protected: BTreeSet<PathBuf>,
    /// Suffixes of the files that must not be removed while they are open or mapped.
    pub(super) removal_in_use_forbidden: Vec<String>,
    /// The number of handles of each open file.
    handles: BTreeMap<InodeId, usize>,
    regions: Vec<(InodeId, Weak<SimRegion>)>,
}

impl State {
    pub(super) fn new(image: Image) -> Self {
        Self {
            image,
            ..Self::default()
        }
    }

    /// Counts an operation. Fails if a fault is planned for it.
    pub(super) fn begin(
        &mut self,
        kind: OperationKind,
        path: &Path,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<()> {
        let fault = self.begin_with_fault(kind, path, offset, bytes)?;
        fault
            .and_then(|fault| fault.effect.error())
            .map_or(Ok(()), Err)
    }

    /// Counts an operation and returns the fault that is planned for it.
    pub(super) fn begin_with_fault(
        &mut self,
        kind: OperationKind,
        path: &Path,
        offset: u64,
        bytes: &[u8],
    ) -> io::Result<Option<Fault>> {
        if self.power_off_after.is_some_and(|end| self.changes >= end) {
            return Err(io::Error::other("the power is off"));
        }
        let count = self.counts.entry(kind).or_default();
        let index = *count;
        *count += 1;
        let place = xxh3_64(path.as_os_str().as_encoded_bytes());
        for part in [kind as u64, place, offset, xxh3_64(bytes)] {
            self.trace = combine(self.trace, part);
        }
        let fault = self
            .faults
            .iter()
            .find(|fault| fault.hits(kind, index))
            .copied();
        if let Some(fault) = fault {
            self.fault_log.push(format!(
                "{kind:?} {index} of {} at offset {offset}: {fault}",
                path.display()
            ));
        }
        Ok(fault)
    }

    /// Counts a change and shows it to the observer.
    pub(super) fn changed(&mut self, kind: OperationKind, path: &Path, offset: u64, bytes: &[u8]) {
        let index = self.changes;
        self.changes += 1;
        if let Some(observer) = &mut self.observer {
            let event = Event {
                index,
                kind,
                path: path.to_owned(),
                offset,
                bytes: bytes.to_owned(),
            };
            observer(&event, &self.image);
        }
    }

    /// Counts a sync and calls `sync`, which gets what becomes of the changes if the sync is to fail.
    pub(super) fn synced(
        &mut self,
        kind: OperationKind,
        path: &Path,
        sync: impl FnOnce(&mut Image, Option<AfterFailedSync>) -> io::Result<()>,
    ) -> io::Result<()> {
        let fault = self.begin_with_fault(kind, path, 0, &[])?;
        let error = fault.and_then(|fault| Some((fault.after, fault.effect.error()?)));
        sync(&mut self.image, error.as_ref().map(|(after, _)| *after))?;
        self.image.forget_unreachable(self.handles.keys().copied());
        self.changed(kind, path, 0, &[]);
        error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Forgets everything that belongs to the process; returns the next process.
    pub(super) fn end_process(&mut self) -> u64 {
        self.handles.clear();
        self.regions.clear();
        self.locked.clear();
        self.image.forget_unreachable(std::iter::empty());
        self.process += 1;
        self.process
    }

    /// A file has one more handle.
    pub(super) fn opened(&mut self, id: InodeId) {
        *self.handles.entry(id).or_default() += 1;
    }

    /// A file has one handle less.
    pub(super) fn closed(&mut self, id: InodeId) {
        match self.handles.get_mut(&id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                self.handles.remove(&id);
            }
        }
    }

    pub(super) fn add_region(&mut self, id: InodeId, region: &Arc<SimRegion>) {
        self.regions.retain(|(_, region)| region.strong_count() > 0);
        self.regions.push((id, Arc::downgrade(region)));
    }

    pub(super) fn regions(&self, id: InodeId) -> Vec<Arc<SimRegion>> {
        let of_file = self.regions.iter().filter(|(owner, _)| *owner == id);
        of_file.filter_map(|(_, region)| region.upgrade()).collect()
    }

    /// Panics if a cut to `length` would take mapped bytes away.
    pub(super) fn check_truncation(&self, id: InodeId, path: &Path, length: u64) {
        let mapped = self.regions(id).iter().map(|region| region.length()).max();
        assert!(
            mapped.is_none_or(|mapped| mapped <= length),
            "{} is cut to {length} bytes while more are mapped",
            path.display()
        );
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.image.used_bytes(self.handles.keys().copied())
    }

    /// The bytes that files may still use, in whole sectors.
    pub(super) fn free_bytes(&self) -> u64 {
        const SECTOR: u64 = SECTOR_BYTES as u64;
        let free = match self.quota {
            Some(quota) => quota.saturating_sub(self.used_bytes()),
            // Far above what fits in memory and far below an overflow of sums.
            None => 1 << 60,
        };
        free / SECTOR * SECTOR
    }

    /// The error of an operation that needs more than the quota leaves.
    pub(super) fn quota_used_up(&mut self, what: &str, path: &Path, offset: u64) -> io::Error {
        self.fault_log.push(format!(
            "{what} of {} at offset {offset}: the quota is used up",
            path.display()
        ));
        io::ErrorKind::StorageFull.into()
    }

    /// Panics if `path` must not be removed.
    pub(super) fn check_removal(&self, path: &Path) -> io::Result<()> {
        let id = self.image.find(path)?;
        assert!(
            !self.protected.contains(path),
            "{} is protected and was removed",
            path.display()
        );
        let name = path.as_os_str().as_encoded_bytes();
        let mut forbidden = self.removal_in_use_forbidden.iter();
        if forbidden.any(|suffix| name.ends_with(suffix.as_bytes())) {
            // The file stays if it has another name.
            let is_last_name = self.image.names_of(id) == 1;
            assert!(
                !is_last_name || !self.handles.contains_key(&id) && self.regions(id).is_empty(),
                "{} is in use and was removed",
                path.display()
            );
        }
        Ok(())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("changes", &self.changes)
            .field("files", &self.image.files())
            .finish_non_exhaustive()
    }
}
