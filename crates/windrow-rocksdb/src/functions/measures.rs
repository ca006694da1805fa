//! Properties and measurements.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Arc, Weak};

use windrow_ffi::calls::{ErrorPointer, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{given, text};

use super::open_options::CacheHandle;
use super::{Place, Unused, give_text, run_with};
use crate::cache::Cache;
use crate::database::{Database, Shared};
use crate::properties;

/// # Safety
/// The name is text.
unsafe fn property_value(
    database: Option<&Database>,
    place: Place<'_>,
    name: *const c_char,
) -> *mut c_char {
    run(null_mut(), || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "property") };
        let value = || {
            let database = check(database)?;
            properties::value(database, place.of(database).ok()?, name.ok()?)
        };
        give_text(value().as_deref())
    })
}

for_families!(rocksdb_property_value, rocksdb_property_value_cf: property_value(
    database: Option<&Database>; name: *const c_char
) -> *mut c_char);

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_property_value(
    database: Option<&Database>,
    name: *const c_char,
) -> *mut c_char {
    // SAFETY: the caller promises text.
    unsafe { property_value(database, Place::Default, name) }
}

/// 0 if there is such a number, and -1 if not.
///
/// # Safety
/// The name is text.
unsafe fn property_int(
    database: Option<&Database>,
    place: Place<'_>,
    name: *const c_char,
    value: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    run(-1, || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "property") };
        let number = || {
            let database = check(database)?;
            properties::number(database, place.of(database).ok()?, name.ok()?)
        };
        match (number(), value) {
            (Some(number), Some(value)) => {
                value.write(number);
                0
            }
            _ => -1,
        }
    })
}

for_families!(rocksdb_property_int, rocksdb_property_int_cf: property_int(
    database: Option<&Database>; name: *const c_char, value: Option<&mut MaybeUninit<u64>>
) -> c_int);

/// `rocksdb_memory_consumers_t`.
#[derive(Default)]
struct MemoryConsumers {
    databases: Vec<Weak<Shared>>,
    caches: Vec<Weak<Cache>>,
}

handles! {
    rocksdb_memory_consumers_create, rocksdb_memory_consumers_destroy: MemoryConsumers;
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_memory_consumers_add_db(
    consumers: Option<&mut MemoryConsumers>,
    database: Option<&Database>,
) {
    if let (Some(consumers), Some(database)) = (check(consumers), check(database)) {
        run((), || {
            consumers.databases.push(Arc::downgrade(&database.shared));
        });
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_memory_consumers_add_cache(
    consumers: Option<&mut MemoryConsumers>,
    cache: Option<&CacheHandle>,
) {
    if let (Some(consumers), Some(cache)) = (check(consumers), check(cache)) {
        run((), || {
            consumers.caches.push(Arc::downgrade(&cache.cache));
        });
    }
}

/// `rocksdb_memory_usage_t`, in bytes.
#[derive(Default)]
struct MemoryUsage {
    memtables: u64,
    tables: u64,
    caches: u64,
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_create(
    consumers: Option<&MemoryConsumers>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<MemoryUsage>> {
    run_with(errptr, None, || {
        let consumers = given(consumers, "consumers")?;
        let mut usage = MemoryUsage::default();
        for database in consumers.databases.iter().filter_map(Weak::upgrade) {
            let memory = database.db().memory();
            usage.memtables += memory.memtables;
            usage.tables += memory.tables;
        }
        for cache in consumers.caches.iter().filter_map(Weak::upgrade) {
            usage.caches += cache.usage() as u64;
        }
        Ok(Some(give(usage)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_destroy(usage: Option<Box<MemoryUsage>>) {
    drop(take(usage));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_total(
    usage: Option<&MemoryUsage>,
) -> u64 {
    check(usage).map_or(0, |usage| usage.memtables)
}

/// Windrow does not count memtables apart that are flushed and still read.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_unflushed(
    usage: Option<&MemoryUsage>,
) -> u64 {
    check(usage).map_or(0, |usage| usage.memtables)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_get_mem_table_readers_total(
    usage: Option<&MemoryUsage>,
) -> u64 {
    check(usage).map_or(0, |usage| usage.tables)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_approximate_memory_usage_get_cache_total(usage: Option<&MemoryUsage>) -> u64 {
    check(usage).map_or(0, |usage| usage.caches)
}

/// `rocksdb_column_family_metadata_t`.
struct FamilyMetadata {
    name: String,
    bytes: u64,
    files: usize,
}

fn metadata(database: Option<&Database>, place: Place<'_>) -> Option<Box<FamilyMetadata>> {
    run(None, || {
        let database = check(database)?;
        let family = place.of(database).ok()?;
        let stats = database.shared.db().stats();
        let levels = &properties::of_family(&stats, family)?.levels;
        Some(give(FamilyMetadata {
            name: family.name.clone(),
            bytes: levels.iter().map(|level| level.bytes).sum(),
            files: levels.iter().map(|level| level.files).sum(),
        }))
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_get_column_family_metadata(
    database: Option<&Database>,
) -> Option<Box<FamilyMetadata>> {
    metadata(database, Place::Default)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_get_column_family_metadata_cf(
    database: Option<&Database>,
    family: Option<&super::FamilyHandle>,
) -> Option<Box<FamilyMetadata>> {
    metadata(database, Place::Family(family))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_metadata_destroy(metadata: Option<Box<FamilyMetadata>>) {
    drop(take(metadata));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_metadata_get_size(metadata: Option<&FamilyMetadata>) -> u64 {
    check(metadata).map_or(0, |metadata| metadata.bytes)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_metadata_get_file_count(
    metadata: Option<&FamilyMetadata>,
) -> usize {
    check(metadata).map_or(0, |metadata| metadata.files)
}

/// The caller frees the name.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_metadata_get_name(
    metadata: Option<&FamilyMetadata>,
) -> *mut c_char {
    run(null_mut(), || {
        give_text(check(metadata).map(|metadata| &*metadata.name))
    })
}

handles! {
    rocksdb_perfcontext_create, rocksdb_perfcontext_destroy: Unused;
}

/// No thread counts what it does.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_set_perf_level(_level: c_int) {}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_perfcontext_reset(_context: *const c_void) {}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_perfcontext_metric(_context: *const c_void, _metric: c_int) -> u64 {
    0
}

/// The caller frees the text, which is empty.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_perfcontext_report(
    _context: *const c_void,
    _excludes_zeros: u8,
) -> *mut c_char {
    run(null_mut(), || give_text(Some("")))
}
