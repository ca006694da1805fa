//! Transactions: reads and writes that commit as one, or not at all.

use std::cell::RefCell;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::Duration;

use windrow::{
    Durability, Error as WindrowError, ErrorKind, Isolation, PreparedTransaction, Result, Savepoint,
};
use windrow_ffi::handles::{give, take};
use windrow_ffi::transaction::TransactionAndCursors;
use windrow_ffi::{given, not_null, text};

use super::bytes::{Bytes, Holder, Range, Value, WINDROW_EXPIRY_ABSENT, expiry_of};
use super::calls::{call, call_for, guard};
use super::databases::{Database, text_of};
use super::errors::Error;
use super::keyspaces::{Keyspace, read_many};
use super::options::durability;

/// A transaction. One thread at a time uses it and its cursors.
///
/// It reads the state at its beginning, with its own writes over it. Its commit fails with `WINDROW_CONFLICT`, and writes
/// nothing, if another write has changed meanwhile what it depends on: begin another one then.
#[derive(Debug)]
pub struct Transaction {
    shared: Rc<Shared>,
    /// The next number is the position of a savepoint here, and 1.
    savepoints: Vec<Savepoint>,
    durability: Durability,
}

/// The commit depends on everything that the transaction has read.
pub const WINDROW_ISOLATION_SERIALIZABLE: u32 = 0;
/// The commit depends on the keys that the transaction writes, or has read for an update.
pub const WINDROW_ISOLATION_SNAPSHOT: u32 = 1;

/// A transaction with its cursors, whose handles own it, too; `None` after its end.
#[derive(Debug)]
pub(super) struct Shared(RefCell<Option<TransactionAndCursors>>);

impl Shared {
    /// Runs a call of the transaction or of one of its cursors.
    pub(super) fn call<R>(
        &self,
        work: impl FnOnce(&mut TransactionAndCursors) -> Result<R>,
    ) -> Result<R> {
        let mut transaction = self.0.borrow_mut();
        let ended = || WindrowError::new(ErrorKind::Closed, "the transaction has ended");
        work(transaction.as_mut().ok_or_else(ended)?)
    }

    /// Runs a call of the transaction.
    fn with<R>(&self, work: impl FnOnce(&windrow::Transaction) -> Result<R>) -> Result<R> {
        self.call(|transaction| transaction.with(work))
    }

    /// Ends the transaction for its cursors, too.
    fn end(&self) -> Option<TransactionAndCursors> {
        self.0.borrow_mut().take()
    }
}

/// A transaction whose handle is freed is discarded: no cursor keeps its locks.
impl Drop for Transaction {
    fn drop(&mut self) {
        drop(self.shared.end());
    }
}

impl Transaction {
    fn new(database: &Database, transaction: windrow::Transaction) -> Box<Self> {
        give(Self {
            shared: Rc::new(Shared(RefCell::new(Some(TransactionAndCursors::new(
                transaction,
            ))))),
            savepoints: Vec::new(),
            durability: database.durability,
        })
    }

    /// The transaction for a cursor.
    pub(super) fn share(&self) -> Rc<Shared> {
        Rc::clone(&self.shared)
    }
}

/// Begins a transaction without locks. `isolation` is one of `WINDROW_ISOLATION_...`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_begin(
    database: Option<&Database>,
    isolation: u32,
    transaction: Option<&mut MaybeUninit<Option<Box<Transaction>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(transaction, None, error, || {
        let isolation = match isolation {
            WINDROW_ISOLATION_SERIALIZABLE => Isolation::Serializable,
            WINDROW_ISOLATION_SNAPSHOT => Isolation::Snapshot,
            unknown => {
                let message = format!("{unknown} is no isolation");
                return Err(WindrowError::invalid_argument(message));
            }
        };
        let database = given(database, "database")?;
        let transaction = database.db.transaction_with(isolation);
        Ok(Some(Transaction::new(database, transaction)))
    })
}

