//! What to do next.
//!
//! In this order, the first that is possible:
//!
//! 1. *Grow*: the last level is over its capacity, so L grows by one and nothing moves (AU-M3).
//!    *Shrink*: the last level is empty and the others fit in half of the smaller capacities that
//!    they would have; half, so that a tree at the border does not go back and forth (D4).
//! 2. *Move*: a run of level 0, or a file of a level that is due, overlaps nothing in the level
//!    below and goes down without being rewritten. Moves cost nothing and come first because they
//!    also take away what a merge from above would have to rewrite.
//! 3. *Merge*, from the level with the highest score. Level 0 gives whole heaps, oldest first. A
//!    deeper level gives the file with the least overlap below per byte of its own, the first one
//!    behind the cursor among equals, whether that is rewritten or appended to: what is appended now is
//!    rewritten later, with all the more. Where the level is mostly in transient logs, it gives just that
//!    first one. Either way every neighbour joins whose own overlap is inside what is taken already: it
//!    comes down at no further cost.
//!
//! 4. *Shed*: a file of which half are tombstones goes down although its level is not due, so that
//!    they meet what they hide, and scans need not step over them for long. Where they lie scattered
//!    over much more than they can hide, they wait: scans hardly meet them, and few of them would
//!    have all that rewritten, again and again. Nothing is appended then, or they would meet nothing.
//! 5. *Repay*: a file that [owes](super::debt) what it has in transient logs goes down towards the
//!    level where merges write values in place, or is rewritten where it must have them in place.
//!
//! 6. *Follow*: a file that points to values which collections have moved is rewritten, where too many
//!    of them are found only through tables.
//! 7. *Squeeze*: a file whose segments range reads have visited so often that it pays to make them one, or
//!    that has more of them than it may. Likewise *fold*: runs of level 0.
//!
//! A merge [appends](super::append) to those of its lower files that have room for one more segment.
//!
//! A file that refers to runs is merged, not moved, into a level where values are in place (D8).
//! Such a merge reads a slice of each run, so it takes neighbours, as long as they are not dear, until the
//! slices are wide.
//!
//! A level 0 that is due but blocked by running jobs keeps level 1 quiet: jobs of lower score do
//! not take files from level 1, or level 0 would never find all it overlaps free at one time.

use std::ops::Range;

use super::append::{Appends, Brought, segment_limits};
use super::capacities::capacities;
use super::debt::debtors;
use super::inputs::Inputs;
use super::level_zero::{RunGroup, groups};
use super::placement::Placement;
use super::scores::scores;
use super::summary::{
    Claim, FileSummary, TreeSummary, bytes, entries, kept_bytes, logical_bytes, overlapping,
};
use crate::base::limits::LEVELS_MAX;
use crate::base::{FileNumber, SequenceNumber};
use crate::options::KeyspaceOptions;

/// The next job for one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan<K> {
    /// Nothing is due, or what is due waits for running jobs.
    Idle,
    /// Record that there are `level_count` levels, one more or one less; no file moves.
    Resize { level_count: usize },
    /// Put the file `upper` of `level` into `claim.level` as it is.
    Move {
        level: usize,
        upper: FileNumber,
        claim: Claim<K>,
    },
    /// Merge the `upper` files of `level` with the `lower` files of `claim.level` into
    /// `claim.level`, and append to each of the files `targets` there, unread, what falls to it. All are
    /// in the order of their level: level 0 newest first, others by key.
    Merge {
        level: usize,
        upper: Vec<FileNumber>,
        lower: Vec<FileNumber>,
        targets: Vec<FileNumber>,
        claim: Claim<K>,
        purpose: Purpose,
    },
}

/// What a merge is for, which decides what its bytes count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The shape of the tree, and values in their place.
    Tree,
    /// Pointers that lead where collections have moved values.
    Pointers,
    /// Fewer runs for reads to visit.
    Consolidation,
}

impl Purpose {
    /// As listeners hear it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Pointers => "pointers",
            Self::Consolidation => "consolidate",
        }
    }
}

/// How things are done in one tree, under its options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) placement: Placement,
    pub(super) appends: Appends<'a>,
    /// What a range read reads of one more run.
    visit_bytes: u64,
}

