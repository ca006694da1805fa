//! Iterators, which read many entries at once.
//!
//! Errors: what was read before an error is given first; the next read has the error. A value that cannot be read is
//! passed: its error comes once. After an error of a move every later read has one.
//!
//! Concurrency: one lock. JavaScript reads once at a time, so only a wrong use meets a lock that is taken; that is an error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use windrow::Error;
use windrow_ffi::leveldb::EntryCursor;
use windrow_ffi::moves::Moves;

use crate::answers::Packed;
use crate::errors::{Failure, Result};
use crate::input::{Input, Range, bytes};
use crate::owner::Owner;
use crate::packed::Entries;
use crate::shared::Shared;
use crate::work::{Work, promise};

/// What an iterator gives of each entry, and in which order.
#[derive(Debug, Clone, Copy)]
#[napi(object, object_to_js = false)]
pub(crate) struct Form {
    /// Whether it goes against the order of keys.
    pub reverse: bool,
    /// Whether it gives keys.
    pub keys: bool,
    /// Whether it gives values.
    pub values: bool,
}

/// Where the next entry is.
enum Next {
    /// At the begin of the range.
    Begin,
    /// At this key, or behind it.
    Target(Vec<u8>),
    /// Behind the entry of the cursor.
    Behind,
    /// Nowhere.
    Nowhere,
}

/// Where the entries come from.
enum Source {
    /// A cursor, or why there is none.
    Entries(windrow::Result<Box<EntryCursor>>),
    Transaction(InTransaction),
}

/// A keyspace as a transaction sees it.
struct InTransaction {
    transaction: Arc<Shared>,
    keyspace: Arc<Owner>,
    /// The number of the cursor, which the first read opens: a call may have the transaction before.
    cursor: Option<u64>,
}

impl InTransaction {
    fn read(&mut self, reading: &mut Reading, bound: Bound<'_>) -> windrow::Result<Vec<u8>> {
        self.transaction.with(|transaction| {
            let number = if let Some(number) = self.cursor {
                number
            } else {
                let keyspace = self.keyspace.entries().keyspace();
                let bounds = reading.range.bounds();
                transaction.open(|it| it.range_cursor::<&[u8]>(keyspace, bounds))?
            };
            self.cursor = Some(number);
            let read = transaction.with_cursor(number, |cursor| reading.read(cursor, bound));
            read.unwrap_or_else(|| Err(closed()))
        })
    }
}

impl Drop for InTransaction {
    fn drop(&mut self) {
        if let Some(cursor) = self.cursor {
            self.transaction.close(cursor);
        }
    }
}

struct State {
    source: Source,
    reading: Reading,
}

impl State {
    fn read(&mut self, bound: Bound<'_>) -> windrow::Result<Vec<u8>> {
        let Self { source, reading } = self;
        if let Some(error) = reading.failed.take() {
            return Err(error);
        }
        match source {
            Source::Entries(Ok(cursor)) => reading.read(&mut **cursor, bound),
            Source::Entries(Err(error)) => Err(again(error)),
            Source::Transaction(transaction) => transaction.read(reading, bound),
        }
    }
}

/// How much is read at once.
#[derive(Clone, Copy)]
struct Bound<'a> {
    count: usize,
    /// No entry is read after more bytes.
    bytes: usize,
    is_aborted: &'a AtomicBool,
}

/// What is read of a cursor.
struct Reading {
    range: Range,
    form: Form,
    next: Next,
    /// The error of the next read.
    failed: Option<Error>,
}

