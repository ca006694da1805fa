//! The whole state of a simulated disk as a value: what is durable, what is only cached, and the
//! changes between the two.
//!
//! A copy has all sectors and all unchanged files in common with its source. So a test can keep the state after every I/O.
//!
//! Invariants:
//! - I1: what a directory caches is what is durable with all pending changes applied.
//! - I2: only a sync or a crash changes what is durable. A crash leaves nothing pending.
//! - I3: every name, durable, cached or pending, refers to an existing inode.

use super::bytes::Bytes;
use super::crash::{CrashPolicy, Fate};
use super::directory::{Directory, InodeId, PendingName};
use super::faults::AfterFailedSync;
use super::inode::Inode;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The state of a simulated disk.
#[derive(Debug, Clone, Default)]
pub struct Image {
    inodes: BTreeMap<InodeId, Arc<Inode>>,
    directories: BTreeMap<PathBuf, Arc<Directory>>,
    next_inode: InodeId,
}

impl Image {
    /// The paths of all files, as a running process sees them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.directories
            .iter()
            .flat_map(|(path, directory)| directory.cached().keys().map(|name| path.join(name)))
            .collect()
    }

    /// The paths of the files with `extension`, as a running process sees them.
    pub fn files_with(&self, extension: &str) -> Vec<PathBuf> {
        let mut files = self.files();
        files.retain(|path| path.extension().is_some_and(|own| own == extension));
        files
    }

    /// The bytes of the file `path`, as a running process sees them.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.inodes[&self.find(path)?].cached().to_vec())
    }

    /// Replaces or creates the file `path` durably: how tests plant damage.
    pub fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let id = self.new_inode(Inode::durable(Bytes::from_slice(bytes)));
        let directory = self.directory_mut(parent)?;
        directory.change(PendingName::Link(name, id));
        directory.sync(None);
        Ok(())
    }

    /// Removes the file `path` durably.
    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.unlink(path)?;
        let (parent, _) = split(path)?;
        self.directory_mut(parent)?.sync(None);
        Ok(())
    }

    /// Flips the bits of `mask` in one byte of the file `path`, durably: how tests plant damage.
    pub fn flip(&mut self, path: &Path, offset: usize, mask: u8) -> io::Result<()> {
        let mut bytes = self.read(path)?;
        bytes[offset] ^= mask;
        self.write(path, &bytes)
    }

    /// A hash of all names and bytes that a crash that loses everything unsynced would leave.
    pub fn hash(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for (path, directory) in &self.directories {
            hasher.update(path.as_os_str().as_encoded_bytes());
            for (name, id) in directory.durable() {
                hasher.update(name.as_bytes());
                hasher.update(&[0]);
                hasher.update(&self.inodes[id].hash().to_le_bytes());
            }
        }
        hasher.digest()
    }

    /// The state after a power failure.
    #[must_use]
    pub fn crash(&self, policy: CrashPolicy) -> Self {
        let mut fate = Fate::new(policy);
        let crash = |directory: &Directory, fate: &mut Fate| Arc::new(directory.crash(fate));
        let directories: BTreeMap<_, _> = self
            .directories
            .iter()
            .map(|(path, directory)| (path.clone(), crash(directory, &mut fate)))
            .collect();
        let named: BTreeSet<InodeId> = directories
            .values()
            .flat_map(|directory| directory.durable().values().copied())
            .collect();
        let inodes = named
            .into_iter()
            .map(|id| (id, Arc::new(self.inodes[&id].crash(&mut fate))))
            .collect();
        Self {
            inodes,
            directories,
            next_inode: self.next_inode,
        }
    }

    /// Whether a power failure could lose anything.
    pub fn has_unsynced(&self) -> bool {
        self.directories
            .values()
            .any(|directory| directory.has_unsynced())
            || self.inodes.values().any(|inode| inode.has_unsynced())
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) {
        for path in path.ancestors() {
            self.directories.entry(path.to_owned()).or_default();
        }
    }

    pub(super) fn has_directory(&self, path: &Path) -> bool {
        self.directories.contains_key(path)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Ok(self.directory(path)?.cached().keys().cloned().collect())
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<InodeId> {
        let (parent, name) = split(path)?;
        self.directory(parent)?
            .cached()
            .get(&name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeId> {
        let id = self.new_inode(Inode::default());
        self.name(path, id)?;
        Ok(id)
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.name(to, self.find(from)?)
    }

    /// Gives a file a name that is free.
    fn name(&mut self, path: &Path, id: InodeId) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let directory = self.directory_mut(parent)?;
        if directory.cached().contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        directory.change(PendingName::Link(name, id));
        Ok(())
    }

    /// How many names a running process sees of a file.
    pub(super) fn names_of(&self, id: InodeId) -> usize {
        let names = self
            .directories
            .values()
            .flat_map(|own| own.cached().values());
        names.filter(|named| **named == id).count()
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<InodeId> {
        let id = self.find(path)?;
        let (parent, name) = split(path)?;
        self.directory_mut(parent)?
            .change(PendingName::Unlink(name));
        Ok(id)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.find(from)?;
        let (parent, from_name) = split(from)?;
        let (to_parent, to_name) = split(to)?;
        assert_eq!(parent, to_parent, "a rename stays in its directory");
        self.directory_mut(parent)?
            .change(PendingName::Rename(from_name, to_name, id));
        Ok(())
    }

    pub(super) fn sync_dir(
        &mut self,
        path: &Path,
        failed: Option<AfterFailedSync>,
    ) -> io::Result<()> {
        self.directory_mut(path)?.sync(failed);
        Ok(())
    }

    /// The content of an open file.
    pub(super) fn inode(&self, id: InodeId) -> &Inode {
        &self.inodes[&id]
    }

    /// The content of an open file, to be changed.
    pub(super) fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        let inode = self.inodes.get_mut(&id).expect("an open file exists");
        Arc::make_mut(inode)
    }

    /// The bytes allocated to the files that have a name or are in `open`.
    pub(super) fn used_bytes(&self, open: impl Iterator<Item = InodeId>) -> u64 {
        let mut ids: BTreeSet<InodeId> = open.collect();
        for directory in self.directories.values() {
            ids.extend(directory.cached().values());
        }
        ids.iter().map(|id| self.inodes[id].allocated()).sum()
    }

    /// Forgets the files that have no name, durable, cached or pending, and are not in `open`.
    pub(super) fn forget_unreachable(&mut self, open: impl Iterator<Item = InodeId>) {
        let mut reachable: BTreeSet<InodeId> = open.collect();
        for directory in self.directories.values() {
            reachable.extend(directory.referenced());
        }
        self.inodes.retain(|id, _| reachable.contains(id));
    }

    fn directory(&self, path: &Path) -> io::Result<&Directory> {
        match self.directories.get(path) {
            Some(directory) => Ok(directory),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn directory_mut(&mut self, path: &Path) -> io::Result<&mut Directory> {
        match self.directories.get_mut(path) {
            Some(directory) => Ok(Arc::make_mut(directory)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn new_inode(&mut self, inode: Inode) -> InodeId {
        self.next_inode += 1;
        self.inodes.insert(self.next_inode, Arc::new(inode));
        self.next_inode
    }
}

fn split(path: &Path) -> io::Result<(&Path, String)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_string_lossy().into_owned())),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
