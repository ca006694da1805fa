//! What `windrow.plyvel` needs of the interface of LevelDB.
//!
//! Concurrency: no state.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow::{Error, ErrorKind};
use windrow_ffi::leveldb::{self, Entries, OpenOptions};

use crate::database::Database;
use crate::owner::{Owner, call};
use crate::view::Keyspace;

/// Opens a database with LevelDB's options, those of `windrow_ffi::leveldb`, and its one keyspace.
#[pyfunction]
#[pyo3(name = "_open_leveldb", signature = (path, **options))]
pub(crate) fn open_leveldb(
    py: Python<'_>,
    path: PathBuf,
    options: Option<Options>,
) -> PyResult<(Database, Bound<'_, PyAny>)> {
    let options = options.map_or_else(OpenOptions::default, |options| options.0);
    let durability = options.to_windrow().durability;
    let (db, keyspace) = call(py, || {
        let (db, keyspace) = leveldb::open(&path, &options)?;
        // Its entry would be missing in iterators without a word.
        let entries = Entries::new(db.clone(), keyspace.clone())?;
        if entries.contains_key(b"", None)? {
            let message = "the database has an entry with the empty key, which this interface cannot show: remove it by another";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok((db, keyspace))
    })?;
    let owner = Owner::new(db, durability);
    let keyspace = Keyspace::open(py, Arc::clone(&owner), keyspace)?;
    Ok((Database::new(owner), keyspace))
}

/// Removes a database, and its folder if nothing else is in it.
#[pyfunction]
#[pyo3(name = "_destroy_leveldb")]
pub(crate) fn destroy_leveldb(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    call(py, || leveldb::destroy(&path))
}

/// Options that a caller passes by their names.
pub(crate) struct Options(OpenOptions);

impl<'a, 'py> FromPyObject<'a, 'py> for Options {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut options = OpenOptions::default();
        for (name, value) in object.cast::<PyDict>()?.iter() {
            let name: String = name.extract()?;
            match name.as_str() {
                "create_if_missing" => options.create_if_missing = value.extract()?,
                "error_if_exists" => options.error_if_exists = value.extract()?,
                "write_buffer_bytes" => options.write_buffer_bytes = value.extract()?,
                "open_files" => options.open_files = value.extract()?,
                "cache_bytes" => options.cache_bytes = value.extract()?,
                "block_bytes" => options.block_bytes = value.extract()?,
                "file_bytes" => options.file_bytes = value.extract()?,
                "is_compressed" => options.is_compressed = value.extract()?,
                "bits_per_key" => options.bits_per_key = Some(value.extract()?),
                unknown => {
                    let message = format!("there is no option {unknown}");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        Ok(Self(options))
    }
}
