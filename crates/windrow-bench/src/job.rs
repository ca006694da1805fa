//! One load on an open engine: its threads, and what is measured around them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use windrow::{Error, ErrorKind, Result};

use crate::contents::Contents;
use crate::gauge::Gauge;
use crate::process::{ProcessIo, ProcessMemory, cpu_seconds};
use crate::record_work::RecordWorker;
use crate::series::{Phase, SeriesPoint, Watched, Watcher};
use crate::stopwatch::Lane;
use crate::tally::Tally;
use crate::work::Worker;
use crate::ycsb::{Requests, Workload};
use crate::{BenchArgs, Counters, DataSet, Engine, Load, Progress, Report, TrafficShape};

/// One load on an open engine.
pub(crate) struct Job<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) args: &'a BenchArgs,
    pub(crate) data: &'a DataSet,
    pub(crate) load: Load,
    pub(crate) folder: &'a Path,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stream: u64,
    pub(crate) generation: u16,
}

/// What the engine and the system have counted at a moment.
struct Totals {
    counters: Counters,
    traffic: Vec<TrafficShape>,
    process: Option<ProcessIo>,
    cpu_seconds: f64,
}

impl Totals {
    fn now(engine: &impl Engine) -> Result<Self> {
        Ok(Self {
            counters: engine.counters()?,
            traffic: engine.traffic(),
            process: ProcessIo::now().ok(),
            cpu_seconds: cpu_seconds(),
        })
    }
}

/// What a load did, and how long it took.
struct Done {
    tally: Tally,
    seconds: f64,
    settled_seconds: f64,
    series: Vec<SeriesPoint>,
}

