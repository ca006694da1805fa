//! The files of one level, in the order in which reads search them, in [chunks](chunk).
//!
//! I1. In levels 1 and deeper the files are disjoint at user keys and in ascending order.
//! I2. Level 0 holds the newer files first, in one chunk. If two of its files overlap, every entry of the newer one
//!     is newer than every entry of the older one.
//!
//! With n files, an edit costs the files that it changes, those of their chunks, and a step for each chunk of the
//! level: `n / 256` steps. A search costs the same comparisons as in one list.
//!
//! Concurrency: immutable, except for counts of visits and costs that are computed when they are asked for; shared
//! freely.

mod chunk;
mod costs;
mod edit;
mod expiry_curve;

use std::ops::Range;
use std::result::Result;

use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::Shared;
use crate::base::{Moment, RangeTombstone};
use crate::table::{FileSums, Measure};

use super::contradiction::Contradiction;
use super::handle::FileHandle;
use chunk::CHUNK_FILES_MAX;
pub(crate) use chunk::Chunk;
use costs::Costs;
pub(super) use edit::LevelEdit;

/// The files of one level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    chunks: Vec<Shared<Chunk>>,
    /// The largest key of each chunk; empty in level 0.
    fences: PrefixIndex,
    /// Where each chunk starts, and where the last one ends.
    starts: Vec<ChunkStart>,
    /// The number of sorted runs; none in level 0.
    runs: usize,
    sums: FileSums,
    /// Of each chunk: what a compaction of its files costs.
    costs: Vec<Shared<Costs>>,
}

/// Where a chunk starts.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkStart {
    /// The files before it.
    files: usize,
    /// Their bytes and entries.
    bytes: u64,
    entries: u64,
}

impl ChunkStart {
    fn after(self, chunk: &Chunk) -> Self {
        let sum = |measure| chunk.sums().get(measure);
        Self {
            files: self.files + chunk.files().len(),
            bytes: self.bytes.saturating_add(sum(Measure::Bytes)),
            entries: self.entries.saturating_add(sum(Measure::Entries)),
        }
    }
}

/// A place in a sorted run of a level: a chunk, and a position among its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    chunk: usize,
    position: usize,
}

impl Level {
    /// Level `level` with these files, in any order.
    ///
    /// # Errors
    /// If I1 or I2 does not hold.
    pub(super) fn new(
        level: u8,
        files: Vec<Shared<FileHandle>>,
    ) -> Result<Shared<Self>, Contradiction> {
        let built = match level {
            0 => Self::overlapping_files(files),
            _ => Self::disjoint(files),
        };
        built.map(Shared::new)
    }

    /// Level 0.
    fn overlapping_files(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
        files.sort_by_key(|file| std::cmp::Reverse(file.meta.sequence_max()));
        for (position, newer) in files.iter().enumerate() {
            for older in &files[position + 1..] {
                if older.meta.sequence_max() < newer.meta.sequence_min() {
                    break; // And so are all that follow.
                }
                if overlap(newer, older) {
                    return Err(Contradiction::new(format!(
                        "table files {} and {} of level 0 overlap in keys and in age",
                        newer.meta.number, older.meta.number
                    ))); // I2
                }
            }
        }
        if files.is_empty() {
            return Ok(Self::default());
        }
        let chunk = Chunk::of_level_0(files);
        Ok(Self {
            starts: vec![ChunkStart::default(), ChunkStart::default().after(&chunk)],
            sums: *chunk.sums(),
            chunks: vec![chunk],
            ..Self::default()
        })
    }

    /// A deeper level.
    fn disjoint(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
        files.sort_by(|left, right| left.smallest().cmp(right.smallest()));
        check_order(files.iter())?;
        let mut chunks = Vec::new();
        split(files, &mut chunks);
        let mut sums = FileSums::default();
        for chunk in &chunks {
            sums.add(chunk.sums());
        }
        let costs = chunks.iter().map(|_| Shared::default()).collect();
        Ok(Self::of_chunks(chunks, costs, sums))
    }

    /// A level below level 0 of these chunks.
    fn of_chunks(chunks: Vec<Shared<Chunk>>, costs: Vec<Shared<Costs>>, sums: FileSums) -> Self {
        let mut starts = vec![ChunkStart::default()];
        for chunk in &chunks {
            let start = starts.last().copied().unwrap_or_default();
            starts.push(start.after(chunk));
        }
        let largest = chunks.iter().filter_map(|chunk| chunk.files().last());
        Self {
            fences: PrefixIndex::new(largest.map(|file| file.largest())),
            starts,
            runs: chunks.iter().map(|chunk| chunk.runs()).max().unwrap_or(0),
            sums,
            chunks,
            costs,
        }
    }

    /// The files: newest first in level 0, in key order in the others.
    pub(crate) fn files(&self) -> impl DoubleEndedIterator<Item = &Shared<FileHandle>> + Clone {
        self.chunks.iter().flat_map(|chunk| chunk.files())
    }

    /// The files of level 0, newest first.
    #[inline]
    pub(crate) fn newest_first(&self) -> &[Shared<FileHandle>] {
        self.chunks.first().map_or(&[], |chunk| chunk.files())
    }

