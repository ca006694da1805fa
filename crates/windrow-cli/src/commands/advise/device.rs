//! The device of the files, and the time of its reads and writes.
//!
//! Concurrency: none; no state.

use clap::ValueEnum;
use serde::Serialize;

/// The device of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Device {
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DeviceCost {
    /// One random read of a block.
    pub(super) random_read: f64,
    /// Each byte of a sequential read.
    pub(super) byte_read: f64,
    pub(super) byte_written: f64,
}

impl Device {
    /// Round figures of data sheets: sustained rates, and the latency for one reader.
    pub(super) fn cost(self) -> DeviceCost {
        let cost = |random_read, megabytes_read, megabytes_written| DeviceCost {
            random_read,
            byte_read: 1.0 / megabytes_read,
            byte_written: 1.0 / megabytes_written,
        };
        match self {
            Self::Memory => DeviceCost {
                random_read: 0.0,
                byte_read: 0.0,
                byte_written: 0.0,
            },
            // TLC flash answers in about 80 us, and sustains 1 GB/s once its cache of SLC is full.
            Self::Nvme => cost(80.0, 3_000.0, 1_000.0),
            // The same flash behind a bus of 550 MB/s.
            Self::Ssd => cost(120.0, 500.0, 400.0),
            // Half a turn at 7200 a minute, and a seek.
            Self::Disk => cost(8_000.0, 180.0, 180.0),
        }
    }
}
