//! The handle of an iterator in the C interfaces of LevelDB and RocksDB.
//!
//! Concurrency: threads may call the functions that do not move an iterator at the same time, as in those libraries.

#![expect(
    clippy::disallowed_types,
    reason = "no model replaces the locks of this crate"
)]

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use crate::calls::{ErrorPointer, Lent, run};
use crate::catch;
use crate::handles::check;

/// What an iterator moves over.
pub trait Entries {
    /// The key of the entry, if there is one.
    fn key(&self) -> Option<&[u8]>;

    /// The value of the entry, if there is one. A value that cannot be read is an error of the iterator.
    fn value(&mut self) -> Option<&[u8]>;

    /// The first error.
    fn error(&self) -> Option<&str>;

    /// Ends the iterator with an error.
    fn fail(&mut self, error: String);
}

/// An iterator of a caller in C.
#[derive(Debug)]
pub struct Iterator<E> {
    /// The key of the entry, if there is one, so that no lock is taken for it.
    key: Option<Lent>,
    /// The first call for a value may read it.
    entries: Mutex<E>,
}

impl<E: Entries + 'static> Iterator<E> {
    /// An iterator that is at no entry.
    pub fn new(entries: E) -> Self {
        Self {
            key: None,
            entries: Mutex::new(entries),
        }
    }

    /// Whether it is at an entry.
    pub fn is_valid(&self) -> bool {
        self.key.is_some()
    }

    /// Moves it. A panic ends it.
    pub fn go(&mut self, movement: impl FnOnce(&mut E)) {
        let entries = self.entries.get_mut();
        let entries = entries.unwrap_or_else(PoisonError::into_inner);
        if let Err(panic) = catch(|| movement(entries)) {
            entries.fail(format!("IO error: {panic}"));
        }
        self.key = entries.key().map(Lent::new);
    }

    /// Lends the key to C until the next move. Null, with a length of 0, if the iterator is at no entry.
    pub fn lend_key(this: Option<&Self>, length: Option<&mut MaybeUninit<usize>>) -> *const c_char {
        let key = check(this).and_then(|iterator| iterator.key);
        key.unwrap_or(Lent::NONE).give(length)
    }

    /// As [`lend_key`](Self::lend_key), for the value.
    pub fn lend_value(
        this: Option<&Self>,
        length: Option<&mut MaybeUninit<usize>>,
    ) -> *const c_char {
        let lent = run(None, || {
            check(this)?.look(|entries| entries.value().map(Lent::new))
        });
        lent.unwrap_or(Lent::NONE).give(length)
    }

    /// Puts the error of the iterator into `errptr`, if there is one.
    pub fn report_error(this: Option<&Self>, errptr: ErrorPointer<'_>) {
        run((), || {
            if let Some(iterator) = check(this) {
                iterator.look(|entries| {
                    if let Some(error) = entries.error() {
                        errptr.report(error);
                    }
                });
            }
        });
    }

    /// Looks at the entries, while no other thread does.
    fn look<R>(&self, look: impl FnOnce(&mut E) -> R) -> R {
        look(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
