//! What a keyspace has beside what readers have of it.
//!
//! Concurrency: any thread. The engine orders the writes.

use pyo3::Borrowed;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice};
use windrow::{Batch, Durability, ErrorKind};

use crate::buffers::{Input, Seconds, to_bytes};
use crate::conversions::{json, pairs};
use crate::errors::raised;
use crate::iteration::Direction;
use crate::loads::load;
use crate::options;
use crate::owner::{call, caught};
use crate::view::{Keyspace, View, missing};

/// How often `change` tries again.
const TRIES_MAX: usize = 200;

/// An argument that may be left out, where `None` is one, too.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(object.to_owned())))
    }
}

impl Keyspace {
    fn write(
        view: &View,
        py: Python<'_>,
        durability: Option<&str>,
        write: impl FnOnce(&windrow::Keyspace, Durability) -> windrow::Result<()> + Send,
    ) -> PyResult<()> {
        let keyspace = view.keyspace(py)?;
        let durability = options::durability(py, durability, view.owner(py)?.durability)?;
        call(py, || write(keyspace, durability))
    }

    fn take<'py>(
        view: &View,
        py: Python<'py>,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = view.keyspace(py)?;
        let key = view.scope().key(key);
        if !view.scope().contains(&key) {
            return Ok(None);
        }
        let taken = call(py, || keyspace.fetch_remove(&key))?;
        taken.map(|value| to_bytes(py, &value)).transpose()
    }
}

