//! Layer 2: value files, which hold values apart from the tables that point to them.
//!
//! A value file is a sequence of records, written once and never changed. A [`ValuePointer`] names the
//! place of one. [`ValueWriter`] makes a file, [`ValueFile`] reads single values out of one,
//! [`OpenValues`] keeps a bounded number of them open, and [`ValueReadBuffers`] reads ascending
//! pointers from front to back. The bytes are described under "Value files" in `docs/format.md`.

mod check;
mod discard_list;
mod file;
mod gc_output;
mod log_summary;
mod log_writer;
mod meta;
mod open_values;
mod pointer;
mod read_buffers;
mod record;
mod record_reader;
mod relocation;
mod rewrite;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use check::check_checksums;
#[cfg(test)]
pub(crate) use discard_list::discard_list_name;
pub(crate) use discard_list::{DiscardList, DiscardListWriter, each_discarded, read_discard_list};
pub(crate) use file::{ValueContext, ValueFile};
pub(crate) use gc_output::GcOutputWriter;
pub(crate) use log_summary::{LogSummary, SummedLogs};
pub(crate) use log_writer::ValueLogWriter;
pub(crate) use meta::ValueFileMeta;
#[cfg(test)]
pub(crate) use meta::file_name;
pub(crate) use open_values::{OpenValues, ValueSlot};
pub(crate) use pointer::ValuePointer;
pub(crate) use read_buffers::ValueReadBuffers;
pub(crate) use record::{Found, RECORD_HEAD_BYTES_MAX, find_record, record_bytes};
pub(crate) use record_reader::RecordReader;
pub(crate) use relocation::{Move, RelocationTable, find_moves};
pub(crate) use rewrite::rewrite;
pub(crate) use writer::ValueWriter;
