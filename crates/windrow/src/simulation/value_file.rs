//! A value file of a simulated tree.

use super::key_space::{Span, part_of};

/// A value file, or several of the same kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueFile {
    pub(super) span: Span,
    pub(super) is_log: bool,
    /// How many files it stands for, and how many of them overlap each key of its span, at least 1.
    pub(super) count: f64,
    pub(super) layers: f64,
    /// Its records, and the bytes of one.
    pub(super) records: f64,
    pub(super) record_bytes: f64,
    /// Entries that refer to it.
    pub(super) referred: f64,
    /// Whether values are still added.
    pub(super) is_open: bool,
    /// The file that holds its values since a garbage collection, and how many relocated records that are (I2).
    pub(super) gc_output: Option<usize>,
    pub(super) moves: f64,
}

impl ValueFile {
    pub(super) fn new(
        span: Span,
        is_log: bool,
        count: f64,
        records: f64,
        record_bytes: f64,
    ) -> Self {
        Self {
            span,
            is_log,
            count,
            layers: 1.0,
            records,
            record_bytes,
            referred: 0.0,
            is_open: false,
            gc_output: None,
            moves: 0.0,
        }
    }

    pub(super) fn bytes(&self) -> f64 {
        self.records * self.record_bytes
    }

    /// Bytes of the records that entries refer to.
    pub(super) fn referred_bytes(&self) -> f64 {
        self.referred.min(self.records) * self.record_bytes
    }

    /// How many of the files that it stands for overlap `span`.
    pub(super) fn count_in(&self, span: Span) -> f64 {
        (self.count * part_of(span, self.span, self.span)).max(self.layers)
    }
}
