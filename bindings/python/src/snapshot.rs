//! Snapshots.
//!
//! Concurrency: a snapshot never changes until its close.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyTuple;

use crate::errors::raised;
use crate::owner::{Held, Owner, call};

/// The state of all keyspaces at one moment, for `Keyspace.at`.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Snapshot(Held<Mutex<Option<windrow::Snapshot>>>);

impl Snapshot {
    pub(crate) fn new(py: Python<'_>, owner: &Arc<Owner>) -> PyResult<Self> {
        let snapshot = call(py, || Ok(owner.db.snapshot()))?;
        Ok(Self(Held::new(
            Arc::clone(owner),
            Mutex::new(Some(snapshot)),
        )))
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<windrow::Snapshot> {
        let held = self.0.get(py)?.lock_py_attached(py);
        let snapshot = held.ok().and_then(|snapshot| snapshot.clone());
        snapshot.ok_or_else(|| raised(py, "ClosedError", "the snapshot has been closed"))
    }
}

#[pymethods]
impl Snapshot {
    /// The sequence number of the newest write in the snapshot, whose changes are those up to here.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get(py)?.sequence())
    }

    /// Gives the snapshot up. Views at it keep what they need.
    fn close(&self, py: Python<'_>) {
        let Ok(held) = self.0.get(py) else { return };
        let taken = match held.lock_py_attached(py) {
            Ok(mut snapshot) => snapshot.take(),
            Err(_) => None,
        };
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
