//! Layer 2: table files of 1 to 12 segments.
//!
//! A segment is a complete sorted table: data blocks, filter units, index block, properties block
//! and footer, one behind the other without gaps. [`TableWriter`] makes a file of one segment;
//! [`Table`] reads a file as the manifest describes it. The bytes are described in
//! `docs/format.md`.

mod counters;
mod cursor;
mod footer;
mod index;
mod key_buffer;
mod memory;
mod meta;
mod open_tables;
mod order;
mod properties;
mod read_ahead;
mod reader;
mod scrub;
mod segment;
mod superseding;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use counters::ReadCounters;
pub(crate) use cursor::TableCursor;
pub(crate) use footer::{FOOTER_BYTES, Footer, Handle};
pub(crate) use index::SegmentIndex;
pub(crate) use memory::TableMemory;
pub(crate) use meta::{FileMeta, References, Referred, SegmentMeta};
pub(crate) use open_tables::{OpenTable, OpenTables, TableSlot};
pub(crate) use properties::Properties;
pub(crate) use read_ahead::SequentialCursor;
pub(crate) use reader::{Found, Table, TableContext};
pub(crate) use scrub::ScrubClock;
pub(crate) use writer::{SEGMENT_ALIGNMENT, TableOptions, TableWriter, cut_back};

use crate::base::FileNumber;

/// The name of a table file within the database's directory.
pub(crate) fn file_name(number: FileNumber) -> String {
    format!("{number}.table")
}
