//! An immutable list of the files of a keyspace.
//!
//! A change makes a new version, which keeps the unchanged levels of the old one. Readers hold
//! versions, and versions hold [handles](super::handle) on files.
//!
//! An append changes no version that readers hold. The new version has a handle with one segment more, and
//! readers of an older version read the segments that it names. Bytes behind the last named segment mean
//! nothing.
//!
//! I1. The value files of the version include every value file that its tables refer to.
//!
//! Concurrency: everything is shared freely.

use std::collections::BTreeMap;
use std::result::Result;
use std::sync::Arc;

use crate::base::RangeTombstone;
use crate::base::sync::Shared;
use crate::table::{FileMeta, Measure};

use super::contradiction::Contradiction;
use super::handle::FileHandle;
use super::keyspace::KeyspaceState;
use super::level::{Level, LevelEdit};
use super::obsolete::Obsolete;
use super::value_files::{ValueFiles, ValueSums};

/// All files of a keyspace at one time.
#[derive(Debug)]
pub(crate) struct Version {
    /// Level 0 first; the deepest is not empty unless it is level 0.
    levels: Vec<Shared<Level>>,
    values: Shared<ValueFiles>,
    /// Whether an entry of a table expires.
    may_expire: bool,
}

impl Default for Version {
    fn default() -> Self {
        Self::trimmed(Vec::new())
    }
}

impl Version {
    /// The version with these files, level 0 first, in any order within a level.
    pub(crate) fn new(levels: Vec<Vec<Shared<FileHandle>>>) -> Result<Self, Contradiction> {
        let levels = (0..)
            .zip(levels)
            .map(|(level, files)| Level::new(level, files));
        let levels = levels.collect::<Result<_, _>>()?;
        Ok(Self::trimmed(levels))
    }

    /// The version that the manifest describes.
    pub(crate) fn from_state(
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> Result<Self, Contradiction> {
        let handle = |file: &Arc<FileMeta>| FileHandle::new(Arc::clone(file), obsolete);
        let levels = keyspace.levels.iter();
        let version = Self::new(
            levels
                .map(|files| files.values().map(handle).collect())
                .collect(),
        )?;
        Ok(version.with_values(keyspace, obsolete))
    }

    /// The version that the manifest describes after this one. It keeps the handles of the files that stay, and marks those of
    /// files that are gone. Costs a step for each file.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub(crate) fn following(
        &self,
        keyspace: &KeyspaceState,
        obsolete: &Arc<Obsolete>,
    ) -> Result<Self, Contradiction> {
        let levels = (0..).zip(&self.levels);
        let handles = levels.flat_map(|(level, files)| files.files().map(move |it| (level, it)));
        let mut known: BTreeMap<_, _> = handles.map(|it| (it.1.meta.number, it)).collect();
        let (mut adds, mut removes) = (Vec::new(), Vec::new());
        for (level, files) in (0_u8..).zip(&keyspace.levels) {
            for file in files.values() {
                let Some((before, handle)) = known.remove(&file.number) else {
                    adds.push((level, FileHandle::new(Arc::clone(file), obsolete)));
                    continue;
                };
                let is_grown = handle.meta.segments.len() != file.segments.len();
                if is_grown || before != level {
                    removes.push((before, Shared::clone(handle)));
                    let after = if is_grown {
                        handle.grown(FileMeta::clone(file))
                    } else {
                        Shared::clone(handle)
                    };
                    adds.push((level, after));
                }
            }
        }
        for (level, handle) in known.into_values() {
            handle.mark_obsolete();
            removes.push((level, Shared::clone(handle)));
        }
        Ok(self.apply(&adds, &removes)?.with_values(keyspace, obsolete))
    }

    /// This version with the present value files of `keyspace`. Costs a look at the chunks of value files that have changed, and
    /// a step for each chunk.
    pub(crate) fn with_values(&self, keyspace: &KeyspaceState, obsolete: &Arc<Obsolete>) -> Self {
        Self {
            levels: self.levels.clone(),
            values: Shared::new(self.values.updated(keyspace, obsolete)),
            may_expire: self.may_expire,
        }
    }

