//! Which entries a compaction or a flush keeps.
//!
//! The job meets the versions of a key newest first. A version is *superseded* if no reader can read it: no
//! reader's sequence number lies between it and the next newer version. A tombstone is *spent* if every
//! reader sees it or something newer, and no deeper level can hold a version that it hides.
//!
//! The next newer version counts whether or not it was kept itself. After a spent tombstone every
//! older version is superseded, because no reader's sequence number lies below the tombstone.
//!
//! An operand hides nothing: what is below it counts, but a spent tombstone there is as good as nothing. If no reader reads
//! between an operand and the next older version, the older one *joins* it. So the job meets chains of operands, which it folds, each with its base if that has joined
//! too. An operand that is superseded itself supersedes what would join it.
//!
//! A range tombstone is a newer version of every older entry in its range. It is itself superseded by a newer one
//! around it, and spent if nothing deeper may be in its range; versions of its first key alone do not supersede it.
//!
//! An entry that expires is *expired* if every reader that sees it reads at its expiry or later. It counts as a tombstone
//! then, and is written as one if it is not spent.
//!
//! A compaction offers the newest version of a key that it meets to the compaction filter, if it keeps that. Snapshots do
//! not matter: what the filter decides becomes a newer version, which they do not see.
//!
//! A flush follows the same rule, with deeper levels that may hold every key.

use crate::base::expiry::is_expired;
use crate::base::{Moment, SequenceNumber, Trailer};

/// The sequence numbers and moments that readers read at, now and from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadPoints {
    /// The sequence numbers of live snapshots, ascending, and their moments, which ascend, too. Running reads are not
    /// among them: they hold the state that they began with, and its files.
    snapshots: Box<[(SequenceNumber, Moment)]>,
    /// The newest visible sequence number: later readers read at it or above.
    visible: SequenceNumber,
    /// The present moment: later readers read at it or later.
    now: Moment,
}

/// Whether an entry is kept, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Kept.
    Keep,
    /// Kept, but readers see it only through the next newer version, an operand: both can be folded.
    Joins,
    /// A newer version hides it from every reader.
    Superseded,
    /// A tombstone, or an expired entry, that hides nothing.
    Spent,
}

impl ReadPoints {
    /// Readers at `snapshots`, in any order, and at `visible` and `now` or later. A snapshot of a higher number than
    /// another one has no earlier moment.
    ///
    /// The caller takes `visible` and `now` before it collects `snapshots`. A snapshot that is registered later
    /// then has these or higher ones.
    pub(crate) fn new(
        mut snapshots: Vec<(SequenceNumber, Moment)>,
        visible: SequenceNumber,
        now: Moment,
    ) -> Self {
        snapshots.sort_unstable();
        snapshots.dedup_by_key(|(sequence, _)| *sequence);
        Self {
            snapshots: snapshots.into(),
            visible,
            now,
        }
    }

    /// Readers at `snapshots` and at `visible` or later, for whom nothing has expired.
    #[cfg(test)]
    pub(crate) fn without_clock(snapshots: Vec<SequenceNumber>, visible: SequenceNumber) -> Self {
        let snapshots = snapshots.into_iter().map(|sequence| (sequence, 0));
        Self::new(snapshots.collect(), visible, 0)
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Whether snapshots are among the readers.
    pub(crate) fn has_snapshots(&self) -> bool {
        !self.snapshots.is_empty()
    }

    /// The earliest moment at which a reader reads that sees an entry of `sequence`.
    pub(crate) fn earliest_moment(&self, sequence: SequenceNumber) -> Moment {
        let position = self.position(sequence);
        let snapshot = self.snapshots.get(position);
        snapshot.map_or(self.now, |(_, moment)| self.now.min(*moment))
    }

    /// Whether an entry of `sequence` that expires at `expiry` is expired for every reader that sees it.
    pub(crate) fn finds_expired(&self, sequence: SequenceNumber, expiry: Moment) -> bool {
        is_expired(expiry, self.earliest_moment(sequence))
    }

    /// The position of the first snapshot that sees an entry of `sequence`.
    fn position(&self, sequence: SequenceNumber) -> usize {
        self.snapshots
            .partition_point(|(point, _)| *point < sequence)
    }

    /// Whether a reader reads, or may come to read, at `sequence` or later but before `newer`.
    fn sees(&self, sequence: SequenceNumber, newer: SequenceNumber) -> bool {
        if newer > self.visible {
            return true;
        }
        self.snapshots
            .get(self.position(sequence))
            .is_some_and(|(point, _)| *point < newer)
    }

    /// The lowest sequence number that a reader reads at or may come to read at.
    pub(crate) fn oldest(&self) -> SequenceNumber {
        let oldest = self.snapshots.first().map(|(sequence, _)| *sequence);
        oldest.unwrap_or(self.visible).min(self.visible)
    }
}

/// A version that the job has met.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    sequence: SequenceNumber,
    /// Whether readers that see it see nothing below it.
    hides: bool,
}

