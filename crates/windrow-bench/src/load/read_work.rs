//! The inner loops of the loads of `db_bench` that read. They allocate no memory per operation, except for the
//! engine.
//!
//! The loops check every value, the presence or absence of every key, and the order of every step. Without
//! concurrent writes, they also check that no step skips a key.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use windrow::Result;

use crate::load::errors::wrong;
use crate::load::kinds::{Direction, Keys};
use crate::load::work::{EntryBuffers, Worker};
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{Answer, DataSet, Engine, Scan};

/// Steps of a walk per reading of the clock: a reading takes about the time of a step.
const WALK_STEPS: u64 = 64;
/// Steps after a seek in the ranges of `db_bench`'s scripts.
const RANGE_STEPS: u32 = 10;

/// Checks the order of the keys of a walk.
#[derive(Debug, Default)]
pub(crate) struct InOrder(Vec<u8>);

impl InOrder {
    /// Sets the position of the walk to `key`.
    #[inline]
    pub(crate) fn begin(&mut self, key: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(key);
    }

    /// Checks that the walk advanced to `key`.
    #[inline]
    pub(crate) fn step(&mut self, key: &[u8], direction: Direction) -> Result<()> {
        let is_in_order = match direction {
            Direction::Forward => self.0.as_slice() < key,
            Direction::Backward => self.0.as_slice() > key,
        };
        self.begin(key);
        if is_in_order {
            Ok(())
        } else {
            Err(wrong(key, "is out of order"))
        }
    }
}

/// Moves one step.
#[inline]
fn step(scan: &mut impl Scan, direction: Direction) -> Result<bool> {
    match direction {
        Direction::Forward => scan.next(),
        Direction::Backward => scan.prev(),
    }
}

