//! Runs loads one after the other and reports each.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use windrow::{Error, ErrorKind, Result};

use crate::data::mix;
use crate::work::{Tally, Worker};
use crate::{BenchArgs, Counters, DataSet, Engine, Load, Report, Scan};

/// Runs the loads of `args` on engine `E`; `each` gets every report as soon as it is there.
///
/// # Errors
/// What the engine reports; `InvalidArgument` for arguments that contradict each other;
/// `Corruption` for a read that returned what was never written.
pub fn run<E: Engine>(args: &BenchArgs, mut each: impl FnMut(&Report) -> Result<()>) -> Result<()> {
    let data = DataSet::new(args.num, args.key_size, args.value_size, args.seed)?;
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
    let mut engine: Option<E> = None;
    for (position, &load) in args.loads.iter().enumerate() {
        if load.is_fill() {
            if let Some(engine) = engine.take() {
                engine.close()?;
            }
            empty(&folder)?;
        }
        let open = match engine.take() {
            Some(engine) => engine,
            // Nothing is created for a load that cannot run.
            None if load.needs_data() && !is_store(&folder) => return Err(no_data(load)),
            None => E::open(&folder, args)?,
        };
        if load.needs_data() && !open.scan()?.seek(&[0])? {
            return Err(no_data(load));
        }
        let job = Job {
            engine: &open,
            args,
            data: &data,
            load,
            stream: stream(&args.loads[..position], load),
            generation: u16::try_from(position).unwrap_or(u16::MAX),
        };
        each(&job.run()?)?;
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
    Error::invalid_argument(format!(
        "{} needs data: put fillseq or fillrandom before it",
        load.name()
    ))
}

/// Whether a store is in `folder`: each of the engines keeps a file of this name.
fn is_store(folder: &Path) -> bool {
    folder.join("CURRENT").is_file()
}

/// Makes `folder` an empty one. A store that is there goes; anything else stays, and is an error.
fn empty(folder: &Path) -> Result<()> {
    if is_store(folder) {
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

/// One load on an open engine.
struct Job<'a, E> {
    engine: &'a E,
    args: &'a BenchArgs,
    data: &'a DataSet,
    load: Load,
    stream: u64,
    generation: u16,
}

impl<E: Engine> Job<'_, E> {
    fn run(&self) -> Result<Report> {
        let before = self.engine.counters()?;
        let start = Instant::now();
        let tally = if self.load == Load::ReadWhileWriting {
            self.beside_a_writer()?
        } else {
            self.on_threads()?
        };
        let seconds = start.elapsed().as_secs_f64();
        self.engine.settle()?;
        let settled_seconds = start.elapsed().as_secs_f64();
        let after = self.engine.counters()?;
        let levels = self.engine.levels()?;
        let written_bytes = after.written_bytes - before.written_bytes;
        let micros = |quantile| tally.latencies.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Report {
            name: self.load.name(),
            engine: E::NAME,
            ops: tally.ops,
            seconds,
            settled_seconds,
            ops_per_second: tally.ops as f64 / seconds.max(1e-9),
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            max_us: tally.latencies.max() as f64 / 1e3,
            found: tally.found,
            checksum: format!("{:016x}", tally.checksum),
            write_amplification: match tally.given_bytes {
                0 => 0.0,
                given => written_bytes as f64 / given as f64,
            },
            block_reads: difference(before, after, |counters| counters.block_reads),
            read_bytes: after.read_bytes - before.read_bytes,
            written_bytes,
            stalls: difference(before, after, |counters| counters.stalls),
            stall_seconds: after.stall_seconds - before.stall_seconds,
            levels,
        })
    }

    fn worker(&self) -> Worker<'_, E> {
        Worker {
            engine: self.engine,
            data: self.data,
            stream: self.stream,
            generation: self.generation,
        }
    }

    /// Shares the steps of the load out to the threads.
    fn on_threads(&self) -> Result<Tally> {
        let total = self.load.operations(self.args.num, self.args.ops);
        let threads = self.args.threads;
        if threads == 1 {
            return self.worker().run(self.load, 0..total, total);
        }
        let share = |thread: u64| total / threads * thread + (total % threads).min(thread);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    let steps = share(thread)..share(thread + 1);
                    scope.spawn(move || self.worker().run(self.load, steps, total))
                })
                .collect();
            let mut sum = Tally::new()?;
            for worker in workers {
                sum.add(&joined(worker)?)?;
            }
            Ok(sum)
        })
    }

    fn beside_a_writer(&self) -> Result<Tally> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| self.worker().write_steadily(self.args.write_rate, &stop));
            let tally = self.on_threads();
            stop.store(true, Ordering::Relaxed);
            let given_bytes = joined(writer)?;
            let mut tally = tally?;
            tally.given_bytes += given_bytes;
            Ok(tally)
        })
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::Io, "a thread of the bench failed")))
}

fn difference(
    before: Counters,
    after: Counters,
    counter: impl Fn(&Counters) -> Option<u64>,
) -> Option<u64> {
    Some(counter(&after)? - counter(&before)?)
}
