//! The inner loops: what one thread does in a load. Nothing here allocates per operation.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use windrow::{Error, Result};

use crate::{DataSet, Engine, Load, Scan};

/// Steps of a walk that share one reading of the clock: a step takes about as long as that.
const WALK_STEPS: u64 = 64;

/// What a thread counted.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) ops: u64,
    pub(crate) found: u64,
    /// A wrapping sum, so that the order of threads does not matter.
    pub(crate) checksum: u64,
    /// Bytes of keys and values given to the engine.
    pub(crate) given_bytes: u64,
    /// Nanoseconds.
    pub(crate) latencies: Histogram<u64>,
}

impl Tally {
    pub(crate) fn new() -> Result<Self> {
        let hour = 3_600_000_000_000;
        let latencies = Histogram::new_with_bounds(1, hour, 3)
            .map_err(|error| Error::invalid_argument(error.to_string()))?;
        Ok(Self {
            ops: 0,
            found: 0,
            checksum: 0,
            given_bytes: 0,
            latencies,
        })
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        self.ops += other.ops;
        self.found += other.found;
        self.checksum = self.checksum.wrapping_add(other.checksum);
        self.given_bytes += other.given_bytes;
        self.latencies
            .add(&other.latencies)
            .map_err(|error| Error::invalid_argument(error.to_string()))
    }
}

/// One thread of a load.
#[derive(Debug)]
pub(crate) struct Worker<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) data: &'a DataSet,
    /// Names the random stream of this load.
    pub(crate) stream: u64,
    /// Marks what this load writes.
    pub(crate) generation: u16,
}

impl<E: Engine> Worker<'_, E> {
    /// Runs the steps `steps` of the `total` of `load`.
    pub(crate) fn run(&self, load: Load, steps: Range<u64>, total: u64) -> Result<Tally> {
        match load {
            Load::FillSeq => self.write(steps, |step| step),
            Load::FillRandom | Load::Overwrite => self.write(steps, |step| self.random(step)),
            Load::DeleteRandom => self.delete(steps),
            Load::ReadRandom | Load::ReadWhileWriting => self.read(steps, DataSet::key),
            Load::ReadMissing => self.read(steps, DataSet::missing_key),
            Load::ReadSeq => self.walk(&steps, total),
            Load::SeekRandom => self.seek(steps, 0),
            Load::Seek10 => self.seek(steps, 10),
            Load::Seek100 => self.seek(steps, 100),
        }
    }

    fn random(&self, step: u64) -> u64 {
        self.data.random_index(self.stream, step)
    }

    fn write(&self, steps: Range<u64>, index: impl Fn(u64) -> u64) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        timed(steps, |step, tally| {
            self.data.key(index(step), &mut key);
            self.data.value(&key, self.generation, &mut value);
            tally.given_bytes += (key.len() + value.len()) as u64;
            self.engine.put(&key, &value)
        })
    }

    fn delete(&self, steps: Range<u64>) -> Result<Tally> {
        let mut key = Vec::new();
        timed(steps, |step, tally| {
            self.data.key(self.random(step), &mut key);
            tally.given_bytes += key.len() as u64;
            self.engine.delete(&key)
        })
    }

    fn read(
        &self,
        steps: Range<u64>,
        make_key: impl Fn(&DataSet, u64, &mut Vec<u8>),
    ) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        timed(steps, |step, tally| {
            make_key(self.data, self.random(step), &mut key);
            if self.engine.get(&key, &mut value)? {
                self.account(&key, &value, tally)?;
                tally.found += 1;
            }
            Ok(())
        })
    }

    fn seek(&self, steps: Range<u64>, nexts: u32) -> Result<Tally> {
        let mut key = Vec::new();
        let mut scan = self.engine.scan()?;
        timed(steps, |step, tally| {
            self.data.key(self.random(step), &mut key);
            let mut valid = scan.seek(&key)?;
            if valid && scan.key() == key {
                tally.found += 1;
            }
            for _ in 0..nexts {
                if !valid {
                    break;
                }
                self.account(scan.key(), scan.value(), tally)?;
                valid = scan.next()?;
            }
            if valid {
                self.account(scan.key(), scan.value(), tally)?;
            }
            Ok(())
        })
    }

    /// Walks over at most `steps` entries. Each thread has its own part of the key space, found by
    /// the place of its steps among the `total`; the last one goes on to the end.
    fn walk(&self, steps: &Range<u64>, total: u64) -> Result<Tally> {
        let boundary = |step: u64| {
            let share = u128::from(self.data.num()) * u128::from(step) / u128::from(total.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let (mut first, mut last) = (Vec::new(), Vec::new());
        self.data.key(boundary(steps.start), &mut first);
        self.data.key(boundary(steps.end), &mut last);
        let bounded = steps.end < total;
        let wanted = steps.end - steps.start;

        let mut tally = Tally::new()?;
        let mut start = Instant::now();
        let mut timed_ops = 0;
        let mut scan = self.engine.scan()?;
        let mut valid = scan.seek(&first)?;
        while valid && tally.ops < wanted && !(bounded && scan.key() >= last.as_slice()) {
            self.account(scan.key(), scan.value(), &mut tally)?;
            tally.ops += 1;
            if tally.ops % WALK_STEPS == 0 {
                record(&mut tally, &mut start, WALK_STEPS);
                timed_ops = tally.ops;
            }
            valid = scan.next()?;
        }
        let rest = tally.ops - timed_ops;
        if rest > 0 {
            record(&mut tally, &mut start, rest);
        }
        tally.found = tally.ops;
        Ok(tally)
    }

    fn account(&self, key: &[u8], value: &[u8], tally: &mut Tally) -> Result<()> {
        let fingerprint = self.data.check(key, value)?;
        tally.checksum = tally.checksum.wrapping_add(fingerprint);
        Ok(())
    }

    /// Writes random keys at `rate` per second until `stop`. Returns the bytes given.
    pub(crate) fn write_steadily(&self, rate: u64, stop: &AtomicBool) -> Result<u64> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (mut written, mut given_bytes) = (0, 0);
        let start = Instant::now();
        // Steps far from those of the readers, who share the stream.
        let base = 1 << 40;
        while !stop.load(Ordering::Relaxed) {
            let due = start.elapsed().as_micros() * u128::from(rate) / 1_000_000;
            while u128::from(written) < due && !stop.load(Ordering::Relaxed) {
                self.data.key(self.random(base + written), &mut key);
                self.data.value(&key, self.generation, &mut value);
                self.engine.put(&key, &value)?;
                given_bytes += (key.len() + value.len()) as u64;
                written += 1;
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(given_bytes)
    }
}

/// Runs `operation` for each step and records how long each took.
fn timed(
    steps: Range<u64>,
    mut operation: impl FnMut(u64, &mut Tally) -> Result<()>,
) -> Result<Tally> {
    let mut tally = Tally::new()?;
    let mut start = Instant::now();
    for step in steps {
        operation(step, &mut tally)?;
        tally.ops += 1;
        record(&mut tally, &mut start, 1);
    }
    Ok(tally)
}

/// Records `operations` since `start`, and starts anew.
fn record(tally: &mut Tally, start: &mut Instant, operations: u64) {
    let now = Instant::now();
    let nanos = u64::try_from((now - *start).as_nanos()).unwrap_or(u64::MAX);
    let each = (nanos / operations).clamp(1, tally.latencies.high());
    // Within the bounds by construction, so the histogram cannot refuse it.
    let recorded = tally.latencies.record_n(each, operations);
    debug_assert!(recorded.is_ok());
    *start = now;
}
