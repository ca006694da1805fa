//! A tree in memory whose keys are integers, and the jobs that the policy plans for it.
//!
//! All its entries have one size. If that is medium, a flush separates their values, and compactions put
//! them in place as the policy says.

mod file;
mod transient_logs;

use std::collections::{BTreeMap, HashMap};

use self::file::File;
use self::transient_logs::TransientLogs;
use crate::base::limits::TABLE_FILES_MAX;
use crate::base::{FileNumber, Kind, SequenceNumber, Trailer};
use crate::options::KeyspaceOptions;
use crate::policy::{
    Claim, Compaction, FileSummary, FlushPlace, ManualCompaction, Met, OutputPlan, Plan,
    ReadPoints, TransientLogFate, TreeSummary, Verdict, cut_bytes, keep, mediums_stay,
    next_allowed, place_at_flush, plan, plan_range, segment_limits, transient_file_bytes,
};

/// The bytes of an entry besides its value.
const KEY_BYTES: u64 = 16;
/// The bytes of a pointer in an entry, instead of a separated value.
const POINTER_BYTES: u64 = 20;

pub(super) type Key = u32;

/// A version of a key.
pub(super) type Entry = (Key, Trailer);

/// A running job: its inputs are busy and its claim exists.
#[derive(Debug)]
pub(super) struct Job {
    plan: Plan<Key>,
    /// The tree and the readers as they were at the start.
    tree: TreeSummary<Key>,
    readers: ReadPoints,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) options: KeyspaceOptions,
    pub(super) entry_bytes: u64,
    pub(super) snapshots: Vec<SequenceNumber>,
    pub(super) level_count: usize,
    /// Bytes that compactions wrote, and how many of them were appended.
    pub(super) merged: u64,
    pub(super) appended: u64,
    levels: Vec<Vec<File>>,
    claims: Vec<Claim<Key>>,
    allowed: Vec<u64>,
    transient_logs: TransientLogs,
    /// Each transient log file counts as this many.
    pub(super) transient_file_weight: u64,
    cursors: Vec<Option<Key>>,
    sequence: SequenceNumber,
    files: u64,
    /// Every write in order, to check reads against.
    history: BTreeMap<Key, Vec<Trailer>>,
}

/// A manual compaction of all keys; files from `before` on are new.
pub(crate) fn everything<'k, K>(before: FileNumber) -> ManualCompaction<'k, K> {
    ManualCompaction {
        rewrites_all: false,
        smallest: None,
        largest: None,
        before,
        through: SequenceNumber::MAX,
    }
}

impl Model {
    pub(super) fn new(options: KeyspaceOptions, entry_bytes: u64) -> Self {
        options.validate().unwrap();
        Self {
            options,
            entry_bytes,
            snapshots: Vec::new(),
            level_count: 1,
            merged: 0,
            appended: 0,
            levels: vec![Vec::new(); 16],
            claims: Vec::new(),
            allowed: Vec::new(),
            transient_logs: TransientLogs::new(entry_bytes.saturating_sub(KEY_BYTES)),
            transient_file_weight: 1,
            cursors: vec![None; 16],
            sequence: 0,
            files: 0,
            history: BTreeMap::new(),
        }
    }

    /// Writes `keys` in their order, some as deletions, and flushes them as one run.
    pub(super) fn flush(&mut self, keys: impl IntoIterator<Item = (Key, Kind)>) {
        let mut newest = BTreeMap::new();
        let mut entries = Vec::new();
        for (key, kind) in keys {
            self.sequence += 1;
            let trailer = Trailer::new(self.sequence, kind);
            self.history.entry(key).or_default().push(trailer);
            if let Some(older) = newest.insert(key, trailer) {
                let mut readers = self.snapshots.iter();
                if readers.any(|&point| point >= older.sequence() && point < self.sequence) {
                    entries.push((key, older));
                }
            }
        }
        entries.extend(newest);
        sort(&mut entries);
        if !entries.is_empty() {
            self.separate(&entries);
            let file = self.file(entries);
            self.levels[0].insert(0, file);
            self.allowed = next_allowed(&self.summary(), &self.options);
        }
    }