#[pymethods]
impl Keyspace {
    fn __setitem__(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        value: Input<'_>,
    ) -> PyResult<()> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        let value = value.as_slice();
        Self::write(view, py, None, |keyspace, _| keyspace.insert(&key, value))
    }

    fn __delitem__(slf: PyRef<'_, Self>, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<()> {
        let view = slf.as_super();
        if let Ok(slice) = key.cast::<PySlice>() {
            view.slice(slice)?.call_method0("clear")?;
            return Ok(());
        }
        let key: Input<'_> = key.extract()?;
        match Self::take(view, py, key.as_slice())? {
            Some(_) => Ok(()),
            None => Err(missing(py, key.as_slice())),
        }
    }

    /// Sets the value of `key`. It expires after `ttl` seconds, if they are given.
    #[pyo3(signature = (key, value, *, ttl=None, durability=None))]
    fn put(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        value: Input<'_>,
        ttl: Option<Seconds>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        let value = value.as_slice();
        let Some(Seconds(ttl)) = ttl else {
            return Self::write(view, py, durability, |keyspace, durability| {
                keyspace.insert_with(&key, value, durability)
            });
        };
        let db = &view.owner(py)?.db;
        Self::write(view, py, durability, |keyspace, durability| {
            let mut batch = Batch::new();
            batch.insert_with_ttl(keyspace, &key, value, ttl)?;
            db.write_with(&batch, durability)
        })
    }

    /// Removes `key`. A missing key is no error.
    #[pyo3(signature = (key, *, durability=None))]
    fn delete(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        Self::write(view, py, durability, |keyspace, durability| {
            keyspace.remove_with(&key, durability)
        })
    }

    /// Removes all entries of the view by one small write.
    #[pyo3(signature = (*, durability=None))]
    fn clear(slf: PyRef<'_, Self>, py: Python<'_>, durability: Option<&str>) -> PyResult<()> {
        let view = slf.as_super();
        let bounds = view.scope().bounds();
        Self::write(view, py, durability, |keyspace, durability| {
            keyspace.delete_range_with::<&[u8]>(bounds, durability)
        })
    }

    /// Writes an operand, which the merge operator of the keyspace folds into the value of `key`.
    #[pyo3(signature = (key, operand, *, durability=None))]
    fn merge(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        operand: Input<'_>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        let operand = operand.as_slice();
        Self::write(view, py, durability, |keyspace, durability| {
            keyspace.merge_with(&key, operand, durability)
        })
    }

    /// Sets the values of a mapping, or of pairs of keys and values, by one atomic write.
    #[pyo3(signature = (entries=None, *, durability=None))]
    fn update(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        entries: Option<Bound<'_, PyAny>>,
        durability: Option<&str>,
    ) -> PyResult<()> {
        let view = slf.as_super();
        let mut batch = Batch::new();
        view.keyspace(py)?;
        let Some(entries) = entries else {
            return Ok(());
        };
        for pair in pairs(&entries)?.try_iter()? {
            let (key, value): (Input<'_>, Input<'_>) = pair?.extract()?;
            let key = view.written_key(py, key.as_slice())?;
            // The iterator may have closed the database, or forked the process.
            let keyspace = view.keyspace(py)?;
            caught(py, || batch.insert(keyspace, &key, value.as_slice()))?;
        }
        let db = &view.owner(py)?.db;
        Self::write(view, py, durability, |_, durability| {
            db.write_with(&batch, durability)
        })
    }

    /// Removes `key` and returns its value: of several threads, one gets it. A missing key gives `default`, or is a
    /// `KeyError` without one.
    #[pyo3(signature = (key, default=Given(None)))]
    fn pop<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        key: Input<'py>,
        default: Given<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match Self::take(slf.as_super(), py, key.as_slice())? {
            Some(value) => Ok(value.into_any()),
            None => default.0.ok_or_else(|| missing(py, key.as_slice())),
        }
    }

    /// Removes the entry with the smallest key, or the greatest if `last`, and returns it. No entry is a `KeyError`.
    #[pyo3(signature = (*, last=false))]
    fn popitem<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        last: bool,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let view = slf.as_super();
        let direction = Direction::new(!last);
        // Another thread may take the entry between both steps.
        while let Some((key, _)) = view.end(py, direction)? {
            if let Some(value) = Self::take(view, py, key.as_bytes())? {
                return Ok((key, value));
            }
        }
        Err(PyKeyError::new_err("the view has no entry"))
    }

    /// The value of `key`. A missing key gets the value `default` first; without one it is a `TypeError`, as `None` is no value.
    #[pyo3(signature = (key, default=None))]
    fn setdefault<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        key: Input<'_>,
        default: Option<Input<'_>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let view = slf.as_super();
        let full = view.written_key(py, key.as_slice())?;
        let keyspace = view.keyspace(py)?;
        let Some(default) = default else {
            let found = view.find(py, key.as_slice())?;
            return found
                .ok_or_else(|| PyTypeError::new_err("the key is missing, and None is no value"));
        };
        let default = default.as_slice();
        loop {
            if call(py, || keyspace.insert_if_absent(&full, default))? {
                return Ok(PyBytes::new(py, default));
            }
            // Another thread may remove it between both steps.
            if let Some(value) = view.find(py, key.as_slice())? {
                return Ok(value);
            }
        }
    }

    /// Sets the value of `key` to `new` if it is `expected`; `None` stands for no value. Returns whether it was.
    fn compare_and_swap(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        expected: Option<Input<'_>>,
        new: Option<Input<'_>>,
    ) -> PyResult<bool> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        let keyspace = view.keyspace(py)?;
        let expected = expected.as_ref().map(Input::as_slice);
        let new = new.as_ref().map(Input::as_slice);
        call(py, || keyspace.compare_and_swap(&key, expected, new))
    }

    /// Sets the value of `key` to what `change` makes of its present one, in one step: no other write comes in between.
    /// `None` stands for no value. `change` may be called more than once. Returns the new value.
    fn change<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        key: Input<'_>,
        change: Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let view = slf.as_super();
        let full = view.written_key(py, key.as_slice())?;
        for _ in 0..TRIES_MAX {
            let old = view.find(py, key.as_slice())?;
            let new: Option<Input<'_>> = change.call1((old.clone(),))?.extract()?;
            let expected = old.as_ref().map(PyBytesMethods::as_bytes);
            let written = new.as_ref().map(Input::as_slice);
            // `change` may have closed the database, or forked the process.
            let keyspace = view.keyspace(py)?;
            if call(py, || keyspace.compare_and_swap(&full, expected, written))? {
                return Ok(written.map(|new| PyBytes::new(py, new)));
            }
        }
        let message = "other writes to the key came in between each time";
        Err(raised(
            py,
            &format!("{:?}Error", ErrorKind::Conflict),
            message,
        ))
    }

    /// Sets the value of `key` if it has none, in one step. Returns whether it had none.
    fn put_if_absent(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        key: Input<'_>,
        value: Input<'_>,
    ) -> PyResult<bool> {
        let view = slf.as_super();
        let key = view.written_key(py, key.as_slice())?;
        let keyspace = view.keyspace(py)?;
        let value = value.as_slice();
        call(py, || keyspace.insert_if_absent(&key, value))
    }

    /// Loads the entries of a mapping, or pairs of keys and values, whose keys come in strictly ascending order: as one commit
    /// that is durable at the return, and far faster than batches. After an exception of the source nothing is loaded. The
    /// source must not close this database or wait for its work. Returns the number of entries.
    fn bulk_load(slf: PyRef<'_, Self>, py: Python<'_>, entries: Bound<'_, PyAny>) -> PyResult<u64> {
        load(slf.as_super(), py, &entries, None)
    }

    /// As `bulk_load`, for entries in any order: they are sorted on disk, with `memory_bytes` of memory. Of entries with one
    /// key the last counts.
    #[pyo3(signature = (entries, *, memory_bytes=67_108_864))]
    fn bulk_load_unsorted(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        entries: Bound<'_, PyAny>,
        memory_bytes: usize,
    ) -> PyResult<u64> {
        load(slf.as_super(), py, &entries, Some(memory_bytes))
    }

    /// Gives the keyspace another name.
    fn rename(slf: PyRef<'_, Self>, py: Python<'_>, name: &str) -> PyResult<()> {
        let keyspace = slf.as_super().keyspace(py)?;
        call(py, || keyspace.rename(name))
    }

    /// The options of the keyspace.
    fn options<'py>(slf: PyRef<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let keyspace = slf.as_super().keyspace(py)?;
        let text = call(py, || Ok(serde_json::to_string(&keyspace.options())))?;
        Ok(json(py, &text)?.cast_into::<PyDict>()?)
    }

    /// Compacts all entries of the view down to the deepest level that has data.
    fn compact(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let view = slf.as_super();
        let (keyspace, bounds) = (view.keyspace(py)?, view.scope().bounds());
        call(py, || keyspace.compact_range::<&[u8]>(bounds))
    }

    /// About how many keys the view has, from metadata alone.
    fn approximate_len(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        let view = slf.as_super();
        let (keyspace, bounds) = (view.keyspace(py)?, view.scope().bounds());
        call(py, || keyspace.approximate_len::<&[u8]>(bounds))
    }

    /// About how many bytes of files hold the entries of the view, from metadata alone.
    fn approximate_size(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        let view = slf.as_super();
        let (keyspace, bounds) = (view.keyspace(py)?, view.scope().bounds());
        call(py, || keyspace.approximate_size::<&[u8]>(bounds))
    }
}
