//! The tree of a version for the policy: numbers and key bounds, and no access to files.
//!
//! It answers from the sums that a version keeps for its levels and chunks, and describes a file only when the policy
//! asks for it. So to make it costs a look at the files of running jobs. [`all_files`] describes all files.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::time::Duration;

use crate::base::expiry::is_expired;
use crate::base::limits::TABLE_FILES_MAX;
use crate::base::sync::Shared;
use crate::base::{FileNumber, SequenceNumber};
use crate::engine::keyspace::KeyspaceWork;
use crate::manifest::{FileHandle, Level, Version};
use crate::policy::{
    self, Bounds, Claim, FileSummary, MovedValues, ReadPoints, ReferredLog, SegmentSummary, Sum,
    Tree, TreeSummary, cut_bytes, whole,
};
use crate::table::{FileMeta, Measure, SegmentMeta};
use crate::value::{LogSummary, SummedLogs};

/// The tree of a version, and what jobs do there.
#[derive(Debug)]
pub(in crate::engine) struct VersionTree<'a> {
    version: &'a Version,
    work: &'a KeyspaceWork,
    oldest_reader: SequenceNumber,
    is_idle: bool,
    /// Files that pause at this time after failed jobs count as busy.
    pauses_at: Option<Duration>,
    claims: Vec<Claim<&'a [u8]>>,
    /// See [`Tree::allowed`].
    pub(in crate::engine) allowed: Vec<u64>,
    /// The value logs whose garbage collection has failed.
    failed_logs: Vec<LogSummary>,
    /// The busy files below level 0, as levels and positions.
    busy: Vec<(usize, usize)>,
    /// The readers, if entries may have expired for them.
    readers: Option<ReadPoints>,
    /// Made when the policy asks for it first.
    moved: OnceCell<MovedValues>,
}

/// The tree of `version` for the policy. No file pauses, a reader may read at any sequence number, and nothing has expired.
pub(in crate::engine) fn summary<'a>(
    version: &'a Version,
    work: &'a KeyspaceWork,
) -> VersionTree<'a> {
    let busy = work.busy.values();
    VersionTree {
        version,
        work,
        oldest_reader: 0,
        is_idle: false,
        pauses_at: None,
        claims: work.claims.iter().map(Claim::borrowed).collect(),
        allowed: work.allowed.clone(),
        // A job that takes logs asks whether their pause is over.
        failed_logs: failed_logs(version, work, Duration::MAX),
        busy: busy.filter_map(|file| position(version, file)).collect(),
        readers: None,
        moved: OnceCell::new(),
    }
}

/// The value logs of `version` whose garbage collection has failed, some of which pause at `now`.
fn failed_logs(version: &Version, work: &KeyspaceWork, now: Duration) -> Vec<LogSummary> {
    let failed = work.gc_backoffs.files();
    let mut logs: Vec<LogSummary> = failed.filter_map(|it| version.values().log(it)).collect();
    work.gc_backoffs.annotate(&mut logs, now);
    logs
}

/// What the tables of `version` refer to in each value log and origin. Costs a look at each of them.
fn moved_values(version: &Version) -> MovedValues {
    let log = |(number, bytes, gc_output)| ReferredLog {
        number,
        bytes,
        gc_output,
    };
    MovedValues::new(version.values().referred_logs().map(log))
}

/// All files of `version` for the policy. Costs a look at each file, and about 300 bytes of memory.
pub(in crate::engine) fn all_files(version: &Version) -> TreeSummary<&[u8]> {
    let levels = version.levels().iter();
    let levels = levels.map(|level| level.files().map(|file| describe(version, file)).collect());
    let levels: Vec<_> = levels.collect();
    TreeSummary {
        moved: moved_values(version),
        ..TreeSummary::new(levels.len().max(2) - 1, levels, TABLE_FILES_MAX)
    }
}

/// The level and the position of a file of `version` below level 0, perhaps with other segments by now; `None` if the
/// version has no such file.
fn position(version: &Version, file: &FileHandle) -> Option<(usize, usize)> {
    let levels = version.levels().iter().enumerate().skip(1);
    let mut positions = levels.flat_map(|(level, files)| {
        let positions = files.overlapping(file.smallest(), file.smallest());
        positions.map(move |position| (level, position))
    });
    positions.find(|&(level, position)| {
        let found = version.levels()[level].file(position);
        found.is_some_and(|found| found.meta.number == file.meta.number)
    })
}

