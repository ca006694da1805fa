//! The change feed, and the consumers whose places survive.
//!
//! A read never waits. What waits for a commit has a thread of its own, and none of libuv: it keeps the change that it has
//! found for the next read. It looks at intervals whether it is to stop.
//!
//! Concurrency: a lock for each feed. The class in JavaScript makes one call after the other, so nobody waits for the lock.

#![expect(
    clippy::disallowed_methods,
    reason = "a wait takes the time from the system"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use napi::bindgen_prelude::{AsyncTask, BufferSlice, Object};
use napi::{Env, JsDeferred};
use napi_derive::napi;
use windrow::{BatchWrite, Change, Error, ErrorKind};
use windrow_ffi::leveldb;

use crate::answers::buffer;
use crate::errors::{Failure, Result};
use crate::owner::{Lease, Owner};
use crate::packed::{ChangeWrite, ChangeWrites};
use crate::work::{Answer, Work, promise, run};

/// The longest step of a wait, after which it may be stopped.
const STEP: Duration = Duration::from_millis(50);

/// The changes of a database.
#[napi]
pub(crate) struct Changes(Arc<Feed>);

struct Feed {
    owner: Arc<Owner>,
    state: Mutex<State>,
    /// Whether a wait is to end.
    is_stopped: AtomicBool,
}

struct State {
    /// `None` after the close.
    changes: Option<windrow::Changes>,
    /// What a wait has found.
    found: Option<windrow::Result<Change>>,
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next change, if it is there already.
    fn next(&self) -> windrow::Result<Option<Change>> {
        let mut state = self.state();
        if let Some(found) = state.found.take() {
            return found.map(Some);
        }
        let closed = || Error::new(ErrorKind::Closed, "the changes have been closed");
        state
            .changes
            .as_mut()
            .ok_or_else(closed)?
            .next(Duration::ZERO)
    }

    /// Waits until there is a change or an error, until the end of the time, or until it is stopped.
    fn wait(&self, until: Option<Instant>) {
        while !self.is_stopped.load(Ordering::Acquire) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let mut state = self.state();
            let Some(changes) = &mut state.changes else {
                return;
            };
            let found = run(|| changes.next(left.map_or(STEP, |left| left.min(STEP))));
            state.found = match found {
                Ok(None) if left.is_some_and(|left| left.is_zero()) => return,
                Ok(None) => continue,
                Ok(Some(change)) => Some(Ok(change)),
                Err(Failure::Error(error)) => Some(Err(error)),
                // The next read will meet it, too.
                Err(Failure::Panic(_)) => None,
            };
            return;
        }
    }
}

#[napi]
impl Changes {
    /// The next change, if it is there already.
    #[napi]
    pub fn next(&self) -> Result<AsyncTask<Work<Option<Next>>>> {
        let lease = self.0.owner.lease_or_throw()?;
        let feed = Arc::clone(&self.0);
        Ok(promise(move || {
            // The database stays open for the read.
            let _lease = &lease;
            feed.next()?.map(Next::new).transpose()
        }))
    }

    /// Waits for a change: for so many milliseconds, or without an end. The promise has no value.
    #[napi]
    pub fn wait<'env>(&self, env: &'env Env, milliseconds: Option<f64>) -> Result<Object<'env>> {
        let wait = || -> napi::Result<Object<'env>> {
            let until = milliseconds.and_then(|milliseconds| {
                let time = Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).ok()?;
                Instant::now().checked_add(time)
            });
            let feed = Arc::clone(&self.0);
            feed.is_stopped.store(false, Ordering::Release);
            // A promise without a thread would never settle, so the thread is first.
            let (give, take) = channel();
            let wait = move || {
                feed.wait(until);
                if let Ok(deferred) = take.recv() {
                    let deferred: JsDeferred<_, _> = deferred;
                    deferred.resolve(|_env| Ok(()));
                }
            };
            let name = "windrow-changes".to_owned();
            thread::Builder::new().name(name).spawn(wait)?;
            let (deferred, promise) = env.create_deferred()?;
            drop(give.send(deferred));
            Ok(promise)
        };
        wait().map_err(|error| napi::Error::new("LEVEL_IO_ERROR", error.reason.clone()))
    }

    /// Ends a wait soon.
    #[napi]
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Release);
    }

    /// Frees what the feed has.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        self.stop();
        let feed = Arc::clone(&self.0);
        promise(move || {
            let mut state = feed.state();
            (state.changes, state.found) = (None, None);
            Ok(())
        })
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What becomes [`Changes`] on the thread of JavaScript.
pub(crate) struct NewChanges(Arc<Owner>, windrow::Changes);

