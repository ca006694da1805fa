//! Reads of open table files: point reads, and cursors over one segment.

mod announce;
mod counters;
mod cursor;
mod file;
mod filter;
mod filter_pieces;
mod key_buffer;
mod opening;
mod read_ahead;
mod scan_lengths;
mod segment;
mod sequence;
mod table;

pub(crate) use counters::{PointRead, ReadCounters};
pub(crate) use cursor::{Blocks, Bounds, TableCursor};
pub(crate) use file::TableFiles;
pub(crate) use filter::SegmentFilter;
pub(crate) use opening::TableFilters;
pub(crate) use read_ahead::{ReadAhead, SequentialCursor};
pub(crate) use scan_lengths::LevelScans;
pub(crate) use segment::{Segment, TAIL_BYTES};
pub(crate) use table::{Found, Table, TableContext};
