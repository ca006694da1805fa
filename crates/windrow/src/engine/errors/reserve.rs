//! The reserve: disk space kept back for a full disk, as a preallocated file without content.
//!
//! 1. A write, a flush, the drop of a keyspace, an edit that seals value logs or drops logs, an edit by which
//!    consumers of changes hold less, a close or an open that
//!    meets a full disk removes the file. The space serves the work that frees more: removals and their flushes, and
//!    the manifest and the log of an open.
//! 2. From then on the engine refuses writes that add data, until the disk has space for the file twice;
//!    space for one is what was just released. A refused writer looks for space at once, and background work
//!    looks every second.
//! 3. An open that finds no space for the file refuses such writes, too.
//! 4. A compaction or a garbage collection stops before the disk has less space than that, unless writes are refused
//!    already. So one that is larger than the free space fails alone.
//! 5. The file grows with the database and its logs. If the disk has no space for that, the file keeps its size.
//!
//! A checkpoint does not copy the file. An open for reading leaves it alone.
//!
//! Invariant I1: no promise depends on the file. It has no content, and its name need not be durable.
//! Whether it can be created, found or removed decides only which writes are refused.
//!
//! If the file system cannot preallocate, there is no reserve, and no write is refused for lack of it.
//!
//! Concurrency: one lock, held while the file is created or removed. A writer pays one load.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::{Error, ErrorKind, Result};
use crate::engine::Engine;
use crate::engine::Write;
use crate::engine::counters::Waited;
use crate::manifest::names::FileName;
use crate::policy::StallCause;
use crate::vfs::{OpenMode, Vfs};

/// A database without much data keeps back this much.
const BYTES_MIN: u64 = 64 << 10;

/// A database keeps back one byte for this many in its files, at least [`BYTES_MIN`] and at most the option.
const BYTES_PER_RESERVED: u64 = 16;

/// A database keeps back at least this many times its manifest, up to the option. An open writes the manifest
/// once more, and the reserve may be only half of what it should be, since it grows only to twice its size or more.
const MANIFESTS: u64 = 4;

/// About the most that a job writes between two calls of [`Reserve::check_left`].
const JOB_BYTES: u64 = 512 << 10;

/// The time between two tries of background work to create the reserve.
const TRY_EVERY: Duration = Duration::from_secs(1);

/// The reserve of one database.
#[derive(Debug)]
pub(in crate::engine) struct Reserve {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// The option; 0 for no reserve.
    bytes_max: u64,
    /// What is kept back now, or will be once there is space for it.
    bytes: AtomicU64,
    /// Whether writes that add data are refused.
    is_full: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the file exists with all its space.
    is_held: bool,
    tried: Duration,
}

