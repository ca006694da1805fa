//! Flushes, compactions, checkpoints, sizes, options of open databases.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use windrow::{Db, Result};
use windrow_ffi::calls::{ErrorPointer, elements, outputs, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{bytes, given, path, setters, text};

use super::{FamilyHandle, Place, run_with};
use crate::database::Database;
use crate::dynamic_options;

/// Flushes all column families: Windrow has one log for all, and a flush of some would free none of it. The call waits.
fn flush(database: Option<&Database>, errptr: ErrorPointer<'_>) {
    run_with(errptr, (), || {
        given(database, "database")?.shared.db().flush()
    });
}

/// Defines functions that flush.
macro_rules! flushes {
    ($($name:ident($($type:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(
            database: Option<&Database>,
            _options: *const c_void,
            $(_: $type,)*
            errptr: ErrorPointer<'_>,
        ) {
            flush(database, errptr);
        })*
    };
}

flushes! {
    rocksdb_flush();
    rocksdb_flush_cf(Option<&FamilyHandle>);
    rocksdb_flush_cfs(*const c_void, c_int);
    rocksdb_transactiondb_flush();
    rocksdb_transactiondb_flush_cf(Option<&FamilyHandle>);
    rocksdb_transactiondb_flush_cfs(*const c_void, c_int);
}

/// Each write is with the operating system when it returns. So only a sync has something to do.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_flush_wal(database: Option<&Database>, syncs: u8, errptr: ErrorPointer<'_>) {
    run_with(errptr, (), || {
        let database = given(database, "database")?;
        if syncs == 0 {
            return Ok(());
        }
        database.shared.db().persist()
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_flush_wal(
    database: Option<&Database>,
    syncs: u8,
    errptr: ErrorPointer<'_>,
) {
    rocksdb_flush_wal(database, syncs, errptr);
}

/// Null stands for no bound, whatever its length.
///
/// # Safety
/// The bytes have their lengths.
unsafe fn compact(
    database: Option<&Database>,
    place: Place<'_>,
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
        let compacted = || {
            let family = place.of(given(database, "database")?)?;
            Database::compact_range(family, start.transpose()?, limit.transpose()?)
        };
        // As in RocksDB, an error shows at a write.
        drop(compacted());
    });
}

for_families!(rocksdb_compact_range, rocksdb_compact_range_cf: compact(
    database: Option<&Database>;
    start: *const c_char, start_length: usize, limit: *const c_char, limit_length: usize
));

/// The options have no effect.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range_opt(
    database: Option<&Database>,
    _options: *const c_void,
    start: *const c_char,
    start_length: usize,
    limit: *const c_char,
    limit_length: usize,
) {
    // SAFETY: the caller promises the bytes.
    unsafe {
        compact(
            database,
            Place::Default,
            start,
            start_length,
            limit,
            limit_length,
        );
    };
}

/// As `rocksdb_compact_range_opt`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_compact_range_cf_opt(
    database: Option<&Database>,
    family: Option<&FamilyHandle>,
    _options: *const c_void,
    start: *const c_char,
    start_length: usize,
    limit: *const c_char,
    limit_length: usize,
) {
    let place = Place::Family(family);
    // SAFETY: the caller promises the bytes.
    unsafe { compact(database, place, start, start_length, limit, limit_length) };
}

/// `rocksdb_wait_for_compact_options_t`.
#[derive(Default)]
struct WaitOptions {
    flushes: bool,
    /// How long to wait; 0 for as long as it takes.
    timeout: Duration,
}

handles! {
    rocksdb_wait_for_compact_options_create, rocksdb_wait_for_compact_options_destroy: WaitOptions;
}

setters! {
    rocksdb_wait_for_compact_options_set_flush(options: WaitOptions, value: u8) {
        options.flushes = value != 0;
    }

    rocksdb_wait_for_compact_options_set_timeout(options: WaitOptions, microseconds: u64) {
        options.timeout = Duration::from_micros(microseconds);
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_wait_for_compact(
    database: Option<&Database>,
    options: Option<&WaitOptions>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        let options = check(options);
        let flushes = options.is_some_and(|options| options.flushes);
        let timeout = options.map_or(Duration::ZERO, |options| options.timeout);
        given(database, "database")?.wait_idle(flushes, timeout)
    });
}

/// No effect: the close ends all work in the background.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_cancel_all_background_work(_database: Option<&Database>, _waits: u8) {}

/// # Safety
/// The arrays have their elements, and the keys their lengths.
unsafe fn approximate_sizes(
    database: Option<&Database>,
    place: Place<'_>,
    count: c_int,
    starts: *const *const c_char,
    start_lengths: *const usize,
    limits: *const *const c_char,
    limit_lengths: *const usize,
    sizes: *mut u64,
    errptr: ErrorPointer<'_>,
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
    // SAFETY: see above.
    let sizes = unsafe { outputs(sizes, count) };
    for size in &mut *sizes {
        size.write(0);
    }
    run_with(errptr, (), || {
        let family = place.of(given(database, "database")?)?;
        let ranges = starts
            .iter()
            .zip(start_lengths)
            .zip(limits.iter().zip(limit_lengths));
        for (((start, start_length), (limit, limit_length)), size) in ranges.zip(sizes) {
            // SAFETY: the caller promises the bytes.
            let start = unsafe { bytes(*start, *start_length)? };
            // SAFETY: the same.
            let limit = unsafe { bytes(*limit, *limit_length)? };
            size.write(Database::approximate_size(family, start, limit)?);
        }
        Ok(())
    });
}

for_families!(rocksdb_approximate_sizes, rocksdb_approximate_sizes_cf: approximate_sizes(
    database: Option<&Database>;
    count: c_int, starts: *const *const c_char, start_lengths: *const usize, limits: *const *const c_char,
    limit_lengths: *const usize, sizes: *mut u64, errptr: ErrorPointer<'_>
));

/// # Safety
/// The arrays have their elements, which are text.
unsafe fn set_options(
    database: Option<&Database>,
    place: Place<'_>,
    count: c_int,
    names: *const *const c_char,
    values: *const *const c_char,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        let count = usize::try_from(count).unwrap_or_default();
        // SAFETY: the caller promises arrays with `count` elements, here and below.
        let names = unsafe { elements(names, count) };
        // SAFETY: see above.
        let values = unsafe { elements(values, count) };
        let pair = |(name, value): (&*const c_char, &*const c_char)| {
            // SAFETY: the caller promises text.
            let name = unsafe { text(*name, "name of an option")? };
            // SAFETY: the same.
            Ok((name, unsafe { text(*value, "value of an option")? }))
        };
        let pairs = names
            .iter()
            .zip(values)
            .map(pair)
            .collect::<Result<Vec<_>>>()?;
        let database = given(database, "database")?;
        dynamic_options::set(&database.shared.db(), place.of(database)?, &pairs)
    });
}

