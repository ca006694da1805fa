//! One load on an open engine: its threads, and the measurements around them.
//!
//! Owns the order: warm-up, totals before, the load, the settling, totals after. No figure includes the warm-up.
//!
//! Concurrency: each thread has its part of the steps and its own [`Tally`]. The job sums the tallies after all
//! threads have ended, so an operation under measurement takes no lock. A watcher thread reads the gauges of the
//! others. A companion, if the load has one, runs until the job sets its stop flag. All threads end before `run`
//! returns.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow::{Error, ErrorKind, Result};

use super::{machine, replay};
use crate::data::random::mix;
use crate::data::trace::Trace;
use crate::data::ycsb::{Requests, Workload};
use crate::load::contents::Contents;
use crate::load::kinds::{Companion, Maintenance, Work};
use crate::load::outcome::{Done, Outcome, Totals};
use crate::load::record_work::RecordWorker;
use crate::load::sums::Sums;
use crate::load::work::Worker;
use crate::measure::caches::{DroppedCaches, sync};
use crate::measure::gauge::Gauge;
use crate::measure::process::ProcessMemory;
use crate::measure::series::{Phase, Watched, Watcher};
use crate::measure::stopwatch::Lane;
use crate::measure::tally::{Operation, Tally};
use crate::{BenchArgs, DataSet, Engine, Load, Mixture, Progress, Report, WarmUp};

/// One load on an open engine.
pub(crate) struct Job<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) args: &'a BenchArgs,
    pub(crate) data: &'a DataSet,
    pub(crate) load: Load,
    pub(crate) folder: &'a Path,
    pub(crate) progress: &'a dyn Progress,
    /// The caches that were dropped before the load.
    pub(crate) dropped_caches: Option<DroppedCaches>,
    pub(crate) stream: u64,
    pub(crate) generation: u16,
}

/// Steps of a load with a duration only.
const STEPS_MAX: u64 = 1 << 48;
/// Maximal operations per record of a load with a duration that inserts one record in twenty operations.
const INSERTING_OPS_PER_RECORD: u64 = 20;

/// The bounds of a load. The first one ends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) total: Option<u64>,
    /// In seconds.
    duration: Option<f64>,
}

impl Bound {
    /// The bounds of `load` under `args`.
    pub(crate) fn of(load: Load, args: &BenchArgs) -> Self {
        let of_reads = args.read_duration.filter(|_| load.only_reads());
        let duration = of_reads
            .or(args.duration)
            .filter(|&seconds| seconds > 0.0 && load.ends_by_clock());
        let is_bounded = duration.is_none() || args.bounds_operations(load);
        let mut total = args.operations(load).filter(|_| is_bounded);
        if duration.is_some() && load.workload().is_some_and(Workload::inserts) {
            // The bench has capacity for twice the records.
            let most = args.num.saturating_mul(INSERTING_OPS_PER_RECORD);
            total = Some(total.map_or(most, |total| total.min(most)));
        }
        Self { total, duration }
    }

    /// Whether the clock may end the load.
    pub(crate) fn is_timed(&self) -> bool {
        self.duration.is_some()
    }
}

/// The inputs of a load.
#[derive(Clone, Copy)]
struct Task<'a> {
    contents: &'a Contents,
    requests: Option<&'a Requests<'a>>,
    mixture: Option<&'a Mixture>,
}