impl Reserve {
    pub(in crate::engine) fn new(vfs: &Arc<dyn Vfs>, directory: &Path, bytes: u64) -> Self {
        Self {
            vfs: Arc::clone(vfs),
            path: directory.join(FileName::Reserve.to_string()),
            bytes_max: bytes,
            bytes: AtomicU64::new(bytes.min(BYTES_MIN)),
            is_full: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Whether writes that add data are refused.
    #[inline]
    pub(in crate::engine) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// What is kept back, or will be once there is space for it.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the reserve is still smaller than the option allows.
    pub(in crate::engine) fn may_grow(&self) -> bool {
        self.bytes() < self.bytes_max
    }

    /// Makes the first reserve of an open, for a database whose files take `file_bytes` and whose manifest takes
    /// `manifest_bytes`. Removes the reserve of an earlier open, which may have another size.
    pub(in crate::engine) fn take_first(&self, file_bytes: u64, manifest_bytes: u64) {
        let wanted = self.wanted(file_bytes, manifest_bytes);
        self.bytes.store(wanted, Ordering::Relaxed);
        drop(self.vfs.remove(&self.path));
        self.take();
    }

    /// Makes the reserve larger if the database has grown enough; its files take at least `file_bytes`. If the disk has
    /// no space for that, the reserve stays as it is.
    pub(in crate::engine) fn grow(&self, file_bytes: u64, manifest_bytes: u64) {
        let mut state = self.state.lock();
        let (bytes, wanted) = (self.bytes(), self.wanted(file_bytes, manifest_bytes));
        let is_enough = wanted < (2 * bytes).min(self.bytes_max);
        if !self.may_grow() || is_enough || self.is_full() {
            return;
        }
        if self.make(wanted).is_ok() {
            self.bytes.store(wanted, Ordering::Relaxed);
            state.is_held = true;
        } else {
            self.retake(&mut state, bytes);
        }
    }

    fn wanted(&self, file_bytes: u64, manifest_bytes: u64) -> u64 {
        let fraction = file_bytes / BYTES_PER_RESERVED;
        let for_open = MANIFESTS * manifest_bytes;
        fraction.max(for_open).max(BYTES_MIN).min(self.bytes_max)
    }

    /// The bytes that are kept back now.
    pub(in crate::engine) fn held_bytes(&self) -> u64 {
        if self.state.lock().is_held {
            self.bytes()
        } else {
            0
        }
    }

    /// Creates the reserve, or confirms it. Returns whether writers have space.
    pub(in crate::engine) fn take(&self) -> bool {
        let mut state = self.state.lock();
        let outcome = match self.bytes() {
            0 => Ok(()),
            bytes if self.is_full() => self.probe(2 * bytes).and_then(|()| self.make(bytes)),
            bytes => self.make(bytes),
        };
        self.note_taken(&mut state, &outcome)
    }

    /// Creates the reserve anew, with `bytes`. A part of a larger one would only fill the disk further.
    fn retake(&self, state: &mut State, bytes: u64) {
        drop(self.vfs.remove(&self.path));
        let outcome = self.make(bytes);
        self.note_taken(state, &outcome);
    }

    /// Notes the outcome of the creation of the reserve. Returns whether writers have space.
    fn note_taken(&self, state: &mut State, outcome: &io::Result<()>) -> bool {
        state.is_held = self.bytes_max > 0 && outcome.is_ok();
        let is_full = outcome.as_ref().is_err_and(is_no_space);
        if outcome.is_err() || self.bytes_max == 0 {
            // A part of it would only fill the disk further.
            drop(self.vfs.remove(&self.path));
        }
        self.is_full.store(is_full, Ordering::Release);
        !is_full
    }

    /// # Errors
    /// `NoSpace`: if a job writes on, the disk may have less space than the file twice, and no write is refused yet.
    pub(in crate::engine) fn check_left(&self) -> Result<()> {
        if self.bytes() == 0 || self.is_full() {
            return Ok(());
        }
        let needed = 2 * self.bytes() + JOB_BYTES;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        // A system that does not know stops no job.
        let left = self.vfs.available_bytes(directory).unwrap_or(u64::MAX);
        if left >= needed {
            return Ok(());
        }
        let message = format!(
            "only {left} bytes are free, and a compaction or a garbage collection leaves {needed} to writers"
        );
        Err(Error::new(ErrorKind::NoSpace, message))
    }

    /// Fails if the disk has no space for `bytes`.
    fn probe(&self, bytes: u64) -> io::Result<()> {
        self.make(bytes)?;
        self.vfs.remove(&self.path)
    }

    fn make(&self, bytes: u64) -> io::Result<()> {
        let file = match self.vfs.create(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.vfs.open(&self.path, OpenMode::ReadWrite)
            }
            outcome => outcome,
        }?;
        loop {
            match file.reserve(0, bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// Releases the space on a full disk. Returns whether that has freed any.
    pub(in crate::engine) fn release(&self) -> bool {
        if self.bytes_max == 0 {
            return false;
        }
        let mut state = self.state.lock();
        self.is_full.store(true, Ordering::Release);
        let is_removed = state.is_held && self.vfs.remove(&self.path).is_ok();
        state.is_held &= !is_removed;
        is_removed
    }

    /// Whether it is time to try to create the reserve again.
    pub(in crate::engine) fn is_due(&self, now: Duration) -> bool {
        if !self.is_full() {
            return false;
        }
        let mut state = self.state.lock();
        let is_due = now.saturating_sub(state.tried) >= TRY_EVERY;
        if is_due {
            state.tried = now;
        }
        is_due
    }
}

/// Frees the reserve of the database in `directory`, which is not open. Returns whether one existed.
pub(in crate::engine) fn release_unopened(vfs: &dyn Vfs, directory: &Path) -> bool {
    let path = directory.join(FileName::Reserve.to_string());
    vfs.remove(&path).is_ok()
}

fn is_no_space(error: &io::Error) -> bool {
    Error::io("reserve", Path::new(""), io::Error::from(error.kind())).kind() == ErrorKind::NoSpace
}

impl Engine {
    /// Does `work`. If the disk is full, does it again with the space of the reserve.
    pub(in crate::engine) fn with_reserve<R>(&self, work: impl Fn() -> Result<R>) -> Result<R> {
        match work() {
            Err(error) if error.kind() == ErrorKind::NoSpace && self.reserve.release() => work(),
            outcome => outcome,
        }
    }

    /// Lets the reserve grow with the database.
    pub(in crate::engine) fn grow_reserve(&self) {
        if self.reserve.may_grow() {
            let file_bytes = self.file_bytes();
            self.reserve.grow(file_bytes, self.catalog.manifest_bytes());
            self.note_reserve();
        }
    }

    /// Refuses a write that adds data to a full disk, unless the disk has space by now.
    #[cold]
    pub(in crate::engine) fn admit_to_full_disk(&self, write: &Write<'_>) -> Result<()> {
        if write.only_removes() {
            return Ok(());
        }
        let has_space = self.reserve.take();
        self.note_reserve();
        if has_space {
            return Ok(());
        }
        let start = self.options.runtime.now();
        self.count_stall(StallCause::DiskFull, Waited::Stopped, start);
        Err(Error::new(
            ErrorKind::NoSpace,
            format!(
                "the disk is full: until {} bytes are free, twice the reserve, entries can be \
                 removed but not added",
                2 * self.reserve.bytes()
            ),
        ))
    }
}
