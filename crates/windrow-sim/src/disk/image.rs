//! The whole state of a simulated disk as a value: what is durable, what is only cached, and each
//! change that is still on its way.
//!
//! A copy shares all sectors and all unchanged files, so the state at every boundary between two
//! I/Os can be kept.
//!
//! Invariants:
//! - I1: what is cached in a directory is what is durable with all pending changes applied.
//! - I2: what is durable changes only by a sync or a crash; a crash leaves nothing pending.
//! - I3: every name, durable, cached or pending, refers to an existing inode.

use super::bytes::{Bytes, SECTOR_BYTES, Sector};
use super::faults::AfterFailedSync;
use crate::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Names a file's content whatever its path.
pub(super) type InodeId = u64;

/// What a power failure does to the changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPolicy {
    /// All of them are lost.
    DropUnsynced,
    /// All of them happened to reach the disk.
    KeepAll,
    /// Each is applied, lost or torn as the seed says, in any order; a file may have grown without
    /// its bytes, which are then zeroes.
    Random(u64),
    /// As `Random`; bytes by which a file grew may also be garbage.
    RandomWithGarbage(u64),
}

/// A change of a file that is not yet durable.
#[derive(Debug, Clone)]
enum PendingChange {
    Sector(usize, Sector),
    Length(u64),
    /// What was behind so many bytes is cut off.
    Cut(u64),
}

/// A file's content.
#[derive(Debug, Clone, Default)]
struct Inode {
    cached: Bytes,
    durable: Bytes,
    pending: Vec<PendingChange>,
    /// Bytes that writes can use without asking for more room.
    allocated: u64,
    /// Hash of the durable bytes, once asked for.
    hash: OnceLock<u64>,
}

/// A change of a directory that is not yet durable.
#[derive(Debug, Clone)]
enum PendingName {
    Link(String, InodeId),
    Unlink(String),
    Rename(String, String, InodeId),
}