/// Begins a transaction that locks the keys that it writes or reads for an update. It waits for each lock at most for
/// `timeout` milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_begin_locking(
    database: Option<&Database>,
    timeout: u64,
    transaction: Option<&mut MaybeUninit<Option<Box<Transaction>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(transaction, None, error, || {
        let database = given(database, "database")?;
        let timeout = Duration::from_millis(timeout);
        let transaction = database.db.locking_transaction_with(timeout);
        Ok(Some(Transaction::new(database, transaction)))
    })
}

/// Runs a call of a transaction.
fn with<R>(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    work: impl FnOnce(&windrow::Transaction, &windrow::Keyspace) -> Result<R>,
) -> Result<R> {
    let transaction = given(transaction, "transaction")?;
    let keyspace = Keyspace::given(keyspace)?;
    transaction.shared.with(|it| work(it, keyspace))
}

/// A read without an intent: the commit may depend on it.
pub const WINDROW_READ_PLAIN: u32 = 0;
/// A read before a write of the key: a locking transaction locks it, and every commit depends on it.
pub const WINDROW_READ_FOR_UPDATE: u32 = 1;
/// A read that no other transaction may make wrong: a locking transaction locks the key beside others that do the same.
pub const WINDROW_READ_FOR_SHARE: u32 = 2;

/// The value of `key` as the transaction sees it. `intent` is one of `WINDROW_READ_...`. `*value` is null if the key does not
/// exist, and that is no error. Free the value with `windrow_value_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_get(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    intent: u32,
    value: Option<&mut MaybeUninit<Option<Box<Value>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(value, None, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        let found = with(
            transaction,
            keyspace,
            |transaction, keyspace| match intent {
                WINDROW_READ_PLAIN => transaction.get(keyspace, key),
                WINDROW_READ_FOR_UPDATE => transaction.get_for_update(keyspace, key),
                WINDROW_READ_FOR_SHARE => transaction.get_for_share(keyspace, key),
                unknown => Err(WindrowError::invalid_argument(format!(
                    "{unknown} is no intent of a read"
                ))),
            },
        )?;
        Ok(found.map(|value| give(Value(Holder::Copied(value)))))
    })
}

/// The values of `count` keys as the transaction sees them, as `windrow_multi_get` reads them. They are reads without an
/// intent. Free each value with `windrow_value_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_multi_get(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    keys: *const Bytes,
    values: *mut MaybeUninit<Option<Box<Value>>>,
    count: usize,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let read = |keys: &[&[u8]]| {
            with(transaction, keyspace, |transaction, keyspace| {
                transaction.multi_get(keyspace, keys)
            })
        };
        // SAFETY: the caller promises the arrays.
        unsafe { read_many(keys, values, count, read) }
    })
}

/// Sets the value of `key`. Nobody else sees it before the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_put(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.insert(keyspace, key, value)
        })
    })
}

/// Sets the value of `key` for `ttl` milliseconds from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_put_with_ttl(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    value: Bytes,
    ttl: u64,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let value = unsafe { value.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.insert_with_ttl(keyspace, key, value, Duration::from_millis(ttl))
        })
    })
}

/// When the value of `key` expires, as the transaction sees it. `*expiry` is as that of `windrow_expires_at`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_expires_at(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    expiry: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(expiry, WINDROW_EXPIRY_ABSENT, error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.expires_at(keyspace, key).map(expiry_of)
        })
    })
}

/// Removes `key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_delete(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.remove(keyspace, key)
        })
    })
}

/// Removes all keys of a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_delete_range(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    range: Range,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let range = unsafe { range.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.delete_range::<&[u8]>(keyspace, range)
        })
    })
}

/// Writes an operand, which the keyspace's merge operator folds into the value of `key`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_merge(
    transaction: Option<&mut Transaction>,
    keyspace: Option<&Keyspace>,
    key: Bytes,
    operand: Bytes,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        // SAFETY: the caller promises the bytes.
        let key = unsafe { key.get()? };
        // SAFETY: the same.
        let operand = unsafe { operand.get()? };
        with(transaction, keyspace, |transaction, keyspace| {
            transaction.merge(keyspace, key, operand)
        })
    })
}

