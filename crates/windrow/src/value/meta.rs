//! What the manifest records of value files, and their names.

use crate::base::FileNumber;

/// What is recorded of a value file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueFileMeta {
    pub(crate) number: FileNumber,
    /// The end of the records. The bytes after it have no meaning.
    pub(crate) length: u64,
    /// The number of records.
    pub(crate) entries: u64,
    /// The bytes of the values before compression, without their keys.
    pub(crate) value_bytes: u64,
    /// The end of the file: after the records and, in a GC output, the relocation tables.
    pub(crate) end: u64,
}

impl ValueFileMeta {
    /// A value log that is being written. Only its pointers show how long it is.
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
