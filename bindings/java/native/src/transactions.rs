//! Transactions, with their cursors and savepoints.
//!
//! Concurrency: a lock for each transaction.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{Db, Durability, Error, ErrorKind, Isolation, Keyspace, Result, Savepoint};
use windrow_ffi::transaction::TransactionAndCursors;

use crate::arguments::{Bytes, Keys, Scratch, durability, time_to_live};
use crate::cursors::{Entries, Move};
use crate::handles::method;
use crate::handles::{Handle, give};
use crate::views::{MISSING, milliseconds};

/// A transaction that is open.
struct Open {
    transaction: TransactionAndCursors,
    /// What each cursor has read, by its number.
    read: BTreeMap<u64, Entries>,
    savepoints: Vec<Savepoint>,
}

/// A transaction for any thread.
pub(crate) struct SharedTransaction(Mutex<Option<Open>>);

impl SharedTransaction {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Open) -> Result<R>) -> Result<R> {
        work(self.lock().as_mut().ok_or_else(ended)?)
    }

    fn end(&self) -> Result<TransactionAndCursors> {
        let open = self.lock().take().ok_or_else(ended)?;
        Ok(open.transaction)
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Closed, "the transaction has ended")
}

/// A lock timeout that stands for that of the database.
const DEFAULT_TIMEOUT: i64 = -1;

// The numbers are those of the class `Isolation`; another one is a locking transaction.
method!(Java_io_windrow_Native_begin, _env, db: Handle<Db>, isolation: i32, lock_timeout: jlong; jlong, {
    let transaction = match (isolation, u64::try_from(lock_timeout)) {
        (0, _) => db.transaction_with(Isolation::Serializable),
        (1, _) => db.transaction_with(Isolation::Snapshot),
        (_, Ok(milliseconds)) => db.locking_transaction_with(Duration::from_millis(milliseconds)),
        (_, Err(_)) if lock_timeout == DEFAULT_TIMEOUT => db.locking_transaction(),
        (_, Err(_)) => return Err(Error::invalid_argument("the timeout is negative").into()),
    };
    let open = Open {
        transaction: TransactionAndCursors::new(transaction),
        read: BTreeMap::new(),
        savepoints: Vec::new(),
    };
    Ok(give(SharedTransaction(Mutex::new(Some(open)))))
});

// The intents are plain, for an update, and for a share.
impl SharedTransaction {
    fn get(&self, keyspace: &Keyspace, key: &[u8], intent: i32) -> Result<Option<Vec<u8>>> {
        self.with(|open| {
            open.transaction.with(|it| match intent {
                0 => it.get(keyspace, key),
                1 => it.get_for_update(keyspace, key),
                _ => it.get_for_share(keyspace, key),
            })
        })
    }

    fn put(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        value: &[u8],
        ttl: Option<Duration>,
    ) -> Result<()> {
        self.with(|open| {
            open.transaction.with(|it| match ttl {
                None => it.insert(keyspace, key, value),
                Some(ttl) => it.insert_with_ttl(keyspace, key, value, ttl),
            })
        })
    }
}

method!(Java_io_windrow_Native_getOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, key: JByteArray<'local>, intent: i32; JByteArray<'local>, {
    let value = transaction.get(&keyspace, &Bytes::new(env, &key)?, intent)?;
    Ok(match value {
        Some(value) => env.byte_array_from_slice(&value)?,
        None => JByteArray::default(),
    })
});

method!(Java_io_windrow_Native_getAtOfTransaction, _env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, scratch: Scratch, key: i32, space: i32; i32, {
    let value = transaction.get(&keyspace, scratch.bytes(0, key)?, 0)?;
    Ok(value.map_or(Ok(MISSING), |value| scratch.fill(&value, space))?)
});

method!(Java_io_windrow_Native_expiresAtOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, key: JByteArray<'local>; jlong, {
    let key = Bytes::new(env, &key)?;
    let expiry = transaction.with(|open| open.transaction.with(|it| it.expires_at(&keyspace, &*key)))?;
    Ok(milliseconds(expiry))
});

method!(Java_io_windrow_Native_putOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, key: JByteArray<'local>, value: JByteArray<'local>, ttl: jlong; (), {
    let (key, value) = (Bytes::new(env, &key)?, Bytes::new(env, &value)?);
    Ok(transaction.put(&keyspace, &key, &value, time_to_live(ttl)?)?)
});

method!(Java_io_windrow_Native_putAtOfTransaction, _env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, scratch: Scratch, key: i32, value: i32; (), {
    let (key, value) = scratch.pair(key, value)?;
    Ok(transaction.put(&keyspace, key, value, None)?)
});

