//! A simulated disk with a file system that promises exactly what [`windrow::vfs`] lets the engine
//! rely on, and breaks everything else on request.
//!
//! - *Crashes*: [`SimDisk::crash`] is the disk after a power failure. What was synced is there; of
//!   the rest each sector, each length and each name is applied or lost on its own. What a process
//!   saw survives [`SimDisk::end_process`].
//! - *Every boundary*: [`SimDisk::on_change`] shows the whole state after every I/O that changes
//!   it, as an [`Image`] that costs little to keep, so one run of a history yields all its crashes.
//! - *Faults*: a plan of [`Fault`]s, a quota in bytes, damage planted in stored bytes or in a live
//!   mapping. What went wrong is in [`SimDisk::fault_log`].
//! - *Rules of use*: removing a protected file, or one in use where that is forbidden, panics.
//!
//! Concurrency: one lock over everything; operations are atomic. Observers run under that lock and
//! must not use the disk.

mod bytes;
mod faults;
mod file;
mod image;
mod state;

use state::State;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windrow::vfs::{File, LockGuard, OpenMode, Vfs};

pub use bytes::SECTOR_BYTES;
pub use faults::{AfterFailedSync, Effect, Fault, OperationKind, Repeat};
pub use image::{CrashPolicy, Image};

/// One I/O that changed, or tried to change, the disk.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its number, from 0.
    pub index: u64,
    /// What it was.
    pub kind: OperationKind,
    /// The file or directory; for a rename the new name.
    pub path: PathBuf,
    /// Where in the file, for writes.
    pub offset: u64,
    /// The bytes written.
    pub bytes: Vec<u8>,
}

/// A simulated disk. Clones are handles of the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// Which process this handle belongs to; a handle of one that has ended is dead.
    process: u64,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::from_image(Image::default())
    }

    /// A disk in the state `image`.
    pub fn from_image(image: Image) -> Self {
        Self {
            state: Arc::new(Mutex::new(State::new(image))),
            process: 0,
        }
    }

    /// The state now.
    pub fn image(&self) -> Image {
        self.lock_state().image.clone()
    }

    /// Changes the state behind the back of whoever has it open: how tests plant damage. Open
    /// files keep the bytes they had.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut Image) -> T) -> T {
        edit(&mut self.lock_state().image)
    }

    /// The disk after a power failure at this moment, or at the one chosen by
    /// [`crash_at`](Self::crash_at).
    #[must_use]
    pub fn crash(&self, policy: CrashPolicy) -> Self {
        Self::from_image(self.lock_state().image.crash(policy))
    }

    /// Ends the process that uses the disk and returns the handle of the next one: everything
    /// written is still seen, nothing more is durable, all locks are free, and whatever the ended
    /// process still tries fails.
    #[must_use]
    pub fn end_process(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            process: self.lock_state().end_process(),
        }
    }

    /// Fails every operation after the next `changes` ones that change the disk.
    pub fn crash_at(&self, changes: u64) {
        let mut state = self.lock_state();
        state.power_off_after = Some(state.changes + changes);
    }

    /// How many operations have changed the disk, or tried to.
    pub fn changes(&self) -> u64 {
        self.lock_state().changes
    }

    /// Calls `observer` after each operation that changed the disk, or tried to, with the state
    /// after it. It runs under the lock of the disk and must not use the disk.
    pub fn on_change(&self, observer: impl FnMut(&Event, &Image) + Send + 'static) {
        self.lock_state().observer = Some(Box::new(observer));
    }

    /// Ends what [`on_change`](Self::on_change) began.
    pub fn stop_observing(&self) {
        self.lock_state().observer = None;
    }

    /// Plans faults, counted from now, in place of those planned before.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        let mut state = self.lock_state();
        state.counts.clear();
        state.faults = faults;
    }

    /// How many operations of `kind` there were since the faults were set.
    pub fn operations(&self, kind: OperationKind) -> u64 {
        self.lock_state().counts.get(&kind).copied().unwrap_or(0)
    }

    /// The faults that happened, one sentence each.
    pub fn fault_log(&self) -> Vec<String> {
        self.lock_state().fault_log.clone()
    }

    /// Bounds the bytes that all files may use; `None` for no bound.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.lock_state().quota = bytes;
    }

    /// The bytes that all files use, reserved ones included.
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// Whether `reserve` works; where not, it answers `Unsupported`. It does by default.
    pub fn set_can_reserve(&self, can_reserve: bool) {
        self.lock_state().cannot_reserve = !can_reserve;
    }

    /// Whether files can have several names; where not, `link` answers `Unsupported`. They can by
    /// default.
    pub fn set_can_link(&self, can_link: bool) {
        self.lock_state().cannot_link = !can_link;
    }

    /// Makes the removal of `path` panic.
    pub fn protect(&self, path: &Path) {
        self.lock_state().protected.insert(path.to_owned());
    }

    /// Ends what [`protect`](Self::protect) began.
    pub fn unprotect(&self, path: &Path) {
        self.lock_state().protected.remove(path);
    }

    /// Makes the removal of a file that is open or mapped panic, if its name ends in `suffix`.
    pub fn forbid_removal_in_use(&self, suffix: &str) {
        let mut state = self.lock_state();
        state.removal_in_use_forbidden.push(suffix.to_owned());
    }

    /// Changes a byte of all live mappings of `path`, as a failing memory or device would.
    pub fn damage_mapped(&self, path: &Path, offset: usize, mask: u8) -> io::Result<()> {
        let state = self.lock_state();
        let id = state.image.find(path)?;
        for region in state.regions(id) {
            region.damage(offset, mask);
        }
        Ok(())
    }

    /// A hash over all operations so far with their arguments: equal histories have equal ones.
    pub fn trace_hash(&self) -> u64 {
        self.lock_state().trace
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state for an operation of the process that this handle belongs to.
    fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock_state();
        if state.process == self.process {
            Ok(state)
        } else {
            Err(io::Error::other("the process has ended"))
        }
    }
}