impl<'a> Rules<'a> {
    fn of<K>(tree: &TreeSummary<K>, options: &'a KeyspaceOptions, limits: &'a [usize]) -> Self {
        Self {
            placement: Placement::of(tree, options),
            appends: Appends { limits, options },
            visit_bytes: options.block_bytes as u64,
        }
    }

    /// The same, but nothing is appended in `level` or deeper.
    fn appending_above(mut self, level: usize) -> Self {
        let limits = self.appends.limits;
        self.appends.limits = &limits[..level.min(limits.len())];
        self
    }
}

/// The next job for `tree`.
///
/// `cursors` holds, for each level, the largest key that the last job from it claimed; absent ends
/// count as none. Until the job is done its inputs are busy in every summary, and its claim is
/// among the claims.
pub(crate) fn plan<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    cursors: &[Option<K>],
) -> Plan<K> {
    if let Some(level_count) = resized(tree, options) {
        return Plan::Resize { level_count };
    }
    let limits = segment_limits(tree, options);
    let rules = Rules::of(tree, options, &limits);
    let groups = groups(tree);
    let due = due_levels(&scores(tree, options));
    let cursor = |level: usize| cursors.get(level).and_then(Option::as_ref);

    let run = groups.iter().find_map(|group| move_run(tree, rules, group));
    let file = || {
        let mut deeper = due.iter().filter(|&&level| level > 0);
        deeper.find_map(|&level| move_file(tree, rules, level, cursor(level)))
    };
    if let Some(plan) = run.or_else(file) {
        return plan;
    }
    let mut level_one_rests = false;
    for level in due {
        let merge = match level {
            0 => groups
                .iter()
                .find_map(|group| merge_group(tree, rules, group, &groups)),
            1 if level_one_rests => None,
            _ => merge_cheapest(tree, rules, level, cursor(level)),
        };
        if let Some(plan) = merge {
            return plan;
        }
        level_one_rests |= level == 0;
    }
    let first = if level_one_rests { 2 } else { 1 };
    shed(tree, rules, first)
        .or_else(|| repay(tree, rules, options, first))
        .or_else(|| follow(tree, rules, first))
        .or_else(|| squeeze(tree, rules, first))
        .or_else(|| fold(tree, rules, &groups))
        .unwrap_or(Plan::Idle)
}

/// For one tombstone so many entries of the level below may be rewritten, about as many as for any
/// other entry.
const SHED_ENTRIES_MAX: u64 = 8;

/// Takes a file that is mostly tombstones from level `first` or deeper towards what they hide.
fn shed<K: Ord + Clone>(tree: &TreeSummary<K>, rules: Rules<'_>, first: usize) -> Option<Plan<K>> {
    let rules = rules.appending_above(0);
    (first..tree.deepest_level()).find_map(|level| {
        let files = tree.level(level);
        let pays = |file: &FileSummary<K>| {
            let below = tree.level(level + 1);
            let overlap = &below[overlapping(below, &file.smallest, &file.largest)];
            entries(overlap) <= file.tombstones.saturating_mul(SHED_ENTRIES_MAX)
        };
        let is_due = |&file: &usize| is_dense(&files[file]) && pays(&files[file]);
        (0..files.len())
            .filter(is_due)
            .find_map(|file| bring_down(tree, rules, level, file))
    })
}

/// Takes from level `first` or deeper a file that owes what it has in transient logs.
fn repay<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    options: &KeyspaceOptions,
    first: usize,
) -> Option<Plan<K>> {
    let debtors = debtors(tree, rules.placement, options).into_iter();
    let mut debtors = debtors.filter(|debtor| debtor.level >= first);
    debtors.find_map(|debtor| {
        let (level, file) = (debtor.level, debtor.position);
        if rules.placement.merges_in_place(level) {
            rewrite_file(tree, rules, (level, file), Purpose::Tree)
        } else {
            bring_down(tree, rules, level, file)
        }
    })
}

/// The part of the live values in logs that may be found only through relocation tables.
const MOVED_MAX: f64 = 0.25;