impl<E: Engine> Job<'_, E> {
    pub(crate) fn run(&self, contents: &mut Contents) -> Result<Report> {
        contents.prepare(self.load, self.engine, self.data)?;
        let requests = self.requests(contents)?;
        // Those before the load are not its own.
        self.engine.merges();
        ProcessMemory::lower_peak();
        let before = Totals::now(self.engine)?;
        let done = self.measure(contents, requests.as_ref())?;
        let after = Totals::now(self.engine)?;

        let threads = self.args.threads;
        let changes = self.load.workload().is_some_and(Workload::writes);
        contents.is_by_chance |= self.load == Load::ReadWhileWriting || changes && threads > 1;
        contents.live_bytes = contents
            .live_bytes
            .map(|bytes| bytes + done.tally.born_bytes - done.tally.dead_bytes);
        if self.load.overwrites_indexes() && !self.data.has_one_size() {
            // What was overwritten or deleted may have had any size.
            contents.live_bytes = None;
        }
        self.report(contents, &before, after, done)
    }

    /// Does the load while a thread beside it watches.
    fn measure(&self, contents: &Contents, requests: Option<&Requests<'_>>) -> Result<Done> {
        let gauges = Gauge::of(self.args.threads);
        let watched = Watched {
            load: self.load.name(),
            total: Some(self.total()),
            duration: None,
        };
        let watcher = Watcher::new(self.engine, &gauges, watched, self.progress)?;
        let phase = Phase::default();
        thread::scope(|scope| {
            let watching = scope.spawn(|| watcher.run(&phase));
            let start = Instant::now();
            let worked = self.work(contents, requests, &gauges).and_then(|tally| {
                let seconds = start.elapsed().as_secs_f64();
                phase.settle(watching.thread());
                if !self.args.unsettled {
                    self.engine.settle()?;
                }
                Ok((tally, seconds, start.elapsed().as_secs_f64()))
            });
            phase.end(watching.thread());
            let series = joined(watching);
            let (tally, seconds, settled_seconds) = worked?;
            Ok(Done {
                tally,
                seconds,
                settled_seconds,
                series: series?,
            })
        })
    }

    fn report(
        &self,
        contents: &Contents,
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
        let ops = tally.ops.max(1) as f64;
        let cpu_seconds = after.cpu_seconds - before.cpu_seconds;
        Ok(Report {
            name: self.load.name().to_owned(),
            engine: E::NAME.to_owned(),
            ops: tally.ops,
            seconds: done.seconds,
            settled_seconds: done.settled_seconds,
            ops_per_second: tally.ops as f64 / done.seconds.max(1e-9),
            settled_ops_per_second: tally.ops as f64 / done.settled_seconds.max(1e-9),
            cpu_seconds,
            cpu_us_per_op: cpu_seconds * 1e6 / ops,
            latency,
            latency_curve,
            operations,
            found: tally.found,
            checksum: format!("{:016x}", tally.checksum),
            repeatable: !contents.is_by_chance,
            write_amplification: per_given(written_bytes),
            io_amplification: per_given(written_bytes + read_bytes),
            block_reads,
            block_reads_per_op: block_reads.map(|blocks| blocks as f64 / ops),
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
            traffic: traffic_since(&before.traffic, after.traffic),
            stalls_by_cause: self.engine.stalls(),
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

    /// How many steps the load has.
    fn total(&self) -> u64 {
        self.load.operations(self.args.num, self.args.ops)
    }

    /// The requests of a load on records, for whose inserts there is room then.
    fn requests(&self, contents: &mut Contents) -> Result<Option<Requests<'_>>> {
        let Some(records) = &mut contents.records else {
            return Ok(None);
        };
        let (requests, inserts) = match self.load.workload() {
            Some(workload) => {
                let present = records.present();
                let requests = Requests::new(self.data, workload, self.stream, present);
                let inserts = requests.inserts(self.total());
                (Some(requests), inserts)
            }
            None if self.load == Load::YcsbLoad => (None, self.total()),
            None => return Ok(None),
        };
        if records.present() + inserts > self.data.records_max() {
            return Err(Error::invalid_argument(format!(
                "the keys are too short for {} records",
                records.present() + inserts
            )));
        }
        records.make_room(inserts);
        if self.load == Load::YcsbLoad {
            records.take_all();
        }
        Ok(requests)
    }

    /// Does the steps of the load.
    fn work(
        &self,
        contents: &Contents,
        requests: Option<&Requests<'_>>,
        gauges: &[Gauge],
    ) -> Result<Tally> {
        let numbers = match contents.records {
            Some(_) => self.data.records_max(),
            None => self.data.num(),
        };
        let worker = Worker {
            engine: self.engine,
            data: self.data,
            live: contents.live.as_ref(),
            stream: self.stream,
            generation: self.generation,
            numbers,
        };
        let records = contents.records.as_ref().map(|records| RecordWorker {
            engine: self.engine,
            data: self.data,
            records,
        });
        let total = self.total();
        match (self.load, &records, requests) {
            (Load::YcsbLoad, Some(records), _) => {
                self.on_threads(gauges, |lane| records.load(lane))
            }
            (_, Some(records), Some(requests)) => {
                self.on_threads(gauges, |lane| records.run(requests, lane))
            }
            (Load::ReadWhileWriting, ..) => self.beside_a_writer(&worker, gauges),
            (load, ..) => self.on_threads(gauges, |lane| worker.run(load, lane, total)),
        }
    }

    /// Shares the steps of the load out to the threads, each with its gauge.
    fn on_threads(
        &self,
        gauges: &[Gauge],
        work: impl Fn(&Lane<'_>) -> Result<Tally> + Sync,
    ) -> Result<Tally> {
        let total = self.total();
        let threads = gauges.len() as u64;
        let share = |thread: u64| total / threads * thread + (total % threads).min(thread);
        let lanes = (0..).zip(gauges).map(|(thread, gauge)| Lane {
            steps: share(thread)..share(thread + 1),
            deadline: None,
            rate: self.args.rate.map(|rate| rate as f64 / threads as f64),
            gauge,
        });
        let work = &work;
        thread::scope(|scope| {
            let workers: Vec<_> = lanes.map(|lane| scope.spawn(move || work(&lane))).collect();
            let mut sum = Tally::default();
            for worker in workers {
                sum.add(&joined(worker)?)?;
            }
            Ok(sum)
        })
    }

    fn beside_a_writer(&self, worker: &Worker<'_, E>, gauges: &[Gauge]) -> Result<Tally> {
        let stop = AtomicBool::new(false);
        let total = self.total();
        thread::scope(|scope| {
            let writer = scope.spawn(|| worker.write_steadily(self.args.write_rate, &stop));
            let tally = self.on_threads(gauges, |lane| worker.run(self.load, lane, total));
            stop.store(true, Ordering::Relaxed);
            let written = joined(writer)?;
            let mut tally = tally?;
            tally.given_bytes += written.given_bytes;
            tally.born_bytes += written.born_bytes;
            Ok(tally)
        })
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "a thread of the bench failed")))
}

/// What moved between two moments.
fn traffic_since(before: &[TrafficShape], mut after: Vec<TrafficShape>) -> Vec<TrafficShape> {
    for (after, before) in after.iter_mut().zip(before) {
        after.written_bytes -= before.written_bytes;
        after.read_bytes -= before.read_bytes;
    }
    after
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
