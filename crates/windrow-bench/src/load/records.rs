//! The records of the YCSB loads, and the writes of each that a read may see.
//!
//! The generation of a record counts its writes, modulo 2^16. Any of several concurrent writes may be the last. A
//! read must see all writes that were complete before it began, and none that began after it ended. To check this,
//! the writes of a record are divided into bursts: a burst begins when no other write of the record runs.
//!
//! Concurrency: one word per record, which changes by compare-and-exchange. The table grows only between loads.

use std::sync::atomic::{AtomicU64, Ordering};

use windrow::{Error, Result};

/// The records in the store, and the generation of each.
#[derive(Debug, Default)]
pub(crate) struct Records {
    states: Vec<AtomicU64>,
    /// The number of the next new record.
    next: AtomicU64,
    /// All records below this number are in the store.
    present: AtomicU64,
}

/// The state of one record, packed into a word. Zero before its first write.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The generation of the last write to begin.
    begun: u16,
    /// Running writes.
    pending: u16,
    /// The first generation of the last burst.
    burst: u16,
    /// The first generation of the burst before it.
    burst_before: u16,
}

impl State {
    fn of(word: u64) -> Self {
        let [begun, pending, burst, burst_before] =
            [0, 16, 32, 48].map(|shift| (word >> shift & 0xffff) as u16);
        Self {
            begun,
            pending,
            burst,
            burst_before,
        }
    }

    fn word(self) -> u64 {
        u64::from(self.begun)
            | u64::from(self.pending) << 16
            | u64::from(self.burst) << 32
            | u64::from(self.burst_before) << 48
    }

    /// The state with one more running write.
    fn begin(self) -> Self {
        let begun = self.begun.wrapping_add(1);
        let (burst, burst_before) = match self.pending {
            0 => (begun, self.burst),
            _ => (self.burst, self.burst_before),
        };
        Self {
            begun,
            pending: self.pending + 1,
            burst,
            burst_before,
        }
    }

    /// The state with one less running write.
    fn end(self) -> Self {
        Self {
            pending: self.pending - 1,
            ..self
        }
    }

    /// The oldest generation that may still be in the store.
    fn oldest(self) -> u16 {
        match self.pending {
            0 => self.burst,
            _ => self.burst_before,
        }
    }

    /// Whether the first write is complete.
    fn is_written(self) -> bool {
        self.word() != 0 && (self.pending == 0 || self.burst_before != 0)
    }
}

impl Records {
    /// The records of an existing store, with their generations.
    ///
    /// # Errors
    /// `InvalidArgument` if numbers are missing.
    pub(crate) fn found(found: &[(u64, u16)]) -> Result<Self> {
        let mut records = Self::default();
        let count = found.len() as u64;
        records.make_space(count)?;
        for &(record, generation) in found {
            let Some(state) = usize::try_from(record)
                .ok()
                .and_then(|record| records.states.get_mut(record))
            else {
                return Err(Error::invalid_argument(format!(
                    "the store holds {count} entries that are not the records of a ycsb-load with \
                     these settings"
                )));
            };
            *state.get_mut() = State {
                begun: generation,
                pending: 0,
                burst: generation,
                burst_before: generation.wrapping_sub(1),
            }
            .word();
        }
        *records.next.get_mut() = count;
        *records.present.get_mut() = count;
        Ok(records)
    }

    /// Reserves capacity for `more` records.
    ///
    /// # Errors
    /// `InvalidArgument` if memory is missing.
    pub(crate) fn make_space(&mut self, more: u64) -> Result<()> {
        resize(&mut self.states, *self.next.get_mut() + more)
    }

    /// Takes the numbers of all records with capacity.
    pub(crate) fn take_all(&mut self) {
        *self.next.get_mut() = self.states.len() as u64;
    }

    /// Takes the number of a new record, which has capacity.
    #[inline]
    pub(crate) fn take_next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Whether the number of `record` was taken.
    #[inline]
    pub(crate) fn is_taken(&self, record: u64) -> bool {
        record < self.next.load(Ordering::SeqCst)
    }

    /// The number of records in the store before the first gap.
    #[inline]
    pub(crate) fn present(&self) -> u64 {
        self.present.load(Ordering::SeqCst)
    }

    /// Begins a write of `record`. Returns its generation.
    #[inline]
    pub(crate) fn begin(&self, record: u64) -> u16 {
        self.change(record, State::begin).begun
    }

