//! The close of databases that call functions of Python, before the interpreter ends: afterwards a thread of the engine could
//! not call them any more.
//!
//! Concurrency: one lock, which nobody holds while he waits.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;

use crate::owner::Owner;

static DATABASES: Mutex<Vec<Weak<Owner>>> = Mutex::new(Vec::new());

/// Has the database closed at the exit, if it is open then.
pub(crate) fn close_at_exit(owner: &Arc<Owner>) {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    databases.retain(|database| database.strong_count() > 0);
    databases.push(Arc::downgrade(owner));
}

/// Closes the databases.
#[pyfunction]
#[pyo3(name = "_close_at_exit")]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    let databases = mem::take(&mut *DATABASES.lock().unwrap_or_else(PoisonError::into_inner));
    let mut outcome = Ok(());
    for owner in databases.iter().filter_map(Weak::upgrade) {
        outcome = outcome.and(owner.close(py));
    }
    outcome
}
