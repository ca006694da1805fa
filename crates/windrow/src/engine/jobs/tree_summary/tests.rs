//! The tree of a version against the list of all its files, after random edits.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{all_files, summary};
use crate::base::sync::Shared;
use crate::base::{Error, ErrorKind, FileNumber, KeyspaceId, SegmentId};
use crate::engine::keyspace::KeyspaceWork;
use crate::manifest::{Edit, FileHandle, ManifestState, Record, ReferenceChanges, Version};
use crate::options::KeyspaceOptions;
use crate::policy::{self, Claim, ReadPoints, Sum, Tree, TreeSummary};
use crate::table::{
    Expiring, FenceKeys, FileMeta, LogReferences, LogSums, Referred, SegmentMeta, SegmentReferences,
};
use crate::value::ValueFileMeta;

const LEVELS: usize = 5;

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn key(number: u64) -> Box<[u8]> {
    format!("{number:06}").into_bytes().into()
}

/// What is known of some entries that expire.
fn expiring(random: &mut Random) -> Expiring {
    let mut moments = [0; Expiring::PARTS + 1].map(|_| random.below(200));
    moments.sort_unstable();
    Expiring {
        entries: 1,
        bytes: random.below(9000),
        moments,
    }
}

fn segment(random: &mut Random, keys: Range<u64>, offset: u64, id: u64) -> SegmentMeta {
    let entries = 1 + random.below(50);
    SegmentMeta {
        id: SegmentId(id),
        offset,
        length: 1000 + random.below(8000),
        entries,
        tombstones: random.below(6) / 5 * entries,
        keys: FenceKeys::new(&key(keys.start), &key(keys.end - 1)),
        sequence_min: id,
        sequence_max: id,
        logical_bytes: 1000 + random.below(8000),
        overwrites: random.below(entries + 1),
        filter_units: [64, 0, 0, 0],
        footer_checksum: 0,
        range_tombstones: 0,
        operands: 0,
        hidden_below: 0,
        expiring: (random.below(3) == 0).then(|| Box::new(expiring(random))),
        references: SegmentReferences::default(),
    }
}

/// A version that random edits change.
struct Edited {
    random: Random,
    version: Version,
    next: u64,
}

impl Edited {
    fn new_file(&mut self, keys: Range<u64>) -> Shared<FileHandle> {
        self.next += 1;
        let meta = FileMeta {
            number: FileNumber(self.next),
            sealed: self.random.below(9) == 0,
            external: false,
            segments: vec![segment(&mut self.random, keys, 0, self.next)].into(),
        };
        FileHandle::new(meta, &Arc::default())
    }

    /// Any file below level 0.
    fn any(&mut self) -> Option<(usize, Shared<FileHandle>)> {
        let level = 1 + usize::try_from(self.random.below(LEVELS as u64 - 1)).unwrap();
        let files = self.version.levels().get(level)?;
        let position = self.random.below(files.len().max(1) as u64);
        let file = files.file(usize::try_from(position).unwrap())?;
        Some((level, Shared::clone(file)))
    }

    fn is_free(&self, level: usize, keys: &Range<u64>) -> bool {
        let (smallest, largest) = (key(keys.start), key(keys.end - 1));
        let files = self.version.levels().get(level);
        files.is_none_or(|files| files.overlapping(&smallest, &largest).is_empty())
    }

    fn apply(
        &mut self,
        adds: &[(usize, Shared<FileHandle>)],
        removes: &[(usize, Shared<FileHandle>)],
    ) {
        let on_disk = |files: &[(usize, Shared<FileHandle>)]| -> Vec<(u8, Shared<FileHandle>)> {
            let files = files.iter();
            files
                .map(|(level, file)| (u8::try_from(*level).unwrap(), Shared::clone(file)))
                .collect()
        };
        self.version = self
            .version
            .apply(&on_disk(adds), &on_disk(removes))
            .unwrap();
    }

