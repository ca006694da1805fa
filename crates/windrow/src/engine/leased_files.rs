//! The removal of files that readers in other processes, or the state after a crash, may use.
//!
//! A file that the manifest no longer names waits here while a lease needs it: while the place of a live
//! [lease](super::secondary::lease) lies before the edit that has dropped the file. Without leases, which is the usual case,
//! each removal costs one look for their folder.
//!
//! I1. A file is removed only after a look at the leases that began after its edit was durable.
//! I2. A lease counts as live while its lock is held and its place has changed within [`LEASE_TIMEOUT`]. The clock of this
//!     process alone decides.
//! I3. If the leases cannot be read, they count as live and need everything. So does one whose place cannot be read, such as one
//!     with a key that this process does not have, while its lock is held.
//! I4. Without a log, the last [point](super::catalog::Catalog::point) counts as a lease that never ends, for the files that are
//!     older than it: a crash takes the database back to it.
//!
//! Files that wait at the end of a process are unnamed files at the next open, which treats them in the same way.
//!
//! Concurrency: one lock, held during the look at the leases.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::Engine;
use super::secondary::lease::{
    LEASE_TIMEOUT, LOCK_SUFFIX, PLACE_SUFFIX, READERS, decode, with_suffix,
};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::manifest::ManifestPosition;
use crate::manifest::names::FileName;
use crate::vfs::{self, OpenMode, Vfs};

/// While files wait, the leases are looked at again after this time.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The largest place that is read.
const PLACE_BYTES_MAX: u64 = 4096;

/// Files that wait for readers.
#[derive(Debug, Default)]
pub(super) struct LeasedFiles {
    waiting: Mutex<Waiting>,
    /// How many wait, for threads that cannot wait for the look.
    count: AtomicU64,
    /// When to look again, in nanoseconds of the runtime's clock.
    next_look: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The files, each with the end of the manifest at a time when it did not name the file any more.
    files: Vec<(ManifestPosition, FileName)>,
    leases: BTreeMap<String, Watched>,
}

/// A lease as it was when its bytes changed last.
#[derive(Debug)]
struct Watched {
    place: Vec<u8>,
    since: Duration,
}

impl Waiting {
    /// The oldest position that a live lease needs; `None` if there is no lease.
    fn needed_from(
        &mut self,
        vfs: &dyn Vfs,
        directory: &Path,
        now: Duration,
    ) -> Option<ManifestPosition> {
        let folder = directory.join(READERS);
        let names = match vfs.list(&folder) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(_) => return Some(ManifestPosition::default()), // I3
        };
        let readers = names.iter().filter_map(|name| {
            let lock = name.strip_suffix(LOCK_SUFFIX);
            lock.or_else(|| name.strip_suffix(PLACE_SUFFIX))
        });
        let readers: BTreeSet<&str> = readers.collect();
        self.leases.retain(|name, _| readers.contains(&**name));
        let mut needed = None;
        for reader in readers {
            let path = folder.join(reader);
            let lock = vfs.lock(&with_suffix(&path, LOCK_SUFFIX));
            let place = match &lock {
                Ok(_) => None,
                Err(_) => self.live_place(vfs, reader, &path, now),
            };
            // The place first: without it the reader notices. If it stays, the reader relies on it.
            let place = place.or_else(|| {
                remove_place(vfs, &path)
                    .err()
                    .map(|_| ManifestPosition::default())
            });
            if let Some(place) = place {
                needed = Some(needed.map_or(place, |it: ManifestPosition| it.min(place)));
            } else {
                drop(vfs.remove(&with_suffix(&path, LOCK_SUFFIX)));
                self.leases.remove(reader);
            }
            drop(lock);
        }
        needed
    }

    /// The place of the lease `reader`, whose lock is held; `None` if it is dead all the same (I2).
    fn live_place(
        &mut self,
        vfs: &dyn Vfs,
        reader: &str,
        path: &Path,
        now: Duration,
    ) -> Option<ManifestPosition> {
        let place = match read_place(vfs, path) {
            // It is about to be written.
            Err(error) if is_unwritten(&error) => Vec::new(),
            Err(_) => return Some(ManifestPosition::default()), // I3
            Ok(place) => place,
        };
        let watched = self.leases.get_mut(reader);
        match watched {
            Some(watched) if watched.place == place => {
                if now.saturating_sub(watched.since) >= LEASE_TIMEOUT {
                    return None;
                }
            }
            _ => {
                let watched = Watched {
                    place: place.clone(),
                    since: now,
                };
                self.leases.insert(reader.to_owned(), watched);
            }
        }
        Some(decode(&place))
    }
}

/// Whether a place has no bytes yet.
fn is_unwritten(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
    )
}

fn remove_place(vfs: &dyn Vfs, path: &Path) -> io::Result<()> {
    match vfs.remove(&with_suffix(path, PLACE_SUFFIX)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

fn read_place(vfs: &dyn Vfs, path: &Path) -> io::Result<Vec<u8>> {
    let file = vfs.open(&with_suffix(path, PLACE_SUFFIX), OpenMode::Read)?;
    let length = file.length()?.min(PLACE_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    vfs::read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

impl Engine {
    /// Removes `files`, which the manifest does not name, and those that have waited, as far as no lease needs them. If a
    /// removal fails, the next open tries again.
    pub(super) fn remove_files(&self, files: &[FileName]) {
        let vfs = &*self.options.vfs;
        let leased_files = &self.leased_files;
        let mut waiting = leased_files.waiting.lock();
        if files.is_empty() && waiting.files.is_empty() {
            return;
        }
        let now = self.options.runtime.now();
        let next_look = nanoseconds(now.saturating_add(LOOK_INTERVAL));
        leased_files.next_look.store(next_look, Ordering::Release);
        let needed = waiting.needed_from(vfs, &self.directory, now);
        let point = self.catalog.point();
        let may_wait = needed.is_some() || point.is_some();
        let dropped_at = may_wait.then(|| self.catalog.position());
        let dropped_at = dropped_at.unwrap_or_default();
        let files = files.iter().map(|file| (dropped_at, *file));
        waiting.files.extend(files);
        let mut count = 0;
        waiting.files.retain(|(dropped_at, file)| {
            let is_leased = needed.is_some_and(|needed| needed < *dropped_at);
            let is_needed = is_leased || point.is_some_and(|it| it.needs(*file, *dropped_at));
            if !is_needed {
                drop(vfs.remove(&self.directory.join(file.to_string())));
            }
            count += u64::from(is_leased);
            is_needed
        });
        leased_files.count.store(count, Ordering::Release);
    }

    /// Whether files wait for readers, and another look at the leases is due at `now`.
    pub(super) fn is_look_at_leases_due(&self, now: Duration) -> bool {
        self.files_held_by_readers() > 0
            && nanoseconds(now) >= self.leased_files.next_look.load(Ordering::Acquire)
    }

    /// The number of files that wait for readers in other processes.
    pub(super) fn files_held_by_readers(&self) -> u64 {
        self.leased_files.count.load(Ordering::Acquire)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
