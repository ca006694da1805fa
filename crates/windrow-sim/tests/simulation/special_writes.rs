//! The merge operator and the range deletes of a load in the engine.

use std::ops::Range;

use windrow::simulation::Load;
use windrow::{MergeError, MergeOperator, Operands};
use windrow_sim::Random;

/// Folds operands to values of one size, and to the newest operand.
pub(super) struct OneSize {
    pub(super) value_bytes: usize,
}

impl MergeOperator for OneSize {
    fn name(&self) -> &'static str {
        "test.one-size"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        _base: Option<&[u8]>,
        _operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        result.resize(self.value_bytes, 7);
        Ok(())
    }

    fn partial_merge(
        &self,
        _key: &[u8],
        mut operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        result.extend_from_slice(operands.next_back().unwrap_or_default());
        Ok(true)
    }
}

/// The range that `load` deletes after the write of this number, if one is due. It lies at a random place.
pub(super) fn range_deleted_after(
    load: &Load,
    write: u64,
    random: &mut Random,
) -> Option<Range<[u8; 8]>> {
    let due = |writes: u64| (writes as f64 * load.range_deletes_per_write).floor();
    if due(write + 1) <= due(write) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of the key space"
    )]
    let keys = |part: f64| (part * 2.0_f64.powi(64)) as u64;
    let width = keys(load.range_delete_part);
    let start = random.below(keys(1.0 - load.range_delete_part).max(1));
    Some(start.to_be_bytes()..(start + width).to_be_bytes())
}
