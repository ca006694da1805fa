//! Transactions and their databases.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;

use windrow_ffi::calls::{ErrorPointer, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::{allocate, bytes, given, setters};

use super::data::{PinnableSlice, with_options};
use super::iterators::Iterator;
use super::snapshots::SnapshotHandle;
use super::{FamilyHandle, Place, run_with};
use crate::batch::Write;
use crate::database::Database;
use crate::families::Family;
use crate::options::{LockTimeouts, ReadOptions, WriteOptions, timeout};
use crate::transaction::{Control, Transaction};

/// `rocksdb_transaction_options_t` and `rocksdb_optimistictransaction_options_t`.
#[derive(Default)]
struct TransactionOptions {
    takes_snapshot: bool,
    /// In milliseconds; that of the database if negative or not set.
    lock_timeout: Option<i64>,
    /// What no transaction with these options can do.
    unsupported: Option<&'static str>,
}

handles! {
    rocksdb_transactiondb_options_create, rocksdb_transactiondb_options_destroy: LockTimeouts;
    rocksdb_transaction_options_create, rocksdb_transaction_options_destroy: TransactionOptions;
    rocksdb_optimistictransaction_options_create, rocksdb_optimistictransaction_options_destroy: TransactionOptions;
}

setters! {
    rocksdb_transactiondb_options_set_transaction_lock_timeout(options: LockTimeouts, value: i64) {
        options.transaction = timeout(value);
    }

    rocksdb_transactiondb_options_set_default_lock_timeout(options: LockTimeouts, value: i64) {
        options.write = timeout(value);
    }

    /// No effect: Windrow bounds the memory of all locks.
    rocksdb_transactiondb_options_set_max_num_locks(_options: LockTimeouts, _value: i64) {}

    /// No effect.
    rocksdb_transactiondb_options_set_num_stripes(_options: LockTimeouts, _value: usize) {}

    rocksdb_transaction_options_set_set_snapshot(options: TransactionOptions, value: u8) {
        options.takes_snapshot = value != 0;
    }

    rocksdb_optimistictransaction_options_set_set_snapshot(options: TransactionOptions, value: u8) {
        options.takes_snapshot = value != 0;
    }

    rocksdb_transaction_options_set_lock_timeout(options: TransactionOptions, value: i64) {
        options.lock_timeout = Some(value).filter(|value| *value >= 0);
    }

    /// No effect: deadlocks are always found.
    rocksdb_transaction_options_set_deadlock_detect(_options: TransactionOptions, _value: u8) {}

    /// No effect.
    rocksdb_transaction_options_set_deadlock_detect_depth(_options: TransactionOptions, _value: i64) {}

    /// Locks last until the end of the transaction. With an expiration its calls are errors.
    rocksdb_transaction_options_set_expiration(options: TransactionOptions, milliseconds: i64) {
        options.unsupported = (milliseconds > 0).then_some("the locks of a transaction do not expire");
    }

    /// No effect: a transaction writes at most 1 GiB.
    rocksdb_transaction_options_set_max_write_batch_size(_options: TransactionOptions, _value: usize) {}

    /// No effect: a commit without a preparation is always possible.
    rocksdb_transaction_options_set_skip_prepare(_options: TransactionOptions, _value: u8) {}
}

/// Begins a transaction, in the handle of one that has ended if there is one. That handle stays the caller's, also if nothing
/// begins.
fn begin(
    transaction: impl FnOnce() -> Option<Transaction>,
    old: Option<Box<Transaction>>,
) -> Option<Box<Transaction>> {
    let begun = run(None, transaction);
    match (begun, check(old)) {
        (Some(begun), Some(mut old)) => {
            run((), || *old = begun);
            Some(old)
        }
        (begun, old) => begun.map(give).or(old),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_begin(
    database: Option<&Database>,
    write_options: Option<&WriteOptions>,
    options: Option<&TransactionOptions>,
    old: Option<Box<Transaction>>,
) -> Option<Box<Transaction>> {
    let begun = || {
        let database = check(database)?;
        let options = check(options);
        let own = options.and_then(|options| options.lock_timeout);
        let locks = database.locks.unwrap_or_default();
        let control = Control::Locking(own.map_or(locks.transaction, timeout));
        let takes_snapshot = options.is_some_and(|options| options.takes_snapshot);
        let write_options = check(write_options).copied().unwrap_or_default();
        let mut begun = Transaction::begin(database, control, write_options, takes_snapshot);
        if let Some(what) = options.and_then(|options| options.unsupported) {
            begun.refuse(what);
        }
        Some(begun)
    };
    begin(begun, old)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_optimistictransaction_begin(
    database: Option<&Database>,
    write_options: Option<&WriteOptions>,
    options: Option<&TransactionOptions>,
    old: Option<Box<Transaction>>,
) -> Option<Box<Transaction>> {
    let begun = || {
        let takes_snapshot = check(options).is_some_and(|options| options.takes_snapshot);
        let write_options = check(write_options).copied().unwrap_or_default();
        let control = Control::Optimistic;
        Some(Transaction::begin(
            check(database)?,
            control,
            write_options,
            takes_snapshot,
        ))
    };
    begin(begun, old)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_destroy(transaction: Option<Box<Transaction>>) {
    run((), || drop(take(transaction)));
}

/// The caller frees the array, and destroys the transactions.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    database: Option<&Database>,
    count: Option<&mut MaybeUninit<usize>>,
) -> *mut *mut Transaction {
    let (array, length) = run((null_mut(), 0), || {
        let prepared = check(database)
            .map(Transaction::prepared)
            .unwrap_or_default();
        array_of(prepared)
    });
    if let Some(count) = count {
        count.write(length);
    }
    array
}

/// An array of handles, in memory of `malloc`; null for none.
fn array_of(transactions: Vec<Transaction>) -> (*mut *mut Transaction, usize) {
    let length = transactions.len();
    if length == 0 {
        return (null_mut(), 0);
    }
    // SAFETY: the size is not zero.
    let array = unsafe { libc::calloc(length, size_of::<*mut Transaction>()) };
    let array = array.cast::<*mut Transaction>();
    if array.is_null() {
        return (null_mut(), 0);
    }
    for (position, transaction) in transactions.into_iter().enumerate() {
        let handle = Box::into_raw(give(transaction));
        // SAFETY: the array has `length` elements.
        let element = unsafe { array.add(position) };
        // SAFETY: the same.
        unsafe { element.write(handle) };
    }
    (array, length)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transaction_set_name(
    transaction: Option<&mut Transaction>,
    name: *const c_char,
    length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let name = unsafe { bytes(name, length)? };
        given(transaction, "transaction")?.set_name(name)
    });
}

/// The caller frees the name.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_get_name(
    transaction: Option<&Transaction>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_char {
    run(null_mut(), || {
        let name = check(transaction)
            .and_then(Transaction::name)
            .unwrap_or_default();
        if let Some(length) = length {
            length.write(name.len());
        }
        allocate(name.as_bytes()).unwrap_or(null_mut())
    })
}

/// Defines functions that do one thing to a transaction.
macro_rules! steps {
    ($($name:ident: $step:path;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(transaction: Option<&mut Transaction>, errptr: ErrorPointer<'_>) {
            run_with(errptr, (), || $step(given(transaction, "transaction")?));
        })*
    };
}

steps! {
    rocksdb_transaction_prepare: Transaction::prepare;
    rocksdb_transaction_commit: Transaction::commit;
    rocksdb_transaction_rollback: Transaction::roll_back;
    rocksdb_transaction_rollback_to_savepoint: Transaction::roll_back_to_save_point;
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_set_savepoint(transaction: Option<&mut Transaction>) {
    if let Some(transaction) = check(transaction) {
        run((), || transaction.set_save_point());
    }
}

/// The caller frees the handle, and does not use it longer than the transaction.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_get_snapshot(
    transaction: Option<&Transaction>,
) -> *mut SnapshotHandle {
    run(null_mut(), || {
        SnapshotHandle::borrowing(check(transaction).and_then(Transaction::snapshot))
    })
}

/// Runs `work` with a transaction and a column family.
fn with_family<R>(
    transaction: Option<&mut Transaction>,
    place: Place<'_>,
    work: impl FnOnce(&mut Transaction, &Arc<Family>) -> windrow::Result<R>,
) -> windrow::Result<R> {
    let transaction = given(transaction, "transaction")?;
    let family = Arc::clone(place.of(transaction.database())?);
    work(transaction, &family)
}

/// # Safety
/// The bytes have their lengths.
unsafe fn put(
    transaction: Option<&mut Transaction>,
    place: Place<'_>,
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
        with_family(transaction, place, |transaction, family| {
            transaction.write(family, Write::Put(key, value))
        })
    });
}

for_families!(rocksdb_transaction_put, rocksdb_transaction_put_cf: put(
    transaction: Option<&mut Transaction>;
    key: *const c_char, key_length: usize, value: *const c_char, value_length: usize, errptr: ErrorPointer<'_>
));

/// # Safety
/// As [`put`].
unsafe fn merge(
    transaction: Option<&mut Transaction>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    operand: *const c_char,
    operand_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        // SAFETY: the same.
        let operand = unsafe { bytes(operand, operand_length)? };
        with_family(transaction, place, |transaction, family| {
            transaction.write(family, Write::Merge(key, operand))
        })
    });
}