for_families!(rocksdb_set_options, rocksdb_set_options_cf: set_options(
    database: Option<&Database>;
    count: c_int, names: *const *const c_char, values: *const *const c_char, errptr: ErrorPointer<'_>
));

/// A checkpoint object returns errors after the close of its database.
fn checkpoint_of(database: Option<&Database>, errptr: ErrorPointer<'_>) -> Option<Box<Db>> {
    run_with(errptr, None, || {
        let database = given(database, "database")?;
        Ok(Some(give(database.shared.db().into_owned())))
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_checkpoint_object_create(
    database: Option<&Database>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Db>> {
    checkpoint_of(database, errptr)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_checkpoint_object_create(
    database: Option<&Database>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Db>> {
    checkpoint_of(database, errptr)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_checkpoint_create(
    checkpoint: Option<&Db>,
    folder: *const c_char,
    log_bytes: u64,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises text.
        let folder = unsafe { path(folder)? };
        Database::checkpoint(given(checkpoint, "checkpoint")?, folder, log_bytes)
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_checkpoint_object_destroy(checkpoint: Option<Box<Db>>) {
    run((), || drop(take(checkpoint)));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_get_latest_sequence_number(database: Option<&Database>) -> u64 {
    run(0, || {
        check(database).map_or(0, |database| database.snapshot().sequence())
    })
}
