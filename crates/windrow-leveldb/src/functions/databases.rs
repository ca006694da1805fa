//! Databases: open, close, reads, writes, snapshots, administration.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow::{Result, Snapshot};
use windrow_ffi::calls::{ErrorPointer, elements, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{allocate, bytes, given, leveldb, path, text};

use super::iterators::Iterator;
use super::read_write::{ReadOptions, WriteOptions};
use super::run_with;
use crate::batch::WriteBatch;
use crate::database::Database;
use crate::options::OpenOptions;
use crate::properties;

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_open(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        let database = Database::open(path, given(options, "options")?)?;
        Ok(Some(give(database)))
    })
}

/// A failed sync of the last writes is not reported, as in LevelDB, which does not sync here.
#[unsafe(no_mangle)]
extern "C" fn leveldb_close(database: Option<Box<Database>>) {
    run((), || {
        if let Some(database) = take(database) {
            drop(database.close());
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_put(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
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
        given(database, "database")?.put(key, value, WriteOptions::durability(options))
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_delete(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    key: *const c_char,
    key_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        given(database, "database")?.delete(key, WriteOptions::durability(options))
    });
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_write(
    database: Option<&Database>,
    options: Option<&WriteOptions>,
    batch: Option<&WriteBatch>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        let batch = given(batch, "batch")?;
        given(database, "database")?.write(batch, WriteOptions::durability(options))
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_get(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    errptr: ErrorPointer<'_>,
) -> *mut c_char {
    let (value, length) = run_with(errptr, (null_mut(), 0), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        let found = given(database, "database")?.get(key, snapshot(options))?;
        match found {
            Some(value) => Ok((allocate(&value)?, value.len())),
            None => Ok((null_mut(), 0)),
        }
    });
    if let Some(value_length) = value_length {
        value_length.write(length);
    }
    value
}

fn snapshot(options: Option<&ReadOptions>) -> Option<&Snapshot> {
    check(options).and_then(|options| options.snapshot.as_ref())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_create_iterator(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iterator>> {
    run(None, || {
        check(database).map(|database| give(Iterator::new(database.iterator(snapshot(options)))))
    })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_create_snapshot(database: Option<&Database>) -> Option<Box<Snapshot>> {
    run(None, || {
        check(database).map(|database| give(database.snapshot()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_release_snapshot(
    _database: Option<&Database>,
    snapshot: Option<Box<Snapshot>>,
) {
    run((), || drop(take(snapshot)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_property_value(
    database: Option<&Database>,
    name: *const c_char,
) -> *mut c_char {
    run(null_mut(), || {
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "property") };
        let value = check(database)
            .zip(name.ok())
            .and_then(|(database, name)| properties::value(database, name));
        let copied = value.and_then(|value| allocate(value.as_bytes()).ok());
        copied.unwrap_or(null_mut())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_approximate_sizes(
    database: Option<&Database>,
    count: c_int,
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
    sizes: *mut u64,
) {
    let count = usize::try_from(count).unwrap_or_default();
    // SAFETY: the caller promises arrays with `count` elements, here and below.
    let starts = unsafe { elements(starts, count) };
    // SAFETY: see above.
    let start_lengths = unsafe { elements(start_lengths, count) };
    // SAFETY: see above.
    let limits = unsafe { elements(limits, count) };
    // SAFETY: see above.
    let limit_lengths = unsafe { elements(limit_lengths, count) };
    let ranges = starts
        .iter()
        .zip(start_lengths)
        .zip(limits.iter().zip(limit_lengths));
    for (position, ((start, start_length), (limit, limit_length))) in ranges.enumerate() {
        let size = run(0, || {
            // SAFETY: the caller promises the bytes.
            let start = unsafe { bytes(*start, *start_length) };
            // SAFETY: the same.
            let limit = unsafe { bytes(*limit, *limit_length) };
            approximate_size(database, start, limit).unwrap_or_default()
        });
        if !sizes.is_null() {
            // SAFETY: the caller promises `count` elements.
            let element = unsafe { sizes.add(position) };
            // SAFETY: the same.
            unsafe { element.write(size) };
        }
    }
}

fn approximate_size(
    database: Option<&Database>,
    start: Result<&[u8]>,
    limit: Result<&[u8]>,
) -> Result<u64> {
    given(database, "database")?.approximate_size(start?, limit?)
}

/// Null stands for no bound, whatever its length.
#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_compact_range(
    database: Option<&Database>,
    start: *const c_char,
    start_length: usize,
    limit: *const c_char,
    limit_length: usize,
) {
    run((), || {
        // SAFETY: the caller promises the bytes.
        let start = (!start.is_null()).then(|| unsafe { bytes(start, start_length) });
        // SAFETY: the same.
        let limit = (!limit.is_null()).then(|| unsafe { bytes(limit, limit_length) });
        if let (Some(database), Ok(from), Ok(to)) =
            (check(database), start.transpose(), limit.transpose())
        {
            // As in LevelDB, an error shows at a write.
            drop(database.compact_range(from, to));
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_destroy_db(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        given(options, "options")?;
        leveldb::destroy(path)
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_repair_db(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        leveldb::repair(path, given(options, "options")?.common.to_windrow())
    });
}
