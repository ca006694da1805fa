//! The files of one level, in the order in which reads search them.
//!
//! I1. In levels 1 and deeper the files are disjoint at user keys and in ascending order.
//! I2. Level 0 holds the newer files first. If two of its files overlap, every entry of the newer one
//!     is newer than every entry of the older one.

use std::result::Result;

use crate::base::prefix_index::PrefixIndex;
use crate::base::sync::Shared;

use super::contradiction::Contradiction;
use super::handle::FileHandle;

/// The files of one level.
#[derive(Debug, Default)]
pub(crate) struct Level {
    files: Vec<Shared<FileHandle>>,
    /// Of the files.
    bytes: u64,
    /// The largest key of each file; empty in level 0.
    fences: Shared<PrefixIndex>,
    /// The sorted runs of the level; empty in level 0.
    segment_runs: Box<[SegmentRun]>,
}

/// The n-th segments of all files of a level, which form one sorted run. Most levels have one, which
/// includes every file.
#[derive(Debug)]
pub(crate) struct SegmentRun {
    /// The position n of the segments in their files.
    pub(crate) segment: usize,
    /// The files that have an n-th segment, as positions in the level.
    files: Box<[usize]>,
    /// The largest key of each segment.
    fences: Shared<PrefixIndex>,
}

impl SegmentRun {
    /// How many segments there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The position in the level of the file whose segment is at `position` in the run.
    #[inline]
    pub(crate) fn file(&self, position: usize) -> Option<usize> {
        self.files.get(position).copied()
    }

    /// The position of the first segment whose largest key is `key` or greater.
    #[inline]
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        self.fences.lower_bound(key)
    }
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
            0 => Self::overlapping(files),
            _ => Self::disjoint(files),
        };
        built.map(Shared::new)
    }

    /// Level 0.
    fn overlapping(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
        files.sort_by_key(|file| std::cmp::Reverse(file.meta.sequence_max()));
        for (position, newer) in files.iter().enumerate() {
            for older in &files[position + 1..] {
                if overlap(newer, older) && newer.meta.sequence_min() <= older.meta.sequence_max() {
                    return Err(Contradiction::new(format!(
                        "table files {} and {} of level 0 overlap in keys and in age",
                        newer.meta.number, older.meta.number
                    ))); // I2
                }
            }
        }
        Ok(Self {
            bytes: sum_bytes(&files),
            files,
            ..Self::default()
        })
    }

    /// A deeper level.
    fn disjoint(mut files: Vec<Shared<FileHandle>>) -> Result<Self, Contradiction> {
        files.sort_by(|left, right| left.smallest().cmp(right.smallest()));
        for pair in files.windows(2) {
            let (left, right) = (&pair[0], &pair[1]);
            if left.largest() >= right.smallest() {
                return Err(Contradiction::new(format!(
                    "table files {} and {} of one level overlap",
                    left.meta.number, right.meta.number
                ))); // I1
            }
        }
        let fences = PrefixIndex::new(files.iter().map(|file| file.largest()));
        let fences = Shared::new(fences);
        let most = files.iter().map(|file| file.meta.segments.len()).max();
        let segment_run = |segment: usize| {
            let has_it = |position: &usize| files[*position].meta.segments.len() > segment;
            let members: Box<[usize]> = (0..files.len()).filter(has_it).collect();
            let largest = |&position: &usize| &*files[position].meta.segments[segment].largest;
            SegmentRun {
                segment,
                fences: match most {
                    Some(1) => Shared::clone(&fences),
                    _ => Shared::new(PrefixIndex::new(members.iter().map(largest))),
                },
                files: members,
            }
        };
        let segment_runs = (0..most.unwrap_or(0)).map(segment_run).collect();
        Ok(Self {
            bytes: sum_bytes(&files),
            files,
            fences,
            segment_runs,
        })
    }

    /// The files: newest first in level 0, in key order in the others.
    pub(crate) fn files(&self) -> &[Shared<FileHandle>] {
        &self.files
    }

    /// The bytes of the files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sorted runs of the level. Not for level 0.
    pub(crate) fn segment_runs(&self) -> &[SegmentRun] {
        &self.segment_runs
    }

    /// The one file that can hold `key`. Not for level 0.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Shared<FileHandle>> {
        let file = self.files.get(self.fences.lower_bound(key))?;
        (file.smallest() <= key).then_some(file)
    }
}

fn sum_bytes(files: &[Shared<FileHandle>]) -> u64 {
    files.iter().map(|file| file.meta.bytes()).sum()
}

fn overlap(left: &FileHandle, right: &FileHandle) -> bool {
    left.smallest() <= right.largest() && right.smallest() <= left.largest()
}
