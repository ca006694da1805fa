//! The files of a keyspace as readers see them.
//!
//! A version is immutable; a change makes a new one, which shares the levels that did not change.
//! Readers hold versions, versions hold file handles, and the last holder of a file that has left
//! the manifest hands its number over for deletion.
//!
//! I1. In levels 1 and deeper the files are disjoint at user keys and in ascending order.
//! I2. In level 0 newer files stand first, and where two files overlap, every entry of the newer one
//!     is newer than every entry of the older.
//! I3. A file's number reaches [`Obsolete`] at most once, when its handle was marked and nobody
//!     holds it any more.
//!
//! Concurrency: everything is shared freely.

use std::sync::Arc;

use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Mutex, Shared};
use crate::base::{FileNumber, SequenceNumber};
use crate::table::{FileMeta, TableSlot};

use super::state::{Contradiction, KeyspaceState};

/// Numbers of files that may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Obsolete(Mutex<Vec<FileNumber>>);

impl Obsolete {
    /// Takes the numbers that have come together since the last call.
    pub(crate) fn take(&self) -> Vec<FileNumber> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A table file in use.
#[derive(Debug)]
pub(crate) struct FileHandle {
    pub(crate) meta: FileMeta,
    slot: Arc<TableSlot>,
    is_obsolete: AtomicBool,
    obsolete: Arc<Obsolete>,
}

impl FileHandle {
    /// A handle on the file that `meta` describes.
    pub(crate) fn new(meta: FileMeta, obsolete: Arc<Obsolete>) -> Shared<Self> {
        Shared::new(Self {
            meta,
            slot: Arc::default(),
            is_obsolete: AtomicBool::new(false),
            obsolete,
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
        self.is_obsolete.store(true, Ordering::Release);
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if self.is_obsolete.load(Ordering::Acquire) {
            self.slot.close(); // Whoever takes the number may remove the file at once.
            self.obsolete.0.lock().push(self.meta.number); // I3
        }
    }
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
    fn runs(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
        files.sort_by_key(|file| std::cmp::Reverse(file.meta.sequence_max()));
        for (position, newer) in files.iter().enumerate() {
            for older in &files[position + 1..] {
                if overlap(&newer.meta, &older.meta)
                    && sequence_min(&newer.meta) <= older.meta.sequence_max()
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
    fn sorted(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
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
}

impl Default for Version {
    /// The version without files.
    fn default() -> Self {
        Self::trimmed(Vec::new())
    }
}

impl Version {
    /// The version of these files, level 0 first, in any order within a level.
    pub(crate) fn new(levels: Vec<Vec<Shared<FileHandle>>>) -> Result<Self, Contradiction> {
        let levels = (0..).zip(levels).map(|(level, files)| build(level, files));
        let levels = levels.collect::<Result<_, _>>()?;
        Ok(Self::trimmed(levels))
    }

    /// The version of a keyspace as the manifest has it.
    pub(crate) fn from_state(
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> Result<Self, Contradiction> {
        let handle = |file: &FileMeta| FileHandle::new(file.clone(), Arc::clone(obsolete));
        let levels = keyspace.levels.iter();
        Self::new(
            levels
                .map(|files| files.values().map(handle).collect())
                .collect(),
        )
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
    ) -> Result<Self, Contradiction> {
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
        Ok(Self::trimmed(levels))
    }

    /// Checks the order of every level anew.
    ///
    /// # Errors
    /// Where I1 or I2 does not hold.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
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
        Self { levels }
    }
}

fn build(level: u8, files: Vec<Shared<FileHandle>>) -> Result<Shared<Level>, Contradiction> {
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

fn sequence_min(file: &FileMeta) -> SequenceNumber {
    let numbers = file.segments.iter().map(|segment| segment.sequence_min);
    numbers.min().unwrap_or_default()
}
