//! The contents that the store must have after the writes of the run: the reference for reads, and the live bytes
//! for space amplification.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow::Result;

use crate::load::kinds::Kind;
use crate::load::record_work::RecordWorker;
use crate::load::records::{Records, resize};
use crate::load::sums::Sums;
use crate::{DataSet, Engine, Load};

/// The known contents of the store.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The keys of the loads of `db_bench`.
    pub(crate) live: Option<LiveSet>,
    /// The records of the loads of YCSB.
    pub(crate) records: Option<Records>,
    /// The sums of the loads on counters and postings.
    pub(crate) sums: Option<Sums>,
    /// Live bytes.
    pub(crate) live_bytes: Option<u64>,
    /// All values have sizes of the data set.
    pub(crate) sizes_are_known: bool,
    /// Whether the contents depend on chance.
    pub(crate) is_by_chance: bool,
}

impl Contents {
    /// The contents of a new store for `fill`.
    ///
    /// # Errors
    /// `InvalidArgument` if the memory for the contents is missing.
    pub(crate) fn nothing(fill: Load, data: &DataSet) -> Result<Self> {
        let mut nothing = Self {
            live_bytes: Some(0),
            sizes_are_known: true,
            ..Self::default()
        };
        match fill.contents() {
            Kind::Records => nothing
                .records
                .insert(Records::default())
                .make_space(data.num())?,
            Kind::Entries => nothing.live = Some(LiveSet::new(data.num())?),
            Kind::Counters | Kind::Postings => nothing.sums = Some(Sums::default()),
        }
        Ok(nothing)
    }

    /// Prepares for `load`.
    pub(crate) fn prepare<E: Engine>(
        &mut self,
        load: Load,
        engine: &E,
        data: &DataSet,
    ) -> Result<()> {
        if load.is_ycsb() && self.records.is_none() {
            let (records, live_bytes) = RecordWorker::find(engine, data)?;
            self.records = Some(records);
            self.live_bytes = Some(live_bytes);
        }
        let kind = load.contents();
        let has_sums = matches!(kind, Kind::Counters | Kind::Postings);
        if has_sums && self.sums.is_none() {
            let sums = Sums::of(engine, data, kind)?;
            (self.sums, self.live_bytes) = (Some(sums), Some(sums.bytes));
        }
        if load.writes_indexes() && self.records.take().is_some() {
            // The store gets entries that are not records.
            self.live_bytes = None;
        }
        if load.writes_other_sizes() {
            self.sizes_are_known = false;
            if load != Load::Fill100K {
                self.live_bytes = None;
            }
        }
        if load == Load::Replay {
            // The trace has other keys.
            self.live = None;
        }
        Ok(())
    }
}

/// The set of live keys of a data set. Threads may share it.
#[derive(Debug)]
pub(crate) struct LiveSet(Vec<AtomicU64>);

impl LiveSet {
    /// An empty set of `num` possible keys.
    ///
    /// # Errors
    /// As [`resize`].
    pub(crate) fn new(num: u64) -> Result<Self> {
        let mut words = Vec::new();
        resize(&mut words, num.div_ceil(64))?;
        Ok(Self(words))
    }

    /// Adds the key of `index` after its write. Returns whether the key is new.
    #[inline]
    pub(crate) fn insert(&self, index: u64) -> bool {
        let (word, bit) = self.place(index);
        word.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }

    /// Removes the key of `index` before its delete. Returns whether the key was live.
    #[inline]
    pub(crate) fn remove(&self, index: u64) -> bool {
        let (word, bit) = self.place(index);
        word.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    /// Whether the key of `index` is live. Acquires the writes of the thread that added it.
    #[inline]
    pub(crate) fn contains(&self, index: u64) -> bool {
        let (word, bit) = self.place(index);
        word.load(Ordering::Acquire) & bit != 0
    }

    /// The number of live keys with indexes in `range`. Reads no other words.
    pub(crate) fn count(&self, range: Range<u64>) -> u64 {
        let word = |index: u64| usize::try_from(index / 64).unwrap_or(usize::MAX);
        let end = word(range.end.saturating_add(63)).min(self.0.len());
        let begin = word(range.start).min(end);
        let words = (begin as u64..).zip(&self.0[begin..end]);
        words
            .map(|(number, word)| {
                let first = 64 * number;
                let from = range.start.clamp(first, first + 64) - first;
                let to = range.end.clamp(first, first + 64) - first;
                let below = |bits: u64| match bits {
                    64 => u64::MAX,
                    bits => (1 << bits) - 1,
                };
                let mask = below(to) & !below(from);
                u64::from((word.load(Ordering::Acquire) & mask).count_ones())
            })
            .sum()
    }

    fn place(&self, index: u64) -> (&AtomicU64, u64) {
        (&self.0[(index / 64) as usize], 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_keys_count_once() {
        let live = LiveSet::new(130).unwrap();
        assert!(live.insert(129));
        assert!(!live.insert(129));
        assert!(!live.remove(128));
        assert!(live.remove(129));
        assert!(live.insert(129));
        assert!(live.contains(129) && !live.contains(128));
    }

    #[test]
    fn ranges_are_counted_at_any_boundary() {
        let live = LiveSet::new(300).unwrap();
        for index in (0..300).step_by(3) {
            live.insert(index);
        }
        for (from, to) in [
            (0, 300),
            (1, 64),
            (63, 65),
            (64, 128),
            (100, 100),
            (299, 300),
            (5, 290),
            (128, 5000),
            (5000, 6000),
        ] {
            let there = |index: &u64| *index < 300 && index.is_multiple_of(3);
            let expected = (from..to).filter(there).count() as u64;
            assert_eq!(live.count(from..to), expected, "{from}..{to}");
        }
    }
}
