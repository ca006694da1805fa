//! What the manifest records of table files.

use crate::base::{FileNumber, SegmentId, SequenceNumber};
use crate::filter::FILTER_UNITS_MAX;

/// What the manifest knows of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    pub(crate) id: SegmentId,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) smallest: Box<[u8]>,
    pub(crate) largest: Box<[u8]>,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    pub(crate) logical_bytes: u64,
    /// Bytes of each filter unit, 0 where it is absent.
    pub(crate) filter_units: [u64; FILTER_UNITS_MAX],
    pub(crate) footer_checksum: u32,
}

/// What the manifest knows of one table file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) number: FileNumber,
    /// Whether other databases may share the file's bytes, as in a checkpoint: nothing is appended
    /// to it or cut from it here, and bytes behind its segments mean nothing.
    pub(crate) sealed: bool,
    pub(crate) segments: Vec<SegmentMeta>,
}

impl SegmentMeta {
    /// Bytes of all filter units.
    pub(crate) fn filter_bytes(&self) -> u64 {
        self.filter_units
            .iter()
            .fold(0, |sum, unit| sum.saturating_add(*unit))
    }

    /// The offset just after the segment's footer.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

impl FileMeta {
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

    /// The bytes of each filter unit, over all segments.
    pub(crate) fn filter_units(&self) -> [u64; FILTER_UNITS_MAX] {
        std::array::from_fn(|unit| self.sum(|segment| segment.filter_units[unit]))
    }

    /// The bytes of all keys and values before any encoding.
    pub(crate) fn logical_bytes(&self) -> u64 {
        self.sum(|segment| segment.logical_bytes)
    }

    /// The smallest user key; empty only where there are no segments.
    pub(crate) fn smallest(&self) -> &[u8] {
        self.segments
            .iter()
            .map(|segment| &*segment.smallest)
            .min()
            .unwrap_or_default()
    }

    /// The largest user key; empty only where there are no segments.
    pub(crate) fn largest(&self) -> &[u8] {
        self.segments
            .iter()
            .map(|segment| &*segment.largest)
            .max()
            .unwrap_or_default()
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
