//! The limits of a device: its own random reads, and its bandwidth, without an engine.
//!
//! The reads and writes bypass the page cache (`O_DIRECT`). A file system without that gets reads of pages that the
//! cache has dropped, and the result says so.
//!
//! Concurrency: the threads of a trial share a file and a counter of steps. They end before the trial returns.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use windrow::{Error, Result};

use crate::data::random::mix;
use crate::parse_bytes;

const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of one read or write of a sequential trial.
const PIECE_BYTES: u64 = 1 << 20;
/// Sequential reads and writes at a time.
const SEQUENTIAL_DEPTH: u64 = 4;
/// Random reads at a time in the second trial.
const RANDOM_DEPTH: u64 = 32;

/// The folder whose device to measure, and the bounds of each trial.
#[derive(Debug, Clone, Args)]
pub struct DeviceArgs {
    /// Folder on the device; a file in it is written, and removed at the end
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Size of the file
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "512M")]
    size: u64,

    /// Seconds of each of the four trials; the writes and the sequential reads end earlier at the end of the file
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
}

/// What a device can do at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Random reads of 4 KiB per second, one at a time.
    pub random_reads_per_second: f64,
    /// The same, 32 at a time.
    pub random_reads_at_32_per_second: f64,
    /// Bytes per second of sequential reads.
    pub sequential_read_bytes_per_second: f64,
    /// Bytes per second of sequential writes, synced at the end.
    pub sequential_written_bytes_per_second: f64,
    /// Whether the reads and writes bypassed the page cache.
    pub is_direct: bool,
}

impl DeviceLimits {
    /// The limits by name, for tables.
    fn rows(&self) -> [(&'static str, String); 4] {
        let per_second = |count: f64| format!("{count:.0} per second");
        let bandwidth = |bytes: f64| format!("{:.1} MiB/s", bytes / f64::from(1 << 20));
        [
            (
                "random reads of 4 KiB, one at a time",
                per_second(self.random_reads_per_second),
            ),
            (
                "random reads of 4 KiB, 32 at a time",
                per_second(self.random_reads_at_32_per_second),
            ),
            (
                "sequential reads",
                bandwidth(self.sequential_read_bytes_per_second),
            ),
            (
                "sequential writes",
                bandwidth(self.sequential_written_bytes_per_second),
            ),
        ]
    }

    /// How they were measured.
    fn way(&self) -> &'static str {
        if self.is_direct {
            "without the page cache"
        } else {
            "through the page cache, because the file system has no O_DIRECT"
        }
    }

    /// The limits as a table.
    pub fn table(&self) -> String {
        let rows = self.rows();
        let rows = rows
            .iter()
            .map(|(name, limit)| format!("{name:<38} {limit:>20}"));
        let way = format!("measured {}", self.way());
        rows.chain([way]).collect::<Vec<_>>().join("\n")
    }

    /// The limits as a sentence, for reports of other figures.
    pub fn text(&self) -> String {
        let rows = self.rows();
        let rows = rows.iter().map(|(name, limit)| format!("{name}: {limit}"));
        let all = rows.collect::<Vec<_>>().join("; ");
        format!("{all}; measured {}", self.way())
    }
}

impl DeviceArgs {
    /// The device of `folder`, with the default bounds.
    pub(crate) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            size: 512 << 20,
            seconds: 1.0,
        }
    }

    /// Measures the device.
    ///
    /// # Errors
    /// `InvalidArgument` for wrong bounds; `Io`, for example for a missing folder.
    pub fn measure(&self) -> Result<DeviceLimits> {
        let time = Duration::try_from_secs_f64(self.seconds);
        let time = time.ok().filter(|time| !time.is_zero());
        let time = time.ok_or_else(|| Error::invalid_argument("--seconds must be above 0"))?;
        if self.size < PIECE_BYTES {
            return Err(Error::invalid_argument("--size must be 1 MiB or more"));
        }
        let failed = |error| Error::io("measure the device of", &self.folder, error);
        let (file, is_direct) = create(&self.folder).map_err(failed)?;
        let trials = Trials {
            file,
            is_direct,
            pieces: self.size / PIECE_BYTES,
            time,
        };
        trials.run().map_err(failed)
    }
}

