//! An open database.
//!
//! Reads see the state at their call, so each takes a snapshot before it goes to another thread.
//!
//! Concurrency: the lease of each call (`owner`).

use std::path::Path;
use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{AsyncTask, ClassInstance, Object};
use napi_derive::napi;
use windrow::{Batch, Db, Durability, ErrorKind};
use windrow_ffi::leveldb::{self, EMPTY_KEY_KEYSPACE, Entries, KEYSPACE};

use crate::answers::{Expires, Packed, Value};
use crate::backups::Backups;
use crate::border::{Found, made};
use crate::calls::functions;
use crate::changes::{ConsumerStats, NewChanges, NewConsumer, open_changes};
use crate::errors::{Failure, Result};
use crate::input::{Input, JsRange, Range, bytes};
use crate::iterator::{EntryIterator, Form};
use crate::options::{OpenOptions, Settings, open_keyspace};
use crate::owner::{Lease, Owner};
use crate::packed::{Reader, Values};
use crate::registry::Opened;
use crate::snapshot::Snapshot;
use crate::work::{Answer, Work, promise, run};
use crate::writes::write_all;

/// No more keys are removed by one batch after this many bytes.
const CLEAR_BYTES: usize = 16 << 10;

/// An open database.
#[napi]
pub(crate) struct Database(Arc<Owner>);

impl Answer for Arc<Owner> {
    type Value<'env> = Database;

    fn value(self, _env: &Env) -> napi::Result<Database> {
        Ok(Database(self))
    }
}

/// Checks that a keyspace is none of those in which the database has its own entries.
fn check_name(name: &str) -> windrow::Result<()> {
    if name == KEYSPACE || name == EMPTY_KEY_KEYSPACE {
        let message = format!("the keyspace \"{name}\" is that of the database itself");
        return Err(windrow::Error::invalid_argument(message));
    }
    Ok(())
}

/// Opens the database in the folder `path`.
#[napi]
pub(crate) fn open(path: String, options: OpenOptions) -> AsyncTask<Work<Arc<Owner>>> {
    promise(move || {
        let path = Path::new(&path);
        let windrow = options.to_windrow()?;
        let (durability, error_if_exists) = (windrow.durability, windrow.error_if_exists);
        let open = || {
            let db = Db::open(path, windrow).map_err(|error| match error.kind() {
                // The words of LevelDB, by which programs know it.
                ErrorKind::NotFound => error.context("the database does not exist"),
                _ => error,
            })?;
            options.open_entries(db)
        };
        let opened = if options.multithreading {
            Opened::shared(path, error_if_exists, open)?
        } else {
            Opened::alone(open()?)
        };
        Ok(Owner::new(opened, durability))
    })
}

/// Removes the database in the folder `path`, and the folder if nothing else is in it.
#[napi]
pub(crate) fn destroy(path: String) -> AsyncTask<Work<()>> {
    promise(move || leveldb::destroy(Path::new(&path)))
}

impl Database {
    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.0
    }

    fn lease(&self) -> Result<Lease> {
        self.0.lease_or_throw()
    }

    /// A promise for the outcome of `work`.
    fn call<T: Answer>(
        &self,
        work: impl Fn(&Lease) -> windrow::Result<T> + Send + 'static,
    ) -> Result<AsyncTask<Work<T>>> {
        let lease = self.lease()?;
        Ok(promise(move || work(&lease)))
    }

    /// A promise for what `read` finds in `snapshot`, or in the present state.
    fn read<T: Answer>(
        &self,
        snapshot: Option<&Snapshot>,
        read: impl Fn(&Lease, &windrow::Snapshot) -> windrow::Result<T> + Send + 'static,
    ) -> Result<AsyncTask<Work<T>>> {
        let lease = self.lease()?;
        let snapshot = match snapshot {
            Some(snapshot) => snapshot
                .get()
                .map_err(|error| Failure::from(error).thrown())?,
            None => lease.db().snapshot(),
        };
        Ok(promise(move || read(&lease, &snapshot)))
    }

    /// A promise for the end of a write.
    fn write(
        &self,
        sync: Option<bool>,
        write: impl Fn(&Lease, Durability) -> windrow::Result<()> + Send + 'static,
    ) -> Result<AsyncTask<Work<()>>> {
        let durability = self.0.durability(sync);
        self.call(move |lease| write(lease, durability))
    }
}

