//! A transaction that its iterators use, too.
//!
//! Concurrency: one lock. Who waits for it does so detached, because its owner may wait for the interpreter.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use windrow_ffi::transaction::TransactionAndCursors;

use crate::owner::{Failure, detached};

/// A transaction; `None` after its end.
pub(crate) struct Shared(Mutex<Option<TransactionAndCursors>>);

impl Shared {
    pub(crate) fn new(transaction: windrow::Transaction) -> Self {
        Self(Mutex::new(Some(TransactionAndCursors::new(transaction))))
    }

    /// Whether the transaction has ended.
    pub(crate) fn has_ended(&self, py: Python<'_>) -> bool {
        self.lock(py).is_none()
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Option<TransactionAndCursors>> {
        let state = self.0.lock_py_attached(py);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` detached from the interpreter.
    pub(crate) fn attempt<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut TransactionAndCursors) -> windrow::Result<T> + Send,
    ) -> Result<T, Failure> {
        match &mut *self.lock(py) {
            Some(transaction) => detached(py, || work(transaction)),
            None => Err(Failure::Closed("the transaction has ended")),
        }
    }

    /// As [`attempt`](Self::attempt). The exception is made without the lock: a new object can start the collector of garbage,
    /// which may find an iterator of this transaction.
    pub(crate) fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut TransactionAndCursors) -> windrow::Result<T> + Send,
    ) -> PyResult<T> {
        self.attempt(py, work)
            .map_err(|failure| failure.exception(py))
    }

    /// Ends the transaction for all its users. Returns it.
    pub(crate) fn end(&self, py: Python<'_>) -> Option<TransactionAndCursors> {
        self.lock(py).take()
    }

    pub(crate) fn close_cursor(&self, cursor: u64) {
        Python::try_attach(|py| {
            if let Some(transaction) = &mut *self.lock(py) {
                transaction.close(cursor);
            }
        });
    }
}
