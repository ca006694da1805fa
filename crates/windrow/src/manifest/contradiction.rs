//! The error of an edit that does not fit the state.

use std::fmt;

/// An edit that does not fit the state it is applied to: damage if the edit was read from a file, a
/// bug otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contradiction(String);

impl Contradiction {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(super) fn require(
    holds: bool,
    otherwise: impl FnOnce() -> String,
) -> Result<(), Contradiction> {
    if holds {
        Ok(())
    } else {
        Err(Contradiction(otherwise()))
    }
}

/// Raises `value` to `new`.
pub(super) fn grow(value: &mut u64, new: u64, what: &str) -> Result<(), Contradiction> {
    require(*value <= new, || {
        format!("the {what} falls from {value} to {new}")
    })?;
    *value = new;
    Ok(())
}
