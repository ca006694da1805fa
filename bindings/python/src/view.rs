//! Views: the entries of a keyspace for readers. All of them, or those of a range or with a prefix; now or at a snapshot.
//!
//! Concurrency: never changes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PySet, PySlice, PyTuple};
use windrow::{Expiry, Near};
use windrow_ffi::catch;

use crate::arrays::ArrayScan;
use crate::buffers::{Input, Value, near_bytes, to_bytes};
use crate::errors::invalid_argument;
use crate::iteration::Direction;
use crate::iterator::{Iterator, Part, Source};
use crate::owner::{Held, Owner, call, caught};
use crate::scope::Scope;
use crate::snapshot::Snapshot;

/// A keyspace, and its state at a snapshot if the view has one.
#[derive(Clone)]
struct Handles {
    keyspace: windrow::Keyspace,
    at: Option<windrow::View>,
}

/// Entries of a keyspace, in the order of their keys, as a mapping that cannot be written to.
#[pyclass(frozen, subclass, mapping, module = "windrow")]
pub(crate) struct View {
    handles: Held<Handles>,
    scope: Scope,
}

impl View {
    pub(crate) fn new(owner: Arc<Owner>, keyspace: windrow::Keyspace) -> Self {
        let handles = Handles { keyspace, at: None };
        Self {
            handles: Held::new(owner, handles),
            scope: Scope::default(),
        }
    }

    pub(crate) fn owner(&self, py: Python<'_>) -> PyResult<&Arc<Owner>> {
        self.handles.owner(py)
    }

    /// The keyspace, for a call that reads or writes the newest state.
    pub(crate) fn keyspace(&self, py: Python<'_>) -> PyResult<&windrow::Keyspace> {
        let handles = self.handles.get(py)?;
        if handles.at.is_some() {
            let message = "the view is one at a snapshot, and the call needs the keyspace";
            return Err(invalid_argument(py, message));
        }
        Ok(&handles.keyspace)
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The key of the keyspace, for a write.
    pub(crate) fn written_key<'k>(&self, py: Python<'_>, key: &'k [u8]) -> PyResult<Cow<'k, [u8]>> {
        let key = self.scope.key(key);
        if self.scope.contains(&key) {
            return Ok(key);
        }
        let message = "the key is outside the range of the view";
        Err(invalid_argument(py, message))
    }

    fn reader(&self, py: Python<'_>) -> PyResult<&windrow::View> {
        let handles = self.handles.get(py)?;
        Ok(handles.at.as_ref().unwrap_or(&handles.keyspace))
    }

    pub(crate) fn find<'py>(
        &self,
        py: Python<'py>,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let reader = self.reader(py)?;
        let key = self.scope.key(key);
        if !self.scope.contains(&key) {
            return Ok(None);
        }
        // An answer in memory costs less than the way out of the interpreter and back.
        let near = caught(py, || reader.get_near(&key, |value| near_bytes(py, value)))?;
        match near {
            Near::Found(Some(value)) => return Ok(Some(value)),
            Near::Absent => return Ok(None),
            Near::Found(None) | Near::Unknown => {}
        }
        let found = call(py, || reader.get_pinned(&key))?;
        found.map(|value| to_bytes(py, &value)).transpose()
    }

