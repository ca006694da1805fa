//! How much work the arguments give to a load.

use crate::load::Amount;
use crate::load::kinds::{Companion, Keys, Work};
use crate::load::range_work::middle;
use crate::{BenchArgs, Load};

impl BenchArgs {
    /// The number of operations of `load` without a duration; `None` if it is unknown before the run.
    pub(crate) fn operations(&self, load: Load) -> Option<u64> {
        let num = self.num;
        Some(match load.amount() {
            Amount::Fill { keys_per_entry } => {
                let wanted = self.writes.unwrap_or(num.div_ceil(keys_per_entry));
                match load.work() {
                    // Each key once.
                    Work::Write(Keys::InOrder | Keys::Shuffled) | Work::BulkLoad | Work::Ingest => {
                        wanted.min(num)
                    }
                    _ => wanted,
                }
            }
            Amount::Whole => num,
            Amount::Always(count) => count,
            Amount::Writes => self.writes.or(self.ops).unwrap_or(num),
            Amount::Deletes => self.deletes.or(self.ops).unwrap_or(num),
            Amount::Pops { keys_per_op } => {
                let wanted = self.deletes.or(self.ops);
                wanted.unwrap_or(num.div_ceil(keys_per_op)).min(num)
            }
            Amount::Half => {
                let middle = middle(num);
                middle.end - middle.start
            }
            Amount::Reads { keys_per_op } => {
                let given = self.reads.or(self.ops).map(|reads| match load {
                    Load::ReadRandomSmall => reads.div_ceil(1000),
                    _ => reads,
                });
                given.unwrap_or(num.div_ceil(keys_per_op))
            }
            Amount::Fixed(count) => self.ops.unwrap_or(count),
            Amount::Unknown => return self.ops,
        })
    }

    /// Whether the arguments bound the operations of `load` in addition to a duration. A load with a companion
    /// that writes lasts its whole duration, so all engines read during the same number of writes.
    pub(crate) fn bounds_operations(&self, load: Load) -> bool {
        if load.companion() == Some(Companion::Writer) {
            return false;
        }
        let own = match load.amount() {
            Amount::Fill { .. } => return self.writes.is_some(),
            Amount::Writes => self.writes,
            Amount::Deletes | Amount::Pops { .. } => self.deletes,
            Amount::Reads { .. } => self.reads,
            _ => None,
        };
        own.or(self.ops).is_some()
    }
}
