//! A tree as a list of all its files. Tests and the simulation plan with it, and filters are allocated to it.
//!
//! Owns [`TreeSummary`]. A plan asks for the sums over a level many times, so each level remembers them until somebody
//! takes its files to change them.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Range};
use std::sync::OnceLock;

use crate::base::SequenceNumber;
use crate::table::cost_per_byte;
use crate::value::{LogSummary, SummedLogs};

use super::moved_values::MovedValues;
use super::summary::{Claim, FileSummary, overlapping};
use super::tree::{Bounds, Sum, Tree};

/// The tree of one keyspace, as numbers and boundaries.
#[derive(Debug, Clone)]
pub(crate) struct TreeSummary<K> {
    /// The nominal number of levels below level 0, at least 1: the L of the capacities.
    pub(crate) level_count: usize,
    /// Level 0 by age, newest first; deeper levels by key. Levels past the end are empty.
    pub(crate) levels: Vec<LevelFiles<K>>,
    /// The keys that running jobs may write.
    pub(crate) claims: Vec<Claim<K>>,
    /// What a level may hold beyond its capacity until it has to shrink, indexed by level;
    /// nothing past the end. See [`next_allowed`](super::next_allowed).
    pub(crate) allowed: Vec<u64>,
    /// How many table files there may be; in fact up to twice as many.
    pub(crate) files_max: u64,
    /// How many files of transient logs there are.
    pub(crate) transient_files: u64,
    /// See [`Tree::oldest_reader`].
    pub(crate) oldest_reader: SequenceNumber,
    /// See [`Tree::is_idle`].
    pub(crate) is_idle: bool,
    /// See [`Tree::pinned_above`].
    pub(crate) pinned_above: u64,
    /// The value logs, and the GC outputs that replace some of them.
    pub(crate) logs: Vec<LogSummary>,
    /// What tables refer to in each of them, and in the value logs that they replace.
    pub(crate) moved: MovedValues,
}

/// The files of one level, and their sums once somebody has asked for one.
#[derive(Debug, Clone)]
pub(crate) struct LevelFiles<K> {
    files: Vec<FileSummary<K>>,
    sums: OnceLock<LevelSums>,
}

/// The sums over the files of a level, those without busy files among them, in the order of [`Sum::ALL`].
#[derive(Debug, Clone, Default)]
struct LevelSums {
    all: [u64; Sum::ALL.len()],
    idle: [u64; Sum::ALL.len()],
}

/// The number of a sum is its place.
const _: () = {
    let mut place = 0;
    while place < Sum::ALL.len() {
        assert!(Sum::ALL[place] as usize == place);
        place += 1;
    }
};

impl LevelSums {
    fn of<K: Clone>(files: &[FileSummary<K>]) -> Self {
        let mut sums = Self::default();
        for file in files {
            let of_file = Sum::ALL.map(|of| file.add_up(of));
            add(&mut sums.all, &of_file);
            if !file.busy {
                add(&mut sums.idle, &of_file);
            }
        }
        sums
    }
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

impl<K> From<Vec<FileSummary<K>>> for LevelFiles<K> {
    fn from(files: Vec<FileSummary<K>>) -> Self {
        let sums = OnceLock::new();
        Self { files, sums }
    }
}

impl<K> Deref for LevelFiles<K> {
    type Target = Vec<FileSummary<K>>;

    fn deref(&self) -> &Self::Target {
        &self.files
    }
}

impl<K> DerefMut for LevelFiles<K> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.sums.take();
        &mut self.files
    }
}

impl<'a, K> IntoIterator for &'a LevelFiles<K> {
    type Item = &'a FileSummary<K>;
    type IntoIter = std::slice::Iter<'a, FileSummary<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K> IntoIterator for &'a mut LevelFiles<K> {
    type Item = &'a mut FileSummary<K>;
    type IntoIter = std::slice::IterMut<'a, FileSummary<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K> TreeSummary<K> {
    /// A tree without claims and value files.
    pub(crate) fn new(
        level_count: usize,
        levels: Vec<Vec<FileSummary<K>>>,
        files_max: u64,
    ) -> Self {
        Self {
            level_count,
            levels: levels.into_iter().map(LevelFiles::from).collect(),
            claims: Vec::new(),
            allowed: Vec::new(),
            files_max,
            transient_files: 0,
            oldest_reader: SequenceNumber::MAX,
            is_idle: false,
            pinned_above: 0,
            logs: Vec::new(),
            moved: MovedValues::default(),
        }
    }

    /// The files of `level`; none past the end of the tree.
    pub(crate) fn level(&self, level: usize) -> &[FileSummary<K>] {
        self.levels.get(level).map_or(&[], |files| files.as_slice())
    }

    fn level_sums(&self, level: usize) -> Option<&LevelSums>
    where
        K: Clone,
    {
        let level = self.levels.get(level)?;
        Some(level.sums.get_or_init(|| LevelSums::of(&level.files)))
    }
}

fn sum<'f, K: Clone + 'f>(files: impl Iterator<Item = &'f FileSummary<K>>, of: Sum) -> u64 {
    files
        .map(|file| file.add_up(of))
        .fold(0, u64::saturating_add)
}

impl<K: Ord + Clone + Debug> Tree<K> for TreeSummary<K> {
    fn level_count(&self) -> usize {
        self.level_count
    }

