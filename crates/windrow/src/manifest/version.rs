//! The files of a keyspace as readers see them.
//!
//! A version is immutable; a change makes a new one, which shares the levels that did not change.
//! Readers hold versions, versions hold file handles, and the last holder of a file that has left
//! the manifest hands its name over for deletion.
//!
//! I1. In levels 1 and deeper the files are disjoint at user keys and in ascending order.
//! I2. In level 0 newer files stand first, and where two files overlap, every entry of the newer one
//!     is newer than every entry of the older.
//! I3. A file's name reaches [`Obsolete`] at most once, when its handle was marked and nobody
//!     holds it any more.
//! I4. Every value file that a table of the version refers to is in the version.
//!
//! Concurrency: everything is shared freely.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, Shared};
use crate::base::{Error, ErrorKind, FileNumber, Result};
use crate::table::{FileMeta, TableSlot};
use crate::value::{ValueFileMeta, ValuePointer, ValueSlot};

use super::names::FileName;
use super::state::{Contradiction, KeyspaceState, ValueFileState};

/// Files that may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Obsolete(Mutex<Vec<FileName>>);

impl Obsolete {
    /// Takes the files that have come together since the last call.
    pub(crate) fn take(&self) -> Vec<FileName> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Hands a file over for deletion when it is dropped marked.
#[derive(Debug)]
struct Fate {
    file: FileName,
    is_obsolete: AtomicBool,
    obsolete: Arc<Obsolete>,
}

impl Fate {
    fn new(file: FileName, obsolete: Arc<Obsolete>) -> Self {
        Self {
            file,
            is_obsolete: AtomicBool::new(false),
            obsolete,
        }
    }

    fn mark(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    fn is_marked(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }
}

impl Drop for Fate {
    fn drop(&mut self) {
        if self.is_marked() {
            self.obsolete.0.lock().push(self.file); // I3
        }
    }
}

/// A table file in use.
#[derive(Debug)]
pub(crate) struct FileHandle {
    pub(crate) meta: FileMeta,
    slot: Arc<TableSlot>,
    fate: Fate,
}

impl FileHandle {
    /// A handle on the file that `meta` describes.
    pub(crate) fn new(meta: FileMeta, obsolete: Arc<Obsolete>) -> Shared<Self> {
        let fate = Fate::new(FileName::Table(meta.number), obsolete);
        Shared::new(Self {
            meta,
            slot: Arc::default(),
            fate,
        })
    }

    /// Where the open table is kept.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<TableSlot> {
        &self.slot
    }

    /// Whether `key` lies between the smallest and the largest key.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.meta.smallest() <= key && key <= self.meta.largest()
    }

    /// The edit that drops the file is durable: the file goes when its last holder goes.
    pub(crate) fn mark_obsolete(&self) {
        self.fate.mark();
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if self.fate.is_marked() {
            self.slot.close(); // Whoever takes the name may remove the file at once.
        }
    }
}

/// A value file in use.
#[derive(Debug)]
pub(crate) struct ValueHandle {
    pub(crate) meta: ValueFileMeta,
    slot: Arc<ValueSlot>,
    /// Shared with the handles that the file had while it was being written.
    fate: Arc<Fate>,
}

impl ValueHandle {
    /// Where the open file is kept.
    #[inline]
    pub(crate) fn slot(&self) -> &Arc<ValueSlot> {
        &self.slot
    }
}

impl Drop for ValueHandle {
    fn drop(&mut self) {
        if self.fate.is_marked() {
            self.slot.close(); // As for tables.
        }
    }
}

/// The value files of a keyspace, ascending.
#[derive(Debug, Default)]
pub(crate) struct ValueFiles(Vec<Shared<ValueHandle>>);

impl ValueFiles {
    /// The file with this number.
    #[inline]
    pub(crate) fn find(&self, number: FileNumber) -> Option<&Shared<ValueHandle>> {
        let position = self
            .0
            .binary_search_by_key(&number, |file| file.meta.number);
        self.0.get(position.ok()?)
    }