/// A file that is not busy.
fn describe<'a>(version: &'a Version, file: &'a Shared<FileHandle>) -> FileSummary<&'a [u8]> {
    let segment = |segment: &SegmentMeta| SegmentSummary {
        bytes: segment.length,
        entries: segment.entries,
        sequence_min: segment.sequence_min,
        overwrites: segment.overwrites,
        filter_units: segment.filter_units,
        logs: segment.references.logs().copied(),
    };
    FileSummary {
        number: file.meta.number,
        smallest: file.smallest(),
        largest: file.largest(),
        bytes: file.meta.bytes(),
        logical_bytes: file.meta.logical_bytes(),
        entries: file.meta.entries(),
        tombstones: file.meta.tombstones(),
        range_tombstones: file.meta.range_tombstones(),
        hidden_below: file.meta.hidden_below(),
        sequence_min: file.meta.sequence_min(),
        sequence_max: file.meta.sequence_max(),
        transient_bytes: file.meta.transient_bytes(),
        pinned_bytes: pinned_bytes(version, &file.meta),
        transient_files: file.meta.transient_files(),
        log_bytes: file.meta.log_bytes(),
        expired_bytes: 0,
        is_expired: false,
        segments: file.meta.segments.iter().map(segment).collect(),
        visits: file.visits(),
        sealed: file.meta.sealed,
        busy: false,
    }
}

/// What `file` keeps of transient logs.
fn pinned_bytes(version: &Version, file: &FileMeta) -> u64 {
    match file.transient_files() {
        0 => 0,
        _ => version.values().pinned_bytes(file),
    }
}

impl<'a> VersionTree<'a> {
    /// The same tree, of a keyspace that was not written to for this time.
    pub(in crate::engine) fn idle_for(mut self, time: Duration) -> Self {
        self.is_idle = policy::is_idle(time);
        self
    }

    /// The same tree, in which the value logs rest that pause at `now` after failed jobs.
    pub(in crate::engine) fn resting_at(mut self, now: Duration) -> Self {
        self.failed_logs = failed_logs(self.version, self.work, now);
        self
    }

    /// The same tree, in which the files are busy that pause at `now` after failed jobs.
    pub(in crate::engine) fn pausing_at(mut self, now: Duration) -> Self {
        self.pauses_at = Some(now);
        let paused = self.work.backoffs.paused(now);
        if paused.is_empty() {
            return self;
        }
        // Failures are rare, and nothing knows where their files are.
        for (level, files) in self.version.levels().iter().enumerate().skip(1) {
            let is_paused = |(_, file): &(usize, &Shared<FileHandle>)| {
                let number = file.meta.number;
                paused.contains(&number) && !self.work.busy.contains_key(&number)
            };
            let paused = files.files().enumerate().filter(is_paused);
            self.busy
                .extend(paused.map(|(position, _)| (level, position)));
        }
        self
    }

    /// The same tree, read by `readers` alone, with what has expired for them.
    pub(in crate::engine) fn read_at(mut self, readers: &ReadPoints) -> Self {
        self.oldest_reader = readers.oldest();
        self.readers = self.version.may_expire().then(|| readers.clone());
        self
    }

    /// The bytes of entries of `file` that have expired, and whether nobody needs an entry of it.
    fn expired(&self, file: &FileMeta) -> (u64, bool) {
        let Some(readers) = &self.readers else {
            return (0, false);
        };
        let moment = readers.earliest_moment(file.sequence_min());
        let expired = file.expired_bytes(moment);
        let from = file.expired_from();
        // A transaction with an older snapshot must find that the key was written.
        let is_expired = from.is_some_and(|from| is_expired(from, moment))
            && file.sequence_max() <= readers.oldest();
        (expired, is_expired)
    }

