//! The open database that all objects share, and what they must not do after a close or a fork.
//!
//! A fork copies the memory of a process, but not its threads, and the copy of an open database would write to the files
//! of the parent. So each database knows the number of forks at its open. In a child the number is higher: then no call
//! enters the engine, and nothing is dropped, since a drop would wait for threads that are not there. The system counts
//! the fork before any code of Python runs in the child: Python frees the objects of the parent's other threads there first.
//!
//! Concurrency: any thread.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use windrow::{Db, Durability};
use windrow_ffi::catch;

use crate::errors::{exception, raised};
use crate::forks;
use crate::loading::check_not_loading;

/// An open database.
pub(crate) struct Owner {
    pub(crate) db: Db,
    /// Of writes that name none.
    pub(crate) durability: Durability,
    /// Whether it is a state of a secondary, which others may have, too: a close leaves it to them.
    is_state: bool,
    is_closed: AtomicBool,
    forks: u64,
}

impl Owner {
    pub(crate) fn new(db: Db, durability: Durability) -> Arc<Self> {
        Arc::new(Self::opened(db, durability, false))
    }

    /// A state of a secondary.
    pub(crate) fn of_state(db: Db, durability: Durability) -> Arc<Self> {
        Arc::new(Self::opened(db, durability, true))
    }

    fn opened(db: Db, durability: Durability, is_state: bool) -> Self {
        Self {
            db,
            durability,
            is_state,
            is_closed: AtomicBool::new(false),
            forks: forks::count(),
        }
    }

    /// Whether this is the child of a fork after the open.
    pub(crate) fn is_forked(&self) -> bool {
        self.forks != forks::count()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Checks that the database may be used.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            let message = "the database was opened before a fork of the process: open it in one process, after the fork";
            return Err(raised(py, "ForkError", message));
        }
        if self.is_closed() {
            return Err(raised(py, "ClosedError", "the database has been closed"));
        }
        Ok(())
    }

    /// Closes the database. A second close waits for the first, and has its outcome.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Ok(());
        }
        check_not_loading(py, self)?;
        self.is_closed.store(true, Ordering::Release);
        if self.is_state {
            return Ok(());
        }
        let db = self.db.clone();
        call(py, || db.close())
    }
}

/// Why a call has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Error(windrow::Error),
    Panic(String),
    /// What the call uses has ended.
    Closed(&'static str),
}

impl Failure {
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Error(error) => exception(py, error),
            Self::Panic(message) => raised(py, "InternalError", message),
            Self::Closed(message) => raised(py, "ClosedError", message),
        }
    }
}

/// Runs `work` detached from the interpreter, and stops a panic.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> windrow::Result<T> + Send,
) -> Result<T, Failure> {
    match py.detach(|| catch(work)) {
        Ok(outcome) => outcome.map_err(Failure::Error),
        Err(message) => Err(Failure::Panic(message)),
    }
}

/// Runs `work` detached from the interpreter. An error becomes an exception, and so does a panic.
pub(crate) fn call<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> windrow::Result<T> + Send,
) -> PyResult<T> {
    detached(py, work).map_err(|failure| failure.exception(py))
}

/// Runs `work`, which waits for nothing, attached to the interpreter, and stops a panic.
pub(crate) fn attached<T>(work: impl FnOnce() -> windrow::Result<T>) -> Result<T, Failure> {
    match catch(work) {
        Ok(outcome) => outcome.map_err(Failure::Error),
        Err(message) => Err(Failure::Panic(message)),
    }
}

/// As [`attached`]. An error becomes an exception, and so does a panic.
pub(crate) fn caught<T>(py: Python<'_>, work: impl FnOnce() -> windrow::Result<T>) -> PyResult<T> {
    attached(work).map_err(|failure| failure.exception(py))
}

/// A handle of a database, with the database.
pub(crate) struct Held<T> {
    /// `None` only while it is dropped.
    handle: Option<T>,
    /// As `handle`.
    owner: Option<Arc<Owner>>,
}

impl<T> Held<T> {
    pub(crate) fn new(owner: Arc<Owner>, handle: T) -> Self {
        Self {
            handle: Some(handle),
            owner: Some(owner),
        }
    }

    /// The handle, if it may be used.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match (&self.owner, &self.handle) {
            (Some(owner), Some(handle)) => {
                owner.check(py)?;
                Ok(handle)
            }
            _ => Err(raised(py, "ClosedError", "the object is being freed")),
        }
    }

    /// The database, if it may be used.
    pub(crate) fn owner(&self, py: Python<'_>) -> PyResult<&Arc<Owner>> {
        match &self.owner {
            Some(owner) => {
                owner.check(py)?;
                Ok(owner)
            }
            None => Err(raised(py, "ClosedError", "the object is being freed")),
        }
    }

    /// The database, also after its close.
    pub(crate) fn any_owner(&self) -> Option<&Arc<Owner>> {
        self.owner.as_ref()
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let (handle, owner) = (self.handle.take(), self.owner.take());
        let Some(owner) = owner else { return };
        if owner.is_forked() {
            forget((handle, owner));
            return;
        }
        drop(handle);
        // One of those who drop the last objects at once gets it.
        let mut last = Arc::into_inner(owner);
        if last.is_some() {
            // The close waits for the threads of the database.
            let closed = Python::try_attach(|py| py.detach(|| drop(last.take())));
            debug_assert!(closed.is_some() || last.is_some());
        }
    }
}

#[expect(
    clippy::mem_forget,
    reason = "in the child of a fork nothing of the parent's database may be dropped"
)]
pub(crate) fn forget<T>(value: T) {
    mem::forget(value);
}
