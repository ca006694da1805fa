//! Write batches.

use std::ffi::{c_char, c_void};
use std::ptr;

use windrow_ffi::bytes;
use windrow_ffi::calls::run;
use windrow_ffi::handles::{check, give, take};

use crate::batch::{Write, WriteBatch};

type PutFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);

type DeletedFunction = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_create() -> Box<WriteBatch> {
    give(WriteBatch::default())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_destroy(batch: Option<Box<WriteBatch>>) {
    drop(take(batch));
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_clear(batch: Option<&mut WriteBatch>) {
    if let Some(batch) = check(batch) {
        batch.clear();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_put(
    batch: Option<&mut WriteBatch>,
    key: *const c_char,
    key_length: usize,
    value: *const c_char,
    value_length: usize,
) {
    let Some(batch) = check(batch) else { return };
    run((), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length) };
        // SAFETY: the same.
        let value = unsafe { bytes(value, value_length) };
        match key.and_then(|key| Ok(Write::Put(key, value?))) {
            Ok(write) => batch.add(write),
            Err(error) => batch.add_fault(|| error.to_string()),
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_delete(
    batch: Option<&mut WriteBatch>,
    key: *const c_char,
    key_length: usize,
) {
    let Some(batch) = check(batch) else { return };
    run((), || {
        // SAFETY: the caller promises the bytes.
        match unsafe { bytes(key, key_length) } {
            Ok(key) => batch.add(Write::Delete(key)),
            Err(error) => batch.add_fault(|| error.to_string()),
        }
    });
}

/// The functions must not change the batch.
#[unsafe(no_mangle)]
extern "C" fn leveldb_writebatch_iterate(
    batch: Option<&WriteBatch>,
    state: *mut c_void,
    put: Option<PutFunction>,
    deleted: Option<DeletedFunction>,
) {
    let (Some(batch), Some(put), Some(deleted)) = (check(batch), put, deleted) else {
        return;
    };
    run((), || {
        for write in batch.writes() {
            match write {
                Write::Put(key, value) => {
                    let (key, length) = (key.as_ptr().cast(), key.len());
                    // SAFETY: the caller has passed state and function together; the bytes are there during the call.
                    unsafe { put(state, key, length, value.as_ptr().cast(), value.len()) };
                }
                Write::Delete(key) => {
                    // SAFETY: the same.
                    unsafe { deleted(state, key.as_ptr().cast(), key.len()) };
                }
            }
        }
    });
}

/// Both may be the same batch.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_writebatch_append(
    destination: *mut WriteBatch,
    source: *const WriteBatch,
) {
    let is_same = ptr::eq(destination, source);
    // SAFETY: null, or a batch that nobody else uses now.
    let Some(destination) = (unsafe { destination.as_mut() }) else {
        return;
    };
    if is_same {
        destination.append_itself();
        return;
    }
    // SAFETY: null, or another batch.
    if let Some(source) = unsafe { source.as_ref() } {
        destination.append(source);
    }
}
