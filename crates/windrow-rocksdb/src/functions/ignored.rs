//! Options that only tune RocksDB, and handles of what Windrow does without.
//!
//! A database notes each option of the first two tables that was set, and its log names them. None of them changes what reads
//! and writes return. What the others belong to has no effect as a whole, or they say how much work a call may leave undone:
//! Windrow does all of it.

use std::ffi::{c_char, c_int, c_uint, c_void};

use windrow_ffi::calls::run;
use windrow_ffi::handles::{check, give, take};

use super::Unused;
use super::open_options::TableOptions;
use crate::options::OpenOptions;

/// Defines functions that note that an option was set.
macro_rules! ignored_options {
    ($options:ty: $($name:ident($($type:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(options: Option<&mut $options>, $(_: $type),*) {
            if let Some(options) = check(options) {
                run((), || {
                    options.ignored.insert(stringify!($name));
                });
            }
        })*
    };
}

ignored_options! {
    OpenOptions:
    rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(usize, usize, f64);
    rocksdb_options_compaction_readahead_size(usize);
    rocksdb_options_optimize_level_style_compaction(u64);
    rocksdb_options_optimize_universal_style_compaction(u64);
    rocksdb_options_prepare_for_bulk_load();
    rocksdb_options_set_WAL_size_limit_MB(u64);
    rocksdb_options_set_WAL_ttl_seconds(u64);
    rocksdb_options_set_advise_random_on_open(u8);
    rocksdb_options_set_allow_concurrent_memtable_write(u8);
    rocksdb_options_set_allow_ingest_behind(u8);
    rocksdb_options_set_allow_mmap_reads(u8);
    rocksdb_options_set_allow_mmap_writes(u8);
    rocksdb_options_set_arena_block_size(usize);
    rocksdb_options_set_atomic_flush(u8);
    rocksdb_options_set_avoid_unnecessary_blocking_io(u8);
    rocksdb_options_set_blob_cache(*const c_void);
    rocksdb_options_set_blob_compaction_readahead_size(u64);
    rocksdb_options_set_blob_compression_type(c_int);
    rocksdb_options_set_blob_file_size(u64);
    rocksdb_options_set_blob_gc_age_cutoff(f64);
    rocksdb_options_set_blob_gc_force_threshold(f64);
    rocksdb_options_set_bloom_locality(u32);
    rocksdb_options_set_bottommost_compression(c_int);
    rocksdb_options_set_bottommost_compression_options(c_int, c_int, c_int, c_int, u8);
    rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(c_int, u8);
    rocksdb_options_set_bytes_per_sync(u64);
    rocksdb_options_set_cf_paths(*const c_void, usize);
    rocksdb_options_set_compaction_pri(c_int);
    rocksdb_options_set_compaction_style(c_int);
    rocksdb_options_set_compression_options(c_int, c_int, c_int, c_int);
    rocksdb_options_set_compression_options_parallel_threads(c_int);
    rocksdb_options_set_compression_options_zstd_max_train_bytes(c_int);
    rocksdb_options_set_compression_per_level(*const c_void, usize);
    rocksdb_options_set_cuckoo_table_factory(*const c_void);
    rocksdb_options_set_db_log_dir(*const c_void);
    rocksdb_options_set_db_paths(*const c_void, usize);
    rocksdb_options_set_db_write_buffer_size(usize);
    rocksdb_options_set_delete_obsolete_files_period_micros(u64);
    rocksdb_options_set_disable_auto_compactions(c_int);
    rocksdb_options_set_dump_malloc_stats(u8);
    rocksdb_options_set_enable_blob_gc(u8);
    rocksdb_options_set_enable_pipelined_write(u8);
    rocksdb_options_set_enable_write_thread_adaptive_yield(u8);
    rocksdb_options_set_experimental_mempurge_threshold(f64);
    rocksdb_options_set_fifo_compaction_options(*const c_void);
    rocksdb_options_set_hard_pending_compaction_bytes_limit(usize);
    rocksdb_options_set_hash_link_list_rep(usize);
    rocksdb_options_set_hash_skip_list_rep(usize, i32, i32);
    rocksdb_options_set_info_log_level(c_int);
    rocksdb_options_set_inplace_update_num_locks(usize);
    rocksdb_options_set_inplace_update_support(u8);
    rocksdb_options_set_is_fd_close_on_exec(u8);
    rocksdb_options_set_keep_log_file_num(usize);
    rocksdb_options_set_level0_slowdown_writes_trigger(c_int);
    rocksdb_options_set_level0_stop_writes_trigger(c_int);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(u8);
    rocksdb_options_set_log_file_time_to_roll(usize);
    rocksdb_options_set_manifest_preallocation_size(usize);
    rocksdb_options_set_manual_wal_flush(u8);
    rocksdb_options_set_max_background_compactions(c_int);
    rocksdb_options_set_max_background_flushes(c_int);
    rocksdb_options_set_max_bytes_for_level_multiplier_additional(*const c_void, usize);
    rocksdb_options_set_max_compaction_bytes(u64);
    rocksdb_options_set_max_file_opening_threads(c_int);
    rocksdb_options_set_max_log_file_size(usize);
    rocksdb_options_set_max_manifest_file_size(usize);
    rocksdb_options_set_max_sequential_skip_in_iterations(u64);
    rocksdb_options_set_max_subcompactions(u32);
    rocksdb_options_set_max_successive_merges(usize);
    rocksdb_options_set_max_write_buffer_number(c_int);
    rocksdb_options_set_max_write_buffer_size_to_maintain(i64);
    rocksdb_options_set_memtable_huge_page_size(usize);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(f64);
    rocksdb_options_set_memtable_vector_rep();
    rocksdb_options_set_memtable_whole_key_filtering(u8);
    rocksdb_options_set_min_level_to_compress(c_int);
    rocksdb_options_set_min_write_buffer_number_to_merge(c_int);
    rocksdb_options_set_num_levels(c_int);
    rocksdb_options_set_optimize_filters_for_hits(c_int);
    rocksdb_options_set_paranoid_checks(u8);
    rocksdb_options_set_periodic_compaction_seconds(u64);
    rocksdb_options_set_plain_table_factory(u32, c_int, f64, usize, usize, c_char, u8, u8);
    rocksdb_options_set_recycle_log_file_num(usize);
    rocksdb_options_set_report_bg_io_stats(c_int);
    rocksdb_options_set_row_cache(*const c_void);
    rocksdb_options_set_skip_stats_update_on_db_open(u8);
    rocksdb_options_set_soft_pending_compaction_bytes_limit(usize);
    rocksdb_options_set_stats_dump_period_sec(c_uint);
    rocksdb_options_set_stats_persist_period_sec(c_uint);
    rocksdb_options_set_table_cache_numshardbits(c_int);
    rocksdb_options_set_target_file_size_multiplier(c_int);
    rocksdb_options_set_track_and_verify_wals_in_manifest(u8);
    rocksdb_options_set_ttl(u64);
    rocksdb_options_set_universal_compaction_options(*const c_void);
    rocksdb_options_set_unordered_write(u8);
    rocksdb_options_set_use_adaptive_mutex(u8);
    rocksdb_options_set_use_direct_io_for_flush_and_compaction(u8);
    rocksdb_options_set_use_direct_reads(u8);
    rocksdb_options_set_use_fsync(c_int);
    rocksdb_options_set_wal_bytes_per_sync(u64);
    rocksdb_options_set_wal_compression(c_int);
    rocksdb_options_set_wal_dir(*const c_void);
    rocksdb_options_set_wal_recovery_mode(c_int);
    rocksdb_options_set_writable_file_max_buffer_size(u64);
    rocksdb_options_set_write_buffer_manager(*const c_void);
    rocksdb_options_set_write_dbid_to_manifest(u8);
}

ignored_options! {
    TableOptions:
    rocksdb_block_based_options_set_block_restart_interval(c_int);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(u8);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(u8);
    rocksdb_block_based_options_set_checksum(c_char);
    rocksdb_block_based_options_set_data_block_hash_ratio(f64);
    rocksdb_block_based_options_set_data_block_index_type(c_int);
    rocksdb_block_based_options_set_format_version(c_int);
    rocksdb_block_based_options_set_index_block_restart_interval(c_int);
    rocksdb_block_based_options_set_index_type(c_int);
    rocksdb_block_based_options_set_metadata_block_size(u64);
    rocksdb_block_based_options_set_optimize_filters_for_memory(u8);
    rocksdb_block_based_options_set_partition_filters(u8);
    rocksdb_block_based_options_set_partition_pinning_tier(c_int);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(u8);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(u8);
    rocksdb_block_based_options_set_top_level_index_pinning_tier(c_int);
    rocksdb_block_based_options_set_unpartitioned_pinning_tier(c_int);
    rocksdb_block_based_options_set_whole_key_filtering(u8);
}

/// Defines functions without an effect.
macro_rules! without_effect {
    ($($name:ident($($type:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(_: *const c_void, $(_: $type),*) {})*
    };
}

without_effect! {
    rocksdb_compactoptions_set_bottommost_level_compaction(u8);
    rocksdb_compactoptions_set_change_level(u8);
    rocksdb_compactoptions_set_exclusive_manual_compaction(u8);
    rocksdb_compactoptions_set_full_history_ts_low(*const c_void, usize);
    rocksdb_compactoptions_set_target_level(c_int);
    rocksdb_cuckoo_options_set_cuckoo_block_size(u32);
    rocksdb_cuckoo_options_set_hash_ratio(f64);
    rocksdb_cuckoo_options_set_identity_as_first_hash(u8);
    rocksdb_cuckoo_options_set_max_search_depth(u32);
    rocksdb_cuckoo_options_set_use_module_hash(u8);
    rocksdb_env_join_all_threads();
    rocksdb_env_lower_high_priority_thread_pool_cpu_priority();
    rocksdb_env_lower_high_priority_thread_pool_io_priority();
    rocksdb_env_lower_thread_pool_cpu_priority();
    rocksdb_env_lower_thread_pool_io_priority();
    rocksdb_env_set_background_threads(c_int);
    rocksdb_env_set_bottom_priority_background_threads(c_int);
    rocksdb_env_set_high_priority_background_threads(c_int);
    rocksdb_env_set_low_priority_background_threads(c_int);
    rocksdb_fifo_compaction_options_set_max_table_files_size(u64);
    rocksdb_flushoptions_set_wait(u8);
    rocksdb_universal_compaction_options_set_compression_size_percent(c_int);
    rocksdb_universal_compaction_options_set_max_merge_width(c_int);
    rocksdb_universal_compaction_options_set_max_size_amplification_percent(c_int);
    rocksdb_universal_compaction_options_set_min_merge_width(c_int);
    rocksdb_universal_compaction_options_set_size_ratio(c_int);
    rocksdb_universal_compaction_options_set_stop_style(c_int);
    rocksdb_wait_for_compact_options_set_abort_on_pause(u8);
}

handles! {
    rocksdb_compactoptions_create, rocksdb_compactoptions_destroy: Unused;
    rocksdb_cuckoo_options_create, rocksdb_cuckoo_options_destroy: Unused;
    rocksdb_envoptions_create, rocksdb_envoptions_destroy: Unused;
    rocksdb_fifo_compaction_options_create, rocksdb_fifo_compaction_options_destroy: Unused;
    rocksdb_flushoptions_create, rocksdb_flushoptions_destroy: Unused;
    rocksdb_universal_compaction_options_create, rocksdb_universal_compaction_options_destroy: Unused;
}

/// A folder for data: all of it is in that of the database.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_dbpath_create(_path: *const c_char, _target_bytes: u64) -> Box<Unused> {
    give(Unused::default())
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_dbpath_destroy(path: Option<Box<Unused>>) {
    drop(take(path));
}

/// A bound of the memory of memtables, which the databases of a program would share. Each has its own here.
struct WriteBufferManager {
    bytes: usize,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_create(
    bytes: usize,
    _allows_stall: bool,
) -> Box<WriteBufferManager> {
    give(WriteBufferManager { bytes })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_create_with_cache(
    bytes: usize,
    _cache: *const c_void,
    _allows_stall: bool,
) -> Box<WriteBufferManager> {
    give(WriteBufferManager { bytes })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_destroy(manager: Option<Box<WriteBufferManager>>) {
    drop(take(manager));
}

/// It bounds nothing.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_enabled(_manager: *const c_void) -> bool {
    false
}

/// It counts nothing.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_memory_usage(_manager: *const c_void) -> usize {
    0
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_buffer_size(
    manager: Option<&WriteBufferManager>,
) -> usize {
    check(manager).map_or(0, |manager| manager.bytes)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_set_buffer_size(
    manager: Option<&mut WriteBufferManager>,
    bytes: usize,
) {
    if let Some(manager) = check(manager) {
        manager.bytes = bytes;
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_write_buffer_manager_set_allow_stall(_manager: *const c_void, _value: bool) {}