for_families!(rocksdb_transaction_merge, rocksdb_transaction_merge_cf: merge(
    transaction: Option<&mut Transaction>;
    key: *const c_char, key_length: usize, operand: *const c_char, operand_length: usize, errptr: ErrorPointer<'_>
));

/// # Safety
/// As [`put`].
unsafe fn delete(
    transaction: Option<&mut Transaction>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { bytes(key, key_length)? };
        with_family(transaction, place, |transaction, family| {
            transaction.write(family, Write::Delete(key))
        })
    });
}

for_families!(rocksdb_transaction_delete, rocksdb_transaction_delete_cf: delete(
    transaction: Option<&mut Transaction>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
));

/// # Safety
/// As [`put`].
unsafe fn find(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
) -> windrow::Result<Option<Vec<u8>>> {
    // SAFETY: the caller promises the bytes.
    let key = unsafe { bytes(key, key_length)? };
    with_family(transaction, place, |transaction, family| {
        with_options(options, |options| transaction.get(family, key, options))
    })
}

/// As [`find`], for update.
///
/// # Safety
/// As [`put`].
unsafe fn find_for_update(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    is_exclusive: u8,
) -> windrow::Result<Option<Vec<u8>>> {
    // SAFETY: the caller promises the bytes.
    let key = unsafe { bytes(key, key_length)? };
    with_family(transaction, place, |transaction, family| {
        with_options(options, |options| {
            transaction.get_for_update(family, key, options, is_exclusive != 0)
        })
    })
}

