//! Which value logs are collected: those of which most is dead, while the tree takes more room than it
//! may.
//!
//! What takes room is everything on disk; what is live is not known, but at least what the largest level
//! holds or refers to is ([`live_bytes`]). Of the difference, the levels above the largest hold what they
//! may yet turn out to supersede, for which capacities leave less room where values stand in logs
//! ([`space_of_levels`]); the rest is garbage values, and theirs is the room that is left.
//!
//! I1. A log is collected only when everything that ever pointed into it is in tables.
//! I2. What one collection copies is about one log, whatever was dead in how many; and its tables hold
//!     at most [`MOVES_MAX`] entries, or those of one log; it takes no more than [`VICTIMS_MAX`].
//! I3. Nothing is collected for its garbage values while the room is not used up, nor a log of which less
//!     than [`GARBAGE_MIN`] is dead.
//! I4. A log whose collection has failed goes alone, so that of some that went together the sound ones
//!     go, and comes later in its turn each time. What is dead in it slows no writer, and counts for
//!     nothing while it rests.
//! I5. Where room is bounded, no more than about [`FRAGMENTS_MIN`] and twenty *fragments* stay, which are
//!     ready and have less than half of the bytes and records of the shortest log; and to that end no byte is copied
//!     more often than its file can double.

use super::capacities::{live_bytes, tree_bytes};
use super::placement::{value_log_bytes, value_log_bytes_min};
use super::summary::TreeSummary;
use crate::base::FileNumber;
use crate::options::KeyspaceOptions;

/// A value log, or a successor of some, as far as tables may refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSummary {
    pub(crate) number: FileNumber,
    /// Bytes of the file that are no records.
    pub(crate) table_bytes: u64,
    /// Bytes of its records that tables refer to, and of the others.
    pub(crate) live_bytes: u64,
    pub(crate) garbage_bytes: u64,
    /// Its records, and the entries of its relocation tables.
    pub(crate) moves: u64,
    /// Whether it is complete, and everything that ever pointed into it is in tables (I1).
    pub(crate) is_ready: bool,
    /// Whether values are being added.
    pub(crate) is_open: bool,
    /// How often its collection has failed, and whether it is not to be tried now.
    pub(crate) failures: u32,
    pub(crate) is_resting: bool,
}

impl LogSummary {
    fn garbage_fraction(&self) -> f64 {
        self.garbage_bytes as f64 / (self.live_bytes + self.garbage_bytes).max(1) as f64
    }

    fn is_worth_it(&self) -> bool {
        self.is_ready && self.garbage_fraction() >= GARBAGE_MIN
    }

    /// The highest has its turn next.
    fn turn(&self) -> f64 {
        let failures = i32::try_from(self.failures).unwrap_or(i32::MAX);
        self.garbage_fraction() * 0.5_f64.powi(failures)
    }
}

/// The part of a log that must be dead for it to be collected.
const GARBAGE_MIN: f64 = 0.05;

/// The most records and table entries of the logs of one collection, which decide its memory.
const MOVES_MAX: u64 = 1 << 20;

/// The most logs of one collection, all of which it has open.
pub(crate) const VICTIMS_MAX: usize = 64;

/// As many fragments go together at least, unless they make a whole log.
const FRAGMENTS_MIN: usize = 8;

/// The part of a log that is being written that must be dead for it to be completed early.
const GARBAGE_IN_OPEN_MIN: f64 = 0.5;

/// The part of the room above the live bytes from which logs are collected.
const SPACE_USED: f64 = 0.95;

/// How many bytes more the tree takes than it should, as far as garbage values are the cause in those logs
/// that count.
fn excess<K>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    counts: impl Fn(&LogSummary) -> bool,
) -> u64 {
    let space = options.max_space_amp - 1.0;
    if space.is_infinite() {
        return 0;
    }
    let counted = tree.logs.iter().filter(|log| counts(log));
    let garbage: u64 = counted.map(|log| log.garbage_bytes).sum();
    let tables: u64 = tree.logs.iter().map(|log| log.table_bytes).sum();
    let allowed = live_bytes(tree) * (1.0 + space * SPACE_USED);
    let taken = (tree_bytes(tree) + garbage + tables) as f64;
    super::capacities::whole((taken - allowed).max(0.0)).min(garbage)
}

/// Whether nothing is known to stand in the way of collecting `log` (I4).
fn has_not_failed(log: &LogSummary) -> bool {
    log.failures == 0
}

/// The excess that collections can take away now.
pub(crate) fn garbage_excess<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> u64 {
    let logs = tree.logs.iter().filter(|log| has_not_failed(log));
    let worth_it = logs.filter(|log| log.is_worth_it());
    let garbage: u64 = worth_it.map(|log| log.garbage_bytes).sum();
    excess(tree, options, has_not_failed).min(garbage)
}