impl Answer for NewChanges {
    type Value<'env> = Changes;

    fn value(self, _env: &Env) -> napi::Result<Changes> {
        Ok(Changes(Arc::new(Feed {
            owner: self.0,
            state: Mutex::new(State {
                changes: Some(self.1),
                found: None,
            }),
            is_stopped: AtomicBool::new(false),
        })))
    }
}

/// A promise for the feed that `open` opens.
pub(crate) fn open_changes(
    owner: &Arc<Owner>,
    open: impl Fn(&Lease) -> windrow::Result<windrow::Changes> + Send + 'static,
) -> Result<AsyncTask<Work<NewChanges>>> {
    let lease = owner.lease_or_throw()?;
    let owner = Arc::clone(owner);
    Ok(promise(move || {
        Ok(NewChanges(Arc::clone(&owner), open(&lease)?))
    }))
}

/// A change, for JavaScript.
#[napi(object, object_from_js = false)]
pub(crate) struct JsChange<'env> {
    /// What the change is.
    pub kind: &'static str,
    pub sequence: i64,
    pub first_sequence: i64,
    /// What the change is about; of a batch, those of its writes.
    pub keyspaces: Vec<String>,
    /// The writes of a batch, packed.
    pub writes: BufferSlice<'env>,
}

/// What becomes a [`JsChange`] on the thread of JavaScript.
pub(crate) struct Next {
    kind: &'static str,
    sequence: u64,
    first_sequence: u64,
    keyspaces: Vec<String>,
    writes: Vec<u8>,
}

impl Next {
    fn new(change: Change) -> windrow::Result<Self> {
        let sequence = change.sequence();
        let (mut first_sequence, mut writes) = (sequence, Vec::new());
        let (kind, keyspaces) = match change {
            Change::Batch(batch) => {
                first_sequence = batch.first();
                let (keyspaces, packed) = pack(&batch)?;
                writes = packed;
                ("batch", keyspaces)
            }
            Change::KeyspaceCreated { name, .. } => ("keyspaceCreated", vec![name]),
            Change::KeyspaceDropped { name, .. } => ("keyspaceDropped", vec![name]),
            Change::KeyspaceRenamed { from, to, .. } => ("keyspaceRenamed", vec![from, to]),
            Change::TablesAdded { keyspaces, .. } => ("tablesAdded", keyspaces),
            _ => return Err(unknown()),
        };
        Ok(Self {
            kind,
            sequence,
            first_sequence,
            keyspaces,
            writes,
        })
    }
}

impl Answer for Option<Next> {
    type Value<'env> = Option<JsChange<'env>>;

    fn value(self, env: &Env) -> napi::Result<Option<JsChange<'_>>> {
        let Some(next) = self else {
            return Ok(None);
        };
        Ok(Some(JsChange {
            kind: next.kind,
            sequence: next.sequence.cast_signed(),
            first_sequence: next.first_sequence.cast_signed(),
            keyspaces: next.keyspaces,
            writes: buffer(env, next.writes)?,
        }))
    }
}

