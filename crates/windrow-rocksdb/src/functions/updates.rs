//! What was written since a sequence number: `rocksdb_wal_iterator_t`.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use windrow_ffi::calls::{ErrorPointer, run};
use windrow_ffi::given;
use windrow_ffi::handles::{check, give, take};

use crate::batch::WriteBatch;
use crate::database::Database;
use crate::status;
use crate::updates::Updates;

/// The iterator is at the batch that has the write `sequence`, if there is one. Checksums are always verified.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_get_updates_since(
    database: Option<&Database>,
    sequence: u64,
    _options: *const c_void,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Updates>> {
    errptr.run(None, status::of_updates, || {
        let updates = Updates::since(given(database, "database")?, sequence)?;
        Ok(Some(give(updates)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_wal_iter_destroy(updates: Option<Box<Updates>>) {
    run((), || drop(take(updates)));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_wal_iter_next(updates: Option<&mut Updates>) {
    if let Some(updates) = check(updates) {
        run((), || updates.advance());
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_wal_iter_valid(updates: Option<&Updates>) -> u8 {
    u8::from(check(updates).is_some_and(|updates| updates.batch().is_some()))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_wal_iter_status(updates: Option<&Updates>, errptr: ErrorPointer<'_>) {
    if let Some(error) = check(updates).and_then(Updates::error) {
        errptr.report(error);
    }
}

/// A copy of the batch, which the caller destroys; null at the end.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_wal_iter_get_batch(
    updates: Option<&Updates>,
    sequence: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<WriteBatch>> {
    run(None, || {
        let (first, batch) = check(updates)?.batch()?;
        if let Some(sequence) = sequence {
            sequence.write(first);
        }
        Some(give(batch.clone()))
    })
}
