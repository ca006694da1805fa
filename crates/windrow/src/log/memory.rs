//! A file system in memory with fault injection, for unit tests of logs, the manifest and recovery.
//!
//! Files and names have a cached and a durable state; a crash keeps the durable state. Faults are set by
//! operation and count.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::{Mutex, MutexGuard};
use crate::vfs::{Advice, File, LockGuard, OpenMode, Region, Vfs};

/// An operation that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Open,
    Read,
    Write,
    Reserve,
    Sync,
    Rename,
    Remove,
    SyncDir,
}

/// An injected fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// The operation that fails; `None` for any.
    pub(crate) operation: Option<Operation>,
    /// The number of such operations that succeed before.
    pub(crate) after: usize,
    /// Whether all later operations fail too.
    pub(crate) lasting: bool,
    pub(crate) error: io::ErrorKind,
}

#[derive(Debug, Default, Clone)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

type SharedContent = Arc<Mutex<Content>>;

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<PathBuf, SharedContent>,
    durable_names: BTreeMap<PathBuf, SharedContent>,
    faults: Vec<Fault>,
    log: Vec<Operation>,
    /// Reads and writes move at most this many bytes and are interrupted every other time.
    piece_bytes: Option<usize>,
    interrupt: bool,
    /// Reservations beyond this length of a file fail.
    quota_bytes: Option<u64>,
}

impl State {
    fn step(&mut self, operation: Operation) -> io::Result<()> {
        self.log.push(operation);
        let mut outcome = Ok(());
        self.faults.retain_mut(|fault| {
            if fault.operation.is_some_and(|struck| struck != operation) {
                return true;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return true;
            }
            outcome = Err(fault.error.into());
            fault.lasting
        });
        outcome
    }

    /// The length of the next piece of a transfer of `length` bytes.
    fn piece(&mut self, length: usize) -> io::Result<usize> {
        let Some(piece) = self.piece_bytes else {
            return Ok(length);
        };
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(length.min(piece))
    }
}

/// The file system. Clones share it.
#[derive(Debug, Default, Clone)]
pub(crate) struct MemoryVfs(Arc<Mutex<State>>);

impl MemoryVfs {
    /// Adds a fault.
    pub(crate) fn inject(&self, fault: Fault) {
        self.state().faults.push(fault);
    }

    /// Makes the `operation` after `after` more of them fail once.
    pub(crate) fn fail_once(&self, operation: Operation, after: usize, error: io::ErrorKind) {
        self.inject(Fault {
            operation: Some(operation),
            after,
            lasting: false,
            error,
        });
    }

    /// Removes all faults.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.quota_bytes = None;
    }

    /// Moves at most `bytes` a call from now on, with interruptions.
    pub(crate) fn move_in_pieces(&self, bytes: usize) {
        self.state().piece_bytes = Some(bytes);
    }

    /// Lets no file reserve space beyond `bytes`.
    pub(crate) fn set_quota(&self, bytes: u64) {
        self.state().quota_bytes = Some(bytes);
    }

    /// The operations since the last call.
    pub(crate) fn take_log(&self) -> Vec<Operation> {
        std::mem::take(&mut self.state().log)
    }

    /// Drops everything that is not durable.
    pub(crate) fn crash(&self) {
        let mut state = self.state();
        state.names = state.durable_names.clone();
        for content in state.names.values() {
            let mut content = content.lock();
            content.cached = content.durable.clone();
        }
    }

    /// The bytes of a file.
    pub(crate) fn read(&self, path: &Path) -> Vec<u8> {
        self.state().names[path].lock().cached.clone()
    }

    /// Sets the bytes of a file, creating it.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) {
        let content = Content {
            cached: bytes.to_vec(),
            durable: bytes.to_vec(),
        };
        let content = Arc::new(Mutex::new(content));
        let mut state = self.state();
        state
            .durable_names
            .insert(path.into(), Arc::clone(&content));
        state.names.insert(path.into(), content);
    }

    /// Removes a file durably.
    pub(crate) fn remove_file(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(path);
        state.durable_names.remove(path);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    fn file(&self, content: &SharedContent) -> Arc<dyn File> {
        Arc::new(MemoryFile {
            vfs: self.clone(),
            content: Arc::clone(content),
        })
    }
}

impl Vfs for MemoryVfs {
    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        state.step(Operation::Create)?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = SharedContent::default();
        state.names.insert(path.into(), Arc::clone(&content));
        drop(state);
        Ok(self.file(&content))
    }

    fn open(&self, path: &Path, _: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        state.step(Operation::Open)?;
        let content = state.names.get(path).cloned();
        drop(state);
        let content = content.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(&content))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        let names = state
            .names
            .keys()
            .filter(|name| name.parent() == Some(path));
        Ok(names
            .filter_map(|name| Some(name.file_name()?.to_str()?.to_owned()))
            .collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step(Operation::Rename)?;
        let content = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step(Operation::Remove)?;
        state.names.remove(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step(Operation::SyncDir)?;
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[derive(Debug)]
struct MemoryFile {
    vfs: MemoryVfs,
    content: SharedContent,
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.vfs.state();
        state.step(Operation::Read)?;
        let content = self.content.lock();
        let start = usize::try_from(offset).unwrap().min(content.cached.len());
        let length = buffer.len().min(content.cached.len() - start);
        let length = state.piece(length)?;
        buffer[..length].copy_from_slice(&content.cached[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.vfs.state();
        state.step(Operation::Write)?;
        let length = state.piece(buffer.len())?;
        let mut content = self.content.lock();
        let start = usize::try_from(offset).unwrap();
        let end = content.cached.len().max(start + length);
        content.cached.resize(end, 0);
        content.cached[start..start + length].copy_from_slice(&buffer[..length]);
        Ok(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.content.lock().cached.len() as u64)
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.vfs.state();
        state.step(Operation::Reserve)?;
        match state.quota_bytes {
            Some(quota) if offset + length > quota => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.vfs.state().step(Operation::Sync)?;
        let mut content = self.content.lock();
        content.durable = content.cached.clone();
        Ok(())
    }

    fn advise(&self, _: Range<u64>, _: Advice) {}

    fn map(&self, _: u64) -> io::Result<Arc<Region>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
