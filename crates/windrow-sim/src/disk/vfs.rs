//! The file system of a simulated disk: what the engine does to it.

use super::faults::OperationKind;
use super::file::SimFile;
use super::sim_disk::SimDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windrow::vfs::{File, LockGuard, OpenMode, Vfs};

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
        drop(state);
        SimFile::open(self, id, path, true)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Open, path, 0, &[])?;
        let id = state.image.find(path)?;
        drop(state);
        SimFile::open(self, id, path, mode == OpenMode::ReadWrite)
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

    fn available_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.enter()?.free_bytes())
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
        Ok(SimLock::hold(self, path))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let mut state = self.enter()?;
        state.begin(OperationKind::Lock, path, 0, &[])?;
        state.image.find(path)?;
        match state.locked.entry(path.to_owned()).or_insert(Some(0)) {
            Some(readers) => *readers += 1,
            None => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(SimLock::hold(self, path))
    }
}

/// A lock on a file of a simulated disk, exclusive or shared.
#[derive(Debug)]
struct SimLock {
    disk: SimDisk,
    path: PathBuf,
}

impl SimLock {
    fn hold(disk: &SimDisk, path: &Path) -> Box<dyn LockGuard> {
        Box::new(Self {
            disk: disk.clone(),
            path: path.to_owned(),
        })
    }
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Ok(mut state) = self.disk.enter() {
            match state.locked.get_mut(&self.path) {
                Some(Some(readers)) if *readers > 1 => *readers -= 1,
                _ => {
                    state.locked.remove(&self.path);
                }
            }
        }
    }
}
