//! The inner loops of the loads of `db_bench`: what one thread does. Nothing here allocates per
//! operation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow::Result;

use crate::contents::LiveSet;
use crate::stopwatch::{Lane, Stopwatch};
use crate::tally::{Operation, Tally};
use crate::{DataSet, Engine, Load, Scan};

/// Steps of a walk that share one reading of the clock: a step takes about as long as that.
const WALK_STEPS: u64 = 64;

/// One thread of a load.
#[derive(Debug)]
pub(crate) struct Worker<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) data: &'a DataSet,
    /// The keys that are there, where the run knows them.
    pub(crate) live: Option<&'a LiveSet>,
    /// Names the random stream of this load.
    pub(crate) stream: u64,
    /// Marks what this load writes.
    pub(crate) generation: u16,
    /// The numbers in the keys of the store are below this.
    pub(crate) numbers: u64,
}

impl<E: Engine> Worker<'_, E> {
    /// Does the part `lane` of the `total` steps of `load`.
    pub(crate) fn run(&self, load: Load, lane: &Lane<'_>, total: u64) -> Result<Tally> {
        match load {
            Load::FillSeq => self.write(lane, |step| step),
            Load::FillRandom | Load::Overwrite => self.write(lane, |step| self.random(step)),
            Load::DeleteRandom => self.delete(lane),
            Load::ReadRandom | Load::ReadWhileWriting => self.read(lane, DataSet::key),
            Load::ReadMissing => self.read(lane, DataSet::missing_key),
            Load::ReadSeq => self.walk(lane, total),
            Load::SeekRandom => self.seek(lane, 0),
            Load::Seek10 => self.seek(lane, 10),
            Load::Seek100 => self.seek(lane, 100),
            // These work on records, not on indexes.
            Load::YcsbLoad
            | Load::YcsbA
            | Load::YcsbB
            | Load::YcsbC
            | Load::YcsbD
            | Load::YcsbE
            | Load::YcsbF => Ok(Tally::default()),
        }
    }

    fn random(&self, step: u64) -> u64 {
        self.data.random_index(self.stream, step)
    }

    fn write(&self, lane: &Lane<'_>, index: impl Fn(u64) -> u64) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        lane.each(Operation::Write, |step, tally| {
            self.put(index(step), &mut key, &mut value, tally)
        })
    }

    fn put(
        &self,
        index: u64,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<()> {
        self.data.key(index, key);
        self.data.value(key, self.generation, value);
        let bytes = key.len() + value.len();
        tally.given_bytes += bytes as u64;
        if self.live.is_some_and(|live| live.insert(index)) {
            tally.born_bytes += bytes as u64;
        }
        self.engine.put(key, value)
    }

    fn delete(&self, lane: &Lane<'_>) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        lane.each(Operation::Delete, |step, tally| {
            let index = self.random(step);
            self.data.key(index, &mut key);
            tally.given_bytes += key.len() as u64;
            if self.live.is_some_and(|live| live.remove(index)) {
                self.data.value(&key, self.generation, &mut value);
                tally.dead_bytes += (key.len() + value.len()) as u64;
            }
            self.engine.delete(&key)
        })
    }

    fn read(
        &self,
        lane: &Lane<'_>,
        make_key: impl Fn(&DataSet, u64, &mut Vec<u8>),
    ) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        lane.each(Operation::Read, |step, tally| {
            make_key(self.data, self.random(step), &mut key);
            if self.engine.get(&key, &mut value)? {
                self.account(&key, &value, tally)?;
                tally.found += 1;
            }
            Ok(())
        })
    }

    fn seek(&self, lane: &Lane<'_>, nexts: u32) -> Result<Tally> {
        let mut key = Vec::new();
        let mut scan = self.engine.scan()?;
        lane.each(Operation::Seek, |step, tally| {
            self.data.key(self.random(step), &mut key);
            let mut valid = scan.seek(&key)?;
            if valid && scan.key() == key {
                tally.found += 1;
            }
            for _ in 0..nexts {
                if !valid {
                    break;
                }
                self.account(scan.key(), scan.value()?, tally)?;
                valid = scan.next()?;
            }
            if valid {
                self.account(scan.key(), scan.value()?, tally)?;
            }
            Ok(())
        })
    }

    /// Walks over at most `steps` entries. Each thread has its own part of the key space, found by
    /// the place of its steps among the `total`; the last one goes on to the end.
    fn walk(&self, lane: &Lane<'_>, total: u64) -> Result<Tally> {
        let steps = &lane.steps;
        let boundary = |step: u64| {
            let share = u128::from(self.numbers) * u128::from(step) / u128::from(total.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let (mut first, mut last) = (Vec::new(), Vec::new());
        self.data.key(boundary(steps.start), &mut first);
        self.data.key(boundary(steps.end), &mut last);
        let bounded = steps.end < total;
        let wanted = steps.end - steps.start;

        let mut watch = Stopwatch::new(lane);
        let mut untimed = 0;
        let mut scan = self.engine.scan()?;
        let mut valid = scan.seek(&first)?;
        while valid && watch.tally.found < wanted && !(bounded && scan.key() >= last.as_slice()) {
            self.account(scan.key(), scan.value()?, &mut watch.tally)?;
            watch.tally.found += 1;
            untimed += 1;
            if untimed == WALK_STEPS {
                watch.done(Operation::Step, untimed)?;
                untimed = 0;
            }
            valid = scan.next()?;
        }
        if untimed > 0 {
            watch.done(Operation::Step, untimed)?;
        }
        Ok(watch.tally)
    }

    fn account(&self, key: &[u8], value: &[u8], tally: &mut Tally) -> Result<()> {
        let checked = self.data.check(key, value)?;
        tally.checksum = tally.checksum.wrapping_add(checked.fingerprint);
        Ok(())
    }

    /// Writes random keys at `rate` per second until `stop`.
    pub(crate) fn write_steadily(&self, rate: u64, stop: &AtomicBool) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut tally = Tally::default();
        let mut written = 0;
        let start = Instant::now();
        // Steps far from those of the readers, who share the stream.
        let base = 1 << 40;
        while !stop.load(Ordering::Relaxed) {
            let due = start.elapsed().as_micros() * u128::from(rate) / 1_000_000;
            while u128::from(written) < due && !stop.load(Ordering::Relaxed) {
                let index = self.random(base + written);
                self.put(index, &mut key, &mut value, &mut tally)?;
                written += 1;
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(tally)
    }
}
