//! Write batches.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

use windrow::Result;
use windrow_ffi::calls::{ErrorPointer, Lent, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{bytes, given};

use super::{FamilyHandle, Place, run_with};
use crate::batch::{DEFAULT_FAMILY, Write, WriteBatch};

type PutFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);

type DeletedFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

type FamilyPutFunction =
    unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize, *const c_char, usize);

type FamilyDeletedFunction = unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_create() -> Box<WriteBatch> {
    give(WriteBatch::default())
}

/// The bytes are those of a batch of RocksDB or of this library. Damage is an error of the write.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_create_from(
    bytes_of_batch: *const c_char,
    length: usize,
) -> Box<WriteBatch> {
    give(run(WriteBatch::default(), || {
        // SAFETY: the caller promises the bytes.
        match unsafe { bytes(bytes_of_batch, length) } {
            Ok(found) => WriteBatch::from_bytes(found),
            Err(error) => {
                let mut batch = WriteBatch::default();
                batch.add_fault(|| error.to_string());
                batch
            }
        }
    }))
}

/// There is no protection by checksums in memory. Timestamps are an error of the write.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_create_with_params(
    reserved_bytes: usize,
    bytes_max: usize,
    _protection_bytes_per_key: usize,
    timestamp_bytes: usize,
) -> Box<WriteBatch> {
    give(run(WriteBatch::default(), || {
        let mut batch = WriteBatch::new(reserved_bytes, bytes_max);
        if timestamp_bytes > 0 {
            batch.add_fault(|| "Windrow has no timestamps of users".to_owned());
        }
        batch
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_destroy(batch: Option<Box<WriteBatch>>) {
    drop(take(batch));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_clear(batch: Option<&mut WriteBatch>) {
    if let Some(batch) = check(batch) {
        batch.clear();
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_count(batch: Option<&WriteBatch>) -> c_int {
    let count = check(batch).map_or(0, WriteBatch::count);
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// The bytes stay until the next change of the batch.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_data(
    batch: Option<&WriteBatch>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    let lent = check(batch).map(|batch| Lent::new(batch.bytes()));
    lent.unwrap_or(Lent::NONE).give(length)
}

/// Adds a write, or notes why there is none.
fn add(batch: Option<&mut WriteBatch>, place: Place<'_>, write: Result<Write<'_>>) {
    let Some(batch) = check(batch) else { return };
    let id = match place {
        Place::Default => Ok(DEFAULT_FAMILY),
        Place::Family(handle) => given(handle, "column family").map(|handle| handle.family.id),
    };
    run((), || match id.and_then(|id| Ok((id, write?))) {
        Ok((id, write)) => batch.add(id, write),
        Err(error) => batch.add_fault(|| error.to_string()),
    });
}

/// Defines a function that adds a write with one byte string, for `default` and for any family.
macro_rules! with_key {
    ($($in_default:ident, $in_family:ident: $write:path;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $in_default(
            batch: Option<&mut WriteBatch>,
            key: *const c_char,
            key_length: usize,
        ) {
            // SAFETY: the caller promises the bytes.
            let key = unsafe { bytes(key, key_length) };
            add(batch, Place::Default, key.map($write));
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $in_family(
            batch: Option<&mut WriteBatch>,
            family: Option<&FamilyHandle>,
            key: *const c_char,
            key_length: usize,
        ) {
            // SAFETY: the caller promises the bytes.
            let key = unsafe { bytes(key, key_length) };
            add(batch, Place::Family(family), key.map($write));
        })*
    };
}

/// The same for writes with two byte strings.
macro_rules! with_two {
    ($($in_default:ident, $in_family:ident: $write:path;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $in_default(
            batch: Option<&mut WriteBatch>,
            first: *const c_char,
            first_length: usize,
            second: *const c_char,
            second_length: usize,
        ) {
            // SAFETY: the caller promises the bytes.
            let first = unsafe { bytes(first, first_length) };
            // SAFETY: the same.
            let second = unsafe { bytes(second, second_length) };
            let write = first.and_then(|first| Ok($write(first, second?)));
            add(batch, Place::Default, write);
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $in_family(
            batch: Option<&mut WriteBatch>,
            family: Option<&FamilyHandle>,
            first: *const c_char,
            first_length: usize,
            second: *const c_char,
            second_length: usize,
        ) {
            // SAFETY: the caller promises the bytes.
            let first = unsafe { bytes(first, first_length) };
            // SAFETY: the same.
            let second = unsafe { bytes(second, second_length) };
            let write = first.and_then(|first| Ok($write(first, second?)));
            add(batch, Place::Family(family), write);
        })*
    };
}

with_key! {
    rocksdb_writebatch_delete, rocksdb_writebatch_delete_cf: Write::Delete;
    rocksdb_writebatch_singledelete, rocksdb_writebatch_singledelete_cf: Write::SingleDelete;
}

with_two! {
    rocksdb_writebatch_put, rocksdb_writebatch_put_cf: Write::Put;
    rocksdb_writebatch_merge, rocksdb_writebatch_merge_cf: Write::Merge;
    rocksdb_writebatch_delete_range, rocksdb_writebatch_delete_range_cf: Write::DeleteRange;
}

/// The bytes are in the batch, but not in Windrow's log.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_put_log_data(
    batch: Option<&mut WriteBatch>,
    data: *const c_char,
    length: usize,
) {
    let Some(batch) = check(batch) else { return };
    run((), || {
        // SAFETY: the caller promises the bytes.
        match unsafe { bytes(data, length) } {
            Ok(data) => batch.add_log_data(data),
            Err(error) => batch.add_fault(|| error.to_string()),
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_set_save_point(batch: Option<&mut WriteBatch>) {
    if let Some(batch) = check(batch) {
        run((), || batch.set_save_point());
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_rollback_to_save_point(
    batch: Option<&mut WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        given(batch, "batch")?.roll_back_to_save_point()
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_pop_save_point(
    batch: Option<&mut WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || given(batch, "batch")?.pop_save_point());
}

/// The functions must not change the batch. They see puts and deletes of `default`.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_iterate(
    batch: Option<&WriteBatch>,
    state: *mut c_void,
    put: Option<PutFunction>,
    deleted: Option<DeletedFunction>,
) {
    let (Some(batch), Some(put), Some(deleted)) = (check(batch), put, deleted) else {
        return;
    };
    run((), || {
        for (id, write) in batch.writes().map_while(Result::ok) {
            match write {
                _ if id != DEFAULT_FAMILY => {}
                Write::Put(key, value) => {
                    let (key, length) = (key.as_ptr().cast(), key.len());
                    // SAFETY: the caller has passed state and function together; the bytes are there during the call.
                    unsafe { put(state, key, length, value.as_ptr().cast(), value.len()) };
                }
                Write::Delete(key) | Write::SingleDelete(key) => {
                    // SAFETY: the same.
                    unsafe { deleted(state, key.as_ptr().cast(), key.len()) };
                }
                Write::Merge(..) | Write::DeleteRange(..) => {}
            }
        }
    });
}

/// The functions must not change the batch. They see puts, deletes and operands of all families.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_writebatch_iterate_cf(
    batch: Option<&WriteBatch>,
    state: *mut c_void,
    put: Option<FamilyPutFunction>,
    deleted: Option<FamilyDeletedFunction>,
    merged: Option<FamilyPutFunction>,
) {
    let (Some(batch), Some(put), Some(deleted), Some(merged)) =
        (check(batch), put, deleted, merged)
    else {
        return;
    };
    run((), || {
        for (id, write) in batch.writes().map_while(Result::ok) {
            let (function, key, value) = match write {
                Write::Put(key, value) => (put, key, value),
                Write::Merge(key, operand) => (merged, key, operand),
                Write::Delete(key) | Write::SingleDelete(key) => {
                    // SAFETY: the caller has passed state and function together; the bytes are there during the call.
                    unsafe { deleted(state, id, key.as_ptr().cast(), key.len()) };
                    continue;
                }
                Write::DeleteRange(..) => continue,
            };
            let (key, length) = (key.as_ptr().cast(), key.len());
            // SAFETY: the same.
            unsafe { function(state, id, key, length, value.as_ptr().cast(), value.len()) };
        }
    });
}
