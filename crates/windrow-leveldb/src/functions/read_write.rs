//! The options of opens, reads and writes.

use std::ffi::{c_int, c_void};

use windrow::{Durability, Snapshot};
use windrow_ffi::calls::run;
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::setters;

use super::policies::{Cache, Comparator, FilterPolicy};
use crate::options::OpenOptions;

#[unsafe(no_mangle)]
extern "C" fn leveldb_options_create() -> Box<OpenOptions> {
    give(OpenOptions::default())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_options_destroy(options: Option<Box<OpenOptions>>) {
    run((), || drop(take(options)));
}

setters! {
    leveldb_options_set_comparator(options: OpenOptions, comparator: Option<&Comparator>) {
        options.order = check(comparator).and_then(|comparator| comparator.order.clone());
    }

    leveldb_options_set_filter_policy(options: OpenOptions, policy: Option<&FilterPolicy>) {
        options.common.bits_per_key = check(policy).and_then(|policy| policy.bits_per_key);
    }

    leveldb_options_set_create_if_missing(options: OpenOptions, value: u8) {
        options.common.create_if_missing = value != 0;
    }

    leveldb_options_set_error_if_exists(options: OpenOptions, value: u8) {
        options.common.error_if_exists = value != 0;
    }

    /// No effect: all checks are always made.
    leveldb_options_set_paranoid_checks(_options: OpenOptions, _value: u8) {}

    /// No effect: there is one environment.
    leveldb_options_set_env(_options: OpenOptions, _environment: *mut c_void) {}

    /// No effect: no function of the interface makes a logger.
    leveldb_options_set_info_log(_options: OpenOptions, _logger: *mut c_void) {}

    leveldb_options_set_write_buffer_size(options: OpenOptions, bytes: usize) {
        options.common.write_buffer_bytes = bytes;
    }

    leveldb_options_set_max_open_files(options: OpenOptions, files: c_int) {
        options.common.open_files = files;
    }

    leveldb_options_set_cache(options: OpenOptions, cache: Option<&Cache>) {
        options.common.set_cache(check(cache).map(|cache| cache.bytes));
    }

    leveldb_options_set_block_size(options: OpenOptions, bytes: usize) {
        options.common.block_bytes = bytes;
    }

    /// No effect: the form of a block needs none.
    leveldb_options_set_block_restart_interval(_options: OpenOptions, _interval: c_int) {}

    leveldb_options_set_max_file_size(options: OpenOptions, bytes: usize) {
        options.common.file_bytes = bytes;
    }

    /// 0 is none. Any other codec is LZ4, which is as fast as Snappy.
    leveldb_options_set_compression(options: OpenOptions, codec: c_int) {
        options.common.is_compressed = codec != 0;
    }
}

/// `leveldb_readoptions_t`.
#[derive(Default)]
pub(super) struct ReadOptions {
    pub(super) snapshot: Option<Snapshot>,
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_readoptions_create() -> Box<ReadOptions> {
    give(ReadOptions::default())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_readoptions_destroy(options: Option<Box<ReadOptions>>) {
    run((), || drop(take(options)));
}

setters! {
    /// No effect: checksums are always verified.
    leveldb_readoptions_set_verify_checksums(_options: ReadOptions, _value: u8) {}

    /// No effect: the page cache keeps what is read.
    leveldb_readoptions_set_fill_cache(_options: ReadOptions, _value: u8) {}

    /// The options keep the snapshot readable, also after its release.
    leveldb_readoptions_set_snapshot(options: ReadOptions, snapshot: Option<&Snapshot>) {
        options.snapshot = snapshot.cloned();
    }
}

/// `leveldb_writeoptions_t`.
#[derive(Default)]
pub(super) struct WriteOptions {
    durability: Durability,
}

impl WriteOptions {
    /// What `options` say; null for the defaults.
    pub(super) fn durability(options: Option<&Self>) -> Durability {
        check(options).map_or_else(Durability::default, |options| options.durability)
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writeoptions_create() -> Box<WriteOptions> {
    give(WriteOptions::default())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_writeoptions_destroy(options: Option<Box<WriteOptions>>) {
    drop(take(options));
}

setters! {
    leveldb_writeoptions_set_sync(options: WriteOptions, value: u8) {
        options.durability = if value == 0 { Durability::Buffered } else { Durability::Sync };
    }
}