/// Rewrites a file of level `first` or deeper so that its pointers lead to where values are now, if too
/// many lead there through tables: the one with the most such values for its bytes.
fn follow<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let idle = |file: &&FileSummary<K>| !file.busy;
    let files = || tree.levels.iter().skip(1).flatten().filter(idle);
    let moved: u64 = files().map(|file| file.moved_bytes).sum();
    let live: u64 = tree.logs.iter().map(|log| log.live_bytes).sum();
    if moved as f64 <= MOVED_MAX * live as f64 {
        return None;
    }
    let mut line: Vec<(f64, usize, usize)> = Vec::new();
    for level in first..tree.levels.len() {
        let files = tree.level(level).iter().enumerate();
        let owing = files.filter(|(_, file)| !file.busy && file.moved_bytes > 0);
        let cost = |file: &FileSummary<K>| file.bytes as f64 / file.moved_bytes as f64;
        line.extend(owing.map(|(position, file)| (cost(file), level, position)));
    }
    line.sort_by(|left, right| left.0.total_cmp(&right.0));
    line.into_iter().find_map(|(_, level, position)| {
        rewrite_file(tree, rules, (level, position), Purpose::Pointers)
    })
}

/// Writes a file of level `first` or deeper anew as one segment, where it has more than it may or range reads
/// have visited its segments so often that it pays: the one for which it pays most, by what reads save and
/// what is freed. Room alone is no reason while there is enough: only a file that has too many is consolidated
/// for it.
///
/// A visit reads a block. Once visits of segments but one have read as much as the file holds, it is written
/// anew; so whatever is read, at most twice the bytes are moved that could have been.
fn squeeze<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    first: usize,
) -> Option<Plan<K>> {
    let mut line: Vec<(f64, usize, usize)> = Vec::new();
    for level in first..tree.levels.len() {
        for (position, file) in tree.level(level).iter().enumerate() {
            let is_over = file.segments.len() > rules.appends.limit(level);
            let paid = file.visits.saturating_mul(rules.visit_bytes);
            if !file.busy && file.segments.len() > 1 && (is_over || paid >= file.bytes) {
                let paid = paid as f64 / file.bytes.max(1) as f64;
                line.push((paid + file.superseded_part(), level, position));
            }
        }
    }
    line.sort_by(|left, right| right.0.total_cmp(&left.0));
    line.into_iter().find_map(|(_, level, position)| {
        rewrite_file(tree, rules, (level, position), Purpose::Consolidation)
    })
}

/// Merges runs of level 0, though it is not due, that range reads have visited so often that it pays, as for
/// [`consolidate`].
fn fold<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    let pays = |group: &&RunGroup<K>| {
        let runs = || group.runs.iter().map(|&run| &tree.level(0)[run]);
        let upper = Brought::by(runs(), rules.placement.merges_in_place(1));
        let visits = runs().fold(0, |all: u64, run| all.saturating_add(run.visits));
        let below = tree.level(1);
        let lower = &below[overlapping(below, &group.smallest, &group.largest)];
        let rewritten = rules.appends.rewritten_bytes(tree, 1, lower, upper);
        visits > 0
            && visits.saturating_mul(rules.visit_bytes) >= upper.bytes.saturating_add(rewritten)
    };
    let mut paying = groups.iter().filter(pays);
    paying.find_map(|group| merge_group(tree, rules, group, groups))
}

/// Whether at least half of the entries are tombstones.
fn is_dense<K>(file: &FileSummary<K>) -> bool {
    file.tombstones.saturating_mul(2) >= file.entries
}

/// The number of levels that `tree` should have, if not the present one.
fn resized<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> Option<usize> {
    let last = tree.level_count;
    if tree.logical_bytes(last) > capacities(options, last)[last] {
        return (last < LEVELS_MAX).then_some(last + 1);
    }
    let is_wanted = !tree.level(last).is_empty() || tree.claims.iter().any(|it| it.level == last);
    if last == 1 || is_wanted {
        return None;
    }
    let smaller = capacities(options, last - 1);
    let fits = |level: usize| tree.logical_bytes(level) <= smaller[level] / 2;
    (1..last).all(fits).then_some(last - 1)
}

/// What a merge by hand brings down, as it was when that was asked for.
#[derive(Debug)]
pub(crate) struct Wanted<'k, K> {
    /// The smallest key, and the largest; unbounded where absent.
    pub(crate) smallest: Option<&'k K>,
    pub(crate) largest: Option<&'k K>,
    /// Files from this number on are new.
    pub(crate) before: FileNumber,
    /// Entries above this sequence number are new.
    pub(crate) through: SequenceNumber,
}

