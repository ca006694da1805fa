//! The counters around a load, and the report that follows from them.

use std::fs;
use std::path::Path;

use windrow::{Error, Result};

use crate::load::kinds::{Companion, Maintenance, Work};
use crate::measure::caches::DroppedCaches;
use crate::measure::device::{DeviceIo, DeviceReport};
use crate::measure::process::{ProcessIo, ProcessMemory, cpu_seconds};
use crate::measure::tally::Tally;
use crate::{CompanionReport, Counters, Engine, IoShape, Load, Report, SeriesPoint, StallShape};

/// A load on an existing store has a write amplification if it writes at least this fraction of the store.
///
/// Compactions run when a level is full. The writes of a small load fill levels that earlier loads have almost
/// filled, and the bytes of those compactions belong to the earlier loads.
const MEASURED_FRACTION: f64 = 0.1;

/// The counters of the engine and of the system at one point in time.
pub(crate) struct Totals {
    counters: Counters,
    io_stats: Vec<IoShape>,
    stalls: Vec<StallShape>,
    process: Option<ProcessIo>,
    device: Option<DeviceIo>,
    cpu_seconds: f64,
    disk_bytes: u64,
}

impl Totals {
    /// The counters now, and the bytes of all files in `folder`.
    pub(crate) fn now(engine: &impl Engine, folder: &Path) -> Result<Self> {
        Ok(Self {
            counters: engine.counters()?,
            io_stats: engine.io_stats(),
            stalls: engine.stalls(),
            process: ProcessIo::now().ok(),
            device: DeviceIo::now(folder),
            cpu_seconds: cpu_seconds(),
            disk_bytes: bytes_of_files(folder)?,
        })
    }
}

/// The operations of a load, and their time.
pub(crate) struct Done {
    pub(crate) tally: Tally,
    /// The operations of the companion thread.
    pub(crate) companion: Option<Tally>,
    pub(crate) seconds: f64,
    pub(crate) settled_seconds: f64,
    pub(crate) series: Vec<SeriesPoint>,
}

/// Everything that the report of a load needs.
pub(crate) struct Outcome<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) load: Load,
    /// The target rate of the companion thread.
    pub(crate) companion_rate: u64,
    pub(crate) live_bytes: Option<u64>,
    pub(crate) is_repeatable: bool,
    pub(crate) dropped_caches: Option<DroppedCaches>,
    pub(crate) before: Totals,
    pub(crate) after: Totals,
    pub(crate) done: Done,
}

impl<E: Engine> Outcome<'_, E> {
    /// The report of the load.
    pub(crate) fn report(self) -> Result<Report> {
        let Self {
            load,
            before,
            after,
            done,
            ..
        } = self;
        let tally = done.tally;
        let written_bytes = after.counters.written_bytes - before.counters.written_bytes;
        let read_bytes = after.counters.read_bytes - before.counters.read_bytes;
        let old_bytes = if load.is_fill() { 0 } else { before.disk_bytes };
        let per_user_byte = |bytes| amplification(bytes, tally.user_bytes, old_bytes);
        let difference = |counter: fn(&Counters) -> Option<u64>| -> Option<u64> {
            Some(counter(&after.counters)? - counter(&before.counters)?)
        };
        let process = |counter: fn(ProcessIo) -> u64| -> Option<u64> {
            Some(counter(after.process?) - counter(before.process?))
        };
        let block_reads = difference(|counters| counters.block_reads);
        let (latency, latency_curve, operations) = tally.latencies()?;
        let companion = done
            .companion
            .map(|tally| companion_report(&tally, done.seconds, self.companion_rate));
        let ops = tally.ops.max(1) as f64;
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        let live_bytes = self.live_bytes;
        Ok(Report {
            name: load.name().to_owned(),
            engine: E::NAME.to_owned(),
            settings: self.engine.settings(),
            ops: tally.ops,
            seconds: done.seconds,
            settled_seconds: done.settled_seconds,
            ops_per_second: tally.ops as f64 / done.seconds.max(1e-9),
            settled_ops_per_second: tally.ops as f64 / done.settled_seconds.max(1e-9),
            cpu_seconds,
            cpu_us_per_op: if tally.ops == 0 {
                0.0
            } else {
                cpu_seconds * 1e6 / ops
            },
            latency,
            latency_curve,
            operations,
            companion: companion.transpose()?.flatten(),
            found: tally.found,
            checksum: format!("{:016x}", tally.checksum),
            repeatable: self.is_repeatable,
            dropped_caches: self.dropped_caches,
            user_bytes: tally.user_bytes,
            write_amplification: per_user_byte(written_bytes),
            io_amplification: per_user_byte(written_bytes + read_bytes),
            block_reads,
            // The blocks of a companion that scans belong to no operation of the load.
            block_reads_per_op: block_reads
                .filter(|_| load.companion() != Some(Companion::Scanner))
                .map(|blocks| blocks as f64 / ops),
            runs_per_seek: difference(|counters| counters.seeks)
                .filter(|&seeks| seeks > 0)
                .zip(difference(|counters| counters.runs_visited))
                .map(|(seeks, runs)| runs as f64 / seeks as f64),
            separated_reads: (after.counters.separated_reads)
                .since(before.counters.separated_reads),
            filter_probes: difference(|counters| counters.filter_probes),
            filter_false_positives: difference(|counters| counters.filter_false_positives),
            read_bytes,
            written_bytes,
            process_read_bytes: process(|io| io.read_bytes),
            process_written_bytes: process(|io| io.written_bytes),
            device: DeviceReport::new(
                (before.device, before.process),
                (after.device, after.process),
                tally.ops,
                tally.returned_bytes,
            ),
            peak_memory_bytes: ProcessMemory::now().peak_bytes,
            compactions: self.engine.compactions(),
            stalls: difference(|counters| counters.stalls),
            stall_seconds: after.counters.stall_seconds - before.counters.stall_seconds,
            io_stats: io_stats_since(&before.io_stats, after.io_stats),
            stalls_by_cause: if load.work() == Work::Store(Maintenance::Show) {
                after.stalls
            } else {
                stalls_since(&before.stalls, after.stalls)
            },
            disk_bytes: after.disk_bytes,
            live_bytes,
            space_amplification: live_bytes
                .filter(|&live| live > 0)
                .map(|live| after.disk_bytes as f64 / live as f64),
            levels: self.engine.levels()?,
            series: done.series,
        })
    }
}

