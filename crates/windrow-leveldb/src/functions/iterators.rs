//! Iterators.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null;

use windrow_ffi::{bytes, catch};

use super::{ErrorPointer, report, run};
use crate::iterator::EntryIterator;
use crate::status;

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_destroy(iterator: Option<Box<EntryIterator>>) {
    run((), || drop(iterator));
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_valid(iterator: Option<&EntryIterator>) -> u8 {
    u8::from(iterator.is_some_and(EntryIterator::is_valid))
}

/// Moves an iterator. A panic ends it.
fn go(iterator: Option<&mut EntryIterator>, movement: impl FnOnce(&mut EntryIterator)) {
    if let Some(iterator) = iterator
        && let Err(panic) = catch(|| movement(iterator))
    {
        iterator.fail(format!("IO error: {panic}"));
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_seek_to_first(iterator: Option<&mut EntryIterator>) {
    go(iterator, EntryIterator::seek_to_first);
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_seek_to_last(iterator: Option<&mut EntryIterator>) {
    go(iterator, EntryIterator::seek_to_last);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_seek(
    iterator: Option<&mut EntryIterator>,
    key: *const c_char,
    length: usize,
) {
    go(iterator, |iterator| {
        // SAFETY: the caller promises the bytes.
        match unsafe { bytes(key, length) } {
            Ok(key) => iterator.seek(key),
            Err(error) => iterator.fail(status::text(&error)),
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_next(iterator: Option<&mut EntryIterator>) {
    go(iterator, EntryIterator::next);
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_prev(iterator: Option<&mut EntryIterator>) {
    go(iterator, EntryIterator::prev);
}

/// What an iterator lends until its next move. Null, with a length of 0, if it is at no entry.
fn lend(
    iterator: Option<&EntryIterator>,
    length: Option<&mut MaybeUninit<usize>>,
    look: impl FnOnce(&EntryIterator) -> Option<&[u8]>,
) -> *const c_char {
    let found = run(None, || iterator.and_then(look));
    if let Some(length) = length {
        length.write(found.map_or(0, <[u8]>::len));
    }
    found.map_or(null(), |found| found.as_ptr().cast())
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_key(
    iterator: Option<&EntryIterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    lend(iterator, length, EntryIterator::key)
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_value(
    iterator: Option<&EntryIterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    lend(iterator, length, EntryIterator::value)
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_get_error(iterator: Option<&EntryIterator>, errptr: ErrorPointer<'_>) {
    if let Some(error) = iterator.and_then(EntryIterator::error) {
        report(errptr, error);
    }
}
