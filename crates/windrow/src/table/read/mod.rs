//! Reads of open table files: point reads, and cursors over one segment.

mod counters;
mod cursor;
mod file;
mod key_buffer;
mod read_ahead;
mod segment;
mod sequence;
mod table;

pub(crate) use counters::ReadCounters;
pub(crate) use cursor::{Blocks, Bounds, TableCursor};
pub(crate) use file::TableFiles;
pub(crate) use read_ahead::{ReadAhead, SequentialCursor};
pub(crate) use segment::Segment;
pub(crate) use table::{Found, Table, TableContext};
