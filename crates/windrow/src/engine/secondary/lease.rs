//! The lease by which a process that only reads keeps files of the database alive.
//!
//! A reader has two files in the folder `readers` of the database: a lock, which it holds until it ends, and a place, which
//! says from where in the manifest on it needs files. The writer removes a file only if every live lease has passed the edit
//! that drops it ([`leased_files`](crate::engine::leased_files)). "Leases" in docs/format.md has the bytes.
//!
//! I1. A lease exists, with a place that needs everything, before its reader reads the manifest. So the reader finds there
//!     every edit whose files the writer has removed without a look at the lease.
//! I2. The place never passes a state that somebody holds.
//! I3. Each renewal changes the bytes of the place. The writer takes a lease for dead if nobody holds its lock, or if the bytes
//!     have not changed for [`LEASE_TIMEOUT`] on the writer's own clock.
//!
//! Nothing of a lease needs to survive a crash of the machine, which ends its reader. So it is never synced.
//!
//! Concurrency: one lock over the place.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::codec::checksum::checksum;
use crate::manifest::ManifestPosition;
use crate::vfs::{self, File, LockGuard, OpenMode, Vfs};

/// The folder of the leases, within that of the database.
pub(in crate::engine) const READERS: &str = "readers";

/// The ends of the names of a lease's files.
pub(in crate::engine) const LOCK_SUFFIX: &str = ".lock";
pub(in crate::engine) const PLACE_SUFFIX: &str = ".place";

/// A lease that is not renewed for this time is dead, although its process lives.
pub(in crate::engine) const LEASE_TIMEOUT: Duration = Duration::from_secs(30);

/// A reader renews its lease after this time.
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// The first bytes of a place.
const MAGIC: &[u8; 8] = b"wdr-read";

/// The bytes of a place.
const PLACE_BYTES: usize = 36;

/// A writer that looks between the creation of a lock file and the lock takes the lease for dead. The reader then tries
/// again, this many times.
const TRIES_MAX: usize = 16;

