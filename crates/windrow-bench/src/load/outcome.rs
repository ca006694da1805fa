//! What is counted around a load, and the report that is made of it.

use std::fs;
use std::path::Path;

use windrow::{Error, Result};

use crate::load::contents::Contents;
use crate::load::job::Job;
use crate::load::kinds::{Chore, Companion, Work};
use crate::measure::process::{ProcessIo, ProcessMemory, cpu_seconds};
use crate::measure::tally::Tally;
use crate::{BesideReport, Counters, Engine, LoadShape, Report, SeriesPoint, StallShape};

/// What the engine and the system have counted at a moment.
pub(crate) struct Totals {
    counters: Counters,
    io_stats: Vec<LoadShape>,
    stalls: Vec<StallShape>,
    process: Option<ProcessIo>,
    cpu_seconds: f64,
}

impl Totals {
    pub(crate) fn now(engine: &impl Engine) -> Result<Self> {
        Ok(Self {
            counters: engine.counters()?,
            io_stats: engine.io_stats(),
            stalls: engine.stalls(),
            process: ProcessIo::now().ok(),
            cpu_seconds: cpu_seconds(),
        })
    }
}

/// What a load did, and how long it took.
pub(crate) struct Done {
    pub(crate) tally: Tally,
    /// What was done beside it.
    pub(crate) beside: Option<Tally>,
    pub(crate) seconds: f64,
    pub(crate) settled_seconds: f64,
    pub(crate) series: Vec<SeriesPoint>,
}

impl<E: Engine> Job<'_, E> {
    /// The report of the load, from what was counted `before` and `after` it. The clock has
    /// ended it or not.
    pub(crate) fn report(
        &self,
        contents: &Contents,
        is_cut: bool,
        before: &Totals,
        after: Totals,
        done: Done,
    ) -> Result<Report> {
        let tally = done.tally;
        let disk_bytes = bytes_of_files(self.folder)?;
        let (counted, by_then) = (&before.counters, &after.counters);
        let written_bytes = by_then.written_bytes - counted.written_bytes;
        let read_bytes = by_then.read_bytes - counted.read_bytes;
        let per_given = |bytes: u64| match tally.given_bytes {
            0 => 0.0,
            given => bytes as f64 / given as f64,
        };
        let difference = |counter: fn(&Counters) -> Option<u64>| -> Option<u64> {
            Some(counter(by_then)? - counter(counted)?)
        };
        let process = |counter: fn(ProcessIo) -> u64| -> Option<u64> {
            Some(counter(after.process?) - counter(before.process?))
        };
        let block_reads = difference(|counters| counters.block_reads);
        let (latency, latency_curve, operations) = tally.latencies()?;
        let beside = done
            .beside
            .map(|beside| self.beside_report(&beside, done.seconds));
        let ops = tally.ops.max(1) as f64;
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        Ok(Report {
            name: self.load.name().to_owned(),
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
            beside: beside.transpose()?.flatten(),
            found: tally.found,
            checksum: format!("{:016x}", tally.checksum),
            repeatable: self.is_repeatable(contents, is_cut),
            write_amplification: per_given(written_bytes),
            io_amplification: per_given(written_bytes + read_bytes),
            block_reads,
            // Those of a walk beside the load are nobody's.
            block_reads_per_op: block_reads
                .filter(|_| self.load.companion() != Some(Companion::Scanner))
                .map(|blocks| blocks as f64 / ops),
            runs_per_seek: difference(|counters| counters.seeks)
                .filter(|&seeks| seeks > 0)
                .zip(difference(|counters| counters.runs_visited))
                .map(|(seeks, runs)| runs as f64 / seeks as f64),
            values_apart: by_then.values_apart.since(counted.values_apart),
            filter_probes: difference(|counters| counters.filter_probes),
            filter_false_positives: difference(|counters| counters.filter_false_positives),
            read_bytes,
            written_bytes,
            process_read_bytes: process(|io| io.read_bytes),
            process_written_bytes: process(|io| io.written_bytes),
            peak_memory_bytes: ProcessMemory::now().peak_bytes,
            merges: self.engine.merges(),
            stalls: difference(|counters| counters.stalls),
            stall_seconds: by_then.stall_seconds - counted.stall_seconds,
            io_stats: io_stats_since(&before.io_stats, after.io_stats),
            stalls_by_cause: if self.load.work() == Work::Store(Chore::Show) {
                after.stalls
            } else {
                stalls_since(&before.stalls, after.stalls)
            },
            disk_bytes,
            live_bytes: contents.live_bytes,
            space_amplification: contents
                .live_bytes
                .filter(|&live| live > 0)
                .map(|live| disk_bytes as f64 / live as f64),
            levels: self.engine.levels()?,
            series: done.series,
        })
    }
}

impl<E: Engine> Job<'_, E> {
    /// What the thread beside the load has done in so many seconds, where it counts operations.
    fn beside_report(&self, beside: &Tally, seconds: f64) -> Result<Option<BesideReport>> {
        let (_, _, operations) = beside.latencies()?;
        let asked_per_second = self.args.companion_rate(self.data) as f64;
        Ok(operations.into_iter().next().map(|done| BesideReport {
            per_second: done.ops as f64 / seconds.max(1e-9),
            asked_per_second,
            done,
        }))
    }
}

/// What moved between two moments.
fn io_stats_since(before: &[LoadShape], mut after: Vec<LoadShape>) -> Vec<LoadShape> {
    for (after, before) in after.iter_mut().zip(before) {
        after.written_bytes -= before.written_bytes;
        after.read_bytes -= before.read_bytes;
    }
    after
}

/// Who waited between two moments; the longest wait is that up to the second one, also where it was over
/// before the first.
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
    fn waits_before_a_load_are_not_among_its_own() {
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
            stall("room", 1, 0, 0.125),
        ];
        let since = stalls_since(&before, after).into_iter();
        let since = since.map(|it| (it.cause, it.delays, it.stops, it.seconds));
        let own = [("level 0", 2, 1, 0.75), ("room", 1, 0, 0.125)];
        let own =
            own.map(|(cause, delays, stops, seconds)| (cause.to_owned(), delays, stops, seconds));
        assert_eq!(since.collect::<Vec<_>>(), own);
    }
}
