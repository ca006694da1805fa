//! The handle of a simulated disk: what tests do to it.

use super::crash::CrashPolicy;
use super::faults::{Fault, OperationKind};
use super::image::Image;
use super::state::{Event, State};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated disk. Clones are handles of the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    /// The process of this handle. The handle of a process that has ended is dead.
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

    /// Changes the state while the engine may have it open: how tests plant damage. Open files keep
    /// the bytes they had.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut Image) -> T) -> T {
        edit(&mut self.lock_state().image)
    }

    /// The disk after a power failure now, or at the change chosen by [`crash_at`](Self::crash_at).
    #[must_use]
    pub fn crash(&self, policy: CrashPolicy) -> Self {
        Self::from_image(self.lock_state().image.crash(policy))
    }

    /// Ends the process that uses the disk and returns the handle of the next process. The next
    /// process sees everything written, nothing more is durable, and all locks are free. Every
    /// operation of the ended process fails.
    #[must_use]
    pub fn end_process(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            process: self.lock_state().end_process(),
        }
    }

    /// Fails every operation after the next `changes` operations that change the disk.
    pub fn crash_at(&self, changes: u64) {
        let mut state = self.lock_state();
        state.power_off_after = Some(state.changes + changes);
    }

    /// The number of operations that changed the disk or tried to.
    pub fn changes(&self) -> u64 {
        self.lock_state().changes
    }

    /// Calls `observer` after each operation that changed the disk or tried to, with the state
    /// after it. The observer runs under the lock of the disk and must not use the disk.
    pub fn on_change(&self, observer: impl FnMut(&Event, &Image) + Send + 'static) {
        self.lock_state().observer = Some(Box::new(observer));
    }

    /// Ends what [`on_change`](Self::on_change) began.
    pub fn stop_observing(&self) {
        self.lock_state().observer = None;
    }

    /// Plans faults, counted from now. They replace those planned before.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut state = self.lock_state();
        state.counts.clear();
        state.faults = faults.into_iter().collect();
    }

    /// The number of operations of `kind` since the faults were set.
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

    /// Whether `reserve` works, as it does by default. Otherwise it answers `Unsupported`.
    pub fn set_can_reserve(&self, can_reserve: bool) {
        self.lock_state().cannot_reserve = !can_reserve;
    }

    /// Whether files can have several names, as they can by default. Otherwise `link` answers
    /// `Unsupported`.
    pub fn set_can_link(&self, can_link: bool) {
        self.lock_state().cannot_link = !can_link;
    }

    /// The pages of `path` in the page cache: their numbers.
    pub fn resident_pages(&self, path: &Path) -> io::Result<BTreeSet<u64>> {
        let state = self.lock_state();
        Ok(state.page_cache.resident(state.image.find(path)?))
    }

    /// Puts the bytes `range` of `path` into the page cache, and nothing else of it.
    pub fn set_resident(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let mut state = self.lock_state();
        let id = state.image.find(path)?;
        state.page_cache.forget(id);
        state.page_cache.load(id, range);
        Ok(())
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

    /// A hash over all operations so far with their arguments. Equal histories have equal hashes.
    pub fn trace_hash(&self) -> u64 {
        self.lock_state().trace
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state for an operation of the process that this handle belongs to.
    pub(super) fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock_state();
        if state.process == self.process {
            Ok(state)
        } else {
            Err(io::Error::other("the process has ended"))
        }
    }
}