#[napi]
impl Database {
    /// The calls that are made most.
    #[napi]
    pub fn functions<'env>(&self, env: &'env Env) -> napi::Result<Object<'env>> {
        functions(env, &self.0)
    }

    /// The value of `key` in `snapshot`, as an array of bytes or as text.
    #[napi]
    pub fn get_at(
        &self,
        key: Input<'_>,
        as_bytes: bool,
        snapshot: &Snapshot,
    ) -> Result<AsyncTask<Work<Value>>> {
        let key = bytes(key);
        self.read(Some(snapshot), move |entries, snapshot| {
            let found = entries.get(&key, Some(snapshot))?;
            Ok(Value::new(found, as_bytes))
        })
    }

    /// As `getAt`, on the thread of JavaScript.
    #[napi]
    pub fn get_sync_at(
        &self,
        env: Env,
        key: Input<'_>,
        as_bytes: bool,
        snapshot: &Snapshot,
    ) -> Result<Found> {
        let lease = self.lease()?;
        let key = bytes(key);
        let found = run(|| lease.get(&key, Some(&snapshot.get()?)));
        let Some(value) = found.map_err(Failure::thrown)? else {
            return Ok(Found::Absent);
        };
        let value = made(&env, &value, as_bytes);
        value
            .map(Found::Value)
            .map_err(|error| Failure::Panic(error.reason.clone()).thrown())
    }

    /// The values of packed keys.
    #[napi]
    pub fn get_many(
        &self,
        keys: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> Result<AsyncTask<Work<Packed>>> {
        let keys = keys.to_vec();
        self.read(snapshot, move |entries, snapshot| {
            let (mut keys, mut values) = (Reader::new(&keys), Values::default());
            while let Some(key) = keys.key()? {
                values.push(entries.get(key, Some(snapshot))?.as_deref())?;
            }
            Ok(Packed(values.into_bytes()))
        })
    }

    /// Whether `key` has a value.
    #[napi]
    pub fn has(
        &self,
        key: Input<'_>,
        snapshot: Option<&Snapshot>,
    ) -> Result<AsyncTask<Work<bool>>> {
        let key = bytes(key);
        self.read(snapshot, move |entries, snapshot| {
            entries.contains_key(&key, Some(snapshot))
        })
    }

    /// A byte for each of the packed keys: whether it has a value.
    #[napi]
    pub fn has_many(
        &self,
        keys: &[u8],
        snapshot: Option<&Snapshot>,
    ) -> Result<AsyncTask<Work<Packed>>> {
        let keys = keys.to_vec();
        self.read(snapshot, move |entries, snapshot| {
            let (mut keys, mut found) = (Reader::new(&keys), Vec::new());
            while let Some(key) = keys.key()? {
                found.push(u8::from(entries.contains_key(key, Some(snapshot))?));
            }
            Ok(Packed(found))
        })
    }

    /// Makes the packed writes to the keyspaces of these databases, as one.
    #[napi]
    pub fn batch(
        &self,
        databases: Vec<ClassInstance<'_, Database>>,
        writes: &[u8],
        sync: Option<bool>,
    ) -> Result<AsyncTask<Work<()>>> {
        let owners: Vec<_> = databases.iter().map(|it| Arc::clone(it.owner())).collect();
        let writes = writes.to_vec();
        self.write(sync, move |entries, durability| {
            let mut batch = Batch::new();
            write_all(&mut batch, &writes, &owners)?;
            entries.db().write_with(&batch, durability)
        })
    }

    /// Removes all keys in the range, as one write.
    #[napi]
    pub fn clear(&self, range: JsRange<'_>, sync: Option<bool>) -> Result<AsyncTask<Work<()>>> {
        let range = Range::from(range);
        self.write(sync, move |entries, durability| {
            entries.delete_range(range.bounds(), durability)
        })
    }

    /// Removes the first `limit` keys in the range, or the last ones, that are in `snapshot` or in the present state.
    #[napi]
    pub fn clear_some(
        &self,
        range: JsRange<'_>,
        reverse: bool,
        limit: Option<u32>,
        snapshot: Option<&Snapshot>,
        sync: Option<bool>,
    ) -> Result<AsyncTask<Work<()>>> {
        let range = Range::from(range);
        let durability = self.0.durability(sync);
        self.read(snapshot, move |entries, snapshot| {
            let mut cursor = entries.cursor(range.bounds(), Some(snapshot))?;
            let mut left = limit.unwrap_or(u32::MAX);
            let mut found = if reverse {
                cursor.seek_to_last()?
            } else {
                cursor.seek_to_first()?
            };
            while found && left > 0 {
                let (mut batch, mut bytes) = (Batch::new(), 0);
                while found && left > 0 && bytes < CLEAR_BYTES {
                    let key = cursor.key().unwrap_or_default();
                    entries.batch_remove(&mut batch, key)?;
                    bytes += key.len();
                    if limit.is_some() {
                        left -= 1;
                    }
                    found = if reverse {
                        cursor.prev()?
                    } else {
                        cursor.next()?
                    };
                }
                entries.db().write_with(&batch, durability)?;
            }
            Ok(())
        })
    }

    /// An iterator over the entries in the range, in `snapshot` or in the present state. If it cannot be made, for example
    /// because the snapshot has been closed, its reads have the error: abstract-level expects it there.
    #[napi]
    pub fn iterator(
        &self,
        range: JsRange<'_>,
        form: Form,
        snapshot: Option<&Snapshot>,
    ) -> Result<EntryIterator> {
        let lease = self.lease()?;
        let range = Range::from(range);
        let cursor = run(|| {
            let snapshot = snapshot.map(Snapshot::get).transpose()?;
            lease.cursor(range.bounds(), snapshot.as_ref())
        });
        let cursor = match cursor {
            Ok(cursor) => Ok(cursor),
            Err(Failure::Error(error)) => Err(error),
            Err(panic) => return Err(panic.thrown()),
        };
        Ok(EntryIterator::new(Arc::clone(&self.0), cursor, range, form))
    }

    /// The present state.
    #[napi]
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::new(self.lease()?.db().snapshot()))
    }

    /// About how many bytes of files the keys from `start` to before `end` have.
    #[napi]
    pub fn approximate_size(
        &self,
        start: Input<'_>,
        end: Input<'_>,
    ) -> Result<AsyncTask<Work<f64>>> {
        let (start, end) = (bytes(start), bytes(end));
        self.call(move |entries| {
            #[expect(clippy::cast_precision_loss, reason = "the size is an approximation")]
            let bytes = entries.keyspace().approximate_size(&start[..]..&end[..])? as f64;
            Ok(bytes)
        })
    }

    /// Compacts the keys from `start` to `end`.
    #[napi]
    pub fn compact_range(&self, start: Input<'_>, end: Input<'_>) -> Result<AsyncTask<Work<()>>> {
        let (start, end) = (bytes(start), bytes(end));
        self.call(move |entries| entries.keyspace().compact_range(&start[..]..=&end[..]))
    }

    /// Makes all writes so far durable.
    #[napi]
    pub fn persist(&self) -> Result<AsyncTask<Work<()>>> {
        self.call(|entries| entries.db().persist())
    }

    /// Writes all memtables to tables.
    #[napi]
    pub fn flush(&self) -> Result<AsyncTask<Work<()>>> {
        self.call(|entries| entries.db().flush())
    }

    /// Makes a copy of the database in the folder `path`.
    #[napi]
    pub fn checkpoint(&self, path: String) -> Result<AsyncTask<Work<()>>> {
        self.call(move |entries| entries.db().checkpoint(&path))
    }

    /// Makes a backup. Gives its number.
    #[napi]
    pub fn backup(&self, backups: &Backups) -> Result<AsyncTask<Work<i64>>> {
        let make = backups.maker();
        self.call(move |entries| make(entries.db()))
    }

    /// The changes from a sequence number on.
    #[napi]
    pub fn changes(&self, from: i64) -> Result<AsyncTask<Work<NewChanges>>> {
        open_changes(&self.0, move |entries| {
            entries.db().changes(from.cast_unsigned())
        })
    }

    /// The consumer `name`, which is created if it is missing.
    #[napi]
    pub fn consumer(&self, name: String) -> Result<AsyncTask<Work<NewConsumer>>> {
        let owner = Arc::clone(&self.0);
        self.call(move |entries| {
            let consumer = entries.db().consumer(&name)?;
            Ok(NewConsumer(Arc::clone(&owner), consumer))
        })
    }

    /// All consumers, and what they hold.
    #[napi]
    pub fn consumers(&self) -> Result<AsyncTask<Work<Vec<ConsumerStats>>>> {
        self.call(|entries| {
            let consumers = entries.db().consumers();
            Ok(consumers.into_iter().map(ConsumerStats::from).collect())
        })
    }

    /// Forgets the consumer `name`.
    #[napi]
    pub fn remove_consumer(&self, name: String) -> Result<AsyncTask<Work<()>>> {
        self.call(move |entries| entries.db().remove_consumer(&name))
    }

    /// Checks every block and every value. Gives a sentence for each damage.
    #[napi]
    pub fn verify(&self) -> Result<AsyncTask<Work<Vec<String>>>> {
        self.call(|entries| {
            let report = entries.db().verify()?;
            Ok(report.damage.iter().map(ToString::to_string).collect())
        })
    }

    /// Statistics as JSON.
    #[napi]
    pub fn stats(&self) -> Result<AsyncTask<Work<String>>> {
        self.call(|entries| {
            let stats = serde_json::to_string(&entries.db().stats());
            stats.map_err(|error| windrow::Error::invalid_argument(error.to_string()))
        })
    }

    /// When `key` expires, in milliseconds since 1970: `null` for never, and nothing if there is no value.
    #[napi]
    pub fn expires_at(&self, key: Input<'_>) -> Result<AsyncTask<Work<Expires>>> {
        let key = bytes(key);
        self.call(move |entries| Ok(Expires(entries.expires_at(&key)?)))
    }

    /// Opens the keyspace `name`. A missing one is created.
    #[napi]
    pub fn keyspace(&self, name: String, options: Settings) -> Result<AsyncTask<Work<Arc<Owner>>>> {
        let owner = Arc::clone(&self.0);
        self.call(move |entries| {
            check_name(&name)?;
            let keyspace = open_keyspace(entries.db(), &name, &options)?;
            let entries = Entries::without_empty_key(entries.db().clone(), keyspace);
            Ok(owner.of_keyspace(entries))
        })
    }

    /// The names of all keyspaces but those of the database itself.
    #[napi]
    pub fn keyspace_names(&self) -> Result<AsyncTask<Work<Vec<String>>>> {
        self.call(|entries| {
            let names = entries.db().keyspace_names().into_iter();
            Ok(names.filter(|name| check_name(name).is_ok()).collect())
        })
    }

    /// Drops the keyspace `name` with all its entries.
    #[napi]
    pub fn drop_keyspace(&self, name: String) -> Result<AsyncTask<Work<()>>> {
        self.call(move |entries| {
            check_name(&name)?;
            entries.db().drop_keyspace(&name)
        })
    }

    /// Closes the database, after the calls that run.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let owner = Arc::clone(&self.0);
        promise(move || owner.close())
    }
}