/// `bytes` over the `user_bytes` of a load that found `old_bytes` in the store; `None` for a load that wrote too
/// little ([`MEASURED_FRACTION`]).
fn amplification(bytes: u64, user_bytes: u64, old_bytes: u64) -> Option<f64> {
    let is_measured = user_bytes > 0 && user_bytes as f64 >= MEASURED_FRACTION * old_bytes as f64;
    is_measured.then(|| bytes as f64 / user_bytes as f64)
}

/// The report of a companion thread that counts operations.
fn companion_report(tally: &Tally, seconds: f64, rate: u64) -> Result<Option<CompanionReport>> {
    let (_, _, operations) = tally.latencies()?;
    Ok(operations.into_iter().next().map(|done| CompanionReport {
        per_second: done.ops as f64 / seconds.max(1e-9),
        target_per_second: rate as f64,
        done,
    }))
}

/// The bytes between two readings.
fn io_stats_since(before: &[IoShape], mut after: Vec<IoShape>) -> Vec<IoShape> {
    for (after, before) in after.iter_mut().zip(before) {
        after.written_bytes -= before.written_bytes;
        after.read_bytes -= before.read_bytes;
    }
    after
}

/// The stalls between two readings. The longest stall is that since the open.
fn stalls_since(before: &[StallShape], after: Vec<StallShape>) -> Vec<StallShape> {
    let since = after.into_iter().map(|mut stall| {
        if let Some(before) = before.iter().find(|it| it.cause == stall.cause) {
            stall.delays -= before.delays;
            stall.stops -= before.stops;
            stall.seconds -= before.seconds;
        }
        stall
    });
    since.filter(|it| it.delays + it.stops > 0).collect()
}

/// The bytes of all files in `folder`, at any depth.
fn bytes_of_files(folder: &Path) -> Result<u64> {
    let failed = |error| Error::io("list", folder, error);
    let mut sum = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += bytes_of_files(&entry.path())?,
            Ok(metadata) => sum += metadata.len(),
            // The engine may remove files meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_writes_little_has_no_amplification() {
        // A fill starts from an empty store.
        assert_eq!(amplification(300, 100, 0), Some(3.0));
        assert_eq!(amplification(300, 100, 1000), Some(3.0));
        assert_eq!(amplification(300, 100, 1001), None);
        assert_eq!(amplification(0, 0, 0), None);
    }

    #[test]
    fn stalls_before_a_load_do_not_count_for_it() {
        let stall = |cause: &str, delays, stops, seconds| StallShape {
            cause: cause.to_owned(),
            delays,
            stops,
            seconds,
            longest_ms: 7.0,
        };
        let before = [stall("flushes", 3, 1, 0.5), stall("level 0", 4, 0, 0.25)];
        let after = vec![
            stall("flushes", 3, 1, 0.5),
            stall("level 0", 6, 1, 1.0),
            stall("space", 1, 0, 0.125),
        ];
        let since = stalls_since(&before, after).into_iter();
        let since = since.map(|it| (it.cause, it.delays, it.stops, it.seconds));
        let own = [("level 0", 2, 1, 0.75), ("space", 1, 0, 0.125)];
        let own =
            own.map(|(cause, delays, stops, seconds)| (cause.to_owned(), delays, stops, seconds));
        assert_eq!(since.collect::<Vec<_>>(), own);
    }
}
