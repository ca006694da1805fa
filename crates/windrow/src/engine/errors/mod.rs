//! What the engine does after errors.
//!
//! - [`poison`]: nothing more is acknowledged after an error that leaves durability unknown.
//! - [`failure`]: a failed job keeps its error and pauses before it runs again.
//! - [`full_disk`]: the events of a full disk.
//! - [`reserve`]: disk space kept back for a full disk.

pub(super) mod failure;
pub(super) mod full_disk;
pub(super) mod poison;
pub(super) mod reserve;
