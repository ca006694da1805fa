//! A tree in memory whose keys are integers, and the jobs that the policy plans for it.
//!
//! All its entries have one size. Where that is medium, a flush separates their values, and merges put
//! them in place as the policy says.

use std::collections::{BTreeMap, HashMap};

use crate::base::limits::{SEGMENTS_MAX, TABLE_FILES_MAX};
use crate::base::{FileNumber, Kind, SequenceNumber, Trailer};
use crate::options::KeyspaceOptions;
use crate::policy::{
    Claim, Compaction, FileSummary, FlushPlace, InputTransientLog, ManualCompaction, OutputPlan,
    Plan, ReadPoints, SegmentSummary, TransientLogFate, TreeSummary, Verdict, keep, mediums_stay,
    next_allowed, place_at_flush, plan, plan_range, segment_limits, transient_file_bytes,
};

/// What an entry has of `entry_bytes` besides its value.
const KEY_BYTES: u64 = 16;
/// Where a separated value stands, in its entry.
const POINTER_BYTES: u64 = 20;

pub(super) type Key = u32;

/// A version of a key.
pub(super) type Entry = (Key, Trailer);

#[derive(Debug, Clone)]
struct File {
    number: FileNumber,
    /// Each sorted, oldest first.
    segments: Vec<Vec<Entry>>,
    /// Of each segment, the keys that older ones have.
    overwrites: Vec<u64>,
    /// What its entries refer to, which changes only with a merge: how many values in each transient log file.
    runs: BTreeMap<u64, u64>,
    tombstones: u64,
    sequence_min: SequenceNumber,
    visits: u64,
    busy: bool,
}

impl File {
    fn smallest(&self) -> Key {
        let first = |segment: &Vec<Entry>| segment.first().unwrap().0;
        self.segments.iter().map(first).min().unwrap()
    }

    fn largest(&self) -> Key {
        let last = |segment: &Vec<Entry>| segment.last().unwrap().0;
        self.segments.iter().map(last).max().unwrap()
    }

    fn entries(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.len() as u64)
            .sum()
    }

    /// How many values are in runs.
    fn separated(&self) -> u64 {
        self.runs.values().sum()
    }
}

/// A job that has started: its inputs are busy and its claim stands.
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
    /// Bytes that merges wrote, and how many of them were appended.
    pub(super) merged: u64,
    pub(super) appended: u64,
    levels: Vec<Vec<File>>,
    claims: Vec<Claim<Key>>,
    allowed: Vec<u64>,
    /// The transient log files that separated values are in, by the sequence numbers of their entries.
    transient: HashMap<SequenceNumber, u64>,
    /// How many values each transient log file was written with, and how many of them are still needed.
    runs: HashMap<u64, (u64, u64)>,
    /// The transient log file that is being written.
    open_transient_log: Option<u64>,
    /// Each transient log file counts as so many.
    pub(super) transient_file_weight: u64,
    cursors: Vec<Option<Key>>,
    sequence: SequenceNumber,
    files: u64,
    /// Every write in order, to check reads against.
    history: BTreeMap<Key, Vec<Trailer>>,
}