/// The writes of a batch, and the names of their keyspaces. The empty key is in the keyspace of the others.
fn pack(batch: &windrow::ChangeBatch) -> windrow::Result<(Vec<String>, Vec<u8>)> {
    let (mut names, mut writes) = (Vec::<String>::new(), ChangeWrites::default());
    for entry in batch {
        let (kind, value, expires_at) = match entry.write {
            BatchWrite::Insert(value) => (0, Some(value), None),
            BatchWrite::InsertUntil(value, time) => (0, Some(value), Some(time)),
            BatchWrite::Remove => (1, None, None),
            BatchWrite::Merge(operand) => (2, Some(operand), None),
            BatchWrite::DeleteRange(end) => (3, end, None),
            _ => return Err(unknown()),
        };
        let (keyspace, key) = leveldb::logical(&entry.keyspace, entry.key);
        let known = names.iter().position(|name| name == keyspace);
        let keyspace = known.unwrap_or_else(|| {
            names.push(keyspace.to_owned());
            names.len() - 1
        });
        let expires_at = expires_at.map(|time| time.duration_since(UNIX_EPOCH).unwrap_or_default());
        writes.push(&ChangeWrite {
            kind,
            keyspace,
            key,
            value,
            expires_at,
        })?;
    }
    Ok((names, writes.into_bytes()))
}

fn unknown() -> Error {
    let message = "the change is newer than this package";
    Error::new(ErrorKind::Unsupported, message)
}

/// A named consumer of changes.
#[napi]
pub(crate) struct Consumer {
    owner: Arc<Owner>,
    consumer: windrow::Consumer,
}

/// What becomes a [`Consumer`] on the thread of JavaScript.
pub(crate) struct NewConsumer(pub(crate) Arc<Owner>, pub(crate) windrow::Consumer);

impl Answer for NewConsumer {
    type Value<'env> = Consumer;

    fn value(self, _env: &Env) -> napi::Result<Consumer> {
        Ok(Consumer {
            owner: self.0,
            consumer: self.1,
        })
    }
}

impl Consumer {
    fn call<T: Answer>(
        &self,
        work: impl Fn(&windrow::Consumer) -> windrow::Result<T> + Send + 'static,
    ) -> Result<AsyncTask<Work<T>>> {
        let lease = self.owner.lease_or_throw()?;
        let consumer = self.consumer.clone();
        Ok(promise(move || {
            // The database stays open for the call.
            let _lease = &lease;
            work(&consumer)
        }))
    }
}

#[napi]
impl Consumer {
    /// The changes behind its place.
    #[napi]
    pub fn changes(&self) -> Result<AsyncTask<Work<NewChanges>>> {
        let consumer = self.consumer.clone();
        open_changes(&self.owner, move |_| consumer.changes())
    }

    /// Its place.
    #[napi]
    pub fn acknowledged(&self) -> Result<AsyncTask<Work<i64>>> {
        self.call(|consumer| Ok(consumer.acknowledged()?.cast_signed()))
    }

    /// Notes that the consumer has done with every change up to here.
    #[napi]
    pub fn acknowledge(&self, sequence: i64) -> Result<AsyncTask<Work<()>>> {
        self.call(move |consumer| consumer.acknowledge(sequence.cast_unsigned()))
    }
}

/// What a consumer holds.
#[napi(object, object_from_js = false)]
pub(crate) struct ConsumerStats {
    pub name: String,
    pub acknowledged: i64,
    pub is_behind: bool,
    pub held_bytes: i64,
}

impl From<windrow::ConsumerStats> for ConsumerStats {
    fn from(stats: windrow::ConsumerStats) -> Self {
        Self {
            name: stats.name,
            acknowledged: stats.acknowledged.cast_signed(),
            is_behind: stats.is_behind,
            held_bytes: stats.held_bytes.cast_signed(),
        }
    }
}

impl Answer for Vec<ConsumerStats> {
    type Value<'env> = Self;

    fn value(self, _env: &Env) -> napi::Result<Self> {
        Ok(self)
    }
}
