//! The loop of mixgraph.

use windrow::Result;

use crate::load::read_work::InOrder;
use crate::load::work::{EntryBuffers, Worker};
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{Engine, Mixture};

impl<E: Engine> Worker<'_, E> {
    /// Runs the operations of `mixture`.
    pub(crate) fn mix(&self, lane: &Lane<'_>, mixture: &Mixture) -> Result<Tally> {
        let mut buffers = EntryBuffers::default();
        let mut order = InOrder::default();
        let mut watch = Stopwatch::new(lane);
        for step in lane.steps.clone() {
            if !watch.continues(1) {
                break;
            }
            let mut rng = self.data.rng(self.stream, step);
            let operation = mixture.operation(&mut rng);
            let index = mixture.index(&mut rng);
            let tally = &mut watch.tally;
            match operation {
                Operation::Read => drop(self.get(index, &mut buffers, tally)?),
                Operation::Write => {
                    let size = mixture.value_size(&mut rng);
                    self.put(index, Some(size), &mut buffers, tally)?;
                }
                _ => {
                    let length = mixture.scan_length(&mut rng);
                    self.scan_from(index, length, &mut buffers.key, &mut order, tally)?;
                }
            }
            watch.done(operation, 1)?;
        }
        Ok(watch.tally)
    }
}
