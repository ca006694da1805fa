//! The invariants hold under random flushes, jobs that overlap in time, and snapshots.

use proptest::prelude::*;

use super::model::{Key, Model, everything};
use crate::base::Kind;
use crate::base::limits::SEGMENTS_MAX;
use crate::options::{KeyspaceOptions, SegmentLimit};
use crate::policy::append::segment_limits;
use crate::policy::capacities::capacities;
use crate::policy::scores::scores;
use crate::policy::{FileSummary, ManualCompaction, Tree, plan_range};

/// Too small for separated values.
const ENTRY_BYTES: u64 = 50;

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Write keys from `first` on, `stride` apart, and flush them.
    Flush {
        first: Key,
        stride: Key,
        count: Key,
        kind: Kind,
    },
    /// Start the next job, if one is due.
    Start,
    /// Finish one of the running jobs.
    Finish(usize),
    Snapshot,
    /// Release one of the snapshots.
    Release(usize),
    /// Range reads visit all runs.
    Visit(u64),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![3 => Just(Kind::Value), 1 => Just(Kind::Tombstone)];
    prop_oneof![
        4 => (0..300_u32, 1..20_u32, 1..40_u32, kind).prop_map(|(first, stride, count, kind)| {
            Step::Flush { first, stride, count, kind }
        }),
        4 => Just(Step::Start),
        3 => any::<usize>().prop_map(Step::Finish),
        1 => Just(Step::Snapshot),
        1 => any::<usize>().prop_map(Step::Release),
        1 => (1..4_u64).prop_map(Step::Visit),
    ]
}

pub(super) fn options() -> impl Strategy<Value = KeyspaceOptions> {
    let scaling = prop_oneof![Just(1.0), 0.4..1.0_f64];
    let segment_limit = prop_oneof![
        Just(SegmentLimit::Scaled),
        (1..=SEGMENTS_MAX).prop_map(SegmentLimit::Fixed),
    ];
    (2.0..6.0_f64, scaling, 1..6_usize, 1..4_u64, segment_limit).prop_map(
        |(size_ratio, scaling, level0_runs, files, segment_limit)| KeyspaceOptions {
            size_ratio,
            scaling,
            level0_runs,
            segment_limit,
            file_bytes: 1 << 10,
            base_bytes: files << 10,
            memtable_bytes: 4 << 10,
            ..KeyspaceOptions::default()
        },
    )
}

/// Runs `steps` with jobs overlapping in time, then ends all jobs.
pub(super) fn run(options: KeyspaceOptions, entry_bytes: u64, steps: Vec<Step>) -> Model {
    let mut model = Model::new(options, entry_bytes);
    let mut jobs = Vec::new();
    for step in steps {
        match step {
            Step::Flush {
                first,
                stride,
                count,
                kind,
            } => {
                model.flush((0..count).map(|position| (first + position * stride, kind)));
            }
            Step::Start => jobs.extend(model.start()),
            Step::Finish(choice) if !jobs.is_empty() => {
                let job = jobs.swap_remove(choice % jobs.len());
                model.finish(&job);
                model.check_reads();
            }
            Step::Snapshot => model.snapshot(),
            Step::Release(choice) if !model.snapshots.is_empty() => {
                let position = choice % model.snapshots.len();
                model.snapshots.swap_remove(position);
            }
            Step::Visit(times) => model.visit(times),
            Step::Finish(_) | Step::Release(_) => {}
        }
    }
    while let Some(job) = jobs.pop() {
        model.finish(&job);
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// I1 to I4: jobs in any interleaving never share an input, never overlap in a level, and
    /// change no answer, not even for a snapshot.
    #[test]
    fn overlapping_jobs_change_no_answer(
        options in options(), steps in proptest::collection::vec(step(), 1..80),
    ) {
        run(options, ENTRY_BYTES, steps).check_reads();
    }

    /// I5: from any tree the policy comes to rest, and then every level is within capacity, and every
    /// file has at most as many segments as it may.
    #[test]
    fn comes_to_rest_within_capacity(
        options in options(), steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut model = run(options, ENTRY_BYTES, steps);
        model.settle();
        model.check_reads();
        let tree = model.summary();
        let capacities = capacities(&model.options, tree.level_count);
        prop_assert!(tree.level(0).len() < model.options.level0_runs.max(1));
        for (level, capacity) in capacities.iter().enumerate().skip(1) {
            prop_assert!(tree.logical_bytes(level) <= *capacity);
        }
        prop_assert!(tree.levels[tree.level_count + 1..].iter().all(|files| files.is_empty()));
        prop_assert!(scores(&tree, &model.options)[1..].iter().all(|&score| score <= 1.0));
        for (files, limit) in tree.levels.iter().zip(segment_limits(&tree, &model.options)) {
            prop_assert!(files.iter().all(|file| file.segments.len() <= limit));
        }
    }

    /// A manual compaction brings all present entries down, and later writes do not keep it from ending.
    #[test]
    fn a_manual_compaction_ends_while_more_is_written(
        options in options(), steps in proptest::collection::vec(step(), 1..30),
        more in proptest::collection::vec(step(), 1..200),
    ) {
        let mut model = run(options, ENTRY_BYTES, steps);
        let (before, through) = (model.next_file(), model.last_sequence());
        let wanted = ManualCompaction { through, ..everything(before) };
        for step in more {
            if let Step::Flush { first, stride, count, kind } = step {
                model.flush((0..count).map(|position| (first + position * stride, kind)));
            }
            for job in [model.start(), model.start_plan(
                plan_range(&model.summary(), &model.options, &wanted),
            )].into_iter().flatten() {
                model.finish(&job);
            }
        }
        for _ in 0..1000 {
            let plan = plan_range(&model.summary(), &model.options, &wanted);
            let Some(job) = model.start_plan(plan) else { break };
            model.finish(&job);
        }
        model.check_reads();
        let tree = model.summary();
        let above = tree.levels.iter().take(tree.deepest_level()).flatten();
        prop_assert!(above.clone().all(|file| file.sequence_min > through));
        let deepest = tree.level(tree.deepest_level()).iter();
        let mut later = deepest.flat_map(|file| file.segments.iter().skip(1));
        prop_assert!(later.all(|segment| segment.sequence_min > through));
    }

    /// A manual compaction brings down its whole range, and only that.
    #[test]
    fn a_manual_compaction_brings_its_range_to_the_bottom(
        options in options(), steps in proptest::collection::vec(step(), 1..40),
        from in 0..400_u32, width in 0..400_u32,
    ) {
        let to = from + width;
        let mut model = run(options, ENTRY_BYTES, steps);
        let before = model.next_file();
        for _ in 0..1000 {
            let wanted = ManualCompaction {
                smallest: Some(&from), largest: Some(&to), ..everything(before)
            };
            let plan = plan_range(&model.summary(), &model.options, &wanted);
            let Some(job) = model.start_plan(plan) else { break };
            model.finish(&job);
        }
        model.check_reads();
        let tree = model.summary();
        let overlaps = |file: &FileSummary<u32>| file.smallest <= to && from <= file.largest;
        for level in 0..tree.deepest_level() {
            prop_assert!(!tree.level(level).iter().any(overlaps));
        }
        if model.snapshots.is_empty() {
            let mut last = tree.level(tree.deepest_level()).iter().filter(|file| overlaps(file));
            prop_assert!(last.all(|file| file.tombstones == 0));
        }
        let mut last = tree.level(tree.deepest_level()).iter().filter(|file| overlaps(file));
        prop_assert!(last.all(|file| file.segments.len() == 1));
    }
}
