//! The change feed, and the consumers whose places survive.
//!
//! Concurrency: a lock for each feed, which the call that waits has. It waits in short steps, so that signals and a close end
//! it.

#![expect(
    clippy::disallowed_methods,
    reason = "a wait takes the time from the system"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyTuple};
use windrow::{BatchEntry, BatchWrite};

use crate::buffers::{Seconds, to_bytes};
use crate::errors::{invalid_argument, raised};
use crate::owner::{Held, Owner, call, detached};

/// The longest step of a wait.
const STEP: Duration = Duration::from_millis(100);

/// The changes of a database in the order of the commits: each comes once, when readers can see it and it is durable. The
/// iteration waits for each change for the seconds of `timeout`, or for ever without one, and ends if none came; it may be
/// taken up again.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Changes {
    /// `None` after the close.
    feed: Held<Mutex<Option<windrow::Changes>>>,
    is_closing: AtomicBool,
    timeout: Option<Duration>,
}

impl Changes {
    /// The feed that `open` opens.
    pub(crate) fn open(
        py: Python<'_>,
        owner: &Arc<Owner>,
        timeout: Option<Seconds>,
        open: impl FnOnce() -> windrow::Result<windrow::Changes> + Send,
    ) -> PyResult<Self> {
        let feed = call(py, open)?;
        Ok(Self {
            feed: Held::new(Arc::clone(owner), Mutex::new(Some(feed))),
            is_closing: AtomicBool::new(false),
            timeout: timeout.map(|Seconds(timeout)| timeout),
        })
    }

    /// Waits for a change for at most `step`.
    fn next(&self, py: Python<'_>, step: Duration) -> PyResult<Option<windrow::Change>> {
        let closed = || raised(py, "ClosedError", "the changes have been closed");
        if self.is_closing.load(Ordering::Acquire) {
            return Err(closed());
        }
        let feed = self.feed.get(py)?.lock_py_attached(py);
        let mut feed = feed.unwrap_or_else(PoisonError::into_inner);
        let next = feed.as_mut().map(|feed| detached(py, || feed.next(step)));
        // A new exception can start the collector of garbage, which may call this feed.
        drop(feed);
        let next = next.ok_or_else(closed)?;
        next.map_err(|failure| failure.exception(py))
    }

    /// Waits for a change for at most `timeout`.
    fn wait_for(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Change>> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let step = left.map_or(STEP, |left| left.min(STEP));
            if let Some(change) = self.next(py, step)? {
                return Ok(Some(Change::new(change)));
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        self.wait_for(py, self.timeout)
    }

    /// The next change. Waits for it for `timeout` seconds, or for ever without one; `None` if there was none. After an error
    /// the next call tries the same change again.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Option<Change>> {
        self.wait_for(py, timeout.map(|Seconds(timeout)| timeout))
    }

    /// Frees what the feed has, and ends a wait in another thread. Later calls are errors, except this one.
    fn close(&self, py: Python<'_>) {
        self.is_closing.store(true, Ordering::Release);
        let Ok(feed) = self.feed.get(py) else { return };
        let feed = feed.lock_py_attached(py);
        let taken = feed.unwrap_or_else(PoisonError::into_inner).take();
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

/// One change of a database.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Change {
    change: windrow::Change,
    /// Made by the first call that needs them.
    writes: PyOnceLock<Py<PyTuple>>,
}

impl Change {
    fn new(change: windrow::Change) -> Self {
        Self {
            change,
            writes: PyOnceLock::new(),
        }
    }
}

#[pymethods]
impl Change {
    /// What the change is: `batch`, `keyspace_created`, `keyspace_dropped`, `keyspace_renamed` or `tables_added`.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match &self.change {
            windrow::Change::Batch(_) => "batch",
            windrow::Change::KeyspaceCreated { .. } => "keyspace_created",
            windrow::Change::KeyspaceDropped { .. } => "keyspace_dropped",
            windrow::Change::KeyspaceRenamed { .. } => "keyspace_renamed",
            windrow::Change::TablesAdded { .. } => "tables_added",
            _ => {
                let message = "the change is newer than this package";
                return Err(raised(py, "UnsupportedError", message));
            }
        })
    }

    /// The sequence number of the change; of a batch, that of its last write. A consumer that has done with it acknowledges it.
    #[getter]
    fn sequence(&self) -> u64 {
        self.change.sequence()
    }

    /// The sequence number of the first write of a batch, and `sequence` of other changes.
    #[getter]
    fn first_sequence(&self) -> u64 {
        match &self.change {
            windrow::Change::Batch(batch) => batch.first(),
            other => other.sequence(),
        }
    }

    /// The names of the keyspaces that a change is about that is no batch: the one that was created or dropped, the old and the
    /// new name of the one that was renamed, or those to which a load has added tables. These are not known if no consumer holds
    /// the change.
    #[getter]
    fn keyspaces(&self) -> Vec<String> {
        match &self.change {
            windrow::Change::KeyspaceCreated { name, .. }
            | windrow::Change::KeyspaceDropped { name, .. } => vec![name.clone()],
            windrow::Change::KeyspaceRenamed { from, to, .. } => vec![from.clone(), to.clone()],
            windrow::Change::TablesAdded { keyspaces, .. } => keyspaces.clone(),
            _ => Vec::new(),
        }
    }

    /// The writes of a batch in their order, with the names that the keyspaces had then. Those to keyspaces that were dropped
    /// since are left out.
    #[getter]
    fn writes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let writes = self.writes.get_or_try_init(py, || {
            let windrow::Change::Batch(batch) = &self.change else {
                return Ok(PyTuple::empty(py).unbind());
            };
            let class = py.import("windrow._changes")?.getattr("Write")?;
            let writes = batch.iter().map(|entry| write(&class, &entry));
            let writes = writes.collect::<PyResult<Vec<_>>>()?;
            PyResult::Ok(PyTuple::new(py, writes)?.unbind())
        });
        Ok(writes?.bind(py).clone())
    }

    /// The writes of a batch as bytes, of which `Database.batch_from_bytes` makes a batch of another database.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let windrow::Change::Batch(batch) = &self.change else {
            return Err(invalid_argument(py, "the change is no batch"));
        };
        let bytes = call(py, || Ok(batch.to_bytes()))?;
        to_bytes(py, &bytes)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<windrow.Change {} {}>",
            self.sequence(),
            self.kind(py)?
        ))
    }
}

