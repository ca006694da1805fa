//! Reads and writes of single keys and ranges, and of batches.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow::PinnedValue;
use windrow_ffi::calls::{ErrorPointer, Lent, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{allocate, bytes, given};

use super::{FamilyHandle, Place, run_with};
use crate::batch::{Write, WriteBatch};
use crate::database::Database;
use crate::options::{ReadOptions, WriteOptions};

/// `rocksdb_pinnableslice_t`: a value in its place.
pub(super) struct PinnableSlice {
    value: Value,
}

enum Value {
    Pinned(PinnedValue),
    Owned(Vec<u8>),
}

impl PinnableSlice {
    pub(super) fn pinned(value: PinnedValue) -> Box<Self> {
        give(Self {
            value: Value::Pinned(value),
        })
    }

    pub(super) fn owned(value: Vec<u8>) -> Box<Self> {
        give(Self {
            value: Value::Owned(value),
        })
    }

    fn bytes(&self) -> &[u8] {
        match &self.value {
            Value::Pinned(value) => value,
            Value::Owned(value) => value,
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_pinnableslice_destroy(slice: Option<Box<PinnableSlice>>) {
    run((), || drop(take(slice)));
}

/// The bytes stay until the destruction of the slice.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_pinnableslice_value(
    slice: Option<&PinnableSlice>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    let lent = check(slice).map(|slice| Lent::new(slice.bytes()));
    lent.unwrap_or(Lent::NONE).give(length)
}

/// What the options of a read say; null for the defaults.
pub(super) fn with_options<R>(
    options: Option<&ReadOptions>,
    read: impl FnOnce(&ReadOptions) -> R,
) -> R {
    match check(options) {
        Some(options) => read(options),
        None => read(&ReadOptions::default()),
    }
}

/// Makes one write.
fn write_one(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    place: Place<'_>,
    write: Write<'_>,
) -> windrow::Result<()> {
    let database = given(database, "database")?;
    let options = check(options).copied().unwrap_or_default();
    database.write_one(place.of(database)?, write, options)
}

/// # Safety
/// The bytes have their lengths.
unsafe fn put(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        // SAFETY: the same.
        let value = unsafe { bytes(value, value_length)? };
        write_one(database, options, place, Write::Put(key, value))
    });
}

for_families!(rocksdb_put, rocksdb_put_cf: put(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, value: *const c_char, value_length: usize, errptr: ErrorPointer<'_>
));
for_families!(rocksdb_transactiondb_put, rocksdb_transactiondb_put_cf: put(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, value: *const c_char, value_length: usize, errptr: ErrorPointer<'_>
));

/// # Safety
/// As [`put`].
unsafe fn merge(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    operand: *const c_char,
    operand_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        // SAFETY: the same.
        let operand = unsafe { bytes(operand, operand_length)? };
        write_one(database, options, place, Write::Merge(key, operand))
    });
}

for_families!(rocksdb_merge, rocksdb_merge_cf: merge(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, operand: *const c_char, operand_length: usize, errptr: ErrorPointer<'_>
));
for_families!(rocksdb_transactiondb_merge, rocksdb_transactiondb_merge_cf: merge(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, operand: *const c_char, operand_length: usize, errptr: ErrorPointer<'_>
));

/// # Safety
/// As [`put`].
unsafe fn delete(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        write_one(database, options, place, Write::Delete(key))
    });
}

for_families!(rocksdb_delete, rocksdb_delete_cf: delete(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
));
for_families!(rocksdb_singledelete, rocksdb_singledelete_cf: delete(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
));
for_families!(rocksdb_transactiondb_delete, rocksdb_transactiondb_delete_cf: delete(
    database: Option<&Database>, options: Option<&WriteOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
));

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_delete_range_cf(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    family: Option<&FamilyHandle>,
    start: *const c_char,
    start_length: usize,
    end: *const c_char,
    end_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let start = unsafe { bytes(start, start_length)? };
        // SAFETY: the same.
        let end = unsafe { bytes(end, end_length)? };
        let write = Write::DeleteRange(start, end);
        write_one(database, options, Place::Family(family), write)
    });
}

