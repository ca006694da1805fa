//! Which files a compaction appends to.
//!
//! A compaction into a level reads its upper files. It *appends* to those of the files below that have space
//! for one more segment, without reading them (LS-M1). The others it merges and writes anew (LS-M6). Per byte
//! that comes into level i, with files of at most m segments, that writes `2 - 1/m + r_i/m` bytes instead of
//! `1 + r_i`, and readers visit m segments instead of one (D0). To minimise the sum of all `r_i/m_i` at a
//! given sum of segments, m is proportional to the root of r (D1). So the shallow levels take most: Garnering
//! makes their ratios large, and they are a small part of the data.
//!
//! From the effective last level down, where nearly all data is, files have one segment (D1). There appends
//! would save least for the runs that they cost, and superseded entries in older segments would take most
//! space. A limit that is given for all levels holds there, too, but shrinks when the space amplification of
//! the tree comes near `max_space_amp`. Filters estimate how much is superseded when a segment is appended
//! (`table/overlap.rs`).
//!
//! Level 1 is a special case. Compactions out of level 0 cover all keys, so each of them rewrites all of
//! level 1 or nothing, and its data soon goes down. With a few segments more than its ratio asks for, most of
//! level 1 is never rewritten (`docs/simulation.md`). It is the least part of the data, and in memory on
//! loads with many reads.
//!
//! A get probes the filter of each segment. Filter bits follow entries, so more segments hardly cost more
//! block reads for absent keys.
//!
//! I1. Nothing is appended to a sealed file or to a file with the full number of segments.
//! I2. A piece is on average long enough to be worth a sync. Otherwise the compaction writes everything anew.
//! I3. A compaction that reads range tombstones appends nothing. A file that is appended to keeps what they delete, and a
//!     range tombstone that covers several files would have to be divided among them.
//! I4. Of each key, all entries of a later segment are newer than those of earlier segments. The compaction
//!     takes all that its upper files hold in its claim, and no other job writes there meanwhile. So the
//!     first version that a read finds, newest segment first, is the newest.

use super::capacities::{capacities, space_throttle, target_file_bytes, whole};
use super::summary::FileSummary;
use super::tree::Tree;
use std::borrow::Borrow;

use crate::base::limits::SEGMENTS_MAX;
use crate::options::{KeyspaceOptions, SegmentLimit};

/// An appended piece should have this many bytes on average: below that, the sync costs more than the bytes
/// that it saves. Less if files are short, see [`PIECE_PART_MIN`].
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// A target file divided by this is long enough for an average piece.
const PIECE_PART_MIN: u64 = 32;

/// Nothing is appended to a file with the length of this many target files, or if pieces would be longer on
/// average: the compaction then cuts its output into files. So a file is shorter than twice that, unless
/// keys come unevenly.
const FILE_PARTS_MAX: u64 = 4;

/// Scales the root of a ratio to a number of segments. `docs/simulation.md` has the costs of other values.
const SEGMENTS_SCALE: f64 = 1.7;

/// Files of level 1 may have at least this many segments.
const SEGMENTS_LEVEL_ONE: usize = 6;

/// How many segments a file of each level may have, indexed by level; 1 past the end.
pub(crate) fn segment_limits<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
) -> Vec<usize> {
    let last = tree.effective_last_level(options.size_ratio);
    let capacities = capacities(options, tree.level_count());
    let limit = |level: usize| match options.segment_limit {
        _ if level == 0 => 1,
        SegmentLimit::Fixed(limit) => limit,
        SegmentLimit::Scaled if level >= last => 1,
        SegmentLimit::Scaled => {
            let ratio = capacities[level] as f64 / capacities[level - 1].max(1) as f64;
            let limit = rounded(SEGMENTS_SCALE * ratio.sqrt());
            if level == 1 {
                limit.max(SEGMENTS_LEVEL_ONE)
            } else {
                limit
            }
        }
    };
    (0..=tree.level_count()).map(limit).collect()
}