impl<K: Ord> Wanted<'_, K> {
    /// Whether `file` holds any of it.
    fn is_in(&self, file: &FileSummary<K>) -> bool {
        file.sequence_min <= self.through
            && self
                .smallest
                .is_none_or(|smallest| *smallest <= file.largest)
            && self.largest.is_none_or(|largest| file.smallest <= *largest)
    }
}

/// The next job that brings what is `wanted` down to the deepest level that holds data, shedding on
/// the way what nobody needs. What was written since stays, or this might go on for ever.
///
/// Nothing is appended there: what comes down must meet what it hides. What is there already and holds
/// tombstones, or has several segments, is rewritten in its place, old files only, so that each is
/// rewritten once; so is what other merges have appended there meanwhile, and what refers to transient logs,
/// unless merges never write values in place.
///
/// `Idle` when all that is done, or while running jobs are in the way.
pub(crate) fn plan_range<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    wanted: &Wanted<'_, K>,
) -> Plan<K> {
    let limits = segment_limits(tree, options);
    let rules = Rules::of(tree, options, &limits).appending_above(tree.deepest_level());
    let groups = groups(tree);
    let group = groups
        .iter()
        .filter(|group| {
            let mut runs = group.runs.iter().map(|&run| &tree.level(0)[run]);
            runs.any(|run| wanted.is_in(run))
        })
        .find_map(|group| merge_group(tree, rules, group, &groups));
    let file = || {
        let comes_anyway = |file: &FileSummary<K>| wanted.is_in(file);
        (1..tree.deepest_level()).find_map(|level| {
            let files = tree.level(level);
            (0..files.len())
                .filter(|&file| comes_anyway(&files[file]))
                .find_map(|file| merge_file(tree, rules, (level, file), comes_anyway))
        })
    };
    let rewrite = || {
        let level = tree.deepest_level();
        let files = tree.level(level);
        let stale = |&file: &usize| {
            let file = &files[file];
            let is_untidy = file.tombstones > 0 || file.segments.len() > 1;
            let is_old = is_untidy && file.number < wanted.before;
            let mut later = file.segments.iter().skip(1);
            let was_appended = later.any(|segment| segment.sequence_min <= wanted.through);
            (is_old || was_appended || rules.placement.converts(level, file)) && wanted.is_in(file)
        };
        let mut stale = (0..files.len()).filter(stale);
        stale.find_map(|file| rewrite_file(tree, rules, (level, file), Purpose::Tree))
    };
    group.or_else(file).or_else(rewrite).unwrap_or(Plan::Idle)
}

/// Rewrites a file in its place, and with it neighbours that refer to transient logs, too, until the
/// slices are [wide](is_wide).
fn rewrite_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    purpose: Purpose,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let claim_of = |taken: &Range<usize>| {
        let (first, last) = (&files[taken.start], &files[taken.end - 1]);
        let is_free = !files[taken.clone()].iter().any(|file| file.busy)
            && !tree.is_claimed(level, &first.smallest, &last.largest);
        is_free.then(|| Claim {
            level,
            smallest: first.smallest.clone(),
            largest: last.largest.clone(),
        })
    };
    let mut taken = position..position + 1;
    let mut claim = claim_of(&taken)?;
    while !is_wide(&files[taken.clone()]) {
        let wider = neighbours(files, &taken).find_map(|(neighbour, wider)| {
            let owes = rules.placement.converts(level, &files[neighbour]);
            let claim = if owes { claim_of(&wider) } else { None };
            claim.map(|claim| (claim, wider))
        });
        let Some(wider) = wider else { break };
        (claim, taken) = wider;
    }
    Some(Plan::Merge {
        level,
        upper: files[taken].iter().map(|file| file.number).collect(),
        lower: Vec::new(),
        targets: Vec::new(),
        claim,
        purpose,
    })
}

/// The levels that should give something, highest score first, the upper one among equals.
fn due_levels(scores: &[f64]) -> Vec<usize> {
    let is_due = |level: usize| match level {
        0 => scores[0] >= 1.0,
        _ => scores[level] > 1.0,
    };
    let mut due: Vec<usize> = (0..scores.len()).filter(|&level| is_due(level)).collect();
    due.sort_by(|&left, &right| scores[right].total_cmp(&scores[left]));
    due
}

