//! The sums over all counters or all lists of a store: the reference that shows a lost or repeated write, and the live
//! bytes.

use windrow::{Error, Result};

use crate::load::kinds::{Counting, Kind, Posting, Work};
use crate::load::numbers::{number_in, postings_in};
use crate::measure::tally::Tally;
use crate::{DataSet, Engine, Load, Scan};

/// The sums of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Counters, or postings in all lists.
    count: u64,
    /// The sum of their numbers, modulo 2^64.
    numbers: u64,
    /// Bytes of keys and values.
    pub(crate) bytes: u64,
}

impl Sums {
    /// The sums of the store of `engine`, which holds `kind`.
    ///
    /// # Errors
    /// `InvalidArgument` for a key of other loads; `Corruption` for a wrong value.
    pub(crate) fn of<E: Engine>(engine: &E, data: &DataSet, kind: Kind) -> Result<Self> {
        let mut sums = Self::default();
        let mut filler = Vec::new();
        let mut scan = engine.scan()?;
        let mut valid = scan.seek(&[0])?;
        while valid {
            let (key, value) = (scan.key(), scan.value()?);
            let number = data.number_of(key);
            if number.is_none_or(|number| number >= data.num()) {
                return Err(Error::invalid_argument(format!(
                    "the key {} is not of {} with these settings",
                    key.escape_ascii(),
                    kind.fills()
                )));
            }
            let (count, numbers) = match kind {
                Kind::Postings => postings_in(key, value)?,
                _ => (1, number_in(data, key, value, &mut filler)?),
            };
            sums.count += count;
            sums.numbers = sums.numbers.wrapping_add(numbers);
            sums.bytes += (key.len() + value.len()) as u64;
            valid = scan.next()?;
        }
        Ok(sums)
    }

    /// Checks the sums after `load`, whose threads counted `tally`, against those `before`. `is_shared`: the load had
    /// several threads.
    ///
    /// # Errors
    /// `Corruption` if a write was lost or happened twice.
    pub(crate) fn check(
        self,
        before: Self,
        load: Load,
        tally: &Tally,
        is_shared: bool,
    ) -> Result<()> {
        let (counters, increments) = (before.count, tally.ops);
        // Counts, and the sum of numbers. Writes of one thread may get lost between a get and a put of another.
        let (count, numbers, may_lose) = match load.work() {
            Work::Count(Counting::Fill) => (increments, 0, false),
            // The last number of each counter is not known.
            Work::Count(Counting::Put) => (counters, self.numbers, false),
            work if work.is_on_pairs() => {
                let lost = work == Work::Count(Counting::Pair(None)) && is_shared;
                (counters, before.numbers.wrapping_add(2 * increments), lost)
            }
            Work::Count(counting) => {
                let lost = counting == Counting::ReadPut && is_shared;
                (counters, before.numbers.wrapping_add(increments), lost)
            }
            Work::Post(posting) => {
                let lost = posting == Posting::ReadPut && is_shared;
                (increments, tally.checksum, lost)
            }
            _ => return Ok(()),
        };
        let is_right = (self.count, self.numbers) == (count, numbers);
        let has_lost = may_lose && self.count <= count && self.numbers <= numbers;
        if is_right || has_lost {
            return Ok(());
        }
        let message = format!(
            "{} has left {} numbers with the sum {} instead of {count} with the sum {numbers}",
            load.name(),
            self.count,
            self.numbers
        );
        Err(Error::corruption("the store", 0, message))
    }
}
