//! A chunk: neighbouring files of a level. An edit makes the chunks that it changes anew, and keeps the others.
//!
//! A chunk has the fence keys of its files and sums over them. So a search looks at one chunk, and whoever plans a
//! compaction looks into the chunks that may matter.
//!
//! Concurrency: immutable, except for a count of visits; shared freely.

use super::expiry_curve::ExpiryCurve;
use crate::base::Moment;
use crate::base::expiry::is_expired;
use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::Shared;
use crate::base::sync::atomic::{AtomicU64, Ordering};
use crate::manifest::handle::FileHandle;
use crate::table::{Expiring, FileSums};

/// The most files of a chunk. Debug builds have short chunks, so that small trees of tests have several.
pub(super) const CHUNK_FILES_MAX: usize = if cfg!(debug_assertions) { 8 } else { 256 };

/// A chunk that an edit has left with fewer files takes those of the next one.
pub(super) const CHUNK_FILES_MIN: usize = CHUNK_FILES_MAX / 4;

/// Neighbouring files of a level.
#[derive(Debug)]
pub(crate) struct Chunk {
    files: Box<[Shared<FileHandle>]>,
    /// The largest key of each file; empty in level 0.
    fences: PrefixIndex,
    /// The sorted runs besides the first; empty in level 0.
    later_runs: Box<[ChunkRun]>,
    /// The largest key of each first segment, if it is not that of the file.
    first_fences: Option<PrefixIndex>,
    /// The bytes of all files up to each file.
    bytes_through: Box<[u64]>,
    sums: FileSums,
    extremes: Extremes,
    expiry_curve: ExpiryCurve,
    /// At least the most visits of a file. Readers of an older version may count visits that are missing here.
    visits_max: AtomicU64,
}

/// Bounds of the files of a chunk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extremes {
    /// The largest part of tombstones, and of what its range tombstones hide, over the entries of a file; 1 for a file
    /// without entries.
    pub(crate) tombstone_part_max: f64,
    /// The most segments of a file.
    pub(crate) segments_max: usize,
    /// The fewest bytes of a table.
    pub(crate) bytes_min: u64,
    /// Of files with several segments: the fewest bytes, and the largest superseded part.
    pub(crate) segmented_bytes_min: u64,
    pub(crate) superseded_part_max: f64,
    /// From when on [more than 0, 1, 2, ... eighths](crate::table::FileMeta::expired_eighths_from) of a file may have
    /// expired, and from when on a file has only [expired entries and
    /// tombstones](crate::table::FileMeta::expired_from); the largest number if that never happens.
    pub(crate) expired_eighths_from_min: [Moment; Expiring::PARTS],
    pub(crate) expired_from_min: Moment,
}

/// The n-th segments of the files of a chunk, for an n above 0.
#[derive(Debug)]
struct ChunkRun {
    /// The files that have such a segment, as positions in the chunk.
    files: Box<[u16]>,
    /// The largest key of each segment.
    fences: PrefixIndex,
}

impl Chunk {
    /// Of these files of a level below level 0, which are in ascending order.
    pub(super) fn new(files: Vec<Shared<FileHandle>>) -> Shared<Self> {
        let fences = PrefixIndex::new(files.iter().map(|file| file.largest()));
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        let run = |segment: usize| {
            let has_it =
                |(_, file): &(u16, &Shared<FileHandle>)| file.meta.segments.len() > segment;
            let members: Box<[u16]> = (0..)
                .zip(&files)
                .filter(has_it)
                .map(|(position, _)| position)
                .collect();
            let largest =
                |&position: &u16| files[usize::from(position)].meta.segments[segment].largest();
            ChunkRun {
                fences: PrefixIndex::new(members.iter().map(largest)),
                files: members,
            }
        };
        let later_runs = (1..most.unwrap_or(0)).map(run).collect();
        let is_first = |file: &Shared<FileHandle>| file.meta.segments.len() == 1;
        let first_fences = (!files.iter().all(is_first))
            .then(|| PrefixIndex::new(files.iter().map(|file| file.meta.segments[0].largest())));
        Self::with(files, fences, first_fences, later_runs)
    }

    /// Of all files of level 0, newest first.
    pub(super) fn of_level_0(files: Vec<Shared<FileHandle>>) -> Shared<Self> {
        Self::with(files, PrefixIndex::default(), None, Box::default())
    }

    fn with(
        files: Vec<Shared<FileHandle>>,
        fences: PrefixIndex,
        first_fences: Option<PrefixIndex>,
        later_runs: Box<[ChunkRun]>,
    ) -> Shared<Self> {
        let bytes_through = files.iter().scan(0_u64, |bytes, file| {
            *bytes = bytes.saturating_add(file.meta.bytes());
            Some(*bytes)
        });
        let visits = files.iter().map(|file| file.visits()).max();
        Shared::new(Self {
            bytes_through: bytes_through.collect(),
            sums: FileSums::of(files.iter().map(|file| &*file.meta)),
            extremes: Extremes::of(&files),
            expiry_curve: ExpiryCurve::new(files.iter().map(|file| &*file.meta)),
            visits_max: AtomicU64::new(visits.unwrap_or(0)),
            files: files.into(),
            fences,
            first_fences,
            later_runs,
        })
    }