/// Moves a run of level 0 that overlaps no other run and nothing in level 1.
fn move_run<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    group: &RunGroup<K>,
) -> Option<Plan<K>> {
    match group.runs[..] {
        [run] => move_down(tree, rules, 0, &tree.level(0)[run]),
        _ => None,
    }
}

/// Moves a file of `level` that overlaps nothing in the level below, the first behind the cursor.
fn move_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    behind(files, cursor).find_map(|file| move_down(tree, rules, level, &files[file]))
}

/// Moves the file at `position` of `level` down, or merges it.
fn bring_down<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    position: usize,
) -> Option<Plan<K>> {
    move_down(tree, rules, level, &tree.level(level)[position])
        .or_else(|| merge_file(tree, rules, (level, position), |_| false))
}

/// Moves `file` of `level` down if it overlaps nothing there and no job is in the way.
///
/// A file that is mostly tombstones with nothing below them is left for a merge: rewriting drops
/// them, while a move would keep them for ever. So is one whose values must be in place there.
fn move_down<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    file: &FileSummary<K>,
) -> Option<Plan<K>> {
    let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let sheds = is_dense(file) && !tree.overlaps_below(level + 1, &file.smallest, &file.largest);
    let is_rewritten = sheds || rules.placement.converts(level + 1, file);
    (!file.busy && !is_rewritten && inputs.lower.is_empty()).then(|| Plan::Move {
        level,
        upper: file.number,
        claim: inputs.claim,
    })
}

/// Merges `heap` down, and with it those of `heaps` that come at no further cost. That is wide enough
/// for values in place: each of its files refers to the run of its flush only.
fn merge_group<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    group: &RunGroup<K>,
    groups: &[RunGroup<K>],
) -> Option<Plan<K>> {
    if group.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, 1, &group.smallest, &group.largest)?;
    let mut upper = group.runs.clone();
    for other in groups.iter().filter(|other| !other.busy) {
        if !upper.contains(&other.oldest()) && inputs.absorb(tree, &other.smallest, &other.largest)
        {
            upper.extend(&other.runs);
        }
    }
    upper.sort_unstable();
    Some(inputs.into_merge(tree, rules, 0, &upper))
}

/// Merges the file of `level` that costs least per byte; of a level that is mostly in transient logs
/// the next one in the order of keys, so that what a file of a run holds goes down together and
/// nothing of it stays to keep the rest.
fn merge_cheapest<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    level: usize,
    cursor: Option<&K>,
) -> Option<Plan<K>> {
    let files = tree.level(level);
    let is_in_transient_logs = kept_bytes(files) > 2 * bytes(files);
    let cost_per_byte = |position: usize| {
        let file = &files[position];
        let inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
        let lower = &tree.level(level + 1)[inputs.lower];
        (!file.busy).then(|| bytes(lower) as f64 / file.bytes.max(1) as f64)
    };
    let mut costs =
        behind(files, cursor).filter_map(|file| cost_per_byte(file).map(|cost| (file, cost)));
    let (file, _) = if is_in_transient_logs {
        costs.next()?
    } else {
        costs.min_by(|(_, left), (_, right)| left.total_cmp(right))?
    };
    merge_file(tree, rules, (level, file), |_| false)
}

/// Merges the file at `position` of `level` down, with it the neighbours that come at no further cost, and, where
/// values are written in place, [more](widen).
fn merge_file<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    rules: Rules<'_>,
    (level, position): (usize, usize),
    comes_anyway: impl Fn(&FileSummary<K>) -> bool,
) -> Option<Plan<K>> {
    let file = &tree.level(level)[position];
    if file.busy {
        return None;
    }
    let mut inputs = Inputs::over(tree, level + 1, &file.smallest, &file.largest)?;
    let mut taken = join_free(tree, level, &mut inputs, position..position + 1);
    if rules.placement.merges_in_place(level + 1) {
        (inputs, taken) = widen(tree, level, (inputs, taken), comes_anyway);
    }
    let upper: Vec<usize> = taken.collect();
    Some(inputs.into_merge(tree, rules, level, &upper))
}

/// So many times as much as is [usual](usual_cost) a neighbour that is taken along may have rewritten for its bytes.
/// A dearer one has few entries for its keys, and more come to it from above.
const NEIGHBOUR_COST_MAX: f64 = 1.5;