/// A write as a `Write` of Python.
fn write<'py>(class: &Bound<'py, PyAny>, entry: &BatchEntry<'_>) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let (kind, value, end, expires_at) = match entry.write {
        BatchWrite::Insert(value) => ("put", Some(value), None, None),
        BatchWrite::InsertUntil(value, time) => {
            let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            ("put", Some(value), None, Some(since_1970.as_secs_f64()))
        }
        BatchWrite::Remove => ("delete", None, None, None),
        BatchWrite::Merge(operand) => ("merge", Some(operand), None, None),
        BatchWrite::DeleteRange(end) => ("delete_range", None, end, None),
        _ => {
            let message = "the change has a write that is newer than this package";
            return Err(raised(py, "UnsupportedError", message));
        }
    };
    let value = value.map(|value| to_bytes(py, value)).transpose()?;
    let end = end.map(|end| PyBytes::new(py, end));
    class.call1((
        kind,
        &*entry.keyspace,
        PyBytes::new(py, entry.key),
        value,
        end,
        expires_at,
    ))
}

/// A named consumer of the changes of a database, whose place survives. The database keeps every change behind it, within the
/// bounds of the options.
#[pyclass(frozen, module = "windrow")]
pub(crate) struct Consumer(Held<windrow::Consumer>);

impl Consumer {
    pub(crate) fn open(py: Python<'_>, owner: &Arc<Owner>, name: &str) -> PyResult<Self> {
        let consumer = call(py, || owner.db.consumer(name))?;
        Ok(Self(Held::new(Arc::clone(owner), consumer)))
    }
}

#[pymethods]
impl Consumer {
    /// The name of the consumer.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.0.get(py)?.name().to_owned())
    }

    /// The changes behind the place of the consumer. The iteration waits for each for the seconds of `timeout`, which is 0, or for
    /// ever if it is `None`. A `FellBehindError` says that it held too much, or was silent for too long: then remove it and create it anew,
    /// copy a snapshot, and go on with the changes behind that.
    #[pyo3(signature = (*, timeout=Some(Seconds(Duration::ZERO))))]
    fn changes(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<Changes> {
        let consumer = self.0.get(py)?;
        Changes::open(py, self.0.owner(py)?, timeout, || consumer.changes())
    }

    /// The place of the consumer: it has done with every change up to this sequence number.
    fn acknowledged(&self, py: Python<'_>) -> PyResult<u64> {
        let consumer = self.0.get(py)?;
        call(py, || consumer.acknowledged())
    }

    /// Notes that the consumer has done with every change up to `sequence`. The place is durable at the return. It costs two
    /// syncs, so acknowledge after many changes.
    fn acknowledge(&self, py: Python<'_>, sequence: u64) -> PyResult<()> {
        let consumer = self.0.get(py)?;
        call(py, || consumer.acknowledge(sequence))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = self.0.get(py).map(windrow::Consumer::name);
        format!(
            "<windrow.Consumer {}>",
            name.unwrap_or("of a closed database")
        )
    }
}