    /// The number of files.
    pub(crate) fn len(&self) -> usize {
        self.starts.last().map_or(0, |end| end.files)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The largest key of any file; `None` without files.
    pub(crate) fn largest(&self) -> Option<&[u8]> {
        match &*self.chunks {
            // Level 0 has its files by age.
            [only] => only.files().iter().map(|file| file.largest()).max(),
            chunks => chunks.last()?.files().last().map(|file| file.largest()),
        }
    }

    /// About how many bytes that its files hold have expired at `now`.
    pub(crate) fn expired_bytes(&self, now: Moment) -> f64 {
        let chunks = self.chunks.iter();
        chunks.map(|chunk| chunk.expired_bytes(now)).sum()
    }

    /// Sums over the files.
    pub(crate) fn sums(&self) -> &FileSums {
        &self.sums
    }

    /// The chunks, in the order of the files.
    pub(crate) fn chunks(&self) -> &[Shared<Chunk>] {
        &self.chunks
    }

    /// The positions of the files of `chunk`.
    pub(crate) fn positions(&self, chunk: usize) -> Range<usize> {
        self.starts[chunk].files..self.starts[chunk + 1].files
    }

    /// The file at `position`.
    pub(crate) fn file(&self, position: usize) -> Option<&Shared<FileHandle>> {
        let (chunk, position) = self.chunk_of(position);
        self.chunks.get(chunk)?.files().get(position)
    }

    /// The chunk with the file at `position`, and its position there.
    pub(crate) fn chunk_of(&self, position: usize) -> (usize, usize) {
        let chunk = self.starts.partition_point(|start| start.files <= position);
        let chunk = chunk.saturating_sub(1);
        let start = self.starts.get(chunk).map_or(0, |start| start.files);
        (chunk, position - start)
    }

    /// The positions of the files that overlap these keys. Not for level 0.
    pub(crate) fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        let start = self.position_of(smallest);
        let last = self.position_of(largest);
        let reaches = |file: &Shared<FileHandle>| file.smallest() <= largest;
        let end = last + usize::from(self.file(last).is_some_and(reaches));
        start..end.max(start)
    }

    /// The positions of the files that may have keys from `from` to before `to`; `None` is no bound. Not for level 0.
    pub(crate) fn between(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Range<usize> {
        let start = from.map_or(0, |from| self.position_of(from));
        let end = to.map_or(self.len(), |to| {
            let last = self.position_of(to);
            let reaches = |file: &Shared<FileHandle>| file.smallest() < to;
            last + usize::from(self.file(last).is_some_and(reaches))
        });
        start..end.max(start)
    }

    /// The entries of the files that are wholly in `range`. Not for level 0.
    pub(crate) fn entries_in(&self, range: &RangeTombstone) -> u64 {
        let end = Some(&*range.end).filter(|end| !end.is_empty());
        let mut within = self.between(Some(&range.start), end);
        let reaches_over = |position: usize| {
            self.file(position)
                .is_some_and(|file| !range.covers_all(file.smallest(), file.largest()))
        };
        if !within.is_empty() && reaches_over(within.start) {
            within.start += 1;
        }
        if !within.is_empty() && reaches_over(within.end - 1) {
            within.end -= 1;
        }
        self.sum_within(within, Measure::Entries)
    }

    /// The same, for level 0.
    pub(crate) fn entries_of_level_0_in(&self, range: &RangeTombstone) -> u64 {
        let within = self
            .files()
            .filter(|file| range.covers_all(file.smallest(), file.largest()));
        within.fold(0, |sum, file| sum.saturating_add(file.meta.entries()))
    }

    /// The position of the first file whose largest key is `key` or greater.
    fn position_of(&self, key: &[u8]) -> usize {
        let chunk = self.fences.lower_bound(key);
        match self.chunks.get(chunk) {
            None => self.len(),
            Some(found) => self.starts[chunk].files + found.lower_bound(key),
        }
    }

    /// A sum over the files at these positions: of bytes or entries in a few steps, of other quantities in a step for
    /// each file at the ends and each chunk between.
    pub(crate) fn sum_within(&self, positions: Range<usize>, measure: Measure) -> u64 {
        if measure == Measure::Bytes {
            let bytes = self.bytes_before(positions.end);
            return bytes.saturating_sub(self.bytes_before(positions.start));
        }
        let (first, skipped) = self.chunk_of(positions.start);
        let (last, taken) = self.chunk_of(positions.end);
        let sum = |chunk: usize, range: Range<usize>| {
            let files = self.chunks.get(chunk).and_then(|it| it.files().get(range));
            let files = files.unwrap_or_default().iter();
            let measures = files.map(|file| file.meta.measure(measure));
            measures.fold(0, u64::saturating_add)
        };
        if first == last {
            return sum(first, skipped..taken);
        }
        let between = if measure == Measure::Entries {
            let start = |chunk: usize| self.starts.get(chunk).map_or(0, |it| it.entries);
            start(last).saturating_sub(start(first + 1))
        } else {
            let chunks = self.chunks[first + 1..last.min(self.chunks.len())].iter();
            let sums = chunks.map(|chunk| chunk.sums().get(measure));
            sums.fold(0, u64::saturating_add)
        };
        let whole = self.chunks[first].files().len();
        let ends = sum(first, skipped..whole).saturating_add(sum(last, 0..taken));
        between.saturating_add(ends)
    }

    /// The bytes of the files before `position`.
    fn bytes_before(&self, position: usize) -> u64 {
        let (chunk, within) = self.chunk_of(position);
        let before = self.starts.get(chunk).map_or(0, |start| start.bytes);
        let found = self.chunks.get(chunk);
        before.saturating_add(found.map_or(0, |chunk| chunk.bytes_before(within)))
    }

    /// The one file that can hold `key`. Not for level 0.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Shared<FileHandle>> {
        let chunk = match &*self.chunks {
            [only] => only,
            chunks => chunks.get(self.fences.lower_bound(key))?,
        };
        let file = chunk.files().get(chunk.lower_bound(key))?;
        (file.smallest() <= key).then_some(file)
    }