/// Creates a file in `folder` that has no name, so it does not outlive the process. Returns whether it bypasses the
/// page cache.
fn create(folder: &Path) -> io::Result<(File, bool)> {
    match create_with(folder, direct_flag()) {
        Ok(file) => Ok((file, direct_flag() != 0)),
        // The file system has no direct access.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Ok((create_with(folder, 0)?, false))
        }
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn create_with(folder: &Path, flags: i32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let open = |path: &Path| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        options.custom_flags(flags).open(path)
    };
    let named = tempfile::Builder::new()
        .prefix("windrow-device-")
        .make_in(folder, open)?;
    let (file, path) = named.into_parts();
    path.close()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn direct_flag() -> i32 {
    rustix::fs::OFlags::DIRECT.bits().cast_signed()
}

#[cfg(not(target_os = "linux"))]
fn direct_flag() -> i32 {
    0
}

/// The trials on one file.
struct Trials {
    file: File,
    is_direct: bool,
    /// The most pieces of the file.
    pieces: u64,
    time: Duration,
}

impl Trials {
    fn run(&self) -> io::Result<DeviceLimits> {
        let (pieces, seconds) = self.write()?;
        let bandwidth = |pieces: u64, seconds: f64| (pieces * PIECE_BYTES) as f64 / seconds;
        let written = bandwidth(pieces, seconds);
        self.forget()?;
        let (read, seconds) =
            self.repeat(SEQUENTIAL_DEPTH, pieces, PIECE_BYTES, |buffer, step| {
                read_at(&self.file, buffer, step * PIECE_BYTES)
            })?;
        let [one, many] = [1, RANDOM_DEPTH].map(|depth| {
            self.forget()?;
            let pages = pieces * PIECE_BYTES / PAGE_BYTES;
            let read = |buffer: &mut [u8], step| {
                let page = mix(depth << 32 | step) % pages;
                read_at(&self.file, buffer, page * PAGE_BYTES)
            };
            let (reads, seconds) = self.repeat(depth, u64::MAX, PAGE_BYTES, read)?;
            Ok::<f64, io::Error>(reads as f64 / seconds)
        });
        Ok(DeviceLimits {
            random_reads_per_second: one?,
            random_reads_at_32_per_second: many?,
            sequential_read_bytes_per_second: bandwidth(read, seconds),
            sequential_written_bytes_per_second: written,
            is_direct: self.is_direct,
        })
    }

    /// Writes the file. Returns the number of its pieces and the seconds of the writes.
    fn write(&self) -> io::Result<(u64, f64)> {
        let start = Instant::now();
        let write = |buffer: &mut [u8], step: u64| {
            // Devices may compress, or store equal pages once.
            for (word, bytes) in (0..).zip(buffer.chunks_exact_mut(8)) {
                bytes.copy_from_slice(&mix(step << 32 | word).to_le_bytes());
            }
            write_at(&self.file, buffer, step * PIECE_BYTES)
        };
        let (pieces, _) = self.repeat(SEQUENTIAL_DEPTH, self.pieces, PIECE_BYTES, write)?;
        self.file.sync_data()?;
        Ok((pieces, start.elapsed().as_secs_f64()))
    }

    /// Does `steps` steps on `depth` threads, or as many as the time allows, and at least one per thread. Each thread
    /// has a buffer of `bytes`. Returns the number of steps, which are the first ones, and their seconds.
    fn repeat(
        &self,
        depth: u64,
        steps: u64,
        bytes: u64,
        step: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
    ) -> io::Result<(u64, f64)> {
        let (start, next) = (Instant::now(), AtomicU64::new(0));
        let work = || {
            let mut space = Vec::new();
            let buffer = aligned(&mut space, bytes);
            let mut done = 0;
            while done == 0 || start.elapsed() < self.time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= steps {
                    break;
                }
                step(buffer, number)?;
                done += 1;
            }
            Ok::<u64, io::Error>(done)
        };
        let done = thread::scope(|scope| {
            let workers: Vec<_> = (0..depth).map(|_| scope.spawn(work)).collect();
            let failed = |_| io::Error::other("a thread of the trial failed");
            let done = workers
                .into_iter()
                .map(|worker| worker.join().map_err(failed)?);
            done.sum::<io::Result<u64>>()
        })?;
        Ok((done, start.elapsed().as_secs_f64().max(1e-9)))
    }

    /// Drops the cached pages of a file that is not direct, and turns off read-ahead.
    fn forget(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !self.is_direct {
            use rustix::fs::{Advice, fadvise};
            fadvise(&self.file, 0, None, Advice::DontNeed)?;
            fadvise(&self.file, 0, None, Advice::Random)?;
        }
        Ok(())
    }
}