/// A number of segments.
fn rounded(limit: f64) -> usize {
    let limit = usize::try_from(whole(limit.round()));
    limit.map_or(SEGMENTS_MAX, |limit| limit.clamp(1, SEGMENTS_MAX))
}

/// What a compaction writes into a level of its upper files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UpperBytes {
    pub(super) bytes: u64,
    /// The [cut bytes](super::cut_bytes) of that.
    pub(super) cut_bytes: u64,
    /// Whether the files have range tombstones.
    pub(super) has_ranges: bool,
}

impl UpperBytes {
    /// Of the files `upper`, whose values in transient logs are put in place or stay there.
    pub(super) fn of<F: Borrow<FileSummary<K>>, K>(
        upper: impl Iterator<Item = F>,
        is_in_place: bool,
    ) -> Self {
        upper.fold(Self::default(), |all, file| {
            let file = file.borrow();
            let in_place = if is_in_place { file.transient_bytes } else { 0 };
            let bytes = file.bytes.saturating_add(in_place);
            let cut_bytes = file.merged_cut_bytes(is_in_place);
            Self {
                bytes: all.bytes.saturating_add(bytes),
                cut_bytes: all.cut_bytes.saturating_add(cut_bytes),
                has_ranges: all.has_ranges || file.range_tombstones > 0,
            }
        })
    }
}

/// What may be appended in one tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appends<'a> {
    /// The [limits](segment_limits) of the tree; 1 past the end.
    pub(super) limits: &'a [usize],
    pub(super) options: &'a KeyspaceOptions,
}

impl Appends<'_> {
    /// How many segments a file of `level` may have.
    pub(super) fn limit(self, level: usize) -> usize {
        self.limits.get(level).copied().unwrap_or(1)
    }

    /// The same limit, reduced if space is short.
    fn limit_now<K: Clone>(self, tree: &dyn Tree<K>, level: usize) -> usize {
        let limit = self.limit(level);
        if limit == 1 || level < tree.effective_last_level(self.options.size_ratio) {
            return limit;
        }
        let free = 1.0 - space_throttle(tree, self.options);
        rounded(1.0 + (limit - 1) as f64 * free)
    }

    /// To which of the files `lower`, neighbours in `level`, a compaction of `upper` into it appends.
    pub(super) fn to<K: Clone, F: Borrow<FileSummary<K>>>(
        self,
        tree: &dyn Tree<K>,
        level: usize,
        lower: &[F],
        upper: UpperBytes,
    ) -> Vec<bool> {
        let file_bytes = target_file_bytes(tree, self.options, level);
        let piece = |upper: u64| upper / (lower.len() as u64).max(1);
        let bytes_max = file_bytes.saturating_mul(FILE_PARTS_MAX);
        let is_worth_it = PIECE_BYTES_MIN.min(file_bytes / PIECE_PART_MIN) <= piece(upper.bytes) // I2
            && piece(upper.cut_bytes) <= bytes_max;
        let limit = self.limit_now(tree, level);
        let has_space = |file: &F| {
            let file = file.borrow();
            !file.sealed && file.segments.len() < limit && file.cut_bytes() < bytes_max // I1
        };
        let appends = lower.iter().map(|file| is_worth_it && has_space(file));
        let mut appends: Vec<bool> = appends.collect();
        let mut rewritten = lower.iter().zip(&appends).filter(|(_, appends)| !**appends);
        let has_ranges = |(file, _): (&F, _)| file.borrow().range_tombstones > 0;
        if upper.has_ranges || rewritten.any(has_ranges) {
            appends.fill(false); // I3
        }
        appends
    }

    /// What such a compaction rewrites of them.
    pub(super) fn rewritten_bytes<K: Clone, F: Borrow<FileSummary<K>>>(
        self,
        tree: &dyn Tree<K>,
        level: usize,
        lower: &[F],
        upper: UpperBytes,
    ) -> u64 {
        let appended = self.to(tree, level, lower, upper);
        let rewritten = lower.iter().zip(appended).filter(|(_, it)| !it);
        let bytes = rewritten.map(|(file, _)| file.borrow().bytes);
        bytes.fold(0, u64::saturating_add)
    }
}