impl Met {
    /// `entry`, about which `verdict` was decided.
    pub(crate) fn new(entry: Trailer, verdict: Verdict) -> Self {
        Self {
            sequence: entry.sequence(),
            hides: !entry.is_operand() || verdict == Verdict::Superseded,
        }
    }
}

impl Met {
    /// Its sequence number.
    pub(crate) fn sequence(self) -> SequenceNumber {
        self.sequence
    }

    /// The next newer version of an entry: `newer`, the next one of its key, or the range tombstone `deleted`, the oldest
    /// one above the entry that covers the key.
    pub(crate) fn nearest(newer: Option<Self>, deleted: Option<SequenceNumber>) -> Option<Self> {
        match (newer, deleted) {
            (Some(newer), Some(deleted)) if newer.sequence < deleted => Some(newer),
            (_, Some(sequence)) => Some(Self {
                sequence,
                hides: true,
            }),
            (newer, None) => newer,
        }
    }
}

/// Decides about a range tombstone.
///
/// `around` is the next newer range tombstone that covers all of its range, kept or not. `deeper` says whether a level
/// below the job's target may hold a key of the range; it is called only if every reader sees the range tombstone.
pub(crate) fn keep_range(
    sequence: SequenceNumber,
    around: Option<SequenceNumber>,
    readers: &ReadPoints,
    deeper: impl FnOnce() -> bool,
) -> Verdict {
    if around.is_some_and(|around| !readers.sees(sequence, around)) {
        Verdict::Superseded
    } else if sequence <= readers.oldest() && !deeper() {
        Verdict::Spent
    } else {
        Verdict::Keep
    }
}

/// Whether a range tombstone at `deleted` hides, from every reader, all entries that it covers from sequence number `oldest`
/// on.
pub(crate) fn hides_all(
    deleted: SequenceNumber,
    oldest: SequenceNumber,
    readers: &ReadPoints,
) -> bool {
    !readers.sees(oldest, deleted)
}

/// Decides about one entry that is no range tombstone.
///
/// `newer` is the [next newer version](Met::nearest) of its key that the job met, kept or not. `has_expired` says whether
/// the entry is expired. `deeper` says whether a level below the job's target may hold the key; it is called only for a
/// tombstone or an expired entry that every reader sees.
pub(crate) fn keep(
    entry: Trailer,
    newer: Option<Met>,
    has_expired: bool,
    readers: &ReadPoints,
    deeper: impl FnOnce() -> bool,
) -> Verdict {
    let sequence = entry.sequence();
    let newer = newer.filter(|newer| !readers.sees(sequence, newer.sequence));
    if newer.is_some_and(|newer| newer.hides) {
        Verdict::Superseded
    } else if (has_expired || entry.is_tombstone()) && sequence <= readers.oldest() && !deeper() {
        Verdict::Spent
    } else if newer.is_some() {
        Verdict::Joins
    } else {
        Verdict::Keep
    }
}

/// Whether a compaction offers the next entry, about which `verdict` was decided, to the compaction filter.
///
/// `newer` is the last version of its key that the job met, kept or not.
pub(crate) fn is_offered(verdict: Verdict, newer: Option<Met>) -> bool {
    verdict == Verdict::Keep && newer.is_none()
}
