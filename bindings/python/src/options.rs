//! Options of Python callers.
//!
//! Concurrency: no state.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use windrow::{Durability, KeyspaceOptions, Options, operators};
use windrow_ffi::settings::{self, Setting};

use crate::errors::{exception, invalid_argument};
use crate::listener::listen;
use crate::operators::operator;

/// Sets options by `set`, which takes a name and a value.
fn set_all(
    py: Python<'_>,
    given: &Bound<'_, PyDict>,
    mut set: impl FnMut(&str, Setting<'_>) -> windrow::Result<()>,
) -> PyResult<()> {
    for (name, value) in given {
        let name: String = name.extract()?;
        let text;
        let setting = if value.is_instance_of::<PyBool>() {
            Setting::Flag(value.extract()?)
        } else if value.is_instance_of::<PyInt>() {
            Setting::Whole(value.extract()?)
        } else if value.is_instance_of::<PyFloat>() {
            Setting::Real(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            text = value.extract::<String>()?;
            Setting::Word(&text)
        } else {
            let message = format!("the option {name} is a bool, a number or a word");
            return Err(PyTypeError::new_err(message));
        };
        set(&name, setting).map_err(|error| exception(py, &error))?;
    }
    Ok(())
}

/// The options of keyspaces: those of the preset that `given` names, or `base`, and the others over it.
pub(crate) fn keyspace_options(
    py: Python<'_>,
    base: KeyspaceOptions,
    given: &Bound<'_, PyDict>,
) -> PyResult<KeyspaceOptions> {
    let given = given.copy()?;
    let mut options = base;
    if let Some(name) = given.get_item("preset")? {
        given.del_item("preset")?;
        options =
            settings::preset(&name.extract::<String>()?).map_err(|error| exception(py, &error))?;
    }
    set_all(py, &given, |name, value| {
        settings::set_of_keyspace(&mut options, name, value)
    })?;
    Ok(options)
}

/// The options of a database.
pub(crate) fn options(
    py: Python<'_>,
    given: Option<&Bound<'_, PyDict>>,
    keyspace: Option<&Bound<'_, PyDict>>,
    merge_operators: Option<&Bound<'_, PyDict>>,
    listener: Option<Bound<'_, PyAny>>,
) -> PyResult<Options> {
    let mut options = Options::default();
    if let Some(given) = given {
        set_all(py, given, |name, value| {
            settings::set(&mut options, name, value)
        })?;
    }
    if let Some(keyspace) = keyspace {
        options.keyspace = keyspace_options(py, options.keyspace.clone(), keyspace)?;
    }
    for (keyspace, given) in merge_operators.into_iter().flatten() {
        let operator = match given.cast::<PyString>() {
            Ok(name) => {
                let name = name.to_str()?;
                operators::by_name(name).ok_or_else(|| {
                    invalid_argument(py, &format!("there is no merge operator \"{name}\""))
                })?
            }
            Err(_) => operator(&given)?,
        };
        options = options.with_merge_operator(keyspace.extract::<String>()?, operator);
    }
    if let Some(listener) = listener {
        options = options.with_listener(listen(listener)?);
    }
    Ok(options)
}

/// The durability that a call names, or that of the database.
pub(crate) fn durability(
    py: Python<'_>,
    named: Option<&str>,
    default: Durability,
) -> PyResult<Durability> {
    named.map_or(Ok(default), |name| {
        settings::durability(name).map_err(|error| exception(py, &error))
    })
}
