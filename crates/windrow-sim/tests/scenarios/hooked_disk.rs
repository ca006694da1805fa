//! The simulated disk with a hook: what happens before a file is opened or a folder is listed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use windrow::vfs::{File, LockGuard, OpenMode, Vfs};
use windrow_sim::SimDisk;

type Hook = Box<dyn FnMut(&Path) + Send>;

/// A disk, and what happens before a file on it is opened. A hook that panics is gone.
#[derive(Clone)]
pub(crate) struct HookedDisk {
    disk: SimDisk,
    pub(crate) hook: Arc<Mutex<Option<Hook>>>,
}

impl HookedDisk {
    pub(crate) fn new(disk: &SimDisk) -> Self {
        Self {
            disk: disk.clone(),
            hook: Arc::default(),
        }
    }

    /// Calls the hook, unless it is running.
    fn call(&self, path: &Path) {
        let hook = self.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            hook(path);
            *self.hook.lock().unwrap() = Some(hook);
        }
    }
}

impl fmt::Debug for HookedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.disk.fmt(f)
    }
}

impl Vfs for HookedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.call(path);
        self.disk.open(path, mode)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.call(path);
        self.disk.list(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.disk.create(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.resolve(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.disk.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.disk.lock_shared(path)
    }
}
