//! Snapshots.
//!
//! # Safety argument
//! A handle is memory of `malloc` with the address of a snapshot. That of a database owns the snapshot, a `Box`, and
//! `rocksdb_release_snapshot` frees both. That of a transaction borrows it: the header makes it a duty of the caller to
//! free the handle, with `rocksdb_free`, and to use it no longer than the transaction, which keeps the snapshot at its
//! place.
//!
//! Concurrency: any thread may read a snapshot.

use std::ptr::{null, null_mut};

use windrow::Snapshot;
use windrow_ffi::calls::run;
use windrow_ffi::handles::check;
use windrow_ffi::{allocate_value, release};

use crate::database::Database;

/// `rocksdb_snapshot_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SnapshotHandle {
    /// Null for a transaction without a snapshot.
    snapshot: *const Snapshot,
}

impl SnapshotHandle {
    /// A handle that borrows a snapshot.
    pub(super) fn borrowing(snapshot: Option<&Snapshot>) -> *mut Self {
        let snapshot = snapshot.map_or(null(), std::ptr::from_ref);
        allocate_value(Self { snapshot }).unwrap_or(null_mut())
    }

    /// A handle that owns a snapshot.
    fn owning(snapshot: Snapshot) -> *mut Self {
        let snapshot = Box::into_raw(Box::new(snapshot));
        allocate_value(Self { snapshot }).unwrap_or_else(|_| {
            // SAFETY: it was made above.
            drop(unsafe { Box::from_raw(snapshot) });
            null_mut()
        })
    }

    pub(super) fn get(&self) -> Option<&Snapshot> {
        // SAFETY: null, or a snapshot that outlives the use of the handle.
        unsafe { self.snapshot.as_ref() }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_snapshot(database: Option<&Database>) -> *mut SnapshotHandle {
    run(null_mut(), || {
        check(database).map_or(null_mut(), |database| {
            SnapshotHandle::owning(database.snapshot())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_create_snapshot(
    database: Option<&Database>,
) -> *mut SnapshotHandle {
    rocksdb_create_snapshot(database)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_release_snapshot(
    _database: Option<&Database>,
    handle: *mut SnapshotHandle,
) {
    run((), || {
        // SAFETY: null, or a handle that owns its snapshot.
        let Some(found) = (unsafe { handle.as_ref() }) else {
            return;
        };
        // SAFETY: it was made by `Box::into_raw`.
        drop(unsafe { Box::from_raw(found.snapshot.cast_mut()) });
        // SAFETY: the handle is memory of `malloc`.
        unsafe { release(handle.cast()) };
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_release_snapshot(
    database: Option<&Database>,
    handle: *mut SnapshotHandle,
) {
    // SAFETY: the caller promises the same.
    unsafe { rocksdb_release_snapshot(database, handle) };
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_snapshot_get_sequence_number(handle: Option<&SnapshotHandle>) -> u64 {
    let snapshot = handle.and_then(SnapshotHandle::get);
    snapshot.map_or(0, Snapshot::sequence)
}
