//! Iterators over a view or over what a transaction sees.
//!
//! Concurrency: a lock for each iterator. An iterator of a transaction takes that of its transaction inside of its own. With a
//! lock no object is made but bytes, because others can start the collector of garbage, which may call the same iterator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PyTuple};
use windrow::Cursor;

use crate::buffers::Input;
use crate::errors::raised;
use crate::iteration::{Direction, Iteration};
use crate::owner::{Failure, Held, Owner, detached};
use crate::scope::Scope;
use crate::shared_transaction::Shared;

/// What an iterator gives of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Keys,
    Values,
    Items,
}

/// Where the entries come from.
pub(crate) enum Source {
    View(Box<Cursor>),
    /// A cursor of the transaction, by its number.
    Transaction(Arc<Shared>, u64),
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Self::Transaction(shared, cursor) = self {
            shared.close_cursor(*cursor);
        }
    }
}

struct State {
    /// `None` after a close.
    source: Option<Source>,
    iteration: Iteration,
    /// Of the next step.
    failed: Option<Failure>,
}

/// What an iterator gives of an entry, as far as it wants it.
struct Taken<'py> {
    key: Option<Bound<'py, PyBytes>>,
    value: Option<Bound<'py, PyBytes>>,
}

/// An iterator that goes both ways. It stands between two entries.
#[pyclass(frozen, generic, module = "windrow")]
pub(crate) struct Iterator {
    state: Held<Mutex<State>>,
    scope: Scope,
    part: Part,
    direction: Direction,
}

impl Iterator {
    pub(crate) fn new(
        owner: Arc<Owner>,
        source: Source,
        scope: Scope,
        part: Part,
        direction: Direction,
    ) -> Self {
        let reads_ahead = matches!(source, Source::View(_));
        let state = State {
            source: Some(source),
            iteration: Iteration::new(reads_ahead, direction, part != Part::Keys),
            failed: None,
        };
        Self {
            state: Held::new(owner, Mutex::new(state)),
            scope,
            part,
            direction,
        }
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, State>> {
        let state = self.state.get(py)?.lock_py_attached(py);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.source.is_none() {
            drop(state);
            return Err(raised(py, "ClosedError", "the iterator has been closed"));
        }
        Ok(state)
    }

    fn seek_by(&self, py: Python<'_>, seek: impl FnOnce(&mut Iteration)) -> PyResult<()> {
        let mut state = self.lock(py)?;
        seek(&mut state.iteration);
        state.failed = None;
        Ok(())
    }

    /// The next entry in this direction.
    fn next<'py>(
        &self,
        py: Python<'py>,
        direction: Direction,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = self.lock(py)?;
        let taken = self.step(py, &mut state, direction);
        drop(state);
        match taken {
            Ok(taken) => taken.map(|entry| Self::object(py, entry)).transpose(),
            Err(failure) => Err(failure.exception(py)),
        }
    }

    /// Takes the next entry in this direction.
    fn step<'py>(
        &self,
        py: Python<'py>,
        state: &mut State,
        direction: Direction,
    ) -> Result<Option<Taken<'py>>, Failure> {
        if let Some(failure) = state.failed.take() {
            return Err(failure);
        }
        if let Some(entry) = state.iteration.take(direction) {
            return Ok(Some(self.copy(py, entry)));
        }
        let State {
            source, iteration, ..
        } = state;
        match source {
            Some(Source::View(cursor)) => {
                detached(py, || iteration.read(&mut **cursor, direction))?;
            }
            Some(Source::Transaction(shared, number)) => shared.attempt(py, |transaction| {
                let read =
                    |cursor: &mut windrow::TransactionCursor<'_>| iteration.read(cursor, direction);
                transaction.with_cursor(*number, read).unwrap_or(Ok(()))
            })?,
            None => {}
        }
        let entry = iteration.take(direction);
        Ok(entry.map(|entry| self.copy(py, entry)))
    }

    fn copy<'py>(&self, py: Python<'py>, (key, value): (&[u8], &[u8])) -> Taken<'py> {
        let key = &key[self.scope.prefix_bytes()..];
        Taken {
            key: (self.part != Part::Values).then(|| PyBytes::new(py, key)),
            value: (self.part != Part::Keys).then(|| PyBytes::new(py, value)),
        }
    }

    fn object<'py>(py: Python<'py>, taken: Taken<'py>) -> PyResult<Bound<'py, PyAny>> {
        match (taken.key, taken.value) {
            (Some(key), Some(value)) => Ok(PyTuple::new(py, [key, value])?.into_any()),
            (Some(part), None) | (None, Some(part)) => Ok(part.into_any()),
            (None, None) => Err(raised(py, "InternalError", "an entry has no part")),
        }
    }
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py, self.direction)
    }

    /// Steps back: gives the entry behind the iterator, which the next step forward gives again.
    fn prev<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = self.next(py, self.direction.opposite())?;
        found.ok_or_else(|| pyo3::exceptions::PyStopIteration::new_err(()))
    }

    /// The next entries, at most `count`, as a list. An empty list is the end. With `max_bytes` the list ends with the
    /// entry with which its keys and values have that many bytes. What was taken before an error is returned; the next
    /// call has the error.
    #[pyo3(signature = (count, *, max_bytes=None))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        count: usize,
        max_bytes: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut state = self.lock(py)?;
        let mut taken = Vec::new();
        let mut failed = None;
        let mut bytes = 0;
        while taken.len() < count && max_bytes.is_none_or(|most| bytes < most) {
            match self.step(py, &mut state, self.direction) {
                Ok(Some(entry)) => taken.push(entry),
                Ok(None) => break,
                // An error of a value comes once, so it is kept for the next call.
                Err(failure) if !taken.is_empty() => {
                    state.failed = Some(failure);
                    break;
                }
                Err(failure) => {
                    failed = Some(failure);
                    break;
                }
            }
            bytes += state.iteration.taken_bytes();
        }
        drop(state);
        if let Some(failure) = failed {
            return Err(failure.exception(py));
        }
        let entries = PyList::empty(py);
        for entry in taken {
            entries.append(Self::object(py, entry)?)?;
        }
        Ok(entries)
    }

    /// Moves before the entry with this key, or before the first one with a greater key, in the order of keys.
    fn seek(&self, py: Python<'_>, key: Input<'_>) -> PyResult<()> {
        let key = self.scope.key(key.as_slice());
        self.seek_by(py, |iteration| iteration.go_before(&key))
    }

    /// Moves before the entry with the smallest key.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.seek_by(py, |iteration| iteration.go_to_end(Direction::Backward))
    }

    /// Moves behind the entry with the greatest key.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.seek_by(py, |iteration| iteration.go_to_end(Direction::Forward))
    }

    /// Frees what the iterator reads. Later calls are errors, except this one.
    fn close(&self, py: Python<'_>) {
        let Ok(state) = self.state.get(py) else {
            return;
        };
        let state = state.lock_py_attached(py);
        let source = state.unwrap_or_else(PoisonError::into_inner).source.take();
        py.detach(|| drop(source));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: Bound<'_, PyTuple>) {
        self.close(py);
    }
}
