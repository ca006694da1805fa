//! The options of opens that Windrow follows, with caches and table options.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::sync::Arc;

use windrow_ffi::calls::run;
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::setters;

use super::callbacks::{Comparator, LoggerHandle, MergeOperatorHandle, SliceTransform};
use super::filters::{FilterFactory, FilterHandle};
use crate::cache::Cache;
use crate::options::OpenOptions;

handles! {
    rocksdb_options_create, rocksdb_options_destroy: OpenOptions;
    rocksdb_block_based_options_create, rocksdb_block_based_options_destroy: TableOptions;
    rocksdb_lru_cache_options_create, rocksdb_lru_cache_options_destroy: CacheOptions;
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_options_create_copy(options: Option<&OpenOptions>) -> Box<OpenOptions> {
    give(run(OpenOptions::default(), || {
        check(options).cloned().unwrap_or_default()
    }))
}

setters! {
    rocksdb_options_set_create_if_missing(options: OpenOptions, value: u8) {
        options.common.create_if_missing = value != 0;
    }

    rocksdb_options_set_error_if_exists(options: OpenOptions, value: u8) {
        options.common.error_if_exists = value != 0;
    }

    rocksdb_options_set_create_missing_column_families(options: OpenOptions, value: u8) {
        options.create_missing_families = value != 0;
    }

    /// The comparator stays with its caller.
    rocksdb_options_set_comparator(options: OpenOptions, comparator: Option<&Comparator>) {
        options.order = check(comparator).and_then(|comparator| comparator.order.clone());
        if comparator.is_some_and(|comparator| comparator.has_timestamps) {
            options.unsupported = Some("Windrow has no timestamps of users");
        }
    }

    /// The options own the operator from now on.
    rocksdb_options_set_merge_operator(options: OpenOptions, operator: Option<Box<MergeOperatorHandle>>) {
        options.merge_operator = take(operator).map(|operator| operator.operator as _);
    }

    /// The options own the extractor from now on.
    rocksdb_options_set_prefix_extractor(options: OpenOptions, transform: Option<Box<SliceTransform>>) {
        options.prefix = take(transform).map(|transform| transform.prefix);
    }

    /// The filter stays with its caller.
    rocksdb_options_set_compaction_filter(options: OpenOptions, filter: Option<&FilterHandle>) {
        options.filter = check(filter).map(|handle| Arc::clone(&handle.filter));
    }

    /// The options own the factory from now on. A filter goes before a factory.
    rocksdb_options_set_compaction_filter_factory(options: OpenOptions, factory: Option<Box<FilterFactory>>) {
        options.filter_factory = take(factory).map(|factory| factory.filter);
    }

    rocksdb_options_set_write_buffer_size(options: OpenOptions, bytes: usize) {
        options.common.write_buffer_bytes = bytes;
    }

    /// A negative number is as many as Windrow allows.
    rocksdb_options_set_max_open_files(options: OpenOptions, files: c_int) {
        options.common.open_files = if files < 0 { c_int::MAX } else { files };
    }

    rocksdb_options_set_target_file_size_base(options: OpenOptions, bytes: u64) {
        options.common.file_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }

    rocksdb_options_set_max_bytes_for_level_base(options: OpenOptions, bytes: u64) {
        options.base_bytes = Some(bytes);
    }

    rocksdb_options_set_max_bytes_for_level_multiplier(options: OpenOptions, ratio: f64) {
        options.size_ratio = Some(ratio).filter(|ratio| ratio.is_finite());
    }

    rocksdb_options_set_level0_file_num_compaction_trigger(options: OpenOptions, files: c_int) {
        options.level0_runs = usize::try_from(files).ok().filter(|files| *files > 0);
    }

    rocksdb_options_set_max_background_jobs(options: OpenOptions, jobs: c_int) {
        options.background_threads = usize::try_from(jobs).ok();
    }

    rocksdb_options_increase_parallelism(options: OpenOptions, threads: c_int) {
        options.background_threads = usize::try_from(threads).ok();
    }

    rocksdb_options_set_max_total_wal_size(options: OpenOptions, bytes: u64) {
        options.wal_bytes = bytes;
    }

    rocksdb_options_set_ratelimiter(options: OpenOptions, limiter: Option<&RateLimiter>) {
        options.compaction_bytes_per_second = check(limiter).map_or(0, |limiter| limiter.bytes_per_second);
    }

    rocksdb_options_set_enable_blob_files(options: OpenOptions, value: u8) {
        options.has_blobs = value != 0;
    }

    rocksdb_options_set_min_blob_size(options: OpenOptions, bytes: u64) {
        options.blob_bytes = bytes;
    }

    /// 0 is none. Any other codec is LZ4.
    rocksdb_options_set_compression(options: OpenOptions, codec: c_int) {
        options.common.is_compressed = codec != 0;
    }

    /// The table options stay with their caller.
    rocksdb_options_set_block_based_table_factory(options: OpenOptions, table: Option<&TableOptions>) {
        if let Some(table) = check(table) {
            table.set(options);
        }
    }

    /// In MiB.
    rocksdb_options_optimize_for_point_lookup(options: OpenOptions, cache_mib: u64) {
        let bytes = cache_mib.saturating_mul(1 << 20);
        options.common.cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }

    /// The logger stays with its caller.
    rocksdb_options_set_info_log(options: OpenOptions, logger: Option<&LoggerHandle>) {
        options.logger = check(logger).map(|logger| Arc::clone(&logger.logger));
    }

    /// An environment in memory is an error of the open.
    rocksdb_options_set_env(options: OpenOptions, environment: Option<&Environment>) {
        if check(environment).is_some_and(|environment| environment.is_in_memory) {
            options.unsupported = Some("databases in memory are not supported");
        }
    }
}

/// `rocksdb_env_t`.
pub(super) struct Environment {
    is_in_memory: bool,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_default_env() -> Box<Environment> {
    give(Environment {
        is_in_memory: false,
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_mem_env() -> Box<Environment> {
    give(Environment { is_in_memory: true })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_env_destroy(environment: Option<Box<Environment>>) {
    drop(take(environment));
}

/// `rocksdb_ratelimiter_t`: for compactions. Periods and fairness have no effect.
pub(super) struct RateLimiter {
    bytes_per_second: u64,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_create(
    bytes_per_second: i64,
    _refill_period_micros: i64,
    _fairness: i32,
) -> Box<RateLimiter> {
    give(RateLimiter {
        bytes_per_second: u64::try_from(bytes_per_second).unwrap_or_default(),
    })
}

/// The rate is constant.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    bytes_per_second: i64,
    refill_period_micros: i64,
    fairness: i32,
) -> Box<RateLimiter> {
    rocksdb_ratelimiter_create(bytes_per_second, refill_period_micros, fairness)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_ratelimiter_destroy(limiter: Option<Box<RateLimiter>>) {
    drop(take(limiter));
}

/// `rocksdb_block_based_table_options_t`.
#[derive(Default)]
pub(super) struct TableOptions {
    cache: Option<Arc<Cache>>,
    has_no_cache: bool,
    block_bytes: Option<usize>,
    bits_per_key: Option<f64>,
    /// The setters without an effect that were called.
    pub(super) ignored: BTreeSet<&'static str>,
}

impl TableOptions {
    fn set(&self, options: &mut OpenOptions) {
        if let Some(cache) = &self.cache {
            options.common.cache_bytes = cache.bytes();
            options.cache = Some(Arc::clone(cache));
        }
        if self.has_no_cache {
            options.common.cache_bytes = 0;
        }
        if let Some(bytes) = self.block_bytes {
            options.common.block_bytes = bytes;
        }
        options.bits_per_key = self.bits_per_key;
        options.ignored.extend(&self.ignored);
    }
}

setters! {
    /// The cache stays with its caller.
    rocksdb_block_based_options_set_block_cache(options: TableOptions, cache: Option<&CacheHandle>) {
        options.cache = check(cache).map(|handle| Arc::clone(&handle.cache));
    }

    rocksdb_block_based_options_set_no_block_cache(options: TableOptions, value: u8) {
        options.has_no_cache = value != 0;
    }

    rocksdb_block_based_options_set_block_size(options: TableOptions, bytes: usize) {
        options.block_bytes = Some(bytes);
    }

    /// The options own the policy from now on.
    rocksdb_block_based_options_set_filter_policy(options: TableOptions, policy: Option<Box<FilterPolicy>>) {
        options.bits_per_key = take(policy).map(|policy| policy.bits_per_key);
    }

    rocksdb_lru_cache_options_set_capacity(options: CacheOptions, bytes: usize) {
        options.bytes = bytes;
    }

    /// No effect.
    rocksdb_lru_cache_options_set_num_shard_bits(_options: CacheOptions, _bits: c_int) {}
}

/// `rocksdb_filterpolicy_t`: the bits of a Bloom filter, or one as good.
pub(super) struct FilterPolicy {
    bits_per_key: f64,
}

/// Defines functions that make filter policies. Windrow's filters are Bloom filters in blocks.
macro_rules! policies {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(bits_per_key: f64, $($argument: $type),*) -> Box<FilterPolicy> {
            give(FilterPolicy { bits_per_key })
        })*
    };
}

policies! {
    rocksdb_filterpolicy_create_bloom();
    rocksdb_filterpolicy_create_bloom_full();
    rocksdb_filterpolicy_create_ribbon();
    rocksdb_filterpolicy_create_ribbon_hybrid(_bloom_before_level: c_int);
}

/// A handle that no options have taken.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_filterpolicy_destroy(policy: Option<Box<FilterPolicy>>) {
    drop(take(policy));
}

/// `rocksdb_cache_t`.
pub(super) struct CacheHandle {
    pub(super) cache: Arc<Cache>,
}

/// `rocksdb_lru_cache_options_t`.
#[derive(Default)]
pub(super) struct CacheOptions {
    bytes: usize,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_lru(bytes: usize) -> Box<CacheHandle> {
    give(CacheHandle {
        cache: Arc::new(Cache::new(bytes)),
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_lru_opts(options: Option<&CacheOptions>) -> Box<CacheHandle> {
    rocksdb_cache_create_lru(check(options).map_or(0, |options| options.bytes))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_create_hyper_clock(
    bytes: usize,
    _entry_charge: usize,
) -> Box<CacheHandle> {
    rocksdb_cache_create_lru(bytes)
}

/// Options and databases keep the cache.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_destroy(cache: Option<Box<CacheHandle>>) {
    run((), || drop(take(cache)));
}

/// For databases that are opened later.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_set_capacity(cache: Option<&CacheHandle>, bytes: usize) {
    if let Some(cache) = check(cache) {
        cache.cache.set_bytes(bytes);
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_get_usage(cache: Option<&CacheHandle>) -> usize {
    run(0, || check(cache).map_or(0, |cache| cache.cache.usage()))
}

/// Windrow pins no blocks in its cache.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cache_get_pinned_usage(_cache: Option<&CacheHandle>) -> usize {
    0
}