    fn claims(&self) -> &[Claim<K>] {
        &self.claims
    }

    fn allowed(&self) -> &[u64] {
        &self.allowed
    }

    fn files_max(&self) -> u64 {
        self.files_max
    }

    fn transient_files(&self) -> u64 {
        self.transient_files
    }

    fn oldest_reader(&self) -> SequenceNumber {
        self.oldest_reader
    }

    fn is_idle(&self) -> bool {
        self.is_idle
    }

    fn pinned_above(&self) -> u64 {
        self.pinned_above
    }

    fn log_sums(&self) -> SummedLogs {
        self.logs.iter().collect()
    }

    fn failed_logs(&self) -> Cow<'_, [LogSummary]> {
        let failed = self.logs.iter().filter(|log| log.failures > 0);
        failed.copied().collect()
    }

    fn log_chunks(&self) -> usize {
        1
    }

    fn log_chunk_sums(&self, _: usize) -> SummedLogs {
        self.log_sums()
    }

    fn logs(&self, _: usize) -> Cow<'_, [LogSummary]> {
        Cow::Borrowed(&self.logs)
    }

    fn moved_bytes(&self) -> u64 {
        self.moved.bytes()
    }

    fn moved_values(&self) -> &MovedValues {
        &self.moved
    }

    fn busy(&self, level: usize) -> Vec<usize> {
        let files = self.level(level).iter().enumerate();
        let busy = files.filter(|(_, file)| file.busy);
        busy.map(|(position, _)| position).collect()
    }

    fn depth(&self) -> usize {
        self.levels.len()
    }

    fn len(&self, level: usize) -> usize {
        self.level(level).len()
    }

    fn file(&self, level: usize, position: usize) -> Cow<'_, FileSummary<K>> {
        Cow::Borrowed(&self.levels[level][position])
    }

    fn overlapping(&self, level: usize, smallest: &K, largest: &K) -> Range<usize> {
        overlapping(self.level(level), smallest, largest)
    }

    fn sum(&self, level: usize, of: Sum) -> u64 {
        self.level_sums(level)
            .map_or(0, |sums| sums.all[of as usize])
    }

    fn idle_sum(&self, level: usize, of: Sum) -> u64 {
        self.level_sums(level)
            .map_or(0, |sums| sums.idle[of as usize])
    }

    fn sum_within(&self, level: usize, files: Range<usize>, of: Sum) -> u64 {
        sum(self.level(level)[files].iter(), of)
    }

    fn expired_bytes(&self) -> u64 {
        let files = self.levels.iter().flatten().filter(|file| !file.busy);
        let expired = files.map(|file| file.expired_bytes.min(file.held_bytes()));
        expired.fold(0, u64::saturating_add)
    }

    fn held_once(&self, level: usize) -> f64 {
        let once = |file: &FileSummary<K>| {
            file.add_up(Sum::HeldBytes) as f64 * (1.0 - file.superseded_part())
        };
        self.level(level).iter().map(once).sum()
    }

    fn cost(&self, level: usize, position: usize) -> f64 {
        let file = &self.levels[level][position];
        let below = self.level(level + 1);
        let lower = &below[overlapping(below, &file.smallest, &file.largest)];
        cost_per_byte(sum(lower.iter(), Sum::Bytes), file.bytes)
    }

    fn chunks(&self, level: usize) -> usize {
        usize::from(!self.level(level).is_empty())
    }

    fn chunk(&self, level: usize, _: usize) -> Range<usize> {
        0..self.level(level).len()
    }

    fn chunk_of(&self, _: usize, _: usize) -> usize {
        0
    }

    fn bounds(&self, _: usize, _: usize) -> Bounds {
        Bounds::NONE
    }

    fn least_cost(&self, _: usize, _: usize) -> f64 {
        0.0
    }

    fn is_segmented(&self, _: usize) -> bool {
        true
    }
}
