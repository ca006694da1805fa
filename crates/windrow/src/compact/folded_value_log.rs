//! The value logs of a job for large values that operands were folded to. Commits write all other large values.
//!
//! To the manifest they are GC outputs without relocation tables: complete value logs that a job has written.
//!
//! Concurrency: owned by one job.

use super::pending_files::PendingFiles;
use crate::base::Result;
use crate::options::KeyspaceOptions;
use crate::policy;
use crate::value::{ValueFileMeta, ValuePointer, ValueWriter};

/// Writes value logs.
#[derive(Debug, Default)]
pub(super) struct FoldedValueLog {
    writer: Option<ValueWriter>,
    entries: u64,
    finished: Vec<ValueFileMeta>,
    bytes_written: u64,
}

impl FoldedValueLog {
    pub(super) fn append(
        &mut self,
        pending: &mut PendingFiles<'_>,
        key: &[u8],
        value: &[u8],
        options: &KeyspaceOptions,
    ) -> Result<ValuePointer> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert(pending.create_value_file()?),
        };
        let pointer = writer.append_with_key(key, value, options.compression)?;
        self.bytes_written += pointer.record_bytes;
        self.entries += 1;
        let log_bytes = policy::value_log_bytes(0, options);
        if policy::is_value_log_full(writer.bytes(), self.entries, log_bytes) {
            self.close_file()?;
        }
        Ok(pointer)
    }

    fn close_file(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.finished.push(writer.finish()?);
            self.entries = 0;
        }
        Ok(())
    }

    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let writer = self.writer.as_ref();
        writer.map_or(0, ValueWriter::memory_bytes)
    }

    /// Completes the last file and makes all files durable, except their names.
    pub(super) fn finish(mut self) -> Result<Vec<ValueFileMeta>> {
        self.close_file()?;
        Ok(self.finished)
    }
}
