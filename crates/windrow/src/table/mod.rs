//! Layer 2: table files of 1 to 12 segments.
//!
//! A segment is a complete sorted table: data blocks, filter units, index partitions, references to value logs, range
//! tombstones, top-level index, properties block and footer, one after the other without gaps. [`TableWriter`] writes a segment,
//! and [`Table`] reads a file as the manifest describes it. `docs/format.md` describes the bytes.

mod check;
mod external;
mod format;
mod log_references;
mod memory;
mod open_tables;
mod order;
mod overlap;
mod page_fit;
mod read;
mod salvage;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use external::read_external;
pub(crate) use format::{
    EXTERNAL_FILE, EXTERNAL_SEGMENTS, Expiring, FOOTER_BYTES, FenceKeys, FileMeta, FileSums,
    Footer, Handle, IndexPartition, LogReferences, LogSums, Measure, Properties, ReferenceList,
    Referred, SegmentMeta, SegmentReferences, TopLevelIndex, UnitLayout, cost_per_byte,
    read_ranges, superseded_part,
};
#[cfg(test)]
pub(crate) use format::{References, file_name};
pub(crate) use memory::TableMemory;
pub(crate) use open_tables::{OpenTable, OpenTables, TableSlot};
pub(crate) use read::{
    Bounds, Found, LevelScans, PointRead, ReadCounters, SequentialCursor, TAIL_BYTES, Table,
    TableContext, TableCursor, TableFiles, TableFilters,
};
pub(crate) use salvage::{SegmentPlace, find_segments};
pub(crate) use writer::{SEGMENT_ALIGNMENT, TableOptions, TableWriter, truncate_table};