impl<E: Engine> Job<'_, E> {
    pub(crate) fn run(&self, contents: &mut Contents) -> Result<Report> {
        contents.prepare(self.load, self.engine, self.data)?;
        let bound = Bound::of(self.load, self.args);
        let requests = self.requests(contents, &bound)?;
        let mixture = match self.load {
            Load::MixGraph => Some(Mixture::new(
                &self.args.mixgraph,
                self.args.num,
                self.args.seed,
            )?),
            _ => None,
        };
        let task = Task {
            contents,
            requests: requests.as_ref(),
            mixture: mixture.as_ref(),
        };
        self.warm_up(&task)?;
        // Drops the compactions before the load.
        self.engine.compactions();
        ProcessMemory::lower_peak();
        let before = Totals::now(self.engine, self.folder)?;
        let done = self.measure(&task, &bound)?;
        if self.args.drop_caches {
            // The pages that the load has left dirty count for it, not for the next load.
            sync();
        }
        let after = Totals::now(self.engine, self.folder)?;
        // Whether the clock has ended the load: it has no other bound, or did not reach it.
        let is_cut = bound.is_timed() && bound.total != Some(done.tally.ops);
        self.note(contents, &done.tally, is_cut);
        self.check_sums(contents, &done.tally)?;
        Outcome {
            engine: self.engine,
            load: self.load,
            companion_rate: self.args.companion_rate(self.data),
            live_bytes: contents.live_bytes,
            is_repeatable: self.is_repeatable(contents, is_cut),
            dropped_caches: self.dropped_caches,
            before,
            after,
            done,
        }
        .report()
    }

    /// Updates the contents after the load. `is_cut`: the clock has ended it.
    fn note(&self, contents: &mut Contents, tally: &Tally, is_cut: bool) {
        let changes = self.load.changes();
        let is_shared = self.threads() > 1;
        // Its writes, or the last of several writes, depend on the clock or on the order of threads. The writes of
        // other loads do not depend on the order.
        let is_ordered = match self.load.work() {
            Work::Records(_) | Work::Append | Work::MixGraph | Work::Count(_) | Work::Post(_) => {
                is_shared
            }
            _ => false,
        };
        contents.is_by_chance |=
            changes && (is_cut || is_ordered) || self.load.companion() == Some(Companion::Writer);
        contents.live_bytes = contents
            .live_bytes
            .and_then(|bytes| (bytes + tally.added_bytes).checked_sub(tally.garbage_bytes));
        let has_one_size = self.data.has_one_size() && contents.sizes_are_known;
        if self.load.overwrites_indexes() && !has_one_size {
            // The sizes of overwritten and deleted values are unknown.
            contents.live_bytes = None;
        }
    }

    /// Checks the sums of a store of counters or postings after the load, if it changed them.
    fn check_sums(&self, contents: &mut Contents, tally: &Tally) -> Result<()> {
        let Some(before) = contents.sums.filter(|_| self.load.changes()) else {
            return Ok(());
        };
        let sums = Sums::of(self.engine, self.data, self.load.contents())?;
        sums.check(before, self.load, tally, self.threads() > 1)?;
        contents.sums = Some(sums);
        contents.live_bytes = Some(sums.bytes);
        Ok(())
    }

    /// Whether the reads of the load follow from the seed. `is_cut`: the clock has ended it.
    fn is_repeatable(&self, contents: &Contents, is_cut: bool) -> bool {
        let is_shared = self.threads() > 1;
        let beside_writes = self.load.reads_beside_writes() && is_shared;
        !contents.is_by_chance && !is_cut && !beside_writes
    }

    /// The threads of the load.
    fn threads(&self) -> u64 {
        if self.load.is_alone() {
            1
        } else {
            self.args.threads
        }
    }

    /// Runs the warm-up, if the arguments have one and the load changes nothing.
    fn warm_up(&self, task: &Task<'_>) -> Result<()> {
        let changes_nothing = self.load.only_reads() && !self.load.writes_indexes();
        let Some(warm_up) = self.args.warm_up.filter(|_| changes_nothing) else {
            return Ok(());
        };
        let bound = match warm_up {
            WarmUp::Ops(ops) => Bound {
                total: Some(ops),
                duration: None,
            },
            WarmUp::Seconds(seconds) => Bound {
                total: None,
                duration: Some(seconds),
            },
        };
        let job = Self {
            stream: mix(self.stream),
            ..*self
        };
        // The warm-up requests other records than the load.
        let records = self.load.workload().zip(task.contents.records.as_ref());
        let requests = records.map(|(workload, records)| {
            Requests::new(self.data, workload, job.stream, records.present())
        });
        let task = Task {
            requests: requests.as_ref(),
            ..*task
        };
        job.work(&task, &bound, &Gauge::of(self.threads()))
            .map(drop)
    }

    /// Runs the load and its watcher.
    fn measure(&self, task: &Task<'_>, bound: &Bound) -> Result<Done> {
        let gauges = Gauge::of(self.threads());
        let watched = Watched {
            load: self.load.name(),
            total: bound.total,
            duration: bound.duration,
        };
        let watcher = Watcher::new(self.engine, &gauges, watched, self.progress)?;
        let phase = Phase::default();
        thread::scope(|scope| {
            let watching = scope.spawn(|| watcher.run(&phase));
            let start = Instant::now();
            let worked = self.work(task, bound, &gauges).and_then(|worked| {
                let seconds = start.elapsed().as_secs_f64();
                phase.settle(watching.thread());
                let mut settled = start.elapsed();
                if !self.args.unsettled {
                    self.engine.settle()?;
                    settled = start.elapsed().saturating_sub(self.engine.idled());
                }
                Ok((worked, seconds, settled.as_secs_f64().max(seconds)))
            });
            phase.end(watching.thread());
            let series = joined(watching);
            let ((tally, companion), seconds, settled_seconds) = worked?;
            Ok(Done {
                tally,
                companion,
                seconds,
                settled_seconds,
                series: series?,
            })
        })
    }

    /// The requests of a load on records. Reserves capacity for its inserts.
    fn requests(&self, contents: &mut Contents, bound: &Bound) -> Result<Option<Requests<'_>>> {
        let Some(records) = &mut contents.records else {
            return Ok(None);
        };
        let (requests, inserts) = match self.load.workload() {
            Some(workload) => {
                let present = records.present();
                let requests = Requests::new(self.data, workload, self.stream, present);
                let inserts = match bound.total {
                    Some(total) => workload.insertions_most(total),
                    None => 0,
                };
                (Some(requests), inserts)
            }
            None if self.load == Load::YcsbLoad => (None, self.args.num),
            None => return Ok(None),
        };
        self.data.check_records(records.present() + inserts)?;
        records.make_space(inserts)?;
        if self.load == Load::YcsbLoad {
            records.take_all();
        }
        Ok(requests)
    }

    /// Runs the steps of the load and its companion. Returns the tallies of its own threads and of the companion.
    fn work(
        &self,
        task: &Task<'_>,
        bound: &Bound,
        gauges: &[Gauge],
    ) -> Result<(Tally, Option<Tally>)> {
        let contents = task.contents;
        let total = bound.total.unwrap_or(STEPS_MAX);
        let alone = match self.load.work() {
            Work::Store(maintenance) => {
                self.on_threads(bound, gauges, |lane| self.maintenance(maintenance, lane))
            }
            Work::Machine(machine) => {
                let run = |lane: &Lane<'_>| machine::run(machine, self.data, lane);
                self.on_threads(bound, gauges, run)
            }
            Work::Replay => {
                let path = self.args.trace.as_deref().unwrap_or(Path::new(""));
                let run = |lane: &Lane<'_>| {
                    replay::run(self.engine, self.data, &mut Trace::open(path)?, lane)
                };
                self.on_threads(bound, gauges, run)
            }
            Work::Insert | Work::Records(_) => {
                let Some(records) = &contents.records else {
                    return Ok((Tally::default(), None));
                };
                let records = RecordWorker {
                    engine: self.engine,
                    data: self.data,
                    records,
                };
                self.on_threads(bound, gauges, |lane| match task.requests {
                    Some(requests) => records.run(requests, lane),
                    None => records.load(lane),
                })
            }
            _ => {
                let worker = Worker {
                    engine: self.engine,
                    data: self.data,
                    args: self.args,
                    load: self.load,
                    live: contents.live.as_ref(),
                    stream: self.stream,
                    generation: self.generation,
                    indexes: self.args.indexes(self.load),
                    numbers: match contents.records {
                        Some(_) => self.data.records_max(),
                        None => self.data.num(),
                    },
                    sizes_are_known: contents.sizes_are_known,
                    mixture: task.mixture,
                };
                let work = || self.on_threads(bound, gauges, |lane| worker.run(lane, total));
                match self.load.companion() {
                    None => work(),
                    Some(companion) => {
                        let (own, beside) = self.with_companion(companion, &worker, work)?;
                        return Ok((own, Some(beside)));
                    }
                }
            }
        };
        Ok((alone?, None))
    }

    /// Runs a maintenance operation.
    fn maintenance(&self, maintenance: Maintenance, lane: &Lane<'_>) -> Result<Tally> {
        let kind = match maintenance {
            Maintenance::Compact => Operation::Compact,
            Maintenance::Flush => Operation::Flush,
            Maintenance::Settle | Maintenance::Show => Operation::Settle,
        };
        lane.each(kind, |_, _| match maintenance {
            Maintenance::Compact => self.engine.compact(),
            Maintenance::Flush => self.engine.flush(),
            Maintenance::Settle => self.engine.settle(),
            Maintenance::Show => Ok(()),
        })
    }

    /// Divides the steps of the load among the threads, each with its gauge.
    fn on_threads(
        &self,
        bound: &Bound,
        gauges: &[Gauge],
        work: impl Fn(&Lane<'_>) -> Result<Tally> + Sync,
    ) -> Result<Tally> {
        let total = bound.total.unwrap_or(STEPS_MAX);
        let threads = gauges.len() as u64;
        let fraction = |thread: u64| total / threads * thread + (total % threads).min(thread);
        let duration = bound.duration.map(Duration::from_secs_f64);
        let deadline = duration.and_then(|duration| Instant::now().checked_add(duration));
        let rate = self.args.rate_of(self.load, self.data);
        let lanes = (0..).zip(gauges).map(|(thread, gauge)| Lane {
            steps: fraction(thread)..fraction(thread + 1),
            deadline,
            rate: rate.shared(threads),
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

    /// Runs `work` and `companion` concurrently.
    fn with_companion(
        &self,
        companion: Companion,
        worker: &Worker<'_, E>,
        work: impl FnOnce() -> Result<Tally>,
    ) -> Result<(Tally, Tally)> {
        let stop = AtomicBool::new(false);
        let rate = self.args.companion_rate(self.data);
        thread::scope(|scope| {
            let beside = scope.spawn(|| match companion {
                Companion::Writer => worker.write_steadily(rate, &stop),
                Companion::Scanner => worker.scan_on(&stop),
            });
            let tally = work();
            stop.store(true, Ordering::Relaxed);
            let beside = joined(beside)?;
            let mut tally = tally?;
            tally.user_bytes += beside.user_bytes;
            tally.returned_bytes += beside.returned_bytes;
            tally.added_bytes += beside.added_bytes;
            Ok((tally, beside))
        })
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "a thread of the bench failed")))
}
