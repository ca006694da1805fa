//! Runs loads one after the other and reports each.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use windrow::{Error, ErrorKind, Result};

use crate::contents::Contents;
use crate::data::mix;
use crate::record_work::RecordWorker;
use crate::tally::Tally;
use crate::work::Worker;
use crate::ycsb::{Requests, Workload};
use crate::{BenchArgs, Counters, DataSet, Engine, Load, Report, Scan, TrafficShape};

/// Runs the loads of `args` on engine `E`, whose store `open` opens or creates in a folder; `each`
/// gets every report as soon as it is there.
///
/// # Errors
/// What the engine reports; `InvalidArgument` for arguments that contradict each other;
/// `Corruption` for a read that returned what it must not.
pub fn run<E: Engine>(
    args: &BenchArgs,
    open: impl Fn(&Path) -> Result<E>,
    mut each: impl FnMut(&Report) -> Result<()>,
) -> Result<()> {
    let data = args.data_set()?;
    if args.loads.iter().any(|load| load.is_ycsb()) && !data.tells_generations() {
        return Err(Error::invalid_argument(
            "YCSB's loads need values of at least 8 bytes, which say which write they are of",
        ));
    }
    let temporary = match &args.db {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new()
                .prefix("windrow-bench-")
                .tempdir()
                .map_err(|error| Error::io("create a folder in", &std::env::temp_dir(), error))?,
        ),
    };
    let parent = match (&args.db, &temporary) {
        (Some(folder), _) => folder.as_path(),
        (None, Some(folder)) => folder.path(),
        (None, None) => Path::new("."),
    };
    let folder = parent.join(E::NAME);
    let mut contents = Contents::default();
    let mut engine: Option<E> = None;
    for (position, &load) in args.loads.iter().enumerate() {
        if load.is_fill() {
            if let Some(engine) = engine.take() {
                engine.close()?;
            }
            empty::<E>(&folder)?;
            contents = Contents::nothing(load, &data);
        }
        let open = match engine.take() {
            Some(engine) => engine,
            // Nothing is created for a load that cannot run.
            None if load.needs_data() && !is_store::<E>(&folder) => return Err(no_data(load)),
            None => open(&folder)?,
        };
        if load.needs_data() && !open.scan()?.seek(&[0])? {
            return Err(no_data(load));
        }
        let job = Job {
            engine: &open,
            args,
            data: &data,
            load,
            folder: &folder,
            stream: stream(&args.loads[..position], load),
            generation: u16::try_from(position).unwrap_or(u16::MAX),
        };
        each(&job.run(&mut contents)?)?;
        engine = Some(open);
    }
    engine.map_or(Ok(()), Engine::close)
}

/// Names the random stream of `load`: another one each time that a run repeats a load.
fn stream(before: &[Load], load: Load) -> u64 {
    let repetition = before.iter().filter(|&&other| other == load).count() as u64;
    load.name()
        .bytes()
        .fold(repetition, |name, byte| mix(name ^ u64::from(byte)))
}

fn no_data(load: Load) -> Error {
    let fills = if load.is_ycsb() {
        "ycsb-load"
    } else {
        "fillseq or fillrandom"
    };
    Error::invalid_argument(format!("{} needs data: put {fills} before it", load.name()))
}

/// Whether a store of the engine is in `folder`.
fn is_store<E: Engine>(folder: &Path) -> bool {
    folder.join(E::MARKER).is_file()
}

/// Makes `folder` an empty one. A store that is there goes; anything else stays, and is an error.
fn empty<E: Engine>(folder: &Path) -> Result<()> {
    if is_store::<E>(folder) {
        fs::remove_dir_all(folder).map_err(|error| Error::io("remove", folder, error))?;
    }
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let mut left = fs::read_dir(folder).map_err(|error| Error::io("list", folder, error))?;
    if left.next().is_some() {
        return Err(Error::invalid_argument(format!(
            "{} is not empty and holds no store: a fill would remove what is in it",
            folder.display()
        )));
    }
    Ok(())
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

/// One load on an open engine.
struct Job<'a, E> {
    engine: &'a E,
    args: &'a BenchArgs,
    data: &'a DataSet,
    load: Load,
    folder: &'a Path,
    stream: u64,
    generation: u16,
}

