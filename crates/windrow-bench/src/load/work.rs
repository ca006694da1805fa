//! The inner loops of the loads of `db_bench` that write, for one thread, and the parts that they share with the
//! loops that read. They allocate no memory per operation.
//!
//! The live set gains a key after its write and loses it before its delete. A read of a key that was in the set
//! before the read must find it, also with concurrent writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow::Result;

use crate::data::permutation::Permutation;
use crate::load::contents::LiveSet;
use crate::load::errors::wrong;
use crate::load::kinds::{Keys, LARGE_VALUE_BYTES, Work};
use crate::measure::rate_limiter::{Rate, RateLimiter, Turn};
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{BenchArgs, DataSet, Engine, Entry, Load, Mixture};

/// The size up to which appends grow a value.
const APPENDED_BYTES_MAX: usize = 1 << 20;
/// Entries in a batch of fillbatch.
const FILL_BATCH: u64 = 1000;

/// One thread of a load.
#[derive(Debug)]
pub(crate) struct Worker<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) data: &'a DataSet,
    pub(crate) args: &'a BenchArgs,
    pub(crate) load: Load,
    /// The live keys, if the run knows them.
    pub(crate) live: Option<&'a LiveSet>,
    /// The random stream of this load.
    pub(crate) stream: u64,
    /// The generation of the writes of this load.
    pub(crate) generation: u16,
    /// The number of first indexes from which the load picks random keys.
    pub(crate) indexes: u64,
    /// The bound of the numbers in the keys of the store.
    pub(crate) numbers: u64,
    /// All values have sizes of the data set.
    pub(crate) sizes_are_known: bool,
    /// The mixture of mixgraph, if that is the load.
    pub(crate) mixture: Option<&'a Mixture>,
}

/// Buffers for a key and a value.
#[derive(Debug, Default)]
pub(crate) struct EntryBuffers {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl EntryBuffers {
    /// Bytes of the key and the value.
    pub(crate) fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

impl<E: Engine> Worker<'_, E> {
    /// Runs the part `lane` of the `total` steps of the load.
    pub(crate) fn run(&self, lane: &Lane<'_>, total: u64) -> Result<Tally> {
        match self.load.work() {
            Work::Write(keys) => self.write(lane, keys),
            Work::Update => self.update(lane),
            Work::Append => self.append(lane),
            Work::Delete(keys) => self.delete(lane, keys),
            Work::Read(keys) => self.read(lane, keys),
            Work::MultiRead => self.multi_read(lane),
            Work::ReadOrWrite => self.read_or_write(lane),
            Work::Walk(direction) => self.walk(lane, total, direction),
            Work::Open => self.open(lane),
            Work::Seek(nexts, direction) => self.seek(lane, nexts, direction),
            Work::Count(counting) => self.count(lane, counting),
            Work::Post(posting) => self.post(lane, posting),
            Work::BulkLoad => self.bulk_load(lane),
            Work::Ingest => self.ingest(lane),
            Work::Filter => self.compact_filtered(lane),
            Work::Size => self.size(lane),
            Work::DeleteRange => self.delete_middle(lane),
            Work::SeekAcross => self.seek_across(lane),
            Work::Pop(queues) => self.pop(lane, queues),
            Work::MixGraph => match self.mixture {
                Some(mixture) => self.mix(lane, mixture),
                None => Ok(Tally::default()),
            },
            // Other files have these loops.
            Work::Replay | Work::Insert | Work::Records(_) | Work::Store(_) | Work::Machine(_) => {
                Ok(Tally::default())
            }
        }
    }

    /// The random index of a step.
    #[inline]
    pub(crate) fn random(&self, step: u64) -> u64 {
        self.data.random_below(self.stream, step, self.indexes)
    }

    /// Whether a read must find the key of `index`; `None` if that is unknown.
    #[inline]
    pub(crate) fn is_there(&self, index: u64) -> Option<bool> {
        self.live.map(|live| live.contains(index))
    }