fn write_batch(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    batch: Option<&WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        let batch = given(batch, "batch")?;
        let options = check(options).copied().unwrap_or_default();
        given(database, "database")?.write(batch, options)
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    batch: Option<&WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    write_batch(database, options, batch, errptr);
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_write(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    batch: Option<&WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    write_batch(database, options, batch, errptr);
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_optimistictransactiondb_write(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    batch: Option<&WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    write_batch(database, options, batch, errptr);
}

/// # Safety
/// As [`put`].
unsafe fn find(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
) -> windrow::Result<Option<PinnedValue>> {
    // SAFETY: the caller promises the bytes.
    let key = unsafe { bytes(key, key_length)? };
    let database = given(database, "database")?;
    let family = place.of(database)?;
    with_options(options, |options| Database::get(family, key, options))
}

/// # Safety
/// As [`put`].
unsafe fn get(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    errptr: ErrorPointer<'_>,
) -> *mut c_char {
    let (value, length) = run_with(errptr, (null_mut(), 0), || {
        // SAFETY: the caller promises the bytes.
        match unsafe { find(database, options, place, key, key_length)? } {
            Some(value) => Ok((allocate(&value)?, value.len())),
            None => Ok((null_mut(), 0)),
        }
    });
    if let Some(value_length) = value_length {
        value_length.write(length);
    }
    value
}

for_families!(rocksdb_get, rocksdb_get_cf: get(
    database: Option<&Database>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, value_length: Option<&mut MaybeUninit<usize>>, errptr: ErrorPointer<'_>
) -> *mut c_char);
for_families!(rocksdb_transactiondb_get, rocksdb_transactiondb_get_cf: get(
    database: Option<&Database>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, value_length: Option<&mut MaybeUninit<usize>>, errptr: ErrorPointer<'_>
) -> *mut c_char);

/// # Safety
/// As [`put`].
unsafe fn get_pinned(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    errptr: ErrorPointer<'_>,
) -> Option<Box<PinnableSlice>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises the bytes.
        let found = unsafe { find(database, options, place, key, key_length)? };
        Ok(found.map(PinnableSlice::pinned))
    })
}

for_families!(rocksdb_get_pinned, rocksdb_get_pinned_cf: get_pinned(
    database: Option<&Database>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
) -> Option<Box<PinnableSlice>>);
for_families!(rocksdb_transactiondb_get_pinned, rocksdb_transactiondb_get_pinned_cf: get_pinned(
    database: Option<&Database>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
) -> Option<Box<PinnableSlice>>);

/// The answer is exact: it comes from a read. A read that fails cannot say that the key does not exist.
///
/// # Safety
/// As [`put`].
unsafe fn key_may_exist(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    value: Option<&mut MaybeUninit<*mut c_char>>,
    value_length: Option<&mut MaybeUninit<usize>>,
    _timestamp: *const c_char,
    _timestamp_length: usize,
    value_found: Option<&mut MaybeUninit<u8>>,
) -> u8 {
    let found = run(None, || {
        // SAFETY: the caller promises the bytes.
        let found = unsafe { find(database, options, place, key, key_length) };
        Some(found.map(|found| found.map(|value| (allocate(&value), value.len()))))
    });
    let (exists, found) = match found {
        Some(Ok(Some((Ok(copy), length)))) => (true, Some((copy, length))),
        Some(Ok(None)) => (false, None),
        _ => (true, None),
    };
    if let Some(value_found) = value_found {
        value_found.write(u8::from(found.is_some() && value.is_some()));
    }
    match (value, found) {
        (Some(value), found) => {
            let (copy, length) = found.unwrap_or((null_mut(), 0));
            value.write(copy);
            if let Some(value_length) = value_length {
                value_length.write(length);
            }
        }
        (None, Some((copy, _))) => {
            // SAFETY: it was allocated above, and nobody has it.
            unsafe { windrow_ffi::release(copy.cast()) };
        }
        (None, None) => {}
    }
    u8::from(exists)
}

for_families!(rocksdb_key_may_exist, rocksdb_key_may_exist_cf: key_may_exist(
    database: Option<&Database>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, value: Option<&mut MaybeUninit<*mut c_char>>,
    value_length: Option<&mut MaybeUninit<usize>>, timestamp: *const c_char, timestamp_length: usize,
    value_found: Option<&mut MaybeUninit<u8>>
) -> u8);
