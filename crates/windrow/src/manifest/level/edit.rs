//! The change of a level by an edit: new chunks where files come or go, and the old ones elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::result::Result;

use super::chunk::{CHUNK_FILES_MIN, Chunk};
use super::{Level, check_order, split};
use crate::base::FileNumber;
use crate::base::sync::Shared;
use crate::manifest::contradiction::Contradiction;
use crate::manifest::handle::FileHandle;
use crate::table::FileSums;

/// The files that come into a level and leave it.
#[derive(Debug, Default)]
pub(in crate::manifest) struct LevelEdit {
    pub(in crate::manifest) adds: Vec<Shared<FileHandle>>,
    pub(in crate::manifest) removes: Vec<Shared<FileHandle>>,
}

/// The smallest and the largest key of some files.
type Ends = (Box<[u8]>, Box<[u8]>);

impl LevelEdit {
    /// The smallest key and the largest key of all its files.
    pub(in crate::manifest) fn ends(&self) -> Option<Ends> {
        let files = || self.adds.iter().chain(&self.removes);
        let smallest = files().map(|file| file.smallest()).min()?;
        let largest = files().map(|file| file.largest()).max()?;
        Some((smallest.into(), largest.into()))
    }
}

/// The files that come into a chunk, and the numbers of those that leave it.
#[derive(Debug, Default)]
struct ChunkEdit {
    adds: Vec<Shared<FileHandle>>,
    removes: BTreeSet<FileNumber>,
}

impl Level {
    /// The level `number` after `edit`.
    ///
    /// # Errors
    /// If the level lacks a removed file, or the order of the level is broken.
    pub(in crate::manifest) fn edited(
        &self,
        number: u8,
        edit: LevelEdit,
    ) -> Result<Shared<Self>, Contradiction> {
        if number == 0 || self.is_empty() {
            let mut files: Vec<_> = self.files().cloned().collect();
            let removes = edit.removes.iter().map(|file| file.meta.number).collect();
            remove(&mut files, &removes)?;
            files.extend(edit.adds);
            return Self::new(number, files);
        }
        let mut edits: BTreeMap<usize, ChunkEdit> = BTreeMap::new();
        for file in edit.removes {
            let (chunk, _) = self.chunk_of(self.position_of(file.smallest()));
            let chunk = edits.entry(chunk).or_default();
            chunk.removes.insert(file.meta.number);
        }
        for file in edit.adds {
            let chunk = self.fences.lower_bound(file.smallest());
            let chunk = chunk.min(self.chunks.len() - 1);
            edits.entry(chunk).or_default().adds.push(file);
        }
        self.with_chunks(edits).map(Shared::new)
    }

    fn with_chunks(&self, mut edits: BTreeMap<usize, ChunkEdit>) -> Result<Self, Contradiction> {
        let mut sums = self.sums;
        let (mut chunks, mut costs) = (Vec::new(), Vec::new());
        // The files of changed chunks until there are enough for a chunk.
        let mut open: Vec<Shared<FileHandle>> = Vec::new();
        let mut gone = FileSums::default();
        let mut renewed = Vec::new();
        for (number, chunk) in self.chunks.iter().enumerate() {
            let edit = edits.remove(&number);
            if edit.is_none() && open.is_empty() {
                chunks.push(Shared::clone(chunk));
                costs.push(Shared::clone(&self.costs[number]));
                continue;
            }
            gone.add(chunk.sums());
            let mut files = chunk.files().to_vec();
            if let Some(edit) = edit {
                remove(&mut files, &edit.removes)?;
                files.extend(edit.adds);
                files.sort_by(|left, right| left.smallest().cmp(right.smallest()));
            }
            open.append(&mut files);
            if open.len() >= CHUNK_FILES_MIN || number + 1 == self.chunks.len() {
                renewed.push(chunks.len());
                check_order(open.iter())?;
                split(std::mem::take(&mut open), &mut chunks);
                for chunk in &chunks[costs.len()..] {
                    sums.add(chunk.sums());
                    costs.push(Shared::default());
                }
                renewed.push(chunks.len());
            }
        }
        sums.subtract(&gone);
        for border in renewed {
            check_border(&chunks, border)?;
        }
        Ok(Self::of_chunks(chunks, costs, sums))
    }

    /// The same level after a change of the level below it between these keys.
    pub(in crate::manifest) fn with_change_below(
        &self,
        smallest: &[u8],
        largest: &[u8],
    ) -> Shared<Self> {
        let first = self.fences.lower_bound(smallest);
        let last = self.fences.lower_bound(largest);
        let mut costs = self.costs.clone();
        let changed = costs.iter_mut().take(last + 1).skip(first);
        changed.for_each(|costs| *costs = Shared::default());
        Shared::new(Self {
            chunks: self.chunks.clone(),
            fences: self.fences.clone(),
            starts: self.starts.clone(),
            costs,
            ..*self
        })
    }
}

/// # Errors
/// If the chunks on both sides of `border` overlap (I1 of levels).
fn check_border(chunks: &[Shared<Chunk>], border: usize) -> Result<(), Contradiction> {
    let (before, after) = chunks.split_at(border);
    let last = before.last().and_then(|chunk| chunk.files().last());
    let first = after.first().and_then(|chunk| chunk.files().first());
    check_order(last.into_iter().chain(first))
}

/// # Errors
/// If `files` lack one of the files `numbers`.
fn remove(
    files: &mut Vec<Shared<FileHandle>>,
    numbers: &BTreeSet<FileNumber>,
) -> Result<(), Contradiction> {
    let mut missing = numbers.clone();
    files.retain(|file| !missing.remove(&file.meta.number));
    match missing.first() {
        None => Ok(()),
        Some(number) => Err(Contradiction::new(format!(
            "table file {number} is not in its level"
        ))),
    }
}