    /// Where the value stands that an entry's `pointer` leads to.
    ///
    /// # Errors
    /// `Corruption`: damage that a table's checksums did not find, or a bug.
    #[inline]
    pub(crate) fn resolve(&self, pointer: &[u8]) -> Result<(&Shared<ValueHandle>, ValuePointer)> {
        let pointer = ValuePointer::decode(pointer).map_err(|error| misled(error.what))?;
        let file = self.find(pointer.file).ok_or_else(|| {
            let name = FileName::Values(pointer.file);
            misled(&format!("{name} is not part of the database"))
        })?;
        Ok((file, pointer))
    }

    /// All files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Shared<ValueHandle>> {
        self.0.iter()
    }

    /// The files that the manifest has: handles that are there are kept, new ones made, and those
    /// that went are marked, for their edit is durable.
    fn follow(
        this: &Shared<Self>,
        files: &BTreeMap<FileNumber, ValueFileState>,
        obsolete: &Arc<Obsolete>,
    ) -> Shared<Self> {
        let held = this.0.iter().map(|file| file.meta);
        if held.eq(files.values().map(ValueFileState::as_read)) {
            return Shared::clone(this);
        }
        for file in &this.0 {
            if !files.contains_key(&file.meta.number) {
                file.fate.mark();
            }
        }
        let handle = |file: &ValueFileState| {
            let meta = file.as_read();
            match this.find(meta.number) {
                Some(known) if known.meta == meta => Shared::clone(known),
                known => Shared::new(ValueHandle {
                    meta,
                    slot: Arc::default(),
                    fate: known.map_or_else(
                        || {
                            let name = FileName::Values(meta.number);
                            Arc::new(Fate::new(name, Arc::clone(obsolete)))
                        },
                        |known| Arc::clone(&known.fate),
                    ),
                }),
            }
        };
        Shared::new(Self(files.values().map(handle).collect()))
    }
}

#[cold]
fn misled(what: &str) -> Error {
    let message = format!("the pointer to a value leads nowhere: {what}");
    Error::new(ErrorKind::Corruption, message)
}

/// The files of one level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    files: Vec<Shared<FileHandle>>,
    /// The largest key of each file; empty in level 0.
    fences: PrefixIndex,
}

impl Level {
    /// Level 0 of these files, in any order.
    fn runs(mut files: Vec<Shared<FileHandle>>) -> std::result::Result<Self, Contradiction> {
        files.sort_by_key(|file| std::cmp::Reverse(file.meta.sequence_max()));
        for (position, newer) in files.iter().enumerate() {
            for older in &files[position + 1..] {
                if overlap(&newer.meta, &older.meta)
                    && newer.meta.sequence_min() <= older.meta.sequence_max()
                {
                    return Err(Contradiction::new(format!(
                        "table files {} and {} of level 0 overlap in keys and in age",
                        newer.meta.number, older.meta.number
                    ))); // I2
                }
            }
        }
        Ok(Self {
            files,
            fences: PrefixIndex::default(),
        })
    }

    /// A deeper level of these files, in any order.
    fn sorted(mut files: Vec<Shared<FileHandle>>) -> std::result::Result<Self, Contradiction> {
        files.sort_by(|left, right| left.meta.smallest().cmp(right.meta.smallest()));
        for pair in files.windows(2) {
            let (left, right) = (&pair[0].meta, &pair[1].meta);
            if left.largest() >= right.smallest() {
                return Err(Contradiction::new(format!(
                    "table files {} and {} of one level overlap",
                    left.number, right.number
                ))); // I1
            }
        }
        let fences = PrefixIndex::new(files.iter().map(|file| file.meta.largest()));
        Ok(Self { files, fences })
    }

    /// The files: newest first in level 0, in key order in the others.
    pub(crate) fn files(&self) -> &[Shared<FileHandle>] {
        &self.files
    }

    /// The position of the first file whose largest key is `key` or greater. Not for level 0.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.fences.lower_bound(key)
    }

    /// The one file that can hold `key`. Not for level 0.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Shared<FileHandle>> {
        let file = self.files.get(self.lower_bound(key))?;
        (file.meta.smallest() <= key).then_some(file)
    }
}

/// All files of a keyspace at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Level 0 first; the deepest is not empty unless it is level 0.
    levels: Vec<Shared<Level>>,
    values: Shared<ValueFiles>,
}

impl Default for Version {
    /// The version without files.
    fn default() -> Self {
        Self::trimmed(Vec::new())
    }
}

