//! Which files a merge appends to, and where in its output one file gives way to the next.
//!
//! A merge into a level reads its upper files; of the files below, those with room for one more segment
//! get what falls to them *appended*, without being read (LS-M1), and the others are merged and written
//! anew (LS-M6). Per byte that comes into level i, with files of at most m segments, that writes
//! `2 - 1/m + r_i/m` bytes in place of `1 + r_i`, and costs readers m segments in place of one (D0).
//! To minimise the sum of all `r_i/m_i` at a given sum of segments, m is proportional to the root of r
//! (D1): the shallow levels, whose ratios Garnering makes large and which are a small part of the
//! data, take most.
//!
//! From the effective last level down, where nearly all data is, files have one segment (D1): there
//! appends would save least for the runs that they cost, and what older segments hold of superseded entries
//! would take most room. A limit that is given for all levels holds there, too, but shrinks as the tree comes
//! near `max_space_amp`; how much is superseded, filters tell when a segment is appended
//! (`table/overlap.rs`).
//!
//! Level 1 is apart. What comes there from level 0 covers all keys, so that each of its merges rewrites all
//! of it or nothing, and soon what it holds goes on: with a few segments more than its ratio asks for, most
//! of it is never written anew (`docs/simulation.md`). It is the least part of the data, in memory where reads
//! go.
//!
//! I1. Nothing is appended to a sealed file, nor to one that has as many segments as it may.
//! I2. A piece is on average long enough to be worth a sync: else all is written anew.
//! I3. The keys that go to one file come without a gap: at each key the destination is the one before, or
//!     one that was not left yet. So a file is opened once, and ranges of files stay disjoint.

use std::borrow::Borrow;

use super::capacities::{capacities, space_throttle, target_file_bytes, whole};
use super::summary::{FileSummary, TreeSummary};
use crate::base::FileNumber;
use crate::base::limits::SEGMENTS_MAX;
use crate::options::{KeyspaceOptions, SegmentLimit};

/// A piece that is appended should have this many bytes on average: below that, the sync costs more than
/// the bytes that it saves. Where files are smaller than usual, less.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// The part of a usual file that a piece has on average at least.
const PIECE_PART_MIN: u64 = 32;

/// Nothing is appended to a file as long as so many usual ones, nor is anything where pieces would on average
/// be longer: where much comes into a level that holds little, it is cut into files. So a file is shorter
/// than twice as many, but for keys that come unevenly.
const FILE_PARTS_MAX: u64 = 4;

/// What scales the root of a ratio to a number of segments; `docs/simulation.md` says what more of them save
/// and cost.
const SEGMENTS_SCALE: f64 = 1.7;

/// So many segments files of level 1 may have at least.
const SEGMENTS_LEVEL_ONE: usize = 6;

/// What falls between two files that are appended to gets a file of its own from this part of a usual file
/// on; less goes to the file before it.
const GAP_PART_MIN: u64 = 4;

/// How many segments a file of each level may have, indexed by level; 1 past the end.
pub(crate) fn segment_limits<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> Vec<usize> {
    let last = tree.effective_last_level(options.size_ratio);
    let capacities = capacities(options, tree.level_count);
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
    (0..=tree.level_count).map(limit).collect()
}

/// A number of segments.
fn rounded(limit: f64) -> usize {
    let limit = usize::try_from(whole(limit.round()));
    limit.map_or(SEGMENTS_MAX, |limit| limit.clamp(1, SEGMENTS_MAX))
}

/// What a merge brings into a level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Brought {
    /// Bytes that it writes there of its upper files.
    pub(super) bytes: u64,
    /// What counts of that where files are cut to a size.
    pub(super) cut_bytes: u64,
}