    fn step(&mut self) {
        let keys = 1 + self.random.below(3000);
        let keys = keys..keys + 1 + self.random.below(20);
        match self.random.below(12) {
            0 => {
                let file = self.new_file(keys);
                self.apply(&[(0, file)], &[]);
            }
            1..7 => {
                // Some files of some levels, in one edit.
                let mut adds = Vec::new();
                for level in 1..LEVELS {
                    for start in (keys.start..keys.start + 400).step_by(25) {
                        let keys = start..start + 1 + self.random.below(25);
                        if self.random.below(4) == 0 && self.is_free(level, &keys) {
                            adds.push((level, self.new_file(keys)));
                        }
                    }
                }
                self.apply(&adds, &[]);
            }
            7 | 8 => {
                if let Some((level, file)) = self.any() {
                    let mut meta = FileMeta::clone(&file.meta);
                    self.next += 1;
                    let id = self.next;
                    let mut more = segment(&mut self.random, 0..1, meta.end(), id);
                    more.keys = FenceKeys::new(file.smallest(), file.largest());
                    meta.segments.push(more);
                    if meta.segments.len() < 6 {
                        let grown = file.grown(meta);
                        self.apply(&[(level, grown)], &[(level, file)]);
                    }
                }
            }
            9 => {
                if let Some((level, file)) = self.any() {
                    self.apply(&[], &[(level, file)]);
                }
            }
            _ => {
                // A range of keys goes from a level.
                let Some((level, _)) = self.any() else { return };
                let files = &self.version.levels()[level];
                let (smallest, largest) = (key(keys.start), key(keys.end + 200));
                let gone = files.overlapping(&smallest, &largest);
                let gone = gone.filter_map(|it| files.file(it));
                let gone: Vec<_> = gone.map(|file| (level, Shared::clone(file))).collect();
                self.apply(&[], &gone);
            }
        }
        let level = 1 + usize::try_from(self.random.below(LEVELS as u64 - 1)).unwrap();
        if let Some(files) = self.version.levels().get(level)
            && files.runs() > 1
        {
            for _ in 0..self.random.below(40) {
                let place = files.run_lower_bound(1, &key(self.random.below(3000)));
                files.note_visit(1, place);
            }
        }
    }

    /// Some running jobs.
    fn work(&mut self) -> KeyspaceWork {
        let mut work = KeyspaceWork {
            level_count: LEVELS - 1,
            ..KeyspaceWork::default()
        };
        for _ in 0..self.random.below(6) {
            if let Some((level, file)) = self.any() {
                work.claims.push(Claim {
                    level: level + 1,
                    smallest: file.smallest().into(),
                    largest: file.largest().into(),
                });
                work.busy.insert(file.meta.number, file);
            }
        }
        work
    }
}

/// The same tree as a list of all files.
fn listed<'a>(version: &'a Version, work: &'a KeyspaceWork) -> TreeSummary<&'a [u8]> {
    let mut tree = all_files(version);
    tree.level_count = work.level_count;
    tree.claims = work.claims.iter().map(Claim::borrowed).collect();
    for file in tree.levels.iter_mut().flatten() {
        file.busy = work.busy.contains_key(&file.number);
    }
    tree
}