    #[inline]
    pub(crate) fn files(&self) -> &[Shared<FileHandle>] {
        &self.files
    }

    pub(crate) fn sums(&self) -> &FileSums {
        &self.sums
    }

    pub(crate) fn extremes(&self) -> Extremes {
        self.extremes
    }

    /// About how many bytes that the files hold have expired at `now`.
    pub(super) fn expired_bytes(&self, now: Moment) -> f64 {
        self.expiry_curve.expired_bytes(now)
    }

    /// At least the most visits of a file.
    pub(crate) fn visits_max(&self) -> u64 {
        self.visits_max.load(Ordering::Relaxed)
    }

    /// Counts a visit of the file at `position`.
    pub(super) fn note_visit(&self, position: usize) {
        let Some(file) = self.files.get(position) else {
            return;
        };
        let visits = file.note_visit();
        if self.visits_max.load(Ordering::Relaxed) < visits {
            self.visits_max.fetch_max(visits, Ordering::Relaxed);
        }
    }

    /// The bytes of the files before `position`.
    pub(super) fn bytes_before(&self, position: usize) -> u64 {
        let before = position.checked_sub(1);
        before.map_or(0, |before| self.bytes_through[before])
    }

    /// The position of the first file whose largest key is `key` or greater.
    #[inline]
    pub(super) fn lower_bound(&self, key: &[u8]) -> usize {
        self.fences.lower_bound(key)
    }

    /// How many sorted runs there are.
    pub(super) fn runs(&self) -> usize {
        usize::from(!self.files.is_empty()) + self.later_runs.len()
    }

    /// How many segments `run` has here.
    #[inline]
    pub(super) fn run_len(&self, run: usize) -> usize {
        match run.checked_sub(1) {
            None => self.files.len(),
            Some(later) => self.later_runs.get(later).map_or(0, |it| it.files.len()),
        }
    }

    /// The position of the file whose segment is at `position` of `run`.
    #[inline]
    pub(super) fn file_in_run(&self, run: usize, position: usize) -> Option<usize> {
        match run.checked_sub(1) {
            None => (position < self.files.len()).then_some(position),
            Some(later) => {
                let file = self.later_runs.get(later)?.files.get(position)?;
                Some(usize::from(*file))
            }
        }
    }

    /// The position in `run` of the first segment whose largest key is `key` or greater.
    #[inline]
    pub(super) fn run_lower_bound(&self, run: usize, key: &[u8]) -> usize {
        match run.checked_sub(1) {
            None => self
                .first_fences
                .as_ref()
                .unwrap_or(&self.fences)
                .lower_bound(key),
            Some(later) => self
                .later_runs
                .get(later)
                .map_or(0, |run| run.fences.lower_bound(key)),
        }
    }
}

impl Extremes {
    /// At least the largest part of expired bytes of a file at `now`, to an eighth.
    pub(crate) fn expired_part_max(&self, now: Moment) -> f64 {
        let eighths_from = &self.expired_eighths_from_min;
        let eighths = eighths_from.partition_point(|from| is_expired(*from, now));
        eighths as f64 / Expiring::PARTS as f64
    }

    fn of(files: &[Shared<FileHandle>]) -> Self {
        let mut all = Self {
            bytes_min: u64::MAX,
            segmented_bytes_min: u64::MAX,
            expired_eighths_from_min: [Moment::MAX; Expiring::PARTS],
            expired_from_min: Moment::MAX,
            ..Self::default()
        };
        for file in files {
            let meta = &file.meta;
            let part = match meta.entries() {
                0 => 1.0,
                entries => {
                    meta.tombstones().saturating_add(meta.hidden_below()) as f64 / entries as f64
                }
            };
            all.tombstone_part_max = all.tombstone_part_max.max(part);
            all.bytes_min = all.bytes_min.min(meta.bytes());
            all.segments_max = all.segments_max.max(meta.segments.len());
            let eighths_from = meta.expired_eighths_from();
            for (min, from) in all.expired_eighths_from_min.iter_mut().zip(eighths_from) {
                *min = from.min(*min);
            }
            let from = meta.expired_from().unwrap_or(Moment::MAX);
            all.expired_from_min = all.expired_from_min.min(from);
            if meta.segments.len() > 1 {
                all.segmented_bytes_min = all.segmented_bytes_min.min(meta.bytes());
                all.superseded_part_max = all.superseded_part_max.max(meta.superseded_part());
            }
        }
        all
    }
}