/// All there is; files from `before` on are new.
pub(crate) fn everything<'k, K>(before: FileNumber) -> ManualCompaction<'k, K> {
    ManualCompaction {
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
            transient: HashMap::new(),
            runs: HashMap::new(),
            open_transient_log: None,
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
                let readers = self.snapshots.iter();
                if readers
                    .clone()
                    .any(|&point| point >= older.sequence() && point < self.sequence)
                {
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

    /// What a flush does with the values of `entries`.
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
                self.put_in_transient_log(trailer.sequence(), length);
            }
            self.open_transient_log = None;
        }
    }

    /// Appends a value to the run that is being written, of which a file of this `length` is full.
    fn put_in_transient_log(&mut self, sequence: SequenceNumber, length: u64) {
        let run = self.open_transient_log.unwrap_or_else(|| {
            self.files += 1;
            self.files
        });
        self.open_transient_log = Some(run);
        self.transient.insert(sequence, run);
        let value_bytes = self.value_bytes();
        let (written, needed) = self.runs.entry(run).or_default();
        (*written, *needed) = (*written + 1, *needed + 1);
        if *written * value_bytes >= length {
            self.open_transient_log = None;
        }
    }

    fn take_from_transient_log(&mut self, sequence: SequenceNumber) {
        let Some(run) = self.transient.remove(&sequence) else {
            return;
        };
        let (_, needed) = self.runs.get_mut(&run).unwrap();
        *needed -= 1;
        if *needed == 0 {
            self.runs.remove(&run);
        }
    }

    /// The transient log files that `entries` refer to, which here count as one slice of each.
    fn transient_logs_met(&self, entries: &[Entry]) -> BTreeMap<u64, InputTransientLog> {
        let mut met: BTreeMap<u64, InputTransientLog> = BTreeMap::new();
        let run = |entry: &Entry| self.transient.get(&entry.1.sequence());
        for &run in entries.iter().filter_map(run) {
            let (written, needed) = self.runs[&run];
            let known = met.entry(run).or_insert(InputTransientLog {
                length: written * self.value_bytes(),
                referred_bytes: needed * self.value_bytes(),
                input_bytes: 0,
                slices: 1,
            });
            known.input_bytes += self.value_bytes();
        }
        met
    }

    /// Bytes of all runs, garbage values included.
    pub(super) fn transient_log_bytes(&self) -> u64 {
        let written: u64 = self.runs.values().map(|(written, _)| written).sum();
        written * self.value_bytes()
    }

    fn value_bytes(&self) -> u64 {
        self.entry_bytes.saturating_sub(KEY_BYTES)
    }

    /// How many files of runs there are.
    pub(super) fn transient_files(&self) -> u64 {
        self.runs.len() as u64 * self.transient_file_weight
    }

    /// What `file` keeps of runs, garbage values included.
    fn pinned_bytes(&self, file: &File) -> u64 {
        let pinned = file.runs.iter().map(|(run, count)| {
            let (written, needed) = self.runs[run];
            written * self.value_bytes() * count / needed
        });
        pinned.sum()
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
        self.files += 1;
        let mut runs = BTreeMap::new();
        if !self.transient.is_empty() {
            let run = |entry: &Entry| self.transient.get(&entry.1.sequence());
            for run in entries.iter().filter_map(run) {
                *runs.entry(*run).or_default() += 1;
            }
        }
        let tombstones = entries.iter().filter(|entry| entry.1.is_tombstone());
        let sequences = entries.iter().map(|entry| entry.1.sequence());
        File {
            number: FileNumber(self.files),
            runs,
            tombstones: tombstones.count() as u64,
            sequence_min: sequences.min().unwrap(),
            segments: vec![entries],
            overwrites: vec![0],
            visits: 0,
            busy: false,
        }
    }

    /// Adds `piece`, a file of one segment, to `file`; returns its bytes.
    fn append(&mut self, level: usize, number: FileNumber, piece: File) -> u64 {
        let bytes = self.bytes(&piece);
        let files = self.levels[level].iter_mut();
        let file = files
            .into_iter()
            .find(|file| file.number == number)
            .unwrap();
        assert!(file.busy, "a job appends to its targets");
        for (run, count) in piece.runs {
            *file.runs.entry(run).or_default() += count;
        }
        file.tombstones += piece.tombstones;
        file.sequence_min = file.sequence_min.min(piece.sequence_min);
        let older = &file.segments;
        let is_older = |key: Key| {
            older
                .iter()
                .any(|it| it.binary_search_by_key(&key, |it| it.0).is_ok())
        };
        for segment in &piece.segments {
            let keys = segment.chunk_by(|left, right| left.0 == right.0);
            let overwrites = keys.filter(|versions| is_older(versions[0].0)).count();
            file.overwrites.push(overwrites as u64);
        }
        file.segments.extend(piece.segments);
        file.visits = 0;
        bytes
    }

    pub(super) fn summary(&self) -> TreeSummary<Key> {
        let segment = |(segment, overwrites): (&Vec<Entry>, &u64)| SegmentSummary {
            bytes: self.entry_bytes * segment.len() as u64,
            entries: segment.len() as u64,
            sequence_min: segment
                .iter()
                .map(|(_, trailer)| trailer.sequence())
                .min()
                .unwrap_or(0),
            overwrites: *overwrites,
            filter_units: [0; 4],
        };
        let segments = |file: &File| {
            let segments = file.segments.iter().zip(&file.overwrites);
            segments.map(segment).collect()
        };
        let summary = |file: &File| FileSummary {
            number: file.number,
            smallest: file.smallest(),
            largest: file.largest(),
            bytes: self.bytes(file),
            logical_bytes: self.entry_bytes * file.entries(),
            entries: file.entries(),
            tombstones: file.tombstones,
            sequence_min: file.sequence_min,
            transient_bytes: self.value_bytes() * file.separated(),
            pinned_bytes: self.pinned_bytes(file),
            transient_files: u32::try_from(file.runs.len() as u64 * self.transient_file_weight)
                .unwrap(),
            log_bytes: 0,
            moved_bytes: 0,
            segments: segments(file),
            visits: file.visits,
            sealed: false,
            busy: file.busy,
        };
        let levels = self.levels.iter();
        TreeSummary {
            level_count: self.level_count,
            levels: levels
                .map(|files| files.iter().map(summary).collect())
                .collect(),
            claims: self.claims.clone(),
            allowed: self.allowed.clone(),
            files_max: TABLE_FILES_MAX,
            transient_files: self.transient_files(),
            logs: Vec::new(),
        }
    }

    /// Goes on with other options.
    pub(super) fn set_options(&mut self, options: KeyspaceOptions) {
        self.options = options;
        self.allowed = vec![u64::MAX; self.levels.len()];
        self.allowed = next_allowed(&self.summary(), &self.options);
    }

    /// Lets range reads visit every run, so many times.
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

    /// Starts what `plan` says; `None` if it is idle.
    pub(super) fn start(&mut self) -> Option<Job> {
        let tree = self.summary();
        let plan = plan(&tree, &self.options, &self.cursors);
        self.start_plan(plan)
    }

    /// Starts `plan`, which was made for the tree as it is now.
    pub(super) fn start_plan(&mut self, plan: Plan<Key>) -> Option<Job> {
        let tree = self.summary();
        match &plan {
            Plan::Idle => return None,
            Plan::Resize { .. } => {}
            Plan::TrivialMove {
                level,
                upper,
                claim,
            } => {
                self.engage(*level, &[*upper]);
                self.claims.push(claim.clone());
                self.cursors[*level] = Some(claim.largest);
            }
            Plan::Compact(Compaction {
                level,
                upper,
                lower,
                targets,
                claim,
                ..
            }) => {
                self.check_targets(&tree, claim.level, targets);
                self.engage(*level, upper);
                self.engage(claim.level, lower);
                self.engage(claim.level, targets);
                self.claims.push(claim.clone());
                self.cursors[*level] = Some(claim.largest);
            }
        }
        let readers = ReadPoints::new(self.snapshots.clone(), self.sequence);
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
        for number in numbers {
            let file = self.levels[level]
                .iter_mut()
                .find(|file| file.number == *number);
            let file = file.expect("an input is in the tree");
            assert!(!file.busy, "file {number} has two jobs");
            file.busy = true;
        }
    }

    /// Installs what `job` does.
    pub(super) fn finish(&mut self, job: &Job) {
        match &job.plan {
            Plan::Idle => {}
            Plan::Resize { level_count } => self.level_count = *level_count,
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
            Plan::Compact(Compaction {
                level,
                upper,
                lower,
                targets,
                claim,
                ..
            }) => {
                let uppers = self.take(*level, upper);
                let lowers = self.take(claim.level, lower);
                let entries = |files: Vec<File>| files.into_iter().flat_map(|file| file.segments);
                let uppers: Vec<Entry> = entries(uppers).flatten().collect();
                let lowers = entries(lowers).flatten().collect();
                let files = self.merge(job, claim, uppers, lowers);
                for file in &mut self.levels[claim.level] {
                    file.busy &= !targets.contains(&file.number);
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

    /// What a merge job does: the newest version first, kept or dropped, appended or cut into files.
    fn merge(
        &mut self,
        job: &Job,
        claim: &Claim<Key>,
        uppers: Vec<Entry>,
        lowers: Vec<Entry>,
    ) -> Vec<File> {
        let options = self.options.clone();
        let Plan::Compact(compaction) = &job.plan else {
            unreachable!("only compactions merge");
        };
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
        let fates: HashMap<u64, TransientLogFate> = self
            .transient_logs_met(&entries)
            .into_iter()
            .map(|(log, input)| (log, plan.transient_log_fate(input)))
            .collect();
        let mut outputs: Vec<(Option<FileNumber>, Vec<Entry>)> = vec![(None, Vec::new())];
        let (mut newer, mut last) = (None, None);
        for (key, trailer) in entries {
            if last != Some(key) {
                newer = None;
                let written = outputs.last().map_or(0, |(_, written)| written.len());
                let place = cutter.place(&key, self.entry_bytes * written as u64);
                match outputs.last_mut() {
                    Some(present) if !place.begins => present.0 = place.target,
                    _ => outputs.push((place.target, Vec::new())),
                }
            }
            let verdict = keep(trailer, newer, &job.readers, || deeper.may_hold(&key));
            if verdict == Verdict::Keep {
                assert!((claim.smallest..=claim.largest).contains(&key));
                outputs.last_mut().unwrap().1.push((key, trailer));
            }
            let log = self.transient.get(&trailer.sequence());
            let fate = log.and_then(|log| fates.get(log)).copied();
            if fate == Some(TransientLogFate::InPlace) || verdict != Verdict::Keep {
                self.take_from_transient_log(trailer.sequence());
            } else if fate == Some(TransientLogFate::Rewrite) {
                self.take_from_transient_log(trailer.sequence());
                self.put_in_transient_log(trailer.sequence(), plan.transient_file_bytes());
                self.merged += self.value_bytes();
            }
            newer = Some(trailer.sequence());
            last = Some(key);
        }
        self.open_transient_log = None;
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
                    self.appended += self.append(claim.level, target, file);
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
        panic!("the policy never comes to rest");
    }

    /// I1: levels are sorted and disjoint. Of each key, later segments of a file hold newer entries.
    fn check(&self) {
        for file in self.levels.iter().flatten() {
            assert!((1..=SEGMENTS_MAX).contains(&file.segments.len()));
            let mut newest: HashMap<Key, SequenceNumber> = HashMap::new();
            for segment in &file.segments {
                for (key, trailer) in segment.iter().rev() {
                    let older = newest.insert(*key, trailer.sequence());
                    assert!(
                        older.is_none_or(|older| older < trailer.sequence()),
                        "key {key}"
                    );
                }
            }
        }
        for files in &self.levels[1..] {
            for pair in files.windows(2) {
                assert!(pair[0].largest() < pair[1].smallest());
            }
        }
    }

    /// What a reader at `sequence` finds, met in probe order.
    fn read(&self, key: Key, sequence: SequenceNumber) -> Option<Trailer> {
        let files = self.levels.iter().flatten();
        let mut segments = files.flat_map(|file| file.segments.iter().rev());
        let found = segments.find_map(|segment| {
            let first = segment.partition_point(|entry| {
                entry.0 < key || entry.0 == key && entry.1.sequence() > sequence
            });
            segment.get(first).filter(|entry| entry.0 == key)
        });
        found
            .map(|entry| entry.1)
            .filter(|trailer| !trailer.is_tombstone())
    }

    /// Every reader finds for every key exactly what was written last before it stands.
    pub(super) fn check_reads(&self) {
        for (key, versions) in &self.history {
            for &point in self.snapshots.iter().chain([&self.sequence]) {
                let expected = versions
                    .iter()
                    .rev()
                    .find(|version| version.sequence() <= point);
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
