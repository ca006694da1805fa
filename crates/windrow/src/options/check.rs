//! The checks of options, keys and values that a caller gives.

use crate::base::limits::{KEY_BYTES_MAX, OPERAND_BYTES_MAX, VALUE_BYTES_MAX};
use crate::base::{Error, Result};

/// The faults of those `checks` that are false.
pub(super) fn faults<const N: usize>(checks: [(bool, String); N]) -> Vec<String> {
    let faults = checks.into_iter().filter(|(is_sound, _)| !is_sound);
    faults.map(|(_, fault)| fault).collect()
}

/// `InvalidArgument` with all `faults`, if there are any.
pub(super) fn report(faults: &[String]) -> Result<()> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::invalid_argument(faults.join("; ")))
    }
}

/// Checks the length of a key.
#[inline]
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid_argument("a key must have at least one byte"));
    }
    check_length("key", key, KEY_BYTES_MAX)
}

/// Checks the length of a value.
#[inline]
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    check_length("value", value, VALUE_BYTES_MAX)
}

#[inline]
pub(crate) fn check_operand(operand: &[u8]) -> Result<()> {
    check_length("operand", operand, OPERAND_BYTES_MAX)
}

#[inline]
fn check_length(what: &str, bytes: &[u8], limit: usize) -> Result<()> {
    if bytes.len() > limit {
        return Err(Error::invalid_argument(format!(
            "a {what} of {} bytes is longer than the limit of {limit}",
            bytes.len(),
        )));
    }
    Ok(())
}