impl Vfs for SimDisk {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter()?;
        let new = !state.image.has_directory(path);
        state.begin(OperationKind::CreateDir, path, 0, &[])?;
        if new {
            state.image.create_dir_all(path);
            state.changed(OperationKind::CreateDir, path, 0, &[]);
        }
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Create, path, 0, &[])?;
        let id = state.image.create(path)?;
        state.changed(OperationKind::Create, path, 0, &[]);
        Ok(state.open_file(self, id, path, true))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Open, path, 0, &[])?;
        let id = state.image.find(path)?;
        Ok(state.open_file(self, id, path, mode == OpenMode::ReadWrite))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::List, path, 0, &[])?;
        state.image.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Rename, to, 0, &[])?;
        state.image.rename(from, to)?;
        state.changed(OperationKind::Rename, to, 0, &[]);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Link, to, 0, &[])?;
        if state.cannot_link {
            return Err(io::ErrorKind::Unsupported.into());
        }
        state.image.link(from, to)?;
        state.changed(OperationKind::Link, to, 0, &[]);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Remove, path, 0, &[])?;
        state.check_removal(path)?;
        state.image.unlink(path)?;
        state.changed(OperationKind::Remove, path, 0, &[]);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.enter()?
            .synced(OperationKind::SyncDir, path, |image, failed| {
                image.sync_dir(path, failed)
            })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Lock, path, 0, &[])?;
        if state.locked.contains_key(path) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if state.image.find(path).is_err() {
            state.image.create(path)?;
            state.changed(OperationKind::Lock, path, 0, &[]);
        }
        state.locked.insert(path.to_owned(), None);
        Ok(Box::new(SimLock {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Lock, path, 0, &[])?;
        state.image.find(path)?;
        match state.locked.entry(path.to_owned()).or_insert(Some(0)) {
            Some(fractions) => *fractions += 1,
            None => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(Box::new(SimLock {
            disk: self.clone(),
            path: path.to_owned(),
        }))
    }
}

/// The lock on a file of a simulated disk, or a share of it.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Ok(mut state) = self.disk.enter() {
            match state.locked.get_mut(&self.path) {
                Some(Some(fractions)) if *fractions > 1 => *fractions -= 1,
                _ => {
                    state.locked.remove(&self.path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
