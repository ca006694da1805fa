//! Merge operators of the caller.
//!
//! Concurrency: any thread may call an operator at any time, as in RocksDB.

use windrow::{MergeError, MergeOperator, Operands};

/// Folds operands into a value, or into no value; `None` if it cannot.
pub(crate) type FullMerge =
    Box<dyn Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync>;

/// Folds operands into one operand; `None` if it cannot.
pub(crate) type PartialMerge = Box<dyn Fn(&[u8], &[&[u8]]) -> Option<Vec<u8>> + Send + Sync>;

/// An operator by functions of the caller.
pub(crate) struct Operator {
    pub(crate) name: String,
    pub(crate) full: FullMerge,
    pub(crate) partial: PartialMerge,
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let operands: Vec<&[u8]> = operands.collect();
        let merged = (self.full)(key, base, &operands);
        *result = merged.ok_or_else(|| MergeError::new("the operator has failed"))?;
        Ok(())
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let operands: Vec<&[u8]> = operands.collect();
        let Some(merged) = (self.partial)(key, &operands) else {
            return Ok(false);
        };
        *result = merged;
        Ok(true)
    }
}
