//! Iterators. Threads may call the functions that do not move an iterator at the same time, as in LevelDB.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use windrow_ffi::bytes;
use windrow_ffi::calls::{ErrorPointer, run};
use windrow_ffi::handles::{check, take};
use windrow_ffi::iterator::Entries;

use crate::iterator::EntryIterator;
use crate::status;

/// `leveldb_iterator_t`.
pub(super) type Iterator = windrow_ffi::iterator::Iterator<EntryIterator>;

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_destroy(iterator: Option<Box<Iterator>>) {
    run((), || drop(take(iterator)));
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_valid(iterator: Option<&Iterator>) -> u8 {
    u8::from(check(iterator).is_some_and(Iterator::is_valid))
}

fn go(iterator: Option<&mut Iterator>, movement: impl FnOnce(&mut EntryIterator)) {
    if let Some(iterator) = check(iterator) {
        iterator.go(movement);
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_seek_to_first(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::seek_to_first);
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_seek_to_last(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::seek_to_last);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn leveldb_iter_seek(
    iterator: Option<&mut Iterator>,
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
extern "C" fn leveldb_iter_next(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::next);
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_prev(iterator: Option<&mut Iterator>) {
    go(iterator, EntryIterator::prev);
}

/// The bytes stay until the next move. Null, with a length of 0, if the iterator is at no entry.
#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_key(
    iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Iterator::lend_key(iterator, length)
}

/// As `leveldb_iter_key`.
#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_value(
    iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Iterator::lend_value(iterator, length)
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_get_error(iterator: Option<&Iterator>, errptr: ErrorPointer<'_>) {
    Iterator::report_error(iterator, errptr);
}