    /// A view of the same kind of other keys, or at a snapshot.
    fn derived<'py>(
        &self,
        py: Python<'py>,
        scope: Scope,
        at: Option<windrow::View>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut handles = self.handles.get(py)?.clone();
        handles.at = at.or(handles.at);
        let is_writable = handles.at.is_none();
        let view = Self {
            handles: Held::new(Arc::clone(self.owner(py)?), handles),
            scope,
        };
        if is_writable {
            Keyspace::object(py, view)
        } else {
            Ok(Bound::new(py, view)?.into_any())
        }
    }

    /// The view of the keys of a slice.
    pub(crate) fn slice<'py>(&self, slice: &Bound<'py, PySlice>) -> PyResult<Bound<'py, PyAny>> {
        if !slice.getattr("step")?.is_none() {
            return Err(PyTypeError::new_err(
                "a range of keys has no step; reversed() goes backward",
            ));
        }
        let start: Option<Input<'_>> = slice.getattr("start")?.extract()?;
        let stop: Option<Input<'_>> = slice.getattr("stop")?.extract()?;
        let ends = (
            start.as_ref().map(Input::as_slice),
            stop.as_ref().map(Input::as_slice),
        );
        self.derived(slice.py(), self.scope.range(ends.0, ends.1), None)
    }

    pub(crate) fn iterate(
        &self,
        py: Python<'_>,
        part: Part,
        direction: Direction,
    ) -> PyResult<Iterator> {
        let cursor = self.cursor(py)?;
        Ok(Iterator::new(
            Arc::clone(self.owner(py)?),
            Source::View(Box::new(cursor)),
            self.scope.clone(),
            part,
            direction,
        ))
    }

    pub(crate) fn cursor(&self, py: Python<'_>) -> PyResult<windrow::Cursor> {
        let reader = self.reader(py)?;
        let bounds = self.scope.bounds();
        call(py, || reader.range_cursor::<&[u8]>(bounds))
    }

    /// The entry at one end.
    pub(crate) fn end<'py>(
        &self,
        py: Python<'py>,
        direction: Direction,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let reader = self.reader(py)?;
        let bounds = self.scope.bounds();
        let found = call(py, || {
            let mut cursor = reader.range_cursor::<&[u8]>(bounds)?;
            let is_found = match direction {
                Direction::Forward => cursor.seek_to_last()?,
                Direction::Backward => cursor.seek_to_first()?,
            };
            if !is_found {
                return Ok(None);
            }
            Ok(Some((cursor.key().to_vec(), cursor.value()?.to_vec())))
        })?;
        let Some((key, value)) = found else {
            return Ok(None);
        };
        let key = PyBytes::new(py, &key[self.scope.prefix_bytes()..]);
        Ok(Some((key, to_bytes(py, &value)?)))
    }
}

#[pymethods]
impl View {
    /// The present name of the keyspace.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        let keyspace = &self.handles.get(py)?.keyspace;
        caught(py, || Ok(keyspace.name()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.handles.get(py) {
            Err(_) => "<windrow view, closed>".to_owned(),
            Ok(handles) => {
                let class = handles.at.as_ref().map_or("Keyspace", |_| "View");
                let name = catch(|| handles.keyspace.name()).unwrap_or_default();
                format!("<windrow.{class} {name:?}>")
            }
        }
    }

    /// The value of `key`, or `default` if the key does not exist.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Input<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.find(py, key.as_slice())?;
        Ok(found.map(Bound::into_any).or(default))
    }

    /// The value of `key` in place, for readers of buffers; `None` if the key does not exist. It holds the file or block
    /// that it is in.
    fn get_pinned(&self, py: Python<'_>, key: Input<'_>) -> PyResult<Option<Value>> {
        let reader = self.reader(py)?;
        let key = self.scope.key(key.as_slice());
        if !self.scope.contains(&key) {
            return Ok(None);
        }
        Ok(call(py, || reader.get_pinned(&key))?.map(Value::new))
    }

