//! The inner loops of the loads on counters, for one thread.
//!
//! A counter is a value of the data set whose first 8 bytes are a number, little-endian. `fillcounters` puts every
//! counter, so each get must find one. Every increment adds 1, so the sum of all counters shows a lost one
//! ([`Sums`](crate::load::sums::Sums)).

use windrow::Result;

use crate::data::random::{GOLDEN, mix};
use crate::load::errors::wrong;
use crate::load::kinds::Counting;
use crate::load::numbers::{NUMBER_BYTES, number_in, set_number};
use crate::load::work::{EntryBuffers, Worker};
use crate::measure::stopwatch::Lane;
use crate::measure::tally::{Operation, Tally};
use crate::{Engine, TransactionCalls};

/// The calls of a transaction, outside of one.
struct Alone<'a, E>(&'a E);

impl<E: Engine> TransactionCalls for Alone<'_, E> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.get(key, value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }
}

impl<E: Engine> Worker<'_, E> {
    pub(crate) fn count(&self, lane: &Lane<'_>, counting: Counting) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        let mut filler = Vec::new();
        match counting {
            Counting::Fill => lane.each(Operation::Write, |step, tally| {
                self.put_number(step, 0, &mut buffers, tally)
            }),
            Counting::Read => lane.each(Operation::Read, |step, tally| {
                let index = self.random(step);
                let number = self.get_number(index, &mut buffers, &mut filler)?;
                returned(index, number, &buffers, tally);
                Ok(())
            }),
            Counting::Put => lane.each(Operation::Write, |step, tally| {
                self.put_number(self.random(step), step, &mut buffers, tally)
            }),
            Counting::Merge => lane.each(Operation::Merge, |step, tally| {
                self.data.key(self.random(step), &mut buffers.key);
                self.engine.merge(&buffers.key, &1_u64.to_le_bytes())?;
                tally.user_bytes += (buffers.key.len() + NUMBER_BYTES) as u64;
                Ok(())
            }),
            Counting::ReadPut => lane.each(Operation::ReadModifyWrite, |step, tally| {
                let index = self.random(step);
                let number = self.get_number(index, &mut buffers, &mut filler)?;
                returned(index, number, &buffers, tally);
                set_number(&mut buffers.value, number + 1);
                self.engine.put(&buffers.key, &buffers.value)?;
                tally.user_bytes += buffers.bytes();
                Ok(())
            }),
            Counting::Update => lane.each(Operation::ReadModifyWrite, |step, tally| {
                let index = self.random(step);
                self.update_number(index, &mut buffers, &mut filler, tally)
            }),
            Counting::Pair(None) => {
                self.increment_pairs(lane, Operation::ReadModifyWrite, |work| {
                    work(&mut Alone(self.engine))
                })
            }
            Counting::Pair(Some(kind)) => {
                self.increment_pairs(lane, Operation::Transaction, |work| {
                    self.engine.transact(kind, work)
                })
            }
            Counting::PreparedPair => self.increment_pairs(lane, Operation::Transaction, |work| {
                self.engine.transact_in_two_phases(work)
            }),
        }
    }

    fn put_number(
        &self,
        index: u64,
        number: u64,
        buffers: &mut EntryBuffers,
        tally: &mut Tally,
    ) -> Result<()> {
        let EntryBuffers { key, value } = buffers;
        self.data.key(index, key);
        let size = self.data.value_size(key, 0);
        self.data.value_of_size(key, 0, size, value);
        set_number(value, number);
        self.engine.put(key, value)?;
        tally.user_bytes += buffers.bytes();
        Ok(())
    }

    /// Gets the counter of `index` into `buffers`.
    fn get_number(
        &self,
        index: u64,
        buffers: &mut EntryBuffers,
        filler: &mut Vec<u8>,
    ) -> Result<u64> {
        let EntryBuffers { key, value } = buffers;
        self.data.key(index, key);
        self.number_by(&mut Alone(self.engine), key, value, filler)
    }

    /// Gets the counter at `key` into `value` by `calls`.
    #[inline]
    fn number_by(
        &self,
        calls: &mut dyn TransactionCalls,
        key: &[u8],
        value: &mut Vec<u8>,
        filler: &mut Vec<u8>,
    ) -> Result<u64> {
        if calls.get(key, value)? {
            number_in(self.data, key, value, filler)
        } else {
            Err(wrong(key, "is not found"))
        }
    }

    fn update_number(
        &self,
        index: u64,
        buffers: &mut EntryBuffers,
        filler: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<()> {
        let key = &mut buffers.key;
        self.data.key(index, key);
        let (mut read, mut bytes) = (Ok(0), 0);
        self.engine.update(key, &mut |value| {
            read = number_in(self.data, key, value, filler);
            bytes = value.len();
            if let Ok(number) = read {
                set_number(value, number + 1);
            }
        })?;
        buffers.value.resize(bytes, 0);
        returned(index, read?, buffers, tally);
        tally.user_bytes += buffers.bytes();
        Ok(())
    }

    /// Increments two counters in each operation, as `transact` runs it.
    fn increment_pairs(
        &self,
        lane: &Lane<'_>,
        operation: Operation,
        transact: impl Fn(&mut dyn FnMut(&mut dyn TransactionCalls) -> Result<()>) -> Result<()>,
    ) -> Result<Tally> {
        let mut both = [EntryBuffers::default(), EntryBuffers::default()];
        let mut filler = Vec::new();
        lane.each(operation, |step, tally| {
            let mut rng = self.data.rng(self.stream, step);
            let first = rng.below(self.indexes);
            // Another one.
            let second = (first + 1 + rng.below(self.indexes - 1)) % self.indexes;
            let indexes = [first, second];
            for (index, buffers) in indexes.into_iter().zip(&mut both) {
                self.data.key(index, &mut buffers.key);
            }
            let mut numbers = [0; 2];
            let mut work = |calls: &mut dyn TransactionCalls| {
                for (number, buffers) in numbers.iter_mut().zip(&mut both) {
                    let EntryBuffers { key, value } = buffers;
                    *number = self.number_by(calls, key, value, &mut filler)?;
                }
                for (number, buffers) in numbers.iter().zip(&mut both) {
                    set_number(&mut buffers.value, number + 1);
                    calls.put(&buffers.key, &buffers.value)?;
                }
                Ok(())
            };
            transact(&mut work)?;
            for ((index, number), buffers) in indexes.into_iter().zip(numbers).zip(&both) {
                returned(index, number, buffers, tally);
                tally.user_bytes += buffers.bytes();
            }
            Ok(())
        })
    }
}

/// Counts a get of `number` in the counter of `index`.
#[inline]
fn returned(index: u64, number: u64, buffers: &EntryBuffers, tally: &mut Tally) {
    let fingerprint = mix(number ^ index.wrapping_mul(GOLDEN));
    tally.returned(&buffers.key, &buffers.value, fingerprint);
    tally.found += 1;
}
