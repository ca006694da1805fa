//! A rewrite that makes a log of an earlier open durable.
//!
//! Bytes that a read returns may be in memory only, and a sync alone may not write them: after a failed
//! sync the kernel may keep the bytes, mark them as written, and report success for the next sync. So
//! this module writes the bytes again, over themselves, before it syncs them.
//!
//! I1. It writes only verified chunks, each at its own offset. Durable bytes do not change. A crash leaves
//!     each sector with its old bytes or with the bytes that were read. So recovery finds the same chunks,
//!     or more.
//! I2. Success means that the log is durable to the given end.
//!
//! Concurrency: one thread; the log has no writer.

use std::io;
use std::path::Path;

use super::reader::LogReader;
use crate::base::{Error, FileNumber, Result};
use crate::vfs::{self, OpenMode, Vfs};

/// The bytes of one write, except for a longer chunk.
const WRITE_BYTES: usize = 256 << 10;

/// Makes log `number`, the file `name` in `directory`, durable from `durable`, up to which it is durable,
/// to `end`, the end of a chunk.
///
/// # Errors
/// Those of reading, writing and syncing. `Io` if the log no longer reaches `end`, because bytes were only
/// in memory and are lost; the readable bytes are unchanged.
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