/// Whether the log that is being written should be completed, so that it can be collected: it holds most
/// of the garbage values.
pub(crate) fn wants_seal<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> bool {
    let is_due = |log: &LogSummary| log.is_open && log.garbage_fraction() >= GARBAGE_IN_OPEN_MIN;
    tree.logs.iter().any(is_due)
        && excess(tree, options, has_not_failed) > 0
        && garbage_excess(tree, options) == 0
}

/// The bytes of all value logs.
pub(crate) fn bytes_held<K>(tree: &TreeSummary<K>) -> u64 {
    let bytes = |log: &LogSummary| log.live_bytes.saturating_add(log.garbage_bytes);
    tree.logs.iter().map(bytes).fold(0, u64::saturating_add)
}

/// How many bytes of values in logs may stand behind one memtable until it is full: they may take the
/// place of as many, which nobody knows to be dead until it is flushed.
pub(crate) fn values_behind_max<K>(tree: &TreeSummary<K>, options: &KeyspaceOptions) -> u64 {
    let live: u64 = tree.logs.iter().map(|log| log.live_bytes).sum();
    let garbage: u64 = tree.logs.iter().map(|log| log.garbage_bytes).sum();
    let unmerged: u64 = tree.level(0).iter().map(|file| file.log_bytes).sum();
    let taken = (garbage + unmerged) as f64;
    let space = (options.max_space_amp - 1.0) * SPACE_USED * live as f64 - taken;
    super::capacities::whole((space * BEHIND_FRACTION).max(0.0)).max(options.memtable_bytes as u64)
}

/// The part of the room that may stand behind one memtable, of what is left by garbage values and by those
/// of level 0, which may have taken the place of as many: much while a keyspace is loaded, little while
/// it is overwritten.
const BEHIND_FRACTION: f64 = 0.25;

/// The logs to be collected together now, no more than `at_most`.
pub(crate) fn victims<K>(
    tree: &TreeSummary<K>,
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

/// Those that are collected for what is dead in them.
fn victims_for_garbage<K>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    at_most: usize,
) -> Vec<FileNumber> {
    if excess(tree, options, |log| !log.is_resting) == 0 {
        return Vec::new();
    }
    let due = tree.logs.iter().filter(|log| !log.is_resting);
    let mut logs: Vec<&LogSummary> = due.filter(|log| log.is_worth_it()).collect();
    logs.sort_by(|left, right| right.turn().total_cmp(&left.turn()));
    if let Some(first) = logs.first().filter(|log| !has_not_failed(log)) {
        return vec![first.number]; // I4
    }
    let whole = value_log_bytes(bytes_held(tree), options);
    let (mut live, mut moves) = (0_u64, 0_u64);
    let mut chosen = Vec::new();
    for log in logs.into_iter().filter(|log| has_not_failed(log)) {
        live = live.saturating_add(log.live_bytes);
        moves = moves.saturating_add(log.moves);
        let is_enough = live > whole || moves > MOVES_MAX || chosen.len() == at_most;
        if is_enough && !chosen.is_empty() {
            break; // I2
        }
        chosen.push(log.number);
    }
    chosen
}

/// Fragments to be put together: the smallest, as many as make a log, or else at least
/// [`FRAGMENTS_MIN`] of which the largest is no larger than the others together (I5). So what is copied
/// ends in a file that is twice as large, or whole; and where nothing is put together, each fragment but
/// the first few is larger than all before it. Where there was no room for as many, it is the smallest
/// that go, `at_most` or two, so that some do.
///
/// Those whose last collection failed go when no others are left, two at a time, those first that failed least:
/// one that is damaged must not hold up the rest, and finds itself alone with another one in the end.
fn fragments<K>(
    tree: &TreeSummary<K>,
    options: &KeyspaceOptions,
    at_most: usize,
) -> Vec<FileNumber> {
    let whole = value_log_bytes_min(options);
    let is_fragment = |log: &&LogSummary| {
        log.is_ready
            && !log.is_resting
            && log.live_bytes + log.garbage_bytes < whole / 2
            && log.moves < MOVES_MAX / 4
    };
    let (mut logs, mut failed): (Vec<&LogSummary>, Vec<&LogSummary>) = tree
        .logs
        .iter()
        .filter(is_fragment)
        .partition(|log| has_not_failed(log));
    logs.sort_by_key(|log| (log.live_bytes, log.number));
    let (mut live, mut moves) = (0_u64, 0_u64);
    let mut count = 0;
    let at_most = at_most.max(2);
    for (before, log) in logs.iter().take(at_most).enumerate() {
        let is_balanced = log.live_bytes <= live || at_most < FRAGMENTS_MIN;
        live = live.saturating_add(log.live_bytes);
        moves = moves.saturating_add(log.moves);
        if live > whole || moves > MOVES_MAX {
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