/// Takes neighbours of the files at `taken` of `level` along until the slices of runs are [wide](is_wide): the
/// cheaper one each time, and none that is dear, unless it comes down anyway.
fn widen<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    (mut inputs, mut taken): (Inputs<K>, Range<usize>),
    comes_anyway: impl Fn(&FileSummary<K>) -> bool,
) -> (Inputs<K>, Range<usize>) {
    let (files, below) = (tree.level(level), tree.level(level + 1));
    if is_wide(&files[taken.clone()]) {
        return (inputs, taken);
    }
    let cost_max = NEIGHBOUR_COST_MAX * usual_cost(files, below);
    while !is_wide(&files[taken.clone()]) {
        let present = bytes(&below[inputs.lower.clone()]);
        let wider = neighbours(files, &taken).filter_map(|(neighbour, wider)| {
            let file = &files[neighbour];
            let (first, last) = (&files[wider.start], &files[wider.end - 1]);
            let is_free = !file.busy;
            let over = || Inputs::over(tree, level + 1, &first.smallest, &last.largest);
            let inputs = is_free.then(over).flatten()?;
            let further = bytes(&below[inputs.lower.clone()]) - present;
            let cost = further as f64 / file.logical_bytes.max(1) as f64;
            (cost <= cost_max || comes_anyway(file)).then_some((cost, inputs, wider))
        });
        let cheapest = wider.min_by(|(left, ..), (right, ..)| left.total_cmp(right));
        let Some((_, widened, wider)) = cheapest else {
            break;
        };
        inputs = widened;
        taken = join_free(tree, level, &mut inputs, wider);
    }
    (inputs, taken)
}

/// What `files` that overlap any of `below` have rewritten there, all together, for each of their bytes, values
/// in runs included.
fn usual_cost<K: Ord>(files: &[FileSummary<K>], below: &[FileSummary<K>]) -> f64 {
    let (mut rewritten, mut brought, mut seen) = (0, 0, 0);
    for file in files {
        let lower = overlapping(below, &file.smallest, &file.largest);
        if !lower.is_empty() {
            brought += file.logical_bytes;
            rewritten += bytes(&below[lower.start.max(seen).min(lower.end)..lower.end]);
            seen = lower.end;
        }
    }
    rewritten as f64 / brought.max(1) as f64
}

/// The files at `taken` and the neighbours on both sides that come at no further cost.
fn join_free<K: Ord + Clone>(
    tree: &TreeSummary<K>,
    level: usize,
    inputs: &mut Inputs<K>,
    taken: Range<usize>,
) -> Range<usize> {
    let files = tree.level(level);
    let mut joins = |&neighbour: &usize| {
        let file = &files[neighbour];
        !file.busy && inputs.absorb(tree, &file.smallest, &file.largest)
    };
    let before = (0..taken.start).rev().take_while(&mut joins).count();
    let after = (taken.end..files.len()).take_while(&mut joins).count();
    taken.start - before..taken.end + after
}

/// What a merge that writes values in place should read of each run at least (D6).
const SLICE_BYTES_MIN: u64 = 32 << 10;

/// Whether a merge of `uppers`, neighbours in their level, reads enough of each run that they refer to.
///
/// The runs are those of the upper that refers to most: neighbours mostly refer to the same ones,
/// and where they do not, each reads the whole of its part of a run.
fn is_wide<K>(uppers: &[FileSummary<K>]) -> bool {
    let runs = uppers.iter().map(|file| file.transient_files).max();
    logical_bytes(uppers) >= u64::from(runs.unwrap_or(0)) * SLICE_BYTES_MIN
}

/// The positions beside `taken`, the one behind it first, each with `taken` widened by it.
fn neighbours<K>(
    files: &[FileSummary<K>],
    taken: &Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let Range { start, end } = *taken;
    let behind = (end < files.len()).then(|| (end, start..end + 1));
    let before = start.checked_sub(1).map(|before| (before, before..end));
    behind.into_iter().chain(before)
}

/// The positions of `files` from the first that begins behind `cursor`, once around.
fn behind<K: Ord>(files: &[FileSummary<K>], cursor: Option<&K>) -> impl Iterator<Item = usize> {
    let first = cursor.map_or(0, |cursor| {
        files.partition_point(|file| file.smallest <= *cursor)
    });
    (first..files.len()).chain(0..first)
}
