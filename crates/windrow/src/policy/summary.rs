//! What the policy knows of files, value logs and running jobs.

use std::ops::Range;

use crate::base::{FileNumber, SequenceNumber};
use crate::filter::FILTER_UNITS_MAX;
use crate::table::{LogReferences, superseded_part};

/// One table file, as numbers and boundaries.
#[derive(Debug, Clone)]
pub(crate) struct FileSummary<K> {
    pub(crate) number: FileNumber,
    /// The smallest user key, inclusive.
    pub(crate) smallest: K,
    /// The largest user key, inclusive.
    pub(crate) largest: K,
    /// Bytes of the file: a compaction reads and writes them.
    pub(crate) bytes: u64,
    /// Logical bytes: keys, values in the table and in transient logs before compression, and pointers into
    /// value logs. Capacities count them.
    pub(crate) logical_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// How many of these are range tombstones.
    pub(crate) range_tombstones: u64,
    /// About how many entries of lower levels these hide.
    pub(crate) hidden_below: u64,
    /// The smallest sequence number of any entry.
    pub(crate) sequence_min: SequenceNumber,
    /// The largest one.
    pub(crate) sequence_max: SequenceNumber,
    /// Bytes of values in transient logs that its entries refer to.
    pub(crate) transient_bytes: u64,
    /// Bytes of transient log files that its references keep: of each such file the part that it has of
    /// all references to it. At least `transient_bytes`; more if a file has garbage values.
    pub(crate) pinned_bytes: u64,
    /// How many files of transient logs these are in.
    pub(crate) transient_files: u32,
    /// Bytes of values in value logs that its entries refer to.
    pub(crate) log_bytes: u64,
    /// About how many bytes, with those in value files, belong to entries that every reader finds expired.
    pub(crate) expired_bytes: u64,
    /// Whether every reader finds each entry, and finds it expired or a tombstone of one key.
    pub(crate) is_expired: bool,
    /// Its segments, oldest first; at least one.
    pub(crate) segments: Vec<SegmentSummary>,
    /// How often range reads have visited one more run because of it: a run of level 0, or a segment besides the first.
    pub(crate) visits: u64,
    /// Whether it must stay as it is: it has bytes in common with another database.
    pub(crate) sealed: bool,
    /// Whether a running job has it as an input.
    pub(crate) busy: bool,
}

impl<K> FileSummary<K> {
    /// A file of one segment, with all values in place.
    pub(crate) fn new(
        number: FileNumber,
        (smallest, largest): (K, K),
        bytes: u64,
        entries: u64,
    ) -> Self {
        Self {
            number,
            smallest,
            largest,
            bytes,
            logical_bytes: bytes,
            entries,
            tombstones: 0,
            range_tombstones: 0,
            hidden_below: 0,
            sequence_min: 1,
            sequence_max: 1,
            transient_bytes: 0,
            pinned_bytes: 0,
            transient_files: 0,
            log_bytes: 0,
            expired_bytes: 0,
            is_expired: false,
            segments: vec![SegmentSummary {
                bytes,
                entries,
                sequence_min: 1,
                overwrites: 0,
                filter_units: [0; FILTER_UNITS_MAX],
                logs: None,
            }],
            visits: 0,
            sealed: false,
            busy: false,
        }
    }

    /// Its [cut bytes](cut_bytes).
    pub(crate) fn cut_bytes(&self) -> u64 {
        cut_bytes(self.bytes, self.transient_bytes)
    }

    /// The cut bytes that a compaction writes of it.
    pub(crate) fn merged_cut_bytes(&self, is_in_place: bool) -> u64 {
        merged_cut_bytes(self.bytes, self.transient_bytes, is_in_place)
    }
}

/// The *cut bytes* of a file of `table` bytes that refers to `transient` bytes in transient logs: what counts when
/// output is cut into files. Of the latter, a quarter counts.
///
/// If all of them counted, compactions of files with little but pointers would be small, but so would their slices of
/// transient logs, which would be rewritten over and over. If none counted, the compaction of one such file
/// would rewrite many times its bytes. `docs/simulation.md` has measurements of each.
pub(crate) fn cut_bytes(table: u64, transient: u64) -> u64 {
    table.saturating_add(transient / TRANSIENT_PARTS)
}

/// The cut bytes that a compaction of it writes, which puts values in transient logs in place or leaves them there.
pub(crate) fn merged_cut_bytes(table: u64, transient: u64, is_in_place: bool) -> u64 {
    if is_in_place {
        table.saturating_add(transient)
    } else {
        cut_bytes(table, transient)
    }
}

/// One of this many bytes in a transient log is a [cut byte](cut_bytes).
pub(crate) const TRANSIENT_PARTS: u64 = 4;

/// A segment of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentSummary {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// The smallest sequence number of an entry.
    pub(crate) sequence_min: SequenceNumber,
    /// How many of its keys older segments of the file have, too; all of them if that is unknown.
    pub(crate) overwrites: u64,
    /// Bytes of each filter unit that it has, 0 where it is absent.
    pub(crate) filter_units: [u64; FILTER_UNITS_MAX],
    /// Its references to value logs, if it has any.
    pub(crate) logs: Option<LogReferences>,
}

/// The keys of `level` that a running job may write: the hull of its inputs.
///
/// A compaction never writes a key that it did not read, so two jobs whose hulls are disjoint write
/// disjoint files. While a claim lasts, no other job may write into its level between its ends.
/// Every key of a hull lies in the range of some input, so while jobs take whole files, busy
/// inputs alone keep two jobs apart. A claim needs no such argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim<K> {
    pub(crate) level: usize,
    /// The smallest key, inclusive.
    pub(crate) smallest: K,
    /// The largest key, inclusive.
    pub(crate) largest: K,
}

impl<K> FileSummary<K> {
    /// Whether at least half of the entries are tombstones.
    pub(crate) fn is_mostly_tombstones(&self) -> bool {
        self.tombstones.saturating_mul(2) >= self.entries
    }

    /// About which part of its bytes newer segments supersede. At least the largest segment counts as live.
    pub(crate) fn superseded_part(&self) -> f64 {
        let of = |it: &SegmentSummary| (it.bytes, it.entries, it.overwrites);
        superseded_part(self.bytes, self.segments.iter().map(of))
    }
}

impl Claim<Box<[u8]>> {
    /// The same claim over borrowed keys.
    pub(crate) fn borrowed(&self) -> Claim<&[u8]> {
        Claim {
            level: self.level,
            smallest: &self.smallest,
            largest: &self.largest,
        }
    }
}

impl<K: Ord> Claim<K> {
    /// The same claim over keys of another type.
    pub(crate) fn map<Q>(&self, convert: impl Fn(&K) -> Q) -> Claim<Q> {
        Claim {
            level: self.level,
            smallest: convert(&self.smallest),
            largest: convert(&self.largest),
        }
    }
}

/// The positions of the `files`, sorted and disjoint, that overlap these keys.
pub(crate) fn overlapping<K: Ord>(
    files: &[FileSummary<K>],
    smallest: &K,
    largest: &K,
) -> Range<usize> {
    let start = files.partition_point(|file| file.largest < *smallest);
    let count = files[start..].partition_point(|file| file.smallest <= *largest);
    start..start + count
}