/// The names in a directory. Directories themselves are durable when made.
#[derive(Debug, Clone, Default)]
struct Directory {
    cached: BTreeMap<String, InodeId>,
    durable: BTreeMap<String, InodeId>,
    pending: Vec<PendingName>,
}

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
            .flat_map(|(path, directory)| directory.cached.keys().map(|name| path.join(name)))
            .collect()
    }

    /// The bytes of the file `path`, as a running process sees them.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.inodes[&self.find(path)?].cached.to_vec())
    }

    /// Replaces or creates the file `path` durably: how tests plant damage.
    pub fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (parent, name) = split(path)?;
        let id = self.new_inode(Inode::durable(Bytes::from_slice(bytes)));
        let directory = self.directory_mut(parent)?;
        directory.change(PendingName::Link(name, id));
        directory.sync();
        Ok(())
    }

    /// Removes the file `path` durably.
    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.unlink(path)?;
        let (parent, _) = split(path)?;
        self.directory_mut(parent)?.sync();
        Ok(())
    }

    /// A hash of all names and bytes that a crash that loses everything unsynced would leave.
    pub fn hash(&self) -> u64 {
        let mut hasher = Xxh3::new();
        for (path, directory) in &self.directories {
            hasher.update(path.as_os_str().as_encoded_bytes());
            for (name, id) in &directory.durable {
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
        let mut choice = Choice::new(policy);
        let directories: BTreeMap<_, _> = self
            .directories
            .iter()
            .map(|(path, directory)| (path.clone(), directory.crash(&mut choice)))
            .collect();
        let named: BTreeSet<InodeId> = directories
            .values()
            .flat_map(|directory| directory.durable.values().copied())
            .collect();
        let inodes = named
            .into_iter()
            .map(|id| (id, Inode::crash(&self.inodes[&id], &mut choice)))
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
            .any(|directory| !directory.pending.is_empty())
            || self.inodes.values().any(|inode| !inode.pending.is_empty())
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
        Ok(self.directory(path)?.cached.keys().cloned().collect())
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<InodeId> {
        let (parent, name) = split(path)?;
        self.directory(parent)?
            .cached
            .get(&name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<InodeId> {
        let (parent, name) = split(path)?;
        if self.directory(parent)?.cached.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = self.new_inode(Inode::default());
        self.directory_mut(parent)?
            .change(PendingName::Link(name, id));
        Ok(id)
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.find(from)?;
        let (parent, name) = split(to)?;
        if self.directory(parent)?.cached.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.directory_mut(parent)?
            .change(PendingName::Link(name, id));
        Ok(())
    }

    /// How many names a running process sees of a file.
    pub(super) fn names_of(&self, id: InodeId) -> usize {
        let names = self
            .directories
            .values()
            .flat_map(|own| own.cached.values());
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
        let directory = self.directory_mut(path)?;
        match failed {
            None | Some(AfterFailedSync::Durable) => directory.sync(),
            Some(AfterFailedSync::LostAtCrash) => directory.pending.clear(),
            Some(AfterFailedSync::Reverted) => {
                directory.pending.clear();
                directory.cached = directory.durable.clone();
            }
        }
        Ok(())
    }

    pub(super) fn length(&self, id: InodeId) -> u64 {
        self.inodes[&id].cached.length()
    }

    pub(super) fn allocated(&self, id: InodeId) -> u64 {
        self.inodes[&id].allocated
    }

    pub(super) fn read_at(&self, id: InodeId, offset: u64, buffer: &mut [u8]) -> usize {
        self.inodes[&id].cached.read(offset, buffer)
    }

    pub(super) fn write_at(&mut self, id: InodeId, offset: u64, bytes: &[u8]) {
        let inode = self.inode_mut(id);
        let touched = inode.cached.write(offset, bytes);
        let end = offset + bytes.len() as u64;
        inode.allocated = inode.allocated.max(rounded(end));
        let is_cut = |change: &PendingChange| matches!(change, PendingChange::Cut(_));
        if end > inode.durable.length() || inode.pending.iter().any(is_cut) {
            inode.pending.push(PendingChange::Length(end));
        }
        inode.pending.extend(
            touched
                .into_iter()
                .map(|(index, sector)| PendingChange::Sector(index, sector)),
        );
    }

    pub(super) fn reserve(&mut self, id: InodeId, end: u64) {
        let inode = self.inode_mut(id);
        inode.allocated = inode.allocated.max(rounded(end));
    }

    pub(super) fn truncate(&mut self, id: InodeId, length: u64) {
        let inode = self.inode_mut(id);
        if length < inode.cached.length() {
            inode.cached.set_length(length);
            inode.pending.push(PendingChange::Cut(length));
        }
        inode.allocated = inode.allocated.min(rounded(inode.cached.length()));
    }

    pub(super) fn sync_data(&mut self, id: InodeId, failed: Option<AfterFailedSync>) {
        let inode = self.inode_mut(id);
        let pending = std::mem::take(&mut inode.pending);
        match failed {
            None | Some(AfterFailedSync::Durable) => inode.durable.apply(&pending),
            Some(AfterFailedSync::LostAtCrash) => {}
            Some(AfterFailedSync::Reverted) => inode.cached = inode.durable.clone(),
        }
        inode.hash = OnceLock::new();
    }

    /// The files that have a name or are in `open`.
    pub(super) fn used_bytes(&self, open: impl Iterator<Item = InodeId>) -> u64 {
        let mut ids: BTreeSet<InodeId> = open.collect();
        for directory in self.directories.values() {
            ids.extend(directory.cached.values());
        }
        ids.iter().map(|id| self.inodes[id].allocated).sum()
    }

    /// Forgets the files that no name, durable, cached or pending, and nobody in `open` refers to.
    pub(super) fn forget_unreachable(&mut self, open: impl Iterator<Item = InodeId>) {
        let mut reachable: BTreeSet<InodeId> = open.collect();
        for directory in self.directories.values() {
            reachable.extend(directory.cached.values());
            reachable.extend(directory.durable.values());
            reachable.extend(directory.pending.iter().filter_map(PendingName::inode));
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

    fn inode_mut(&mut self, id: InodeId) -> &mut Inode {
        let inode = self.inodes.get_mut(&id).expect("an open file exists");
        Arc::make_mut(inode)
    }
}

impl Inode {
    fn durable(bytes: Bytes) -> Self {
        Self {
            allocated: rounded(bytes.length()),
            cached: bytes.clone(),
            durable: bytes,
            ..Self::default()
        }
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| xxh3_64(&self.durable.to_vec()))
    }

    fn crash(inode: &Arc<Self>, choice: &mut Choice) -> Arc<Self> {
        let crashed = Self::durable(choice.apply(&inode.durable, &inode.pending));
        if inode.pending.is_empty() {
            // Remembered where every later image of this unchanged file finds it.
            crashed.hash.get_or_init(|| inode.hash());
        }
        Arc::new(crashed)
    }
}

impl Bytes {
    fn apply<'a>(&mut self, changes: impl IntoIterator<Item = &'a PendingChange>) {
        let changes: Vec<_> = changes.into_iter().collect();
        // Changes before a cut are never applied behind it.
        let is_together =
            |_: &&PendingChange, next: &&PendingChange| !matches!(next, PendingChange::Cut(_));
        for changes in changes.chunk_by(is_together) {
            // The length first, wherever it stands: a sector survives only within it.
            for change in changes {
                match change {
                    PendingChange::Length(length) if *length > self.length() => {
                        self.set_length(*length);
                    }
                    PendingChange::Cut(length) if *length < self.length() => {
                        self.set_length(*length);
                    }
                    _ => {}
                }
            }
            for change in changes {
                if let PendingChange::Sector(index, sector) = change {
                    self.set_sector(*index, Arc::clone(sector));
                }
            }
        }
    }
}

impl Directory {
    fn change(&mut self, change: PendingName) {
        change.apply(&mut self.cached);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    fn crash(&self, choice: &mut Choice) -> Arc<Self> {
        let mut names = self.durable.clone();
        for change in choice.names(&self.pending) {
            change.apply(&mut names);
        }
        Arc::new(Self {
            cached: names.clone(),
            durable: names,
            pending: Vec::new(),
        })
    }
}

impl PendingName {
    fn apply(&self, names: &mut BTreeMap<String, InodeId>) {
        match self {
            Self::Link(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Unlink(name) => {
                names.remove(name);
            }
            Self::Rename(from, to, id) => {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }

    fn inode(&self) -> Option<InodeId> {
        match self {
            Self::Link(_, id) | Self::Rename(_, _, id) => Some(*id),
            Self::Unlink(_) => None,
        }
    }
}

/// Decides the fate of each pending change at a power failure.
struct Choice {
    policy: CrashPolicy,
    random: Random,
    /// Chance in eight that a single change survives.
    survival: u64,
}

impl Choice {
    fn new(policy: CrashPolicy) -> Self {
        let mut random = Random::new(match policy {
            CrashPolicy::Random(seed) | CrashPolicy::RandomWithGarbage(seed) => seed,
            CrashPolicy::DropUnsynced | CrashPolicy::KeepAll => 0,
        });
        let survival = *random.pick(&[1, 4, 7]);
        Self {
            policy,
            random,
            survival,
        }
    }

    /// Which of `count` changes survive.
    fn survivors(&mut self, count: usize) -> Vec<bool> {
        match self.policy {
            CrashPolicy::DropUnsynced => return vec![false; count],
            CrashPolicy::KeepAll => return vec![true; count],
            CrashPolicy::Random(_) | CrashPolicy::RandomWithGarbage(_) => {}
        }
        match self.random.below(8) {
            0 => vec![false; count],
            1 => vec![true; count],
            // In the order in which they were made, up to some point.
            2 | 3 => {
                let kept = self.random.index(count + 1);
                (0..count).map(|index| index < kept).collect()
            }
            // All but one.
            4 => {
                let lost = self.random.index(count.max(1));
                (0..count).map(|index| index != lost).collect()
            }
            _ => (0..count)
                .map(|_| self.random.chance(self.survival, 8))
                .collect(),
        }
    }

    fn names<'a>(&mut self, pending: &'a [PendingName]) -> impl Iterator<Item = &'a PendingName> {
        let survivors = self.survivors(pending.len());
        pending
            .iter()
            .zip(survivors)
            .filter_map(|(change, survives)| survives.then_some(change))
    }

    fn apply(&mut self, durable: &Bytes, pending: &[PendingChange]) -> Bytes {
        let mut bytes = durable.clone();
        if pending.is_empty() {
            return bytes;
        }
        let survivors = self.survivors(pending.len());
        let chosen = pending.iter().zip(&survivors);
        bytes.apply(chosen.filter_map(|(change, survives)| survives.then_some(change)));
        if matches!(self.policy, CrashPolicy::RandomWithGarbage(_)) {
            self.spoil(durable.length(), pending, &survivors, &mut bytes);
        }
        bytes
    }

    /// Fills sectors by which the file grew, and whose bytes were lost, with garbage.
    fn spoil(
        &mut self,
        durable_length: u64,
        pending: &[PendingChange],
        survivors: &[bool],
        bytes: &mut Bytes,
    ) {
        for (change, survives) in pending.iter().zip(survivors) {
            let PendingChange::Sector(index, _) = change else {
                continue;
            };
            let grown = (index * SECTOR_BYTES) as u64 >= durable_length;
            if grown && !survives && self.random.chance(1, 2) {
                let mut garbage = [0; SECTOR_BYTES];
                garbage.fill_with(|| self.random.byte());
                bytes.set_sector(*index, Arc::new(garbage));
            }
        }
    }
}

fn rounded(length: u64) -> u64 {
    length.next_multiple_of(SECTOR_BYTES as u64)
}

fn split(path: &Path) -> io::Result<(&Path, String)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name.to_string_lossy().into_owned())),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
