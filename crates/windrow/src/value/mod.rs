//! Layer 2: value files, which hold values apart from the tables that point to them.
//!
//! A value file is a row of records, written once and never changed; a [`ValuePointer`] says where
//! one is. [`ValueWriter`] makes a file, [`ValueFile`] reads single values out of one,
//! [`OpenValues`] keeps a bounded number of them open, and [`ValueReadBuffers`] reads ascending
//! pointers from front to back. The bytes are described under "Value files" in `docs/format.md`.

mod discard_list;
mod file;
mod gc_output;
mod log_writer;
mod open_values;
mod pointer;
mod read_buffers;
mod record;
mod relocation;
mod rewrite;
mod walk;
mod writer;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use discard_list::discard_list_name;
pub(crate) use discard_list::{DiscardList, DiscardListWriter, each_discarded, read_discard_list};
pub(crate) use file::ValueFile;
pub(crate) use gc_output::GcOutputWriter;
pub(crate) use log_writer::ValueLogWriter;
pub(crate) use open_values::{OpenValues, ValueSlot};
pub(crate) use pointer::ValuePointer;
pub(crate) use read_buffers::ValueReadBuffers;
pub(crate) use record::{Found, RECORD_HEAD_BYTES_MAX, find_record, record_bytes};
pub(crate) use relocation::{Move, RelocationTable, find_moves};
pub(crate) use rewrite::rewrite;
pub(crate) use walk::RecordWalk;
pub(crate) use writer::ValueWriter;

use crate::base::FileNumber;

/// What is recorded of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueFileMeta {
    pub(crate) number: FileNumber,
    /// Where the records end; what follows means nothing.
    pub(crate) length: u64,
    /// How many records there are.
    pub(crate) entries: u64,
    /// The bytes of the values before compression, without their keys.
    pub(crate) value_bytes: u64,
    /// Where the file ends: behind the records, and the relocation tables of a successor.
    pub(crate) end: u64,
}

impl ValueFileMeta {
    /// A value log that is being written: how far, only its pointers tell.
    pub(crate) fn growing(number: FileNumber) -> Self {
        Self {
            number,
            length: u64::MAX,
            entries: 0,
            value_bytes: 0,
            end: u64::MAX,
        }
    }

    /// Whether it is a value log that is being written.
    pub(crate) fn is_growing(&self) -> bool {
        self.length == u64::MAX
    }
}

/// The name of a value file within the database's directory.
pub(crate) fn file_name(number: FileNumber) -> String {
    format!("{number}.values")
}
