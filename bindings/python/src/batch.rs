//! Batches.
//!
//! Concurrency: a lock for each batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyTuple};

use crate::buffers::{Input, Seconds};
use crate::options;
use crate::owner::{Failure, Held, Owner, attached, detached};
use crate::view::{View, has_failed};

/// Writes to any keyspaces of a database that take effect as one. As a context manager it writes at the end of the block,
/// and discards everything after an exception.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Batch(Held<Mutex<windrow::Batch>>);

impl Batch {
    pub(crate) fn new(owner: Arc<Owner>, batch: windrow::Batch) -> Self {
        Self(Held::new(owner, Mutex::new(batch)))
    }

    fn lock<'a>(&'a self, py: Python<'_>) -> PyResult<MutexGuard<'a, windrow::Batch>> {
        let batch = self.0.get(py)?.lock_py_attached(py);
        Ok(batch.unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `work` with the lock. The exception is made without it: a new object can start the collector of garbage, which may
    /// call this batch.
    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut windrow::Batch) -> Result<T, Failure>,
    ) -> PyResult<T> {
        let mut batch = self.lock(py)?;
        let outcome = work(&mut batch);
        drop(batch);
        outcome.map_err(|failure| failure.exception(py))
    }

    fn add(
        &self,
        py: Python<'_>,
        keyspace: &View,
        add: impl FnOnce(&mut windrow::Batch, &windrow::Keyspace) -> windrow::Result<()>,
    ) -> PyResult<()> {
        let keyspace = keyspace.keyspace(py)?;
        self.with(py, |batch| attached(|| add(batch, keyspace)))
    }
}

#[pymethods]
impl Batch {
    /// Sets the value of `key`. It expires `ttl` seconds from now on, if they are given.
    #[pyo3(signature = (keyspace, key, value, *, ttl=None))]
    fn put(
        &self,
        py: Python<'_>,
        keyspace: PyRef<'_, View>,
        key: Input<'_>,
        value: Input<'_>,
        ttl: Option<Seconds>,
    ) -> PyResult<()> {
        let key = keyspace.written_key(py, key.as_slice())?;
        let value = value.as_slice();
        self.add(py, &keyspace, |batch, keyspace| match ttl {
            Some(Seconds(ttl)) => batch.insert_with_ttl(keyspace, &key, value, ttl),
            None => batch.insert(keyspace, &key, value),
        })
    }

    /// Removes `key`.
    fn delete(&self, py: Python<'_>, keyspace: PyRef<'_, View>, key: Input<'_>) -> PyResult<()> {
        let key = keyspace.written_key(py, key.as_slice())?;
        self.add(py, &keyspace, |batch, keyspace| {
            batch.remove(keyspace, &key)
        })
    }

    /// Removes all entries of a keyspace, or of a part of one: `batch.delete_range(keyspace[b"a":b"b"])`.
    fn delete_range(&self, py: Python<'_>, keyspace: PyRef<'_, View>) -> PyResult<()> {
        let bounds = keyspace.scope().bounds();
        self.add(py, &keyspace, |batch, keyspace| {
            batch.delete_range::<&[u8]>(keyspace, bounds)
        })
    }

    /// Writes an operand for the merge operator of the keyspace.
    fn merge(
        &self,
        py: Python<'_>,
        keyspace: PyRef<'_, View>,
        key: Input<'_>,
        operand: Input<'_>,
    ) -> PyResult<()> {
        let key = keyspace.written_key(py, key.as_slice())?;
        self.add(py, &keyspace, |batch, keyspace| {
            batch.merge(keyspace, &key, operand.as_slice())
        })
    }

    /// Writes everything as one. The batch keeps its content.
    #[pyo3(signature = (*, durability=None))]
    fn write(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let owner = self.0.owner(py)?;
        let durability = options::durability(py, durability, owner.durability)?;
        self.with(py, |batch| {
            let batch = &*batch;
            detached(py, || owner.db.write_with(batch, durability))
        })
    }

    /// Removes all writes from the batch.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |batch| {
            attached(|| {
                batch.clear();
                Ok(())
            })
        })
    }

    /// The batch as bytes, for `Database.batch_from_bytes` of this database or another.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |batch| attached(|| batch.to_bytes()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.lock(py)?.len())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: Bound<'_, PyTuple>) -> PyResult<()> {
        if has_failed(&exception) {
            return Ok(());
        }
        self.write(py, None)
    }
}
