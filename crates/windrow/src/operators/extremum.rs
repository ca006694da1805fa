//! The least or greatest of all operands.
//!
//! Concurrency: no state.

use crate::merge_operator::{MergeError, MergeOperator, Operands};

/// Keeps the least or the greatest of the value and all operands, in bytewise order. Numbers need a form in which this
/// is their order, such as big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extremum {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

impl Extremum {
    fn of<'a>(self, all: impl Iterator<Item = &'a [u8]>) -> &'a [u8] {
        let extremum = match self {
            Self::Least => all.min(),
            Self::Greatest => all.max(),
        };
        extremum.unwrap_or_default()
    }
}

impl MergeOperator for Extremum {
    fn name(&self) -> &str {
        match self {
            Self::Least => "windrow.least",
            Self::Greatest => "windrow.greatest",
        }
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        result.extend_from_slice(self.of(base.into_iter().chain(operands)));
        Ok(())
    }

    fn partial_merge(
        &self,
        _key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        result.extend_from_slice(self.of(operands));
        Ok(true)
    }
}