    /// Checks that a read found a key that `was` live before the read, and no other.
    #[inline]
    pub(crate) fn check_found(&self, key: &[u8], was: Option<bool>, is_found: bool) -> Result<()> {
        match was {
            Some(true) if !is_found => Err(wrong(key, "is not found")),
            Some(false) if is_found && !self.load.reads_beside_writes() => {
                Err(wrong(key, "is found but was never written or was deleted"))
            }
            _ => Ok(()),
        }
    }

    /// Checks a value and adds it to the checksum.
    #[inline]
    pub(crate) fn check_value(&self, key: &[u8], value: &[u8], tally: &mut Tally) -> Result<()> {
        let checked = if self.sizes_are_known {
            self.data.check(key, value)?
        } else {
            self.data.check_bytes(key, value)?
        };
        tally.returned(key, value, checked.fingerprint);
        Ok(())
    }

    /// Gets the key of `index`.
    #[inline]
    pub(crate) fn get(
        &self,
        index: u64,
        buffers: &mut EntryBuffers,
        tally: &mut Tally,
    ) -> Result<bool> {
        self.data.key(index, &mut buffers.key);
        let was = self.is_there(index);
        let is_found = self.engine.get(&buffers.key, &mut buffers.value)?;
        self.check_found(&buffers.key, was, is_found)?;
        if is_found {
            self.check_value(&buffers.key, &buffers.value, tally)?;
            tally.found += 1;
        }
        Ok(is_found)
    }

    /// Writes the key of `index`, with a value of `size` bytes or of one of the data set's sizes.
    #[inline]
    pub(crate) fn put(
        &self,
        index: u64,
        size: Option<usize>,
        buffers: &mut EntryBuffers,
        tally: &mut Tally,
    ) -> Result<()> {
        let EntryBuffers { key, value } = buffers;
        self.make(index, size, key, value);
        match self.load {
            Load::FillSync => self.engine.put_synced(key, value)?,
            Load::FillExpiring => self.engine.put_expiring(key, value)?,
            _ => self.engine.put(key, value)?,
        }
        self.note(index, key.len() + value.len(), tally);
        Ok(())
    }

    /// Makes the key of `index` and its value in this load.
    #[inline]
    pub(crate) fn make(
        &self,
        index: u64,
        size: Option<usize>,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) {
        self.data.key(index, key);
        let large = (self.load == Load::Fill100K).then_some(LARGE_VALUE_BYTES);
        match size.or(large) {
            Some(size) => self.data.value_of_size(key, self.generation, size, value),
            None => self.data.value(key, self.generation, value),
        }
    }

    /// Records the write of the key of `index`.
    #[inline]
    pub(crate) fn note(&self, index: u64, bytes: usize, tally: &mut Tally) {
        tally.user_bytes += bytes as u64;
        if self.live.is_some_and(|live| live.insert(index)) {
            tally.added_bytes += bytes as u64;
        }
    }

    fn write(&self, lane: &Lane<'_>, keys: Keys) -> Result<Tally> {
        let shuffle = Permutation::new(self.data.num(), self.stream);
        let pick = |step| match keys {
            Keys::InOrder => step,
            Keys::Shuffled => shuffle.forward(step),
            _ => self.random(step),
        };
        let batch = match self.load {
            Load::FillBatch => FILL_BATCH,
            Load::FillSync | Load::FillExpiring => 1,
            _ => self.args.batch_size,
        };
        if batch > 1 {
            return self.write_batches(lane, batch, pick);
        }
        let mut buffers = EntryBuffers::default();
        lane.each(Operation::Write, |step, tally| {
            self.put(pick(step), None, &mut buffers, tally)
        })
    }

