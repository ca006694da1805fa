//! The status file of the process that has a database open for writing.
//!
//! Concurrency: that process may write the file meanwhile, in place. The checksum in the last line shows whether all of it
//! is of one write.

use std::io;
use std::path::Path;

use crate::base::{Error, Result};
use crate::codec::checksum::checksum;
use crate::manifest::names::FileName;
use crate::vfs::{OpenMode, Vfs, read_up_to_end_at};

/// A reader meets a write so often at most.
const TRIES_MAX: usize = 10;

/// No process writes a longer one.
const BYTES_MAX: usize = 64 << 20;

/// The statistics that the process wrote last which has the database in `folder` open for writing, or had it open when it
/// ended without a close: [`Stats::to_prometheus`](crate::Stats::to_prometheus), and before it the metrics
/// `windrow_status_time_seconds` and `windrow_status_interval_seconds`. `None` if there are none, or if this program meets
/// only unfinished writes.
///
/// # Errors
/// `Io`.
pub fn status(vfs: &dyn Vfs, folder: &Path) -> Result<Option<String>> {
    let path = folder.join(FileName::Status.to_string());
    for _ in 0..TRIES_MAX {
        match read(vfs, &path) {
            Ok(bytes) => {
                if let Some(text) = whole(&bytes) {
                    return Ok(Some(text.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path, error)),
        }
    }
    Ok(None)
}

/// What is in the file now; nothing of one that is too long.
fn read(vfs: &dyn Vfs, path: &Path) -> io::Result<Vec<u8>> {
    let file = vfs.open(path, OpenMode::Read)?;
    let length = usize::try_from(file.length()?).unwrap_or(usize::MAX);
    if length > BYTES_MAX {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; length];
    let end = read_up_to_end_at(&*file, &mut bytes, 0)?;
    bytes.truncate(end);
    Ok(bytes)
}

/// The text between the first and the last line, if all is of the same write.
fn whole(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?.trim_end_matches('\n');
    let (first, rest) = text.split_once('\n')?;
    let number = first.strip_prefix("# windrow status ")?;
    let (middle, end) = rest.rsplit_once("# end ")?;
    let (last, checksum_text) = end.split_once(' ')?;
    let written = text.len() - "# end ".len() - end.len();
    let expected = checksum(number.parse().ok()?, text.get(..written)?.as_bytes());
    (last == number && checksum_text == format!("{expected:08x}")).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::{checksum, whole};

    #[test]
    fn only_a_whole_write_is_read() {
        let text = |number: u64, middle: &str| {
            let text = format!("# windrow status {number}\n{middle}");
            let checksum = checksum(number, text.as_bytes());
            format!("{text}# end {number} {checksum:08x}\n")
        };
        let (sound, other) = (text(17, "a 1\nb 2\n"), text(17, "a 3\nb 2\n"));
        assert_eq!(whole(sound.as_bytes()), Some("a 1\nb 2\n"));
        let padded = format!("{sound}\n\n");
        assert_eq!(whole(padded.as_bytes()), Some("a 1\nb 2\n"));
        // Each mixture of two writes, whose numbers may agree after a crash.
        assert_eq!(sound.len(), other.len());
        for cut in 0..=sound.len() {
            let mixed = format!("{}{}", &sound[..cut], &other[cut..]);
            let is_whole = mixed == sound || mixed == other;
            assert_eq!(whole(mixed.as_bytes()).is_some(), is_whole, "{mixed}");
        }
        for torn in ["", "# windrow status 17", "\0\0\0\0", "# end 17 0"] {
            assert_eq!(whole(torn.as_bytes()), None, "{torn}");
        }
    }
}
