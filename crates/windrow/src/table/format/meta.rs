//! What the manifest records of table files.
//!
//! Invariant: the record of a segment agrees with its bytes; `verify` counts again.

use std::ops::Deref;
use std::slice;

use crate::base::key::UNNUMBERED;
use crate::base::{FileNumber, SegmentId, SequenceNumber};
use crate::filter::FILTER_UNITS_MAX;

use super::expiring::Expiring;
use super::references::SegmentReferences;

/// What the manifest records of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    pub(crate) id: SegmentId,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) keys: FenceKeys,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    pub(crate) logical_bytes: u64,
    /// About how many of its keys older segments of the file have too, estimated from their filters; all if
    /// these are too small, none in the first segment.
    pub(crate) overwrites: u64,
    /// Bytes of each filter unit, 0 where it is absent.
    pub(crate) filter_units: [u64; FILTER_UNITS_MAX],
    pub(crate) footer_checksum: u32,
    /// How many of its entries are range tombstones; they are among the tombstones too.
    pub(crate) range_tombstones: u32,
    /// How many of its entries are operands.
    pub(crate) operands: u64,
    /// About how many entries of lower levels these hid when the segment was written.
    pub(crate) hidden_below: u32,
    /// Its entries that expire, if there are any.
    pub(crate) expiring: Option<Box<Expiring>>,
    pub(crate) references: SegmentReferences,
}

/// What the manifest records of one table file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) number: FileNumber,
    /// Whether other databases may share the file's bytes, as in a checkpoint: this database neither
    /// appends to it nor truncates it, and ignores bytes after its segments.
    pub(crate) sealed: bool,
    /// Whether a [`TableWriter`](crate::table::TableWriter) wrote it outside of a database. It is sealed then.
    pub(crate) external: bool,
    pub(crate) segments: Segments,
}

/// The file number in the checksums of an external table.
pub(crate) const EXTERNAL_FILE: FileNumber = FileNumber(0);

/// The segment ids of external tables begin here. No database allocates them.
pub(crate) const EXTERNAL_SEGMENTS: u64 = 1 << 63;

/// The smallest and the largest key of a segment, in one allocation. No entry has a key outside of them, and no range
/// tombstone of the segment counts there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FenceKeys {
    /// Both, one after the other.
    bytes: Box<[u8]>,
    smallest_length: usize,
}

impl FenceKeys {
    pub(crate) fn new(smallest: &[u8], largest: &[u8]) -> Self {
        Self {
            bytes: [smallest, largest].concat().into(),
            smallest_length: smallest.len(),
        }
    }
}

/// The segments of a file, in file order. One alone, as in most files, needs no allocation of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segments {
    One(SegmentMeta),
    /// None, or more than one.
    Many(Box<[SegmentMeta]>),
}

impl Segments {
    /// Adds a segment behind the others.
    pub(crate) fn push(&mut self, segment: SegmentMeta) {
        let mut all = self.to_vec();
        all.push(segment);
        *self = all.into();
    }
}

impl From<Vec<SegmentMeta>> for Segments {
    fn from(mut segments: Vec<SegmentMeta>) -> Self {
        match segments.pop() {
            Some(only) if segments.is_empty() => Self::One(only),
            last => {
                segments.extend(last);
                Self::Many(segments.into())
            }
        }
    }
}

impl Deref for Segments {
    type Target = [SegmentMeta];

    #[inline]
    fn deref(&self) -> &[SegmentMeta] {
        match self {
            Self::One(segment) => slice::from_ref(segment),
            Self::Many(segments) => segments,
        }
    }
}

#[cfg(test)]
impl std::ops::DerefMut for Segments {
    fn deref_mut(&mut self) -> &mut [SegmentMeta] {
        match self {
            Self::One(segment) => slice::from_mut(segment),
            Self::Many(segments) => segments,
        }
    }
}

impl<'a> IntoIterator for &'a Segments {
    type Item = &'a SegmentMeta;
    type IntoIter = slice::Iter<'a, SegmentMeta>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl SegmentMeta {
    /// The smallest key.
    #[inline]
    pub(crate) fn smallest(&self) -> &[u8] {
        &self.keys.bytes[..self.keys.smallest_length]
    }

    /// The largest key, or a larger one up to which its range tombstones may reach.
    #[inline]
    pub(crate) fn largest(&self) -> &[u8] {
        &self.keys.bytes[self.keys.smallest_length..]
    }

