//! Bulk loads. A thread of its own runs the load, and takes entries from the caller's iterator in chunks through a channel. So
//! the iterator, which may do anything, runs outside of the engine, and a fork in it harms nothing.
//!
//! Concurrency: the caller and one thread. The caller does not go on before the end of the thread, but in the child of a
//! fork, which does not have it.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use pyo3::prelude::*;
use windrow::{Error, ErrorKind, Result};
use windrow_ffi::catch;

use crate::buffers::Input;
use crate::conversions::pairs;
use crate::loading::while_loading;
use crate::owner::{Failure, forget};
use crate::view::View;

/// A chunk has no more entries after this many bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// Keys and values.
type Chunk = Vec<(Vec<u8>, Vec<u8>)>;

/// Loads the pairs of `entries`, sorted before with so many bytes of memory if `sort_bytes` says so. Returns their number.
pub(crate) fn load(
    view: &View,
    py: Python<'_>,
    entries: &Bound<'_, PyAny>,
    sort_bytes: Option<usize>,
) -> PyResult<u64> {
    let keyspace = view.keyspace(py)?.clone();
    let owner = Arc::clone(view.owner(py)?);
    let (sender, receiver) = sync_channel::<Result<Chunk>>(1);
    let run = move || {
        let entries = receiver.into_iter().flat_map(|chunk| {
            let (entries, error) = match chunk {
                Ok(entries) => (entries, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            entries.into_iter().map(Ok).chain(error)
        });
        catch(|| match sort_bytes {
            Some(bytes) => keyspace.try_bulk_load_unsorted(entries, bytes, |_| {}),
            None => keyspace.try_bulk_load(entries),
        })
    };
    let thread = thread::Builder::new()
        .name("windrow-load".to_owned())
        .spawn(run)?;
    let fed = while_loading(&*owner, || feed(view, py, entries, &sender));
    if owner.is_forked() {
        forget((sender, thread, owner));
        return fed.map(|()| 0);
    }
    let outcome = py.detach(|| {
        if fed.is_err() {
            let message = "the source of the entries has failed";
            // The load may have ended before.
            drop(sender.send(Err(Error::new(ErrorKind::InvalidArgument, message))));
        }
        drop(sender);
        thread.join()
    });
    fed?;
    match outcome {
        Ok(Ok(loaded)) => loaded.map_err(|error| Failure::Error(error).exception(py)),
        Ok(Err(panic)) => Err(Failure::Panic(panic).exception(py)),
        Err(_) => Err(Failure::Panic("the load has ended".to_owned()).exception(py)),
    }
}

/// Passes the entries on, until their end or that of the load.
fn feed(
    view: &View,
    py: Python<'_>,
    entries: &Bound<'_, PyAny>,
    sender: &SyncSender<Result<Chunk>>,
) -> PyResult<()> {
    let (mut chunk, mut bytes) = (Chunk::new(), 0);
    for pair in pairs(entries)?.try_iter()? {
        let (key, value): (Input<'_>, Input<'_>) = pair?.extract()?;
        let (key, value) = (view.written_key(py, key.as_slice())?, value.as_slice());
        bytes += key.len() + value.len();
        chunk.push((key.into_owned(), value.to_vec()));
        if bytes >= CHUNK_BYTES {
            if !send(view, py, mem::take(&mut chunk), sender)? {
                return Ok(());
            }
            bytes = 0;
        }
    }
    send(view, py, chunk, sender)?;
    Ok(())
}

/// Passes a chunk on. Returns whether the load goes on.
fn send(
    view: &View,
    py: Python<'_>,
    chunk: Chunk,
    sender: &SyncSender<Result<Chunk>>,
) -> PyResult<bool> {
    // The iterator, or another thread, may have closed the database or forked the process.
    view.owner(py)?;
    Ok(py.detach(|| sender.send(Ok(chunk))).is_ok())
}
