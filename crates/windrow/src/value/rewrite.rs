//! Makes values durable that another process has written; `log/rewrite.rs` does so for records of the
//! write-ahead log.
//!
//! I1. Only records that are sound are written, each where it was read: no byte changes.
//! I2. Success means that all of them are durable.
//!
//! Concurrency: one thread; no writer appends to the file any more.

use std::path::Path;

use crate::base::{Error, FileNumber, Result};
use crate::vfs::{OpenMode, Vfs, read_exact_at, write_all_at};

use super::meta::file_name;
use super::record::find_record;

/// Makes records of value log `number` in `directory` durable, each given by its offset and length.
///
/// # Errors
/// Those of reading, writing and syncing; `Io` if a record is no longer sound, which happens when
/// bytes that were only in memory are lost.
pub(crate) fn rewrite(
    vfs: &dyn Vfs,
    directory: &Path,
    number: FileNumber,
    records: &[(u64, usize)],
) -> Result<()> {
    let path = directory.join(file_name(number));
    let failure = |operation| {
        let path = &path;
        move |error| Error::io(operation, path, error)
    };
    let file = vfs
        .open(&path, OpenMode::ReadWrite)
        .map_err(failure("open"))?;
    let mut bytes = Vec::new();
    for &(offset, length) in records {
        bytes.resize(length, 0);
        read_exact_at(&*file, &mut bytes, offset).map_err(failure("read back"))?;
        let found = find_record(&bytes, (number, offset)).ok();
        let is_sound = |it: &super::record::Found<'_>| it.is_sound == Some(true);
        if found.filter(is_sound).map(|it| it.record_bytes) != Some(length) {
            let lost = std::io::Error::other("a value that was read before is lost");
            return Err(failure("read back")(lost)); // I1
        }
        write_all_at(&*file, &bytes, offset).map_err(failure("write to"))?;
    }
    file.sync_data().map_err(failure("sync"))
}
