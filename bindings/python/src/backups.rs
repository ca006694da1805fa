//! Backups of databases in a folder.
//!
//! Invariant: each call and the close have the lock, so that the folder is free after a close.
//!
//! Concurrency: one call at a time, detached from the interpreter; others wait. In the child of a fork no call is made, and
//! nothing is dropped, as with databases (`owner`).

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use windrow::backup::{ListedBackup, Purge};
use windrow::{Db, Error, ErrorKind, Result};
use windrow_ffi::backups::{created_milliseconds, number_or_newest};

use crate::buffers::Seconds;
use crate::errors::{exception, raised};
use crate::forks;
use crate::owner::{call, forget};

/// Backups of a database in the folder `path`, which is created if it is missing. One `Backups` has the folder, once: others
/// get a `LockedError`. Each database has a folder of its own. With `read_only` the folder exists, and backups are listed,
/// verified and restored; others may do the same. Each call reads at most `bytes_per_second`, for a disk that other programs
/// use, too; 0 is no bound. As a context manager it is closed at the end of the block.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Backups {
    /// `None` after the close.
    opened: Mutex<Option<windrow::backup::Backups>>,
    path: PathBuf,
    forks: u64,
}

impl Backups {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.forks == forks::count() {
            return Ok(());
        }
        let message = "the backups were opened before a fork of the process: open them after it";
        Err(raised(py, "ForkError", message))
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&windrow::backup::Backups) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.check(py)?;
        call(py, || {
            let opened = self.opened.lock();
            let opened = opened.unwrap_or_else(PoisonError::into_inner);
            match &*opened {
                Some(backups) => work(backups),
                None => Err(Error::new(
                    ErrorKind::Closed,
                    "the backups have been closed",
                )),
            }
        })
    }

    fn purge(&self, py: Python<'_>, purge: Purge) -> PyResult<Vec<u64>> {
        self.call(py, |backups| Ok(backups.purge(purge)?.backups))
    }

    /// Makes a backup of `db`. Returns its number.
    pub(crate) fn make(&self, py: Python<'_>, db: &Db) -> PyResult<u64> {
        self.call(py, |backups| Ok(db.backup(backups)?.number))
    }
}

#[pymethods]
impl Backups {
    #[new]
    #[pyo3(signature = (path, *, read_only=false, bytes_per_second=0))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        bytes_per_second: u64,
    ) -> PyResult<Self> {
        let opened = call(py, || {
            let opened = if read_only {
                windrow::backup::Backups::open_read_only(&path)?
            } else {
                windrow::backup::Backups::open(&path)?
            };
            Ok(opened.with_rate(bytes_per_second))
        })?;
        Ok(Self {
            opened: Mutex::new(Some(opened)),
            path,
            forks: forks::count(),
        })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __repr__(&self) -> String {
        format!("<windrow.Backups {}>", self.path.display())
    }

    /// The backups, oldest first, also those that cannot be used.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let listed = self.call(py, windrow::backup::Backups::list)?;
        let class = py.import("windrow._backups")?.getattr("Backup")?;
        let made = listed.iter().map(|listed| {
            let fields = fields(py, listed)?;
            class.call((), Some(&fields))
        });
        made.collect()
    }

    /// Reads all bytes of all backups, or of the backup `number`, and compares them with their checksums. Returns a sentence
    /// for each damage.
    #[pyo3(signature = (number=None))]
    fn verify(&self, py: Python<'_>, number: Option<u64>) -> PyResult<Vec<String>> {
        let damage = self.call(py, |backups| Ok(backups.verify(number)?.damage))?;
        Ok(damage.iter().map(|it| it.error.to_string()).collect())
    }

    /// Writes the database of the backup `number`, or of the newest one, to the folder `path`, which is empty or missing. All
    /// bytes are checked on the way. The database is durable at the return; after an error there is none.
    #[pyo3(signature = (path, number=None))]
    fn restore(&self, py: Python<'_>, path: PathBuf, number: Option<u64>) -> PyResult<()> {
        self.call(py, |backups| {
            backups.restore(number_or_newest(backups, number)?, &path)
        })
    }

    /// Removes all backups but the `count` newest ones, at least 1, and the bytes that no other backup needs. Returns the
    /// numbers of those that were removed.
    fn keep_newest(&self, py: Python<'_>, count: usize) -> PyResult<Vec<u64>> {
        self.purge(py, Purge::KeepNewest(count))
    }

    /// Removes the backups that were made more than `seconds` ago, except the newest one. Returns the numbers of those that
    /// were removed.
    fn remove_older(&self, py: Python<'_>, seconds: Seconds) -> PyResult<Vec<u64>> {
        self.purge(py, Purge::OlderThan(seconds.0))
    }

    /// Removes the backup `number`, whatever its state.
    fn remove(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        self.purge(py, Purge::Backup(number)).map(drop)
    }

    /// Lets others have the folder, after the calls that run. Later calls are errors.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.check(py).is_err() {
            return Ok(());
        }
        call(py, || {
            let opened = self.opened.lock();
            drop(opened.unwrap_or_else(PoisonError::into_inner).take());
            Ok(())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

/// The fields of a `Backup` in Python.
fn fields<'py>(py: Python<'py>, listed: &ListedBackup) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("number", listed.number)?;
    match &listed.backup {
        Ok(info) => {
            let created = Duration::from_millis(created_milliseconds(info));
            fields.set_item("created", created.as_secs_f64())?;
            fields.set_item("sequence", info.sequence)?;
            fields.set_item("files", info.files)?;
            fields.set_item("bytes", info.bytes)?;
            fields.set_item("own_bytes", info.own_bytes)?;
        }
        Err(error) => fields.set_item("error", exception(py, error))?,
    }
    Ok(fields)
}

impl Drop for Backups {
    fn drop(&mut self) {
        if self.forks != forks::count() {
            let opened = self.opened.get_mut();
            forget(opened.unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}
