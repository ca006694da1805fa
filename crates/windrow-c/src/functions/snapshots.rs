//! Snapshots.

use windrow_ffi::handles::{check, take};

use super::calls::guard;

/// The state of all keyspaces at one moment. Any thread may use it. Compactions keep what it can read.
#[derive(Debug)]
pub struct Snapshot(pub(super) windrow::Snapshot);

/// Frees a snapshot. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_free(snapshot: Option<Box<Snapshot>>) {
    guard((), || drop(take(snapshot)));
}

/// The sequence number of the newest write in the snapshot: its changes are those up to here. 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_snapshot_sequence(snapshot: Option<&Snapshot>) -> u64 {
    check(snapshot).map_or(0, |snapshot| snapshot.0.sequence())
}