    /// Whether an entry of a table expires.
    #[inline]
    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire
    }

    /// Records that the edit that drops the keyspace is durable. Its files are deleted after their
    /// last handles are dropped.
    pub(crate) fn mark_obsolete(&self) {
        for file in self.levels.iter().flat_map(|level| level.files()) {
            file.mark_obsolete();
        }
        self.values.mark_obsolete();
    }

    /// About how many entries from level `first` on are in the ranges of `tombstones`: those of whole files, once for all
    /// ranges that have them.
    pub(crate) fn entries_in(&self, mut tombstones: Vec<RangeTombstone>, first: usize) -> u64 {
        tombstones.sort_unstable_by(|left, right| left.start.cmp(&right.start));
        tombstones.dedup_by(|next, range| range.join(next));
        let levels = || (0..).zip(&self.levels).skip(first);
        let entries = tombstones.iter().flat_map(|range| {
            let of_level = |(number, level): (usize, &Shared<Level>)| match number {
                0 => level.entries_of_level_0_in(range),
                _ => level.entries_in(range),
            };
            levels().map(of_level)
        });
        entries.fold(0, u64::saturating_add)
    }

    /// The value files.
    pub(crate) fn values(&self) -> &Shared<ValueFiles> {
        &self.values
    }

    /// Sums over the value files.
    pub(crate) fn value_sums(&self) -> &ValueSums {
        self.values.sums()
    }

    /// The bytes of all files, except value logs that are not sealed. Costs a look at each level.
    pub(crate) fn file_bytes(&self) -> u64 {
        let levels = self.levels.iter();
        let tables = levels.map(|level| level.sums().get(Measure::Bytes));
        tables.fold(self.values.bytes(), u64::saturating_add)
    }

    /// The levels, level 0 first, down to the deepest that holds files.
    pub(crate) fn levels(&self) -> &[Shared<Level>] {
        &self.levels
    }

    /// This version without the files `removes` and with the files `adds`, each with its level. Costs a look at the
    /// [chunks](Level) that change, and a step for each chunk of their levels and the levels above.
    ///
    /// # Errors
    /// If the version lacks a removed file, or the order of a [level](Level) is broken.
    pub(crate) fn apply(
        &self,
        adds: &[(u8, Shared<FileHandle>)],
        removes: &[(u8, Shared<FileHandle>)],
    ) -> Result<Self, Contradiction> {
        let mut edits: BTreeMap<u8, LevelEdit> = BTreeMap::new();
        for (level, file) in adds {
            edits
                .entry(*level)
                .or_default()
                .adds
                .push(Shared::clone(file));
        }
        for (level, file) in removes {
            edits
                .entry(*level)
                .or_default()
                .removes
                .push(Shared::clone(file));
        }
        let mut levels = self.levels.clone();
        for (level, edit) in edits {
            let index = usize::from(level);
            if levels.len() <= index {
                levels.resize_with(index + 1, Shared::default);
            }
            if let Some((smallest, largest)) = edit.ends()
                && index > 1
            {
                levels[index - 1] = levels[index - 1].with_change_below(&smallest, &largest);
            }
            levels[index] = levels[index].edited(level, edit)?;
        }
        Ok(Self {
            values: Shared::clone(&self.values),
            ..Self::trimmed(levels)
        })
    }

    /// Checks the order of every level anew.
    ///
    /// # Errors
    /// If the order of a [level](Level) is broken.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        for (number, level) in (0..).zip(&self.levels) {
            Level::new(number, level.files().cloned().collect())?;
        }
        Ok(())
    }

    fn trimmed(mut levels: Vec<Shared<Level>>) -> Self {
        let held = levels.iter().rposition(|level| !level.is_empty());
        levels.truncate(held.map_or(0, |deepest| deepest + 1));
        if levels.is_empty() {
            levels.push(Shared::default());
        }
        let expires = |level: &Shared<Level>| level.sums().get(Measure::ExpiringEntries) > 0;
        Self {
            may_expire: levels.iter().any(expires),
            levels,
            values: Shared::default(),
        }
    }
}