    /// Writes values of `entries` to a transient log, as a flush does.
    fn separate(&mut self, entries: &[Entry]) {
        let length = |bytes: u64| usize::try_from(bytes).unwrap();
        let value_bytes = length(self.entry_bytes.saturating_sub(KEY_BYTES));
        let summary = self.summary();
        let files = summary.levels.iter().flatten();
        let ranges = files.map(|file| (file.smallest, file.largest));
        let own = (entries[0].0, entries[entries.len() - 1].0);
        let stay = mediums_stay(ranges, own, &self.options);
        let place = place_at_flush(length(KEY_BYTES), value_bytes, stay, &self.options);
        if place == FlushPlace::TransientLog {
            let length = transient_file_bytes(self.options.file_bytes);
            for (_, trailer) in entries.iter().filter(|entry| !entry.1.is_tombstone()) {
                self.transient_logs
                    .put(trailer.sequence(), length, &mut self.files);
            }
            self.transient_logs.close();
        }
    }

    /// Bytes of all transient logs, garbage included.
    pub(super) fn transient_log_bytes(&self) -> u64 {
        self.transient_logs.bytes()
    }

    fn value_bytes(&self) -> u64 {
        self.entry_bytes.saturating_sub(KEY_BYTES)
    }

    /// The number of transient log files.
    pub(super) fn transient_files(&self) -> u64 {
        self.transient_logs.count() * self.transient_file_weight
    }

    /// Bytes of a table like `file`.
    fn bytes(&self, file: &File) -> u64 {
        let separated = file.separated();
        let in_place = file.entries() - separated;
        self.entry_bytes * in_place + (KEY_BYTES + POINTER_BYTES) * separated
    }

    /// Makes the present state readable for as long as the snapshot is listed.
    pub(super) fn snapshot(&mut self) {
        self.snapshots.push(self.sequence);
    }

    fn file(&mut self, entries: Vec<Entry>) -> File {
        let references = self.transient_logs.references(&entries);
        self.files += 1;
        File::new(FileNumber(self.files), entries, references)
    }

    pub(super) fn summary(&self) -> TreeSummary<Key> {
        let summary = |file: &File| {
            let (keys, bytes) = ((file.smallest(), file.largest()), self.bytes(file));
            let logs = file.references.len() as u64 * self.transient_file_weight;
            FileSummary {
                logical_bytes: self.entry_bytes * file.entries(),
                tombstones: file.tombstones,
                sequence_min: file.sequence_min,
                sequence_max: file.sequence_max(),
                transient_bytes: self.value_bytes() * file.separated(),
                pinned_bytes: self.transient_logs.pinned_bytes(&file.references),
                transient_files: u32::try_from(logs).unwrap(),
                segments: file.summaries(self.entry_bytes),
                visits: file.visits,
                busy: file.busy,
                ..FileSummary::new(file.number, keys, bytes, file.entries())
            }
        };
        let levels = self.levels.iter();
        let levels = levels.map(|files| files.iter().map(summary).collect());
        TreeSummary {
            claims: self.claims.clone(),
            oldest_reader: ReadPoints::without_clock(self.snapshots.clone(), self.sequence)
                .oldest(),
            allowed: self.allowed.clone(),
            transient_files: self.transient_files(),
            ..TreeSummary::new(self.level_count, levels.collect(), TABLE_FILES_MAX)
        }
    }

    /// Goes on with other options.
    pub(super) fn set_options(&mut self, options: KeyspaceOptions) {
        self.options = options;
        self.allowed = vec![u64::MAX; self.levels.len()];
        self.allowed = next_allowed(&self.summary(), &self.options);
    }

    /// Lets range reads visit every run this many times.
    pub(super) fn visit(&mut self, times: u64) {
        for (level, files) in self.levels.iter_mut().enumerate() {
            for file in files {
                let more = if level == 0 {
                    1
                } else {
                    file.segments.len() as u64 - 1
                };
                file.visits += times * more;
            }
        }
    }

    /// Starts the next job; `None` if the plan is idle.
    pub(super) fn start(&mut self) -> Option<Job> {
        let tree = self.summary();
        let plan = plan(&tree, &self.options, &self.cursors);
        self.start_plan(plan)
    }

    /// Starts `plan`, which was made for the present tree.
    pub(super) fn start_plan(&mut self, plan: Plan<Key>) -> Option<Job> {
        let tree = self.summary();
        match &plan {
            Plan::Idle => return None,
            Plan::Resize { .. } => {}
            Plan::Drop { level, files } => self.engage(*level, files),
            Plan::TrivialMove {
                level,
                upper,
                claim,
            } => {
                self.engage(*level, &[*upper]);
                self.claims.push(claim.clone());
                self.cursors[*level] = Some(claim.largest);
            }
            Plan::Compact(compaction) => {
                let claim = &compaction.claim;
                self.check_targets(&tree, claim.level, &compaction.targets);
                self.engage(compaction.level, &compaction.upper);
                self.engage(claim.level, &compaction.lower);
                self.engage(claim.level, &compaction.targets);
                self.claims.push(claim.clone());
                self.cursors[compaction.level] = Some(claim.largest);
            }
        }
        let readers = ReadPoints::without_clock(self.snapshots.clone(), self.sequence);
        Some(Job {
            plan,
            tree,
            readers,
        })
    }

