//! Transactions.
//!
//! Concurrency: the lock of the transaction.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use windrow::{Durability, ErrorKind};

use crate::buffers::{Input, Seconds, to_bytes};
use crate::errors::raised;
use crate::iteration::Direction;
use crate::iterator::{Iterator, Part, Source};
use crate::options;
use crate::owner::{Held, Owner, call};
use crate::shared_transaction::Shared;
use crate::view::{View, has_failed};

/// Reads and writes that take effect at one place in the order of commits, or not at all. As a context manager it commits
/// at the end of the block, and rolls back after an exception.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Transaction(Held<Arc<Shared>>);

/// A state of the writes and locks of one transaction.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Savepoint(windrow::Savepoint);

/// How a read counts.
#[derive(Clone, Copy)]
enum Intent {
    Plain,
    Update,
    Share,
}

impl Transaction {
    pub(crate) fn new(owner: Arc<Owner>, transaction: windrow::Transaction) -> Self {
        Self(Held::new(owner, Arc::new(Shared::new(transaction))))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        keyspace: &View,
        key: &Input<'_>,
        default: Option<Bound<'py, PyAny>>,
        intent: Intent,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shared = self.0.get(py)?;
        let key = keyspace.scope().key(key.as_slice());
        if !keyspace.scope().contains(&key) {
            return Ok(default);
        }
        let keyspace = keyspace.keyspace(py)?;
        let found = shared.call(py, |transaction| {
            transaction.with(|it| match intent {
                Intent::Plain => it.get(keyspace, &key),
                Intent::Update => it.get_for_update(keyspace, &key),
                Intent::Share => it.get_for_share(keyspace, &key),
            })
        })?;
        match found {
            Some(value) => Ok(Some(to_bytes(py, &value)?.into_any())),
            None => Ok(default),
        }
    }

    fn write(
        &self,
        py: Python<'_>,
        keyspace: &View,
        work: impl FnOnce(&windrow::Transaction, &windrow::Keyspace) -> windrow::Result<()> + Send,
    ) -> PyResult<()> {
        let keyspace = keyspace.keyspace(py)?;
        let shared = self.0.get(py)?;
        shared.call(py, |transaction| transaction.with(|it| work(it, keyspace)))
    }

    fn iterate(
        &self,
        py: Python<'_>,
        view: &View,
        part: Part,
        reverse: bool,
    ) -> PyResult<Iterator> {
        let (keyspace, bounds) = (view.keyspace(py)?, view.scope().bounds());
        let shared = self.0.get(py)?;
        let cursor = shared.call(py, |transaction| {
            transaction.open(|it| it.range_cursor::<&[u8]>(keyspace, bounds))
        })?;
        Ok(Iterator::new(
            Arc::clone(self.0.owner(py)?),
            Source::Transaction(Arc::clone(shared), cursor),
            view.scope().clone(),
            part,
            Direction::new(reverse),
        ))
    }

    /// Ends the transaction after an exception of its user, which matters more than one of this: the database may be
    /// closed, for example.
    pub(crate) fn abandon(&self, py: Python<'_>) {
        if let Ok(shared) = self.0.get(py) {
            let ended = shared.end(py);
            py.detach(|| drop(ended));
        }
    }

    pub(crate) fn commit_with(&self, py: Python<'_>, durability: Durability) -> PyResult<()> {
        match self.0.get(py)?.end(py) {
            Some(transaction) => call(py, || transaction.commit(durability)),
            None => Err(raised(py, "ClosedError", "the transaction has ended")),
        }
    }
}