impl Reading {
    /// Reads entries, up to the bound.
    fn read(&mut self, cursor: &mut impl Moves, bound: Bound<'_>) -> windrow::Result<Vec<u8>> {
        let mut read = Entries::new();
        while read.count() < bound.count && read.bytes() <= bound.bytes {
            if bound.is_aborted.load(Ordering::Relaxed) {
                break;
            }
            let found = self.step(cursor).and_then(|found| {
                if found {
                    self.push(cursor, &mut read)?;
                }
                Ok(found)
            });
            match found {
                Ok(true) => {}
                Ok(false) => return Ok(read.into_bytes(true)),
                Err(error) if read.count() > 0 => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(read.into_bytes(false))
    }

    fn push(&self, cursor: &impl Moves, read: &mut Entries) -> windrow::Result<()> {
        let key = if self.form.keys { cursor.key() } else { &[] };
        let value = if self.form.values {
            cursor.value()?
        } else {
            &[]
        };
        read.push(key, value);
        Ok(())
    }

    /// Moves to the next entry. Returns whether it exists.
    fn step(&mut self, cursor: &mut impl Moves) -> windrow::Result<bool> {
        // An error of a move leaves the iterator where it has no entry.
        let next = std::mem::replace(&mut self.next, Next::Behind);
        let found = match (next, self.form.reverse) {
            (Next::Begin, false) => cursor.seek_to_first()?,
            (Next::Begin, true) => cursor.seek_to_last()?,
            (Next::Target(key), false) => cursor.seek(&key)?,
            (Next::Target(key), true) => seek_backward(cursor, &key)?,
            (Next::Behind, false) => cursor.next()?,
            (Next::Behind, true) => cursor.prev()?,
            (Next::Nowhere, _) => false,
        };
        if !found {
            self.next = Next::Nowhere;
        }
        Ok(found)
    }
}

/// Moves to the last entry whose key is `key` or less.
fn seek_backward(cursor: &mut impl Moves, key: &[u8]) -> windrow::Result<bool> {
    if !cursor.seek(key)? {
        return cursor.seek_to_last();
    }
    if cursor.key() == key {
        return Ok(true);
    }
    cursor.prev()
}

/// What an iterator and its reads share.
struct Opened {
    owner: Arc<Owner>,
    /// `None` after the close.
    state: Mutex<Option<State>>,
    is_aborted: AtomicBool,
}

/// An iterator over the entries in a range, in one state.
#[napi]
pub(crate) struct EntryIterator(Arc<Opened>);

impl EntryIterator {
    pub(crate) fn new(
        owner: Arc<Owner>,
        cursor: windrow::Result<EntryCursor>,
        range: Range,
        form: Form,
    ) -> Self {
        Self::of(owner, Source::Entries(cursor.map(Box::new)), range, form)
    }

    /// An iterator over what a transaction sees of a keyspace.
    pub(crate) fn of_transaction(
        keyspace: Arc<Owner>,
        transaction: Arc<Shared>,
        range: Range,
        form: Form,
    ) -> Self {
        let source = InTransaction {
            transaction,
            keyspace: Arc::clone(&keyspace),
            cursor: None,
        };
        Self::of(keyspace, Source::Transaction(source), range, form)
    }

    fn of(owner: Arc<Owner>, source: Source, range: Range, form: Form) -> Self {
        let reading = Reading {
            range,
            form,
            next: Next::Begin,
            failed: None,
        };
        Self(Arc::new(Opened {
            owner,
            state: Mutex::new(Some(State { source, reading })),
            is_aborted: AtomicBool::new(false),
        }))
    }

    /// The state, if no read has it.
    fn state(&self) -> Result<MutexGuard<'_, Option<State>>> {
        match self.0.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(napi::Error::new(
                "LEVEL_ITERATOR_BUSY",
                "the iterator reads",
            )),
        }
    }
}

/// The same error once more.
fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.to_string())
}

fn closed() -> Error {
    Error::new(windrow::ErrorKind::Closed, "the iterator has been closed")
}

#[napi]
impl EntryIterator {
    /// Reads up to `count` entries, and none after more than `bytes_max` bytes.
    #[napi]
    pub fn read(&self, count: u32, bytes_max: u32) -> Result<AsyncTask<Work<Packed>>> {
        let lease = self.0.owner.lease_or_throw()?;
        let opened = Arc::clone(&self.0);
        Ok(promise(move || {
            // It ends with the promise.
            let _held = &lease;
            let mut state = opened.state.lock().unwrap_or_else(PoisonError::into_inner);
            let state = state.as_mut().ok_or_else(closed)?;
            let read = state.read(Bound {
                count: count as usize,
                bytes: bytes_max as usize,
                is_aborted: &opened.is_aborted,
            })?;
            Ok(Packed(read))
        }))
    }

    /// Goes to `target`: the next entry is the one with this key, or the first one behind it. A target outside of the
    /// range is behind all entries.
    #[napi]
    pub fn seek(&self, target: Input<'_>) -> Result<()> {
        let target = bytes(target);
        let mut state = self.state()?;
        let state = state
            .as_mut()
            .ok_or_else(|| Failure::from(closed()).thrown())?;
        let reading = &mut state.reading;
        reading.failed = None;
        reading.next = if reading.range.contains(&target) {
            Next::Target(target)
        } else {
            Next::Nowhere
        };
        Ok(())
    }

    /// Ends the present read, and all later ones, without an entry more.
    #[napi]
    pub fn abort(&self) {
        self.0.is_aborted.store(true, Ordering::Relaxed);
    }

    /// Frees what the iterator reads.
    #[napi]
    pub fn close(&self) -> Result<()> {
        drop(self.state()?.take());
        Ok(())
    }
}
