//! The options of reads and writes.

use std::ffi::{c_char, c_int, c_void};

use windrow::Durability;
use windrow_ffi::calls::run;
use windrow_ffi::handles::check;
use windrow_ffi::{bytes, setters};

use super::snapshots::SnapshotHandle;
use crate::options::{ReadOptions, WriteOptions};

const TIMESTAMPS: &str = "Windrow has no timestamps of users";

handles! {
    rocksdb_readoptions_create, rocksdb_readoptions_destroy: ReadOptions;
    rocksdb_writeoptions_create, rocksdb_writeoptions_destroy: WriteOptions;
}

setters! {
    /// The options keep the snapshot readable, also after its release.
    rocksdb_readoptions_set_snapshot(options: ReadOptions, snapshot: Option<&SnapshotHandle>) {
        options.snapshot = snapshot.and_then(SnapshotHandle::get).cloned();
    }

    rocksdb_readoptions_set_prefix_same_as_start(options: ReadOptions, value: u8) {
        options.prefix_same_as_start = value != 0;
    }

    rocksdb_readoptions_set_total_order_seek(options: ReadOptions, value: u8) {
        options.total_order_seek = value != 0;
    }

    rocksdb_readoptions_set_tailing(options: ReadOptions, value: u8) {
        options.is_tailing = value != 0;
    }

    rocksdb_writeoptions_set_sync(options: WriteOptions, value: u8) {
        options.durability = if value == 0 { Durability::Buffered } else { Durability::Sync };
    }

    rocksdb_writeoptions_set_ignore_missing_column_families(options: WriteOptions, value: u8) {
        options.ignores_missing_families = value != 0;
    }
}

/// The bound of the caller as bytes; none for null.
///
/// # Safety
/// The bytes have their length.
unsafe fn bound(key: *const c_char, length: usize) -> Option<Vec<u8>> {
    if key.is_null() {
        return None;
    }
    // SAFETY: the caller promises the bytes.
    unsafe { bytes(key, length) }.ok().map(<[u8]>::to_vec)
}

/// The options copy the key.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_readoptions_set_iterate_upper_bound(
    options: Option<&mut ReadOptions>,
    key: *const c_char,
    length: usize,
) {
    if let Some(options) = check(options) {
        // SAFETY: the caller promises the bytes.
        run((), || options.upper = unsafe { bound(key, length) });
    }
}

/// The options copy the key.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_readoptions_set_iterate_lower_bound(
    options: Option<&mut ReadOptions>,
    key: *const c_char,
    length: usize,
) {
    if let Some(options) = check(options) {
        // SAFETY: the caller promises the bytes.
        run((), || options.lower = unsafe { bound(key, length) });
    }
}

/// Reads with a timestamp are an error.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_readoptions_set_timestamp(
    options: Option<&mut ReadOptions>,
    timestamp: *const c_char,
    _length: usize,
) {
    if let Some(options) = check(options) {
        options.unsupported = (!timestamp.is_null()).then_some(TIMESTAMPS);
    }
}

/// As `rocksdb_readoptions_set_timestamp`.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_readoptions_set_iter_start_ts(
    options: Option<&mut ReadOptions>,
    timestamp: *const c_char,
    length: usize,
) {
    rocksdb_readoptions_set_timestamp(options, timestamp, length);
}

/// Defines functions that set an option without an effect: all of them leave the results of reads and writes as they are.
macro_rules! without_effect {
    ($($name:ident($type:ty);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(_options: *const c_void, _value: $type) {})*
    };
}

without_effect! {
    rocksdb_readoptions_set_async_io(u8);
    rocksdb_readoptions_set_auto_readahead_size(u8);
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(u8);
    rocksdb_readoptions_set_deadline(u64);
    rocksdb_readoptions_set_fill_cache(u8);
    rocksdb_readoptions_set_ignore_range_deletions(u8);
    rocksdb_readoptions_set_io_timeout(u64);
    rocksdb_readoptions_set_max_skippable_internal_keys(u64);
    rocksdb_readoptions_set_pin_data(u8);
    rocksdb_readoptions_set_read_tier(c_int);
    rocksdb_readoptions_set_readahead_size(usize);
    rocksdb_readoptions_set_verify_checksums(u8);
    rocksdb_writeoptions_disable_WAL(c_int);
    rocksdb_writeoptions_set_low_pri(u8);
    rocksdb_writeoptions_set_memtable_insert_hint_per_batch(u8);
    rocksdb_writeoptions_set_no_slowdown(u8);
}
