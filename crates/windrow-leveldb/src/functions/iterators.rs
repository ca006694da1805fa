//! Iterators. Threads may call the functions that do not move an iterator at the same time, as in LevelDB.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::{null, slice_from_raw_parts};
use std::sync::{Mutex, PoisonError};

use windrow_ffi::{bytes, catch};

use super::{ErrorPointer, report, run};
use crate::iterator::EntryIterator;
use crate::status;

/// `leveldb_iterator_t`.
pub(super) struct Iterator {
    /// The key of the entry, if there is one, so that no lock is taken for it.
    key: Option<Lent>,
    /// The first call for a value may read it.
    entries: Mutex<EntryIterator>,
}

/// Bytes of an iterator that nobody changes before its next move.
#[derive(Clone, Copy)]
struct Lent(*const [u8]);

// SAFETY: the bytes are only read until the next move, during which no other function of the iterator runs.
unsafe impl Send for Lent {}
// SAFETY: the same.
unsafe impl Sync for Lent {}

impl Lent {
    const NONE: Self = Self(slice_from_raw_parts(null(), 0));

    /// Passes the bytes to C.
    fn give(self, length: Option<&mut MaybeUninit<usize>>) -> *const c_char {
        if let Some(length) = length {
            length.write(self.0.len());
        }
        self.0.cast()
    }
}

impl Iterator {
    pub(super) fn new(entries: EntryIterator) -> Self {
        Self {
            key: None,
            entries: Mutex::new(entries),
        }
    }

    /// Looks at the entries, while no other thread does.
    fn look<R>(&self, look: impl FnOnce(&mut EntryIterator) -> R) -> R {
        look(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_destroy(iterator: Option<Box<Iterator>>) {
    run((), || drop(iterator));
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_valid(iterator: Option<&Iterator>) -> u8 {
    u8::from(iterator.is_some_and(|iterator| iterator.key.is_some()))
}

/// Moves an iterator. A panic ends it.
fn go(iterator: Option<&mut Iterator>, movement: impl FnOnce(&mut EntryIterator)) {
    let Some(iterator) = iterator else { return };
    let entries = iterator.entries.get_mut();
    let entries = entries.unwrap_or_else(PoisonError::into_inner);
    if let Err(panic) = catch(|| movement(entries)) {
        entries.fail(format!("IO error: {panic}"));
    }
    iterator.key = entries.key().map(|key| Lent(key));
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
    let key = iterator.and_then(|iterator| iterator.key);
    key.unwrap_or(Lent::NONE).give(length)
}

/// As `leveldb_iter_key`.
#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_value(
    iterator: Option<&Iterator>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    let lent = run(None, || {
        iterator?.look(|entries| entries.value().map(|value| Lent(value)))
    });
    lent.unwrap_or(Lent::NONE).give(length)
}

#[unsafe(no_mangle)]
extern "C" fn leveldb_iter_get_error(iterator: Option<&Iterator>, errptr: ErrorPointer<'_>) {
    run((), || {
        if let Some(iterator) = iterator {
            iterator.look(|entries| {
                if let Some(error) = entries.error() {
                    report(errptr, error);
                }
            });
        }
    });
}
