//! The references of a table to value logs, read on demand.
//!
//! Nothing keeps them in memory: only jobs, the full check and reports need them. The manifest has their sums.
//!
//! Concurrency: that of [`Table`].

use crate::base::Result;

use super::format::ReferenceList;
use super::read::{Segment, Table};

impl Table {
    /// Reads the references of `segment` to value logs.
    ///
    /// # Errors
    /// `Corruption` if the list is damaged, or its sums are not those of the properties.
    pub(super) fn log_references_of(&self, segment: &Segment) -> Result<ReferenceList> {
        if segment.properties.logs.is_none() {
            return Ok(ReferenceList::default());
        }
        let file = self.file()?;
        segment.log_references(self.segment_file(&file))
    }

    /// Reads the references of each segment to value logs.
    ///
    /// # Errors
    /// `Corruption` if a list is damaged, or its sums are not those of its properties.
    pub(crate) fn log_references(&self) -> impl Iterator<Item = Result<ReferenceList>> {
        let segments = self.segments.iter();
        segments.map(|segment| self.log_references_of(segment))
    }
}
