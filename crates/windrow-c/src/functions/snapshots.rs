//! Snapshots.

use super::calls::guard;

/// The state of all keyspaces at one moment. Any thread may use it. Compactions keep what it can read.
#[derive(Debug)]
pub struct Snapshot(pub(super) windrow::Snapshot);

/// Frees a snapshot. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_free(snapshot: Option<Box<Snapshot>>) {
    guard((), || drop(snapshot));
}
