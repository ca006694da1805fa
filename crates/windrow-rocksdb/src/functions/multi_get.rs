//! Reads of several keys: all that one call reads is of one state of the database.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use windrow::Result;
use windrow_ffi::calls::{elements, outputs};
use windrow_ffi::handles::check;
use windrow_ffi::{allocate, bytes, catch, given, not_null};

use super::data::{PinnableSlice, with_options};
use super::{FamilyHandle, Place};
use crate::database::Database;
use crate::options::ReadOptions;
use crate::status;
use crate::transaction::Transaction;

/// The keys of a call.
#[derive(Clone, Copy)]
struct Keys<'a> {
    pointers: &'a [*const c_char],
    lengths: &'a [usize],
    /// A family for each key, or none at all for `default`.
    families: Option<&'a [Option<&'a FamilyHandle>]>,
}

impl<'a> Keys<'a> {
    /// # Safety
    /// The arrays have `count` elements.
    unsafe fn new(
        families: Option<*const Option<&'a FamilyHandle>>,
        count: usize,
        keys: *const *const c_char,
        lengths: *const usize,
    ) -> Self {
        Self {
            // SAFETY: the caller promises arrays with `count` elements, here and below.
            pointers: unsafe { elements(keys, count) },
            // SAFETY: see above.
            lengths: unsafe { elements(lengths, count) },
            // SAFETY: see above.
            families: families.map(|families| unsafe { elements(families, count) }),
        }
    }

    /// The key at a position, and its family.
    ///
    /// # Safety
    /// The keys have their lengths.
    unsafe fn get(self, position: usize) -> Result<(Place<'a>, &'a [u8])> {
        let key = not_null(self.pointers.get(position), "key")?;
        let length = not_null(self.lengths.get(position), "length")?;
        let place = match self.families {
            None => Place::Default,
            Some(families) => {
                Place::Family(not_null(families.get(position), "families")?.as_deref())
            }
        };
        // SAFETY: the caller promises the bytes.
        Ok((place, unsafe { bytes(*key, *length)? }))
    }
}

/// Where the values go.
struct Outputs<'a> {
    values: &'a mut [MaybeUninit<*mut c_char>],
    lengths: &'a mut [MaybeUninit<usize>],
    errors: &'a mut [MaybeUninit<*mut c_char>],
}

impl Outputs<'_> {
    /// # Safety
    /// The arrays have `count` elements.
    unsafe fn new(
        count: usize,
        values: *mut *mut c_char,
        lengths: *mut usize,
        errors: *mut *mut c_char,
    ) -> Self {
        Self {
            // SAFETY: the caller promises arrays with `count` elements, here and below.
            values: unsafe { outputs(values, count) },
            // SAFETY: see above.
            lengths: unsafe { outputs(lengths, count) },
            // SAFETY: see above.
            errors: unsafe { outputs(errors, count) },
        }
    }

    /// How many keys have a place for their value or its error.
    fn len(&self) -> usize {
        let (values, lengths) = (self.values.len(), self.lengths.len());
        self.errors.len().max(values).max(lengths)
    }

    fn put(&mut self, position: usize, found: Result<Option<Vec<u8>>>) {
        let copied = found.and_then(|found| match found {
            None => Ok((null_mut(), 0)),
            Some(value) => Ok((allocate(&value)?, value.len())),
        });
        let error = copied.as_ref().err().map_or(null_mut(), message);
        let (value, length) = copied.unwrap_or((null_mut(), 0));
        if let Some(place) = self.values.get_mut(position) {
            place.write(value);
        }
        if let Some(place) = self.lengths.get_mut(position) {
            place.write(length);
        }
        if let Some(place) = self.errors.get_mut(position) {
            place.write(error);
        }
    }
}

fn message(error: &windrow::Error) -> *mut c_char {
    allocate(status::text(error).as_bytes()).unwrap_or(null_mut())
}

/// Stops a panic, which becomes an error.
fn guard<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch(work).unwrap_or_else(|panic| Err(windrow::Error::new(windrow::ErrorKind::Io, panic)))
}

