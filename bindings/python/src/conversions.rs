//! Objects of Python as others: what several modules take or give.
//!
//! Concurrency: any thread.

use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};

use crate::errors::raised;

/// The pairs of a mapping, or of an iterable of pairs.
pub(crate) fn pairs<'py>(entries: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if entries.cast::<PyMapping>().is_ok() || entries.hasattr("items")? {
        entries.call_method0("items")
    } else {
        Ok(entries.clone())
    }
}

/// What JSON text says, as objects of Python.
pub(crate) fn json<'py>(
    py: Python<'py>,
    text: &serde_json::Result<String>,
) -> PyResult<Bound<'py, PyAny>> {
    match text {
        Ok(text) => py
            .import("json")?
            .call_method1("loads", (PyString::new(py, text),)),
        Err(error) => Err(raised(py, "InternalError", &error.to_string())),
    }
}
