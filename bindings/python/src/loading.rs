//! Which databases a thread loads entries into. The source of a bulk load runs in the thread of the caller, and must not wait
//! for the load, which waits for the source.
//!
//! Concurrency: each thread has its own list.

use std::cell::RefCell;

use pyo3::prelude::*;

use crate::errors::invalid_argument;

thread_local! {
    /// The addresses of the databases.
    static LOADING: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
}

/// Runs the source of a load into `database`.
pub(crate) fn while_loading<D, T>(database: &D, source: impl FnOnce() -> T) -> T {
    let address = (&raw const *database).cast();
    LOADING.with_borrow_mut(|loading| loading.push(address));
    let outcome = source();
    LOADING.with_borrow_mut(Vec::pop);
    outcome
}

/// Checks that this thread is not in the source of a load into `database`.
pub(crate) fn check_not_loading<D>(py: Python<'_>, database: &D) -> PyResult<()> {
    let address = (&raw const *database).cast();
    if LOADING.with_borrow(|loading| loading.contains(&address)) {
        let message = "the source of a bulk load cannot wait for the end of the load";
        return Err(invalid_argument(py, message));
    }
    Ok(())
}
