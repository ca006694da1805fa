//! What Windrow cannot do: functions that return an error, and those of handles that do not exist for that reason.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow_ffi::calls::{ErrorPointer, run};
use windrow_ffi::handles::check;

use super::{FamilyHandle, run_with};
use crate::batch::WriteBatch;
use crate::status::unsupported;

/// Defines functions that do nothing but report an error, and return null if they return anything.
macro_rules! absent {
    ($($name:ident($($type:ty),*) $(-> $result:ty)?: $what:expr;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($(_: $type,)* errptr: ErrorPointer<'_>) $(-> *mut $result)? {
            run_with(errptr, (), || Err(unsupported($what)));
            $(null_mut::<$result>())?
        })*
    };
}

const TIMESTAMPS: &str = "Windrow has no timestamps of users";
const FILES: &str = "files cannot be kept, or dropped, by themselves";

type Pointer = *const c_void;

absent! {
    rocksdb_put_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer, usize): TIMESTAMPS;
    rocksdb_put_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, usize, Pointer, usize): TIMESTAMPS;
    rocksdb_delete_with_ts(Pointer, Pointer, Pointer, usize, Pointer, usize): TIMESTAMPS;
    rocksdb_delete_cf_with_ts(Pointer, Pointer, Pointer, Pointer, usize, Pointer, usize): TIMESTAMPS;
    rocksdb_increase_full_history_ts_low(Pointer, Pointer, Pointer, usize): TIMESTAMPS;
    rocksdb_get_full_history_ts_low(Pointer, Pointer, Pointer) -> c_char: TIMESTAMPS;
    rocksdb_disable_file_deletions(Pointer): FILES;
    rocksdb_enable_file_deletions(Pointer): FILES;
    rocksdb_delete_file_in_range(Pointer, Pointer, usize, Pointer, usize): FILES;
    rocksdb_delete_file_in_range_cf(Pointer, Pointer, Pointer, usize, Pointer, usize): FILES;
    rocksdb_transaction_rebuild_from_writebatch(Pointer, Pointer): "a transaction cannot be made of a batch";
    rocksdb_get_options_from_string(Pointer, Pointer, Pointer): "options cannot be set by a text";
    rocksdb_load_latest_options(Pointer, Pointer, bool, Pointer, Pointer, Pointer, Pointer, Pointer): "the options of the last open are not kept";
}

/// The commit of the batch is an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_put_cf_with_ts(
    batch: Option<&mut WriteBatch>,
    _family: Option<&FamilyHandle>,
    _key: *const c_char,
    _key_length: usize,
    _timestamp: *const c_char,
    _timestamp_length: usize,
    _value: *const c_char,
    _value_length: usize,
) {
    if let Some(batch) = check(batch) {
        run((), || batch.add_fault(|| TIMESTAMPS.to_owned()));
    }
}

/// The commit of the batch is an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_writebatch_delete_cf_with_ts(
    batch: Option<&mut WriteBatch>,
    _family: Option<&FamilyHandle>,
    _key: *const c_char,
    _key_length: usize,
    _timestamp: *const c_char,
    _timestamp_length: usize,
) {
    if let Some(batch) = check(batch) {
        run((), || batch.add_fault(|| TIMESTAMPS.to_owned()));
    }
}

/// Null: Windrow does not say which keys a file has.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_livefiles(_database: Pointer) -> Pointer {
    null_mut()
}

/// Defines functions of a list of files, which there is none of.
macro_rules! of_files {
    ($($name:ident($($type:ty),*) -> $result:ty: $none:expr;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(_files: Pointer, $(_: $type),*) -> $result {
            $none
        })*
    };
}

of_files! {
    rocksdb_livefiles_count() -> c_int: 0;
    rocksdb_livefiles_column_family_name(c_int) -> *mut c_char: null_mut();
    rocksdb_livefiles_name(c_int) -> *mut c_char: null_mut();
    rocksdb_livefiles_level(c_int) -> c_int: 0;
    rocksdb_livefiles_size(c_int) -> usize: 0;
    rocksdb_livefiles_smallestkey(c_int, Option<&mut MaybeUninit<usize>>) -> *mut c_char: null_mut();
    rocksdb_livefiles_largestkey(c_int, Option<&mut MaybeUninit<usize>>) -> *mut c_char: null_mut();
    rocksdb_livefiles_entries(c_int) -> u64: 0;
    rocksdb_livefiles_deletions(c_int) -> u64: 0;
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_livefiles_destroy(_files: Pointer) {}
