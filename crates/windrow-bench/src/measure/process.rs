//! The kernel's counters of this process: measures that are the same for every engine. They are `None` if the
//! system does not report them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use windrow::{Error, ErrorKind, Result};

/// Bytes that this process has read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "names of sizes end with their unit"
)]
pub(crate) struct ProcessIo {
    /// Bytes of read calls, page cache or not, without pages of mapped files.
    pub(crate) read_bytes: u64,
    /// Bytes of write calls.
    pub(crate) written_bytes: u64,
    /// Bytes that came from a device, pages of mapped files included.
    pub(crate) device_read_bytes: Option<u64>,
    /// Bytes of pages that it made dirty, and that go to a device.
    pub(crate) device_written_bytes: Option<u64>,
}

impl ProcessIo {
    /// The counts so far.
    ///
    /// # Errors
    /// `Io` if the system does not report it.
    pub(crate) fn now() -> Result<Self> {
        let path = Path::new("/proc/self/io");
        let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let needed = |name| {
            let lacks = || Error::new(ErrorKind::Io, format!("/proc/self/io lacks {name}"));
            field(text, name).ok_or_else(lacks)
        };
        Ok(Self {
            read_bytes: needed("rchar:")?,
            written_bytes: needed("wchar:")?,
            // Some kernels do not count what reaches a device.
            device_read_bytes: field(text, "read_bytes:"),
            device_written_bytes: field(text, "write_bytes:"),
        })
    }
}

/// The background work of an engine that does not report its end counts as done after this time without a write.
const QUIET: Duration = Duration::from_secs(1);

/// The interval of the checks.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until the process has written nothing for a while and `is_idle` holds. Returns the idle time at the end of
/// the wait.
///
/// # Errors
/// `Io` if the system does not report it.
pub fn wait_until_quiet(is_idle: impl Fn() -> bool) -> Result<Duration> {
    let mut before = ProcessIo::now()?.written_bytes;
    let mut quiet_since = Instant::now();
    loop {
        thread::sleep(LOOK);
        let now = ProcessIo::now()?.written_bytes;
        if now != before || !is_idle() {
            before = now;
            quiet_since = Instant::now();
        }
        let quiet = quiet_since.elapsed();
        if quiet >= QUIET {
            return Ok(quiet);
        }
    }
}

/// Memory of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    /// Resident bytes.
    pub(crate) now_bytes: Option<u64>,
    /// The peak since the start of the process, or since the last reset.
    pub(crate) peak_bytes: Option<u64>,
}

impl ProcessMemory {
    pub(crate) fn now() -> Self {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |name| field(&text, name)?.checked_mul(1024);
        Self {
            now_bytes: bytes("VmRSS:"),
            peak_bytes: bytes("VmHWM:"),
        }
    }

    /// Resets the peak to the current resident bytes, if the system allows it.
    pub(crate) fn lower_peak() {
        // Without the reset, the peak is that of the whole process.
        drop(fs::write("/proc/self/clear_refs", "5"));
    }
}

/// Bytes of memory that the kernel estimates new programs can get, most of the page cache included.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    field(&text, "MemAvailable:")?.checked_mul(1024)
}

/// Processor time of this process in seconds, user and system.
#[cfg(unix)]
pub(crate) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// 0, because the system does not report it.
#[cfg(not(unix))]
pub(crate) fn cpu_seconds() -> f64 {
    0.0
}

/// The number after `name` in a text with one field per line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        let text = "rchar: 12\nVmHWM:\t  34 kB\nVmRSS:\tmany\n";
        assert_eq!(field(text, "rchar:"), Some(12));
        assert_eq!(field(text, "VmHWM:"), Some(34));
        assert_eq!(field(text, "VmRSS:"), None);
        assert_eq!(field(text, "wchar:"), None);
    }

    #[test]
    fn calls_and_the_device_have_different_counters() {
        let calls = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\n";
        let both = format!("{calls}read_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n");
        let expected = ProcessIo {
            read_bytes: 1,
            written_bytes: 2,
            device_read_bytes: Some(5),
            device_written_bytes: Some(6),
        };
        assert_eq!(ProcessIo::parse(&both).unwrap(), expected);
        let of_calls = ProcessIo {
            device_read_bytes: None,
            device_written_bytes: None,
            ..expected
        };
        assert_eq!(ProcessIo::parse(calls).unwrap(), of_calls);
        ProcessIo::parse("rchar: 1\n").unwrap_err();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_system_reports_its_counters() {
        let memory = ProcessMemory::now();
        assert!(memory.now_bytes > Some(0) && memory.peak_bytes > Some(0));
        let before = ProcessIo::now().unwrap();
        let after = ProcessIo::now().unwrap();
        assert!(after.read_bytes > before.read_bytes);
        assert!(cpu_seconds() > 0.0);
    }
}
