//! Comparators, filter policies, caches, environments.

use std::ffi::{OsStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use windrow_ffi::allocate;
use windrow_ffi::calls::{
    CompareFunction, Destructor, NameFunction, StateFunction, key_order, run,
};
use windrow_ffi::handles::{give, take};
use windrow_ffi::key_order::KeyOrder;

type CreateFilterFunction = unsafe extern "C" fn(
    *mut c_void,
    *const *const c_char,
    *const usize,
    c_int,
    *mut usize,
) -> *mut c_char;

type KeyMayMatchFunction =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

/// `leveldb_comparator_t`.
pub(super) struct Comparator {
    pub(super) order: Option<Arc<KeyOrder>>,
    destructor: Destructor,
}

/// The name is not used: all databases have the same order.
#[unsafe(no_mangle)]
extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    compare: Option<CompareFunction>,
    _name: Option<NameFunction>,
) -> Box<Comparator> {
    // SAFETY: the caller promises it.
    let order = compare.map(|compare| unsafe { key_order(state, compare) });
    // SAFETY: the same.
    let destructor = unsafe { Destructor::new(state, destructor) };
    give(Comparator { order, destructor })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_comparator_destroy(comparator: Option<Box<Comparator>>) {
    run((), || {
        if let Some(comparator) = take(comparator) {
            comparator.destructor.run();
        }
    });
}

/// `leveldb_filterpolicy_t`.
pub(super) struct FilterPolicy {
    /// Those of a Bloom filter policy.
    pub(super) bits_per_key: Option<c_int>,
    destructor: Option<Destructor>,
}

/// A custom policy has no effect: its functions are never called, and Windrow uses its own filters.
#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<StateFunction>,
    _create_filter: Option<CreateFilterFunction>,
    _key_may_match: Option<KeyMayMatchFunction>,
    _name: Option<NameFunction>,
) -> Box<FilterPolicy> {
    // SAFETY: the caller promises it.
    let destructor = unsafe { Destructor::new(state, destructor) };
    give(FilterPolicy {
        bits_per_key: None,
        destructor: Some(destructor),
    })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> Box<FilterPolicy> {
    give(FilterPolicy {
        bits_per_key: Some(bits_per_key),
        destructor: None,
    })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_filterpolicy_destroy(policy: Option<Box<FilterPolicy>>) {
    run((), || {
        if let Some(destructor) = take(policy).and_then(|policy| policy.destructor) {
            destructor.run();
        }
    });
}

/// `leveldb_cache_t`: a capacity. Each database with it has a cache of that size.
pub(super) struct Cache {
    pub(super) bytes: usize,
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_cache_create_lru(capacity: usize) -> Box<Cache> {
    give(Cache { bytes: capacity })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_cache_destroy(cache: Option<Box<Cache>>) {
    drop(take(cache));
}

/// `leveldb_env_t`: the only one is that of the operating system.
pub(super) struct Environment {
    /// A handle has an address of its own.
    _address: u8,
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_create_default_env() -> Box<Environment> {
    give(Environment { _address: 0 })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_env_destroy(environment: Option<Box<Environment>>) {
    drop(take(environment));
}

/// The folder `TEST_TMPDIR`, or one of the user in the folder for temporary files; it is created.
#[unsafe(no_mangle)]
#[expect(clippy::disallowed_methods, reason = "as LevelDB does it")]
extern "C" fn leveldb_env_get_test_directory(_environment: Option<&Environment>) -> *mut c_char {
    run(std::ptr::null_mut(), || {
        let named = std::env::var_os("TEST_TMPDIR").filter(|path| !path.is_empty());
        let path = named.map_or_else(own_test_directory, PathBuf::from);
        // As in LevelDB, whoever uses the folder finds out.
        drop(fs::create_dir(&path));
        allocate(OsStr::as_bytes(path.as_os_str())).unwrap_or(std::ptr::null_mut())
    })
}

fn own_test_directory() -> PathBuf {
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    std::env::temp_dir().join(format!("leveldbtest-{user}"))
}
