//! The inputs of a compaction: the files that it reads, those that it appends to, and the transient
//! logs that they refer to.
//!
//! Concurrency: immutable once the job is claimed.

use std::collections::BTreeMap;
use std::slice;

use crate::base::FileNumber;
use crate::base::sync::Shared;
use crate::engine::keyspace::KeyspaceWork;
use crate::manifest::{FileHandle, Version};
use crate::policy::{Claim, Compaction, InputTransientLog, Purpose};
use crate::read::run::Run;
use crate::table::FileMeta;

/// The inputs of a compaction.
#[derive(Debug)]
pub(in crate::engine) struct Inputs {
    /// The version that the plan was made for.
    pub(super) version: Shared<Version>,
    /// Only the nominal number of levels.
    pub(super) work: KeyspaceWork,
    pub(super) level: usize,
    pub(super) upper: Vec<Shared<FileHandle>>,
    pub(super) lower: Vec<Shared<FileHandle>>,
    /// Files that get an append and are not read.
    pub(super) targets: Vec<Shared<FileHandle>>,
    pub(super) purpose: Purpose,
}

impl Inputs {
    pub(super) fn files(&self) -> impl Iterator<Item = &Shared<FileHandle>> {
        self.upper.iter().chain(&self.lower)
    }

    /// The compaction that the policy picked.
    pub(super) fn compaction<'c>(&self, claim: &'c Claim<Box<[u8]>>) -> Compaction<&'c [u8]> {
        Compaction {
            level: self.level,
            upper: numbers(&self.upper),
            lower: numbers(&self.lower),
            targets: numbers(&self.targets),
            claim: claim.borrowed(),
            purpose: self.purpose,
        }
    }

    /// The targets that have grown to `files`: the handles before and after.
    pub(super) fn grown(
        &self,
        files: &[FileMeta],
    ) -> Vec<(&Shared<FileHandle>, Shared<FileHandle>)> {
        let grown = |file: &FileMeta| {
            let mut targets = self.targets.iter();
            let old = targets.find(|old| old.meta.number == file.number)?;
            Some((old, old.grown(file.clone())))
        };
        files.iter().filter_map(grown).collect()
    }

    /// The same inputs with only those files that `is_chosen` accepts.
    pub(super) fn only(&self, is_chosen: impl Fn(&Shared<FileHandle>) -> bool) -> Self {
        let chosen = |files: &[Shared<FileHandle>]| {
            let files = files.iter().filter(|file| is_chosen(file));
            files.map(Shared::clone).collect()
        };
        Self {
            version: Shared::clone(&self.version),
            work: KeyspaceWork {
                level_count: self.work.level_count,
                ..KeyspaceWork::default()
            },
            level: self.level,
            upper: chosen(&self.upper),
            lower: chosen(&self.lower),
            targets: self.targets.clone(),
            purpose: self.purpose,
        }
    }

    /// How many range tombstones they have.
    pub(super) fn range_tombstones(&self) -> u64 {
        let counts = self.files().map(|file| file.meta.range_tombstones());
        counts.fold(0, u64::saturating_add)
    }

    pub(super) fn entries(&self) -> u64 {
        let counts = self.files().map(|file| file.meta.entries());
        counts.fold(0, u64::saturating_add)
    }

    /// The bytes of their files.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = self.files().map(|file| file.meta.bytes());
        bytes.fold(0, u64::saturating_add)
    }

    /// The files of transient logs that the inputs refer to, and how much of each.
    pub(super) fn transient_logs_met(&self) -> BTreeMap<FileNumber, InputTransientLog> {
        let mut met: BTreeMap<FileNumber, InputTransientLog> = BTreeMap::new();
        let segments = self.files().flat_map(|file| &file.meta.segments);
        let references = segments.flat_map(|segment| segment.references.transient());
        for (file, referred) in references {
            let run = met.entry(file).or_default();
            run.input_bytes = run.input_bytes.saturating_add(referred.bytes);
            run.slices += 1;
        }
        for (file, run) in &mut met {
            let usage = self.version.values().usage(*file).unwrap_or_default();
            (run.length, run.referred_bytes) = (usage.length, usage.referred);
        }
        met
    }

    /// The sorted runs of the inputs, newest first: each file of level 0 alone, else all upper files together; and the
    /// lower files.
    pub(super) fn runs(&self) -> Vec<Run> {
        let alone = |file| Run::of_files(slice::from_ref(file)).rev();
        let upper: Vec<Run> = match self.level {
            0 => self.upper.iter().flat_map(alone).collect(),
            _ => Run::of_files(&self.upper).rev().collect(),
        };
        let lower = Run::of_files(&self.lower).rev();
        upper.into_iter().chain(lower).collect()
    }
}

pub(super) fn numbers(files: &[Shared<FileHandle>]) -> Vec<FileNumber> {
    files.iter().map(|file| file.meta.number).collect()
}