    fn level(&self, level: usize) -> Option<&'a Level> {
        self.version.levels().get(level).map(|level| &**level)
    }

    fn is_busy(&self, number: FileNumber) -> bool {
        let is_paused = |now| self.work.backoffs.is_paused(number, now);
        self.work.busy.contains_key(&number) || self.pauses_at.is_some_and(is_paused)
    }

    /// The busy files of `level`, which is not 0.
    fn busy_files(&self, level: usize) -> impl Iterator<Item = &'a Shared<FileHandle>> {
        let files = self.level(level);
        let busy = self.busy.iter().filter(move |(its, _)| *its == level);
        busy.filter_map(move |(_, position)| files?.file(*position))
    }

    /// About what tables that refer to `bytes` in transient logs keep there: as much more as all tables do. The exact
    /// sum would need a look at all references of all files.
    fn pinned_share(&self, bytes: u64) -> u64 {
        let all = self.version.value_sums();
        let product = u128::from(all.transient_length) * u128::from(bytes);
        let pinned = product / u128::from(all.transient_bytes.max(1));
        u64::try_from(pinned).unwrap_or(u64::MAX).max(bytes)
    }

    /// A sum over files, from their sums of single quantities.
    fn add_up(&self, of: Sum, measured: impl Fn(Measure) -> u64) -> u64 {
        let with_logs = |bytes: u64| {
            let bytes = measured(Measure::Bytes).saturating_add(bytes);
            bytes.saturating_add(measured(Measure::LogBytes))
        };
        let transient = || measured(Measure::TransientBytes);
        match of {
            Sum::Bytes => measured(Measure::Bytes),
            Sum::HeldBytes => with_logs(transient()),
            Sum::KeptBytes => with_logs(self.pinned_share(transient())),
            Sum::PinnedBytes => self.pinned_share(transient()),
            Sum::LogBytes => measured(Measure::LogBytes),
            Sum::LogicalBytes => measured(Measure::LogicalBytes),
            Sum::CutBytes => cut_bytes(measured(Measure::Bytes), transient()),
            Sum::Entries => measured(Measure::Entries),
            Sum::Tombstones => measured(Measure::Tombstones),
        }
    }
}