    /// The number of its sorted runs: the n-th segments of all files form one. Not for level 0.
    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// The file whose segment is at `place` of `run`.
    #[inline]
    pub(crate) fn segment_file(&self, run: usize, place: Place) -> Option<&Shared<FileHandle>> {
        let chunk = self.chunks.get(place.chunk)?;
        chunk.files().get(chunk.file_in_run(run, place.position)?)
    }

    /// The place of the first segment of `run` whose largest key is `key` or greater.
    #[inline]
    pub(crate) fn run_lower_bound(&self, run: usize, key: &[u8]) -> Place {
        let chunk = match self.chunks.len() {
            1 => 0,
            _ => self.fences.lower_bound(key),
        };
        let position = match self.chunks.get(chunk) {
            Some(found) => found.run_lower_bound(run, key),
            None => 0,
        };
        self.at_or_after(run, Place { chunk, position })
    }

    /// The first place of `run`.
    pub(crate) fn run_first(&self, run: usize) -> Place {
        self.at_or_after(run, Place::default())
    }

    /// The last place of `run`.
    pub(crate) fn run_last(&self, run: usize) -> Option<Place> {
        let end = Place {
            chunk: self.chunks.len(),
            position: 0,
        };
        self.run_previous(run, end)
    }

    /// The place after `place` in `run`.
    pub(crate) fn run_next(&self, run: usize, place: Place) -> Place {
        let position = place.position + 1;
        self.at_or_after(run, Place { position, ..place })
    }

    /// The place before `place` in `run`.
    pub(crate) fn run_previous(&self, run: usize, place: Place) -> Option<Place> {
        let Place { chunk, position } = place;
        if let Some(position) = position.checked_sub(1) {
            return Some(Place { chunk, position });
        }
        (0..chunk).rev().find_map(|chunk| {
            let position = self.chunks[chunk].run_len(run).checked_sub(1)?;
            Some(Place { chunk, position })
        })
    }

    /// `place`, or the first one in the next chunk with segments of `run` if its chunk ends before.
    #[inline]
    fn at_or_after(&self, run: usize, mut place: Place) -> Place {
        while let Some(chunk) = self.chunks.get(place.chunk)
            && place.position >= chunk.run_len(run)
        {
            place = Place {
                chunk: place.chunk + 1,
                position: 0,
            };
        }
        place
    }

    /// Counts a visit of the file whose segment is at `place` of `run`.
    pub(crate) fn note_visit(&self, run: usize, place: Place) {
        if let Some(chunk) = self.chunks.get(place.chunk)
            && let Some(position) = chunk.file_in_run(run, place.position)
        {
            chunk.note_visit(position);
        }
    }
}

impl Place {
    /// The place at `position` of a run without chunks.
    pub(crate) fn at(position: usize) -> Self {
        Self { chunk: 0, position }
    }

    /// The position of that place.
    #[inline]
    pub(crate) fn position(self) -> usize {
        self.position
    }
}

/// Cuts files in ascending order into chunks of about the same length.
fn split(files: Vec<Shared<FileHandle>>, chunks: &mut Vec<Shared<Chunk>>) {
    let count = files.len().div_ceil(CHUNK_FILES_MAX);
    let mut rest = files.into_iter();
    for left in (1..=count).rev() {
        let part = rest.len().div_ceil(left);
        chunks.push(Chunk::new(rest.by_ref().take(part).collect()));
    }
}

/// # Errors
/// If `files` are not disjoint and ascending (I1).
fn check_order<'f>(
    files: impl Iterator<Item = &'f Shared<FileHandle>>,
) -> Result<(), Contradiction> {
    let mut before: Option<&Shared<FileHandle>> = None;
    for file in files {
        if let Some(before) = before
            && before.largest() >= file.smallest()
        {
            return Err(Contradiction::new(format!(
                "table files {} and {} of one level overlap",
                before.meta.number, file.meta.number
            )));
        }
        before = Some(file);
    }
    Ok(())
}

fn overlap(left: &FileHandle, right: &FileHandle) -> bool {
    left.smallest() <= right.largest() && right.smallest() <= left.largest()
}