    /// Ends a write of `record`.
    #[inline]
    pub(crate) fn end(&self, record: u64) {
        self.change(record, State::end);
        // The thread that closes the lowest gap counts the complete records after it.
        loop {
            let present = self.present();
            let is_written = self
                .states
                .get(Self::index(present))
                .is_some_and(|state| State::of(state.load(Ordering::SeqCst)).is_written());
            if !is_written {
                return;
            }
            // If this fails, another thread has counted the record.
            let _outcome = self.present.compare_exchange(
                present,
                present + 1,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
    }

    /// The oldest generation of `record` that a read from now on may see.
    #[inline]
    pub(crate) fn oldest(&self, record: u64) -> u16 {
        self.state(record).oldest()
    }

    /// Checks the generation `seen` of a read of `record`. `oldest` was the oldest generation at its start.
    #[inline]
    pub(crate) fn check(&self, record: u64, oldest: u16, seen: u16) -> Result<()> {
        let newest = self.state(record).begun;
        if seen.wrapping_sub(oldest) <= newest.wrapping_sub(oldest) {
            Ok(())
        } else {
            Err(Error::corruption(
                "the store",
                0,
                format!(
                    "a read returned generation {seen} of record {record}, but only {oldest} to \
                     {newest} are possible"
                ),
            ))
        }
    }

    #[inline]
    fn state(&self, record: u64) -> State {
        State::of(self.states[Self::index(record)].load(Ordering::SeqCst))
    }

    #[inline]
    fn change(&self, record: u64, step: impl Fn(State) -> State) -> State {
        let word = &self.states[Self::index(record)];
        let mut before = word.load(Ordering::SeqCst);
        loop {
            let after = step(State::of(before));
            match word.compare_exchange_weak(
                before,
                after.word(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return after,
                Err(now) => before = now,
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "memory holds a state for each record"
    )]
    fn index(record: u64) -> usize {
        record as usize
    }
}

/// Resizes `words` to `count`; new words are 0.
///
/// # Errors
/// `InvalidArgument` if memory is missing.
pub(crate) fn resize(words: &mut Vec<AtomicU64>, count: u64) -> Result<()> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let reserved = words.try_reserve_exact(count.saturating_sub(words.len()));
    reserved.map_err(|error| {
        let message = format!("memory for the state of the keys is missing: {error}");
        Error::invalid_argument(message)
    })?;
    words.resize_with(count, AtomicU64::default);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_records_have_no_gaps() {
        let mut records = Records::default();
        records.make_space(3).unwrap();
        let numbers = [
            records.take_next(),
            records.take_next(),
            records.take_next(),
        ];
        assert_eq!(numbers, [0, 1, 2]);
        for record in [2, 0] {
            records.begin(record);
        }
        records.end(2);
        assert_eq!(records.present(), 0);
        records.end(0);
        assert_eq!(records.present(), 1);
        records.begin(1);
        records.end(1);
        assert_eq!(records.present(), 3);
    }

    #[test]
    fn a_read_sees_no_less_than_was_complete_and_no_more_than_was_begun() {
        let mut records = Records::default();
        records.make_space(1).unwrap();
        // Enough rounds for a wrap of the generations.
        for round in 0..40_000_u32 {
            let first = records.begin(0);
            records.end(0);
            assert_eq!(records.oldest(0), first, "round {round}");
            let alone = records.oldest(0);
            records.check(0, alone, first).unwrap();
            let second = records.begin(0);
            let third = records.begin(0);
            let beside = records.oldest(0);
            for seen in [first, second, third] {
                records.check(0, beside, seen).unwrap();
            }
            assert!(records.check(0, beside, third.wrapping_add(1)).is_err());
            assert!(records.check(0, beside, first.wrapping_sub(1)).is_err());
            records.end(0);
            records.end(0);
            // Either of two concurrent writes may be the last, but no older one.
            let after = records.oldest(0);
            for seen in [second, third] {
                records.check(0, after, seen).unwrap();
            }
            assert!(records.check(0, after, first).is_err());
        }
    }

    #[test]
    fn foreign_entries_are_no_records() {
        assert_eq!(Records::found(&[(1, 3), (0, 9)]).unwrap().present(), 2);
        assert_eq!(Records::found(&[(1, 3), (0, 9)]).unwrap().oldest(1), 3);
        assert!(Records::found(&[(0, 1), (2, 1)]).is_err());
    }
}
