//! Transactions.
//!
//! The class in JavaScript makes one call after the other, so nobody waits for the lock of a transaction. Calls of locking
//! transactions that may wait for other transactions run on a thread of their own (`waiting`).
//!
//! Concurrency: a lock, which a call has on a thread of libuv or on that of the transaction.

use std::cell::RefCell;
use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ClassInstance, Either, Object};
use napi_derive::napi;
use windrow_ffi::settings;
use windrow_ffi::transaction::TransactionAndCursors;

use crate::answers::{Packed, Value};
use crate::database::Database;
use crate::errors::{Failure, Result};
use crate::input::{Input, JsRange, Range, bytes};
use crate::iterator::{EntryIterator, Form};
use crate::owner::Owner;
use crate::packed::{Reader, Values, milliseconds};
use crate::shared::{Shared, ended};
use crate::waiting::Waiting;
use crate::work::{Answer, Work, promise};
use crate::writes::{keyspace, write_all};

/// How a transaction begins.
#[napi(object, object_to_js = false)]
pub(crate) struct TransactionOptions {
    /// `serializable` or `snapshot`.
    pub isolation: String,
    /// Whether it locks what it writes.
    pub locking: bool,
    /// How long it waits for a lock, in milliseconds.
    pub timeout: Option<f64>,
}

/// A transaction.
#[napi]
pub(crate) struct Transaction {
    owner: Arc<Owner>,
    shared: Arc<Shared>,
    /// Of a transaction that locks, until its end.
    waiting: RefCell<Option<Waiting>>,
}

impl Answer for Transaction {
    type Value<'env> = Self;

    fn value(self, _env: &Env) -> napi::Result<Self> {
        Ok(self)
    }
}

#[napi]
impl Database {
    /// Begins a transaction.
    #[napi]
    pub fn begin(&self, options: TransactionOptions) -> Result<AsyncTask<Work<Transaction>>> {
        let owner = Arc::clone(self.owner());
        let lease = owner.lease_or_throw()?;
        Ok(promise(move || {
            // It ends with the promise.
            let _held = &lease;
            begin(&owner, &options)
        }))
    }
}

fn begin(owner: &Arc<Owner>, options: &TransactionOptions) -> windrow::Result<Transaction> {
    let db = owner.entries().db();
    let isolation = settings::isolation(&options.isolation)?;
    let timeout = options.timeout.map(milliseconds).transpose()?;
    let (transaction, waiting) = match (options.locking, timeout) {
        (false, _) => (db.transaction_with(isolation), None),
        (true, None) => (db.locking_transaction(), Some(Waiting::new()?)),
        (true, Some(timeout)) => (db.locking_transaction_with(timeout), Some(Waiting::new()?)),
    };
    Ok(Transaction {
        owner: Arc::clone(owner),
        shared: Arc::new(Shared::new(transaction)),
        waiting: RefCell::new(waiting),
    })
}

/// A promise of work on a thread of libuv, or of a wait on another thread.
type Ended<'env> = Either<AsyncTask<Work<()>>, Object<'env>>;

impl Transaction {
    /// A promise for the outcome of `work`.
    fn call<T: Answer>(
        &self,
        work: impl Fn(&mut TransactionAndCursors) -> windrow::Result<T> + Send + 'static,
    ) -> Result<AsyncTask<Work<T>>> {
        let lease = self.owner.lease_or_throw()?;
        let shared = Arc::clone(&self.shared);
        Ok(promise(move || {
            // It ends with the promise.
            let _held = &lease;
            shared.with(&work)
        }))
    }

    /// A promise for the end of `work`, which may wait for another transaction.
    fn wait<'env>(
        &self,
        env: &'env Env,
        work: impl Fn(&mut TransactionAndCursors) -> windrow::Result<()> + Send + 'static,
    ) -> Result<Ended<'env>> {
        let waiting = self.waiting.borrow();
        let Some(waiting) = &*waiting else {
            return self.call(work).map(Either::A);
        };
        let lease = self.owner.lease_or_throw()?;
        let shared = Arc::clone(&self.shared);
        let waited = waiting.promise(env, move || {
            let outcome = shared.with(work);
            drop(lease);
            outcome
        });
        waited
            .map(Either::B)
            .map_err(|error| Failure::Panic(error.reason.clone()).thrown())
    }
}