impl Brought {
    /// By the files `upper`, where values in runs are put in place or stay there.
    pub(super) fn by<'k, K: 'k>(
        upper: impl Iterator<Item = &'k FileSummary<K>>,
        is_in_place: bool,
    ) -> Self {
        upper.fold(Self::default(), |all, file| {
            let in_place = if is_in_place { file.transient_bytes } else { 0 };
            let bytes = file.bytes.saturating_add(in_place);
            let cut_bytes = file.merged_cut_bytes(is_in_place);
            Self {
                bytes: all.bytes.saturating_add(bytes),
                cut_bytes: all.cut_bytes.saturating_add(cut_bytes),
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

    /// Up to how many segments they are appended to.
    fn limit_now<K>(self, tree: &TreeSummary<K>, level: usize) -> usize {
        let limit = self.limit(level);
        if limit == 1 || level < tree.effective_last_level(self.options.size_ratio) {
            return limit;
        }
        let free = 1.0 - space_throttle(tree, self.options);
        rounded(1.0 + (limit - 1) as f64 * free)
    }

    /// To which of the files `lower`, neighbours in `level`, a merge that brings `upper` into it appends.
    pub(super) fn to<K>(
        self,
        tree: &TreeSummary<K>,
        level: usize,
        lower: &[FileSummary<K>],
        upper: Brought,
    ) -> Vec<bool> {
        let file_bytes = target_file_bytes(tree, self.options, level);
        let piece = |upper: u64| upper / (lower.len() as u64).max(1);
        let bytes_max = file_bytes.saturating_mul(FILE_PARTS_MAX);
        let is_worth_it = PIECE_BYTES_MIN.min(file_bytes / PIECE_PART_MIN) <= piece(upper.bytes) // I2
            && piece(upper.cut_bytes) <= bytes_max;
        let limit = self.limit_now(tree, level);
        let has_space = |file: &FileSummary<K>| {
            !file.sealed && file.segments.len() < limit && file.cut_bytes() < bytes_max // I1
        };
        let appends = lower.iter().map(|file| is_worth_it && has_space(file));
        appends.collect()
    }

    /// What such a merge rewrites of them.
    pub(super) fn rewritten_bytes<K>(
        self,
        tree: &TreeSummary<K>,
        level: usize,
        lower: &[FileSummary<K>],
        upper: Brought,
    ) -> u64 {
        let appended = self.to(tree, level, lower, upper);
        let rewritten = lower.iter().zip(appended).filter(|(_, it)| !it);
        rewritten.map(|(file, _)| file.bytes).sum()
    }
}

/// A part of the output of a merge that goes to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone<K> {
    begins: Begin<K>,
    /// The file that it is appended to; new files where absent.
    target: Option<FileNumber>,
    /// Cut bytes of the lower files that are written anew in it; then those of a file that is to be written.
    bytes: u64,
}

/// The first key of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Begin<K> {
    Anywhere,
    At(K),
    Behind(K),
}

impl<K> Begin<K> {
    fn key(&self) -> Option<&K> {
        match self {
            Self::Anywhere => None,
            Self::At(key) | Self::Behind(key) => Some(key),
        }
    }
}

/// Decides, key by key, which file the output of a merge goes to.
#[derive(Debug)]
pub(crate) struct Zones<K> {
    /// At least one.
    zones: Vec<Zone<K>>,
    /// The zone of the last key asked.
    present: usize,
}

impl<K: Ord + Clone> Zones<K> {
    /// For a merge into a level among whose files are `lower`, sorted, all that it overlaps; it appends to
    /// those in `targets`, and puts values in runs in place or leaves them there. `upper_bytes` tells about how many
    /// of the [cut bytes](FileSummary::merged_cut_bytes) of its uppers lie between two keys, or from an end on; a
    /// usual file of the level has `file_bytes` of them.
    pub(crate) fn new(
        lower: &[&FileSummary<K>],
        targets: &[FileNumber],
        (file_bytes, is_in_place): (u64, bool),
        upper_bytes: impl Fn(Option<&K>, Option<&K>) -> u64,
    ) -> Self {
        let is_wide = |from, to| upper_bytes(from, to) >= file_bytes / GAP_PART_MIN;
        let target = |file: &FileSummary<K>| Some(file.number).filter(|it| targets.contains(it));
        let zone = |begins, target| Zone {
            begins,
            target,
            bytes: 0,
        };
        let behind = |file: &FileSummary<K>| Begin::Behind(file.largest.clone());
        let mut zones: Vec<Zone<K>> = Vec::new();
        let mut before: Option<&FileSummary<K>> = None;
        for &file in lower {
            let own = target(file);
            match before {
                None => {
                    let is_apart = own.is_some() && is_wide(None, Some(&file.smallest));
                    zones.push(zone(Begin::Anywhere, own.filter(|_| !is_apart)));
                }
                Some(before) if target(before).is_some() => {
                    let is_apart =
                        own.is_none() || is_wide(Some(&before.largest), Some(&file.smallest));
                    if is_apart {
                        zones.push(zone(behind(before), None));
                    }
                }
                Some(_) => {}
            }
            if zones.last().is_some_and(|zone| zone.target != own) {
                zones.push(zone(Begin::At(file.smallest.clone()), own));
            }
            if let Some(zone) = zones.last_mut() {
                zone.bytes = zone
                    .bytes
                    .saturating_add(file.merged_cut_bytes(is_in_place));
            }
            before = Some(file);
        }
        match before {
            None => zones.push(zone(Begin::Anywhere, None)),
            Some(last) if target(last).is_some() && is_wide(Some(&last.largest), None) => {
                zones.push(zone(behind(last), None));
            }
            Some(_) => {}
        }
        for position in 0..zones.len() {
            let end = zones.get(position + 1).and_then(|next| next.begins.key());
            let zone = &zones[position];
            let upper = upper_bytes(zone.begins.key(), end);
            zones[position].bytes = even_bytes(zone.bytes.saturating_add(upper), file_bytes);
        }
        Self { zones, present: 0 }
    }

    /// Goes to the zone of `key`, and tells whether that is another one. Keys ascend.
    pub(super) fn go_to<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let has_begun = |zone: &Zone<K>| match &zone.begins {
            Begin::Anywhere => true,
            Begin::At(first) => first.borrow() <= key,
            Begin::Behind(last) => last.borrow() < key,
        };
        let before = self.present;
        while self.zones.get(self.present + 1).is_some_and(has_begun) {
            self.present += 1;
        }
        before < self.present
    }

    /// The file that the present zone is appended to; new files where there is none.
    pub(super) fn target(&self) -> Option<FileNumber> {
        self.zones[self.present].target
    }

    /// How long a new file becomes in the present zone.
    pub(super) fn file_bytes(&self) -> u64 {
        self.zones[self.present].bytes
    }
}

/// The bytes of a file where `total` are written to files of about `file_bytes`, so that all are alike.
fn even_bytes(total: u64, file_bytes: u64) -> u64 {
    let files = total.saturating_add(file_bytes / 2) / file_bytes.max(1);
    total.div_ceil(files.max(1)).max(1)
}