impl<E: Engine> Job<'_, E> {
    fn run(&self, contents: &mut Contents) -> Result<Report> {
        contents.prepare(self.load, self.engine, self.data)?;
        let requests = self.requests(contents)?;
        let before = self.engine.counters()?;
        self.engine.merges();
        let traffic = self.engine.traffic();
        let start = Instant::now();
        let tally = self.work(contents, requests.as_ref())?;
        let seconds = start.elapsed().as_secs_f64();
        if !self.args.unsettled {
            self.engine.settle()?;
        }
        let settled_seconds = start.elapsed().as_secs_f64();
        let after = self.engine.counters()?;
        let levels = self.engine.levels()?;

        let threads = self.args.threads;
        let changes = self.load.workload().is_some_and(Workload::writes);
        contents.is_by_chance |= self.load == Load::ReadWhileWriting || changes && threads > 1;
        contents.live_bytes = contents
            .live_bytes
            .map(|bytes| bytes + tally.born_bytes - tally.dead_bytes);
        if self.load.overwrites_indexes() && !self.data.has_one_size() {
            // What was overwritten or deleted may have had any size.
            contents.live_bytes = None;
        }
        let disk_bytes = bytes_of_files(self.folder)?;
        let written_bytes = after.written_bytes - before.written_bytes;
        let read_bytes = after.read_bytes - before.read_bytes;
        let per_given = |bytes: u64| match tally.given_bytes {
            0 => 0.0,
            given => bytes as f64 / given as f64,
        };
        let block_reads = difference(before, after, |counters| counters.block_reads);
        let seeks = difference(before, after, |counters| counters.seeks);
        let (latency, operations) = tally.latencies()?;
        let per_op = |count: u64| count as f64 / tally.ops.max(1) as f64;
        Ok(Report {
            name: self.load.name(),
            engine: E::NAME,
            ops: tally.ops,
            seconds,
            settled_seconds,
            ops_per_second: tally.ops as f64 / seconds.max(1e-9),
            latency,
            operations,
            found: tally.found,
            checksum: format!("{:016x}", tally.checksum),
            repeatable: !contents.is_by_chance,
            write_amplification: per_given(written_bytes),
            io_amplification: per_given(written_bytes + read_bytes),
            block_reads,
            block_reads_per_op: block_reads.map(per_op),
            runs_per_seek: seeks
                .filter(|&seeks| seeks > 0)
                .zip(difference(before, after, |counters| counters.runs_visited))
                .map(|(seeks, runs)| runs as f64 / seeks as f64),
            values_apart: after.values_apart.since(before.values_apart),
            filter_probes: difference(before, after, |counters| counters.filter_probes),
            filter_false_positives: difference(before, after, |counters| {
                counters.filter_false_positives
            }),
            read_bytes,
            written_bytes,
            merges: self.engine.merges(),
            traffic: traffic_since(&traffic, self.engine.traffic()),
            stalls: difference(before, after, |counters| counters.stalls),
            stall_seconds: after.stall_seconds - before.stall_seconds,
            stalls_by_cause: self.engine.stalls(),
            disk_bytes,
            live_bytes: contents.live_bytes,
            space_amplification: contents
                .live_bytes
                .filter(|&live| live > 0)
                .map(|live| disk_bytes as f64 / live as f64),
            levels,
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
    fn work(&self, contents: &Contents, requests: Option<&Requests<'_>>) -> Result<Tally> {
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
            rate: self.rate(),
        };
        let records = contents.records.as_ref().map(|records| RecordWorker {
            engine: self.engine,
            data: self.data,
            records,
            rate: self.rate(),
        });
        let total = self.total();
        match (self.load, &records, requests) {
            (Load::YcsbLoad, Some(records), _) => self.on_threads(|steps| records.load(steps)),
            (_, Some(records), Some(requests)) => {
                self.on_threads(|steps| records.run(requests, steps))
            }
            (Load::ReadWhileWriting, ..) => self.beside_a_writer(&worker),
            (load, ..) => self.on_threads(|steps| worker.run(load, steps, total)),
        }
    }

    /// What each thread does in a second, at most.
    fn rate(&self) -> Option<f64> {
        let rate = self.args.rate?;
        Some(rate as f64 / self.args.threads as f64)
    }

    /// Shares the steps of the load out to the threads.
    fn on_threads(&self, work: impl Fn(Range<u64>) -> Result<Tally> + Sync) -> Result<Tally> {
        let total = self.total();
        let threads = self.args.threads;
        if threads == 1 {
            return work(0..total);
        }
        let share = |thread: u64| total / threads * thread + (total % threads).min(thread);
        let work = &work;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || work(share(thread)..share(thread + 1))))
                .collect();
            let mut sum = Tally::default();
            for worker in workers {
                sum.add(&joined(worker)?)?;
            }
            Ok(sum)
        })
    }

    fn beside_a_writer(&self, worker: &Worker<'_, E>) -> Result<Tally> {
        let stop = AtomicBool::new(false);
        let total = self.total();
        thread::scope(|scope| {
            let writer = scope.spawn(|| worker.write_steadily(self.args.write_rate, &stop));
            let tally = self.on_threads(|steps| worker.run(self.load, steps, total));
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

fn difference(
    before: Counters,
    after: Counters,
    counter: impl Fn(&Counters) -> Option<u64>,
) -> Option<u64> {
    Some(counter(&after)? - counter(&before)?)
}
