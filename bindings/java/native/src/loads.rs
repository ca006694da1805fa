//! Bulk loads. A thread of its own runs the load, and takes chunks of entries that a thread of Java hands over. So the source
//! of the entries, which may do anything, runs outside of the engine and of this library.
//!
//! Concurrency: the caller and one thread. The drop of a load that has not ended makes it fail, and waits for it.

use std::ops::Range;
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use jni::objects::JByteArray;
use jni::sys::jlong;
use windrow::{Error, ErrorKind, Keyspace, LoadEntry, Result};
use windrow_ffi::catch;

use crate::arguments::Bytes;
use crate::errors::{Failure, Outcome};
use crate::handles::{Handle, give, method};
use crate::packed::Reader;

/// Keys and values, each behind its length; or why there are no more.
type Chunk = Result<Vec<u8>>;

/// What a load returns, if it does not panic.
type Loaded = std::result::Result<Result<u64>, String>;

/// A bulk load that runs.
pub(crate) struct Load(Mutex<State>);

struct State {
    /// `None` when the source has ended.
    chunks: Option<SyncSender<Chunk>>,
    /// `None` when the load has ended.
    thread: Option<JoinHandle<Loaded>>,
}

/// An entry of a chunk.
struct Entry {
    chunk: Rc<[u8]>,
    key: Range<usize>,
    value: Range<usize>,
}

impl LoadEntry for Entry {
    fn key(&self) -> &[u8] {
        &self.chunk[self.key.clone()]
    }

    fn value(&self) -> &[u8] {
        &self.chunk[self.value.clone()]
    }
}

/// The entries of a chunk, in their order.
fn entries(chunk: Chunk) -> impl Iterator<Item = Result<Entry>> {
    let (chunk, mut failure): (Rc<[u8]>, _) = match chunk {
        Ok(bytes) => (bytes.into(), None),
        Err(error) => (Rc::default(), Some(error)),
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        if let Some(error) = failure.take() {
            return Some(Err(error));
        }
        let mut from = Reader::new(&chunk[at..]);
        if from.is_empty() {
            return None;
        }
        let read = from
            .bytes()
            .map(<[u8]>::len)
            .and_then(|key| Ok((key, from.bytes()?.len())));
        Some(read.map(|(key, value)| {
            let (key, value_start) = (at + 4..at + 4 + key, at + 8 + key);
            at = value_start + value;
            let value = value_start..at;
            Entry {
                chunk: Rc::clone(&chunk),
                key,
                value,
            }
        }))
    })
}

impl Load {
    /// Begins a load of sorted entries, or of others if there is memory for their sort.
    fn begin(keyspace: Keyspace, sort_bytes: Option<usize>) -> Result<Self> {
        let (sender, receiver) = sync_channel(1);
        let run = move || {
            let entries = receiver.into_iter().flat_map(entries);
            catch(|| match sort_bytes {
                Some(bytes) => keyspace.try_bulk_load_unsorted(entries, bytes, |_| {}),
                None => keyspace.try_bulk_load(entries),
            })
        };
        let thread = thread::Builder::new()
            .name("windrow-load".to_owned())
            .spawn(run);
        let thread = thread.map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
        Ok(Self(Mutex::new(State {
            chunks: Some(sender),
            thread: Some(thread),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a chunk over. Returns whether the load goes on.
    fn feed(&self, chunk: Vec<u8>) -> bool {
        let state = self.lock();
        let sent = state.chunks.as_ref().map(|chunks| chunks.send(Ok(chunk)));
        matches!(sent, Some(Ok(())))
    }

    /// Ends the source, and waits for the end of the load.
    fn end(&self) -> Outcome<u64> {
        let thread = {
            let mut state = self.lock();
            drop(state.chunks.take());
            state.thread.take()
        };
        let ended = || Error::new(ErrorKind::Closed, "the bulk load has ended");
        match thread.ok_or_else(ended)?.join() {
            Ok(Ok(loaded)) => Ok(loaded?),
            Ok(Err(panic)) => Err(Failure::Panic(panic)),
            Err(_) => Err(Failure::Panic(
                "the thread of the load has panicked".to_owned(),
            )),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let mut state = self.lock();
        if let (Some(chunks), Some(thread)) = (state.chunks.take(), state.thread.take()) {
            let message = "the source of the entries has failed";
            // The load may have ended before.
            drop(chunks.send(Err(Error::new(ErrorKind::InvalidArgument, message))));
            drop(chunks);
            drop(thread.join());
        }
    }
}

// The memory is -1 for sorted entries.
method!(Java_io_windrow_Native_beginLoad, _env, keyspace: Handle<Keyspace>, sort_bytes: jlong; jlong, {
    Ok(give(Load::begin(Keyspace::clone(&keyspace), usize::try_from(sort_bytes).ok())?))
});

// Whether the load goes on.
method!(Java_io_windrow_Native_feed, env, load: Handle<Load>, chunk: JByteArray<'local>, length: i32; bool, {
    let length = usize::try_from(length).map_err(|_| Error::invalid_argument("the length of the chunk is negative"))?;
    let chunk = Bytes::of_region(env, &chunk, 0, length)?;
    Ok(load.feed(chunk.into_vec()))
});

// The number of entries that were loaded.
method!(Java_io_windrow_Native_endLoad, _env, load: Handle<Load>; jlong, {
    Ok(jlong::try_from(load.end()?).unwrap_or(jlong::MAX))
});
