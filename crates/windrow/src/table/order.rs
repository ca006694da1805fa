//! Checks that the segments of a table are in the order of their age: of each key, all entries of a later
//! segment are newer than all of an earlier one.
//!
//! Reads all segments side by side, each through a [`SequentialCursor`], so memory is bounded.
//!
//! Concurrency: none; a table is immutable.

use std::sync::Arc;

use crate::base::{Cursor, Error, Result, SequenceNumber};

use super::read::Table;

impl Table {
    /// Checks the order.
    ///
    /// # Errors
    /// `Corruption` at the first entry that is not newer than one of its key in an earlier segment, or
    /// if a block is damaged; `Io` if the file cannot be read.
    pub(super) fn check_order(self: &Arc<Self>) -> Result<()> {
        // An unnumbered segment has no smallest number here, and is looked at.
        let properties = || self.segments.iter().map(|segment| &segment.properties);
        let mut pairs = properties().zip(properties().skip(1));
        if pairs.all(|(older, newer)| older.sequence_max < newer.sequence_min) {
            return Ok(());
        }
        let mut cursors = Vec::new();
        for segment in 0..self.segments.len() {
            let mut cursor = self.sequential_cursor(segment);
            cursor.seek_to_first()?;
            cursors.push(cursor);
        }
        let mut key = Vec::new();
        loop {
            let valid = cursors.iter().filter(|cursor| cursor.is_valid());
            let Some(smallest) = valid.map(Cursor::key).min() else {
                return Ok(());
            };
            key.clear();
            key.extend_from_slice(smallest);
            let mut newest: Option<SequenceNumber> = None;
            for (cursor, segment) in cursors.iter_mut().zip(&self.segments) {
                let before = newest;
                while cursor.is_valid() && cursor.key() == key {
                    let sequence = cursor.trailer().sequence();
                    if before.is_some_and(|before| sequence <= before) {
                        let offset = segment.index.data(0).offset;
                        let what = "a segment holds an entry that is not newer than one of its key in \
                                    an earlier segment";
                        return Err(Error::corruption(&self.name, offset, what));
                    }
                    newest = newest.max(Some(sequence));
                    cursor.next()?;
                }
            }
        }
    }
}