impl Version {
    /// The version of these files, level 0 first, in any order within a level.
    pub(crate) fn new(
        levels: Vec<Vec<Shared<FileHandle>>>,
    ) -> std::result::Result<Self, Contradiction> {
        let levels = (0..).zip(levels).map(|(level, files)| build(level, files));
        let levels = levels.collect::<std::result::Result<_, _>>()?;
        Ok(Self::trimmed(levels))
    }

    /// The version of a keyspace as the manifest has it.
    pub(crate) fn from_state(
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> std::result::Result<Self, Contradiction> {
        let handle = |file: &FileMeta| FileHandle::new(file.clone(), Arc::clone(obsolete));
        let levels = keyspace.levels.iter();
        let version = Self::new(
            levels
                .map(|files| files.values().map(handle).collect())
                .collect(),
        )?;
        Ok(version.with_values(keyspace, obsolete))
    }

    /// This version with the value files that the manifest has for its keyspace now.
    pub(crate) fn with_values(&self, keyspace: &KeyspaceState, obsolete: &Arc<Obsolete>) -> Self {
        Self {
            levels: self.levels.clone(),
            values: ValueFiles::follow(&self.values, &keyspace.values, obsolete),
        }
    }

    /// The keyspace was dropped by a durable edit: its files go when their last holders go.
    pub(crate) fn mark_obsolete(&self) {
        for file in self.levels.iter().flat_map(|level| level.files()) {
            file.mark_obsolete();
        }
        for file in self.values.iter() {
            file.fate.mark();
        }
    }

    /// The value files.
    pub(crate) fn values(&self) -> &Shared<ValueFiles> {
        &self.values
    }

    /// The levels, level 0 first, down to the deepest that holds files.
    pub(crate) fn levels(&self) -> &[Shared<Level>] {
        &self.levels
    }

    /// This version without the files `removes` and with the files `adds`, each with its level.
    ///
    /// # Errors
    /// Where a removed file is not there, or the result would break I1 or I2.
    pub(crate) fn apply(
        &self,
        adds: &[(u8, Shared<FileHandle>)],
        removes: &[(u8, FileNumber)],
    ) -> std::result::Result<Self, Contradiction> {
        let mut levels = self.levels.clone();
        let changed = adds.iter().map(|(level, _)| *level);
        let mut changed: Vec<u8> = changed
            .chain(removes.iter().map(|(level, _)| *level))
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for level in changed {
            let index = usize::from(level);
            if levels.len() <= index {
                levels.resize_with(index + 1, Shared::default);
            }
            let mut files = levels[index].files.clone();
            for (_, number) in removes.iter().filter(|(removed, _)| *removed == level) {
                let position = files.iter().position(|file| file.meta.number == *number);
                let position = position.ok_or_else(|| {
                    Contradiction::new(format!("table file {number} is not in level {level}"))
                })?;
                files.swap_remove(position);
            }
            let adds = adds.iter().filter(|(added, _)| *added == level);
            files.extend(adds.map(|(_, file)| Shared::clone(file)));
            levels[index] = build(level, files)?;
        }
        Ok(Self {
            values: Shared::clone(&self.values),
            ..Self::trimmed(levels)
        })
    }

    /// Checks the order of every level anew.
    ///
    /// # Errors
    /// Where I1 or I2 does not hold.
    pub(crate) fn check(&self) -> std::result::Result<(), Contradiction> {
        for (number, level) in (0..).zip(&self.levels) {
            build(number, level.files.clone())?;
        }
        Ok(())
    }

    fn trimmed(mut levels: Vec<Shared<Level>>) -> Self {
        let held = levels.iter().rposition(|level| !level.files.is_empty());
        levels.truncate(held.map_or(0, |deepest| deepest + 1));
        if levels.is_empty() {
            levels.push(Shared::default());
        }
        Self {
            levels,
            values: Shared::default(),
        }
    }
}

fn build(
    level: u8,
    files: Vec<Shared<FileHandle>>,
) -> std::result::Result<Shared<Level>, Contradiction> {
    let built = if level == 0 {
        Level::runs(files)
    } else {
        Level::sorted(files)
    };
    built.map(Shared::new)
}

fn overlap(left: &FileMeta, right: &FileMeta) -> bool {
    left.smallest() <= right.largest() && right.smallest() <= left.largest()
}