    /// The values of `keys` in one state, in the order of `keys`; `None` for a key that does not exist.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.reader(py)?;
        let given: Vec<Input<'_>> = keys
            .try_iter()?
            .map(|key| key?.extract())
            .collect::<PyResult<_>>()?;
        // The iterator may have closed the database, or forked the process.
        let reader = self.reader(py)?;
        let keys: Vec<_> = given
            .iter()
            .map(|key| self.scope.key(key.as_slice()))
            .collect();
        let values = call(py, || reader.multi_get(&keys))?;
        let found = PyList::empty(py);
        for (key, value) in keys.iter().zip(values) {
            match value.filter(|_| self.scope.contains(key)) {
                Some(value) => found.append(to_bytes(py, &value)?)?,
                None => found.append(py.None())?,
            }
        }
        Ok(found)
    }

    /// When the entry of `key` expires, in seconds since 1970; `None` for never. A missing key is a `KeyError`.
    fn expires_at(&self, py: Python<'_>, key: Input<'_>) -> PyResult<Option<f64>> {
        let reader = self.reader(py)?;
        let full = self.scope.key(key.as_slice());
        if self.scope.contains(&full) {
            match call(py, || reader.expires_at(&full))? {
                Some(Expiry::Never) => return Ok(None),
                Some(Expiry::At(time)) => {
                    let since = time.duration_since(SystemTime::UNIX_EPOCH);
                    return Ok(Some(since.unwrap_or_default().as_secs_f64()));
                }
                None => {}
            }
        }
        Err(missing(py, key.as_slice()))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            return self.slice(slice);
        }
        let key: Input<'_> = key.extract()?;
        let found = self.find(py, key.as_slice())?;
        let found = found.ok_or_else(|| missing(py, key.as_slice()))?;
        Ok(found.into_any())
    }

    fn __contains__(&self, py: Python<'_>, key: Input<'_>) -> PyResult<bool> {
        let reader = self.reader(py)?;
        let key = self.scope.key(key.as_slice());
        Ok(self.scope.contains(&key) && call(py, || reader.contains_key(&key))?)
    }

    /// Counts the entries: reads each key.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let reader = self.reader(py)?;
        let bounds = self.scope.bounds();
        let count = call(py, || reader.count::<&[u8]>(bounds))?;
        Ok(usize::try_from(count)?)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.end(py, Direction::Backward)?.is_some())
    }

    fn __eq__(&self, py: Python<'_>, other: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<PyMapping>() else {
            return Ok(py.NotImplemented());
        };
        let own = PyDict::new(py);
        let entries = self.iterate(py, Part::Items, Direction::Forward)?;
        own.call_method1("update", (entries,))?;
        let theirs = PyDict::new(py);
        theirs.call_method1("update", (other.items()?,))?;
        Ok(own
            .rich_compare(theirs, pyo3::basic::CompareOp::Eq)?
            .unbind())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterate(py, Part::Keys, Direction::Forward)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.iterate(py, Part::Keys, Direction::Backward)
    }

    /// The keys in order.
    fn keys(slf: Bound<'_, Self>) -> Entries {
        Entries::new(slf.unbind(), Part::Keys)
    }

    /// The values in the order of their keys.
    fn values(slf: Bound<'_, Self>) -> Entries {
        Entries::new(slf.unbind(), Part::Values)
    }

    /// Pairs of keys and values, in the order of keys.
    fn items(slf: Bound<'_, Self>) -> Entries {
        Entries::new(slf.unbind(), Part::Items)
    }

    /// The entry with the smallest key, or `None`.
    fn first<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        self.end(py, Direction::Backward)
    }

    /// The entry with the greatest key, or `None`.
    fn last<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        self.end(py, Direction::Forward)
    }

    /// The entries whose keys begin with `prefix`, without it.
    fn prefix<'py>(&self, py: Python<'py>, prefix: Input<'_>) -> PyResult<Bound<'py, PyAny>> {
        self.derived(py, self.scope.prefix(prefix.as_slice()), None)
    }

    /// The entries whose keys begin with `prefix`, with it.
    fn _under<'py>(&self, py: Python<'py>, prefix: Input<'_>) -> PyResult<Bound<'py, PyAny>> {
        self.derived(py, self.scope.under(prefix.as_slice()), None)
    }

    /// The same entries at a snapshot.
    fn at<'py>(&self, py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = snapshot.get(py)?;
        let handles = self.handles.get(py)?;
        let at = call(py, || handles.keyspace.at(&snapshot))?;
        self.derived(py, self.scope.clone(), Some(at))
    }

    /// The entries in chunks of at most `rows` rows, as the buffers of two columns of bytes.
    fn _scan_arrays(&self, py: Python<'_>, rows: usize) -> PyResult<ArrayScan> {
        let cursor = self.cursor(py)?;
        ArrayScan::new(
            py,
            Arc::clone(self.owner(py)?),
            cursor,
            self.scope.prefix_bytes(),
            rows,
        )
    }

    /// The entries as Arrow record batches with the columns `key` and `value`. Needs pyarrow.
    #[pyo3(signature = (*, rows=65536))]
    fn scan_arrays(slf: Bound<'_, Self>, rows: usize) -> PyResult<Bound<'_, PyAny>> {
        let py = slf.py();
        let module = py.import("windrow._arrays")?;
        module.getattr("scan")?.call1((slf, rows))
    }
}