method!(Java_io_windrow_Native_deleteOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, key: JByteArray<'local>; (), {
    let key = Bytes::new(env, &key)?;
    Ok(transaction.with(|open| open.transaction.with(|it| it.remove(&keyspace, &*key)))?)
});

method!(Java_io_windrow_Native_mergeOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, key: JByteArray<'local>, operand: JByteArray<'local>; (), {
    let (key, operand) = (Bytes::new(env, &key)?, Bytes::new(env, &operand)?);
    Ok(transaction.with(|open| open.transaction.with(|it| it.merge(&keyspace, &*key, &*operand)))?)
});

method!(Java_io_windrow_Native_deleteRangeOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, start: JByteArray<'local>, end: JByteArray<'local>; (), {
    let keys = Keys::new(env, &start, &end)?;
    Ok(transaction.with(|open| open.transaction.with(|it| it.delete_range::<&[u8]>(&keyspace, keys.bounds())))?)
});

method!(Java_io_windrow_Native_cursorOfTransaction, env, transaction: Handle<SharedTransaction>, keyspace: Handle<Keyspace>, start: JByteArray<'local>, end: JByteArray<'local>; jlong, {
    let keys = Keys::new(env, &start, &end)?;
    let number = transaction.with(|open| {
        let number = open.transaction.open(|it| it.range_cursor::<&[u8]>(&keyspace, keys.bounds()))?;
        open.read.insert(number, Entries::default());
        Ok(number)
    })?;
    Ok(number.cast_signed())
});

method!(Java_io_windrow_Native_readOfTransaction, env, transaction: Handle<SharedTransaction>, number: jlong, begin: i32, key: JByteArray<'local>, count: i32; JByteArray<'local>, {
    let begin = Move::new(begin)?;
    let key = Bytes::optional(env, &key)?;
    let number = number.cast_unsigned();
    let closed = || Error::new(ErrorKind::Closed, "the cursor has been closed");
    let bytes = transaction.with(|open| {
        let entries = open.read.get_mut(&number).ok_or_else(closed)?;
        let key = key.as_deref().unwrap_or_default();
        let read = |cursor: &mut windrow::TransactionCursor<'_>| {
            entries.read(cursor, begin, key, count).map(<[u8]>::to_vec)
        };
        open.transaction.with_cursor(number, read).unwrap_or_else(|| Err(closed()))
    })?;
    Ok(env.byte_array_from_slice(&bytes)?)
});

method!(Java_io_windrow_Native_closeCursorOfTransaction, _env, transaction: Handle<SharedTransaction>, number: jlong; (), {
    if let Some(open) = &mut *transaction.lock() {
        let number = number.cast_unsigned();
        open.transaction.close(number);
        drop(open.read.remove(&number));
    }
    Ok(())
});

// The place of the savepoint among those of the transaction.
method!(Java_io_windrow_Native_savepoint, _env, transaction: Handle<SharedTransaction>; i32, {
    Ok(transaction.with(|open| {
        open.savepoints.push(open.transaction.with(windrow::Transaction::savepoint));
        i32::try_from(open.savepoints.len() - 1).map_err(|_| Error::invalid_argument("there are too many savepoints"))
    })?)
});

method!(Java_io_windrow_Native_rollBackTo, _env, transaction: Handle<SharedTransaction>, savepoint: i32; (), {
    Ok(transaction.with(|open| {
        let place = usize::try_from(savepoint).unwrap_or(usize::MAX);
        let savepoint = open.savepoints.get(place);
        let savepoint = *savepoint.ok_or_else(|| Error::invalid_argument("there is no such savepoint"))?;
        open.transaction.with(|it| it.roll_back_to(savepoint))
    })?)
});

method!(Java_io_windrow_Native_commit, _env, transaction: Handle<SharedTransaction>, number: i32, default: i32; (), {
    let chosen = durability(number)?.or(durability(default)?);
    let transaction = transaction.end()?;
    Ok(transaction.commit(chosen.unwrap_or(Durability::Buffered))?)
});

method!(Java_io_windrow_Native_prepare, env, transaction: Handle<SharedTransaction>, name: JByteArray<'local>; (), {
    let name = Bytes::new(env, &name)?;
    let name = name.text()?;
    let transaction = transaction.end()?;
    drop(transaction.prepare(name)?);
    Ok(())
});

method!(Java_io_windrow_Native_rollBack, _env, transaction: Handle<SharedTransaction>; (), {
    drop(transaction.end()?);
    Ok(())
});
