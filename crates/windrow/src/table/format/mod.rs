//! What a table file is made of beside its blocks, and what the manifest records of it. The bytes are
//! described in `docs/format.md`.

mod expiring;
mod expiry_sketch;
mod file_expiry;
mod filter_unit;
mod footer;
mod index;
mod meta;
mod properties;
mod ranges;
mod references;
mod sums;

pub(crate) use expiring::{Expiring, ExpiringTally};
pub(crate) use filter_unit::{UnitLayout, write_pieces};
pub(crate) use footer::{FOOTER_BYTES, Footer, Handle, footer_place};
pub(crate) use index::{BlockPlace, IndexBuilder, IndexPartition, TopLevelIndex};
pub(crate) use meta::{
    EXTERNAL_FILE, EXTERNAL_SEGMENTS, FenceKeys, FileMeta, SegmentMeta, file_name,
};
pub(crate) use properties::Properties;
pub(crate) use ranges::{RangeBlock, put_ranges, read_ranges};
pub(crate) use references::{
    LogReferences, LogSums, ReferenceList, References, Referred, SegmentReferences,
};
pub(crate) use sums::{FileSums, Measure, cost_per_byte, superseded_part};