/// # Safety
/// The keys have their lengths.
unsafe fn read(
    keys: Keys<'_>,
    mut outputs: Outputs<'_>,
    read: impl Fn(Place<'_>, &[u8]) -> Result<Option<Vec<u8>>>,
) {
    for position in 0..outputs.len() {
        let found = guard(|| {
            // SAFETY: the caller promises the bytes.
            let (place, key) = unsafe { keys.get(position)? };
            read(place, key)
        });
        outputs.put(position, found);
    }
}

/// Calls `read` with options whose snapshot is that of one state, if there is a database.
fn at_one_state<R>(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    read: impl FnOnce(&ReadOptions) -> R,
) -> R {
    with_options(options, |options| match database {
        Some(database) => database.at_one_state(options, read),
        None => read(options),
    })
}

/// # Safety
/// As [`read`].
unsafe fn of_database(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    keys: Keys<'_>,
    outputs: Outputs<'_>,
) {
    at_one_state(check(database), options, |options| {
        // SAFETY: the caller promises the arrays.
        unsafe {
            read(keys, outputs, |place, key| {
                let database = given(database, "database")?;
                let found = Database::get(place.of(database)?, key, options)?;
                Ok(found.map(|value| value.to_vec()))
            });
        }
    });
}

/// Defines the function for `default` and that for families of each key.
macro_rules! multi_gets {
    ($($in_default:ident, $in_families:ident: $of:ident($source:ty);)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $in_default(
            source: Option<&$source>,
            options: Option<&ReadOptions>,
            count: usize,
            keys: *const *const c_char,
            key_lengths: *const usize,
            values: *mut *mut c_char,
            value_lengths: *mut usize,
            errors: *mut *mut c_char,
        ) {
            // SAFETY: the caller promises the arrays, here and below.
            let keys = unsafe { Keys::new(None, count, keys, key_lengths) };
            // SAFETY: see above.
            let outputs = unsafe { Outputs::new(count, values, value_lengths, errors) };
            // SAFETY: see above.
            unsafe { $of(source, options, keys, outputs) };
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $in_families(
            source: Option<&$source>,
            options: Option<&ReadOptions>,
            families: *const Option<&FamilyHandle>,
            count: usize,
            keys: *const *const c_char,
            key_lengths: *const usize,
            values: *mut *mut c_char,
            value_lengths: *mut usize,
            errors: *mut *mut c_char,
        ) {
            // SAFETY: the caller promises the arrays, here and below.
            let keys = unsafe { Keys::new(Some(families), count, keys, key_lengths) };
            // SAFETY: see above.
            let outputs = unsafe { Outputs::new(count, values, value_lengths, errors) };
            // SAFETY: see above.
            unsafe { $of(source, options, keys, outputs) };
        })*
    };
}

multi_gets! {
    rocksdb_multi_get, rocksdb_multi_get_cf: of_database(Database);
    rocksdb_transactiondb_multi_get, rocksdb_transactiondb_multi_get_cf: of_database(Database);
    rocksdb_transaction_multi_get, rocksdb_transaction_multi_get_cf: of_transaction(Transaction);
}

/// # Safety
/// As [`read`].
unsafe fn of_transaction(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    keys: Keys<'_>,
    outputs: Outputs<'_>,
) {
    let database = check(transaction).map(Transaction::database);
    at_one_state(database, options, |options| {
        // SAFETY: the caller promises the arrays.
        unsafe {
            read(keys, outputs, |place, key| {
                let transaction = given(transaction, "transaction")?;
                let family = place.of(transaction.database())?;
                transaction.get(family, key, options)
            });
        }
    });
}

/// The keys need not be sorted.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_batched_multi_get_cf(
    database: Option<&Database>,
    options: Option<&ReadOptions>,
    family: Option<&FamilyHandle>,
    count: usize,
    keys: *const *const c_char,
    key_lengths: *const usize,
    values: *mut Option<Box<PinnableSlice>>,
    errors: *mut *mut c_char,
    _is_sorted: bool,
) {
    // SAFETY: the caller promises the arrays, here and below.
    let keys = unsafe { Keys::new(None, count, keys, key_lengths) };
    // SAFETY: see above.
    let values = unsafe { outputs(values, count) };
    // SAFETY: see above.
    let errors = unsafe { outputs(errors, count) };
    at_one_state(check(database), options, |options| {
        for position in 0..errors.len().max(values.len()) {
            let found = guard(|| {
                // SAFETY: see above.
                let (_, key) = unsafe { keys.get(position)? };
                let database = given(database, "database")?;
                let family = Place::Family(family).of(database)?;
                Database::get(family, key, options)
            });
            if let Some(place) = errors.get_mut(position) {
                place.write(found.as_ref().err().map_or(null_mut(), message));
            }
            if let Some(place) = values.get_mut(position) {
                place.write(found.ok().flatten().map(PinnableSlice::pinned));
            }
        }
    });
}
