//! The order of the values that entries of the write-ahead log point to.
//!
//! I1. Each record of a value file belongs to one entry, and the records of a file follow each other as their entries do. So
//!     whoever reads the value of each entry reads each file at most once, whatever the log says.
//!
//! Concurrency: one thread.

use std::collections::BTreeMap;

use crate::base::{Error, FileNumber, Result};
use crate::manifest::names::FileName;
use crate::value::ValuePointer;

/// Where the last record ends that an entry points to, by value file.
#[derive(Debug, Default)]
pub(in crate::engine) struct ValueOrder {
    ends: BTreeMap<FileNumber, u64>,
}

impl ValueOrder {
    /// Passes the record of the next entry.
    ///
    /// # Errors
    /// `Corruption`, if it does not follow those of earlier entries (I1).
    pub(in crate::engine) fn pass(&mut self, pointer: &ValuePointer) -> Result<()> {
        let end = self.ends.entry(pointer.file).or_default();
        if pointer.offset < *end {
            return Err(misplaced(pointer));
        }
        *end = pointer.offset + pointer.record_bytes;
        Ok(())
    }
}

/// The error of an entry that points to a value before those of earlier entries, or too far behind them.
pub(in crate::engine) fn misplaced(pointer: &ValuePointer) -> Error {
    let what =
        "the write-ahead log points to a value that does not follow those of earlier entries";
    let name = FileName::Values(pointer.file).to_string();
    Error::corruption(&name, pointer.offset, what)
}
