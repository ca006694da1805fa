//! Layer 2: the framed record log that the WAL and the manifest share.
//!
//! A log is a file of chunks, one behind the other from offset 0 ("Logs" in `docs/format.md`). A
//! chunk is written by one write and is whole or absent: its checksums are seeded with the log's
//! number and the chunk's offset, so damaged, torn, stale and misplaced bytes all fail alike. The
//! first chunk behind each sync also says how far the log was synced, and others repeat it; that is
//! how a reader tells the torn tail of a crash from the loss of bytes that were promised to last.
//!
//! - [`chunk`]: the two forms of headers, as bytes.
//! - [`writer`]: appending, with space reserved ahead of the bytes.
//! - [`sync`]: making appended bytes durable, apart from the writer, so that others append meanwhile.
//! - [`reader`]: streaming the records back.
//! - [`rewrite`]: making durable what another process has appended.
//! - [`tail`]: what to do where the sound chunks end, as one pure table.
//! - [`batch`] and [`wal_header`]: what the WAL's payloads hold.

pub(crate) mod batch;
mod chunk;
mod file;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(all(test, loom))]
mod models;
mod reader;
mod rewrite;
mod sync;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wal_header;
mod writer;

pub(crate) use chunk::HEADER_BYTES;
pub(crate) use file::LogFile;
pub(crate) use reader::{LogReader, Record};
pub(crate) use rewrite::rewrite;
pub(crate) use sync::LogSync;
pub(crate) use tail::TailAction;
pub(crate) use wal_header::{Predecessor, WalHeader};
pub(crate) use writer::LogWriter;
