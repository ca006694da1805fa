//! Readers of a database that another process writes.
//!
//! Concurrency: any thread. In the child of a fork no call is made, and nothing is dropped, as with databases (`owner`).

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use windrow::{Db, Durability};

use crate::buffers::Seconds;
use crate::database::Database;
use crate::errors::raised;
use crate::forks;
use crate::options;
use crate::owner::{Owner, call, forget};

/// A reader of the database in the folder `path`, which this or another process may have open for writing. Options are those of
/// `open`. This process must be allowed to write to the folder, because a file there says what it reads. Each state that was
/// read is a `Database` that is open for reading and never changes. As a context manager it is closed at the end of the block;
/// its states stay open.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Secondary {
    /// `None` after the close.
    opened: Mutex<Option<windrow::Secondary>>,
    path: PathBuf,
    durability: Durability,
    forks: u64,
}

impl Secondary {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.forks == forks::count() {
            return Ok(());
        }
        let message =
            "the secondary was opened before a fork of the process: open it after the fork";
        Err(raised(py, "ForkError", message))
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&windrow::Secondary) -> windrow::Result<T> + Send,
    ) -> PyResult<T> {
        self.check(py)?;
        let opened = self.opened.lock();
        let opened = opened.unwrap_or_else(PoisonError::into_inner).clone();
        let opened =
            opened.ok_or_else(|| raised(py, "ClosedError", "the secondary has been closed"))?;
        // The last copy is dropped detached: it ends a thread.
        call(py, move || work(&opened))
    }

    fn state(
        &self,
        py: Python<'_>,
        state: impl FnOnce(&windrow::Secondary) -> windrow::Result<Db> + Send,
    ) -> PyResult<Database> {
        let db = self.call(py, state)?;
        Ok(Database::new(Owner::of_state(db, self.durability)))
    }
}

#[pymethods]
impl Secondary {
    #[new]
    #[pyo3(signature = (path, *, merge_operators=None, **options))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        merge_operators: Option<Bound<'_, PyDict>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = options::options(py, options.as_ref(), None, merge_operators.as_ref(), None)?;
        let durability = options.durability;
        let opened = call(py, || Db::open_secondary(&path, options))?;
        Ok(Self {
            opened: Mutex::new(Some(opened)),
            path,
            durability,
            forks: forks::count(),
        })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __repr__(&self) -> String {
        format!("<windrow.Secondary {}>", self.path.display())
    }

    /// The newest state that was read.
    fn database(&self, py: Python<'_>) -> PyResult<Database> {
        self.state(py, |secondary| Ok(secondary.db()))
    }

    /// Reads what was committed since, and returns the newest state. It has every commit that was acknowledged before the call. A
    /// `FellBehindError` says that this process was stopped for too long: the next call begins anew.
    fn catch_up(&self, py: Python<'_>) -> PyResult<Database> {
        self.state(py, windrow::Secondary::catch_up)
    }

    /// Has the secondary catch up by itself, `interval` seconds after each time, until it is closed. What fails there is tried
    /// again. A second call changes the interval.
    fn follow(&self, py: Python<'_>, interval: Seconds) -> PyResult<()> {
        self.call(py, |secondary| secondary.follow(interval.0))
    }

    /// Frees the secondary. Its states stay open. Later calls are errors, except this one.
    fn close(&self, py: Python<'_>) {
        if self.check(py).is_err() {
            return;
        }
        let opened = self.opened.lock();
        let taken = opened.unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(taken));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Drop for Secondary {
    fn drop(&mut self) {
        let opened = self.opened.get_mut();
        let opened = opened.unwrap_or_else(PoisonError::into_inner).take();
        if self.forks != forks::count() {
            forget(opened);
            return;
        }
        // It waits for its threads.
        let mut opened = Some(opened);
        let closed = Python::try_attach(|py| py.detach(|| drop(opened.take())));
        debug_assert!(closed.is_some() || opened.is_some());
    }
}
