//! How a compaction takes neighbours of its upper files.
//!
//! Neighbours that add no lower file always join. A compaction that puts values in place reads a *slice* of
//! each transient log, so it takes more neighbours until the slices are wide, except neighbours that cost too
//! much.

use std::ops::Range;

use super::inputs::Inputs;
use crate::policy::summary::FileSummary;
use crate::policy::tree::{Sum, Tree};

/// A neighbour may have at most this many times the [mean cost](mean_cost). A neighbour that costs more has
/// few entries for its key range, and compactions from above will bring more entries to it. If such
/// neighbours were taken, a quarter to a third more would be written in all under small memtables
/// (measured).
const NEIGHBOUR_COST_MAX: f64 = 1.5;

/// What a compaction that puts values in place should read of each transient log at least (D6).
const SLICE_BYTES_MIN: u64 = 32 << 10;

/// Adds neighbours of the files at `taken` of `level` until the slices of transient logs are
/// [wide](has_wide_slices): the cheaper one each time, and none that costs too much unless it is `selected`.
pub(super) fn widen<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    (mut inputs, mut taken): (Inputs<K>, Range<usize>),
    selected: impl Fn(&FileSummary<K>) -> bool,
) -> (Inputs<K>, Range<usize>) {
    if has_wide_slices(tree, level, &taken) {
        return (inputs, taken);
    }
    let cost_max = NEIGHBOUR_COST_MAX * mean_cost(tree, level, tree.chunk_of(level, taken.start));
    let below = |files: Range<usize>| tree.sum_within(level + 1, files, Sum::Bytes);
    while !has_wide_slices(tree, level, &taken) {
        let present = below(inputs.lower.clone());
        let wider = neighbours(tree.len(level), &taken).filter_map(|(neighbour, wider)| {
            let file = tree.file(level, neighbour);
            let (first, last) = (
                tree.file(level, wider.start),
                tree.file(level, wider.end - 1),
            );
            let is_free = !file.busy;
            let over = || Inputs::over(tree, level + 1, &first.smallest, &last.largest);
            let inputs = is_free.then(over).flatten()?;
            let further = below(inputs.lower.clone()).saturating_sub(present);
            let cost = further as f64 / file.logical_bytes.max(1) as f64;
            (cost <= cost_max || selected(&file)).then_some((cost, inputs, wider))
        });
        let cheapest = wider.min_by(|(left, ..), (right, ..)| left.total_cmp(right));
        let Some((_, widened, wider)) = cheapest else {
            break;
        };
        inputs = widened;
        taken = add_free_neighbours(tree, level, &mut inputs, wider);
    }
    (inputs, taken)
}

/// The bytes below that all files of a chunk of `level` which overlap any of them would rewrite, for each of their own
/// logical bytes.
fn mean_cost<K: Ord + Clone>(tree: &dyn Tree<K>, level: usize, chunk: usize) -> f64 {
    let (mut rewritten, mut upper, mut seen) = (0_u64, 0_u64, 0);
    for position in tree.chunk(level, chunk) {
        let file = tree.file(level, position);
        let lower = tree.overlapping(level + 1, &file.smallest, &file.largest);
        if !lower.is_empty() {
            upper = upper.saturating_add(file.logical_bytes);
            let unseen = lower.start.max(seen).min(lower.end)..lower.end;
            rewritten = rewritten.saturating_add(tree.sum_within(level + 1, unseen, Sum::Bytes));
            seen = lower.end;
        }
    }
    rewritten as f64 / upper.max(1) as f64
}

/// The files at `taken` and the neighbours on both sides that add no lower file to `inputs`.
pub(super) fn add_free_neighbours<K: Ord + Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    inputs: &mut Inputs<K>,
    taken: Range<usize>,
) -> Range<usize> {
    let mut joins = |&neighbour: &usize| {
        let file = tree.file(level, neighbour);
        !file.busy && inputs.add_if_free(tree, &file.smallest, &file.largest)
    };
    let before = (0..taken.start).rev().take_while(&mut joins).count();
    let after = (taken.end..tree.len(level)).take_while(&mut joins).count();
    taken.start - before..taken.end + after
}

/// Whether a compaction of these `uppers`, neighbours in `level`, reads enough of each transient log that they refer
/// to.
///
/// The transient logs are those of the upper that refers to most. Neighbours mostly refer to the same ones. If they do
/// not, each one reads the whole of its part of a log.
pub(super) fn has_wide_slices<K: Clone>(
    tree: &dyn Tree<K>,
    level: usize,
    uppers: &Range<usize>,
) -> bool {
    let files = uppers.clone().map(|upper| tree.file(level, upper));
    let transient_logs = files.map(|file| file.transient_files).max();
    let logical_bytes = tree.sum_within(level, uppers.clone(), Sum::LogicalBytes);
    logical_bytes >= u64::from(transient_logs.unwrap_or(0)) * SLICE_BYTES_MIN
}

/// The positions beside `taken` among as many `files`, the one after it first, each with `taken` widened by it.
pub(super) fn neighbours(
    files: usize,
    taken: &Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let Range { start, end } = *taken;
    let after = (end < files).then(|| (end, start..end + 1));
    let before = start.checked_sub(1).map(|before| (before, before..end));
    after.into_iter().chain(before)
}
