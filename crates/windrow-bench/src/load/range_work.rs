//! The inner loops of the loads on ranges of keys: bulk loads, ingestions, filters, estimates, range deletes with the
//! scans across them, and queues.

use std::ops::Range;

use windrow::Result;

use crate::load::errors::wrong;
use crate::load::kinds::Direction;
use crate::load::read_work::InOrder;
use crate::load::work::Worker;
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{Engine, Entry, Feature, Scan, is_filtered};

/// The indexes that `deleterange` deletes, of `num`.
pub(crate) fn middle(num: u64) -> Range<u64> {
    let first = num / 4;
    first..first + num.div_ceil(2)
}

/// The files of `ingest`.
const INGESTED_FILES: u64 = 8;

/// The most keys before the middle that a scan of `seekacross` meets.
const KEYS_BEFORE: u64 = 8;

impl<E: Engine> Worker<'_, E> {
    /// Loads the keys of all steps.
    pub(crate) fn bulk_load(&self, lane: &Lane<'_>) -> Result<Tally> {
        self.load_at_once(lane, |entries| self.engine.bulk_load(entries))
    }

    /// Ingests files with the keys of all steps.
    pub(crate) fn ingest(&self, lane: &Lane<'_>) -> Result<Tally> {
        let count = lane.steps.end - lane.steps.start;
        let per_file = usize::try_from(count.div_ceil(INGESTED_FILES)).unwrap_or(usize::MAX);
        self.load_at_once(lane, |entries| self.engine.ingest(entries, per_file))
    }

    fn load_at_once(
        &self,
        lane: &Lane<'_>,
        load: impl Fn(&mut dyn Iterator<Item = Entry>) -> Result<()>,
    ) -> Result<Tally> {
        let mut watch = Stopwatch::new(lane);
        let mut entries = lane.steps.clone().map(|index| {
            let mut entry = Entry::default();
            self.make(index, None, &mut entry.key, &mut entry.value);
            entry
        });
        load(&mut entries)?;
        watch.done(Operation::BulkLoad, lane.steps.end - lane.steps.start)?;
        let mut key = Vec::new();
        for index in lane.steps.clone() {
            self.data.key(index, &mut key);
            let value = self.data.value_size(&key, self.generation);
            self.note(index, key.len() + value, &mut watch.tally);
        }
        Ok(watch.tally)
    }

    /// Compacts everything with the filter.
    pub(crate) fn compact_filtered(&self, lane: &Lane<'_>) -> Result<Tally> {
        let mut watch = Stopwatch::new(lane);
        let mut key = Vec::new();
        for index in lane.steps.clone() {
            self.data.key(index, &mut key);
            if is_filtered(&key) {
                self.remove(index, &mut key, &mut watch.tally);
            }
        }
        watch.begin_anew();
        self.engine.compact_filtered()?;
        watch.done(Operation::Filter, lane.steps.end - lane.steps.start)?;
        Ok(watch.tally)
    }

    /// Estimates the bytes between two random keys.
    pub(crate) fn size(&self, lane: &Lane<'_>) -> Result<Tally> {
        let num = self.data.num();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        lane.each(Operation::Size, |step, tally| {
            let mut rng = self.data.rng(self.stream, step);
            let ends = [rng.below(num), rng.below(num)];
            self.data.key(ends[0].min(ends[1]), &mut from);
            self.data.key(ends[0].max(ends[1]), &mut to);
            let bytes = self.engine.approximate_size(&from, &to)?;
            tally.found += u64::from(bytes > 0);
            Ok(())
        })
    }

    /// Deletes the middle of the keys.
    pub(crate) fn delete_middle(&self, lane: &Lane<'_>) -> Result<Tally> {
        let middle = middle(self.data.num());
        let mut key = Vec::new();
        if !E::FEATURES.contains(&Feature::RangeDeletes) {
            return lane.each(Operation::Delete, |step, tally| {
                self.remove(middle.start + step, &mut key, tally);
                tally.user_bytes += key.len() as u64;
                self.engine.delete(&key)
            });
        }
        let mut watch = Stopwatch::new(lane);
        for index in middle.clone() {
            self.remove(index, &mut key, &mut watch.tally);
        }
        let mut end = Vec::new();
        self.data.key(middle.start, &mut key);
        self.data.key(middle.end, &mut end);
        watch.begin_anew();
        self.engine.delete_range(&key, &end)?;
        watch.done(Operation::DeleteRange, middle.end - middle.start)?;
        watch.tally.user_bytes += (key.len() + end.len()) as u64;
        Ok(watch.tally)
    }

    /// Scans from a few keys before the middle to the first key in or behind it.
    pub(crate) fn seek_across(&self, lane: &Lane<'_>) -> Result<Tally> {
        let num = self.data.num();
        let middle = middle(num);
        let landing = self
            .live
            .map(|live| (middle.start..num).find(|&index| live.contains(index)));
        let (mut key, mut order) = (Vec::new(), InOrder::default());
        lane.each(Operation::Seek, |step, tally| {
            let back = self
                .data
                .random_below(self.stream, step, KEYS_BEFORE.min(middle.start));
            let first = middle.start.saturating_sub(back + 1);
            self.data.key(first, &mut key);
            let mut scan = self.engine.scan()?;
            let mut valid = scan.seek(&key)?;
            if valid && scan.key() < key.as_slice() {
                return Err(wrong(scan.key(), "is before the sought key"));
            }
            let mut met = 0;
            let mut landed = None;
            while valid {
                if met > 0 {
                    order.step(scan.key(), Direction::Forward)?;
                } else {
                    order.begin(scan.key());
                }
                self.check_value(scan.key(), scan.value()?, tally)?;
                landed = self.data.number_of(scan.key());
                if landed.is_none_or(|number| number >= middle.start) {
                    break;
                }
                met += 1;
                valid = scan.next()?;
            }
            let landed = landed.filter(|_| valid);
            let is_right = landing.is_none_or(|landing| landing == landed);
            let before = self.live.map(|live| live.count(first..middle.start));
            if !is_right || before.is_some_and(|before| before != met) {
                return Err(wrong(&key, "is followed by other keys than it must"));
            }
            tally.found += u64::from(valid);
            Ok(())
        })
    }

    /// Takes the first entry of each of `queues` parts of the keys in turn.
    pub(crate) fn pop(&self, lane: &Lane<'_>, queues: u64) -> Result<Tally> {
        let num = self.data.num();
        let begin = |queue: u64| {
            let boundary = u128::from(num) * u128::from(queue) / u128::from(queues);
            u64::try_from(boundary).unwrap_or(u64::MAX)
        };
        // The begin of each queue, and its indexes that may be live.
        let mut queues: Vec<(u64, Range<u64>)> = (0..queues)
            .map(|queue| (begin(queue), begin(queue)..begin(queue + 1)))
            .collect();
        let mut turn = 0;
        let (mut first, mut key) = (Vec::new(), Vec::new());
        lane.each(Operation::Pop, |_, tally| {
            let count = queues.len();
            let (begin, front) = &mut queues[turn];
            turn = (turn + 1) % count;
            if let Some(live) = self.live {
                while front.start < front.end && !live.contains(front.start) {
                    front.start += 1;
                }
            }
            self.data.key(*begin, &mut first);
            let mut scan = self.engine.scan()?;
            let valid = scan.seek(&first)?;
            let number = self.data.number_of(if valid { scan.key() } else { &[] });
            let number = number.filter(|&number| number < front.end);
            let expected = (!front.is_empty()).then_some(front.start);
            if self.live.is_some() && number != expected {
                return Err(wrong(&first, "begins a queue with another first entry"));
            }
            let Some(number) = number else {
                return Ok(());
            };
            self.check_value(scan.key(), scan.value()?, tally)?;
            drop(scan);
            tally.found += 1;
            self.remove(number, &mut key, tally);
            tally.user_bytes += key.len() as u64;
            self.engine.delete(&key)
        })
    }

    /// Notes that the key of `index`, which it writes into `key`, will be deleted.
    pub(crate) fn remove(&self, index: u64, key: &mut Vec<u8>, tally: &mut Tally) {
        self.data.key(index, key);
        if self.live.is_some_and(|live| live.remove(index)) {
            let value = self.data.value_size(key, self.generation);
            tally.garbage_bytes += (key.len() + value) as u64;
        }
    }
}
