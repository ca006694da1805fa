//! Errors as exceptions.
//!
//! The classes are written in Python (`windrow/_errors.py`). Each kind of error has one, named after it.
//!
//! Concurrency: no state.

use pyo3::prelude::*;

/// The exception for an error of Windrow.
pub(crate) fn exception(py: Python<'_>, error: &windrow::Error) -> PyErr {
    let name = format!("{:?}Error", error.kind());
    let exception = raised(py, &name, &error.to_string());
    let describe = || {
        let value = exception.value(py);
        if let Some(file) = error.file() {
            value.setattr("file", file)?;
        }
        if let Some(offset) = error.offset() {
            value.setattr("offset", offset)?;
        }
        if let Some((keyspace, key)) = error.conflict() {
            value.setattr("keyspace", keyspace)?;
            value.setattr("key", key)?;
        }
        Ok(())
    };
    match describe() {
        Ok(()) => exception,
        Err(error) => error,
    }
}

/// The exception of the class `name`. A class that is missing is an error, too.
pub(crate) fn raised(py: Python<'_>, name: &str, message: &str) -> PyErr {
    let make = || {
        py.import("windrow._errors")?
            .getattr(name)?
            .call1((message,))
    };
    match make() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A wrong argument that the engine does not see.
pub(crate) fn invalid_argument(py: Python<'_>, message: &str) -> PyErr {
    raised(py, "InvalidArgumentError", message)
}
