//! What the kernel counted for this process: the one measure that is the same for every engine.

use std::fs;
use std::path::Path;

use windrow::{Error, ErrorKind, Result};

/// Bytes that went through read and write calls of this process, page cache or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessIo {
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

impl ProcessIo {
    /// The counts so far.
    pub(crate) fn now() -> Result<Self> {
        let path = Path::new("/proc/self/io");
        let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        Ok(Self {
            read_bytes: field(&text, "rchar: ")?,
            written_bytes: field(&text, "wchar: ")?,
        })
    }
}

fn field(text: &str, name: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.parse().ok())
        .ok_or_else(|| Error::new(ErrorKind::Io, format!("/proc/self/io lacks {name}")))
}