/// Passes a value to C.
fn give_value(
    value_length: Option<&mut MaybeUninit<usize>>,
    errptr: ErrorPointer<'_>,
    find: impl FnOnce() -> windrow::Result<Option<Vec<u8>>>,
) -> *mut c_char {
    let (value, length) = run_with(errptr, (null_mut(), 0), || match find()? {
        Some(value) => Ok((allocate(&value)?, value.len())),
        None => Ok((null_mut(), 0)),
    });
    if let Some(value_length) = value_length {
        value_length.write(length);
    }
    value
}

/// # Safety
/// As [`put`].
unsafe fn get(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    errptr: ErrorPointer<'_>,
) -> *mut c_char {
    give_value(value_length, errptr, || {
        // SAFETY: the caller promises the bytes.
        unsafe { find(transaction, options, place, key, key_length) }
    })
}

for_families!(rocksdb_transaction_get, rocksdb_transaction_get_cf: get(
    transaction: Option<&mut Transaction>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, value_length: Option<&mut MaybeUninit<usize>>, errptr: ErrorPointer<'_>
) -> *mut c_char);

/// # Safety
/// As [`put`].
unsafe fn get_for_update(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    value_length: Option<&mut MaybeUninit<usize>>,
    is_exclusive: u8,
    errptr: ErrorPointer<'_>,
) -> *mut c_char {
    give_value(value_length, errptr, || {
        // SAFETY: the caller promises the bytes.
        unsafe { find_for_update(transaction, options, place, key, key_length, is_exclusive) }
    })
}

for_families!(rocksdb_transaction_get_for_update, rocksdb_transaction_get_for_update_cf: get_for_update(
    transaction: Option<&mut Transaction>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, value_length: Option<&mut MaybeUninit<usize>>, is_exclusive: u8,
    errptr: ErrorPointer<'_>
) -> *mut c_char);

/// # Safety
/// As [`put`].
unsafe fn get_pinned(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    errptr: ErrorPointer<'_>,
) -> Option<Box<PinnableSlice>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises the bytes.
        let found = unsafe { find(transaction, options, place, key, key_length)? };
        Ok(found.map(PinnableSlice::owned))
    })
}

for_families!(rocksdb_transaction_get_pinned, rocksdb_transaction_get_pinned_cf: get_pinned(
    transaction: Option<&mut Transaction>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, errptr: ErrorPointer<'_>
) -> Option<Box<PinnableSlice>>);

/// # Safety
/// As [`put`].
unsafe fn get_pinned_for_update(
    transaction: Option<&mut Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
    key: *const c_char,
    key_length: usize,
    is_exclusive: u8,
    errptr: ErrorPointer<'_>,
) -> Option<Box<PinnableSlice>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises the bytes.
        let found =
            unsafe { find_for_update(transaction, options, place, key, key_length, is_exclusive)? };
        Ok(found.map(PinnableSlice::owned))
    })
}

for_families!(rocksdb_transaction_get_pinned_for_update, rocksdb_transaction_get_pinned_for_update_cf: get_pinned_for_update(
    transaction: Option<&mut Transaction>, options: Option<&ReadOptions>;
    key: *const c_char, key_length: usize, is_exclusive: u8, errptr: ErrorPointer<'_>
) -> Option<Box<PinnableSlice>>);

fn iterate(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    place: Place<'_>,
) -> Option<Box<Iterator>> {
    run(None, || {
        let transaction = check(transaction)?;
        let family = place.of(transaction.database()).ok()?;
        let entries = with_options(options, |options| transaction.iterator(family, options));
        Some(give(Iterator::new(entries)))
    })
}

/// The iterator sees what the transaction has written so far.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_create_iterator(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
) -> Option<Box<Iterator>> {
    iterate(transaction, options, Place::Default)
}

/// As `rocksdb_transaction_create_iterator`.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transaction_create_iterator_cf(
    transaction: Option<&Transaction>,
    options: Option<&ReadOptions>,
    family: Option<&FamilyHandle>,
) -> Option<Box<Iterator>> {
    iterate(transaction, options, Place::Family(family))
}