#[napi]
impl Transaction {
    /// Locks the packed keys, in order, or has the commit fail if one of them has changed.
    #[napi]
    pub fn lock<'env>(
        &self,
        env: &'env Env,
        database: &Database,
        keys: &[u8],
    ) -> Result<Ended<'env>> {
        let (owner, keys) = (Arc::clone(database.owner()), keys.to_vec());
        self.wait(env, move |transaction| {
            let mut keys = Reader::new(&keys);
            while let Some(key) = keys.key()? {
                let keyspace = keyspace(owner.entries(), key)?;
                transaction.with(|it| it.get_for_update(keyspace, key))?;
            }
            Ok(())
        })
    }

    /// The value of `key`, as an array of bytes or as text.
    #[napi]
    pub fn get(
        &self,
        database: &Database,
        key: Input<'_>,
        as_bytes: bool,
    ) -> Result<AsyncTask<Work<Value>>> {
        let (owner, key) = (Arc::clone(database.owner()), bytes(key));
        self.call(move |transaction| {
            let keyspace = keyspace(owner.entries(), &key)?;
            let found = transaction.with(|it| it.get(keyspace, &key))?;
            Ok(Value::of(found, as_bytes))
        })
    }

    /// The values of packed keys.
    #[napi]
    pub fn get_many(&self, database: &Database, keys: &[u8]) -> Result<AsyncTask<Work<Packed>>> {
        let (owner, keys) = (Arc::clone(database.owner()), keys.to_vec());
        self.call(move |transaction| {
            let (mut keys, mut values) = (Reader::new(&keys), Values::default());
            while let Some(key) = keys.key()? {
                let keyspace = keyspace(owner.entries(), key)?;
                let found = transaction.with(|it| it.get(keyspace, key))?;
                values.push(found.as_deref())?;
            }
            Ok(Packed(values.into_bytes()))
        })
    }

    /// Makes packed writes to the keyspaces of these databases.
    #[napi]
    pub fn write<'env>(
        &self,
        env: &'env Env,
        databases: Vec<ClassInstance<'_, Database>>,
        writes: &[u8],
    ) -> Result<Ended<'env>> {
        let owners: Vec<_> = databases.iter().map(|it| Arc::clone(it.owner())).collect();
        let writes = writes.to_vec();
        self.wait(env, move |transaction| {
            transaction.with(|mut it| write_all(&mut it, &writes, &owners))
        })
    }

    /// Removes all keys in the range.
    #[napi]
    pub fn clear(&self, database: &Database, range: JsRange<'_>) -> Result<AsyncTask<Work<()>>> {
        let (owner, range) = (Arc::clone(database.owner()), Range::from(range));
        self.call(move |transaction| {
            let keyspace = owner.entries().keyspace();
            transaction.with(|it| it.delete_range::<&[u8]>(keyspace, range.bounds()))
        })
    }

    /// An iterator over the entries in the range.
    #[napi]
    pub fn iterator(&self, database: &Database, range: JsRange<'_>, form: Form) -> EntryIterator {
        let (keyspace, shared) = (Arc::clone(database.owner()), Arc::clone(&self.shared));
        EntryIterator::of_transaction(keyspace, shared, Range::from(range), form)
    }

    /// Marks the present state of writes and locks.
    #[napi]
    pub fn savepoint(&self) -> Result<AsyncTask<Work<Savepoint>>> {
        self.call(|transaction| Ok(Savepoint(transaction.with(windrow::Transaction::savepoint))))
    }

    /// Discards what was written and locked since the savepoint.
    #[napi]
    pub fn roll_back_to(&self, savepoint: &Savepoint) -> Result<AsyncTask<Work<()>>> {
        let savepoint = savepoint.0;
        self.call(move |transaction| transaction.with(|it| it.roll_back_to(savepoint)))
    }

    /// Commits the transaction, which ends in any case.
    #[napi]
    pub fn commit(&self, sync: Option<bool>) -> Result<AsyncTask<Work<()>>> {
        drop(self.waiting.take());
        let lease = self.owner.lease_or_throw()?;
        let durability = self.owner.durability(sync);
        let shared = Arc::clone(&self.shared);
        Ok(promise(move || {
            let _held = &lease;
            let transaction = shared.take();
            transaction.ok_or_else(ended)?.commit(durability)
        }))
    }

    /// Discards the writes. Does nothing after the end.
    #[napi]
    pub fn roll_back(&self) -> AsyncTask<Work<()>> {
        drop(self.waiting.take());
        let shared = Arc::clone(&self.shared);
        promise(move || {
            drop(shared.take());
            Ok(())
        })
    }
}

/// A state of the writes and locks of a transaction.
#[napi]
pub(crate) struct Savepoint(windrow::Savepoint);

impl Answer for Savepoint {
    type Value<'env> = Self;

    fn value(self, _env: &Env) -> napi::Result<Self> {
        Ok(self)
    }
}
