//! Errors about damage in a store of backups. Pure.

use std::fmt;

use crate::base::Error;

/// What to do next about damage of a backup.
pub(super) const ANOTHER_BACKUP: &str = "use another backup, or make a new one";

/// Bytes of the object `name` at `offset` are damaged.
pub(super) fn damage(name: &str, offset: u64, what: impl fmt::Display) -> Error {
    Error::corruption(name, offset, what).with_next_step(ANOTHER_BACKUP)
}
