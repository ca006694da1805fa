//! The inner loops of the loads on postings, for one thread.
//!
//! A list has the numbers of the steps that appended to it, of 8 bytes each, with a separator between two. All lists
//! together must have every step once ([`Sums`](crate::load::sums::Sums)).

use windrow::Result;

use crate::load::kinds::Posting;
use crate::load::numbers::{POSTING_BYTES, postings_in};
use crate::load::work::{EntryBuffers, Worker};
use crate::measure::stopwatch::Lane;
use crate::measure::tally::{Operation, Tally};
use crate::{Engine, MergeOperator};

impl<E: Engine> Worker<'_, E> {
    pub(crate) fn post(&self, lane: &Lane<'_>, posting: Posting) -> Result<Tally> {
        let EntryBuffers { mut key, mut value } = EntryBuffers::default();
        match posting {
            Posting::Read => lane.each(Operation::Read, |step, tally| {
                self.data.key(self.random(step), &mut key);
                if self.engine.get(&key, &mut value)? {
                    let (_, sum) = postings_in(&key, &value)?;
                    tally.returned(&key, &value, sum);
                    tally.found += 1;
                }
                Ok(())
            }),
            Posting::Merge => lane.each(Operation::Merge, |step, tally| {
                self.data.key(self.random(step), &mut key);
                self.engine.merge(&key, &step.to_le_bytes())?;
                appended(&key, step, tally);
                Ok(())
            }),
            Posting::ReadPut => lane.each(Operation::ReadModifyWrite, |step, tally| {
                self.data.key(self.random(step), &mut key);
                if self.engine.get(&key, &mut value)? {
                    value.push(MergeOperator::SEPARATOR);
                }
                value.extend_from_slice(&step.to_le_bytes());
                self.engine.put(&key, &value)?;
                appended(&key, step, tally);
                Ok(())
            }),
        }
    }
}

/// Counts an appended posting. The bytes of the list before it do not count, so both ways to append have the same user
/// bytes.
#[inline]
fn appended(key: &[u8], step: u64, tally: &mut Tally) {
    tally.user_bytes += (key.len() + POSTING_BYTES) as u64;
    tally.checksum = tally.checksum.wrapping_add(step);
}
