//! Iterators over several keyspaces.
//!
//! Concurrency: a lock for each iterator.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};
use windrow::{MergedCursor, Result};

use crate::errors::raised;
use crate::owner::{Failure, Held, Owner, detached};
use crate::view::Keyspace;

/// The most entries that are read at once.
const AHEAD_MAX: usize = 256;

/// No more entries are read at once after this many bytes.
const AHEAD_BYTES: usize = 64 << 10;

/// The position of the keyspace, the key and the value.
type Entry = (usize, Vec<u8>, Vec<u8>);

struct State {
    /// `None` after a close.
    cursor: Option<Box<MergedCursor>>,
    reverse: bool,
    has_begun: bool,
    /// Entries that were read ahead.
    ahead: VecDeque<Entry>,
    /// What came after them.
    failed: Option<Failure>,
}

impl State {
    /// Reads entries ahead. There are none at the end.
    fn read(&mut self) {
        let mut bytes = 0;
        while self.ahead.len() < AHEAD_MAX && bytes < AHEAD_BYTES {
            match self.step() {
                Ok(Some(entry)) => {
                    bytes += entry.1.len() + entry.2.len();
                    self.ahead.push_back(entry);
                }
                Ok(None) => return,
                Err(error) => {
                    self.failed = Some(Failure::Error(error));
                    return;
                }
            }
        }
    }

    fn step(&mut self) -> Result<Option<Entry>> {
        let Some(cursor) = &mut self.cursor else {
            return Ok(None);
        };
        let found = match (self.has_begun, self.reverse) {
            (false, false) => cursor.seek_to_first(),
            (false, true) => cursor.seek_to_last(),
            (true, false) => cursor.next(),
            (true, true) => cursor.prev(),
        }?;
        self.has_begun = true;
        let Some(keyspace) = cursor.keyspace().filter(|_| found) else {
            // A step from the end would begin again.
            self.cursor = None;
            return Ok(None);
        };
        let key = cursor.key().to_vec();
        Ok(Some((keyspace, key, cursor.value()?.to_vec())))
    }
}

/// An iterator over the entries of several keyspaces, in the order of keys or against it: tuples of the keyspace, the key and
/// the value.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct MergedItems {
    state: Held<Mutex<State>>,
    keyspaces: Vec<Py<Keyspace>>,
}

impl MergedItems {
    pub(crate) fn new(
        owner: Arc<Owner>,
        cursor: MergedCursor,
        keyspaces: Vec<Py<Keyspace>>,
        reverse: bool,
    ) -> Self {
        let state = State {
            cursor: Some(Box::new(cursor)),
            reverse,
            has_begun: false,
            ahead: VecDeque::new(),
            failed: None,
        };
        let state = Held::new(owner, Mutex::new(state));
        Self { state, keyspaces }
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        let state = self.state.get(py)?.lock_py_attached(py);
        Ok(state.unwrap_or_else(PoisonError::into_inner))
    }
}

type Item<'py> = (
    Bound<'py, Keyspace>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pymethods]
impl MergedItems {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Item<'py>>> {
        let mut state = self.lock(py)?;
        if state.ahead.is_empty() && state.failed.is_none() {
            let state = &mut *state;
            if let Err(failure) = detached(py, || {
                state.read();
                Ok(())
            }) {
                state.failed = Some(failure);
            }
        }
        let entry = state.ahead.pop_front();
        let failed = entry.is_none().then(|| state.failed.take()).flatten();
        // A new object can start the collector of garbage, which may call this iterator.
        drop(state);
        if let Some((keyspace, key, value)) = entry {
            let keyspace = self.keyspaces.get(keyspace);
            let keyspace = keyspace
                .ok_or_else(|| raised(py, "InternalError", "an entry is of no keyspace"))?;
            let (key, value) = (PyBytes::new(py, &key), PyBytes::new(py, &value));
            return Ok(Some((keyspace.bind(py).clone(), key, value)));
        }
        match failed {
            Some(failure) => Err(failure.exception(py)),
            None => Ok(None),
        }
    }

    /// Frees what the iterator reads. It has no more entries then.
    fn close(&self, py: Python<'_>) {
        let Ok(mut state) = self.lock(py) else {
            return;
        };
        state.ahead.clear();
        let cursor = state.cursor.take();
        drop(state);
        py.detach(|| drop(cursor));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: Bound<'_, PyTuple>) {
        self.close(py);
    }
}
