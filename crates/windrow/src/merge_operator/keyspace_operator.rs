//! The merge operator of one keyspace: its recorded name, and the operator if this open has it.
//!
//! Concurrency: shared freely.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::chain::Chain;
use super::operator::{MergeError, MergeOperator, Operands};
use crate::base::limits::{OPERAND_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{Error, ErrorKind, Result};

/// The merge operator of a keyspace.
#[derive(Clone, Default)]
pub(crate) struct KeyspaceOperator {
    /// The name that the manifest has recorded, or will record.
    name: Option<String>,
    /// `None` if this open does not have the operator.
    operator: Option<Arc<dyn MergeOperator>>,
}

impl KeyspaceOperator {
    /// The recorded `name`, and the operator of that name.
    pub(crate) fn new(name: Option<String>, operator: Option<Arc<dyn MergeOperator>>) -> Self {
        Self { name, operator }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether operands can be folded.
    pub(crate) fn is_there(&self) -> bool {
        self.operator.is_some()
    }

    /// # Errors
    /// `Merge` without the operator.
    pub(crate) fn check_there(&self) -> Result<()> {
        self.get().map(drop)
    }

    /// Replaces the content of `value` by the value of `key` after the operands of `chain` on `base`.
    ///
    /// # Errors
    /// `Merge`: without the operator, or if it fails.
    pub(crate) fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        chain: &Chain,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let operator = self.get()?;
        value.clear();
        chain.with_operands(|operands| {
            call(operator, key, || {
                operator.full_merge(key, base, Operands::new(operands), value)
            })
        })?;
        if value.len() > VALUE_BYTES_MAX {
            value.clear();
            let fault = "its result is longer than a value may be";
            return Err(failure(operator.name(), key, fault));
        }
        Ok(())
    }

    /// Replaces the content of `operand` by one operand for all of `chain`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`full_merge`](Self::full_merge).
    pub(crate) fn partial_merge(
        &self,
        key: &[u8],
        chain: &Chain,
        operand: &mut Vec<u8>,
    ) -> Result<bool> {
        let operator = self.get()?;
        operand.clear();
        let is_one = chain.with_operands(|operands| {
            call(operator, key, || {
                operator.partial_merge(key, Operands::new(operands), operand)
            })
        })?;
        Ok(is_one && operand.len() <= OPERAND_BYTES_MAX)
    }

    fn get(&self) -> Result<&dyn MergeOperator> {
        self.operator.as_deref().ok_or_else(|| {
            let message = match &self.name {
                Some(name) => format!(
                    "the keyspace has merge operator \"{name}\", which this open of the database does not have"
                ),
                None => "the keyspace has no merge operator".to_owned(),
            };
            Error::new(ErrorKind::Merge, message)
        })
    }
}

/// Calls a function of `operator` for `key` and catches a panic.
fn call<R>(
    operator: &dyn MergeOperator,
    key: &[u8],
    function: impl FnOnce() -> std::result::Result<R, MergeError>,
) -> Result<R> {
    match catch_unwind(AssertUnwindSafe(function)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(failure(operator.name(), key, error)),
        Err(_) => Err(failure(operator.name(), key, "it panicked")),
    }
}

#[cold]
fn failure(name: &str, key: &[u8], fault: impl fmt::Display) -> Error {
    let key = key.escape_ascii();
    let message = format!("merge operator \"{name}\" failed for key \"{key}\": {fault}");
    Error::new(ErrorKind::Merge, message)
}

impl fmt::Debug for KeyspaceOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyspaceOperator")
            .field("name", &self.name)
            .field("is_there", &self.is_there())
            .finish_non_exhaustive()
    }
}
