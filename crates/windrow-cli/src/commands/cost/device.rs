//! The device of the files, and the time of its reads and writes.
//!
//! Concurrency: none; no state.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use windrow::{Error, Result};
use windrow_bench::{DeviceLimits, parse_bytes};

/// The machine, on the command line.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct MachineArgs {
    /// Memory for memtables, filters, indexes and the page cache of the files [default: enough for all data]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,

    /// Device of the files
    #[arg(long, value_enum, default_value_t = Device::Memory)]
    pub(crate) device: Device,

    /// Limits of the device of the files, as `windrow device DIR --json` prints them
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    pub(crate) calibration: Option<PathBuf>,
}

impl MachineArgs {
    /// The times of the device.
    ///
    /// # Errors
    /// `InvalidArgument` for a file without limits, and for a device without memory.
    pub(crate) fn cost(&self) -> Result<DeviceCost> {
        let cost = match &self.calibration {
            None => self.device.cost(),
            Some(path) => DeviceCost::calibrated(path)?,
        };
        if !cost.is_free() && self.memory.is_none() {
            return Err(Error::invalid_argument(
                "how much of the data is read from the device depends on memory: give --memory",
            ));
        }
        Ok(cost)
    }
}

/// The device of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Device {
    /// All data is in the page cache: only the processor counts
    #[default]
    Memory,
    /// A solid-state disk on PCI Express
    Nvme,
    /// A solid-state disk on SATA
    Ssd,
    /// A hard disk
    Disk,
}

/// The times of a device, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(crate) struct DeviceCost {
    /// One random read of a block, alone.
    pub(crate) random_read: f64,
    /// One more random read at the same time.
    pub(crate) parallel_read: f64,
    /// Each byte of a sequential read.
    pub(crate) byte_read: f64,
    pub(crate) byte_written: f64,
}

impl Device {
    /// Round figures of data sheets: sustained rates, and the latency for one reader.
    pub(crate) fn cost(self) -> DeviceCost {
        let cost = |random_read, parallel_read, megabytes_read, megabytes_written| DeviceCost {
            random_read,
            parallel_read,
            byte_read: 1.0 / megabytes_read,
            byte_written: 1.0 / megabytes_written,
        };
        match self {
            Self::Memory => DeviceCost::default(),
            // TLC flash answers in about 80 us, and sustains 1 GB/s once its cache of SLC is full.
            Self::Nvme => cost(80.0, 2.5, 3_000.0, 1_000.0),
            // The same flash behind a bus of 550 MB/s.
            Self::Ssd => cost(120.0, 11.0, 500.0, 400.0),
            // Half a turn at 7200 a minute, and a seek; many reads at a time have shorter ways.
            Self::Disk => cost(8_000.0, 5_000.0, 180.0, 180.0),
        }
    }
}

impl DeviceCost {
    /// Whether all data is in memory.
    pub(crate) fn is_free(&self) -> bool {
        *self == Self::default()
    }

    /// The times of the device with the measured limits in the file at `path`.
    ///
    /// # Errors
    /// `InvalidArgument` for other content, and for limits that are not above 0.
    pub(crate) fn calibrated(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        let wrong = |what: &dyn Display| {
            let shown = path.display();
            Error::invalid_argument(format!(
                "{shown} has no limits of a device, as `windrow device DIR --json` prints them: {what}"
            ))
        };
        let limits: DeviceLimits = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let rates = [
            limits.random_reads_per_second,
            limits.random_reads_at_32_per_second,
            limits.sequential_read_bytes_per_second,
            limits.sequential_written_bytes_per_second,
        ];
        if !rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
            return Err(wrong(&"a limit is not above 0"));
        }
        let [random_read, parallel_read, byte_read, byte_written] = rates.map(|rate| 1e6 / rate);
        // The random reads that were measured include the transfer of their bytes.
        let transfer = CALIBRATED_BYTES * byte_read;
        let random_read = (random_read - transfer).max(0.0);
        Ok(Self {
            random_read,
            parallel_read: (parallel_read - transfer).clamp(0.0, random_read),
            byte_read,
            byte_written,
        })
    }

    /// `reads` random reads of `bytes` each, of which the first is waited for alone and the others come with it.
    pub(crate) fn at_once(&self, reads: f64, bytes: f64) -> f64 {
        let alone = reads.min(1.0) * self.random_read;
        alone + (reads - 1.0).max(0.0) * self.parallel_read + reads * bytes * self.byte_read
    }

    /// `blocks` blocks of `bytes` that follow the first block of a scan, of which the fraction `miss` is on the device.
    /// The scan waits for the second block, and then for requests of twice the size each.
    pub(crate) fn one_after_another(&self, blocks: f64, bytes: f64, miss: f64) -> f64 {
        let waits = if blocks < 1.0 {
            blocks
        } else {
            1.0 + blocks.log2().min(DOUBLINGS)
        };
        miss * (waits * self.random_read + blocks * bytes * self.byte_read)
    }
}

/// Bytes of each random read of a calibration.
const CALIBRATED_BYTES: f64 = 4096.0;

/// The requests of a scan double until they have 1 MiB, from two blocks of 4 KiB.
const DOUBLINGS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceCost = DeviceCost {
        random_read: 100.0,
        parallel_read: 10.0,
        byte_read: 0.001,
        byte_written: 0.002,
    };

    #[test]
    fn reads_at_once_wait_once() {
        for (reads, micros) in [(0.0, 0.0), (0.5, 52.0), (1.0, 104.0), (4.0, 146.0)] {
            assert!((DEVICE.at_once(reads, 4000.0) - micros).abs() < 1e-9);
        }
    }

    #[test]
    fn a_scan_waits_less_often_the_longer_it_is() {
        let blocks = |count| DEVICE.one_after_another(count, 4000.0, 0.5);
        let expected = [(0.5, 26.0), (1.0, 52.0), (4.0, 158.0), (1024.0, 2498.0)];
        for (count, micros) in expected {
            assert!((blocks(count) - micros).abs() < 1e-9, "{count} blocks");
        }
    }

    #[test]
    fn limits_are_read_and_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device.json");
        let limits = |random: &str| {
            let text = format!(
                r#"{{"random_reads_per_second":{random},"random_reads_at_32_per_second":100000,
                "sequential_read_bytes_per_second":2e9,"sequential_written_bytes_per_second":1e9,"is_direct":true}}"#
            );
            fs::write(&path, text).unwrap();
            DeviceCost::calibrated(&path)
        };
        let cost = limits("10000").unwrap();
        assert!((cost.random_read - 97.952).abs() < 1e-9);
        assert!((cost.parallel_read - 7.952).abs() < 1e-9);
        assert!((cost.byte_read - 0.0005).abs() < 1e-9 && !cost.is_free());
        for wrong in ["0", "-1", "\"many\""] {
            let error = limits(wrong).unwrap_err().to_string();
            assert!(error.contains("windrow device DIR --json"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(DeviceCost::calibrated(&path).is_err());
    }
}