    fn write_batches(
        &self,
        lane: &Lane<'_>,
        batch: u64,
        pick: impl Fn(u64) -> u64,
    ) -> Result<Tally> {
        let mut entries: Vec<Entry> = (0..batch).map(|_| Entry::default()).collect();
        let mut steps = lane.steps.clone();
        let mut watch = Stopwatch::new(lane);
        while watch.continues(batch) {
            let first = steps.start;
            let mut filled = 0;
            for (entry, step) in entries.iter_mut().zip(steps.by_ref()) {
                self.make(pick(step), None, &mut entry.key, &mut entry.value);
                filled += 1;
            }
            if filled == 0 {
                break;
            }
            let entries = &entries[..filled];
            self.engine.put_batch(entries)?;
            for (entry, step) in entries.iter().zip(first..) {
                let bytes = entry.key.len() + entry.value.len();
                self.note(pick(step), bytes, &mut watch.tally);
            }
            watch.done(Operation::BatchWrite, filled as u64)?;
        }
        Ok(watch.tally)
    }

    fn update(&self, lane: &Lane<'_>) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        lane.each(Operation::ReadModifyWrite, |step, tally| {
            let index = self.random(step);
            self.get(index, &mut buffers, tally)?;
            self.put(index, None, &mut buffers, tally)
        })
    }

    fn append(&self, lane: &Lane<'_>) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        lane.each(Operation::ReadModifyWrite, |step, tally| {
            let index = self.random(step);
            let is_found = self.get(index, &mut buffers, tally)?;
            let before = if is_found { buffers.value.len() } else { 0 };
            let more = self.data.value_size(&buffers.key, self.generation);
            let size = if before < APPENDED_BYTES_MAX {
                before + more
            } else {
                more
            };
            self.put(index, Some(size), &mut buffers, tally)
        })
    }

    fn delete(&self, lane: &Lane<'_>, keys: Keys) -> Result<Tally> {
        let mut key = Vec::new();
        lane.each(Operation::Delete, |step, tally| {
            let index = match keys {
                Keys::InOrder => step % self.data.num(),
                _ => self.random(step),
            };
            self.remove(index, &mut key, tally);
            tally.user_bytes += key.len() as u64;
            self.engine.delete(&key)
        })
    }

    /// Reads or writes a key, by the requested percentage.
    fn read_or_write(&self, lane: &Lane<'_>) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        let mut watch = Stopwatch::new(lane);
        for step in lane.steps.clone() {
            if !watch.continues(1) {
                break;
            }
            let mut rng = self.data.rng(self.stream, step);
            let index = rng.below(self.data.num());
            let kind = if rng.below(100) < self.args.read_write_percent {
                self.get(index, &mut buffers, &mut watch.tally)?;
                Operation::Read
            } else {
                self.put(index, None, &mut buffers, &mut watch.tally)?;
                Operation::Write
            };
            watch.done(kind, 1)?;
        }
        Ok(watch.tally)
    }

    /// Writes random keys at `rate` per second until `stop`.
    pub(crate) fn write_steadily(&self, rate: u64, stop: &AtomicBool) -> Result<Tally> {
        // The longest time that the end of the load waits for this thread.
        const NAP_MAX: Duration = Duration::from_micros(500);
        let mut buffers = EntryBuffers::default();
        let mut tally = Tally::default();
        let mut rate_limiter = RateLimiter::new(Rate::Steady(rate as f64));
        // Another stream than that of the readers.
        let stream = !self.stream;
        while !stop.load(Ordering::Relaxed) {
            match rate_limiter.turn(1) {
                Turn::Begin { late } => {
                    let mut start = Instant::now();
                    let index = self.data.random_index(stream, tally.ops);
                    self.put(index, None, &mut buffers, &mut tally)?;
                    tally.record(Operation::Write, &mut start, 1, late)?;
                }
                Turn::Sleep(nap) => {
                    thread::sleep(nap.min(NAP_MAX));
                    rate_limiter.wake();
                }
            }
        }
        Ok(tally)
    }
}
