//! What the manifest knows of a table file without opening it.

use crate::base::{FileNumber, SegmentId, SequenceNumber};

/// What the manifest knows of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentMeta {
    pub(crate) id: SegmentId,
    pub(crate) offset: u64,
    /// `offset + length` is where the footer ends.
    pub(crate) length: u64,
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// The smallest user key.
    pub(crate) smallest: Box<[u8]>,
    /// The largest user key.
    pub(crate) largest: Box<[u8]>,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    /// Raw bytes of keys and values.
    pub(crate) logical_bytes: u64,
    pub(crate) filter_bytes: u64,
    pub(crate) footer_checksum: u32,
}

/// What the manifest knows of one table file, which has at least one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileMeta {
    pub(crate) number: FileNumber,
    /// In the order of their offsets: the newest is last.
    pub(crate) segments: Vec<SegmentMeta>,
}

impl FileMeta {
    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.sum(|segment| segment.length)
    }

    pub(crate) fn entries(&self) -> u64 {
        self.sum(|segment| segment.entries)
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.sum(|segment| segment.tombstones)
    }

    pub(crate) fn logical_bytes(&self) -> u64 {
        self.sum(|segment| segment.logical_bytes)
    }

    /// The smallest user key of all segments.
    pub(crate) fn smallest(&self) -> &[u8] {
        let keys = self.segments.iter().map(|segment| &*segment.smallest);
        keys.min().unwrap_or_default()
    }

    /// The largest user key of all segments.
    pub(crate) fn largest(&self) -> &[u8] {
        let keys = self.segments.iter().map(|segment| &*segment.largest);
        keys.max().unwrap_or_default()
    }

    pub(crate) fn sequence_max(&self) -> SequenceNumber {
        let numbers = self.segments.iter().map(|segment| segment.sequence_max);
        numbers.max().unwrap_or_default()
    }

    fn sum(&self, part: impl Fn(&SegmentMeta) -> u64) -> u64 {
        self.segments.iter().map(part).sum()
    }
}
