//! What the kernel counted for this process: the one measure that is the same for every engine.

use std::fs;
use std::path::Path;
#[cfg(any(feature = "fjall", feature = "leveldb"))]
use std::{thread, time::Duration};

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

/// Engines that do not tell when their background work is done count as done when they wrote nothing
/// for this long.
#[cfg(any(feature = "fjall", feature = "leveldb"))]
const QUIET: Duration = Duration::from_secs(1);

/// Waits until the process has written nothing for a while and `is_idle` holds.
#[cfg(any(feature = "fjall", feature = "leveldb"))]
pub(crate) fn wait_until_quiet(is_idle: impl Fn() -> bool) -> Result<()> {
    let mut before = ProcessIo::now()?.written_bytes;
    loop {
        thread::sleep(QUIET);
        let now = ProcessIo::now()?.written_bytes;
        if now == before && is_idle() {
            return Ok(());
        }
        before = now;
    }
}

fn field(text: &str, name: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.parse().ok())
        .ok_or_else(|| Error::new(ErrorKind::Io, format!("/proc/self/io lacks {name}")))
}