impl<'a> Tree<&'a [u8]> for VersionTree<'a> {
    fn level_count(&self) -> usize {
        self.work.level_count
    }

    fn claims(&self) -> &[Claim<&'a [u8]>] {
        &self.claims
    }

    fn allowed(&self) -> &[u64] {
        &self.allowed
    }

    fn files_max(&self) -> u64 {
        TABLE_FILES_MAX
    }

    fn oldest_reader(&self) -> SequenceNumber {
        self.oldest_reader
    }

    fn is_idle(&self) -> bool {
        self.is_idle
    }

    fn transient_files(&self) -> u64 {
        self.version.value_sums().transient_files as u64
    }

    fn log_sums(&self) -> SummedLogs {
        self.version.value_sums().logs
    }

    fn failed_logs(&self) -> Cow<'_, [LogSummary]> {
        Cow::Borrowed(&self.failed_logs)
    }

    fn log_chunks(&self) -> usize {
        self.version.values().chunks()
    }

    fn log_chunk_sums(&self, chunk: usize) -> SummedLogs {
        self.version.values().log_sums(chunk)
    }

    fn logs(&self, chunk: usize) -> Cow<'_, [LogSummary]> {
        let failed = |log: LogSummary| {
            let mut failed = self.failed_logs.iter();
            *failed.find(|it| it.number == log.number).unwrap_or(&log)
        };
        self.version.values().logs(chunk).map(failed).collect()
    }

    fn moved_bytes(&self) -> u64 {
        self.version.value_sums().relocated_bytes
    }

    fn moved_values(&self) -> &MovedValues {
        self.moved.get_or_init(|| moved_values(self.version))
    }

    fn busy(&self, level: usize) -> Vec<usize> {
        let busy = self.busy.iter().filter(|(its, _)| *its == level);
        busy.map(|(_, position)| *position).collect()
    }

    fn depth(&self) -> usize {
        self.version.levels().len()
    }

    fn len(&self, level: usize) -> usize {
        self.level(level).map_or(0, Level::len)
    }

    fn file(&self, level: usize, position: usize) -> Cow<'_, FileSummary<&'a [u8]>> {
        let Some(file) = self.level(level).and_then(|files| files.file(position)) else {
            unreachable!("the policy asks for files of the tree")
        };
        let (expired_bytes, is_expired) = self.expired(&file.meta);
        Cow::Owned(FileSummary {
            busy: self.is_busy(file.meta.number),
            expired_bytes,
            is_expired,
            ..describe(self.version, file)
        })
    }

    fn overlapping(&self, level: usize, smallest: &&'a [u8], largest: &&'a [u8]) -> Range<usize> {
        let files = self.level(level);
        files.map_or(0..0, |files| files.overlapping(smallest, largest))
    }

    fn sum(&self, level: usize, of: Sum) -> u64 {
        let files = self.level(level);
        files.map_or(0, |files| {
            self.add_up(of, |measure| files.sums().get(measure))
        })
    }

    fn idle_sum(&self, level: usize, of: Sum) -> u64 {
        let Some(files) = self.level(level) else {
            return 0;
        };
        self.add_up(of, |measure| {
            let busy = self
                .busy_files(level)
                .map(|file| file.meta.measure(measure));
            busy.fold(files.sums().get(measure), u64::saturating_sub)
        })
    }

    fn sum_within(&self, level: usize, files: Range<usize>, of: Sum) -> u64 {
        let level = self.level(level);
        let within = |measure| level.map_or(0, |it| it.sum_within(files.clone(), measure));
        self.add_up(of, within)
    }

    fn expired_bytes(&self) -> u64 {
        let Some(readers) = &self.readers else {
            return 0;
        };
        let now = readers.now();
        let levels = self.version.levels().iter();
        let all: f64 = levels.map(|level| level.expired_bytes(now)).sum();
        let level_0 = self.version.levels().first();
        let level_0 = level_0.into_iter().flat_map(|level| level.files());
        let level_0 = level_0.filter(|file| self.is_busy(file.meta.number));
        let deeper = (1..self.depth()).flat_map(|level| self.busy_files(level));
        let busy = level_0.chain(deeper);
        let busy = busy.map(|file| file.meta.expired_bytes(now));
        whole(all).saturating_sub(busy.fold(0, u64::saturating_add))
    }

    fn has_earlier_readers(&self) -> bool {
        self.readers.as_ref().is_some_and(ReadPoints::has_snapshots)
    }

    fn held_once(&self, level: usize) -> f64 {
        let files = self.level(level);
        let superseded = files.map_or(0, |it| it.sums().get(Measure::SupersededBytes));
        self.sum(level, Sum::HeldBytes) as f64 - superseded as f64
    }

    fn cost(&self, level: usize, position: usize) -> f64 {
        let Some((files, below)) = self.level(level).zip(self.level(level + 1)) else {
            return 0.0;
        };
        let (chunk, position) = files.chunk_of(position);
        files.costs(chunk, below).files[position]
    }

    fn chunks(&self, level: usize) -> usize {
        self.level(level).map_or(0, |files| files.chunks().len())
    }

    fn chunk(&self, level: usize, chunk: usize) -> Range<usize> {
        self.level(level)
            .map_or(0..0, |files| files.positions(chunk))
    }

    fn chunk_of(&self, level: usize, position: usize) -> usize {
        self.level(level)
            .map_or(0, |files| files.chunk_of(position).0)
    }

    fn bounds(&self, level: usize, chunk: usize) -> Bounds {
        let chunk = &self.version.levels()[level].chunks()[chunk];
        let extremes = chunk.extremes();
        let holds = |measure| chunk.sums().get(measure) > 0;
        let now = self.readers.as_ref().map_or(0, ReadPoints::now);
        Bounds {
            tombstone_part_max: extremes.tombstone_part_max,
            segments_max: extremes.segments_max,
            visits_max: chunk.visits_max(),
            bytes_min: extremes.bytes_min,
            segmented_bytes_min: extremes.segmented_bytes_min,
            superseded_part_max: extremes.superseded_part_max,
            may_have_transient: holds(Measure::TransientBytes),
            may_have_logs: holds(Measure::LogBytes),
            expired_part_max: extremes.expired_part_max(now),
            may_be_expired: is_expired(extremes.expired_from_min, now),
        }
    }

    fn least_cost(&self, level: usize, chunk: usize) -> f64 {
        let levels = self.level(level).zip(self.level(level + 1));
        levels.map_or(0.0, |(files, below)| files.costs(chunk, below).least)
    }

    fn is_segmented(&self, level: usize) -> bool {
        self.level(level).is_some_and(|files| files.runs() > 1)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod scale;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