impl<E: Engine> Worker<'_, E> {
    pub(crate) fn read(&self, lane: &Lane<'_>, keys: Keys) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        if keys == Keys::Missing {
            return lane.each(Operation::Read, |step, _| {
                self.data.missing_key(self.random(step), &mut buffers.key);
                if self.engine.get(&buffers.key, &mut buffers.value)? {
                    return Err(wrong(&buffers.key, "is found but was never written"));
                }
                Ok(())
            });
        }
        lane.each(Operation::Read, |step, tally| {
            self.get(self.random(step), &mut buffers, tally).map(drop)
        })
    }

    pub(crate) fn multi_read(&self, lane: &Lane<'_>) -> Result<Tally> {
        let batch = self.args.batch_size;
        let places = usize::try_from(batch).unwrap_or(usize::MAX);
        let mut keys = vec![Vec::new(); places];
        let mut known = vec![None; places];
        let mut answers = vec![Answer::default(); places];
        let mut steps = lane.steps.clone();
        let mut watch = Stopwatch::new(lane);
        while watch.continues(batch) {
            let mut filled = 0;
            for ((key, was), step) in keys.iter_mut().zip(&mut known).zip(steps.by_ref()) {
                let index = self.random(step);
                self.data.key(index, key);
                *was = self.is_there(index);
                filled += 1;
            }
            if filled == 0 {
                break;
            }
            let (keys, answers) = (&keys[..filled], &mut answers[..filled]);
            self.engine.multi_get(keys, answers)?;
            for ((key, was), answer) in keys.iter().zip(&known).zip(answers) {
                self.check_found(key, *was, answer.is_found)?;
                if answer.is_found {
                    self.check_value(key, &answer.value, &mut watch.tally)?;
                    watch.tally.found += 1;
                }
            }
            watch.done(Operation::MultiRead, filled as u64)?;
        }
        Ok(watch.tally)
    }

    /// Opens scans. Most engines do no work for a scan before its first move.
    pub(crate) fn open(&self, lane: &Lane<'_>) -> Result<Tally> {
        lane.each(Operation::Open, |_, _| self.engine.scan().map(drop))
    }

    pub(crate) fn seek(
        &self,
        lane: &Lane<'_>,
        nexts: Option<u32>,
        direction: Option<Direction>,
    ) -> Result<Tally> {
        let default = if direction.is_some() { RANGE_STEPS } else { 0 };
        let nexts = nexts.or(self.args.seek_nexts).unwrap_or(default);
        let direction = direction.unwrap_or(if self.args.reverse_iterator {
            Direction::Backward
        } else {
            Direction::Forward
        });
        let (mut key, mut order) = (Vec::new(), InOrder::default());
        // An open scan would not see concurrent writes.
        let is_kept = self.args.keep_cursor && !self.load.reads_beside_writes();
        let mut kept = None;
        lane.each(Operation::Seek, |step, tally| {
            let index = self.random(step);
            self.data.key(index, &mut key);
            // The scan must contain the keys that are live before its open.
            let was = self.is_there(index);
            let scan = match &mut kept {
                Some(scan) if is_kept => scan,
                kept => {
                    // Only one scan is open at a time.
                    *kept = None;
                    kept.insert(self.engine.scan()?)
                }
            };
            let sought = (index, key.as_slice(), was);
            self.range(scan, sought, (nexts.into(), direction), &mut order, tally)
        })
    }

    /// Opens a scan, seeks the key of `index`, and takes some steps from there.
    pub(crate) fn scan_from(
        &self,
        index: u64,
        nexts: u64,
        key: &mut Vec<u8>,
        order: &mut InOrder,
        tally: &mut Tally,
    ) -> Result<()> {
        self.data.key(index, key);
        let was = self.is_there(index);
        let mut scan = self.engine.scan()?;
        let sought = (index, key.as_slice(), was);
        self.range(&mut scan, sought, (nexts, Direction::Forward), order, tally)
    }

    /// Seeks the key of `index`, which exists or not, and takes some steps from there.
    fn range(
        &self,
        scan: &mut E::Scan<'_>,
        (index, key, was): (u64, &[u8], Option<bool>),
        (nexts, direction): (u64, Direction),
        order: &mut InOrder,
        tally: &mut Tally,
    ) -> Result<()> {
        let mut valid = scan.seek(key)?;
        let is_found = valid && scan.key() == key;
        self.check_found(key, was, is_found)?;
        if is_found {
            tally.found += 1;
        }
        if valid {
            if scan.key() < key {
                return Err(wrong(scan.key(), "is before the sought key"));
            }
            order.begin(scan.key());
        }
        let landed = if valid {
            self.number(scan.key())?
        } else {
            None
        };
        let mut met = u64::from(valid);
        for _ in 0..nexts {
            if !valid {
                break;
            }
            self.check_value(scan.key(), scan.value()?, tally)?;
            valid = step(scan, direction)?;
            if valid {
                order.step(scan.key(), direction)?;
                met += 1;
            }
        }
        if valid {
            self.check_value(scan.key(), scan.value()?, tally)?;
        }
        let reached = if valid {
            self.number(scan.key())?
        } else {
            None
        };
        let first_to_last = match (direction, landed) {
            (Direction::Backward, Some(landed)) => {
                // The scan must skip no key before it turns.
                self.check_range(index..landed + 1, 1)?;
                reached.unwrap_or(0)..landed + 1
            }
            _ => index..reached.map_or(self.data.num(), |reached| reached + 1),
        };
        self.check_range(first_to_last, met)
    }

    /// The number in a key of a scan, if the live keys are known.
    #[inline]
    fn number(&self, key: &[u8]) -> Result<Option<u64>> {
        if !self.knows_ranges() {
            return Ok(None);
        }
        match self.data.number_of(key) {
            Some(number) if number < self.data.num() => Ok(Some(number)),
            _ => Err(wrong(key, "was never written")),
        }
    }

    /// Whether the keys that a scan must meet are known. Concurrent writes may change them.
    #[inline]
    fn knows_ranges(&self) -> bool {
        self.live.is_some() && !self.load.reads_beside_writes()
    }

    /// Checks that a scan over the indexes `range` met all live ones.
    #[inline]
    fn check_range(&self, range: Range<u64>, met: u64) -> Result<()> {
        if self.knows_ranges() {
            self.check_count(range, u64::MAX, met)
        } else {
            Ok(())
        }
    }

    /// Walks over at most the steps of `lane`. The position of its steps in the `total` determines the part of the
    /// key space of a thread; the outermost threads walk to the end.
    pub(crate) fn walk(&self, lane: &Lane<'_>, total: u64, direction: Direction) -> Result<Tally> {
        let steps = &lane.steps;
        let boundary = |step: u64| {
            let fraction = u128::from(self.numbers) * u128::from(step) / u128::from(total.max(1));
            u64::try_from(fraction).unwrap_or(u64::MAX)
        };
        let part = boundary(steps.start)..boundary(steps.end);
        let (mut first, mut last) = (Vec::new(), Vec::new());
        self.data.key(part.start, &mut first);
        self.data.key(part.end, &mut last);
        let is_last = steps.end == total;
        let wanted = steps.end - steps.start;

        let mut watch = Stopwatch::new(lane);
        let mut order = InOrder::default();
        let mut untimed = 0;
        let mut is_cut = false;
        let mut scan = self.engine.scan()?;
        let mut valid = match direction {
            Direction::Forward => scan.seek(&first)?,
            // The last entry of the part.
            Direction::Backward if !is_last && scan.seek(&last)? => scan.prev()?,
            Direction::Backward => scan.seek_to_last()?,
        };
        if valid {
            order.begin(scan.key());
        }
        while valid && watch.tally.found < wanted {
            let is_inside = match direction {
                Direction::Forward => is_last || scan.key() < last.as_slice(),
                Direction::Backward => steps.start == 0 || scan.key() >= first.as_slice(),
            };
            if !is_inside {
                break;
            }
            if untimed == 0 && !watch.continues(WALK_STEPS) {
                is_cut = true;
                break;
            }
            self.check_value(scan.key(), scan.value()?, &mut watch.tally)?;
            watch.tally.found += 1;
            untimed += 1;
            if untimed == WALK_STEPS {
                watch.done(Operation::Step, untimed)?;
                untimed = 0;
            }
            valid = step(&mut scan, direction)?;
            if valid {
                order.step(scan.key(), direction)?;
            }
        }
        if untimed > 0 {
            watch.done(Operation::Step, untimed)?;
        }
        if !is_cut {
            self.check_count(part, wanted, watch.tally.found)?;
        }
        Ok(watch.tally)
    }

    /// Checks that a walk over the indexes `part` met all live ones, or the `wanted` number.
    fn check_count(&self, part: Range<u64>, wanted: u64, found: u64) -> Result<()> {
        let Some(live) = self.live else {
            return Ok(());
        };
        let expected = live.count(part).min(wanted);
        if found == expected {
            Ok(())
        } else {
            let message = format!("a scan met {found} entries of {expected}");
            Err(windrow::Error::corruption("the store", 0, message))
        }
    }

    /// Walks the store repeatedly until `stop`.
    pub(crate) fn scan_on(&self, stop: &AtomicBool) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut order = InOrder::default();
        let mut first = Vec::new();
        DataSet::key(self.data, 0, &mut first);
        while !stop.load(Ordering::Relaxed) {
            let mut met = 0;
            let mut scan = self.engine.scan()?;
            let mut valid = scan.seek(&first)?;
            if valid {
                order.begin(scan.key());
            }
            while valid && !stop.load(Ordering::Relaxed) {
                self.check_value(scan.key(), scan.value()?, &mut tally)?;
                met += 1;
                valid = scan.next()?;
                if valid {
                    order.step(scan.key(), Direction::Forward)?;
                }
            }
            if !valid {
                self.check_count(0..self.data.num(), u64::MAX, met)?;
            }
        }
        Ok(tally)
    }
}