    /// Nothing is appended to a file that has as many segments as it may.
    fn check_targets(&self, tree: &TreeSummary<Key>, level: usize, targets: &[FileNumber]) {
        let limits = segment_limits(tree, &self.options);
        let files = tree.level(level).iter();
        for file in files.filter(|file| targets.contains(&file.number)) {
            assert!(file.segments.len() < limits[level]);
        }
    }

    /// I4: a file has one job at a time.
    fn engage(&mut self, level: usize, numbers: &[FileNumber]) {
        for &number in numbers {
            let file = self.file_mut(level, number);
            assert!(!file.busy, "file {number} has two jobs");
            file.busy = true;
        }
    }

    fn file_mut(&mut self, level: usize, number: FileNumber) -> &mut File {
        let mut files = self.levels[level].iter_mut();
        let file = files.find(|file| file.number == number);
        file.expect("a plan names files of the tree")
    }

    /// Installs the results of `job`.
    pub(super) fn finish(&mut self, job: &Job) {
        match &job.plan {
            Plan::Idle => {}
            Plan::Resize { level_count } => self.level_count = *level_count,
            Plan::Drop { level, files } => {
                self.take(*level, files);
            }
            Plan::TrivialMove {
                level,
                upper,
                claim,
            } => {
                let mut files = self.take(*level, &[*upper]);
                for file in &mut files {
                    file.busy = false;
                }
                self.install(claim, files);
            }
            Plan::Compact(compaction) => {
                let files = self.merge(job, compaction);
                let claim = &compaction.claim;
                for file in &mut self.levels[claim.level] {
                    file.busy &= !compaction.targets.contains(&file.number);
                }
                self.install(claim, files);
            }
        }
        self.allowed = next_allowed(&self.summary(), &self.options);
        self.check();
    }

    fn take(&mut self, level: usize, numbers: &[FileNumber]) -> Vec<File> {
        let files = std::mem::take(&mut self.levels[level]);
        let (taken, left) = files
            .into_iter()
            .partition(|file| numbers.contains(&file.number));
        self.levels[level] = left;
        taken
    }

    fn install(&mut self, claim: &Claim<Key>, files: Vec<File>) {
        let position = self.claims.iter().position(|other| other == claim).unwrap();
        self.claims.swap_remove(position);
        let level = &mut self.levels[claim.level];
        level.extend(files);
        level.sort_by_key(File::smallest);
    }

