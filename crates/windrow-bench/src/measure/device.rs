//! The kernel's counters of the device that holds a folder. They count the I/O of all programs.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::measure::process::ProcessIo;

/// Bytes of a sector in these counters, whatever the device has.
const SECTOR_BYTES: u64 = 512;

/// Requests and bytes that reached a device, since the start of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceIo {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
}

impl DeviceIo {
    /// The counts so far of the device that holds `folder`; `None` if the system has none, as for file systems in
    /// memory, in the network, or of several devices.
    pub(crate) fn now(folder: &Path) -> Option<Self> {
        let (major, minor) = device_of(folder)?;
        let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
        Self::parse(&text)
    }

    /// Parses the line of a device: completed reads, merged reads, read sectors, milliseconds, and the same for writes.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<u64> = text
            .split_whitespace()
            .map_while(|field| field.parse().ok())
            .collect();
        let &[reads, _, read_sectors, _, writes, _, written_sectors, ..] = fields.as_slice() else {
            return None;
        };
        Some(Self {
            reads,
            read_bytes: read_sectors.checked_mul(SECTOR_BYTES)?,
            writes,
            written_bytes: written_sectors.checked_mul(SECTOR_BYTES)?,
        })
    }
}

#[cfg(target_os = "linux")]
fn device_of(folder: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let device = fs::metadata(folder).ok()?.dev();
    Some((rustix::fs::major(device), rustix::fs::minor(device)))
}

#[cfg(not(target_os = "linux"))]
fn device_of(_folder: &Path) -> Option<(u32, u32)> {
    None
}

/// The I/O of a load that reached the device; `None` for what the system does not report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceReport {
    /// Read requests of all programs to the device.
    pub device_reads: Option<u64>,
    /// Write requests of all programs.
    pub device_writes: Option<u64>,
    /// Bytes that all programs read from the device.
    pub device_read_bytes: Option<u64>,
    /// Bytes that all programs wrote to the device.
    pub device_written_bytes: Option<u64>,
    /// Bytes that the process read from a device, mapped files included.
    pub process_device_read_bytes: Option<u64>,
    /// Bytes that the process wrote and that the page cache has written or will write to a device.
    pub process_device_written_bytes: Option<u64>,
    /// Read requests of all programs per operation.
    pub device_reads_per_op: Option<f64>,
    /// Bytes that the process read from a device per operation.
    pub device_read_bytes_per_op: Option<f64>,
    /// Bytes that the process wrote to a device per operation.
    pub device_written_bytes_per_op: Option<f64>,
    /// Bytes that the process read from a device per byte of keys and values that the reads of the load returned.
    pub device_read_bytes_per_user_byte: Option<f64>,
}

/// The counters of the device and of the process at one point in time.
pub(crate) type Reading = (Option<DeviceIo>, Option<ProcessIo>);

impl DeviceReport {
    /// The I/O of `ops` operations between two readings. The reads among them returned `returned_bytes`.
    pub(crate) fn new(before: Reading, after: Reading, ops: u64, returned_bytes: u64) -> Self {
        let of_device = |counter: fn(DeviceIo) -> u64| -> Option<u64> {
            counter(after.0?).checked_sub(counter(before.0?))
        };
        let of_process = |counter: fn(ProcessIo) -> Option<u64>| -> Option<u64> {
            counter(after.1?)?.checked_sub(counter(before.1?)?)
        };
        let per = |count: Option<u64>, divisor: u64| -> Option<f64> {
            (divisor > 0).then_some(count? as f64 / divisor as f64)
        };
        let device_reads = of_device(|io| io.reads);
        let read_bytes = of_process(|io| io.device_read_bytes);
        let written_bytes = of_process(|io| io.device_written_bytes);
        Self {
            device_reads,
            device_writes: of_device(|io| io.writes),
            device_read_bytes: of_device(|io| io.read_bytes),
            device_written_bytes: of_device(|io| io.written_bytes),
            process_device_read_bytes: read_bytes,
            process_device_written_bytes: written_bytes,
            device_reads_per_op: per(device_reads, ops),
            device_read_bytes_per_op: per(read_bytes, ops),
            device_written_bytes_per_op: per(written_bytes, ops),
            device_read_bytes_per_user_byte: per(read_bytes, returned_bytes),
        }
    }

