//! Another name for a file, or a copy of it.
//!
//! Concurrency: none; the file does not change meanwhile, up to the length that is copied.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Error, Result};
use crate::vfs::{File, FileWriter, Footprint, OpenMode, Vfs};

/// The buffer of a copy.
const COPY_BYTES: usize = 256 << 10;

/// Links the complete file `from` to the name `to`, or copies its first `length` bytes. A symbolic link is followed: a
/// link to it would lead to a name that others may remove.
pub(super) fn link_or_copy(vfs: &dyn Vfs, from: &Path, length: u64, to: &Path) -> Result<()> {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};

    let resolved = vfs.resolve(from);
    let from = &*resolved.map_err(|error| Error::io("link", from, error))?;
    match vfs.link(from, to) {
        Ok(()) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                CrossesDevices | PermissionDenied | TooManyLinks | Unsupported
            ) =>
        {
            copy_file(vfs, from, length, to)
        }
        Err(error) => Err(Error::io("link", from, error)),
    }
}

/// Copies the first `length` bytes of `from`.
pub(super) fn copy_file(vfs: &dyn Vfs, from: &Path, length: u64, to: &Path) -> Result<()> {
    let file = vfs
        .open(from, OpenMode::Read)
        .map_err(|error| Error::io("open", from, error))?;
    copy_bytes(vfs, file, length, to)
}

/// Writes the first `length` bytes of `file` to a new file `to` and syncs it, but not its name. The page cache keeps
/// what it has of the file, and nothing of the copy.
pub(super) fn copy_bytes(vfs: &dyn Vfs, file: Arc<dyn File>, length: u64, to: &Path) -> Result<()> {
    let mut copy = FileWriter::create(vfs, to.to_owned())?;
    let mut source = Footprint::new(file);
    let mut buffer = vec![0; COPY_BYTES];
    while copy.position() < length {
        let offset = copy.position();
        source.pass(offset);
        let rest = usize::try_from(length - offset).unwrap_or(COPY_BYTES);
        let piece = &mut buffer[..rest.min(COPY_BYTES)];
        source
            .read_exact_at(piece, offset)
            .map_err(|error| Error::io("copy to", to, error))?;
        let next = offset + piece.len() as u64;
        if next < length {
            source.ask_ahead(next..length.min(next + COPY_BYTES as u64));
        }
        copy.put(piece)?;
        copy.judge(false);
    }
    copy.sync()
}