    /// The output of a compaction. It meets the newest version first, keeps or drops it, and appends it or cuts files.
    fn merge(&mut self, job: &Job, compaction: &Compaction<Key>) -> Vec<File> {
        let claim = &compaction.claim;
        let entries = |files: Vec<File>| files.into_iter().flat_map(|file| file.segments);
        let uppers = entries(self.take(compaction.level, &compaction.upper));
        let uppers: Vec<Entry> = uppers.flatten().collect();
        let lowers = entries(self.take(claim.level, &compaction.lower));
        let lowers: Vec<Entry> = lowers.flatten().collect();
        let options = self.options.clone();
        let plan = OutputPlan::new(&job.tree, compaction, &options);
        let mut deeper = plan.deeper_levels();
        let mut cutter = plan.cutter(|from, to| {
            let is_between = |entry: &&Entry| {
                from.is_none_or(|from| *from < entry.0) && to.is_none_or(|to| entry.0 < *to)
            };
            self.entry_bytes * uppers.iter().filter(is_between).count() as u64
        });
        let mut entries = [uppers, lowers].concat();
        sort(&mut entries);
        let inputs = self.transient_logs.inputs(&entries).into_iter();
        let fates: HashMap<u64, TransientLogFate> = inputs
            .map(|(log, input)| (log, plan.transient_log_fate(input)))
            .collect();
        let mut outputs: Vec<(Option<FileNumber>, Vec<Entry>)> = vec![(None, Vec::new())];
        let (mut newer, mut last, mut written) = (None, None, 0);
        for (key, trailer) in entries {
            if last != Some(key) {
                newer = None;
                let place = cutter.place(&key, written);
                match outputs.last_mut() {
                    Some(present) if !place.begins => present.0 = place.target,
                    _ => {
                        outputs.push((place.target, Vec::new()));
                        written = 0;
                    }
                }
            }
            let verdict = keep(trailer, newer, false, &job.readers, || {
                deeper.may_hold(&key)
            });
            if verdict == Verdict::Keep {
                assert!((claim.smallest..=claim.largest).contains(&key));
                outputs.last_mut().unwrap().1.push((key, trailer));
            }
            let sequence = trailer.sequence();
            let log = self.transient_logs.file_of(sequence);
            let fate = log.map(|log| fates[&log]);
            if fate == Some(TransientLogFate::InPlace) || verdict != Verdict::Keep {
                self.transient_logs.take(sequence);
            } else if fate == Some(TransientLogFate::Rewrite) {
                self.transient_logs.take(sequence);
                let length = plan.transient_file_bytes();
                self.transient_logs.put(sequence, length, &mut self.files);
                self.merged += self.value_bytes();
            }
            if verdict == Verdict::Keep {
                let log = self.transient_logs.file_of(sequence);
                let apart = log.map_or(0, |_| self.value_bytes());
                written += cut_bytes(self.entry_bytes - apart, apart);
            }
            newer = Some(Met::new(trailer, verdict));
            last = Some(key);
        }
        self.transient_logs.close();
        let mut files = Vec::new();
        let mut appended = Vec::new();
        for (target, entries) in outputs {
            if entries.is_empty() {
                continue;
            }
            let file = self.file(entries);
            self.merged += self.bytes(&file);
            match target {
                None => files.push(file),
                Some(target) => {
                    assert!(!appended.contains(&target), "one segment for each target");
                    appended.push(target);
                    self.appended += self.bytes(&file);
                    self.file_mut(claim.level, target).append(file);
                }
            }
        }
        files
    }

    /// Brings everything down to the deepest level, as `compact_range` does.
    pub(super) fn compact(&mut self) {
        let before = self.next_file();
        loop {
            let plan = plan_range(&self.summary(), &self.options, &everything(before));
            let Some(job) = self.start_plan(plan) else {
                return;
            };
            self.finish(&job);
        }
    }

    /// The number of the next file.
    pub(super) fn next_file(&self) -> FileNumber {
        FileNumber(self.files + 1)
    }

    /// The newest sequence number.
    pub(super) fn last_sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// The files, level by level.
    pub(super) fn numbers(&self) -> Vec<Vec<FileNumber>> {
        let numbers = |files: &Vec<File>| files.iter().map(|file| file.number).collect();
        self.levels.iter().map(numbers).collect()
    }

    /// Runs jobs one at a time until nothing is due.
    pub(super) fn settle(&mut self) {
        for _ in 0..100_000 {
            match self.start() {
                Some(job) => self.finish(&job),
                None => return,
            }
        }
        panic!("the policy does not come to rest");
    }

    /// I1: levels are sorted and disjoint. Of each key, later segments of a file hold newer entries.
    fn check(&self) {
        for file in self.levels.iter().flatten() {
            file.check();
        }
        for files in &self.levels[1..] {
            for pair in files.windows(2) {
                assert!(pair[0].largest() < pair[1].smallest());
            }
        }
    }

    /// What a reader at `sequence` finds, in probe order.
    fn read(&self, key: Key, sequence: SequenceNumber) -> Option<Trailer> {
        let mut files = self.levels.iter().flatten();
        let found = files.find_map(|file| file.find(key, sequence));
        found.filter(|trailer| !trailer.is_tombstone())
    }

    /// Every reader finds for every key the last version up to its sequence number.
    pub(super) fn check_reads(&self) {
        for (key, versions) in &self.history {
            for &point in self.snapshots.iter().chain([&self.sequence]) {
                let mut versions = versions.iter().rev();
                let expected = versions.find(|version| version.sequence() <= point);
                let expected = expected.copied().filter(|version| !version.is_tombstone());
                assert_eq!(self.read(*key, point), expected, "key {key} at {point}");
            }
        }
    }
}

/// Key ascending, then newest first.
fn sort(entries: &mut [Entry]) {
    entries.sort_unstable_by_key(|(key, trailer)| (*key, std::cmp::Reverse(*trailer)));
}