#[pymethods]
impl Transaction {
    /// The value of `key` as the transaction sees it, or `default`.
    #[pyo3(signature = (keyspace, key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        keyspace: PyRef<'py, View>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(py, &keyspace, &key, default, Intent::Plain)
    }

    /// The value of `key`, on which the commit depends in any case. A locking transaction locks the key first.
    #[pyo3(signature = (keyspace, key, default=None))]
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        keyspace: PyRef<'py, View>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(py, &keyspace, &key, default, Intent::Update)
    }

    /// As `get_for_update`, with a lock that other readers share.
    #[pyo3(signature = (keyspace, key, default=None))]
    fn get_for_share<'py>(
        &self,
        py: Python<'py>,
        keyspace: PyRef<'py, View>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(py, &keyspace, &key, default, Intent::Share)
    }

    /// The keys in order, or against it if `reverse`.
    #[pyo3(signature = (keyspace, *, reverse=false))]
    fn keys(&self, py: Python<'_>, keyspace: PyRef<'_, View>, reverse: bool) -> PyResult<Iterator> {
        self.iterate(py, &keyspace, Part::Keys, reverse)
    }

    /// Pairs of keys and values, in the order of keys, or against it if `reverse`.
    #[pyo3(signature = (keyspace, *, reverse=false))]
    fn items(
        &self,
        py: Python<'_>,
        keyspace: PyRef<'_, View>,
        reverse: bool,
    ) -> PyResult<Iterator> {
        self.iterate(py, &keyspace, Part::Items, reverse)
    }

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
        self.write(py, &keyspace, |it, keyspace| match ttl {
            Some(Seconds(ttl)) => it.insert_with_ttl(keyspace, &key, value, ttl),
            None => it.insert(keyspace, &key, value),
        })
    }

    /// Removes `key`.
    fn delete(&self, py: Python<'_>, keyspace: PyRef<'_, View>, key: Input<'_>) -> PyResult<()> {
        let key = keyspace.written_key(py, key.as_slice())?;
        self.write(py, &keyspace, |it, keyspace| it.remove(keyspace, &key))
    }

    /// Removes all entries of a keyspace, or of a part of one.
    fn delete_range(&self, py: Python<'_>, keyspace: PyRef<'_, View>) -> PyResult<()> {
        let bounds = keyspace.scope().bounds();
        self.write(py, &keyspace, |it, keyspace| {
            it.delete_range::<&[u8]>(keyspace, bounds)
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
        let operand = operand.as_slice();
        self.write(py, &keyspace, |it, keyspace| {
            it.merge(keyspace, &key, operand)
        })
    }

    /// Marks the present state of the writes and locks.
    fn savepoint(&self, py: Python<'_>) -> PyResult<Savepoint> {
        let shared = self.0.get(py)?;
        shared.call(py, |transaction| {
            Ok(Savepoint(transaction.with(windrow::Transaction::savepoint)))
        })
    }

    /// Discards what the transaction has written and locked since the savepoint.
    fn roll_back_to(&self, py: Python<'_>, savepoint: &Savepoint) -> PyResult<()> {
        let savepoint = savepoint.0;
        let shared = self.0.get(py)?;
        shared.call(py, |transaction| {
            transaction.with(|it| it.roll_back_to(savepoint))
        })
    }

    /// Commits the transaction, which ends in any case. After an error nothing was written.
    #[pyo3(signature = (*, durability=None))]
    fn commit(&self, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let default = self.0.owner(py)?.durability;
        self.commit_with(py, options::durability(py, durability, default)?)
    }

    /// Makes the transaction durable under a name without its commit: the first phase of a commit in two phases. It ends in
    /// any case. A prepared transaction survives crashes until `Database.commit_prepared` or `Database.roll_back_prepared`.
    /// Until then nobody else changes what it has read or written.
    fn prepare(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        match self.0.get(py)?.end(py) {
            Some(transaction) => call(py, || transaction.prepare(name).map(drop)),
            None => Err(raised(py, "ClosedError", "the transaction has ended")),
        }
    }

    /// Discards the writes. An ended transaction stays as it is.
    fn roll_back(&self, py: Python<'_>) -> PyResult<()> {
        let ended = self.0.get(py)?.end(py);
        py.detach(|| drop(ended));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: Bound<'_, PyTuple>) -> PyResult<()> {
        if has_failed(&exception) {
            self.abandon(py);
            return Ok(());
        }
        let shared = self.0.get(py)?;
        // The block may have ended it.
        if shared.has_ended(py) {
            return Ok(());
        }
        self.commit(py, None)
    }
}

/// Whether the work of a transaction may be tried again after this exception.
pub(crate) fn may_try_again(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let errors = py.import("windrow._errors")?;
    for kind in [ErrorKind::Conflict, ErrorKind::Deadlock] {
        if error.matches(py, errors.getattr(&*format!("{kind:?}Error"))?)? {
            return Ok(true);
        }
    }
    Ok(false)
}
