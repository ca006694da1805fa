//! Layer 2: the framed record log that the WAL and the manifest share.
//!
//! A log is a file of consecutive chunks from offset 0 ("Logs" in `docs/format.md`). One write writes a
//! chunk, which is whole or absent: its checksums are seeded with the log's number and the chunk's
//! offset, so damaged, torn, stale and misplaced bytes all fail. The first chunk behind each sync also
//! records how far the log was synced, and later chunks repeat it. So a reader can separate the torn tail of
//! a crash from the loss of durable bytes.
//!
//! - [`chunk`]: the two forms of headers, as bytes.
//! - [`writer`]: appends, in space that is reserved ahead.
//! - [`sync`]: makes appended bytes durable, apart from the writer, so that appends continue meanwhile.
//! - [`reader`]: reads the records back.
//! - [`rewrite`]: makes durable what an earlier open has appended.
//! - [`tail`]: the decision at the end of the sound chunks, as one pure table.
//! - [`batch`] and [`wal_header`]: the payloads of a WAL.
//! - [`portable_batch`]: a batch as bytes outside of a log.

pub(crate) mod batch;
mod chunk;
mod file;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod portable_batch;
mod reader;
mod rewrite;
mod sync;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wal_header;
mod writer;

pub(crate) use chunk::{HEADER_BYTES, may_be_marker};
pub(crate) use file::LogFile;
pub(crate) use reader::{LogReader, Record};
pub(crate) use rewrite::rewrite;
pub(crate) use sync::LogSync;
pub(crate) use tail::TailAction;
pub(crate) use wal_header::{Predecessor, WalHeader};
pub(crate) use writer::LogWriter;
