//! Making a log durable that another process has written.
//!
//! What is read back may be in memory only, and a sync alone does not change that: after a sync that
//! failed, the kernel may go on showing the bytes, count them as written, and report success to the
//! next sync without writing anything. So the bytes are written once more, over themselves, before
//! they are synced.
//!
//! I1. Only chunks that were just verified are written, each where it was read. A byte that is
//!     durable already does not change, and a crash meanwhile leaves each sector as it was or as it
//!     was read: recovery decides on the same chunks as before, or on more of them.
//! I2. Success means that the log is durable to the given end.
//!
//! Concurrency: one thread; nobody appends to the log any more.

use std::io;
use std::path::Path;

use super::reader::LogReader;
use crate::base::{Error, FileNumber, Result};
use crate::vfs::{self, OpenMode, Vfs};

/// How much is written at a time, unless one chunk is longer.
const WRITE_BYTES: usize = 256 << 10;

/// Makes log `number`, the file `name` in `directory`, durable up to `end`, where a chunk ends. Up to
/// `durable` it is known to be so.
///
/// # Errors
/// Those of reading, writing and syncing; `Io` where the log no longer reaches `end`, as happens when
/// bytes that were only in memory are gone. What can still be read has not changed.
pub(crate) fn rewrite(
    vfs: &dyn Vfs,
    directory: &Path,
    name: &str,
    number: FileNumber,
    durable: u64,
    end: u64,
) -> Result<()> {
    let path = directory.join(name);
    let mut reader = LogReader::open(vfs, directory, name, number, Some(end))?;
    let file = vfs
        .open(&path, OpenMode::ReadWrite)
        .map_err(|error| Error::io("open", &path, error))?;
    let write = |bytes: &mut Vec<u8>, offset: u64| {
        vfs::write_all_at(&*file, bytes, offset)
            .map_err(|error| Error::io("write to", &path, error))?;
        bytes.clear();
        Ok(())
    };
    let mut bytes = Vec::new();
    let mut start = 0;
    while let Some((offset, chunk)) = reader.next_chunk()? {
        if offset + chunk.len() as u64 <= durable {
            continue;
        }
        if bytes.is_empty() {
            start = offset;
        }
        bytes.extend_from_slice(chunk); // I1
        if bytes.len() >= WRITE_BYTES {
            write(&mut bytes, start)?;
        }
    }
    if reader.position() != end {
        let error = io::ErrorKind::UnexpectedEof.into();
        return Err(Error::io("read back", &path, error)); // I2
    }
    write(&mut bytes, start)?;
    file.sync_data()
        .map_err(|error| Error::io("sync", &path, error))
}