    /// Bytes of all filter units.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter_units
            .iter()
            .fold(0, |sum, unit| sum.saturating_add(*unit))
    }

    /// The number of filter units.
    pub(crate) fn filter_unit_count(&self) -> usize {
        self.filter_units
            .iter()
            .take_while(|unit| **unit > 0)
            .count()
    }

    /// The offset just after the segment's footer.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl FileMeta {
    /// The file number in its checksums.
    pub(crate) fn checksum_file(&self) -> FileNumber {
        if self.external {
            EXTERNAL_FILE
        } else {
            self.number
        }
    }

    /// This file with the number `sequence` for all entries of unnumbered segments. Other segments keep their numbers.
    pub(crate) fn numbered(&self, sequence: SequenceNumber) -> Self {
        let numbered = |segment: &SegmentMeta| match segment.sequence_max {
            UNNUMBERED => SegmentMeta {
                sequence_min: sequence,
                sequence_max: sequence,
                ..segment.clone()
            },
            _ => segment.clone(),
        };
        let segments: Vec<SegmentMeta> = self.segments.iter().map(numbered).collect();
        Self {
            segments: segments.into(),
            ..*self
        }
    }

    /// The smallest key of the first segment and the largest of the last one, for files whose segments ascend.
    pub(crate) fn range(&self) -> (&[u8], &[u8]) {
        let smallest = self.segments.first().map(SegmentMeta::smallest);
        let largest = self.segments.last().map(SegmentMeta::largest);
        (smallest.unwrap_or_default(), largest.unwrap_or_default())
    }

    /// The sum over all segments, at most `u64::MAX` whatever a damaged manifest says.
    fn sum(&self, count: impl Fn(&SegmentMeta) -> u64) -> u64 {
        self.segments.iter().map(count).fold(0, u64::saturating_add)
    }

    /// The bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|segment| segment.length)
    }

    /// The offset just after the last segment.
    pub(crate) fn end(&self) -> u64 {
        let ends = self.segments.iter().map(SegmentMeta::end);
        ends.max().unwrap_or(0)
    }

    /// The entries of all segments, every version counted.
    pub(crate) fn entries(&self) -> u64 {
        self.sum(|segment| segment.entries)
    }

    /// The tombstones of all segments.
    pub(crate) fn tombstones(&self) -> u64 {
        self.sum(|segment| segment.tombstones)
    }

    /// The range tombstones of all segments.
    pub(crate) fn range_tombstones(&self) -> u64 {
        self.sum(|segment| segment.range_tombstones.into())
    }

    /// The operands of all segments.
    pub(crate) fn operands(&self) -> u64 {
        self.sum(|segment| segment.operands)
    }

    /// About how many entries of lower levels the range tombstones of all segments hide.
    pub(crate) fn hidden_below(&self) -> u64 {
        self.sum(|segment| segment.hidden_below.into())
    }

    /// The logical bytes of all segments.
    pub(crate) fn logical_bytes(&self) -> u64 {
        self.sum(|segment| segment.logical_bytes)
    }

    /// The bytes in transient logs that the entries of all segments refer to.
    pub(crate) fn transient_bytes(&self) -> u64 {
        self.sum(|segment| segment.references.transient_bytes())
    }

    /// The bytes in value logs that the entries of all segments refer to.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.sum(|segment| segment.references.log_bytes())
    }

    /// The number of transient logs that the entries refer to. One that several segments refer to counts
    /// for each.
    pub(crate) fn transient_files(&self) -> u32 {
        let files = self.sum(|segment| segment.references.transient_files() as u64);
        u32::try_from(files).unwrap_or(u32::MAX)
    }

    /// The smallest sequence number of any entry.
    pub(crate) fn sequence_min(&self) -> SequenceNumber {
        let numbers = self.segments.iter().map(|segment| segment.sequence_min);
        numbers.min().unwrap_or_default()
    }

    /// The largest sequence number of any entry.
    pub(crate) fn sequence_max(&self) -> SequenceNumber {
        self.segments
            .iter()
            .map(|segment| segment.sequence_max)
            .max()
            .unwrap_or_default()
    }
}

/// The name of a table file within the database's directory.
pub(crate) fn file_name(number: FileNumber) -> String {
    format!("{number}.table")
}
