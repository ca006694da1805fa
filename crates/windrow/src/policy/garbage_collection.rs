//! Which value logs garbage collection copies: those with the most garbage, while the tree takes more space
//! than it may.
//!
//! Everything on disk takes space. The live bytes are unknown, but at least [those](live_bytes) of the
//! largest level are live. The difference is what the levels above the largest may supersede, and garbage
//! values. Capacities leave the levels less space if values are in value logs ([`space_of_levels`]), and
//! garbage values have the rest.
//!
//! I1. A log is collected only when every pointer into it is in tables.
//! I2. One garbage collection copies about one log, for any number of victims. The relocation tables of its
//!     victims hold at most [`MOVES_MAX`] entries, or those of one log. It takes at most [`VICTIMS_MAX`]
//!     logs.
//! I3. A log is collected for its garbage only while the space is used up, and if it is
//!     [worthwhile](LogSummary::is_worthwhile): a part of it is garbage.
//! I4. A log whose garbage collection has failed goes alone, so that sound logs that went with it succeed,
//!     and its priority falls with each failure. Its garbage slows no writer, and does not count while the
//!     log rests: the tree then takes that much more than `max_space_amp` allows.
//! I5. If space is bounded, at most about [`FRAGMENTS_MIN`] and twenty *fragments* stay: logs that are ready
//!     and have less than half of the bytes and records of the shortest log. Merges of fragments copy no
//!     byte more often than its file can double.

use super::capacities::{live_bytes, tree_bytes, whole};
use super::placement::{value_log_bytes, value_log_bytes_min};
use super::tree::{Sum, Tree};
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;
use crate::value::{LogSummary, SummedLogs};

/// The most records and table entries of the logs of one garbage collection. They decide its memory.
const MOVES_MAX: u64 = 1 << 20;

/// The most logs of one garbage collection, which has all of them open.
pub(crate) const VICTIMS_MAX: usize = 64;

/// At least this many fragments go together, unless fewer make a whole log.
const FRAGMENTS_MIN: usize = 8;

/// The part of the open log that must be garbage for it to be sealed early.
const GARBAGE_IN_OPEN_MIN: f64 = 0.5;

/// The part of the space above the live bytes from which logs are collected.
const SPACE_USED: f64 = 0.95;

/// The log with the highest priority is collected next.
fn priority(log: &LogSummary) -> f64 {
    let failures = i32::try_from(log.failures).unwrap_or(i32::MAX);
    log.garbage_fraction() * 0.5_f64.powi(failures)
}

/// The bytes of the tree above what it should take, at most the garbage in the logs that count.
fn excess<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    counts: impl Fn(&LogSummary) -> bool,
) -> u64 {
    let space = options.max_space_amp - 1.0;
    if space.is_infinite() {
        return 0;
    }
    let sums = tree.log_sums();
    let failed = tree.failed_logs();
    let garbage = failed
        .iter()
        .filter(|log| !counts(log))
        .map(|log| log.garbage_bytes)
        .fold(sums.garbage_bytes, u64::saturating_sub);
    let allowed = live_bytes(tree) * (1.0 + space * SPACE_USED);
    let taken = [garbage, sums.table_bytes].into_iter();
    let taken = taken.fold(tree_bytes(tree), u64::saturating_add) as f64;
    whole((taken - allowed).max(0.0)).min(garbage)
}

/// Whether no garbage collection of `log` has failed (I4).
fn has_not_failed(log: &LogSummary) -> bool {
    log.failures == 0
}

/// The excess that garbage collection can remove now.
pub(crate) fn garbage_excess<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> u64 {
    let failed = tree.failed_logs();
    let garbage = failed
        .iter()
        .filter(|log| log.is_worthwhile())
        .map(|log| log.garbage_bytes)
        .fold(tree.log_sums().worthwhile_bytes, u64::saturating_sub);
    excess(tree, options, has_not_failed).min(garbage)
}

/// Whether the open log should be sealed, so that it can be collected, because it holds most of the garbage values. Not while
/// consumers of changes hold an older one: they would hold this one, too.
pub(crate) fn wants_seal<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> bool {
    let sums = tree.log_sums();
    sums.open_fraction_max >= GARBAGE_IN_OPEN_MIN
        && !sums.has_held
        && excess(tree, options, has_not_failed) > 0
        && garbage_excess(tree, options) == 0
}

/// The bytes of all value logs.
pub(crate) fn bytes_held<K: Clone>(tree: &dyn Tree<K>) -> u64 {
    let sums = tree.log_sums();
    sums.live_bytes.saturating_add(sums.garbage_bytes)
}

/// The bytes of values in value logs that one memtable may refer to until it is full. They may supersede as many
/// bytes, which become known garbage only at the flush.
pub(crate) fn values_behind_max<K: Clone>(tree: &dyn Tree<K>, options: &KeyspaceOptions) -> u64 {
    let sums = tree.log_sums();
    let unmerged = tree.sum(0, Sum::LogBytes);
    let taken = sums.garbage_bytes.saturating_add(unmerged) as f64;
    let space = (options.max_space_amp - 1.0) * SPACE_USED * sums.live_bytes as f64 - taken;
    whole((space * BEHIND_FRACTION).max(0.0)).max(options.memtable_bytes as u64)
}

/// The part of the free space that one memtable may refer to. Garbage values take space, and so do values of level 0,
/// which may supersede as many. So it is much during a load and little during overwrites.
const BEHIND_FRACTION: f64 = 0.25;