/// A keyspace, or the entries of one in a range or with a prefix: a mutable mapping in the order of keys.
#[pyclass(frozen, extends = View, mapping, module = "windrow")]
pub(crate) struct Keyspace;

impl Keyspace {
    pub(crate) fn object(py: Python<'_>, view: View) -> PyResult<Bound<'_, PyAny>> {
        let object = PyClassInitializer::from(view).add_subclass(Self);
        Ok(Bound::new(py, object)?.into_any())
    }

    pub(crate) fn open(
        py: Python<'_>,
        owner: Arc<Owner>,
        keyspace: windrow::Keyspace,
    ) -> PyResult<Bound<'_, PyAny>> {
        Self::object(py, View::new(owner, keyspace))
    }
}

/// The keys, values or items of a view, in the order of keys. It is not a copy.
#[pyclass(frozen, generic, module = "windrow")]
pub(crate) struct Entries {
    view: Py<View>,
    part: Part,
}

impl Entries {
    pub(crate) fn new(view: Py<View>, part: Part) -> Self {
        Self { view, part }
    }

    /// What a set of the keys or items makes of another iterable. Values are no set.
    fn as_set<'py>(&self, method: &str, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        if self.part == Part::Values || other.try_iter().is_err() {
            return Ok(py.NotImplemented().into_bound(py));
        }
        let own = PySet::empty(py)?;
        own.call_method1("update", (self.__iter__(py)?,))?;
        let theirs = PySet::empty(py)?;
        theirs.call_method1("update", (other,))?;
        own.call_method1(method, (theirs,))
    }
}

#[pymethods]
impl Entries {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.view.bind(py).len()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.get().iterate(py, self.part, Direction::Forward)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Iterator> {
        self.view.get().iterate(py, self.part, Direction::Backward)
    }

    fn __and__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__and__", &other)
    }

    fn __rand__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__rand__", &other)
    }

    fn __or__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__or__", &other)
    }

    fn __ror__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__ror__", &other)
    }

    fn __sub__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__sub__", &other)
    }

    fn __rsub__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__rsub__", &other)
    }

    fn __xor__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__xor__", &other)
    }

    fn __rxor__<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("__rxor__", &other)
    }

    /// Whether none of the keys or items is in `other`.
    fn isdisjoint<'py>(&self, other: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.as_set("isdisjoint", &other)
    }

    fn __contains__(&self, py: Python<'_>, wanted: Bound<'_, PyAny>) -> PyResult<bool> {
        let view = self.view.get();
        match self.part {
            Part::Keys => self.view.bind(py).contains(wanted),
            Part::Items => {
                let Ok((key, value)) = wanted.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                else {
                    return Ok(false);
                };
                let Ok(key) = key.extract::<Input<'_>>() else {
                    return Ok(false);
                };
                let found = view.find(py, key.as_slice())?;
                match found {
                    Some(found) => found.into_any().eq(&value),
                    None => Ok(false),
                }
            }
            Part::Values => {
                let values = Bound::new(py, view.iterate(py, self.part, Direction::Forward)?)?;
                for value in values.try_iter()? {
                    if value?.eq(&wanted)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// The error for a key that does not exist.
pub(crate) fn missing(py: Python<'_>, key: &[u8]) -> PyErr {
    PyKeyError::new_err((PyBytes::new(py, key).unbind(),))
}

/// The arguments of `__exit__`: whether the block has ended by an exception.
pub(crate) fn has_failed(exception: &Bound<'_, PyTuple>) -> bool {
    exception.get_item(0).is_ok_and(|kind| !kind.is_none())
}
