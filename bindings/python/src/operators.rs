//! Merge operators that are written in Python.
//!
//! Concurrency: any thread calls an operator, also one of the engine. It waits for the interpreter's lock, which no thread
//! holds while it waits for the engine. After the end of the interpreter a merge is an error.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use windrow::{MergeError, MergeOperator, Operands};

use crate::buffers::Input;

/// An object with a name and the function `merge`, and perhaps `partial_merge`.
struct Operator {
    name: String,
    merge: Py<PyAny>,
    partial_merge: Option<Py<PyAny>>,
}

/// The operator that an object of Python is.
pub(crate) fn operator(given: &Bound<'_, PyAny>) -> PyResult<Arc<dyn MergeOperator>> {
    let partial_merge = given.getattr_opt("partial_merge")?;
    Ok(Arc::new(Operator {
        name: given.getattr("name")?.extract()?,
        merge: given.getattr("merge")?.unbind(),
        partial_merge: partial_merge.map(Bound::unbind),
    }))
}

/// Runs `work` attached to the interpreter. An exception becomes an error with its text.
fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, MergeError> {
    match Python::try_attach(|py| work(py).map_err(|error| error.to_string())) {
        Some(outcome) => outcome.map_err(MergeError::new),
        None => Err(MergeError::new("the interpreter of Python has ended")),
    }
}

fn listed<'py>(py: Python<'py>, operands: Operands<'_>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for operand in operands {
        list.append(PyBytes::new(py, operand))?;
    }
    Ok(list)
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        attached(|py| {
            let base = base.map(|base| PyBytes::new(py, base));
            let arguments = (PyBytes::new(py, key), base, listed(py, operands)?);
            let merged = self.merge.bind(py).call1(arguments)?;
            result.extend_from_slice(merged.extract::<Input<'_>>()?.as_slice());
            Ok(())
        })
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let Some(partial_merge) = &self.partial_merge else {
            return Ok(false);
        };
        attached(|py| {
            let arguments = (PyBytes::new(py, key), listed(py, operands)?);
            let merged = partial_merge.bind(py).call1(arguments)?;
            let Some(merged) = merged.extract::<Option<Input<'_>>>()? else {
                return Ok(false);
            };
            result.extend_from_slice(merged.as_slice());
            Ok(true)
        })
    }
}