fn check<'k>(
    kept: &dyn Tree<&'k [u8]>,
    listed: &dyn Tree<&'k [u8]>,
    (from, to): (&'k [u8], &'k [u8]),
) -> Result<(), TestCaseError> {
    prop_assert_eq!(kept.depth(), listed.depth());
    for level in 0..kept.depth() {
        prop_assert_eq!(kept.len(level), listed.len(level));
        for of in Sum::ALL {
            prop_assert_eq!(kept.sum(level, of), listed.sum(level, of));
            if level > 0 {
                prop_assert_eq!(kept.idle_sum(level, of), listed.idle_sum(level, of));
                let within = kept.overlapping(level, &from, &to);
                prop_assert_eq!(&within, &listed.overlapping(level, &from, &to));
                let sum = listed.sum_within(level, within.clone(), of);
                prop_assert_eq!(kept.sum_within(level, within, of), sum);
            }
        }
        let once = listed.held_once(level);
        prop_assert!((kept.held_once(level) - once).abs() <= kept.len(level) as f64);
        let chunks = (0..kept.chunks(level)).map(|chunk| kept.chunk(level, chunk));
        let positions: Vec<usize> = chunks.flatten().collect();
        prop_assert!(positions.into_iter().eq(0..kept.len(level)));
        for chunk in (0..kept.chunks(level)).filter(|_| level > 0) {
            let bounds = kept.bounds(level, chunk);
            for position in kept.chunk(level, chunk) {
                prop_assert_eq!(kept.chunk_of(level, position), chunk);
                let (file, other) = (kept.file(level, position), listed.file(level, position));
                prop_assert_eq!((file.number, file.busy), (other.number, other.busy));
                let cost = listed.cost(level, position);
                prop_assert_eq!(kept.cost(level, position).to_bits(), cost.to_bits());
                prop_assert!(kept.least_cost(level, chunk) <= cost);
                prop_assert!(file.visits <= bounds.visits_max);
                prop_assert!(bounds.bytes_min <= file.bytes);
                prop_assert!(file.segments.len() <= bounds.segments_max);
                let part = file.tombstones as f64 / file.entries as f64;
                prop_assert!(part <= bounds.tombstone_part_max);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The sum of expired bytes that edits keep is that of the idle files.
    #[test]
    fn a_version_knows_how_much_has_expired(
        seed in any::<u64>(), steps in 1..60_usize, now in 0..250_u64,
    ) {
        let mut edited = Edited { random: Random(seed), version: Version::default(), next: 0 };
        for _ in 0..steps {
            edited.step();
        }
        let work = edited.work();
        let readers = ReadPoints::new(Vec::new(), edited.next, now);
        let tree = summary(&edited.version, &work).read_at(&readers);
        let files = (0..tree.depth()).flat_map(|level| tree.files(level, 0..tree.len(level)));
        let files: Vec<_> = files.collect();
        let expired = files.iter().filter(|file| !file.busy).map(|file| file.expired_bytes);
        let (expired, found) = (expired.sum::<u64>(), tree.expired_bytes());
        // Each segment and file rounds down, and sums of numbers lose their last digits.
        let segments = files.iter().map(|file| file.segments.len() + 2).sum::<usize>() as u64;
        prop_assert!(expired.abs_diff(found) <= segments, "{} {}", expired, found);
        for (level, chunk) in (0..tree.depth()).flat_map(|level| {
            (0..tree.chunks(level)).map(move |chunk| (level, chunk))
        }) {
            let most = tree.bounds(level, chunk).expired_part_max;
            let files = tree.files(level, tree.chunk(level, chunk));
            let parts = files.iter();
            let parts = parts.map(|file| file.expired_bytes as f64 / file.held_bytes() as f64);
            let part = parts.fold(0.0, f64::max);
            prop_assert!(part <= most && most < part + 0.26, "{} {}", part, most);
        }
        for file in files {
            prop_assert!(file.expired_bytes <= file.held_bytes());
        }
        prop_assert!(!tree.has_earlier_readers());
    }

    /// Sums, costs and bounds that edits keep are those of the files, and so are the plans.
    #[test]
    fn a_version_answers_like_the_list_of_its_files(
        seed in any::<u64>(), steps in 1..60_usize, base_kib in 8..300_u64, cursor in 0..3000_u64,
    ) {
        let mut edited = Edited { random: Random(seed), version: Version::default(), next: 0 };
        let cursor = key(cursor);
        for base_bytes in [base_kib << 10, 1 << 30] {
            for step in 0..steps {
                edited.step();
                if step % 8 > 0 {
                    continue;
                }
                let work = edited.work();
                let version = &edited.version;
                let (kept, list) = (summary(version, &work), listed(version, &work));
                let (from, to) = (key(edited.random.below(3000)), key(1500));
                let ends = (from.clone().min(to.clone()), from.max(to));
                check(&kept, &list, (&ends.0, &ends.1))?;
                let options = KeyspaceOptions {
                    base_bytes,
                    file_bytes: 8 << 10,
                    block_bytes: 1 << 10,
                    ..KeyspaceOptions::default()
                };
                let cursors = [Some(&*cursor); LEVELS];
                let plan = policy::plan(&kept, &options, &cursors);
                prop_assert_eq!(&plan, &policy::plan(&list, &options, &cursors));
                let whole = policy::ManualCompaction {
                    rewrites_all: false,
                    smallest: Some(&&*ends.0),
                    largest: Some(&&*ends.1),
                    before: FileNumber(edited.next / 2),
                    through: edited.next / 2,
                };
                let plan = policy::plan_range(&kept, &options, &whole);
                prop_assert_eq!(&plan, &policy::plan_range(&list, &options, &whole));
                prop_assert!(version.check().is_ok());
            }
        }
    }
}

proptest! {
    /// What the policy decides about value logs from sums and bounds of chunks is what it decides from all logs.
    #[test]
    fn garbage_collection_looks_at_no_log_that_could_matter_less(
        seed in any::<u64>(),
        count in 1..120_u64,
        fragments in 0..100_u64,
        failures in 0..4_u64,
        max_space_amp in 1.01..2.0_f64,
        at_most in 1..70_usize,
    ) {
        let mut random = Random(seed);
        let state = logs(&mut random, count, fragments);
        let keyspace = &state.keyspaces[&KEYSPACE];
        let version = Version::from_state(keyspace, &Arc::default()).unwrap();
        let mut work = KeyspaceWork::default();
        let error = Error::new(ErrorKind::Io, "damaged");
        for _ in 0..failures {
            let number = FileNumber(FIRST_LOG + random.below(count));
            let now = Duration::from_secs(random.below(20));
            work.gc_backoffs.note_failure(&[number], &error, now);
        }
        let kept = summary(&version, &work).resting_at(Duration::from_secs(10));
        let list = TreeSummary {
            logs: (0..kept.log_chunks()).flat_map(|chunk| kept.logs(chunk).into_owned()).collect(),
            ..all_files(&version)
        };
        prop_assert!(list.logs.iter().filter(|log| log.failures > 0).count() as u64 <= failures);
        prop_assert_eq!(kept.failed_logs(), list.failed_logs());
        prop_assert_eq!(kept.log_sums(), list.log_sums());
        let options = KeyspaceOptions { max_space_amp, ..KeyspaceOptions::default() };
        let victims = policy::victims(&kept, &options, at_most);
        prop_assert_eq!(victims, policy::victims(&list, &options, at_most));
        let excess = policy::garbage_excess(&kept, &options);
        prop_assert_eq!(excess, policy::garbage_excess(&list, &options));
        prop_assert_eq!(policy::bytes_held(&kept), policy::bytes_held(&list));
        let behind = policy::values_behind_max(&kept, &options);
        prop_assert_eq!(behind, policy::values_behind_max(&list, &options));
        let seals = policy::wants_seal(&kept, &options);
        prop_assert_eq!(seals, policy::wants_seal(&list, &options));
    }
}

const KEYSPACE: KeyspaceId = KeyspaceId(1);
const FIRST_LOG: u64 = 1000;

/// The manifest of a keyspace with `count` value logs and a table that refers to parts of them. Of these `fragments` of a
/// hundred are short. Some have the same garbage.
fn logs(random: &mut Random, count: u64, fragments: u64) -> ManifestState {
    const RECORD_BYTES: u64 = 1 << 10;
    let referred = |entries| Referred {
        entries,
        bytes: entries * RECORD_BYTES,
    };
    let mut records = vec![
        Record::NextId(FIRST_LOG + count),
        Record::CreateKeyspace {
            id: KEYSPACE,
            name: "logs".to_owned(),
        },
    ];
    let mut counts = ReferenceChanges::default();
    let mut all = Referred::default();
    for number in (FIRST_LOG..FIRST_LOG + count).map(FileNumber) {
        let is_fragment = random.below(100) < fragments;
        let entries = 1 + random.below(if is_fragment { 20_000 } else { 100_000 });
        let live = match random.below(4) {
            0 => entries / 4,
            1 => entries - entries / 4,
            _ => random.below(entries + 1),
        };
        let length = entries * RECORD_BYTES;
        let file = ValueFileMeta {
            number,
            length,
            entries,
            value_bytes: length,
            end: length + random.below(1 << 20),
        };
        records.push(Record::AddValueLog {
            keyspace: KEYSPACE,
            number,
        });
        records.push(if random.below(20) == 0 {
            let keyspace = KEYSPACE;
            Record::ValueLogAt { keyspace, file }
        } else {
            Record::SealValueLog {
                keyspace: KEYSPACE,
                file,
                last_sequence: random.below(50) / 49,
            }
        });
        if live > 0 {
            counts.count(number, referred(live));
            all = all.plus(referred(live));
        }
    }
    let mut table = FileMeta {
        number: FileNumber(1),
        sealed: false,
        external: false,
        segments: vec![segment(random, 0..9, 0, 1)].into(),
    };
    let logs = (all.entries > 0).then_some(LogReferences {
        sums: LogSums {
            referred: all,
            smallest: FileNumber(FIRST_LOG),
            largest: FileNumber(FIRST_LOG + count - 1),
        },
        generation: FileNumber(0),
    });
    table.segments[0].references = SegmentReferences::new(None, logs);
    records.push(Record::AddFile {
        keyspace: KEYSPACE,
        level: 1,
        file: Arc::new(table),
    });
    records.extend(Record::count_references(KEYSPACE, &counts));
    let mut state = ManifestState::default();
    state.apply(&Edit { records }).unwrap();
    state
}