    /// The figures of a load of `ops` operations as text, with `-` for unknown ones.
    pub(crate) fn text(&self, ops: u64) -> String {
        let shown = |figure: Option<f64>, digits: usize| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
        };
        let per_op =
            |count: Option<u64>| shown(count.map(|count| count as f64 / ops.max(1) as f64), 0);
        format!(
            "device: {} reads, {} bytes read and {} written per operation, {} bytes read per byte asked for; with \
             other programs {} read and {} written",
            shown(self.device_reads_per_op, 3),
            shown(self.device_read_bytes_per_op, 0),
            shown(self.device_written_bytes_per_op, 0),
            shown(self.device_read_bytes_per_user_byte, 2),
            per_op(self.device_read_bytes),
            per_op(self.device_written_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_a_device_are_found_by_their_place() {
        let line = "  100   7   2000   9   30   8   400   5   0   1   2   3   4   5   6   7   8\n";
        let expected = DeviceIo {
            reads: 100,
            read_bytes: 2000 * 512,
            writes: 30,
            written_bytes: 400 * 512,
        };
        assert_eq!(DeviceIo::parse(line), Some(expected));
        // Older kernels have fewer fields.
        assert_eq!(DeviceIo::parse("100 7 2000 9 30 8 400"), Some(expected));
        for wrong in [
            "",
            "100 7 2000 9 30 8",
            "100 7 many 9 30 8 400",
            "1 1 99999999999999999999 1 1 1 1",
        ] {
            assert_eq!(DeviceIo::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn figures_are_differences_per_operation() {
        let device = |times: u64| DeviceIo {
            reads: 10 * times,
            read_bytes: 5000 * times,
            writes: 2 * times,
            written_bytes: 600 * times,
        };
        let process = |times: u64| ProcessIo {
            read_bytes: 1,
            written_bytes: 1,
            device_read_bytes: Some(4000 * times),
            device_written_bytes: Some(500 * times),
        };
        let reading = |times| (Some(device(times)), Some(process(times)));
        let report = DeviceReport::new(reading(1), reading(3), 10, 1000);
        let text = "device: 2.000 reads, 800 bytes read and 100 written per operation, 8.00 bytes read per byte asked \
                    for; with other programs 1000 read and 120 written";
        assert_eq!(report.text(10), text);
        assert_eq!(
            (report.device_reads, report.device_writes),
            (Some(20), Some(4))
        );
        // Reads that return nothing, and loads without operations.
        let none = DeviceReport::new(reading(1), reading(3), 0, 0);
        assert_eq!(none.device_read_bytes_per_user_byte, None);
        assert_eq!(none.device_reads_per_op, None);
        // The system has counters of the process only, or none at all.
        let alone = (None, Some(process(3)));
        let report = DeviceReport::new((None, Some(process(1))), alone, 10, 1000);
        let text = "device: - reads, 800 bytes read and 100 written per operation, 8.00 bytes read per byte asked for; \
                    with other programs - read and - written";
        assert_eq!(report.text(10), text);
        let nothing = DeviceReport::new((None, None), (None, None), 10, 1000);
        assert_eq!(nothing, DeviceReport::default());
        assert_eq!(
            nothing.text(10).matches("- ").count(),
            6,
            "{}",
            nothing.text(10)
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_counters_of_this_system_never_fall() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let Some(before) = DeviceIo::now(folder) else {
            eprintln!(
                "skipped: the system has no counters of the device of {}",
                folder.display()
            );
            return;
        };
        let after = DeviceIo::now(folder).unwrap();
        assert!(after.reads >= before.reads && after.written_bytes >= before.written_bytes);
        assert_eq!(DeviceIo::now(Path::new("/nowhere")), None);
        // A file system in memory has no device.
        assert_eq!(DeviceIo::now(Path::new("/proc")), None);
    }
}