/// Marks the present state of the writes and locks. `*savepoint` is a number above 0.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_savepoint(
    transaction: Option<&mut Transaction>,
    savepoint: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(savepoint, 0, error, || {
        let transaction = given(transaction, "transaction")?;
        let savepoint = transaction.shared.with(|it| Ok(it.savepoint()))?;
        transaction.savepoints.push(savepoint);
        Ok(transaction.savepoints.len())
    })
}

/// Discards what the transaction has written and locked since the savepoint, which stays.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_roll_back_to(
    transaction: Option<&mut Transaction>,
    savepoint: usize,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let transaction = given(transaction, "transaction")?;
        let found = savepoint.checked_sub(1);
        let found = found.and_then(|at| transaction.savepoints.get(at));
        let Some(found) = found else {
            return Err(WindrowError::invalid_argument(format!(
                "the transaction has no savepoint {savepoint}"
            )));
        };
        transaction.shared.with(|it| it.roll_back_to(*found))?;
        transaction.savepoints.truncate(savepoint);
        Ok(())
    })
}

/// Commits the transaction and frees it, also after an error. Then nothing was written, unless the database was poisoned:
/// after `WINDROW_POISONED`, or an error that has poisoned it, only the next open shows whether the writes are there. The
/// calls of cursors that it still has return `WINDROW_CLOSED` from now on.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_commit(
    transaction: Option<Box<Transaction>>,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let transaction = not_null(take(transaction), "transaction")?;
        let durability = self::durability(durability, transaction.durability)?;
        let ended = transaction.shared.end();
        ended.map_or(Ok(()), |ended| ended.commit(durability))
    })
}

/// Discards the writes of the transaction, and frees it. Its cursors return `WINDROW_CLOSED` from now on. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_transaction_roll_back(transaction: Option<Box<Transaction>>) {
    guard((), || drop(take(transaction)));
}

/// Makes the transaction durable under the name `name` without its commit: the first phase of a commit in two phases. It
/// frees the transaction, also after an error. Then nothing is prepared, unless the database was poisoned: see
/// `windrow_transaction_commit`. A prepared transaction survives crashes until `windrow_commit_prepared` or
/// `windrow_roll_back_prepared` ends it. Until then nobody else changes what it has read or written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_transaction_prepare(
    transaction: Option<Box<Transaction>>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let transaction = not_null(take(transaction), "transaction")?;
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let ended = transaction.shared.end();
        ended.map_or(Ok(()), |ended| ended.prepare(name).map(drop))
    })
}

/// The names of all prepared transactions as a JSON array. Free it with `windrow_text_free`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_prepared_names_json(
    database: Option<&Database>,
    json: Option<&mut MaybeUninit<*mut c_char>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    text_of(database, json, error, |db| {
        serde_json::to_string(&db.prepared_transactions())
    })
}

/// Commits the prepared transaction `name`. If nothing was written, it stays prepared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_commit_prepared(
    database: Option<&Database>,
    name: *const c_char,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    // SAFETY: the caller promises text.
    unsafe {
        end_prepared(
            database,
            name,
            durability,
            error,
            PreparedTransaction::commit_with,
        )
    }
}

/// Discards the writes of the prepared transaction `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_roll_back_prepared(
    database: Option<&Database>,
    name: *const c_char,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    // SAFETY: the caller promises text.
    unsafe {
        end_prepared(
            database,
            name,
            durability,
            error,
            PreparedTransaction::roll_back_with,
        )
    }
}

/// # Safety
/// As [`text`].
unsafe fn end_prepared(
    database: Option<&Database>,
    name: *const c_char,
    durability: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
    end: impl FnOnce(PreparedTransaction, Durability) -> Result<()>,
) -> i32 {
    call(error, || {
        let database = given(database, "database")?;
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name")? };
        let durability = self::durability(durability, database.durability)?;
        let prepared = database.db.prepared_transaction(name).ok_or_else(|| {
            let message = format!("there is no prepared transaction \"{name}\"");
            WindrowError::new(ErrorKind::NotFound, message)
        })?;
        end(prepared, durability)
    })
}