/// The bytes of a place: needs what the manifest names from `position` on.
fn encode(position: ManifestPosition, beat: u64) -> [u8; PLACE_BYTES] {
    let mut bytes = [0; PLACE_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    for (index, field) in [position.number, position.offset, beat].iter().enumerate() {
        bytes[8 * (index + 1)..8 * (index + 2)].copy_from_slice(&field.to_le_bytes());
    }
    let sum = checksum(0, &bytes[..PLACE_BYTES - 4]);
    bytes[PLACE_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The position in the bytes of a place. One that cannot be read, as it is being written, needs everything.
pub(in crate::engine) fn decode(bytes: &[u8]) -> ManifestPosition {
    let everything = ManifestPosition::default();
    let Some(bytes) = bytes.first_chunk::<PLACE_BYTES>() else {
        return everything;
    };
    let field = |index: usize| {
        let bytes = bytes[8 * index..].first_chunk().copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let position = ManifestPosition {
        number: field(1),
        offset: field(2),
    };
    if encode(position, field(3)) == *bytes {
        position
    } else {
        everything
    }
}

/// The lease of this reader. Its files go when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    vfs: Arc<dyn Vfs>,
    /// Its names without their ends.
    path: PathBuf,
    file: Arc<dyn File>,
    place: Mutex<Place>,
    /// Whether it was found removed.
    is_gone: AtomicBool,
    _lock: Box<dyn LockGuard>,
}

#[derive(Debug, Default)]
struct Place {
    /// The positions of the states that somebody holds, and how often.
    held: BTreeMap<ManifestPosition, usize>,
    /// What is written.
    position: ManifestPosition,
    beat: u64,
}

impl Lease {
    /// Takes a lease on the database in `directory`, which needs everything at first. `random` gives its name.
    ///
    /// # Errors
    /// `Io`, for example if this process may not write to the folder; `NoSpace`.
    pub(crate) fn take(
        vfs: &Arc<dyn Vfs>,
        directory: &Path,
        random: impl Fn() -> u64,
    ) -> Result<Self> {
        let folder = directory.join(READERS);
        let failure = |operation: &str, path: &Path, error: io::Error| {
            let context = "a reader beside a writer keeps a lease in the folder of the database";
            Error::io(operation, path, error).context(context)
        };
        // Not as a durable name: the report of a failed sync of the database's folder belongs to the writer.
        vfs.create_dir(&folder)
            .map_err(|error| failure("create", &folder, error))?;
        for _ in 0..TRIES_MAX {
            let path = folder.join(format!("{:016x}", random()));
            let lock_path = with_suffix(&path, LOCK_SUFFIX);
            let lock = match vfs.lock(&lock_path) {
                Ok(lock) => lock,
                // A writer is about to remove it.
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(failure("lock", &lock_path, error)),
            };
            let place_path = with_suffix(&path, PLACE_SUFFIX);
            let place = vfs.create(&place_path).and_then(|file| {
                let bytes = encode(ManifestPosition::default(), 0);
                vfs::write_all_at(&*file, &bytes, 0).map(|()| file)
            });
            let file = match place {
                Ok(file) => file,
                Err(error) => {
                    drop(vfs.remove(&place_path));
                    drop(vfs.remove(&lock_path));
                    return Err(failure("write", &place_path, error));
                }
            };
            // The name must still belong to the file that is locked: then a second lock is refused.
            match vfs.lock_shared(&lock_path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Self {
                        vfs: Arc::clone(vfs),
                        path,
                        file,
                        place: Mutex::default(),
                        is_gone: AtomicBool::new(false),
                        _lock: lock,
                    });
                }
                Err(error) if !is_transient(&error) => {
                    drop(vfs.remove(&place_path));
                    drop(vfs.remove(&lock_path));
                    return Err(failure("lock", &lock_path, error));
                }
                _ => drop(vfs.remove(&place_path)),
            }
        }
        let message = "a writer has taken each new lease for that of a dead reader";
        Err(Error::new(ErrorKind::Io, message))
    }

    /// Keeps what the manifest names at `position`, until the result is dropped.
    pub(super) fn hold(self: &Arc<Self>, position: ManifestPosition) -> HeldPlace {
        *self.place.lock().held.entry(position).or_default() += 1;
        HeldPlace {
            lease: Arc::clone(self),
            position,
        }
    }

    /// Writes the place, if it has moved or `is_due`: the oldest state that somebody holds, or `newest`. A writer that sees
    /// this has another [`LEASE_TIMEOUT`] to wait.
    ///
    /// # Errors
    /// `FellBehind` if a writer has taken this reader for dead; `Io`.
    pub(super) fn renew(&self, newest: ManifestPosition, is_due: bool) -> Result<()> {
        let mut place = self.place.lock();
        let oldest = place.held.keys().next().copied();
        let position = oldest.unwrap_or(newest);
        if !is_due && place.position == position {
            return Ok(());
        }
        place.position = position;
        place.beat += 1;
        let bytes = encode(position, place.beat);
        let path = with_suffix(&self.path, PLACE_SUFFIX);
        vfs::write_all_at(&*self.file, &bytes, 0)
            .map_err(|error| Error::io("write to", &path, error))?;
        if self.is_gone() {
            return Err(Error::new(ErrorKind::FellBehind, lost_message()));
        }
        Ok(())
    }

    /// Whether a writer has taken this reader for dead: files that it needs may be gone.
    pub(super) fn is_gone(&self) -> bool {
        let is_removed = || {
            let path = with_suffix(&self.path, PLACE_SUFFIX);
            let opened = self.vfs.open(&path, OpenMode::Read);
            opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        if !self.is_gone.load(Ordering::Acquire) && is_removed() {
            self.is_gone.store(true, Ordering::Release);
        }
        self.is_gone.load(Ordering::Acquire)
    }
}

/// What a reader gets that a writer has taken for dead.
pub(super) fn lost_message() -> String {
    format!(
        "the writer has given this reader up, whose lease was not renewed for {} seconds: catch up to read a newer state",
        LEASE_TIMEOUT.as_secs()
    )
}

/// Whether another try with another name may succeed.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotFound
    )
}

pub(in crate::engine) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Drop for Lease {
    fn drop(&mut self) {
        // If this fails, the writer finds the lock free.
        drop(self.vfs.remove(&with_suffix(&self.path, PLACE_SUFFIX)));
        drop(self.vfs.remove(&with_suffix(&self.path, LOCK_SUFFIX)));
    }
}

/// Keeps a state of the database alive.
#[derive(Debug)]
pub(super) struct HeldPlace {
    lease: Arc<Lease>,
    position: ManifestPosition,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut place = self.lease.place.lock();
        if let Some(count) = place.held.get_mut(&self.position) {
            *count -= 1;
            if *count == 0 {
                place.held.remove(&self.position);
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{ManifestPosition, PLACE_BYTES, decode, encode};

    #[test]
    fn a_place_reads_back_and_a_damaged_one_needs_everything() {
        let position = ManifestPosition {
            number: 7,
            offset: 1 << 40,
        };
        let bytes = encode(position, 12);
        assert_eq!(decode(&bytes), position);
        assert_ne!(bytes, encode(position, 13));
        for index in 0..PLACE_BYTES {
            let mut damaged = bytes;
            damaged[index] ^= 4;
            assert_eq!(decode(&damaged), ManifestPosition::default());
        }
        assert_eq!(decode(&bytes[1..]), ManifestPosition::default());
        assert_eq!(decode(&[]), ManifestPosition::default());
    }
}