/// The logs to be collected together now, at most `at_most`.
pub(crate) fn victims<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    at_most: usize,
) -> Vec<FileNumber> {
    let at_most = at_most.min(VICTIMS_MAX);
    let for_garbage = victims_for_garbage(tree, options, at_most);
    if for_garbage.is_empty() && options.max_space_amp.is_finite() {
        return fragments(tree, options, at_most);
    }
    for_garbage
}

/// The victims that are collected for their garbage.
fn victims_for_garbage<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    at_most: usize,
) -> Vec<FileNumber> {
    if excess(tree, options, |log| !log.is_resting) == 0 {
        return Vec::new();
    }
    let logs = most_urgent(tree, at_most + tree.failed_logs().len());
    if let Some(first) = logs.first().filter(|log| !has_not_failed(log)) {
        return vec![first.number]; // I4
    }
    let log_bytes = value_log_bytes(bytes_held(tree), options);
    let (mut live, mut moves) = (0_u64, 0_u64);
    let mut chosen = Vec::new();
    for log in logs.into_iter().filter(has_not_failed) {
        live = live.saturating_add(log.live_bytes);
        moves = moves.saturating_add(log.moves);
        let is_enough = live > log_bytes || moves > MOVES_MAX || chosen.len() == at_most;
        if is_enough && !chosen.is_empty() {
            break; // I2
        }
        chosen.push(log.number);
    }
    chosen
}

/// The logs with the highest priority among those that are due for their garbage, at most `count`. Of equal ones the older
/// one comes first.
fn most_urgent<K: Clone>(tree: &dyn Tree<K>, count: usize) -> Vec<LogSummary> {
    let fraction_max = |chunk| tree.log_chunk_sums(chunk).worthwhile_fraction_max;
    let mut chunks: Vec<(f64, usize)> = (0..tree.log_chunks())
        .map(|chunk| (fraction_max(chunk), chunk))
        .filter(|(fraction_max, _)| *fraction_max > 0.0)
        .collect();
    let is_before = |left: &(f64, usize), right: &(f64, usize)| {
        right.0.total_cmp(&left.0).then(left.1.cmp(&right.1))
    };
    chunks.sort_by(is_before);
    let mut found: Vec<((f64, usize), LogSummary)> = Vec::new();
    for (fraction_max, chunk) in chunks {
        let is_enough = found.len() == count;
        if let Some((last, _)) = found.last().filter(|_| is_enough)
            && is_before(last, &(fraction_max, chunk)).is_le()
        {
            break; // No log of this chunk or a later one comes before the last one.
        }
        let logs = tree.logs(chunk).into_owned().into_iter();
        let due = logs.filter(|log| log.is_worthwhile() && !log.is_resting);
        found.extend(due.map(|log| ((priority(&log), chunk), log)));
        // Those of one chunk are by number, and stay so.
        found.sort_by(|(left, _), (right, _)| is_before(left, right));
        found.truncate(count);
    }
    found.into_iter().map(|(_, log)| log).collect()
}

/// The fragments to be put together: the smallest ones, enough for a log, or at least
/// [`FRAGMENTS_MIN`] if the largest is no larger than the others together (I5). So a copied byte
/// ends in a file that is twice as large, or whole. If no fragments are put together, each one except
/// the first few is larger than all smaller ones together. If `at_most` is less than [`FRAGMENTS_MIN`], the `at_most`
/// smallest go, or two, so that the number falls.
///
/// Fragments whose garbage collection has failed go when no others are left, two at a time, those with the fewest
/// failures first. A damaged fragment must not block the others, and in the end it goes with one other only.
fn fragments<K: Clone>(
    tree: &dyn Tree<K>,
    options: &KeyspaceOptions,
    at_most: usize,
) -> Vec<FileNumber> {
    let log_bytes = value_log_bytes_min(options);
    let is_fragment = |log: &LogSummary| {
        log.is_ready && !log.is_resting && log.bytes() < log_bytes / 2 && log.moves < MOVES_MAX / 4
    };
    let may_have_some = |sums: SummedLogs| {
        sums.ready_bytes_min < log_bytes / 2 && sums.ready_moves_min < MOVES_MAX / 4
    };
    let chunks = (0..tree.log_chunks()).filter(|chunk| may_have_some(tree.log_chunk_sums(*chunk)));
    let (mut logs, mut failed): (Vec<LogSummary>, Vec<LogSummary>) = chunks
        .flat_map(|chunk| tree.logs(chunk).into_owned())
        .filter(is_fragment)
        .partition(has_not_failed);
    logs.sort_by_key(|log| (log.live_bytes, log.number));
    let (mut live, mut moves) = (0_u64, 0_u64);
    let mut count = 0;
    let at_most = at_most.max(2);
    for (before, log) in logs.iter().take(at_most).enumerate() {
        let is_balanced = log.live_bytes <= live || at_most < FRAGMENTS_MIN;
        live = live.saturating_add(log.live_bytes);
        moves = moves.saturating_add(log.moves);
        if live > log_bytes || moves > MOVES_MAX {
            count = before; // I2
            break;
        }
        if is_balanced && before > 0 && before + 1 >= FRAGMENTS_MIN.min(at_most) {
            count = before + 1;
        }
    }
    logs.truncate(count);
    if logs.is_empty() && failed.len() > 1 {
        failed.sort_by_key(|log| (log.failures, log.live_bytes, log.number));
        failed.truncate(2);
        logs = failed;
    }
    logs.into_iter().map(|log| log.number).collect()
}
