//! Iterators. Threads may call the functions that do not move an iterator at the same time, as in RocksDB.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use windrow_ffi::calls::{ErrorPointer, Lent, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::iterator::Entries;
use windrow_ffi::{bytes, given};

use super::data::with_options;
use super::{FamilyHandle, Place, run_with};
use crate::database::Database;
use crate::iterator::EntryIterator;
use crate::options::ReadOptions;
use crate::status;

/// `rocksdb_iterator_t`.
pub(super) type Iterator = windrow_ffi::iterator::Iterator<EntryIterator>;

fn create(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
) -> Option<Box<Iterator>> {
    run(None, || {
        let family = place.of(check(database)?).ok()?;
        let entries = with_options(options, |options| Database::iterator(family, options));
        Some(give(Iterator::new(entries)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_iterator(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iterator>> {
    create(database, options, Place::Default)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_create_iterator_cf(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    family: Option<&FamilyHandle>,
) -> Option<Box<Iterator>> {
    create(database, options, Place::Family(family))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_create_iterator(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iterator>> {
    create(database, options, Place::Default)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_create_iterator_cf(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    family: Option<&FamilyHandle>,
) -> Option<Box<Iterator>> {
    create(database, options, Place::Family(family))
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_destroy(iterator: Option<Box<Iterator>>) {
    run((), || drop(take(iterator)));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_valid(iterator: Option<&Iterator>) -> u8 {
    u8::from(check(iterator).is_some_and(Iterator::is_valid))
}

fn go(iterator: Option<&mut Iterator>, movement: impl FnOnce(&mut EntryIterator)) {
    if let Some(iterator) = check(iterator) {
        iterator.go(movement);
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_seek_to_first(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::seek_to_first);
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_seek_to_last(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::seek_to_last);
}

/// # Safety
/// The key has its length.
unsafe fn seek_to(
    iterator: Option<&mut Iterator>,
    key: *const c_char,
    length: usize,
    movement: fn(&mut EntryIterator, &[u8]),
) {
    go(iterator, |iterator| {
        // SAFETY: the caller promises the bytes.
        match unsafe { bytes(key, length) } {
            Ok(key) => movement(iterator, key),
            Err(error) => iterator.fail(status::text(&error)),
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_seek(
    iterator: Option<&mut Iterator>,
    key: *const c_char,
    length: usize,
) {
    // SAFETY: the caller promises the bytes.
    unsafe { seek_to(iterator, key, length, EntryIterator::seek) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_iter_seek_for_prev(
    iterator: Option<&mut Iterator>,
    key: *const c_char,
    length: usize,
) {
    // SAFETY: the caller promises the bytes.
    unsafe { seek_to(iterator, key, length, EntryIterator::seek_for_prev) };
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_next(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::next);
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_prev(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::prev);
}

/// The bytes stay until the next move. Null, with a length of 0, if the iterator is at no entry.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_key(
    iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Iterator::lend_key(iterator, length)
}

/// As `rocksdb_iter_key`.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_value(
    iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Iterator::lend_value(iterator, length)
}

/// There are no timestamps: no bytes, as in RocksDB without them.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_timestamp(
    _iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Lent::new(&[]).give(length)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_get_error(iterator: Option<&Iterator>, errptr: ErrorPointer<'_>) {
    Iterator::report_error(iterator, errptr);
}

/// The header says `const`, but this changes the iterator: no other thread may use it meanwhile.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_iter_refresh(iterator: Option<&mut Iterator>, errptr: ErrorPointer<'_>) {
    run_with(errptr, (), || {
        let mut outcome = Ok(());
        given(iterator, "iterator")?.go(|entries| outcome = entries.refresh());
        outcome
    });
}