/// The handles of the files `numbers` of `level`, in that order. All of them overlap `claim`, which includes the inputs
/// of its job.
pub(super) fn find(
    version: &Version,
    level: usize,
    numbers: &[FileNumber],
    claim: &Claim<&[u8]>,
) -> Vec<Shared<FileHandle>> {
    let files = version.levels().get(level).map(|files| {
        let positions = match level {
            0 => 0..files.len(),
            _ => files.overlapping(claim.smallest, claim.largest),
        };
        let files = positions.filter_map(|position| files.file(position));
        files.map(|file| (file.meta.number, file)).collect()
    });
    let files: BTreeMap<FileNumber, &Shared<FileHandle>> = files.unwrap_or_default();
    let find = |number: &FileNumber| files.get(number).copied().map(Shared::clone);
    let found: Vec<_> = numbers.iter().filter_map(find).collect();
    assert_eq!(
        found.len(),
        numbers.len(),
        "a plan names a file that is not in its tree"
    );
    found
}

/// The handles of the files `numbers` of `level`, in its order. Costs a look at each file of the level.
pub(super) fn find_in(
    version: &Version,
    level: usize,
    numbers: &[FileNumber],
) -> Vec<Shared<FileHandle>> {
    let levels = version.levels().get(level).into_iter();
    let files = levels.flat_map(|files| files.files());
    let is_named = |file: &&Shared<FileHandle>| numbers.contains(&file.meta.number);
    let found: Vec<_> = files.filter(is_named).map(Shared::clone).collect();
    assert_eq!(
        found.len(),
        numbers.len(),
        "a plan names a file that is not in its tree"
    );
    found
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::base::Kind;
    use crate::engine::Write;
    use crate::engine::{Access, Handle};
    use crate::options::{Durability, MediumInPlace, Options};
    use crate::read::visible::KeyRange;
    use crate::table::SegmentMeta;

    /// All tables together have all references. A compaction meets the references of its own inputs,
    /// those of the lower level included.
    #[test]
    fn inputs_list_the_transient_values_they_refer_to() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.keyspace.memtable_bytes = 32 << 10;
        options.keyspace.file_bytes = 16 << 10;
        options.keyspace.base_bytes = 64 << 10;
        options.keyspace.block_bytes = 512;
        options.keyspace.medium_from = 120;
        options.keyspace.medium_in_place = MediumInPlace::Never;
        let handle = Handle::open(directory.path(), options, Access::ReadWrite).unwrap();
        let engine = handle.engine();
        let keyspace = engine.open_keyspace("k", None).unwrap();
        let write = |step: u64, count: u64| {
            for number in 0..count {
                let key = format!("{:06}", number * step);
                let write = Write::One {
                    keyspace: &keyspace,
                    kind: Kind::Value,
                    key: key.as_bytes(),
                    value: &[7; 200],
                };
                engine.commit(&write, Durability::Buffered).unwrap();
            }
            engine.flush_all().unwrap();
        };
        write(1, 4000);
        engine.compact_range(&keyspace, &KeyRange::ALL).unwrap();
        write(7, 100);
        let version = Shared::clone(&keyspace.state().version);
        let deepest = version.levels().iter().rposition(|level| !level.is_empty());
        let deepest = deepest.unwrap();
        let above = &version.levels()[..deepest];
        let inputs = |lower: &[Shared<FileHandle>]| Inputs {
            version: Shared::clone(&version),
            work: KeyspaceWork::default(),
            level: deepest - 1,
            upper: above
                .iter()
                .flat_map(|level| level.files())
                .cloned()
                .collect(),
            lower: lower.to_vec(),
            targets: Vec::new(),
            purpose: Purpose::Tree,
        };
        let lower: Vec<_> = version.levels()[deepest].files().cloned().collect();
        assert!(lower.len() > 2);
        let all = inputs(&lower).transient_logs_met();
        assert_eq!(all.len(), version.value_sums().transient_files);
        for (file, met) in &all {
            let usage = version.values().usage(*file).unwrap();
            assert_eq!(met.input_bytes, usage.referred, "{file:?}");
            assert_eq!(
                (met.referred_bytes, met.length),
                (usage.referred, usage.length)
            );
            let refers = |segment: &&SegmentMeta| {
                segment
                    .references
                    .transient()
                    .any(|(transient_log, _)| transient_log == *file)
            };
            let files = version.levels().iter().flat_map(|level| level.files());
            let segments = files.flat_map(|handle| &handle.meta.segments);
            assert_eq!(met.slices, segments.filter(refers).count() as u64);
        }
        assert!(all.values().any(|met| met.slices > 1));
        let part = inputs(&lower[..1]).transient_logs_met();
        assert!(part.len() < all.len());
        let sum = |met: &BTreeMap<FileNumber, InputTransientLog>| -> u64 {
            met.values().map(|met| met.input_bytes).sum()
        };
        assert!(sum(&part) < sum(&all));
        assert!(
            part.values()
                .all(|met| met.input_bytes <= met.referred_bytes)
        );
    }
}