/// `bytes` of `space` that begin at the address of a page, as direct access requires.
fn aligned(space: &mut Vec<u8>, bytes: u64) -> &mut [u8] {
    let [bytes, page] = [bytes, PAGE_BYTES].map(|bytes| usize::try_from(bytes).unwrap_or(0));
    space.resize(bytes + page, 0);
    let first = space.as_ptr().align_offset(page).min(page);
    &mut space[first..first + bytes]
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(unix)]
fn write_at(file: &File, buffer: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn create_with(_folder: &Path, _flags: i32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn read_at(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn write_at(_file: &File, _buffer: &[u8], _offset: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use windrow::ErrorKind;

    use super::*;

    fn args(folder: &Path) -> DeviceArgs {
        DeviceArgs {
            folder: folder.to_owned(),
            size: 3 << 20,
            seconds: 0.01,
        }
    }

    fn is_measured(limits: &DeviceLimits) -> bool {
        let figures = [
            limits.random_reads_per_second,
            limits.random_reads_at_32_per_second,
            limits.sequential_read_bytes_per_second,
            limits.sequential_written_bytes_per_second,
        ];
        figures
            .iter()
            .all(|&figure| figure.is_finite() && figure > 0.0)
    }

    #[test]
    fn a_small_file_is_measured_and_removed() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let limits = args(folder.path()).measure().unwrap();
        assert!(is_measured(&limits), "{limits:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let table = limits.table();
        assert_eq!(table.lines().count(), 5);
        let way = if limits.is_direct {
            "without"
        } else {
            "through"
        };
        assert!(
            table
                .lines()
                .last()
                .unwrap()
                .starts_with(&format!("measured {way} the page cache"))
        );
    }

    #[test]
    fn a_file_system_without_direct_access_is_measured_through_the_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let trials = Trials {
            file: create_with(folder.path(), 0).unwrap(),
            is_direct: false,
            pieces: 3,
            time: Duration::from_millis(10),
        };
        let limits = trials.run().unwrap();
        assert!(is_measured(&limits), "{limits:?}");
        assert!(
            limits.text().ends_with(
                "measured through the page cache, because the file system has no O_DIRECT"
            )
        );
    }

    #[test]
    fn every_step_of_a_trial_is_done_once() {
        let folder = tempfile::tempdir().unwrap();
        let trials = Trials {
            file: create_with(folder.path(), 0).unwrap(),
            is_direct: false,
            pieces: 50,
            time: Duration::from_secs(600),
        };
        let (pieces, _) = trials.write().unwrap();
        assert_eq!(pieces, 50);
        assert_eq!(trials.file.metadata().unwrap().len(), 50 * PIECE_BYTES);
        let mut words = [[0; 8]; 2];
        for (word, piece) in words.iter_mut().zip([0, 49]) {
            read_at(&trials.file, word, piece * PIECE_BYTES).unwrap();
        }
        assert_eq!(words, [mix(0), mix(49 << 32)].map(u64::to_le_bytes));
    }

    #[test]
    fn wrong_bounds_and_folders_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let good = args(folder.path());
        for (seconds, size) in [
            (0.0, 3 << 20),
            (-1.0, 3 << 20),
            (f64::NAN, 3 << 20),
            (1.0, 100),
        ] {
            let wrong = DeviceArgs {
                size,
                seconds,
                ..good.clone()
            };
            assert_eq!(
                wrong.measure().unwrap_err().kind(),
                ErrorKind::InvalidArgument
            );
        }
        let error = args(&folder.path().join("missing")).measure().unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
